"""Records that stand in the log are applied again: a copy has replaced what they had done."""

from __future__ import annotations

import logging
from time import perf_counter_ns
from typing import Final

from headrace.persistence.errors import PersistenceError
from headrace.regions.exchange.effects import EffectError, apply_record, region_of
from headrace.regions.files.batch import Batch
from headrace.regions.files.kept import KeptLog
from headrace.regions.files.scan import NUMBERED, Scanner
from headrace.server.state import Server
from headrace.storage.vectors import Numbers, origin_key

log: Final = logging.getLogger("headrace")

BATCH_BYTES: Final = 64 * 1024


class Replaying:
    """Applies what is in a log beyond what is known.

    Args:
        wanted: up to which record of each origin.
    """

    def __init__(self, server: Server, kept: KeptLog, wanted: Numbers) -> None:
        self._server: Final = server
        self._kept: Final = kept
        self._wanted: Final = wanted
        self._origins: Final = sorted(wanted, key=origin_key)

    def step(self, budget_ns: int) -> bool:
        """Go on for about so long; whether more is to be done."""
        until_ns = perf_counter_ns() + budget_ns
        region = region_of(self._server)
        while self._origins:
            origin = self._origins[-1]
            number = region.number_of(origin)
            if number >= self._wanted[origin] or not self._apply_some(origin, number):
                self._origins.pop()
            if perf_counter_ns() >= until_ns:
                break
        return bool(self._origins)

    def _apply_some(self, origin: bytes, number: int) -> bool:
        """Apply the records of an origin that follow; False where that cannot be."""
        try:
            batch = self._kept.read(origin, number, BATCH_BYTES)
            if batch is not None:
                self._apply(batch, number)
                return True
            reason = "they are not in the log any more"
        except (PersistenceError, EffectError) as error:
            reason = str(error)
        log.warning(
            "Records %d to %d of %s are lost, which only this region had: %s",
            number + 1,
            self._wanted[origin],
            origin.decode(),
            reason,
        )
        return False

    def _apply(self, batch: Batch, known: int) -> None:
        scanner = Scanner(batch.payload)
        number = batch.first - 1
        at = 0
        while at < len(batch.payload):
            end = int(scanner.scan(at))
            if scanner.kind == NUMBERED:
                number += 1
                if number > known:
                    words = scanner.words(at)
                    apply_record(self._server, batch.origin, number, words, True)
            at = end
