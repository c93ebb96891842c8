"""The sealed blocks of a stream, found by ID and by rank.

``blocks`` is in ID order. A binary tree of sums (Fenwick's) over their live entries answers how
many entries stand before a block, and which block holds the n-th, in O(log n). A block that has
lost its last entry stays in its place, empty, and does not count; the list is made anew once most
of it is empty, so removing costs O(1) amortised and walking never meets long stretches of nothing:
the next block that lives is found through the sums. When all of it is empty nothing stays, for what
comes then may have lower IDs (XSETID).

A search looks at ``_reach`` and not at blocks, which lie scattered in memory: with half a million
of them each look would wait for it.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, pop, vec
from mypy_extensions import i64, mypyc_attr

from storage.large import Removed
from storage.stream.block import Block

REACH_MAX: Final = 2**62 - 1  # as much of an ID's milliseconds as is searched by
_SPAN_MAX: Final = 2**40  # 35 years, in milliseconds; the product of the two is an i64
_PLACES_MAX: Final = 2**22


@mypyc_attr(acyclic=True)
class BlockIndex:
    """An ordered list of sealed blocks with counts.

    Invariants: ``blocks[i].live`` is what ``_sums`` says of place i; ``live_blocks`` counts the
    blocks that have entries; places below ``_head`` are empty; ``_reach[i]`` is the lesser of
    ``blocks[i].last_ms`` and ``REACH_MAX``.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.live_blocks = 0
        self.entries = 0
        self._sums = vec[i64]()
        self._reach = vec[i64]()
        self._head = 0
        self._near: i64 = 0  # what ``find`` found last

    def add(self, block: Block) -> None:
        """Add a block behind all others."""
        self.blocks.append(block)
        self._sums = append(self._sums, block.live)
        _sum_up(self._sums, len(self._sums) - 1)
        self._reach = append(self._reach, min(block.last_ms, REACH_MAX))
        self.live_blocks += 1
        self.entries += block.live

    def pop(self) -> Block:
        """Take the last block that lives, and the empty ones behind it, out of the index."""
        while True:
            block = self.blocks.pop()
            self._sums, _ = pop(self._sums)
            self._reach, _ = pop(self._reach)
            if block.live:
                break
        self.live_blocks -= 1
        self.entries -= block.live
        self._head = min(self._head, len(self.blocks))
        if not self.entries:
            self._compact()
        return block

    def first(self) -> int:
        """The place of the first block that lives, or the number of places."""
        return self.next_live(self._head)

    def next_live(self, place: int) -> int:
        """The first place from ``place`` on whose block lives, or the number of places."""
        blocks = self.blocks
        if place >= len(blocks) or blocks[place].live:
            return place
        before = self.count_before(place)
        return len(blocks) if before >= self.entries else self.place_of_rank(before)

    def previous_live(self, place: int) -> int:
        """The last place up to ``place`` whose block lives, or -1."""
        if place < 0 or self.blocks[place].live:
            return place
        before = self.count_before(place)
        return -1 if before == 0 else self.place_of_rank(before - 1)

    def find(self, ms: int, seq: int) -> int:
        """The first place whose block reaches up to (ms, seq) or beyond; maybe an empty one.

        Behind them all is where most readers are, and is told at once. Else where it was the last
        time is looked at first, and the place beside that; then where it is if the blocks are
        evenly spread in time, and away from there in growing steps.
        """
        reach = self._reach
        wanted: i64 = min(ms, REACH_MAX)
        low: i64 = self._head
        high: i64 = len(reach)
        if high and reach[high - 1] < wanted:
            return int(high)
        middle = self._near
        if middle < low or middle >= high:
            middle = (low + high) >> 1
        looks: i64 = 0
        step: i64 = 0
        upwards = False
        while low < high:
            looks += 1
            found = reach[middle]
            below = found < wanted or (found == wanted and self.blocks[middle].is_below(ms, seq))
            if below:
                low = middle + 1
            else:
                high = middle
            if looks == 2:
                middle = self._guess(low, high, wanted)
                step = 1
            elif looks == 1 or (step and (looks == 3 or below == upwards)):
                ahead = step >> 1  # 0, 1, 2, 4, ...
                if ahead >= high - low:
                    ahead = high - low - 1
                middle = low + ahead if below else high - 1 - ahead
                upwards = below
                step *= 2
            else:
                middle = (low + high) >> 1
                step = 0
        self._near = low
        return int(low)

    def _guess(self, low: i64, high: i64, wanted: i64) -> i64:
        """A place from ``low`` up to ``high``, where ``wanted`` is if all have equal distances."""
        if low < high:
            first = self._reach[low]
            last = self._reach[high - 1]
            if first < wanted < last and last - first < _SPAN_MAX and high - low < _PLACES_MAX:
                return low + (wanted - first) * (high - 1 - low) // (last - first)
        return (low + high) >> 1

    def count_before(self, place: int) -> int:
        """How many entries stand in the blocks before ``place``."""
        sums = self._sums
        total: i64 = 0
        number: i64 = place
        while number > 0:
            total += sums[number - 1]
            number &= number - 1
        return int(total)

    def place_of_rank(self, rank: int) -> int:
        """The place of the block that holds the entry with ``rank`` entries before it.

        The number of places where there is none.
        """
        sums = self._sums
        size: i64 = len(sums)
        left: i64 = rank
        place: i64 = 0
        step: i64 = 1
        while step <= size:
            step <<= 1
        while step:
            ahead = place + step
            if ahead <= size and sums[ahead - 1] <= left:
                left -= sums[ahead - 1]
                place = ahead
            step >>= 1
        return int(place)

    def shrink(self, place: int, count: int) -> None:
        """Count ``count`` fewer entries at ``place``; the block's ``live`` says so already."""
        self.entries -= count
        sums = self._sums
        size: i64 = len(sums)
        number: i64 = place + 1
        fewer: i64 = count
        while number <= size:
            sums[number - 1] -= fewer
            number += number & -number
        block = self.blocks[place]
        if not block.live:
            block.payload = b""
            block.run = None
            block.dead = None
            self.live_blocks -= 1
            if place == self._head:
                self._head += 1
            if not self.entries or (
                len(self.blocks) > 64 and 2 * self.live_blocks < len(self.blocks)
            ):
                self._compact()

    def cut(self, place: int) -> Removed[Block]:
        """Take all blocks before ``place`` out of the index, at once.

        Complexity: O(places), a few nanoseconds for each; blocks that stay are not looked at.
        """
        cut = Removed(self.count_before(place), self.blocks[:place])
        sums = self._sums
        _tell_apart(sums)
        for number in range(place):
            if sums[number]:
                self.live_blocks -= 1
        del self.blocks[:place]
        self._sums = sums[place:]
        _sum_up(self._sums, 0)
        self._reach = self._reach[place:]
        self._head = max(0, self._head - place)
        self._near = 0
        self.entries -= cut.count
        return cut

    def _compact(self) -> None:
        living = [block for block in self.blocks if block.live]
        self.blocks = []
        self._sums = vec[i64]()
        self._reach = vec[i64]()
        self._head = 0
        self.live_blocks = 0
        self.entries = 0
        for block in living:
            self.add(block)

    def copy(self) -> BlockIndex:
        """An equal index over copies of the blocks."""
        twin = BlockIndex()
        for block in self.blocks:
            if block.live:
                twin.add(block.copy())
        return twin


def _sum_up(counts: vec[i64], start: i64) -> None:
    """Make sums (see ``BlockIndex``) of what stands in ``counts`` from ``start`` on.

    What stands before are sums.
    """
    size: i64 = len(counts)
    number = start + 1
    while number <= size:
        step: i64 = 1
        while step < number & -number:
            counts[number - 1] += counts[number - step - 1]
            step <<= 1
        number += 1


def _tell_apart(sums: vec[i64]) -> None:
    """Make counts of sums: what ``_sum_up`` made them of."""
    number: i64 = len(sums)
    while number > 0:
        step: i64 = 1
        while step < number & -number:
            sums[number - 1] -= sums[number - step - 1]
            step <<= 1
        number -= 1
