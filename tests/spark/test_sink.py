"""The sink, task by task: what it writes, and that what is written again counts once."""

from __future__ import annotations

import datetime
import decimal
import json
import logging
import pickle
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from conftest import Factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

from pyspark_headrace.encoder import layout_of
from pyspark_headrace.errors import (
    HeadraceError,
    OptionError,
    ServerError,
    UnreachableError,
    UnsafeWriteError,
    ValueTrouble,
)
from pyspark_headrace.identity import Labels, Origin, Tokens, safe_rows
from pyspark_headrace.options import write_options
from pyspark_headrace.source import HeadraceSource
from pyspark_headrace.texts import as_bytes, slices
from pyspark_headrace.writer import BatchSink, StreamSink, Written
from support.breaker import Breaker
from support.client import RawClient, WireError
from support.process import Process, RedisProcess
from support.spark_task import task
from support.waiting import wait_until

pytestmark = pytest.mark.once

Entry = dict[str, str]


class Crash(Exception):
    """A task that dies."""


def options_for(process: Process, **options: object) -> dict[str, str]:
    given_ = {"port": process.port, "stream": "out", "fetchOffset.retryIntervalMs": 1, **options}
    return {name: str(value) for name, value in given_.items() if value is not None}


def sink_for(process: Process, table: pa.Table, **options: object) -> StreamSink:
    source = HeadraceSource(options_for(process, **options))
    sink: StreamSink = source.streamWriter(from_arrow_schema(table.schema), False)
    again: StreamSink = pickle.loads(pickle.dumps(sink))
    return again


def batches_of(table: pa.Table, size: int = 7, die_after: int = -1) -> Iterator[pa.RecordBatch]:
    """The rows of a table a few at a time; a task may die between them."""
    rows = 0
    for batch in table.to_batches(max_chunksize=size):
        if 0 <= die_after <= rows:
            raise Crash
        yield batch
        rows += batch.num_rows
    if die_after >= 0:
        raise Crash


def write(
    process: Process,
    table: pa.Table,
    partition: int = 0,
    batch: int = 0,
    die_after: int = -1,
    **options: Any,
) -> Written:
    with task(partition, batch):
        sink = sink_for(process, table, **options)
        return sink.write(batches_of(table, die_after=die_after))


def entries(process: Process, stream: str = "out") -> list[Entry]:
    found = process.call("XRANGE", stream, "-", "+")
    assert isinstance(found, list)
    return [
        dict(zip(map(bytes.decode, row[0::2]), map(bytes.decode, row[1::2]), strict=True))
        for _, row in found
    ]


def table_of(rows: Sequence[dict[str, Any]], **kinds: pa.DataType) -> pa.Table:
    schema = pa.schema(list(kinds.items())) if kinds else None
    return pa.Table.from_pylist(list(rows), schema=schema)


NUMBERS = table_of([{"n": number} for number in range(500)])


# What is written


def test_the_text_of_values() -> None:
    def text(value: object, kind: pa.DataType) -> bytes:
        return slices(as_bytes(pa.array([None, value], kind)))[1]

    noon = datetime.datetime(2026, 1, 31, 12, 0, 0, 5)
    east = datetime.timezone(datetime.timedelta(hours=2))
    assert text("ü", pa.string()) == "ü".encode()
    assert text(b"\xff", pa.binary()) == b"\xff"
    assert text(-17, pa.int64()) == b"-17"
    assert text(0.1, pa.float64()) == b"0.1"
    assert text(3.0, pa.float64()) == b"3"
    assert float(text(1 / 3, pa.float64())) == 1 / 3
    assert text(decimal.Decimal("1.50"), pa.decimal128(10, 2)) == b"1.50"
    assert text(True, pa.bool_()) == b"true"
    assert text(datetime.date(2026, 1, 31), pa.date32()) == b"2026-01-31"
    assert text(noon, pa.timestamp("us")) == b"2026-01-31T12:00:00.000005"
    assert (
        text(noon.replace(tzinfo=east), pa.timestamp("us", tz="+02:00"))
        == b"2026-01-31T10:00:00.000005Z"
    )
    assert text([1, None], pa.list_(pa.int32())) == b"[1,null]"
    inner = pa.struct([("a", pa.string()), ("d", pa.date32())])
    assert text({"a": "ü", "d": noon.date()}, inner) == '{"a":"ü","d":"2026-01-31"}'.encode()
    assert text([("a", 1), ("b", None)], pa.map_(pa.string(), pa.int64())) == b'{"a":1,"b":null}'
    assert text([(1, "x")], pa.map_(pa.int64(), pa.string())) == b'{"1":"x"}'
    deep = pa.struct(
        [
            ("b", pa.list_(pa.binary())),
            ("t", pa.timestamp("us", tz="UTC")),
            ("f", pa.list_(pa.float64())),
            ("d", pa.decimal128(5, 2)),
        ]
    )
    values = {
        "b": [b"text", b"\xff"],
        "t": noon.replace(tzinfo=datetime.UTC),
        "f": [0.5, float("nan"), None],
        "d": decimal.Decimal("1.50"),
    }
    assert json.loads(text(values, deep)) == {
        "b": ["text", {"base64": "/w=="}],
        "t": "2026-01-31T12:00:00.000005Z",
        "f": [0.5, "nan", None],
        "d": "1.50",
    }
    small = decimal.Decimal("0.00000012")
    assert text(small, pa.decimal128(38, 10)) == b"0.0000001200"
    assert text(b"\xff", pa.large_binary()) == b"\xff"
    assert text("x", pa.large_string()) == b"x"


