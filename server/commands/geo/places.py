"""Places of members: GEOADD, GEOPOS, GEODIST, GEOHASH."""

from __future__ import annotations

from math import isnan
from typing import Final

from headrace.compat.errors import SYNTAX, CommandError
from headrace.compat.geohash import distance_m, place_of, score_of, text_of
from headrace.protocol.packing import Packer
from headrace.server.commands.geo.words import coordinates, distance_text, metres_in
from headrace.server.commands.sorted_set_keys import (
    ADDED,
    CH,
    NX,
    XX,
    Adding,
    limits,
    new_sorted_set,
    sorted_set_at,
    sorted_set_to_change,
)
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import KeySpec
from headrace.storage.sorted_set.sorted_set import NEW, SAME, SortedSet

READ_KEY: Final = (KeySpec("RO ACCESS"),)
_OPTIONS: Final[dict[bytes, int]] = {b"NX": int(NX), b"XX": int(XX), b"CH": int(CH)}
_OPTION_BYTES: Final = 2
_FIRST_PLACE: Final = 2
ONE_PLACE: Final = 5  # words of GEOADD with one member and no options
_TRIPLE: Final = 3  # words for each member of GEOADD
_WITH_UNIT: Final = 5  # words of GEODIST


def geoadd(call: Call) -> object:
    """Recorded as ZADD. Reply: how many members are new, with CH or moved."""
    argv = call.argv
    options = 0
    at = 2
    while at < len(argv) and len(argv[at]) == _OPTION_BYTES and argv[at].upper() in _OPTIONS:
        options |= _OPTIONS[argv[at].upper()]
        at += 1
    if len(argv) == ONE_PLACE and at == _FIRST_PLACE:
        return _add_one(call, argv)
    if (len(argv) - at) % _TRIPLE or (options & NX and options & XX):
        raise CommandError(SYNTAX)
    record = [b"zadd", *argv[1:at]]
    adding = Adding(argv[1], options)
    for start in range(at, len(argv), _TRIPLE):
        longitude, latitude = coordinates(argv[start], argv[start + 1])
        score = score_of(longitude, latitude)
        member = argv[start + 2]
        adding.add_pair(float(score), member)
        record.append(b"%d" % score)
        record.append(member)
    if at == len(argv):
        raise CommandError(SYNTAX)
    adding.run(call)
    if adding.added or adding.updated:
        call.changed(adding.key, ADDED, record, adding.added + adding.updated)
    return adding.added + adding.updated if options & CH else adding.added


def _add_one(call: Call, argv: list[bytes]) -> int:
    """GEOADD of one member without options, which most are."""
    longitude, latitude = coordinates(argv[2], argv[3])
    score = score_of(longitude, latitude)
    key = argv[1]
    member = argv[4]
    value = sorted_set_to_change(call, key)
    if value is None:
        value = new_sorted_set(call, 1, len(member))
        call.put(key, value)
    became = value.put(member, float(score), limits(call))
    if became != SAME:
        call.changed(key, ADDED, [b"zadd", key, b"%d" % score, member] if call.recorded else None)
    return 1 if became == NEW else 0


def _score(value: SortedSet | None, member: bytes) -> float:
    """The score of a member; not a number where it is not there."""
    return float("nan") if value is None else value.score(member)


def geopos(call: Call) -> object:
    """Reply: for each member longitude and latitude, or nil."""
    value = sorted_set_at(call, call.argv[1])
    out = Packer(call.session.resp3)
    out.array(len(call.argv) - 2)
    for member in call.argv[2:]:
        score = _score(value, member)
        if isnan(score):
            out.null_array()
        else:
            longitude, latitude = place_of(score)
            out.array(2)
            out.double(longitude)
            out.double(latitude)
    return out.packed()


def geohash(call: Call) -> object:
    """Reply: for each member its geohash, or nil."""
    value = sorted_set_at(call, call.argv[1])
    found: list[object] = []
    for member in call.argv[2:]:
        score = _score(value, member)
        found.append(None if isnan(score) else text_of(score))
    return found


def geodist(call: Call) -> object:
    """Reply: the distance as a text, or nil."""
    argv = call.argv
    metres = 1.0
    if len(argv) == _WITH_UNIT:
        metres = metres_in(argv[4])
    elif len(argv) > _WITH_UNIT:
        raise CommandError(SYNTAX)
    value = sorted_set_at(call, argv[1])
    score = _score(value, argv[2])
    other = _score(value, argv[3])
    if isnan(score) or isnan(other):
        return None
    longitude, latitude = place_of(score)
    to_longitude, to_latitude = place_of(other)
    found = distance_m(longitude, latitude, to_longitude, to_latitude)
    return distance_text(found / metres)
