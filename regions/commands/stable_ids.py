"""What XINFO shows of a stream and a group in a region, beside what it shows everywhere.

XREAD STABLE: entries up to where nothing can come any more, so that a reader skips none.

Entries of other regions come late, and may have lower IDs than what has been read. Those who read
with STABLE are given what is stable alone (``Region.stable_ms``). They wait while there is more.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.stream_ids import format_id
from headrace.protocol.packing import Constant, Packer
from headrace.protocol.replies import NULL_ARRAY
from headrace.regions.exchange.effects import region_of
from headrace.regions.exchange.heartbeats import ask_for_stable
from headrace.regions.knowledge.stability import NO_STABLE_MS
from headrace.regions.lanes.group_state import ANYWHERE
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.commands.streams.args import strict_id
from headrace.server.commands.streams.options import ReadOptions
from headrace.server.commands.streams.reading import EntryAfter, Readers
from headrace.server.dispatch.call import Call
from headrace.server.state import Server
from headrace.server.waiting import Line, Parked, Queue, Waiter
from headrace.storage.stream.groups import Group
from headrace.storage.stream.part import Part
from headrace.storage.stream.run import ID_MAX, following
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
    home = places.group_state.home_region()
    if home == ANYWHERE:
        out.null()
    else:
        out.number(home)


_INTEREST: Final = b"stable entries"


def bound_of(call: Call, stream: Stream | None) -> ID:
    """Up to which ID a stream may be read; (0, 0) while that is not known.

    Raises:
        CommandError: callers have given it IDs that may come late.
    """
    ask_for_stable(call.server)
    if not isinstance(stream, RegionalStream):
        return NO_ID
    found = stable_id(call.server, stream)
    if found is None:
        raise CommandError(errors.NO_STABLE_IDS)
    return found


def first_after(text: bytes, stream: Stream | None, bound: ID) -> ID:
    """The ID after which entries are wanted: an ID, ``$`` (the bound) or ``+`` (the last one)."""
    if text == b"$":
        return bound
    if text == b"+":
        last = NO_ID if stream is None else _last_up_to(stream, bound)
        if last == NO_ID:
            return bound
        return (last[0], last[1] - 1) if last[1] else (last[0] - 1, ID_MAX)
    if text == b">":
        raise CommandError(errors.XREAD_NEW_ID)
    return strict_id(text)


def _last_up_to(stream: Stream, bound: ID) -> ID:
    """The ID of the last entry up to a bound; (0, 0) where there is none."""
    for part in stream.parts(NO_ID, bound, 1, True):
        for number in range(part.high - 1, part.low - 1, -1):
            if part.dead is None or not part.dead[number]:
                return part.run.ms[number], part.run.seq[number]
    return NO_ID


def parts_up_to(
    stream: Stream, after: ID, bound: ID, count: int, most_bytes: int = 0
) -> list[Part]:
    """Return where the entries after an ID are, up to a bound. See ``EntryLog.parts``."""
    if after >= bound or not stream.length:
        return []
    return stream.parts(following(after[0], after[1]), bound, count, False, most_bytes)


def wait_for_stable(
    call: Call, options: ReadOptions, keys: list[bytes], after: list[ID], bounds: list[ID]
) -> Parked:
    """Wait until more is stable; ``$`` is from now on what it stands for, if that is known."""
    argv = call.argv.copy()
    at = options.streams_at + len(keys)
    for number, entry_id in enumerate(after):
        if argv[at + number] == b"$" and bounds[number] != NO_ID:
            argv[at + number] = format_id(*entry_id)
    wanted = StableEntryAfter(call.server, after)
    return Parked(keys, options.deadline_ms, argv, NULL_ARRAY, wanted)


class StableEntryAfter(EntryAfter):
    """An entry after an ID, once nothing can come before it."""

    def __init__(self, server: Server, after: list[ID]) -> None:
        super().__init__(after, _INTEREST)
        self.server: Final = server

    def new_line(self, queue: Queue) -> Line:
        return StableReaders(queue, self)


class StableReaders(Readers):
    """Those who wait for stable entries at one key."""

    def __init__(self, queue: Queue, interest: StableEntryAfter) -> None:
        super().__init__(queue, interest)
        self._server: Final = interest.server

    def add(self, waiter: Waiter, number: int) -> None:
        super().add(waiter, number)
        region_of(self._server).stable_readers[self.queue.key] = None

    def remove(self, waiter: Waiter, number: int) -> None:
        super().remove(waiter, number)
        if self.is_empty():
            region_of(self._server).stable_readers.pop(self.queue.key, None)

    def candidates(self, value: object | None) -> list[Waiter]:
        """See ``SharedLine``; where the stream has no stable IDs, all get that for an answer."""
        if not isinstance(value, RegionalStream):
            return []
        bound = stable_id(self._server, value)
        found: list[Waiter] = []
        for after, same in self.by_id.items():
            if bound is None or parts_up_to(value, after, bound, 1):
                found.extend(same.values())
        found.sort(key=_ticket)
        return found


def _ticket(waiter: Waiter) -> int:
    return waiter.ticket
