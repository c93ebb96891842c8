"""Streams in RDB files, from Redis 5 to 8.10: types 15, 19, 21, 26 and 27.

A stream is its nodes, each a listpack under the ID of its first entry; counters; groups with their
pending entries and consumers. Type 19 (Redis 7.0) added how many entries were ever added and
deleted and how many groups have read, type 21 (7.2) when consumers were last active, type 26 (8.6)
the IDMP map behind the groups, type 27 (8.8) which entries of a group were released, first released
first.

A node becomes a block with the same entries, deleted ones included, and a block becomes a node with
the same live entries, so that approximate trimming goes on cutting where it would have cut.

A stream is written in the type of Redis 7.0, 7.2, 8.6 or 8.8, by the version of the file. A type
that has no released entries, no IDMP map, or no moment when a consumer was active, loses those.
Data that no type has a place for go into notes behind the stream, which other servers pass over.
``headrace-max-pending`` holds groups: the name of each, and its limit. ``headrace-moments`` holds
the name of a group, and entries without a consumer that go out by themselves: ID, moment.
``headrace-iid-times`` holds iids that were added at another time than the ID of their entry says:
the name of a producer, then its iids from the first of that kind on, oldest first, each with the ID
of its entry and the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.rdb import kinds
from headrace.persistence.rdb.kinds import Broken
from headrace.persistence.rdb.packings import Listpack, elements
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from headrace.storage.stream.appending import append, open_block
from headrace.storage.stream.block import Block
from headrace.storage.stream.contents import IDMP_DURATION_S_MAX, IDMP_MAXSIZE_MAX
from headrace.storage.stream.frozen import NO_OWNER, FrozenGroup, FrozenStream
from headrace.storage.stream.groups import NEVER, UNKNOWN, Consumer, Group, estimate_position
from headrace.storage.stream.idmp import Producer, iid_of
from headrace.storage.stream.run import Run
from headrace.storage.stream.stream import Stream

MAX_PENDING: Final = b"headrace-max-pending"
IID_TIMES: Final = b"headrace-iid-times"
MOMENTS: Final = b"headrace-moments"
_NOTE_BYTES: Final = 1 << 16
_INT64_MAX: Final = 2**63 - 1


def note_group(output: RdbOutput, group: FrozenGroup) -> None:
    """Note the limit of a group, if it has one."""
    if group.max_pending:
        text = RdbOutput(output.version)
        text.string(group.name)
        text.length(group.max_pending)
        output.notes += [MAX_PENDING, b"".join(text.take())]


def note_times(output: RdbOutput, producer: Producer) -> None:
    """Note when iids of a producer were added, if their IDs do not say it."""
    text = RdbOutput(output.version)
    odd = False
    for iid, ms, seq, added_ms in producer.records():
        odd = odd or added_ms != ms
        if not odd:
            continue
        if not text.size_bytes:
            text.string(producer.pid)
        text.string(iid)
        text.length(ms)
        text.length(seq)
        text.length(added_ms)
        if text.size_bytes > _NOTE_BYTES:
            output.notes += [IID_TIMES, b"".join(text.take())]
    if text.size_bytes:
        output.notes += [IID_TIMES, b"".join(text.take())]


def take_moments(stream: Stream, source: RdbSource) -> None:
    """Read when entries go out by themselves. Raises CorruptRDB if they are none of this stream."""
    group = stream.groups.get(source.string())
    while source.left:
        ms, seq = _read_id(source)
        until_ms = source.signed(8)
        nack = None if group is None else group.pel.get(ms, seq)
        if group is None or nack is None or nack.consumer is not None or until_ms <= 0:
            raise source.damage("moments of released entries that are there")
        group.release(nack, until_ms)


def take_max_pending(stream: Stream, source: RdbSource) -> None:
    """Read the limits of groups. Raises CorruptRDB if they are none of this stream."""
    while source.left:
        group = stream.groups.get(source.string())
        limit = source.length()
        if group is None or not 0 < limit <= _INT64_MAX:
            raise source.damage("limits of groups that are there")
        group.max_pending = limit


def take_iid_times(stream: Stream, source: RdbSource) -> None:
    """Read when iids were added. Raises CorruptRDB if they are none of this stream."""
    idmp = stream.idmp
    pid = source.string()
    while source.left:
        iid = source.string()
        ms = source.length()
        seq = source.length()
        added_ms = min(source.length(), source.now_ms)
        if idmp is None or not iid or idmp.find(pid, iid_of(iid), 0) != (ms, seq):
            raise source.damage("iids that are there")
        stream.record_iid(pid, iid, ms, seq, added_ms)


KINDS: Final = (
    kinds.STREAM_5,
    kinds.STREAM_7_0,
    kinds.STREAM_7_2,
    kinds.STREAM_8_6,
    kinds.STREAM_8_8,
)
_DELETED: Final = 1
_SAME_FIELDS: Final = 2
_U64: Final = 2**64
_UNKNOWN: Final = 2**64 - 1  # as a length
_COUNT_MAX: Final = 2**63 - 1

_NODES_AT_ONCE: Final = 32
_AT_ONCE: Final = 1024  # pending entries, consumers or iids

Pending = tuple[int, int, int, int]  # delivery_ms, ms, seq, count


def read_stream(
    source: RdbSource, kind: int, idmp_duration_s: int, idmp_maxsize: int
) -> Iterator[object]:
    """Read the stream of this type that comes next; see ``RdbValues.read_rdb``.

    The limits of its IDMP map are given where its type has none. Raises CorruptRDB if there is no
    stream.
    """
    stream = Stream(idmp_duration_s, idmp_maxsize)
    yield from _read_nodes(source, stream)
    length = source.length()
    if length != stream.length:
        raise source.damage(f"a stream of {length} entries, but there were {stream.length}")
    stream.last_ms = source.length()
    stream.last_seq = source.length()
    stream.entries_added = length
    if kind >= kinds.STREAM_7_0:
        source.length()  # the first ID, which the entries show
        source.length()
        stream.max_deleted_ms = source.length()
        stream.max_deleted_seq = source.length()
        stream.entries_added = source.length()
    tail = stream.tail
    last = (stream.last_ms, stream.last_seq)
    if length and tail is not None and (tail.last_ms, tail.last_seq) > last:
        raise source.damage("no entry above the last ID")
    if (stream.max_deleted_ms, stream.max_deleted_seq) > last:
        raise source.damage("no deleted entry above the last ID")
    if not length <= stream.entries_added <= _COUNT_MAX:
        raise source.damage("as many entries added as there are, or more")
    for _ in range(source.length()):
        yield from _read_group(source, kind, stream)
    if kind >= kinds.STREAM_8_6:
        yield from _read_idmp(source, stream)
    yield stream


# Nodes


def _read_nodes(source: RdbSource, stream: Stream) -> Iterator[None]:
    above = (-1, 0)
    for number in range(1, source.length() + 1):
        if number % _NODES_AT_ONCE == 0:
            yield None
        name = source.string()
        if len(name) != 16:
            raise source.damage("a node under an ID")
        ms = int.from_bytes(name[:8], "big")
        seq = int.from_bytes(name[8:], "big")
        packed = source.string()
        if (ms, seq) <= above:
            raise source.damage("nodes in order")
        try:
            block = read_node(packed, ms, seq)
        except (Broken, IndexError, TypeError, ValueError) as error:
            raise source.damage("a sound node of a stream") from error
        if stream.tail is not None:
            _seal(stream, stream.tail)
        stream.tail = block
        stream.length += block.live
        above = (block.last_ms, block.last_seq)


def _seal(stream: Stream, block: Block) -> None:
    if block.live:
        block.seal()
        stream.index.add(block)


def read_node(packed: bytes, ms: int, seq: int) -> Block:
    """Return a node as an open block.

    Raises Broken, IndexError, TypeError or ValueError if it is none.
    """
    node = elements(packed)
    count = _number(node[0]) + _number(node[1])
    width = _number(node[2])
    names = [_text(name) for name in node[3 : 3 + width]]
    at = 4 + width
    block: Block | None = None
    dead: list[int] = []
    for number in range(count):
        flags = _number(node[at])
        entry_ms = (ms + _number(node[at + 1])) % _U64
        entry_seq = (seq + _number(node[at + 2])) % _U64
        at += 3
        words: list[bytes] = []
        if flags & _SAME_FIELDS:
            for name in names:
                words.append(name)
                words.append(_text(node[at]))
                at += 1
        else:
            fields = _number(node[at])
            for word in node[at + 1 : at + 1 + 2 * fields]:
                words.append(_text(word))
            at += 1 + 2 * fields
        at += 1  # how many elements that was
        if block is None:
            if (entry_ms, entry_seq) < (ms, seq):
                raise Broken
            block = open_block(ms, seq, words, 0)
        elif (entry_ms, entry_seq) <= (block.last_ms, block.last_seq):
            raise Broken
        if not words or len(words) % 2:
            raise Broken
        append(block, entry_ms, entry_seq, words, 0)
        if flags & _DELETED:
            dead.append(number)
    if block is None or at != len(node) or len(dead) != _number(node[1]):
        raise Broken
    for number in dead:
        block.bury(number)
    return block


def _number(element: bytes | int) -> int:
    """Return an element that has to be a number."""
    if isinstance(element, int):
        return element
    raise Broken


def _text(element: bytes | int) -> bytes:
    return b"%d" % element if isinstance(element, int) else element


# Groups


def _read_group(source: RdbSource, kind: int, stream: Stream) -> Iterator[None]:
    name = source.string()
    if name in stream.groups:
        raise source.damage("each group once")
    last_ms = source.length()
    last_seq = source.length()
    if kind >= kinds.STREAM_7_0:
        read = source.length()
        entries_read = UNKNOWN if read == _UNKNOWN else read
    else:
        entries_read = estimate_position(stream, last_ms, last_seq)
    if entries_read > _COUNT_MAX:
        raise source.damage("how many entries a group has read")
    group = Group(name, last_ms, last_seq, entries_read)
    pending: dict[tuple[int, int], Pending] = {}
    for number in range(1, source.length() + 1):
        if number % _AT_ONCE == 0:
            yield None
        ms, seq = _read_id(source)
        delivery_ms = source.signed(8)
        count = min(source.length(), _COUNT_MAX)
        if (ms, seq) in pending:
            raise source.damage("each pending entry once")
        pending[ms, seq] = (_moment(source, delivery_ms), ms, seq, count)
    owners: dict[tuple[int, int], Consumer] = {}
    for _ in range(source.length()):
        yield None
        member = source.string()
        if member in group.consumers:
            raise source.damage("each consumer once")
        consumer = group.create_consumer(member, _moment(source, source.signed(8)))
        active_ms = source.signed(8) if kind >= kinds.STREAM_7_2 else consumer.seen_ms
        consumer.active_ms = NEVER if active_ms < 0 else _moment(source, active_ms)
        for number in range(1, source.length() + 1):
            if number % _AT_ONCE == 0:
                yield None
            place = _read_id(source)
            if place not in pending or place in owners:
                raise source.damage("consumers that hold entries of their group, each once")
            owners[place] = consumer
    if kind >= kinds.STREAM_8_8:
        _read_released(source, group, pending, owners)
    if len(owners) != len(pending):
        raise source.damage("an owner of each pending entry")
    in_order = sorted(pending.values(), key=_delivery_ms)
    for at in range(0, len(in_order), _AT_ONCE):
        for delivery_ms, ms, seq, count in in_order[at : at + _AT_ONCE]:
            group.restore_pending(ms, seq, owners[ms, seq], delivery_ms, count)
        yield None
    stream.groups[name] = group


def _delivery_ms(pending: Pending) -> int:
    """Return the sort key of delivery: those of one time are claimed in file order, as in Redis."""
    return pending[0]


def _read_released(
    source: RdbSource,
    group: Group,
    pending: dict[tuple[int, int], Pending],
    owners: dict[tuple[int, int], Consumer],
) -> None:
    """Put the entries without a consumer into the zone, where they come before all others."""
    for _ in range(source.length()):
        place = _read_id(source)
        if place not in pending or place in owners:
            raise source.damage("released entries that no consumer holds, each once")
        count = pending.pop(place)[3]
        group.restore_pending(place[0], place[1], None, 0, count)


def _moment(source: RdbSource, moment_ms: int) -> int:
    """Return a moment that is not in the future."""
    return max(0, min(moment_ms, source.now_ms))


def _read_id(source: RdbSource) -> tuple[int, int]:
    raw = source.raw(16)
    return int.from_bytes(raw[:8], "big"), int.from_bytes(raw[8:], "big")


# The IDMP map


def _read_idmp(source: RdbSource, stream: Stream) -> Iterator[None]:
    """Read its limits, each producer with its iids, oldest first, and counters.

    An iid has no time of its own: it was added when the ID of its entry says.
    """
    duration_s = source.length()
    maxsize = source.length()
    if not (0 < duration_s <= IDMP_DURATION_S_MAX and 0 < maxsize <= IDMP_MAXSIZE_MAX):
        raise source.damage("limits of iids that can be set")
    stream.limit_idmp(duration_s, maxsize)
    for _ in range(source.length()):
        pid = source.string()
        for number in range(source.length()):
            if number % _AT_ONCE == 0:
                yield None
            iid = source.string()
            ms = source.length()
            seq = source.length()
            if not pid or not iid:
                raise source.damage("producers and iids with a name")
            stream.record_iid(pid, iid, ms, seq, min(ms, source.now_ms))
    stream.iids_added = min(source.length(), _COUNT_MAX)
    stream.iids_duplicates = min(source.length(), _COUNT_MAX)


VERSION_7_0: Final = 10  # of RDB
VERSION_7_2: Final = 11
VERSION_8_6: Final = 13
VERSION_8_8: Final = 14
BLOCKS_AT_ONCE: Final = 2
CONSUMERS_AT_ONCE: Final = 500
PENDING_AT_ONCE: Final = 500
_ID: Final = Struct(">QQ")
_MOMENT: Final = Struct("<Q")  # behind an ID
_ID_BYTES: Final = 16
_OTHER_FIELDS: Final = 0
_Pending = tuple[int, int, int, int, int]  # ID, owner, time and number of deliveries


def stream_type(version: int) -> int:
    """Return the type in which a file of this version holds streams."""
    if kinds.is_valkey_version(version):
        return kinds.STREAM_7_2
    if version >= VERSION_8_8:
        return kinds.STREAM_8_8
    if version >= VERSION_8_6:
        return kinds.STREAM_8_6
    return kinds.STREAM_7_2 if version >= VERSION_7_2 else kinds.STREAM_7_0


class StreamRdb(Walk):
    """Writes one frozen stream, part by part."""

    def __init__(self, output: RdbOutput, stream: FrozenStream) -> None:
        self._output: Final = output
        self._kind: Final = stream_type(output.version)
        self._stream: Final = stream
        self._first: tuple[int, int] | None = None
        self._entries_left = True
        self._next_group = 0
        self._group: _GroupRdb | None = None
        self._producers_left = False
        tail = stream.tail
        self._tail: Final = tail if tail is not None and tail.live else None
        output.length(stream.blocks + (0 if self._tail is None else 1))

    def step(self) -> bool:
        stream = self._stream
        if self._entries_left:
            blocks = stream.next_blocks(BLOCKS_AT_ONCE)
            for block in blocks:
                self._node(block)
            if not blocks:
                self._entries_left = False
                if self._tail is not None:
                    self._node(self._tail)
                self._counters()
            return True
        if self._group is not None:
            if not self._group.step():
                self._group = None
            return True
        if self._next_group < len(stream.groups):
            group = stream.groups[self._next_group]
            self._group = _GroupRdb(self._output, self._kind, group)
            self._next_group += 1
            return True
        if self._kind < kinds.STREAM_8_6:
            return False
        if not self._producers_left:
            self._producers_left = True
            self._output.length(stream.idmp_duration_s)
            self._output.length(stream.idmp_maxsize)
            self._output.length(stream.producers)
            return True
        producer = stream.next_producer()
        if producer is not None:
            self._producer(producer)
            return True
        self._output.length(stream.iids_added)
        self._output.length(stream.iids_duplicates)
        return False

    def _node(self, block: Block) -> None:
        run = block.run
        if run is None:
            run = block.decode()
        ms, seq, packed = node(run, block.dead)
        if self._first is None:
            self._first = (ms, seq)
        self._output.string(_ID.pack(ms, seq))
        self._output.string(packed)

    def _counters(self) -> None:
        stream = self._stream
        output = self._output
        first_ms, first_seq = self._first or (0, 0)
        for number in (
            *(stream.length, stream.last_ms, stream.last_seq, first_ms, first_seq),
            *(stream.max_deleted_ms, stream.max_deleted_seq, stream.entries_added),
            len(stream.groups),
        ):
            output.length(number)

    def _producer(self, producer: Producer) -> None:
        output = self._output
        note_times(output, producer)
        output.string(producer.pid)
        output.length(int(producer.count))
        for iid, ms, seq, _ in producer.records():
            output.string(iid)
            output.length(ms)
            output.length(seq)


class _GroupRdb:
    """Writes one group: its pending entries by ID, then its consumers, each with IDs of its own.

    The released ones stand once more at the end, in the order of their release.
    """

    def __init__(self, output: RdbOutput, kind: int, group: FrozenGroup) -> None:
        self._output: Final = output
        self._moments: Final = bytearray()
        self._kind: Final = kind
        self._group: Final = group
        self._owned: Final = [bytearray() for _ in group.consumers]
        self._released: Final = bytearray()
        self._pending: list[_Pending] = []  # to be written, the next one last
        self._unread = True
        self._next = 0
        pending = group.pending
        if kind < kinds.STREAM_8_8:  # those without a consumer are left out
            pending = sum([consumer.pending for consumer in group.consumers])
        note_group(output, group)
        output.string(group.name)
        output.length(group.last_ms)
        output.length(group.last_seq)
        output.length(_UNKNOWN if group.entries_read == UNKNOWN else group.entries_read)
        output.length(pending)

    def step(self) -> bool:
        """Write some of it. Return False at the end."""
        output = self._output
        consumers = self._group.consumers
        if self._unread:
            self._unread = self._read_some()
            if not self._unread:
                self._pending.sort(reverse=True)
            return True
        if self._pending:
            self._some_pending()
            return True
        if not self._next:
            output.length(len(consumers))
        start = self._next
        self._next = min(start + CONSUMERS_AT_ONCE, len(consumers))
        for place in range(start, self._next):
            self._consumer(place)
        if self._next < len(consumers):
            return True
        if self._kind >= kinds.STREAM_8_8:
            output.length(len(self._released) // _ID_BYTES)
            output.raw(bytes(self._released))
        return False

    def _read_some(self) -> bool:
        """Take some of the pending entries, which come in the order in which they are claimed."""
        some = self._group.next_pending()
        if some is None:
            if self._moments:
                text = RdbOutput(self._output.version)
                text.string(self._group.name)
                text.raw(bytes(self._moments))
                self._output.notes += [MOMENTS, b"".join(text.take())]
                self._moments.clear()
            return False
        for number in range(len(some.ms)):
            ms = some.ms[number]
            seq = some.seq[number]
            owner = some.owners[number]
            if owner == NO_OWNER:
                if self._kind < kinds.STREAM_8_8:
                    continue
                self._released.extend(_ID.pack(ms, seq))
                if some.delivery_ms[number]:
                    self._moments.extend(_ID.pack(ms, seq) + _MOMENT.pack(some.delivery_ms[number]))
            delivery_ms = 0 if owner == NO_OWNER else some.delivery_ms[number]
            self._pending.append((ms, seq, owner, delivery_ms, some.counts[number]))
        return True

    def _some_pending(self) -> None:
        output = self._output
        pending = self._pending
        for _ in range(min(PENDING_AT_ONCE, len(pending))):
            ms, seq, owner, delivery_ms, count = pending.pop()
            entry_id = _ID.pack(ms, seq)
            if owner != NO_OWNER:
                self._owned[owner] += entry_id
            output.raw(entry_id)
            output.little(delivery_ms, 8)
            output.length(count)

    def _consumer(self, place: int) -> None:
        output = self._output
        consumer = self._group.consumers[place]
        output.string(consumer.name)
        output.little(consumer.seen_ms, 8)
        if self._kind >= kinds.STREAM_7_2:
            output.little(consumer.active_ms, 8)
        ids = bytes(self._owned[place])
        self._owned[place] = bytearray()
        output.length(len(ids) // _ID_BYTES)
        output.raw(ids)


def node(run: Run, dead: bytearray | None) -> tuple[int, int, bytes]:
    """Return the live entries, at least one, as a node of Redis: its ID and its listpack.

    The listpack begins with how many entries live and are deleted, and the field names of the first
    one. Each entry has a flag that says whether it has those names, the difference of its ID to the
    first one's, its fields, and how many elements that was.
    """
    live = [n for n in range(len(run.ms)) if dead is None or not dead[n]]
    first = live[0]
    first_ms = run.ms[first]
    first_seq = run.seq[first]
    names = run.row(first)[::2]
    packed = Listpack()
    for number in (len(live), 0, len(names)):
        packed.integer(number)
    for name in names:
        packed.text(name)
    packed.integer(0)
    for number in live:
        row = run.row(number)
        same = run.names is not None or row[::2] == names
        packed.integer(_SAME_FIELDS if same else _OTHER_FIELDS)
        packed.integer(_wrapped(run.ms[number] - first_ms))
        packed.integer(_wrapped(run.seq[number] - first_seq))
        words = row
        if same:
            words = row[1::2]
        else:
            packed.integer(len(row) // 2)
        for word in words:
            packed.text(word)
        packed.integer(len(words) + 3 if same else len(words) + 4)
    return first_ms, first_seq, packed.packed()


def _wrapped(difference: int) -> int:
    """Return a difference modulo 2^64, as a signed integer."""
    if -(2**63) <= difference < 2**63:
        return difference
    return difference - 2**64 if difference > 0 else difference + 2**64
