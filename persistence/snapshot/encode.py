"""Turns keys and values into the records of a snapshot, without copying what they hold.

References are collected: a block's payload, a large value go into a list as they are, and a row of
numbers beside them says how long they are. Only short keys and values are copied, many at once.
"""

from __future__ import annotations

from typing import Final

from msgspec.msgpack import Encoder as Packer

from headrace.persistence.snapshot.layout import (
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
    PRODUCER,
    RECORD_HEAD,
    STREAM,
    STRINGS,
    WRAP,
)
from headrace.storage.stream.block import Block
from headrace.storage.stream.frozen import (
    FrozenConsumer,
    FrozenGroup,
    FrozenStream,
    Pending,
)
from headrace.storage.stream.producer import Producer

PAYLOAD_BYTES: Final = 1 << 20  # from which on it is large enough
# Pieces shorter than this on average are joined: to go through each costs more than its copy.
JOINED_BELOW_BYTES: Final = 512
BLOCKS_AT_ONCE: Final = 64
CONSUMERS_AT_ONCE: Final = 500
TABLE_NUMBERS: Final = 1 << 13  # in the table of one record, about

_pack: Final = Packer().encode


class _Record:
    """A record that is being put together."""

    def __init__(self, kind: int) -> None:
        self.kind: Final = kind
        self.table: list[int] = []
        self.data: list[bytes] = []
        self.size = 0  # of the data


class Records:
    """Collects records into payloads of frames.

    Call ``begin``, then for each database ``database`` and its keys, then ``end``. A stream is
    ``stream`` and then, in this order, its blocks, its open block, each group with its consumers
    and pending entries, and its producers.

    Attributes:
        payloads: those that are large enough, oldest first, each a list of pieces.
        keys, entries: how many keys and entries of streams were encoded so far.
    """

    def __init__(self) -> None:
        self.payloads: list[list[bytes]] = []
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
        self._flush()

    def flush(self) -> None:
        """Make a payload of what there is."""
        self._put_strings()
        self._flush()

    def _flush(self) -> None:
        if self._pieces:
            self.payloads.append(self._pieces)
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
        if record.size > PAYLOAD_BYTES or len(table) > TABLE_NUMBERS:
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
        if record.size > PAYLOAD_BYTES or len(table) > TABLE_NUMBERS:
            self._put(record)

    def _put_strings(self) -> None:
        for record in self._strings:
            self._put(record)

    # Streams

    def stream(self, key: bytes, expire_ms: int, stream: FrozenStream) -> None:
        """A key that holds a stream; what it consists of follows."""
        self.keys += 1
        self.entries += stream.length
        record = _Record(STREAM)
        record.table = [
            len(key),
            expire_ms,
            stream.length,
            stream.last_ms,
            stream.last_seq,
            stream.max_deleted_ms,
            stream.max_deleted_seq,
            stream.entries_added,
            stream.idmp_duration_s,
            stream.idmp_maxsize,
            stream.iids_added,
            stream.iids_duplicates,
            stream.blocks,
            0 if stream.tail is None else 1,
            len(stream.groups),
            stream.producers,
        ]
        record.data = [key]
        record.size = len(key)
        self._put(record)

    def blocks(self, blocks: list[Block]) -> None:
        """Some of the stream's sealed blocks."""
        record = self._blocks
        for block in blocks:
            self._add_block(record, block, block.payload, block.ids_bytes)
            if record.size > PAYLOAD_BYTES or len(record.table) > TABLE_NUMBERS:
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

    def group(self, group: FrozenGroup) -> None:
        """A group of the stream; its consumers and pending entries follow."""
        name = group.name
        record = _Record(GROUP)
        record.table = [
            len(name),
            group.last_ms,
            group.last_seq,
            group.entries_read,
            group.max_pending,
            len(group.consumers),
            group.pending,
        ]
        record.data = [name]
        record.size = len(name)
        self._put(record)

    def consumers(self, consumers: list[FrozenConsumer]) -> None:
        """Some of the group's consumers, in the order of the numbers that entries refer to."""
        for consumer in consumers:
            self._add_consumer(consumer)

    def consumers_done(self) -> None:
        """The consumers of the group have all been given."""
        self._put(self._consumers)

    def _add_consumer(self, consumer: FrozenConsumer) -> None:
        record = self._consumers
        record.table.append(len(consumer.name))
        record.table.append(consumer.seen_ms)
        record.table.append(consumer.active_ms)
        record.data.append(consumer.name)
        record.size += len(consumer.name)
        if record.size > PAYLOAD_BYTES or len(record.table) > TABLE_NUMBERS:
            self._put(record)

    def pending(self, some: Pending) -> None:
        """Some of the group's pending entries, in the order of claiming."""
        for number in range(len(some.ms)):
            self._add_pending(
                some.ms[number],
                some.seq[number],
                some.owners[number] + 1,
                some.delivery_ms[number],
                some.counts[number],
            )
        if len(self._pending.table) > TABLE_NUMBERS:
            self.pending_done()

    def _add_pending(self, ms: int, seq: int, owner: int, delivery_ms: int, count: int) -> None:
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
        table.append(owner)
        table.append(delta_delivery_ms)
        table.append(count)
        self._nack_ms = ms
        self._nack_seq = seq
        self._nack_delivery_ms = delivery_ms

    def pending_done(self) -> None:
        """The pending entries of the group have all been given."""
        self._put(self._pending)

    # Producers

    def producer(self, producer: Producer) -> None:
        """A producer of the stream's IDMP map."""
        record = _Record(PRODUCER)
        table = record.table
        data = record.data
        table.append(len(producer.pid))
        table.append(int(producer.count))
        data.append(producer.pid)
        record.size = len(producer.pid)
        last_ms = 0
        for iid, ms, seq, added_ms in producer.records():
            delta_ms = ms - last_ms
            delta_added_ms = added_ms - ms
            table.append(len(iid))
            table.append(delta_ms if delta_ms >= 0 else delta_ms + WRAP)
            table.append(seq)
            table.append(delta_added_ms if delta_added_ms >= 0 else delta_added_ms + WRAP)
            data.append(iid)
            record.size += len(iid)
            last_ms = ms
        self._put(record)

    # Records

    def _put(self, record: _Record) -> None:
        """Put a record that is not empty into the frame at hand, and empty it."""
        if not record.table:
            return
        table = _pack(record.table)
        pieces = self._pieces
        pieces.append(RECORD_HEAD.pack(record.kind, len(table)))
        pieces.append(table)
        data = record.data
        if record.size < JOINED_BELOW_BYTES * len(data):
            pieces.append(b"".join(data))
        else:
            pieces.extend(data)
        self._size += RECORD_HEAD.size + len(table) + record.size
        record.table = []
        record.data = []
        record.size = 0
        if self._size >= PAYLOAD_BYTES:
            self._flush()