@given(st.lists(st.none() | st.binary(max_size=5)), st.integers(0, 4), st.integers(0, 4))
def test_slices_of_slices(values: list[bytes | None], low: int, high: int) -> None:
    column = pa.array(values, pa.binary())[low : len(values) - high]
    assert slices(column) == [each or b"" for each in column.to_pylist()]


def test_columns_become_fields(server: Process) -> None:
    table = table_of(
        [
            {"a": "x", "b%": 1, "_hidden": "h"},
            {"a": None, "b%": 2, "_hidden": "h"},
            {"a": "", "b%": None},
        ],
    )
    assert write(server, table).rows == 3
    assert entries(server) == [{"a": "x", "b%": "1"}, {"b%": "2"}, {"a": ""}]


def test_what_the_source_gave_comes_out_again(server: Process) -> None:
    table = table_of(
        [
            {"key": "in", "id": "1-1", "id_ms": 1, "fields": [("a", "1"), ("b", None)]},
            {"key": "in", "id": "1-2", "id_ms": 1, "fields": [("c", "3")]},
        ],
        key=pa.string(),
        id=pa.string(),
        id_ms=pa.int64(),
        fields=pa.map_(pa.string(), pa.string()),
    )
    write(server, table)
    assert entries(server) == [{"a": "1"}, {"c": "3"}]
    pair = pa.struct([("name", pa.binary()), ("value", pa.binary())])
    rows = [{"pairs": [{"name": b"a", "value": b"\xff"}, {"name": b"a", "value": b""}]}]
    write(server, table_of(rows, pairs=pa.list_(pair)), stream="raw")
    found = server.call("XRANGE", "raw", "-", "+")
    assert isinstance(found, list)
    assert found[0][1] == [b"a", b"\xff", b"a", b""]


def test_headers_are_fields_of_a_kind(server: Process) -> None:
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    kinds = {"fields": pa.map_(pa.string(), pa.string()), "headers": pa.list_(header)}
    trace = [{"key": "trace", "value": b"\xff"}, {"key": "trace", "value": b"2"}]
    rows: list[dict[str, Any]] = [
        {"fields": [("a", "1")], "headers": trace},
        {"fields": [("a", "2")], "headers": None},
        {"fields": [], "headers": [{"key": "only", "value": b"x"}, {"key": "no", "value": None}]},
    ]
    write(server, table_of(rows, **kinds))
    found = server.call("XRANGE", "out", "-", "+")
    assert isinstance(found, list)
    assert [row for _, row in found] == [
        [b"a", b"1", b"h:trace", b"\xff", b"h:trace", b"2"],
        [b"a", b"2"],
        [b"h:only", b"x"],
    ]
    columns = {"n": pa.int64(), "headers": pa.string(), "_headers": pa.list_(header)}
    write(server, table_of([{"n": 1, "headers": "no", "_headers": trace}], **columns), stream="c")
    found = server.call("XRANGE", "c", "-", "+")
    assert isinstance(found, list)
    assert found[0][1] == [
        *(b"n", b"1", b"headers", b"no"),
        *(b"h:trace", b"\xff", b"h:trace", b"2"),
    ]
    with pytest.raises(OptionError, match="column headers holds headers, and must be array"):
        sink_for(
            server,
            table_of([{"fields": [], "headers": "x"}], fields=kinds["fields"], headers=pa.string()),
        )


