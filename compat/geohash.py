"""Places on the earth as scores: the arithmetic of Redis's geo commands.

A latitude and a longitude become 26 bits each, which are interleaved: a double holds the 52 bits.
The first bits of a score name a box, and all places in the box have scores in one row. So what is
near a point is found in nine boxes: that of the point and those around it.
Source: geohash.c and geohash_helper.c of Redis.
"""

from __future__ import annotations

from math import asin, cos, fabs, isfinite, nan, pi, sin, sqrt
from typing import Final

from mypy_extensions import i64

STEPS: Final = 26  # bits of either coordinate
LONGITUDE_MAX: Final = 180.0
LATITUDE_MAX: Final = 85.05112878
_SCORE_BITS: Final = 52
_EARTH_RADIUS_M: Final = 6372797.560856
_MERCATOR_MAX: Final = 20037726.37
_RADIANS: Final = pi / 180.0
_EVEN: Final = 0x5555555555555555
_ODD: Final = 0xAAAAAAAAAAAAAAAA
_PLAIN_MAX: Final = float(1 << 61)  # scores below are taken as machine words
_ALPHABET: Final = b"0123456789bcdefghjkmnpqrstuvwxyz"
_TEXT_DIGITS: Final = 10


def spread(number: i64) -> i64:
    """A number of up to 28 bits with a 0 before each of them."""
    number = (number | number << 16) & 0x0000FFFF0000FFFF
    number = (number | number << 8) & 0x00FF00FF00FF00FF
    number = (number | number << 4) & 0x0F0F0F0F0F0F0F0F
    number = (number | number << 2) & 0x3333333333333333
    return (number | number << 1) & 0x1555555555555555


def _squeezed(number: i64) -> i64:
    """Every second bit of 32, the lowest one first."""
    number &= 0x55555555
    number = (number | number >> 1) & 0x33333333
    number = (number | number >> 2) & 0x0F0F0F0F
    number = (number | number >> 4) & 0x00FF00FF
    return (number | number >> 8) & 0x0000FFFF


def _encode(longitude: float, latitude: float, steps: int, latitude_max: float) -> int:
    """The bits of a place, ``steps`` for each of its coordinates."""
    power = float(1 << steps)
    latitude_part = (latitude + latitude_max) / (latitude_max + latitude_max) * power
    longitude_part = (longitude + LONGITUDE_MAX) / (LONGITUDE_MAX + LONGITUDE_MAX) * power
    return int(spread(int(latitude_part))) | int(spread(int(longitude_part))) << 1


def score_of(longitude: float, latitude: float) -> int:
    """The score of a place, which is between the bounds."""
    return _encode(longitude, latitude, STEPS, LATITUDE_MAX)


class Place:
    """Where a score is: the middle of its box."""

    def __init__(self, score: float) -> None:
        if 0 <= score < _PLAIN_MAX:
            bits: i64 = i64(score)
            low: i64 = bits & 0xFFFFFFFF
            high: i64 = bits >> 32
        else:
            word = _as_word(score)
            low = word & 0xFFFFFFFF
            high = word >> 32
        north: i64 = _squeezed(low) | _squeezed(high) << 16
        east: i64 = _squeezed(low >> 1) | _squeezed(high >> 1) << 16
        power = 67108864.0
        height = LATITUDE_MAX + LATITUDE_MAX
        width = LONGITUDE_MAX + LONGITUDE_MAX
        south_end = -LATITUDE_MAX + (float(north) / power) * height
        north_end = -LATITUDE_MAX + (float(north + 1) / power) * height
        west_end = -LONGITUDE_MAX + (float(east) / power) * width
        east_end = -LONGITUDE_MAX + (float(east + 1) / power) * width
        self.longitude = min(max((west_end + east_end) / 2, -LONGITUDE_MAX), LONGITUDE_MAX)
        self.latitude = min(max((south_end + north_end) / 2, -LATITUDE_MAX), LATITUDE_MAX)


