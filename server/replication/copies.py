"""Full copies: the snapshots with which replicas begin, and which replicas share one.

A copy is an RDB file, or of a region a base, made as any snapshot is, without a pause.
``SocketSyncJob`` sends an RDB file straight to the replicas that can take it so. ``FileSyncJob``
writes a copy to a file that has no name in the folder afterwards, and it is sent from the disk. A
slow replica then costs no memory, except for the changes that come behind it.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from headrace.persistence.files import TEMPORARY_PREFIX
from headrace.persistence.log import StreamPlace
from headrace.persistence.rdb.kinds import VALKEY_VERSION_MIN
from headrace.persistence.snapshot.rdb import RisingRdbEncoder, SteadyRdbEncoder
from headrace.persistence.taker import Encoder
from headrace.protocol.replies import Status, encode
from headrace.server.build import REDIS_VERSION
from headrace.server.clients.session import ReplicaFacts, Session
from headrace.server.durability.files import Files
from headrace.server.durability.saving import rdb_notes, snapshot_encoder
from headrace.server.durability.snapshot_job import SnapshotJob
from headrace.server.gate import HALF_JOINED, LENGTHY_AT_WORK, LOADING_DATA, SCRIPT_AT_WORK
from headrace.server.replication.replica import STREAMING, WAITS, WRITING, Replica, SyncFile
from headrace.server.replication.stream import CommandStream
from headrace.server.role import new_id
from headrace.server.state import Server
from headrace.storage.keyspace import Keyspace


class SyncJob(SnapshotJob):
    """A snapshot for replicas with common ``facts``; ``rdb``: its encoder."""

    def __init__(self, server: Server, files: Files, waiters: Copies, facts: ReplicaFacts) -> None:
        folder = os.path.abspath(server.config.dir)
        path = os.path.join(folder, TEMPORARY_PREFIX + b"%d.rdb" % os.getpid())
        super().__init__(server, files, path, "A snapshot for replicas")
        self.facts: Final = facts
        self.waiters: Final = waiters
        self.rdb: RisingRdbEncoder | None = None

    def is_for(self, facts: ReplicaFacts) -> bool:
        """Return whether such a replica can take it."""
        return facts.kind() == self.facts.kind()

    def form(self, version: int, notes: list[bytes]) -> RisingRdbEncoder:
        """Return the encoder; see ``RisingRdbEncoder``."""
        raise NotImplementedError

    def keyspaces(self) -> list[Keyspace]:
        """Return all databases; none if the replica wants no keys."""
        return super().keyspaces() if self.facts.wants_keys else []

    def libraries(self) -> list[bytes]:
        return super().libraries() if self.facts.wants_functions else []

    def encoder(self) -> Encoder:
        """Return an encoder of the present moment: of an RDB file, or of a region's base."""
        self.waiters.begun(self)
        if self.server.data.region is not None:
            return snapshot_encoder(self.server, True)
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
    """One that goes to the disk first; ``descriptor``: the finished file, without a name."""

    def __init__(self, server: Server, files: Files, waiters: Copies, facts: ReplicaFacts) -> None:
        super().__init__(server, files, waiters, facts)
        self.descriptor = -1

    def form(self, version: int, notes: list[bytes]) -> RisingRdbEncoder:
        """Return an encoder of the lowest version that holds all there is."""
        return RisingRdbEncoder(version, notes)

    def install(self) -> None:
        """Keep the file open, and remove its name."""
        path = self.file.path
        descriptor = os.open(path, os.O_RDWR)
        os.unlink(path)
        self.descriptor = descriptor
        if self.rdb is not None:
            os.pwrite(descriptor, self.rdb.head(), 0)


class SocketSyncJob(SyncJob):
    """One that goes to the replicas while it is being made; ``mark``: the 40 bytes behind the end.

    The version of its form is sent before all keys have been seen. Where a value needs a newer one,
    the job fails, and the next one can begin with that ``version``; 0 is the lowest.
    """

    def __init__(
        self, server: Server, files: Files, waiters: Copies, facts: ReplicaFacts, version: int
    ) -> None:
        super().__init__(server, files, waiters, facts)
        self.mark: Final = new_id()
        self._version: Final = version

    def is_for(self, facts: ReplicaFacts) -> bool:
        return facts.knows_end and super().is_for(facts)

    def form(self, version: int, notes: list[bytes]) -> RisingRdbEncoder:
        """Return an encoder whose version does not change any more."""
        return SteadyRdbEncoder(version or self._version, notes)

    def hand_over(self, encoder: Encoder) -> None:
        piece = b"".join(encoder.take())
        self.made(len(piece))
        self.waiters.take(self, piece)

    def taken(self) -> None:
        """Note that the replicas have read most of what was passed on."""
        self.written(self.queued_bytes, "")

    def complete(self) -> None:
        self.installed("")

    def discard(self) -> None:
        """Do nothing, because there is no file."""


log: Final = logging.getLogger("headrace")

