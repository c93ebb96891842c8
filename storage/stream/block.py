"""Blocks: up to a hundred or so entries, open as Python lists or sealed into one ``bytes``.

A sealed block's payload is two msgpack values, one after the other:

1. IDs: a flat array ``[dms, dseq, dms, dseq, ...]``. ``dms`` is the difference to the entry
   before (to 0 for the first); ``dseq`` is the difference in sequence where ``dms`` is 0, else
   the sequence itself. A run of entries of one millisecond takes two bytes each.
2. Values: ``[names, values]``, the field names that all entries share and the values in a row; or
   ``[nil, rows]`` with each entry's fields and values in a row of its own.

Values are bytes and field order and repeated names are kept. For example the entries 5-0 a=1 and
5-1 a=2 are ``[5, 0, 0, 1]`` and ``[["a"], ["1", "2"]]``.

A payload never changes. Deleted entries are marked in ``dead``, one byte for each entry of the
payload, and the payload is made anew without them when half of them are gone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final, cast

from msgspec.msgpack import Decoder, Encoder

from storage.stream.listpack import EMPTY_BYTES, delta_bytes, integer_bytes, text_bytes

_pack: Final = Encoder().encode
_unpack: Final = Decoder().decode


class Run:
    """Entries in order, decoded.

    Either every entry has the same field ``names`` and ``flat`` holds the values in a row, or
    ``names`` is None and ``rows`` holds each entry's fields and values.
    """

    def __init__(self) -> None:
        self.ms: list[int] = []
        self.seq: list[int] = []
        self.names: list[bytes] | None = None
        self.flat: list[bytes] = []
        self.rows: list[list[bytes]] = []

    def row(self, number: int) -> list[bytes]:
        """The fields and values of entry ``number`` in a row; not to be changed."""
        names = self.names
        if names is None:
            return self.rows[number]
        width = len(names)
        if width == 1:
            return [names[0], self.flat[number]]
        row: list[bytes] = []
        start = number * width
        for offset in range(width):
            row.append(names[offset])
            row.append(self.flat[start + offset])
        return row

    def position(self, ms: int, seq: int) -> int:
        """The number of the first entry whose ID is not below (ms, seq)."""
        low = bisect_left(self.ms, ms)
        high = bisect_right(self.ms, ms, low)
        return bisect_left(self.seq, seq, low, high)


class Block:
    """One node of a stream.

    Attributes:
        first_ms, first_seq: ID of the first entry it ever held.
        last_ms, last_seq: ID of the last entry it ever held.
        total: entries it ever held; live and deleted.
        live: entries that are still there.
        dead: None, or a byte for each entry of the run: 1 is deleted.
        node_bytes: what Redis's node would take.
        payload: the sealed form; empty while the block is open.
        ids_bytes: length of the payload's first part.
        run: the decoded form: always there while open; None when sealed.
    """

    def __init__(self, ms: int, seq: int) -> None:
        self.first_ms = ms
        self.first_seq = seq
        self.last_ms = ms
        self.last_seq = seq
        self.total = 0
        self.live = 0
        self.dead: bytearray | None = None
        self.node_bytes = 0
        self.payload = b""
        self.ids_bytes = 0
        self.run: Run | None = None

    def is_below(self, ms: int, seq: int) -> bool:
        """Whether every ID the block ever held is below (ms, seq)."""
        return self.last_ms < ms or (self.last_ms == ms and self.last_seq < seq)

    def entries(self) -> Run:
        """The decoded entries, the dead ones included."""
        run = self.run
        return run if run is not None else self._decode()

    def _decode(self) -> Run:
        view = memoryview(self.payload)
        run = self._decode_ids(view)
        body = cast("list[object]", _unpack(view[self.ids_bytes :]))
        if body[0] is None:
            run.rows = cast("list[list[bytes]]", body[1])
        else:
            run.names = cast("list[bytes]", body[0])
            run.flat = cast("list[bytes]", body[1])
        return run

    def _decode_ids(self, view: memoryview) -> Run:
        run = Run()
        ms = 0
        seq = 0
        deltas = cast("list[int]", _unpack(view[: self.ids_bytes]))
        all_ms = run.ms
        all_seq = run.seq
        for number in range(0, len(deltas), 2):
            delta = deltas[number]
            if delta:
                ms += delta
                seq = deltas[number + 1]
            else:
                seq += deltas[number + 1]
            all_ms.append(ms)
            all_seq.append(seq)
        return run

    def seal(self) -> None:
        """Pack the live entries into the payload and let go of the decoded form."""
        run = self.entries()
        if self.dead is not None:
            run = _living(run, self.dead)
            self.dead = None
        ids = _pack(_deltas(run))
        self.payload = ids + _pack(_values(run))
        self.ids_bytes = len(ids)
        self.run = None

    def reopen(self) -> None:
        """Back to Python objects, to be appended to."""
        run = self._decode()
        if run.names is not None:
            run.rows = [run.row(number) for number in range(len(run.ms))]
            run.names = None
            run.flat = []
        self.run = run
        self.payload = b""

    def next_live(self, number: int) -> int:
        """The first entry from ``number`` on that is not deleted; -1 when there is none."""
        return number if self.dead is None else self.dead.find(0, number)

    def bury(self, number: int) -> None:
        """Mark one live entry as deleted."""
        if self.dead is None:
            self.dead = bytearray(self._size())
        self.dead[number] = 1
        self.live -= 1

    def drop_head(self, count: int) -> None:
        """Mark the ``count`` oldest live entries as deleted; at least one more is live."""
        if self.dead is None:
            self.dead = bytearray(self._size())
        dead = self.dead
        number = 0
        for _ in range(count):
            number = dead.find(0, number)
            dead[number] = 1
        self.live -= count

    def _size(self) -> int:
        """How many entries the run or the payload holds."""
        if self.run is not None:
            return len(self.run.ms)
        return len(cast("list[int]", _unpack(memoryview(self.payload)[: self.ids_bytes]))) // 2

    def is_sparse(self) -> bool:
        """Whether at least half of the sealed entries are dead, so that packing anew pays."""
        return self.dead is not None and not self.run and 2 * self.live <= len(self.dead)

    def copy(self) -> Block:
        """An equal block; the sealed payload is shared, for it never changes."""
        twin = Block(self.first_ms, self.first_seq)
        twin.last_ms = self.last_ms
        twin.last_seq = self.last_seq
        twin.total = self.total
        twin.live = self.live
        twin.dead = None if self.dead is None else bytearray(self.dead)
        twin.node_bytes = self.node_bytes
        twin.payload = self.payload
        twin.ids_bytes = self.ids_bytes
        if self.run is not None:
            twin.run = Run()
            twin.run.ms = self.run.ms.copy()
            twin.run.seq = self.run.seq.copy()
            twin.run.rows = self.run.rows.copy()
        return twin


def open_block(ms: int, seq: int, row: list[bytes]) -> Block:
    """A block that is open and empty, whose first entry will be (ms, seq) ``row``."""
    block = Block(ms, seq)
    block.run = Run()
    # Counts of live and deleted entries, number of names, the names, a closing 0.
    size = EMPTY_BYTES + 2 + 2 + integer_bytes(len(row) // 2) + 2
    for number in range(0, len(row), 2):
        size += text_bytes(row[number])
    block.node_bytes = size
    return block


def append(block: Block, ms: int, seq: int, row: list[bytes]) -> None:
    """Add an entry to an open block; the ID is above all of its IDs."""
    run = block.run
    assert run is not None
    rows = run.rows
    # Flags, the ID's two halves, the values or all there is, how many elements that were.
    width = len(row)
    size = 2 + delta_bytes(ms - block.first_ms) + delta_bytes(seq - block.first_seq)
    if not rows or has_names_of(row, rows[0]):
        size += 2 if width < 240 else integer_bytes(width // 2 + 3)
        for number in range(1, width, 2):
            size += text_bytes(row[number])
    else:
        size += integer_bytes(width // 2) + integer_bytes(width + 4)
        for element in row:
            size += text_bytes(element)
    block.node_bytes += size
    run.ms.append(ms)
    run.seq.append(seq)
    rows.append(row)
    if block.dead is not None:
        block.dead.append(0)
    block.last_ms = ms
    block.last_seq = seq
    block.total += 1
    block.live += 1


def has_names_of(row: list[bytes], other: list[bytes]) -> bool:
    """Whether two entries have the same field names in the same order."""
    size = len(row)
    if size != len(other):
        return False
    for number in range(0, size, 2):
        if row[number] != other[number]:
            return False
    return True


def _living(run: Run, dead: bytearray) -> Run:
    living = Run()
    number = dead.find(0)
    while number >= 0:
        living.ms.append(run.ms[number])
        living.seq.append(run.seq[number])
        living.rows.append(run.row(number))
        number = dead.find(0, number + 1)
    return living


def _deltas(run: Run) -> list[int]:
    deltas: list[int] = []
    last_ms = 0
    last_seq = 0
    all_seq = run.seq
    for number, ms in enumerate(run.ms):
        seq = all_seq[number]
        if ms == last_ms and number:
            deltas.append(0)
            deltas.append(seq - last_seq)
        else:
            deltas.append(ms - last_ms)
            deltas.append(seq)
        last_ms = ms
        last_seq = seq
    return deltas


def _values(run: Run) -> list[object]:
    if run.names is not None:
        return [run.names, run.flat]
    rows = run.rows
    first = rows[0]
    for row in rows:
        if not has_names_of(row, first):
            return [None, rows]
    flat: list[bytes] = []
    for row in rows:
        for number in range(1, len(row), 2):
            flat.append(row[number])
    return [first[0::2], flat]
