"""What a stream of lanes consists of beside its entries, as msgpack documents.

A stream that several regions write is ``LANES``, each ``LANE`` with its blocks, what is
``REMEMBERED`` of it and the ``BIRTHS`` of each group name, and then its groups, each with its
``PLACES`` in front of the consumers, and its producers.

Each is an array of arrays; vectors and starts stand in them as the text that records have. What is
read from one is checked as far as its type goes, and every name, number and ID in it.

Raises:
    ValueError: from ``read_...``, where a document holds what none does. ``MsgspecError`` likewise.
"""

from __future__ import annotations

from typing import Final

from msgspec.msgpack import Decoder as Unpacker
from msgspec.msgpack import Encoder as Packer

from headrace.regions.lanes.births import ANYWHERE, Births, Create, Home
from headrace.regions.lanes.frozen import FrozenRegionalStream
from headrace.regions.lanes.intervals import Intervals
from headrace.regions.lanes.places import Places
from headrace.regions.lanes.registers import Register, Setting
from headrace.regions.lanes.removals import (
    DEL,
    EXPIRE,
    Awaited,
    Removal,
    Tombstone,
    Top,
)
from headrace.regions.lanes.start import decode_start
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.sharing import REGION_MAX
from headrace.storage.stream.run import ID_MAX
from headrace.storage.vectors import (
    ID,
    NUMBER_MAX,
    Dot,
    check_lane,
    check_origin,
    decode_dots,
    decode_lanes,
    decode_numbers,
    encode_dots,
    encode_lanes,
    encode_numbers,
)

LANES: Final = 16
LANE: Final = 17
REMEMBERED: Final = 18
BIRTHS: Final = 19
PLACES: Final = 20
LANE_KINDS: Final = {
    LANES: "stream of lanes",
    LANE: "lane",
    REMEMBERED: "what is remembered",
    BIRTHS: "births of a group",
    PLACES: "places of a group",
}

_Setting = tuple[bytes, int, int, int, int]  # its dot, version, what was set
_OfLanes = list[tuple[bytes, list[tuple[int, int, int, int]]]]  # intervals: after, upto
_Remembered = tuple[
    list[tuple[bytes, bytes]],  # current lanes
    list[tuple[bytes, int, int, int]],  # tops: dot, ID
    list[tuple[int, bytes, int, bytes]],  # removals: kind, dot, numbers
    list[tuple[bytes, int, int, bytes, int, int]],  # awaited: winner, what is to be removed
    list[_Setting],  # deadlines
    list[_Setting],  # limits
]
_Births = tuple[
    list[tuple[bytes, int, bytes, bytes, _OfLanes]],  # creates: dot, start, numbers, intervals
    list[tuple[bytes, int, bytes]],  # tombstones: dot, numbers
    list[tuple[bytes, int, _OfLanes]],  # intervals of creates that have not come
    list[_Setting],  # modes
    list[tuple[bytes, int, int, int, bytes]],  # homes: dot, version, region, creates
]
_Places = tuple[bytes, int, bytes, bytes, bytes, bytes]

_pack: Final = Packer().encode
_ids: Final = Unpacker(list[tuple[int, int]]).decode
_remembered: Final = Unpacker(_Remembered).decode
_births: Final = Unpacker(_Births).decode
_places: Final = Unpacker(_Places).decode

_INT64_MAX: Final = 2**63 - 1


# IDs


def ids_document(ids: list[ID]) -> bytes:
    """Some IDs."""
    return _pack(ids)


def read_ids(document: bytes) -> list[ID]:
    """The IDs of a document."""
    return [_id(ms, seq) for ms, seq in _ids(document)]


# The whole stream


def remembered_document(stream: FrozenRegionalStream) -> bytes:
    """Return what is remembered beside lanes and groups."""
    current = list(stream.current.items())
    tops = [(*top.dot, *top.entry_id) for top in stream.tops]
    removals = [
        (removal.kind, *removal.dot, encode_numbers(removal.numbers)) for removal in stream.removals
    ]
    awaited = [(one.winner_lane, *one.winner_id, one.lane, *one.entry_id) for one in stream.awaited]
    settings = (_settings(stream.ttl), _settings(stream.limits))
    return _pack((current, tops, removals, awaited, *settings))


def read_remembered(document: bytes, stream: RegionalStream) -> None:
    """Put what is remembered into a stream that has its lanes."""
    current, tops, removals, awaited, ttl, limits = _remembered(document)
    for origin, name in current:
        lane = stream.find_lane(name)
        if lane is None or lane.origin != check_origin(origin):
            raise ValueError("a current lane is none of its origin")
        stream.go_on_with(lane)
    for origin, number, ms, seq in tops:
        stream.know_top(Top(_dot(origin, number), _id(ms, seq)))
    for kind, origin, number, numbers in removals:
        if kind not in (DEL, EXPIRE):
            raise ValueError("a removal is of no known kind")
        stream.know_removal(Removal(kind, _dot(origin, number), decode_numbers(numbers)))
    for winner, winner_ms, winner_seq, name, ms, seq in awaited:
        winner_id = _id(winner_ms, winner_seq)
        stream.wait_for(Awaited(check_lane(winner), winner_id, check_lane(name), _id(ms, seq)))
    _put_settings(stream.ttl, ttl)
    _put_settings(stream.limits, limits)


