"""Turns the records of a snapshot back into keys and values; entries stay packed.

A block is cut out of the frame as it is. Only the open block at the end of a stream is unpacked,
for it will be written to.
"""

from __future__ import annotations

import struct
from typing import Final

from msgspec import MsgspecError
from msgspec.msgpack import Decoder as Unpacker

from headrace.persistence.snapshot.layout import (
    BLOCK_ROW,
    BLOCKS,
    CONSUMER_ROW,
    CONSUMERS,
    DATABASE,
    END,
    GROUP,
    HEADER,
    IID_ROW,
    INTEGERS,
    MORTAL_INTEGERS,
    MORTAL_STRINGS,
    NAMES,
    NO_DEADLINE,
    OPEN_BLOCK,
    PENDING,
    PENDING_ROW,
    PRODUCER,
    PRODUCER_HEAD,
    RECORD_HEAD,
    STREAM,
    STRINGS,
    WRAP,
)
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.block import Block
from headrace.storage.stream.contents import IDMP_DURATION_S_MAX, IDMP_MAXSIZE_MAX
from headrace.storage.stream.groups import Consumer, Group
from headrace.storage.stream.stream import Stream

KEEP_ALL: Final = -1
_IDS_BYTES_END: Final = 2**31
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

# What may be raised on the way through bytes that no encoder made.
UNDECODABLE: Final = (
    MsgspecError,
    struct.error,
    IndexError,
    ValueError,
    OverflowError,
    TypeError,
    RecursionError,
)

_numbers: Final = Unpacker(list[int]).decode


class Malformed(Exception):
    """A record does not hold what its kind asks for.

    Attributes:
        position: where it starts in what was being decoded.
    """

    def __init__(self, position: int, text: str) -> None:
        super().__init__(text)
        self.position: Final = position


class Unfit(Exception):
    """A record is sound, but has no place here; the text says why."""


