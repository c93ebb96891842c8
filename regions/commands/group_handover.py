"""The move of a group from one region to another, where its readers go on.

The region that moves it makes these effects, in one transaction:

    AA MOVE key group creates region version   where it is read from now on; 0 is anywhere
    AA ACK  ...                                what is acknowledged beyond the prefix
    AA HAND key group region n create start numbers ... PLACES start again place begun
    AA HAND key group region n create start numbers ... PENDING OF consumer n id ms count ...

The last one comes once for some thousands of pending entries. The first of the creates is the one
that all of it hangs on. Only the region that it names takes what AA HAND gives, and only while that
create lives: a group that was made anew is another one. The maker of AA HAND has given its state
away. A region that has read for a group, and finds that it is read elsewhere now, gives its state
to the region that is named then.

Of concurrent moves one stands, as of settings. A region that does not know of a move yet goes on.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError, no_key_or_group
from headrace.compat.numbers import INT64_MAX
from headrace.regions.commands.state import settle_and_report, state_of
from headrace.regions.exchange.effects import (
    Effect,
    EffectError,
    Words,
    check_transaction,
    effect,
    emit,
    may_write,
    member_in,
    number_in,
    region_of,
    size_of,
)
from headrace.regions.lanes.group_state import ANYWHERE, Create, Home, decode_start
from headrace.regions.lanes.handover import (
    Held,
    Pending,
    Reached,
    all_acknowledged,
    forget_held,
    forget_places,
    has_read,
    held,
    reached,
    take_held,
    take_places,
)
from headrace.regions.lanes.places import Interval, places_of
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.commands.streams.args import GROUP_MODE_SET, PENDING_CHANGED
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.stream.groups import HERE, ON_ITS_WAY, Group
from headrace.storage.vectors import (
    decode_dots,
    decode_id,
    decode_lanes,
    decode_numbers,
    encode_dots,
    encode_lanes,
    encode_numbers,
)
from headrace.storage.vectors import region_of as region_in

_PLACES: Final = b"PLACES"
_PENDING: Final = b"PENDING"
_OF: Final = b"OF"
_RELEASED: Final = b"RELEASED"
_PORTION: Final = 2000  # pending entries of one record


def move_group(server: Server, key: bytes, name: bytes, to: int, force: bool) -> None:
    """Have a group read in another region, or with ``ANYWHERE`` in all.

    With ``force`` also if it is read in another region, which gives away its state when it knows
    so; what is still to arrive here is not waited for, because it is lost.

    Raises CommandError if there is no such group, it is read elsewhere, or too much is pending.
    """
    value = server.data.dbs[0].get(key, server.clock.now_ns // 1_000_000)
    if value is None:
        raise CommandError(no_key_or_group(key, name))
    if not isinstance(value, RegionalStream):
        raise CommandError(errors.WRONGTYPE)
    group = value.groups.get(name)
    if group is None:
        raise CommandError(no_key_or_group(key, name))
    places = places_of(group)
    region = places.elsewhere(value)
    if region == ON_ITS_WAY and not force:
        raise CommandError(errors.GROUP_ON_ITS_WAY)
    if region > HERE and not force:
        raise CommandError(errors.group_moved(region))
    state = places.group_state
    if region == ON_ITS_WAY and to in (ANYWHERE, value.region.id):
        places.is_whole = True
    if state.home_region() == to:
        return
    given: list[Words] = []
    if to not in (ANYWHERE, value.region.id) and has_read(group):
        given = _all_given(key, value, group, to, reached(group))
        refusal = _check_size(server, given)
        if refusal:
            raise CommandError(refusal)
    version = state.home.next_version()
    creates = encode_dots(state.dots())
    emit(server, [AA, b"MOVE", key, name, creates, b"%d" % to, b"%d" % version])
    for words in given:
        emit(server, words)


def _check_size(server: Server, given: list[Words]) -> bytes:
    return check_transaction(server, sum([size_of(words) for words in given]))


def acknowledgement(key: bytes, group: Group, intervals: list[Interval]) -> Words:
    """Return the effect that publishes acknowledged intervals."""
    words = [AA, b"ACK", key, group.name, encode_dots(places_of(group).group_state.dots())]
    for lane, after, upto in intervals:
        words += [lane, b"%d-%d" % after, b"%d-%d" % upto]
    return words


def _all_given(
    key: bytes, stream: RegionalStream, group: Group, to: int, place: Reached
) -> list[Words]:
    found: list[Words] = []
    intervals = all_acknowledged(stream, group)
    if intervals:
        found.append(acknowledgement(key, group, intervals))
    head = _head(key, group, to)
    vectors = [encode_lanes(place.again), encode_lanes(place.place), encode_lanes(place.begun)]
    found.append([*head, _PLACES, place.start.encode(), *vectors])
    for portion in held(stream, group, _PORTION):
        words = [*head, _PENDING]
        for of_one in portion:
            words += _held_words(of_one)
        found.append(words)
    return found


def _head(key: bytes, group: Group, to: int) -> Words:
    places = places_of(group)
    creates = sorted(places.group_state.creates, key=lambda create: create.dot != places.anchor)
    words = [AA, b"HAND", key, group.name, b"%d" % to, b"%d" % len(creates)]
    for create in creates:
        words += [encode_dots([create.dot]), create.start.encode(), encode_numbers(create.numbers)]
    return words


def _held_words(of_one: Held) -> Words:
    words = [_RELEASED] if of_one.consumer is None else [_OF, of_one.consumer]
    words.append(b"%d" % len(of_one.entries))
    for pending in of_one.entries:
        words += [b"%d-%d" % pending.entry_id, b"%d" % pending.delivery_ms, b"%d" % pending.given]
    return words


def hand_on(server: Server, key: bytes, stream: RegionalStream, group: Group) -> bool:
    """Give away the state here of a group that is read elsewhere. Return whether it is."""
    to = places_of(group).elsewhere(stream)
    if to in (HERE, ON_ITS_WAY):
        return False
    if has_read(group) and may_write(server):
        given = _all_given(key, stream, group, to, reached(group))
        too_large = bool(_check_size(server, given))
        if too_large:  # each stands alone: pending entries are given once more rather than missed
            given = _all_given(key, stream, group, to, Reached(places_of(group).start, {}, {}, {}))
        for words in given:
            emit(server, words)
            if too_large:
                server.changes.end_command()
        server.changes.end_command()
    return True


def note_elsewhere(server: Server, key: bytes, stream: RegionalStream, group: Group) -> None:
    """Have the state here of a group given away soon, if the group is read elsewhere."""
    if places_of(group).elsewhere(stream) > HERE and has_read(group):
        region_of(server).unpublished[key, group.name] = None
        server.host.publish_soon()


def note_groups_elsewhere(server: Server, key: bytes, stream: RegionalStream) -> None:
    """As ``note_elsewhere`` for all groups, because a copy may have said where they are read."""
    for group in stream.groups.values():
        note_elsewhere(server, key, stream, group)


@effect(b"MOVE", 7, "MOVE has a key, a name, creates, a region and a version")
def apply_move(found: Effect) -> None:
    """Apply ``AA MOVE key group creates region version``: where a group is read from now on."""
    words = found.words
    creates = decode_dots(words[4])
    to, version = member_in(words[5], ANYWHERE), number_in(words[6])
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    stream.add_home(words[3], Home(found.dot, version, to, creates))
    settle_and_report(found, stream, GROUP_MODE_SET)
    group = stream.groups.get(words[3])
    if group is not None and not found.own and not found.replaying:
        note_elsewhere(server, key, stream, group)


class _Hand:
    """The words of AA HAND, parsed.

    Attributes:
        to: the region that takes what is given.
        creates: those of the group, where it was given away; what is given hangs on the first.
        reached: how far it has come; None where this says what is pending.
        held: the pending entries.
    """

    def __init__(self, words: Words) -> None:
        self.to = 0
        self.creates: Final[list[Create]] = []
        self.reached: Reached | None = None
        self.held: Final[list[Held]] = []
        self._words: Final = words
        self._at = 4

    def read(self) -> None:
        """Parse them. Raises EffectError or BadVector if they are none."""
        try:
            self.to = member_in(self._next())
            for _ in range(number_in(self._next())):
                self._read_create()
            self._read_given(self._next())
        except IndexError:
            raise EffectError("HAND has fewer words than it says") from None
        if self._at != len(self._words):
            raise EffectError("HAND has more words than it says")

    def _read_given(self, what: bytes) -> None:
        if what == _PLACES:
            start = decode_start(self._next())
            again = decode_lanes(self._next())
            place = decode_lanes(self._next())
            self.reached = Reached(start, again, place, decode_lanes(self._next()))
            if place.keys() != self.reached.begun.keys():
                raise EffectError("places end in the lanes in which they begin")
        elif what == _PENDING:
            while self._at < len(self._words):
                self._read_held()
        else:
            raise EffectError("HAND has places or pending entries")

    def _next(self) -> bytes:
        word = self._words[self._at]
        self._at += 1
        return word

    def _read_create(self) -> None:
        dots = decode_dots(self._next())
        if len(dots) != 1:
            raise EffectError("a create is one record")
        start = decode_start(self._next())
        self.creates.append(Create(dots[0], start, decode_numbers(self._next())))

    def _read_held(self) -> None:
        word = self._next()
        if word not in (_OF, _RELEASED):
            raise EffectError("pending entries have a consumer, or are released")
        of_one = Held(self._next() if word == _OF else None)
        for _ in range(number_in(self._next())):
            entry_id = decode_id(self._next())
            delivery_ms = number_in(self._next())
            of_one.entries.append(Pending(entry_id, delivery_ms, _count(self._next())))
        self.held.append(of_one)


def _count(text: bytes) -> int:
    if not text.isdigit() or len(text) > 19 or int(text) > INT64_MAX:
        raise EffectError("a number of deliveries")
    return int(text)


@effect(b"HAND")
def apply_hand(found: Effect) -> None:
    """Apply ``AA HAND key group region creates ...``: a region gives its state of a group away.

    The creates stand in it, because one that a third region has made may still have to arrive.
    """
    words = found.words
    if len(words) < 8:
        raise EffectError("HAND has a key, a name, a region, creates, and what is given")
    hand = _Hand(words)
    hand.read()
    server = found.server
    key, name = words[2], words[3]
    stream = state_of(server, key)
    for create in hand.creates:
        if stream.group_state(name).create(create.dot) is None:
            stream.add_create(name, create)
    group = stream.groups.get(name)
    anchor = hand.creates[0].dot if hand.creates else None
    if group is not None and anchor and stream.group_state(name).create(anchor):
        own = region_of(server).id
        if region_in(found.origin) == own:
            if hand.reached is not None:
                forget_places(group)
            forget_held(group, hand.held)
        elif hand.to == own:
            _take(found, stream, group, hand)
    settle_and_report(found, stream, PENDING_CHANGED)


def _take(found: Effect, stream: RegionalStream, group: Group, hand: _Hand) -> None:
    key = found.words[2]
    if hand.reached is not None:
        if not found.replaying:  # knowledge of this region alone is not given again
            intervals = all_acknowledged(stream, group)
            if intervals and may_write(found.server):
                found.following.append(acknowledgement(key, group, intervals))
        take_places(group, hand.reached, hand.creates[0].dot)
    take_held(stream, group, hand.held)
    if group.zone:  # by a policy, they may go out by themselves
        found.server.ready_policies()
    if not found.replaying:
        note_elsewhere(found.server, key, stream, group)
