"""A scrape gives way: each slice is bounded by what it looks at, however much there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support import metrics
from support.process import ServerProcess, free_port

pytest.importorskip("prometheus_client", reason="only with the extra `metrics`")
pytest.importorskip("h11", reason="only with the extra `metrics`")

from headrace.metrics import streams
from headrace.metrics.page import Page
from headrace.server.clients.session import NOBODY, Session
from headrace.server.config.config import Config
from headrace.server.dispatch.call import Call
from headrace.server.durability.durability import Durability
from headrace.server.state import Server
from headrace.storage.stream.groups import Group
from headrace.storage.stream.stream import Stream

Start = Callable[..., ServerProcess]


def with_streams(count: int, groups: int = 1, consumers: int = 0) -> Call:
    """A server in this process that has some streams, and a call of it."""
    server = Server(Config())
    db = server.data.dbs[0]
    for number in range(count):
        stream = Stream(100, 100)
        for name in range(groups):
            group = Group(b"g%d" % name, 0, 0, 0)
            for each in range(consumers):
                group.create_consumer(b"c%d" % each, 1)
            stream.groups[group.name] = group
        db.put(b"s:%d" % number, stream, 1)
    return Call(server, Durability(server), Session(0, db, 1, NOBODY))


class Counted(Page):
    """A page that counts what is put on it between two slices."""

    def __init__(self) -> None:
        super().__init__("")
        self.rows = 0

    def labels(self, **values: str) -> str:
        self.rows += 1
        return super().labels(**values)


def rows_of_slices(call: Call, most: int = 1000) -> list[int]:
    page = Counted()
    finder = streams.Finder(call.server.data.dbs)
    for _ in finder.search([b"*"], most):
        pass
    rows: list[int] = []
    slices: Iterator[None] = streams.StreamReporter(call, finder, page, True).report()
    for _ in slices:
        rows.append(page.rows)
        page.rows = 0
    return [*rows, page.rows]


@pytest.mark.parametrize(
    ("count", "groups", "consumers"), [(1000, 1, 0), (2, 500, 0), (1, 1, 2000), (1, 0, 0)]
)
def test_no_slice_tells_of_more_than_so_many(count: int, groups: int, consumers: int) -> None:
    rows = rows_of_slices(with_streams(count, groups, consumers))
    assert sum(rows) == count * (1 + groups * (1 + consumers))
    assert max(rows) <= streams.ROWS


def test_no_slice_looks_at_more_keys_than_so_many() -> None:
    call = with_streams(0)
    db = call.server.data.dbs[0]
    for number in range(3 * streams.KEYS + 1):
        db.put(b"k:%d" % number, b"v", 1)
    looked: list[int] = []
    scan = type(db).scan

    class Watched:
        """A database that says how many keys were looked at together."""

        index = 0

        def scan(self, cursor: int, count: int) -> object:
            looked.append(count)
            return scan(db, cursor, count)

    finder = streams.Finder([Watched()])  # type: ignore[arg-type]
    slices = sum(1 for _ in finder.search([b"*"], 10))
    assert slices == len(looked) == 4
    assert set(looked) == {streams.KEYS}


def test_a_pattern_that_fits_too_many_stops_early(fresh_server: Start) -> None:
    port = free_port()
    server = fresh_server("--metrics-port", str(port), "--metrics-streams-max", "7")
    for number in range(2000):
        server.call("XADD", f"s:{number}", "*", "f", "v")
    first = metrics.scrape(port)
    assert metrics.value(first, "headrace_metrics_streams") == 7
    assert metrics.value(first, "headrace_metrics_streams_left_out") == 1
    lengths = {place for place in metrics.samples(first) if place[0] == "redis_stream_length"}
    assert len(lengths) == 7
    again = metrics.samples(metrics.scrape(port))
    assert lengths <= set(again), "the same are reported each time"


def test_a_search_goes_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SEARCHED", 1000)
    call = with_streams(0)
    db = call.server.data.dbs[0]
    db.put(b"first", Stream(100, 100), 1)
    for number in range(4000):
        db.put(b"k:%d" % number, b"v", 1)
    db.put(b"last", Stream(100, 100), 1)
    finder = streams.Finder(call.server.data.dbs)
    searches = 0
    while len(finder.found) < 2:
        searches += 1
        for _ in finder.search([b"*"], 10):
            pass
        assert searches < 10
    assert searches > 1


def test_which_streams(fresh_server: Start) -> None:
    port = free_port()
    server = fresh_server("--metrics-port", str(port), "--metrics-streams", "a:* exact none")
    for name in ("a:1", "a:2", "b:1", "exact", "exactly"):
        server.call("XADD", name, "*", "f", "v")
    server.call("SET", "a:text", "no stream")

    def reported() -> set[str]:
        return {
            dict(labels)["stream"]
            for name, labels in metrics.samples(metrics.scrape(port))
            if name == "redis_stream_length"
        }

    assert reported() == {"a:1", "a:2", "exact"}
    server.call("DEL", "a:2")
    assert reported() == {"a:1", "exact"}
    server.call("CONFIG", "SET", "metrics-streams", "b:*")
    assert reported() == {"b:1"}
    server.call("CONFIG", "SET", "metrics-streams", "")
    assert reported() == set()


def test_consumers_are_told_of_when_asked_for(fresh_server: Start) -> None:
    port = free_port()
    server = fresh_server("--metrics-port", str(port))
    server.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    server.call("XGROUP", "CREATECONSUMER", "s", "g", "c")
    name = "redis_stream_group_consumer_messages_pending"
    assert name not in metrics.names(metrics.scrape(port))
    server.call("CONFIG", "SET", "metrics-consumers", "yes")
    assert name in metrics.names(metrics.scrape(port))