def _as_word(score: float) -> int:
    """A double as an unsigned number of 64 bits, as processors turn one into the other."""
    if -(2.0**63) <= score < 2.0**64:
        return int(score) & 0xFFFFFFFFFFFFFFFF
    return 0 if score > 0 else 1 << 63


def text_of(score: float) -> bytes:
    """The geohash that others write for the place of a score: eleven letters and digits."""
    place = Place(score)
    bits = _encode(place.longitude, place.latitude, STEPS, 90.0)
    found = bytearray()
    for number in range(_TEXT_DIGITS):
        found.append(_ALPHABET[bits >> (_SCORE_BITS - 5 * (number + 1)) & 0x1F])
    found.append(_ALPHABET[0])
    return bytes(found)


def _north_distance_m(latitude: float, other: float) -> float:
    return _EARTH_RADIUS_M * fabs(other * _RADIANS - latitude * _RADIANS)


def distance_m(longitude: float, latitude: float, to_longitude: float, to_latitude: float) -> float:
    """How far it is from one place to another on a sphere, in metres; not a number where rounding
    makes it longer than half around.
    """
    east = sin((to_longitude * _RADIANS - longitude * _RADIANS) / 2)
    if east == 0.0:
        return _north_distance_m(latitude, to_latitude)
    from_radians = latitude * _RADIANS
    to_radians = to_latitude * _RADIANS
    north = sin((to_radians - from_radians) / 2)
    chord = north * north + cos(from_radians) * cos(to_radians) * east * east
    half = sqrt(chord)
    return 2.0 * _EARTH_RADIUS_M * asin(half) if half <= 1.0 else nan  # as C's asin says


class Shape:
    """What is searched: a circle or a box around a point.

    Attributes:
        longitude, latitude: of the point.
        radius_m: of the circle; below 0 for a box.
        width_m, height_m: of the box.
    """

    def __init__(self) -> None:
        self.longitude = 0.0
        self.latitude = 0.0
        self.radius_m = -1.0
        self.width_m = 0.0
        self.height_m = 0.0

    def distance_m(self, place: Place) -> float:
        """How far a place is from the point; -1 outside of the shape."""
        if self.radius_m >= 0:
            distance = distance_m(self.longitude, self.latitude, place.longitude, place.latitude)
            return -1.0 if distance > self.radius_m else distance
        if _north_distance_m(place.latitude, self.latitude) > self.height_m / 2:
            return -1.0
        east = distance_m(place.longitude, place.latitude, self.longitude, place.latitude)
        if east > self.width_m / 2:
            return -1.0
        return distance_m(self.longitude, self.latitude, place.longitude, place.latitude)

    def boxes(self) -> list[Box]:
        """Boxes that cover it, none twice in a row, in the order in which Redis walks them."""
        west, south, east, north = self._bounds()
        if self.radius_m >= 0:
            reach_m = self.radius_m
        else:
            half_width = self.width_m / 2
            half_height = self.height_m / 2
            reach_m = sqrt(half_width * half_width + half_height * half_height)
        steps = _steps(reach_m, self.latitude)
        around = _Around(_encode(self.longitude, self.latitude, steps, LATITUDE_MAX), steps)
        if steps > 1 and not around.reaches(west, south, east, north):
            steps -= 1
            around = _Around(_encode(self.longitude, self.latitude, steps, LATITUDE_MAX), steps)
        return around.needed(west, south, east, north)

    def _bounds(self) -> tuple[float, float, float, float]:
        """The least longitude and latitude in the shape, and the greatest ones."""
        height = self.radius_m if self.radius_m >= 0 else self.height_m / 2
        width = self.radius_m if self.radius_m >= 0 else self.width_m / 2
        north = height / _EARTH_RADIUS_M / _RADIANS
        latitude = self.latitude
        nearest_pole = latitude - north if latitude < 0 else latitude + north
        parallel = cos(nearest_pole * _RADIANS) if isfinite(nearest_pole) else nan
        east = width / _EARTH_RADIUS_M / parallel / _RADIANS
        return self.longitude - east, latitude - north, self.longitude + east, latitude + north


