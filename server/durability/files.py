"""The files of one server that are open, and what is known of them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.aof.file import AppendOnlyFile
from headrace.persistence.aof.peer_log import PeerLog
from headrace.server.changes.changes import Changes
from headrace.server.durability.aof_status import AofStatus
from headrace.server.durability.sync_waits import SyncWait
from headrace.server.durability.worker import Worker


class Job:
    """A snapshot or a base on its way to the disk."""

    @abstractmethod
    def cancel(self) -> None:
        """Give up; when this returns nothing of it is left."""


class Rewriter:
    """What writes the append-only folder anew.

    Attributes:
        first_folder: the folder, while the file is turned on and its first base is not there yet.
    """

    def __init__(self) -> None:
        self.first_folder: AofDirectory | None = None

    @abstractmethod
    def is_running(self) -> bool:
        """Whether a base is being written."""

    @abstractmethod
    def rewrite_soon(self) -> bool:
        """Begin, or see that it begins when it can; False when it has to wait for that."""


class Files:
    """What several parts of durability work with.

    Attributes:
        aof: where records go; None when it is off.
        directory: the folder that the file lies in.
        log: of a region: what other regions are sent from.
        status: what INFO shows of them.
        write_error: why writes are refused; mostly empty.
        worker: for what takes time with files.
        job: a snapshot or a base being written; there is one at a time.
        sync_waits: clients of WAITAOF.
        last_save_s: when the last snapshot was written, in seconds since 1970, or the start.
    """

    def __init__(self, changes: Changes, started_s: int) -> None:
        self.aof: AppendOnlyFile | None = None
        self.directory: AofDirectory | None = None
        self.log: PeerLog | None = None
        self.status: Final = AofStatus()
        self.write_error = b""
        self.worker: Final = Worker()
        self.job: Job | None = None
        self.sync_waits: Final[list[SyncWait]] = []
        self.last_save_s = started_s
        self._changes: Final = changes
        self._recorded = 0  # bytes, in the files before ``aof``

    def record_to(self, aof: AppendOnlyFile | None) -> None:
        """Let records go to this append-only file, and no more to the one before; None is none."""
        if self.aof is not None:
            self._changes.remove_log(self.aof)
            self._recorded = self.aof.end
        self.aof = aof
        if aof is not None:
            aof.goes_on(self._recorded)
            self._changes.add_log(aof)
