"""Frozen streams and databases: whatever happens afterwards, they show what was there."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.storage.freezing import Freezing
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.block import Block
from headrace.storage.stream.delivery import claimable, hand_out
from headrace.storage.stream.entry_log import IDNotGreater
from headrace.storage.stream.frozen import NO_OWNER, FrozenGroup, FrozenStream
from headrace.storage.stream.groups import Consumer, Group
from headrace.storage.stream.idmp import Record
from headrace.storage.stream.pel import Holder
from headrace.storage.stream.run import ID_MAX
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Expiring, Freeable
from support.campaigns import drawn

GREATEST = (ID_MAX, ID_MAX)
NODE_ENTRIES = 3  # small: blocks are sealed, emptied and reopened all the time
NODE_BYTES = 110


class PlainBlock(NamedTuple):
    first: tuple[int, int]
    last: tuple[int, int]
    total: int
    live: int
    node_bytes: int
    entries: list[tuple[int, int, list[bytes], bool]]


class PlainGroup(NamedTuple):
    name: bytes
    last: tuple[int, int]
    entries_read: int
    max_pending: int
    consumers: list[tuple[bytes, int, int, int]]
    pending: list[tuple[int, int, bytes, int, int]]


class PlainStream(NamedTuple):
    counters: tuple[int, ...]
    blocks: list[PlainBlock]
    groups: list[PlainGroup]
    iids: list[Record]


def plain_block(block: Block) -> PlainBlock:
    """Return what a block says of itself, with all entries, and whether each is dead."""
    run = block.run or block.decode()
    dead = block.dead or bytes(len(run.ms))
    rows = [
        (run.ms[number], run.seq[number], list(run.row(number)), bool(dead[number]))
        for number in range(len(run.ms))
    ]
    first, last = (block.first_ms, block.first_seq), (block.last_ms, block.last_seq)
    return PlainBlock(first, last, block.total, block.live, block.node_bytes, rows)


def counters(stream: Stream | FrozenStream) -> tuple[int, ...]:
    return (
        stream.length,
        stream.last_ms,
        stream.last_seq,
        stream.max_deleted_ms,
        stream.max_deleted_seq,
        stream.entries_added,
    )


def plain_group(group: Group) -> PlainGroup:
    return PlainGroup(
        group.name,
        (group.last_ms, group.last_seq),
        group.entries_read,
        group.max_pending,
        [
            (consumer.name, consumer.seen_ms, consumer.active_ms, consumer.pel.size)
            for consumer in group.consumers.values()
        ],
        [
            (nack.ms, nack.seq, name_of(nack.consumer), nack.delivery_ms, nack.count)
            for chunk in group.by_time.chunks
            for nack in chunk.live()
        ],
    )


def name_of(consumer: Holder | None) -> bytes:
    return b"" if consumer is None else consumer.name


def plain_stream(stream: Stream) -> PlainStream:
    """A deep copy, as plain data, of what the stream holds now."""
    blocks = [block for block in stream.index.blocks if block.live]
    if stream.tail is not None:
        blocks.append(stream.tail)
    return PlainStream(
        counters(stream),
        [plain_block(block) for block in blocks],
        [plain_group(group) for group in stream.groups.values()],
        list(stream.idmp_records()),
    )


class Reader:
    """Reads a frozen stream, as much at a time as it is told."""

    def __init__(self, frozen: FrozenStream) -> None:
        self.frozen = frozen
        self.blocks: list[PlainBlock] = []
        self.pending: list[list[tuple[int, int, bytes, int, int]]] = [[] for _ in frozen.groups]
        self.iids: list[Record] = []
        self.producers = 0

    def read_blocks(self, most: int) -> bool:
        found = self.frozen.next_blocks(most)
        self.blocks += [plain_block(block) for block in found]
        return bool(found)

    def read_pending(self, number: int) -> bool:
        group = self.frozen.groups[number]
        found = group.next_pending()
        if found is None:
            return False
        for ms, seq, owner, delivery_ms, count in zip(
            found.ms, found.seq, found.owners, found.delivery_ms, found.counts, strict=True
        ):
            name = b"" if owner == NO_OWNER else group.consumers[owner].name
            self.pending[number].append((ms, seq, name, delivery_ms, count))
        return True

    def read_producer(self) -> bool:
        producer = self.frozen.next_producer()
        if producer is None:
            return False
        self.producers += 1
        self.iids += [(producer.pid, *record) for record in producer.records()]
        return True

    def rest(self) -> PlainStream:
        while self.read_blocks(2):
            pass
        while self.read_producer():
            pass
        assert self.producers == self.frozen.producers
        assert len(self.blocks) == self.frozen.blocks
        if self.frozen.tail is not None:
            self.blocks.append(plain_block(self.frozen.tail))
        return PlainStream(
            counters(self.frozen),
            self.blocks,
            [self.group(number, group) for number, group in enumerate(self.frozen.groups)],
            self.iids,
        )

    def group(self, number: int, group: FrozenGroup) -> PlainGroup:
        while self.read_pending(number):
            pass
        assert len(self.pending[number]) == group.pending
        return PlainGroup(
            group.name,
            (group.last_ms, group.last_seq),
            group.entries_read,
            group.max_pending,
            [
                (consumer.name, consumer.seen_ms, consumer.active_ms, consumer.pending)
                for consumer in group.consumers
            ],
            self.pending[number],
        )


NAMES = [b"a", b"b", b"c"]
names = st.sampled_from(NAMES)


class FrozenStreamMachine(RuleBasedStateMachine):
    """A stream with groups that is frozen now and then, and changed while it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.expiring = Expiring()
        self.stream = self.empty_stream()
        self.now_ms = 1000
        self.reader: Reader | None = None
        self.expected: PlainStream | None = None

    def empty_stream(self) -> Stream:
        stream = Stream(2, 4)
        stream.attach(self.expiring)
        return stream

    @initialize()
    def start(self) -> None:
        for name in NAMES:
            self.stream.groups[name] = Group(name, 0, 0, -1)
        self.append(0, b"a", 20)
        for name in NAMES[:2]:
            self.deliver(name, NAMES[0], 9)

    # Entries

    @rule(steps=st.integers(0, 3), name=names, count=st.integers(1, 12))
    def append(self, steps: int, name: bytes, count: int) -> None:
        for number in range(count):
            seq = self.stream.last_seq + 1 if not steps else 0
            new_id = (self.stream.last_ms + steps, seq)
            # The larger ones do not fit into a block with others, which is then sealed early.
            value = b"%d" % seq if number % 3 else b"x" * 60
            self.stream.append(*new_id, [name, value], 0, NodeLimits(NODE_BYTES, NODE_ENTRIES))

    @rule(from_the_end=st.booleans(), count=st.integers(1, 5), data=st.data())
    def delete(self, from_the_end: bool, count: int, data: st.DataObject | None) -> None:
        places = [
            (part.run.ms[number], part.run.seq[number])
            for part in self.stream.parts((0, 0), GREATEST, 0, False)
            for number in range(part.low, part.high)
            if part.dead is None or not part.dead[number]
        ]
        if from_the_end or data is None:
            chosen = places[-count:] if count else []
        else:
            chosen = data.draw(st.lists(st.sampled_from(places), unique=True)) if places else []
        for place in chosen:
            assert self.stream.delete(*place)

    @rule(more=st.integers(0, 7), name=names)
    def reopen(self, more: int, name: bytes) -> None:
        """Delete the open block, so that the last sealed one is appended to again."""
        tail = self.stream.tail
        if tail is not None:
            for place in tail.live_ids():
                self.stream.delete(*place)
            self.delete(True, more, None)
            self.append(1, name, 2)

    @rule(kept=st.integers(0, 30), approximate=st.booleans(), by_id=st.booleans())
    def trim(self, kept: int, approximate: bool, by_id: bool) -> None:
        if by_id:
            self.stream.trim_below(kept, 1, approximate, 0, True)
        else:
            self.stream.trim_to_length(kept, approximate, 0, True)

    @precondition(lambda self: not self.stream.length)
    @rule(ms=st.integers(0, 5))
    def set_id(self, ms: int) -> None:
        self.stream.last_ms, self.stream.last_seq = ms, 0

    # Groups

    @rule(name=names)
    def replace_group(self, name: bytes) -> None:
        group = self.stream.groups.pop(name, None)
        if group is not None:
            while not group.free_some(1):
                pass
        self.stream.groups[name] = Group(name, 0, 0, -1)

    def group(self, name: bytes) -> Group:
        return self.stream.groups.setdefault(name, Group(name, 0, 0, -1))

    def consumer(self, group: Group, name: bytes) -> Consumer:
        self.now_ms += 1
        found = group.consumers.get(name) or group.create_consumer(name, self.now_ms)
        found.seen_ms = self.now_ms
        return found

    @rule(name=names, who=names, count=st.integers(1, 12))
    def deliver(self, name: bytes, who: bytes, count: int) -> None:
        group = self.group(name)
        consumer = self.consumer(group, who)
        start = (group.last_ms, group.last_seq + 1)
        parts = self.stream.parts(start, GREATEST, count, False)
        hand_out(self.stream, group, parts, consumer, self.now_ms)
        consumer.active_ms = self.now_ms

    @rule(
        name=names,
        who=names,
        what=st.sampled_from(["acknowledge", "claim", "release"]),
        which=st.sampled_from(["first", "last", "all", "some"]),
        data=st.data(),
    )
    def change_pending(
        self, name: bytes, who: bytes, what: str, which: str, data: st.DataObject
    ) -> None:
        group = self.group(name)
        nacks = [nack for chunk in group.pel.chunks for nack in chunk.live()]
        if which == "first":
            nacks = nacks[:1]
        elif which == "last":
            nacks = nacks[-1:]
        elif which == "some" and nacks:
            nacks = data.draw(st.lists(st.sampled_from(nacks), unique_by=id))
        consumer = self.consumer(group, who)
        for nack in nacks:
            if what == "acknowledge":
                group.drop(nack)
            elif what == "claim":
                group.assign(nack, consumer, self.now_ms)
                nack.count += 1
            else:
                group.release(nack)
                nack.count = 7

    @rule(name=names)
    def look_for_claimable(self, name: bytes) -> None:
        claimable(self.stream, self.group(name), self.now_ms, 100)

    @rule(name=names, who=names)
    def delete_consumer(self, name: bytes, who: bytes) -> None:
        group = self.group(name)
        if who in group.consumers:
            group.delete_consumer(who)

    # Producers

    @rule(pid=names, iids=st.lists(st.integers(0, 8), max_size=6), late_ms=st.integers(0, 1))
    def record(self, pid: bytes, iids: list[int], late_ms: int) -> None:
        for number in iids:
            self.now_ms += 1
            self.stream.record_iid(pid, b"%d" % number, self.now_ms, 0, self.now_ms + late_ms)

    @rule(steps_ms=st.integers(0, 4000), most=st.integers(1, 5))
    def expire(self, steps_ms: int, most: int) -> None:
        self.now_ms += steps_ms
        self.expiring.expire(self.now_ms, most)

    @rule(maxsize=st.integers(3, 5))
    def limit(self, maxsize: int) -> None:
        old = self.stream.limit_idmp(2, maxsize)
        while old is not None and not old.free_some(1):
            pass

    @precondition(lambda self: self.reader is not None)
    @rule()
    def read_producer(self) -> None:
        assert self.reader is not None
        self.reader.read_producer()

    # Freezing

    @precondition(lambda self: self.reader is None)
    @rule()
    def freeze(self) -> None:
        self.expected = plain_stream(self.stream)
        frozen = FrozenStream(self.stream)
        frozen.register()
        self.reader = Reader(frozen)

    @precondition(lambda self: self.reader is not None)
    @rule(most=st.integers(1, 3))
    def read_blocks(self, most: int) -> None:
        assert self.reader is not None
        self.reader.read_blocks(most)

    @precondition(lambda self: self.reader is not None)
    @rule(number=st.integers(0, 2))
    def read_pending(self, number: int) -> None:
        assert self.reader is not None
        if number < len(self.reader.frozen.groups):
            self.reader.read_pending(number)

    @precondition(lambda self: self.reader is not None)
    @rule(abandon=st.booleans())
    def finish(self, abandon: bool) -> None:
        assert self.reader is not None
        if abandon:
            assert self.stream.free_some(1), "it is left to whoever thaws it"
        found = self.reader.rest()
        assert found == self.expected
        rest = self.reader.frozen.thaw()
        assert (self.stream in rest) == abandon
        assert self.stream.frozen is None
        for group in self.stream.groups.values():
            assert group.frozen is None
            assert group.by_time.shared is None
        if self.stream.idmp is not None:
            assert self.stream.idmp.frozen is None
            assert not any(found.shared for found in self.stream.idmp.producers.values())
        if abandon:
            while not self.stream.free_some(1):
                pass
            self.stream = self.empty_stream()
            self.start()
        while not self.reader.frozen.free_some(1):
            pass
        self.reader = None

    @precondition(lambda self: self.reader is not None)
    @rule()
    def give_up(self) -> None:
        assert self.reader is not None
        before = plain_stream(self.stream)
        self.reader.frozen.thaw()
        while not self.reader.frozen.free_some(1):
            pass
        assert plain_stream(self.stream) == before
        self.reader = None

    @invariant()
    def a_look_at_it_is_the_same(self) -> None:
        """A view that nobody registers, as DUMP takes it."""
        if self.reader is None:
            assert Reader(FrozenStream(self.stream)).rest() == plain_stream(self.stream)


