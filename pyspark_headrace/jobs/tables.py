"""Tables on a terminal: they fit its width, and numbers stand below each other.

What is too long on a terminal ends with an ellipsis. In a file or a pipe nothing is cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

LEAST_WIDTH: Final = 8  # a text is not cut further than that
DIGITS: Final = 6  # of a number that is not whole
_WHOLE_FROM: Final = 15  # digits before the point, from which on a float is shown with an exponent


@dataclass(frozen=True)
class Head:
    """A column.

    Attributes:
        right: numbers stand on the right, and are never cut.
    """

    name: str
    right: bool = False


def print_table(
    console: Console, heads: Sequence[Head], rows: Sequence[Sequence[str | Text]]
) -> None:
    """Print a table; a row may be shorter than the others."""
    widths = [cell_len(head.name) for head in heads]
    for row in rows:
        for number, cell in enumerate(row):
            wide = cell.cell_len if isinstance(cell, Text) else cell_len(cell)
            widths[number] = max(widths[number], wide)
    if console.is_terminal:
        widths = _fitted(widths, heads, console.width)
    spare = console.width - sum(widths) - (len(widths) - 1)
    gap = 1 if not console.is_terminal or spare >= len(widths) else 0
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0))
    for head, width in zip(heads, widths, strict=True):
        table.add_column(
            head.name,
            justify="right" if head.right else "left",
            width=width,
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    # What cannot be made to fit is left to the terminal.
    room = max(console.width, sum(widths) + (1 + gap) * len(widths))
    Console(file=console.file, force_terminal=console.is_terminal, width=room).print(table)


def _fitted(widths: Sequence[int], heads: Sequence[Head], room: int) -> list[int]:
    """Take from the widest text until all of them fit, or none can give more."""
    found = list(widths)
    while sum(found) + len(found) - 1 > room:
        texts = [n for n, head in enumerate(heads) if not head.right and found[n] > LEAST_WIDTH]
        if not texts:
            break
        found[max(texts, key=lambda n: found[n])] -= 1
    return found


def number_text(value: float | Decimal) -> str:
    """A number for people: all digits before the point, and as many behind it as say something."""
    if isinstance(value, int) or not math.isfinite(value):
        return f"{value:,}"
    before = math.floor(math.log10(abs(float(value)))) + 1 if value else 1
    if before > _WHOLE_FROM:
        return f"{value:.{DIGITS}g}"
    text = f"{value:,.{max(0, DIGITS - before)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def value_text(value: object) -> str:
    """Any value for people."""
    if value is None:
        return ""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return number_text(value)
    return str(value)


def span_texts(spans: Sequence[tuple[datetime, datetime]]) -> tuple[str, list[tuple[str, str]]]:
    """Starts and ends of windows without what the reader knows already.

    Returns:
        The day, if all of them start on one, and the texts.
    """
    days: set[date] = {start.date() for start, _ in spans}
    day = days.pop().isoformat() if len(days) == 1 else ""
    found = []
    for start, end in spans:
        clock = end - start < timedelta(days=1)
        found.append(
            (
                start.time().isoformat() if day else start.isoformat(" "),
                end.time().isoformat() if clock else end.isoformat(" "),
            )
        )
    return day, found
