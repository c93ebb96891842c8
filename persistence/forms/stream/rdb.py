"""Streams in RDB files, from Redis 5 to 8.10: types 15, 19, 21, 26 and 27.

A stream is its nodes, each a listpack under the ID of its first entry; counters; groups with their
pending entries and consumers. Type 19 (Redis 7.0) added what was ever added and deleted and what
groups have read, type 21 (7.2) when consumers were last active, type 26 (8.6) the IDMP map behind
the groups, type 27 (8.8) which entries of a group were released, first released first.

A node becomes a block with the same entries, deleted ones included, so that approximate trimming
goes on cutting where it would have cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.persistence.rdb.broken import Broken
from headrace.persistence.rdb.kinds import (
    STREAM_5,
    STREAM_7_0,
    STREAM_7_2,
    STREAM_8_6,
    STREAM_8_8,
)
from headrace.persistence.rdb.listpack import elements
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.stream.appending import append, open_block
from headrace.storage.stream.block import Block
from headrace.storage.stream.contents import IDMP_DURATION_S_MAX, IDMP_MAXSIZE_MAX
from headrace.storage.stream.groups import (
    NEVER,
    UNKNOWN,
    Consumer,
    Group,
    estimate_position,
)
from headrace.storage.stream.stream import Stream

KINDS: Final = (STREAM_5, STREAM_7_0, STREAM_7_2, STREAM_8_6, STREAM_8_8)
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

    Args:
        idmp_duration_s, idmp_maxsize: the limits of its IDMP map, where its type has none.

    Raises:
        CorruptRDB: there is none.
    """
    stream = Stream(idmp_duration_s, idmp_maxsize)
    yield from _read_nodes(source, stream)
    length = source.length()
    if length != stream.length:
        raise source.damage(f"a stream of {length} entries, but there were {stream.length}")
    stream.last_ms = source.length()
    stream.last_seq = source.length()
    stream.entries_added = length
    if kind >= STREAM_7_0:
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
    if kind >= STREAM_8_6:
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
    """A node as an open block.

    Raises:
        Broken, IndexError, TypeError, ValueError: it is none.
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
    """An element that has to be a number."""
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
    if kind >= STREAM_7_0:
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
        active_ms = source.signed(8) if kind >= STREAM_7_2 else consumer.seen_ms
        consumer.active_ms = NEVER if active_ms < 0 else _moment(source, active_ms)
        for number in range(1, source.length() + 1):
            if number % _AT_ONCE == 0:
                yield None
            place = _read_id(source)
            if place not in pending or place in owners:
                raise source.damage("consumers that hold entries of their group, each once")
            owners[place] = consumer
    if kind >= STREAM_8_8:
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
    """Those delivered at one time are claimed in the order of the file, as in Redis."""
    return pending[0]


def _read_released(
    source: RdbSource,
    group: Group,
    pending: dict[tuple[int, int], Pending],
    owners: dict[tuple[int, int], Consumer],
) -> None:
    """Put the entries that nobody holds into the zone, where they come before all others."""
    for _ in range(source.length()):
        place = _read_id(source)
        if place not in pending or place in owners:
            raise source.damage("released entries that nobody holds, each once")
        count = pending.pop(place)[3]
        group.restore_pending(place[0], place[1], None, 0, count)


def _moment(source: RdbSource, moment_ms: int) -> int:
    """A moment that has come."""
    return max(0, min(moment_ms, source.now_ms))


def _read_id(source: RdbSource) -> tuple[int, int]:
    raw = source.raw(16)
    return int.from_bytes(raw[:8], "big"), int.from_bytes(raw[8:], "big")


# The IDMP map


def _read_idmp(source: RdbSource, stream: Stream) -> Iterator[None]:
    """Its limits, each producer with its iids, oldest first, and counters.

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
