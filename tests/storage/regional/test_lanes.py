"""Lanes of a stream: which IDs a region makes, where entries go, and what is removed of them."""

from __future__ import annotations

import pytest

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.lane import LaneError
from headrace.regions.lanes.remembered import DEL, EXPIRE, Removal, Top
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.tombstones import forget_lanes
from headrace.storage.sharing import LIBERAL, SEMI_STRICT, STRICT
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.entry_log import ElementsTooLarge, IDNotGreater, IDsExhausted
from headrace.storage.stream.run import ID_MAX
from headrace.storage.vectors import Dot, Numbers

ID = tuple[int, int]
LIMITS = NodeLimits(4096, 100)
ENTRY = [b"f", b"v"]


def a_stream(region: int = 1, mode: int = STRICT) -> RegionalStream:
    who = Region(region)
    who.mode = mode
    return RegionalStream(who, 100, 100)


def add(stream: RegionalStream, ms: int) -> ID:
    """As ``XADD x ms f v``."""
    seq = 0 if stream.region.mode == LIBERAL else stream.next_seq(ms)
    stream.append(ms, seq, ENTRY, 0, LIMITS)
    stream.region.count += 1
    return stream.top()


def add_now(stream: RegionalStream, now_ms: int) -> ID:
    """As ``XADD x * f v``."""
    stream.append_next(now_ms, ENTRY, 0, LIMITS)
    stream.region.count += 1
    return stream.top()


def ids_of(stream: RegionalStream) -> list[ID]:
    found = []
    for part in stream.parts((0, 0), (ID_MAX, ID_MAX), 0, False):
        for number in range(part.low, part.high):
            if part.dead is None or not part.dead[number]:
                found.append((part.run.ms[number], part.run.seq[number]))
    return found


def removal(kind: int, dot: Dot, numbers: Numbers | None = None) -> Removal:
    return Removal(kind, dot, {dot[0]: dot[1], **(numbers or {})})


class Exchange:
    """Entries that regions send each other, as their records say."""

    def __init__(self) -> None:
        self.sent: dict[bytes, list[tuple[int, ID]]] = {}

    def of(self, stream: RegionalStream) -> None:
        """Note the last own entry of a stream."""
        sent = self.sent.setdefault(stream.region.origin, [])
        sent.append((stream.began, stream.top()))

    def give(self, stream: RegionalStream, origin: bytes) -> None:
        """Let a stream have all that an origin has sent."""
        for began, (ms, seq) in self.sent.pop(origin):
            stream.arrive(origin, began, False, ms, seq, ENTRY, 0, LIMITS)


# IDs


def test_strict_ids_of_one_region() -> None:
    stream = a_stream()
    assert add(stream, 100) == (100, 1)
    assert add(stream, 100) == (100, 17)
    with pytest.raises(IDNotGreater):
        add(stream, 99)
    for _ in range(3):
        add(stream, 200)
    assert ids_of(stream)[2:] == [(200, 1), (200, 17), (200, 33)]


def test_ids_in_the_same_millisecond_of_two_regions() -> None:
    first = a_stream(1)
    second = a_stream(2)
    assert add_now(first, 1589929244828) == (1589929244828, 1)
    assert add_now(second, 1589929246795) == (1589929246795, 2)
    assert add_now(first, 1589929246795) == (1589929246795, 1)
    first.arrive(b"2.0", 1, False, 1589929246795, 2, ENTRY, 0, LIMITS)
    assert add_now(first, 1589929246795) == (1589929246795, 17)
    assert ids_of(first)[1:] == [(1589929246795, 1), (1589929246795, 2), (1589929246795, 17)]


def test_a_clock_behind_others_goes_on_with_theirs() -> None:
    stream = a_stream(2)
    stream.arrive(b"3.0", 1, False, 5000, 3 + 16 * 4, ENTRY, 0, LIMITS)
    assert add_now(stream, 1000) == (5000, 2 + 16 * 5)
    assert add_now(stream, 1000) == (5000, 2 + 16 * 6)
    assert add_now(stream, 5001) == (5001, 2)


def test_a_generation_stands_in_ids() -> None:
    stream = a_stream(7)
    assert add_now(stream, 10) == (10, 7)
    stream.region.begin_epoch(1, 3, b"n")
    assert add_now(stream, 10) == (10, 3 * 2**20 + 7)
    assert add_now(stream, 10) == (10, 3 * 2**20 + 7 + 16)
    assert [lane.name for lane in stream.lanes] == [b"7.0.1", b"7.1.1"]


