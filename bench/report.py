"""The report: tables of what was measured, beside the best of the peers.

Ratios are ours to the best rival: the fastest for throughput, the cheapest for CPU and memory, the
quickest for latency, each time anew. Rivals are the real servers; fakeredis and our own pure build
have columns, and no say in what is best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.peers import FAKEREDIS, OURS
from bench.results import SHARE, Cell, Figure, Results, Sample, middle

BUSY: Final = 0.9  # of a core; more is all there is, with what a measurement loses
WIDE: Final = "50 clients, 16 deep"
FLAT: Final = "50 clients, 1 deep"
ALONE: Final = "1 client, 1 deep"
FAN_OUT: Final = "fan-out"
NOT_STREAMS: Final = ("ping", "set", "get", "pubsub")
ABSENT: Final = "n/a"
LOAD_BOUND: Final = "*"


class Measure(NamedTuple):
    """One number of a sample, and how it is shown."""

    heading: str
    value: Callable[[Sample], float]
    show: Callable[[Sample], str]
    best: Callable[[Iterable[float]], float]  # of the rivals


def show_count(value: float) -> str:
    """A count or rate, to three digits or so."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def show_ms(us: float) -> str:
    """Microseconds as milliseconds, to three digits."""
    ms = us / 1000
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def show_throughput(sample: Sample) -> str:
    """Units per second, marked when the load was the limit."""
    is_bound = sample.load_busy > BUSY > sample.server_busy
    return show_count(sample.per_s) + LOAD_BOUND * is_bound


def show_cpu(sample: Sample) -> str:
    """Microseconds, in all and by where they went."""
    return f"{sample.cpu_us:.2f} ({sample.user_us:.2f} + {sample.system_us:.2f})"


def show_latency(sample: Sample) -> str:
    """Milliseconds at four ranks."""
    ranks = (sample.p50_us, sample.p99_us, sample.p999_us, sample.max_us)
    return " / ".join(show_ms(rank) for rank in ranks)


THROUGHPUT: Final = Measure("Throughput per second.", lambda s: s.per_s, show_throughput, max)
CPU: Final = Measure(
    "CPU time of the server in microseconds, with what of it was outside of the kernel and inside.",
    lambda s: s.cpu_us,
    show_cpu,
    min,
)
P99: Final = Measure(
    "Latency in ms until a batch is answered: p50 / p99 / p99.9 / max; the ratio is that of p99.",
    lambda s: s.p99_us,
    show_latency,
    min,
)
P999: Final = Measure(
    "Latency in ms from when a request was due: p50 / p99 / p99.9 / max; the ratio is of p99.9.",
    lambda s: s.p999_us,
    show_latency,
    min,
)


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


def in_order(names: Iterable[str]) -> list[str]:
    """Each name once, in the order of its first appearance."""
    return list(dict.fromkeys(names))


def values_by_server(cells: Iterable[Cell], measure: Measure) -> dict[str, float]:
    """The median of a measure for each server that has one."""
    return {cell.server: measure.value(middle(cell.samples)) for cell in cells if cell.samples}


def ratio(values: dict[str, float], rivals: Sequence[str], measure: Measure) -> float | None:
    """Ours to the best rival's; None when one of them is missing."""
    theirs = [values[name] for name in rivals if name in values]
    if OURS not in values or not theirs:
        return None
    best = measure.best(theirs)
    return values[OURS] / best if best else None


def show_ratio(value: float | None, *, is_high_good: bool) -> str:
    """A ratio; bold when it is in our favour."""
    if value is None:
        return ""
    is_good = value >= 1 if is_high_good else value <= 1
    return f"**{value:.2f}**" if is_good else f"{value:.2f}"


def grouped(cells: Iterable[Cell]) -> dict[tuple[str, str], list[Cell]]:
    """The cells of all servers for one workload in one variant together."""
    together: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        together.setdefault((cell.workload, cell.variant), []).append(cell)
    return together


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
        found = ratio(values_by_server(together, measure), results.rivals, measure)
        rows.append([*row, show_ratio(found, is_high_good=is_high_good)])
    return f"{measure.heading}\n\n" + table(["", *servers, "ratio"], rows)


