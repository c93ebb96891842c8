"""The commands on places: GEOADD, GEOPOS, GEODIST, GEOHASH, GEOSEARCH, GEORADIUS and their kin."""

from __future__ import annotations

from math import isnan
from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

from headrace.compat import type_errors
from headrace.compat.errors import COUNT_NOT_POSITIVE, NOT_A_FLOAT, SYNTAX, CommandError
from headrace.compat.event_classes import EVENT_ZSET
from headrace.compat.geohash import (
    LATITUDE_MAX,
    LONGITUDE_MAX,
    Shape,
    distance_m,
    place_of,
    score_of,
    text_of,
)
from headrace.compat.numbers import parse_double
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES
from headrace.server.changes.events import Event
from headrace.server.commands.shared import store_result
from headrace.server.commands.together import Ran, Requests
from headrace.server.commands.typed_keys import (
    ADDED,
    CH,
    NX,
    XX,
    Adding,
    put_one,
    put_together,
    sorted_set_at,
)
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import NONE_ALIKE, alike, finds_keys
from headrace.storage.packed.strings import next_at, string_at
from headrace.storage.sorted_set.runs import place_of as place_in
from headrace.storage.sorted_set.runs import score_at
from headrace.storage.sorted_set.sorted_set import NEW, SAME, SortedSet, sorted_set_of

RADIUS_STORED: Final = Event(b"georadiusstore", EVENT_ZSET, touches=True)
SEARCH_STORED: Final = Event(b"geosearchstore", EVENT_ZSET, touches=True)


_UNITS: Final[dict[bytes, float]] = {b"M": 1.0, b"KM": 1000.0, b"FT": 0.3048, b"MI": 1609.34}


def metres_in(unit: bytes) -> float:
    """Return how many metres a unit has; raises CommandError for what is none."""
    metres = _UNITS.get(unit.upper())
    if metres is None:
        raise CommandError(type_errors.BAD_UNIT)
    return metres


def coordinates(longitude: bytes, latitude: bytes) -> tuple[float, float]:
    """Return the place that two words spell; raises CommandError where there is none."""
    east = parse_double(longitude)
    north = parse_double(latitude)
    if isnan(east) or isnan(north):
        raise CommandError(NOT_A_FLOAT)
    if abs(east) > LONGITUDE_MAX or abs(north) > LATITUDE_MAX:
        raise CommandError(type_errors.BAD_PLACE % (east, north))
    return east, north


def distance(word: bytes, error: bytes) -> float:
    """Return the distance that a word spells; raises ``error`` where there is none."""
    value = parse_double(word)
    if isnan(value):
        raise CommandError(error)
    return value


def distance_text(value: float) -> bytes:
    """Return the text of a distance, with four decimals."""
    return b"%d.%04d" % divmod(round(value * 10000.0), 10000)


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
    """Run GEOADD of one member without options, which most are."""
    longitude, latitude = coordinates(argv[2], argv[3])
    score = score_of(longitude, latitude)
    key = argv[1]
    member = argv[4]
    became = put_one(call, key, float(score), member)
    if became != SAME:
        call.changed(key, ADDED, [b"zadd", key, b"%d" % score, member] if call.recorded else None)
    return 1 if became == NEW else 0


def _score(value: SortedSet | None, member: bytes) -> float:
    """Return the score of a member; not a number where it is not there."""
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


_UNSORTED: Final = 0
_NEAREST: Final = 1
_FARTHEST: Final = 2

_AROUND_PLACE: Final = 0  # kinds of requests: GEORADIUS,
_AROUND_MEMBER: Final = 1  # GEORADIUSBYMEMBER
_SEARCH: Final = 2  # GEOSEARCH

_SPARE: Final = 4  # for each member that is wanted so many are looked at, and then twice as many


@mypyc_attr(acyclic=True)
class Found:
    """A member that lies in the shape; ``distance_m`` is from the point, where it is asked for."""

    def __init__(
        self, packed: bytes, score: float, longitude: float, latitude: float, distance_m: float
    ) -> None:
        self.packed: Final = packed
        self.score: Final = score
        self.longitude: Final = longitude
        self.latitude: Final = latitude
        self.distance_m: Final = distance_m


def _distance(found: Found) -> float:
    return found.distance_m