@pytest.mark.parametrize("mode", [STRICT, SEMI_STRICT])
def test_the_last_sequence_of_a_millisecond(mode: int) -> None:
    stream = a_stream(1, mode)
    stream.append(7, 1 + 16 * 65534, ENTRY, 0, LIMITS)
    assert add(stream, 7) == (7, 1 + 16 * 65535)
    with pytest.raises(IDNotGreater):
        add(stream, 7)
    assert add_now(stream, 7) == (8, 1)
    stream.append(ID_MAX, ID_MAX - 1, ENTRY, 0, LIMITS)
    with pytest.raises(IDsExhausted):
        add_now(stream, 7)
    with pytest.raises(IDsExhausted):
        stream.next_seq(ID_MAX)
    stream.append(ID_MAX, ID_MAX, ENTRY, 0, LIMITS)
    with pytest.raises(IDsExhausted):
        stream.append(ID_MAX, ID_MAX, ENTRY, 0, LIMITS)


def test_an_id_is_above_what_was_promised() -> None:
    stream = a_stream()
    stream.region.promise_ms = 1000
    assert add_now(stream, 5) == (1001, 1)
    assert add_now(stream, 2000) == (2000, 1)
    assert add(stream, 2500) == (2500, 1)


def test_lanes_with_ids_below_what_was_promised() -> None:
    stream = a_stream(1, SEMI_STRICT)
    assert not stream.has_made_ids()
    add(stream, 5)
    assert stream.has_made_ids()
    assert not stream.is_manual()
    stream.mark_manual()
    assert not stream.has_made_ids()
    assert stream.is_manual()
    stream.arrive(b"2.0", 1, False, 9, 2, ENTRY, 0, LIMITS)
    assert stream.foreign_seen() == {b"2.0.1": (9, 2)}
    stream.cover({b"1.0.1": (5, 1)})
    assert not stream.is_manual()


def test_liberal_ids() -> None:
    stream = a_stream(2, LIBERAL)
    assert add(stream, 110) == (110, 0)
    assert stream.next_seq(110) == 1
    assert stream.next_seq(111) == 0
    with pytest.raises(IDNotGreater):
        add(stream, 110)
    assert add_now(stream, 110) == (110, 2)
    assert add_now(stream, 111) == (111, 2)


def test_ids_that_callers_gave_are_passed() -> None:
    stream = a_stream(1, SEMI_STRICT)
    stream.append(50, 20, ENTRY, 0, LIMITS)
    assert add(stream, 50) == (50, 33)
    with pytest.raises(IDNotGreater):
        stream.append(50, 33, ENTRY, 0, LIMITS)
    assert stream.length == 2


def test_an_id_is_not_made_again_after_a_deletion() -> None:
    stream = a_stream()
    assert add(stream, 100) == (100, 1)
    stream.add_removal(removal(DEL, (b"1.0", 2)))
    stream.cover(stream.seen())
    assert stream.top() == (0, 0)
    assert add(stream, 100) == (100, 17)
    assert [lane.name for lane in stream.lanes] == [b"1.0.1", b"1.0.2"]


def test_an_id_ahead_of_the_clock_is_not_made_again_after_a_deletion() -> None:
    stream = a_stream()
    stream.region.promise_ms = 1000
    assert add_now(stream, 100) == (1001, 1)
    assert add(stream, 1003) == (1003, 1)
    stream.add_removal(removal(DEL, (b"2.0", 1)))
    stream.cover(stream.seen())
    assert add_now(stream, 101) == (1003, 17)
    assert add_now(stream, 2000) == (2000, 1)


def test_a_clock_far_behind_a_deleted_stream_makes_no_id_again() -> None:
    stream = a_stream()
    stream.region.count = 6
    moments = [100, 100, 101, 500]
    made = [add_now(stream, ms) for ms in moments]
    assert add(stream, 1_000_000) == (1_000_000, 1)
    for _ in range(3):
        stream.add_removal(removal(DEL, (b"2.0", 1)))
        stream.cover(stream.seen())
        again = [add_now(stream, ms) for ms in moments]
        assert [ms for ms, _ in again] == moments
        assert again == sorted(set(again))
        assert ids_of(stream) == again
        made += again
    assert len(set(made)) == len(made)
    assert {seq % 16 for _, seq in made} == {1}
    assert add_now(stream, 2_000_000) == (2_000_000, 1)


