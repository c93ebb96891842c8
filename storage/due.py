"""Names in the order in which they are due: what keys, fields and values with such fields share.

A pair is one ``bytes``: eight bytes of a moment, highest first, and the name. So pairs compare as
they are due, and no object stands for one besides. They make a heap. Whoever gives a name another
moment adds a pair, and the one before is stale: it is dropped when it comes up. When most pairs are
stale, each new one has a few looked at, from the last to the first and round again, and the stale
ones among them taken out. Nothing is ever done for all of them in one piece.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i64_be
from mypy_extensions import i64, mypyc_attr

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

    def __init__(self, pairs: list[bytes]) -> None:
        self.pairs = pairs
        self._looked_at: i64 = 0  # the pair that was looked at last

    def moment_of(self, name: bytes) -> i64:
        """When a name is due by now, in milliseconds since 1970; ``NOTHING``: never."""
        raise NotImplementedError

    def add(self, name: bytes, moment_ms: i64, living: i64) -> None:
        """Take note of a moment that a name has been given; ``living`` names have one.

        Complexity: O(log n), n being the number of pairs.
        """
        pairs = self.pairs
        heappush(pairs, pair_of(moment_ms, name))
        size: i64 = len(pairs)
        if size > _SMALL and size > 2 * living:
            self._drop_stale(_LOOKS)

    def first_ms(self) -> i64:
        """The moment of the first pair, stale or not; ``NOTHING`` where there is none."""
        pairs = self.pairs
        return read_i64_be(pairs[0], 0) if pairs else NOTHING

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
        while pairs and looks:
            if self._is_fresh(pairs[0]):
                return name_of(pairs[0])
            heappop(pairs)
            looks -= 1
        return None

    def take_first(self) -> bytes | None:
        """Take the first pair out, of which there must be one; its name, None if it is stale."""
        pair = heappop(self.pairs)
        return name_of(pair) if self._is_fresh(pair) else None

    def some(self, most: int) -> list[bytes]:
        """Some names that may have a moment, among them the first."""
        return [name_of(pair) for pair in self.pairs[:most]]

    def free_some(self, most: int) -> bool:
        """Drop so many pairs; True when none is left. The order is of no use then."""
        del self.pairs[-most:]
        return not self.pairs

    def _is_fresh(self, pair: bytes) -> bool:
        moment_ms = self.moment_of(name_of(pair))
        return moment_ms != NOTHING and max(moment_ms, 0) == read_i64_be(pair, 0)

    def _drop_stale(self, looks: i64) -> None:
        """Look at so many pairs, and take the stale ones out."""
        pairs = self.pairs
        at = self._looked_at
        while looks > 0 and pairs:
            looks -= 1
            size: i64 = len(pairs)
            at = at - 1 if 0 < at <= size else size - 1
            if not self._is_fresh(pairs[at]):
                last = pairs.pop()
                if at < len(pairs):
                    pairs[at] = last
                    _settle(pairs, at)
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


def ordered(pairs: list[bytes]) -> list[bytes]:
    """Pairs in any order as a heap, which is the same list. Complexity: O(n)."""
    heapify(pairs)
    return pairs


def _settle(pairs: list[bytes], at: i64) -> None:
    """Move a pair, which alone may stand in the wrong place, to where it belongs in a heap."""
    pair = pairs[at]
    while at > 0 and pair < pairs[(at - 1) >> 1]:
        pairs[at] = pairs[(at - 1) >> 1]
        at = (at - 1) >> 1
    size: i64 = len(pairs)
    child = 2 * at + 1
    while child < size:
        if child + 1 < size and pairs[child + 1] < pairs[child]:
            child += 1
        if pair < pairs[child]:
            break
        pairs[at] = pairs[child]
        at = child
        child = 2 * at + 1
    pairs[at] = pair
