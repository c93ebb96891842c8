"""Writes streams into RDB: in the type of Redis 7.0, 7.2, 8.6 or 8.8, by the version of the file.

``rdb`` says what they consist of. Entries that were deleted are left out. A block becomes a node
with the same entries, so that approximate trimming cuts there where it would cut here. A type that
has no released entries, no IDMP map, or no moment when a consumer was active, loses those.
What no type has goes into notes (``rdb_notes``).
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.forms.stream.rdb_notes import note_group, note_times
from headrace.persistence.rdb.kinds import (
    STREAM_7_0,
    STREAM_7_2,
    STREAM_8_6,
    STREAM_8_8,
    is_valkey_version,
)
from headrace.persistence.rdb.listpack import Listpack
from headrace.persistence.rdb.output import RdbOutput
from headrace.storage.stream.block import Block
from headrace.storage.stream.frozen import NO_OWNER, FrozenGroup, FrozenStream
from headrace.storage.stream.groups import UNKNOWN
from headrace.storage.stream.producer import Producer
from headrace.storage.stream.run import Run

VERSION_7_0: Final = 10  # of RDB
VERSION_7_2: Final = 11
VERSION_8_6: Final = 13
VERSION_8_8: Final = 14
BLOCKS_AT_ONCE: Final = 2
CONSUMERS_AT_ONCE: Final = 500
PENDING_AT_ONCE: Final = 500
_ID: Final = Struct(">QQ")
_ID_BYTES: Final = 16
_UNKNOWN: Final = 2**64 - 1
_SAME_FIELDS: Final = 2
_OTHER_FIELDS: Final = 0
_Pending = tuple[int, int, int, int, int]  # ID, owner, time and number of deliveries


def stream_type(version: int) -> int:
    """In which type a file of this version holds streams."""
    if is_valkey_version(version):
        return STREAM_7_2
    if version >= VERSION_8_8:
        return STREAM_8_8
    if version >= VERSION_8_6:
        return STREAM_8_6
    return STREAM_7_2 if version >= VERSION_7_2 else STREAM_7_0


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
        """See ``Walk``."""
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
        if self._kind < STREAM_8_6:
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
        self._kind: Final = kind
        self._group: Final = group
        self._owned: Final = [bytearray() for _ in group.consumers]
        self._released: Final = bytearray()
        self._pending: list[_Pending] = []  # to be written, the next one last
        self._unread = True
        self._next = 0
        pending = group.pending
        if kind < STREAM_8_8:  # those that nobody holds are left out
            pending = sum([consumer.pending for consumer in group.consumers])
        note_group(output, group)
        output.string(group.name)
        output.length(group.last_ms)
        output.length(group.last_seq)
        output.length(_UNKNOWN if group.entries_read == UNKNOWN else group.entries_read)
        output.length(pending)

    def step(self) -> bool:
        """Write some of it; False at the end."""
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
        if self._kind >= STREAM_8_8:
            output.length(len(self._released) // _ID_BYTES)
            output.raw(bytes(self._released))
        return False

    def _read_some(self) -> bool:
        """Take some of the pending entries, which come in the order in which they are claimed."""
        some = self._group.next_pending()
        if some is None:
            return False
        for number in range(len(some.ms)):
            ms = some.ms[number]
            seq = some.seq[number]
            owner = some.owners[number]
            if owner == NO_OWNER:
                if self._kind < STREAM_8_8:
                    continue
                self._released.extend(_ID.pack(ms, seq))
            self._pending.append((ms, seq, owner, some.delivery_ms[number], some.counts[number]))
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
        if self._kind >= STREAM_7_2:
            output.little(consumer.active_ms, 8)
        ids = bytes(self._owned[place])
        self._owned[place] = bytearray()
        output.length(len(ids) // _ID_BYTES)
        output.raw(ids)


def node(run: Run, dead: bytearray | None) -> tuple[int, int, bytes]:
    """The entries that live, at least one, as a node of Redis: its ID and its listpack.

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
    """A difference modulo 2^64, as a signed integer."""
    if -(2**63) <= difference < 2**63:
        return difference
    return difference - 2**64 if difference > 0 else difference + 2**64