def test_a_name_that_is_null(server: Process) -> None:
    pair = pa.struct([("name", pa.binary()), ("value", pa.binary())])
    rows = [{"pairs": [{"name": name, "value": b"x"}]} for name in (b"a", None)]
    with pytest.raises(ValueTrouble, match=r"row 1 .* has a null for a name in column pairs"):
        write(server, table_of(rows, pairs=pa.list_(pair)))


def test_a_column_names_the_stream(server: Process) -> None:
    rows = [{"key": f"out:{number % 3}", "n": number} for number in range(30)]
    table = table_of(rows)
    for _ in range(2):
        assert write(server, table, stream=None).rows == 30
    for number in range(3):
        found = entries(server, f"out:{number}")
        assert found == [{"n": str(each)} for each in range(number, 30, 3)]


def test_the_stream_is_capped(server: Process) -> None:
    write(server, NUMBERS, maxlen=20, approximateTrim="false")
    assert [entry["n"] for entry in entries(server)] == [str(n) for n in range(480, 500)]
    write(server, NUMBERS, batch=1, maxlen=100)
    assert 100 <= len(entries(server)) < 300


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([{"a": "x", "_iid": "1"}, {"a": None, "_iid": "2"}], "row 1 .* has no field with a value"),
        ([{"a": "x", "_iid": "1"}, {"a": "y", "_iid": None}], "row 1 .* has null in column _iid"),
    ],
)
def test_rows_that_cannot_be_written(
    server: Process, rows: list[dict[str, Any]], text: str
) -> None:
    with pytest.raises(ValueTrouble, match=text):
        write(server, table_of(rows))
    assert server.call("EXISTS", "out") == 0


def test_rows_that_cannot_be_written_go_to_the_stream_of_errors(
    server: Process, caplog: pytest.LogCaptureFixture
) -> None:
    """Each once, however often the batch is repeated, with what they have and why."""
    server.call("SET", "text", "x")
    rows: list[dict[str, Any]] = [
        {"key": "out", "a": "1", "_iid": "1"},
        {"key": "out", "a": None, "_iid": "2"},
        {"key": None, "a": "3", "_iid": "3"},
        {"key": "out", "a": "4", "_iid": None},
        {"key": "text", "a": "5", "_iid": "5"},
        {"key": "text", "a": "5", "_iid": "6"},
        {"key": "out", "a": "7", "_iid": "7"},
    ]
    for _ in range(2):
        written = write(server, table_of(rows), stream=None, errorStream="errors")
        assert (written.rows, written.turned_away) == (7, 5)
    assert entries(server) == [{"a": "1"}, {"a": "7"}]
    found = entries(server, "errors")
    assert [(each["_error"], each["_stream"], each.get("a")) for each in found] == [
        ("row 1 of this partition has no field with a value; an entry needs one", "out", None),
        ("row 2 of this partition has null in column key", "", "3"),
        ("row 3 of this partition has null in column _iid", "out", "4"),
        ("text is not a stream", "text", "5"),
        ("text is not a stream", "text", "5"),
    ]
    assert server.call("GET", "text") == b"x"
    sink = sink_for(server, table_of(rows), stream=None, errorStream="errors")
    with caplog.at_level(logging.WARNING):
        sink.commit([written], 0)
    assert "5 of 7 rows could not be written, and went to the errorStream" in caplog.text


