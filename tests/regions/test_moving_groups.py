"""A group moves from one region to another: nothing is read twice, and nothing is skipped."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace.regions.exchange.effects import EffectError, apply_record, replication
from headrace.regions.exchange.intake import units_of
from headrace.regions.files.backlog import Batch
from headrace.regions.files.pieces import Piece
from headrace.regions.knowledge.records import is_numbered
from headrace.regions.lanes.fingerprint import shared_state
from headrace.regions.lanes.stream import RegionalStream
from support.client import WireError
from support.lanes import copied
from support.mesh import Mesh, RegionProcess, wait_until
from support.near_regions import Link, NearRegion, linked, named, replayed, sync


def regions(folder: Path, count: int, mode: bytes = b"strict") -> list[NearRegion]:
    numbers = tuple(range(1, count + 1))
    return [
        NearRegion(number, folder, mode, tuple(each for each in numbers if each != number))
        for number in numbers
    ]


def read(region: NearRegion, consumer: str, *options: object, key: str = "x") -> list[bytes]:
    words = ["XREADGROUP", "GROUP", "g", consumer, *map(str, options), "STREAMS", key, ">"]
    reply = region.call(*words)
    if reply is None:
        return []
    assert isinstance(reply, list), reply
    return [entry[0] for entry in reply[0][1]]


def pending(region: NearRegion) -> Any:
    """All that is pending: ID, consumer, idle, deliveries."""
    return region.call("XPENDING x g - + 1000")


def summary(region: NearRegion) -> Any:
    return region.call("XPENDING x g")


def xadd(region: NearRegion) -> bytes:
    found = region.call("XADD x * f v")
    assert isinstance(found, bytes)
    return found


def ids(region: NearRegion) -> list[bytes]:
    reply = region.call("XRANGE x - +")
    assert isinstance(reply, list)
    return [entry[0] for entry in reply]


def stream_of(region: NearRegion, key: bytes = b"x") -> RegionalStream:
    found = region.server.data.dbs[0][key].value
    assert isinstance(found, RegionalStream)
    return found


def local_state(region: NearRegion) -> object:
    """Return what concerns this region alone, and all that concerns all."""
    groups = region.call("XINFO GROUPS x")
    assert isinstance(groups, list)
    consumers = region.call("XINFO CONSUMERS x g")
    assert isinstance(consumers, list)
    names = [dict(zip(each[::2], each[1::2], strict=True))[b"name"] for each in consumers]
    return groups, names, pending(region), shared_state(stream_of(region))


def by_time(stream: RegionalStream) -> list[tuple[int, int]]:
    chunks = stream.groups[b"g"].by_time.chunks
    return [(nack.ms, nack.seq) for chunk in chunks for nack in chunk.live()]


MOVED = "AAMOVED group reads in region %d"


def test_nothing_is_read_twice_after_a_move(tmp_path: Path) -> None:
    """The table of acknowledgements, with a move where it has the reader go by itself."""
    one, two = regions(tmp_path, 2)
    links = linked([one, two])
    for ms in (110, 120, 130):
        one.call("XADD", "x", ms, "f", "v")
    one.call("XGROUP CREATE x g 0")
    assert read(one, "Alice") == [b"110-1", b"120-1", b"130-1"]
    assert one.call("XACK x g 110-1") == 1
    sync(links)
    assert one.call("XACK x g 130-1") == 1  # beyond the prefix: nobody is told
    sync(links)
    move(one, 2)
    sync(links)
    assert summary(one) == [0, None, None, None]
    assert read(two, "Bob") == []
    two.clock.ms += 105
    assert pending(two) == [[b"120-1", b"Alice", 105, 1]]
    assert two.call("XACK x g 120-1") == 1
    sync(links)
    assert pending(two) == pending(one) == []
    assert str(one.call("XREADGROUP GROUP g Alice STREAMS x >")) == MOVED % 2
    added = [xadd(two), xadd(one)]
    sync(links)
    assert read(two, "Bob") == sorted(added)
    move(two, 1)
    sync(links)
    assert read(one, "Alice") == []
    assert [each[:2] for each in pending(one)] == [[each, b"Bob"] for each in sorted(added)]


def test_who_is_refused(tmp_path: Path) -> None:
    one, two = regions(tmp_path, 2)
    links = linked([one, two])
    one.call("XADD x * f v")
    one.call("XGROUP CREATE x g 0")
    entry = read(one, "Alice")[0]
    waiting = one.client()
    waiting.call(*"XREADGROUP GROUP g Carol BLOCK 0 STREAMS x >".split())
    assert waiting.waits
    sync(links)
    move(one, 2)
    one.serve()
    assert str(waiting.reply()) == MOVED % 2
    for words in (
        "XREADGROUP GROUP g Alice STREAMS x >",
        "XREADGROUP GROUP g Alice CLAIM 0 STREAMS x >",
        f"XACK x g {entry.decode()}",
        f"XACK x g {entry.decode()} 1-1",
        f"XACKDEL x g IDS 1 {entry.decode()}",
        f"XCLAIM x g Alice 0 {entry.decode()}",
        "XAUTOCLAIM x g Alice 0 0",
        f"XNACK x g FAIL IDS 1 {entry.decode()}",
        "XGROUP SETID x g 0",
        "AA MOVE x g 1",
    ):
        assert str(one.call(words)) == MOVED % 2, words
    assert one.call("XREADGROUP GROUP g Alice STREAMS x 0") == [[b"x", []]]
    assert read(two, "Bob") == [entry]  # it has not heard of the move
    sync(links)
    assert home(one) == home(two) == 2
    assert str(one.call("AA MOVE x g 9")).startswith("ERR that region does not take part")
    assert "no such key" in str(one.call("AA MOVE y g 2")).lower()
    assert "no such key" in str(one.call("AA MOVE x h 2")).lower()
    assert "syntax error" in str(one.call("AA MOVE x g 2 NOW"))
    assert "between 1 and 15" in str(one.call("AA MOVE x g 16"))


def test_a_group_is_free_again(tmp_path: Path) -> None:
    one, two = regions(tmp_path, 2)
    links = linked([one, two])
    entry = xadd(one)
    one.call("XGROUP CREATE x g 0")
    sync(links)
    move(one, 2)
    sync(links)
    assert read(two, "Bob") == [entry]
    assert str(one.call("AA MOVE x g *")) == MOVED % 2
    assert two.call("AA", "MOVE", "x", "g", "*") == b"OK"
    sync(links)
    assert home(one) is home(two) is None
    assert [each[1] for each in pending(two)] == [b"Bob"]
    assert read(one, "Alice") == [entry]  # at least once, as ever


def test_a_region_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    one, two = regions(tmp_path, 2)
    links = linked([one, two])
    first = xadd(one)
    second = xadd(one)
    one.call("XGROUP CREATE x g 0")
    read(one, "Alice")
    one.call("XACK", "x", "g", second)
    sync(links)
    move(one, 2)
    assert one.call("AA MOVE x g 1 FORCE") == b"OK"  # the other never comes back
    assert read(one, "Alice") == [first]  # nothing is skipped, and what is acknowledged stays so
    sync(links)
    assert home(two) == 1
    assert str(two.call("XREADGROUP GROUP g Bob STREAMS x >")) == MOVED % 1


def test_what_is_pending_moves_as_it_is(tmp_path: Path) -> None:
    one, two = regions(tmp_path, 2)
    links = linked([one, two])
    entries = [xadd(one) for _ in range(12)]
    one.call("XGROUP CREATE x g 0")
    for consumer in ("Alice", "Bob", "Alice", "Carol"):
        read(one, consumer, "COUNT", 3)
        one.clock.ms += 10
    one.call("XNACK", "x", "g", "FAIL", "IDS", "2", entries[4], entries[1])
    one.call("XNACK", "x", "g", "FATAL", "IDS", "1", entries[2])
    one.call("XCLAIM", "x", "g", "Dave", "0", entries[6])
    one.call("XACK", "x", "g", entries[7])
    one.call("XDEL", "x", entries[8])
    before = pending(one)
    before_moving = copied(stream_of(one))
    assert [each for each in before if each[0] == entries[4]] == [[entries[4], b"", -1, 1]]
    move(one, 2)
    sync(links)
    two.clock.ms = one.clock.ms
    assert pending(two) == before
    assert pending(one) == []
    assert by_time(stream_of(two)) == by_time(before_moving)
    reply: Any = two.call("XREADGROUP GROUP g Eve COUNT 3 CLAIM 0 STREAMS x >")
    assert [entry[0] for entry in reply[0][1]] == [entries[4], entries[1], entries[2]]
    assert read(two, "Eve") == []


def test_very_much_is_one_transaction_or_nothing(tmp_path: Path) -> None:
    one, two = regions(tmp_path, 2)
    links = linked([one, two])
    count = 4500
    for _ in range(count):
        one.call("XADD", "x", "*", "f", "v")
    one.call("XGROUP CREATE x g 0")
    read(one, "Alice")
    sync(links)
    one.server.config.aa_transaction_max_bytes = 1 << 16
    before = one.path.read_bytes(), one.region.count
    assert "aa-transaction-max-bytes" in str(one.call("AA MOVE x g 2"))
    one.write()
    assert (one.path.read_bytes(), one.region.count) == before
    one.server.config.aa_transaction_max_bytes = 1 << 24
    move(one, 2)
    one.write()
    tail = one.path.read_bytes()[len(before[0]) :]
    assert tail.count(b"PENDING") == 3
    assert tail.count(b"MULTI") == 1
    sync(links)
    assert summary(two)[0] == count
    assert summary(one)[0] == 0


def test_pending_entries_that_have_not_arrived_are_waited_for(tmp_path: Path) -> None:
    """What the old region has read of a third one may arrive after the group."""
    one, two, three = regions(tmp_path, 3)
    links = named(linked([one, two, three]))
    links[1, 2].relays = False
    one.call("XGROUP CREATE x g 0 MKSTREAM")
    sync(list(links.values()))
    entry = xadd(three)
    three.call("XGROUP CREATE x late 0")
    post(links[3, 1])
    assert read(one, "Alice") == [entry]
    move(one, 2)
    post(links[1, 2])
    on_its_way = "AAMOVED group is on its way"
    for words in (
        "XREADGROUP GROUP g Bob STREAMS x >",
        f"XCLAIM x g Bob 0 {entry.decode()}",
        "XAUTOCLAIM x g Bob 0 0",
        "AA MOVE x g 1",
    ):
        assert str(two.call(words)).startswith(on_its_way), words
    post(links[3, 2])
    assert read(two, "Bob") == []
    assert [each[:2] for each in pending(two)] == [[entry, b"Alice"]]
    claimed: Any = two.call("XCLAIM", "x", "g", "Bob", "0", entry)
    assert claimed[0][0] == entry


def test_what_is_lost_is_not_waited_for(tmp_path: Path) -> None:
    one, two, three = regions(tmp_path, 3)
    links = named(linked([one, two, three]))
    links[1, 2].relays = False
    one.call("XGROUP CREATE x g 0 MKSTREAM")
    sync(list(links.values()))
    xadd(three)
    post(links[3, 1])
    read(one, "Alice")
    move(one, 2)
    post(links[1, 2])
    assert str(two.call("AA MOVE x g 2")).startswith("AAMOVED group is on its way")
    assert two.call("AA MOVE x g 2 FORCE") == b"OK"
    later = xadd(two)
    assert read(two, "Bob") == [later]


def test_what_has_not_arrived_is_acknowledged_by_nobody(tmp_path: Path) -> None:
    one, two, three = regions(tmp_path, 3)
    links = named(linked([one, two, three]))
    links[1, 2].relays = False
    one.call("XGROUP CREATE x g 0 MKSTREAM")
    done = xadd(three)
    sync(list(links.values()))
    entry = xadd(three)
    post(links[3, 1])
    assert read(one, "Alice") == [done, entry]
    one.server.config.aa_ack_interval_ms = 1000  # the move is faster than what is acknowledged
    one.call("XACK", "x", "g", done)
    move(one, 2)
    post(links[1, 2])
    two.region.unpublished[b"x", b"g"] = None  # as after a start
    two.publish()
    assert two.call("AA MOVE x g 1 FORCE") == b"OK"
    assert pending(two) == []
    sync(list(links.values()))
    assert [each[:2] for each in pending(one)] == [[entry, b"Alice"]]


def test_a_copy_tells_where_a_group_is_read(tmp_path: Path) -> None:
    """A region that was too far behind hears of a move by a copy of the state."""
    one, two, three = regions(tmp_path, 3)
    links = named(linked([one, two, three]))
    entries = [xadd(one) for _ in range(3)]
    one.call("XGROUP CREATE x g 0")
    sync(list(links.values()))
    assert read(three, "Carol", "COUNT", 1) == entries[:1]
    move(one, 2)
    post(links[1, 2])
    mine, theirs = three.region.known(), two.region.known()
    joining = replication().join(three.server, b"x", copied(stream_of(two)), mine, theirs)
    assert joining is not None
    while joining():
        pass
    for origin, number in theirs.items():
        three.region.learned(origin, number)
    assert str(three.call("XREADGROUP GROUP g Carol STREAMS x >")) == MOVED % 2
    three.publish()
    assert pending(three) == []
    post(links[3, 2])
    assert [each[:2] for each in pending(two)] == [[entries[0], b"Carol"]]
    assert read(two, "Bob") == entries[1:]


@pytest.mark.parametrize("is_forced", [False, True])
def test_what_the_target_has_acknowledged_stays_so(tmp_path: Path, is_forced: bool) -> None:
    """Beyond a gap, the region that a group moves to has told nobody what is acknowledged there."""
    one, two, three = found = regions(tmp_path, 3)
    links = linked(found)
    entries = [xadd(one) for _ in range(10)]
    one.call("XGROUP CREATE x g 0")
    sync(links)
    assert read(one, "Alice", "COUNT", 6) == entries[:6]
    assert read(two, "Bob") == entries
    assert two.call("XACK", "x", "g", *entries[1:9]) == 8
    if is_forced:
        assert two.call("AA MOVE x g 2 FORCE") == b"OK"
    else:
        move(one, 2)
    sync(links)
    left = [[entries[0], b"Bob"], [entries[9], b"Bob"]]
    assert [each[:2] for each in pending(two)] == left
    assert local_state(replayed(two, tmp_path)) == local_state(two)
    assert two.call("AA MOVE x g *") == b"OK"
    sync(links)
    assert read(two, "Bob") == []
    assert read(three, "Carol") == [entries[0], entries[9]]


def units_behind(region: NearRegion, number: int) -> list[Batch]:
    """Return what a region has written behind a record, each unit by itself."""
    batch = region.backlog.after(region.region.origin, number, 1 << 20)
    assert batch is not None
    units, _ = units_of(Piece(batch.origin, batch.first, batch.count, batch.ms, batch.payload))
    found: list[Batch] = []
    first = batch.first
    for unit in units:
        payload = batch.payload[unit.start : unit.end]
        found.append(Batch(batch.origin, first, len(unit.records), batch.ms, payload, []))
        first += len(unit.records)
    return found


@pytest.mark.parametrize("most_bytes", [1 << 20, 1])
def test_what_is_handed_on_is_acknowledged_by_nobody_meanwhile(
    tmp_path: Path, most_bytes: int
) -> None:
    """All comes in one step. Where it is too large for that, it is given once more at worst."""
    one, two = regions(tmp_path, 2)
    links = linked([one, two])
    entries = [xadd(one) for _ in range(4)]
    one.call("XGROUP CREATE x g 0")
    sync(links)
    assert read(one, "Alice", "COUNT", 3) == entries[:3]
    assert two.call("AA MOVE x g 2 FORCE") == b"OK"
    one.server.config.aa_transaction_max_bytes = most_bytes
    post(named(links)[2, 1])
    one.publish()
    one.write()
    done: set[bytes] = set()
    for batch in units_behind(one, two.region.number_of(one.region.origin)):
        two.take(batch)
        for entry in read(two, "Bob", "COUNT", 1):
            done.add(entry)
            assert two.call("XACK", "x", "g", entry) == 1
    done.update(read(two, "Bob"))
    assert done | {each[0] for each in pending(two)} == set(entries)
    assert pending(one) == []


def test_places_that_do_not_touch_skip_nothing(tmp_path: Path) -> None:
    one, two = regions(tmp_path, 2)
    links = linked([one, two])
    entries = [xadd(one) for _ in range(6)]
    one.call("XGROUP CREATE x g 0")
    sync(links)
    assert read(two, "Bob", "COUNT", 2) == entries[:2]
    one.call("XGROUP", "SETID", "x", "g", entries[3])
    assert read(one, "Alice") == entries[4:]
    move(one, 2)
    sync(links)
    assert read(two, "Bob")[:2] == entries[2:4]
    assert {each[0] for each in pending(two)} == set(entries)


def test_places_that_touch_become_one(tmp_path: Path) -> None:
    one, two = regions(tmp_path, 2)
    links = linked([one, two])
    entries = [xadd(one) for _ in range(6)]
    one.call("XGROUP CREATE x g 0")
    sync(links)
    assert read(two, "Bob", "COUNT", 2) == entries[:2]
    assert read(one, "Alice", "COUNT", 4) == entries[:4]
    one.call("XACK", "x", "g", *entries[1:3])
    move(one, 2)
    sync(links)
    assert read(two, "Bob") == entries[4:]
    holders = {each[0]: each[1] for each in pending(two)}
    assert holders == {
        **dict.fromkeys((entries[0], *entries[4:]), b"Bob"),
        entries[3]: b"Alice",
    }


def moved_with_a_create_of_a_third(
    folder: Path,
) -> tuple[list[NearRegion], dict[tuple[int, int], Link], bytes]:
    """Region 1 moves a group to region 2, which has not heard yet that region 3 has made it.

    Returns: the regions, the links between them, and an entry that the group has been given.
    """
    found = regions(folder, 3)
    one, _, three = found
    links = named(linked(found))
    links[1, 2].relays = False
    entry = xadd(one)
    sync(list(links.values()))
    three.call("XGROUP CREATE x g 0")
    post(links[3, 1])
    assert read(one, "Alice") == [entry]
    move(one, 2)
    post(links[1, 2])
    return found, links, entry


def test_a_create_of_a_third_region_may_arrive_later(tmp_path: Path) -> None:
    (one, two, _), links, entry = moved_with_a_create_of_a_third(tmp_path)
    assert [each[:2] for each in pending(two)] == [[entry, b"Alice"]]
    post(links[3, 2])
    sync(list(links.values()))
    assert [each[:2] for each in pending(two)] == [[entry, b"Alice"]]
    assert shared_state(stream_of(one)) == shared_state(stream_of(two))


@pytest.mark.parametrize("request_line", ["XADD x * f v", "XGROUP CREATE x h $ MKSTREAM"])
def test_a_stream_expires_but_for_a_create_that_has_come_early(
    tmp_path: Path, request_line: str
) -> None:
    """Region 2 has the create of region 3 from region 1, so its expiry does not end the group."""
    found, links, _ = moved_with_a_create_of_a_third(tmp_path)
    one, two, three = found
    assert two.call("PEXPIRE x 5") == 1
    two.clock.ms += 10
    assert two.call(request_line)
    groups = two.call("XINFO GROUPS x")
    assert isinstance(groups, list)
    assert b"g" in [group[1] for group in groups]
    sync(list(links.values()))
    assert ids(one) == ids(two) == ids(three)
    states = [shared_state(stream_of(region)) for region in found]
    assert states[0] == states[1] == states[2]


def test_removing_wins_over_moving(tmp_path: Path) -> None:
    for removal in ("XGROUP DESTROY x g", "DEL x"):
        one, two = regions(tmp_path, 2)
        links = linked([one, two])
        one.call("XADD x * f v")
        one.call("XGROUP CREATE x g 0")
        read(one, "Alice")
        sync(links)
        move(one, 2)
        assert two.call(removal) == 1
        sync(links)
        for region in (one, two):
            groups = region.call("XINFO GROUPS x")
            assert not groups or "no such key" in str(groups)
        one.call("XGROUP CREATE x g 0 MKSTREAM")
        sync(links)
        assert home(one) is home(two) is None  # a group that is made anew is no more there


def test_a_group_that_is_made_anew_takes_nothing_of_the_one_before(tmp_path: Path) -> None:
    one, two = regions(tmp_path, 2)
    links = named(linked([one, two]))
    entry = xadd(one)
    one.call("XGROUP CREATE x g 0")
    assert read(one, "Alice") == [entry]
    move(one, 2)
    sync(list(links.values()))
    assert one.call("AA MOVE x g 1 FORCE") == b"OK"
    post(links[1, 2])
    two.publish()  # it gives back what it has of the group
    assert one.call("XGROUP DESTROY x g") == 1
    one.call("XGROUP CREATE x g 0")
    sync(list(links.values()))
    assert pending(one) == []
    assert read(one, "Alice") == [entry]


def test_what_hangs_on_a_create_that_has_ended_goes_to_no_other_one(tmp_path: Path) -> None:
    """Region 3 has made the group, region 2 has destroyed it, region 1 has made it anew."""
    one, two, three = regions(tmp_path, 3)
    links = named(linked([one, two, three]))
    entry = xadd(three)
    sync(list(links.values()))
    for link in links.values():
        link.relays = False
    three.call("XGROUP CREATE x g 0")
    post(links[3, 2])
    assert two.call("XGROUP DESTROY x g") == 1
    post(links[2, 1])
    one.call("XGROUP CREATE x g 0")
    post(links[1, 3])
    assert read(three, "Alice") == [entry]
    move(three, 1)
    post(links[3, 1])
    assert pending(one) == []
    assert read(one, "Bob") == [entry]
    sync(list(links.values()))
    assert [each[:2] for each in pending(one)] == [[entry, b"Bob"]]
    assert shared_state(stream_of(one)) == shared_state(stream_of(three))


def test_concurrent_moves_end_in_one_region(tmp_path: Path) -> None:
    one, two, three = regions(tmp_path, 3)
    links = linked([one, two, three])
    entries = [xadd(one) for _ in range(6)]
    one.call("XGROUP CREATE x g 0")
    sync(links)
    assert read(one, "Alice", "COUNT", 2) == entries[:2]
    move(one, 2)
    move(three, 1)
    sync(links)
    assert home(one) == home(two) == home(three) == 1  # the higher region's
    assert [each[:2] for each in pending(one)] == [[each, b"Alice"] for each in entries[:2]]
    assert pending(two) == pending(three) == []
    assert read(one, "Alice") == entries[2:]


def test_garbage_is_refused(tmp_path: Path) -> None:
    (one,) = regions(tmp_path, 1)
    for text in (
        "AA MOVE x g",
        "AA MOVE x g 2.0=1 16 1",
        "AA MOVE x g 2.0 1 1",
        "AA MOVE x g 2.0=1 1 v",
        "AA HAND x g 1 0 PLACES 0 - -",
        "AA HAND x g 1 0 PLACES 0 - 2.0.1=5-1 -",
        "AA HAND x g 0 0 PLACES 0 - - -",
        "AA HAND x g 1 1 2.0=1 0 PLACES 0 - - -",
        "AA HAND x g 1 0 PENDING OF c 2 5-1 7 1",
        "AA HAND x g 1 0 PENDING 1 5-1 7 1",
        "AA HAND x g 1 0 PENDING OF c 1 5-1 7 -1",
        "AA HAND x g 1 0 PENDING OF c 1 5-1 7 9999999999999999999",
        "AA HAND x g 1 9999999 PLACES 0 - - -",
    ):
        words = text.encode().split()
        assert is_numbered(words)
        with pytest.raises(EffectError):
            apply_record(one.server, b"2.0", 1, words, False)
    assert not len(one.server.data.dbs[0])
    assert not len(one.server.data.tombstones)


def home(region: NearRegion) -> object:
    reply = region.call("XINFO GROUPS x")
    assert isinstance(reply, list)
    return dict(zip(reply[0][::2], reply[0][1::2], strict=True))[b"home"]


def move(region: NearRegion, to: int) -> None:
    assert region.call("AA", "MOVE", "x", "g", to) == b"OK"


def post(link: Link) -> None:
    link.post()
    while link.deliver():
        pass


@pytest.mark.parametrize("seed", range(12))
def test_planned_moves_give_nothing_twice(tmp_path: Path, seed: int) -> None:
    """The group moves about; only where it is readers read and acknowledge, as they are told to."""
    dice = random.Random(seed)
    mode = dice.choice((b"strict", b"liberal"))
    found = regions(tmp_path, dice.choice((2, 3)), mode)
    links = linked(found)
    for link in links:
        link.relays = dice.random() < 0.5
    found[0].call("XGROUP CREATE x g 0 MKSTREAM")
    sync(links)
    move(found[0], 1)
    sync(links)
    given: dict[bytes, int] = {}
    acked: set[bytes] = set()
    for _ in range(200):
        region = dice.choice(found)
        step = dice.random()
        if step < 0.25:
            region.call("XADD", "x", "*", "f", "v")
            region.clock.ms += dice.choice((0, 1, 20))
        elif step < 0.45:
            reply = region.call(f"XREADGROUP GROUP g c{dice.randrange(3)} COUNT 3 STREAMS x >")
            if isinstance(reply, list):
                for entry in reply[0][1]:
                    given[entry[0]] = given.get(entry[0], 0) + 1
        elif step < 0.60:
            reply = pending(region)
            if isinstance(reply, list) and reply:
                entry = dice.choice(reply)[0]
                if region.call("XACK", "x", "g", entry) == 1:
                    assert entry not in acked
                    acked.add(entry)
        elif step < 0.65:
            region.call("AA", "MOVE", "x", "g", dice.randrange(1, len(found) + 1))
        elif step < 0.67:
            where = found.index(region)
            twin = replayed(region, tmp_path)
            assert local_state(twin) == local_state(region)
            found[where] = twin
            for link in links:
                link.replace(region, twin)
        elif step < 0.85:
            dice.choice(links).post()
        else:
            dice.choice(links).deliver()
    sync(links)
    (place,) = {home(region) for region in found}
    assert isinstance(place, int)
    last = found[place - 1]
    for entry in read(last, "c"):
        given[entry] = given.get(entry, 0) + 1
    assert set(given) == set(ids(last))
    assert set(given.values()) <= {1}
    assert {each[0] for each in pending(last)} == set(given) - acked
    for region in found:
        assert shared_state(stream_of(region)) == shared_state(stream_of(last))
        if region is not last:
            assert pending(region) == []


@pytest.mark.parametrize("seed", range(12))
def test_moves_at_any_time_skip_nothing(tmp_path: Path, seed: int) -> None:
    """Regions move the group at once, by force, and free it; readers read everywhere."""
    dice = random.Random(1000 + seed)
    found = regions(tmp_path, dice.choice((2, 3)))
    links = linked(found)
    for link in links:
        link.relays = dice.random() < 0.5
    found[0].call("XGROUP CREATE x g 0 MKSTREAM")
    sync(links)
    done: set[bytes] = set()
    for _ in range(250):
        region = dice.choice(found)
        step = dice.random()
        if step < 0.25:
            region.call("XADD", "x", "*", "f", "v")
            region.clock.ms += dice.choice((0, 1, 20))
        elif step < 0.45:
            region.call(f"XREADGROUP GROUP g c{dice.randrange(3)} COUNT 3 STREAMS x >")
        elif step < 0.60:
            reply = pending(region)
            if isinstance(reply, list) and reply:
                entry = dice.choice(reply)[0]
                if region.call("XACK", "x", "g", entry) == 1:
                    done.add(entry)
        elif step < 0.70:
            to = dice.choice(("*", *range(1, len(found) + 1)))
            region.call("AA", "MOVE", "x", "g", to, *(("FORCE",) if dice.random() < 0.5 else ()))
        elif step < 0.72:
            where = found.index(region)
            twin = replayed(region, tmp_path)
            assert local_state(twin) == local_state(region)
            found[where] = twin
            for link in links:
                link.replace(region, twin)
        elif step < 0.85:
            dice.choice(links).post()
        else:
            dice.choice(links).deliver()
    sync(links)
    last = found[0]
    assert last.call("AA MOVE x g 1 FORCE") == b"OK"
    sync(links)
    read(last, "c")
    assert {each[0] for each in pending(last)} | done == set(ids(last))
    for region in found:
        assert shared_state(stream_of(region)) == shared_state(stream_of(last))
        if region is not last:
            assert pending(region) == []


def test_regions_that_are_processes(two_regions: Mesh) -> None:
    """A blocked reader is answered; files and bases hold where the group is, and what it holds."""
    one, two = two_regions[1], two_regions[2]
    entries = [one.xadd("x") for _ in range(4)]
    one.call("XGROUP", "CREATE", "x", "g", "0")
    two_regions.sync()
    assert ids_in(one.call("XREADGROUP", "GROUP", "g", "Alice", "COUNT", 3, "STREAMS", "x", ">"))
    one.call("XACK", "x", "g", entries[1])
    with one.client() as waiting:
        one.call("XREADGROUP", "GROUP", "g", "Alice", "STREAMS", "x", ">")
        waiting.send_command("XREADGROUP", "GROUP", "g", "Bob", "BLOCK", 0, "STREAMS", "x", ">")
        wait_until(lambda: b"Bob" in str(one.call("XINFO", "CONSUMERS", "x", "g")).encode(), one)
        assert one.call("AA", "MOVE", "x", "g", 2) == b"OK"
        assert waiting.read() == b"-AAMOVED group reads in region 2\r\n"
    two_regions.sync()
    held = [entries[0], entries[2], entries[3]]
    for rewrites in (False, True):
        for region in (one, two):
            if rewrites:
                region.call("BGREWRITEAOF")
                wait_until(partial(is_rewritten, region), region)
            region.restart(crash=not rewrites)
            region.wait_until_writable()
        summary = two.call("XPENDING", "x", "g")
        assert isinstance(summary, list)
        assert summary[0] == len(held)
        assert two.call("XREADGROUP", "GROUP", "g", "Bob", "STREAMS", "x", ">") is None
        for words in ("XREADGROUP GROUP g c STREAMS x >", "XACK x g 1"):
            with pytest.raises(WireError, match="AAMOVED group reads in region 2"):
                one.call(*words.split())
        assert two.call("XACK", "x", "g", held.pop()) == 1
    two_regions.sync()
    assert one.call("AA", "DIGEST", "x") == two.call("AA", "DIGEST", "x")


def ids_in(reply: object) -> list[bytes]:
    assert isinstance(reply, list), reply
    return [entry[0] for entry in reply[0][1]]


def is_rewritten(region: RegionProcess) -> bool:
    return region.info("persistence")["aof_rewrite_in_progress"] == "0"
