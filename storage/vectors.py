"""Vectors: how much of everything a region knows, and how far something reaches in one stream.

An **origin** is a region in one of its epochs, ``b"1.0"``: the writer of one unbroken sequence of
records, numbered from 1. A **lane** is named by its origin and a number, ``b"1.0.17"``: the entries
that an origin has added to one stream, in rising ID order.

A **number vector** says of each origin up to which record it is known. A **lane vector** says of
each lane up to which ID something reaches. What stands in neither is not known, or not reached.

As text both are sorted, ``1.0=1000001,2.0=77`` and ``1.0.17=1760000000000-1``; ``-`` is empty.
"""

from __future__ import annotations

from typing import Final

from headrace.storage.sharing import REGION_MAX

ID = tuple[int, int]
Dot = tuple[bytes, int]
Numbers = dict[bytes, int]
LaneVector = dict[bytes, ID]

NO_ID: Final[ID] = (0, 0)
EPOCH_MAX: Final = 2**40 - 1
NUMBER_MAX: Final = 2**62 - 1
_EMPTY: Final = b"-"
_ID_MAX: Final = 2**64 - 1


class BadVector(ValueError):
    """A text is no vector, origin, lane or dot."""


def origin_of(region: int, epoch: int) -> bytes:
    """Return the name of a region in an epoch."""
    return b"%d.%d" % (region, epoch)


def lane_name(origin: bytes, number: int) -> bytes:
    """Return the name of a lane of an origin."""
    return b"%b.%d" % (origin, number)


def lane_origin(lane: bytes) -> bytes:
    """Return the origin of a lane."""
    return lane[: lane.rindex(b".")]


def region_of(name: bytes) -> int:
    """Return the region of an origin or of a lane."""
    return int(name[: name.index(b".")])


def epoch_of(origin: bytes) -> int:
    """Return the epoch of an origin."""
    return int(origin[origin.index(b".") + 1 :])


def origin_key(origin: bytes) -> tuple[int, int]:
    """Return the order of an origin: region, epoch."""
    region, epoch = _plain(origin, 2)
    return region, epoch


def lane_key(lane: bytes) -> tuple[int, int, int]:
    """Return the order of a lane: region, epoch, number."""
    region, epoch, number = _plain(lane, 3)
    return region, epoch, number


def covers(numbers: Numbers, dot: Dot) -> bool:
    """Return whether ``numbers`` cover the record ``dot``."""
    return numbers.get(dot[0], 0) >= dot[1]


def reaches(lanes: LaneVector, lane: bytes, entry_id: ID) -> bool:
    """Return whether a lane vector reaches up to an ID of a lane, or beyond."""
    return lanes.get(lane, NO_ID) >= entry_id


def raise_numbers(numbers: Numbers, others: Numbers) -> None:
    """Raise ``numbers`` to what ``others`` know."""
    for origin, number in others.items():
        if number > numbers.get(origin, 0):
            numbers[origin] = number


# As text


def encode_numbers(numbers: Numbers) -> bytes:
    """Return a number vector as text."""
    if not numbers:
        return _EMPTY
    origins = sorted(numbers, key=origin_key)
    return b",".join([b"%b=%d" % (origin, numbers[origin]) for origin in origins])


def decode_numbers(text: bytes) -> Numbers:
    """Return the number vector of a text. Raises: BadVector; it is none."""
    numbers: Numbers = {}
    for name, value in _pairs(text):
        origin = check_origin(name)
        if origin in numbers:
            raise BadVector(text)
        numbers[origin] = _number(value, NUMBER_MAX)
    return numbers


def encode_lanes(lanes: LaneVector) -> bytes:
    """Return a lane vector as text."""
    if not lanes:
        return _EMPTY
    names = sorted(lanes, key=lane_key)
    return b",".join([b"%b=%d-%d" % (name, lanes[name][0], lanes[name][1]) for name in names])


def decode_lanes(text: bytes) -> LaneVector:
    """Return the lane vector of a text. Raises: BadVector; it is none."""
    lanes: LaneVector = {}
    for name, value in _pairs(text):
        lane = check_lane(name)
        if lane in lanes:
            raise BadVector(text)
        lanes[lane] = decode_id(value)
    return lanes


def encode_dots(dots: list[Dot]) -> bytes:
    """Return records as text, ``1.0=5,2.0=7``, in the order of their origins and numbers."""
    if not dots:
        return _EMPTY
    ordered = sorted(dots, key=dot_key)
    return b",".join([b"%b=%d" % dot for dot in ordered])


def decode_dots(text: bytes) -> list[Dot]:
    """Return the records of a text. Raises: BadVector; it names none."""
    return [(check_origin(name), _number(value, NUMBER_MAX)) for name, value in _pairs(text)]


def dot_key(dot: Dot) -> tuple[int, int, int]:
    """Return the order of a record: region, epoch, number."""
    region, epoch = origin_key(dot[0])
    return region, epoch, dot[1]


def decode_id(text: bytes) -> ID:
    """Return the ID of a text with both its halves. Raises: BadVector; it is none."""
    ms, dash, seq = text.partition(b"-")
    if not dash:
        raise BadVector(text)
    return _number(ms, _ID_MAX), _number(seq, _ID_MAX)


def check_origin(name: bytes) -> bytes:
    """Return ``name``, if an origin can have it. Raises: BadVector; it cannot."""
    region, epoch = _plain(name, 2)
    if not 0 < region <= REGION_MAX or epoch > EPOCH_MAX:
        raise BadVector(name)
    return name


def check_lane(name: bytes) -> bytes:
    """Return ``name``, if a lane can have it. Raises: BadVector; it cannot."""
    region, epoch, _ = _plain(name, 3)
    if not 0 < region <= REGION_MAX or epoch > EPOCH_MAX:
        raise BadVector(name)
    return name


def _pairs(text: bytes) -> list[tuple[bytes, bytes]]:
    if text == _EMPTY:
        return []
    pairs: list[tuple[bytes, bytes]] = []
    for part in text.split(b","):
        name, equals, value = part.partition(b"=")
        if not equals:
            raise BadVector(text)
        pairs.append((name, value))
    return pairs


def _plain(name: bytes, count: int) -> list[int]:
    parts = name.split(b".")
    if len(parts) != count:
        raise BadVector(name)
    return [_number(part, NUMBER_MAX) for part in parts]


def _number(text: bytes, most: int) -> int:
    if not text.isdigit() or len(text) > 20 or (len(text) > 1 and text[0] == 0x30):
        raise BadVector(text)
    number = int(text)
    if number > most:
        raise BadVector(text)
    return number
