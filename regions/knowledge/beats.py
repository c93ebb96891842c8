"""Beats: what each region has said in its own log of what it knows, and what all of them know.

A region says from time to time, in a record like any other, which records it has on its disk. A
beat is read in order, behind all that its region wrote before it. So when all members' latest beats
here cover a record, everything that was written anywhere without knowing that record is here.

A region that was forgotten beats no more, and what is left of it passes from member to member. Who
knows that it was forgotten takes nothing more from itself. So once all members' beats say that they
know, they also say all that any of them will ever have of it.
"""

from __future__ import annotations

from typing import Final

from headrace.storage.vectors import EPOCH_MAX, Numbers, covers, epoch_of, region_of


class Beat:
    """The latest beat of a region.

    Attributes:
        epoch: of its origin.
        numbers: what it had on its disk.
        promise_ms: every ID that it makes later has more milliseconds.
    """

    def __init__(self, epoch: int, numbers: Numbers, promise_ms: int) -> None:
        self.epoch: Final = epoch
        self.numbers: Final = numbers
        self.promise_ms: Final = promise_ms


def stable_numbers(
    beats: dict[int, Beat], members: list[int], known: Numbers, partings: Numbers
) -> Numbers:
    """What every member has on its disk, and all that was written without knowing it is here.

    Args:
        beats: the latest of each region; a member that has none holds everything back.
        known: what is known here.
        partings: the records that have let regions take part no more.

    Returns: nothing, where a member does not know of another's present epoch, or of a parting, or
        where records of an epoch that is over are missing here that a member has.
    """
    latest: dict[int, int] = {}
    for member in members:
        beat = beats.get(member)
        if beat is None:
            return {}
        latest[member] = beat.epoch
    stable: Numbers = known.copy()
    for member in members:
        numbers = beats[member].numbers
        if not _knows_epochs(numbers, latest) or not _has_earlier(numbers, latest, known):
            return {}
        if not covers_all(numbers, partings):
            return {}
        for origin in list(stable):
            stable[origin] = min(stable[origin], numbers.get(origin, 0))
    return {origin: number for origin, number in stable.items() if number}


def _knows_epochs(numbers: Numbers, latest: dict[int, int]) -> bool:
    """Return whether a vector knows each member in the epoch that it has now."""
    found: dict[int, int] = {}
    for origin in numbers:
        region = region_of(origin)
        found[region] = max(found.get(region, 0), epoch_of(origin))
    for member, epoch in latest.items():
        if found.get(member, -1) < epoch:
            return False
    return True


def covers_all(numbers: Numbers, others: Numbers) -> bool:
    """Return whether a vector knows all that another one does."""
    return all(covers(numbers, (origin, number)) for origin, number in others.items())


def _has_earlier(numbers: Numbers, latest: dict[int, int], known: Numbers) -> bool:
    """Return whether all is known here that a member has of epochs that are over.

    All those of a region are that takes part no more.
    """
    for origin, number in numbers.items():
        over = epoch_of(origin) < latest.get(region_of(origin), EPOCH_MAX + 1)
        if over and known.get(origin, 0) < number:
            return False
    return True
