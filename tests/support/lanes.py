"""Streams of several regions with everything that one can have, and what there is as plain data."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import headrace.regions.wing  # noqa: F401  (importing it registers regions)
from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.group_state import (
    Create,
    GroupState,
    Intervals,
    start_after,
    start_after_seen,
)
from headrace.regions.lanes.join import Join
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.remembered import (
    DEL,
    EXPIRE,
    Register,
    Removal,
    Setting,
    Tombstone,
    Top,
)
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.tombstones import unpack_tombstone
from headrace.storage.sharing import SEMI_STRICT
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.delivery import hand_out
from headrace.storage.vectors import Dot, Numbers
from support.snapshots import plain_group, plain_stream

LIMITS = NodeLimits(4096, 4)
GROUPS = (b"g", b"h\n")


class Juggler:
    """Does to one stream of region 1 whatever it and two others can do, with chosen chances."""

    def __init__(self, random: Random, region: Region) -> None:
        self.random = random
        self.region = region
        self.stream = RegionalStream(region, 100, 100)
        self.last: dict[bytes, int] = {}  # the milliseconds of each lane's last entry
        self.lane: dict[bytes, int] = {}  # the number of each foreign origin's lane
        self.now_ms = 1000

    def dot(self) -> Dot:
        """The next record of somebody."""
        if self.random.random() < 0.4:
            self.region.count += 1
            return self.region.origin, self.region.count
        origin = self.random.choice((b"2.0", b"3.0", b"3.7", b"1.9"))
        if origin == self.region.origin:
            origin = b"2.0"
        self.region.learned(origin, self.region.number_of(origin) + 1)
        return origin, self.region.number_of(origin)

    def words(self) -> list[bytes]:
        count = self.random.choice((1, 1, 2))
        return [word for _ in range(count) for word in (b"f", b"%d" % self.random.randrange(500))]

    def step(self) -> None:
        """Do one of all things."""
        choices: list[tuple[int, Callable[[], None]]] = [
            (40, self.add), (40, self.arrive), (12, self.delete), (4, self.delete_early),
            (4, self.trim), (2, self.remove), (4, self.create), (2, self.destroy), (20, self.read),
            (12, self.ack), (4, self.ack_elsewhere), (2, self.set_back), (2, self.top),
            (3, self.setting), (2, self.wait), (5, self.iid),
        ]  # fmt: skip
        weights = [weight for weight, _ in choices]
        self.random.choices([act for _, act in choices], weights)[0]()
        self.now_ms += self.random.randrange(3)

    def add(self) -> None:
        self.stream.append_next(self.now_ms, self.words(), 0, LIMITS)
        self.region.count += 1

    def arrive(self) -> None:
        origin, number = self.dot()
        if origin == self.region.origin:
            return
        begins = origin not in self.lane or self.random.random() < 0.05
        if begins:
            self.lane[origin] = number
            self.last[origin] = self.random.randrange(2000)
        self.last[origin] += self.random.randrange(1, 5)
        new_lane = self.lane[origin] if begins else 0
        manual = self.random.random() < 0.02
        seq = self.random.randrange(3)
        ms = self.last[origin]
        self.stream.arrive(origin, new_lane, manual, ms, seq, self.words(), 0, LIMITS)

    def any_id(self) -> tuple[bytes, tuple[int, int]]:
        lanes = [lane for lane in self.stream.lanes if lane.log.length]
        if not lanes:
            return b"2.0.1", (1, 1)
        lane = self.random.choice(lanes)
        part = lane.log.parts(lane.log.first_id(), lane.last(), 7, self.random.random() < 0.5)[-1]
        return lane.name, (part.run.ms[part.low], part.run.seq[part.low])

    def delete(self) -> None:
        self.stream.remove_entry(*self.any_id())

    def delete_early(self) -> None:
        name = self.random.choice((b"2.0.1", b"3.0.77", b"4.1.5"))
        self.stream.remove_entry(name, (5000 + self.random.randrange(9), 1))

    def trim(self) -> None:
        name, entry_id = self.any_id()
        vector = {name: entry_id}
        if self.random.random() < 0.2:
            vector[b"4.1.6"] = (9000, 1)
        self.stream.trim_to(vector)

    def remove(self) -> None:
        seen = self.stream.seen()
        if self.random.random() < 0.5 and seen:
            del seen[self.random.choice(list(seen))]
        kind = self.random.choice((DEL, EXPIRE))
        self.stream.add_removal(Removal(kind, self.dot(), self.region.known()))
        self.stream.cover(seen)

    def create(self) -> None:
        numbers = self.region.known()
        if self.random.random() < 0.5:
            numbers = {b"2.0": 1}
        start = self.random.choice(
            (start_after((0, 0)), start_after((1010, 3)), start_after_seen(self.stream.seen()))
        )
        self.stream.add_create(self.random.choice(GROUPS), Create(self.dot(), start, numbers))

    def destroy(self) -> None:
        tombstone = Tombstone(self.dot(), self.region.known())
        self.stream.add_tombstone(self.random.choice(GROUPS), tombstone)

    def read(self) -> None:
        for group in self.stream.groups.values():
            name = self.random.choice((b"ada", b"bob"))
            who = group.consumers.get(name) or group.create_consumer(name, self.now_ms)
            parts = places_of(group).parts(self.stream, self.random.randrange(1, 9))
            hand_out(self.stream, group, parts, who, self.now_ms)

    def ack(self) -> None:
        for name, group in self.stream.groups.items():
            for nack in group.pel.from_id(0, 0, self.random.randrange(1, 9)):
                group.ack(nack.ms, nack.seq)
            prefix = places_of(group).prefix(self.stream, group)
            if prefix:
                self.stream.acknowledge(name, self.stream.group_states[name].dots(), prefix)

    def ack_elsewhere(self) -> None:
        name, entry_id = self.any_id()
        dot = self.random.choice(((b"2.0", 1), (b"3.0", 9000), (b"1.0", 1)))
        intervals = [(name, (max(0, entry_id[0] - 3), 0), entry_id)]
        self.stream.acknowledge(self.random.choice(GROUPS), [dot], intervals)

    def set_back(self) -> None:
        for group in self.stream.groups.values():
            name, entry_id = self.any_id()
            places_of(group).set(start_after(entry_id), {name: entry_id})

    def top(self) -> None:
        self.stream.add_top(Top(self.dot(), (self.now_ms + self.random.randrange(9), 5)))

    def setting(self) -> None:
        version = self.random.randrange(1, 9)
        pick = self.random.randrange(3)
        if pick == 0:
            moment_ms = self.random.choice((-1, 2_000_000_000_000))
            self.stream.add_ttl(Setting(self.dot(), version, moment_ms))
        elif pick == 1:
            self.stream.add_limits(Setting(self.dot(), version, self.random.randrange(1, 99), 50))
        else:
            self.stream.add_mode(self.random.choice(GROUPS), Setting(self.dot(), version, 7))

    def wait(self) -> None:
        name, entry_id = self.any_id()
        self.stream.remove_for(b"5.0.1", (8000, self.random.randrange(5)), name, entry_id)

    def iid(self) -> None:
        ms, seq = self.any_id()[1]
        pid = self.random.choice((b"p", b"q"))
        self.stream.record_iid(pid, b"%d" % self.random.randrange(99), ms, seq, self.now_ms)


def random_stream(random: Random, region: Region, steps: int) -> RegionalStream:
    """Return what a stream is after so many steps."""
    region.mode = SEMI_STRICT
    juggler = Juggler(random, region)
    for _ in range(steps):
        juggler.step()
    return juggler.stream


def regional(value: object, region: Region) -> RegionalStream:
    """The stream that a region has, or remembers in a tombstone."""
    if isinstance(value, bytes):
        return unpack_tombstone(value, region)
    assert isinstance(value, RegionalStream)
    return value


# What there is, as plain data


def plain_lanes(stream: RegionalStream) -> dict[str, Any]:
    """All of a stream, what follows from the rest included."""
    return {
        "whole": (
            (stream.length, stream.last_ms, stream.last_seq, stream.entries_added),
            (stream.max_deleted_ms, stream.max_deleted_seq),
            (stream.idmp_duration_s, stream.idmp_maxsize),
            (stream.iids_added, stream.iids_duplicates, list(stream.idmp_records())),
            (stream.first_id(), stream.last_entry_id(), stream.seen(), stream.exists()),
        ),
        "lanes": [
            (lane.name, lane.deleted, lane.trimmed, sorted(lane.early), lane.manual, lane.filled)
            for lane in stream.lanes
        ],
        "logs": [_plain_log(lane.log) for lane in stream.lanes],
        "current": [lane.name for lane in stream.current_lanes()],
        "tops": [(top.dot, top.entry_id) for top in stream.tops],
        "removals": [(one.kind, one.dot, one.numbers) for one in stream.removals],
        "awaited": [
            (one.winner_lane, one.winner_id, one.lane, one.entry_id) for one in stream.awaited
        ],
        "births": {name: _plain_births(state) for name, state in stream.group_states.items()},
        "ttl": _plain_register(stream.ttl),
        "limits": _plain_register(stream.limits),
        "groups": [plain_group(group) for group in stream.groups.values()],
        "places": [
            (
                places.anchor,
                places.start.encode(),
                places.place.copy(),
                places.begun.copy(),
                places.again.copy(),
            )
            for places in map(places_of, stream.groups.values())
        ],
    }


def _plain_log(log: Any) -> tuple[Any, ...]:
    """A lane's entries; what was deleted last is noted of the stream, and not of the lane."""
    found = plain_stream(log)
    return found[0], log.entries_added, *found[3:]


