"""Tables of text for a terminal, and figures that people read."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def columns(head: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a table. A column whose cells all begin with a digit stands to the right."""
    widths = [len(title) for title in head]
    numeric = [bool(rows)] * len(head)
    for row in rows:
        for at, cell in enumerate(row):
            widths[at] = max(widths[at], len(cell))
            numeric[at] = numeric[at] and cell[:1].isdigit()
    lines: list[str] = []
    for row in [head, *rows]:
        cells: list[str] = []
        for at, cell in enumerate(row):
            cells.append(cell.rjust(widths[at]) if numeric[at] else cell.ljust(widths[at]))
        lines.append("  ".join(cells).rstrip())
    return lines


def bytes_text(size: int) -> str:
    """A number of bytes, in three digits or so."""
    value = float(size)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.1f} {unit}"


def time_text(ms: int) -> str:
    """A time, in the unit that people would use."""
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