class Search:
    """A request of one ``kind``. Raises: CommandError for wrong options, or another type of key."""

    def __init__(self, call: Call, kind: int, may_store: bool) -> None:
        argv = call.argv
        stored = kind == _SEARCH and may_store
        self._kind: Final = kind
        self._may_store: Final = may_store
        self._value: Final[SortedSet | None] = sorted_set_at(call, argv[2 if stored else 1])
        self._shape: Final = Shape()
        self._metres = 1.0
        self._count = 0
        self._any = False
        self._order = _UNSORTED
        self._distances = False
        self._hashes = False
        self._places = False
        self._measured = False  # distances are needed
        self._from_member = False
        self._from_place = False
        self._by_radius = False
        self._by_box = False
        self.store_key: bytes | None = argv[1] if stored else None
        self.store_distances = False
        if kind == _AROUND_PLACE:
            self._around(*coordinates(argv[2], argv[3]))
            self._take_radius(argv[4], argv[5])
            args = Args(argv, 6)
        elif kind == _AROUND_MEMBER:
            if self._value is not None:
                self._around_member(argv[2])
                self._take_radius(argv[3], argv[4])
            args = Args(argv, 5)
        else:
            args = Args(argv, 3 if stored else 2)
        while args.left:
            self._take_option(args)
        self._check(argv[0])

    def _take_option(self, args: Args) -> None:
        option = args.option()
        if option == b"WITHDIST":
            self._distances = True
        elif option == b"WITHHASH":
            self._hashes = True
        elif option == b"WITHCOORD":
            self._places = True
        elif option == b"ANY":
            self._any = True
        elif option == b"ASC":
            self._order = _NEAREST
        elif option == b"DESC":
            self._order = _FARTHEST
        elif option == b"COUNT" and args.left:
            self._count = args.integer()
            if self._count <= 0:
                raise CommandError(COUNT_NOT_POSITIVE)
        elif self._kind == _SEARCH:
            self._take_search(option, args)
        elif option in (b"STORE", b"STOREDIST") and args.left and self._may_store:
            self.store_key = args.word()
            self.store_distances = option == b"STOREDIST"
        else:
            raise CommandError(SYNTAX)

    def _take_search(self, option: bytes, args: Args) -> None:
        """Take an option that only GEOSEARCH and GEOSEARCHSTORE have."""
        if option == b"STOREDIST" and self._may_store:
            self.store_distances = True
        elif option == b"FROMMEMBER" and args.left and not self._from_place:
            member = args.word()
            if self._value is not None:
                self._around_member(member)
            self._from_member = True
        elif option == b"FROMLONLAT" and args.left >= 2 and not self._from_member:
            self._around(*coordinates(args.word(), args.word()))
            self._from_place = True
        elif option == b"BYRADIUS" and args.left >= 2 and not self._by_box:
            self._take_radius(args.word(), args.word())
            self._by_radius = True
        elif option == b"BYBOX" and args.left >= 3 and not self._by_radius:
            self._take_box(args.word(), args.word(), args.word())
            self._by_box = True
        else:
            raise CommandError(SYNTAX)

    def _around(self, longitude: float, latitude: float) -> None:
        self._shape.longitude = longitude
        self._shape.latitude = latitude

    def _around_member(self, member: bytes) -> None:
        value = self._value
        score = float("nan") if value is None else value.score(member)
        if isnan(score):
            raise CommandError(type_errors.NO_SUCH_MEMBER)
        self._around(*place_of(score))

    def _take_radius(self, radius: bytes, unit: bytes) -> None:
        number = distance(radius, type_errors.BAD_RADIUS)
        if number < 0:
            raise CommandError(type_errors.RADIUS_NEGATIVE)
        self._metres = metres_in(unit)
        self._shape.radius_m = number * self._metres

    def _take_box(self, width: bytes, height: bytes, unit: bytes) -> None:
        east = distance(width, type_errors.BAD_WIDTH)
        north = distance(height, type_errors.BAD_HEIGHT)
        if east < 0 or north < 0:
            raise CommandError(type_errors.BOX_NEGATIVE)
        self._metres = metres_in(unit)
        self._shape.width_m = east * self._metres
        self._shape.height_m = north * self._metres

    def _check(self, name: bytes) -> None:
        search = self._kind == _SEARCH
        if self.store_key is not None and (self._distances or self._hashes or self._places):
            raise CommandError(type_errors.stored_with_more(search))
        if search and not (self._from_member or self._from_place):
            raise CommandError(type_errors.NO_CENTRE % name)
        if search and not (self._by_radius or self._by_box):
            raise CommandError(type_errors.NO_SHAPE % name)
        if self._any and not self._count:
            raise CommandError(type_errors.ANY_WITHOUT_COUNT)

    def results(self) -> list[Found]:
        """Return the members that lie in the shape, in the order that is asked for."""
        value = self._value
        if value is None:
            return []
        order = self._order
        if self._count and order == _UNSORTED and not self._any:
            order = _NEAREST
        self._measured = order != _UNSORTED or self._distances or self.store_distances
        enough = self._count if self._any else 0
        shape = self._shape
        found: list[Found] = []
        boxes = shape.boxes()
        at: i64 = 0
        while at < len(boxes) and not (enough and len(found) >= enough):
            least = float(boxes[at])
            behind = float(boxes[at] + shape.box_scores)
            skipped: i64 = 0
            portion: i64 = min(enough * _SPARE, value.size()) if enough else value.size()
            span = value.span_of_scores(least, False, behind, False, 0, portion)
            while span.count:
                number: i64 = 0
                while number < len(span.runs):
                    first, end = span.bounds(number)
                    self._look_at(span.runs[number], first, end, found, enough)
                    number += 1
                if span.count < portion or (enough and len(found) >= enough):
                    break
                skipped += portion
                portion *= 2
                span = value.span_of_scores(least, False, behind, False, skipped, portion)
            at += 1
        if order != _UNSORTED:
            found.sort(key=_distance, reverse=order == _FARTHEST)
        return found[: self._count] if self._count else found

    def _look_at(self, run: bytes, number: i64, end: i64, found: list[Found], enough: int) -> None:
        """Add those members of a run that lie in the shape, until there are enough; 0 is all."""
        shape = self._shape
        looked = number  # the member of this number begins at ``place``
        place = place_in(run, number)
        while number < end:
            score = score_at(run, number)
            longitude, latitude = place_of(score)
            if shape.has(longitude, latitude):
                if enough and len(found) >= enough:
                    return
                place = next_at(run, place, number - looked)
                looked = number
                distance_m = shape.distance_m(longitude, latitude) if self._measured else 0.0
                packed = run[place : next_at(run, place)]
                found.append(Found(packed, score, longitude, latitude, distance_m))
            number += 1

    def reply(self, resp3: bool, results: list[Found]) -> object:
        """Return the results, each with what is asked for besides."""
        parts = 1 + self._distances + self._hashes + self._places
        out = Packer(resp3)
        out.array(len(results))
        for each in results:
            if parts > 1:
                out.array(parts)
            out.strings(each.packed)
            if self._distances:
                out.text(distance_text(each.distance_m / self._metres))
            if self._hashes:
                out.number(int(each.score))
            if self._places:
                out.array(2)
                out.double(each.longitude)
                out.double(each.latitude)
        return out.packed()

    def stored(self, results: list[Found]) -> list[tuple[float, bytes]]:
        """Return the results to store, in order: by their places, or by their distances."""
        pairs: list[tuple[float, bytes]] = []
        for each in results:
            score = each.distance_m / self._metres if self.store_distances else each.score
            pairs.append((score, string_at(each.packed, 0)))
        pairs.sort()
        return pairs


