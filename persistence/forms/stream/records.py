"""A frozen stream as records, without copying its parts, and records as a stream again.

The records are described in ``docs/snapshot-format.md``. A ``STREAM`` is followed by its blocks,
its groups, each with its consumers and its pending entries, and its producers. A long list goes on
in another record of the same kind.

To read them, a block is cut out of the frame as it is. Only the open block at the end of a stream
is unpacked, because it will be written to.
"""

from __future__ import annotations

from typing import Final, cast

from headrace.persistence.forms.form import Walk, Writer
from headrace.persistence.forms.records import (
    INT64_MAX,
    NO_DEADLINE,
    TABLE_NUMBERS,
    WRAP,
    Intake,
    Reader,
    Record,
    Records,
)
from headrace.storage.stream.block import Block
from headrace.storage.stream.contents import IDMP_DURATION_S_MAX, IDMP_MAXSIZE_MAX
from headrace.storage.stream.frozen import FrozenConsumer, FrozenGroup, FrozenStream, Pending
from headrace.storage.stream.groups import Consumer, Group
from headrace.storage.stream.idmp import Producer
from headrace.storage.stream.stream import Stream

STREAM: Final = 7
BLOCKS: Final = 8
OPEN_BLOCK: Final = 9
GROUP: Final = 10
CONSUMERS: Final = 11
PENDING: Final = 12
PRODUCER: Final = 13

NAMES: Final = {
    STREAM: "stream",
    BLOCKS: "blocks",
    OPEN_BLOCK: "open block",
    GROUP: "group",
    CONSUMERS: "consumers",
    PENDING: "pending entries",
    PRODUCER: "producer",
}

BLOCK_ROW: Final = 10  # numbers in the table for each block
PENDING_ROW: Final = 5
CONSUMER_ROW: Final = 3
PRODUCER_HEAD: Final = 2  # numbers in the table before those of the iids
IID_ROW: Final = 4


BLOCKS_AT_ONCE: Final = 64
CONSUMERS_AT_ONCE: Final = 500


class StreamRecords:
    """Makes the records of streams.

    The calls are ``stream`` and then, in this order, its blocks, its open block, each group with
    its consumers and pending entries, and its producers.
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
        """Add a key that holds a stream; its parts follow."""
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
        """Add some of the stream's sealed blocks."""
        record = self._blocks
        for block in blocks:
            self._add_block(record, block, block.payload, block.ids_bytes)
            if record.is_full():
                self.blocks_done()

    def entries(self, log: FrozenStream) -> bool:
        """Encode the next part of a stream, or of a lane. Return False at its end."""
        blocks = log.next_blocks(BLOCKS_AT_ONCE)
        if blocks:
            self.blocks(blocks)
            return True
        self.blocks_done()
        if log.tail is not None:
            self.open_block(log.tail)
        return False

    def blocks_done(self) -> None:
        """End the sealed blocks of the stream."""
        self._records.put(self._blocks)
        self._last_block_ms = 0

    def open_block(self, block: Block) -> None:
        """Add the stream's open block."""
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
        """Add a group of the stream; its consumers and pending entries follow."""
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
        """Add some of the group's consumers, in the order of the numbers that entries refer to."""
        for consumer in consumers:
            self._add_consumer(consumer)

    def consumers_done(self) -> None:
        """End the consumers of the group."""
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
        """Add some of the group's pending entries, in the order of claiming."""
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
        """End the pending entries of the group."""
        self._records.put(self._pending)

    # Producers

    def producer(self, producer: Producer) -> None:
        """Add a producer of the stream's IDMP map."""
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
    """Return one bit for each entry, the lowest of a byte first: 1 is deleted."""
    bits = bytearray((len(dead) + 7) >> 3)
    number = dead.find(1)
    while number >= 0:
        bits[number >> 3] |= 1 << (number & 7)
        number = dead.find(1, number + 1)
    return bytes(bits)