def test_pairs_without_a_name_go_to_the_stream_of_errors(redis_server: Process) -> None:
    """On a server without IDMP too; and a stream of errors that is none is an error."""
    pair = pa.list_(pa.struct([("name", pa.binary()), ("value", pa.binary())]))
    rows: list[dict[str, Any]] = [
        {"pairs": [(b"a", b"1")]},
        {"pairs": [(None, b"2")]},
        {"pairs": []},
    ]
    table = table_of(rows, pairs=pair)
    write(redis_server, table, errorStream="errors")
    assert entries(redis_server) == [{"a": "1"}]
    assert [each["_error"][:35] for each in entries(redis_server, "errors")] == [
        "row 1 of this partition has a null ",
        "row 2 of this partition has no fiel",
    ]
    redis_server.call("SET", "text", "x")
    with pytest.raises(HeadraceError, match="text is not a stream"):
        write(redis_server, table, errorStream="text")
    with pytest.raises(OptionError, match="errorStream names the stream that is written to"):
        sink_for(redis_server, table, errorStream="out")


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ({"_a": "x"}, {}, "nothing to write"),
        ({"n": 1}, {"stream": None}, "which stream"),
        ({"key": 1, "n": 1}, {"stream": None}, "column key names the stream of each row"),
        ({"n": datetime.timedelta(1)}, {}, "column n: interval day to second has no form"),
        ({"n": [[datetime.timedelta(1)]]}, {}, "column n: interval day to second has no form"),
        ({"n": 1}, {"identity": "column"}, "there is no column _iid; name one with idColumn"),
        ({"n": 1}, {"idColumn": "m"}, "there is no column m"),
        ({"n": 1}, {"runId": "tonight"}, "runId is for batch jobs"),
        ({"n": 1}, {"idScope": "query"}, "equal rows of two batches would count as one"),
    ],
)
def test_frames_that_cannot_be_written(
    server: Process, columns: dict[str, Any], options: dict[str, Any], text: str
) -> None:
    with pytest.raises(OptionError, match=text):
        sink_for(server, table_of([columns]), **options)


def test_only_appending(server: Process) -> None:
    source = HeadraceSource(options_for(server))
    schema = from_arrow_schema(NUMBERS.schema)
    for make in (source.writer, source.streamWriter):
        with pytest.raises(OptionError, match="only appended to"):
            make(schema, True)


def test_another_type_is_refused(server: Process) -> None:
    server.call("SET", "out", "x")
    with pytest.raises(HeadraceError, match="out is not a stream"):
        write(server, NUMBERS)


# Once, however often


@pytest.mark.parametrize("identity", ["content", "column", "ordinal", "source"])
def test_a_batch_that_is_written_again_counts_once(server: Process, identity: str) -> None:
    """More rows than a producer's window holds, attempts that die, and all of it once more."""
    kinds: dict[str, Callable[[int], dict[str, Any]]] = {
        "column": lambda n: {"_iid": f"i{n}"},
        "source": lambda n: {"_key": "in", "_id": f"{n}-0"},
    }
    rows = [{"n": n % 100} for n in range(3000)]
    if identity in kinds:
        rows = [{**kinds[identity](n), **row} for n, row in enumerate(rows)]
    table = table_of(rows)
    wanted = "auto" if identity == "source" else identity
    options = write_options({"stream": "out", "identity": wanted})
    layout = layout_of(from_arrow_schema(table.schema), options)
    assert layout.identity == identity
    for die_after in (0, 700, 2100):
        with pytest.raises(Crash):
            write(server, table, die_after=die_after, identity=wanted)
    for known in (None, 3000):
        done = write(server, table, identity=wanted)
        assert done.rows == 3000
        assert known is None or done.known == known
    assert Counter(entry["n"] for entry in entries(server)) == Counter(
        str(row["n"]) for row in rows
    )
    write(server, table, batch=1, identity=wanted)
    assert len(entries(server)) == 6000


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.integers(0, 6), max_size=60),
    deaths=st.lists(st.tuples(st.integers(0, 50), st.randoms()), max_size=3),
    order=st.randoms(),
    identity=st.sampled_from(["content", "column"]),
    targets=st.integers(0, 2),
)
def test_rows_in_another_order_are_the_same_rows(
    server: Process,
    values: list[int],
    deaths: list[tuple[int, random.Random]],
    order: random.Random,
    identity: str,
    targets: int,
) -> None:
    """After a shuffle an attempt meets its rows in another order; equal rows are all kept."""
    server.call("FLUSHALL")
    rows: list[dict[str, Any]] = [
        {"v": value, "key": f"out:{n % targets}" if targets else "x", "_iid": str(n)}
        for n, value in enumerate(values)
    ]
    if not targets:
        rows = [{name: row[name] for name in ("v", "_iid")} for row in rows]
    kinds = {
        name: pa.int64() if name == "v" else pa.string() for name in (rows[0] if rows else ["v"])
    }
    options: dict[str, Any] = {"identity": identity, "stream": None if targets and rows else "out"}
    if identity == "column" and not rows:
        return
    if identity == "content":
        options["idColumn"] = None
    for die_after, shuffler in deaths:
        shuffler.shuffle(rows)
        with pytest.raises(Crash):
            write(server, table_of(rows, **kinds), die_after=die_after, **options)
    order.shuffle(rows)
    write(server, table_of(rows, **kinds), **options)
    keys = {row.get("key", "out") for row in rows}
    found = [entry["v"] for key in keys for entry in entries(server, str(key))]
    assert Counter(found) == Counter(str(value) for value in values)


