"""Forgetting what all regions have seen.

A removal is remembered because what it removes may still come, and because of what its maker had
not seen. Once every region is known to have seen it, and all that was made before that is here,
nothing of that kind can come any more: it is *stable*.

Each epoch of a region writes lanes of its own. What is left of an earlier one when its entries have
gone says nothing that a later one does not say. So it ends, which is an effect, and is forgotten
then, like what a deletion covers (``lanes_to_end``). But a lane of which more was removed than has
come stays, even if nobody has the rest any more: an old copy of a folder may bring it.

What somebody has set of a stream without knowing that it goes outlives the removal, and would hold
for the stream that is made next. No region may drop that by itself, since the others would have it
still. So it is removed in turn, by one of those who have set it (``sweeper``).
"""

from __future__ import annotations

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.vectors import LaneVector, Numbers, covers, region_of


def collect(stream: RegionalStream, stable: Numbers) -> int:
    """Forget what is stable, and lanes that are of no use then.

    Afterwards the stream may be idle (``RegionalStream.is_idle``).

    Args:
        stable: up to which record of each origin all regions are known to have seen all.

    Returns:
        How many things were forgotten.
    """
    before = len(stream.removals)
    stream.removals = [each for each in stream.removals if not covers(stable, each.dot)]
    forgotten = before - len(stream.removals)
    for name in list(stream.births):
        births = stream.births[name]
        before = len(births.tombstones) + len(births.acks)
        births.tombstones = [each for each in births.tombstones if not covers(stable, each.dot)]
        births.acks = {dot: acks for dot, acks in births.acks.items() if not covers(stable, dot)}
        forgotten += before - len(births.tombstones) - len(births.acks)
        stream.settle_group(name)
    stream.awaited = [each for each in stream.awaited if stream.is_awaiting(each)]
    if not stream.removals:
        dead = [lane for lane in stream.lanes if lane.is_dead()]
        forget_lanes(stream, dead)
        forgotten += len(dead)
    return forgotten


def sweeper(stream: RegionalStream, stable: Numbers, members: list[int]) -> int:
    """Which region is to remove what was set of a stream that has gone; 0 while none is.

    Args:
        stable: see ``collect``.
        members: the regions that take part.
    """
    dots = stream.left_over()
    if not dots or not all(covers(stable, dot) for dot in dots):
        return 0
    regions = {region_of(origin) for origin, _ in dots}
    return min(regions.intersection(members) or members)


def lanes_to_end(stream: RegionalStream, stable: Numbers, region: Region) -> LaneVector:
    """The lanes that this region is to end, because they have outlived their epochs.

    Whose lane it is ends it; of a region that takes part no more, the first of the others does.
    All have to know all of it: then nobody speaks of it any more who does not know that it ended.

    Args:
        stable: see ``collect``.
    """
    found: LaneVector = {}
    members = region.members()
    for lane in stream.outlived():
        number = lane.key[0] if lane.key[0] in members else members[0]
        if number == region.id and covers(stable, (lane.origin, region.number_of(lane.origin))):
            found[lane.name] = lane.last()
    return found


def forget_lanes(stream: RegionalStream, dead: list[Lane]) -> None:
    """Forget lanes of which nothing can live any more, and whatever names them."""
    if not dead:
        return
    stream.remove_lanes(dead)
    names = [lane.name for lane in dead]
    for births in stream.births.values():
        for create in births.known():
            for name in names:
                create.intervals.pop(name, None)
    for group in stream.groups.values():
        places_of(group).forget(names)
    stream.restored()
