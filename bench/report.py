"""The report: tables of what was measured, beside the best of the peers.

Servers that are no rivals have columns, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench.claims import claims
from bench.ratios import (
    CPU,
    FAN_OUT,
    LOAD_BOUND,
    P99,
    P999,
    THROUGHPUT,
    Measure,
    grouped,
    growth,
    in_order,
    ratio,
    ratio_by_round,
    ratio_of_medians,
    show_quantity,
    show_ratio,
    show_throughput,
    throughput_by_policy,
    title_and_variant,
    title_of,
)
from bench.results import SHARE, Cell, Figure, Results, middle

ABSENT: Final = "n/a"


# Tables


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns are straight in a terminal too; numbers to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    made = []
    for number, line in enumerate(lines):
        first = line[0].ljust(widths[0])
        others = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        made.append("| " + " | ".join([first, *others]) + " |")
        if number == 0:
            rule = ["-" * widths[0], *["-" * (width - 1) + ":" for width in widths[1:]]]
            made.append("| " + " | ".join(rule) + " |")
    return "\n".join(made)


def comparison(
    results: Results,
    cells: Sequence[Cell],
    measure: Measure,
    row_title: Callable[[Cell], str],
) -> str:
    """A table with a row for each workload and variant, a column for each server, and the ratio."""
    present = {cell.server for cell in cells}
    servers = [name for name in results.servers if name in present]
    is_high_good = measure.best is max
    rows = []
    for together in grouped(cells).values():
        by_server = {cell.server: cell for cell in together}
        row = [row_title(together[0])]
        for name in servers:
            cell = by_server.get(name)
            row.append(measure.show(middle(cell.samples)) if cell and cell.samples else ABSENT)
        for work_out in (ratio_of_medians, ratio_by_round):
            found = work_out(together, results.rivals, measure)
            row.append(show_ratio(found, is_high_good=is_high_good))
        rows.append(row)
    return f"{measure.heading}\n\n" + table(["", *servers, "ratio", "by round"], rows)


def figure_table(results: Results, figures: Sequence[Figure]) -> str:
    """A table of figures: the less, the better."""
    present = {figure.server for figure in figures}
    servers = [name for name in results.servers if name in present]
    rows = []
    for title in in_order(figure.title for figure in figures):
        by_server = {figure.server: figure for figure in figures if figure.title == title}
        unit = next(iter(by_server.values())).unit
        values = {name: median(figure.values) for name, figure in by_server.items()}
        row = [f"{title} ({unit})"]
        row += [show_quantity(values[name]) if name in values else ABSENT for name in servers]
        found = None if unit == SHARE else ratio(values, results.rivals, min)
        rows.append([*row, show_ratio(found, is_high_good=False)])
    return table(["", *servers, "ratio"], rows)


# Sections


def sections(results: Results) -> Iterator[str]:
    """The report's text, one piece after another, as Markdown."""
    yield "## In short\n\n" + short(results)
    for part, heading in COMMAND_PARTS.items():
        cells = [cell for cell in results.cells if cell.part == part]
        if cells:
            yield f"## {heading}"
            if part == "durability":
                yield policies(results)
            yield from command_sections(results, cells)
    paced = [cell for cell in results.cells if cell.part == "half-load"]
    if paced:
        yield "## Half load\n\nRequests leave at a given rate, the same for all servers."
        yield comparison(results, paced, P999, title_and_variant)
    for part, heading in FIGURE_PARTS.items():
        figures = [figure for figure in results.figures if figure.part == part]
        if figures:
            yield f"## {heading}"
            yield figure_table(results, figures)
    yield from scale_sections(results)
    yield from second_opinion_section(results)
    yield from missing_section(results)


COMMAND_PARTS: Final = {"commands": "Commands", "durability": "Append-only file"}
FIGURE_PARTS: Final = {"memory": "Memory", "start": "Start", "pauses": "Pauses"}


def short(results: Results) -> str:
    """The ratios that sum the report up: the middle one of each kind, and the worst."""
    rows = list(claims(results))
    if not rows:
        return "Nothing to compare with."
    head = ["ours to the best rival", "median", "worst", "by round: median", "worst"]
    return table(head, rows)


def policies(results: Results) -> str:
    """Return what an append-only file does to the ratios of throughput."""
    by_policy = throughput_by_policy(results)
    rows = []
    for title, row in by_policy.rows.items():
        shown = [title]
        for shape in by_policy.shapes:
            values = [row.get((shape, policy)) for policy in by_policy.policies]
            texts = [ABSENT if value is None else f"{value:.2f}" for value in values]
            shown.append(" / ".join(texts) if any(values) else "")
        rows.append(shown)
    heading = f"Throughput to the best rival's: {' / '.join(by_policy.policies)}."
    return f"{heading}\n\n" + table(["", *by_policy.shapes], rows)


