"""Places on the earth as scores: the arithmetic of Redis's geo commands.

A latitude and a longitude become 26 bits each, which are interleaved: a double holds the 52 bits.
The first bits of a score name a box, and all places in the box have scores in one row. So what is
near a point is found in nine boxes: that of the point and those around it.
Source: geohash.c and geohash_helper.c of Redis.
"""

from __future__ import annotations

from math import asin, cos, fabs, inf, isfinite, nan, pi, sin, sqrt
from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64

STEPS: Final = 26  # bits of either coordinate
LONGITUDE_MAX: Final = 180.0
LATITUDE_MAX: Final = 85.05112878
_SCORE_BITS: Final = 52
_EARTH_RADIUS_M: Final = 6372797.560856
_MERCATOR_MAX: Final = 20037726.37
_RADIANS: Final = pi / 180.0
_SPREAD_MAX: Final = float(1 << 54)  # scores below have no bits but those of coordinates
_PLAIN_MAX: Final = float(1 << 61)  # scores below are taken as machine words
_POWERS: Final = [float(1 << steps) for steps in range(STEPS + 1)]
_HEIGHT: Final = LATITUDE_MAX + LATITUDE_MAX
_WIDTH: Final = LONGITUDE_MAX + LONGITUDE_MAX
# What is this much farther, or nearer, than the bound is so whatever the last digits of a sum are.
_FARTHER: Final = 1.0 + 1e-9
_NEARER: Final = 1.0 - 1e-9
_LITTLE: Final = 1e-9
_ALPHABET: Final = b"0123456789bcdefghjkmnpqrstuvwxyz"
_TEXT_DIGITS: Final = 10


def spread(number: i64) -> i64:
    """Return a number of up to 28 bits with a 0 before each of them."""
    number = (number | number << 16) & 0x0000FFFF0000FFFF
    number = (number | number << 8) & 0x00FF00FF00FF00FF
    number = (number | number << 4) & 0x0F0F0F0F0F0F0F0F
    number = (number | number << 2) & 0x3333333333333333
    return (number | number << 1) & 0x1555555555555555


def _gathered(number: i64) -> i64:
    """Return every second bit of 54, the lowest one first."""
    number &= 0x15555555555555
    number = (number | number >> 1) & 0x33333333333333
    number = (number | number >> 2) & 0x0F0F0F0F0F0F0F
    number = (number | number >> 4) & 0x00FF00FF00FF00FF
    number = (number | number >> 8) & 0x0000FFFF0000FFFF
    return (number | number >> 16) & 0xFFFFFFFF


def _squeezed(number: i64) -> i64:
    """Return every second bit of 32, the lowest one first."""
    number &= 0x55555555
    number = (number | number >> 1) & 0x33333333
    number = (number | number >> 2) & 0x0F0F0F0F
    number = (number | number >> 4) & 0x00FF00FF
    return (number | number >> 8) & 0x0000FFFF


def _encode(longitude: float, latitude: float, steps: i64, latitude_max: float) -> i64:
    power = _POWERS[steps]
    latitude_part = (latitude + latitude_max) / (latitude_max + latitude_max) * power
    longitude_part = (longitude + LONGITUDE_MAX) / _WIDTH * power
    return spread(i64(latitude_part)) | spread(i64(longitude_part)) << 1


def score_of(longitude: float, latitude: float) -> int:
    """Return the score of a place, which is between the bounds."""
    return int(_encode(longitude, latitude, STEPS, LATITUDE_MAX))


def place_of(score: float) -> tuple[float, float]:
    """Return the place of a score, the middle of its box: longitude and latitude."""
    north: i64 = 0
    east: i64 = 0
    if 0 <= score < _SPREAD_MAX:
        bits: i64 = i64(score)
        north = _gathered(bits)
        east = _gathered(bits >> 1)
    else:
        low, high = _halves(score)
        north = _squeezed(low) | _squeezed(high) << 16
        east = _squeezed(low >> 1) | _squeezed(high >> 1) << 16
    power = 67108864.0
    south_end = -LATITUDE_MAX + (float(north) / power) * _HEIGHT
    north_end = -LATITUDE_MAX + (float(north + 1) / power) * _HEIGHT
    west_end = -LONGITUDE_MAX + (float(east) / power) * _WIDTH
    east_end = -LONGITUDE_MAX + (float(east + 1) / power) * _WIDTH
    longitude = (west_end + east_end) / 2
    latitude = (south_end + north_end) / 2
    return _between(longitude, LONGITUDE_MAX), _between(latitude, LATITUDE_MAX)


def _between(coordinate: float, most: float) -> float:
    return max(min(coordinate, most), -most)


