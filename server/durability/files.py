"""The open files of one server, their status, and the clients that wait for them."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Final

from headrace.persistence.aof.directory import AofDirectory, PeerLog
from headrace.persistence.aof.file import AppendOnlyFile
from headrace.server.changes.changes import Changes
from headrace.server.clients.session import Session
from headrace.server.durability.worker import Worker
from headrace.server.waiting import Parked


class AofStatus:
    """Figures that outlive an open file.

    Attributes:
        write_ok, sync_ok: how the last write and the last sync went.
        lost: why writes are refused until everything has been written anew; mostly empty.
        delayed_syncs: how often a sync was due while one had been running for two seconds.
        syncing: a sync runs in the background; rewriting: the data is being written anew.
        rewrite_scheduled: a rewrite starts when nothing else is being written.
        rewrite_started_s: when the rewrite under way started, in seconds since 1970.
        last_rewrite_s: how long the last rewrite took, -1 before the first; last_rewrite_ok:
            whether it succeeded.
        rewrites: rewrites started; failures_in_a_row: failed ones since the last good one.
        last_copied_bytes: the size of data kept for the last one that changed meanwhile, about.
        keys_loaded: keys of the last snapshot that was loaded; keys_expired: those of it that were
            left out because their time had come.
        loading_started_s: when loading started; total_bytes and loaded_bytes: how far it is.
    """

    def __init__(self) -> None:
        self.write_ok = True
        self.sync_ok = True
        self.lost = b""
        self.delayed_syncs = 0
        self.syncing = False
        self.rewriting = False
        self.rewrite_scheduled = False
        self.rewrite_started_s = 0
        self.last_rewrite_s = -1
        self.last_rewrite_ok = True
        self.rewrites = 0
        self.failures_in_a_row = 0
        self.last_copied_bytes = 0
        self.keys_loaded = 0
        self.keys_expired = 0
        self.loading_started_s = 0
        self.total_bytes = 0
        self.loaded_bytes = 0

    def loaded_share(self) -> float:
        """Return how much has been loaded, in per cent."""
        return 100.0 * self.loaded_bytes / self.total_bytes if self.total_bytes else 100.0

    def loading_eta_s(self) -> int:
        """Return how many seconds loading will still take, as far as is known."""
        elapsed_s = int(time.time()) - self.loading_started_s
        if elapsed_s <= 0:
            return 1
        return elapsed_s * (self.total_bytes - self.loaded_bytes) // (self.loaded_bytes + 1)


class SyncWait:
    """One client that waits until all its writes so far, up to ``end`` in ``aof``, are on the disk.

    ``aof`` is None while the first file, whose base will hold these writes, is not open yet.
    ``with_replicas``: the part that serves replicas answers it.
    """

    def __init__(
        self,
        session: Session,
        parked: Parked,
        aof: AppendOnlyFile | None,
        end: int,
        with_replicas: bool,
    ) -> None:
        self.session: Final = session
        self.parked: Final = parked
        self.with_replicas: Final = with_replicas
        self._aof: Final = aof
        self._end: Final = end

    @property
    def over(self) -> bool:
        """Return whether the client waits no more: answered, timed out or gone."""
        waiter = self.session.waiter
        return waiter is None or waiter.parked is not self.parked

    def is_synced(self, aof: AppendOnlyFile | None) -> bool:
        """Return whether the writes are on the disk.

        If the file cannot be found any more, the base in front of the other one holds its records.
        """
        if self._aof is None or not self._aof.named:
            return aof is not None and aof is not self._aof and aof.named
        return aof is not self._aof or aof.has_synced(self._end)


class Job:
    """A snapshot or a base on its way to the disk."""

    @abstractmethod
    def cancel(self) -> None:
        """Give up; when this returns nothing of it is left."""


class Rewriter:
    """Writes the append-only folder anew; ``first_folder``: it, until it has its first base."""

    def __init__(self) -> None:
        self.first_folder: AofDirectory | None = None

    @abstractmethod
    def is_running(self) -> bool:
        """Return whether a base is being written."""

    @abstractmethod
    def rewrite_soon(self) -> bool:
        """Begin, or see that it begins when it can; False when it has to wait for that."""


class Files:
    """The files that several parts of durability work with.

    Attributes:
        aof: where records go; None when it is off; directory: the folder that it lies in.
        log: of a region: the source of what other regions are sent.
        write_error: why writes are refused; mostly empty.
        worker: for slow operations on files; sync_waits: clients of WAITAOF.
        job: a snapshot or a base being written; there is one at a time.
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
        """Send records to this append-only file, and no more to the one before; None is none."""
        if self.aof is not None:
            self._changes.remove_log(self.aof)
            self._recorded = self.aof.end
        self.aof = aof
        if aof is not None:
            aof.goes_on(self._recorded)
            self._changes.add_log(aof)
