"""Lanes merged when they are read: parts of all of them as one ascending list.

From the lane whose next entry has the lowest ID come all entries below the next one of the other
lanes, as one part. Where such stretches are short, entries of two lanes are copied into a part of
their own, because a part costs more than some entries. Equal IDs come in the order of their lanes.
A lane is asked for a portion of the entries wanted, and for more when that is used up, so that
nothing is decoded without need.
"""

from __future__ import annotations

from typing import Final, cast

from mypy_extensions import mypyc_attr

from headrace.regions.lanes.lane import Lane
from headrace.storage.stream.part import Part, Stretch, nth_live
from headrace.storage.stream.ranks import id_of_rank
from headrace.storage.stream.run import ID_MAX, NO_NAMES, Run, following, is_below
from headrace.storage.vectors import ID, LaneVector

_SPARE: Final = 4  # entries that a lane is asked for beyond its share
_SHORT: Final = 4  # entries, or fewer, make a stretch that is copied
_AROUND: Final = 100  # entries that are looked at for one rank


@mypyc_attr(acyclic=True)
class LanePart(Part):
    """A part that knows its lane."""

    def __init__(self, run: Run, dead: bytearray | None, low: int, high: int, lane: Lane) -> None:
        super().__init__(run, dead, low, high)
        self.lane: Final = lane

    def until(self, high: int) -> Part:
        return LanePart(self.run, self.dead, self.low, high, self.lane)

    def lane_at(self, number: int) -> Lane:
        """Return the lane of an entry."""
        return self.lane


@mypyc_attr(acyclic=True)
class MixedPart(LanePart):
    """A part with copied entries of several lanes: ``lanes`` is that of each entry.

    ``kinds`` is how many lanes those are, at most.
    """

    def __init__(self, run: Run, low: int, high: int, lanes: list[Lane], kinds: int) -> None:
        super().__init__(run, None, low, high, lanes[low])
        self.lanes: Final = lanes
        self.kinds: Final = kinds

    def until(self, high: int) -> Part:
        return MixedPart(self.run, self.low, high, self.lanes, self.kinds)

    def lane_at(self, number: int) -> Lane:
        return self.lanes[number]


@mypyc_attr(acyclic=True)
class Source:
    """A lane, and the stretches of it to be read: first and last ID of each, in reading order."""

    def __init__(self, lane: Lane, ranges: list[tuple[ID, ID]]) -> None:
        self.lane: Final = lane
        self.ranges: Final = ranges


