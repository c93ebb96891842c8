"""All replicas of a server: how they begin, what they are sent, and the clients that wait for them.

A replica that was away for a short while goes on where it stood, if the backlog has what it lacks.
Any other is sent a snapshot of one moment, and then the stream from that moment on. Those that come
while a snapshot is being written for another one of their kind share it.

The stream is made from the first replica on. When there has been none for ``repl-backlog-ttl``
seconds it ends, and the data gets another ID.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from headrace.compat.errors import NO_MASTER_LINK, CommandError, not_of_region
from headrace.persistence.log import StreamPlace
from headrace.protocol.replies import Status, encode
from headrace.server.changes.changes import Changes
from headrace.server.clients.session import REPLICA, ReplicaFacts, Session
from headrace.server.durability.durability import Durability
from headrace.server.replication.copies import Copies
from headrace.server.replication.replica import COPIED, ONLINE, STATES, WAITS, WRITING, Replica
from headrace.server.replication.stream import Backlog, CommandStream
from headrace.server.role import (
    HANDS_OVER,
    NO_FAILOVER,
    NO_ID,
    NO_OFFSET,
    Replicas,
    Role,
    new_id,
)
from headrace.server.state import Server
from headrace.server.waiting import Parked, Sleeper


class _Wait:
    """One client that waits until ``wanted`` replicas have the stream up to ``offset``.

    ``local`` is 1 if it waits for this server's disk, too, below 0 for WAIT; ``synced``: the disk
    has it.
    """

    def __init__(
        self, session: Session, parked: Parked, wanted: int, local: int, offset: int, synced: int
    ) -> None:
        self.session: Final = session
        self.parked: Final = parked
        self.wanted: Final = wanted
        self.local: Final = local
        self.offset: Final = offset
        self.synced = synced


class ReplicaWaits:
    """The clients that wait for replicas."""

    def __init__(self, server: Server, replicas: Replicas) -> None:
        self._server: Final = server
        self._replicas: Final = replicas
        self._waits: list[_Wait] = []

    def add(self, client: Sleeper, parked: Parked, wanted: int, local: int, offset: int) -> None:
        """Answer a client when so many replicas, and the disk if asked for, have its writes."""
        assert isinstance(client, Session)
        first = parked.timeout_reply
        synced = first[0] if isinstance(first, list) else 0
        self._waits.append(_Wait(client, parked, wanted, local, offset, synced))

    def synced(self, client: Sleeper) -> None:
        """Note that a client has its writes on this server's disk."""
        for wait in self._waits:
            if wait.session is client and client.waits_for(wait.parked):
                wait.synced = 1
        self.look()

    def look(self) -> None:
        """Answer the clients whose wait is over, and note what the others get at the end."""
        still: list[_Wait] = []
        for wait in self._waits:
            if not wait.session.waits_for(wait.parked):
                continue
            count = self._replicas.acknowledged(wait.offset, wait.local >= 0)
            reply: object = count if wait.local < 0 else [wait.synced, count]
            if count >= wait.wanted and wait.synced >= wait.local:
                self._server.end_wait(wait.session, reply)
            else:
                wait.parked.timeout_reply = reply
                still.append(wait)
        self._waits = still


log: Final = logging.getLogger("headrace")

_SIGN_OF_LIFE: Final = b"\n"  # to those that wait for their snapshot
GET_ACK: Final = [b"REPLCONF", b"GETACK", b"*"]


