"""Names in the order in which they are due: what keys, fields and values with such fields share.

A pair is one ``bytes``: eight bytes of a moment, highest first, and the name. So pairs compare as
they are due, and no object stands for one besides. They make a heap (``heap``). Whoever gives a
name another moment adds a pair, and the one before is stale: it is dropped when it comes up. When
most pairs are stale, each new one has a few looked at, from the last to the first and round again,
and the stale ones among them taken out. Nothing is ever done for all of them in one piece.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i64_be
from mypy_extensions import i64, mypyc_attr

from headrace.storage.heap import Heap

NOTHING: Final[i64] = -1  # instead of a moment
STALE_AT_ONCE: Final = 64  # pairs that one question may drop
PAIR_BYTES: Final = 33 + 8 + 8  # of a pair beside its name, with its place
_SMALL: Final = 64
_LOOKS: Final = 4  # at pairs of which most are stale, for each new one
_MOMENT_BYTES: Final[i64] = 8


@mypyc_attr(acyclic=True)
class DueOrder:
    """The names of one owner that knows when each of them is due.

    Attributes:
        pairs: the heap; at least one for each name that has a moment.
    """

    def __init__(self, pairs: Heap) -> None:
        self.pairs: Final = pairs
        self._looked_at: i64 = 0  # the pair that was looked at last

    def moment_of(self, name: bytes) -> i64:
        """When a name is due by now, in milliseconds since 1970; ``NOTHING``: never."""
        raise NotImplementedError

    def add(self, name: bytes, moment_ms: i64, living: i64) -> None:
        """Take note of a moment that a name has been given; ``living`` names have one.

        Complexity: O(log n), n being the number of pairs.
        """
        pairs = self.pairs
        pairs.add(pair_of(moment_ms, name))
        if pairs.size > _SMALL and pairs.size > 2 * living:
            self._drop_stale(_LOOKS)

    def first_ms(self) -> i64:
        """The moment of the first pair, stale or not; ``NOTHING`` where there is none."""
        pairs = self.pairs
        return read_i64_be(pairs.at(0), 0) if pairs.size else NOTHING

    def next_ms(self) -> i64:
        """A moment before which nothing is due; ``NOTHING`` where nothing is.

        It is that of a name, unless very many stale pairs are in front.
        """
        self.fresh_first()
        return self.first_ms()

    def fresh_first(self) -> bytes | None:
        """The name that is due first; None where there is none, or very many stale pairs were met.

        Those are dropped, so it pays to ask again.
        """
        pairs = self.pairs
        looks = STALE_AT_ONCE
        while pairs.size and looks:
            first = pairs.at(0)
            if self._is_fresh(first):
                return name_of(first)
            pairs.take(0)
            looks -= 1
        return None

    def take_first(self) -> bytes | None:
        """Take the first pair out, of which there must be one; its name, None if it is stale."""
        pair = self.pairs.take(0)
        return name_of(pair) if self._is_fresh(pair) else None

    def some(self, most: int) -> list[bytes]:
        """Some names that may have a moment, among them the first."""
        return [name_of(pair) for pair in self.pairs.some(most)]

    def fresh(self, most: int) -> list[bytes]:
        """Some names that are due soon, among them the first, as ``some``; stale ones are dropped.

        Complexity: O(log n) for each that is dropped.
        """
        pairs = self.pairs
        place = min(i64(most), pairs.size)
        while place > 0:
            place -= 1
            if not self._is_fresh(pairs.at(place)):
                pairs.take(place)
        return self.some(most)

    def name_at(self, place: i64) -> bytes:
        """The name of a pair below ``pairs.size``; it may be stale."""
        return name_of(self.pairs.at(place))

    def free_some(self, most: int) -> bool:
        """Drop so many pairs; True when none is left. The order is of no use then."""
        return self.pairs.free_some(most)

    def _is_fresh(self, pair: bytes) -> bool:
        moment_ms = self.moment_of(name_of(pair))
        return moment_ms != NOTHING and max(moment_ms, 0) == read_i64_be(pair, 0)

    def _drop_stale(self, looks: i64) -> None:
        """Look at so many pairs, and take the stale ones out."""
        pairs = self.pairs
        at = self._looked_at
        while looks > 0 and pairs.size:
            looks -= 1
            at = at - 1 if 0 < at <= pairs.size else pairs.size - 1
            if not self._is_fresh(pairs.at(at)):
                pairs.take(at)
        self._looked_at = at


def pair_of(moment_ms: i64, name: bytes) -> bytes:
    """A pair; a moment before 1970 is as 1970."""
    out = BytesWriter()
    write_i64_be(out, max(0, moment_ms))
    out.write(name)
    return out.getvalue()


def name_of(pair: bytes) -> bytes:
    """The name of a pair."""
    return pair[_MOMENT_BYTES:]
