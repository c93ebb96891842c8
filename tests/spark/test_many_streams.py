"""Hundreds of streams, of which few change: what is asked, and which task reads what."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from pyspark_headrace import resting
from pyspark_headrace.errors import DataLossError
from pyspark_headrace.given import READ, STREAM
from pyspark_headrace.ids import LEAST
from pyspark_headrace.offsets import Offset, Piece
from pyspark_headrace.options import Frame, read_options
from pyspark_headrace.reader import PiecePartition, StreamReader
from pyspark_headrace.resp import Link
from pyspark_headrace.shape import default_schema
from pyspark_headrace.tasks import deal, dealt
from support.client import RawClient
from support.process import Process

pytestmark = pytest.mark.once

STREAMS = 300
KEYS = [f"t:{number:03d}" for number in range(STREAMS)]


class Following:
    """A reader as Spark uses it, over many batches: every offset comes back as text.

    Attributes:
        end: the offset of the last batch.
        read: the values that were read, by stream, in order.
        tasks: for each task of the last batch the streams that it read.
    """

    def __init__(self, process: Process, **options: str) -> None:
        given = {"port": str(process.port), "pollTimeoutMs": "0", "startingOffsets": "earliest"}
        chosen = read_options({**given, "subscribePattern": "t:*", **options}, STREAM)
        self.reader = StreamReader(chosen, default_schema(Frame()))
        self.end: Offset = self.reader.initialOffset()
        self.read: dict[str, list[str]] = {}
        self.tasks: list[list[str]] = []

    def step(self) -> bool:
        """One batch; False when there is none."""
        start: Offset = json.loads(json.dumps(self.end))
        found = self.reader.latestOffset(start, ReadAllAvailable())
        self.reader.reportLatestOffset()
        if found is start:
            return False
        self.end = json.loads(json.dumps(found))
        self.tasks = []
        for partition in self.reader.partitions(start, self.end):
            assert isinstance(partition, PiecePartition)
            self.tasks.append([piece.key for piece in partition.pieces])
            for batch in self.reader.read(partition):
                for key, fields in zip(
                    batch["key"].to_pylist(), batch["fields"].to_pylist(), strict=True
                ):
                    self.read.setdefault(key, []).append(dict(fields)["f"])
        return True

    def come_to_rest(self) -> None:
        """Batches until there is none, and a look at each stream that was read."""
        while self.step():
            pass
        assert not self.step()


Follow = Callable[..., Following]


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Makes readers, whose connections end with the test."""
    made: list[Following] = []

    def one(process: Process, **options: str) -> Following:
        made.append(Following(process, **options))
        return made[-1]

    yield one
    for each in made:
        each.reader._link.close()


def add(client: RawClient, keys: list[str], value: str) -> None:
    client.pipeline(*[("XADD", key, "*", "f", value) for key in keys])


def calls(process: Process, command: str) -> int:
    """Return how often a command ran."""
    with process.client() as client:
        text = client.call_parsed("INFO", "commandstats")
    assert isinstance(text, bytes)
    for line in text.decode().splitlines():
        if line.startswith(f"cmdstat_{command}:"):
            return int(line.partition("calls=")[2].partition(",")[0])
    return 0


@pytest.fixture
def slow_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stream is looked at because it is its turn."""
    monkeypatch.setattr(resting, "TURN_S", 1e9)


@pytest.mark.usefixtures("slow_turns")
def test_only_streams_that_changed_are_looked_at(every_server: Process, follow: Follow) -> None:
    with every_server.client() as client:
        add(client, KEYS, "1")
        query = follow(every_server)
        query.come_to_rest()
        assert query.read == {key: ["1"] for key in KEYS}
        before = calls(every_server, "xinfo|stream")
        for _ in range(3):
            assert not query.step()
        assert calls(every_server, "xinfo|stream") == before
        add(client, KEYS[10:15], "2")
        assert query.step()
        assert sorted(key for task in query.tasks for key in task) == KEYS[10:15]
        assert not query.step()
        # Once for the batch (here and there also when its pieces are cut and read), once after it.
        assert calls(every_server, "xinfo|stream") - before <= 5 * 5
        query.come_to_rest()
        assert query.read == {key: ["1", "2"] if key in KEYS[10:15] else ["1"] for key in KEYS}


@pytest.mark.usefixtures("slow_turns")
@pytest.mark.parametrize("more", [1, 3])
def test_a_stream_that_was_capped_to_the_same_length(
    every_server: Process, follow: Follow, more: int
) -> None:
    with every_server.client() as client:
        add(client, KEYS, "1")
        query = follow(every_server)
        query.come_to_rest()
        for number in range(more):
            client.call("XADD", KEYS[7], "MAXLEN", "=", 1, "*", "f", f"new {number}")
        if more == 1:
            assert query.step()
            assert query.read[KEYS[7]] == ["1", "new 0"]
        else:
            with pytest.raises(DataLossError, match="t:007: 2 entries after"):
                query.step()


def test_a_stream_made_anew_is_noticed_in_its_turn(
    every_server: Process, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same length, and with lower IDs: only a look at all of it tells."""
    with every_server.client() as client:
        add(client, KEYS, "1")
        query = follow(every_server, failOnDataLoss="false")
        query.come_to_rest()
        client.call("DEL", KEYS[7])
        client.call("XADD", KEYS[7], "1-1", "f", "new")
        monkeypatch.setattr(resting, "TURN_S", 1e-9)
        query.come_to_rest()
        assert query.read[KEYS[7]] == ["1", "new"]
        assert all(values == ["1"] for key, values in query.read.items() if key != KEYS[7])


