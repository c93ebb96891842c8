"""Drawings: axes say what they count, and the legend is in the order of the lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import matplotlib as mpl
import pytest
from pyspark.sql import Row

from pyspark_headrace.jobs.reports import draw_reconciliation, draw_windows

pytestmark = pytest.mark.once

START = datetime(2026, 1, 31, 12)


def windows_of(keys: int) -> list[Row]:
    return [
        Row(start=START + timedelta(minutes=minute), rider=f"r{key:02d}", count=key + 1, total=0.5)
        for minute in range(5)
        for key in range(keys)
    ]


@pytest.fixture(autouse=True)
def _text_in_drawings() -> Iterator[None]:
    with mpl.rc_context({"svg.fonttype": "none"}):
        yield


def test_windows(tmp_path: Path) -> None:
    path = tmp_path / "windows.svg"
    draw_windows(windows_of(12), ["rider"], "count", str(path))
    text = path.read_text()
    for words in (
        "entries per window",
        "start of the window, time of the entries (UTC)",
        "Entries by window and rider",
        "greatest 10 of 12",
    ):
        assert f">{words}<" in text, words
    places = [text.index(f">r{key:02d}<") for key in range(11, 1, -1)]
    assert places == sorted(places)
    assert ">r01<" not in text
    draw_windows(windows_of(1), [], "total", str(path), "distance")
    assert ">total of distance per window<" in path.read_text()


def test_a_reconciliation_shows_the_last_digit(tmp_path: Path) -> None:
    path = tmp_path / "sides.svg"
    totals = {"total_a": Decimal("123456789.10"), "total_b": Decimal("123456789.11")}
    facts = {"count_a": 1, "count_b": 1, **totals}
    rows = [Row(key="ada", agrees=False, difference="totals differ", **facts)]
    draw_reconciliation(rows, ["a", "b"], str(path))
    text = path.read_text()
    assert ">total of all keys<" in text
    assert ">1 / 123,456,789.1<" in text
    assert ">1 / 123,456,789.11<" in text