def title_of(cell: Cell) -> str:
    """The workload, with its unit where that is not plain commands."""
    return cell.title if cell.unit == "commands" else f"{cell.title} ({cell.unit})"


def title_and_variant(cell: Cell) -> str:
    """The workload and how it was sent."""
    return f"{title_of(cell)}, {cell.variant.removeprefix(FAN_OUT + ', ')}"


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
        row += [show_figure(values[name]) if name in values else ABSENT for name in servers]
        theirs = [values[name] for name in results.rivals if name in values]
        is_known = unit != SHARE and OURS in values and theirs and min(theirs)
        found = values[OURS] / min(theirs) if is_known else None
        rows.append([*row, show_ratio(found, is_high_good=False)])
    return table(["", *servers, "ratio"], rows)


def show_figure(value: float, place: object = None) -> str:
    """A quantity, to three digits or so; matplotlib calls this too, with the place of a tick."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# Sections


def sections(results: Results) -> Iterator[str]:
    """The report's text, one piece after another, as Markdown."""
    yield "## In short\n\n" + short(results)
    yield from command_sections(results)
    durable = [cell for cell in results.cells if cell.part == "durability"]
    if durable:
        yield "## Append-only file"
        for measure in (THROUGHPUT, CPU, P99):
            yield comparison(results, durable, measure, title_and_variant)
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


FIGURE_PARTS: Final = {"memory": "Memory", "start": "Start", "pauses": "Pauses"}


def command_sections(results: Results) -> Iterator[str]:
    """A section for each shape of the load; the fan-outs, which have their own, in one."""
    cells = [cell for cell in results.cells if cell.part == "commands"]
    if not cells:
        return
    yield "## Commands"
    bound = f"`{LOAD_BOUND}`: the load was the limit, not the server; compare CPU there."
    if any(LOAD_BOUND in show_throughput(middle(c.samples)) for c in cells if c.samples):
        yield bound
    shapes = in_order(cell.variant for cell in cells if not cell.variant.startswith(FAN_OUT))
    for shape in shapes:
        yield f"### {shape}"
        for measure in (THROUGHPUT, CPU, P99):
            chosen = [cell for cell in cells if cell.variant == shape]
            yield comparison(results, chosen, measure, title_of)
    fans = [cell for cell in cells if cell.variant.startswith(FAN_OUT)]
    if fans:
        yield "### Fan-out"
        for measure in (THROUGHPUT, CPU, P99):
            yield comparison(results, fans, measure, title_and_variant)


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


def growth(cells: Iterable[Cell], title: str, server: str) -> float | None:
    """CPU at the last size to that at the first; sizes are in ascending order."""
    costs = [
        middle(cell.samples).cpu_us
        for cell in cells
        if cell.title == title and cell.server == server and cell.samples
    ]
    return costs[-1] / costs[0] if len(costs) > 1 and costs[0] else None


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
            row.append(show_count(per_s) + share)
        found = ratio(values_by_server(together, THROUGHPUT), results.rivals, THROUGHPUT)
        rows.append([*row, show_ratio(found, is_high_good=True)])
    yield table(["per second", *servers, "ratio"], rows)


def missing_section(results: Results) -> Iterator[str]:
    """Why a place in the tables is empty."""
    reasons = in_order(
        f"- {cell.title}, {cell.server}: {cell.missing}" for cell in results.cells if cell.missing
    )
    reasons += [f"- {failure}" for failure in results.failures]
    if reasons:
        yield "## Not measured\n\n" + "\n".join(reasons)


# In short


class Claim(NamedTuple):
    """One row of the first table."""

    what: str
    middle: str
    worst: str


def short(results: Results) -> str:
    """The ratios that sum the report up: the middle one of each kind, and the worst."""
    rows = [tuple(claim) for claim in claims(results)]
    if not rows:
        return "Nothing to compare with."
    return table(["ours to the best rival", "median", "worst"], rows)


