"""Reading pieces: page by page, over broken connections, and when entries go in between."""

from __future__ import annotations

import datetime
import logging
import pickle
from collections.abc import Callable, Iterator

import pytest
from conftest import Factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from pyspark_headrace.errors import (
    DataLossError,
    HeadraceError,
    OptionError,
    ServerError,
    UnreachableError,
)
from pyspark_headrace.filters import Bounds
from pyspark_headrace.given import READ
from pyspark_headrace.offsets import Piece, from_offset
from pyspark_headrace.options import Frame, read_options
from pyspark_headrace.reader import (
    BatchReader,
    FilteringBatchReader,
    PiecePartition,
    StreamReader,
    batch_reader,
    read_pieces,
)
from pyspark_headrace.resources import SCHEMAS, ResourceReader
from pyspark_headrace.resp import Link
from pyspark_headrace.shape import Shape, default_schema
from pyspark_headrace.source import HeadraceSource
from support.breaker import Breaker
from support.client import RawClient
from support.process import Process, ServerProcess, free_port

pytestmark = pytest.mark.once

PAIRS = Frame(fields_format="pairs")
SCHEMA = default_schema(Frame())
SHAPE = Shape(SCHEMA, Frame(), "permissive", "utf-8")


def add(client: RawClient, key: str, *ids: str) -> None:
    client.pipeline(*[("XADD", key, each, "f", each) for each in ids])


def ids_of(piece: Piece, **options: object) -> list[str]:
    found = read_options({"path": "s", **{n: str(v) for n, v in options.items()}}, READ)
    return [
        each for batch in read_pieces(found, SHAPE, [piece]) for each in batch["id"].to_pylist()
    ]


@pytest.mark.parametrize("count", [1, 3, 10, 11, 2000])
def test_pages(server: Process, count: int) -> None:
    with server.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 12)])
    piece = Piece("s", (1, 1), (11, 1))
    expected = [f"{n}-1" for n in range(2, 12)]
    assert ids_of(piece, port=server.port, fetchCount=count) == expected
    assert ids_of(Piece("s", (11, 1), (99, 1)), port=server.port, fetchCount=count) == []


@pytest.fixture
def breaker(server: Process) -> Iterator[Breaker]:
    found = Breaker(server.port)
    yield found
    found.close()


@pytest.mark.parametrize("after_bytes", [1, 700, 701, 1500])
def test_a_connection_that_breaks_in_the_middle(
    server: Process, breaker: Breaker, after_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    with server.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 101)])
    breaker.cut_after_bytes = after_bytes
    with caplog.at_level(logging.WARNING):
        found = ids_of(
            Piece("s", (0, 0), (100, 1)),
            port=breaker.port,
            fetchCount=10,
            **{"fetchOffset.retryIntervalMs": 1},
        )
    assert found == [f"{n}-1" for n in range(1, 101)]
    # What does not answer at all may speak TLS: another connection looks.
    assert breaker.connections == (3 if after_bytes == 1 else 2)
    assert "trying again in 1 ms" in caplog.text


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(
        UnreachableError, match=r"did not answer in 3 tries: .*refused.*goes on where"
    ):
        ids_of(
            Piece("s", (0, 0), (1, 1)),
            port=free_port(),
            **{"fetchOffset.numRetries": 2, "fetchOffset.retryIntervalMs": 1},
        )


