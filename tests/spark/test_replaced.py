"""Streams that are replaced by others while a query reads them: never in silence, nothing twice."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Factory

from pyspark_headrace.errors import DataLossError
from pyspark_headrace.ids import format_id
from pyspark_headrace.offsets import from_offset
from support.client import RawClient
from support.process import Process
from support.spark_query import Query, add, numbers

pytestmark = pytest.mark.once


@pytest.fixture
def live(every_server: Process) -> Process:
    """Each server in turn."""
    return every_server


Start = Callable[..., Query]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts queries, which end with the test."""
    started: list[Query] = []

    def one(*words: Any, **options: object) -> Query:
        started.append(Query(*words, **options))
        return started[-1]

    yield one
    for query in started:
        query.close()


def ids(first: int, last: int) -> list[str]:
    return [f"{n}-1" for n in range(first, last + 1)]


def copy_of(client: RawClient, key: str) -> bytes:
    payload = client.call_parsed("DUMP", key)
    assert isinstance(payload, bytes)
    return payload


def put_back(client: RawClient, key: str, payload: bytes) -> None:
    assert client.call_parsed("RESTORE", key, 0, payload, "REPLACE") == b"OK"


ANEW = "stream s: it was deleted and made anew"
OLDER = "stream s: it was set back to an earlier state"
Change = Callable[[RawClient], object]


def anew(first: int, last: int) -> Change:
    """Delete the stream and add others; as the values show."""

    def change(client: RawClient) -> None:
        client.call("DEL", "s")
        add(client, "s", *ids(first, last), value="new")

    return change


def renamed_over(client: RawClient) -> None:
    add(client, "other", *ids(50, 400), value="new")
    client.call("XTRIM", "other", "MAXLEN", 250)
    client.call("RENAME", "other", "s")


def flushed(client: RawClient) -> None:
    client.call("FLUSHALL")
    add(client, "s", *ids(1000, 1300), value="new")


def trimmed_since(client: RawClient) -> None:
    """More was removed from the new stream than was read of the old one."""
    anew(151, 400)(client)
    client.call("XTRIM", "s", "MAXLEN", 100)


# 150 entries 1-1 to 150-1, 100 of them read; then this.
CHANGES = {
    "higher and fewer": (anew(151, 270), ANEW),
    "higher and more": (anew(151, 800), ANEW),
    "higher and trimmed": (trimmed_since, ""),
    "lower and not so far": (anew(1, 40), ANEW),
    "lower and beyond": (anew(30, 3000), ANEW),
    "the same IDs": (anew(1, 150), ANEW),
    "the same IDs and more": (anew(1, 400), ANEW),
    "only part of them": (anew(90, 120), ANEW),
    "renamed over": (renamed_over, ANEW),
    "emptied server": (flushed, ANEW),
}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("name", list(CHANGES))
def test_a_replaced_stream_is_told_and_read_once(
    live: Process, name: str, restarted: bool, start: Start
) -> None:
    change, text = CHANGES[name]
    with live.client() as client:
        add(client, "s", *ids(1, 150))
        strict = start(live, startingOffsets="earliest")
        lenient = start(live, startingOffsets="earliest", failOnDataLoss="false", minPartitions=3)
        for query in (strict, lenient):
            assert query.step(100)
        if restarted:
            strict = start(live, strict.checkpoint)
            lenient = start(live, lenient.checkpoint, failOnDataLoss="false", minPartitions=3)
        change(client)
        with pytest.raises(DataLossError, match=text or "may be lost|were removed before"):
            strict.step()
        there = client.call_parsed("XRANGE", "s", "-", "+")
        assert isinstance(there, list)
        lenient.run(70)
        values = [value for value in lenient.values["s"] if value.startswith("new")]
        assert values == [row[1].decode() for _, row in there]
        assert lenient.at["s"].lost >= 50
        assert not lenient.step()
        add(client, "s", "5000-1", value="new")
        assert lenient.step()
        assert lenient.values["s"][-1] == "new:5000-1"


