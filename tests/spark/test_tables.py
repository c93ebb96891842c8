"""Tables of jobs: they fit a terminal, and lose nothing in a file."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from pyspark_headrace.jobs.tables import Head, number_text, print_table, span_texts, value_text

pytestmark = pytest.mark.once

STYLE = re.compile(r"\x1b\[[0-9;]*m")
HEADS = [Head("stream"), Head("rider"), Head("count", right=True), Head("total", right=True)]
LONG = "a-stream-with-a-very-long-name-" * 4
ROWS = [("rides", "ada", "7", "12.5"), (LONG, "日本語" * 20, "1,234,567", "0.1"), ("[b]x[/b]",)]


def printed(terminal: bool, width: int = 80) -> list[str]:
    shown = StringIO()
    console = Console(file=shown, force_terminal=terminal, color_system=None, width=width)
    print_table(console, HEADS, ROWS)
    return [line.rstrip() for line in STYLE.sub("", shown.getvalue()).splitlines()]


@pytest.mark.parametrize("width", [60, 80, 120, 400])
def test_a_terminal_is_not_wide_enough_for_all(width: int) -> None:
    head, _, short, long, odd = printed(True, width)
    assert max(map(cell_len, (head, short, long, odd))) <= width
    assert ("…" in long) == (width < 400)
    assert long.endswith("0.1")
    assert "1,234,567" in long
    assert head.rindex("total") + len("total") == len(head)
    assert len(short) == len(head), "numbers stand on the right"
    assert odd == "[b]x[/b]"


def test_numbers_are_never_cut() -> None:
    assert "1,234,567" in printed(True, 20)[3]


def test_a_file_gets_all_of_it() -> None:
    long = printed(False)[3]
    assert LONG in long
    assert "日本語" * 20 in long


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "True"),
        (1234567, "1,234,567"),
        (18.300000000000004, "18.3"),
        (0.0, "0"),
        (-0.000123456789, "-0.000123457"),
        (1234567.891, "1,234,568"),
        (1e30, "1e+30"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Decimal("123456.100"), "123,456"),
        (Decimal("12.500"), "12.5"),
        ("ada", "ada"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert value_text(value) == text
    if isinstance(value, float):
        assert number_text(value) == text


def test_times_leave_out_what_is_known() -> None:
    start = datetime(2026, 1, 31, 23, 58)
    minute = timedelta(minutes=1)
    assert span_texts([(start, start + minute)]) == ("2026-01-31", [("23:58:00", "23:59:00")])
    day, texts = span_texts([(start, start + minute), (start + 2 * minute, start + 3 * minute)])
    assert day == ""
    assert texts[1] == ("2026-02-01 00:00:00", "00:01:00")
    _, texts = span_texts([(start, start + timedelta(days=2))])
    assert texts[0][1] == "2026-02-02 23:58:00"
    assert span_texts([]) == ("", [])
