"""Blocks: up to a hundred or so entries, open as Python lists or sealed into one ``bytes``.

A sealed block's payload is two msgpack values, one after the other:

1. IDs: a flat array ``[dms, dseq, dms, dseq, ...]``. ``dms`` is the difference to the entry
   before (to 0 for the first); ``dseq`` is the difference in sequence where ``dms`` is 0, else
   the sequence itself. A run of entries of one millisecond takes two bytes each.
2. Values: ``[names, values]``, the field names that all entries share and the values in a row, or
   ``[names, values, columns]`` where the values of some columns are integers; or ``[nil, rows]``
   with each entry's fields and values in a row of its own.

Values are bytes, and field order and repeated names are kept. Where every value of a field spells a
64-bit integer, the column holds integers: that takes about half the space. For example the entries
5-0 a=x b=10 and 5-1 a=y b=20 are ``[5, 0, 0, 1]`` and ``[["a", "b"], ["x", 10, "y", 20], [1]]``.

A payload never changes. Deleted entries are marked in ``dead``, one byte for each entry of the
payload, and the payload is made anew without them when half of them are gone.
"""

from __future__ import annotations

from typing import Final, cast

from msgspec import MsgspecError, json
from msgspec.msgpack import Decoder, Encoder
from mypy_extensions import i64

from storage.stream.ids import is_below
from storage.stream.listpack import EMPTY_BYTES, delta_bytes, integer_bytes, text_bytes

_pack: Final = Encoder().encode
_unpack: Final = Decoder().decode
# JSON has one way to write an integer, the canonical one, and msgspec turns a hundred of them from
# text to numbers and back in C.
_to_json: Final = json.Encoder().encode
_from_json: Final = json.Decoder(list[int]).decode
_DIGITS_MAX: Final = 20  # of a 64-bit integer, its sign included
RECENT_BLOCKS: Final = 8
_NO_NAMES: Final[list[bytes]] = []


class Run:
    """Entries in order, decoded.

    Either every entry has the same field ``names`` and ``flat`` holds the values in a row, or
    ``names`` is None and ``rows`` holds each entry's fields and values.
    """

    def __init__(self, names: list[bytes] | None) -> None:
        self.ms: list[int] = []
        self.seq: list[int] = []
        self.names = names
        self.flat: list[bytes] = []
        self.rows: list[list[bytes]] = []
        self._near: i64 = 0  # what ``position`` found last

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

    def mix(self) -> None:
        """Give each entry a row of its own: an entry with other names is about to come."""
        self.rows = [self.row(number) for number in range(len(self.ms))]
        self.names = None
        self.flat = []

    def copy(self) -> Run:
        """An equal run; rows are shared, for they never change."""
        twin = Run(self.names)
        twin.ms = self.ms.copy()
        twin.seq = self.seq.copy()
        twin.flat = self.flat.copy()
        twin.rows = self.rows.copy()
        return twin

    def position(self, ms: int, seq: int) -> int:
        """The number of the first entry whose ID is not below (ms, seq).

        Who reads in order asks for the entry after the last one, which is looked at first.
        """
        all_ms = self.ms
        all_seq = self.seq
        low: i64 = 0
        high: i64 = len(all_ms)
        middle = self._near
        if middle >= high:
            middle = high >> 1
        step: i64 = 1
        while low < high:
            found = all_ms[middle]
            if found < ms or (found == ms and all_seq[middle] < seq):
                low = middle + 1
            else:
                high = middle
            # First the neighbour, then as in any binary search.
            middle = low if step and low < high and low == middle + 1 else (low + high) >> 1
            step = 0
        self._near = low
        return int(low)


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
        names_of_node: while open: field names of the first entry, which Redis's node stores once.
        run: the decoded form: always there while open; None when sealed.
        recent: the decoded form of a sealed block that was read a moment ago.
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
        self.names_of_node = _NO_NAMES
        self.run: Run | None = None
        self.recent: Run | None = None

    def is_below(self, ms: int, seq: int) -> bool:
        """Whether every ID the block ever held is below (ms, seq)."""
        return is_below(self.last_ms, self.last_seq, ms, seq)

    def entries(self) -> Run:
        """The decoded entries, the dead ones included."""
        run = self.run
        if run is None:
            run = self.recent
            if run is None:
                run = self.decode()
                self.recent = run
                _recent.add(self)
        return run

    def decode(self) -> Run:
        """The entries of a sealed block, the dead ones included, without keeping them at hand."""
        view = memoryview(self.payload)
        body = cast("list[object]", _unpack(view[self.ids_bytes :]))
        if body[0] is None:
            run = Run(None)
            run.rows = cast("list[list[bytes]]", body[1])
        else:
            run = Run(cast("list[bytes]", body[0]))
            run.flat = cast("list[bytes]", body[1])
            if len(body) > 2:
                _spell(run.flat, len(run.names or ()), cast("list[int]", body[2]))
        self._decode_ids(run)
        return run

    def _decode_ids(self, run: Run) -> None:
        ms = 0
        seq = 0
        deltas = cast("list[int]", _unpack(memoryview(self.payload)[: self.ids_bytes]))
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

    def ids(self) -> Run:
        """The IDs, of the dead entries too, in a run whose values are not to be looked at.

        Cheaper than ``entries``, and no block that readers come back to is forgotten for it.
        """
        run = self.run if self.run is not None else self.recent
        if run is None:
            run = Run(_NO_NAMES)
            self._decode_ids(run)
        return run

    def seal(self) -> None:
        """Pack the live entries into the payload and let go of the decoded form."""
        run = self.entries()
        if self.dead is not None:
            run = _living(run, self.dead)
            self.dead = None
        ids = _pack(_deltas(run))
        self.payload = ids + _pack_values(run)
        self.names_of_node = _NO_NAMES
        self.ids_bytes = len(ids)
        self.run = None
        self.recent = None

    def packed(self) -> tuple[bytes, int]:
        """The payload with all entries, the dead ones included, and the length of its IDs."""
        run = self.run
        if run is None:
            return self.payload, self.ids_bytes
        ids = _pack(_deltas(run))
        return ids + _pack_values(run), len(ids)

    def reopen(self) -> None:
        """Back to Python objects, to be appended to."""
        run = self.decode()
        self.run = run
        self.recent = None
        self.names_of_node = run.row(0)[0::2]
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
        twin.names_of_node = self.names_of_node
        twin.payload = self.payload
        twin.ids_bytes = self.ids_bytes
        twin.run = None if self.run is None else self.run.copy()
        return twin


