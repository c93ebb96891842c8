"""Error texts that only commands on places have."""

from __future__ import annotations

from typing import Final

NO_SUCH_MEMBER: Final = b"ERR could not decode requested zset member"
BAD_UNIT: Final = b"ERR unsupported unit provided. please use M, KM, FT, MI"
BAD_RADIUS: Final = b"ERR need numeric radius"
RADIUS_NEGATIVE: Final = b"ERR radius cannot be negative"
BAD_WIDTH: Final = b"ERR need numeric width"
BAD_HEIGHT: Final = b"ERR need numeric height"
BOX_NEGATIVE: Final = b"ERR height or width cannot be negative"
ANY_WITHOUT_COUNT: Final = b"ERR the ANY argument requires COUNT argument"


def bad_place(longitude: float, latitude: float) -> bytes:
    """For coordinates that are out of range."""
    return b"ERR invalid longitude,latitude pair %f,%f" % (longitude, latitude)


def stored_with_more(search: bool) -> bytes:
    """For a result that is stored, and of which more is asked for than members."""
    what = b"GEOSEARCHSTORE" if search else b"STORE option in GEORADIUS"
    return b"ERR %b is not compatible with WITHDIST, WITHHASH and WITHCOORD options" % what


def no_centre(name: bytes) -> bytes:
    """For a search around nothing."""
    return b"ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for %b" % name


def no_shape(name: bytes) -> bytes:
    """For a search in no shape."""
    return b"ERR exactly one of BYRADIUS and BYBOX can be specified for %b" % name
