"""What XINFO shows of a stream and a group in a region, beside what it shows everywhere."""

from __future__ import annotations

from typing import Final

from headrace.protocol.packing import Constant, Packer
from headrace.regions.exchange.effects import region_of
from headrace.regions.exchange.promising import ask_for_stable
from headrace.regions.knowledge.promises import NO_STABLE_MS
from headrace.regions.lanes.births import ANYWHERE
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.state import Server
from headrace.storage.stream.groups import Group
from headrace.storage.stream.run import ID_MAX
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import ID, NO_ID

_LANES: Final = Constant(b"lanes")
_STABLE_ID: Final = Constant(b"stable-id")
_NAME: Final = Constant(b"name")
_LENGTH: Final = Constant(b"length")
_LAST_ID: Final = Constant(b"last-id")
_REMOVED_UP_TO: Final = Constant(b"removed-up-to")
_PLACES: Final = Constant(b"places")
_HOME: Final = Constant(b"home")


def add_lanes(out: Packer, server: Server, stream: Stream) -> None:
    """Add the lanes of a stream, and the ID up to which nothing can come any more."""
    assert isinstance(stream, RegionalStream)
    out.constant(_LANES)
    out.array(len(stream.lanes))
    for lane in stream.lanes:
        out.map(4)
        out.constant(_NAME)
        out.text(lane.name)
        out.constant(_LENGTH)
        out.number(lane.log.length)
        out.constant(_LAST_ID)
        out.id(*lane.last())
        out.constant(_REMOVED_UP_TO)
        out.id(*max(lane.deleted, lane.trimmed))
    out.constant(_STABLE_ID)
    ask_for_stable(server)
    found = stable_id(server, stream)
    if found is None:
        out.null()
    else:
        out.id(*found)


def stable_id(server: Server, stream: RegionalStream) -> ID | None:
    """The ID up to which nothing can come any more; (0, 0) while that is not known.

    Returns: None where callers give IDs that may come late.
    """
    if stream.is_manual():
        return None
    ms = region_of(server).stable_ms()
    return NO_ID if ms == NO_STABLE_MS else (ms, ID_MAX)


def add_places(out: Packer, group: Group) -> None:
    """Add how far a group has come in each lane, and the region where it is read."""
    places = places_of(group)
    out.constant(_PLACES)
    out.array(2 * len(places.place))
    for lane, entry_id in places.place.items():
        out.text(lane)
        out.id(*entry_id)
    out.constant(_HOME)
    home = places.births.home_region()
    if home == ANYWHERE:
        out.null()
    else:
        out.number(home)
