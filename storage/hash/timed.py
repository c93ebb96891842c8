"""Hashes of which fields expire, and the small form of them.

A field lives to the end of the millisecond that is its deadline. One that has expired stays until
it is removed. Methods that are given the time leave it out, the others show it. ``NEVER`` is no
deadline.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64, mypyc_attr

from headrace.storage.hash.cutting import BOTH, FIELDS, VALUES, Reading
from headrace.storage.hash.small import EMPTY, HEAD, count_of, head
from headrace.storage.packed.strings import (
    NOWHERE,
    header_bytes,
    is_same,
    length_at,
    next_at,
    packed_string,
    string_at,
)

NEVER: Final[i64] = 0
DEADLINE_BYTES: Final[i64] = 8
_AFTER_ALL: Final = 2**62
_TWO: Final[i64] = 2
_END_BYTES: Final[i64] = 2


@mypyc_attr(acyclic=True)
class Timed:
    """Fields with values, and with deadlines for some of them."""

    @abstractmethod
    def count(self) -> i64:
        """How many fields there are, those that have expired included."""
        raise NotImplementedError

    @abstractmethod
    def get(self, field: bytes) -> bytes | None:
        """The value of a field, whether it has expired or not."""
        raise NotImplementedError

    @abstractmethod
    def put(self, field: bytes, value: bytes, keeps: bool) -> bool:
        """Set the value of a field; False if it was there. Unless it keeps it, a deadline goes."""
        raise NotImplementedError

    @abstractmethod
    def remove(self, field: bytes) -> bool:
        """Take a field out; False if there is none."""
        raise NotImplementedError

    @abstractmethod
    def deadline_ms(self, field: bytes) -> i64:
        """The deadline of a field; ``NEVER`` where it has none or is none."""
        raise NotImplementedError

    @abstractmethod
    def expire_at(self, field: bytes, deadline_ms: i64) -> None:
        """Give a field, which is there, a deadline, or with ``NEVER`` take it away."""
        raise NotImplementedError

    @abstractmethod
    def first_ms(self) -> i64:
        """The first of all deadlines, or a moment before it; ``NEVER`` where there is none.

        It is before where very many deadlines have been put off lately.
        """
        raise NotImplementedError

    @abstractmethod
    def has_deadlines(self) -> bool:
        """Whether any field has a deadline; a copy without order knows, too."""
        raise NotImplementedError

    @abstractmethod
    def take_due(self, now_ms: i64, most: i64) -> list[bytes]:
        """Take out some of the fields that have expired, the first ones first; which they were.

        It may be fewer where very many deadlines have been put off lately, or none.
        """
        raise NotImplementedError

    @abstractmethod
    def read(self, what: i64, now_ms: i64) -> Reading:
        """Fields, values or both, of what has not expired."""
        raise NotImplementedError

    @abstractmethod
    def copy(self) -> Timed:
        """The same, by itself."""
        raise NotImplementedError

    @abstractmethod
    def used_bytes(self) -> int:
        """About how much memory it takes."""
        raise NotImplementedError


def has_passed(deadline_ms: i64, now_ms: i64) -> bool:
    """Whether what has this deadline has expired."""
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
        """See ``Timed``."""
        return count_of(self.piece)

    def get(self, field: bytes) -> bytes | None:
        """See ``Timed``."""
        place = self._find(field)
        return None if place == NOWHERE else string_at(self.piece, next_at(self.piece, place))

    def put(self, field: bytes, value: bytes, keeps: bool) -> bool:
        """See ``Timed``."""
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
        """See ``Timed``."""
        place = self._find(field)
        if place == NOWHERE:
            return False
        self._cut(place)
        return True

    def deadline_ms(self, field: bytes) -> i64:
        """See ``Timed``."""
        place = self._find(field)
        return NEVER if place == NOWHERE else read_i64_le(self.piece, _rest(self.piece, place))

    def expire_at(self, field: bytes, deadline_ms: i64) -> None:
        """See ``Timed``."""
        place = self._find(field)
        if place == NOWHERE:
            return
        piece = self.piece
        value = piece[next_at(piece, place) : _rest(piece, place)]
        self._cut(place)
        self._insert(field, value, deadline_ms)

    def first_ms(self) -> i64:
        """See ``Timed``."""
        piece = self.piece
        return NEVER if len(piece) == HEAD else read_i64_le(piece, _rest(piece, HEAD))

    def has_deadlines(self) -> bool:
        """See ``Timed``."""
        return self.first_ms() != NEVER

    def take_due(self, now_ms: i64, most: i64) -> list[bytes]:
        """See ``Timed``."""
        found: list[bytes] = []
        piece = self.piece
        at = HEAD
        end: i64 = len(piece)
        while at < end and most > 0:
            rest = _rest(piece, at)
            if not has_passed(read_i64_le(piece, rest), now_ms):
                break
            found.append(string_at(piece, at))
            at = rest + DEADLINE_BYTES
            most -= 1
        if found:
            self.piece = head(count_of(piece) - len(found)) + piece[at:]
        return found

    def read(self, what: i64, now_ms: i64) -> Reading:
        """See ``Timed``."""
        out = BytesWriter()
        count: i64 = 0
        piece = self.piece
        at = HEAD
        end: i64 = len(piece)
        while at < end:
            middle = next_at(piece, at)
            rest = next_at(piece, middle)
            if not has_passed(read_i64_le(piece, rest), now_ms):
                count += 1
                if what == BOTH:
                    out.write(piece[at:rest])
                elif what == FIELDS:
                    out.write(piece[at:middle])
                else:
                    assert what == VALUES
                    out.write(piece[middle:rest])
            at = rest + DEADLINE_BYTES
        return Reading(count, [out.getvalue()])

    def rows(self) -> list[tuple[bytes, bytes, int]]:
        """Fields, values and deadlines, those that have passed included."""
        found: list[tuple[bytes, bytes, int]] = []
        piece = self.piece
        at = HEAD
        end: i64 = len(piece)
        while at < end:
            middle = next_at(piece, at)
            rest = next_at(piece, middle)
            deadline_ms = read_i64_le(piece, rest)
            found.append((string_at(piece, at), string_at(piece, middle), deadline_ms))
            at = rest + DEADLINE_BYTES
        return found

    def copy(self) -> TimedPiece:
        """See ``Timed``."""
        return TimedPiece(self.piece)

    def used_bytes(self) -> int:
        """See ``Timed``."""
        return 32 + 33 + len(self.piece)

    def _find(self, field: bytes) -> i64:
        piece = self.piece
        size: i64 = len(field)
        end: i64 = len(piece)
        at = HEAD
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
            head(count_of(piece) - 1),
            piece[HEAD:place],
            piece[_rest(piece, place) + DEADLINE_BYTES :],
        )

    def _insert(self, field: bytes, value: bytes, deadline_ms: i64) -> None:
        """Put a field where it belongs.

        Args:
            value: packed.
        """
        piece = self.piece
        at: i64 = len(piece)
        if deadline_ms != NEVER:
            end = at
            at = HEAD
            while at < end:
                rest = _rest(piece, at)
                other = read_i64_le(piece, rest)
                if other == NEVER or other >= deadline_ms:
                    break
                at = rest + DEADLINE_BYTES
        self.piece = b"%b%b%b%b%b%b" % (
            head(count_of(piece) + 1),
            piece[HEAD:at],
            packed_string(field),
            value,
            packed_deadline(deadline_ms),
            piece[at:],
        )


def timed_piece(pairs: bytes) -> TimedPiece:
    """What a small hash without deadlines is with them; none of its fields has one yet."""
    out = BytesWriter()
    out.write(pairs[:HEAD] if len(pairs) else EMPTY)
    never = packed_deadline(NEVER)
    at = HEAD
    end: i64 = len(pairs)
    while at < end:
        stop = next_at(pairs, at, _TWO)
        out.write(pairs[at:stop])
        out.write(never)
        at = stop
    return TimedPiece(out.getvalue())


def piece_of(pairs: list[bytes], deadlines: list[int]) -> TimedPiece:
    """A small hash of fields and values in turn, each field with its deadline or ``NEVER``.

    Fields of equal deadlines stay in the order in which they are given.
    """
    rows = sorted(range(len(deadlines)), key=lambda row: deadlines[row] or _AFTER_ALL)
    made = [head(len(rows))]
    for row in rows:
        made.append(packed_string(pairs[2 * row]))
        made.append(packed_string(pairs[2 * row + 1]))
        made.append(packed_deadline(deadlines[row]))
    return TimedPiece(b"".join(made))


def packed_deadline(deadline_ms: i64) -> bytes:
    """A deadline as it stands behind a value."""
    out = BytesWriter()
    write_i64_le(out, deadline_ms)
    return out.getvalue()


def _rest(piece: bytes, place: i64) -> i64:
    """Where the deadline of the field at a place stands."""
    return next_at(piece, place, _TWO)