def command_sections(results: Results, cells: Sequence[Cell]) -> Iterator[str]:
    """A section for each shape of the load; the fan-outs, which have their own, in one."""
    bound = f"`{LOAD_BOUND}`: the load was the limit, not the server; compare CPU there."
    if any(LOAD_BOUND in show_throughput(middle(c.samples)) for c in cells if c.samples):
        yield bound
    alike: dict[str, list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: FAN_OUT in cell.variant):
        before, fan_out, _ = cell.variant.partition(FAN_OUT)
        alike.setdefault(before + fan_out, []).append(cell)
    for heading, chosen in alike.items():
        yield f"### {heading[0].upper()}{heading[1:]}"
        row_title = title_and_variant if heading.endswith(FAN_OUT) else title_of
        for measure in (THROUGHPUT, CPU, P99):
            yield comparison(results, chosen, measure, row_title)


def scale_sections(results: Results) -> Iterator[str]:
    """CPU per command at each size, and what it grew by from the least to the greatest."""
    for part in results.parts():
        if not part.startswith("scale-"):
            continue
        axis = part.removeprefix("scale-")
        yield f"## Scale: {axis}"
        cells = [cell for cell in results.cells if cell.part == part]
        titles = in_order(cell.title for cell in cells)
        cells.sort(key=lambda cell: titles.index(cell.title))  # sizes stay in order
        yield comparison(results, cells, CPU, title_and_variant)
        present = {cell.server for cell in cells}
        servers = [name for name in results.servers if name in present]
        rows = [
            [title, *[show_growth(growth(cells, title, name)) for name in servers]]
            for title in titles
        ]
        yield "What it costs at the greatest size to what it costs at the least.\n\n" + table(
            ["", *servers], rows
        )
        figures = [figure for figure in results.figures if figure.part == part]
        if figures:
            yield figure_table(results, figures)


def show_growth(value: float | None) -> str:
    """A factor, or that there is none."""
    return ABSENT if value is None else f"{value:.2f}"


def second_opinion_section(results: Results) -> Iterator[str]:
    """The load of redis-benchmark beside ours, for the same requests."""
    said = [cell for cell in results.cells if cell.part == "redis-benchmark"]
    if not said:
        return
    own = {
        (cell.workload, cell.variant, cell.server): cell
        for cell in results.cells
        if cell.part == "commands" and cell.samples
    }
    yield (
        "## The same by redis-benchmark\n\n"
        "Commands per second and, in brackets, what that is of what the suite's own load gave."
    )
    servers = [name for name in results.servers if name in {cell.server for cell in said}]
    rows = []
    for (workload, variant), together in grouped(said).items():
        row = [f"{together[0].title}, {variant}"]
        by_server = {cell.server: cell for cell in together}
        for name in servers:
            per_s = middle(by_server[name].samples).per_s
            beside = own.get((workload, variant, name))
            share = f" ({per_s / middle(beside.samples).per_s:.2f})" if beside else ""
            row.append(show_quantity(per_s) + share)
        found = ratio_of_medians(together, results.rivals, THROUGHPUT)
        rows.append([*row, show_ratio(found, is_high_good=True)])
    yield table(["per second", *servers, "ratio"], rows)


def missing_section(results: Results) -> Iterator[str]:
    """Return why a place in the tables is empty."""
    reasons = in_order(
        f"- {cell.title}, {cell.server}: {cell.missing}" for cell in results.cells if cell.missing
    )
    reasons += [f"- {failure}" for failure in results.failures]
    if reasons:
        yield "## Not measured\n\n" + "\n".join(reasons)


# The whole


def taken_by_others(results: Results) -> dict[str, str]:
    """Return how much of the machine was not there, as one more of the facts."""
    shares = [sample.stolen for cell in results.cells for sample in cell.samples]
    if not any(shares):
        return {}
    words = (
        f"{median(shares):.1%} of the CPU time in the median run, {max(shares):.1%} in the worst"
    )
    return {"taken by other machines": words}


INTRODUCTION: Final = """\
# Headrace beside its peers

Made by `make bench`; [docs/performance.md](../docs/performance.md) tells what is measured and how
to read it. A ratio is ours to the best of the other real servers: above 1 is good for throughput,
below 1 for CPU, latency and memory, and bold is good. It is of medians; *by round* is the median of
what the rounds give by themselves, to the rival that is best by that."""


def text(results: Results, plots: Sequence[str] = ()) -> str:
    """The whole report."""
    facts = results.facts | taken_by_others(results)
    known = "\n".join(f"- {key}: {value}" for key, value in facts.items())
    servers = "\n".join(f"- **{name}** {version}" for name, version in results.servers.items())
    pictures = "\n\n".join(f"![{Path(name).stem}]({name})" for name in plots)
    pieces = [INTRODUCTION, known, servers]
    first, *others = sections(results)
    pieces += [first, pictures] if pictures else [first]
    return "\n\n".join([*pieces, *others]) + "\n"


def write(results: Results, folder: Path) -> list[Path]:
    """Write ``report.md`` and its plots; the files that were written.

    Without matplotlib there are no plots.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        from bench import plots
    except ModuleNotFoundError:
        drawn = []
    else:
        drawn = plots.draw(results, folder / "plots")
    report = folder / "report.md"
    report.write_text(text(results, [f"plots/{path.name}" for path in drawn]))
    return [report, *drawn]
