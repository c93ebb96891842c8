"""The reach of a trim in each lane, and the entries that go with regard to groups.

A trim removes a prefix of each lane, and none of the newest entries that are to stay, whichever
lanes they are in. With one lane that has entries, it removes the same as Redis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.lanes import Lanes
from headrace.regions.lanes.merge import lane_of
from headrace.storage.stream.block import Block
from headrace.storage.stream.ranks import id_of_rank
from headrace.storage.stream.references import ACKED, Trim, is_referenced
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.vectors import ID, NO_ID, LaneVector

LaneEntry = tuple[bytes, ID]

_NODE_ENTRIES: Final = 100  # that are taken for a node where lanes are merged
_LAST: Final[ID] = (ID_MAX, ID_MAX)


@mypyc_attr(acyclic=True)
class _Head:
    """The first node of a lane that the trim does not reach over.

    ``passed`` is how many entries of the lane stand before it.
    """

    def __init__(self, lane: Lane) -> None:
        self.lane: Final = lane
        self.passed = 0
        self.block: Block | None = lane.log.block_from(0, 0)

    def last(self) -> ID:
        block = self.block
        return _LAST if block is None else (block.last_ms, block.last_seq)

    def live(self) -> int:
        return 0 if self.block is None else self.block.live

    def pass_over(self) -> None:
        self.passed += self.live()
        ms, seq = self.last()
        if (ms, seq) == _LAST:
            self.block = None
        else:
            ms, seq = following(ms, seq)
            self.block = self.lane.log.block_from(ms, seq)


class _Trimming:
    """A trim at work, up to the ID ``reach`` in each lane, which removes ``removed`` entries."""

    def __init__(self, stream: Lanes, limit: int) -> None:
        self.reach: LaneVector = {}
        self.removed = 0
        self._stream: Final = stream
        self._limit: Final = limit
        self._heads: Final = [_Head(lane) for lane in stream.filled_lanes()]

    def lowest(self) -> _Head | None:
        """Return the node that ends with the lowest ID, if it is not beyond the limit."""
        found: _Head | None = None
        for head in self._heads:
            if head.block is not None and (found is None or head.last() < found.last()):
                found = head
        if found is not None and 0 < self._limit < self.removed + found.live():
            return None
        return found

    def take(self, head: _Head) -> None:
        self.reach[head.lane.name] = head.last()
        self.removed += head.live()
        head.pass_over()

    def take_below(self, bound: ID) -> None:
        """Remove all entries whose ID is below ``bound``."""
        for lane in self._stream.filled_lanes():
            last = lane.log.last_before(bound)
            if last > self.reach.get(lane.name, NO_ID):
                self.reach[lane.name] = last

    def take_oldest(self, count: int) -> None:
        """Remove the oldest ``count`` entries, of which there are at least as many.

        Of entries with equal IDs, those of the lanes that stand first are the older ones.
        """
        stream = self._stream
        bound = id_of_rank(stream, count - 1)
        self.take_below(bound)
        alike = count - stream.count_before(bound[0], bound[1])
        for lane in stream.holders(bound[0], bound[1])[:alike]:
            self.reach[lane.name] = max(bound, self.reach.get(lane.name, NO_ID))


def lanes_by_length(
    stream: Lanes, most: int, approximate: bool, limit: int, whole_nodes: bool
) -> LaneVector:
    """Return how far to trim for ``most`` entries to be left; see ``EntryLog.trim_to_length``.

    Complexity: O(nodes that go, times lanes, times log n).
    """
    excess = stream.length - most
    if excess <= 0:
        return {}
    first = min([lane.log.head_live() for lane in stream.filled_lanes()])
    if approximate and whole_nodes and first > excess:  # the first node of no lane goes whole
        return {}
    trimming = _Trimming(stream, limit)
    if not approximate:
        trimming.take_oldest(excess)
        return trimming.reach
    head = trimming.lowest()
    while head is not None and _is_among_oldest(stream, head, excess):
        trimming.take(head)
        head = trimming.lowest()
    if head is not None and not whole_nodes and trimming.removed < excess:
        trimming.take_oldest(excess)
    return trimming.reach


def _is_among_oldest(stream: Lanes, head: _Head, excess: int) -> bool:
    count = head.passed + head.live()
    if count > excess:
        return False
    ms, seq = head.last()
    if (ms, seq) == _LAST:
        return stream.length <= excess
    ms, seq = following(ms, seq)
    for lane in stream.filled_lanes():
        if lane is not head.lane:
            count += lane.log.count_before(ms, seq)
    return count <= excess


def lanes_below(
    stream: Lanes, bound: ID, approximate: bool, limit: int, whole_nodes: bool
) -> LaneVector:
    """Return how far to trim so that none is below ``bound``; see ``EntryLog.trim_below``."""
    if not stream.length or stream.first_id() >= bound:
        return {}
    trimming = _Trimming(stream, limit)
    if not approximate:
        trimming.take_below(bound)
        return trimming.reach
    head = trimming.lowest()
    while head is not None and head.last() < bound:
        trimming.take(head)
        head = trimming.lowest()
    if head is not None and not whole_nodes:
        trimming.take_below(bound)
    return trimming.reach


def entries_to_trim(stream: Lanes, how: Trim, mode: int) -> list[LaneEntry]:
    """Return the oldest entries that go in mode ``DELREF`` or ``ACKED``, in their lanes.

    See ``references.trim``. Complexity: O(entries looked at, times groups, times log n).
    """
    found: list[LaneEntry] = []
    length = stream.length
    for node in _nodes(stream):
        first = node[0][1]
        last = node[-1][1]
        if _is_done(how, length, first) or 0 < how.limit < len(found) + len(node):
            break
        if how.most >= 0:
            whole = how.to_the_end or length - len(node) >= how.most
        else:
            whole = last < how.below
        for lane, entry_id in node:
            if _is_done(how, length, entry_id):
                break
            if mode == ACKED and is_referenced(stream, entry_id[0], entry_id[1]):
                continue
            found.append((lane, entry_id))
            length -= 1
        if not whole:
            break
    return found


def _is_done(how: Trim, length: int, entry_id: ID) -> bool:
    """Return whether an entry and those after it stay, while there are ``length``."""
    return length <= how.most if how.most >= 0 else entry_id >= how.below


def _nodes(stream: Lanes) -> Iterator[list[LaneEntry]]:
    """Yield the live entries of one node after the other; with several lanes, of pages."""
    filled = stream.filled_lanes()
    if len(filled) == 1:
        head = _Head(filled[0])
        while head.block is not None:
            yield [(filled[0].name, entry_id) for entry_id in head.block.live_ids()]
            head.pass_over()
        return
    start = NO_ID
    while True:
        node: list[LaneEntry] = []
        for part in stream.parts(start, _LAST, _NODE_ENTRIES, False):
            for number in range(part.low, part.high):
                if part.dead is None or not part.dead[number]:
                    name = lane_of(part, number).name
                    node.append((name, (part.run.ms[number], part.run.seq[number])))
        if not node:
            return
        last = node[-1][1]
        whole = [entry for entry in node if entry[1] != last]
        whole.extend((lane.name, last) for lane in stream.holders(last[0], last[1]))
        yield whole
        if last == _LAST:
            return
        start = following(last[0], last[1])