FrozenStreamMachine.TestCase.settings = settings(max_examples=drawn(80), stateful_step_count=60)
TestFrozenStream = FrozenStreamMachine.TestCase

KEYS = [b"k%d" % number for number in range(10)]
keys = st.sampled_from(KEYS)
numbers = st.integers(0, 2)


class FreezingMachine(RuleBasedStateMachine):
    """Three databases that are frozen now and then, and changed while they are walked."""

    def __init__(self) -> None:
        super().__init__()
        self.expired: list[tuple[int, bytes]] = []
        self.unused: list[Freeable] = []
        expiring = Expiring()
        self.dbs = [Keyspace(index, self.expired, self.unused, expiring) for index in range(3)]
        self.now_ms = 0
        self.epoch = 0
        self.freezing: Freezing | None = None
        self.expected: dict[tuple[int, bytes], tuple[object, int]] = {}
        self.found: dict[tuple[int, bytes], tuple[object, int]] = {}

    @initialize()
    def start(self) -> None:
        for number, key in enumerate(KEYS):
            self.set_string(number % 3, key, number)

    # What commands do

    @rule(db=numbers, key=keys, value=st.sampled_from([b"x", 7]))
    def set_string(self, db: int, key: bytes, value: object) -> None:
        self.dbs[db].put(key, value, self.now_ms)

    @rule(db=numbers, key=keys)
    def set_written_string(self, db: int, key: bytes) -> None:
        self.dbs[db].put(key, bytearray(b"x"), self.now_ms)

    @rule(db=numbers, key=keys)
    def set_stream(self, db: int, key: bytes) -> None:
        self.dbs[db].put(key, Stream(100, 100), self.now_ms)

    @rule(db=numbers, key=keys)
    def change_in_place(self, db: int, key: bytes) -> None:
        self.dbs[db].before_change(key)
        value = self.dbs[db].get(key, self.now_ms)
        if isinstance(value, bytearray):
            value.append(0x79)
        elif isinstance(value, Stream):
            try:
                value.append(value.last_ms + 1, 0, [b"f", b"v"], 0, NodeLimits(4096, NODE_ENTRIES))
            except IDNotGreater:
                return

    @rule(db=numbers, key=keys)
    def remove(self, db: int, key: bytes) -> None:
        value = self.dbs[db].remove(key)
        if isinstance(value, Freeable):
            self.unused.append(value)

    @rule(db=numbers, key=keys, after_ms=st.integers(0, 9))
    def expire_at(self, db: int, key: bytes, after_ms: int) -> None:
        if key in self.dbs[db]:
            self.dbs[db].expire_at(key, self.now_ms + after_ms)

    @rule(db=numbers, key=keys)
    def persist(self, db: int, key: bytes) -> None:
        self.dbs[db].persist(key)

    @rule(one=numbers, other=numbers, key=keys, new=keys)
    def rename_or_move(self, one: int, other: int, key: bytes, new: bytes) -> None:
        value = self.dbs[one].remove(key)
        if value is not None:
            self.dbs[other].put(new, value, self.now_ms)

    @rule(one=numbers, other=numbers, key=keys)
    def swap(self, one: int, other: int, key: bytes) -> None:
        if one != other:
            self.dbs[one].swap(self.dbs[other])
        self.remove(one, key)

    @rule(db=numbers)
    def flush(self, db: int) -> None:
        self.dbs[db].clear()

    @rule(by_ms=st.integers(0, 5), db=numbers, key=keys, most=st.integers(0, 3))
    def time_passes(self, by_ms: int, db: int, key: bytes, most: int) -> None:
        self.now_ms += by_ms
        self.dbs[db].entry(key, self.now_ms)
        self.dbs[db].expire_due(self.now_ms, most)

    @rule()
    def free_some(self) -> None:
        """As the cron does."""
        waiting = self.unused[:]
        self.unused.clear()
        for value in waiting:
            while not value.free_some(1):
                pass

    # Freezing

    @precondition(lambda self: self.freezing is None)
    @rule()
    def freeze(self) -> None:
        self.epoch += 1
        self.expected = {
            (db.index, entry.key): (plain(entry.value), entry.expire_ms)
            for db in self.dbs
            for entry in db.every()
        }
        self.found = {}
        self.freezing = Freezing(self.dbs, self.epoch)
        assert self.freezing.total == len(self.expected)

    @precondition(lambda self: self.freezing is not None)
    @rule(most=st.integers(1, 4))
    def walk(self, most: int) -> None:
        assert self.freezing is not None
        for key in self.freezing.next_keys(most):
            place = (key.db, key.key)
            assert place not in self.found, "it was taken twice"
            self.found[place] = (plain_frozen(key.value), key.expire_ms)
            self.freezing.release(key, self.unused)

    @precondition(lambda self: self.freezing is not None)
    @rule(give_up=st.sampled_from([False, False, False, True]))
    def finish(self, give_up: bool) -> None:
        """At the end, or half way: nothing stays behind."""
        assert self.freezing is not None
        while not give_up and not self.freezing.is_done():
            self.walk(3)
        if not give_up:
            assert self.found == self.expected
            assert self.freezing.taken == self.freezing.total
        self.freezing.end(self.unused)
        self.freezing = None
        for db in self.dbs:
            assert db.freezing is None
            for entry in db.every():
                assert not isinstance(entry.value, Stream) or entry.value.frozen is None


def plain(value: object) -> object:
    if isinstance(value, Stream):
        return plain_stream(value)
    return bytes(value) if isinstance(value, bytearray) else value


def plain_frozen(value: object) -> object:
    if isinstance(value, FrozenStream):
        return Reader(value).rest()
    assert isinstance(value, (bytes, int))
    return value


FreezingMachine.TestCase.settings = settings(max_examples=drawn(80), stateful_step_count=60)
TestFreezing = FreezingMachine.TestCase