def _halves(score: float) -> tuple[i64, i64]:
    if 0 <= score < _PLAIN_MAX:
        bits: i64 = i64(score)
        return bits & 0xFFFFFFFF, bits >> 32
    word = _as_word(score)
    return word & 0xFFFFFFFF, word >> 32


def _as_word(score: float) -> int:
    """Return a double as an unsigned number of 64 bits, converted as processors do it."""
    if -(2.0**63) <= score < 2.0**64:
        return int(score) & 0xFFFFFFFFFFFFFFFF
    return 0 if score > 0 else 1 << 63


def text_of(score: float) -> bytes:
    """Return the common geohash of the place of a score: eleven letters and digits."""
    longitude, latitude = place_of(score)
    bits = int(_encode(longitude, latitude, STEPS, 90.0))
    found = bytearray()
    for number in range(_TEXT_DIGITS):
        found.append(_ALPHABET[bits >> (_SCORE_BITS - 5 * (number + 1)) & 0x1F])
    found.append(_ALPHABET[0])
    return bytes(found)


def _north_distance_m(latitude: float, other: float) -> float:
    return _EARTH_RADIUS_M * fabs(other * _RADIANS - latitude * _RADIANS)


def distance_m(longitude: float, latitude: float, to_longitude: float, to_latitude: float) -> float:
    """Return the distance of two places on a sphere, in metres.

    It is not a number where rounding makes it longer than half around.
    """
    east = sin((to_longitude * _RADIANS - longitude * _RADIANS) / 2)
    if east == 0.0:
        return _north_distance_m(latitude, to_latitude)
    half = sqrt(_chord(latitude, to_latitude, east))
    return 2.0 * _EARTH_RADIUS_M * asin(half) if half <= 1.0 else nan  # as C's asin says


def _chord(latitude: float, to_latitude: float, east: float) -> float:
    """Return the square of half the distance through the earth, whose radius is 1 here.

    ``east`` is the sine of half the difference of the longitudes.
    """
    from_radians = latitude * _RADIANS
    to_radians = to_latitude * _RADIANS
    north = sin((to_radians - from_radians) / 2)
    return north * north + cos(from_radians) * cos(to_radians) * east * east


class Shape:
    """The searched area: a circle of ``radius_m``, or if that is below 0 a box, around a point.

    ``box_scores`` is how many scores each of ``boxes`` has.
    """

    def __init__(self) -> None:
        self.longitude = 0.0
        self.latitude = 0.0
        self.radius_m = -1.0
        self.width_m = 0.0
        self.height_m = 0.0
        self.box_scores: i64 = 0
        # What is farther than this from the point, in degrees, is outside; set by ``boxes``.
        self._north = inf
        self._east = inf
        # A chord below, or above, is one of a place inside, or outside; between them it is near.
        self._inside = -1.0
        self._outside = inf

    def has(self, longitude: float, latitude: float) -> bool:
        """Return whether a place is in it; ``boxes`` was called before."""
        if fabs(latitude - self.latitude) > self._north:
            return False
        beside = fabs(longitude - self.longitude)
        if beside > LONGITUDE_MAX:
            beside = _WIDTH - beside
        if beside > self._east:
            return False
        if self.radius_m < 0:
            return self._is_in_box(longitude, latitude)
        east = sin((longitude * _RADIANS - self.longitude * _RADIANS) / 2)
        chord = _chord(self.latitude, latitude, east)
        if chord < self._inside:
            return True
        return chord <= self._outside and self.distance_m(longitude, latitude) <= self.radius_m

    def distance_m(self, longitude: float, latitude: float) -> float:
        """Return the distance of a place from the point, in metres."""
        return distance_m(self.longitude, self.latitude, longitude, latitude)

    def _is_in_box(self, longitude: float, latitude: float) -> bool:
        if _north_distance_m(latitude, self.latitude) > self.height_m / 2:
            return False
        if distance_m(longitude, latitude, self.longitude, latitude) > self.width_m / 2:
            return False
        return self.distance_m(longitude, latitude) >= 0

    def boxes(self) -> vec[i64]:
        """Return the least score of each of the boxes that cover it.

        None is there twice in a row, and they are in the order in which Redis walks them.
        """
        height = self.radius_m if self.radius_m >= 0 else self.height_m / 2
        width = self.radius_m if self.radius_m >= 0 else self.width_m / 2
        reach_m = height if self.radius_m >= 0 else sqrt(width * width + height * height)
        north = height / _EARTH_RADIUS_M / _RADIANS
        latitude = self.latitude
        pole = latitude - north if latitude < 0 else latitude + north
        parallel = cos(pole * _RADIANS) if isfinite(pole) else nan
        east = width / _EARTH_RADIUS_M / parallel / _RADIANS
        self._note_bounds(north, east, pole)
        area = _Area(
            self.longitude - east, latitude - north, self.longitude + east, latitude + north
        )
        steps = _steps(reach_m, latitude)
        area.begin(self.longitude, latitude, steps)
        if steps > 1 and not area.is_reached():
            steps -= 1
            area.begin(self.longitude, latitude, steps)
        side = i64(_POWERS[STEPS - steps])
        self.box_scores = side * side
        return area.needed()

    def _note_bounds(self, north: float, east: float, pole: float) -> None:
        """Note what is surely outside, or inside, without a look at the exact distance.

        A walk from the point gets no nearer to the pole than the shape does, so no step of it
        leads farther east than there. A box has no such walk along its other side.
        """
        self._north = north * _FARTHER + _LITTLE
        if self.radius_m < 0:
            return
        if fabs(pole) < 90.0:
            self._east = east * _FARTHER + _LITTLE
        angle = self.radius_m / _EARTH_RADIUS_M / 2
        if angle < pi / 2:
            chord = sin(angle) * sin(angle)
            self._inside = chord * _NEARER
            self._outside = chord * _FARTHER