class Decoder:
    """Puts the keys of records into databases.

    Args:
        databases: where keys go.
        now_ms: the present. Keys get it as their time of last access, and what the snapshot says
            to have happened later (the clock may have been set back since) happened now.
        drop_before_ms: keys with a deadline before this are left out; ``KEEP_ALL`` leaves none out.

    Attributes:
        version: of the server that wrote the header; created_ms: the moment whose state it is.
        is_base: it is the base of an append-only folder.
        keys, entries: how many keys and entries of streams were met.
        expired: how many of the keys were left out.
        done: the last record was decoded, and its totals are right.
        places_itself: ``place`` is not this one's, and every key has to go through it.
        replaces: keys of the snapshot take the place of those that are there.
    """

    def __init__(self, databases: list[Keyspace], now_ms: int, drop_before_ms: int) -> None:
        self.version = b""
        self.created_ms = 0
        self.is_base = False
        self.keys = 0
        self.entries = 0
        self.expired = 0
        self.done = False
        self.replaces = False
        self.places_itself = False
        self._databases: Final = databases
        self._now_ms: Final = now_ms
        self._drop_before_ms: Final = drop_before_ms
        self._db: Keyspace | None = None
        self._any_database = False
        self._begun = False
        self._frame = b""
        self._start = 0  # of the record at hand
        self._at = 0  # how far it has been read
        self._end = 0
        # The stream at hand, and what of it is still to come.
        self._stream: Stream | None = None
        self._key = b""
        self._expire_ms = NO_DEADLINE
        self._blocks_left = 0
        self._open_left = 0
        self._groups_left = 0
        self._producers_left = 0
        self._group: Group | None = None
        self._members: list[Consumer] = []
        self._consumers_left = 0
        self._pending_left = 0
        self._delivery_ms = 0  # of the last pending entry that has its place by time

    def take(self, frame: bytes, end: int) -> None:
        """Decode the records in ``frame[:end]`` next; those before must have been decoded.

        Raises:
            Malformed: the last record has been there already.
        """
        self._start = 0
        if self.done:
            raise self.malformed("nothing behind the last record")
        self._frame = frame
        self._at = 0
        self._end = end

    def step(self) -> bool:
        """Decode the next record; False when there is none left in the frame.

        Raises:
            Malformed: it holds what no encoder writes.
            Unfit: it cannot be held here.
        """
        if self._at >= self._end:
            return False
        self._start = self._at
        kind = self._frame[self._at]
        try:
            self._record(kind)
        except UNDECODABLE as error:
            raise self.malformed(f"a sound record ({NAMES.get(kind, kind)}): {error}") from error
        return True

    def accept_databases(self) -> None:
        """Keys go nowhere: whatever database they are of is fine."""
        self._any_database = True

    def begin_value(self) -> None:
        """What follows are the records of one key, without a header."""
        self._begun = True

    def finish_value(self) -> None:
        """The records of one key have all been decoded.

        Raises:
            Malformed: something is missing, or there was more.
        """
        self._start = self._end
        self._finish_stream()
        if self.keys != 1 or self.done:
            raise self.malformed("the records of one key")

    def finish(self) -> None:
        """No more frames follow.

        Raises:
            Malformed: something is missing.
        """
        self._start = self._end
        if not self.done:
            raise self.malformed("more frames: the last record is missing")

    def malformed(self, expected: str) -> Malformed:
        """What to raise for the record at hand."""
        return Malformed(self._start, expected)

    def entries_met(self) -> int:
        """The entries of streams so far, those of the stream at hand included."""
        stream = self._stream
        return self.entries if stream is None else self.entries + stream.index.entries

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        """A key is complete."""
        self.keys += 1
        if expire_ms != NO_DEADLINE and expire_ms < self._drop_before_ms:
            self.expired += 1
            return
        db = self._db
        if db is None:
            raise self.malformed("a database before the first key")
        if self.replaces:
            db.remove(key)
        if not db.load(key, value, expire_ms, self._now_ms):
            raise self._doubled(key)

    # Records

    def _record(self, kind: int) -> None:
        _, table_bytes = RECORD_HEAD.unpack_from(self._frame, self._at)
        start = self._at + RECORD_HEAD.size
        self._at = start + table_bytes
        if self._at > self._end:
            raise self.malformed("a table that ends with its frame")
        table = _numbers(memoryview(self._frame)[start : self._at])
        if self.done:
            raise self.malformed("nothing behind the last record")
        if not self._begun and kind != HEADER:
            raise self.malformed("a header first")
        if kind == BLOCKS:
            self._blocks(table)
        elif kind == OPEN_BLOCK:
            self._open_block(table)
        elif kind == PENDING:
            self._pending(table)
        elif kind == CONSUMERS:
            self._consumers(table)
        elif kind == GROUP:
            self._new_group(table)
        elif kind == PRODUCER:
            self._producer(table)
        else:
            self._finish_stream()
            if kind == STRINGS:
                self._strings(table, False)
            elif kind == MORTAL_STRINGS:
                self._strings(table, True)
            elif kind == INTEGERS:
                self._integers(table, False)
            elif kind == MORTAL_INTEGERS:
                self._integers(table, True)
            elif kind == STREAM:
                self._new_stream(table)
            elif kind == DATABASE:
                self._database(table[0])
            elif kind == HEADER:
                self._header(table)
            elif kind == END:
                self._total(table)
            else:
                raise self.malformed(f"a record of a known kind, but this is {kind}")
        if self._at > self._end:
            raise self.malformed("data that ends with its frame")

    def _cut(self, size: int) -> bytes:
        """The next ``size`` bytes of the record's data."""
        start = self._at
        if size < 0 or start + size > self._end:
            raise self.malformed("data that ends with its frame")
        self._at = start + size
        return self._frame[start : start + size]

    def _header(self, table: list[int]) -> None:
        if self._begun:
            raise self.malformed("one header")
        self._begun = True
        self.created_ms = table[0]
        self.is_base = table[1] != 0
        self.version = self._cut(table[3])

    def _database(self, index: int) -> None:
        if index < 0:
            raise self.malformed("a database's number")
        if self._any_database:
            return
        if index >= len(self._databases):
            raise Unfit(
                f"it holds keys of database {index}, and there are only {len(self._databases)}: "
                f"raise `databases` to {index + 1} or more"
            )
        self._db = self._databases[index]

    def _total(self, table: list[int]) -> None:
        if table[0] != self.keys or table[1] != self.entries:
            raise self.malformed(
                f"{table[0]} keys and {table[1]} entries, "
                f"but there were {self.keys} and {self.entries}"
            )
        self.done = True

    def _strings(self, table: list[int], mortal: bool) -> None:
        expire_ms = NO_DEADLINE
        width = 3 if mortal else 2
        frame = self._frame
        at = self._at
        end = self._end
        # Most keys of most snapshots come this way: without ``place``.
        db = None if self.places_itself or self.replaces or mortal else self._db
        for row in range(0, len(table), width):
            middle = at + table[row]
            stop = middle + table[row + 1]
            if not at <= middle <= stop <= end:
                raise self.malformed("data that ends with its frame")
            key = frame[at:middle]
            if db is not None:
                if not db.load(key, frame[middle:stop], NO_DEADLINE, self._now_ms):
                    raise self._doubled(key)
                self.keys += 1
            else:
                if mortal:
                    expire_ms = table[row + 2]
                self.place(key, frame[middle:stop], expire_ms)
            at = stop
        self._at = at

    def _doubled(self, key: bytes) -> Malformed:
        return self.malformed(f"each key once, but {key[:64]!r} is there already")

    def _integers(self, table: list[int], mortal: bool) -> None:
        expire_ms = NO_DEADLINE
        width = 3 if mortal else 2
        for row in range(0, len(table), width):
            if mortal:
                expire_ms = table[row + 2]
            value = table[row + 1]
            if not INT64_MIN <= value <= INT64_MAX:
                raise self.malformed("an integer of 64 bits")
            self.place(self._cut(table[row]), value, expire_ms)

    # Streams

    def _new_stream(self, table: list[int]) -> None:
        self._key = self._cut(table[0])
        self._expire_ms = table[1]
        if not (0 < table[8] <= IDMP_DURATION_S_MAX and 0 < table[9] <= IDMP_MAXSIZE_MAX):
            raise self.malformed("limits of iids that can be set")
        stream = Stream(table[8], table[9])
        stream.length = table[2]
        stream.last_ms = table[3]
        stream.last_seq = table[4]
        stream.max_deleted_ms = table[5]
        stream.max_deleted_seq = table[6]
        stream.entries_added = table[7]
        stream.iids_added = table[10]
        stream.iids_duplicates = table[11]
        self._blocks_left = table[12]
        self._open_left = table[13]
        self._groups_left = table[14]
        self._producers_left = table[15]
        self._stream = stream
        self._group = None

    def _finish_stream(self) -> None:
        stream = self._stream
        if stream is None:
            return
        self._finish_group()
        if self._blocks_left or self._open_left or self._groups_left or self._producers_left:
            raise self.malformed("the rest of a stream")
        live = stream.index.entries
        if stream.tail is not None:
            live += stream.tail.live
        if live != stream.length:
            raise self.malformed(f"a stream of {stream.length} entries, but there were {live}")
        self._stream = None
        self.entries += live
        self.place(self._key, stream, self._expire_ms)

    def _owner(self) -> Stream:
        """The stream that the record at hand is a part of."""
        if self._stream is None:
            raise self.malformed("a stream before its parts")
        return self._stream

    def _blocks(self, table: list[int]) -> None:
        index = self._owner().index
        count = len(table) // BLOCK_ROW
        self._blocks_left -= count
        if self._blocks_left < 0 or count * BLOCK_ROW != len(table):
            raise self.malformed("no more blocks than the stream has")
        last_ms = 0
        for row in range(0, len(table), BLOCK_ROW):
            block = self._block(table, row, last_ms)
            if not block.live:
                raise self.malformed("a block with entries")
            index.add(block)
            last_ms = block.last_ms

    def _open_block(self, table: list[int]) -> None:
        stream = self._owner()
        self._open_left -= 1
        if self._open_left < 0 or len(table) != BLOCK_ROW:
            raise self.malformed("no open block, or one")
        block = self._block(table, 0, 0)
        block.reopen()
        stream.tail = block

    def _block(self, table: list[int], row: int, last_ms: int) -> Block:
        block = Block(last_ms + table[row], table[row + 1])
        block.last_ms = block.first_ms + table[row + 2]
        block.last_seq = table[row + 3]
        stored = table[row + 4]
        dead = table[row + 6]
        ids_bytes = table[row + 8]
        start = self._at
        stop = start + table[row + 9]
        if not start <= stop <= self._end or stored <= 0 or not 0 <= dead <= stored:
            raise self.malformed("a block that ends with its frame")
        if not 0 < ids_bytes < min(stop - start, _IDS_BYTES_END):
            raise self.malformed("a block whose IDs end with it")
        block.total = stored + table[row + 5]
        block.live = stored - dead
        block.node_bytes = table[row + 7]
        block.ids_bytes = ids_bytes
        block.payload = self._frame[start:stop]
        self._at = stop
        if dead:
            block.dead = self._dead(stored, dead)
        return block

    def _dead(self, stored: int, count: int) -> bytearray:
        """The marks of ``stored`` entries of which ``count`` are deleted."""
        bits = self._cut((stored + 7) >> 3)
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
            raise self.malformed("as many marks as there are deleted entries")
        return dead

    # Producers

    def _producer(self, table: list[int]) -> None:
        stream = self._owner()
        count = table[1]
        self._producers_left -= 1
        if self._producers_left < 0:
            raise self.malformed("no more producers than the stream has")
        if count <= 0 or len(table) != PRODUCER_HEAD + IID_ROW * count:
            raise self.malformed("as many iids as the producer has")
        pid = self._cut(table[0])
        if not pid or (stream.idmp is not None and pid in stream.idmp.producers):
            raise self.malformed("each producer once, and with a name")
        ms = 0
        for row in range(PRODUCER_HEAD, len(table), IID_ROW):
            iid = self._cut(table[row])
            ms = (ms + table[row + 1]) % WRAP
            seq = table[row + 2]
            added_ms = (ms + table[row + 3]) % WRAP
            if not iid or seq < 0 or added_ms > INT64_MAX:
                raise self.malformed("an iid, its entry and its time")
            stream.record_iid(pid, iid, ms, seq, min(added_ms, self._now_ms))
        idmp = stream.idmp
        if idmp is None or idmp.producers[pid].count != count:
            raise self.malformed("each iid once, and no more than the stream may have")

    # Groups

    def _new_group(self, table: list[int]) -> None:
        stream = self._owner()
        self._finish_group()
        self._groups_left -= 1
        if self._groups_left < 0:
            raise self.malformed("no more groups than the stream has")
        name = self._cut(table[0])
        if name in stream.groups:
            raise self.malformed("each group once")
        group = Group(name, table[1], table[2], table[3])
        group.max_pending = table[4]
        self._consumers_left = table[5]
        self._pending_left = table[6]
        self._members = []
        self._delivery_ms = 0
        stream.groups[name] = group
        self._group = group

    def _finish_group(self) -> None:
        if self._group is not None and (self._consumers_left or self._pending_left):
            raise self.malformed("the rest of a group")
        self._group = None

    def _consumers(self, table: list[int]) -> None:
        group = self._group
        if group is None:
            raise self.malformed("a group before its consumers")
        for row in range(0, len(table), CONSUMER_ROW):
            name = self._cut(table[row])
            if name in group.consumers:
                raise self.malformed("each consumer once")
            consumer = group.create_consumer(name, min(table[row + 1], self._now_ms))
            consumer.active_ms = min(table[row + 2], self._now_ms)
            self._members.append(consumer)
        self._consumers_left -= len(table) // CONSUMER_ROW

    def _pending(self, table: list[int]) -> None:
        group = self._group
        if group is None or self._consumers_left:
            raise self.malformed("a group and its consumers before their pending entries")
        members = self._members
        now_ms = self._now_ms
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
