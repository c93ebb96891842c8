"""A stream that is gone, in few bytes, for as long as it has to be remembered, and its end.

Where another region is away for long, every key that is deleted meanwhile is remembered. Nearly all
such streams have the same rest: lanes without entries, and the removals that cover them. That is
packed into one text of numbers, each in as many bytes as it needs, lower bits first:

- how many removals there are, and whether something can be forgotten;
- the removals: their kind and origin, their number, and what their maker knew;
- the lanes: their name, how far they came, what was removed of them, and how many entries came;
- the highest ID deleted, and what is known of the IDMP map, if that is anything.

An origin that is the same as the one before stands there as 0. A stream that has more to be
remembered stays as it is.

There may be millions of tombstones. So a tombstone is the text itself, and no object that holds it.
It is distinguished from a string by where it lies.

A removal is remembered because what it removes may still come, and because of what its maker had
not seen. Once every region is known to have seen it, and all that was made before that is here,
nothing of that kind can come any more: it is *stable*.

Each epoch of a region writes lanes of its own. When the entries of an earlier one have gone, its
rest says nothing that a later one does not say. So it ends, which is an effect, and is forgotten
then, like what a deletion covers (``lanes_to_end``). But a lane of which more was removed than has
come stays, even if no region has the rest any more: an old copy of a folder may bring it.

A setting of a stream that was made without knowing that the stream goes outlives the removal, and
would hold for the stream that is made next. No region may drop it by itself, since the others would
have it still. So one of the regions that made such settings removes it in turn (``sweeper``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.remembered import Removal
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.stream.contents import IDMP_DURATION_S, IDMP_MAXSIZE
from headrace.storage.vectors import (
    NO_ID,
    Dot,
    LaneVector,
    Numbers,
    covers,
    lane_name,
    origin_key,
    origin_of,
    region_of,
)

_REGION_BITS: Final = 4
_MANUAL: Final = 1
_CURRENT: Final = 2
_COVERED: Final = 4  # it was deleted up to its last ID
_TRIMMED: Final = 8
_HAS_GARBAGE: Final = 1
_NO_REST: Final = (0, 0, IDMP_DURATION_S, IDMP_MAXSIZE, 0, 0)


def unpack_tombstone(tombstone: bytes, region: Region) -> RegionalStream:
    """Return an equal stream, as ``region`` has it."""
    packed = _Unpacker(tombstone)
    stream = RegionalStream(region, IDMP_DURATION_S, IDMP_MAXSIZE)
    for _ in range(packed.next() >> 1):
        kind, dot = packed.kind_and_dot()
        stream.know_removal(Removal(kind, dot, packed.numbers()))
    for _ in range(packed.next()):
        stream.insert(packed.lane())
    if packed.next():
        stream.max_deleted_ms = packed.next()
        stream.max_deleted_seq = packed.next()
        stream.idmp_duration_s = packed.next()
        stream.idmp_maxsize = packed.next()
        stream.iids_added = packed.next()
        stream.iids_duplicates = packed.next()
    stream.restored()
    return stream


def lasts(tombstone: bytes, stable: Numbers) -> bool:
    """Return whether ``collect`` would find nothing that may be forgotten."""
    packed = _Unpacker(tombstone)
    counted = packed.next()
    if not counted & _HAS_GARBAGE:
        return True
    removals = counted >> 1
    for _ in range(removals):
        _, dot = packed.kind_and_dot()
        if covers(stable, dot):
            return False
        packed.numbers()
    return removals > 0


def pack_tombstone(stream: RegionalStream) -> bytes | None:
    """Return the rest of a stream that does not exist; None where that is more than usual."""
    if (
        stream.groups
        or stream.group_states
        or stream.tops
        or stream.awaited
        or stream.idmp is not None
    ):
        return None
    if stream.ttl.settings or stream.limits.settings:
        return None
    for lane in stream.lanes:
        log = lane.log
        if log.tail is not None or log.index.blocks or lane.early:
            return None
    packed = _Packer()
    packed.add(len(stream.removals) << 1 | (_HAS_GARBAGE if stream.has_garbage() else 0))
    for removal in stream.removals:
        packed.add(removal.kind)
        packed.add_origin(removal.dot[0])
        packed.add(removal.dot[1])
        packed.add(len(removal.numbers))
        for origin, upto in removal.numbers.items():
            packed.add_origin(origin)
            packed.add(upto)
    packed.add(len(stream.lanes))
    for lane in stream.lanes:
        packed.add_lane(lane)
    rest = (
        *(stream.max_deleted_ms, stream.max_deleted_seq, stream.idmp_duration_s),
        *(stream.idmp_maxsize, stream.iids_added, stream.iids_duplicates),
    )
    if rest == _NO_REST:
        packed.add(0)
    else:
        packed.add(1)
        for number in rest:
            packed.add(number)
    return bytes(packed.text)


class _Packer:
    """Writes the numbers of a tombstone, one after the other."""

    def __init__(self) -> None:
        self.text: Final = bytearray()
        self._origin = b""

    def add(self, number: int) -> None:
        text = self.text
        while number > 0x7F:
            text.append(number & 0x7F | 0x80)
            number >>= 7
        text.append(number)

    def add_origin(self, origin: bytes) -> None:
        if origin == self._origin:
            self.add(0)
            return
        self._origin = origin
        region, epoch = origin_key(origin)
        self.add(epoch << _REGION_BITS | region)

    def add_lane(self, lane: Lane) -> None:
        log = lane.log
        is_covered = lane.deleted == lane.last()
        self.add_origin(lane.origin)
        self.add(lane.key[2])
        marks = (_MANUAL if lane.manual else 0) | (_CURRENT if lane.is_current else 0)
        marks |= _TRIMMED if lane.trimmed != NO_ID else 0
        self.add(marks | (_COVERED if is_covered else 0))
        self.add(log.last_ms)
        self.add(log.last_seq)
        if not is_covered:
            self.add(lane.deleted[0])
            self.add(lane.deleted[1])
        if lane.trimmed != NO_ID:
            self.add(lane.trimmed[0])
            self.add(lane.trimmed[1])
        self.add(log.entries_added)


@mypyc_attr(acyclic=True)
class _Unpacker:
    """Reads the numbers of a tombstone, one after the other."""

    def __init__(self, packed: bytes) -> None:
        self._packed: Final = packed
        self._at: i64 = 0
        self._origin = b""

    def next(self) -> int:
        packed = self._packed
        at = self._at
        byte: int = packed[at]
        at += 1
        number = byte & 0x7F
        shift = 7
        while byte > 0x7F:
            byte = packed[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
        self._at = at
        return number

    def kind_and_dot(self) -> tuple[int, Dot]:
        return self.next(), (self.origin(), self.next())

    def origin(self) -> bytes:
        mixed = self.next()
        if mixed:
            self._origin = origin_of(mixed & ((1 << _REGION_BITS) - 1), mixed >> _REGION_BITS)
        return self._origin

    def numbers(self) -> Numbers:
        found: Numbers = {}
        for _ in range(self.next()):
            origin = self.origin()
            found[origin] = self.next()
        return found

    def lane(self) -> Lane:
        origin = self.origin()
        lane = Lane(lane_name(origin, self.next()))
        marks = self.next()
        log = lane.log
        lane.manual = marks & _MANUAL != 0
        lane.is_current = marks & _CURRENT != 0
        log.last_ms = self.next()
        log.last_seq = self.next()
        lane.deleted = lane.last() if marks & _COVERED else (self.next(), self.next())
        lane.trimmed = (self.next(), self.next()) if marks & _TRIMMED else NO_ID
        log.entries_added = self.next()
        return lane


def collect(stream: RegionalStream, stable: Numbers) -> int:
    """Forget what is stable, and lanes that are of no use then. Return how many things.

    Afterwards the stream may be idle (``RegionalStream.is_idle``). ``stable`` is up to which record
    of each origin all regions are known to have seen all.
    """
    before = len(stream.removals)
    stream.removals = [each for each in stream.removals if not covers(stable, each.dot)]
    forgotten = before - len(stream.removals)
    for name in list(stream.group_states):
        state = stream.group_states[name]
        before = len(state.tombstones) + len(state.acks)
        state.tombstones = [each for each in state.tombstones if not covers(stable, each.dot)]
        state.acks = {dot: acks for dot, acks in state.acks.items() if not covers(stable, dot)}
        forgotten += before - len(state.tombstones) - len(state.acks)
        stream.settle_group(name)
    stream.awaited = [each for each in stream.awaited if stream.is_awaiting(each)]
    if not stream.removals:
        dead = [lane.name for lane in stream.lanes if lane.is_dead()]
        forget_lanes(stream, dead)
        forgotten += len(dead)
    return forgotten


def sweeper(stream: RegionalStream, stable: Numbers, members: list[int]) -> int:
    """Return the region that is to remove the settings of a gone stream; 0 while none is.

    ``stable`` is as for ``collect``, ``members`` are the regions that take part.
    """
    dots = stream.left_over()
    if not dots or not all(covers(stable, dot) for dot in dots):
        return 0
    regions = {region_of(origin) for origin, _ in dots}
    return min(regions.intersection(members) or members)


def lanes_to_end(stream: RegionalStream, stable: Numbers, region: Region) -> LaneVector:
    """Return the lanes that this region is to end, because they have outlived their epochs.

    A lane is ended by its own region, or, when that takes part no more, by the first of the others.
    All regions have to know all of the lane: then none names it any more without knowing of its
    end. ``stable`` is as for ``collect``.
    """
    found: LaneVector = {}
    members = region.members()
    for lane in stream.outlived():
        number = lane.key[0] if lane.key[0] in members else members[0]
        if number == region.id and covers(stable, (lane.origin, region.number_of(lane.origin))):
            found[lane.name] = lane.last()
    return found


def forget_lanes(stream: RegionalStream, names: list[bytes]) -> None:
    """Forget lanes of which nothing can live any more, and whatever names them."""
    if not names:
        return
    stream.remove_lanes(names)
    gone = set(names)
    waiting = stream.awaited
    stream.awaited = [one for one in waiting if gone.isdisjoint((one.winner_lane, one.lane))]
    for state in stream.group_states.values():
        for create in state.known():
            for name in names:
                create.intervals.pop(name, None)
        state.forget_acks(names)
    for group in stream.groups.values():
        places_of(group).forget(names)
    stream.restored()
