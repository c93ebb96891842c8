"""A reconciliation as a web page: one file, that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Final

from pyspark.sql import Row

_STYLE: Final = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em }
table { border-collapse: collapse; margin: 1em 0 }
th, td { border-bottom: 1px solid #ddd; padding: .25em .8em; text-align: left }
td.number { text-align: right; font-variant-numeric: tabular-nums }
tr.differs { background: #f8d0d0 }
.agrees { color: #185f2d } .wrong { color: #9c1c1c }
"""


def write_reconciliation(rows: Sequence[Row], sides: Sequence[str], path: str) -> None:
    """Write a page: the verdict, the sums of each side, and every key, what differs first.

    Args:
        rows: of ``reconcile``.
        sides: their names, in order.
        path: where to.
    """
    wrong = sum(1 for row in rows if not row["agrees"])
    verdict = f"all {len(rows):,} keys agree"
    if wrong:
        verdict = f"{wrong:,} of {len(rows):,} keys differ"
    columns = [f"{side}: {what}" for side in sides for what in ("entries", "total", "last id")]
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    body = [
        f'<h1>Reconciliation: <span class="{"wrong" if wrong else "agrees"}">{verdict}</span></h1>',
        f"<p>{escape(', '.join(sides))}; {now}</p>",
        "<table>",
        _head(("side", "entries", "total")),
        *(_sums(rows, side) for side in sides),
        "</table>",
        "<table>",
        _head(("key", *columns, "verdict")),
        *(_line(row, sides) for row in sorted(rows, key=_worst_first)),
        "</table>",
    ]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{verdict}</title>'
    page = f"{head}<style>{_STYLE}</style>\n" + "\n".join(body) + "\n</html>\n"
    Path(path).write_text(page, encoding="utf-8")


def _worst_first(row: Row) -> tuple[bool, str]:
    return bool(row["agrees"]), str(row["key"] or "")


def _head(names: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>"


def _number(value: object) -> str:
    text = f"{value:f}" if isinstance(value, Decimal) else f"{value or 0:,}"
    return f'<td class="number">{text}</td>'


def _sums(rows: Sequence[Row], side: str) -> str:
    entries = sum(row[f"count_{side}"] or 0 for row in rows)
    total = sum((Decimal(row[f"total_{side}"] or 0) for row in rows), Decimal(0)).normalize()
    return f"<tr><td>{escape(side)}</td>{_number(entries)}{_number(total)}</tr>"


def _line(row: Row, sides: Sequence[str]) -> str:
    cells = [f"<td>{escape(str(row['key']))}</td>"]
    for side in sides:
        total = Decimal(row[f"total_{side}"] or 0).normalize()
        last = escape(str(row[f"last_id_{side}"] or ""))
        cells += [_number(row[f"count_{side}"]), _number(total), f"<td>{last}</td>"]
    cells.append(f"<td>{escape(row['difference'] or 'agrees')}</td>")
    kind = "" if row["agrees"] else ' class="differs"'
    return f"<tr{kind}>{''.join(cells)}</tr>"
