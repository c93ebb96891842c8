"""A sorted set: members with scores, found by name, rank, score or, among equal scores, by name.

A small one is a run (``runs``). A large one is a table from members to scores beside a tree that
has them in order (``tree``). It turns large where Redis turns to a skiplist, and never back.

A range is one of ranks, whatever it was asked for by: bounds become ranks first. What it holds is
given as runs. Both forms answer alike, except in two cases, as in Redis. A small one forgets the
sign of 0. Where members of different scores are asked for by name, it takes those from the first
that lies within the range up to the next that does not.
"""

from __future__ import annotations

from math import isnan
from typing import Final

from librt.strings import read_f64_le
from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

from headrace.storage.collection import Collection, SmallLimits
from headrace.storage.digest import DIGEST_BYTES, Digest
from headrace.storage.packed.strings import next_at, packed_bytes, unpack
from headrace.storage.packed.table import NO_SCORE, SCORE_BYTES, SCORES, Table, new_seed
from headrace.storage.sorted_set.runs import (
    EMPTY,
    MOST,
    Span,
    above_score,
    below,
    compare_at,
    first_place,
    inserted,
    member_at,
    moved,
    number_of,
    run_of,
    score_at,
    size_of,
    spot_of,
    without,
)
from headrace.storage.sorted_set.tree import RUN_BYTES, RUN_MEMBERS, Tree

_PIECES_A_NODE: Final = 8