def test_an_id_below_the_last_one_of_a_millisecond_is_not_made_again() -> None:
    stream = a_stream()
    add(stream, 1_000_000)
    stream.cover(stream.seen())
    assert add(stream, 100) == (100, 1)
    assert add_now(stream, 100) > (100, 1 << 40)
    stream.cover(stream.seen())
    forget_lanes(stream, [b"1.0.1"])
    assert add_now(stream, 100) == (101, 1)


def test_alike_entries_come_in_steps() -> None:
    by_one = a_stream(3)
    together = a_stream(3)
    small = NodeLimits(4096, 7)
    requests = [[b"f", b"%d" % number] for number in range(50)]
    assert together.append_alike(5, requests, 0, 50, 0, small) == 0, "it begins a lane"
    for stream in (by_one, together):
        stream.append_next(5, requests[0], 0, small)
        assert stream.began == 1
    for request in requests[1:]:
        by_one.append_next(5, request, 0, small)
    assert together.append_alike(5, requests, 1, 50, 0, small) == 49
    assert together.began == 0
    assert together.top() == by_one.top() == (5, 3 + 16 * 49)
    assert ids_of(together) == ids_of(by_one) == [(5, 3 + 16 * k) for k in range(50)]
    assert together.node_count() == by_one.node_count() == 8
    nodes = [[b.node_bytes for b in s.lanes[0].log.index.blocks] for s in (by_one, together)]
    assert nodes[0] == nodes[1]


def test_alike_entries_that_do_not_fit_into_a_millisecond() -> None:
    stream = a_stream(1, SEMI_STRICT)
    stream.append(5, 1 + 16 * 65530, ENTRY, 0, LIMITS)
    requests = [ENTRY] * 20
    assert stream.append_alike(5, requests, 0, 20, 0, LIMITS) == 0
    for _ in range(5):
        stream.append_next(5, ENTRY, 0, LIMITS)
    stream.append_next(5, ENTRY, 0, LIMITS)
    assert stream.top() == (6, 1)
    assert stream.append_alike(5, requests, 0, 20, 0, LIMITS) == 20


def test_too_large_an_entry_begins_no_lane() -> None:
    stream = a_stream()
    value = bytes(1 << 30)
    with pytest.raises(ElementsTooLarge):
        stream.append_next(5, [b"f", value], 0, LIMITS)
    with pytest.raises(ElementsTooLarge):
        stream.arrive(b"2.0", 1, False, 5, 2, [b"f", value], 0, LIMITS)
    assert not stream.lanes
    assert stream.region.last_lane == 0


# Lanes


def test_a_restart_goes_on_with_the_lane_of_its_epoch() -> None:
    stream = a_stream()
    add(stream, 1)
    assert stream.began == 1
    stream.region.begin_epoch(0, 0, b"nonce")
    add(stream, 2)
    assert stream.began == 0
    stream.region.begin_epoch(1, 0, b"other")
    add(stream, 3)
    assert stream.began == 1
    assert stream.seen() == {b"1.0.1": (2, 1), b"1.1.1": (3, 1)}


def test_an_entry_that_cannot_be_the_next_one_is_refused() -> None:
    stream = a_stream()
    with pytest.raises(LaneError):
        stream.arrive(b"2.0", 0, False, 5, 2, ENTRY, 0, LIMITS)
    with pytest.raises(LaneError):
        stream.arrive(b"2.0", 1, False, 0, 0, ENTRY, 0, LIMITS)
    assert not stream.lanes
    stream.arrive(b"2.0", 1, False, 5, 2, ENTRY, 0, LIMITS)
    for new_lane in (0, 1):
        with pytest.raises(LaneError):
            stream.arrive(b"2.0", new_lane, True, 5, 2, ENTRY, 0, LIMITS)
    assert stream.seen() == {b"2.0.1": (5, 2)}
    assert not stream.lanes[0].manual
    stream.arrive(b"2.0", 0, True, 6, 2, ENTRY, 0, LIMITS)
    assert stream.lanes[0].manual


def test_own_entries_that_are_read_back() -> None:
    stream = a_stream()
    stream.arrive(b"1.0", 4, False, 5, 1, ENTRY, 0, LIMITS)
    assert stream.region.last_lane == 4
    assert add_now(stream, 5) == (5, 17)
    assert stream.began == 0
    assert ids_of(stream) == [(5, 1), (5, 17)]


