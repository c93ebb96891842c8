"""The report's pictures."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from pathlib import Path
from statistics import median
from typing import Final

import matplotlib as mpl
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullLocator

from bench.claims import NOT_STREAMS
from bench.peers import OURS
from bench.ratios import (
    CPU,
    FAN_OUT,
    THROUGHPUT,
    WIDE,
    Measure,
    compared,
    grouped,
    in_order,
    show_quantity,
    throughput_by_policy,
    title_and_variant,
    values_by_server,
)
from bench.results import Results, middle
from bench.workloads import WORKLOADS

BAR_INCHES: Final = 0.28
WIDTH_INCHES: Final = 8.0
LEAST_INCHES: Final = 2.5
GOOD: Final = "#2a7f62"
BAD: Final = "#c8553d"
COLOURS: Final = ("#2a7f62", "#c8553d", "#e0a458", "#5b7db1", "#8a6fa8", "#7f7f7f")
FULL_COLOUR: Final = 3.0  # a ratio that is as green as can be, and the inverse as red
TICKS: Final = (1.0, 2.0, 5.0)  # of each decade
LATENCIES: Final = ("p50_us", "p99_us", "p999_us", "max_us")

mpl.use("Agg")


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw what was measured; the files, in the order of the report."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, canvas in (
        ("overview", overview(results)),
        ("throughput", throughput(results)),
        ("cpu", cpu(results)),
        ("durability", durability(results)),
        ("half-load", half_load(results)),
        ("memory", figures(results, "memory", "bytes")),
        ("pauses", figures(results, "pauses", "ms", is_log=True)),
        *((part, scale(results, part)) for part in results.parts() if part.startswith("scale-")),
    ):
        if canvas is not None:
            path = folder / f"{name}.png"
            canvas.savefig(path, dpi=110, bbox_inches="tight")
            pyplot.close(canvas)
            drawn.append(path)
    return drawn


def colour_of(results: Results, server: str) -> str:
    """The same colour for a server in every picture."""
    return COLOURS[list(results.servers).index(server) % len(COLOURS)]


def overview(results: Results) -> Canvas | None:
    """Return the rate of a few stream commands of each real server, where it is the limit."""
    names = [each.name for each in WORKLOADS if each.is_quick and each.name not in NOT_STREAMS]
    return wide_bars(results, THROUGHPUT, "Done per second", names)


def throughput(results: Results) -> Canvas | None:
    """Ours to the best rival: a panel for each shape, a bar for each workload."""
    panels: dict[str, dict[str, float]] = {}
    cells = [cell for cell in results.cells if cell.part == "commands"]
    for cell, found in compared(cells, results.rivals, THROUGHPUT):
        if cell.variant.startswith(FAN_OUT):
            panels.setdefault(FAN_OUT, {})[title_and_variant(cell)] = found
        else:
            panels.setdefault(cell.variant, {})[cell.title] = found
    return ratio_bars(panels)


def durability(results: Results) -> Canvas | None:
    """Ours to the best rival: a field for each workload, shape and fsync policy."""
    if not any(cell.part == "durability" for cell in results.cells):
        return None
    by_policy = throughput_by_policy(results)
    places = [(shape, policy) for shape in by_policy.shapes for policy in by_policy.policies]
    values = [[row.get(place, nan) for place in places] for row in by_policy.rows.values()]
    height = len(values) * BAR_INCHES + LEAST_INCHES
    canvas, ax = pyplot.subplots(figsize=(WIDTH_INCHES, height))
    ax.imshow(values, cmap="RdYlGn", norm=LogNorm(1 / FULL_COLOUR, FULL_COLOUR), aspect="auto")
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if not isnan(value):
                ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7)
    ax.set_yticks(range(len(values)), list(by_policy.rows), fontsize=8)
    labels = [f"{shape}, {policy}" for shape, policy in places]
    ax.set_xticks(range(len(places)), labels, fontsize=8, rotation=45, ha="right")
    ax.set_title("throughput to the best rival's, by fsync policy", fontsize=10)
    return canvas


def ratio_bars(panels: dict[str, dict[str, float]]) -> Canvas | None:
    """A panel of bars for each name, and a line where both are as good."""
    if not panels:
        return None
    heights = [len(panel) + 2 for panel in panels.values()]
    canvas, axes = pyplot.subplots(
        len(panels),
        figsize=(WIDTH_INCHES, sum(heights) * BAR_INCHES + 1),
        height_ratios=heights,
        squeeze=False,
    )
    for (name, panel), ax in zip(panels.items(), axes[:, 0], strict=True):
        values = list(panel.values())
        colours = [GOOD if value >= 1 else BAD for value in values]
        bars = ax.barh(list(panel), values, color=colours)
        ax.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
        ax.axvline(1, color="black", linewidth=0.8)
        ax.invert_yaxis()
        ax.margins(x=0.1, y=0.02)
        ax.set_title(f"throughput to the best rival's: {name}", fontsize=10)
    canvas.tight_layout()
    return canvas


def cpu(results: Results) -> Canvas | None:
    """CPU per command of each real server, where the server is what is measured."""
    names = [each.name for each in WORKLOADS]
    return wide_bars(results, CPU, "CPU per command in us", names, is_log=True)


def wide_bars(
    results: Results, measure: Measure, title: str, names: Sequence[str], *, is_log: bool = False
) -> Canvas | None:
    """A measure of some workloads, with many clients that send pipelines."""
    cells = [
        cell
        for cell in results.cells
        if cell.part == "commands" and cell.variant == WIDE and cell.workload in names
    ]
    rows = {
        together[0].title: values_by_server(together, measure)
        for together in grouped(cells).values()
    }
    return bars(results, rows, f"{title}, {WIDE}", is_log=is_log)


def figures(results: Results, part: str, unit: str, *, is_log: bool = False) -> Canvas | None:
    """The figures of one part."""
    rows: dict[str, dict[str, float]] = {}
    for figure in results.figures:
        if figure.part == part and figure.unit == unit:
            rows.setdefault(figure.title, {})[figure.server] = median(figure.values)
    return bars(results, rows, f"{part}, {unit}", is_log=is_log)


def bars(
    results: Results, rows: dict[str, dict[str, float]], title: str, *, is_log: bool = False
) -> Canvas | None:
    """Groups of bars: a group for each row, a bar for each of the real servers."""
    rows = {title: row for title, row in rows.items() if row}
    servers = [
        name
        for name in results.servers
        if (name == OURS or name in results.rivals) and any(name in row for row in rows.values())
    ]
    if not servers:
        return None
    inches = max(len(rows) * (len(servers) * 0.7 + 0.6) * BAR_INCHES, LEAST_INCHES)
    canvas, ax = pyplot.subplots(figsize=(WIDTH_INCHES, inches))
    thickness = 0.8 / len(servers)
    for number, name in enumerate(servers):
        places = [place + number * thickness for place in range(len(rows))]
        values = [row.get(name, nan) for row in rows.values()]
        drawn = ax.barh(
            places, values, height=thickness, label=name, color=colour_of(results, name)
        )
        ax.bar_label(drawn, fmt=show_quantity, padding=2, fontsize=6)
    middle_place = thickness * (len(servers) - 1) / 2
    ax.set_yticks([place + middle_place for place in range(len(rows))], list(rows), fontsize=8)
    ax.invert_yaxis()
    if is_log:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=TICKS))
        ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(show_quantity)
    ax.margins(x=0.1, y=0.01)
    ax.set_title(title, fontsize=10)
    ax.legend(fontsize=8)
    return canvas


def half_load(results: Results) -> Canvas | None:
    """Latency at four ranks, at half load."""
    together = grouped(cell for cell in results.cells if cell.part == "half-load" and cell.samples)
    if not together:
        return None
    canvas, axes = panels_of(len(together))
    for cells, ax in zip(together.values(), axes, strict=True):
        for cell in cells:
            sample = middle(cell.samples)
            values = [getattr(sample, name) / 1e3 for name in LATENCIES]
            colour = colour_of(results, cell.server)
            ax.plot(["p50", "p99", "p99.9", "max"], values, "o-", label=cell.server, color=colour)
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=TICKS))
        ax.yaxis.set_major_formatter(show_quantity)
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_title(f"{cells[0].title}, {cells[0].variant}", fontsize=9)
        ax.set_ylabel("ms")
    axes[0].legend(fontsize=8)
    canvas.tight_layout()
    return canvas


def scale(results: Results, part: str) -> Canvas | None:
    """CPU per command over size: a panel for each workload, a line for each server."""
    cells = [cell for cell in results.cells if cell.part == part and cell.samples]
    titles = in_order(cell.title for cell in cells)
    if not titles:
        return None
    canvas, axes = panels_of(len(titles))
    for title, ax in zip(titles, axes, strict=True):
        for server in results.servers:
            line = [cell for cell in cells if cell.title == title and cell.server == server]
            if line:
                sizes = [int(cell.variant.replace(",", "")) for cell in line]
                costs = [middle(cell.samples).cpu_us for cell in line]
                colour = colour_of(results, server)
                ax.plot(sizes, costs, "o-", label=server, color=colour)
        ax.set_xscale("symlog")
        ax.set_ylim(bottom=0)
        ax.set_title(f"{title}, us of CPU", fontsize=9)
        ax.set_xlabel(part.removeprefix("scale-"))
    axes[0].legend(fontsize=8)
    canvas.tight_layout()
    return canvas


def panels_of(count: int) -> tuple[Canvas, Sequence[Axes]]:
    """So many panels side by side, two in a row."""
    rows = (count + 1) // 2
    canvas, axes = pyplot.subplots(
        rows, 2, figsize=(WIDTH_INCHES, rows * LEAST_INCHES * 1.2), squeeze=False
    )
    flat = list(axes.flat)
    for ax in flat[count:]:
        ax.remove()
    return canvas, flat[:count]