class AllReplicas(Replicas):
    """The replicas of one server."""

    def __init__(self, server: Server, durability: Durability) -> None:
        self._server: Final = server
        self._role: Final[Role] = server.role
        self._changes: Final[Changes] = server.changes
        self._replicas: Final[dict[Session, Replica]] = {}
        self._backlog: Backlog | None = None
        self._records = False  # the stream takes records
        self._is_own = False  # it has taken some since it was that of a master
        self._acked = 0  # the most of it that a replica has acknowledged
        neighbours = server.neighbours
        stream = None if neighbours is None else neighbours.stream(self._feed)
        self.stream: Final = (
            stream if isinstance(stream, CommandStream) else CommandStream(self._feed)
        )
        self._copies: Final = Copies(server, durability.files, self._replicas, self.stream)
        self._waits: Final = ReplicaWaits(server, self)
        self._asks_acks = False
        self._pinged_ms = 0
        self._second_ms = 0  # when what is done once a second was done
        self._alone_since_ms = server.clock.monotonic_ms()

    # All replicas

    def end_offset(self) -> int:
        return self.stream.end

    def count(self) -> int:
        return len(self._replicas)

    def good(self) -> int:
        now_ms = self._server.clock.monotonic_ms()
        most_s = self._server.config.min_replicas_max_lag
        online = [replica for replica in self._replicas.values() if replica.state == ONLINE]
        return len([replica for replica in online if replica.lag_s(now_ms) <= most_s])

    def all(self) -> list[Replica]:
        """Return each of them, in order of arrival."""
        return list(self._replicas.values())

    def at(self, host: bytes, port: int) -> Replica | None:
        """Return the one that listens there."""
        for replica in self._replicas.values():
            if replica.facts.port == port and replica.address().lower() == host.lower():
                return replica
        return None

    def has_all(self, replica: Replica) -> bool:
        """Return whether it has acknowledged the stream up to its end."""
        return replica.state == ONLINE and replica.acked == self.stream.end

    def info(self) -> list[bytes]:
        now_ms = self._server.clock.monotonic_ms()
        lines: list[bytes] = []
        for number, replica in enumerate(self._replicas.values()):
            lag_s = replica.lag_s(now_ms) if replica.state == ONLINE else 0
            lines.append(
                b"slave%d:ip=%b,port=%d,state=%b,offset=%d,lag=%d,io-thread=0"
                % (
                    *(number, replica.address(), replica.facts.port),
                    *(STATES[replica.state], replica.acked, lag_s),
                )
            )
        return lines

    def rows(self) -> list[object]:
        return [
            [replica.address(), b"%d" % replica.facts.port, b"%d" % replica.acked]
            for replica in self._replicas.values()
            if replica.state == ONLINE
        ]

    def backlog(self) -> tuple[int, int] | None:
        self.stream.flush()
        backlog = self._backlog
        return None if backlog is None else (backlog.first, backlog.size)

    def backlog_bytes(self) -> int:
        return 0 if self._backlog is None else self._backlog.size

    def unread_bytes(self) -> int:
        waiting = [
            int(session.waiting_bytes) + session.peer.pending_output_bytes()
            for session in self._replicas
        ]
        return max(waiting, default=0)

    # The stream

    def feed(self, db: int, record: list[bytes]) -> None:
        if self._records:
            self._changes.unfinished = True
            self.stream.append(db, record)

    def flush(self) -> None:
        self.stream.flush()

    def _feed(self, piece: bytes) -> None:
        backlog = self._backlog
        if backlog is not None:
            backlog.add(piece, self._server.config.repl_backlog_size)
        for replica in list(self._replicas.values()):
            replica.feed(piece)

    def _begin_stream(self) -> None:
        """Record from now on; the data gets a new ID, as the stream lacks its past."""
        if self._backlog is None:
            self._role.change_id()
            self._backlog = Backlog(self.stream.offset + 1)
            self._record(True)
            self._pinged_ms = self._server.clock.monotonic_ms()
            data_id = self._role.id.decode()
            log.info("Replication backlog created, my new replication ID is %s", data_id)

    def begin_anew(self) -> None:
        self._record(False)
        self._backlog = None
        self._role.change_id()
        self.disconnect_all()

    def _record(self, on: bool) -> None:
        if on != self._records:
            self._records = on
            self._is_own |= on
            self.stream.flush()
            if on:
                self.stream.select_again()
                self._changes.add_log(self.stream)
            else:
                self._changes.remove_log(self.stream)

    # The stream of a master

    def stop_recording(self) -> bool:
        """Stop recording; return whether the stream holds every change of the data."""
        self._record(False)
        return self._backlog is not None

    def relay(self, wire: bytes) -> None:
        """Add the next bytes of the stream, as the master has sent them."""
        self.stream.add(wire)

    def go_on(self, data_id: bytes) -> None:
        """Give the data this ID from here on."""
        self._is_own = False
        if data_id != self._role.id:
            self._role.renamed(data_id, self.stream.offset + 1)
            self.disconnect_all()  # they ask again, and get the new ID

    def stop_relaying(self) -> None:
        """Disconnect the replicas, because all data is about to be replaced."""
        if self._is_own:
            log.warning(
                "What was written here as a master, and the new one lacks, is dropped: the stream "
                "ended at offset %d, of which replicas had acknowledged %d",
                *(self.stream.offset, self._acked),
            )
        self._backlog = None
        self.disconnect_all()

    def begin_at(self, data_id: bytes, offset: int) -> None:
        """Set the ID of the data and its offset."""
        self._role.become(data_id)
        self._is_own = False
        self.stream.offset = offset
        self._backlog = Backlog(offset + 1)

    def place(self) -> StreamPlace | None:
        if self._backlog is None:
            return None
        self.stream.flush()
        return StreamPlace(self._role.id, self.stream.offset, self._role.stream_db())

    def resume(self, place: StreamPlace, follows: bool) -> None:
        self.begin_at(place.data_id, place.offset)
        if not follows:
            self._role.renamed(new_id(), place.offset + 1)
            self._record(True)

    def lead(self, knows_stream: bool) -> None:
        """Record again, under an ID of our own. ``knows_stream``: the stream holds every change."""
        if knows_stream and self._backlog is not None:
            self._role.renamed(new_id(), self.stream.offset + 1)
            self._record(True)
        else:
            self._backlog = None
            self._role.change_id()
        self._alone_since_ms = self._server.clock.monotonic_ms()
        self.disconnect_all()

    def _ttl_s(self) -> int:
        return self._server.config.repl_backlog_ttl

    # Beginning

    def attach(self, session: Session, data_id: bytes, offset: int) -> None:
        """Handle a client's request to be a replica.

        Args:
            data_id: of the data that it has; empty for one that came with SYNC.
            offset: of the byte of the stream that it lacks.

        Raises:
            CommandError: it is no standby of the region that this server is, or this one is none,
            or has no data to give.
        """
        own = self._server.config.region_text()
        theirs = b"" if session.facts is None else session.facts.region
        if theirs != own:
            raise CommandError(not_of_region(own, theirs))
        following = self._role.following
        if following is not None and following.is_on and not following.link_is_up():
            raise CommandError(NO_MASTER_LINK)
        facts = session.facts or ReplicaFacts()
        session.facts = facts
        now_ms = self._server.clock.monotonic_ms()
        counters = self._server.statistics.counters
        replica = Replica(session, facts, counters, bool(data_id), self.settings_changed, now_ms)
        self.stream.flush()
        pieces = self._lacking(data_id, offset)
        session.special |= REPLICA
        session.leaving = self._gone
        if pieces is None:
            self._begin_stream()
        self._replicas[session] = replica
        name = replica.name()
        if pieces is not None:
            counters.partial_syncs += 1
            log.info("Replica %s goes on from offset %d", name, offset)
            status = b"CONTINUE %b" % self._role.id if facts.psync2 else b"CONTINUE"
            session.deliver_wire(encode(Status(status)))
            replica.go_online(pieces, now_ms)
            return
        counters.full_syncs += 1
        if data_id not in (b"", b"?"):
            counters.refused_partial_syncs += 1
        log.info("Replica %s asks for synchronization", name)
        apart = offset - self._role.second_offset
        if data_id == self._role.second_id and apart > 0:
            log.warning("It has gone on alone for %d bytes, which it has to drop", apart)
        if not self._copies.joined(replica):
            asyncio.get_running_loop().call_soon(self._copies.begin_if_wanted)

    def _lacking(self, data_id: bytes, offset: int) -> list[bytes] | None:
        role = self._role
        backlog = self._backlog
        if backlog is None or not backlog.holds(offset):
            return None
        is_known = data_id == role.id or (
            data_id == role.second_id != NO_ID and NO_OFFSET < offset <= role.second_offset
        )
        return backlog.since(offset) if is_known else None

    def _gone(self, session: Session) -> None:
        replica = self._replicas.pop(session, None)
        if replica is None:
            return
        replica.close_copy()
        log.info("Replica %s has left", replica.name())
        self._copies.look_on()
        if not self._replicas:
            self._alone_since_ms = self._server.clock.monotonic_ms()
        self.settings_changed()

    def disconnect_all(self) -> None:
        """Disconnect all, because the stream is another one: they begin anew."""
        for session in list(self._replicas):
            session.peer.abort()
            self._server.session_closed(session)

    # Reports of replicas

    def acknowledge(self, session: Session, offset: int, on_disk: int) -> None:
        replica = self._replicas.get(session)
        if replica is not None:
            was_late = replica.lag_s(self._server.clock.monotonic_ms()) > 1
            replica.acknowledge(offset, on_disk, self._server.clock.monotonic_ms())
            self._acked = max(self._acked, offset)
            if replica.state == COPIED:
                replica.go_on(self._server.clock.monotonic_ms())
            if was_late:
                self.settings_changed()
            self._waits.look()
            if self._role.failover == HANDS_OVER:
                self._role.ready_failover().tick(self._server.clock.monotonic_ms())

    def acknowledged(self, offset: int, on_disk: bool) -> int:
        count = 0
        for replica in self._replicas.values():
            reached = replica.on_disk if on_disk else replica.acked
            count += replica.state == ONLINE and reached >= offset
        return count

    def lagging(self, offset: int) -> int:
        those = [each for each in self._replicas.values() if each.acknowledges]
        return len([each for each in those if each.acked < offset])

    def wait_for(
        self, client: Sleeper, parked: Parked, wanted: int, local: int, offset: int
    ) -> None:
        self._waits.add(client, parked, wanted, local, offset)
        if wanted and not self._asks_acks:
            self._asks_acks = True
            asyncio.get_running_loop().call_soon(self.ask_for_acks)

    def synced(self, client: Sleeper) -> None:
        self._waits.synced(client)

    def ask_for_acks(self) -> None:
        self._asks_acks = False
        if self._replicas and not self._role.follows and self._role.failover == NO_FAILOVER:
            self.stream.say(GET_ACK)

    # Periodic work

    def tick(self, now_ms: int) -> None:
        self._copies.begin_if_wanted()
        if self._role.failover_job is not None:
            self._role.failover_job.tick(now_ms)
        if now_ms - self._second_ms < 1000:
            return
        self._second_ms = now_ms
        self._look_at_all(now_ms)
        self.settings_changed()
        if self._role.follows or self._role.failover != NO_FAILOVER:
            return  # the stream is the master's, or about to be
        if not self._replicas:
            ttl_s = self._ttl_s()
            if self._backlog is not None and ttl_s and now_ms - self._alone_since_ms > ttl_s * 1000:
                self.begin_anew()
                log.info("Replication backlog freed after %d seconds without replicas", ttl_s)
        elif now_ms - self._pinged_ms >= self._server.config.repl_ping_replica_period * 1000:
            self._pinged_ms = now_ms
            self.ping()

    def ping(self) -> None:
        """Show all replicas that the link works."""
        self.stream.say([b"PING"])

    def _look_at_all(self, now_ms: int) -> None:
        longest_ms = self._server.config.repl_timeout * 1000
        for session, replica in list(self._replicas.items()):
            if replica.state in (WAITS, WRITING):
                session.deliver_wire(_SIGN_OF_LIFE)
                continue
            replica.note_life(now_ms)
            if replica.acknowledges and now_ms - replica.heard_ms() > longest_ms:
                log.warning("Disconnecting timedout replica: %s", replica.name())
                session.peer.abort()
                self._server.session_closed(session)

    def settings_changed(self) -> str | None:
        backlog = self._backlog
        if backlog is not None:
            backlog.trim(self._server.config.repl_backlog_size)
        self._server.limit_writes()
        return None