def test_equal_rows_of_one_entry_are_all_written(server: Process) -> None:
    """An explode gives several rows the ID of the entry they came from."""
    rows = [{"_key": "in", "_id": "1-1", "word": word} for word in ("a", "b", "a", "a")]
    for _ in range(2):
        write(server, table_of(rows))
    assert [entry["word"] for entry in entries(server)] == ["a", "b", "a", "a"]


def test_ids_that_are_not_unique_are_told(
    server: Process, caplog: pytest.LogCaptureFixture
) -> None:
    """A row left out as another's twin is not left out in silence; a repetition is no twin."""
    rows = [{"_iid": str(n % 40), "n": n} for n in range(50)]
    table = table_of(rows)
    with pytest.raises(Crash):
        write(server, table, die_after=20, pipelineDepth=5)
    sink = sink_for(server, table, pipelineDepth=5)
    with task(), caplog.at_level(logging.WARNING):
        sink.commit([sink.write(batches_of(table))], 7)
    assert "batch 7: 10 of 50 rows were left out, because the value of their idCol" in caplog.text
    assert [entry["n"] for entry in entries(server)] == [str(n) for n in range(40)]
    caplog.clear()
    for identity in ("content", "ordinal"):
        twins = table_of([{"n": n % 5} for n in range(50)])
        sink = sink_for(server, twins, stream=identity, identity=identity)
        with task(), caplog.at_level(logging.WARNING):
            sink.commit([sink.write(batches_of(twins)), sink.write(batches_of(twins))], 8)
        assert len(entries(server, identity)) == 50
    assert "left out" not in caplog.text


def test_a_changed_plan_repeats_rather_than_drops(server: Process) -> None:
    """With ``ordinal`` another row at the same place is another row."""
    write(server, NUMBERS.slice(0, 10), identity="ordinal")
    write(server, NUMBERS.slice(5, 10), identity="ordinal")
    assert {entry["n"] for entry in entries(server)} == {str(n) for n in range(15)}


def test_partitions_and_writers_are_told_apart(server: Process) -> None:
    for partition in (0, 1):
        write(server, NUMBERS, partition=partition)
    assert len(entries(server)) == 1000
    schema = from_arrow_schema(NUMBERS.schema)
    for writer in ("", "second", "third", "third"):
        source = HeadraceSource(options_for(server, stream="twice", writerId=writer or None))
        with task():
            source.writer(schema, False).write(batches_of(NUMBERS))
    assert len(entries(server, "twice")) == 1500


def test_id_scope_query_holds_across_batches(server: Process) -> None:
    table = table_of([{"_iid": str(n), "n": n} for n in range(50)])
    for batch in range(3):
        write(server, table, batch=batch, idScope="query")
    assert len(entries(server)) == 50


def test_changed_options_on_an_open_batch_are_refused(server: Process) -> None:
    table = table_of([{"_iid": str(n), "n": n} for n in range(50)])
    with pytest.raises(Crash):
        write(server, table, batch=3, die_after=20)
    before = entries(server)
    for change in ({"identity": "content"}, {"idmpProducers": 5}, {"idScope": "query"}):
        with pytest.raises(UnsafeWriteError, match="batch 3 was begun with other columns or"):
            write(server, table, batch=3, **change)
    with pytest.raises(UnsafeWriteError, match="other columns"):
        write(server, table.append_column("m", table["n"]), batch=3)
    assert entries(server) == before
    write(server, table, batch=3)
    write(server, table, batch=4, identity="content")
    assert len(entries(server)) == 100


