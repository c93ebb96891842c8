"""The records that all regions know, by their beats, and the IDs past, by their promises.

A **beat**: a region says from time to time, in a record like any other, which records it has on its
disk. A beat is read in order, behind all that its region wrote before it. So when all members'
latest beats here cover a record, everything that was written anywhere without knowing that record
is here.

A region that was forgotten beats no more, and its remaining records pass from member to member. A
region that knows of the forgetting takes nothing more from the forgotten one itself. So once all
members' beats say that they know, they also say all that any of them will ever have of it.

A **promise** says up to which millisecond a region makes no more IDs. It sends its promise with all
records that it gives. The promise holds in a region that has all that was written before it. So no
ID can come any more up to the least of what all regions have promised, unless it was made in an
earlier life of a region, and the end of that life's records is lost where they were made, but not
everywhere. Three things rule that out:

- All that any of the others knows of lives that are over is here, too.
- Each of them knows the present life of every region. A region that knows it takes nothing more
  from an earlier one: not even records on their way (``Region.has_outlived``). So a region can
  learn more of a life that is over only from those whose knowledge was looked at.
- A region that loses records begins another life, which the others have to know first, then. So no
  record slips from one to another between two looks.

A life that has written nothing is known to no other region. So it promises nothing before it has
written, unless it is the first one of its region.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.storage.vectors import EPOCH_MAX, Numbers, covers, epoch_of, origin_of, region_of

NO_STABLE_MS: Final = -1
FOLLOWED_MS: Final = 300_000  # a clock that is ahead by more is wrong, and is not followed


class Beat(NamedTuple):
    """The latest beat of a region, in the ``epoch`` of its origin.

    It had ``numbers`` on its disk. Every ID that it makes later has more than ``promise_ms``.
    """

    epoch: int
    numbers: Numbers
    promise_ms: int


def stable_numbers(
    beats: dict[int, Beat], members: list[int], known: Numbers, partings: Numbers
) -> Numbers:
    """Return what every member has on its disk, and all written without knowing it is here.

    Empty where a member does not know of another's present epoch, or of a parting, or where records
    of an epoch that is over are missing here that a member has.

    Args:
        beats: the latest of each region; a member that has none holds everything back.
        known: what is known here.
        partings: the records that have let regions take part no more.
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
    return all(found.get(member, -1) >= epoch for member, epoch in latest.items())


def covers_all(numbers: Numbers, others: Numbers) -> bool:
    """Return whether a vector knows all that another one does."""
    return all(covers(numbers, (origin, number)) for origin, number in others.items())


def _has_earlier(numbers: Numbers, latest: dict[int, int], known: Numbers) -> bool:
    """Return whether all is known here that a member has of epochs that are over.

    All epochs of a region that takes part no more are over.
    """
    for origin, number in numbers.items():
        over = epoch_of(origin) < latest.get(region_of(origin), EPOCH_MAX + 1)
        if over and known.get(origin, 0) < number:
            return False
    return True


def least_promise(others: list[int], promises: dict[int, int], own_ms: int) -> int:
    """Return the least of all promises; ``NO_STABLE_MS`` where one has promised nothing."""
    return min([own_ms, *[promises.get(member, NO_STABLE_MS) for member in others]])


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
        origin = origin_of(region, epoch)
        if epoch and not all(origin in numbers for numbers in vectors):
            return False
    return True
