"""Promises: up to which millisecond a region makes no more IDs.

A region tells with all that it gives what it promises. That holds for whoever has all that the
region wrote before. So no ID can come any more up to the least of what all regions have promised,
unless it was made before: in an epoch that was over, with the end of its records lost where they
were made, but not everywhere. What all others know of such epochs must be here, therefore. They
have to know of the epochs that came then, because they may learn more of the earlier ones before.
"""

from __future__ import annotations

from typing import Final

from headrace.storage.regions.vectors import Numbers, epoch_of, region_of

NO_STABLE_MS: Final = -1


def least_promise(others: list[int], promises: dict[int, int], own_ms: int) -> int:
    """The least of what all have promised; ``NO_STABLE_MS`` where one has promised nothing."""
    found = own_ms
    for member in others:
        found = min(found, promises.get(member, NO_STABLE_MS))
    return found


def has_all_before(
    others: list[int], told: dict[int, Numbers], known: Numbers, epochs: dict[int, int]
) -> bool:
    """Whether all is known here that the others know of epochs that are over.

    Args:
        told: what each of the others has said it knows.
        known: what is known here.
        epochs: of each member one that it has had; later ones are looked for.
    """
    vectors = [known]
    for member in others:
        if member not in told:
            return False
        vectors.append(told[member])
    latest = epochs.copy()
    over: set[int] = set()
    for numbers in vectors:
        for origin in numbers:
            region = region_of(origin)
            if region in latest:
                latest[region] = max(latest[region], epoch_of(origin))
    for numbers in vectors:
        for origin, number in numbers.items():
            region = region_of(origin)
            if epoch_of(origin) != latest.get(region, -1):
                over.add(region)
                if known.get(origin, 0) < number:
                    return False
    for numbers in vectors[1:]:
        for region in over:
            if region in latest and not _knows_epoch(numbers, region, latest[region]):
                return False
    return True


def _knows_epoch(numbers: Numbers, region: int, epoch: int) -> bool:
    for origin in numbers:
        if epoch_of(origin) == epoch and region_of(origin) == region:
            return True
    return False
