"""Parts of blocks: where the entries that a reader asked for are to be found."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.storage.stream.block import Block
from headrace.storage.stream.run import Run, is_below

ENTRY_BYTES_LEAST: Final = 24  # of an entry in a reply, beside its texts


@mypyc_attr(acyclic=True)
class Part:
    """A stretch of a run: its entries from ``low`` up to and without ``high`` that are not dead."""

    def __init__(self, run: Run, dead: bytearray | None, low: int, high: int) -> None:
        self.run: Final = run
        self.dead: Final = dead
        self.low: Final = low
        self.high: Final = high

    def live(self) -> int:
        """Return how many entries it has."""
        dead = self.dead
        size = self.high - self.low
        return size if dead is None else dead.count(0, self.low, self.high)

    def least_bytes(self) -> int:
        """Return what its entries take in a reply in bytes, or less. Complexity: O(values)."""
        run = self.run
        dead = self.dead
        names = run.names
        beside: i64 = ENTRY_BYTES_LEAST
        width: i64 = 0
        if names is not None:
            width = len(names)
            for name in names:
                beside += len(name)
        total: i64 = 0
        for number in range(i64(self.low), i64(self.high)):
            if dead is not None and dead[number]:
                continue
            total += beside
            if names is None:
                for word in run.rows[number]:
                    total += len(word)
            for place in range(number * width, number * width + width):
                total += len(run.flat[place])
        return int(total)

    def until(self, high: int) -> Part:
        """Return the same up to and without ``high``."""
        return Part(self.run, self.dead, self.low, high)


@mypyc_attr(acyclic=True)
class Stretch:
    """A run of which only the IDs count.

    ``rank`` is how many live entries of the stream stand before it, ``live`` how many it has.
    """

    def __init__(self, run: Run, dead: bytearray | None, rank: int, live: int) -> None:
        self.run: Final = run
        self.dead: Final = dead
        self.rank: Final = rank
        self.live: Final = live


def part_with(block: Block, run: Run, ms: int, seq: int) -> Part | None:
    """Return the live entry with this ID, in a run of its block; None when it is not there."""
    number = block.number_in(run, ms, seq)
    return None if number < 0 else Part(run, None, number, number + 1)


def part_of(
    block: Block, start: tuple[int, int], end: tuple[int, int], wanted: int, reverse: bool
) -> Part | None:
    """Return the part of ``block`` between the bounds; at most ``wanted`` entries, 0 for all."""
    starts_inside = is_below(block.first_ms, block.first_seq, start[0], start[1])
    ends_inside = is_below(end[0], end[1], block.last_ms, block.last_seq)
    most = wanted if 0 < wanted < block.total else block.total
    if starts_inside or ends_inside or most < block.total:
        run = block.some(start, end, most, reverse)
    else:
        run = block.entries()
    low = 0
    high = len(run.ms)
    if starts_inside:
        low = run.position(start[0], start[1])
    if ends_inside:
        high = run.position(end[0], end[1])
        if high < len(run.ms) and run.ms[high] == end[0] and run.seq[high] == end[1]:
            high += 1
    dead = block.dead_of(run)
    if dead is not None:
        low = dead.find(0, low, high)
        if low < 0:
            return None
        high = dead.rfind(0, low, high) + 1
    if low >= high:
        return None
    if 0 < wanted < high - low:
        if dead is None:
            low, high = (high - wanted, high) if reverse else (low, low + wanted)
        elif reverse:
            low = _nth_back(dead, low, high, wanted)
        else:
            high = nth_live(dead, low, high, wanted)
    return Part(run, dead, low, high)


def nth_live(dead: bytearray, low: int, high: int, wanted: int) -> int:
    """Return the end, at most ``high``, of the stretch from ``low`` of ``wanted`` live entries."""
    number = low - 1
    for _ in range(wanted):
        number = dead.find(0, number + 1, high)
        if number < 0:
            return high
    return number + 1


def _nth_back(dead: bytearray, low: int, high: int, wanted: int) -> int:
    """Return the start, at least ``low``, of the stretch to ``high`` of ``wanted`` live entries."""
    number = high
    for _ in range(wanted):
        number = dead.rfind(0, low, number)
        if number < 0:
            return low
    return number
