"""A hash in memory.

It is one of four things, and turns from one to the next and never back:

==============  ==================  ====================================================
what it is      OBJECT ENCODING     when
==============  ==================  ====================================================
``bytes``       ``listpack``        it is small
``TimedPiece``  ``listpackex``      it is small, and a field of it has had a deadline
``Table``       ``hashtable``       it is large
``TimedTable``  ``hashtable``       it is large, and a field of it has had a deadline
==============  ==================  ====================================================

A field that has expired stays until it is met, or until the cron takes it out. What is asked of the
hash here knows no time, unless it is given one.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_le
from mypy_extensions import i64, mypyc_attr

from headrace.storage.collection import Collection, SmallLimits
from headrace.storage.digest import DIGEST_BYTES, Digest
from headrace.storage.hash import small
from headrace.storage.hash.small import Reading
from headrace.storage.hash.timed import (
    DEADLINE_BYTES,
    NEVER,
    NO_FIELD,
    Timed,
    TimedPiece,
    TimedTable,
    has_passed,
    piece_of,
    timed_piece,
    timed_table,
)
from headrace.storage.packed.strings import (
    NOWHERE,
    length_at,
    next_at,
    pack,
    sound_end,
    string_at,
    unpack,
    with_string,
)
from headrace.storage.packed.table import PAIRS as PAIR_TABLE
from headrace.storage.packed.table import SCORES as SCORE_TABLE
from headrace.storage.packed.table import Table, keys_of, new_seed

HASH: Final = b"hash"
_SCATTERED: Final[i64] = 10_000
_DIGEST_NUMBER: Final = 4
_DIGEST_OF_DEADLINE: Final = b"!!hexpire!!"
_OBJECT_BYTES: Final = 32
_BYTES_HEADER: Final = 33


@mypyc_attr(acyclic=True)
class Hash(Collection):
    """Fields with values; ``rep`` is what it is: see the module."""

    def __init__(self) -> None:
        self.rep: object = small.EMPTY

    # Reading

    def size(self) -> int:
        """Return how many fields there are, those that have expired included."""
        rep = self.rep
        if isinstance(rep, bytes):
            return small.count_of(rep)
        return rep.count if isinstance(rep, Table) else self._timed().count()

    def get(self, field: bytes) -> bytes | None:
        """Return the value of a field, or None."""
        rep = self.rep
        if isinstance(rep, bytes):
            place = small.find_value(rep, field)
            return None if place < 0 else string_at(rep, place)
        return rep.get(field) if isinstance(rep, Table) else self._timed().get(field)

    def get_packed(self, field: bytes) -> bytes | None:
        """Return the value as ``get``, as a packed string; of a hash of which no field expires."""
        rep = self.rep
        if isinstance(rep, Table):
            return rep.get_packed(field)
        assert isinstance(rep, bytes)
        place = small.find_value(rep, field)
        return None if place < 0 else rep[place : next_at(rep, place)]

    def length(self, field: bytes) -> int:
        """Return the length in bytes of the value of a field; -1 if there is none."""
        rep = self.rep
        if isinstance(rep, bytes):
            place = small.find_value(rep, field)
            return -1 if place < 0 else length_at(rep, place)
        value = self.get(field)
        return -1 if value is None else len(value)

    def read(self, what: i64, now_ms: i64) -> Reading:
        """Read ``FIELDS``, ``VALUES`` or ``BOTH``, without what has expired."""
        rep = self.rep
        if isinstance(rep, bytes):
            return Reading(small.count_of(rep), [small.cut(rep, small.HEAD, what)])
        if isinstance(rep, Table):
            return small.read_table(rep, what)
        return self._timed().read(what, now_ms)

    def elements(self) -> list[bytes]:
        """Return all fields with their values, each pair packed."""
        found: list[bytes] = []
        for piece in self.read(small.BOTH, NEVER).pieces:
            at: i64 = 0
            end: i64 = len(piece)
            while at < end:
                stop = next_at(piece, at, small.PAIR)
                found.append(piece[at:stop])
                at = stop
        return found

    def random(self, bits: int) -> bytes:
        """Return a random field with its value, packed; ``bits`` are SEED_BITS, unforeseeable."""
        rep = self.rep
        if isinstance(rep, TimedTable):
            rep = rep.table
        if isinstance(rep, Table):
            return rep.random(bits)
        count = self.size()
        if isinstance(rep, bytes):
            at = next_at(rep, small.HEAD, small.PAIR * (bits % count))
            return rep[at : next_at(rep, at, small.PAIR)]
        return self.elements()[bits % count]

    def scan(self, cursor: int, least: int, now_ms: int) -> tuple[int, list[bytes]]:
        """Return the next cursor, 0 at the end, and packed pairs of about ``least`` fields or more.

        A small hash is one step. What has expired is left out.
        """
        rep = self.rep
        table = rep.table if isinstance(rep, TimedTable) else rep
        if not isinstance(table, Table):
            return 0, self.read(small.BOTH, now_ms).pieces
        found: list[bytes] = []
        cursor = table.scan(cursor, least, found)
        if isinstance(rep, TimedTable) and has_passed(rep.first_ms(), now_ms):
            found = [rep.living(bucket, now_ms) for bucket in found]
        return cursor, found

    def scattered_table(self) -> Table | None:
        rep = self.rep
        return rep if isinstance(rep, Table) and rep.count >= _SCATTERED else None

    # Changing

    def put(self, field: bytes, value: bytes, limits: SmallLimits, keeps: bool = False) -> bool:
        """Set the value of a field; False if it was there. ``keeps`` lets its deadline stay."""
        rep = self.rep
        if isinstance(rep, Table):
            return rep.put(field, value)
        if isinstance(rep, bytes):
            most = limits.element_bytes
            if len(field) <= most and len(value) <= most:
                place = small.find_value(rep, field)
                if place >= 0:
                    self.rep = with_string(rep, place, value)
                    return False
                self.rep = small.with_field(rep, field, value)
                if small.count_of(rep) >= min(limits.elements, small.MOST):
                    self.grow()
                return True
            return self.grow().put(field, value)
        return self._put_timed(field, value, limits, keeps)

    def _put_timed(self, field: bytes, value: bytes, limits: SmallLimits, keeps: bool) -> bool:
        most = limits.element_bytes
        if isinstance(self.rep, TimedPiece) and (len(field) > most or len(value) > most):
            self.grow()
        timed = self._timed()
        is_new = timed.put(field, value, keeps)
        if isinstance(timed, TimedPiece) and timed.count() > min(limits.elements, small.MOST):
            self.grow()
        return is_new

    def remove(self, field: bytes) -> bool:
        """Take a field out; False if there is none."""
        rep = self.rep
        if isinstance(rep, bytes):
            place = small.find_field(rep, field)
            if place < 0:
                return False
            self.rep = small.without(rep, place)
            return True
        if isinstance(rep, Table):
            return rep.remove(field)
        return self._timed().remove(field)

    def fit(self, words: list[bytes], start: i64, limits: SmallLimits) -> None:
        """Turn large if the coming fields and values, in turn from ``start`` on, say so."""
        if not self.is_small():
            return
        if (len(words) - start) >> 1 > limits.elements:
            self.grow()
            return
        most = limits.element_bytes
        for at in range(start, len(words)):
            if len(words[at]) > most:
                self.grow()
                return

    def grow(self) -> Table:
        """Turn large; return the table of the fields."""
        rep = self.rep
        table = Table(PAIR_TABLE, new_seed())
        if isinstance(rep, bytes):
            pairs = unpack(rep[small.HEAD :])
            for at in range(0, len(pairs), 2):
                table.put(pairs[at], pairs[at + 1])
            self.rep = table
        elif isinstance(rep, TimedPiece):
            timed = timed_table(table)
            for field, value, deadline_ms in rep.rows():
                timed.table.put(field, value)
                if deadline_ms != NEVER:
                    timed.expire_at(field, deadline_ms)
            self.rep = timed
        return table

    # Deadlines

    def is_timed(self) -> bool:
        """Return whether a field has, or has had, a deadline."""
        rep = self.rep
        return not isinstance(rep, bytes) and not isinstance(rep, Table)  # with a tuple: slower

    def deadline_ms(self, field: bytes) -> int:
        """Return the deadline of a field; ``NEVER`` where it has none or is none."""
        rep = self.rep
        return rep.deadline_ms(field) if isinstance(rep, Timed) else NEVER

    def time_of(self, field: bytes) -> int:
        """Return the deadline of a field as ``deadline_ms``; ``NO_FIELD`` where it is none."""
        rep = self.rep
        if isinstance(rep, Timed):
            return rep.time_of(field)
        return NEVER if self.length(field) >= 0 else NO_FIELD

    def first_ms(self) -> int:
        """Return the first deadline, or a moment before (see ``Timed``); ``NEVER`` without one."""
        rep = self.rep
        return rep.first_ms() if isinstance(rep, Timed) else NEVER

    def has_deadlines(self) -> bool:
        """Return whether any field has a deadline, in a frozen hash, too."""
        rep = self.rep
        return isinstance(rep, Timed) and rep.has_deadlines()

    def be_timed(self) -> Timed:
        """Become a hash whose fields expire; return what keeps their deadlines."""
        rep = self.rep
        if isinstance(rep, bytes):
            self.rep = timed_piece(rep)
        elif isinstance(rep, Table):
            self.rep = timed_table(rep)
        return self._timed()

    def first_part_ms(self) -> int:
        return self.first_ms()

    def take_due(self, now_ms: int, most: int) -> list[bytes]:
        """Take out some of the fields that have expired, and return them."""
        rep = self.rep
        return rep.take_due(now_ms, most) if isinstance(rep, Timed) else []

    def _timed(self) -> Timed:
        rep = self.rep
        assert isinstance(rep, Timed)
        return rep

    # The face

    def type_name(self) -> bytes:
        return HASH

    def is_small(self) -> bool:
        """Return whether it is in one piece."""
        rep = self.rep
        return isinstance(rep, bytes) or isinstance(rep, TimedPiece)  # noqa: SIM101 (slower)

    def encoding(self, key: bytes) -> bytes:
        rep = self.rep
        if isinstance(rep, bytes):
            return b"listpack"
        return b"listpackex" if isinstance(rep, TimedPiece) else b"hashtable"

    def used_bytes(self, samples: int) -> int:
        rep = self.rep
        if isinstance(rep, bytes):
            return _OBJECT_BYTES + _BYTES_HEADER + len(rep)
        if isinstance(rep, Table):
            return _OBJECT_BYTES + rep.used_bytes()
        return _OBJECT_BYTES + self._timed().used_bytes()

    def copy(self) -> Hash:
        twin = Hash()
        rep = self.rep
        if isinstance(rep, Table):
            twin.rep = rep.copy()
        else:
            twin.rep = rep.copy() if isinstance(rep, Timed) else rep
        return twin

    def freeze(self) -> object:
        """Freeze as ``Collection``; the order in which fields are due stays behind."""
        rep = self.rep
        if not isinstance(rep, TimedTable):
            return self.copy()
        twin = Hash()
        twin.rep = rep.without_order()
        return twin

    def effort(self) -> int:
        rep = self.rep
        if isinstance(rep, bytes):
            return 0
        if isinstance(rep, Table):
            return rep.effort()
        return rep.table.effort() if isinstance(rep, TimedTable) else 0

    def free_some(self, most: int) -> bool:
        rep = self.rep
        if isinstance(rep, TimedTable):
            return rep.free_some(most)
        return not isinstance(rep, Table) or rep.free_some(most)

    def add_to(self, digest: Digest) -> None:
        digest.mix_type(_DIGEST_NUMBER)
        for piece in self.read(small.BOTH, NEVER).pieces:
            at: i64 = 0
            end: i64 = len(piece)
            while at < end:
                middle = next_at(piece, at)
                field = string_at(piece, at)
                pair = Digest()
                pair.mix(field)
                pair.mix(string_at(piece, middle))
                if self.deadline_ms(field) != NEVER:
                    pair.toggle(_DIGEST_OF_DEADLINE)
                digest.toggle(pair.value.to_bytes(DIGEST_BYTES, "big"))
                at = next_at(piece, middle)


def packed_hash(pairs: list[bytes], deadlines: list[int] | None) -> Hash | None:
    """Return a small hash of up to ``MOST`` fields and values in turn; None: a field comes twice.

    ``deadlines`` are those of each field, or ``NEVER``; None: it has none, and never had.
    """
    count = len(pairs) // 2
    if len(set(pairs[::2])) < count:
        return None
    made = Hash()
    made.rep = small.head(count) + pack(pairs) if deadlines is None else piece_of(pairs, deadlines)
    return made


_LAST_MS: Final = (1 << 46) - 1


def flaw(value: Hash) -> str:
    """Return what is wrong with a hash; empty if nothing is. Complexity: O(fields)."""
    rep = value.rep
    if isinstance(rep, bytes):
        return _flaw_of_piece(rep, False)
    if isinstance(rep, TimedPiece):
        return _flaw_of_piece(rep.piece, True)
    if isinstance(rep, Table):
        return rep.flaw()
    assert isinstance(rep, TimedTable)
    return rep.table.flaw() or rep.times.flaw() or _flaw_of_times(rep)


def _flaw_of_piece(piece: bytes, timed: bool) -> str:
    met: set[bytes] = set()
    last_ms: i64 = 1
    at = small.HEAD
    end: i64 = len(piece)
    while at < end:
        middle = sound_end(piece, at)
        stop = NOWHERE if middle == NOWHERE else sound_end(piece, middle)
        if stop == NOWHERE or (timed and stop + DEADLINE_BYTES > end):
            return "a small hash that cannot be read"
        met.add(string_at(piece, at))
        if timed:
            deadline_ms = read_i64_le(piece, stop)
            if last_ms == NEVER and deadline_ms != NEVER:
                return "a field with a deadline behind one without"
            if deadline_ms != NEVER and not last_ms <= deadline_ms <= _LAST_MS:
                return "deadlines out of order"
            last_ms = deadline_ms
            stop += DEADLINE_BYTES
        at = stop
    return (
        "" if len(met) == small.count_of(piece) else f"{len(met)} fields where others are counted"
    )


def _flaw_of_times(rep: TimedTable) -> str:
    for directory in rep.times.directories:
        for bucket in directory:
            for field in keys_of(bucket, SCORE_TABLE):
                deadline = rep.times.score(field)
                if not 1 <= deadline <= _LAST_MS or deadline != int(deadline):
                    return "a deadline that is none"
                if not rep.table.has(field):
                    return "a deadline without a field"
    return ""