@mypyc_attr(acyclic=True)
class _Cursor:
    """The position in one lane: ``ms`` and ``seq`` are of the entry that is read next.

    ``order`` is the place of the lane among the lanes.
    """

    def __init__(self, source: Source, order: int, reverse: bool, most_bytes: int) -> None:
        self.order: Final = order
        self.ms = 0
        self.seq = 0
        self._lane: Final = source.lane
        self._reverse: Final = reverse
        self._most_bytes: Final = most_bytes
        self._ranges: Final = source.ranges
        self._range = 0
        self._start, self._end = source.ranges[0]
        self._parts: list[Part] = []
        self._place = 0
        # The rest of the part at ``_place``.
        self._run = Run(NO_NAMES)
        self._dead: bytearray | None = None
        self._low = 0
        self._high = 0

    def run(self) -> Run:
        return self._run

    def next_part(self, portion: int) -> bool:
        """Go on to the next part. Return False when there is none.

        ``portion`` is how many entries to ask for when no loaded part is left; 0 is all.
        """
        self._place += 1
        if self._place >= len(self._parts) and not self._ask(portion):
            return False
        part = self._parts[self._place]
        self._run = part.run
        self._dead = part.dead
        self._low = part.low
        self._high = part.high
        self._look()
        return True

    def _ask(self, portion: int) -> bool:
        while self._range < len(self._ranges):
            parts = self._lane.log.parts(
                self._start, self._end, portion, self._reverse, self._most_bytes
            )
            self._place = 0
            self._parts = parts
            if parts and (portion > 0 or self._most_bytes):
                self._pass(parts[-1])
            else:
                self._next_range()
            if parts:
                return True
        return False

    def _pass(self, part: Part) -> None:
        """Ask next for what lies behind a part."""
        run = part.run
        if self._reverse:
            ms = run.ms[part.low]
            seq = run.seq[part.low]
            if ms == 0 and seq == 0:
                self._next_range()
            else:
                self._end = (ms, seq - 1) if seq else (ms - 1, ID_MAX)
        else:
            ms = run.ms[part.high - 1]
            seq = run.seq[part.high - 1]
            if ms == ID_MAX and seq == ID_MAX:
                self._next_range()
            else:
                self._start = following(ms, seq)

    def _next_range(self) -> None:
        self._range += 1
        if self._range < len(self._ranges):
            self._start, self._end = self._ranges[self._range]

    def _look(self) -> None:
        number = self._high - 1 if self._reverse else self._low
        self.ms = self._run.ms[number]
        self.seq = self._run.seq[number]

    def take(self, other: _Cursor | None, most: int) -> LanePart:
        """Return at most ``most`` entries (0: all) of the current part before ``other``."""
        low = self._low
        high = self._high
        dead = self._dead
        if self._reverse:
            if other is not None:
                low = self._bound(other, other.order < self.order)
                if dead is not None:
                    low = dead.find(0, low, high)
            if 0 < most < high - low:
                low = high - most if dead is None else _nth_from_end(dead, low, high, most)
            self._high = low if dead is None else dead.rfind(0, self._low, low) + 1
        else:
            if other is not None:
                high = self._bound(other, self.order < other.order)
                if dead is not None:
                    high = dead.rfind(0, low, high) + 1
            if 0 < most < high - low:
                high = low + most if dead is None else nth_live(dead, low, high, most)
            self._low = high
            if dead is not None:
                found = dead.find(0, high, self._high)
                self._low = self._high if found < 0 else found
        return LanePart(self._run, dead, low, high, self._lane)

    def is_short_before(self, other: _Cursor) -> bool:
        """Return whether few entries come before the next one of ``other``."""
        place = self._low + _SHORT
        run = self._run
        return place >= self._high or is_below(other.ms, other.seq, run.ms[place], run.seq[place])

    def copy_to(self, mix: _Mix) -> bool:
        """Copy the entry that is read next. Return False where the current part is used up then."""
        number = self._low
        mix.add(self._run, number, self._lane)
        number += 1
        dead = self._dead
        if dead is not None:
            number = dead.find(0, number, self._high)
            if number < 0:
                number = self._high
        self._low = number
        if number >= self._high:
            return False
        self.ms = self._run.ms[number]
        self.seq = self._run.seq[number]
        return True

    def _bound(self, other: _Cursor, is_first: bool) -> int:
        """Return where entries of the part end (in reverse: begin) that come before ``other``.

        ``is_first``: of two equal IDs, that of the lane that stands first is read.
        """
        run = self._run
        ms = other.ms
        seq = other.seq
        last = self._high - 1
        if self._reverse:
            if is_below(ms, seq, run.ms[self._low], run.seq[self._low]):
                return self._low
            # Equal IDs are read here, too, if this lane stands behind the other one.
            if not is_first:
                ms, seq = following(ms, seq)
            return max(self._low, run.position(ms, seq))
        if is_below(run.ms[last], run.seq[last], ms, seq):
            return self._high
        bound = run.position(ms, seq)
        if is_first and bound < self._high and run.ms[bound] == ms and run.seq[bound] == seq:
            bound += 1
        return min(self._high, bound)

    def is_used_up(self) -> bool:
        return self._low >= self._high

    def go_on(self, portion: int) -> bool:
        """Look at the next entry, after ``take``. Return False at the end of the lane."""
        if self._low >= self._high:
            return self.next_part(portion)
        self._look()
        return True


class _Mix:
    """Entries of several lanes that are being copied into one run."""

    def __init__(self) -> None:
        self._run = Run(None)
        self._lanes: list[Lane] = []
        self._width = -1

    def takes(self, run: Run) -> bool:
        """Return whether entries of a run may be added: all have to have the same names."""
        names = run.names
        if names is None:
            return False
        return not self._lanes or names is self._run.names or names == self._run.names

    def add(self, run: Run, number: int, lane: Lane) -> None:
        names = run.names
        assert names is not None
        if not self._lanes:
            self._run = Run(names)
            self._width = len(names)
        own = self._run
        own.ms.append(run.ms[number])
        own.seq.append(run.seq[number])
        width = self._width
        if width == 1:
            own.flat.append(run.flat[number])
        else:
            own.flat.extend(run.flat[number * width : number * width + width])
        self._lanes.append(lane)

    def flush(self, found: list[Part], kinds: int) -> None:
        if self._lanes:
            found.append(MixedPart(self._run, 0, len(self._lanes), self._lanes, kinds))
            self._lanes = []


def _nth_from_end(dead: bytearray, low: int, high: int, wanted: int) -> int:
    number = high
    for _ in range(wanted):
        number = dead.rfind(0, low, number)
        if number < 0:
            return low
    return number