def test_a_batch_job_with_a_run_id_can_be_run_again(
    server: Process, caplog: pytest.LogCaptureFixture
) -> None:
    schema = from_arrow_schema(NUMBERS.schema)

    def run(die_after: int = -1, **options: object) -> None:
        source = HeadraceSource(options_for(server, **options))
        sink: BatchSink = pickle.loads(pickle.dumps(source.writer(schema, False)))
        with task(0, None, None):
            sink.commit([sink.write(batches_of(NUMBERS, die_after=die_after)), None])

    with pytest.raises(Crash):
        run(300, runId="tonight")
    run(runId="tonight")
    run(runId="tonight")
    assert len(entries(server)) == 500
    run(runId="tomorrow")
    assert len(entries(server)) == 1000
    run()
    run()
    assert len(entries(server)) == 2000
    source = HeadraceSource(options_for(server, stream="task"))
    sink = source.writer(schema, False)  # its name is drawn here, for all attempts of its tasks
    with task(0, None, None):
        with pytest.raises(Crash):
            sink.write(batches_of(NUMBERS, die_after=300))
        sink.write(batches_of(NUMBERS))
    assert len(entries(server, "task")) == 500
    with caplog.at_level(logging.WARNING):
        sink.abort([Written(rows=7), None])
    assert "7 rows of it are in the stream" in caplog.text


def test_a_run_id_in_a_streaming_query_is_refused(server: Process) -> None:
    source = HeadraceSource(options_for(server, runId="tonight"))
    with task(), pytest.raises(UnsafeWriteError, match="two batches would count as one"):
        source.writer(from_arrow_schema(NUMBERS.schema), False).write(batches_of(NUMBERS))


def test_without_the_names_of_query_and_batch_nothing_is_written(server: Process) -> None:
    with task(0, None, None), pytest.raises(UnsafeWriteError, match=r"streaming\.sql\.batchId"):
        sink_for(server, NUMBERS).write(batches_of(NUMBERS))
    assert server.call("EXISTS", "out") == 0
    with task(0, None, None):
        sink_for(server, NUMBERS, identity="none").write(batches_of(NUMBERS))
    assert len(entries(server)) == 500


def test_redis_without_idmp_is_written_to_at_least_once(
    redis_server: RedisProcess, caplog: pytest.LogCaptureFixture
) -> None:
    if redis_server.version >= (8, 6):  # it has IDMP
        for _ in range(2):
            write(redis_server, NUMBERS)
            assert len(entries(redis_server)) == 500
        return
    with caplog.at_level(logging.WARNING):
        write(redis_server, NUMBERS)
    assert "at least once, not exactly once" in caplog.text
    assert len(entries(redis_server)) == 500
    with pytest.raises(UnsafeWriteError, match="has no XADD IDMP"):
        write(redis_server, NUMBERS, identity="content")
    assert len(entries(redis_server)) == 500


def test_how_long_rows_are_known(server: Process, caplog: pytest.LogCaptureFixture) -> None:
    sink = sink_for(server, NUMBERS, idmpProducers=2)
    with task(), caplog.at_level(logging.WARNING):
        sink.commit([sink.write(batches_of(NUMBERS)), None], 0)
    assert "has 500 rows, and only 100 are sure to be known again" in caplog.text
    assert "the stream forgets rows after 100 s" in caplog.text
    caplog.clear()
    sink = sink_for(server, NUMBERS, stream="new", configureIdmp="true", idmpMaxsize=250)
    with task(), caplog.at_level(logging.WARNING):
        sink.commit([sink.write(batches_of(NUMBERS))], 0)
    assert caplog.text == ""
    facts = server.call("XINFO", "STREAM", "new")
    assert isinstance(facts, list)
    assert facts[facts.index(b"idmp-duration") + 1] == 86_400
    assert facts[facts.index(b"idmp-maxsize") + 1] == 250
    assert facts[facts.index(b"groups") + 1] == 0
    # Where rows are known already, nothing is set: that would forget them.
    write(server, NUMBERS, batch=1, configureIdmp="true")
    facts = server.call("XINFO", "STREAM", "out")
    assert isinstance(facts, list)
    assert facts[facts.index(b"idmp-duration") + 1] == 100


def forget(process: Process) -> None:
    """Wait until the server's own clock says that it has forgotten what it was just given."""

    def now_s() -> float:
        found = process.call("TIME")
        assert isinstance(found, list)
        return int(found[0]) + int(found[1]) / 1_000_000

    until_s = now_s() + 1
    wait_until(lambda: now_s() >= until_s, 15)