class StreamWalk(Walk):
    """Encodes the parts of one frozen stream."""

    def __init__(self, records: StreamRecords, stream: FrozenStream) -> None:
        self._records: Final = records
        self._stream: Final = stream
        self._blocks_left = True
        self._group: FrozenGroup | None = None
        self._next_group = 0
        self._next_consumer = 0

    def step(self) -> bool:
        """Encode the next part, about a hundred microseconds' work. Return False at the end."""
        records = self._records
        stream = self._stream
        if self._blocks_left:
            self._blocks_left = records.entries(stream)
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
        """Encode the next part of a group. Return False at its end."""
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
    """Writes streams, each as a walk. ``parts`` makes their records."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self.parts: Final = StreamRecords(records)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        stream = cast("FrozenStream", value)
        self.parts.stream(key, expire_ms, stream)
        return StreamWalk(self.parts, stream)


_IDS_BYTES_END: Final = 2**31


class StreamReader(Reader):
    """Puts the parts of a stream together, and places it when the last one is there."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        # The current stream, and its parts that are still to come.
        self._stream: Stream | None = None
        self._log: Stream | None = None  # the target of its entries: itself, or one of its lanes
        self._key = b""
        self._expire_ms = NO_DEADLINE
        self._entries = 0  # of logs that are complete
        self._blocks_left = 0
        self._open_left = 0
        self._groups_left = 0
        self._producers_left = 0
        self._group: Group | None = None
        self._members: list[Consumer] = []
        self._consumers_left = 0
        self._pending_left = 0

    def goes_on(self, kind: int) -> bool:
        return kind != STREAM

    def entries_met(self) -> int:
        log = self._log
        return self._entries if log is None else self._entries + log.index.entries

    def read(self, kind: int, table: list[int]) -> None:
        if kind == BLOCKS:
            self._blocks(table)
        elif kind == PENDING:
            self._pending(table)
        elif kind == STREAM:
            self._new_stream(table)
        elif kind == OPEN_BLOCK:
            self._open_block(table)
        elif kind == CONSUMERS:
            self._consumers(table)
        elif kind == GROUP:
            self._new_group(table)
        elif kind == PRODUCER:
            self._producer(table)

    def _new_stream(self, table: list[int]) -> None:
        intake = self.intake
        self._key = intake.cut(table[0])
        self._expire_ms = table[1]
        if not (0 < table[8] <= IDMP_DURATION_S_MAX and 0 < table[9] <= IDMP_MAXSIZE_MAX):
            raise intake.malformed("limits of iids that can be set")
        stream = Stream(table[8], table[9])
        stream.length = table[2]
        stream.last_ms = table[3]
        stream.last_seq = table[4]
        stream.max_deleted_ms = table[5]
        stream.max_deleted_seq = table[6]
        stream.entries_added = table[7]
        stream.iids_added = table[10]
        stream.iids_duplicates = table[11]
        self._begin(stream, table[14], table[15])
        self._begin_log(stream, table[12], table[13])

    def _begin(self, stream: Stream, groups: int, producers: int) -> None:
        self._stream = stream
        self._entries = 0
        self._groups_left = groups
        self._producers_left = producers
        self._group = None

    def finish(self) -> None:
        intake = self.intake
        stream = self._stream
        if stream is None:
            return
        self._finish_log()
        self._finish_group()
        if self._groups_left or self._producers_left:
            raise intake.malformed("the rest of a stream")
        self._stream = None
        intake.entries += self._entries
        self._entries = 0
        intake.place(self._key, stream, self._expire_ms)

    def _begin_log(self, log: Stream, blocks: int, open_blocks: int) -> None:
        self._log = log
        self._blocks_left = blocks
        self._open_left = open_blocks

    def _finish_log(self) -> None:
        """End the entries of a stream, or of one of its lanes."""
        intake = self.intake
        log = self._log
        if log is None:
            return
        if self._blocks_left or self._open_left:
            raise intake.malformed("the rest of a stream")
        live = log.index.entries
        if log.tail is not None:
            live += log.tail.live
        if live != log.length:
            raise intake.malformed(f"a stream of {log.length} entries, but there were {live}")
        self._log = None
        self._entries += live

    def _owner(self) -> Stream:
        """Return the stream that the current record is a part of."""
        intake = self.intake
        if self._stream is None:
            raise intake.malformed("a stream before its parts")
        return self._stream

    def _log_at_hand(self) -> Stream:
        """Return the log that the entries of the current record go to."""
        intake = self.intake
        if self._log is None:
            raise intake.malformed("a stream before its parts")
        return self._log

    def _blocks(self, table: list[int]) -> None:
        intake = self.intake
        index = self._log_at_hand().index
        count = len(table) // BLOCK_ROW
        self._blocks_left -= count
        if self._blocks_left < 0 or count * BLOCK_ROW != len(table):
            raise intake.malformed("no more blocks than the stream has")
        last_ms = 0
        for row in range(0, len(table), BLOCK_ROW):
            block = self._block(table, row, last_ms)
            if not block.live:
                raise intake.malformed("a block with entries")
            index.add(block)
            last_ms = block.last_ms

    def _open_block(self, table: list[int]) -> None:
        intake = self.intake
        log = self._log_at_hand()
        self._open_left -= 1
        if self._open_left < 0 or len(table) != BLOCK_ROW:
            raise intake.malformed("no open block, or one")
        block = self._block(table, 0, 0)
        block.reopen()
        log.tail = block

    def _block(self, table: list[int], row: int, last_ms: int) -> Block:
        intake = self.intake
        block = Block(last_ms + table[row], table[row + 1])
        block.last_ms = block.first_ms + table[row + 2]
        block.last_seq = table[row + 3]
        stored = table[row + 4]
        dead = table[row + 6]
        ids_bytes = table[row + 8]
        start = intake.at
        stop = start + table[row + 9]
        if not start <= stop <= intake.end or stored <= 0 or not 0 <= dead <= stored:
            raise intake.malformed("a block that ends with its frame")
        if not 0 < ids_bytes < min(stop - start, _IDS_BYTES_END):
            raise intake.malformed("a block whose IDs end with it")
        block.total = stored + table[row + 5]
        block.live = stored - dead
        block.node_bytes = table[row + 7]
        block.ids_bytes = ids_bytes
        block.payload = intake.frame[start:stop]
        intake.at = stop
        if dead:
            block.dead = self._dead(stored, dead)
        return block

    def _dead(self, stored: int, count: int) -> bytearray:
        """Return the marks of ``stored`` entries of which ``count`` are deleted."""
        intake = self.intake
        bits = intake.cut((stored + 7) >> 3)
        dead = bytearray(stored)
        for number in range(len(bits)):
            byte = bits[number]
            place = number << 3
            while byte:
                if byte & 1:
                    dead[place] = 1
                byte >>= 1
                place += 1
        if dead.count(1) != count:
            raise intake.malformed("as many marks as there are deleted entries")
        return dead

    # Producers

    def _producer(self, table: list[int]) -> None:
        intake = self.intake
        stream = self._owner()
        count = table[1]
        self._producers_left -= 1
        if self._producers_left < 0:
            raise intake.malformed("no more producers than the stream has")
        if count <= 0 or len(table) != PRODUCER_HEAD + IID_ROW * count:
            raise intake.malformed("as many iids as the producer has")
        pid = intake.cut(table[0])
        if not pid or (stream.idmp is not None and pid in stream.idmp.producers):
            raise intake.malformed("each producer once, and with a name")
        ms = 0
        for row in range(PRODUCER_HEAD, len(table), IID_ROW):
            iid = intake.cut(table[row])
            ms = (ms + table[row + 1]) % WRAP
            seq = table[row + 2]
            added_ms = (ms + table[row + 3]) % WRAP
            if not iid or seq < 0 or added_ms > INT64_MAX:
                raise intake.malformed("an iid, its entry and its time")
            stream.record_iid(pid, iid, ms, seq, min(added_ms, intake.now_ms))
        idmp = stream.idmp
        if idmp is None or idmp.producers[pid].count != count:
            raise intake.malformed("each iid once, and no more than the stream may have")

    # Groups

    def _new_group(self, table: list[int]) -> None:
        intake = self.intake
        stream = self._owner()
        self._finish_group()
        self._groups_left -= 1
        if self._groups_left < 0:
            raise intake.malformed("no more groups than the stream has")
        name = intake.cut(table[0])
        if name in stream.groups:
            raise intake.malformed("each group once")
        group = Group(name, table[1], table[2], table[3])
        group.max_pending = table[4]
        self._consumers_left = table[5]
        self._pending_left = table[6]
        self._members = []
        stream.groups[name] = group
        self._group = group

    def _finish_group(self) -> None:
        intake = self.intake
        if self._group is not None and (self._consumers_left or self._pending_left):
            raise intake.malformed("the rest of a group")
        self._group = None

    def _consumers(self, table: list[int]) -> None:
        intake = self.intake
        group = self._group
        if group is None:
            raise intake.malformed("a group before its consumers")
        for row in range(0, len(table), CONSUMER_ROW):
            name = intake.cut(table[row])
            if name in group.consumers:
                raise intake.malformed("each consumer once")
            consumer = group.create_consumer(name, min(table[row + 1], intake.now_ms))
            consumer.active_ms = min(table[row + 2], intake.now_ms)
            self._members.append(consumer)
        self._consumers_left -= len(table) // CONSUMER_ROW

    def _pending(self, table: list[int]) -> None:
        intake = self.intake
        group = self._group
        if group is None or self._consumers_left:
            raise intake.malformed("a group and its consumers before their pending entries")
        members = self._members
        now_ms = intake.now_ms
        ms = 0
        seq = 0
        delivery_ms = 0
        for row in range(0, len(table), PENDING_ROW):
            delta_ms = table[row]
            if delta_ms:
                ms += delta_ms
                if ms >= WRAP:
                    ms -= WRAP
                seq = table[row + 1]
            else:
                seq += table[row + 1]
                if seq >= WRAP:
                    seq -= WRAP
            delivery_ms += table[row + 3]
            if delivery_ms >= WRAP:
                delivery_ms -= WRAP
            number = table[row + 2]
            owner = None if number == 0 else members[number - 1]
            delivered_ms = delivery_ms if owner is None else min(now_ms, delivery_ms)
            group.restore_pending(ms, seq, owner, delivered_ms, table[row + 4])
        self._pending_left -= len(table) // PENDING_ROW
