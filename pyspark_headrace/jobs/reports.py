"""Pictures of results, for people who would rather look."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES: Final = 10
_FIGURES: Final = {  # of a window, what an axis calls them
    "count": "entries",
    "total": "total",
    "least": "least value",
    "most": "greatest value",
    "median": "median",
    "p95": "95th percentile",
}
MOST_ROWS: Final = 30


def _figure(height: float) -> Figure:
    # Not through pyplot: that would look for a screen.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_windows(
    rows: Sequence[Row], by: Sequence[str], figure_name: str, path: str, value: str = ""
) -> None:
    """A line over time for each key, the busiest ones.

    Args:
        rows: of ``windows``.
        by: the columns that make the key.
        figure_name: the column to draw, such as ``count``.
        path: where to, a ``.png``, ``.svg`` or ``.pdf``.
        value: what the figures are made of.
    """
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    series: dict[str, list[tuple[Any, float]]] = {}
    for row in rows:
        name = ", ".join(str(row[each]) for each in by) or figure_name
        series.setdefault(name, []).append((row["start"], float(row[figure_name] or 0)))
    busiest = sorted(series, key=lambda name: -sum(value for _, value in series[name]))
    figure = _figure(5)
    axes = figure.add_subplot()
    for name in busiest[:MOST_LINES]:
        points = sorted(series[name])
        axes.plot(
            [start for start, _ in points],
            [value for _, value in points],
            marker="." if len(points) < 50 else "",
            label=name,
        )
    what = _FIGURES.get(figure_name, figure_name)
    if value and figure_name != "count":
        what = f"{what} of {value}"
    if min((value for points in series.values() for _, value in points), default=0) >= 0:
        axes.set_ylim(bottom=0)
    axes.set_ylabel(f"{what} per window")
    axes.yaxis.set_major_formatter("{x:,.10g}")
    axes.set_xlabel("start of the window, time of the entries (UTC)")
    dates = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(dates)
    concise = ConciseDateFormatter(dates)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(concise)
    axes.grid(alpha=0.3)
    axes.set_title(f"{what.capitalize()} by window" + (f" and {', '.join(by)}" if by else ""))
    if len(series) > 1:
        most = f"greatest {MOST_LINES} of {len(series):,}" if len(series) > MOST_LINES else None
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), title=most)
    figure.savefig(path)


def _exact(total: Decimal | float | None) -> str:
    """All digits, for sides may differ in the last one."""
    return f"{Decimal(total or 0).normalize():,f}"


def _figures(row: Row, side: str) -> str:
    return f"{row[f'count_{side}'] or 0:,} / {_exact(row[f'total_{side}'])}"


def draw_reconciliation(rows: Sequence[Row], sides: Sequence[str], path: str) -> None:
    """A table of what was compared, what differs on top, and the totals of each side as bars.

    Args:
        rows: of ``reconcile``.
        sides: their names, in order.
        path: where to, a ``.png``, ``.svg`` or ``.pdf``.
    """
    worst_first = sorted(rows, key=lambda row: (row["agrees"], row["key"] or ""))
    shown = worst_first[:MOST_ROWS]
    figure = _figure(3.5 + 0.3 * max(1, len(shown)))
    bars, table = figure.subplots(2, 1, height_ratios=(1, max(1.0, 0.12 * len(shown))))
    sums = [sum((Decimal(row[f"total_{side}"] or 0) for row in rows), Decimal(0)) for side in sides]
    differing = sum(1 for row in rows if not row["agrees"])
    colour = "tab:red" if differing else "tab:green"
    drawn = bars.barh(list(sides), [float(each) for each in sums], color=colour, alpha=0.6)
    bars.bar_label(drawn, labels=[_exact(each) for each in sums], padding=3)
    bars.xaxis.set_major_formatter("{x:,.10g}")
    bars.set_xlabel("total of all keys")
    bars.invert_yaxis()
    bars.margins(x=0.15)
    verdict = (
        f"{differing} of {len(rows)} keys differ" if differing else f"all {len(rows)} keys agree"
    )
    bars.set_title(f"Totals: {verdict}")
    table.axis("off")
    cells = [
        [
            str(row["key"]),
            *(_figures(row, side) for side in sides),
            row["difference"] or "agrees",
        ]
        for row in shown
    ]
    heads = ["key", *(f"{side}: entries / total" for side in sides), "verdict"]
    drawn_table = table.table(
        cellText=cells or [[""] * len(heads)], colLabels=heads, loc="upper center"
    )
    drawn_table.auto_set_font_size(False)
    drawn_table.set_fontsize(8)
    drawn_table.auto_set_column_width(list(range(len(heads))))
    for number, row in enumerate(shown):
        if not row["agrees"]:
            for column in range(len(heads)):
                drawn_table[number + 1, column].set_facecolor("#f8d0d0")
    figure.savefig(path)
