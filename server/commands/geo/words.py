"""Words of requests that are about places: coordinates, units, distances."""

from __future__ import annotations

from math import isnan
from typing import Final

from headrace.compat.errors import NOT_A_FLOAT, CommandError
from headrace.compat.floats import parse_double
from headrace.compat.geo_errors import BAD_UNIT, bad_place
from headrace.compat.geohash import LATITUDE_MAX, LONGITUDE_MAX

_UNITS: Final[dict[bytes, float]] = {b"M": 1.0, b"KM": 1000.0, b"FT": 0.3048, b"MI": 1609.34}


def metres_in(unit: bytes) -> float:
    """How many metres a unit has; raises CommandError for what is none."""
    metres = _UNITS.get(unit.upper())
    if metres is None:
        raise CommandError(BAD_UNIT)
    return metres


def coordinates(longitude: bytes, latitude: bytes) -> tuple[float, float]:
    """The place that two words spell; raises CommandError where there is none."""
    east = parse_double(longitude)
    north = parse_double(latitude)
    if isnan(east) or isnan(north):
        raise CommandError(NOT_A_FLOAT)
    if abs(east) > LONGITUDE_MAX or abs(north) > LATITUDE_MAX:
        raise CommandError(bad_place(east, north))
    return east, north


def distance(word: bytes, error: bytes) -> float:
    """The number that a word spells; raises ``error`` where there is none."""
    value = parse_double(word)
    if isnan(value):
        raise CommandError(error)
    return value


def distance_text(value: float) -> bytes:
    """A distance with four decimals, as it is answered."""
    return b"%d.%04d" % divmod(round(value * 10000.0), 10000)
