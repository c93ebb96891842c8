"""Effects: what commands make of them in one region is what every other region has afterwards."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import cast

import pytest

from headrace.regions.exchange.effects import EffectError, apply_record, replication
from headrace.regions.lanes.fingerprint import fingerprint
from support.regions import Record, RegionInProcess, synchronize

Pair = tuple[RegionInProcess, RegionInProcess]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return RegionInProcess(tmp_path, 1), RegionInProcess(tmp_path, 2)


def ids(reply: object) -> list[bytes]:
    return [entry[0] for entry in cast("list[list[bytes]]", reply)]


def halves(entry_id: bytes) -> list[int]:
    return [int(half) for half in entry_id.split(b"-")]


def streams(region: RegionInProcess) -> dict[bytes, bytes]:
    """A fingerprint of all that is shared, by key."""
    found = {}
    for keyspace in (region.server.data.dbs[0], region.server.data.tombstones):
        for key in keyspace.names():
            found[key] = fingerprint(region.stream(key))
    return found


def test_entries_of_both_are_read_in_one_order(pair: Pair) -> None:
    one, other = pair
    assert one("XADD x 110 f v") == b"110-1"
    assert other("XADD x 110 f v") == b"110-2"
    assert one("XADD x 120 f v") == b"120-1"
    synchronize(*pair)
    for region in pair:
        assert ids(region("XRANGE x - +")) == [b"110-1", b"110-2", b"120-1"]
        assert ids(region("XREVRANGE x + - COUNT 2")) == [b"120-1", b"110-2"]


def test_a_deletion_removes_only_what_its_region_had_seen(pair: Pair) -> None:
    one, other = pair
    one("XADD x 1 f v")
    synchronize(*pair)
    assert one("DEL x") == 1
    assert other("XADD x 2 f v") == b"2-2"
    synchronize(*pair)
    for region in pair:
        assert ids(region("XRANGE x - +")) == [b"2-2"]
        assert region("EXISTS x") == 1


def test_a_key_that_expired_is_removed_as_far_as_it_was_seen(pair: Pair) -> None:
    one, other = pair
    one("XADD x 1 f v")
    one("PEXPIREAT x 1")
    assert one("EXISTS x") == 0
    one("XADD y 1 f v")
    one("PEXPIRE y 1")
    while one("EXISTS y"):
        pass
    other("XADD y 2 f v")
    synchronize(*pair)
    for region in pair:
        assert ids(region("XRANGE y - +")) == [b"2-2"]
        assert region("TTL y") == -1
        assert region("EXISTS x") == 0


def test_an_entry_on_an_expired_key_is_of_a_new_lane(pair: Pair) -> None:
    one = pair[0]
    one("XADD x 5 f v")
    one("PEXPIRE x 1")
    while one("XLEN x"):
        pass
    assert one("XADD x 3 f v") == b"3-1"
    synchronize(*pair)
    for region in pair:
        assert ids(region("XRANGE x - +")) == [b"3-1"]


def test_what_has_expired_and_is_not_reported_yet_is_not_forgotten(pair: Pair) -> None:
    """A reader that waits may find it expired, just before something arrives."""
    one, other = pair
    one("XADD x 1 f v")
    one("XGROUP CREATE x g 0")
    one("XGROUP DESTROY x g")
    other("XGROUP CREATE x g 0 MKSTREAM")
    deadline_ms = one.server.clock.now_ns // 1_000_000 + 60_000
    one("PEXPIREAT", "x", deadline_ms)
    assert one.server.data.dbs[0].get(b"x", deadline_ms + 1) is None
    assert one.server.changes.expired
    one.take(other.records())
    synchronize(*pair)
    assert one("EXISTS x") == other("EXISTS x") == 0
    assert streams(one) == streams(other)
    assert one.stream(b"x").removals


def test_what_is_left_of_a_deleted_stream_is_to_be_known_by_all(pair: Pair) -> None:
    """It came when others had been told already what is known here of the deletion."""
    one, other = pair
    one("XADD x 100 f v")
    synchronize(*pair)
    one("DEL x")
    other("XSETID x 200-0")
    synchronize(*pair)
    known = one.region.known()
    del known[b"2.0"]
    replication().collect(one.server, b"x", known)
    assert one.region.garbage_known[b"2.0"] == one.region.known()[b"2.0"]


def test_the_longer_of_two_deadlines_holds(pair: Pair) -> None:
    one, other = pair
    one("XADD x 1 f v")
    synchronize(*pair)
    one("EXPIRE x 100")
    other("EXPIRE x 1000")
    synchronize(*pair)
    assert [region("TTL x") for region in pair] == [1000, 1000]
    one("PERSIST x")
    synchronize(*pair)
    assert [region("TTL x") for region in pair] == [-1, -1]


def test_what_is_renamed_takes_along_what_was_seen(pair: Pair) -> None:
    one, other = pair
    one("XADD x 1 f v")
    one("XGROUP CREATE x g 0")
    one("EXPIRE x 1000")
    synchronize(*pair)
    one("RENAME x y")
    other("XADD x 2 f v")
    synchronize(*pair)
    for region in pair:
        assert ids(region("XRANGE y - +")) == [b"1-1"]
        assert region("XINFO GROUPS y") == []
        assert region("TTL y") == 1000
        assert ids(region("XRANGE x - +")) == [b"2-2"]


def test_a_copy_and_a_restored_value_are_in_both(pair: Pair) -> None:
    one, other = pair
    one("XADD x 1 f v")
    assert one("COPY x y") == 1
    assert one("RESTORE", "z", 0, cast("bytes", one("DUMP x"))) == b"OK"
    synchronize(*pair)
    for key in ("y", "z"):
        assert other(f"XRANGE {key} - +") == [[b"1-1", [b"f", b"v"]]]


def test_a_stream_without_entries_is_renamed_copied_and_restored(pair: Pair) -> None:
    one, other = pair
    one("XADD x 5 f v")
    one("XDEL x 5-1")
    assert one("COPY x y") == 1
    assert one("RESTORE", "z", 0, cast("bytes", one("DUMP x"))) == b"OK"
    assert one("RENAME x w") == b"OK"
    synchronize(*pair)
    for region in pair:
        assert region("EXISTS w x y z") == 3
        for key in ("w", "y", "z"):
            assert region(f"XLEN {key}") == 0
            assert region(f"XADD {key} 4 f v") != b"4-1"  # the last ID is still 5-1
    assert streams(one) == streams(other)


def test_flushall_leaves_what_it_had_not_seen(pair: Pair) -> None:
    one, other = pair
    one("XADD x 1 f v")
    synchronize(*pair)
    other("XADD y 1 f v")
    assert one("FLUSHALL") == b"OK"
    synchronize(*pair)
    assert [region("KEYS *") for region in pair] == [[b"y"], [b"y"]]


def test_a_trim_removes_the_oldest_of_all_regions(pair: Pair) -> None:
    one, other = pair
    for ms in range(1, 20, 2):
        one(f"XADD x {ms} f v")
        other(f"XADD x {ms + 1} f v")
    synchronize(*pair)
    assert one("XTRIM x MAXLEN 5") == 15
    synchronize(*pair)
    for region in pair:
        assert ids(region("XRANGE x - +")) == [b"16-2", b"17-1", b"18-2", b"19-1", b"20-2"]


def test_one_message_of_two_regions_is_one_entry(pair: Pair) -> None:
    one, other = pair
    first = one("XADD x IDMP p 1 * f v")
    second = other("XADD x IDMP p 1 * f v")
    synchronize(*pair)
    lower = min(cast("list[bytes]", [first, second]), key=halves)
    for region in pair:
        assert ids(region("XRANGE x - +")) == [lower]
        assert region("XADD x IDMP p 1 * f v") == lower


def test_other_keys_are_refused_or_stay_here(pair: Pair, tmp_path: Path) -> None:
    one, other = pair
    refused = cast("Exception", one("SET k v"))
    assert str(refused).startswith("ERR a region holds streams alone")
    assert one("EXISTS k") == 0
    lone = RegionInProcess(tmp_path, 3, aa_other_keys="local")
    assert lone("SET k v") == b"OK"
    other("XADD k 1 f v")
    synchronize(other, lone)
    assert ids(lone("XRANGE k - +")) == [b"1-2"]


REFUSED = (
    *("SET k v", "SET k v XX", "INCR k", "MSET k v l v", "APPEND k v", "SETRANGE k 0 v"),
    *("LPUSH k v", "LMOVE k l LEFT LEFT", "HSET k f v", "SADD k v", "SINTERSTORE k l m"),
    *("ZADD k 1 v", "ZRANGESTORE k l 0 1", "PFADD k v", "PFMERGE k l", "SETBIT k 1 1"),
    *("BITOP NOT k l", "BITFIELD k SET u8 0 1", "GEOADD k 1 1 v", "SORT l STORE k", "ARSET k 0 v"),
    "GEORADIUS l 0 0 1 m STORE k",
)
TAKEN = (
    *("SORT l", "BITFIELD k GET u8 0", "GEORADIUS l 0 0 1 m", "SMOVE k l m", "LPOP k"),
    *("COPY s t", "XGROUP CREATE s g $", "XADD t * f v"),
)


def test_a_transaction_that_would_make_another_key_does_nothing(pair: Pair, tmp_path: Path) -> None:
    one, _ = pair
    lone = RegionInProcess(tmp_path, 3, aa_other_keys="local")
    for request in REFUSED:
        one("MULTI")
        assert one("XADD s * f v") == b"QUEUED"
        assert str(one(request)).startswith("ERR a region holds streams alone"), request
        assert one("XADD s * f v") == b"QUEUED"
        assert str(one("EXEC")).startswith("EXECABORT Transaction discarded because of previous")
        assert one("EXISTS s") == 0
        lone("MULTI")
        assert lone(request) == b"QUEUED"
        assert len(cast("list[object]", lone("EXEC"))) == 1
    one("XADD s * f v")
    for request in TAKEN:
        one("MULTI")
        assert one(request) == b"QUEUED"
        [reply] = cast("list[object]", one("EXEC"))
        assert not isinstance(reply, Exception), request


def test_a_key_that_gives_way_to_a_stream_of_another_region_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = (RegionInProcess(tmp_path, number, aa_other_keys="local") for number in (1, 2))
    one("SET k v")
    one("SET stays v")
    one("SET gone v PX 1")
    until_ms = one.server.clock.refresh() + 1
    while one.server.clock.refresh() <= until_ms:
        pass
    two("XADD k * f v")
    two("XADD gone * f v")
    synchronize(one, two)
    assert one("TYPE k") == one("TYPE gone") == b"stream"
    assert one("GET stays") == b"v"
    [record] = [record for record in caplog.records if "has given way" in record.getMessage()]
    assert record.levelname == "WARNING"
    assert "made a stream k," in record.getMessage()
    assert one.region.others_lost == 1
    assert not two.region.others_lost


def busy(region: RegionInProcess, chance: random.Random) -> None:
    """Have a region do some of everything."""
    ms = chance.randrange(1, 60)
    key = chance.choice("xy")
    region(
        chance.choice(
            [
                *(
                    f"XADD {key} * f {ms}",
                    f"XADD {key} * f {ms}",
                    f"XADD {key} IDMP p {ms % 4} * f v",
                ),
                *(f"XTRIM {key} MAXLEN {ms // 8}", f"XTRIM {key} MAXLEN ~ 1", f"DEL {key}"),
                *(f"XGROUP CREATE {key} g 0 MKSTREAM", f"XGROUP CREATE {key} g $"),
                *(f"XGROUP DESTROY {key} g", f"XREADGROUP GROUP g c COUNT 3 STREAMS {key} >"),
                *(f"EXPIRE {key} {ms}00", f"PERSIST {key}", f"RENAME {key} z", "COPY z x"),
                *(f"XSETID {key} {ms}00-0", f"XCFGSET {key} IDMP-MAXSIZE {ms}"),
                *(f"XGROUP SETMODE {key} g MAX-PENDING {ms}", "FLUSHALL"),
            ]
        )
    )
    for key in "xyz":
        pending = region(f"XPENDING {key} g - + 9")
        if isinstance(pending, list) and pending:
            region("XACK", key, "g", pending[chance.randrange(len(pending))][0])
        entries = region(f"XRANGE {key} - + COUNT 9")
        if isinstance(entries, list) and entries and chance.random() < 0.1:
            region("XDEL", key, entries[chance.randrange(len(entries))][0])


@pytest.mark.parametrize("seed", range(12))
def test_regions_that_know_the_same_have_the_same(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    regions = [RegionInProcess(tmp_path, number) for number in (1, 2, 3)]
    for _ in range(150):
        busy(chance.choice(regions), chance)
        if chance.random() < 0.1:
            one, other = chance.sample(regions, 2)
            one.take(other.records())
    synchronize(*regions)
    assert streams(regions[0]) == streams(regions[1]) == streams(regions[2])
    for key in "xyz":
        replies = [region(f"XRANGE {key} - +") for region in regions]
        assert replies[0] == replies[1] == replies[2]
        assert len({region(f"TTL {key}") for region in regions}) == 1


def spoiled(words: list[bytes], chance: random.Random) -> list[bytes]:
    """A record with something wrong, mostly."""
    words = list(words)
    at = chance.randrange(len(words))
    kind = chance.randrange(5)
    if kind == 0:
        del words[at]
    elif kind == 1:
        words.insert(at, chance.choice([b"", b"0", b"-", b"1.0.1=5-5", b"\xff", b"FOR"]))
    elif kind == 2:
        words[at] = chance.choice([b"", b"-1", b"99999999999999999999", b"x=1", b"1.0=1", b"\0"])
    elif kind == 3:
        words[at] = bytes(chance.randrange(256) for _ in range(chance.randrange(9)))
    else:
        words[at] = words[at][: chance.randrange(len(words[at]) + 1)]
    return words


@pytest.mark.parametrize("seed", range(8))
def test_a_record_that_makes_no_sense_changes_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    source = RegionInProcess(tmp_path, 1)
    for _ in range(120):
        busy(source, chance)
    target = RegionInProcess(tmp_path, 2)
    records: list[Record] = source.records()
    assert len(records) > 40
    refused = 0
    for origin, number, words in records:
        before = streams(target)
        known = target.region.known()
        bad = spoiled(words, chance)
        try:
            apply_record(target.server, origin, number, bad, False)
        except EffectError:
            refused += 1
            assert streams(target) == before
            assert target.region.known() == known
            # What was spoiled before, and taken, may rule the true one out by now.
            with contextlib.suppress(EffectError):
                target.take([(origin, number, words)])
    assert refused > len(records) // 4
