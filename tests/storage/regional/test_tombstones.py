"""What is left of a stream that is gone: packed and unpacked, it is what it was."""

from __future__ import annotations

from random import Random

import pytest

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.fingerprint import fingerprint, shared_state
from headrace.regions.lanes.group_state import Create, start_after
from headrace.regions.lanes.remembered import DEL, EXPIRE, Awaited, Removal, Setting, Top
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.tombstones import collect, lasts, pack_tombstone, unpack_tombstone
from headrace.storage.sharing import SEMI_STRICT
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.contents import IDMP_DURATION_S, IDMP_MAXSIZE
from headrace.storage.vectors import NO_ID, Dot, Numbers, lane_name, origin_of
from support.lanes import plain_lanes, random_stream
from support.snapshots import records_of

LIMITS = NodeLimits(4096, 100)
SEEDS = range(300)


def some_origin(random: Random) -> bytes:
    return origin_of(random.randrange(1, 16), random.choice((0, 0, 1, 300, 2**40 - 1)))


def some_id(random: Random) -> tuple[int, int]:
    ms = random.choice((0, 1, 127, 128, 1_760_000_000_000, 2**64 - 1))
    return ms, random.choice((0, 1, 17, 1 << 20 | 3, 2**64 - 1))


def some_number(random: Random) -> int:
    return random.choice((1, 127, 128, 100_000, 2**62 - 1))


def some_removal(random: Random) -> Removal:
    dot: Dot = (some_origin(random), some_number(random))
    numbers: Numbers = {
        some_origin(random): some_number(random) for _ in range(random.randrange(4))
    }
    return Removal(random.choice((DEL, EXPIRE)), dot, numbers)


def gone(random: Random, region: Region) -> RegionalStream:
    """A stream without entries, groups and settings, with lanes and removals of all kinds."""
    stream = RegionalStream(region, IDMP_DURATION_S, IDMP_MAXSIZE)
    for _ in range(random.randrange(4)):
        origin = region.origin if random.random() < 0.3 else some_origin(random)
        lane = stream.lane(lane_name(origin, some_number(random)))
        lane.log.last_ms, lane.log.last_seq = some_id(random)
        lane.log.entries_added = random.choice((0, 1, 500, 2**63 - 1))
        lane.deleted = lane.last() if random.random() < 0.7 else max(lane.last(), some_id(random))
        lane.trimmed = NO_ID if random.random() < 0.7 else some_id(random)
        lane.manual = random.random() < 0.2
        if random.random() < 0.8:
            stream.go_on_with(lane)
    stream.removals = [some_removal(random) for _ in range(random.randrange(4))]
    if random.random() < 0.3:
        stream.max_deleted_ms, stream.max_deleted_seq = some_id(random)
        stream.iids_added = random.randrange(500)
        stream.iids_duplicates = random.randrange(500)
        stream.idmp_duration_s = random.randrange(1, 500)
    stream.restored()
    return stream


def some_stable(random: Random, stream: RegionalStream) -> Numbers:
    """Return what may be stable: some of the removals, or all, or something else."""
    stable: Numbers = {some_origin(random): some_number(random)}
    for removal in stream.removals:
        if random.random() < 0.5:
            stable[removal.dot[0]] = removal.dot[1] - random.randrange(2)
    return stable


def check_equal(stream: RegionalStream, tombstone: bytes, random: Random) -> None:
    region = stream.region
    one = unpack_tombstone(tombstone, region)
    assert plain_lanes(one) == plain_lanes(stream)
    assert shared_state(one, True) == shared_state(stream, True)
    assert fingerprint(one) == fingerprint(stream)
    assert records_of(one) == records_of(stream)
    assert (one.top(), one.is_idle(), one.has_garbage(), one.exists()) == (
        *(stream.top(), stream.is_idle(), stream.has_garbage()),
        stream.exists(),
    )
    stable = some_stable(random, stream)
    stays = lasts(tombstone, stable)
    forgotten = collect(stream, stable)
    assert stays == (not forgotten)
    assert collect(one, stable) == forgotten
    assert plain_lanes(one) == plain_lanes(stream)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_that_is_gone_comes_out_as_it_was(seed: int) -> None:
    random = Random(seed)
    region = Region(random.randrange(1, 16))
    stream = gone(random, region)
    tombstone = pack_tombstone(stream)
    assert tombstone is not None
    check_equal(stream, tombstone, random)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_has_happened_to_a_stream(seed: int) -> None:
    """Either it is packed, and comes out as it was, or it has more than lanes and removals."""
    random = Random(seed)
    region = Region(1)
    stream = random_stream(random, region, random.choice((3, 10, 60)))
    numbers = region.known()
    stream.add_removal(Removal(DEL, region.next_dot(), numbers))
    stream.cover(stream.seen())
    tombstone = pack_tombstone(stream)
    if tombstone is not None:
        check_equal(stream, tombstone, random)
    else:
        early = [lane for lane in stream.lanes if lane.early]
        assert stream.exists() or early or stream.awaited or stream.group_states or stream.tops


def test_what_is_usual_is_packed_in_few_bytes() -> None:
    region = Region(1)
    region.mode = SEMI_STRICT
    region.count = 150_000
    region.learned(b"2.0", 200_000)
    stream = RegionalStream(region, IDMP_DURATION_S, IDMP_MAXSIZE)
    stream.append_next(1_760_000_000_000, [b"f", b"v"], 0, LIMITS)
    numbers = region.known()
    stream.cover(stream.seen())
    stream.add_removal(Removal(DEL, region.next_dot(), numbers))
    tombstone = pack_tombstone(stream)
    assert tombstone is not None
    assert len(tombstone) < 32
    check_equal(stream, tombstone, Random(1))


def test_a_stream_with_more_is_left_as_it_is() -> None:
    def fresh() -> RegionalStream:
        return RegionalStream(Region(1), IDMP_DURATION_S, IDMP_MAXSIZE)

    with_entry, with_top, with_wait, with_group, with_ttl, with_limits, with_iid, early = (
        fresh() for _ in range(8)
    )
    with_entry.append_next(5, [b"f", b"v"], 0, LIMITS)
    with_top.add_top(Top((b"2.0", 1), (5, 1)))
    with_wait.wait_for(Awaited(b"2.0.1", (5, 1), b"3.0.1", (6, 1)))
    with_group.add_create(b"g", Create((b"2.0", 1), start_after(NO_ID), {}))
    with_ttl.add_ttl(Setting((b"2.0", 1), 1, 2_000_000_000_000))
    with_limits.add_limits(Setting((b"2.0", 1), 1, 7, 50))
    with_iid.record_iid(b"p", b"1", 5, 1, 5)
    early.remove_entry(b"2.0.1", (5, 1))
    for stream in (
        *(with_entry, with_top, with_wait, with_group),
        *(with_ttl, with_limits, with_iid, early),
    ):
        assert pack_tombstone(stream) is None
    assert pack_tombstone(fresh()) is not None
