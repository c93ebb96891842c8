"""Hashes of which fields expire, small ones and large ones.

A field lives to the end of the millisecond that is its deadline. One that has expired stays until
it is removed. Methods that are given the time leave it out, the others show it. ``NEVER`` is no
deadline.

A large hash is two tables, of which the second has the deadlines, as scores, and the order in which
fields are due.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from librt.strings import BytesWriter, read_f64_le, read_i64_le, write_i64_le
from mypy_extensions import i64, mypyc_attr

from headrace.storage.due import (
    NOTHING,
    PAIR_BYTES,
    STALE_AT_ONCE,
    DueOrder,
    Heap,
    heap_of,
    pair_of,
)
from headrace.storage.hash import small
from headrace.storage.hash.small import Reading
from headrace.storage.packed.strings import (
    NOWHERE,
    empty_buffer,
    header_bytes,
    is_same,
    length_at,
    next_at,
    packed_string,
    string_at,
)
from headrace.storage.packed.table import SCORE_BYTES, SCORES, Table, new_seed

NEVER: Final[i64] = 0
NO_FIELD: Final[i64] = -1  # instead of a deadline
DEADLINE_BYTES: Final[i64] = 8
_AFTER_ALL: Final = 2**62
_TWO: Final[i64] = 2
_END_BYTES: Final[i64] = 2


@mypyc_attr(acyclic=True)
class Timed:
    """Fields with values, and with deadlines for some of them."""

    @abstractmethod
    def count(self) -> i64:
        """Return how many fields there are, those that have expired included."""

    @abstractmethod
    def get(self, field: bytes) -> bytes | None:
        """Return the value of a field, whether it has expired or not."""

    @abstractmethod
    def put(self, field: bytes, value: bytes, keeps: bool) -> bool:
        """Set the value of a field; False if it was there. Its deadline goes, unless kept."""

    @abstractmethod
    def remove(self, field: bytes) -> bool:
        """Take a field out; False if there is none."""

    def deadline_ms(self, field: bytes) -> i64:
        """Return the deadline of a field; ``NEVER`` where it has none or is none."""
        return max(NEVER, self.time_of(field))

    @abstractmethod
    def time_of(self, field: bytes) -> i64:
        """Return the deadline of a field; ``NO_FIELD`` where it is none."""

    @abstractmethod
    def expire_at(self, field: bytes, deadline_ms: i64) -> None:
        """Give a field, which is there, a deadline, or with ``NEVER`` take it away."""

    @abstractmethod
    def first_ms(self) -> i64:
        """Return the first of all deadlines, or a moment before it; ``NEVER`` where there is none.

        It is before where very many deadlines have been put off lately.
        """

    @abstractmethod
    def has_deadlines(self) -> bool:
        """Return whether any field has a deadline; a copy without order knows, too."""

    @abstractmethod
    def take_due(self, now_ms: i64, most: i64) -> list[bytes]:
        """Take out some of the fields that have expired, the first ones first, and return them.

        There may be fewer, or none, where very many deadlines have been put off lately.
        """

    @abstractmethod
    def read(self, what: i64, now_ms: i64) -> Reading:
        """Read the fields, the values or both of what has not expired."""

    @abstractmethod
    def copy(self) -> Timed:
        """Return the same, by itself."""

    @abstractmethod
    def used_bytes(self) -> int:
        """Return about how many bytes it takes."""


def has_passed(deadline_ms: i64, now_ms: i64) -> bool:
    """Return whether what has this deadline has expired."""
    return deadline_ms != NEVER and deadline_ms < now_ms


@mypyc_attr(acyclic=True)
class TimedPiece(Timed):
    """A small hash with deadlines: one ``bytes``, as that of one without, but ordered by them.

    ::

        count u16, field, value, deadline i64, field, value, deadline i64, ...

    What expires first stands first; among equal deadlines, what got its own last. Fields without
    one come behind, in the order in which they came or lost it. So does Redis's listpackex.
    """

    def __init__(self, piece: bytes) -> None:
        self.piece = piece

    def count(self) -> i64:
        return small.count_of(self.piece)

    def get(self, field: bytes) -> bytes | None:
        place = self._find(field)
        return None if place == NOWHERE else string_at(self.piece, next_at(self.piece, place))

    def put(self, field: bytes, value: bytes, keeps: bool) -> bool:
        place = self._find(field)
        if place == NOWHERE:
            self._insert(field, packed_string(value), NEVER)
            return True
        piece = self.piece
        start = next_at(piece, place)
        end = next_at(piece, start)
        if keeps or read_i64_le(piece, end) == NEVER:
            self.piece = b"%b%b%b" % (piece[:start], packed_string(value), piece[end:])
        else:
            self._cut(place)
            self._insert(field, packed_string(value), NEVER)
        return False

    def remove(self, field: bytes) -> bool:
        place = self._find(field)
        if place == NOWHERE:
            return False
        self._cut(place)
        return True

    def time_of(self, field: bytes) -> i64:
        place = self._find(field)
        return NO_FIELD if place == NOWHERE else read_i64_le(self.piece, _rest(self.piece, place))

    def expire_at(self, field: bytes, deadline_ms: i64) -> None:
        place = self._find(field)
        if place == NOWHERE:
            return
        piece = self.piece
        rest = _rest(piece, place)
        at = self._place_for(deadline_ms, place)
        low = min(at, place)
        high = max(at, rest + DEADLINE_BYTES)
        out = empty_buffer()
        out.write(piece[:low] + piece[rest + DEADLINE_BYTES : high])
        out.write(piece[place:rest])
        write_i64_le(out, deadline_ms)
        out.write(piece[low:place] + piece[high:])
        self.piece = out.getvalue()

    def first_ms(self) -> i64:
        piece = self.piece
        return NEVER if len(piece) == small.HEAD else read_i64_le(piece, _rest(piece, small.HEAD))

    def has_deadlines(self) -> bool:
        return self.first_ms() != NEVER

    def take_due(self, now_ms: i64, most: i64) -> list[bytes]:
        found: list[bytes] = []
        piece = self.piece
        at = small.HEAD
        end: i64 = len(piece)
        while at < end and most > 0:
            rest = _rest(piece, at)
            if not has_passed(read_i64_le(piece, rest), now_ms):
                break
            found.append(string_at(piece, at))
            at = rest + DEADLINE_BYTES
            most -= 1
        if found:
            self.piece = small.head(small.count_of(piece) - len(found)) + piece[at:]
        return found

    def read(self, what: i64, now_ms: i64) -> Reading:
        out = BytesWriter()
        count: i64 = 0
        piece = self.piece
        at = small.HEAD
        end: i64 = len(piece)
        while at < end:
            middle = next_at(piece, at)
            rest = next_at(piece, middle)
            if not has_passed(read_i64_le(piece, rest), now_ms):
                count += 1
                if what == small.BOTH:
                    out.write(piece[at:rest])
                elif what == small.FIELDS:
                    out.write(piece[at:middle])
                else:
                    assert what == small.VALUES
                    out.write(piece[middle:rest])
            at = rest + DEADLINE_BYTES
        return Reading(count, [out.getvalue()])

    def rows(self) -> list[tuple[bytes, bytes, int]]:
        """Return fields, values and deadlines, those that have passed included."""
        found: list[tuple[bytes, bytes, int]] = []
        piece = self.piece
        at = small.HEAD
        end: i64 = len(piece)
        while at < end:
            middle = next_at(piece, at)
            rest = next_at(piece, middle)
            deadline_ms = read_i64_le(piece, rest)
            found.append((string_at(piece, at), string_at(piece, middle), deadline_ms))
            at = rest + DEADLINE_BYTES
        return found

    def copy(self) -> TimedPiece:
        return TimedPiece(self.piece)

    def used_bytes(self) -> int:
        return 32 + 33 + len(self.piece)

    def _find(self, field: bytes) -> i64:
        piece = self.piece
        size: i64 = len(field)
        end: i64 = len(piece)
        at = small.HEAD
        while at < end:
            length = length_at(piece, at)
            start = at + header_bytes(length)
            if length == size and is_same(piece, start, field):
                return at
            at = next_at(piece, start + length + _END_BYTES) + DEADLINE_BYTES
        return NOWHERE

    def _cut(self, place: i64) -> None:
        piece = self.piece
        self.piece = b"%b%b%b" % (
            small.head(small.count_of(piece) - 1),
            piece[small.HEAD : place],
            piece[_rest(piece, place) + DEADLINE_BYTES :],
        )

    def _insert(self, field: bytes, value: bytes, deadline_ms: i64) -> None:
        piece = self.piece
        at = self._place_for(deadline_ms, NOWHERE)
        self.piece = b"%b%b%b%b%b%b" % (
            small.head(small.count_of(piece) + 1),
            piece[small.HEAD : at],
            packed_string(field),
            value,
            packed_deadline(deadline_ms),
            piece[at:],
        )

    def _place_for(self, deadline_ms: i64, moved: i64) -> i64:
        """Return where a field with this deadline is to stand; ``moved`` is where it stands."""
        piece = self.piece
        end: i64 = len(piece)
        at = end if deadline_ms == NEVER else small.HEAD
        while at < end:
            rest = _rest(piece, at)
            other = read_i64_le(piece, rest)
            if at != moved and (other == NEVER or other >= deadline_ms):
                break
            at = rest + DEADLINE_BYTES
        return at


def timed_piece(pairs: bytes) -> TimedPiece:
    """Return a small hash, of which no field has a deadline yet, in the form with deadlines."""
    out = empty_buffer()
    out.write(pairs[: small.HEAD] if len(pairs) else small.EMPTY)
    at = small.HEAD
    end: i64 = len(pairs)
    while at < end:
        stop = next_at(pairs, at, _TWO)
        out.write(pairs[at:stop])
        write_i64_le(out, NEVER)
        at = stop
    return TimedPiece(out.getvalue())


def piece_of(pairs: list[bytes], deadlines: list[int]) -> TimedPiece:
    """Return a small hash of fields and values in turn, each with a deadline or ``NEVER``.

    Fields of equal deadlines stay in the order in which they are given.
    """
    rows = sorted(range(len(deadlines)), key=lambda row: deadlines[row] or _AFTER_ALL)
    made = [small.head(len(rows))]
    for row in rows:
        made.append(packed_string(pairs[2 * row]))
        made.append(packed_string(pairs[2 * row + 1]))
        made.append(packed_deadline(deadlines[row]))
    return TimedPiece(b"".join(made))


def packed_deadline(deadline_ms: i64) -> bytes:
    """Return a deadline as it stands behind a value."""
    out = BytesWriter()
    write_i64_le(out, deadline_ms)
    return out.getvalue()


def _rest(piece: bytes, place: i64) -> i64:
    return next_at(piece, place, _TWO)


_FIELD_BYTES: Final = 16  # of a field that is due, about
_FREED_WITH_A_PIECE: Final = 128  # pairs


@mypyc_attr(acyclic=True)
class FieldOrder(DueOrder):
    """The fields of a hash in the order in which they are due; ``times`` has them as scores."""

    def __init__(self, times: Table, pairs: Heap) -> None:
        super().__init__(pairs)
        self._times: Final = times

    def moment_of(self, name: bytes) -> i64:
        moment_ms = self._times.score(name)
        return i64(int(moment_ms)) if moment_ms == moment_ms else NOTHING


@mypyc_attr(acyclic=True)
class TimedTable(Timed):
    """Fields with values in ``table``, and in ``times`` the deadlines of those that have one."""

    def __init__(self, table: Table, times: Table, pairs: Heap) -> None:
        self.table: Final = table
        self.times: Final = times
        self._order: Final = FieldOrder(times, pairs)

    def count(self) -> i64:
        return self.table.count

    def get(self, field: bytes) -> bytes | None:
        return self.table.get(field)

    def put(self, field: bytes, value: bytes, keeps: bool) -> bool:
        if not keeps:
            self.times.remove(field)
        return self.table.put(field, value)

    def remove(self, field: bytes) -> bool:
        self.times.remove(field)
        return self.table.remove(field)

    def time_of(self, field: bytes) -> i64:
        deadline_ms = self.times.score(field)
        if deadline_ms == deadline_ms:
            return i64(int(deadline_ms))
        return NEVER if self.table.has(field) else NO_FIELD

    def expire_at(self, field: bytes, deadline_ms: i64) -> None:
        if deadline_ms == NEVER:
            self.times.remove(field)
            return
        self.times.put_score(field, float(deadline_ms))
        self._order.add(field, deadline_ms, self.times.count)

    def first_ms(self) -> i64:
        if not self.times.count:
            return NEVER
        first_ms = self._order.next_ms()
        return NEVER if first_ms == NOTHING else first_ms

    def has_deadlines(self) -> bool:
        return self.times.count > 0

    def take_due(self, now_ms: i64, most: i64) -> list[bytes]:
        found: list[bytes] = []
        order = self._order
        looks = most + STALE_AT_ONCE
        while looks > 0 and len(found) < most:
            first_ms = order.first_ms()
            if first_ms == NOTHING or first_ms >= now_ms:
                break
            looks -= 1
            field = order.take_first()
            if field is not None:
                self.remove(field)
                found.append(field)
        return found

    def read(self, what: i64, now_ms: i64) -> Reading:
        first_ms = self.first_ms()
        if not has_passed(first_ms, now_ms):
            return small.read_table(self.table, what)
        pieces: list[bytes] = []
        count: i64 = 0
        for directory in self.table.directories:
            for bucket in directory:
                living = self.living(bucket, now_ms)
                at: i64 = 0
                while at < len(living):
                    at = next_at(living, at, 2)
                    count += 1
                pieces.append(small.cut(living, 0, what))
        return Reading(count, pieces)

    def living(self, bucket: bytes, now_ms: i64) -> bytes:
        """Return the pairs of a bucket whose fields have not expired."""
        out = BytesWriter()
        at: i64 = 0
        end: i64 = len(bucket)
        while at < end:
            stop = next_at(bucket, at, 2)
            if not has_passed(self.deadline_ms(string_at(bucket, at)), now_ms):
                out.write(bucket[at:stop])
            at = stop
        return out.getvalue()

    def copy(self) -> TimedTable:
        return TimedTable(self.table.copy(), self.times.copy(), self._order.pairs.copy())

    def without_order(self) -> TimedTable:
        """Return a copy that is not asked what is due. Complexity: O(directories)."""
        return TimedTable(self.table.copy(), self.times.copy(), Heap())

    def free_some(self, most: int) -> bool:
        """Free about ``most`` pieces of what is no longer used; True at the end."""
        return (
            self.table.free_some(most)
            and self.times.free_some(most)
            and self._order.free_some(most * _FREED_WITH_A_PIECE)
        )

    def used_bytes(self) -> int:
        order = (PAIR_BYTES + _FIELD_BYTES) * int(self._order.pairs.size)
        return self.table.used_bytes() + self.times.used_bytes() + order


def timed_table(table: Table) -> TimedTable:
    """Return a large hash, of which no field has a deadline yet, in the form with deadlines."""
    return TimedTable(table, Table(SCORES, new_seed()), Heap())


def table_with_times(table: Table, times: Table) -> TimedTable:
    """Return a large hash as it comes from a file: the order is made anew."""
    pairs: list[bytes] = []
    for directory in times.directories:
        for bucket in directory:
            at: i64 = 0
            while at < len(bucket):
                rest = next_at(bucket, at)
                moment_ms = i64(int(read_f64_le(bucket, rest)))
                pairs.append(pair_of(moment_ms, string_at(bucket, at)))
                at = rest + SCORE_BYTES
    return TimedTable(table, times, heap_of(pairs))
