"""A reconciliation as a web page."""

from __future__ import annotations

from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyspark.sql import Row

from pyspark_headrace.jobs.page import write_reconciliation
from pyspark_headrace.jobs.values import report

pytestmark = pytest.mark.once


class Cells(HTMLParser):
    """The text of each row, and the rows that are marked."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.marked: list[int] = []
        self.all = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            if ("class", "differs") in attrs:
                self.marked.append(len(self.rows))
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.all += data
        if self.rows and self.rows[-1] and data.strip():
            self.rows[-1][-1] += data


def row(key: str, count: int, total: str, difference: str | None) -> Row:
    return Row(
        key=key,
        count_stream=count,
        total_stream=Decimal(total),
        last_id_stream="7-1",
        count_totals=2,
        total_totals=None if difference else Decimal("1.50"),
        last_id_totals=None,
        agrees=difference is None,
        difference=difference,
    )


def shown(rows: list[Row], path: Path) -> Cells:
    write_reconciliation(rows, ["stream", "totals"], str(path))
    found = Cells()
    found.feed(path.read_text(encoding="utf-8"))
    return found


def test_a_page(tmp_path: Path) -> None:
    """What differs stands first; names are text, whatever is in them."""
    odd = "<script>alert('ü')</script>"
    page = shown(
        [row("ada", 2, "1.50", None), row(odd, 12_345, "0.10", "totals: <none>")],
        tmp_path / "r.html",
    )
    assert "1 of 2 keys differ" in page.all
    assert page.rows[1:3] == [["stream", "12,347", "1.6"], ["totals", "4", "1.5"]]
    assert page.rows[4] == [odd, "12,345", "0.1", "7-1", "2", "0", "", "totals: <none>"]
    assert page.rows[5] == ["ada", "2", "1.5", "7-1", "2", "1.5", "", "agrees"]
    assert page.marked == [4]
    assert "<script" not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_page_where_all_agree(tmp_path: Path) -> None:
    page = shown([row("ada", 2, "1.50", None)], tmp_path / "r.html")
    assert "all 1 keys agree" in page.all
    assert page.marked == []


def test_names_of_reports() -> None:
    assert report("a.html") == "a.html"
    assert report("a.svg") == "a.svg"
    with pytest.raises(Exception, match=r"ends neither in \.png"):
        report("a.doc")