def test_a_wrong_password_is_not_tried_again(
    fresh_server: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fresh_server("--requirepass", "right", start=False)
    server.spawn()
    server.wait_until_ready()
    monkeypatch.setenv("SECRET", "wrong-and-secret")
    piece = Piece("s", (0, 0), (1, 1))
    with pytest.raises(ServerError) as refused:
        ids_of(piece, port=server.port, passwordEnv="SECRET")
    assert refused.value.code == "WRONGPASS"
    assert "wrong-and-secret" not in str(refused.value)
    monkeypatch.setenv("SECRET", "right")
    assert ids_of(piece, port=server.port, passwordEnv="SECRET") == []


def test_a_unix_socket_and_another_database(fresh_server: Factory) -> None:
    server = fresh_server("--unixsocket", "here.sock")
    with server.client() as client:
        client.call("SELECT", 3)
        add(client, "s", "1-1")
    url = f"unix://{server.directory}/here.sock?db=3"
    assert ids_of(Piece("s", (0, 0), (1, 1)), **{"redis.url": url}) == ["1-1"]


def test_entries_that_are_trimmed_between_planning_and_reading(
    server: Process, caplog: pytest.LogCaptureFixture
) -> None:
    with server.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 11)])
        piece = Piece("s", (2, 1), (8, 1), 6)
        client.call("XTRIM", "s", "MINID", "3-1")
        assert len(ids_of(piece, port=server.port)) == 6
        client.call("XTRIM", "s", "MINID", "5-1")
        with pytest.raises(DataLossError, match=r"s: 2 entries after 2-1 were removed between"):
            ids_of(piece, port=server.port)
        with caplog.at_level(logging.WARNING):
            assert len(ids_of(piece, port=server.port, failOnDataLoss="false")) == 4
        assert "2 entries after 2-1" in caplog.text
        client.call("XDEL", "s", "6-1")
        with pytest.raises(DataLossError, match=r"up to 3 entries"):
            ids_of(piece, port=server.port)
        client.call("DEL", "s")
        with pytest.raises(DataLossError, match=r"6 entries after 2-1"):
            ids_of(piece, port=server.port)


def test_deleting_some_on_purpose_is_no_loss(server: Process) -> None:
    with server.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 11)])
        client.call("XDEL", "s", "4-1", "5-1")
    assert len(ids_of(Piece("s", (2, 1), (8, 1), 6), port=server.port)) == 4


Values = st.integers(-3, 35)
MS_FILTERS = [EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual]
META = {"key": "_key", "id": "_id", "ms": "_id_ms", "t": "_timestamp", "a": "_fields"}


def moment(micros: int) -> datetime.datetime:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return epoch + datetime.timedelta(microseconds=micros)


def compare(one: Filter, value: object) -> bool:
    wanted: object = getattr(one, "value", None)
    made: dict[type[Filter], Callable[[], object]] = {
        EqualTo: lambda: value == wanted,
        GreaterThan: lambda: value > wanted,  # type: ignore[operator]
        GreaterThanOrEqual: lambda: value >= wanted,  # type: ignore[operator]
        LessThan: lambda: value < wanted,  # type: ignore[operator]
        LessThanOrEqual: lambda: value <= wanted,  # type: ignore[operator]
    }
    return bool(made[type(one)]())


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.builds(lambda kind, v: kind(("ms",), v), st.sampled_from(MS_FILTERS), Values),
            st.builds(
                lambda kind, v: kind(("t",), moment(v * 250)),
                st.sampled_from(MS_FILTERS),
                st.integers(-8, 140),
            ),
        ),
        max_size=4,
    )
)
def test_filters_on_time_keep_just_what_fulfils_them(filters: list[Filter]) -> None:
    bounds = Bounds()
    assert bounds.take(filters, META) == []
    for ms in range(36):
        for seq in (0, 2**64 - 1):
            if (ms, seq) == (0, 0):
                continue  # no entry has that ID
            kept = all(
                compare(one, ms if one.attribute == ("ms",) else moment(ms * 1000))  # type: ignore[attr-defined]
                for one in filters
            )
            assert (bounds.after < (ms, seq) <= bounds.upto) == kept, (filters, ms, seq)


