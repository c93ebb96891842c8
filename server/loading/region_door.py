"""What the files of a region hold is applied as what comes from other regions is."""

from __future__ import annotations

import os
from typing import Final

from headrace.persistence.aof.identity import Life
from headrace.server.loading.numbered import EffectsDoor
from headrace.server.regions.effects import EffectError, apply_local, apply_record, region_of
from headrace.server.state import Server

NONCE_BYTES: Final = 16


class RegionDoor(EffectsDoor):
    """Where the records of a region's own files go."""

    def __init__(self, server: Server) -> None:
        super().__init__(region_of(server))
        self._server: Final = server

    def apply(self, origin: bytes, number: int, words: list[bytes]) -> str:
        """See ``EffectsDoor``."""
        try:
            apply_record(self._server, origin, number, words, True)
        except EffectError as error:
            return str(error)
        return ""

    def apply_local(self, words: list[bytes]) -> str:
        """See ``EffectsDoor``."""
        try:
            apply_local(self._server, words)
        except EffectError as error:
            return str(error)
        return ""

    async def start(self, life: Life | None) -> None:
        """See ``EffectsDoor``."""
        region = self.region
        if not region.nonce:
            region.begin_epoch(
                region.epoch, region.generation, os.urandom(NONCE_BYTES).hex().encode()
            )