def test_an_earlier_state_is_told_and_its_entries_are_not_read_again(
    live: Process, start: Start
) -> None:
    """100 of 150 were read; the copy held 120."""
    with live.client() as client:
        add(client, "s", *ids(1, 120), value="old")
        payload = copy_of(client, "s")
        add(client, "s", *ids(121, 150), value="old")
        strict = start(live, startingOffsets="earliest")
        lenient = start(live, startingOffsets="earliest", failOnDataLoss="false")
        behind = start(live, startingOffsets="earliest", failOnDataLoss="false")
        for query in (strict, lenient):
            assert query.step(130)
        assert behind.step(100)
        put_back(client, "s", payload)
        with pytest.raises(DataLossError, match=OLDER + ".*120-1 and was 150-1"):
            strict.step()
        assert lenient.step()
        assert lenient.at["s"].id == (120, 1)
        add(client, "s", *ids(125, 900), value="new")  # some at IDs that had been read
        with pytest.raises(DataLossError, match=f"{OLDER}|{ANEW}"):
            strict.step()
        lenient.run(50)
        assert numbers(lenient.read["s"]) == [*range(1, 131), *range(125, 901)]
        behind.run()
        assert numbers(behind.read["s"]) == [*range(1, 121), *range(125, 901)]
        assert (lenient.at["s"].lost, behind.at["s"].lost) == (20, 0)


@pytest.mark.parametrize("kind", ["ours", "redis"])
def test_a_server_that_comes_back_with_an_older_snapshot(
    kind: str, request: pytest.FixtureRequest, start: Start
) -> None:
    """What was read is not read again; what came since is, though it hides the gap."""
    factory: Factory = request.getfixturevalue(
        {"ours": "fresh_server", "redis": "fresh_redis"}[kind]
    )
    server = factory()
    with server.client() as client:
        add(client, "s", *ids(1, 120), value="old")
        assert client.call_parsed("SAVE") == b"OK"
        kept = {path: path.read_bytes() for path in server.directory.glob("dump.*")}
        add(client, "s", *ids(121, 150), value="old")
    options = {"startingOffsets": "earliest", "fetchOffset.retryIntervalMs": 20}
    strict = start(server, **options)
    lenient = start(server, failOnDataLoss="false", **options)
    for query in (strict, lenient):
        query.run(60)
    server.kill()
    assert kept
    for path, data in kept.items():
        path.write_bytes(data)
    server.start()
    with server.client() as client:
        add(client, "s", *ids(151, 300), value="new")
    strict = start(server, strict.checkpoint)
    with pytest.raises(DataLossError, match=OLDER):
        strict.step()
    lenient = start(server, lenient.checkpoint, failOnDataLoss="false")
    lenient.run(60)
    assert numbers(lenient.read["s"]) == list(range(151, 301))


def test_a_server_that_was_replaced_by_an_empty_one(live: Process, start: Start) -> None:
    with live.client() as client:
        add(client, "s", *ids(1, 150))
        strict = start(live, startingOffsets="earliest")
        lenient = start(live, startingOffsets="earliest", failOnDataLoss="false")
        unread = start(live, startingOffsets="earliest")
        for query in (strict, lenient):
            assert query.step(100)
        client.call("FLUSHALL")
        with pytest.raises(
            DataLossError, match="it is gone, with what came after 100-1; 50 of them had been seen"
        ):
            strict.step()
        with pytest.raises(DataLossError, match="150 of them had been seen"):
            unread.step()
        lenient.step()
        assert not lenient.step()
        assert lenient.at["s"].lost == 50
        # The very same entries: they were seen to be gone, so these are others.
        add(client, "s", *ids(1, 300))
        lenient.run(70)
        assert numbers(lenient.read["s"]) == [*range(1, 101), *range(1, 301)]
        assert lenient.at["s"].lost == 50


def test_streams_of_a_pattern_that_are_deleted(
    live: Process, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, start: Start
) -> None:
    """One that was read to its end may go; one that was not is told."""
    monkeypatch.setattr("pyspark_headrace.planner.PATTERN_EVERY_S", 0.0)
    with live.client() as client:
        add(client, "s:1", *ids(1, 10))
        add(client, "s:2", *ids(1, 10))
        query = start(live, subscribe=None, subscribePattern="s:*", startingOffsets="earliest")
        assert query.step()
        client.call("DEL", "s:1")
        with caplog.at_level(logging.WARNING):
            query.step()
        assert "stream s:1 is gone; all that was seen of it had been read" in caplog.text
        assert set(query.at) == {"s:2"}
        assert not query.step()
        add(client, "s:1", *ids(5, 8))
        assert query.step()
        assert numbers(query.read["s:1"]) == [*range(1, 11), *range(5, 9)]
        add(client, "s:2", *ids(11, 30))
        assert query.step(5)
        client.call("SET", "s:2", "no stream")
        with pytest.raises(DataLossError, match=r"s:2: it is gone.*15 of them had been seen"):
            query.step()