def test_filters_on_ids_and_streams() -> None:
    bounds = Bounds()
    left = bounds.take([EqualTo(("id",), "5-3"), IsNotNull(("id",)), IsNotNull(("t",))], META)
    assert (bounds.after, bounds.upto) == ((5, 2), (5, 3))
    assert left == [IsNotNull(("t",))]
    for wrong in ("5", "05-3", "x", "0-0"):
        bounds = Bounds()
        bounds.take([EqualTo(("id",), wrong)], META)
        assert bounds.after == bounds.upto
    bounds = Bounds()
    assert bounds.take([In(("key",), ("a", "b")), EqualTo(("key",), "b")], META) == []
    assert (bounds.allows("a"), bounds.allows("b")) == (False, True)
    stay: list[Filter] = [
        Not(EqualTo(("ms",), 3)),
        StringContains(("id",), "3"),
        GreaterThan(("id",), "5-3"),
        EqualTo(("fare",), 3),
        EqualTo(("ms", "x"), 3),
        EqualTo(("ms",), "3"),
        EqualTo(("ms",), True),
        EqualTo(("a",), {"x": "y"}),
        GreaterThan(("t",), datetime.datetime(2026, 1, 1)),
    ]
    assert Bounds().take(stay, META) == stay


def test_a_reader_with_filters_reads_no_more_than_it_must(server: Process) -> None:
    with server.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 101)])
        add(client, "t", "50-1")
    options = read_options({"port": str(server.port), "subscribe": "s,t"}, READ)
    reader = FilteringBatchReader(options, SCHEMA)
    rest = list(reader.pushFilters([GreaterThan(("id_ms",), 90), EqualTo(("key",), "s")]))
    assert rest == []
    again: FilteringBatchReader = pickle.loads(pickle.dumps(reader))
    partitions = again.partitions()
    assert [
        piece.rows
        for partition in partitions
        if isinstance(partition, PiecePartition)
        for piece in partition.pieces
    ] == [10]
    assert sum(batch.num_rows for batch in again.read(partitions[0])) == 10
    assert list(again.read(InputPartition(None))) == []
    assert type(batch_reader(options, SCHEMA)) is BatchReader


def test_a_stream_reader_travels_and_asks_nothing_before_it_must(server: Process) -> None:
    source = HeadraceSource({"port": "1", "subscribe": "s", "maxOffsetsPerTrigger": "3"})
    assert isinstance(pickle.loads(pickle.dumps(source.streamReader(SCHEMA))), StreamReader)
    with server.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 6)])
        memory = client.call_parsed("MEMORY", "USAGE", "s")
        assert isinstance(memory, int)
    source = HeadraceSource(
        {
            "port": str(server.port),
            "subscribe": "s",
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "3",
        }
    )
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    sight = from_offset(start)["s"].seen
    assert sight is not None
    assert sight.first is not None
    assert sight.end is not None
    marks = f",{sight.first},/{sight.end.digest}"
    assert start == {"k": {"s": f"0-0 n=0 seen=5,,5-1,{marks}"}, "v": 2}
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(3)
    end = reader.latestOffset(start, limit)
    assert end == {"k": {"s": f"3-1 n=3 rows=3 seen=5,,5-1,{marks}"}, "v": 2}
    assert reader.reportLatestOffset() == {
        "k": {"s": "5-1 n=5"},
        "v": 2,
        "lag": {"entries": 2, "bytes": 2 * (memory // 5), "ms": 2},
        "at": f"localhost:{server.port}",
    }
    worker: StreamReader = pickle.loads(pickle.dumps(reader))
    batches = [batch for each in reader.partitions(start, end) for batch in worker.read(each)]
    assert sum(batch.num_rows for batch in batches) == 3
    whole = reader.latestOffset(start, ReadAllAvailable())
    assert from_offset(whole)["s"].n == 5
    assert reader.latestOffset(whole, limit) is whole
    assert reader.partitions(whole, whole) == []
    reader._link.close()


def test_a_group_mirrors_what_is_done(server: Process) -> None:
    """When Spark says so, and when it asks what is next: once more behind the last batch."""
    with server.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 6)])
    given = {"port": str(server.port), "subscribe": "s", "mirrorGroup": "spark"}
    source = HeadraceSource({**given, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "3"})
    reader = source.streamReader(source.schema())

    def mirrored() -> tuple[object, ...]:
        groups = server.call("XINFO", "GROUPS", "s")
        assert isinstance(groups, list)
        told = dict(zip(groups[0][0::2], groups[0][1::2], strict=True))
        return told[b"name"], told[b"last-delivered-id"], told[b"lag"]

    reader.prepareForTriggerAvailableNow()
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert mirrored() == (b"spark", b"0-0", 5)
    second = reader.latestOffset(first, limit)
    assert mirrored() == (b"spark", b"3-1", 2)
    reader.commit(first)
    assert reader.latestOffset(second, limit) == second
    assert mirrored() == (b"spark", b"5-1", 0)
    # After a restart in the middle of a batch, the end of the one before it is what is told.
    again = source.streamReader(source.schema())
    again.commit(first)
    assert mirrored() == (b"spark", b"3-1", 2)
    for each in (reader, again):
        each._link.close()


