"""The whole state of a server as a region among others: its peers, and records that come and go.

There is one of these for each server that is a region. It has no socket of its own: a ``Connector``
makes the connections, calls ``tick`` some times a second, and ``apply`` where it was asked to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.persistence.errors import PersistenceError
from headrace.persistence.log import Log
from headrace.protocol.replies import OK
from headrace.regions.exchange.consistency import ConsistencyChecks
from headrace.regions.exchange.copy_source import CopySource
from headrace.regions.exchange.effects import (
    may_write,
    publish_all,
    refuse_writes,
    region_of,
    replication,
)
from headrace.regions.exchange.epochs import (
    HELLO_BYTES,
    CatchUp,
    OtherLives,
    Probe,
    Survey,
    begin_empty,
    new_nonce,
    note_caught,
    safe_generation,
)
from headrace.regions.exchange.full_copy import PIECE_MAX_BYTES, CopyClient, CopyFile, FullCopy
from headrace.regions.exchange.heartbeats import (
    Stability,
    SyncedNumbers,
    beat_now,
    keep_met,
    look_at_promises,
    note_promise,
)
from headrace.regions.exchange.intake import Intake
from headrace.regions.exchange.peer_connection import PeerClient, PeerConnection
from headrace.regions.exchange.peer_sessions import PeerSessions
from headrace.regions.exchange.peers import Connector, Peer, pulling, warn_refused
from headrace.regions.exchange.pull import Puller
from headrace.regions.exchange.retention import JournalRecords, LogManager
from headrace.regions.exchange.standby import RegionInput, RegionStream
from headrace.regions.exchange.sync import Sync, Wait
from headrace.regions.knowledge.region import Region
from headrace.server.clients.session import Session
from headrace.server.config.kinds import PeerAddress
from headrace.server.data import HELD_BY_LAG
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import finish_own
from headrace.server.dispatch.serving import serve_ready
from headrace.server.gate import (
    LENGTHY_AT_WORK,
    LOADING_DATA,
    MEMORY_LIMITED,
    PAUSED_ALL,
    PAUSED_WRITES,
    WRITES_REFUSED,
)
from headrace.server.state import Neighbours, Server, StandbyInput
from headrace.server.waiting import Parked
from headrace.storage.vectors import Numbers

log: Final = logging.getLogger("headrace")

SLICE_NS: Final = 1_000_000  # of applying, while clients are at work
IDLE_SLICE_NS: Final = 3_000_000
AT_WORK_MS: Final = 100  # since a client has sent something
MEMBERS_MS: Final = 1000  # before a peer is asked once more who takes part
TICK_MS: Final = 100  # how often ``tick`` is to be called, about
LAG_TOLD_EVERY_MS: Final = 3_600_000
MEMORY_RESERVE: Final = 20  # the part of maxmemory that records of others may take beyond it
HELD_BY: Final = (
    (LOADING_DATA, "data is being loaded"),
    (WRITES_REFUSED, "the append-only file cannot be written"),
    (PAUSED_ALL | PAUSED_WRITES, "writes are paused (CLIENT PAUSE)"),
    (LENGTHY_AT_WORK, "a long request is being run"),
)


class Regions(Neighbours):
    """A region among others.

    Attributes:
        peers: the other regions, by number.
        checks: whether regions that know the same have the same.
        peer_sessions: those that pull from here; copy_source: the full copies that they take.
        log_manager: keeps the log that they are sent from.
        full_copy: the full copy that is taken from one of the others.
        intake: records that have come and wait to be applied.
        resting: why nothing is applied now; mostly empty.
        is_introduced: this region has read its identity from its files; until then it answers none
            of the others.
        catch_up: the records to learn before it takes writes; None where it takes them.
    """

    def __init__(self, dispatcher: Dispatcher, connector: Connector) -> None:
        server = dispatcher.server
        self.log_manager: Final = LogManager(server.config, dispatcher.durability)
        kept = self.log_manager.open(region_of(server))
        self.region: Final[Region] = region_of(server)
        self.peers: Final[dict[int, Peer]] = {}
        self.checks: Final = ConsistencyChecks(server)
        self.peer_sessions: Final = PeerSessions(
            server, self.region, JournalRecords(kept), self.checks
        )
        kept.backlog.on_more = self.peer_sessions.grown
        self.copy_source: Final = CopySource(
            server, dispatcher.durability, self.peer_sessions.worker
        )
        self.full_copy: Final = FullCopy(
            server,
            dispatcher.durability,
            self.peer_sessions.worker,
            self._copy_from,
            self._apply_soon,
            self._begin_anew,
        )
        self.intake: Final = Intake(dispatcher)
        self.resting = ""
        self.is_introduced = False
        self.catch_up: CatchUp | None = None
        self._survey: Survey | None = None  # at the start
        self._server: Final[Server] = server
        self._dispatcher: Final = dispatcher
        self._stability: Final = Stability(server)
        self._connector: Final = connector
        self._synced: Final = SyncedNumbers(self.region, server.config, dispatcher.durability)
        self.peer_sessions.on_call = self._called
        self._is_open = False
        self._applying = False
        self._seen_bytes = 0  # of input, at the last slice
        self._seen_ms = 0  # when there was more of it for the last time
        self._syncs: list[Sync] = []
        self._waits: list[Wait] = []
        self._lag_told_ms: dict[int, int] = {}
        self._lives: Final = OtherLives(server, self.log_manager)
        self._input: Final = RegionInput(server, dispatcher.durability, self.log_manager)
        self._stream: RegionStream | None = None
        self._takes_over = False  # its next life begins as soon as the files allow it
        self._is_unseen = False  # and then the others are to see that
        self.region.process = server.run_id
        server.neighbours = self
        server.config.on_change["aa-peers"] = self.configure

    # Life

    def configure(self) -> str | None:
        """Take the peers that the configuration names."""
        now_ms = self._server.clock.monotonic_ms()
        wanted: dict[int, list[PeerAddress]] = {}
        for address in self._server.config.aa_peers:
            wanted.setdefault(address.region, []).append(address)
        for number in [number for number in self.peers if number not in wanted]:
            self.peers.pop(number).leave()
        for number, addresses in wanted.items():
            peer = self.peers.get(number)
            if peer is None:
                self.peers[number] = Peer(number, addresses, now_ms)
            elif peer.addresses != addresses:
                is_there = peer.address in addresses
                peer.addresses = addresses
                if not is_there:
                    peer.address = addresses[0]
                    peer.leave()
                    peer.try_now()
        self.region.peers = set(wanted)
        return None

    def stop(self) -> None:
        """Take no writes, and answer none of the others: another server is this region."""
        self._lives.stop("Another server is this region now")

    def open(self) -> None:
        """Begin to pull: all files have been loaded, and the identity of this region is known."""
        self._survey = None
        self._is_open = self.is_introduced = not self._lives.is_stopped
        if not self._is_open:
            return
        self.region.count_from_here()
        self._lives.begun()
        self.full_copy.find_old()
        self.tick()

    def ask(self) -> Survey:
        """Ask all others what they know, and pull nothing: the region's identity comes next."""
        self.configure()
        self.is_introduced = True
        members = self.region.members()
        calling = [n for n in members if n != self.region.id and n not in self.peers]
        asked = [number for number in self.peers if not self.region.is_forgotten(number)]
        self._survey = Survey(asked, calling, self._ask)
        return self._survey

    def _ask(self, number: int) -> PeerConnection:
        peer = self.peers[number]
        probe = Probe(self.region, number, self._server.config.aa_secret)
        return self._connect(peer, probe, HELLO_BYTES)

    def close(self) -> None:
        """Close all connections to others."""
        self._is_open = False
        for sync in self._syncs:
            sync.end()
        for peer in self.peers.values():
            peer.leave()
        self.full_copy.close()
        self.peer_sessions.close()

    # As a standby

    def stream(self, on_piece: Callable[[bytes], None]) -> Log:
        self._stream = RegionStream(on_piece, self.region)
        return self._stream

    def follow(self) -> StandbyInput:
        self._is_open = False
        self._takes_over = False
        self.is_introduced = False
        self.catch_up = None
        for sync in self._syncs:
            sync.end()
        for peer in self.peers.values():
            peer.leave()
        self.full_copy.stop()
        self.intake.drop_all()
        self.peer_sessions.leave()
        self._lives.forget()
        refuse_writes(self._server, b"")
        return self._input

    def lead(self, has_all: bool) -> None:
        region = self.region
        self._takes_over = True
        self._lives.take_over(has_all)
        self._synced.restart()
        region.forget_promises()
        self.configure()
        replication().loaded(self._server)
        self.tick()

    def emptied(self) -> None:
        """Forget all, and be a region that has lost its disk, until the copy is there."""
        server = self._server
        server.data.tombstones.clear()
        region = self.region
        region.begin_anew()
        start = begin_empty(server.clock.now_ns // 1_000_000)
        region.begin_epoch(start.epoch, start.generation, new_nonce(start.refusal, start.epoch))
        self._input.restart()

    def loaded(self) -> None:
        region = self.region
        backlog = self.log_manager.open(region).backlog
        for origin in [*region.known(), *backlog.origins()]:
            backlog.begin(origin, region.number_of(origin) + 1)

    def reconnect(self) -> None:
        """Introduce this region to all others anew, because it has begun another epoch."""
        for peer in self.peers.values():
            peer.leave()
            peer.try_now()

    def _begin_anew(self) -> None:
        """Forget what the others have sent, because the state here is another than it was."""
        self.reconnect()
        self.intake.drop_all()
        self._synced.restart()
        if self.catch_up is not None:
            self.catch_up.refusal = self.region.refusal

    def tick(self) -> None:
        """Do the work that is due by the clock."""
        now_ms = self._server.clock.monotonic_ms()
        self.peer_sessions.beat(now_ms)
        self.copy_source.forget_closed()
        self.log_manager.look(now_ms, self.peer_sessions.acknowledged)
        if self._takes_over:
            self._begin_later()
        if not self._is_open:
            return
        if not self._server.gate.reasons & LENGTHY_AT_WORK:
            if self.full_copy.join is None:
                self._synced.look(now_ms)
            self._stability.look(now_ms)
            self.keep_met()
            if self._is_unseen and may_write(self._server):
                self._is_unseen = False
                beat_now(self._server)  # by which nothing more is taken from an earlier life
            if self.region.unpublished:  # from before the start, or while no writes were taken
                self._server.host.publish_soon()
            finish_own(self._server)
            look_at_promises(self._dispatcher)
        for peer in self.peers.values():
            if peer.connection is not None:
                peer.connection.look(now_ms)
            self._leave_earlier_life(peer)
            if peer.is_due(now_ms):
                peer.connection = self._pull(peer, self._relayed)
            if peer.behind:
                self.full_copy.begin(peer, now_ms)
            self._look_at_members(peer, now_ms)
            self._tell_lag(peer, now_ms)
        self._hold_expiry()
        if self.region.is_forgotten(self.region.id):
            self._lives.left_out()
            self.catch_up = None
        self._begin_later()
        self.full_copy.tick(now_ms)
        self._look_at_syncs(now_ms)
        self.rest_or_go_on()
        if self.catch_up is not None:
            self._look_at_catch_up(self.catch_up)

    def _leave_earlier_life(self, peer: Peer) -> None:
        """Leave a server that is a region no more, because a later life of that was met."""
        connection = peer.connection
        hello = None if connection is None else connection.client.hello
        if connection is None or hello is None:
            return
        if hello.epoch < self.region.latest_met(peer.region):
            connection.end("another server is that region by now")
            peer.turn(connection)

    def keep_met(self) -> None:
        """Record whom this region has met since the last time, where anything may be recorded."""
        refusing = self._server.gate.reasons & (LOADING_DATA | WRITES_REFUSED)
        if not refusing and self.full_copy.join is None:
            keep_met(self._server)

    def _look_at_members(self, peer: Peer, now_ms: int) -> None:
        """Ask a peer once more for its members, where its last list differs from the one here."""
        probe = peer.probe
        if probe is not None:
            probe.look(now_ms)
            if probe.over or probe.is_up:
                peer.end_probe()
        elif self.members_differ(peer) and now_ms - peer.asked_ms >= MEMBERS_MS:
            peer.asked_ms = now_ms
            peer.probe = self._ask(peer.region)

    def members_differ(self, peer: Peer) -> bool:
        """Return whether a peer that answers has another list of members than this region."""
        hello = peer.hello
        if hello is None or not self._is_up(peer.region):
            return False
        return sorted(hello.members) != self.region.members()

    def _hold_expiry(self) -> None:
        """Remove no key for its deadline while records are coming that may have put it off."""
        most_ms = self._server.config.aa_join_lag_ms
        is_late = any(
            self._is_up(peer.region) and self.lag_ms(peer) > most_ms for peer in self.peers.values()
        )
        self._server.data.hold_expiry(HELD_BY_LAG, is_late)

    def _begin_later(self) -> None:
        if self.full_copy.join is not None or self._server.gate.reasons & LENGTHY_AT_WORK:
            return
        catch_up = self._lives.begin_later()
        if catch_up is None:
            return
        if self._stream is not None:
            self._stream.say_life()  # a standby that leads next has to begin a later one
        self.catch_up = catch_up if catch_up.refusal else None
        self.reconnect()
        if self._takes_over:
            self._takes_over = False
            self._is_unseen = True
            self.open()

    def _look_at_catch_up(self, catch_up: CatchUp) -> None:
        """Take writes again once all is here that the others know, or nearly."""
        if catch_up.lacking() or self.full_copy.join is not None:
            return
        most_ms = self._server.config.aa_join_lag_ms
        for peer in self.peers.values():
            if not self.region.is_forgotten(peer.region) and self.lag_ms(peer) > most_ms:
                return
        if not self._has_safe_generation():
            return
        self.catch_up = None
        refuse_writes(self._server, b"")
        note_caught(self._server)
        finish_own(self._server)
        log.info("All is here that the other regions know: writes are taken")

    def _has_safe_generation(self) -> bool:
        """Ensure that no earlier life has made the next IDs. Return False when that has to wait."""
        region = self.region
        generation = safe_generation(region)
        if generation <= region.generation:
            return True
        try:
            return self.log_manager.begin_epoch(region.epoch, generation, region.nonce)
        except (OSError, PersistenceError) as error:
            log.warning("Writes are refused still, for the files cannot be written: %s", error)
            return False

    def _called(self, member: int, numbers: Numbers) -> None:
        if self._survey is not None:
            self._survey.called(member, numbers)
        if self.catch_up is not None:
            self.catch_up.heard(member, numbers)
        if self._is_open and self.region.is_outdone(numbers):
            self._lives.outdone(member, numbers)
            if self._lives.is_stopped:
                self.catch_up = None

    # Connections

    def _connect(self, peer: Peer, client: PeerClient, most_bytes: int) -> PeerConnection:
        now_ms = self._server.clock.monotonic_ms()
        connection = PeerConnection(client, most_bytes, now_ms, self._moved)
        connection.address = peer.address
        self._connector.connect(peer.address, connection)
        return connection

    def _pull(self, peer: Peer, relayed: Callable[[], frozenset[int]]) -> PeerConnection:
        config = self._server.config
        most_bytes = max(config.aa_transaction_max_bytes, config.proto_max_bulk_len) + (1 << 20)
        puller = Puller(
            self.region,
            peer.region,
            config.aa_secret,
            self.intake,
            peer.statistics,
            relayed,
            most_bytes,
        )
        puller.resting = bool(self.resting)
        return self._connect(peer, puller, most_bytes)

    def _copy_from(self, peer: Peer, file: CopyFile) -> PeerConnection:
        secret = self._server.config.aa_secret
        client = CopyClient(self.region, peer.region, secret, file)
        return self._connect(peer, client, PIECE_MAX_BYTES)

    def _relayed(self) -> frozenset[int]:
        """Return the regions that do not answer, so that others are asked for their records."""
        now_ms = self._server.clock.monotonic_ms()
        after_ms = self._server.config.aa_relay_after_ms
        silent = [number for number, peer in self.peers.items() if peer.is_silent(now_ms, after_ms)]
        return frozenset([*silent, *[n for n in self.region.joined if n not in self.peers]])

    def _not_up(self) -> frozenset[int]:
        """Return the regions that nothing comes from in the background."""
        return frozenset([number for number in range(1, 16) if not self._is_up(number)])

    def _is_up(self, number: int) -> bool:
        peer = self.peers.get(number)
        return peer is not None and peer.state == b"up"

    def _moved(self, connection: PeerConnection) -> None:
        now_ms = self._server.clock.monotonic_ms()
        peer = self.peers.get(connection.client.peer_region)
        if peer is not None:
            peer.moved(connection, now_ms)
            if connection.over and connection.client.hello is None:
                peer.turn(connection)
        if self._is_open:
            self._lives.look_at(connection.client, now_ms)
            if self._lives.is_stopped:
                self.catch_up = None
        puller = pulling(connection)
        if puller is not None:
            self._note_level(puller)
            if peer is not None and puller.told_ms:
                ahead_ms = puller.told_ms - self._server.clock.read_ns() // 1_000_000
                peer.statistics.clock_ahead_ms = ahead_ms
                puller.told_ms = 0
            if self.catch_up is not None and puller.hello is not None:
                self.catch_up.heard(puller.peer_region, puller.hello.numbers)
        if not self.intake.is_empty:
            self._hold_expiry()
            self._apply_soon()
        if self._syncs:
            self._look_at_syncs(now_ms)

    def _note_level(self, puller: Puller) -> None:
        """Note a promise, and a fingerprint, once everything before it has been applied."""
        number = puller.peer_region
        if puller.is_level and puller.check is not None:
            check = puller.check
            puller.check = None
            self.checks.heard(number, puller.known, check)
        hello = puller.hello
        if hello is not None and puller.is_level:
            note_promise(self.region, number, hello.epoch, puller.known, puller.promise_ms)

    # Applying

    def rest_or_go_on(self) -> None:
        """Stop taking records from others while they could not be kept."""
        reason = self._obstacle()
        if reason != self.resting:
            self.resting = reason
            for puller in self._pullers():
                puller.rest(bool(reason))
            for connection in self._connections():
                connection.go_on()
        if not reason and not self.intake.is_empty:
            self._apply_soon()

    def _obstacle(self) -> str:
        if self.full_copy.join is not None:
            return "a copy is being joined"
        server = self._server
        reasons = server.gate.reasons
        if not reasons:
            return ""
        for bits, text in HELD_BY:
            if reasons & bits:
                return text
        if reasons & MEMORY_LIMITED:
            # Tombstones do not count, because records of the others free them.
            limit = server.config.maxmemory + server.account.tombstones_bytes()
            if server.account.used() > limit + server.config.maxmemory // MEMORY_RESERVE:
                return "the memory is above maxmemory"
        return ""

    def _apply_soon(self) -> None:
        if not self._applying and not self._server.stopping:
            self._applying = True
            self._connector.apply_soon()

    def apply(self) -> None:
        """Apply some of what waits, and go on soon where that was not all."""
        if self._server.stopping:
            return
        self._applying = True  # records that arrive meanwhile need not ask for it
        try:
            more = self._apply_some()
        finally:
            self._applying = False
        if more:
            self._apply_soon()

    def _apply_some(self) -> bool:
        server = self._server
        if self.full_copy.has_work:
            self.full_copy.step(SLICE_NS)
            finish_own(server)
            if server.blocking.ready:
                serve_ready(self._dispatcher)
            if self.full_copy.join is not None:
                return self.full_copy.has_work
        self.rest_or_go_on()
        if self.resting:
            return self.full_copy.has_work
        self.intake.step(self._slice_ns())
        for connection in self._connections():
            if connection.client.out or connection.client.failure:
                connection.go_on()
        for puller in self._pullers():
            self._note_level(puller)
        self._look_at_waits()
        self._look_at_syncs(server.clock.monotonic_ms())
        return self.full_copy.has_work or not self.intake.is_empty

    def _slice_ns(self) -> int:
        """Return how long clients may have to wait for a slice: less while they are at work."""
        now_ms = self._server.clock.monotonic_ms()
        seen_bytes = self._server.statistics.counters.net_input_bytes
        if seen_bytes != self._seen_bytes:
            self._seen_bytes = seen_bytes
            self._seen_ms = now_ms
        return SLICE_NS if now_ms - self._seen_ms < AT_WORK_MS else IDLE_SLICE_NS

    def _connections(self) -> list[PeerConnection]:
        found: list[PeerConnection] = []
        for peer in self.peers.values():
            if peer.connection is not None:
                found.append(peer.connection)
        for sync in self._syncs:
            found += sync.connections.values()
        return found

    def _pullers(self) -> list[Puller]:
        found = [pulling(connection) for connection in self._connections()]
        return [puller for puller in found if puller is not None]

    # Operators

    def pause(self, word: bytes, paused: bool) -> object:
        """Stop or resume pulling from a peer, or ``ALL``. Raises CommandError for no such peer."""
        self._refuse_at_rest()
        for peer in self._named(word):
            peer.paused = paused
            if paused:
                peer.leave()
            else:
                peer.try_now()
        self.tick()
        return OK

    def _refuse_at_rest(self) -> None:
        """Raise CommandError at a standby, and where another server is this region."""
        if self._server.role.follows or (self._lives.is_stopped and not self._is_open):
            raise CommandError(self.region.refusal or errors.READ_ONLY_REPLICA)

    def _named(self, word: bytes) -> list[Peer]:
        if word.upper() == b"ALL":
            return list(self.peers.values())
        peer = self.peers.get(int(word)) if word.isdigit() and len(word) < 3 else None
        if peer is None:
            raise CommandError(errors.AA_NO_SUCH_PEER)
        return [peer]

    def publish(self) -> None:
        """Publish at once what was acknowledged so far, because a reader wants all that is here."""
        if not self._server.changes.unfinished:
            publish_all(self._dispatcher)

    def sync(self, session: Session, argv: list[bytes], timeout_ms: int) -> object:
        """Pull all that each peer has now, and let the client wait for it."""
        self._refuse_at_rest()
        self.publish()
        now_ms = self._server.clock.monotonic_ms()
        sync = Sync(session, now_ms, now_ms + timeout_ms)
        for number, peer in self.peers.items():
            if self.region.is_forgotten(number):
                continue
            sync.connections[number] = self._pull(peer, self._not_up)
        if not sync.connections:
            return sync.reply(self.region, True)
        sync.parked = Parked([], 0, argv, [], None)
        self._syncs.append(sync)
        return sync.parked

    def _look_at_syncs(self, now_ms: int) -> None:
        """Answer the clients that have what they wait for, or have waited long enough."""
        for sync in list(self._syncs):
            if sync.parked is None or sync not in self._syncs:
                continue
            for connection in sync.connections.values():
                if not connection.over and sync in self._syncs:
                    connection.look(now_ms)
            self._look_at_level(sync)
            is_caught = self.catch_up is None and self.full_copy.join is None
            waits = sync.session.waits_for(sync.parked)
            is_due = now_ms >= sync.deadline_ms or sync.is_done(self.region, is_caught)
            if (waits and not is_due) or sync not in self._syncs:
                continue
            self._syncs.remove(sync)
            reply = sync.reply(self.region, is_caught)
            sync.end()
            if waits:
                self._server.end_wait(sync.session, reply)

    def _look_at_level(self, sync: Sync) -> None:
        """Note that a region was level when it was asked, even if its link is paused."""
        for number in sync.level(self.region):
            peer = self.peers.get(number)
            if peer is not None:
                peer.level_ms = max(peer.level_ms, sync.asked_ms)
        if self.catch_up is not None:
            self._look_at_catch_up(self.catch_up)

    def wait(
        self, session: Session, argv: list[bytes], numbers: Numbers, deadline_ms: int
    ) -> object:
        """Let a client wait until some records are here."""
        if self._covers(numbers):
            return 1
        parked = Parked([], deadline_ms, argv, 0, None)
        self._waits.append(Wait(session, parked, numbers))
        return parked

    def _look_at_waits(self) -> None:
        still: list[Wait] = []
        waits = self._waits
        self._waits = []
        for wait in waits:
            if not wait.session.waits_for(wait.parked):
                continue
            if self._covers(wait.numbers):
                self._server.end_wait(wait.session, 1)
            else:
                still.append(wait)
        self._waits += still

    def _covers(self, numbers: Numbers) -> bool:
        return all(self.region.number_of(origin) >= numbers[origin] for origin in numbers)

    # Reports

    def refused(self, host: str, reason: str) -> None:
        warn_refused(self._server, host, reason)

    def state_of(self, peer: Peer) -> bytes:
        """Return the state of a peer as INFO shows it; a forgotten one may still be a peer."""
        return b"forgotten" if self.region.is_forgotten(peer.region) else peer.state

    def lag_ms(self, peer: Peer) -> int:
        """Return the age of the oldest record of a peer that is not applied here; 0 if level."""
        puller = peer.puller
        if puller is not None and puller.is_level:
            return 0
        if puller is not None and puller.lag_since_ms:
            there_ms = self._server.clock.now_ns // 1_000_000 + peer.statistics.clock_ahead_ms
            return max(0, there_ms - puller.lag_since_ms)
        return self._server.clock.monotonic_ms() - peer.level_ms

    def answered_ms_ago(self, peer: Peer) -> int:
        """Return how long ago a peer answered last; -1 where it never has."""
        if not peer.met_ms:
            return -1
        return self._server.clock.monotonic_ms() - peer.met_ms

    def _tell_lag(self, peer: Peer, now_ms: int) -> None:
        """Log, now and then, that a peer is far ahead or has long been away."""
        most_ms = self._server.config.aa_max_lag_ms
        if not most_ms or self.lag_ms(peer) <= most_ms or peer.paused:
            return
        if self.region.is_forgotten(peer.region):
            return
        told_ms = self._lag_told_ms.get(peer.region)
        if told_ms is None or now_ms - told_ms >= LAG_TOLD_EVERY_MS:
            self._lag_told_ms[peer.region] = now_ms
            log.warning(
                "Region %d: this region is %d seconds behind it (%s). Nothing is lost; look at "
                "that server and at the link",
                peer.region,
                self.lag_ms(peer) // 1000,
                peer.state.decode("utf-8", "replace"),
            )


def regions_of(server: Server) -> Regions:
    """Return the regions of a server. Raises CommandError if it is no region."""
    neighbours = server.neighbours
    if not isinstance(neighbours, Regions):
        raise CommandError(errors.AA_NO_REGION)
    return neighbours
