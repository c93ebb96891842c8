"""The snapshot with which a replica begins: an RDB file, made as any snapshot is, without a pause.

``SocketSyncJob`` sends it straight to the replicas that can take it so. ``FileSyncJob`` writes it
to a file that nobody finds in the folder afterwards, and it is sent from the disk. A slow replica
then costs no memory, except for the changes that come behind it.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Final

from mypy_extensions import trait

from headrace.persistence.files import TEMPORARY_PREFIX
from headrace.persistence.log import StreamPlace
from headrace.persistence.rdb.kinds import VALKEY_VERSION_MIN
from headrace.persistence.snapshot.rdb import RisingRdbEncoder, SteadyRdbEncoder
from headrace.persistence.taker import Encoder
from headrace.server.build import REDIS_VERSION
from headrace.server.clients.session import ReplicaFacts
from headrace.server.clock import Clock
from headrace.server.durability.files import Files
from headrace.server.durability.saving import rdb_notes
from headrace.server.durability.snapshot_job import SnapshotJob
from headrace.server.role import new_id
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
    def take(self, job: SocketSyncJob, piece: bytes) -> None:
        """Pass on what comes next of it."""
        raise NotImplementedError

    @abstractmethod
    def ended(self, job: SyncJob, failure: str) -> None:
        """It can be sent, or has been; or, with a reason, it cannot."""
        raise NotImplementedError


class SyncJob(SnapshotJob):
    """A snapshot for replicas.

    Args:
        facts: what the replicas have in common.

    Attributes:
        rdb: what makes it.
    """

    def __init__(
        self, server: Server, files: Files, waiters: SyncWaiters, facts: ReplicaFacts
    ) -> None:
        folder = os.path.abspath(server.config.dir)
        path = os.path.join(folder, TEMPORARY_PREFIX + b"%d.rdb" % os.getpid())
        super().__init__(server, files, path, "A snapshot for replicas")
        self.facts: Final = facts
        self.waiters: Final = waiters
        self.rdb: RisingRdbEncoder | None = None

    def is_for(self, facts: ReplicaFacts) -> bool:
        """Return whether it is what such a replica wants."""
        return facts.kind() == self.facts.kind()

    def form(self, version: int, notes: list[bytes]) -> RisingRdbEncoder:
        """Return what makes the bytes; see ``RisingRdbEncoder``."""
        raise NotImplementedError

    def keyspaces(self) -> list[Keyspace]:
        """All databases, unless the replica wants none of their keys."""
        return super().keyspaces() if self.facts.wants_keys else []

    def libraries(self) -> list[bytes]:
        """The functions, unless it wants none."""
        return super().libraries() if self.facts.wants_functions else []

    def encoder(self) -> Encoder:
        """Return what makes an RDB file of the present moment."""
        self.waiters.begun(self)
        first = [b"redis-ver", REDIS_VERSION.encode()]
        version = 0
        if self.facts.is_valkey:
            first = [b"valkey-ver", b"9.0.0"]
            version = VALKEY_VERSION_MIN
        role = self.server.role
        place = StreamPlace(role.id, role.offset(), role.stream_db())
        encoder = self.form(version, rdb_notes(first, place))
        self.rdb = encoder
        return encoder

    def ended(self, failure: str) -> None:
        self.waiters.ended(self, failure)


class FileSyncJob(SyncJob):
    """One that goes to the disk first.

    Attributes:
        descriptor: the finished file, which has no name any more.
    """

    def __init__(
        self, server: Server, files: Files, waiters: SyncWaiters, facts: ReplicaFacts
    ) -> None:
        super().__init__(server, files, waiters, facts)
        self.descriptor = -1

    def form(self, version: int, notes: list[bytes]) -> RisingRdbEncoder:
        """An RDB file of the lowest version that holds all there is."""
        return RisingRdbEncoder(version, notes)

    def install(self) -> None:
        """Keep it open, and let nobody else find it."""
        rdb = self.rdb
        assert rdb is not None
        path = self.file.path
        descriptor = os.open(path, os.O_RDWR)
        os.unlink(path)
        self.descriptor = descriptor
        os.pwrite(descriptor, rdb.head(), 0)


class SocketSyncJob(SyncJob):
    """One that goes to the replicas while it is being made.

    The version of its form is sent before all keys have been seen. Where a value needs a newer one,
    the job fails, and the next one can begin with that.

    Args:
        version: of Redis's form, to begin with; 0 is the lowest.

    Attributes:
        mark: the 40 bytes behind the end.
    """

    def __init__(
        self,
        server: Server,
        files: Files,
        waiters: SyncWaiters,
        facts: ReplicaFacts,
        version: int,
    ) -> None:
        super().__init__(server, files, waiters, facts)
        self.mark: Final = new_id()
        self._version: Final = version

    def is_for(self, facts: ReplicaFacts) -> bool:
        """See ``SyncJob``: it is also to know the end by its mark."""
        return facts.knows_end and super().is_for(facts)

    def form(self, version: int, notes: list[bytes]) -> RisingRdbEncoder:
        """An RDB file whose version does not change any more."""
        return SteadyRdbEncoder(version or self._version, notes)

    def hand_over(self, encoder: Encoder) -> None:
        """Pass on what has been made: to the replicas."""
        piece = b"".join(encoder.take())
        self.made(len(piece))
        self.waiters.take(self, piece)

    def taken(self) -> None:
        """The replicas have read most of what was passed on."""
        self.written(self.queued_bytes, "")

    def complete(self) -> None:
        """All has been passed on."""
        self.installed("")

    def discard(self) -> None:
        """There is no file."""
