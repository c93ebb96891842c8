"""Turns keys and values into the frames of a snapshot, without copying what they hold.

The encoder only collects references: a block's payload, a key, a value go into a list as they are,
and a row of numbers beside them says how long they are. Whole frames gather in ``frames``; whoever
drives the encoder takes them from there and has them joined, checksummed and written
(``persistence.snapshot.file``), which a thread can do while this goes on.
"""

from __future__ import annotations

from typing import Final

from msgspec.msgpack import Encoder as Packer

from persistence.snapshot.layout import (
    BLOCKS,
    CONSUMERS,
    DATABASE,
    END,
    GROUP,
    HEADER,
    INTEGERS,
    MORTAL_INTEGERS,
    MORTAL_STRINGS,
    NO_DEADLINE,
    OPEN_BLOCK,
    PENDING,
    PRODUCERS,
    RECORD_HEAD,
    STREAM,
    STRINGS,
    WRAP,
)
from storage.stream.block import Block

FRAME_BYTES: Final = 1 << 20  # from which on a frame is whole
TABLE_NUMBERS: Final = 1 << 13  # in the table of one record, about

_pack: Final = Packer().encode


class _Record:
    """A record that is being put together."""

    def __init__(self, kind: int) -> None:
        self.kind: Final = kind
        self.table: list[int] = []
        self.data: list[bytes] = []
        self.size = 0  # of the data


class StreamFacts:
    """What a snapshot says of a stream before its blocks.

    Attributes:
        blocks: sealed blocks that will follow; groups, producers: likewise.
        has_open_block: whether an open block follows them.
        The others are those of ``storage.stream.stream.Stream``.
    """

    def __init__(self) -> None:
        self.length = 0
        self.last_ms = 0
        self.last_seq = 0
        self.max_deleted_ms = 0
        self.max_deleted_seq = 0
        self.entries_added = 0
        self.idmp_duration_s = 0
        self.idmp_maxsize = 0
        self.iids_added = 0
        self.iids_duplicates = 0
        self.blocks = 0
        self.has_open_block = False
        self.groups = 0
        self.producers = 0


