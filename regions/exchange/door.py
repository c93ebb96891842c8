"""How a region comes to life: its files are loaded, and then it is decided who it is from now on.

The files may be those of a single server. Then they are loaded as if there were no regions, up to
where the region's own begin, or to the end. What they hold becomes the region's then.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from headrace.persistence.errors import PersistenceError, shown
from headrace.regions.exchange.catching import Catching, new_nonce
from headrace.regions.exchange.effects import (
    EffectError,
    adopted,
    apply_local,
    apply_record,
    note_loaded,
    refuse_writes,
)
from headrace.regions.exchange.numbered import EffectsDoor
from headrace.regions.exchange.regions import Regions
from headrace.regions.exchange.starting import (
    ADOPTED,
    CUT,
    MOVED,
    NONE,
    WHOLE,
    Answer,
    Forgotten,
    Start,
    decide,
)
from headrace.regions.files.identity import Life
from headrace.regions.knowledge.region import Region
from headrace.server.state import Server
from headrace.storage.sharing import Replicated

log: Final = logging.getLogger("headrace")

LOOK_S: Final = 0.02  # between two looks whether all have answered


class RegionRecords(EffectsDoor):
    """Takes what the files of a region hold."""

    def __init__(self, server: Server, region: Region) -> None:
        super().__init__(region)
        self._server: Final = server
        server.data.region = None  # until something is the region's

    def apply(self, origin: bytes, number: int, words: list[bytes]) -> str:
        try:
            apply_record(self._server, origin, number, words, True)
        except EffectError as error:
            return str(error)
        return ""

    def apply_local(self, words: list[bytes]) -> str:
        try:
            apply_local(self._server, words)
        except EffectError as error:
            return str(error)
        return ""

    def take_up(self) -> None:
        data = self._server.data
        if data.region is not None:
            return
        data.region = self.region
        db = data.dbs[0]
        now_ms = self._server.clock.now_ns // 1_000_000
        for entry in list(db.every()):
            if isinstance(entry.value, Replicated):
                continue
            value = adopted(self.region, entry.value, entry.expire_ms)
            if value is None:
                if not self.region.nonce:
                    self._refuse_other(entry.key)
                continue  # else it was let in here, in the region's own time
            self.wants_base = True
            if isinstance(value, Replicated) and value.exists():
                db.put(entry.key, value, now_ms)
            else:
                db.remove(entry.key)
        if self.wants_base:
            self.region.learned(self.region.origin, 1)

    def _refuse_other(self, key: bytes) -> None:
        if self._server.config.aa_other_keys != b"local":
            raise PersistenceError(
                f"There are keys that are no streams, as {shown(key)} is, and other regions would "
                "not get them. Start with aa-other-keys local to keep them in this region alone, "
                "or take them out."
            )


class RegionDoor(RegionRecords):
    """Takes what the files of a region hold, and begins its life."""

    def __init__(self, server: Server, regions: Regions) -> None:
        super().__init__(server, regions.region)
        self._regions: Final = regions

    async def start(self, life: Life | None) -> None:
        """See ``EffectsDoor``.

        Raises:
            PersistenceError: the region must not start with these files.
        """
        self.take_up()
        region = self.region
        region.synced = region.known()
        note_loaded(self._server)
        files = self._kind(life)
        asked, answers = await self._ask()
        now_ms = self._server.clock.refresh()
        try:
            start = decide(region, files, asked, answers, now_ms)
        except Forgotten as reason:
            raise PersistenceError(f"The region cannot start: {reason}.") from reason
        self.begin(start, answers)

    def begin(self, start: Start, answers: dict[int, Answer]) -> None:
        """Be what was decided."""
        region = self.region
        if not start.goes_on:
            begun = region.begun if region.nonce else start.epoch
            nonce = new_nonce(start.refusal, begun)
            region.begin_epoch(start.epoch, start.generation, nonce)
        name = region.origin.decode()
        log.info("Region %d of %s is %s: %s", region.id, shown(region.database), name, start.reason)
        if start.refusal:
            catching = Catching(region, start.refusal)
            for member, answer in answers.items():
                if not answer.is_twin and answer.forgotten < 0:
                    catching.heard(member, answer.numbers)
            self._regions.catching = catching
            refuse_writes(self._server, start.refusal)
            log.warning("Writes are refused until all is here that the other regions know")

    def _kind(self, life: Life | None) -> int:
        """Return what the files are."""
        if life is None:
            if self.wants_base:
                return ADOPTED
            return MOVED if self.region.nonce else NONE
        if not life.is_same_file:
            return MOVED
        always = self._server.config.appendfsync == b"always"
        return WHOLE if life.is_closed or life.is_same_boot or always else CUT

    async def _ask(self) -> tuple[list[int], dict[int, Answer]]:
        """Ask all others, for as long as the configuration says: who they are, and the answers."""
        regions = self._regions
        clock = self._server.clock
        asking = regions.ask()
        until_ms = clock.monotonic_ms() + self._server.config.aa_start_wait_ms
        try:
            while not asking.look() and clock.monotonic_ms() < until_ms:
                await asyncio.sleep(LOOK_S)
                clock.refresh()
            return asking.asked, asking.answers()
        finally:
            asking.end()