class _Recent:
    """The sealed blocks read last, of all streams; the newest takes the place of the oldest.

    Readers follow each other closely and stretches cross from block to block, so a few are enough;
    more would cost memory and make short streams faster than long ones.
    """

    def __init__(self) -> None:
        self._blocks: list[Block | None] = [None] * RECENT_BLOCKS
        self._next = 0

    def add(self, block: Block) -> None:
        oldest = self._blocks[self._next]
        if oldest is not None:
            oldest.recent = None
        self._blocks[self._next] = block
        self._next = (self._next + 1) % RECENT_BLOCKS


_recent: Final = _Recent()


def open_block(ms: int, seq: int, words: list[bytes], at: int) -> Block:
    """A block that is open and empty, whose first entry will be (ms, seq) ``words[at:]``."""
    block = Block(ms, seq)
    names = words[at::2]
    block.run = Run(names)
    # Counts of live and deleted entries, number of names, the names, a closing 0.
    size = EMPTY_BYTES + 2 + 2 + integer_bytes(len(names)) + 2
    for name in names:
        size += text_bytes(name)
    block.names_of_node = names
    block.node_bytes = size
    return block


def append(block: Block, ms: int, seq: int, words: list[bytes], at: int) -> None:
    """Add the entry ``words[at:]`` to an open block; the ID is above all of its IDs."""
    run = block.run
    assert run is not None
    # Flags, the ID's two halves, the values or all there is, how many elements that were.
    size = 2 + delta_bytes(ms - block.first_ms) + delta_bytes(seq - block.first_seq)
    names = block.names_of_node
    end = len(words)
    width = len(names)
    if _has_names(words, at, names):
        size += 2 if width < 120 else integer_bytes(width + 3)
        flat = run.flat
        mixed = run.names is None
        for number in range(at + 1, end, 2):
            value = words[number]
            size += text_bytes(value)
            if not mixed:
                flat.append(value)
        if mixed:
            run.rows.append(words[at:])
    else:
        if run.names is not None:
            run.mix()
        row = words[at:]
        size += integer_bytes(len(row) // 2) + integer_bytes(len(row) + 4)
        for element in row:
            size += text_bytes(element)
        run.rows.append(row)
    block.node_bytes += size
    run.ms.append(ms)
    run.seq.append(seq)
    if block.dead is not None:
        block.dead.append(0)
    block.last_ms = ms
    block.last_seq = seq
    block.total += 1
    block.live += 1


def _has_names(words: list[bytes], at: int, names: list[bytes]) -> bool:
    """Whether the entry ``words[at:]`` has these field names in this order."""
    if len(words) - at != 2 * len(names):
        return False
    for name in names:
        if words[at] != name:
            return False
        at += 2
    return True


def _living(run: Run, dead: bytearray) -> Run:
    living = Run(None)
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


def _pack_values(run: Run) -> bytes:
    """The payload's second part."""
    names = run.names
    flat = run.flat
    if names is None:
        rows = run.rows
        names = rows[0][0::2]
        for row in rows:
            if not _has_names(row, 0, names):
                return _pack([None, rows])
        flat = []
        for row in rows:
            for number in range(1, len(row), 2):
                flat.append(row[number])
    columns: list[int] = []
    values = _with_integers(flat, len(names), columns)
    if columns:
        try:
            return _pack([names, values, columns])
        except OverflowError:  # an integer of more than 64 bits
            pass
    return _pack([names, flat])


def _with_integers(flat: list[bytes], width: int, columns: list[int]) -> list[object]:
    """The values in a row, those of whole columns as integers; ``columns`` takes their numbers."""
    values: list[object] = []
    for column in range(width):
        first = flat[column]
        if not first or first[0] > 0x39 or (first[0] < 0x30 and first[0] != 0x2D):
            continue
        numbers = _integers(flat[column::width])
        if numbers:
            if not columns:
                values.extend(flat)
            columns.append(column)
            values[column::width] = numbers
    return values


def _integers(texts: list[bytes]) -> list[int]:
    """The integers that these texts spell canonically; none when one of them does not."""
    joined = b"[%b]" % b",".join(texts)
    if len(joined) > (_DIGITS_MAX + 1) * len(texts) + 1:
        return []
    try:
        numbers = _from_json(joined)
    except MsgspecError:
        return []
    return numbers if len(numbers) == len(texts) and _to_json(numbers) == joined else []


def _spell(flat: list[bytes], width: int, columns: list[int]) -> None:
    """Turn the integers in these columns back into texts."""
    for column in columns:
        flat[column::width] = _to_json(flat[column::width])[1:-1].split(b",")
