"""The snapshot with which a replica begins: an RDB file that nobody finds in the folder afterwards.

It is written as any snapshot is, without a pause, and sent from the disk, so that a slow replica
costs no memory but for the changes that come behind it.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from typing import Final

from mypy_extensions import trait

from headrace.persistence.encoder import Encoder
from headrace.persistence.files import TEMPORARY_PREFIX
from headrace.persistence.rdb.kinds import VALKEY_VERSION_MIN
from headrace.persistence.snapshot.rdb import RisingRdbEncoder
from headrace.server.build import REDIS_VERSION, VERSION
from headrace.server.clients.session import ReplicaFacts
from headrace.server.clock import Clock
from headrace.server.durability.files import Files
from headrace.server.durability.snapshot_job import SnapshotJob
from headrace.server.state import Server
from headrace.storage.keyspace import Keyspace


class SyncFile:
    """A snapshot that is read while it is sent.

    Attributes:
        size_bytes: how long it is.
        readers: how many replicas are still being sent it.
    """

    def __init__(self, descriptor: int, size_bytes: int, clock: Clock) -> None:
        self.descriptor = descriptor
        self.size_bytes: Final = size_bytes
        self.readers = 0
        self.clock: Final = clock

    def close_if_unread(self) -> None:
        """Close it when nobody needs it any more."""
        if not self.readers and self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


@trait
class SyncWaiters:
    """Those for whom a snapshot is written."""

    @abstractmethod
    def begun(self, job: SyncJob) -> None:
        """The snapshot holds the state of this moment."""
        raise NotImplementedError

    @abstractmethod
    def ended(self, job: SyncJob, failure: str) -> None:
        """It can be sent or, with a reason, it cannot."""
        raise NotImplementedError


class SyncJob(SnapshotJob):
    """A snapshot for replicas on its way to the disk.

    Args:
        facts: what the replicas have in common.

    Attributes:
        descriptor: the finished file, which has no name any more.
    """

    def __init__(
        self, server: Server, files: Files, waiters: SyncWaiters, facts: ReplicaFacts
    ) -> None:
        folder = os.path.abspath(server.config.dir)
        path = os.path.join(folder, TEMPORARY_PREFIX + b"%d.rdb" % os.getpid())
        super().__init__(server, files, path, "A snapshot for replicas")
        self.facts: Final = facts
        self.descriptor = -1
        self._waiters: Final = waiters
        self._rdb: RisingRdbEncoder | None = None

    def keyspaces(self) -> list[Keyspace]:
        """All databases, unless the replica wants none of their keys."""
        return super().keyspaces() if self.facts.wants_keys else []

    def libraries(self) -> list[bytes]:
        """The functions, unless it wants none."""
        return super().libraries() if self.facts.wants_functions else []

    def encoder(self) -> Encoder:
        """An RDB file of the lowest version that holds all there is."""
        self._waiters.begun(self)
        first = [b"redis-ver", REDIS_VERSION.encode()]
        version = 0
        if self.facts.is_valkey:
            first = [b"valkey-ver", b"9.0.0"]
            version = VALKEY_VERSION_MIN
        encoder = RisingRdbEncoder(
            version,
            [
                *(*first, b"headrace-ver", VERSION.encode(), b"redis-bits", b"64"),
                *(b"ctime", b"%d" % int(time.time()), b"aof-base", b"0"),
                *(b"repl-stream-db", b"%d" % self._stream_db()),
                *(b"repl-id", self.server.role.id),
                *(b"repl-offset", b"%d" % self.server.role.offset()),
            ],
        )
        self._rdb = encoder
        return encoder

    def _stream_db(self) -> int:
        """The database that the stream is in; a stream of our own begins by saying it."""
        following = self.server.role.following
        return following.stream_db() if following is not None and following.is_on else 0

    def install(self) -> None:
        """Keep it open, and let nobody else find it."""
        rdb = self._rdb
        assert rdb is not None
        path = self.file.path
        descriptor = os.open(path, os.O_RDWR)
        os.unlink(path)
        self.descriptor = descriptor
        os.pwrite(descriptor, rdb.head(), 0)

    def ended(self, failure: str) -> None:
        """See ``SnapshotJob``."""
        self._waiters.ended(self, failure)
