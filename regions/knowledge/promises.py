"""Promises: up to which millisecond a region makes no more IDs.

A region sends its promise with all that it gives. That holds for whoever has all that the
region wrote before. So no ID can come any more up to the least of what all regions have promised,
unless it was made in an earlier life of a region, and the end of that life's records is lost where
they were made, but not everywhere. Three things rule that out:

- What any of the others knows of lives that are over is here, too.
- Each of them knows the present life of every region. Whoever knows it takes nothing more from an
  earlier one: not even what was on its way (``Region.has_outlived``). So nobody can learn more of
  a life that is over but from those whose knowledge was looked at.
- Whoever loses what he knew begins another life, which the others have to know first, then. So
  nothing slips from one to another between two looks.

A life that has written nothing is known to nobody. So it promises nothing before it has, unless
it is the first one of its region.
"""

from __future__ import annotations

from typing import Final

from headrace.storage.vectors import Numbers, epoch_of, region_of

NO_STABLE_MS: Final = -1
FOLLOWED_MS: Final = 300_000  # a clock that is ahead by more is wrong, and pulls nobody with it


def least_promise(others: list[int], promises: dict[int, int], own_ms: int) -> int:
    """The least of what all have promised; ``NO_STABLE_MS`` where one has promised nothing."""
    found = own_ms
    for member in others:
        found = min(found, promises.get(member, NO_STABLE_MS))
    return found


def has_all_before(vectors: list[Numbers], epochs: dict[int, int]) -> bool:
    """Return whether all is known here that the others know of lives that are over.

    Args:
        vectors: what is known here, and what each of the others has said it knows.
        epochs: the latest in which each of those that take part has promised; there may be later
            ones, which the vectors know.
    """
    known = vectors[0]
    latest = epochs.copy()
    for numbers in vectors:
        for origin in numbers:
            region = region_of(origin)
            if region in latest:
                latest[region] = max(latest[region], epoch_of(origin))
    for numbers in vectors:
        for origin, number in numbers.items():
            is_over = epoch_of(origin) != latest.get(region_of(origin), -1)
            if is_over and known.get(origin, 0) < number:
                return False
    for region, epoch in latest.items():
        if epoch and not all(_knows_epoch(numbers, region, epoch) for numbers in vectors):
            return False
    return True


def _knows_epoch(numbers: Numbers, region: int, epoch: int) -> bool:
    for origin in numbers:
        if epoch_of(origin) == epoch and region_of(origin) == region:
            return True
    return False
