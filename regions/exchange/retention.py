"""How long the log is kept: until every other region has on its disk what a file holds."""

from __future__ import annotations

import logging
from typing import Final

from headrace.regions.exchange.callers import Callers
from headrace.regions.exchange.keeping import Keeping, log_of
from headrace.regions.files.kept import KeptLog
from headrace.regions.knowledge.region import Region
from headrace.server.durability.durability import Durability
from headrace.storage.vectors import Numbers, raise_numbers

log: Final = logging.getLogger("headrace")

LOOK_MS: Final = 1000


class Retention:
    """Lets the log know from time to time what the others have."""

    def __init__(
        self, region: Region, durability: Durability, keeping: Keeping, callers: Callers
    ) -> None:
        self._region: Final = region
        self._durability: Final = durability
        self._keeping: Final = keeping
        self._callers: Final = callers
        self._next_ms = 0
        self._reported = 0  # files that have gone

    def look(self, now_ms: int) -> None:
        """See what they have, if it is time; now_ms is monotonic."""
        kept = log_of(self._durability.files)
        if kept is None or now_ms < self._next_ms:
            return
        self._next_ms = now_ms + LOOK_MS
        others = [member for member in self._region.members() if member != self._region.id]
        kept.is_kept = bool(others)
        self._keeping.acknowledged(least([self._of(member) for member in others]))
        if kept.dropped > self._reported:
            self._reported = kept.dropped
            self._report(kept, others)

    def _report(self, kept: KeptLog, others: list[int]) -> None:
        """The log has become too long: say who will need a full copy."""
        own = self._region.origin
        for member in others:
            if self._of(member).get(own, 0) + 1 < kept.reach(own):
                log.warning(
                    "Region %d will need a full copy when it returns: the log for it is longer "
                    "than aa-log-max-bytes (%d), so the oldest has gone. Nothing is lost. If it "
                    "will never return: AA FORGET %d",
                    member,
                    kept.most_bytes,
                    member,
                )

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
