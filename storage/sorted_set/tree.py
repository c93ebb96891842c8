"""The order of a large sorted set: runs of members, held by nodes, held by a root.

::

    root    a node for each 128 runs or fewer, how many members each has, and its first score
    node    its runs, how many members each has, and its first score
    run     up to 64 members with their scores (``runs``)

A member is looked for by bisecting the first scores of the nodes, those of one node, and the scores
of one run. Members are compared only where scores are equal. A rank is the sum of what stands
before: of nodes, of runs, and of members in one run.

A run never changes, it is replaced. Nodes change, and so a copy of a tree shares them with it: a
flag for each says whether the tree may write to it. Where it may not, it puts a copy of the node in
its place first.
"""

from __future__ import annotations

from math import inf
from typing import Final

from librt.vecs import append, pop, vec
from mypy_extensions import i32, i64, mypyc_attr

from headrace.storage.packed.strings import packed_bytes
from headrace.storage.sorted_set.runs import (
    EMPTY,
    HEAD_BYTES,
    Span,
    above_score,
    below,
    below_member,
    compare_at,
    first_place,
    inserted,
    joined,
    moved,
    number_with,
    part_of,
    place_of,
    score_at,
    size_of,
    spot_of,
    without,
    without_one,
)

RUN_MEMBERS: Final[i64] = 64
RUN_BYTES: Final[i64] = 4096  # of a run of more than one member
NODE_RUNS: Final[i64] = 128
_FULL_NODE: Final[i64] = 96  # runs of a node, where all runs are known when it is made
_FEW_MEMBERS: Final[i64] = 16  # a run of fewer is joined with the next one, if that is not large
_FEW_RUNS: Final[i64] = 24
NOT_AHEAD: Final[i64] = -1
_LINE: Final[i64] = 64  # bytes that memory gives at once
_LOOKED_AT: Final[i64] = 512  # bytes of a run that are looked at ahead: the scores, mostly
_NODE_BYTES: Final = 300
_RUN_BYTES: Final = 33 + 2 + 8 + 8 + 4 + 8  # beside its members: head, slot, and what is allocated


def _with_float(numbers: vec[float], at: i64, number: float) -> vec[float]:
    numbers = append(numbers, number)
    last: i64 = len(numbers) - 1
    while last > at:
        numbers[last] = numbers[last - 1]
        last -= 1
    numbers[at] = number
    return numbers


def _with_size(numbers: vec[i32], at: i64, number: i64) -> vec[i32]:
    numbers = append(numbers, i32(number))
    last: i64 = len(numbers) - 1
    while last > at:
        numbers[last] = numbers[last - 1]
        last -= 1
    numbers[at] = i32(number)
    return numbers


class _Ahead:
    """The node and the run of each score, which ``look_ahead`` has found."""

    def __init__(self) -> None:
        self.nodes = vec[i64]()
        self.runs = vec[i64]()
        self.seen: i64 = 0  # never read


_ahead: Final = _Ahead()


