"""The log of a region: what other regions are sent from, how long it is kept, and a new epoch."""

from __future__ import annotations

import logging
from typing import Final

from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.errors import PersistenceError
from headrace.regions.files.backlog import Backlog
from headrace.regions.files.journal import RegionLog
from headrace.regions.files.kept import KeptLog
from headrace.regions.knowledge.region import Region
from headrace.server.config.config import Config
from headrace.server.durability.durability import Durability
from headrace.server.durability.files import Files
from headrace.server.durability.worker import Task
from headrace.storage.vectors import Numbers

log: Final = logging.getLogger("headrace")


def log_of(files: Files) -> KeptLog | None:
    """The log of a region; None before its files are loaded."""
    found = files.log
    assert found is None or isinstance(found, KeptLog)
    return found


class Keeping:
    """Keeps the log of one region."""

    def __init__(self, config: Config, durability: Durability) -> None:
        self._config: Final = config
        self._files: Final = durability.files
        self._committer: Final = durability.committer
        self._dropping = False

    def open(self, region: Region) -> KeptLog:
        """The log of a region, which is about to be loaded."""
        config = self._config
        found = log_of(self._files)
        if found is None:
            backlog = Backlog(config.aa_backlog_bytes)
            found = RegionLog(region, backlog, config.aa_log_max_bytes)
            self._files.log = found
            for name in ("aa-send", "aa-backlog-bytes", "aa-log-max-bytes"):
                config.on_change[name] = self.settings_changed
            self.settings_changed()
        return found

    def settings_changed(self) -> str | None:
        """Do from now on what the configuration asks for."""
        found = log_of(self._files)
        if found is not None:
            config = self._config
            found.backlog.most_bytes = config.aa_backlog_bytes
            found.most_bytes = config.aa_log_max_bytes
            found.sends_synced = config.aa_send == b"synced"
        return None

    def acknowledged(self, numbers: Numbers) -> None:
        """All other regions have so much on their disks: files that nobody needs go."""
        found = log_of(self._files)
        directory = self._files.directory
        if found is None:
            return
        found.acknowledged = numbers
        if directory is None or self._dropping or not directory.has_needless():
            return
        try:
            self._files.worker.give(_Drop(self, directory))
            self._dropping = True
        except RuntimeError as error:
            log.warning("Files that are not needed stay for now: %s", error)

    def dropped(self, failure: str) -> None:
        """Files that nobody needs have been deleted, or not."""
        self._dropping = False
        if failure:
            log.warning("Files that are not needed stay for now: %s", failure)

    def begin_epoch(self, epoch: int, generation: int, nonce: bytes) -> bool:
        """Let the region be another origin from now on, in a new file, which says so.

        While nothing is open, it is enough to be it. Between two commands only.

        Returns: False when it has to be tried again, because files are being written anew.

        Raises:
            OSError, PersistenceError: it cannot be; the region is who it was.
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


class _Drop(Task):
    def __init__(self, keeping: Keeping, directory: AofDirectory) -> None:
        super().__init__()
        self._keeping: Final = keeping
        self._directory: Final = directory

    def run(self) -> None:
        self._directory.drop_kept()

    def done(self) -> None:
        self._keeping.dropped(self.failure)
