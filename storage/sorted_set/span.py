"""Members that stand one behind the other, left where they are: in the runs that hold them."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from headrace.storage.packed.strings import next_at
from headrace.storage.sorted_set.runs import part_of, place_of, size_of


@mypyc_attr(acyclic=True, free_list_len=1)
class Span:
    """Some members in order.

    Attributes:
        runs: those that hold them. Of the first and the last run a part may belong to the span; of
            the others every member does.
        first: the number of the first member in the first run.
        end: the number behind that of the last member in the last run.
        count: how many members there are.
    """

    def __init__(self) -> None:
        self.runs: list[bytes] = []
        self.first: i64 = 0
        self.end: i64 = 0
        self.count: i64 = 0

    def add(self, run: bytes, first: i64, end: i64) -> None:
        """Add the members of a run from ``first`` up to and without ``end``."""
        if first >= end:
            return
        if not self.count:
            self.first = first
        self.runs.append(run)
        self.end = end
        self.count += end - first

    def bounds(self, at: i64) -> tuple[i64, i64]:
        """The first number that is meant in a run, and the one behind the last."""
        run = self.runs[at]
        first = self.first if at == 0 else 0
        end = self.end if at + 1 == len(self.runs) else size_of(run)
        return first, end

    def strings(self) -> list[bytes]:
        """The members as packed strings, in pieces."""
        found: list[bytes] = []
        at: i64 = 0
        count: i64 = len(self.runs)
        while at < count:
            first, end = self.bounds(at)
            run = self.runs[at]
            start = place_of(run, first)
            if end < size_of(run):
                found.append(run[start : next_at(run, start, end - first)])
            else:
                found.append(run[start:])
            at += 1
        return found

    def parts(self) -> list[bytes]:
        """Runs that hold these members and no others."""
        found: list[bytes] = []
        at: i64 = 0
        count: i64 = len(self.runs)
        while at < count:
            first, end = self.bounds(at)
            run = self.runs[at]
            found.append(run if end - first == size_of(run) else part_of(run, first, end))
            at += 1
        return found


def span_of(runs: list[bytes]) -> Span:
    """All members of some runs."""
    made = Span()
    for run in runs:
        made.add(run, 0, size_of(run))
    return made
