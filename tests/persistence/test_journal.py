"""The append-only file of a region: how records are numbered, and what of it peers get."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from headrace.protocol.client import request
from headrace.regions.files.backlog import BATCH_BYTES, CUT_BYTES, Backlog, Batch
from headrace.regions.files.journal import FROM_BYTES, Journal, JournalLog
from headrace.regions.knowledge.records import is_numbered
from support.file_limit import file_limit
from support.region_files import (
    EXEC,
    LOCAL,
    MULTI,
    Story,
    Unit,
    add,
    all_after,
    commands,
    commit,
    open_journal,
    region_one,
    removal,
    requests,
    units,
    xadd,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.incr.aof"


# What stands in the file


def test_a_file_says_whose_it_is_and_how_to_count(path: Path) -> None:
    region = region_one(41)
    region.begin_epoch(3, 2, b"n7")
    region.count = 41
    journal = open_journal(path, region)
    assert journal.size_bytes == path.stat().st_size > 0
    assert not journal.pending
    head = requests(path.read_bytes())
    assert head[0][:8] == [b"AA", b"FILE", b"1", b"orders", b"1", b"3", b"2", b"n7"]
    place = b"%d:%d:" % (path.stat().st_dev, path.stat().st_ino)
    assert head[0][9].startswith(place)
    assert head[1:] == [[b"SELECT", b"0"], [b"AA", b"FROM", b"1.3", b"42"]]
    add(journal, xadd(1))
    commit(journal)
    assert commands(path)[2:] == [xadd(1)]
    assert region.count == 42
    journal.close()


def test_only_numbered_records_count(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    add(journal, xadd(1))
    add(journal, LOCAL)
    add(journal, [b"AA", b"PLACE", b"s", b"g"])
    add(journal, removal(1))
    assert region.count == 2
    commit(journal, 77)
    assert commands(path)[2:] == [xadd(1), LOCAL, [b"AA", b"PLACE", b"s", b"g"], removal(1)]
    batch = backlog.after(b"1.0", 0, 1000)
    assert batch is not None
    assert (batch.origin, batch.first, batch.count, batch.ms) == (b"1.0", 1, 2, 77)
    assert batch.payload == request(xadd(1)) + request(removal(1))
    journal.close()


def test_records_alone_are_sent_as_the_bytes_that_are_written(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    for number in range(1, 4):
        before = path.stat().st_size
        add(journal, xadd(2 * number))
        add(journal, xadd(2 * number), xadd(2 * number + 1))
        commit(journal)
        batch = backlog.after(b"1.0", region.count - 1, 10)
        assert batch is not None
        assert batch.payload == path.read_bytes()[before:]
        assert batch.count == 3
    journal.close()


def test_what_came_is_written_as_it_came(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    two = MULTI + request(xadd(5)) + request(removal(5)) + EXEC
    assert journal.append_received(b"2.0", 7, 1, request(xadd(4)))
    journal.end_command()
    assert not journal.append_received(b"2.0", 8, 2, two)
    journal.end_command()
    add(journal, xadd(6))
    journal.append_received(b"2.0", 10, 1, request(xadd(7)))
    journal.end_command()
    commit(journal)
    body = (
        request([b"AA", b"FROM", b"2.0", b"7"])
        + (request(xadd(4)) + two)
        + (request([b"AA", b"FROM", b"1.0", b"1"]) + request(xadd(6)))
        + (request([b"AA", b"FROM", b"2.0", b"10"]) + request(xadd(7)))
    )
    assert path.read_bytes().endswith(request([b"AA", b"FROM", b"1.0", b"1"]) + body)
    assert region.count == 1
    assert all_after(backlog, b"2.0", 6).payload == request(xadd(4)) + two + request(xadd(7))
    assert all_after(backlog, b"1.0", 0).payload == request(xadd(6))
    journal.close()


def test_what_belongs_to_an_arrival_stands_in_one_transaction_with_it(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    two = MULTI + request(xadd(5)) + request(xadd(6)) + EXEC
    journal.append_received(b"2.0", 1, 2, two)
    add(journal, LOCAL, removal(1))
    add(journal, xadd(9))
    commit(journal)
    assert commands(path)[2:] == [
        [b"MULTI"],
        [b"AA", b"FROM", b"2.0", b"1"],
        xadd(5),
        xadd(6),
        LOCAL,
        [b"AA", b"FROM", b"1.0", b"1"],
        removal(1),
        [b"EXEC"],
        xadd(9),
    ]
    assert all_after(backlog, b"2.0", 0).payload == two
    assert all_after(backlog, b"1.0", 0).payload == request(removal(1)) + request(xadd(9))
    assert units(all_after(backlog, b"1.0", 0).payload) == [[removal(1)], [xadd(9)]]
    journal.close()


def test_what_was_recorded_before_an_arrival_stands_before_it(path: Path) -> None:
    region = region_one()
    journal = open_journal(path, region)
    journal.append(0, xadd(1))
    journal.append_received(b"2.0", 1, 1, request(xadd(5)))
    journal.append_received(b"3.0", 4, 1, request(xadd(6)))
    journal.end_command()
    journal.append_received(b"3.0", 5, 1, request(xadd(7)))
    journal.append_received(b"3.0", 6, 1, request(xadd(8)))
    journal.end_command()
    commit(journal)
    assert commands(path)[2:] == [
        [b"MULTI"],
        xadd(1),
        [b"AA", b"FROM", b"2.0", b"1"],
        xadd(5),
        [b"AA", b"FROM", b"3.0", b"4"],
        xadd(6),
        [b"EXEC"],
        [b"MULTI"],
        xadd(7),
        xadd(8),
        [b"EXEC"],
    ]
    journal.close()


def test_how_to_count_is_said_again_and_again(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    for number in range(200):
        if number % 3:
            add(journal, xadd(number, 2000))
        else:
            add(journal, xadd(number, 2000), removal(number))
        if number % 7 == 0:
            commit(journal)
    commit(journal)
    counted = 0
    places = []
    offset = 0
    inside = False
    for words in requests(path.read_bytes()):
        if words[:2] == [b"AA", b"FROM"]:
            assert words == [b"AA", b"FROM", b"1.0", b"%d" % (counted + 1)]
            assert not inside
            places.append(offset)
        counted += is_numbered(words)
        inside = words == [b"MULTI"] or (inside and words != [b"EXEC"])
        offset += len(request(words))
    assert counted == region.count
    assert len(places) > 5
    for before, after in pairwise(places):
        assert FROM_BYTES <= after - before < FROM_BYTES + 5000
    payload = all_after(backlog, b"1.0", 0).payload
    assert b"FROM" not in payload
    assert sum(len(unit) for unit in units(payload)) == region.count
    journal.close()


def test_the_time_of_a_record_is_not_sent(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    add(journal, xadd(1))
    journal.stamp_next(1_700_000_000)
    add(journal, xadd(2))
    journal.append(0, xadd(3))
    journal.stamp_next(1_700_000_001)
    journal.append(0, xadd(4))
    journal.append(0, xadd(5))
    journal.end_command()
    commit(journal)
    assert re.findall(rb"#TS:(\d+)", path.read_bytes()) == [b"1700000000", b"1700000001"]
    payload = all_after(backlog, b"1.0", 0).payload
    assert units(payload) == [[xadd(1)], [xadd(2)], [xadd(3), xadd(4), xadd(5)]]
    journal.close()


def test_a_new_epoch_counts_anew(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    add(journal, xadd(1))
    commit(journal)
    region.begin_epoch(4, 1, b"n1")
    add(journal, xadd(2))
    commit(journal)
    assert commands(path)[2:] == [xadd(1), [b"AA", b"FROM", b"1.4", b"1"], xadd(2)]
    assert all_after(backlog, b"1.4", 0).payload == request(xadd(2))
    assert region.known() == {b"1.0": 1, b"1.4": 1}
    journal.close()


def test_opening_again_says_how_to_count(path: Path) -> None:
    region = region_one()
    for number in (1, 2):
        journal = open_journal(path, region)
        add(journal, xadd(number))
        commit(journal)
        journal.close()
    again = [[b"SELECT", b"0"], [b"AA", b"FROM", b"1.0", b"2"], xadd(2)]
    assert commands(path)[2:] == [xadd(1), *again]


def test_switching_goes_on_counting(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    add(journal, xadd(1))
    journal.append_received(b"2.0", 1, 1, request(xadd(5)))
    journal.end_command()
    commit(journal)
    journal.sync()
    other = path.with_name("y.incr.aof")
    journal.switch(bytes(other), journal.total_bytes)
    add(journal, xadd(2))
    commit(journal)
    assert commands(other) == [[b"SELECT", b"0"], [b"AA", b"FROM", b"1.0", b"2"], xadd(2)]
    assert journal.size_bytes == other.stat().st_size
    assert all_after(backlog, b"1.0", 0).count == 2
    journal.close()


def test_a_switch_that_fails_changes_nothing(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    add(journal, xadd(1))
    commit(journal)
    journal.sync()
    other = path.with_name("y.incr.aof")
    with file_limit(20), pytest.raises(OSError, match="File too large"):
        journal.switch(bytes(other), journal.total_bytes)
    assert other.stat().st_size == 0
    add(journal, xadd(2))
    commit(journal)
    assert commands(path)[2:] == [xadd(1), xadd(2)]
    assert journal.index.last == {b"1.0": 2}
    journal.close()


# When it may be sent


def test_nothing_is_sent_before_it_is_written(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    add(journal, xadd(1))
    journal.take()
    add(journal, xadd(2))
    assert backlog.after(b"1.0", 0, 1000) is None
    assert backlog.next(b"1.0") == 1
    journal.write_taken()
    assert backlog.after(b"1.0", 0, 1000) is None
    journal.written(5)
    assert all_after(backlog, b"1.0", 0).payload == request(xadd(1))
    commit(journal)
    assert all_after(backlog, b"1.0", 0).payload == request(xadd(1)) + request(xadd(2))
    journal.close()


def test_what_could_not_be_written_is_sent_once_when_it_is(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    add(journal, xadd(1))
    commit(journal)
    good = path.read_bytes()
    add(journal, xadd(2, 500))
    add(journal, LOCAL)
    for room in (0, 10, 300):
        with file_limit(len(good) + room), pytest.raises(OSError, match="File too large"):
            journal.write()
        assert path.read_bytes() == good
        add(journal, xadd(3 + room), removal(room))
    assert all_after(backlog, b"1.0", 0).count == 1
    commit(journal)
    expected = [[xadd(1)], [xadd(2, 500)]]
    expected += [[xadd(3 + room), removal(room)] for room in (0, 10, 300)]
    assert units(all_after(backlog, b"1.0", 0).payload) == expected
    assert region.count == 8
    journal.close()


def test_a_long_local_record_between_others(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    long = request([b"XACK", b"s", b"g", *(b"%d-1" % number for number in range(1000))])
    add(journal, xadd(1))
    journal.append_wire(0, [long[:100], long[100:]])
    add(journal, xadd(2))
    commit(journal)
    assert commands(path)[3][:2] == [b"XACK", b"s"]
    assert all_after(backlog, b"1.0", 0).payload == request(xadd(1)) + request(xadd(2))
    for number in range(60):  # the places are right behind it, too
        add(journal, xadd(number, 2000))
        commit(journal)
    places = journal.index.places[b"1.0"]
    data = path.read_bytes()
    assert len(places.numbers) == 2
    for number, offset in zip(places.numbers, places.offsets, strict=True):
        line = request([b"AA", b"FROM", b"1.0", b"%d" % number])
        assert data[offset:].startswith(line)
    journal.close()


def test_synced_records_are_sent_when_they_are_synced(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    kept = JournalLog(region, backlog)
    kept.sends_synced = True
    journal = Journal(bytes(path), 0, 0, region, backlog, kept)
    add(journal, xadd(1))
    commit(journal)
    assert backlog.next(b"1.0") == 1
    journal.sync()
    add(journal, xadd(2))
    commit(journal)
    journal.synced()
    assert backlog.next(b"1.0") == 2
    journal.sync()
    journal.synced()
    assert backlog.next(b"1.0") == 3
    add(journal, xadd(3))
    commit(journal)
    kept.sends_synced = False
    add(journal, xadd(4))
    commit(journal)
    assert backlog.next(b"1.0") == 5
    journal.close()


def test_nothing_is_sent_while_nobody_knows_what_is_on_the_disk(path: Path) -> None:
    """A sync that succeeds after one that failed says nothing; a base that is there does."""
    region = region_one()
    backlog = Backlog()
    kept = JournalLog(region, backlog)
    kept.sends_synced = True
    journal = Journal(bytes(path), 0, 0, region, backlog, kept)
    add(journal, xadd(1))
    commit(journal)
    journal.doubt()
    journal.sync()
    journal.synced()
    journal.trust()  # a base of the time before
    assert backlog.next(b"1.0") == 1
    journal.switch(bytes(path.with_name("y")), 0)
    add(journal, xadd(2))
    commit(journal)
    journal.sync()
    journal.synced()
    assert backlog.next(b"1.0") == 1
    add(journal, xadd(3))
    commit(journal)
    journal.trust()
    assert backlog.next(b"1.0") == 3
    assert all_after(backlog, b"1.0", 0).payload == request(xadd(1)) + request(xadd(2))
    journal.sync()
    journal.synced()
    assert backlog.next(b"1.0") == 4
    journal.close()


def test_nothing_is_sent_from_a_file_that_no_manifest_names(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    journal = open_journal(path, region, backlog)
    journal.named = False
    add(journal, xadd(1))
    commit(journal)
    assert backlog.next(b"1.0") == 1
    add(journal, xadd(2))
    journal.take()  # not written yet
    journal.renamed(bytes(path))
    assert backlog.next(b"1.0") == 2
    journal.write_taken()
    journal.written(9)
    assert backlog.next(b"1.0") == 3
    journal.close()


def test_who_waits_for_records_is_notified(path: Path) -> None:
    region = region_one()
    backlog = Backlog()
    seen: list[int] = []
    backlog.on_more = lambda: seen.append(backlog.next(b"1.0"))
    journal = open_journal(path, region, backlog)
    add(journal, xadd(1))
    add(journal, xadd(2))
    commit(journal)
    add(journal, LOCAL)
    commit(journal)
    add(journal, xadd(3))
    commit(journal)
    assert seen == [3, 4]
    journal.close()


# The backlog


def batch(first: int, count: int, size: int = 10) -> Batch:
    payload = b"".join(request(xadd(number, size)) for number in range(first, first + count))
    return Batch(b"1.0", first, count, first, payload, [])


def test_the_oldest_batches_go() -> None:
    one = BATCH_BYTES + len(batch(1000, 10).payload)
    backlog = Backlog(5 * one)
    for first in range(1000, 1100, 10):
        backlog.add(batch(first, 10))
        assert backlog.size_bytes <= 5 * one
    assert backlog.reach(b"1.0") == 1050
    assert backlog.next(b"1.0") == 1100
    assert backlog.after(b"1.0", 1048, 10) is None
    found = backlog.after(b"1.0", 1055, 10)
    assert found is not None
    assert (found.first, found.count) == (1050, 10)
    assert all_after(backlog, b"1.0", 1049).count == 50
    assert backlog.after(b"1.0", 1099, 10) is None
    backlog.add(Batch(b"2.0", 1, 1, 0, b"x" * 6 * one, []))
    assert backlog.reach(b"1.0") == 1100
    assert backlog.reach(b"2.0") == 1
    assert backlog.reach(b"3.0") == 0
    assert sorted(backlog.origins()) == [b"1.0", b"2.0"]
    backlog.add(batch(1100, 1))
    assert backlog.reach(b"2.0") == 2
    assert backlog.size_bytes == BATCH_BYTES + len(batch(1100, 1).payload)


def test_a_gap_makes_what_is_older_unreachable() -> None:
    backlog = Backlog()
    backlog.add(batch(1, 5))
    backlog.add(Batch(b"2.0", 1, 1, 0, b"xyz", []))
    backlog.add(batch(8, 2))
    assert backlog.reach(b"1.0") == 8
    assert backlog.after(b"1.0", 2, 100) is None
    assert all_after(backlog, b"1.0", 7).count == 2
    backlog.begin(b"1.0", 20)
    assert backlog.reach(b"1.0") == backlog.next(b"1.0") == 20
    assert backlog.size_bytes == 3 + BATCH_BYTES
    assert backlog.after(b"2.0", 0, 100) is not None


# Everything at once


@pytest.mark.parametrize("seed", range(30))
def test_peers_get_all_numbered_records_in_order(path: Path, seed: int) -> None:
    story = Story(seed, path)
    story.run(150)
    own = sum(len(unit) for unit in story.sent[b"1.0"])
    assert story.region.count == own
    for origin, sent in story.sent.items():
        count = sum(len(unit) for unit in sent)
        assert story.backlog.next(origin) in (count + 1, 0)
        for most_bytes in (1, 700, 5000, 1 << 30):
            for number in (0, 1, count // 2, count - 1):
                if not 0 <= number < count:
                    continue
                check_batches(story.backlog, origin, number, most_bytes, sent)
    story.journal.close()


def check_batches(
    backlog: Backlog, origin: bytes, number: int, most_bytes: int, sent: list[Unit]
) -> None:
    """What comes behind a number is what was sent behind it, unit for unit."""
    longest = max(sum(len(request(words)) for words in unit) for unit in sent) + 100
    flat = [(unit, place) for unit in sent for place in range(len(unit))]
    at = number
    while (batch := backlog.after(origin, at, most_bytes)) is not None:
        assert batch.origin == origin
        assert batch.first <= at + 1 < batch.next
        assert len(batch.payload) <= max(most_bytes, CUT_BYTES + longest)
        known = batch.first - 1
        for unit in units(batch.payload):
            for place, words in enumerate(unit):
                assert flat[known] == (unit, place)
                assert words == unit[place]
                known += 1
        assert known == batch.next - 1
        at = known
    assert at == len(flat)
