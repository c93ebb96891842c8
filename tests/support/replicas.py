"""Regions with one stream each, which give each other their records as tests want it."""

from __future__ import annotations

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.group_state import Create, Start, start_after
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.remembered import DEL, EXPIRE, Removal, Setting, Tombstone, Top
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.tombstones import collect
from headrace.regions.lanes.trim import lanes_by_length
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.delivery import hand_out
from headrace.storage.stream.groups import lag
from headrace.storage.value import Freeable
from headrace.storage.vectors import Dot, Numbers, raise_numbers
from support.lanes import copied, join

ID = tuple[int, int]
LIMITS = NodeLimits(4096, 3)  # blocks are sealed all the time
ENTRY = [b"f", b"v"]
ZERO = start_after((0, 0))
NOW_MS = 1_000

Record = tuple[object, ...]
Logs = dict[bytes, list[Record]]  # of each origin: what it has ever recorded


class Replica:
    """A region with one stream; what it does is kept as records that repeat it elsewhere.

    Args:
        logs: where records are kept; regions that share them can give each other what any of them
            has recorded.

    Attributes:
        beats: what each region has said that it knows.
    """

    def __init__(self, number: int, mode: int = 0, logs: Logs | None = None) -> None:
        self.region = Region(number)
        self.region.mode = mode
        self.stream = RegionalStream(self.region, 100, 100)
        self.logs: Logs = {} if logs is None else logs
        self.beats: dict[int, Numbers] = {}

    @property
    def log(self) -> list[Record]:
        """Return what it has recorded as what it is now."""
        return self.logs.setdefault(self.region.origin, [])

    def emit(self, *record: object) -> None:
        """Make a record, which is applied here, too."""
        self.region.count += 1
        self.log.append(record)
        self.apply((self.region.origin, self.region.count), record)

    def receive(self, origin: bytes, most: int = 1 << 60) -> None:
        """Have the next records of an origin, up to ``most``."""
        log = self.logs.get(origin, [])
        have = self.region.number_of(origin)
        for number in range(have, min(len(log), have + most)):
            self.region.learned(origin, number + 1)
            self.apply((origin, number + 1), log[number])

    def apply(self, dot: Dot, record: Record) -> None:
        name, *rest = record
        method = getattr(self, f"apply_{name}")
        method(dot, *rest)

    def apply_add(self, dot: Dot, began: int, ms: int, seq: int) -> None:
        if dot[0] != self.region.origin:
            self.stream.arrive(dot[0], began, False, ms, seq, ENTRY, 0, LIMITS)

    def apply_create(self, dot: Dot, group: bytes, start: Start, numbers: dict[bytes, int]) -> None:
        self.stream.add_create(group, Create(dot, start, numbers))

    def apply_destroy(self, dot: Dot, group: bytes, numbers: dict[bytes, int]) -> list[Freeable]:
        return self.stream.add_tombstone(group, Tombstone(dot, numbers))

    def apply_remove(
        self, dot: Dot, kind: int, vector: dict[bytes, ID], numbers: dict[bytes, int]
    ) -> None:
        self.stream.add_removal(Removal(kind, dot, numbers))
        self.stream.cover(vector)

    def apply_end(self, dot: Dot, vector: dict[bytes, ID]) -> None:
        self.stream.end_lanes(vector)
        self.stream.add_removal(Removal(EXPIRE, dot, {}))

    def apply_ack(
        self, dot: Dot, group: bytes, dots: list[Dot], found: list[tuple[bytes, ID, ID]]
    ) -> None:
        self.stream.acknowledge(group, dots, found)

    def apply_mode(self, dot: Dot, group: bytes, version: int, most: int) -> None:
        self.stream.add_mode(group, Setting(dot, version, most))

    def apply_delete(self, dot: Dot, lane: bytes, entry_id: ID) -> None:
        self.stream.remove_entry(lane, entry_id)

    def apply_delete_for(self, dot: Dot, winner: tuple[bytes, ID], loser: tuple[bytes, ID]) -> None:
        self.stream.remove_for(*winner, *loser)

    def apply_trim(self, dot: Dot, vector: dict[bytes, ID]) -> None:
        self.stream.trim_to(vector)

    def apply_top(self, dot: Dot, entry_id: ID) -> None:
        self.stream.add_top(Top(dot, entry_id))

    def apply_ttl(self, dot: Dot, version: int, deadline_ms: int) -> None:
        self.stream.add_ttl(Setting(dot, version, deadline_ms))

    def apply_beat(self, dot: Dot, region: int, numbers: Numbers) -> None:
        self.beats[region] = numbers

    # What a region does of itself

    def beat(self) -> None:
        """Say what it knows."""
        self.emit("beat", self.region.id, self.region.known())

    def collect(self, members: list[int]) -> int:
        """Forget what all members have said that they know."""
        beats = [self.beats.get(member, {}) for member in members]
        stable: Numbers = {}
        for origin in beats[0]:
            stable[origin] = min(beat.get(origin, 0) for beat in beats)
        return collect(self.stream, stable)

    def copy(self) -> Replica:
        """One that knows the same, and is another one from then on."""
        twin = Replica(self.region.id, self.region.mode, self.logs)
        twin.region.begin_epoch(self.region.epoch, self.region.generation, b"")
        twin.region.numbers = self.region.numbers.copy()
        twin.region.count = self.region.count
        twin.region.last_lane = self.region.last_lane
        twin.stream = copied(self.stream, twin.region)
        twin.beats = self.beats.copy()
        return twin

    def join(self, other: Replica) -> None:
        """Know what another one knows by its state, and not by records."""
        mine = self.region.known()
        theirs = other.region.known()
        join(self.stream, other.copy().stream, mine, theirs, LIMITS)
        known = mine.copy()
        raise_numbers(known, theirs)
        for origin, number in known.items():
            self.region.learned(origin, number)

    # What a client does

    def add(self, ms: int, seq: int = -1) -> None:
        stream = self.stream
        stream.append(ms, stream.next_seq(ms) if seq < 0 else seq, ENTRY, 0, LIMITS)
        self.emit("add", stream.began, stream.last_ms, stream.last_seq)

    def create(self, group: bytes, start: Start = ZERO) -> None:
        self.emit("create", group, start, self.region.known())

    def destroy(self, group: bytes) -> None:
        self.emit("destroy", group, self.region.known())

    def remove(self, kind: int = DEL) -> None:
        self.emit("remove", kind, self.stream.seen(), self.region.known())

    def end_lanes(self) -> None:
        """End its lanes of earlier epochs; all regions have to know all of them."""
        lanes = [each for each in self.stream.outlived() if each.key[0] == self.region.id]
        if lanes:
            self.emit("end", {lane.name: lane.last() for lane in lanes})

    def trim(self, most: int) -> None:
        vector = lanes_by_length(self.stream, most, False, 0, True)
        if vector:
            self.emit("trim", vector)

    def top(self, ms: int) -> None:
        self.emit("top", max(self.stream.top(), (ms, 0)))

    def expire_at(self, deadline_ms: int) -> None:
        self.emit("ttl", self.stream.ttl.next_version(), deadline_ms)

    def mode(self, group: bytes, most: int) -> None:
        self.emit("mode", group, self.stream.group_state(group).mode.next_version(), most)

    def set_place(self, group: bytes, ms: int) -> None:
        """As XGROUP SETID, here alone."""
        places_of(self.stream.groups[group]).set(start_after((ms, 0)), {})

    def delete(self, ms: int, seq: int) -> None:
        for lane in self.stream.holders(ms, seq):
            self.emit("delete", lane.name, (ms, seq))

    def read(self, group: bytes = b"g", count: int = 0, consumer: bytes = b"c") -> list[ID]:
        """As XREADGROUP GROUP with ``>``."""
        stream = self.stream
        found = stream.groups[group]
        who = found.consumers.get(consumer) or found.create_consumer(consumer, NOW_MS)
        new = places_of(found).has_new(stream)
        before = lag(stream, found)
        parts = places_of(found).parts(stream, count)
        ids = [
            (part.run.ms[number], part.run.seq[number])
            for part in parts
            for number in range(part.low, part.high)
            if part.dead is None or not part.dead[number]
        ]
        assert ids == sorted(ids)
        assert new == bool(ids)
        hand_out(stream, found, parts, who, NOW_MS)
        assert lag(stream, found) == before - len(ids)
        return ids

    def ack(self, ms: int, seq: int, group: bytes = b"g") -> bool:
        """As XACK; the prefix is sent if it has grown."""
        found = self.stream.groups[group]
        acked = found.ack(ms, seq)
        self.publish(group)
        return acked

    def publish(self, group: bytes = b"g") -> None:
        found = self.stream.groups[group]
        prefix = places_of(found).prefix(self.stream, found)
        if prefix:
            self.emit("ack", group, self.stream.group_states[group].dots(), prefix)

    def acks(self) -> int:
        return sum(record[0] == "ack" for record in self.log)

    def pending(self, group: bytes = b"g") -> list[ID]:
        pel = self.stream.groups[group].pel
        return [(nack.ms, nack.seq) for nack in pel.from_id(0, 0, 0)]


def sync(*replicas: Replica) -> None:
    """Let all of them have the records of all."""
    for source in replicas:
        for target in replicas:
            if target is not source:
                give(source, target)


def give(source: Replica, target: Replica) -> None:
    """Let one of them have the own records of another."""
    origin = source.region.origin
    target.logs.setdefault(origin, source.log)
    target.receive(origin)


def catch_up_all(target: Replica, other: Replica) -> None:
    """Let one of them have all that another one knows, whoever wrote it."""
    for origin, number in other.region.known().items():
        target.receive(origin, max(0, number - target.region.number_of(origin)))