def state(server: Process, resource: str, *columns: str) -> list[tuple[object, ...]]:
    options = read_options({"port": str(server.port), "subscribe": "s", "resource": resource}, READ)
    schema = SCHEMAS[resource]
    found = list(ResourceReader(options, schema).read(InputPartition(None)))
    return [tuple(row[schema.names.index(name)] for name in columns) for row in found]


def test_the_state_of_a_stream(server: ServerProcess) -> None:
    with server.client() as client:
        add(client, "s", *[f"{n}-1" for n in range(1, 2001)])
        client.call("XDEL", "s", "1-1")
        client.call("XGROUP", "CREATE", "s", "g", "0")
        client.call("XREADGROUP", "GROUP", "g", "ada", "COUNT", 1500, "STREAMS", "s", ">")
        client.call("XGROUP", "CREATE", "s", "idle", "0")
    assert state(server, "info", "key", "length", "entries_added", "groups", "first_id") == [
        ("s", 1999, 2000, 2, "2-1")
    ]
    assert state(server, "groups", "group", "pending", "lag", "lag_ms", "last_delivered_id") == [
        ("g", 1500, 499, 499, "1501-1"),
        ("idle", 0, 1999, 1998, "0-0"),
    ]
    assert state(server, "consumers", "group", "consumer", "pending") == [("g", "ada", 1500)]
    pending = state(server, "pending", "group", "consumer", "id", "deliveries")
    assert pending == [("g", "ada", f"{n}-1", 1) for n in range(2, 1502)]


def test_state_that_is_not_there(server: Process) -> None:
    with pytest.raises(HeadraceError, match="there is no stream s"):
        state(server, "groups", "key")
    server.call("SET", "s", "x")
    with pytest.raises(HeadraceError, match="s is not a stream"):
        state(server, "info", "key")
    options = read_options({"path": "s", "resource": "groups"}, READ)
    with pytest.raises(OptionError, match="has no column id string"):
        ResourceReader(options, SCHEMA)


Pairs = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.binary(max_size=4)), min_size=1, max_size=3
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["a", "b"]), st.binary(max_size=4)), min_size=1, max_size=3
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 7),
)
def test_what_was_added_is_what_is_read(
    server: Process, rows: list[list[tuple[str, bytes]]], count: int
) -> None:
    with server.client() as client:
        client.call("DEL", "s")
        for number, row in enumerate(rows):
            client.call("XADD", "s", f"{number + 1}-0", *[word for pair in row for word in pair])
    shape = Shape(default_schema(PAIRS), PAIRS, "failfast", "utf-8")
    options = read_options({"path": "s", "port": str(server.port), "fetchCount": str(count)}, READ)
    found = [
        pairs
        for batch in read_pieces(options, shape, [Piece("s", (0, 0), (99, 0), len(rows))])
        for pairs in batch["pairs"].to_pylist()
    ]
    assert found == [
        [{"name": name.encode(), "value": value} for name, value in row] for row in rows
    ]


def test_a_user_that_needs_no_password(server: Process, redis_server: Process) -> None:
    redis_server.call("ACL", "SETUSER", "ada", "on", "nopass", "~*", "&*", "+@all")
    try:
        for process, user in (
            (server, "default"),
            (redis_server, "default"),
            (redis_server, "ada"),
        ):
            options = read_options({"port": str(process.port), "username": user, "path": "x"}, READ)
            link = Link(options.connection)
            assert link.call("ACL", "WHOAMI") == user.encode()
            link.close()
    finally:
        redis_server.call("ACL", "DELUSER", "ada")
