"""Streams in RDB files, from Redis 5 to 8: types 15, 19 and 21.

A stream is its nodes, each a listpack under the ID of its first entry; counters; groups with their
pending entries and consumers. Type 19 (Redis 7.0) added what was ever added and deleted and what
groups have read, type 21 (7.2) when consumers were last active.

A node becomes a block with the same entries, deleted ones included, so that approximate trimming
goes on cutting where it would have cut.
"""

from __future__ import annotations

from typing import Final

from persistence.rdb.listpack import BrokenListpack, elements
from persistence.rdb.source import RdbSource
from storage.stream.appending import append, open_block
from storage.stream.block import Block
from storage.stream.groups import UNKNOWN, Consumer, Group, estimate_position
from storage.stream.stream import Stream

STREAM_5: Final = 15
STREAM_7_0: Final = 19
STREAM_7_2: Final = 21
_DELETED: Final = 1
_SAME_FIELDS: Final = 2
_U64: Final = 2**64
_UNKNOWN: Final = 2**64 - 1  # as a length

Pending = tuple[int, int, int, int]  # delivery_ms, ms, seq, count


def read_stream(source: RdbSource, kind: int) -> Stream:
    """The stream of this type that comes next.

    Raises:
        CorruptRDB: there is none.
    """
    stream = Stream(0, 0)
    _read_nodes(source, stream)
    length = source.length()
    if length != stream.length:
        raise source.damage(f"a stream of {length} entries, but there were {stream.length}")
    stream.last_ms = source.length()
    stream.last_seq = source.length()
    stream.entries_added = length
    if kind >= STREAM_7_0:
        source.length()  # the first ID, which the entries tell
        source.length()
        stream.max_deleted_ms = source.length()
        stream.max_deleted_seq = source.length()
        stream.entries_added = source.length()
    for _ in range(source.length()):
        group = _read_group(source, kind, stream)
        if group.name in stream.groups:
            raise source.damage("each group once")
        stream.groups[group.name] = group
    return stream


# Nodes


def _read_nodes(source: RdbSource, stream: Stream) -> None:
    above = (-1, 0)
    for _ in range(source.length()):
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
        except (BrokenListpack, IndexError, TypeError, ValueError) as error:
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
        BrokenListpack, IndexError, TypeError, ValueError: it is none.
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
            block = open_block(ms, seq, words, 0)
        elif (entry_ms, entry_seq) <= (block.last_ms, block.last_seq):
            raise BrokenListpack
        if not words or len(words) % 2:
            raise BrokenListpack
        append(block, entry_ms, entry_seq, words, 0)
        if flags & _DELETED:
            dead.append(number)
    if block is None or at != len(node) or len(dead) != _number(node[1]):
        raise BrokenListpack
    for number in dead:
        block.bury(number)
    return block


def _number(element: bytes | int) -> int:
    """An element that has to be a number."""
    if isinstance(element, int):
        return element
    raise BrokenListpack


def _text(element: bytes | int) -> bytes:
    return b"%d" % element if isinstance(element, int) else element


# Groups


def _read_group(source: RdbSource, kind: int, stream: Stream) -> Group:
    name = source.string()
    last_ms = source.length()
    last_seq = source.length()
    if kind >= STREAM_7_0:
        read = source.length()
        entries_read = UNKNOWN if read == _UNKNOWN else read
    else:
        entries_read = estimate_position(stream, last_ms, last_seq)
    group = Group(name, last_ms, last_seq, entries_read)
    pending: dict[tuple[int, int], Pending] = {}
    for _ in range(source.length()):
        ms, seq = _read_id(source)
        delivery_ms = source.signed(8)
        pending[ms, seq] = (max(0, delivery_ms), ms, seq, source.length())
    owners: dict[tuple[int, int], Consumer] = {}
    for _ in range(source.length()):
        consumer = group.create_consumer(source.string(), source.signed(8))
        consumer.active_ms = source.signed(8) if kind >= STREAM_7_2 else consumer.seen_ms
        for _ in range(source.length()):
            place = _read_id(source)
            if place not in pending or place in owners:
                raise source.damage("consumers that hold entries of their group, each once")
            owners[place] = consumer
    if len(owners) != len(pending):
        raise source.damage("an owner of each pending entry")
    for delivery_ms, ms, seq, count in sorted(pending.values()):
        group.restore_pending(ms, seq, owners[ms, seq], delivery_ms, count)
    return group


def _read_id(source: RdbSource) -> tuple[int, int]:
    raw = source.raw(16)
    return int.from_bytes(raw[:8], "big"), int.from_bytes(raw[8:], "big")