def merged(sources: list[Source], count: int, reverse: bool, most_bytes: int = 0) -> list[Part]:
    """Return the entries of all ``sources`` in order, as parts of which each knows its lane.

    A ``count`` of 0 or less is all; for the rest see ``EntryLog.parts``.
    """
    portion = 0
    if count > 0:
        portion = count if len(sources) < 2 else min(count, count // len(sources) + _SPARE)
    cursors: list[_Cursor] = []
    for order in range(len(sources)):
        cursor = _Cursor(sources[order], order, reverse, most_bytes)
        if cursor.next_part(portion):
            cursors.append(cursor)
    found: list[Part] = []
    left = max(0, count)
    mix = _Mix()
    while cursors:
        first, second = _next_two(cursors, reverse)
        if not reverse and second is not None and _is_fine(first, second, mix):
            left, is_done = _interleave(first, second, _third(cursors, first, second), mix, left)
            if is_done:
                break
            for cursor in (first, second):
                if cursor.is_used_up() and not cursor.next_part(portion):
                    cursors.remove(cursor)
            if most_bytes:
                mix.flush(found, len(sources))
                most_bytes -= found[-1].least_bytes()
                if most_bytes <= 0:
                    return found
            continue
        mix.flush(found, len(sources))
        part = first.take(second, left)
        found.append(part)
        if count > 0:
            left -= part.live()
            if left <= 0:
                return found
            portion = min(portion, left)
        if most_bytes:
            most_bytes -= part.least_bytes()
            if most_bytes <= 0:
                return found
        if not first.go_on(portion):
            cursors.remove(first)
    mix.flush(found, len(sources))
    return found


def reached_by(parts: list[Part]) -> LaneVector:
    """Return the last entry of each lane in these parts from ``merged``."""
    reached: LaneVector = {}
    for part in parts:
        run = part.run
        last = part.high - 1
        if not isinstance(part, MixedPart):
            reached[cast("LanePart", part).lane.name] = (run.ms[last], run.seq[last])
            continue
        met: list[Lane] = []
        while last >= part.low and len(met) < part.kinds:
            lane = part.lanes[last]
            if lane not in met:
                met.append(lane)
                reached[lane.name] = (run.ms[last], run.seq[last])
            last -= 1
    return reached


def _is_fine(first: _Cursor, second: _Cursor, mix: _Mix) -> bool:
    """Return whether it pays to copy entries of the two lanes that are read next."""
    if not (mix.takes(first.run()) and mix.takes(second.run())):
        return False
    if first.run().names != second.run().names:
        return False
    return first.is_short_before(second)


def _third(cursors: list[_Cursor], first: _Cursor, second: _Cursor) -> _Cursor | None:
    """Return the cursor whose entry is read after those of two others."""
    found: _Cursor | None = None
    for cursor in cursors:
        if cursor is first or cursor is second:
            continue
        if found is None or _comes_before(cursor, found, False):
            found = cursor
    return found


def _interleave(
    first: _Cursor, second: _Cursor, bound: _Cursor | None, mix: _Mix, left: int
) -> tuple[int, bool]:
    """Copy entries of two lanes in order, until one is used up or ``bound`` comes first.

    Return how many of ``left`` are still wanted (0 is all), and whether there is no more to be
    done.
    """
    while True:
        if bound is not None and _comes_before(bound, first, False):
            return left, False
        more = first.copy_to(mix)
        if left:
            left -= 1
            if not left:
                return 0, True
        if not more:
            return left, False
        if _comes_before(second, first, False):
            first, second = second, first


def _next_two(cursors: list[_Cursor], reverse: bool) -> tuple[_Cursor, _Cursor | None]:
    """Return the cursor whose entry is read next, and the one after it."""
    first = cursors[0]
    second: _Cursor | None = None
    for number in range(1, len(cursors)):
        cursor = cursors[number]
        if _comes_before(cursor, first, reverse):
            second = first
            first = cursor
        elif second is None or _comes_before(cursor, second, reverse):
            second = cursor
    return first, second


def _comes_before(cursor: _Cursor, other: _Cursor, reverse: bool) -> bool:
    if cursor.ms != other.ms:
        return (cursor.ms < other.ms) != reverse
    if cursor.seq != other.seq:
        return (cursor.seq < other.seq) != reverse
    return (cursor.order < other.order) != reverse


def around_rank(lanes: list[Lane], rank: int) -> Stretch:
    """As ``EntryLog.around_rank``, of several lanes that have entries.

    Complexity: O(lanes, squared, times log n, squared).
    """
    ms, seq = _id_at(lanes, rank)
    before = 0
    for lane in lanes:
        before += lane.log.count_before(ms, seq)
    run = Run(NO_NAMES)
    sources = [Source(lane, [((ms, seq), (ID_MAX, ID_MAX))]) for lane in lanes]
    for part in merged(sources, rank - before + _AROUND, False):
        for number in range(part.low, part.high):
            if part.dead is None or not part.dead[number]:
                run.ms.append(part.run.ms[number])
                run.seq.append(part.run.seq[number])
    return Stretch(run, None, before, len(run.ms))


def _id_at(lanes: list[Lane], rank: int) -> ID:
    """Return the ID of the entry that has ``rank`` entries of all lanes before it."""
    for order in range(len(lanes)):
        log = lanes[order].log
        low = 0
        high = log.length
        while low < high:
            middle = (low + high) >> 1
            entry_id = id_of_rank(log, middle)
            total = middle
            for other in range(len(lanes)):
                if other < order:
                    ms, seq = following(entry_id[0], entry_id[1])
                    total += lanes[other].log.count_before(ms, seq)
                elif other > order:
                    total += lanes[other].log.count_before(entry_id[0], entry_id[1])
            if total == rank:
                return entry_id
            if total < rank:
                low = middle + 1
            else:
                high = middle
    raise AssertionError("a rank that no entry has")


def lane_of(part: Part, number: int) -> Lane:
    """Return the lane of an entry in a part from ``merged``."""
    return cast("LanePart", part).lane_at(number)