@pytest.fixture
def forgetful(every_server: Process) -> Process:
    """A server whose stream ``out`` remembers rows for a second."""
    made = every_server.call("XGROUP", "CREATE", "out", "g", "$", "MKSTREAM")
    assert made == b"OK" or made == "OK"
    try:
        every_server.call("XCFGSET", "out", "IDMP-DURATION", 1)
    except WireError:
        pytest.skip("has no XADD IDMP")
    return every_server


def test_a_batch_that_is_repeated_too_late(
    forgetful: Process, caplog: pytest.LogCaptureFixture
) -> None:
    """What the stream has forgotten is not added once more in silence."""
    with pytest.raises(Crash):
        write(forgetful, NUMBERS, die_after=300, pipelineDepth=50)
    before = entries(forgetful)
    assert before
    forget(forgetful)
    late = r"batch 0 was begun \d+ s ago, and its stream forgets rows after 1 s .*failOnForgotten"
    with pytest.raises(UnsafeWriteError, match=late):
        write(forgetful, NUMBERS)
    # A longer memory comes too late for this batch.
    forgetful.call("XCFGSET", "out", "IDMP-DURATION", 86_400)
    with pytest.raises(UnsafeWriteError, match=late):
        write(forgetful, NUMBERS, partition=1)
    assert entries(forgetful) == before
    with caplog.at_level(logging.WARNING):
        write(forgetful, NUMBERS, failOnForgotten="false")
    assert "some rows may be there twice now" in caplog.text
    assert len(entries(forgetful)) == len(before) + 500
    # The next batch is remembered.
    for _ in range(2):
        write(forgetful, NUMBERS, batch=1)
    assert len(entries(forgetful)) == len(before) + 1000


def test_a_batch_that_takes_longer_than_the_memory(forgetful: Process) -> None:
    """Other tasks of its first attempt may begin late, but none may begin again."""
    sink = sink_for(forgetful, NUMBERS)
    with task(0, 0):
        sink.write(batches_of(NUMBERS))
    forget(forgetful)
    with task(1, 0):
        sink.write(batches_of(NUMBERS))
    assert len(entries(forgetful)) == 1000
    with task(0, 0, attempt=1), pytest.raises(UnsafeWriteError, match="batch 0 was begun"):
        sink.write(batches_of(NUMBERS))
    assert len(entries(forgetful)) == 1000


@pytest.mark.parametrize("options", [{"runId": "tonight"}, {}], ids=["run", "task"])
def test_a_batch_job_that_is_repeated_too_late(
    forgetful: Process, options: dict[str, object]
) -> None:
    """Under its runId; and without one, a task that is started again."""
    schema = from_arrow_schema(NUMBERS.schema)
    options = {**options, "pipelineDepth": 50}
    sink = HeadraceSource(options_for(forgetful, **options)).writer(schema, False)
    with task(0, None, None), pytest.raises(Crash):
        sink.write(batches_of(NUMBERS, die_after=300))
    before = entries(forgetful)
    forget(forgetful)
    if "runId" in options:
        sink = HeadraceSource(options_for(forgetful, **options)).writer(schema, False)
    with (
        task(0, None, None, attempt="runId" not in options),
        pytest.raises(UnsafeWriteError, match="this run was begun"),
    ):
        sink.write(batches_of(NUMBERS))
    assert entries(forgetful) == before


def test_a_write_inside_of_a_batch_that_is_repeated_too_late(forgetful: Process) -> None:
    """In foreachBatch; and what a query has begun is not forgotten after a time."""
    schema = from_arrow_schema(NUMBERS.schema)

    def write_inside(batch: int) -> None:
        with task(0, batch):
            HeadraceSource(options_for(forgetful)).writer(schema, False).write(batches_of(NUMBERS))

    for batch in range(2):
        write_inside(batch)
    forget(forgetful)
    with pytest.raises(UnsafeWriteError, match="batch 1 was begun"):
        write_inside(1)
    notes = forgetful.call("KEYS", "out:sink:*")
    assert isinstance(notes, list)
    assert [forgetful.call("TTL", note) for note in notes] == [-1]


