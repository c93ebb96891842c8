"""Planning where several regions write: up to where nothing can come any more. No Spark runs."""

from __future__ import annotations

import json
import logging
import time

import pytest

from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.given import READ, STREAM
from pyspark_headrace.ids import StreamID, format_id
from pyspark_headrace.offsets import from_offset, pieces_between, to_offset
from pyspark_headrace.options import read_options
from pyspark_headrace.planner import Planner
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Server, figures_of
from support.mesh import Mesh, RegionProcess, wait_until

pytestmark = pytest.mark.once


class Query:
    """Batches that are planned as the source plans them."""

    def __init__(self, region: RegionProcess, **options: str) -> None:
        given = {"port": str(region.port), "pollTimeoutMs": "0", "subscribe": "s", **options}
        self.options = read_options(given, STREAM)
        self.server = Server(Link(self.options.connection))
        self.planner = Planner(self.options, self.server)
        try:
            self.checkpoint = json.dumps(to_offset(self.planner.initial()))
        except HeadraceError:
            self.close()
            raise
        self.read: list[StreamID] = []

    def step(self, most: int = 0) -> bool:
        start = from_offset(json.loads(self.checkpoint))
        found = self.planner.latest(start, most)
        if found is None:
            return False
        for piece in pieces_between(start, found):
            ids = self.server.walk(piece.key, piece.after, piece.upto, 10**6, 1000)
            assert piece.rows in (-1, len(ids))
            self.read += ids
        self.checkpoint = json.dumps(to_offset(found))
        return True

    def close(self) -> None:
        self.server.link.close()


def info(**pairs: object) -> list[object]:
    given: dict[str, object] = {
        "length": 2,
        "entries-added": 2,
        "last-generated-id": b"20-1",
        "max-deleted-entry-id": b"0-0",
        "first-entry": [b"10-1", [b"f", b"v"]],
        "last-entry": [b"20-1", [b"f", b"v"]],
    }
    given.update({name.replace("_", "-"): value for name, value in pairs.items()})
    return [word for name, value in given.items() for word in (name.encode(), value)]


def test_a_server_alone_has_no_stable_id() -> None:
    for figures in (figures_of(info(), "s"), figures_of(info(stable_id=None), "s")):
        assert figures.settled
        assert (figures.top, figures.top_rank) == ((20, 1), 2)
        assert figures.sight() is not None


def test_what_is_not_stable_is_neither_read_nor_remembered() -> None:
    figures = figures_of(info(stable_id=b"15-9"), "s")
    assert not figures.settled
    assert (figures.top, figures.top_rank) == ((15, 9), -1)
    assert figures.sight() is None
    figures = figures_of(info(stable_id=b"20-18446744073709551615"), "s")
    assert figures.settled
    assert (figures.top, figures.top_rank) == ((20, 1), 2)


def test_no_entry_is_skipped_while_regions_are_apart() -> None:
    with Mesh(2) as mesh:
        one, two = mesh[1], mesh[2]
        query = Query(one, startingOffsets="earliest")
        first = one.xadd("s")
        wait_until(query.step)
        assert [format_id(each).encode() for each in query.read] == [first]
        mesh.pause()
        for _ in range(10):
            one.xadd("s")
            two.xadd("s")
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            query.step()
        apart = len(query.read)
        assert apart < 11
        mesh.resume()
        until = time.monotonic() + 3
        while time.monotonic() < until:
            two.xadd("s")
            one.xadd("s")
            query.step(7)
        mesh.sync()

        def has_all() -> bool:
            query.step()
            return [format_id(each).encode() for each in query.read] == one.ids("s")

        wait_until(has_all, one)
        assert two.ids("s") == one.ids("s")
        query.close()


def test_the_latest_is_what_is_stable() -> None:
    with Mesh(2) as mesh:
        one, two = mesh[1], mesh[2]
        for _ in range(5):
            one.xadd("s")
            two.xadd("s")
        query = Query(one)
        assert not query.step()
        last = two.xadd("s")
        wait_until(query.step)
        assert [format_id(each).encode() for each in query.read] == [last]
        query.close()
        options = read_options({"port": str(one.port), "path": "s"}, READ)
        link = Link(options.connection)
        planner = Planner(options, Server(link))
        low, high = (0, 0), (2**64 - 1, 2**64 - 1)
        one.xadd("s")
        assert sum(piece.rows for piece in planner.pieces({"s": low}, {"s": high})) == 12
        link.close()


def test_without_the_other_region_nobody_knows_the_latest(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_headrace.server.SETTLE_S", 0.3)
    with Mesh(2) as mesh, caplog.at_level(logging.WARNING):
        one, two = mesh[1], mesh[2]
        two.stop()
        one.xadd("s")
        with pytest.raises(HeadraceError, match="not all regions answer"):
            Query(one)
        query = Query(one, startingOffsets="earliest")
        assert not query.step()
        query.close()
    assert "not all regions say" in caplog.text


def test_a_stream_that_callers_number_is_read_as_ever() -> None:
    with Mesh(2) as mesh:
        one = mesh[1]
        one.call("XADD", "s", "5", "f", "v")
        query = Query(one, startingOffsets="earliest")
        assert query.step()
        assert query.read == [(5, 1)]
        query.close()