@mypyc_attr(acyclic=True)
class Node:
    """Some runs: the first score of each in ``firsts``, the members of each in ``sizes``."""

    def __init__(self) -> None:
        self.runs: list[bytes] = []
        self.firsts = vec[float]()
        self.sizes = vec[i32]()
        self.size: i64 = 0

    def copy(self) -> Node:
        """Return a node with the same runs."""
        twin = Node()
        twin.runs = self.runs[:]
        twin.firsts = self.firsts[:]
        twin.sizes = self.sizes[:]
        twin.size = self.size
        return twin

    def put(self, at: i64, run: bytes) -> None:
        """Insert a run at a place, before the one that stands there."""
        size = size_of(run)
        self.runs.insert(at, run)
        self.firsts = _with_float(self.firsts, at, score_at(run, 0))
        self.sizes = _with_size(self.sizes, at, size)
        self.size += size

    def replace(self, at: i64, run: bytes, size: i64) -> None:
        """Replace the run at a place by one of so many members."""
        self.size += size - i64(self.sizes[at])
        self.runs[at] = run
        self.firsts[at] = score_at(run, 0)
        self.sizes[at] = i32(size)

    def drop(self, at: i64) -> None:
        """Take a run out."""
        self.size -= i64(self.sizes[at])
        del self.runs[at]
        self.firsts = pop(self.firsts, at)[0]
        self.sizes = pop(self.sizes, at)[0]

    def run_for(self, score: float, member: bytes) -> i64:
        """Return the last place of a run that does not begin behind a member; else 0."""
        firsts = self.firsts
        low = _last_by(firsts, score, False)
        high: i64 = len(firsts) - 1
        if low == high or firsts[low + 1] != score:
            return low
        while low < high:
            middle = (low + high + 1) >> 1
            if firsts[middle] == score and _begins_by(self.runs[middle], member):
                low = middle
            else:
                high = middle - 1
        return low

    def split(self, at: i64) -> Node:
        """Move the runs from a place on to a node of their own."""
        other = Node()
        for run in self.runs[at:]:
            other.put(len(other.runs), run)
        del self.runs[at:]
        self.firsts = self.firsts[:at]
        self.sizes = self.sizes[:at]
        self.size -= other.size
        return other


def _begins_by(run: bytes, member: bytes) -> bool:
    return compare_at(run, first_place(run), member) <= 0


