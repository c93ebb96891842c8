"""Turns records back into streams; entries stay packed.

A block is cut out of the frame as it is. Only the open block at the end of a stream is unpacked,
because it will be written to.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.forms.intake import INT64_MAX, Intake, Reader
from headrace.persistence.forms.records import NO_DEADLINE, WRAP
from headrace.persistence.forms.stream.kinds import (
    BLOCK_ROW,
    BLOCKS,
    CONSUMER_ROW,
    CONSUMERS,
    GROUP,
    IID_ROW,
    OPEN_BLOCK,
    PENDING,
    PENDING_ROW,
    PRODUCER,
    PRODUCER_HEAD,
    STREAM,
)
from headrace.storage.stream.block import Block
from headrace.storage.stream.contents import IDMP_DURATION_S_MAX, IDMP_MAXSIZE_MAX
from headrace.storage.stream.groups import Consumer, Group
from headrace.storage.stream.stream import Stream

_IDS_BYTES_END: Final = 2**31


class StreamReader(Reader):
    """Puts the parts of a stream together, and places it when the last one is there."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        # The stream at hand, and what of it is still to come.
        self._stream: Stream | None = None
        self._log: Stream | None = None  # what its entries go to: itself, or one of its lanes
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
        """All records but the first are parts."""
        return kind != STREAM

    def entries_met(self) -> int:
        """See ``Reader``."""
        log = self._log
        return self._entries if log is None else self._entries + log.index.entries

    def read(self, kind: int, table: list[int]) -> None:
        """See ``Reader``."""
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
        """The parts of a stream come next."""
        self._stream = stream
        self._entries = 0
        self._groups_left = groups
        self._producers_left = producers
        self._group = None

    def finish(self) -> None:
        """See ``Reader``."""
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
        """The entries of a stream, or of one of its lanes, come next."""
        self._log = log
        self._blocks_left = blocks
        self._open_left = open_blocks

    def _finish_log(self) -> None:
        """No more entries of a stream, or of one of its lanes, follow."""
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
        """The stream that the record at hand is a part of."""
        intake = self.intake
        if self._stream is None:
            raise intake.malformed("a stream before its parts")
        return self._stream

    def _log_at_hand(self) -> Stream:
        """What the entries of the record at hand go to."""
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
        """The marks of ``stored`` entries of which ``count`` are deleted."""
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
            delivered_ms = min(now_ms, delivery_ms)
            group.restore_pending(ms, seq, owner, delivered_ms, table[row + 4])
        self._pending_left -= len(table) // PENDING_ROW