def _steps(reach_m: float, latitude: float) -> int:
    """How many bits name boxes of about the size of what is searched."""
    if reach_m == 0:
        return STEPS
    steps = 1
    while reach_m < _MERCATOR_MAX:
        reach_m *= 2
        steps += 1
    steps -= 2
    if abs(latitude) > 66:
        steps -= 1
        if abs(latitude) > 80:
            steps -= 1
    return min(max(steps, 1), STEPS)


class Box:
    """A box that the first bits of a score name."""

    def __init__(self, bits: int, steps: int) -> None:
        self.bits: Final = bits
        self._steps: Final = steps
        low: i64 = bits & 0xFFFFFFFF
        high: i64 = bits >> 32
        north = float(_squeezed(low) | _squeezed(high) << 16)
        east = float(_squeezed(low >> 1) | _squeezed(high >> 1) << 16)
        power = float(1 << steps)
        height = LATITUDE_MAX + LATITUDE_MAX
        width = LONGITUDE_MAX + LONGITUDE_MAX
        self.south: Final = -LATITUDE_MAX + (north / power) * height
        self.north: Final = -LATITUDE_MAX + ((north + 1) / power) * height
        self.west: Final = -LONGITUDE_MAX + (east / power) * width
        self.east: Final = -LONGITUDE_MAX + ((east + 1) / power) * width

    def scores(self) -> tuple[float, float]:
        """The least score in the box, and the least one behind it."""
        unused = _SCORE_BITS - 2 * self._steps
        return float(self.bits << unused), float((self.bits + 1) << unused)

    def moved(self, east: int, north: int) -> Box:
        """The one beside it, in either direction by -1, 0 or 1."""
        unused = 64 - 2 * self._steps
        odd = self.bits & _ODD
        even = self.bits & _EVEN
        # At the greatest coordinates there is a bit too many, which goes with the first step.
        if east:
            odd = _stepped(odd, _EVEN >> unused, east) & (_ODD >> unused)
        if north:
            even = _stepped(even, _ODD >> unused, north) & (_EVEN >> unused)
        return Box(odd | even, self._steps)


def _stepped(bits: int, others: int, by: int) -> int:
    """Every second bit as a number, less or more by one; ``others`` has the bits between set."""
    return bits + others + 1 if by > 0 else (bits | others) - (others + 1)


class _Around:
    """A box and the eight around it."""

    def __init__(self, bits: int, steps: int) -> None:
        self._steps: Final = steps
        self._centre: Final = Box(bits, steps)

    def reaches(self, west: float, south: float, east: float, north: float) -> bool:
        """Whether the nine boxes have all that lies between these bounds."""
        centre = self._centre
        return (
            centre.moved(0, 1).north >= north
            and centre.moved(0, -1).south <= south
            and centre.moved(1, 0).east >= east
            and centre.moved(-1, 0).west <= west
        )

    def needed(self, west: float, south: float, east: float, north: float) -> list[Box]:
        """Those that have something between the bounds, as far as that is looked at."""
        centre = self._centre
        # Which rows and columns the centre has already.
        spared = self._steps >= 2
        no_south = spared and centre.south < south
        no_north = spared and centre.north > north
        no_west = spared and centre.west < west
        no_east = spared and centre.east > east
        found = [centre]
        last = centre
        for by_east, by_north in (
            (0, 1),
            (0, -1),
            (1, 0),
            (-1, 0),
            (1, 1),
            (-1, 1),
            (1, -1),
            (-1, -1),
        ):
            if (no_south and by_north < 0) or (no_north and by_north > 0):
                continue
            if (no_west and by_east < 0) or (no_east and by_east > 0):
                continue
            box = centre.moved(by_east, by_north)
            if last is not centre and box.bits == last.bits:
                continue
            found.append(box)
            last = box
        return found