def test_counters_that_were_set(
    live: Process, caplog: pytest.LogCaptureFixture, start: Start
) -> None:
    """XSETID moves no entry: nothing is read twice or passed over."""
    with live.client() as client:
        add(client, "s", *ids(1, 150))
        options = {"startingOffsets": "earliest", "failOnDataLoss": "false"}
        half, whole = start(live, **options), start(live, **options)
        assert half.step(100)
        assert whole.step()
        with caplog.at_level(logging.WARNING):
            client.call("XSETID", "s", "900-1", "ENTRIESADDED", 1000, "MAXDELETEDID", "20-1")
            for query in (half, whole):
                query.run(30)
            assert half.at["s"].id == (900, 1)
            client.call("XSETID", "s", "150-1", "ENTRIESADDED", 150, "MAXDELETEDID", "0-0")
            for query in (half, whole):
                assert query.step()
            assert "its counters were set by XSETID" in caplog.text
        add(client, "s", *ids(151, 1200))
        for query in (half, whole):
            query.run(200)
            assert numbers(query.read["s"]) == list(range(1, 1201))
            assert query.at["s"].n == 1200


def test_counters_that_were_set_lower_are_no_loss(live: Process, start: Start) -> None:
    with live.client() as client:
        add(client, "s", *ids(1, 150))
        client.call("XTRIM", "s", "MAXLEN", 120)
        query = start(live, startingOffsets="earliest")
        assert query.step(50)
        client.call("XSETID", "s", "150-1", "ENTRIESADDED", 120)
        query.run(30)
        assert numbers(query.read["s"]) == list(range(31, 151))
        client.call("XTRIM", "s", "MAXLEN", 0)
        client.call("XSETID", "s", "300-1", "ENTRIESADDED", 0)
        with pytest.raises(DataLossError, match=ANEW):
            query.step()


def test_trimming_behind_an_entry_that_lives(live: Process, start: Start) -> None:
    """XTRIM ... ACKED leaves what is pending, and takes newer entries though Spark has not read."""
    with live.client() as client:
        add(client, "s", *ids(1, 100))
        client.call("XGROUP", "CREATE", "s", "g", "0")
        client.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
        client.call("XACK", "s", "g", *ids(2, 100))
        strict = start(live, startingOffsets="earliest")
        lenient = start(live, startingOffsets="earliest", failOnDataLoss="false")
        read_all = start(live, startingOffsets="earliest")
        for query in (strict, lenient):
            assert query.step(40)
        assert read_all.step()
        if client.call("XTRIM", "s", "MAXLEN", 0, "ACKED")[:1] == b"-":
            pytest.skip("this server has no ACKED")
        add(client, "s", *ids(101, 120))
        with pytest.raises(DataLossError, match="s: 60 entries after 40-1 were removed"):
            strict.step()
        lenient.run(7)
        assert numbers(lenient.read["s"]) == [*range(1, 41), *range(101, 121)]
        read_all.run()
        assert numbers(read_all.read["s"]) == list(range(1, 121))


def without_what_was_seen(checkpoint: str) -> str:
    """The checkpoint as the first release wrote it."""
    offset = {
        key: {"id": format_id(position.id), **({"n": position.n} if position.n >= 0 else {})}
        for key, position in from_offset(json.loads(checkpoint)).items()
    }
    return json.dumps({"k": offset, "v": 1})


OLD = {name: CHANGES[name] for name in ("higher and fewer", "higher and more", "only part of them")}


@pytest.mark.parametrize("name", list(OLD))
def test_a_checkpoint_of_an_earlier_version(live: Process, name: str, start: Start) -> None:
    change, text = OLD[name]
    with live.client() as client:
        add(client, "s", *ids(1, 150))
        query = start(live, startingOffsets="earliest")
        assert query.step(100)
        old = without_what_was_seen(query.checkpoint)
        same = start(live, old)
        same.run(20)
        assert numbers(same.read["s"]) == list(range(101, 151))
        change(client)
        strict = start(live, old)
        with pytest.raises(DataLossError, match=text):
            strict.step()
        lenient = start(live, old, failOnDataLoss="false")
        lenient.run(50)
        assert all(value.startswith("new") for value in lenient.values["s"])
        assert len(lenient.values["s"]) == client.call_parsed("XLEN", "s")


