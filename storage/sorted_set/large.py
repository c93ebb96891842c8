"""A large sorted set: a table from members to scores, and a tree that has them in order."""

from __future__ import annotations

from math import isnan
from typing import Final

from librt.strings import read_f64_le
from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

from headrace.storage.packed.hashing import new_seed
from headrace.storage.packed.strings import next_at, packed_bytes, unpack
from headrace.storage.packed.table import SCORE_BYTES, SCORES, Table
from headrace.storage.sorted_set.runs import first_place, member_at, run_of, score_at, size_of
from headrace.storage.sorted_set.tree import RUN_BYTES, RUN_MEMBERS, Tree

_PIECES_A_NODE: Final = 8


@mypyc_attr(acyclic=True)
class Large:
    """Members with scores: what the table has, the tree has, and nothing else."""

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

        Args:
            requests: from ``first`` on as many as there are scores, of which each names a member.
            place: where in a request it stands.

        Returns: the scores that the members had; not a number for new ones.
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
        """Add members to what is empty."""
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
        """Add what is in order, to what is empty."""
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
        """Take out the members from rank ``first`` up to and without ``end``; runs of them."""
        taken = self.tree.take(first, end)
        for run in taken:
            for member in unpack(run[first_place(run) :]):
                self.table.remove(member)
        return taken

    def scan(self, cursor: i64, least: i64, found: list[tuple[bytes, float]]) -> i64:
        """Add some members to ``found``, in no order; the next cursor, 0 at the end."""
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
        """One of its own with the same members."""
        twin = Large()
        twin.table = self.table.copy()
        twin.tree = self.tree.copy()
        return twin

    def used_bytes(self, samples: int) -> int:
        """About how much memory it takes, by so many nodes of the tree; 0: by all."""
        table = self.table
        # The tree holds the same members and scores once more.
        return table.used_bytes() + int(table.content_bytes) + self.tree.overhead_bytes(samples)

    def effort(self) -> int:
        """About how many pieces there are to free."""
        return self.table.effort() + _PIECES_A_NODE * len(self.tree.nodes)

    def free_some(self, most: int) -> bool:
        """Free up to about ``most`` pieces of what nobody uses any more; True at the end."""
        if self.tree.nodes:
            self.tree.free_some(max(1, most // _PIECES_A_NODE))
            return False
        return self.table.free_some(most)