@mypyc_attr(acyclic=True)
class Large:
    """Members with scores, in a table and in a tree, which have the same members."""

    def __init__(self) -> None:
        self.table = Table(SCORES, new_seed())
        self.tree = Tree()

    def add(self, member: bytes, score: float) -> None:
        """Add a member that is not there."""
        self.table.swap_score(member, score)
        self.tree.insert(score, member)

    def put_all(
        self, requests: list[list[bytes]], first: i64, place: i64, scores: vec[float]
    ) -> vec[float]:
        """Give members their scores, for several of which memory is waited at once.

        ``requests`` from ``first`` on, as many as there are scores, each name a member at
        ``place``. Returns: the scores that the members had; not a number for new ones.
        """
        table = self.table
        tree = self.tree
        count: i64 = len(scores)
        table.look_ahead(requests, first, first + count, place)
        olds = vec[float]()
        both = scores[:]  # and behind them those of the members that are there
        at: i64 = 0
        while at < count:
            member = requests[first + at][place]
            table.take_ahead(member, at)
            old = table.swap_score(member, scores[at])
            olds = append(olds, old)
            if not isnan(old):
                both = append(both, old)
            at += 1
        tree.look_ahead(both)
        at = 0
        behind = count
        while at < count:
            old = olds[at]
            member = requests[first + at][place]
            if isnan(old):
                tree.insert(scores[at], member, at)
            else:
                if old != scores[at]:
                    tree.move(member, old, scores[at], behind, at)
                behind += 1
            at += 1
        return olds

    def add_run(self, run: bytes) -> None:
        """Add members to an empty one."""
        size = size_of(run)
        place = first_place(run)
        number: i64 = 0
        pairs: list[tuple[float, bytes]] = []
        while number < size:
            pairs.append((score_at(run, number), member_at(run, place)))
            place = next_at(run, place)
            number += 1
        self.add_sorted(pairs)

    def add_sorted(self, pairs: list[tuple[float, bytes]]) -> None:
        """Add members in order to an empty one."""
        count: i64 = len(pairs)
        first: i64 = 0
        while first < count:
            end = first
            size: i64 = 0
            while end < count and end - first < RUN_MEMBERS:
                size += SCORE_BYTES + packed_bytes(len(pairs[end][1]))
                if size > RUN_BYTES and end > first:
                    break
                self.table.swap_score(pairs[end][1], pairs[end][0])
                end += 1
            self.tree.add_run(run_of(pairs, first, end))
            first = end

    def remove(self, member: bytes) -> bool:
        """Take a member out; False where it is not there."""
        score = self.table.score(member)
        if score != score:
            return False
        self.table.remove(member)
        self.tree.remove(score, member)
        return True

    def take(self, first: i64, end: i64) -> list[bytes]:
        """Take out the members from rank ``first`` to before ``end``; return runs of them."""
        taken = self.tree.take(first, end)
        for run in taken:
            for member in unpack(run[first_place(run) :]):
                self.table.remove(member)
        return taken

    def scan(self, cursor: i64, least: i64, found: list[tuple[bytes, float]]) -> i64:
        """Add some members to ``found``, in no order; return the next cursor, 0 at the end."""
        buckets: list[bytes] = []
        cursor = self.table.scan(cursor, least, buckets)
        for bucket in buckets:
            place: i64 = 0
            end: i64 = len(bucket)
            while place < end:
                after = next_at(bucket, place)
                found.append((member_at(bucket, place), read_f64_le(bucket, after)))
                place = after + SCORE_BYTES
        return cursor

    def copy(self) -> Large:
        """Return one of its own with the same members."""
        twin = Large()
        twin.table = self.table.copy()
        twin.tree = self.tree.copy()
        return twin

    def used_bytes(self, samples: int) -> int:
        """Return about how many bytes it takes, by so many nodes of the tree; 0: by all."""
        table = self.table
        # The tree holds the same members and scores once more.
        return table.used_bytes() + int(table.content_bytes) + self.tree.overhead_bytes(samples)

    def effort(self) -> int:
        """Return about how many pieces there are to free."""
        return self.table.effort() + _PIECES_A_NODE * len(self.tree.nodes)

    def free_some(self, most: int) -> bool:
        """Free up to about ``most`` pieces of one that is no longer used; True at the end."""
        if self.tree.nodes:
            self.tree.free_some(max(1, most // _PIECES_A_NODE))
            return False
        return self.table.free_some(most)


LOWEST: Final = -1  # kinds of bounds
MEMBER: Final = 0
HIGHEST: Final = 1


class LexBound:
    """One end of a range: ``kind`` is below all members, at ``member`` or above all.

    The member need not be there; if ``exclusive``, it is not in the range.
    """

    def __init__(self, kind: i64, member: bytes, exclusive: bool) -> None:
        self.kind: Final[i64] = kind
        self.member: Final = member
        self.exclusive: Final = exclusive


class LexRange:
    """A range between two bounds."""

    def __init__(self, low: LexBound, high: LexBound) -> None:
        self.low: Final = low
        self.high: Final = high

    def is_empty(self) -> bool:
        """Return whether nothing can be in it."""
        low = self.low
        high = self.high
        if low.kind != high.kind:
            return low.kind > high.kind
        if low.kind != MEMBER:
            return True
        exclusive = low.exclusive or high.exclusive
        return low.member > high.member or (low.member == high.member and exclusive)

    def of_run(self, run: bytes, reverse: bool, skipped: i64) -> tuple[i64, i64]:
        """Return the first number in the range and the one behind its last, walked from either end.

        Members that are not in order, because their scores differ, end the range or do not begin
        it, as in Redis's walk; those that are skipped are not compared.
        """
        size = size_of(run)
        if self.is_empty() or not size:
            return 0, 0
        above_low: list[bool] = []
        below_high: list[bool] = []
        place = first_place(run)
        end: i64 = len(run)
        while place < end:
            above_low.append(self._is_above_low(run, place))
            below_high.append(self._is_below_high(run, place))
            place = next_at(run, place)
        if not above_low[-1] or not below_high[0]:
            return 0, 0
        if reverse:
            last: i64 = size - 1
            while last >= 0 and not below_high[last]:
                last -= 1
            if last < 0 or not above_low[last]:
                return 0, 0
            last = max(-1, last - skipped)
            first = last
            while first >= 0 and above_low[first]:
                first -= 1
            return first + 1, last + 1
        first = 0
        while first < size and not above_low[first]:
            first += 1
        if first == size or not below_high[first]:
            return 0, 0
        first = min(size, first + skipped)
        last = first
        while last < size and below_high[last]:
            last += 1
        return first, last

    def of_tree(self, tree: Tree, reverse: bool, skipped: i64) -> tuple[i64, i64]:
        """Return the first rank in the range and the one behind its last, without those skipped."""
        if self.is_empty():
            return 0, 0
        low = self.low
        high = self.high
        first: i64 = 0
        end = tree.size
        if low.kind == HIGHEST:
            first = end
        elif low.kind == MEMBER:
            first = tree.below_member(low.member, low.exclusive)
        if high.kind == LOWEST:
            end = 0
        elif high.kind == MEMBER:
            end = tree.below_member(high.member, not high.exclusive)
        if reverse:
            end -= min(skipped, max(0, end - first))
        else:
            first += min(skipped, max(0, end - first))
        return first, max(first, end)

    def _is_above_low(self, run: bytes, place: i64) -> bool:
        low = self.low
        if low.kind != MEMBER:
            return low.kind == LOWEST
        order = compare_at(run, place, low.member)
        return order > 0 or (order == 0 and not low.exclusive)

    def _is_below_high(self, run: bytes, place: i64) -> bool:
        high = self.high
        if high.kind != MEMBER:
            return high.kind == HIGHEST
        order = compare_at(run, place, high.member)
        return order < 0 or (order == 0 and not high.exclusive)


SORTED_SET: Final = b"zset"
SAME: Final[i64] = 0  # what became of a member
NEW: Final[i64] = 1
CHANGED: Final[i64] = 2
_DIGEST_NUMBER: Final = 3
_SCATTERED: Final[i64] = 10_000
_SMALL_BYTES: Final = 33 + 32  # of the ``bytes`` and of the object that holds it


@mypyc_attr(acyclic=True)
class SortedSet(Collection):
    """Members with scores; ``rep`` is what it consists of: a run, or ``Large``."""

    def __init__(self) -> None:
        self.rep: object = EMPTY

    # Looking

    def is_large(self) -> bool:
        """Return whether it has turned large."""
        return not isinstance(self.rep, bytes)

    def size(self) -> int:
        rep = self.rep
        if isinstance(rep, bytes):
            return int(size_of(rep))
        assert isinstance(rep, Large)
        return int(rep.tree.size)

    def score(self, member: bytes) -> float:
        """Return the score of a member; not a number where it is not there."""
        rep = self.rep
        if isinstance(rep, bytes):
            number = number_of(rep, member)
            return score_at(rep, number) if number >= 0 else NO_SCORE
        assert isinstance(rep, Large)
        return rep.table.score(member)

    def rank(self, member: bytes, score: float) -> i64:
        """Return how many members stand before one that is there, with this score."""
        rep = self.rep
        if isinstance(rep, bytes):
            return number_of(rep, member)
        assert isinstance(rep, Large)
        return rep.tree.rank(score, member)

    def above_score(self, score: float, inclusive: bool) -> i64:
        """Return how many members have a lower score, or, if ``inclusive``, this one."""
        rep = self.rep
        if isinstance(rep, bytes):
            return above_score(rep, score, inclusive)
        assert isinstance(rep, Large)
        return rep.tree.above_score(score, inclusive)

    def lex_ranks(self, wanted: LexRange, reverse: bool, skipped: i64) -> tuple[i64, i64]:
        """Return the first rank in a range of members, and the one behind its last.

        If ``reverse`` it is walked from its end, which decides which members are in it if scores
        differ and the set is small. So many that the walk meets first are ``skipped``.
        """
        rep = self.rep
        if isinstance(rep, bytes):
            return wanted.of_run(rep, reverse, skipped)
        assert isinstance(rep, Large)
        return wanted.of_tree(rep.tree, reverse, skipped)

    def runs(self, first: i64, end: i64) -> list[bytes]:
        """Return runs of the members from rank ``first`` up to and without ``end``."""
        return self.span(first, end).parts()

    def span(self, first: i64, end: i64) -> Span:
        """Return the members from rank ``first`` up to and without ``end``."""
        rep = self.rep
        if first < end and isinstance(rep, Large):
            return rep.tree.span(first, end)
        found = Span()
        if isinstance(rep, bytes):
            found.add(rep, first, end)
        return found

    def span_of_scores(
        self, low: float, above: bool, high: float, inclusive: bool, skipped: i64, most: i64
    ) -> Span:
        """Return up to ``most`` members between scores, as ``Tree.span_of_scores`` does."""
        rep = self.rep
        if isinstance(rep, Large):
            return rep.tree.span_of_scores(low, above, high, inclusive, skipped, most)
        assert isinstance(rep, bytes)
        found = Span()
        size = size_of(rep)
        first = above_score(rep, low, above) + min(skipped, size)
        end = above_score(rep, high, inclusive)
        found.add(rep, first, first + most if end - first > most else end)
        return found

    def scan(self, cursor: i64, least: i64) -> tuple[i64, list[tuple[bytes, float]]]:
        """Return ``least`` members or more, with scores, and the next cursor; 0: start, end."""
        rep = self.rep
        found: list[tuple[bytes, float]] = []
        if isinstance(rep, bytes):
            add_pairs(rep, found)
            return 0, found
        assert isinstance(rep, Large)
        return rep.scan(cursor, least, found), found

    def scattered_table(self) -> Table | None:
        rep = self.rep
        table = rep.table if isinstance(rep, Large) else None
        return table if table is not None and table.count >= _SCATTERED else None

    # Changing

    def make_large(self) -> None:
        """Turn it large, if it is not."""
        rep = self.rep
        if isinstance(rep, bytes):
            large = Large()
            if rep != EMPTY:
                large.add_run(rep)
            self.rep = large

    def add(self, member: bytes, score: float, limits: SmallLimits) -> None:
        """Add a member that is not there."""
        rep = self.rep
        if isinstance(rep, bytes):
            size = size_of(rep)
            if size < limits.elements and len(member) <= limits.element_bytes and size < MOST:
                score += 0.0  # a 0 without a sign
                number, place = spot_of(rep, score, member)
                self.rep = inserted(rep, number, place, score, member)
                return
            self.make_large()
            rep = self.rep
        assert isinstance(rep, Large)
        rep.add(member, score)

    def put(self, member: bytes, score: float, limits: SmallLimits) -> i64:
        """Give a member a score; return ``NEW``, ``CHANGED`` or ``SAME``."""
        rep = self.rep
        if isinstance(rep, bytes):
            number = number_of(rep, member)
            if number < 0:
                self.add(member, score, limits)
                return NEW
            if score_at(rep, number) == score:
                return SAME
            score += 0.0
            self.rep = moved(rep, number, below(rep, score, member), score)
            return CHANGED
        assert isinstance(rep, Large)
        old = rep.table.swap_score(member, score)
        if isnan(old):
            rep.tree.insert(score, member)
            return NEW
        if old == score:
            return SAME
        rep.tree.move(member, old, score)
        return CHANGED

    def is_spread(self) -> bool:
        """Return whether it is so large that ``put_all`` takes less time than ``put`` for each."""
        rep = self.rep
        return isinstance(rep, Large) and rep.table.count >= _SCATTERED

    def put_all(
        self, requests: list[list[bytes]], first: i64, place: i64, scores: vec[float]
    ) -> vec[float]:
        """Put all as ``Large.put_all``, in a set that ``is_spread``."""
        rep = self.rep
        assert isinstance(rep, Large)
        return rep.put_all(requests, first, place, scores)

    def change(self, member: bytes, score: float, to: float) -> None:
        """Change the score of a member that is there with another one."""
        rep = self.rep
        if isinstance(rep, bytes):
            to += 0.0
            self.rep = moved(rep, number_of(rep, member), below(rep, to, member), to)
            return
        assert isinstance(rep, Large)
        rep.table.swap_score(member, to)
        rep.tree.move(member, score, to)

    def remove(self, member: bytes) -> bool:
        """Take a member out; False where it is not there."""
        rep = self.rep
        if isinstance(rep, bytes):
            number = number_of(rep, member)
            if number < 0:
                return False
            self.rep = without(rep, number, number + 1)
            return True
        assert isinstance(rep, Large)
        return rep.remove(member)

    def take(self, first: i64, end: i64) -> list[bytes]:
        """Take out the members from rank ``first`` to before ``end``; return runs of them."""
        rep = self.rep
        if first >= end:
            return []
        if isinstance(rep, bytes):
            taken = self.runs(first, end)
            self.rep = without(rep, first, end)
            return taken
        assert isinstance(rep, Large)
        return rep.take(first, end)

    # As a value

    def type_name(self) -> bytes:
        return SORTED_SET

    def encoding(self, key: bytes) -> bytes:
        return b"listpack" if isinstance(self.rep, bytes) else b"skiplist"

    def used_bytes(self, samples: int) -> int:
        rep = self.rep
        if isinstance(rep, bytes):
            return _SMALL_BYTES + len(rep)
        assert isinstance(rep, Large)
        return _SMALL_BYTES + rep.used_bytes(samples)

    def copy(self) -> SortedSet:
        twin = SortedSet()
        rep = self.rep
        if isinstance(rep, Large):
            rep = rep.copy()
        twin.rep = rep
        return twin

    def effort(self) -> int:
        rep = self.rep
        return rep.effort() if isinstance(rep, Large) else 0

    def free_some(self, most: int) -> bool:
        rep = self.rep
        return rep.free_some(most) if isinstance(rep, Large) else True

    def add_to(self, digest: Digest) -> None:
        digest.mix_type(_DIGEST_NUMBER)
        for run in self.runs(0, self.size()):
            for member, score in pairs_of(run):
                part = Digest(digest.spelled)
                part.mix(member)
                part.mix(digest.spelled(score))
                digest.toggle(part.value.to_bytes(DIGEST_BYTES, "big"))


def add_pairs(run: bytes, found: list[tuple[bytes, float]]) -> None:
    """Add the members of a run, with their scores."""
    size = size_of(run)
    place = first_place(run)
    number: i64 = 0
    while number < size:
        found.append((member_at(run, place), score_at(run, number)))
        place = next_at(run, place)
        number += 1


def pairs_of(run: bytes) -> list[tuple[bytes, float]]:
    """Return the members of a run, with their scores, in order."""
    found: list[tuple[bytes, float]] = []
    add_pairs(run, found)
    return found


def sorted_set_of(pairs: list[tuple[float, bytes]], limits: SmallLimits) -> SortedSet:
    """Return a set of pairs in order, each member once; it is small where it may be."""
    made = SortedSet()
    count: i64 = len(pairs)
    longest: i64 = 0
    for _, member in pairs:
        longest = max(longest, len(member))
    if count <= limits.elements and longest <= limits.element_bytes and count <= MOST:
        made.rep = run_of([(score + 0.0, member) for score, member in pairs], 0, count)
        return made
    large = Large()
    large.add_sorted(pairs)
    made.rep = large
    return made
