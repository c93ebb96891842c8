"""The shared state of a group: where it begins to read, what is acknowledged, whether it exists.

Deletions win over what they had not seen. A group is made by a create, and several regions may make
the same one at once. It exists while one of its creates lives. A create lives if its maker had seen
every DESTROY of the group and every deletion of the key, if no expiry of the key had seen it, and
if no living create had seen it. One that a living create had seen has been ended by a deletion that
may not have come yet. It is kept until that comes, because the other create can end first.

Acknowledgements are intervals of IDs: above one ID, up to another and with it. They name the
creates for which they hold, and go with them. Some come before their create, because records of
different origins come in any order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

from headrace.regions.lanes.remembered import DEL, Register, Removal, Setting, Tombstone
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.vectors import (
    ID,
    NO_ID,
    Dot,
    LaneVector,
    Numbers,
    covers,
    decode_id,
    decode_lanes,
    dot_key,
    encode_lanes,
)

FROM_ALL: Final = 0  # with the first entry there ever was
AFTER_ID: Final = 1  # with entries of higher IDs
AFTER_SEEN: Final = 2  # with entries that its maker had not seen
_ZERO: Final = b"0"
GREATEST: ID = (ID_MAX, ID_MAX)
ANYWHERE: Final = 0
_CREATE_BYTES: Final = 400  # about
_INTERVALS_BYTES: Final = 250
_SMALL_BYTES: Final = 200


class Start:
    """The place where a group begins to read.

    An entry that comes late with a low ID is new to a group that begins with what its maker had not
    seen, but not to one that begins after an ID.

    Attributes:
        kind: ``FROM_ALL``, ``AFTER_ID`` or ``AFTER_SEEN``.
        entry_id: the ID after which it begins.
        seen: what its maker had seen of each lane.
    """

    def __init__(self, kind: int, entry_id: ID, seen: LaneVector) -> None:
        self.kind: Final = kind
        self.entry_id: Final = entry_id
        self.seen: Final = seen

    def floor(self, lane: bytes) -> ID:
        """Return the ID of a lane above which entries are for the group."""
        if self.kind == AFTER_SEEN:
            return self.seen.get(lane, NO_ID)
        return self.entry_id

    def highest(self) -> ID:
        """Return the highest ID that may not be for the group."""
        return max(self.seen.values(), default=NO_ID) if self.seen else self.entry_id

    def encode(self) -> bytes:
        """Return it as text: ``0``, an ID, or a lane vector."""
        if self.kind == AFTER_SEEN:
            return encode_lanes(self.seen)
        if self.kind == FROM_ALL:
            return _ZERO
        return b"%d-%d" % self.entry_id


def start_after(entry_id: ID) -> Start:
    """Return a start after an ID; after (0, 0) it is with all entries."""
    return Start(FROM_ALL if entry_id == NO_ID else AFTER_ID, entry_id, {})


def start_after_seen(seen: LaneVector) -> Start:
    """Return a start with the entries that are not in ``seen``."""
    return Start(AFTER_SEEN, NO_ID, seen)


def decode_start(text: bytes) -> Start:
    """Return the start that a text stands for. Raises BadVector if it is none."""
    if text == _ZERO:
        return start_after(NO_ID)
    if b"=" in text or text == b"-":
        return start_after_seen(decode_lanes(text))
    return start_after(decode_id(text))


class Intervals:
    """Intervals of one lane that do not touch, in order.

    ``afters`` holds the IDs that they begin behind, ``uptos`` those that they end with.
    """

    def __init__(self) -> None:
        self.afters: list[ID] = []
        self.uptos: list[ID] = []

    def add(self, after: ID, upto: ID) -> bool:
        """Add an interval; those that touch become one. Return whether it was news."""
        if upto <= after or self.covers(after, upto):
            return False
        low = bisect_left(self.uptos, after)
        high = bisect_right(self.afters, upto)
        if low < high:
            after = min(after, self.afters[low])
            upto = max(upto, self.uptos[high - 1])
        self.afters[low:high] = [after]
        self.uptos[low:high] = [upto]
        return True

    def unite(self, other: Intervals) -> None:
        """Add all intervals of another."""
        for number in range(len(other.afters)):
            self.add(other.afters[number], other.uptos[number])

    def holds(self, entry_id: ID) -> bool:
        """Return whether an ID lies in one of them."""
        number = bisect_left(self.uptos, entry_id)
        return number < len(self.uptos) and self.afters[number] < entry_id

    def covers(self, after: ID, upto: ID) -> bool:
        """Return whether one of them covers a whole interval."""
        number = bisect_left(self.uptos, upto)
        return number < len(self.uptos) and self.afters[number] <= after

    def gaps(self, floor: ID) -> list[tuple[ID, ID]]:
        """Return the gaps above ``floor``: first and last ID of each."""
        found: list[tuple[ID, ID]] = []
        for number in range(bisect_right(self.uptos, floor), len(self.uptos)):
            after = self.afters[number]
            if floor < after:
                found.append((following(floor[0], floor[1]), after))
            floor = self.uptos[number]
        if floor < GREATEST:
            found.append((following(floor[0], floor[1]), GREATEST))
        return found

    def pairs(self) -> list[tuple[ID, ID]]:
        """Return after which ID each of them begins, and with which it ends."""
        return list(zip(self.afters, self.uptos, strict=True))

    def copy(self) -> Intervals:
        """Return an equal copy."""
        twin = Intervals()
        twin.afters = self.afters.copy()
        twin.uptos = self.uptos.copy()
        return twin


class Create:
    """The making of a group.

    Attributes:
        dot: the record that says so.
        numbers: what its maker knew.
        intervals: what is acknowledged, of each lane.
    """

    def __init__(self, dot: Dot, start: Start, numbers: Numbers) -> None:
        self.dot: Final = dot
        self.start: Final = start
        self.numbers: Final = numbers
        self.intervals: dict[bytes, Intervals] = {}

    def survives(self, removal: Removal) -> bool:
        """Return whether it lives on beside a deletion of the key."""
        if removal.kind == DEL:
            return covers(self.numbers, removal.dot)
        return not removal.has_seen(self.dot)

    def acknowledge(self, lane: bytes, after: ID, upto: ID) -> bool:
        """Acknowledge entries of a lane. Return whether that was news."""
        return self.intervals_of(lane).add(after, upto)

    def intervals_of(self, lane: bytes) -> Intervals:
        """Return the acknowledged intervals of a lane."""
        return _intervals_in(self.intervals, lane)

    def copy(self) -> Create:
        """Return an equal copy."""
        twin = Create(self.dot, self.start, self.numbers)
        twin.intervals = _copied(self.intervals)
        return twin


class Home(Setting):
    """The move of a group to a region.

    ``creates`` are those that lived where it was moved; a group that is made anew is another one.
    """

    def __init__(self, dot: Dot, version: int, region: int, creates: list[Dot]) -> None:
        super().__init__(dot, version, region)
        self.creates: Final = creates


def _intervals_in(of_lanes: dict[bytes, Intervals], lane: bytes) -> Intervals:
    found = of_lanes.get(lane)
    if found is None:
        found = Intervals()
        of_lanes[lane] = found
    return found


def _copied(of_lanes: dict[bytes, Intervals]) -> dict[bytes, Intervals]:
    return {lane: intervals.copy() for lane, intervals in of_lanes.items()}


class GroupState:
    """The creates of one group, by its name, as far as they are known.

    Attributes:
        creates: those that live, in the order of their dots.
        outlived: those that another's maker had seen, and that no deletion which came has ended.
        tombstones: when it was destroyed, while not all regions are known to have seen that.
        acks: what is acknowledged for creates that have not come.
        mode: the most pending entries, as XGROUP SETMODE sets it.
        home: where it has been moved.
    """

    def __init__(self) -> None:
        self.creates: list[Create] = []
        self.outlived: list[Create] = []
        self.tombstones: list[Tombstone] = []
        self.acks: dict[Dot, dict[bytes, Intervals]] = {}
        self.mode = Register()
        self.home = Register()

    # Changes

    def add_create(self, create: Create, removals: list[Removal]) -> bool:
        """Add a create, beside the known deletions of the key. Return whether it lives."""
        acks = self.acks.pop(create.dot, None)
        if not all(covers(create.numbers, each.dot) for each in self.tombstones):
            return False
        known = self.known()
        if not all(create.survives(removal) for removal in removals):
            return False
        if any(other.dot == create.dot for other in known):
            return False
        if acks is not None:
            for lane, intervals in acks.items():
                create.intervals_of(lane).unite(intervals)  # a copy's create has some
        self.keep([*known, create])
        return create in self.creates

    def add_tombstone(self, tombstone: Tombstone) -> None:
        """Destroy the group."""
        self.tombstones.append(tombstone)
        dot = tombstone.dot
        self.keep([create for create in self.known() if covers(create.numbers, dot)])
        self.mode.drop_seen(tombstone.numbers)
        self.home.drop_seen(tombstone.numbers)

    def add_removal(self, removal: Removal) -> None:
        """Apply a deletion or an expiry of the key."""
        self.keep([create for create in self.known() if create.survives(removal)])
        self.mode.drop_seen(removal.numbers)
        self.home.drop_seen(removal.numbers)

    def keep(self, known: list[Create]) -> None:
        """Keep only these creates; those whose end another's maker had seen do not live."""
        self.creates = []
        self.outlived = []
        for create in sorted(known, key=lambda create: dot_key(create.dot)):
            if any(other is not create and covers(other.numbers, create.dot) for other in known):
                self.outlived.append(create)
            else:
                self.creates.append(create)

    def add_mode(self, setting: Setting, removals: list[Removal]) -> None:
        """Set its mode."""
        self._set(self.mode, setting, removals)

    def add_home(self, setting: Home, removals: list[Removal]) -> None:
        """Move it to a region."""
        self._set(self.home, setting, removals)

    def _set(self, register: Register, setting: Setting, removals: list[Removal]) -> None:
        is_gone = any(covers(each.numbers, setting.dot) for each in self.tombstones)
        if not is_gone and not any(removal.has_seen(setting.dot) for removal in removals):
            register.add(setting)

    def forget_acks(self, lanes: list[bytes]) -> None:
        """Forget what was acknowledged of lanes before the create came that it is for."""
        for acks in self.acks.values():
            for name in lanes:
                acks.pop(name, None)
        self.acks = {dot: acks for dot, acks in self.acks.items() if acks}

    def acknowledge(self, dot: Dot, lane: bytes, after: ID, upto: ID, come: bool) -> bool:
        """Acknowledge entries for a create. Return whether that is news of one that lives.

        ``come``: the create is known to have come, so that it is dead if it is not here.
        """
        create = self.create(dot)
        if create is not None:
            return create.acknowledge(lane, after, upto)
        for create in self.outlived:
            if create.dot == dot:
                create.acknowledge(lane, after, upto)
        if not come:
            of_lanes = self.acks.get(dot)
            if of_lanes is None:
                of_lanes = {}
                self.acks[dot] = of_lanes
            _intervals_in(of_lanes, lane).add(after, upto)
        return False

    # Questions

    def known(self) -> list[Create]:
        """Return the creates that no deletion has ended: first those that live."""
        return self.creates + self.outlived

    def create(self, dot: Dot) -> Create | None:
        """Return the living create that a record made."""
        for create in self.creates:
            if create.dot == dot:
                return create
        return None

    def anchor(self) -> Create | None:
        """Return the create that decides where reading begins; None where none lives."""
        return self.creates[0] if self.creates else None

    def dots(self) -> list[Dot]:
        """Return the records of the living creates."""
        return [create.dot for create in self.creates]

    def max_pending(self) -> int:
        """Return the most pending entries at which new ones go out; 0 is no limit."""
        setting = self.mode.winner()
        return 0 if setting is None else setting.first

    def home_region(self) -> int:
        """Return the region where it is read, or ``ANYWHERE``."""
        if not self.home.settings:
            return ANYWHERE
        living = set(self.dots())
        moves: list[Setting] = []
        for setting in self.home.settings.values():
            if isinstance(setting, Home) and not living.isdisjoint(setting.creates):
                moves.append(setting)
        found = self.home.best(moves)
        return ANYWHERE if found is None else found.first

    def intervals(self, lane: bytes) -> Intervals | None:
        """Return the acknowledged intervals of a lane, for any create; not to be changed."""
        found: Intervals | None = None
        united = False
        for create in self.creates:
            intervals = create.intervals.get(lane)
            if intervals is None:
                continue
            if found is None:
                found = intervals
                continue
            if not united:
                found = found.copy()
                united = True
            found.unite(intervals)
        return found

    def not_acked(self, lane: bytes, after: ID, upto: ID) -> list[tuple[ID, ID]]:
        """Return the unacknowledged stretches of an interval: first and last ID of each."""
        intervals = self.intervals(lane)
        if intervals is None:
            intervals = Intervals()
        return [(start, min(end, upto)) for start, end in intervals.gaps(after) if start <= upto]

    def is_idle(self) -> bool:
        """Return whether nothing of it has to be remembered."""
        is_set = self.mode.settings or self.home.settings
        return not (self.creates or self.tombstones or self.acks or is_set)

    def used_bytes(self) -> int:
        """Return about how many bytes of memory it takes."""
        settings = len(self.mode.settings) + len(self.home.settings)
        total = _SMALL_BYTES * (1 + len(self.tombstones) + len(self.acks) + settings)
        for create in self.known():
            total += _CREATE_BYTES + _INTERVALS_BYTES * len(create.intervals)
        return total

    def copy(self) -> GroupState:
        """Return an equal copy."""
        twin = GroupState()
        twin.creates = [create.copy() for create in self.creates]
        twin.outlived = [create.copy() for create in self.outlived]
        twin.tombstones = self.tombstones.copy()
        twin.acks = {dot: _copied(of_lanes) for dot, of_lanes in self.acks.items()}
        twin.mode = self.mode.copy()
        twin.home = self.home.copy()
        return twin
