"""``identity=marker``: rows written once on a server that knows none again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from conftest import Factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

from pyspark_headrace.errors import OptionError, ServerError, UnreachableError, UnsafeWriteError
from pyspark_headrace.source import HeadraceSource
from pyspark_headrace.writer import StreamSink, Written
from support.breaker import Breaker
from support.process import Process
from support.spark_task import QUERY, task
from support.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.once

LIFE_S = 7 * 86_400


class Crash(Exception):
    """A task that dies."""


@pytest.fixture(params=["ours", "redis"])
def anyone(request: pytest.FixtureRequest) -> Process:
    """Our server, and one that has no IDMP."""
    found: Process = request.getfixturevalue(
        {"ours": "server", "redis": "redis_server"}[request.param]
    )
    return found


def numbers(rows: int, first: int = 0) -> pa.Table:
    return pa.table({"n": list(range(first, first + rows))})


def sink_for(process: Process, table: pa.Table, **options: object) -> StreamSink:
    given_ = {
        "port": process.port,
        "stream": "out",
        "identity": "marker",
        "pipelineDepth": 10,
        "fetchOffset.retryIntervalMs": 1,
        **options,
    }
    source = HeadraceSource(
        {name: str(value) for name, value in given_.items() if value is not None}
    )
    return source.streamWriter(from_arrow_schema(table.schema), False)


def write(
    process: Process, table: pa.Table, die_after: int = -1, batch: int = 0, **options: Any
) -> Written:
    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for part in table.to_batches(max_chunksize=7):
            if 0 <= die_after <= rows:
                raise Crash
            yield part
            rows += part.num_rows
        if die_after >= 0:
            raise Crash

    with task(0, batch):
        return sink_for(process, table, **options).write(batches())


def entries(process: Process, stream: str = "out") -> list[int]:
    found = process.call("XRANGE", stream, "-", "+")
    assert isinstance(found, list)
    return [int(row[1]) for _, row in found]


def marker_keys(process: Process) -> list[bytes]:
    found = process.call("KEYS", "*:sink:*:p*")
    assert isinstance(found, list)
    return sorted(found)


def test_attempts_go_on_where_the_last_one_was(anyone: Process) -> None:
    table = numbers(100)
    with pytest.raises(Crash):
        write(anyone, table, die_after=35)
    assert entries(anyone) == list(range(30))
    with pytest.raises(Crash):  # windows of another size, and a cap
        write(anyone, table, die_after=56, pipelineDepth=25, maxlen=1000)
    assert entries(anyone) == list(range(50))
    done = write(anyone, table)
    assert (done.rows, done.known) == (100, 50)
    done = write(anyone, table)
    assert (done.rows, done.known) == (100, 100)
    assert entries(anyone) == list(range(100))
    write(anyone, table, batch=1)
    assert entries(anyone) == [*range(100), *range(100)]
    (key,) = marker_keys(anyone)
    assert key.startswith(b"out:sink:" + QUERY[:8].encode())
    assert anyone.call("TTL", key) == -1


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(0, 60),
    attempts=st.lists(st.tuples(st.integers(0, 70), st.integers(1, 30)), max_size=4),
)
def test_however_attempts_end(server: Process, rows: int, attempts: list[tuple[int, int]]) -> None:
    server.call("FLUSHALL")
    table = numbers(rows)
    for die_after, depth in attempts:
        with pytest.raises(Crash):
            write(server, table, die_after=die_after, pipelineDepth=depth)
    assert write(server, table).rows == rows
    assert entries(server) == list(range(rows))


@pytest.mark.parametrize(
    "other",
    [numbers(100, 1), numbers(20), pa.table({"n": [*range(29), 30, 29, *range(31, 100)]})],
    ids=["other rows", "fewer rows", "another order"],
)
def test_other_rows_in_the_same_places_are_refused(server: Process, other: pa.Table) -> None:
    with pytest.raises(Crash):
        write(server, numbers(100), die_after=35)
    with pytest.raises(UnsafeWriteError, match="this partition begins with other rows"):
        write(server, other)
    assert entries(server) == list(range(30))
    write(server, numbers(100))
    assert entries(server) == list(range(100))


def test_nothing_where_there_was_something(server: Process) -> None:
    """A partition that is empty in the next attempt shows that the plan was changed."""
    write(server, numbers(10))
    with pytest.raises(UnsafeWriteError, match="other rows"):
        write(server, numbers(0))


def test_of_two_attempts_one_writes_each_window(anyone: Process) -> None:
    """The first one is held up in its middle while the second does it all."""
    table = numbers(100)
    held_up, done = threading.Event(), threading.Event()
    found: list[Written] = []

    def slow() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(table.to_batches(max_chunksize=10)):
            if number == 4:
                held_up.set()
                assert done.wait(DEADLINE_S)
            yield part

    def first() -> None:
        with task():
            found.append(sink_for(anyone, table).write(slow()))

    thread = threading.Thread(target=first)
    thread.start()
    assert held_up.wait(DEADLINE_S)
    second = write(anyone, table)
    done.set()
    thread.join(DEADLINE_S)
    assert entries(anyone) == list(range(100))
    assert second.known == 40
    assert [each.known for each in found] == [60]


def test_attempts_side_by_side(server: Process) -> None:
    table = numbers(600)
    threads = [
        threading.Thread(target=write, args=(server, table), kwargs={"pipelineDepth": depth})
        for depth in (3, 5, 7)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert entries(server) == list(range(600))


def test_an_attempt_of_an_older_batch_comes_too_late(server: Process) -> None:
    write(server, numbers(20), batch=5)
    with pytest.raises(UnsafeWriteError, match="batch 5 is being written, so this attempt of"):
        write(server, numbers(20), batch=4)
    assert entries(server) == list(range(20))


def test_two_streams_share_a_marker(anyone: Process) -> None:
    keys = [f"out:{n % 2}" for n in range(50)]
    table = pa.table({"key": keys, "n": list(range(50))})
    source = {"port": str(anyone.port), "identity": "marker", "pipelineDepth": "10"}
    for die_after in (25, -1):
        with task():
            sink = HeadraceSource(source).streamWriter(from_arrow_schema(table.schema), False)
            parts = table.to_batches(max_chunksize=5)
            sink.write(iter(parts if die_after < 0 else parts[:5]))
    assert entries(anyone, "out:0") == list(range(0, 50, 2))
    assert entries(anyone, "out:1") == list(range(1, 50, 2))


def test_a_batch_job_with_a_run_id(anyone: Process) -> None:
    schema = from_arrow_schema(numbers(1).schema)
    for _ in range(2):
        source = HeadraceSource(
            {"port": str(anyone.port), "stream": "out", "identity": "marker", "runId": "tonight"}
        )
        with task(0, None, None):
            source.writer(schema, False).write(iter(numbers(50).to_batches()))
    assert entries(anyone) == list(range(50))
    (key,) = marker_keys(anyone)
    ttl = anyone.call("TTL", key)
    assert isinstance(ttl, int)
    assert LIFE_S - 60 <= ttl <= LIFE_S


def test_two_writes_in_a_batch_want_names(server: Process) -> None:
    """Inside of foreachBatch, to one stream, with the same columns."""

    def job(first: int, **options: str) -> None:
        given_ = {"port": str(server.port), "stream": "out", "identity": "marker", **options}
        table = numbers(10, first)
        with task():
            sink = HeadraceSource(given_).writer(from_arrow_schema(table.schema), False)
            sink.write(iter(table.to_batches()))

    job(0)
    with pytest.raises(UnsafeWriteError, match="want a writerId each"):
        job(10)
    job(10, writerId="second")
    assert entries(server) == list(range(20))


def test_a_scope_that_a_place_cannot_have() -> None:
    source = HeadraceSource({"stream": "out", "identity": "marker", "idScope": "query"})
    with pytest.raises(OptionError, match="idScope=query and identity=marker"):
        source.streamWriter(from_arrow_schema(numbers(1).schema), False)


# When the server is away


@pytest.mark.parametrize("after_bytes", [5, 60, 150, 400, 700, 1100])
def test_a_connection_that_breaks(anyone: Process, after_bytes: int) -> None:
    """Anywhere: the marker tells whether the window that was on its way has arrived."""
    breaker = Breaker(anyone.port)
    breaker.cut_after_bytes = after_bytes
    try:
        assert write(anyone, numbers(100), port=breaker.port).rows == 100
        assert breaker.connections > 1
    finally:
        breaker.close()
    assert entries(anyone) == list(range(100))


def test_a_server_that_stays_away(server: Process) -> None:
    with pytest.raises(UnreachableError):
        write(server, numbers(10), port=1)


def test_a_server_out_of_memory_is_waited_for(anyone: Process) -> None:
    def parts() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(numbers(100).to_batches(max_chunksize=10)):
            if number == 3:
                anyone.call("CONFIG", "SET", "maxmemory", 1)
                thread.start()
            yield part

    def make_room() -> None:
        wait_until(lambda: anyone.info("errorstats").get("errorstat_OOM"))
        anyone.call("CONFIG", "SET", "maxmemory", 0)

    anyone.call("CONFIG", "RESETSTAT")
    thread = threading.Thread(target=make_room)
    with task():
        sink_for(anyone, numbers(1)).write(parts())
    thread.join(DEADLINE_S)
    assert entries(anyone) == list(range(100))


def test_a_row_that_is_refused_does_not_count(anyone: Process) -> None:
    """The stream becomes a string in the middle: the marker does not say that rows are there."""

    def parts() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(numbers(100).to_batches(max_chunksize=10)):
            if number == 3:
                anyone.call("RENAME", "out", "kept")
                anyone.call("SET", "out", "x")
            yield part

    with task(), pytest.raises(ServerError, match=r"WRONGTYPE .*\(stream out\)"):
        sink_for(anyone, numbers(1)).write(parts())
    anyone.call("RENAME", "kept", "out")
    assert write(anyone, numbers(100)).known == 30
    assert entries(anyone) == list(range(100))


def test_a_server_that_has_lost_rows(fresh_server: Factory) -> None:
    """It kept nothing on disk and was killed: the attempt fails, and the next one is right."""
    server = fresh_server()
    more = numbers(100).to_batches(max_chunksize=10)

    def parts() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(more):
            if number == 5:
                server.restart(crash=True)
            yield part

    with task(), pytest.raises(UnsafeWriteError, match=r"had 50 rows .* and has 0 now"):
        sink_for(server, numbers(1), **{"fetchOffset.retryIntervalMs": 200}).write(parts())
    write(server, numbers(100))
    assert entries(server) == list(range(100))


def test_a_server_killed_under_the_sink(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    table = numbers(4000)
    killed = threading.Event()

    def killer() -> None:
        with server.client() as client:
            while client.call_parsed("XLEN", "out") < 1000:  # type: ignore[operator]
                time.sleep(0.001)
        server.restart(crash=True)
        killed.set()

    thread = threading.Thread(target=killer)
    thread.start()
    more = {"pipelineDepth": 50, "fetchOffset.retryIntervalMs": 200}
    assert write(server, table, **more).rows == 4000
    thread.join(30)
    assert killed.is_set()
    assert entries(server) == list(range(4000))


def test_rows_that_cannot_be_written_are_known_again(anyone: Process) -> None:
    """They have a place in the partition, as all rows have: each goes there once."""
    anyone.call("SET", "text", "x")
    keys = ["out", "text", "other", None, "out"] * 20
    table = pa.table({"key": keys, "n": list(range(100))})
    options: dict[str, Any] = {"stream": None, "errorStream": "errors"}
    for die_after in (35, 70, -1, -1):
        if die_after >= 0:
            with pytest.raises(Crash):
                write(anyone, table, die_after, **options)
        else:
            written = write(anyone, table, **options)
    assert (written.rows, written.known, written.turned_away) == (100, 100, 40)
    assert entries(anyone) == [n for n in range(100) if n % 5 in (0, 4)]
    assert entries(anyone, "other") == list(range(2, 100, 5))
    errors = anyone.call("XRANGE", "errors", "-", "+")
    assert isinstance(errors, list)
    found = [dict(zip(row[0::2], row[1::2], strict=True)) for _, row in errors]
    assert [int(row[b"n"]) for row in found] == [n for n in range(100) if n % 5 in (1, 3)]
    assert {row[b"_stream"] for row in found} == {b"text", b""}
    assert {row[b"_error"] for row in found if row[b"_stream"]} == {b"text is not a stream"}


def test_streams_that_the_user_may_not_write(anyone: Process) -> None:
    """NOPERM turns rows away, too, once each; the marker itself must be allowed."""
    anyone.call("ACL", "SETUSER", "ada", "on", "nopass", "~out*", "~errors", "~headrace:*", "+@all")
    table = pa.table({"key": ["out", "secret"] * 30, "n": list(range(60))})
    options: dict[str, Any] = {"stream": None, "errorStream": "errors", "username": "ada"}
    with pytest.raises(Crash):
        write(anyone, table, 30, **options)
    for known in (28, 60):
        assert write(anyone, table, **options).known >= known
    assert entries(anyone) == list(range(0, 60, 2))
    errors = anyone.call("XRANGE", "errors", "-", "+")
    assert isinstance(errors, list)
    assert [int(dict(zip(row[0::2], row[1::2], strict=True))[b"n"]) for _, row in errors] == list(
        range(1, 60, 2)
    )
    assert anyone.call("EXISTS", "secret") == 0
    with pytest.raises(ServerError, match="NOPERM"):
        write(anyone, table, batch=1, stream=None, username="ada")
    with pytest.raises(ServerError, match="NOPERM"):
        write(anyone, table.select(["n"]), batch=2, stream="secret", username="ada")
    anyone.call("ACL", "DELUSER", "ada")
