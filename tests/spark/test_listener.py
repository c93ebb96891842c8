"""Lag: from what progress says, to people and to Prometheus."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_headrace.lag import NOTHING, UNKNOWN, Behind, lags_between
from pyspark_headrace.listener import Lag, LagListener, positions_in, prometheus_text
from pyspark_headrace.offsets import Position, to_offset
from support.client import RawClient
from support.process import Process, free_port

pytestmark = pytest.mark.once


def event(read: dict[str, Position], there: dict[str, Position], **more: Any) -> Any:
    """Return what Spark hands to a listener, as far as it is looked at."""
    source = SimpleNamespace(
        endOffset=json.dumps(to_offset(read)), latestOffset=json.dumps(to_offset(there))
    )
    other = SimpleNamespace(endOffset='{"topic":{"0":7}}', latestOffset=None)
    facts = {
        "name": "copies",
        "id": "x",
        "batchId": 7,
        "sources": [source, other],
        "numInputRows": 10,
        "processedRowsPerSecond": 100.0,
        "batchDuration": 50,
    }
    return SimpleNamespace(progress=SimpleNamespace(**{**facts, **more}))


def test_differences() -> None:
    read = {"a": Position((100, 1), 40), "b": Position((9, 0), 3), "c": Position((5, 0))}
    there = {"a": Position((350, 0), 47), "b": Position((9, 0), 3), "c": Position((8, 0), 4)}
    assert lags_between(read, there) == {
        "a": Behind(7, None, 250),
        "b": NOTHING,
        "c": Behind(None, None, 3),
    }
    assert lags_between(read, {}) == dict.fromkeys(read, UNKNOWN)  # Spark does not always report
    assert lags_between({"a": Position((0, 0), 0)}, there) == {"a": Behind(47, None, None)}


@pytest.mark.parametrize("text", [None, "", "nonsense", "7", '{"k":{}}', '{"v":2,"k":{}}', "[]"])
def test_offsets_of_others(text: str | None) -> None:
    assert positions_in(text) == {}


def test_what_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told: list[Lag] = []
    listener = LagListener(on_lag=told.extend, prometheus_file=tmp_path / "lag.prom")
    read = {"a": Position((100, 1), 40, lost=2), 'b"\n': Position((1, 0))}
    with caplog.at_level(logging.INFO):
        listener.onQueryProgress(
            event(read, {"a": Position((350, 0), 47), 'b"\n': Position((2, 0), 9)})
        )
    assert told[0] == Lag("copies", 7, "a", 7, None, 250, 2, 10, 100.0, 50)
    assert told[1].entries is None
    assert "batch 7, a: 7 entries, ? bytes and 250 ms behind" in caplog.text
    text = (tmp_path / "lag.prom").read_text()
    assert 'headrace_lag_entries{query="copies",stream="a"} 7\n' in text
    assert 'headrace_lag_seconds{query="copies",stream="a"} 0.25\n' in text
    assert 'headrace_lost_entries_total{query="copies",stream="a"} 2\n' in text
    assert 'headrace_lag_seconds{query="copies",stream="b\\"\\n"} 0.001\n' in text
    assert text.count("headrace_lag_entries{") == 1
    listener.onQueryProgress(event({"a": Position((350, 0), 47)}, {}, name=None, batchId=8))
    assert told[-1].query == "x"
    listener.onQueryProgress(event({}, {}, sources=[]))
    assert len(told) == 3
    assert prometheus_text([]).count("# TYPE") == 6


def test_a_group_mirrors_the_query(server: Process, client: RawClient) -> None:
    client.pipeline(*[("XADD", "a", f"{n}-1", "f", "v") for n in range(1, 11)])
    listener = LagListener(
        mirror_group="spark", options={"port": str(server.port), "subscribe": "a"}
    )
    for rank in (3, 8):
        listener.onQueryProgress(event({"a": Position((rank, 1), rank)}, {}))
        groups = client.call_parsed("XINFO", "GROUPS", "a")
        assert isinstance(groups, list)
        facts = dict(zip(groups[0][0::2], groups[0][1::2], strict=True))
        assert (facts[b"name"], facts[b"lag"]) == (b"spark", 10 - rank)
    assert listener._server is not None
    listener._server.link.close()


def test_a_server_that_is_away_is_no_matter(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Lag] = []
    listener = LagListener(
        on_lag=told.extend,
        mirror_group="spark",
        options={"port": str(free_port()), "fetchOffset.numRetries": "0"},
    )
    with caplog.at_level(logging.WARNING):
        listener.onQueryProgress(event({"a": Position((1, 1), 1)}, {}))
    assert "lag at localhost:" in caplog.text
    assert len(told) == 1