class Encoder:
    """Collects records into frames.

    Call ``begin``, then for each database ``database`` and its keys, then ``end``. A stream is
    ``stream`` and then, in this order, its blocks, its open block, each group with its consumers
    and pending entries, its producers; and ``stream_done``.

    Attributes:
        frames: whole frames, oldest first, each a list of pieces; the driver takes them out.
        frames_bytes: what they hold together; the driver counts down what it takes.
        keys, entries: how many keys and entries of streams were encoded so far.
    """

    def __init__(self) -> None:
        self.frames: list[list[bytes]] = []
        self.frames_bytes = 0
        self.keys = 0
        self.entries = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._strings: Final = [
            _Record(STRINGS),
            _Record(INTEGERS),
            _Record(MORTAL_STRINGS),
            _Record(MORTAL_INTEGERS),
        ]
        self._blocks: Final = _Record(BLOCKS)
        self._last_block_ms = 0
        self._consumers: Final = _Record(CONSUMERS)
        self._pending: Final = _Record(PENDING)
        self._nack_ms = 0
        self._nack_seq = 0
        self._nack_delivery_ms = 0
        self._producers: Final = _Record(PRODUCERS)

    # The file

    def begin(self, version: bytes, created_ms: int, is_base: bool, databases: int) -> None:
        """Start.

        Args:
            version: of the server, for people to read.
            created_ms: the moment whose state this is.
            is_base: it is the base of an append-only folder, and incr files may follow.
            databases: how many the server has.
        """
        header = _Record(HEADER)
        header.table = [created_ms, 1 if is_base else 0, databases, len(version)]
        header.data = [version]
        header.size = len(version)
        self._put(header)

    def database(self, index: int) -> None:
        """The keys that follow are of this database."""
        self._put_strings()
        record = _Record(DATABASE)
        record.table = [index]
        self._put(record)

    def end(self) -> None:
        """Everything has been encoded."""
        self._put_strings()
        record = _Record(END)
        record.table = [self.keys, self.entries]
        self._put(record)
        self.flush()

    def flush(self) -> None:
        """Make a frame of what there is."""
        if self._pieces:
            self.frames.append(self._pieces)
            self.frames_bytes += self._size
            self._pieces = []
            self._size = 0

    # Strings

    def string(self, key: bytes, value: bytes, expire_ms: int) -> None:
        """A key that holds a string; ``expire_ms`` is ``NO_DEADLINE`` or a deadline."""
        self.keys += 1
        record = self._strings[0 if expire_ms == NO_DEADLINE else 2]
        table = record.table
        table.append(len(key))
        table.append(len(value))
        if expire_ms != NO_DEADLINE:
            table.append(expire_ms)
        record.data.append(key)
        record.data.append(value)
        record.size += len(key) + len(value)
        if record.size > FRAME_BYTES or len(table) > TABLE_NUMBERS:
            self._put(record)

    def integer(self, key: bytes, value: int, expire_ms: int) -> None:
        """A key that holds a string which spells a 64-bit integer."""
        self.keys += 1
        record = self._strings[1 if expire_ms == NO_DEADLINE else 3]
        table = record.table
        table.append(len(key))
        table.append(value)
        if expire_ms != NO_DEADLINE:
            table.append(expire_ms)
        record.data.append(key)
        record.size += len(key)
        if record.size > FRAME_BYTES or len(table) > TABLE_NUMBERS:
            self._put(record)

    def _put_strings(self) -> None:
        for record in self._strings:
            self._put(record)

    # Streams

    def stream(self, key: bytes, expire_ms: int, facts: StreamFacts) -> None:
        """A key that holds a stream; what it consists of follows."""
        self.keys += 1
        self.entries += facts.length
        record = _Record(STREAM)
        record.table = [
            len(key),
            expire_ms,
            facts.length,
            facts.last_ms,
            facts.last_seq,
            facts.max_deleted_ms,
            facts.max_deleted_seq,
            facts.entries_added,
            facts.idmp_duration_s,
            facts.idmp_maxsize,
            facts.iids_added,
            facts.iids_duplicates,
            facts.blocks,
            1 if facts.has_open_block else 0,
            facts.groups,
            facts.producers,
        ]
        record.data = [key]
        record.size = len(key)
        self._put(record)

    def blocks(self, blocks: list[Block], start: int, stop: int) -> None:
        """Those of the sealed ``blocks[start:stop]`` that have entries."""
        record = self._blocks
        for place in range(start, stop):
            block = blocks[place]
            if block.live:
                self._add_block(record, block, block.payload, block.ids_bytes)
                if record.size > FRAME_BYTES or len(record.table) > TABLE_NUMBERS:
                    self.blocks_done()

    def blocks_done(self) -> None:
        """The sealed blocks of the stream have all been given."""
        self._put(self._blocks)
        self._last_block_ms = 0

    def open_block(self, block: Block) -> None:
        """The stream's open block."""
        record = _Record(OPEN_BLOCK)
        payload, ids_bytes = block.packed()
        self._last_block_ms = 0
        self._add_block(record, block, payload, ids_bytes)
        self._last_block_ms = 0
        self._put(record)

    def _add_block(self, record: _Record, block: Block, payload: bytes, ids_bytes: int) -> None:
        dead = block.dead
        stored = block.live if dead is None else len(dead)
        first_ms = block.first_ms
        last_ms = block.last_ms
        table = record.table
        table.append(first_ms - self._last_block_ms)
        table.append(block.first_seq)
        table.append(last_ms - first_ms)
        table.append(block.last_seq)
        table.append(stored)
        table.append(block.total - stored)
        table.append(stored - block.live)
        table.append(block.node_bytes)
        table.append(ids_bytes)
        table.append(len(payload))
        self._last_block_ms = last_ms
        record.data.append(payload)
        record.size += len(payload)
        if stored != block.live:
            assert dead is not None
            bits = dead_bits(dead)
            record.data.append(bits)
            record.size += len(bits)

    # Groups

    def group(
        self,
        name: bytes,
        last_ms: int,
        last_seq: int,
        entries_read: int,
        max_pending: int,
        consumers: int,
        pending: int,
    ) -> None:
        """A group of the stream; so many consumers and pending entries follow."""
        record = _Record(GROUP)
        record.table = [
            len(name),
            last_ms,
            last_seq,
            entries_read,
            max_pending,
            consumers,
            pending,
        ]
        record.data = [name]
        record.size = len(name)
        self._put(record)

    def consumer(self, name: bytes, seen_ms: int, active_ms: int) -> None:
        """A consumer of the group; the first one has number 1."""
        record = self._consumers
        record.table.append(len(name))
        record.table.append(seen_ms)
        record.table.append(active_ms)
        record.data.append(name)
        record.size += len(name)
        if record.size > FRAME_BYTES or len(record.table) > TABLE_NUMBERS:
            self._put(record)

    def consumers_done(self) -> None:
        """The consumers of the group have all been given."""
        self._put(self._consumers)

    def pending(self, ms: int, seq: int, consumer: int, delivery_ms: int, count: int) -> None:
        """A pending entry of the group, in the order of claiming.

        Args:
            consumer: the number of who holds it; 0 when it was released.
        """
        table = self._pending.table
        if not table:
            self._nack_ms = 0
            self._nack_seq = 0
            self._nack_delivery_ms = 0
        delta_ms = ms - self._nack_ms
        if delta_ms == 0:
            seq_number = seq - self._nack_seq
            if seq_number < 0:
                seq_number += WRAP
        else:
            seq_number = seq
            if delta_ms < 0:
                delta_ms += WRAP
        delta_delivery_ms = delivery_ms - self._nack_delivery_ms
        if delta_delivery_ms < 0:
            delta_delivery_ms += WRAP
        table.append(delta_ms)
        table.append(seq_number)
        table.append(consumer)
        table.append(delta_delivery_ms)
        table.append(count)
        self._nack_ms = ms
        self._nack_seq = seq
        self._nack_delivery_ms = delivery_ms
        if len(table) > TABLE_NUMBERS:
            self._put(self._pending)

    def pending_done(self) -> None:
        """The pending entries of the group have all been given."""
        self._put(self._pending)

    # Records

    def _put(self, record: _Record) -> None:
        """Put a record that is not empty into the frame at hand, and empty it."""
        if not record.table:
            return
        table = _pack(record.table)
        pieces = self._pieces
        pieces.append(RECORD_HEAD.pack(record.kind, len(table)))
        pieces.append(table)
        pieces.extend(record.data)
        self._size += RECORD_HEAD.size + len(table) + record.size
        record.table = []
        record.data = []
        record.size = 0
        if self._size >= FRAME_BYTES:
            self.flush()


def dead_bits(dead: bytearray) -> bytes:
    """One bit for each entry, the lowest of a byte first: 1 is deleted."""
    bits = bytearray((len(dead) + 7) >> 3)
    number = dead.find(1)
    while number >= 0:
        bits[number >> 3] |= 1 << (number & 7)
        number = dead.find(1, number + 1)
    return bytes(bits)