def claims(results: Results) -> Iterator[Claim]:
    """The rows of the first table, as far as they were measured."""
    streams = [
        cell
        for cell in results.cells
        if cell.part == "commands" and cell.workload not in NOT_STREAMS
    ]
    at = {
        shape: [cell for cell in streams if cell.variant == shape] for shape in (WIDE, FLAT, ALONE)
    }
    xadd = [cell for cell in at[WIDE] if cell.workload == "xadd"]
    others = [cell for cell in at[WIDE] if cell.workload != "xadd"]
    yield from claim(results, f"throughput, XADD, {WIDE}", xadd, THROUGHPUT)
    yield from claim(results, f"throughput, other streams, {WIDE}", others, THROUGHPUT)
    yield from claim(results, f"throughput, streams, {FLAT}", at[FLAT], THROUGHPUT)
    yield from claim(results, f"throughput, streams, {ALONE}", at[ALONE], THROUGHPUT)
    yield from claim(results, f"p99, streams, {ALONE}", at[ALONE], P99)
    yield from claim(results, f"CPU, streams, {WIDE}", at[WIDE], CPU)
    paced = [cell for cell in results.cells if cell.part == "half-load"]
    yield from claim(results, "p99.9 at half load", paced, P999)
    yield from figure_claim(results, "memory per entry", "memory", "entry,")
    yield from figure_claim(results, "memory per pending entry", "memory", "pending entry")
    yield from figure_claim(results, "longest pause", "pauses", "", ", longest")
    yield from fakeredis_claim(xadd)
    for part in results.parts():
        if part.startswith("scale-"):
            yield from growth_claim(results, part)


def claim(results: Results, what: str, cells: Sequence[Cell], measure: Measure) -> Iterator[Claim]:
    """The middle and the worst ratio of one measure."""
    ratios = {}
    for together in grouped(cells).values():
        found = ratio(values_by_server(together, measure), results.rivals, measure)
        if found is not None:
            ratios[together[0].title] = found
    yield from spread(what, ratios, is_high_good=measure.best is max)


def figure_claim(
    results: Results, what: str, part: str, head: str, tail: str = ""
) -> Iterator[Claim]:
    """The same of figures whose titles begin and end like this."""
    ratios = {}
    chosen = [
        figure
        for figure in results.figures
        if figure.part == part and figure.title.startswith(head) and figure.title.endswith(tail)
    ]
    for title in in_order(figure.title for figure in chosen):
        values = {f.server: median(f.values) for f in chosen if f.title == title}
        theirs = [values[name] for name in results.rivals if name in values]
        if OURS in values and theirs and min(theirs):
            ratios[title] = values[OURS] / min(theirs)
    yield from spread(what, ratios, is_high_good=False)


def spread(what: str, ratios: dict[str, float], *, is_high_good: bool) -> Iterator[Claim]:
    """A row for these ratios, when there are any."""
    if not ratios:
        return
    worst = (min if is_high_good else max)(ratios, key=lambda title: ratios[title])
    named = f" ({worst})" if len(ratios) > 1 else ""
    yield Claim(
        what,
        show_ratio(median(ratios.values()), is_high_good=is_high_good),
        show_ratio(ratios[worst], is_high_good=is_high_good) + named,
    )


def fakeredis_claim(xadd: Sequence[Cell]) -> Iterator[Claim]:
    """How many times fakeredis's throughput ours is."""
    values = values_by_server(xadd, THROUGHPUT)
    if OURS in values and FAKEREDIS in values:
        times = f"**{values[OURS] / values[FAKEREDIS]:,.0f}**"
        yield Claim(f"throughput to fakeredis's, XADD, {WIDE}", times, times)


def growth_claim(results: Results, part: str) -> Iterator[Claim]:
    """What our commands cost at the greatest size to what they cost at the least."""
    cells = [cell for cell in results.cells if cell.part == part]
    growths = {}
    for title in in_order(cell.title for cell in cells):
        found = growth(cells, title, OURS)
        if found is not None:
            growths[title] = found
    axis = part.removeprefix("scale-")
    yield from spread(f"ours at most to ours at fewest {axis}", growths, is_high_good=False)


# The whole


def taken_by_others(results: Results) -> dict[str, str]:
    """How much of the machine was not there, as one more of the facts."""
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
below 1 for CPU, latency and memory, and bold is good."""


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
