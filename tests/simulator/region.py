"""A region in the simulator: its process, its records, and what its clients were given."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import headrace.regions.wing  # noqa: F401  (importing it registers regions)
from headrace.regions.exchange.copy_join import CopyJoin
from headrace.regions.exchange.effects import begin_region, publish_all
from headrace.regions.exchange.epochs import replaced_nonce
from headrace.regions.exchange.peer_connection import PeerConnection
from headrace.regions.exchange.peers import Connector
from headrace.regions.exchange.recovery import RegionStart
from headrace.regions.exchange.regions import TICK_MS, Regions
from headrace.regions.exchange.retention import log_of
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.app import follow_configured
from headrace.server.clients.session import OF_REGION
from headrace.server.config.kinds import PeerAddress
from headrace.server.following.following import MasterFollowing
from headrace.server.gate import HALF_JOINED
from headrace.server.loading.starting import start_persistence
from headrace.server.replication.failover import ReplicaFailover
from headrace.server.replication.replicas import AllReplicas
from headrace.server.role import Following, Replicas
from simulator.ledger import FileReader, Ledger, Numbers, Record, Shelf, Violated, region_of
from simulator.oracle import ID, View, view_of
from simulator.process import Client, Process
from simulator.resp import Words, read_record
from simulator.virtual import Time
from support.lanes import regional

if TYPE_CHECKING:
    from simulator.network import Network
    from simulator.standbys import Standbys

SYNC_MS: Final = 1000
JOINING_STEP_MS: Final = 10
CRON_MS: Final = 500
WAITERS: Final = ("w0", "w1", "w2")  # clients that may wait for an answer
KERNEL_SYNC_MS: Final = 5000  # after which a system syncs by itself
GroupName = tuple[bytes, bytes]  # key, group
Dots = frozenset[tuple[bytes, int]]


class Delivery:
    """Entries that a client was given."""

    def __init__(self, ids: list[bytes], creates: Dots) -> None:
        self.ids = ids
        self.creates = creates


Deliveries = dict[GroupName, list[Delivery]]


def _copy(deliveries: Deliveries) -> Deliveries:
    return {group: list(found) for group, found in deliveries.items()}


def deliveries_of(region: Region) -> tuple[Deliveries, Deliveries]:
    """Return what clients were given there, and which places were moved there."""
    return _copy(region.delivered), _copy(region.moved)


class _Connector(Connector):
    """Makes connections in the simulated network."""

    def __init__(self, region: Region) -> None:
        self._region = region

    def connect(self, address: PeerAddress, connection: PeerConnection) -> None:
        self._region.network.connect(self._region.number, address.region, connection)

    def apply_soon(self) -> None:
        region = self._region
        if region.regions.full_copy.has_work:  # clients come between two steps of it
            region.loop.call_later(JOINING_STEP_MS / 1000, region.apply)
        else:
            region.loop.soon(region.apply)


class Region(Process):
    """One region.

    Attributes:
        number: its region ID.
        view: what it knows, by the records that its files say it has.
        delivered: what clients here were given as new.
        acked: what clients here acknowledged.
        done: what was pending and clients here have acknowledged since the start, for which
            creates, as far as nothing has made it pending again.
        has_joined: it has joined a copy, ever.
        moved: groups whose place was moved here by hand, and how far.
        read_upto: how far a reader of each key has come here, who reads what is stable.
        log_bytes: what it keeps for others, in files and in memory; 0 for what is configured.
        due_ms: when there is something to do, unless it is touched before.
    """

    network: Network
    standbys: Standbys
    regions: Regions

    def __init__(
        self,
        number: int,
        folder: Path,
        time: Time,
        skew_ms: int,
        settings: dict[str, bytes],
        ledger: Ledger,
    ) -> None:
        super().__init__(folder, time, skew_ms, settings)
        self.number: Final = number
        self.ledger: Final = ledger
        self.view = View()
        self.shelf = self._new_shelf()
        self.delivered: dict[GroupName, list[Delivery]] = {}
        self.acked: dict[GroupName, list[Delivery]] = {}
        self.moved: dict[GroupName, list[Delivery]] = {}
        self.has_joined = False
        self.read_upto: dict[bytes, ID] = {}
        self.done: dict[GroupName, tuple[Dots, set[bytes]]] = {}
        self.log_bytes = 0
        self.due_ms = 0
        self.was_unwritten = False  # at the last look
        self.check_ready: Callable[[], None] | None = None
        self._kept: dict[str, Numbers] = {}
        self._read: dict[str, tuple[Deliveries, Deliveries]] = {}

    def _applied(self, record: Record) -> None:
        self.view.apply(record)
        if record.words[1] in (b"GROUP", b"HAND"):
            self._merge_creates((record.words[2], record.words[3]))

    def _merge_creates(self, group: GroupName) -> None:
        """What was acknowledged of a group holds for a create that comes while the group lives."""
        living = self.knows(*group)
        for delivery in self.acked.get(group, []):
            if delivery.creates & living:
                delivery.creates |= living

    def _counted(self) -> Numbers:
        return self.regions.region.known()

    def _replaced(self) -> bytes:
        """The life whose files hold what a copy has put in the place of what they held before."""
        region = self.regions.region
        copying = self.regions.full_copy
        if region.caught == region.nonce or region.caught != replaced_nonce(region):
            return b""
        directory = self.durability.files.directory
        base = None if directory is None else directory.manifest.base
        is_written = base is not None and base.seq > copying._old_base
        return region.nonce if is_written or copying.join is None else b""

    def _new_shelf(self) -> Shelf:
        return Shelf(self.number, self.ledger, self._applied, self._counted, self._replaced)

    def received(self, origins: Iterable[bytes]) -> Numbers:
        """What has come of some origins, even if it could not be applied or written so far."""
        place = self.regions.intake.place
        copied = self._copied()
        return {origin: max(place(origin), copied.get(origin, 0)) for origin in origins}

    def _copied(self) -> Numbers:
        """What is known by a copy that is here whole, and is still to be joined."""
        if not self.has_copy():
            return {}
        file = self.regions.full_copy._file
        assert file is not None
        copy = CopyJoin(self.server, file.file.path, False)
        while copy._loader.step():
            pass
        copy._loader.close()
        return copy._copy().known()

    @property
    def known(self) -> Numbers:
        return self.shelf.known

    def own(self, records: list[Record]) -> list[Record]:
        """Those that this region has made itself."""
        return [record for record in records if region_of(record.origin) == self.number]

    def observe(self) -> list[Record]:
        """Look at what it has written since the last look; the records that are new to it."""
        aof = self.durability.files.aof
        if aof is None:
            self.shelf.fresh = []
            return []
        found = self.shelf.follow(aof.path, aof.size_bytes)
        if self.shelf.joined:
            self.has_joined = True
            self.view = view_of(self.ledger, self.known)
            for group in self.acked:
                self._merge_creates(group)
        return found

    def has_news(self) -> bool:
        """Whether it has written something since the last look, or a client of it got something."""
        aof = self.durability.files.aof
        if aof is None or not self.shelf.is_at(aof.path, aof.size_bytes):
            return True
        if aof.pending or self.was_unwritten or self.shelf.is_replaced():
            return True
        for name in WAITERS:
            client = self.connected(name)
            if client is not None and client.received:
                return True
        return False

    @property
    def fresh_own(self) -> list[Record]:
        """Records of its own in the last look that nobody had before: it has made them."""
        return self.own(self.shelf.fresh)

    # Life

    def prepare(self) -> None:
        self.server.role.make_replicas = self._make_replicas
        self.server.role.make_following = self._make_following
        begin_region(self.server)
        self.regions = Regions(self.dispatcher, _Connector(self))
        if self.log_bytes:
            log = log_of(self.durability.files)
            assert log is not None
            log.most_bytes = log.backlog.most_bytes = self.log_bytes

    def _make_replicas(self) -> Replicas:
        replicas = AllReplicas(self.server, self.durability)
        self.server.role.failover_job = ReplicaFailover(self.server, replicas)
        return replicas

    def _make_following(self) -> Following:
        replicas = self.server.role.ready_replicas()
        assert isinstance(replicas, AllReplicas)
        return MasterFollowing(
            self.dispatcher, replicas, lambda user, host, port: self.standbys.link(self, user)
        )

    def is_now(self, former: Region, had: tuple[Deliveries, Deliveries]) -> None:
        """This standby is the region that another process was; ``had``: what clients were given."""
        aof = self.durability.files.aof
        assert aof is not None
        self.committer.end_turn()
        reader = FileReader(aof.path)
        units = reader.read(aof.size_bytes)
        for unit in units:
            for record in unit.records:  # the region may have had no room to write them
                self.ledger.met(record)
        self.shelf = self._new_shelf()
        self.shelf.begin_at(reader, units, self._counted())
        self.view = view_of(self.ledger, self.known)
        self.delivered, self.moved = had
        self.acked = former.acked
        self.has_joined = True  # what is in its base came as a copy does
        self.read_upto = former.read_upto
        self.done = {}
        self._kept, self._read = former._kept, former._read

    async def load(self) -> None:
        door = RegionStart(self.server, self.regions)
        await start_persistence(self.server, self.durability, door)
        if not self.server.config.replicaof:
            self.regions.open()
        follow_configured(self.server)
        self._tick_ms = self.time.now_ms + TICK_MS
        self._sync_ms = self.time.now_ms + SYNC_MS
        self._cron_ms = self.time.now_ms

    def became_ready(self) -> None:
        check = self.check_ready
        self.check_ready = None
        if check is not None:
            check()

    def start(self) -> None:
        self.shelf.closed()
        self.done = {}
        super().start()

    def stop(self) -> None:
        super().stop()
        reader = self.shelf.reader
        if reader is not None:  # an end in order writes down what has waited
            self.shelf.follow(reader.path, reader.size())

    def publish(self) -> None:
        self.server.clock.refresh()
        publish_all(self.dispatcher)

    def apply(self) -> None:
        """Apply what has come."""
        if self.running:
            self.server.clock.refresh()
            self.regions.apply()

    def adopt(self, client: Client) -> None:
        super().adopt(client)
        if client.of_region:
            client.session.special |= OF_REGION

    def next_ms(self) -> int:
        """Return when something is due."""
        if not self.ready:
            return self.loop.next_ms(self.time.now_ms + TICK_MS)
        return self.loop.next_ms(self._tick_ms)

    def go_on(self) -> None:
        """Do what is due."""
        now_ms = self.time.now_ms
        if not self.ready or now_ms < self._tick_ms:
            with self.entered():
                return
        self._tick_ms = now_ms + TICK_MS
        with self.entered():
            if now_ms >= self._cron_ms:
                self._cron_ms = now_ms + CRON_MS
                self.cron.tick()
            self.regions.tick()
            if now_ms >= self._sync_ms:
                is_often = self.server.config.appendfsync == b"everysec"
                self._sync_ms = now_ms + (SYNC_MS if is_often else KERNEL_SYNC_MS)
                self.committer.sync()

    def kept_numbers(self, name: str) -> Numbers:
        """Return what was known when a copy of the folder was made."""
        return self._kept[name]

    def resume(self) -> None:
        """Pull from all others."""
        with self.entered():
            self.regions.pause(b"ALL", False)

    def set_skew(self, skew_ms: int) -> None:
        """Set its time of day."""
        self.skew_ms = skew_ms
        self.clock.skew_ms = skew_ms

    def obstacle(self) -> bytes:
        """Return why it takes no writes; empty if it does."""
        if not self.ready:
            return b"it starts"
        return self.regions.region.refusal

    def trouble(self) -> str:
        """Return what keeps it from knowing what the others do, for people."""
        if not self.ready:
            return "it starts"
        peers = [
            (peer.region, peer.state, peer.failure, self.regions.lag_ms(peer))
            for peer in self.regions.peers.values()
        ]
        catch_up = self.regions.catch_up
        lacking = "" if catch_up is None else f", lacks {catch_up.lacking()}"
        return f"{self.obstacle()[:9]!r}{lacking}, {peers}"

    def is_waiting(self) -> bool:
        """Return whether something waits to be applied."""
        return not self.regions.intake.is_empty

    def has_copy(self) -> bool:
        """Return whether a copy is here whole, and is still to be joined."""
        file = self.regions.full_copy._file
        return file is not None and file.is_done and not file.is_outlived()

    @property
    def shows_nothing(self) -> bool:
        """Return whether it is joining a copy, and nobody reads meanwhile."""
        return bool(self.server.gate.reasons & HALF_JOINED)

    def hides(self, key: bytes) -> bool:
        """Return whether a key is there, and its time has come."""
        entry = self.server.data.dbs[0].peek(key)
        return entry is not None and 0 <= entry.expire_ms < self.clock.now_ns // 10**6

    def garbage(self) -> object:
        """Return what it still remembers of what is gone."""
        left = list(self.regions.region.garbage)
        for entry in self.server.data.tombstones.every():
            key = entry.key
            stream = regional(entry.value, self.regions.region)
            if not self._waits_for_what_is_lost(stream):
                left.append(key)
        return left

    def _waits_for_what_is_lost(self, stream: RegionalStream) -> bool:
        """Return whether a removal has named entries of an ended life that nobody has any more."""
        beats = self.regions.region.beats
        origins = {b"%d.%d" % (region, beats[region].epoch) for region in beats}
        return any(not lane.is_dead() and lane.origin not in origins for lane in stream.lanes)

    # As the outside sees it

    def power_cut(self, chance: random.Random | None) -> None:
        super().power_cut(chance)
        aof = self.durability.files.aof
        if aof is not None:
            _name_another_boot(aof.path, self.boot)
        if aof is not None:
            self.lost_end(min(aof.size_bytes, _size(aof.path)))

    def lost_end(self, size: int) -> None:
        """The file that is written to is no longer than this by now."""
        if self.shelf.cut(size):
            self.view = view_of(self.ledger, self.known)

    def dump(self, key: bytes) -> bytes | None:
        """Return what DUMP says of a key."""
        found = self.call("oracle", [b"DUMP", key])
        return found if isinstance(found, bytes) else None

    def lose_disk(self) -> None:
        super().lose_disk()
        self.shelf = self._new_shelf()
        self.view = View()
        self.delivered = {}
        self.moved = {}

    def keep(self, name: str) -> None:
        self.observe()
        super().keep(name)
        self._kept[name] = self.known.copy()
        self._read[name] = (_copy(self.delivered), _copy(self.moved))

    def restore(self, name: str) -> None:
        super().restore(name)
        self.shelf = self._new_shelf()
        self.shelf.known = self._kept[name].copy()
        delivered, moved = self._read[name]
        self.delivered, self.moved = _copy(delivered), _copy(moved)
        self.view = view_of(self.ledger, self.known)

    def knows(self, name: bytes, group: bytes) -> Dots:
        """The creates of a group that live, by what is known here."""
        view = self.view.keys.get(name)
        if view is None:
            return frozenset()
        return frozenset(create.dot for create in view.living(group))

    @property
    def unwritten(self) -> bool:
        """Return whether some of what it has answered could not be written so far."""
        aof = self.durability.files.aof
        return aof is not None and aof.pending

    def check_counts(self) -> None:
        """The server counts as its files say."""
        region = self.regions.region
        counted = {origin: number for origin, number in region.known().items() if number}
        if counted != {origin: number for origin, number in self.known.items() if number}:
            raise Violated(f"I16: region {self.number} knows {counted}, its files say {self.known}")


def _name_another_boot(path: bytes, boot: int) -> None:
    """Let a file have been written in another boot of the machine, which its first line names."""
    fd = os.open(path, os.O_RDWR)
    try:
        head = os.pread(fd, 4096, 0)
        words, _ = read_record(head, 0)
        assert words[:2] == [b"AA", b"FILE"], words
        other = (b"%d" % boot).rjust(len(words[8]), b"x")
        at = head.index(words[8])
        os.pwrite(fd, other, at)
    finally:
        os.close(fd)


def _size(path: bytes) -> int:
    return os.stat(path).st_size


def reply_ids(reply: object) -> list[bytes]:
    """The IDs of entries in the reply of a command that reads one stream."""
    if not isinstance(reply, list) or not reply:
        return []
    entries = reply[0][1] if isinstance(reply[0], list) else []
    return [entry[0] for entry in entries]


__all__ = ["Delivery", "Region", "Words", "reply_ids"]
