"""Which numbered records one file holds, and where a reader can begin."""

from __future__ import annotations

from typing import Final

from headrace.regions.files.batch import Run
from headrace.storage.vectors import Dot, Numbers

MARK_BYTES: Final = 64 * 1024  # so far from each other are the places of an origin that are known


class Places:
    """Where records of one origin begin to stand, the origin of what is before being another.

    Attributes:
        numbers, offsets: the number of the first one, and where the file can be read from.
        states: how what stands there counts.
    """

    def __init__(self) -> None:
        self.numbers: Final[list[int]] = []
        self.offsets: Final[list[int]] = []
        self.states: Final[list[Dot]] = []

    def add(self, number: int, offset: int, state: Dot) -> None:
        """There is such a place; it is left aside where it is close behind another one."""
        if not self.offsets or offset - self.offsets[-1] >= MARK_BYTES:
            self.states.append(state)
            self.offsets.append(offset)
            self.numbers.append(number)  # last: a thread may be looking

    def find(self, number: int) -> int:
        """The index of the last place that is not behind a number; -1 where there is none."""
        low = 0
        high = len(self.numbers)
        while low < high:
            middle = (low + high) // 2
            if self.numbers[middle] <= number:
                low = middle + 1
            else:
                high = middle
        return low - 1


class LogFile:
    """One file of commands, as a part of the log that peers are sent from.

    Attributes:
        path: where it lies.
        first, last: from and up to which number it holds all records of each origin in it.
        places: where to begin, by origin.
        is_indexed: ``places`` is complete.
        sendable_bytes: what stands in front of this may be sent.
    """

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.first: Numbers = {}
        self.last: Numbers = {}
        self.places: dict[bytes, Places] = {}
        self.is_indexed = False
        self.sendable_bytes = 0

    def counts_from(self, origin: bytes, number: int, offset: int) -> None:
        """A line that says how to count stands at ``offset``, in no transaction."""
        self._add(origin, number, offset, (origin, number))

    def transaction(self, parts: list[Run], state: Dot, offset: int) -> None:
        """A transaction stands at ``offset``; ``state`` is how its first numbered record counts."""
        for part in parts:
            if part.origin != state[0] or len(parts) > 1:
                self._add(part.origin, part.first, offset, state)

    def _add(self, origin: bytes, number: int, offset: int, state: Dot) -> None:
        places = self.places.get(origin)
        if places is None:
            places = Places()
            self.places[origin] = places
        places.add(number, offset, state)

    def holds(self, origin: bytes, first: int, last: int) -> None:
        """It holds these records of an origin."""
        if self.last.get(origin, -1) + 1 != first:
            self.first[origin] = first  # behind a gap: what was before is of no use
        self.last[origin] = last

    def has(self, origin: bytes, number: int) -> bool:
        """Return whether it holds a record."""
        return origin in self.last and self.first[origin] <= number <= self.last[origin]
