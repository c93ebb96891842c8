"""A stream that is gone, in few bytes, for as long as it has to be remembered.

Where another region is away for long, every key that is deleted meanwhile is remembered. Nearly all
that is left of such streams is alike: lanes without entries, and the removals that cover them. That
is packed into one text of numbers, each in as many bytes as it needs, lower bits first:

- the removals: their origin and kind, their number, and what their maker knew;
- the lanes: their name, how far they came, what was removed of them, and how many entries came;
- the highest ID deleted, and what is known of the IDMP map.

A stream that has more to be remembered stays as it is.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.storage.digest import Digest
from headrace.storage.expiring import Expiring
from headrace.storage.regions.region import Region
from headrace.storage.regions.vectors import (
    Dot,
    Numbers,
    covers,
    lane_name,
    origin_key,
    origin_of,
)
from headrace.storage.stream.contents import IDMP_DURATION_S, IDMP_MAXSIZE
from headrace.storage.stream.frozen import STREAM
from headrace.storage.stream.regional.frozen import FrozenRegionalStream
from headrace.storage.stream.regional.lane import Lane
from headrace.storage.stream.regional.removals import Removal
from headrace.storage.stream.regional.stream import RegionalStream
from headrace.storage.value import Value

_FIXED_BYTES: Final = 81  # of a grave, beside the numbers
_REGION_BITS: Final = 4
_MANUAL: Final = 1
_CURRENT: Final = 2
_COVERED: Final = 4  # it was deleted up to its last ID
_NOBODY: Final = Region(0)  # what is frozen says nothing of who has it


class Grave(Value):
    """What is remembered of a stream. It never changes: ``opened`` gives a stream that can."""

    def __init__(self, packed: bytes) -> None:
        self._packed: Final = packed

    def opened(self, region: Region) -> RegionalStream:
        """An equal stream, as ``region`` has it."""
        packed = _Unpacker(self._packed)
        stream = RegionalStream(region, IDMP_DURATION_S, IDMP_MAXSIZE)
        for _ in range(packed.next()):
            kind, dot = packed.kind_and_dot()
            stream.know_removal(Removal(kind, dot, packed.numbers()))
        for _ in range(packed.next()):
            stream.insert(packed.lane())
        stream.max_deleted_ms = packed.next()
        stream.max_deleted_seq = packed.next()
        stream.idmp_duration_s = packed.next()
        stream.idmp_maxsize = packed.next()
        stream.iids_added = packed.next()
        stream.iids_duplicates = packed.next()
        stream.restored()
        return stream

    def has_removals(self) -> bool:
        """Whether it remembers that the key was deleted, or has expired."""
        return self._packed[0] > 0

    def outlasts(self, stable: Numbers) -> bool:
        """Whether it has removals, and none of them may be forgotten; see ``garbage.collect``."""
        packed = _Unpacker(self._packed)
        removals = packed.next()
        for _ in range(removals):
            _, dot = packed.kind_and_dot()
            if covers(stable, dot):
                return False
            packed.skip_numbers()
        return removals > 0

    # As a value

    def type_name(self) -> bytes:
        """See ``Value``."""
        return STREAM

    def encoding(self, key: bytes) -> bytes:
        """See ``Stream``."""
        return STREAM

    def size(self) -> int:
        """It has no entries."""
        return 0

    def is_empty(self) -> bool:
        """See ``Value``: it says something."""
        return False

    def used_bytes(self, samples: int) -> int:
        """See ``Value``."""
        return _FIXED_BYTES + len(self._packed)

    def copy(self) -> Grave:
        """See ``Value``."""
        return Grave(self._packed)

    def freeze(self) -> FrozenRegionalStream:
        """As the stream itself."""
        return self.opened(_NOBODY).freeze()

    def effort(self) -> int:
        """See ``Value``."""
        return 0

    def free_some(self, most: int) -> bool:
        """There is nothing to be freed in pieces."""
        return True

    def add_to(self, digest: Digest) -> None:
        """As the stream itself."""
        self.opened(_NOBODY).add_to(digest)

    def attach(self, expiring: Expiring) -> None:
        """Nothing in it expires."""


def bury(stream: RegionalStream) -> Grave | None:
    """What is left of a stream that does not exist; None where that is more than usual."""
    if stream.groups or stream.births or stream.tops or stream.awaited or stream.idmp is not None:
        return None
    if stream.ttl.settings or stream.limits.settings:
        return None
    for lane in stream.lanes:
        log = lane.log
        if log.tail is not None or log.index.blocks or lane.early:
            return None
    packed = bytearray()
    _add(packed, len(stream.removals))
    for removal in stream.removals:
        origin, number = removal.dot
        _add(packed, _origin_number(origin) << 1 | removal.kind)
        _add(packed, number)
        _add(packed, len(removal.numbers))
        for known, upto in removal.numbers.items():
            _add(packed, _origin_number(known))
            _add(packed, upto)
    _add(packed, len(stream.lanes))
    for lane in stream.lanes:
        _add_lane(packed, lane)
    _add(packed, stream.max_deleted_ms)
    _add(packed, stream.max_deleted_seq)
    _add(packed, stream.idmp_duration_s)
    _add(packed, stream.idmp_maxsize)
    _add(packed, stream.iids_added)
    _add(packed, stream.iids_duplicates)
    return Grave(bytes(packed))


def _add_lane(packed: bytearray, lane: Lane) -> None:
    region, epoch, number = lane.key
    log = lane.log
    is_covered = lane.deleted == lane.last()
    _add(packed, epoch << _REGION_BITS | region)
    _add(packed, number)
    marks = (_MANUAL if lane.manual else 0) | (_CURRENT if lane.is_current else 0)
    _add(packed, marks | (_COVERED if is_covered else 0))
    _add(packed, log.last_ms)
    _add(packed, log.last_seq)
    if not is_covered:
        _add(packed, lane.deleted[0])
        _add(packed, lane.deleted[1])
    _add(packed, lane.trimmed[0])
    _add(packed, lane.trimmed[1])
    _add(packed, log.entries_added)


def _origin_number(origin: bytes) -> int:
    region, epoch = origin_key(origin)
    return epoch << _REGION_BITS | region


def _add(packed: bytearray, number: int) -> None:
    while number > 0x7F:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)


@mypyc_attr(acyclic=True)
class _Unpacker:
    """Reads the numbers of a grave, one after the other."""

    def __init__(self, packed: bytes) -> None:
        self._packed: Final = packed
        self._at: i64 = 0

    def next(self) -> int:
        """The next number."""
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
        """The kind of a removal, and the record that says so."""
        mixed = self.next()
        return mixed & 1, (_origin_numbered(mixed >> 1), self.next())

    def numbers(self) -> Numbers:
        """A number vector."""
        found: Numbers = {}
        for _ in range(self.next()):
            origin = _origin_numbered(self.next())
            found[origin] = self.next()
        return found

    def skip_numbers(self) -> None:
        """Pass over a number vector."""
        for _ in range(2 * self.next()):
            self.next()

    def lane(self) -> Lane:
        """A lane, without entries."""
        origin = _origin_numbered(self.next())
        lane = Lane(lane_name(origin, self.next()))
        marks = self.next()
        log = lane.log
        lane.manual = marks & _MANUAL != 0
        lane.is_current = marks & _CURRENT != 0
        log.last_ms = self.next()
        log.last_seq = self.next()
        lane.deleted = lane.last() if marks & _COVERED else (self.next(), self.next())
        lane.trimmed = (self.next(), self.next())
        log.entries_added = self.next()
        return lane


def _origin_numbered(mixed: int) -> bytes:
    return origin_of(mixed & ((1 << _REGION_BITS) - 1), mixed >> _REGION_BITS)
