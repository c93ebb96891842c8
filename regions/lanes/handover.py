"""The move of a group: the region where it was read gives its state away.

Three things are given. The acknowledgements here become known everywhere, also those beyond the
prefix. The group's position goes to the other region, and so do the pending entries. Then this
region knows only that the group exists: it would begin at the group's first start, and give all
unacknowledged entries. So nothing is skipped, whatever becomes of the move.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.regions.lanes.group_state import Start
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.lanes import Lanes
from headrace.regions.lanes.places import Interval, Places, places_of
from headrace.storage.stream.groups import Consumer, Group
from headrace.storage.stream.pel import HELD, Nack
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.vectors import ID, Dot, LaneVector

_EVER: Final = 2**62  # a moment that never comes
PUT_BACK_MS: Final = 1  # the moment of what was acknowledged, and put back


class Pending(NamedTuple):
    """A pending entry on its way: when it was delivered, and how often it was ``given``."""

    entry_id: ID
    delivery_ms: int
    given: int


class Held:
    """Pending entries of one consumer, in the order of their times.

    ``consumer`` is its name; None where they are released.
    """

    def __init__(self, consumer: bytes | None) -> None:
        self.consumer: Final = consumer
        self.entries: Final[list[Pending]] = []


class Reached(NamedTuple):
    """The position of a group: see ``Places``."""

    start: Start
    again: LaneVector
    place: LaneVector
    begun: LaneVector


def has_read(group: Group) -> bool:
    """Return whether there is anything to give."""
    places = places_of(group)
    return bool(group.pel.size or places.place or not places.is_unread())


def reached(group: Group) -> Reached:
    """Return how far it has come here."""
    places = places_of(group)
    return Reached(places.start, places.again, places.place.copy(), places.begun.copy())


def held(stream: Lanes, group: Group, most: int) -> list[list[Held]]:
    """Return the pending entries, by time, in portions of up to ``most``."""
    portions: list[list[Held]] = []
    left = 0
    for chunk in group.by_time.chunks:
        for nack in chunk.live():
            if not left:
                portions.append([])
                left = most
            left -= 1
            _hold(portions[-1], stream, group, nack)
    return portions


def _hold(portion: list[Held], stream: Lanes, group: Group, nack: Nack) -> None:
    put_back = places_of(group).is_done(stream, (nack.ms, nack.seq))
    name = None if put_back or nack.consumer is None else nack.consumer.name
    if not portion or portion[-1].consumer != name:
        portion.append(Held(name))
    rules = group.rules
    moment_ms = nack.delivery_ms % HELD if rules is None else rules.moment_ms(stream, nack)
    delivery_ms = PUT_BACK_MS if put_back else max(0, moment_ms)  # its consumer stays here
    pending = Pending((nack.ms, nack.seq), delivery_ms, 0 if put_back else nack.count)
    portion[-1].entries.append(pending)


def all_acknowledged(stream: Lanes, group: Group) -> list[Interval]:
    """Return all that was given here and is not pending, where a region may not know it yet."""
    places = places_of(group)
    found: list[Interval] = []
    for name in sorted(places.place):
        lane = stream.find_lane(name)
        if lane is None:
            continue
        after = places.begun[name]
        upto = min(places.place[name], lane.last())
        for nack in _pending_in(lane, group, after, upto):
            _add_news(found, places, lane, after, _before(nack))
            after = (nack.ms, nack.seq)
        _add_news(found, places, lane, after, upto)
    return found


def _pending_in(lane: Lane, group: Group, after: ID, upto: ID) -> list[Nack]:
    if upto <= after:
        return []
    start = following(after[0], after[1])
    nacks = group.pel.between(start, upto, group.pel.size, _EVER)
    return [nack for nack in nacks if lane.log.contains(nack.ms, nack.seq)]


def _add_news(found: list[Interval], places: Places, lane: Lane, after: ID, upto: ID) -> None:
    if upto <= after or lane.log.last_before(following(upto[0], upto[1])) <= after:
        return
    intervals = places.group_state.intervals(lane.name)
    if intervals is None or not intervals.covers(after, upto):
        found.append((lane.name, after, upto))


def _before(nack: Nack) -> ID:
    return (nack.ms, nack.seq - 1) if nack.seq else (nack.ms - 1, ID_MAX)


def forget_places(group: Group) -> None:
    """Forget the position of the group, because it was given away."""
    places = places_of(group)
    create = places.group_state.create(places.anchor)
    assert create is not None
    places.set(create.start, {})
    group.last_ms, group.last_seq = create.start.highest()


def forget_held(group: Group, portion: list[Held]) -> None:
    """Forget these pending entries, because they were given away."""
    for of_one in portion:
        for pending in of_one.entries:
            nack = group.pel.get(pending.entry_id[0], pending.entry_id[1])
            if nack is not None:
                group.drop(nack)


def take_places(group: Group, given: Reached, anchor: Dot) -> None:
    """Go on where the group has come to elsewhere.

    ``anchor`` is the living create that this hangs on. If the group was read here, too, entries
    were given in both regions. Where those given elsewhere do not touch these, they stay out: some
    may be given again, and nothing is skipped.
    """
    places = places_of(group)
    places.is_whole = False
    if places.is_unread():
        places.anchor = anchor
        places.start = given.start
        places.again = given.again
        places.place = given.place
        places.begun = given.begun
    else:
        for lane, upto in given.place.items():
            _take_place(places, lane, given.begun.get(lane, upto), upto)
    for entry_id in places.place.values():
        group.last_ms, group.last_seq = max((group.last_ms, group.last_seq), entry_id)


def _take_place(places: Places, lane: bytes, after: ID, upto: ID) -> None:
    floor = places.floor(lane)
    begun = places.begun.get(lane, floor)
    if after <= floor and begun <= upto:
        places.begun[lane] = min(begun, after)
        places.place[lane] = max(floor, upto)


def take_held(stream: Lanes, group: Group, portion: list[Held]) -> None:
    """Make these entries pending here, unless they are, or are acknowledged.

    What was put back is taken all the same: see ``places.put_back``.
    """
    places = places_of(group)
    for of_one in portion:
        owner: Consumer | None = None
        for pending in of_one.entries:
            ms, seq = pending.entry_id
            put_back = not pending.given and pending.delivery_ms == PUT_BACK_MS
            is_done = not put_back and places.is_done(stream, pending.entry_id)
            if is_done or group.pel.get(ms, seq) is not None:
                continue
            if of_one.consumer is not None and owner is None:
                owner = _consumer(group, of_one.consumer, pending.delivery_ms)
            group.add_pending(ms, seq, owner, pending.delivery_ms).count = pending.given
    if group.rules is not None:
        group.rules.reset()


def _consumer(group: Group, name: bytes, moment_ms: int) -> Consumer:
    found = group.consumers.get(name)
    if found is None:
        found = group.create_consumer(name, moment_ms)
        found.active_ms = moment_ms
    return found