def test_a_removal_that_comes_before_its_entry() -> None:
    stream = a_stream()
    assert not stream.remove_entry(b"2.0.1", (5, 2))
    assert not stream.exists()
    assert not stream.is_idle()
    assert not stream.arrive(b"2.0", 1, False, 5, 2, ENTRY, 0, LIMITS)
    assert stream.exists(), "an entry came that no deletion of the key covers"
    assert stream.length == 0
    assert stream.arrive(b"2.0", 0, False, 6, 2, ENTRY, 0, LIMITS)
    assert stream.remove_entry(b"2.0.1", (6, 2))
    assert not stream.remove_entry(b"2.0.1", (6, 2))
    assert stream.top() == (6, 2)


def test_a_trim_that_comes_before_its_entries() -> None:
    stream = a_stream()
    assert stream.trim_to({b"2.0.1": (5, 2)}) == 0
    assert not stream.is_idle()
    assert not stream.arrive(b"2.0", 1, False, 4, 2, ENTRY, 0, LIMITS)
    assert not stream.arrive(b"2.0", 0, False, 5, 2, ENTRY, 0, LIMITS)
    assert stream.arrive(b"2.0", 0, False, 5, 18, ENTRY, 0, LIMITS)
    assert stream.trim_to({b"2.0.1": (5, 17)}) == 0
    assert ids_of(stream) == [(5, 18)]


def test_a_removal_waits_for_the_entry_that_it_favours() -> None:
    stream = a_stream()
    stream.arrive(b"2.0", 1, False, 5, 2, ENTRY, 0, LIMITS)
    assert not stream.remove_for(b"1.0.1", (4, 1), b"2.0.1", (5, 2))
    assert ids_of(stream) == [(5, 2)]
    stream.arrive(b"1.0", 1, False, 4, 1, ENTRY, 0, LIMITS)
    assert ids_of(stream) == [(4, 1)]
    assert not stream.awaited
    assert not stream.remove_for(b"1.0.1", (4, 1), b"2.0.1", (6, 2))
    assert not stream.arrive(b"2.0", 0, False, 6, 2, ENTRY, 0, LIMITS)


def test_duplicates_are_two_entries() -> None:
    stream = a_stream(1, SEMI_STRICT)
    stream.append(100, 1, ENTRY, 0, LIMITS)
    stream.arrive(b"2.0", 1, False, 100, 1, ENTRY, 0, LIMITS)
    assert ids_of(stream) == [(100, 1), (100, 1)]
    assert [lane.name for lane in stream.holders(100, 1)] == [b"1.0.1", b"2.0.1"]
    assert stream.delete(100, 1)
    assert stream.length == 0
    assert (stream.max_deleted_ms, stream.max_deleted_seq) == (100, 1)


def test_as_a_plain_stream_each_id_is_there_once() -> None:
    stream = a_stream(1, SEMI_STRICT)
    for ms in range(1, 1501):
        stream.append(ms, 0, [b"f", b"first"], 0, LIMITS)
        if ms % 3 == 0:
            new_lane = 1 if ms == 3 else 0
            stream.arrive(b"2.0", new_lane, False, ms, 0, [b"f", b"second"], 0, LIMITS)
    stream.arrive(b"2.0", 0, False, 2000, 0, [b"g", b"third"], 0, LIMITS)
    plain = stream.plain()
    assert plain.length == 1501
    assert stream.length == 2001
    rows = [
        (part.run.ms[number], part.run.row(number))
        for part in plain.parts((0, 0), (ID_MAX, ID_MAX), 0, False)
        for number in range(part.low, part.high)
    ]
    assert rows[:1500] == [(ms, [b"f", b"first"]) for ms in range(1, 1501)]
    assert rows[1500] == (2000, [b"g", b"third"])


# Deleting the key


def delete_key(streams: list[RegionalStream], maker: RegionalStream) -> None:
    """One of them makes ``AA DEL``, and all apply it."""
    region = maker.region
    region.count += 1
    vector = maker.seen()
    record = Removal(DEL, (region.origin, region.count), region.known())
    for stream in streams:
        stream.region.learned(region.origin, region.count)
        stream.add_removal(record)
        stream.cover(vector)


def test_a_deletion_removes_what_its_maker_had_seen() -> None:
    first = a_stream(1)
    second = a_stream(2)
    exchange = Exchange()
    a = add_now(first, 1589929244828)
    exchange.of(first)
    exchange.give(second, b"1.0")
    b = add_now(second, 1589929246795)
    exchange.of(second)
    delete_key([first, second], first)
    assert not first.exists()
    assert a not in ids_of(second)
    exchange.give(first, b"2.0")
    assert ids_of(first) == ids_of(second) == [b]
    assert first.exists()


