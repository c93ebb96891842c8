"""Turns a frozen stream into records, without copying what it holds."""

from __future__ import annotations

from typing import Final, cast

from headrace.persistence.forms.form import Walk, Writer
from headrace.persistence.forms.records import TABLE_NUMBERS, WRAP, Record, Records
from headrace.persistence.forms.stream.kinds import (
    BLOCKS,
    CONSUMERS,
    GROUP,
    OPEN_BLOCK,
    PENDING,
    PRODUCER,
    STREAM,
)
from headrace.storage.stream.block import Block
from headrace.storage.stream.frozen import (
    FrozenConsumer,
    FrozenGroup,
    FrozenStream,
    Pending,
)
from headrace.storage.stream.producer import Producer

BLOCKS_AT_ONCE: Final = 64
CONSUMERS_AT_ONCE: Final = 500


class StreamRecords:
    """Makes the records of streams: ``stream`` and then, in this order, its blocks, its open block,
    each group with its consumers and pending entries, and its producers.
    """

    def __init__(self, records: Records) -> None:
        self._records: Final = records
        self._blocks: Final = Record(BLOCKS)
        self._last_block_ms = 0
        self._consumers: Final = Record(CONSUMERS)
        self._pending: Final = Record(PENDING)
        self._nack_ms = 0
        self._nack_seq = 0
        self._nack_delivery_ms = 0

    def stream(self, key: bytes, expire_ms: int, stream: FrozenStream) -> None:
        """A key that holds a stream; what it consists of follows."""
        self._records.keys += 1
        self._records.entries += stream.length
        record = Record(STREAM)
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
        self._records.put(record)

    def blocks(self, blocks: list[Block]) -> None:
        """Some of the stream's sealed blocks."""
        record = self._blocks
        for block in blocks:
            self._add_block(record, block, block.payload, block.ids_bytes)
            if record.is_full():
                self.blocks_done()

    def blocks_done(self) -> None:
        """The sealed blocks of the stream have all been given."""
        self._records.put(self._blocks)
        self._last_block_ms = 0

    def open_block(self, block: Block) -> None:
        """The stream's open block."""
        record = Record(OPEN_BLOCK)
        payload, ids_bytes = block.packed()
        self._last_block_ms = 0
        self._add_block(record, block, payload, ids_bytes)
        self._last_block_ms = 0
        self._records.put(record)

    def _add_block(self, record: Record, block: Block, payload: bytes, ids_bytes: int) -> None:
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
        record = Record(GROUP)
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
        self._records.put(record)

    def consumers(self, consumers: list[FrozenConsumer]) -> None:
        """Some of the group's consumers, in the order of the numbers that entries refer to."""
        for consumer in consumers:
            self._add_consumer(consumer)

    def consumers_done(self) -> None:
        """The consumers of the group have all been given."""
        self._records.put(self._consumers)

    def _add_consumer(self, consumer: FrozenConsumer) -> None:
        record = self._consumers
        record.table.append(len(consumer.name))
        record.table.append(consumer.seen_ms)
        record.table.append(consumer.active_ms)
        record.data.append(consumer.name)
        record.size += len(consumer.name)
        if record.is_full():
            self._records.put(record)

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
        self._records.put(self._pending)

    # Producers

    def producer(self, producer: Producer) -> None:
        """A producer of the stream's IDMP map."""
        record = Record(PRODUCER)
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
        self._records.put(record)


def dead_bits(dead: bytearray) -> bytes:
    """One bit for each entry, the lowest of a byte first: 1 is deleted."""
    bits = bytearray((len(dead) + 7) >> 3)
    number = dead.find(1)
    while number >= 0:
        bits[number >> 3] |= 1 << (number & 7)
        number = dead.find(1, number + 1)
    return bytes(bits)


class StreamWalk(Walk):
    """Encodes what one frozen stream consists of, part by part."""

    def __init__(self, records: StreamRecords, stream: FrozenStream) -> None:
        self._records: Final = records
        self._stream: Final = stream
        self._blocks_left = True
        self._group: FrozenGroup | None = None
        self._next_group = 0
        self._next_consumer = 0

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
            self.begin_group(group, self._next_group)
            self._group = group
            self._next_group += 1
            self._next_consumer = 0
            return True
        producer = stream.next_producer()
        if producer is None:
            return False
        records.producer(producer)
        return True

    def begin_group(self, group: FrozenGroup, number: int) -> None:
        """Encode a group; its parts follow."""
        self._records.group(group)

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


class StreamWriter(Writer):
    """Writes streams; each is a walk.

    Attributes:
        parts: makes their records.
    """

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self.parts: Final = StreamRecords(records)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        """See ``Writer``."""
        stream = cast("FrozenStream", value)
        self.parts.stream(key, expire_ms, stream)
        return StreamWalk(self.parts, stream)
