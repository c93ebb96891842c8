"""Full copies: which snapshot is made for whom, and who shares one."""

from __future__ import annotations

import logging
from typing import Final

from headrace.protocol.replies import Status, encode
from headrace.server.clients.session import ReplicaFacts, Session
from headrace.server.durability.files import Files
from headrace.server.gate import HALF_JOINED, LENGTHY_AT_WORK, LOADING_DATA, SCRIPT_AT_WORK
from headrace.server.replication.replica import STREAMING, WAITS, WRITING, Replica
from headrace.server.replication.snapshot import (
    FileSyncJob,
    SocketSyncJob,
    SyncFile,
    SyncJob,
    SyncWaiters,
)
from headrace.server.replication.stream import CommandStream
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

_OF_NO_MOMENT: Final = LENGTHY_AT_WORK | HALF_JOINED | LOADING_DATA | SCRIPT_AT_WORK


class Copies(SyncWaiters):
    """The full copies of one server.

    Args:
        replicas: all that there are.
        stream: what follows a copy.
    """

    def __init__(
        self,
        server: Server,
        files: Files,
        replicas: dict[Session, Replica],
        stream: CommandStream,
    ) -> None:
        self._server: Final = server
        self._files: Final = files
        self._replicas: Final = replicas
        self._stream: Final = stream
        self._joined_at = 0  # the offset of the moment whose state is being written
        self._version = 0  # of the form that the next copy begins with; 0 is the lowest

    def joined(self, replica: Replica) -> bool:
        """Return whether a snapshot that is being written for another replica will do."""
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
        """Begin with a snapshot, if one is wanted and can be written now."""
        server = self._server
        files = self._files
        if files.job is not None or server.gate.reasons & _OF_NO_MOMENT or server.stopping:
            return  # the cron looks again
        to_sockets = server.config.repl_diskless_sync
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
        """Whether a snapshot is sent now to replicas of a kind, or others may come to share it."""
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
        """The replicas for which a snapshot is being made."""
        state = STREAMING if isinstance(job, SocketSyncJob) else WRITING
        return [
            replica
            for replica in self._replicas.values()
            if replica.state == state and job.is_for(replica.facts)
        ]

    def take(self, job: SocketSyncJob, piece: bytes) -> None:
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