def test_an_earlier_version_and_lower_ids_that_pass(server: Process, start: Start) -> None:
    """Where entries are counted, an offset without what was seen is enough."""
    with server.client() as client:
        add(client, "s", *ids(100, 1099))
        query = start(server, startingOffsets="earliest")
        assert query.step()
        client.call("DEL", "s")
        add(client, "s", *ids(1, 3000))
        strict = start(server, without_what_was_seen(query.checkpoint))
        with pytest.raises(DataLossError, match=ANEW):
            strict.step()
        lenient = start(server, without_what_was_seen(query.checkpoint), failOnDataLoss="false")
        lenient.run(700)
        assert numbers(lenient.read["s"]) == list(range(1, 3001))


def test_without_a_rank_a_loss_is_noticed_by_the_next_entry(live: Process, start: Start) -> None:
    """Where nobody counts, a query that starts in the middle has no rank."""
    with live.client() as client:
        add(client, "s", *ids(1, 100))
        strict = start(live, startingOffsets='{"s":"20-1"}')
        lenient = start(live, startingOffsets='{"s":"20-1"}', failOnDataLoss="false")
        for query in (strict, lenient):
            assert query.step(30)
        client.call("XTRIM", "s", "MINID", "51-1")  # what was read, to the last
        for query in (strict, lenient):
            assert query.step(10)
        client.call("XTRIM", "s", "MINID", "66-1")
        with pytest.raises(DataLossError, match=r"5 entries after 60-1 were removed|up to .* 60-1"):
            strict.step()
        lenient.run(10)
        assert numbers(lenient.read["s"]) == [*range(21, 61), *range(66, 101)]
        assert lenient.at["s"].lost >= 5


def test_deleted_by_name_and_trimmed_when_read_is_no_loss(live: Process, start: Start) -> None:
    """Ranks that are found by walking do not count what was deleted on the way."""
    with live.client() as client:
        add(client, "s", *ids(1, 100))
        client.call("XDEL", "s", *ids(3, 9))
        query = start(live, startingOffsets="earliest")
        assert query.step(30)
        assert numbers(query.read["s"])[-1] == 37
        client.call("XTRIM", "s", "MINID", "38-1")
        query.run(25)
        assert numbers(query.read["s"]) == [1, 2, *range(10, 101)]
        assert query.at["s"].lost == 0
        assert query.at["s"].n == 100


# Between planning and reading

AMID = {
    "higher": (anew(151, 800), "made anew between planning and reading"),
    "lower and beyond": (anew(30, 3000), "made anew between planning and reading"),
    "the same IDs": (anew(1, 150), "made anew between planning and reading"),
    "gone": (lambda client: client.call("DEL", "s"), "it is gone between planning and reading"),
}


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", list(AMID))
def test_replaced_between_planning_and_reading(
    live: Process, name: str, parts: int, start: Start
) -> None:
    change, text = AMID[name]
    with live.client() as client:
        add(client, "s", *ids(1, 150))
        options = {"startingOffsets": "earliest", "minPartitions": parts, "fetchCount": 20}
        strict = start(live, **options)
        lenient = start(live, failOnDataLoss="false", **options)
        for query in (strict, lenient):
            assert query.step(50)
        lenient.before_reading = lambda: change(client)
        assert lenient.step(60)
        lenient.before_reading = bool
        lenient.run(70)
        left = client.call_parsed("XRANGE", "s", "-", "+")
        assert isinstance(left, list)
        assert lenient.values["s"][50:] == [row[1].decode() for _, row in left]

        client.call("DEL", "s")
        add(client, "s", *ids(1, 150))
        strict.before_reading = lambda: change(client)
        with pytest.raises(DataLossError, match=text):
            strict.step(60)


@pytest.mark.parametrize("trimmed", [0, 100, 101, 149])
@pytest.mark.parametrize("parts", [1, 4])
def test_trimmed_between_planning_and_reading(
    live: Process, parts: int, trimmed: int, start: Start
) -> None:
    """In batches that were counted and in such as were not."""
    with live.client() as client:
        add(client, "s", *ids(1, 150))
        query = start(live, startingOffsets="earliest", minPartitions=parts)
        assert query.step(100)
        query.before_reading = lambda: client.call("XTRIM", "s", "MINID", f"{trimmed + 1}-1")
        if trimmed <= 100:
            assert query.step()
        else:
            with pytest.raises(DataLossError, match="removed between planning and reading"):
                query.step()
