"""The log of a region that others are sent from: its retention, and a new epoch."""

from __future__ import annotations

import logging
from typing import Final

from headrace.persistence.errors import PersistenceError
from headrace.regions.exchange.pull import RecordLog
from headrace.regions.files.backlog import Backlog
from headrace.regions.files.journal import JournalLog
from headrace.regions.files.pieces import Piece
from headrace.regions.files.region_log import RegionLog
from headrace.regions.knowledge.region import Region
from headrace.server.config.config import Config
from headrace.server.durability.durability import Durability
from headrace.server.durability.files import Files
from headrace.server.durability.worker import ThreadCall
from headrace.storage.vectors import Numbers, raise_numbers

log: Final = logging.getLogger("headrace")

LOOK_MS: Final = 1000  # between two looks at what the others have


def log_of(files: Files) -> RegionLog | None:
    """Return the log of a region; None before its files are loaded."""
    found = files.log
    assert found is None or isinstance(found, RegionLog)
    return found


class LogManager:
    """Keeps the log of one region as long as others need it, and begins new files of it."""

    def __init__(self, config: Config, durability: Durability) -> None:
        self._config: Final = config
        self._files: Final = durability.files
        self._committer: Final = durability.committer
        self._dropping = False
        self._next_ms = 0
        self._reported = 0  # files that have gone

    def open(self, region: Region) -> RegionLog:
        """Return the log of a region, which is about to be loaded."""
        config = self._config
        found = log_of(self._files)
        if found is None:
            backlog = Backlog(config.aa_backlog_bytes)
            found = JournalLog(region, backlog, config.aa_log_max_bytes)
            self._files.log = found
            for name in ("aa-send", "aa-backlog-bytes", "aa-log-max-bytes"):
                config.on_change[name] = self.settings_changed
            self.settings_changed()
        return found

    def settings_changed(self) -> str | None:
        """Apply the settings in force."""
        found = log_of(self._files)
        if found is not None:
            config = self._config
            found.backlog.most_bytes = config.aa_backlog_bytes
            found.most_bytes = config.aa_log_max_bytes
            found.sends_synced = config.aa_send == b"synced"
        return None

    def acknowledged(self, numbers: Numbers) -> None:
        """Note what all others have on their disks, and delete files that no region needs."""
        found = log_of(self._files)
        directory = self._files.directory
        if found is None:
            return
        found.acknowledged = numbers
        if directory is None or self._dropping or not directory.has_needless():
            return
        try:
            self._files.worker.give(ThreadCall(directory.drop_kept, self._dropped))
            self._dropping = True
        except RuntimeError as error:
            log.warning("Files that are not needed stay for now: %s", error)

    def _dropped(self, _: object, failure: str) -> None:
        self._dropping = False
        if failure:
            log.warning("Files that are not needed stay for now: %s", failure)

    def begin_epoch(self, epoch: int, generation: int, nonce: bytes) -> bool:
        """Make the region another origin from now on, in a new file, which says so.

        While nothing is open, no file is written. Between two commands only.

        Returns: False when it has to be tried again, because files are being written anew.

        Raises OSError or PersistenceError if it cannot be; the region is the same as before then.
        """
        found = log_of(self._files)
        assert found is not None
        region = found.region
        aof = self._files.aof
        directory = self._files.directory
        if aof is None or directory is None:
            region.begin_epoch(epoch, generation, nonce)
            return True
        if self._files.job is not None or not aof.named:
            return False
        if not self._committer.settle():
            raise PersistenceError("the present file cannot be written")
        self._files.worker.drain()
        before = (region.epoch, region.generation, region.nonce)
        path = directory.add_incr()
        region.begin_epoch(epoch, generation, nonce)
        try:
            aof.switch(path, aof.total_bytes)
        except BaseException:
            region.begin_epoch(before[0], before[1], before[2])
            raise
        return True

    def look(self, now_ms: int, acknowledged: dict[int, Numbers]) -> None:
        """Update the log from time to time with what the others have.

        Args:
            now_ms: monotonic.
            acknowledged: what each has on its disk, as it said on a connection.
        """
        kept = log_of(self._files)
        if kept is None or now_ms < self._next_ms:
            return
        self._next_ms = now_ms + LOOK_MS
        region = kept.region
        on_disk: dict[int, Numbers] = {}
        for member in region.members():
            if member != region.id:
                numbers = on_disk[member] = acknowledged.get(member, {}).copy()
                beat = region.beats.get(member)  # as it has said in its log
                if beat is not None:
                    raise_numbers(numbers, beat.numbers)
        kept.is_kept = bool(on_disk)
        self.acknowledged(least(list(on_disk.values())))
        if kept.dropped > self._reported:
            self._reported = kept.dropped
            self._report(kept, on_disk)

    def _report(self, kept: RegionLog, on_disk: dict[int, Numbers]) -> None:
        """Log which regions will need a full copy, because the log has become too long."""
        own = kept.region.origin
        for member, numbers in on_disk.items():
            if numbers.get(own, 0) + 1 < kept.reach(own):
                log.warning(
                    "Region %d will need a full copy when it returns: the log for it is longer "
                    "than aa-log-max-bytes (%d), so the oldest has gone. Nothing is lost. If it "
                    "will never return: AA FORGET %d",
                    member,
                    kept.most_bytes,
                    member,
                )


class JournalRecords(RecordLog):
    """The records in the append-only file of a region."""

    def __init__(self, kept: RegionLog) -> None:
        self._kept: Final = kept
        self._backlog: Final = kept.backlog

    def ends(self, origin: bytes) -> int:
        return max(0, self._backlog.next(origin) - 1)

    def begins(self, origin: bytes) -> int:
        return max(1, self._backlog.reach(origin))

    def reach(self, origin: bytes) -> int:
        return max(1, self._kept.reach(origin))

    def origins(self) -> list[bytes]:
        return self._backlog.origins()

    def after(self, origin: bytes, number: int, most_bytes: int) -> Piece | None:
        return self._backlog.after(origin, number, most_bytes)

    def read(self, origin: bytes, number: int, most_bytes: int) -> Piece | None:
        return self._kept.read(origin, number, most_bytes)


def least(vectors: list[Numbers]) -> Numbers:
    """Return what all of them know."""
    if not vectors:
        return {}
    found: Numbers = {}
    for origin, number in vectors[0].items():
        lowest = min([numbers.get(origin, 0) for numbers in vectors])
        if lowest:
            found[origin] = min(lowest, number)
    return found
