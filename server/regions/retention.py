"""How long the log is kept: until every other region has on its disk what a file holds."""

from __future__ import annotations

from typing import Final

from headrace.server.durability.durability import Durability
from headrace.server.regions.callers import Callers
from headrace.storage.regions.region import Region
from headrace.storage.regions.vectors import Numbers, raise_numbers

LOOK_MS: Final = 1000


class Retention:
    """Lets the log know from time to time what the others have."""

    def __init__(self, region: Region, durability: Durability, callers: Callers) -> None:
        self._region: Final = region
        self._durability: Final = durability
        self._callers: Final = callers
        self._next_ms = 0

    def look(self, now_ms: int) -> None:
        """See what they have, if it is time; now_ms is monotonic."""
        log = self._durability.files.log
        if log is None or now_ms < self._next_ms:
            return
        self._next_ms = now_ms + LOOK_MS
        others = [member for member in self._region.members() if member != self._region.id]
        log.is_kept = bool(others)
        self._durability.keeping.acknowledged(least([self._of(member) for member in others]))

    def _of(self, member: int) -> Numbers:
        """What a region has on its disk, as it said on a connection or in its log."""
        numbers = self._callers.acknowledged.get(member, {}).copy()
        beat = self._region.beats.get(member)
        if beat is not None:
            raise_numbers(numbers, beat.numbers)
        return numbers


def least(vectors: list[Numbers]) -> Numbers:
    """What all of them know."""
    if not vectors:
        return {}
    found: Numbers = {}
    for origin, number in vectors[0].items():
        lowest = min([numbers.get(origin, 0) for numbers in vectors])
        if lowest:
            found[origin] = min(lowest, number)
    return found