def dead_bits(dead: bytearray) -> bytes:
    """One bit for each entry, the lowest of a byte first: 1 is deleted."""
    bits = bytearray((len(dead) + 7) >> 3)
    number = dead.find(1)
    while number >= 0:
        bits[number >> 3] |= 1 << (number & 7)
        number = dead.find(1, number + 1)
    return bytes(bits)


class StreamWalk:
    """Encodes one frozen stream, part by part."""

    def __init__(self, records: Records, key: bytes, expire_ms: int, stream: FrozenStream) -> None:
        self._records: Final = records
        self._stream: Final = stream
        self._blocks_left = True
        self._group: FrozenGroup | None = None
        self._next_group = 0
        self._next_consumer = 0
        records.stream(key, expire_ms, stream)

    def step(self) -> bool:
        """Encode the next part, about a hundred microseconds' work; False at the end."""
        records = self._records
        stream = self._stream
        if self._blocks_left:
            blocks = stream.next_blocks(BLOCKS_AT_ONCE)
            if blocks:
                records.blocks(blocks)
                return True
            records.blocks_done()
            self._blocks_left = False
            if stream.tail is not None:
                records.open_block(stream.tail)
            return True
        group = self._group
        if group is not None:
            if not self._go_on_with(group):
                self._group = None
            return True
        if self._next_group < len(stream.groups):
            group = stream.groups[self._next_group]
            records.group(group)
            self._group = group
            self._next_group += 1
            self._next_consumer = 0
            return True
        producer = stream.next_producer()
        if producer is None:
            return False
        records.producer(producer)
        return True

    def _go_on_with(self, group: FrozenGroup) -> bool:
        """Encode the next part of a group; False at its end."""
        records = self._records
        start = self._next_consumer
        if start < len(group.consumers):
            self._next_consumer = start + CONSUMERS_AT_ONCE
            records.consumers(group.consumers[start : start + CONSUMERS_AT_ONCE])
            return True
        records.consumers_done()
        pending = group.next_pending()
        if pending is None:
            records.pending_done()
            return False
        records.pending(pending)
        return True