def test_producers_are_never_overfull() -> None:
    """As many rows as are called safe, and no producer gets more than its window."""
    window = 100
    for producers in (1, 8, 256):
        rows = safe_rows(producers, window)
        labels = Labels(Origin("q", 1, 0), "w", "batch", producers)
        bodies = [b"%d" % n for n in range(rows)]
        found = labels.of(Tokens("content", 0).of(bodies, []))
        pids = Counter(label.split(b"\r\n")[3] for label in found)
        assert max(pids.values()) <= window
        assert len(set(found)) == rows


def test_long_values_of_an_id_column_are_shortened() -> None:
    tokens = Tokens("column", 0).of([b""] * 3, [b"x" * 64, b"x" * 65, b"x" * 66])
    assert tokens[0] == b"x" * 64
    assert len(set(tokens)) == 3
    assert max(map(len, tokens)) <= 64


# When the server is away


@pytest.mark.parametrize("after_bytes", [400, 3000, 9000])
def test_a_connection_that_breaks(server: Process, after_bytes: int) -> None:
    breaker = Breaker(server.port)
    try:
        table = table_of([{"n": n} for n in range(1000)])
        with task():
            sink = sink_for(server, table, port=breaker.port, pipelineDepth=100)
            batches = batches_of(table, 50)
            first = next(batches)

            def rest() -> Iterator[pa.RecordBatch]:
                breaker.cut_after_bytes = after_bytes  # of the connection that rows go over
                yield first
                yield from batches

            assert sink.write(rest()).rows == 1000
        assert breaker.connections == 3
    finally:
        breaker.close()
    assert [entry["n"] for entry in entries(server)] == [str(n) for n in range(1000)]


def test_a_server_out_of_memory_is_waited_for(server: Process) -> None:
    server.call("CONFIG", "SET", "maxmemory", 1)
    thread = threading.Thread(target=free_memory_when_refused, args=(server,))
    thread.start()
    try:
        done = write(server, NUMBERS, identity="none")
    finally:
        thread.join(20)
        server.call("CONFIG", "SET", "maxmemory", 0)
    assert done.rows == 500
    assert sorted(int(entry["n"]) for entry in entries(server)) == list(range(500))


def free_memory_when_refused(server: Process) -> None:
    wait_until(lambda: server.info("errorstats").get("errorstat_OOM"))
    server.call("CONFIG", "SET", "maxmemory", 0)


def test_a_server_killed_under_the_sink(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    table = table_of([{"n": n} for n in range(8000)])
    killed = threading.Event()

    def killer() -> None:
        with server.client() as client:
            while client.call_parsed("XLEN", "out") < 2000:  # type: ignore[operator]
                time.sleep(0.001)
        server.restart(crash=True)
        killed.set()

    thread = threading.Thread(target=killer)
    thread.start()
    with task():
        sink = sink_for(server, table, pipelineDepth=200, **{"fetchOffset.retryIntervalMs": 200})
        done = sink.write(batches_of(table, 100))
    thread.join(30)
    assert killed.is_set()
    assert done.rows == 8000
    assert [entry["n"] for entry in entries(server)] == [str(n) for n in range(8000)]


def test_a_server_that_stays_away(server: Process) -> None:
    with pytest.raises(UnreachableError):
        write(server, NUMBERS, port=1)


def test_a_refusal_for_good(server: Process) -> None:
    """The stream has become a string in the middle of a task."""
    sink = sink_for(server, NUMBERS, pipelineDepth=50)

    def batches() -> Iterator[pa.RecordBatch]:
        found = batches_of(NUMBERS, 50)
        yield next(found)
        yield next(found)
        server.call("SET", "out", "x")
        yield from found

    with task(), pytest.raises(ServerError, match=r"WRONGTYPE .*\(stream out\)"):
        sink.write(batches())


def test_messages(server: Process, client: RawClient, caplog: pytest.LogCaptureFixture) -> None:
    sink = sink_for(server, NUMBERS)
    with task(), caplog.at_level(logging.INFO):
        done = sink.write(batches_of(NUMBERS))
        again = sink.write(batches_of(NUMBERS))
        sink.commit([done, again], 4)
        sink.abort([done, None], 5)
    assert (done.rows, done.known, again.known) == (500, 0, 500)
    assert "batch 4: 500 of 1000 rows were there" in caplog.text
    assert "batch 5 failed; 500 rows of it are in the stream" in caplog.text
    assert isinstance(pickle.loads(pickle.dumps(done)), Written)