def test_a_deletion_that_overtakes_entries_of_others() -> None:
    """S2e: the third region has the deletion before an older entry, which it does not cover."""
    first, second, third = (a_stream(number) for number in (1, 2, 3))
    exchange = Exchange()
    add_now(first, 10)
    exchange.of(first)
    exchange.give(second, b"1.0")
    b = add_now(second, 5)
    exchange.of(second)
    delete_key([first, third], first)
    third.arrive(b"1.0", 1, False, 10, 1, ENTRY, 0, LIMITS)
    assert not third.exists()
    exchange.give(third, b"2.0")
    assert ids_of(third) == [b]


def test_a_lower_id_after_a_deletion() -> None:
    """S15: a deletion by one that had not seen the restart does not reach into the new lane."""
    first, second, third = (a_stream(number) for number in (1, 2, 3))
    exchange = Exchange()
    for ms in (100, 200):
        add(first, ms)
        exchange.of(first)
    for began, (ms, seq) in exchange.sent.pop(b"1.0"):
        second.arrive(b"1.0", began, False, ms, seq, ENTRY, 0, LIMITS)
        third.arrive(b"1.0", began, False, ms, seq, ENTRY, 0, LIMITS)
    delete_key([first, second], first)
    assert add(first, 50) == (50, 1)
    assert first.began == 4
    delete_key([second, third, first], third)
    for stream in (second, third):
        stream.arrive(b"1.0", 4, False, 50, 1, ENTRY, 0, LIMITS)
    for stream in (first, second, third):
        assert ids_of(stream) == [(50, 1)]
        assert stream.top() == (50, 1)


def test_what_xsetid_says_goes_with_a_deletion_that_has_seen_it() -> None:
    stream = a_stream(2)
    stream.add_top(Top((b"1.0", 3), (200, 0)))
    with pytest.raises(IDNotGreater):
        add(stream, 150)
    stream.add_removal(removal(DEL, (b"3.0", 1), {b"1.0": 2}))
    assert stream.top() == (200, 0)
    stream.add_removal(removal(DEL, (b"3.0", 2), {b"1.0": 3}))
    assert stream.top() == (0, 0)
    stream.add_top(Top((b"1.0", 2), (300, 0)))
    assert stream.top() == (0, 0), "it had been seen before it came"


def test_iids_of_entries_that_are_deleted_are_forgotten() -> None:
    stream = a_stream(1)
    add(stream, 10)
    stream.record_iid(b"p", b"1", 10, 1, 0)
    vector = stream.seen()
    stream.arrive(b"2.0", 1, False, 5, 2, ENTRY, 0, LIMITS)
    stream.record_iid(b"p", b"2", 5, 2, 0)
    freed = stream.cover(vector)
    assert stream.known_id(b"p", b"1", 0) is None
    assert stream.known_id(b"p", b"2", 0) == (5, 2)
    assert len(freed) == 2, "the entries, and the map there was"
    stream.cover(stream.seen())
    assert stream.idmp is None


def test_iids_of_a_single_server_are_kept_as_long_as_its_entries() -> None:
    """Their IDs do not name a region."""
    stream = a_stream(1)
    stream.arrive(b"1.0", 7, False, 10, 0, ENTRY, 0, LIMITS)
    lane = stream.lane(b"1.0.0")
    lane.log.append(20, 0, ENTRY, 0, LIMITS)
    stream.restored()
    stream.record_iid(b"p", b"1", 20, 0, 0)
    stream.cover({b"1.0.7": (10, 0)})
    assert stream.known_id(b"p", b"1", 0) == (20, 0)
    stream.cover({b"1.0.0": (20, 0)})
    assert stream.known_id(b"p", b"1", 0) is None


def test_a_covered_lane_keeps_nothing_but_where_it_has_got_to() -> None:
    stream = a_stream()
    for _ in range(1000):
        add_now(stream, 5)
    before = stream.used_bytes(0)
    freed = stream.cover(stream.seen())
    assert freed[0].effort() > 9
    assert stream.used_bytes(0) < 1500 < before
    assert stream.lanes[0].last() == (5, 1 + 16 * 999)
    assert not stream.is_idle() or stream.lanes[0].is_dead()
    assert stream.entries_added == 0


def test_an_expiry_is_a_removal_too() -> None:
    stream = a_stream()
    add(stream, 5)
    stream.add_removal(removal(EXPIRE, (b"1.0", 2)))
    stream.cover(stream.seen())
    assert not stream.exists()
    assert not stream.is_idle()
