"""The form of streams in a region: a single server's, and those of lanes that regions write.

A stream that several regions write is ``LANES``, each ``LANE`` with its blocks, what is
``REMEMBERED`` of it and the ``GROUP_STATE`` of each group name, and then its groups, each with its
``PLACES`` in front of the consumers, and its producers.

The parts of a stream beside its entries are msgpack documents, each an array of arrays; vectors and
starts stand in them as the text that records have. A document is checked as far as its type goes,
and so is every name, number and ID in it.

The functions ``read_...`` raise ValueError or ``MsgspecError`` where a document holds what none
does.
"""

from __future__ import annotations

from typing import Final, cast

from msgspec.msgpack import Decoder as Unpacker
from msgspec.msgpack import Encoder as Packer

from headrace.persistence.forms.form import Unsound, Walk
from headrace.persistence.forms.records import Intake, Record, Records
from headrace.persistence.forms.stream.form import (
    StreamForm,
    check_beside_entries,
    check_entries,
    check_id,
    check_stream,
)
from headrace.persistence.forms.stream.records import (
    NAMES,
    STREAM,
    StreamReader,
    StreamRecords,
    StreamWalk,
    StreamWriter,
)
from headrace.persistence.forms.table import register
from headrace.regions.knowledge.region import region_as
from headrace.regions.lanes.group_state import (
    ANYWHERE,
    Create,
    GroupState,
    Home,
    Intervals,
    decode_start,
)
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.places import Places
from headrace.regions.lanes.remembered import (
    DEL,
    EXPIRE,
    Awaited,
    Register,
    Removal,
    Setting,
    Tombstone,
    Top,
)
from headrace.regions.lanes.stream import FrozenLane, FrozenRegionalStream, RegionalStream
from headrace.regions.lanes.tombstones import pack_tombstone
from headrace.storage.sharing import REGION_MAX
from headrace.storage.stream.contents import (
    IDMP_DURATION_S,
    IDMP_DURATION_S_MAX,
    IDMP_MAXSIZE,
    IDMP_MAXSIZE_MAX,
)
from headrace.storage.stream.frozen import FrozenGroup, FrozenStream
from headrace.storage.stream.run import ID_MAX
from headrace.storage.stream.stream import Stream
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
GROUP_STATE: Final = 19
PLACES: Final = 20
LANE_KINDS: Final = {
    LANES: "stream of lanes",
    LANE: "lane",
    REMEMBERED: "what is remembered",
    GROUP_STATE: "births of a group",
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
_GroupStateFields = tuple[
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
_group_state: Final = Unpacker(_GroupStateFields).decode
_places: Final = Unpacker(_Places).decode

_INT64_MAX: Final = 2**63 - 1


def remembered_document(stream: FrozenRegionalStream) -> bytes:
    """Return the document of what is remembered beside lanes and groups."""
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


def group_state_document(state: GroupState) -> bytes:
    """Return the document of the creates of a group."""
    creates = [
        (
            *create.dot,
            create.start.encode(),
            encode_numbers(create.numbers),
            _of_lanes(create.intervals),
        )
        for create in state.known()
    ]
    tombstones = [
        (*tombstone.dot, encode_numbers(tombstone.numbers)) for tombstone in state.tombstones
    ]
    acks = [(*dot, _of_lanes(intervals)) for dot, intervals in state.acks.items()]
    return _pack((creates, tombstones, acks, _settings(state.mode), _homes(state)))


def read_group_state(document: bytes) -> GroupState:
    """Return the creates of a group in a document."""
    creates, tombstones, acks, mode, home = _group_state(document)
    state = GroupState()
    known: list[Create] = []
    for origin, number, start, numbers, of_lanes in creates:
        create = Create(_dot(origin, number), decode_start(start), decode_numbers(numbers))
        create.intervals = _read_of_lanes(of_lanes)
        known.append(create)
    state.keep(known)
    for origin, number, numbers in tombstones:
        state.tombstones.append(Tombstone(_dot(origin, number), decode_numbers(numbers)))
    for origin, number, of_lanes in acks:
        state.acks[_dot(origin, number)] = _read_of_lanes(of_lanes)
    _put_settings(state.mode, mode)
    for origin, number, version, region, dots in home:
        if not 0 <= version <= NUMBER_MAX or not ANYWHERE <= region <= REGION_MAX:
            raise ValueError("a group was moved nowhere")
        state.home.put(Home(_dot(origin, number), version, region, decode_dots(dots)))
    return state


def places_document(places: Places) -> bytes:
    """Return the document of the places of a group."""
    vectors = (encode_lanes(places.place), encode_lanes(places.begun), encode_lanes(places.again))
    return _pack((*places.anchor, places.start.encode(), *vectors))


def read_places(document: bytes, state: GroupState) -> Places:
    """Return the places in a document, of a group that was made by one of these creates."""
    origin, number, start, place, begun, again = _places(document)
    create = state.create(_dot(origin, number))
    if create is None:
        raise ValueError("a group hangs on no create")
    places = Places(state, create)
    places.start = decode_start(start)
    places.place = decode_lanes(place)
    places.begun = decode_lanes(begun)
    places.again = decode_lanes(again)
    if any(lane not in places.begun for lane in places.place):
        raise ValueError("a group has read of a lane and never begun")
    return places


def _settings(register: Register) -> list[tuple[bytes, int, int, int, int]]:
    return [
        (*setting.dot, setting.version, setting.first, setting.second)
        for setting in register.settings.values()
    ]


def _homes(state: GroupState) -> list[tuple[bytes, int, int, int, bytes]]:
    return [
        (*setting.dot, setting.version, setting.first, encode_dots(setting.creates))
        for setting in state.home.settings.values()
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


class LanesWalk(StreamWalk):
    """Encodes one frozen stream of lanes, part by part: its lanes, and then as any stream."""

    def __init__(
        self,
        records: Records,
        parts: StreamRecords,
        key: bytes,
        expire_ms: int,
        stream: FrozenRegionalStream,
    ) -> None:
        super().__init__(parts, stream)
        self._out: Final = records
        self._parts: Final = parts
        self._lanes: Final = stream
        self._next_lane = 0
        self._log: FrozenStream | None = None
        self._names: Final = list(stream.group_states)
        self._next_name = 0
        self._remembered = False
        records.keys += 1
        records.entries += stream.length
        record = Record(LANES)
        record.table = [
            *(expire_ms, stream.max_deleted_ms, stream.max_deleted_seq, stream.idmp_duration_s),
            *(stream.idmp_maxsize, stream.iids_added, stream.iids_duplicates, len(stream.lanes)),
            *(len(stream.group_states), len(stream.groups), stream.producers),
        ]
        record.add(key)
        records.put(record)

    def step(self) -> bool:
        stream = self._lanes
        if self._log is not None:
            if not self._parts.entries(self._log):
                self._log = None
        elif self._next_lane < len(stream.lanes):
            lane = stream.lanes[self._next_lane]
            self._next_lane += 1
            self._log = lane.log
            self._put_lane(lane)
        elif not self._remembered:
            self._remembered = True
            self._put(REMEMBERED, remembered_document(stream))
        elif self._next_name < len(self._names):
            name = self._names[self._next_name]
            self._next_name += 1
            self._put(GROUP_STATE, name, group_state_document(stream.group_states[name]))
        else:
            return super().step()
        return True

    def begin_group(self, group: FrozenGroup, number: int) -> None:
        super().begin_group(group, number)
        self._put(PLACES, places_document(self._lanes.places[number]))

    def _put_lane(self, lane: FrozenLane) -> None:
        log = lane.log
        record = Record(LANE)
        record.table = [
            *(log.last_ms, log.last_seq, *lane.deleted, *lane.trimmed, 1 if lane.manual else 0),
            *(log.entries_added, log.length, log.blocks, 0 if log.tail is None else 1),
        ]
        record.add(lane.name)
        record.add(_pack(lane.early))
        self._out.put(record)

    def _put(self, kind: int, *pieces: bytes) -> None:
        record = Record(kind)
        for piece in pieces:
            record.add(piece)
        self._out.put(record)


class LanesReader(StreamReader):
    """Puts the parts of a stream together, of whichever kind it is."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._lanes: RegionalStream | None = None  # the current stream, if it is one of lanes
        self._lanes_left = 0
        self._remembered = False
        self._group_states_left = 0

    def goes_on(self, kind: int) -> bool:
        """Return whether it is a part: all records but the first are."""
        return kind not in (STREAM, LANES)

    def read(self, kind: int, table: list[int]) -> None:
        if kind < LANES:
            super().read(kind, table)
        elif kind == LANES:
            self._new_lanes(table)
        elif self._lanes is None:
            raise self.intake.malformed("a stream of lanes before its parts")
        elif kind == LANE:
            self._new_lane(self._lanes, table)
        elif kind == REMEMBERED:
            self._remember(self._lanes, table)
        elif kind == GROUP_STATE:
            self._new_group_state(self._lanes, table)
        elif kind == PLACES:
            self._places(self._lanes, table)

    def _new_lanes(self, table: list[int]) -> None:
        intake = self.intake
        region = intake.region
        if region is None:
            raise intake.malformed("no stream of lanes outside the snapshot of a region")
        expire_ms, deleted_ms, deleted_seq, duration_s, maxsize = table[:5]
        added, duplicates, lanes, states, groups, producers = table[5:11]
        self._key = intake.cut(table[11])
        self._expire_ms = expire_ms
        if not (0 < duration_s <= IDMP_DURATION_S_MAX and 0 < maxsize <= IDMP_MAXSIZE_MAX):
            raise intake.malformed("limits of iids that can be set")
        stream = RegionalStream(region_as(region), IDMP_DURATION_S, IDMP_MAXSIZE)
        stream.max_deleted_ms = deleted_ms
        stream.max_deleted_seq = deleted_seq
        stream.idmp_duration_s = duration_s
        stream.idmp_maxsize = maxsize
        stream.iids_added = added
        stream.iids_duplicates = duplicates
        self._lanes = stream
        self._lanes_left = lanes
        self._remembered = False
        self._group_states_left = states
        self._begin(stream, groups, producers)

    def _new_lane(self, stream: RegionalStream, table: list[int]) -> None:
        intake = self.intake
        self._finish_log()
        self._lanes_left -= 1
        if self._lanes_left < 0 or len(table) != 13:
            raise intake.malformed("no more lanes than the stream has")
        name = check_lane(intake.cut(table[11]))
        lane = Lane(name)
        if stream.lanes and lane.key <= stream.lanes[-1].key:
            raise intake.malformed("lanes in their order")
        log = lane.log
        log.last_ms, log.last_seq = self._id(table, 0)
        lane.deleted = self._id(table, 2)
        lane.trimmed = self._id(table, 4)
        lane.manual = table[6] != 0
        log.entries_added = table[7]
        log.length = table[8]
        lane.remember_only({_id(ms, seq) for ms, seq in _ids(intake.cut(table[12]))})
        stream.insert(lane)
        self._begin_log(log, table[9], table[10])

    def _id(self, table: list[int], at: int) -> ID:
        ms = table[at]
        seq = table[at + 1]
        if not (0 <= ms <= ID_MAX and 0 <= seq <= ID_MAX):
            raise self.intake.malformed("IDs")
        return ms, seq

    def _remember(self, stream: RegionalStream, table: list[int]) -> None:
        intake = self.intake
        self._finish_log()
        if self._lanes_left or self._remembered:
            raise intake.malformed("all lanes of the stream, and then once what is remembered")
        self._remembered = True
        read_remembered(intake.cut(table[0]), stream)

    def _new_group_state(self, stream: RegionalStream, table: list[int]) -> None:
        intake = self.intake
        name = intake.cut(table[0])
        self._group_states_left -= 1
        if self._group_states_left < 0 or not self._remembered or name in stream.group_states:
            raise intake.malformed("the births of each group once")
        stream.group_states[name] = read_group_state(intake.cut(table[1]))

    def _places(self, stream: RegionalStream, table: list[int]) -> None:
        intake = self.intake
        group = self._group
        state = None if group is None else stream.group_states.get(group.name)
        if group is None or state is None or group.places is not None or self._group_states_left:
            raise intake.malformed("a group and its births before its places")
        group.places = read_places(intake.cut(table[0]), state)

    def finish(self) -> None:
        stream = self._lanes
        self._lanes = None
        if stream is not None:
            self._finish_log()
            if self._lanes_left or not self._remembered or self._group_states_left:
                raise self.intake.malformed("the rest of a stream")
            for group in stream.groups.values():
                if group.places is None:
                    raise self.intake.malformed("the places of each group")
            stream.restored()
        super().finish()


class LanesWriter(StreamWriter):
    """Writes streams, of whichever kind they are."""

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        if isinstance(value, FrozenRegionalStream):
            return LanesWalk(self.records, self.parts, key, expire_ms, value)
        return super().add(key, value, expire_ms)


class LanesForm(StreamForm):
    """Streams, of whichever kind they are."""

    def as_tombstone(self, value: object) -> object:
        return (pack_tombstone(value) or value) if isinstance(value, RegionalStream) else value

    def check(self, value: object) -> None:
        if not isinstance(value, RegionalStream):
            check_stream(cast("Stream", value))
            return
        for lane in value.lanes:
            check_entries(lane.log)
            if lane.log.length and lane.log.first_id() <= max(lane.deleted, lane.trimmed):
                raise Unsound("an entry of a lane that was removed")
        check_id(value.max_deleted_ms, value.max_deleted_seq)
        check_beside_entries(value)


register(LanesForm({**NAMES, **LANE_KINDS}, LanesWriter, LanesReader))