# Groups


def births_document(births: Births) -> bytes:
    """Return what is known of the creates of a group."""
    creates = [
        (
            *create.dot,
            create.start.encode(),
            encode_numbers(create.numbers),
            _of_lanes(create.intervals),
        )
        for create in births.known()
    ]
    tombstones = [
        (*tombstone.dot, encode_numbers(tombstone.numbers)) for tombstone in births.tombstones
    ]
    acks = [(*dot, _of_lanes(intervals)) for dot, intervals in births.acks.items()]
    return _pack((creates, tombstones, acks, _settings(births.mode), _homes(births)))


def read_births(document: bytes) -> Births:
    """Return what a document knows of the creates of a group."""
    creates, tombstones, acks, mode, home = _births(document)
    births = Births()
    known: list[Create] = []
    for origin, number, start, numbers, of_lanes in creates:
        create = Create(_dot(origin, number), decode_start(start), decode_numbers(numbers))
        create.intervals = _read_of_lanes(of_lanes)
        known.append(create)
    births.keep(known)
    for origin, number, numbers in tombstones:
        births.tombstones.append(Tombstone(_dot(origin, number), decode_numbers(numbers)))
    for origin, number, of_lanes in acks:
        births.acks[_dot(origin, number)] = _read_of_lanes(of_lanes)
    _put_settings(births.mode, mode)
    for origin, number, version, region, dots in home:
        if not 0 <= version <= NUMBER_MAX or not ANYWHERE <= region <= REGION_MAX:
            raise ValueError("a group was moved nowhere")
        births.home.put(Home(_dot(origin, number), version, region, decode_dots(dots)))
    return births


def places_document(places: Places) -> bytes:
    """Return how far a group has read."""
    vectors = (encode_lanes(places.place), encode_lanes(places.begun), encode_lanes(places.again))
    return _pack((*places.anchor, places.start.encode(), *vectors))


def read_places(document: bytes, births: Births) -> Places:
    """Return how far a group has read, which was made by one of these creates."""
    origin, number, start, place, begun, again = _places(document)
    create = births.create(_dot(origin, number))
    if create is None:
        raise ValueError("a group hangs on no create")
    places = Places(births, create)
    places.start = decode_start(start)
    places.place = decode_lanes(place)
    places.begun = decode_lanes(begun)
    places.again = decode_lanes(again)
    if any(lane not in places.begun for lane in places.place):
        raise ValueError("a group has read of a lane and never begun")
    return places


# Parts


def _settings(register: Register) -> list[tuple[bytes, int, int, int, int]]:
    return [
        (*setting.dot, setting.version, setting.first, setting.second)
        for setting in register.settings.values()
    ]


def _homes(births: Births) -> list[tuple[bytes, int, int, int, bytes]]:
    return [
        (*setting.dot, setting.version, setting.first, encode_dots(setting.creates))
        for setting in births.home.settings.values()
        if isinstance(setting, Home)
    ]


def _put_settings(register: Register, settings: list[tuple[bytes, int, int, int, int]]) -> None:
    for origin, number, version, first, second in settings:
        sound = (
            0 <= version <= NUMBER_MAX and -1 <= first <= _INT64_MAX and 0 <= second <= NUMBER_MAX
        )
        if not sound or origin in register.settings:
            raise ValueError("a setting is none")
        register.put(Setting(_dot(origin, number), version, first, second))


def _of_lanes(of_lanes: dict[bytes, Intervals]) -> list[tuple[bytes, list[tuple[int, ...]]]]:
    return [
        (lane, [(*after, *upto) for after, upto in intervals.pairs()])
        for lane, intervals in of_lanes.items()
    ]


def _read_of_lanes(
    of_lanes: list[tuple[bytes, list[tuple[int, int, int, int]]]],
) -> dict[bytes, Intervals]:
    found: dict[bytes, Intervals] = {}
    for lane, rows in of_lanes:
        intervals = Intervals()
        for after_ms, after_seq, ms, seq in rows:
            after = _id(after_ms, after_seq)
            upto = _id(ms, seq)
            if upto <= after or (intervals.uptos and after <= intervals.uptos[-1]):
                raise ValueError("intervals of a lane do not rise")
            intervals.afters.append(after)
            intervals.uptos.append(upto)
        found[check_lane(lane)] = intervals
    return found


def _dot(origin: bytes, number: int) -> Dot:
    if not 0 <= number <= NUMBER_MAX:
        raise ValueError("the number of a record is none")
    return check_origin(origin), number


def _id(ms: int, seq: int) -> ID:
    if not (0 <= ms <= ID_MAX and 0 <= seq <= ID_MAX):
        raise ValueError("an ID is none")
    return ms, seq
