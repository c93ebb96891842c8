"""Planning against live servers: ours, which counts and cuts, and Redis, which does not."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

import pytest
from conftest import Factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_headrace.errors import DataLossError, HeadraceError
from pyspark_headrace.given import READ, STREAM
from pyspark_headrace.ids import ID_MAX, LEAST, StreamID
from pyspark_headrace.loss import removed_unread
from pyspark_headrace.offsets import Position, Positions, pieces_between
from pyspark_headrace.options import read_options
from pyspark_headrace.planner import Planner
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Figures, Server
from pyspark_headrace.sharing import cuts_by_time, fair_shares, parts_of, shares_within
from support.process import Process
from support.spark_query import Query, add, numbers
from support.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.once


@pytest.fixture(params=["ours", "redis"])
def live(request: pytest.FixtureRequest) -> Process:
    """Both servers in turn."""
    name = {"ours": "server", "redis": "redis_server"}[request.param]
    process: Process = request.getfixturevalue(name)
    return process


Steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 25)),
        st.tuples(st.just("trim"), st.integers(0, 30)),
        st.tuples(st.just("batch"), st.integers(0, 12)),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=Steps, parts=st.integers(1, 4))
def test_every_entry_is_read_once_or_counted_as_lost(
    live: Process, steps: list[tuple[str, int]], parts: int
) -> None:
    """Appends, trims and batches in any order. Ours tells the exact number of lost entries."""
    with live.client() as client:
        client.call("DEL", "s")
        client.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        query = Query(live, failOnDataLoss="false", minPartitions=parts, startingOffsets="earliest")
        added = 0
        trimmed_unread = 0
        for what, number in steps:
            if what == "add":
                add(client, "s", *[f"{added + n}-1" for n in range(1, number + 1)])
                added += number
            elif what == "trim":
                before = Server(query.server.link).walk("s", LEAST, (ID_MAX, ID_MAX), 10**9, 1000)
                client.call("XTRIM", "s", "MAXLEN", number)
                gone = before[: max(0, len(before) - number)]
                trimmed_unread += sum(1 for each in gone if each > query.at["s"].id)
            else:
                query.step(number)
        while query.step():
            pass
        query.close()
        read = numbers(query.read.get("s", []))
        assert read == sorted(set(read))
        assert len(read) + trimmed_unread == added
        assert query.at["s"].lost == trimmed_unread
        assert query.at["s"].n == added
        assert all(rows in (-1, real) for rows, real in query.expected_rows)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 40), min_size=3, max_size=3),
    deleted=st.sets(st.integers(1, 40), max_size=10),
    most=st.integers(1, 30),
    parts=st.integers(1, 5),
)
def test_batches_are_limited_and_all_streams_come_on(
    live: Process, sizes: list[int], deleted: set[int], most: int, parts: int
) -> None:
    keys = ["a", "b", "c"]
    with live.client() as client:
        client.call("DEL", *keys)
        for key, size in zip(keys, sizes, strict=True):
            if size:
                add(client, key, *[f"{n // 3}-{n % 3 + 1}" for n in range(size)])
        for number in deleted:
            client.call("XDEL", "a", f"{number // 3}-{number % 3 + 1}")
        link = link_to(live)
        walker = Server(link)
        expected = {key: len(walker.walk(key, LEAST, (ID_MAX, ID_MAX), 99, 99)) for key in keys}
        link.close()
        query = Query(live, subscribe="a,b,c", startingOffsets="earliest", minPartitions=parts)
        while True:
            before = {key: len(ids) for key, ids in query.read.items()}
            if not query.step(most):
                break
            step = sum(len(ids) for ids in query.read.values()) - sum(before.values())
            assert 0 < step <= most
        query.close()
    assert {key: len(query.read.get(key, [])) for key in keys} == expected


def link_to(process: Process) -> Link:
    return Link(read_options({"port": str(process.port), "path": "x"}, READ).connection)


def test_planning_does_not_depend_on_how_it_is_done(server: Process, redis_server: Process) -> None:
    """Walking finds the very batches that XSPLIT gives."""
    ends: list[list[Positions]] = []
    for process in (server, redis_server):
        with process.client() as client:
            add(client, "s", *[f"{n}-1" for n in range(1, 1001)])
        query = Query(process, startingOffsets="earliest", minPartitions=3, fetchCount=70)
        found = []
        while query.step(300):
            found.append(query.at)
        ends.append(found)
        query.close()
    limited = [found[:-1] for found in ends]
    assert limited[0] == limited[1]
    assert len(limited[0]) == 3
    assert limited[0][0]["s"].rows == 300
    assert [cut.rows for cut in limited[0][0]["s"].cuts] == [100, 100]


def test_beyond_the_walk_the_end_is_found_by_time(redis_server: Process) -> None:
    with redis_server.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 1001)])
    query = Query(redis_server, startingOffsets="earliest", minPartitions=2, planWalkLimit=100)
    assert query.step(500)
    assert 400 <= len(query.read["s"]) <= 600
    while query.step(500):
        pass
    query.close()
    assert numbers(query.read["s"]) == list(range(1, 1001))
    assert query.at["s"].n == 1000


def test_a_loss_is_an_error_that_tells_how_much(live: Process) -> None:
    with live.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 11)])
        query = Query(live, startingOffsets='{"s":"0-0"}')
        assert query.step(4)
        assert query.at["s"].n == 4
        client.call("XTRIM", "s", "MAXLEN", 3)
        with pytest.raises(DataLossError) as lost:
            query.step(4)
        assert "stream s: 3 entries after 4-1 were removed before they were read" in str(lost.value)
        assert "the first one left is 8-1" in str(lost.value)
        client.call("XDEL", "s", "8-1")
        with pytest.raises(DataLossError, match=r"up to 4 entries .* deleted on purpose"):
            query.step(4)
        client.call("XTRIM", "s", "MAXLEN", 0)
        with pytest.raises(DataLossError, match="none is left"):
            query.step(4)
        query.close()


def test_entries_that_were_read_may_go(live: Process) -> None:
    with live.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 11)])
        query = Query(live, startingOffsets="earliest")
        assert query.step()
        client.call("XTRIM", "s", "MAXLEN", 0)
        assert not query.step()
        add(client, "s", "11-1", "12-1")
        assert query.step()
        query.close()
    assert numbers(query.read["s"]) == list(range(1, 13))


def test_what_is_deleted_behind_an_entry_that_lives_is_no_loss(live: Process) -> None:
    """Trimming takes the oldest first, so these went on purpose."""
    with live.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 11)])
        query = Query(live, startingOffsets='{"s":"1-1"}')
        client.call("XDEL", "s", "5-1", "6-1")
        assert query.step(4)
        client.call("XDEL", "s", "9-1")
        assert query.step(4)
        query.close()
    assert numbers(query.read["s"]) == [2, 3, 4, 7, 8, 10]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, []),
        ({"startingOffsets": "earliest"}, list(range(1, 11))),
        ({"startingOffsets": "latest"}, []),
        ({"startingOffsets": '{"s":"7-1"}'}, [8, 9, 10]),
        ({"startingTimestamp": "7"}, [7, 8, 9, 10]),
        ({"startingTimestamp": "2100-01-01"}, []),
        ({"startingOffsetsByTimestamp": '{"s": 9}'}, [9, 10]),
        ({"assign": '{"s":["3-0","5"]}', "subscribe": None}, [3, 4, 5]),
        ({"startingTimestamp": "4", "endingTimestamp": "6"}, [4, 5]),
    ],
)
def test_where_a_query_starts(
    live: Process, options: Mapping[str, str | None], expected: list[int]
) -> None:
    with live.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 11)])
        query = Query(live, **options)
        query.step()
        assert numbers(query.read.get("s", [])) == expected
        client.call("XTRIM", "s", "MAXLEN", 1)  # what lies before the start is no loss
        assert not query.step()
        query.close()


def test_a_start_that_is_still_to_come(server: Process) -> None:
    with server.client() as client:
        add(client, "s", "1-1")
        query = Query(server, startingTimestamp="100")
        assert not query.step()
        add(client, "s", "50-1")
        assert not query.step()
        add(client, "s", "100-1", "101-1")
        assert query.step()
        query.close()
    assert numbers(query.read["s"]) == [100, 101]


def test_available_now_ends(live: Process) -> None:
    with live.client() as client:
        add(client, "a:1", *[f"{n}-1" for n in range(1, 8)])
        query = Query(live, subscribe="a:1", startingOffsets="earliest", minOffsetsPerTrigger=50)
        query.planner.stop_at_latest()
        assert query.step(3)
        add(client, "a:1", "8-1", "9-1")
        while query.step(3):
            pass
        query.close()
    assert numbers(query.read["a:1"]) == list(range(1, 8))
    assert query.at["a:1"].n == 7


def test_streams_of_a_pattern_come_and_start_at_their_beginning(
    live: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_headrace.planner.PATTERN_EVERY_S", 0.0)
    with live.client() as client:
        client.call("SET", "a:string", "x")
        add(client, "a:1", "1-1")
        add(client, "b:1", "1-1")
        options = read_options(
            {"port": str(live.port), "subscribePattern": "a:*", "pollTimeoutMs": "0"}, STREAM
        )
        planner = Planner(options, Server(Link(options.connection)))
        at = planner.initial()
        assert set(at) == {"a:1"}
        add(client, "a:2", "5-1", "6-1")
        found = planner.latest(at, 0)
        assert found is not None
        assert [(piece.key, piece.upto) for piece in pieces_between(at, found)] == [("a:2", (6, 1))]
        planner._server.link.close()


def test_fewer_than_the_least_wait(server: Process) -> None:
    with server.client() as client:
        add(client, "s", "1-1")
        query = Query(server, startingOffsets="earliest", minOffsetsPerTrigger=3)
        assert not query.step()
        add(client, "s", "2-1", "3-1")
        assert query.step()
        add(client, "s", "4-1")
        assert not query.step()
        query.close()
        query = Query(
            server, startingOffsets="earliest", minOffsetsPerTrigger=30, maxTriggerDelay=1
        )
        time.sleep(0.002)
        assert query.step()
        query.close()


def test_long_polling_wakes_with_an_entry(live: Process) -> None:
    with live.client() as client:
        add(client, "s", "1-1")
        options = read_options(
            {"port": str(live.port), "subscribe": "s", "pollTimeoutMs": "60000"}, STREAM
        )
        planner = Planner(options, Server(Link(options.connection)))
        at = planner.initial()
        found: list[Positions | None] = []
        thread = threading.Thread(target=lambda: found.append(planner.latest(at, 0)))
        thread.start()
        wait_until(lambda: live.info("clients")["blocked_clients"] != "0")
        add(client, "s", "2-1")
        thread.join(DEADLINE_S)
        assert found[0] is not None
        assert found[0]["s"].id == (2, 1)
        planner._server.link.close()


def test_batch_reads(live: Process) -> None:
    with live.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 101)])
        client.call("SET", "string", "x")
    base = {"port": str(live.port), "minPartitions": "4"}

    def pieces(**options: str) -> list[tuple[int, int]]:
        found = read_options({**base, **options}, READ)
        server = Server(Link(found.connection))
        planner = Planner(found, server)
        every = dict.fromkeys(planner.streams(), LEAST)
        last = dict.fromkeys(every, (ID_MAX, ID_MAX))
        try:
            return [
                (len(server.walk(each.key, each.after, each.upto, 999, 999)), each.rows)
                for each in planner.pieces(every, last)
            ]
        finally:
            server.link.close()

    found = pieces(subscribe="s")
    assert len(found) == 4
    assert sum(rows for rows, _ in found) == 100
    assert all(planned in (-1, rows) for rows, planned in found)
    assert sum(rows for rows, _ in pieces(subscribe="s", startingTimestamp="91")) == 10
    assert pieces(subscribe="s", startingOffsets="latest") == []
    assert sum(rows for rows, _ in pieces(subscribe="s", endingOffsets='{"s":"30-1"}')) == 30
    assert pieces(subscribePattern="nothing*") == []
    with pytest.raises(HeadraceError, match="there is no stream none"):
        pieces(subscribe="none")
    with pytest.raises(HeadraceError, match="string is not a stream"):
        pieces(subscribe="string")


def test_a_stream_that_is_not_there_yet_is_waited_for(
    live: Process, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        query = Query(live, subscribe="later")
    assert "stream later is not there yet" in caplog.text
    assert not query.step()
    with live.client() as client:
        add(client, "later", "1-1")
    assert query.step()
    query.close()
    assert numbers(query.read["later"]) == [1]


def test_names_that_are_no_text(server: Process) -> None:
    with server.client() as client:
        client.call("XADD", b"\xff", "1-1", "f", "v")
    options = read_options({"port": str(server.port), "subscribePattern": "*"}, STREAM)
    planner = Planner(options, Server(Link(options.connection)))
    with pytest.raises(HeadraceError, match="is not UTF-8"):
        planner.initial()
    planner._server.link.close()


def test_a_server_that_starts_again_is_waited_for(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    with server.client() as client:
        add(client, "s", "1-1")
    query = Query(server, startingOffsets="earliest", **{"fetchOffset.retryIntervalMs": 50})
    assert query.step()
    server.restart(crash=True)
    with server.client() as client:
        add(client, "s", "2-1")
    assert query.step()
    query.close()
    assert numbers(query.read["s"]) == [1, 2]


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 1000)), st.integers(1, 500))
def test_fair_shares(backlogs: dict[str, int], most: int) -> None:
    shares = fair_shares(backlogs, most)
    waiting = {key: rows for key, rows in backlogs.items() if rows}
    assert sum(shares.values()) == min(most, sum(waiting.values()))
    assert all(0 < shares[key] <= waiting[key] for key in shares)
    if len(waiting) <= most:
        assert set(shares) == set(waiting)
    for key, share in shares.items():
        for other, less in shares.items():
            assert waiting[key] < waiting[other] or share >= less - 1 or share == waiting[key]


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.tuples(st.integers(1, 1000), st.integers(1, 10**6)),
        min_size=1,
    ),
    st.integers(1, 10**7),
)
def test_shares_within(streams: dict[str, tuple[int, int]], most_bytes: int) -> None:
    rows = {key: count for key, (count, _) in streams.items()}
    weights = {key: weight for key, (_, weight) in streams.items()}
    shares = shares_within(rows, weights, most_bytes)
    size = sum(count * weights[key] for key, count in shares.items())
    assert all(0 < shares[key] <= rows[key] for key in shares)
    assert shares
    assert size <= most_bytes or sum(shares.values()) == 1
    if sum(rows[key] * weights[key] for key in rows) <= most_bytes:
        assert shares == rows


@given(
    st.tuples(st.integers(0, 50), st.integers(0, 2)),
    st.tuples(st.integers(0, 50), st.integers(0, 2)),
    st.integers(1, 9),
)
def test_cuts_by_time_ascend_inside(low: StreamID, high: StreamID, parts: int) -> None:
    cuts = [cut.id for cut in cuts_by_time(low, high, parts)]
    assert cuts == sorted(set(cuts))
    assert len(cuts) < parts
    assert all(low < cut < high for cut in cuts)


def test_numbers_of_pieces() -> None:
    def of(rows: int, total: int, **options: str) -> int:
        return parts_of(rows, total, read_options({"path": "s", **options}, READ))

    assert of(0, 100) == of(1, 1) == of(19_999, 19_999) == 1
    assert of(10**7, 10**7) >= 2
    assert of(10, 10, minPartitions="4") == 4
    assert of(3, 3, minPartitions="4") == 3
    assert of(50, 100, minPartitions="4") == 2
    assert of(1000, 1000, maxRecordsPerPartition="100") == 10
    assert of(10**6, 10**6, maxRecordsPerPartition="1") == 256

    options = read_options({"path": "s", "targetPartitionBytes": "10m"}, READ)
    assert parts_of(100, 100, options, 1 << 20) == 10
    assert parts_of(3, 100, options, 100 << 20) == 3
    assert parts_of(100, 100, options, 100) == 1


def test_without_counters_no_loss_is_seen() -> None:
    """Redis before 7 does not count what was added."""
    figures = Figures(True, 3, -1, (9, 0), (7, 0))
    assert removed_unread("s", Position((1, 0), 4), figures) is None
    assert removed_unread("s", Position((1, 0)), Figures(True, 3, 9, (9, 0), (7, 0))) is None