_OF_NO_MOMENT: Final = LENGTHY_AT_WORK | HALF_JOINED | LOADING_DATA | SCRIPT_AT_WORK


class Copies:
    """The full copies of one server; ``stream`` follows a copy."""

    def __init__(
        self, server: Server, files: Files, replicas: dict[Session, Replica], stream: CommandStream
    ) -> None:
        self._server: Final = server
        self._files: Final = files
        self._replicas: Final = replicas
        self._stream: Final = stream
        self._joined_at = 0  # the offset of the moment whose state is being written
        self._version = 0  # of the form that the next copy begins with; 0 is the lowest

    def joined(self, replica: Replica) -> bool:
        """Join a snapshot that is being written for another replica; False if none will do."""
        job = self._files.job
        if not isinstance(job, FileSyncJob) or not job.is_for(replica.facts):
            return False
        for other in self._those(job):
            replica.join(other, self._greeting(replica, self._joined_at))
            return True
        return False

    def _greeting(self, replica: Replica, offset: int) -> bytes:
        if not replica.acknowledges:
            return b""
        return encode(Status(b"FULLRESYNC %b %d" % (self._server.role.id, offset)))

    def begin_if_wanted(self) -> None:
        """Begin a snapshot, if one is wanted and can be written now."""
        server = self._server
        files = self._files
        if files.job is not None or server.gate.reasons & _OF_NO_MOMENT or server.stopping:
            return  # the cron looks again
        to_sockets = server.config.repl_diskless_sync and server.data.region is None
        for replica in self._replicas.values():
            if replica.state == WAITS:
                facts = replica.facts
                if not to_sockets or not facts.knows_end:
                    self._begin(FileSyncJob(server, files, self, facts), "to the disk")
                    return
                if self._are_enough(facts):
                    version, self._version = self._version, 0
                    job = SocketSyncJob(server, files, self, facts, version)
                    self._begin(job, "to replicas sockets")
                    return

    def _begin(self, job: SyncJob, target: str) -> None:
        log.info("Starting a snapshot for replicas: %s", target)
        self._files.job = job
        job.begin()

    def _are_enough(self, facts: ReplicaFacts) -> bool:
        """Return whether to send a snapshot now, without a wait for replicas to share it."""
        config = self._server.config
        kind = facts.kind()
        now_ms = self._server.clock.monotonic_ms()
        waiting = [
            now_ms - replica.since_ms
            for replica in self._replicas.values()
            if replica.state == WAITS and replica.facts.kind() == kind
        ]
        most = config.repl_diskless_sync_max_replicas
        longest_ms = max(waiting, default=0)
        return longest_ms >= config.repl_diskless_sync_delay * 1000 or 0 < most <= len(waiting)

    def begun(self, job: SyncJob) -> None:
        """Note that a snapshot holds the state of this moment."""
        self._stream.flush()
        self._stream.select_again()
        self._joined_at = self._stream.offset
        for replica in self._replicas.values():
            if replica.state == WAITS and job.is_for(replica.facts):
                greeting = self._greeting(replica, self._joined_at)
                if isinstance(job, SocketSyncJob):
                    replica.begin_stream(greeting, job.mark)
                else:
                    replica.begin(greeting)

    def _those(self, job: SyncJob) -> list[Replica]:
        state = STREAMING if isinstance(job, SocketSyncJob) else WRITING
        return [
            replica
            for replica in self._replicas.values()
            if replica.state == state and job.is_for(replica.facts)
        ]

    def take(self, job: SocketSyncJob, piece: bytes) -> None:
        """Pass on the next piece of a snapshot."""
        for replica in self._those(job):
            replica.take(piece, self._has_read)

    def _has_read(self, replica: Replica) -> None:
        replica.has_read(self._server.clock.monotonic_ms())
        self.look_on()

    def look_on(self) -> None:
        """Go on with a snapshot that waited for its slowest reader, or end one that has none."""
        job = self._files.job
        if isinstance(job, SyncJob):
            those = self._those(job)
            if not those:
                job.cancel()
            elif isinstance(job, SocketSyncJob) and not [each for each in those if each.is_behind]:
                job.taken()

    def ended(self, job: SyncJob, failure: str) -> None:
        """Note that a snapshot can be sent, or has been; or, with a reason, that it cannot."""
        those = self._those(job)
        if isinstance(job, SocketSyncJob) and job.rdb is not None:
            self._version = job.rdb.needed
        if failure:
            log.warning("The snapshot for replicas failed: %s", failure)
            for replica in those:
                replica.session.peer.abort()
            return
        if isinstance(job, FileSyncJob):
            file = SyncFile(job.descriptor, job.size_bytes, self._server.clock)
            for replica in those:
                replica.send(file)
            file.close_if_unread()
        elif isinstance(job, SocketSyncJob):
            for replica in those:
                replica.end_stream(job.mark, self._server.clock.monotonic_ms())
        self.begin_if_wanted()