def test_turns_come_to_every_stream(redis_server: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    options = read_options({"port": str(redis_server.port), "subscribe": "s"}, READ)
    found = resting.Resting(Link(options.connection))
    choice = random.Random(7)
    met: list[str] = []
    while clock[0] < resting.TURN_S:
        clock[0] += choice.random() / 3
        met += sorted(found._turn_of(KEYS))
    assert set(met) == set(KEYS)
    assert len(met) <= STREAMS * (clock[0] / resting.TURN_S) + 1
    clock[0] += 2 * resting.TURN_S
    assert found._turn_of(KEYS) == set(KEYS)


def test_streams_come_and_go(every_server: Process, follow: Follow) -> None:
    with every_server.client() as client:
        add(client, KEYS, "1")
        query = follow(every_server)
        query.come_to_rest()
        client.call("DEL", *KEYS[:100])
        add(client, ["t:new"], "1")
        query.reader._plan()._known_at_s = float("-inf")
        query.come_to_rest()
        assert sorted(query.end["k"]) == [*KEYS[100:], "t:new"]
        assert query.read["t:new"] == ["1"]
        assert len(query.reader._plan()._figures) == STREAMS - 99


def test_who_may_not_ask_looks_at_all(server: Process, follow: Follow) -> None:
    with server.client() as client:
        add(client, KEYS, "1")
        client.call("ACL", "SETUSER", "ada", "on", "nopass", "~*", "+@all", "-xlook")
        query = follow(server, username="ada")
        query.come_to_rest()
        add(client, KEYS[:3], "2")
        query.come_to_rest()
        assert {key for key, values in query.read.items() if values == ["1", "2"]} == set(KEYS[:3])
        client.call("ACL", "DELUSER", "ada")


def test_a_checkpoint_goes_on_with_the_same_tasks(every_server: Process, follow: Follow) -> None:
    """The split stands in the offset: other options do not change a batch that is repeated."""
    with every_server.client() as client:
        add(client, KEYS, "1")
        first = follow(every_server, minPartitions="3")
        start = first.end
        assert first.step()
        assert len(first.tasks) == 3
        again = follow(every_server, minPartitions="7")
        repeated = again.reader.partitions(start, json.loads(json.dumps(first.end)))
        assert [
            [piece.key for piece in each.pieces]
            for each in repeated
            if isinstance(each, PiecePartition)
        ] == first.tasks


def test_batches_and_tasks_by_bytes(every_server: Process, follow: Follow) -> None:
    """One of three streams holds documents; batches and tasks hold about so many bytes."""
    document = "x" * 100_000
    with every_server.client() as client:
        add(client, ["t:a", "t:b"] * 20, "small")
        add(client, ["t:doc"] * 60, document)
        query = follow(every_server, maxBytesPerTrigger="2m", targetPartitionBytes="500k")
        batches = 0
        before = 0
        while query.step():
            batches += 1
            read = len(query.read["t:doc"])
            assert 1 <= read - before <= 21
            before = read
            assert len(query.tasks) >= 4 or read - before < 10
        assert batches in (3, 4)
        assert {key: len(values) for key, values in query.read.items()} == {
            "t:a": 20,
            "t:b": 20,
            "t:doc": 60,
        }


def test_an_entry_that_is_larger_than_a_batch(every_server: Process, follow: Follow) -> None:
    with every_server.client() as client:
        add(client, ["t:doc"] * 3, "x" * 100_000)
        query = follow(every_server, maxBytesPerTrigger="1000")
        assert [query.step() for _ in range(4)] == [True, True, True, False]
        assert len(query.read["t:doc"]) == 3


def test_the_limit_that_spark_is_told() -> None:
    def of(**options: str) -> object:
        chosen = read_options({"subscribe": "s", **options}, STREAM)
        return StreamReader(chosen, default_schema(Frame())).getDefaultReadLimit()

    assert of() == ReadAllAvailable()
    assert of(maxBytesPerTrigger="64m") == ReadMaxBytes(64 << 20)
    assert of(maxBytesPerTrigger="64m", maxOffsetsPerTrigger="7") == ReadMaxRows(7)


Pieces = st.lists(
    st.tuples(st.integers(0, 20), st.integers(-1, 60_000)), min_size=1, max_size=60
).map(
    lambda found: [
        Piece(f"s{key:02d}", LEAST, (1, 0), rows) for key, rows in sorted(found, key=lambda x: x[0])
    ]
)


@given(
    pieces=Pieces,
    least=st.integers(0, 12),
    most_rows=st.sampled_from([0, 10, 1000]),
)
def test_tasks(pieces: list[Piece], least: int, most_rows: int) -> None:
    options = read_options(
        {
            "subscribe": "s",
            **({"minPartitions": str(least)} if least else {}),
            **({"maxRecordsPerPartition": str(most_rows)} if most_rows else {}),
        },
        READ,
    )
    counts = deal(pieces, options)
    tasks = dealt(pieces, counts)
    assert [piece for task in tasks for piece in task] == pieces
    assert all(tasks)
    for task in tasks:
        assert all(one.key != other.key for one, other in pairwise(task))
        if most_rows and len(task) > 1:
            assert sum(max(0, piece.rows) for piece in task) <= most_rows
    assert dealt(pieces, ()) == [(piece,) for piece in pieces]


def test_small_pieces_share_a_task() -> None:
    options = read_options({"subscribe": "s"}, READ)
    pieces = [Piece(f"s{number:04d}", LEAST, (1, 0), 1) for number in range(1000)]
    assert 1 <= len(deal(pieces, options)) <= 20
    assert len(deal(pieces[:50], options)) == 1
    heavy = [Piece(f"s{number}", LEAST, (1, 0), 10, weight=1 << 20) for number in range(60)]
    assert deal(heavy, options) == [6] * 10
