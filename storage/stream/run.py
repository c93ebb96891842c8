"""Runs: entries of a stream in order of their IDs, decoded."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

ID_MAX: Final = 2**64 - 1  # of either half


def is_below(ms: int, seq: int, other_ms: int, other_seq: int) -> bool:
    """Return whether (ms, seq) is below the other ID; compiled, far cheaper than with tuples."""
    return ms < other_ms or (ms == other_ms and seq < other_seq)


def following(ms: int, seq: int) -> tuple[int, int]:
    """Return the ID that comes next; the greatest there is has none."""
    return (ms, seq + 1) if seq != ID_MAX else (ms + 1, 0)


NO_NAMES: Final[list[bytes]] = []
_NO_ROWS: Final[list[list[bytes]]] = []


@mypyc_attr(acyclic=True)
class Run:
    """Entries in order, decoded.

    Either every entry has the same field ``names`` and ``flat`` holds the values in a row, or
    ``names`` is None and ``rows`` holds each entry's fields and values.

    Attributes:
        first: of a part of a block: which of the block's entries its first one is.
        names_of_node: of an open block: the field names of the first entry, which Redis's node
            stores once.
    """

    def __init__(self, names: list[bytes] | None) -> None:
        self.ms: list[int] = []
        self.seq: list[int] = []
        self.names = names
        self.flat: list[bytes] = []
        self.rows: list[list[bytes]] = [] if names is None else _NO_ROWS
        self.first: i64 = 0
        self.names_of_node: list[bytes] = NO_NAMES
        self._near: i64 = 0  # what ``position`` found last

    def row(self, number: int) -> list[bytes]:
        """Return the fields and values of entry ``number`` in a row; not to be changed."""
        names = self.names
        if names is None:
            return self.rows[number]
        width = len(names)
        if width == 1:
            return [names[0], self.flat[number]]
        row: list[bytes] = []
        start = number * width
        for offset in range(width):
            row.append(names[offset])
            row.append(self.flat[start + offset])
        return row

    def mix(self) -> None:
        """Give each entry a row of its own, because an entry with other names is about to come."""
        self.rows = [self.row(number) for number in range(len(self.ms))]
        self.names = None
        self.flat = []

    def copy(self) -> Run:
        """Return an equal run; rows are shared, because they never change."""
        twin = Run(self.names)
        twin.ms = self.ms.copy()
        twin.seq = self.seq.copy()
        twin.flat = self.flat.copy()
        twin.rows = self.rows.copy()
        twin.names_of_node = self.names_of_node
        return twin

    def position(self, ms: int, seq: int) -> int:
        """Return the number of the first entry whose ID is not below (ms, seq).

        A reader in order asks for the entry after the last one, so that is looked at first.
        """
        all_ms = self.ms
        all_seq = self.seq
        low: i64 = 0
        high: i64 = len(all_ms)
        middle = self._near
        if middle >= high:
            middle = high >> 1
        step: i64 = 1
        while low < high:
            found = all_ms[middle]
            if found < ms or (found == ms and all_seq[middle] < seq):
                low = middle + 1
            else:
                high = middle
            # First the neighbour, then as in any binary search.
            middle = low if step and low < high and low == middle + 1 else (low + high) >> 1
            step = 0
        self._near = low
        return int(low)


class _Shared:
    def __init__(self) -> None:
        self.names = NO_NAMES


_shared: Final = _Shared()


def names_of(words: list[bytes], at: int) -> list[bytes]:
    """Return the field names of the entry ``words[at:]``, not to be changed.

    Streams whose entries have the same names share one list. So it is in the caches when the next
    of them gets an entry.
    """
    if not has_names(words, at, _shared.names):
        _shared.names = words[at::2]
    return _shared.names


def has_names(words: list[bytes], at: i64, names: list[bytes]) -> bool:
    """Return whether the entry ``words[at:]`` has these field names in this order."""
    if i64(len(words)) - at != 2 * len(names):
        return False
    for name in names:
        if words[at] != name:
            return False
        at += 2
    return True