@mypyc_attr(acyclic=True)
class Tree:
    """Members with their scores, in order; no node is empty."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.size: i64 = 0
        self._firsts = vec[float]()
        self._sizes = vec[i32]()
        self._mine = vec[i32]()  # of each node: 1 where it may be written to

    # Looking

    def rank(self, score: float, member: bytes) -> i64:
        """Return how many members stand before that of this name and score, which is there."""
        at = self._node_for(score, member)
        node = self.nodes[at]
        run = node.run_for(score, member)
        return self._before(at, run) + number_with(node.runs[run], score, member)

    def above_score(self, score: float, inclusive: bool) -> i64:
        """Return how many members have a lower score, or, if ``inclusive``, this one."""
        if not self.nodes:
            return 0
        at = _last_by(self._firsts, score, inclusive)
        node = self.nodes[at]
        run = _last_by(node.firsts, score, inclusive)
        return self._before(at, run) + above_score(node.runs[run], score, inclusive)

    def below_member(self, member: bytes, inclusive: bool) -> i64:
        """Return how many members, all of one score, are lower, or, if ``inclusive``, this one."""
        low: i64 = 0
        high: i64 = len(self.nodes) - 1
        if high < 0:
            return 0
        while low < high:
            middle = (low + high + 1) >> 1
            if _begins_by(self.nodes[middle].runs[0], member):
                low = middle
            else:
                high = middle - 1
        at = low
        node = self.nodes[at]
        low = 0
        high = len(node.runs) - 1
        while low < high:
            middle = (low + high + 1) >> 1
            if _begins_by(node.runs[middle], member):
                low = middle
            else:
                high = middle - 1
        return self._before(at, low) + below_member(node.runs[low], member, inclusive)

    def span(self, first: i64, end: i64) -> Span:
        """Return the members from rank ``first`` up to and without ``end``."""
        found = Span()
        at: i64 = 0
        left = first
        nodes: i64 = len(self.nodes)
        while at < nodes and left >= i64(self._sizes[at]):
            left -= i64(self._sizes[at])
            at += 1
        if at == nodes:
            return found
        sizes = self.nodes[at].sizes
        number: i64 = 0
        while left >= i64(sizes[number]):
            left -= i64(sizes[number])
            number += 1
        self._add_from(found, at, number, left, end - first, inf, True)
        return found

    def span_of_scores(
        self, low: float, above: bool, high: float, inclusive: bool, skipped: i64, most: i64
    ) -> Span:
        """Return up to ``most`` members from one score on up to another one.

        ``above`` leaves out members of the lower score, ``inclusive`` takes those of the higher.
        So many at the beginning are ``skipped``.
        """
        found = Span()
        if not self.nodes:
            return found
        at = _last_by(self._firsts, low, above)
        node = self.nodes[at]
        number = _last_by(node.firsts, low, above)
        first = above_score(node.runs[number], low, above) + min(skipped, self.size)
        nodes: i64 = len(self.nodes)
        while first >= i64(node.sizes[number]):
            first -= i64(node.sizes[number])
            number += 1
            if number == len(node.runs):
                at += 1
                while at < nodes and first >= i64(self._sizes[at]):
                    first -= i64(self._sizes[at])
                    at += 1
                if at == nodes:
                    return found
                node = self.nodes[at]
                number = 0
        self._add_from(found, at, number, first, most, high, inclusive)
        return found

    def _add_from(
        self, found: Span, at: i64, number: i64, first: i64, most: i64, high: float, inclusive: bool
    ) -> None:
        """Add up to ``most`` members up to a score, from a place in a run of a node on."""
        nodes: i64 = len(self.nodes)
        while at < nodes:
            node = self.nodes[at]
            runs: i64 = len(node.runs)
            while number < runs:
                run = node.runs[number]
                end = i64(node.sizes[number])
                last = score_at(run, end - 1)
                if last > high or (last == high and not inclusive):
                    end = above_score(run, high, inclusive)
                    most = min(most, end - first)
                if end - first >= most:
                    found.add(run, first, first + most)
                    return
                found.add(run, first, end)
                most -= end - first
                first = 0
                number += 1
            number = 0
            at += 1

    def _before(self, at: i64, run: i64) -> i64:
        node = self.nodes[at]
        sizes = node.sizes
        total: i64 = 0
        runs: i64 = len(sizes)
        if 2 * run <= runs:
            while run > 0:
                run -= 1
                total += i64(sizes[run])
        else:  # what stands behind is nearer
            total = node.size
            while run < runs:
                total -= i64(sizes[run])
                run += 1
        while at > 0:
            at -= 1
            total += i64(self._sizes[at])
        return total

    def _node_for(self, score: float, member: bytes) -> i64:
        """Return the last node that does not begin behind a member; else the first one."""
        firsts = self._firsts
        low = _last_by(firsts, score, False)
        high: i64 = len(firsts) - 1
        if low == high or firsts[low + 1] != score:
            return low
        while low < high:
            middle = (low + high + 1) >> 1
            if firsts[middle] == score and _begins_by(self.nodes[middle].runs[0], member):
                low = middle
            else:
                high = middle - 1
        return low

    def _spot(self, score: float, member: bytes, ahead: i64) -> tuple[i64, i64]:
        """Return the node and the run for a member; ``look_ahead`` has found them, or has not."""
        if ahead >= 0:
            at = _ahead.nodes[ahead]
            number = _ahead.runs[ahead]
            if self._is_for(at, number, score):
                return at, number
        at = self._node_for(score, member)
        return at, self.nodes[at].run_for(score, member)

    def _is_for(self, at: i64, number: i64, score: float) -> bool:
        nodes: i64 = len(self.nodes)
        if at >= nodes:
            return False
        firsts = self.nodes[at].firsts
        runs: i64 = len(firsts)
        if number >= runs or firsts[number] >= score:
            return False
        if number + 1 < runs:
            return firsts[number + 1] > score
        return at + 1 == nodes or self._firsts[at + 1] > score

    def look_ahead(self, scores: vec[float]) -> None:
        """Have the runs for some scores brought into the caches, which waits for all at once.

        ``insert`` and ``move`` then go there without a search.
        """
        count: i64 = len(scores)
        while i64(len(_ahead.nodes)) < count:
            _ahead.nodes = append(_ahead.nodes, 0)
            _ahead.runs = append(_ahead.runs, 0)
        if not self.nodes:
            return
        nodes = _ahead.nodes
        runs = _ahead.runs
        at: i64 = 0
        while at < count:
            score = scores[at]
            node = _last_by(self._firsts, score, False)
            nodes[at] = node
            runs[at] = _last_by(self.nodes[node].firsts, score, False)
            at += 1
        # The shorter this loop is, the more runs the processor waits for at once.
        seen: i64 = 0
        at = 0
        while at < count:
            run = self.nodes[nodes[at]].runs[runs[at]]
            end = min(i64(len(run)), _LOOKED_AT)
            place: i64 = 0
            while place < end:
                seen += i64(run[place])
                place += _LINE
            at += 1
        _ahead.seen = seen

    # Changing

    def insert(self, score: float, member: bytes, ahead: i64 = NOT_AHEAD) -> None:
        """Add a member that is not there; ``ahead`` is where ``look_ahead`` was shown the score."""
        if not self.nodes:
            node = Node()
            node.put(0, inserted(EMPTY, 0, HEAD_BYTES, score, member))
            self._put_node(0, node)
            self.size += 1
            return
        at, number = self._spot(score, member, ahead)
        self._put_into(at, number, score, member)

    def _put_into(self, at: i64, number: i64, score: float, member: bytes) -> None:
        self.size += 1
        node = self._own(at)
        run = node.runs[number]
        rank, place = spot_of(run, score, member)
        size = i64(node.sizes[number])
        if size < RUN_MEMBERS and i64(len(run)) + packed_bytes(len(member)) <= RUN_BYTES:
            node.replace(number, inserted(run, rank, place, score, member), size + 1)
            self._note(at)
            return
        alone = inserted(EMPTY, 0, HEAD_BYTES, score, member)
        # Where members come in order, the runs that they leave behind stay full.
        if rank == size and number == len(node.runs) - 1 and at == len(self.nodes) - 1:
            node.put(number + 1, alone)
        elif rank == 0 and number == 0 and at == 0:
            node.put(0, alone)
        elif size == 1:
            node.put(number + rank, alone)
        else:
            whole = inserted(run, rank, place, score, member)
            half = (size + 1) >> 1
            node.replace(number, part_of(whole, 0, half), half)
            node.put(number + 1, part_of(whole, half, size + 1))
        self._note(at)
        runs: i64 = len(node.runs)
        if runs > NODE_RUNS:
            cut = runs >> 1
            if at == len(self.nodes) - 1 and number >= runs - 2:
                cut = runs - 1
            other = node.split(cut)
            self._note(at)
            self._put_node(at + 1, other)

    def remove(self, score: float, member: bytes) -> None:
        """Take a member out that is there."""
        at = self._node_for(score, member)
        node = self._own(at)
        number = node.run_for(score, member)
        run = node.runs[number]
        rank = number_with(run, score, member)
        self.size -= 1
        self._shrink(at, number, without_one(run, rank, place_of(run, rank)))

    def move(
        self,
        member: bytes,
        score: float,
        to: float,
        ahead: i64 = NOT_AHEAD,
        to_ahead: i64 = NOT_AHEAD,
    ) -> None:
        """Give a member that is there another score; ``look_ahead`` was shown both where said."""
        at, number = self._spot(score, member, ahead)
        to_at, to_number = self._spot(to, member, to_ahead)
        node = self._own(at)
        run = node.runs[number]
        size = i64(node.sizes[number])
        if at == to_at and number == to_number:
            rank = number_with(run, score, member)
            node.replace(number, moved(run, rank, below(run, to, member), to), size)
            self._note(at)
        elif size > _FEW_MEMBERS:  # so it stays where it is, and so do all others
            rank = number_with(run, score, member)
            place = place_of(run, rank)
            self.size -= 1
            node.replace(number, without_one(run, rank, place), size - 1)
            self._note(at)
            self._put_into(to_at, to_number, to, member)
        else:
            self.remove(score, member)
            self.insert(to, member)

    def take(self, first: i64, end: i64) -> list[bytes]:
        """Take out the members from rank ``first`` to before ``end``; return runs of them."""
        found = self.span(first, end).parts()
        for run in found:
            size = size_of(run)
            left = first
            at: i64 = 0
            while left >= i64(self._sizes[at]):
                left -= i64(self._sizes[at])
                at += 1
            node = self._own(at)
            number: i64 = 0
            while left >= i64(node.sizes[number]):
                left -= i64(node.sizes[number])
                number += 1
            self.size -= size
            self._shrink(at, number, without(node.runs[number], left, left + size))
        return found

    def _shrink(self, at: i64, number: i64, run: bytes) -> None:
        """Put what is left of a run in its place in a node of this tree's own."""
        node = self.nodes[at]
        size = size_of(run)
        if not size:
            node.drop(number)
            if not node.runs:
                self._drop_node(at)
                return
        elif size < _FEW_MEMBERS and number + 1 < len(node.runs):
            after = node.runs[number + 1]
            if size + size_of(after) <= RUN_MEMBERS and len(run) + len(after) <= RUN_BYTES:
                node.drop(number + 1)
                run = joined(run, after)
            node.replace(number, run, size_of(run))
        else:
            node.replace(number, run, size)
        self._note(at)
        if len(node.runs) < _FEW_RUNS and at + 1 < len(self.nodes):
            other = self.nodes[at + 1]
            if len(node.runs) + len(other.runs) <= _FULL_NODE:
                for each in other.runs:
                    node.put(len(node.runs), each)
                self._drop_node(at + 1)
                self._note(at)

    def _own(self, at: i64) -> Node:
        """Return a node that is about to be written to, copied first if it is shared."""
        node = self.nodes[at]
        if not self._mine[at]:
            node = node.copy()
            self.nodes[at] = node
            self._mine[at] = i32(1)
        return node

    def _note(self, at: i64) -> None:
        node = self.nodes[at]
        self._firsts[at] = node.firsts[0]
        self._sizes[at] = i32(node.size)

    def _put_node(self, at: i64, node: Node) -> None:
        self.nodes.insert(at, node)
        self._firsts = _with_float(self._firsts, at, node.firsts[0])
        self._sizes = _with_size(self._sizes, at, node.size)
        self._mine = _with_size(self._mine, at, 1)

    def _drop_node(self, at: i64) -> None:
        del self.nodes[at]
        self._firsts = pop(self._firsts, at)[0]
        self._sizes = pop(self._sizes, at)[0]
        self._mine = pop(self._mine, at)[0]

    # All of it

    def add_run(self, run: bytes) -> None:
        """Add members that all come behind those that are there."""
        last: i64 = len(self.nodes) - 1
        self.size += size_of(run)
        if last >= 0 and len(self.nodes[last].runs) < _FULL_NODE:
            node = self._own(last)
            node.put(len(node.runs), run)
            self._note(last)
        else:
            node = Node()
            node.put(0, run)
            self._put_node(last + 1, node)

    def copy(self) -> Tree:
        """Return a tree of its own with the same members. Complexity: O(nodes)."""
        twin = Tree()
        twin.nodes = self.nodes[:]
        twin.size = self.size
        twin._firsts = self._firsts[:]
        twin._sizes = self._sizes[:]
        for _ in self.nodes:
            twin._mine = append(twin._mine, i32(0))
        self._mine = twin._mine[:]
        return twin

    def overhead_bytes(self, samples: int) -> int:
        """Return about how many bytes it takes beside its members, by so many nodes; 0: by all."""
        nodes = self.nodes[:samples] if samples else self.nodes
        if not nodes:
            return 0
        runs = sum([len(node.runs) for node in nodes])
        return len(self.nodes) * (_NODE_BYTES + _RUN_BYTES * runs // len(nodes))

    def free_some(self, most: int) -> bool:
        """Free up to ``most`` nodes of a tree that is no longer used; True at the end."""
        del self.nodes[-most:]
        return not self.nodes


def _last_by(firsts: vec[float], score: float, inclusive: bool) -> i64:
    """Return the last one that begins with a lower score, or, if ``inclusive``, this; else 0."""
    low: i64 = 0
    left: i64 = len(firsts)
    # A step takes half of what is left, whichever way it goes: nothing to guess for the processor.
    if inclusive:
        while left > 1:
            half = left >> 1
            if firsts[low + half] <= score:
                low += half
            left -= half
    else:
        while left > 1:
            half = left >> 1
            if firsts[low + half] < score:
                low += half
            left -= half
    return low