def _plain_intervals(of_lanes: dict[bytes, Intervals]) -> object:
    return {lane: intervals.pairs() for lane, intervals in of_lanes.items()}


def _plain_births(state: GroupState) -> object:
    return (
        [
            (one.dot, one.start.encode(), one.numbers, _plain_intervals(one.intervals))
            for one in state.known()
        ],
        [(one.dot, one.numbers) for one in state.tombstones],
        {dot: _plain_intervals(of_lanes) for dot, of_lanes in state.acks.items()},
        _plain_register(state.mode),
    )


def _plain_register(register: Register) -> object:
    return {
        origin: (one.dot, one.version, one.first, one.second)
        for origin, one in register.settings.items()
    }


def copied(stream: RegionalStream, region: Region | None = None) -> RegionalStream:
    """An equal stream, of the same region unless another is given."""
    region = stream.region if region is None else region
    twin = RegionalStream(region, stream._usual_duration_s, stream._usual_maxsize)
    for lane in stream.lanes:
        like = Lane(lane.name)
        like.log.copy_entries(lane.log)
        like.deleted = lane.deleted
        like.trimmed = lane.trimmed
        like.remember_only(lane.early.copy())
        like.manual = lane.manual
        twin.insert(like)
    for lane in stream.current_lanes():
        twin.go_on_with(twin.lane(lane.name))
    twin.tops = stream.tops.copy()
    twin.removals = stream.removals.copy()
    twin.awaited = stream.awaited.copy()
    twin.group_states = {name: state.copy() for name, state in stream.group_states.items()}
    twin.ttl = stream.ttl.copy()
    twin.limits = stream.limits.copy()
    twin.idmp_duration_s = stream.idmp_duration_s
    twin.idmp_maxsize = stream.idmp_maxsize
    for name, group in stream.groups.items():
        twin.groups[name] = group.copy()
        places_of(twin.groups[name]).group_state = twin.group_states[name]
    twin.idmp = None if stream.idmp is None else stream.idmp.copy()
    twin.iids_added = stream.iids_added
    twin.iids_duplicates = stream.iids_duplicates
    twin.max_deleted_ms = stream.max_deleted_ms
    twin.max_deleted_seq = stream.max_deleted_seq
    twin.restored()
    return twin


def join(
    mine: RegionalStream,
    copy: RegionalStream,
    my_numbers: Numbers,
    copy_numbers: Numbers,
    limits: NodeLimits,
) -> None:
    """Make ``mine`` the join of both at once; see ``Join``."""
    joining = Join(mine, copy, my_numbers, copy_numbers, limits)
    while joining.step():
        pass