def _steps(reach_m: float, latitude: float) -> i64:
    if reach_m == 0:
        return STEPS
    steps: i64 = 1
    while reach_m < _MERCATOR_MAX:
        reach_m *= 2
        steps += 1
    steps -= 2
    if fabs(latitude) > 66:
        steps -= 1
        if fabs(latitude) > 80:
            steps -= 1
    return min(max(steps, 1), STEPS)


class _Area:
    """The area between bounds of both coordinates, and the boxes that cover it.

    A box is named by two numbers: how many boxes lie west of it, and how many south of it.
    """

    def __init__(self, west: float, south: float, east: float, north: float) -> None:
        self._west: Final = west
        self._south: Final = south
        self._east: Final = east
        self._north: Final = north
        self._steps: i64 = 0
        self._power = 1.0  # so many boxes lie side by side
        self._x: i64 = 0  # the box of the point
        self._y: i64 = 0

    def begin(self, longitude: float, latitude: float, steps: i64) -> None:
        """Choose how large boxes are, around a point."""
        bits = _encode(longitude, latitude, steps, LATITUDE_MAX)
        self._steps = steps
        self._power = _POWERS[steps]
        self._x = _gathered(bits >> 1)
        self._y = _gathered(bits)

    def is_reached(self) -> bool:
        """Return whether the box of the point and the eight around it have all of it."""
        return (
            self._latitude(self._moved(self._y, 1) + 1) >= self._north
            and self._latitude(self._moved(self._y, -1)) <= self._south
            and self._longitude(self._moved(self._x, 1) + 1) >= self._east
            and self._longitude(self._moved(self._x, -1)) <= self._west
        )

    def needed(self) -> vec[i64]:
        """Return the least scores of those nine boxes that have a searched part of it."""
        # Which rows and columns the centre has already.
        spared = self._steps >= 2
        no_south = spared and self._latitude(self._y) < self._south
        no_north = spared and self._latitude(self._y + 1) > self._north
        no_west = spared and self._longitude(self._x) < self._west
        no_east = spared and self._longitude(self._x + 1) > self._east
        found = append(vec[i64](), self._score(self._x, self._y))
        turn: i64 = 0
        while turn < 8:
            east: i64 = _EAST[turn]
            north: i64 = _NORTH[turn]
            turn += 1
            if (no_south and north < 0) or (no_north and north > 0):
                continue
            if (no_west and east < 0) or (no_east and east > 0):
                continue
            score = self._score(self._moved(self._x, east), self._moved(self._y, north))
            if len(found) > 1 and score == found[len(found) - 1]:
                continue
            found = append(found, score)
        return found

    def _moved(self, number: i64, by: i64) -> i64:
        """Return the number of the box beside one; the last one and the first one are neighbours.

        At the greatest coordinates there is a bit too many, which goes with the first step.
        """
        return (number + by) & (i64(self._power) - 1) if by else number

    def _score(self, x: i64, y: i64) -> i64:
        return (spread(y) | spread(x) << 1) << (_SCORE_BITS - 2 * self._steps)

    def _latitude(self, number: i64) -> float:
        return -LATITUDE_MAX + (float(number) / self._power) * _HEIGHT

    def _longitude(self, number: i64) -> float:
        return -LONGITUDE_MAX + (float(number) / self._power) * _WIDTH


# The eight boxes around one, in the order in which they are searched.
_EAST: Final = [0, 0, 1, -1, 1, -1, 1, -1]
_NORTH: Final = [1, -1, 0, 0, 1, 1, -1, -1]
