"""Which numbered records one file holds, and where a reader can begin."""

from __future__ import annotations

from typing import Final

from headrace.storage.regions.vectors import Numbers

MARK_BYTES: Final = 64 * 1024  # so far from each other are the places of an origin that are known


class Places:
    """Where records of one origin stand: places with their numbers, both rising."""

    def __init__(self) -> None:
        self.numbers: Final[list[int]] = []
        self.offsets: Final[list[int]] = []

    def add(self, number: int, offset: int) -> None:
        """A reader that begins at ``offset`` finds how to count from ``number``."""
        if not self.offsets or offset - self.offsets[-1] >= MARK_BYTES:
            self.numbers.append(number)
            self.offsets.append(offset)

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
        first, last: the lowest and the highest number of each origin in it.
        places: where to begin, by origin.
        is_indexed: ``places`` is complete.
        sendable_bytes: what stands in front of this may be sent.
    """

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.first: Numbers = {}
        self.last: Numbers = {}
        self.places: Final[dict[bytes, Places]] = {}
        self.is_indexed = False
        self.sendable_bytes = 0

    def counts_from(self, origin: bytes, number: int, offset: int) -> None:
        """A line that says how to count stands at ``offset``, in no transaction."""
        places = self.places.get(origin)
        if places is None:
            places = Places()
            self.places[origin] = places
        places.add(number, offset)

    def holds(self, origin: bytes, first: int, last: int) -> None:
        """It holds these records of an origin."""
        self.first.setdefault(origin, first)
        self.last[origin] = last

    def has(self, origin: bytes, number: int) -> bool:
        """Whether it holds a record."""
        return origin in self.last and self.first[origin] <= number <= self.last[origin]