def _run(call: Call, kind: int, may_store: bool) -> object:
    search = Search(call, kind, may_store)
    results = search.results()
    key = search.store_key
    if key is None:
        return search.reply(call.session.resp3, results)
    made = sorted_set_of(search.stored(results), call.server.data.sorted_set_limits)
    event = SEARCH_STORED if kind == _SEARCH else RADIUS_STORED
    store_result(call, key, made, event, call.argv)
    return len(results)


@finds_keys("GEORADIUS", "GEORADIUSBYMEMBER")
def _radius_keys(argv: list[bytes]) -> list[int]:
    """Return the keys of GEORADIUS and GEORADIUSBYMEMBER; that of STORE may be last."""
    found = [1]
    at = 5
    while at < len(argv) - 1:
        if argv[at].upper() in (b"STORE", b"STOREDIST"):
            found = [1, at + 1]
            at += 1
        at += 1
    return found


def georadius(call: Call) -> object:
    """Reply: the members that are found, or how many were stored."""
    return _run(call, _AROUND_PLACE, True)


def georadiusbymember(call: Call) -> object:
    """Reply: the members that are found, or how many were stored."""
    return _run(call, _AROUND_MEMBER, True)


def georadius_ro(call: Call) -> object:
    """Reply: the members that are found."""
    return _run(call, _AROUND_PLACE, False)


def georadiusbymember_ro(call: Call) -> object:
    """Reply: the members that are found."""
    return _run(call, _AROUND_MEMBER, False)


def geosearch(call: Call) -> object:
    """Reply: the members that are found."""
    return _run(call, _SEARCH, False)


def geosearchstore(call: Call) -> object:
    """Reply: how many members were stored."""
    return _run(call, _SEARCH, True)


@alike("GEOADD", of_any_key=True)
def geoadd_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Add single members to sorted sets, which may be new; recorded as ZADD."""
    if len(requests[first]) != ONE_PLACE or not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    scores = vec[float]()
    at = first
    while at < end:
        words = requests[at]
        try:
            longitude, latitude = coordinates(words[2], words[3])
        except CommandError:
            break
        scores = append(scores, float(score_of(longitude, latitude)))
        at += 1
    out = Packer(call.session.resp3)
    changed: list[int] = []
    at = put_together(call, requests, first, 4, scores, out, changed)
    records: list[list[bytes]] = []
    if call.notes_changes:
        for each in changed:
            words = requests[each]
            records.append([b"zadd", words[1], b"%d" % int(scores[each - first]), words[4]])
    call.changed_alike(records, 0, len(records), len(changed))
    return at - first, out.replies()
