"""The sealed blocks of a stream, found by ID and by rank.

``blocks`` is in ID order. A binary tree of sums (Fenwick's) over their live entries answers how
many entries stand before a block, and which block holds the n-th, in O(log n). A block that has
lost its last entry stays in its place, empty, and does not count; the list is made anew once most
of it is empty. So removing costs O(1) amortised, and walking never meets long stretches of nothing:
the next block that lives is found through the sums. When all of it is empty nothing stays, because
what comes then may have lower IDs (XSETID).
"""

from __future__ import annotations

from librt.vecs import append, pop, vec
from mypy_extensions import i64, mypyc_attr

from headrace.storage.stream.block import Block
from headrace.storage.stream.reach import REACH_MAX, Reach
from headrace.storage.value import Removed


@mypyc_attr(acyclic=True)
class BlockIndex(Reach):
    """An ordered list of sealed blocks with counts.

    Invariants: ``blocks[i].live`` is what ``_sums`` says of place i; ``live_blocks`` counts the
    blocks that have entries; ``payload_bytes`` is the sum of their payloads; places below ``_head``
    are empty; ``_reach[i]`` is the lesser of ``blocks[i].last_ms`` and ``REACH_MAX``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self.live_blocks = 0
        self.entries = 0
        self.payload_bytes: i64 = 0
        self._sums = vec[i64]()
        self._head = 0

    def add(self, block: Block) -> None:
        """Add a block behind all others."""
        self.blocks.append(block)
        self._sums = append(self._sums, block.live)
        _sum_up(self._sums, len(self._sums) - 1)
        self._reach = append(self._reach, min(block.last_ms, REACH_MAX))
        self.live_blocks += 1
        self.entries += block.live
        self.payload_bytes += i64(len(block.payload))

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
        self.payload_bytes -= i64(len(block.payload))
        self._head = min(self._head, len(self.blocks))
        if not self.entries:
            self._compact()
        return block

    def first(self) -> int:
        """Return the place of the first block that lives, or the number of places."""
        return self.next_live(self._head)

    def next_live(self, place: int) -> int:
        """Return the first place from ``place`` on whose block lives, or the number of places."""
        blocks = self.blocks
        if place >= len(blocks) or blocks[place].live:
            return place
        before = self.count_before(place)
        return len(blocks) if before >= self.entries else self.place_of_rank(before)

    def previous_live(self, place: int) -> int:
        """Return the last place up to ``place`` whose block lives, or -1."""
        if place < 0 or self.blocks[place].live:
            return place
        before = self.count_before(place)
        return -1 if before == 0 else self.place_of_rank(before - 1)

    def find(self, ms: int, seq: int) -> int:
        """Return the first place whose block reaches (ms, seq) or beyond; it may be empty."""
        return int(self._find(self._head, ms, seq))

    def look_ahead(self, all_ms: vec[i64]) -> None:
        """Look at what readers from each of these milliseconds on will need, of many blocks.

        A reader finds a block, by it the payload, and by that IDs and values. It waits for each of
        them if none is in a cache. Here each step is taken for all readers before the next one, so
        that they wait together: the less there is to do in a step, the more of them.
        """
        places = self.find_all(all_ms)
        blocks = self.blocks
        seen: i64 = 0
        for place in places:
            seen += i64(blocks[place].ids_bytes) + i64(blocks[place].node_bytes)  # both its ends
        for place in places:
            seen += i64(len(blocks[place].payload))
        for number in range(len(places)):
            seen += blocks[places[number]].look_at_entries(all_ms[number])
        self._seen = seen

    def _ends_before(self, number: i64, major: int, minor: int) -> bool:
        return self.blocks[number].is_below(major, minor)

    def count_before(self, place: int) -> int:
        """Return how many entries stand in the blocks before ``place``."""
        sums = self._sums
        total: i64 = 0
        number: i64 = place
        while number > 0:
            total += sums[number - 1]
            number &= number - 1
        return int(total)

    def place_of_rank(self, rank: int) -> int:
        """Return the place of the block with the entry of this rank, or the number of places."""
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
            self.payload_bytes -= i64(len(block.payload))
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
        """Take out all blocks before ``place`` at once. O(places), a few nanoseconds each."""
        cut = Removed(self.count_before(place), self.blocks[:place])
        sums = self._sums
        _take_apart(sums)
        for number in range(place):
            if sums[number]:
                self.live_blocks -= 1
        for block in cut.pieces:
            self.payload_bytes -= i64(len(block.payload))
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
        self.payload_bytes = 0
        for block in living:
            self.add(block)

    def copy(self) -> BlockIndex:
        """Return an equal index over copies of the blocks."""
        twin = BlockIndex()
        for block in self.blocks:
            if block.live:
                twin.add(block.copy())
        return twin


def _sum_up(counts: vec[i64], start: i64) -> None:
    size: i64 = len(counts)
    number = start + 1
    while number <= size:
        step: i64 = 1
        while step < number & -number:
            counts[number - 1] += counts[number - step - 1]
            step <<= 1
        number += 1


def _take_apart(sums: vec[i64]) -> None:
    number: i64 = len(sums)
    while number > 0:
        step: i64 = 1
        while step < number & -number:
            sums[number - 1] -= sums[number - step - 1]
            step <<= 1
        number -= 1
