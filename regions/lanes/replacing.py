"""The state of a stream gives way to another region's, and what is local stays.

This is for a region whose files are of an earlier time. What the others have forgotten since then
rests on what it had reported to them. So a stream that was joined would have entries again that
were deleted; what is here has to go altogether.
"""

from __future__ import annotations

from headrace.regions.lanes.join import join_pairs
from headrace.regions.lanes.places import ALL_IDS, acknowledged, places_of
from headrace.regions.lanes.stream import RegionalStream


def keep_local(fresh: RegionalStream, mine: RegionalStream) -> None:
    """Let ``fresh`` have the places, consumers, pending entries and iids of ``mine``.

    A group keeps them if the create on which they hang still lives. ``mine`` is of no use
    afterwards.
    """
    join_pairs(fresh, mine)
    fresh.iids_duplicates = mine.iids_duplicates
    for name, group in list(mine.groups.items()):
        births = fresh.births.get(name)
        places = places_of(group)
        if births is None or births.create(places.anchor) is None:
            continue
        del mine.groups[name]
        places.births = births
        places.is_whole = False  # less may be here than there was
        places.forget([lane for lane in places.begun if fresh.find_lane(lane) is None])
        group.max_pending = births.max_pending()
        fresh.groups[name] = group
        acknowledged(fresh, group, ALL_IDS)
