"""What sums the report up: the middle ratio of each kind, and the worst."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple

from bench.peers import FAKEREDIS, OURS
from bench.ratios import (
    AOF,
    CPU,
    DURABLE,
    P99,
    P999,
    THROUGHPUT,
    WIDE,
    Measure,
    compared,
    growth,
    in_order,
    policy_and_shape,
    ratio,
    show_ratio,
    values_by_server,
)
from bench.results import Cell, Results

FLAT: Final = "50 clients, 1 deep"
ALONE: Final = "1 client, 1 deep"
PIPELINE: Final = "1 client, 16 deep"
NOT_STREAMS: Final = ("ping", "set", "get", "pubsub")


def title(cell: Cell) -> str:
    """The workload."""
    return cell.title


def title_and_shape(cell: Cell) -> str:
    """The workload and how it was sent, but for the fsync policy."""
    return f"{cell.title}, {policy_and_shape(cell)[1]}"


class Claim(NamedTuple):
    """One row of the first table: ratios of medians and, where there are rounds, those by round."""

    what: str
    middle: str
    worst: str
    middle_by_round: str = ""
    worst_by_round: str = ""


def claims(results: Results) -> Iterator[Claim]:
    """The rows of the first table, as far as they were measured."""
    streams = [
        cell
        for cell in results.cells
        if cell.part == "commands" and cell.workload not in NOT_STREAMS
    ]
    at = {
        shape: [cell for cell in streams if cell.variant == shape]
        for shape in (WIDE, FLAT, ALONE, PIPELINE)
    }
    xadd = [cell for cell in at[WIDE] if cell.workload == "xadd"]
    others = [cell for cell in at[WIDE] if cell.workload != "xadd"]
    yield from claim(results, f"throughput, XADD, {WIDE}", xadd, THROUGHPUT)
    yield from claim(results, f"throughput, other streams, {WIDE}", others, THROUGHPUT)
    for shape in (PIPELINE, FLAT, ALONE):
        yield from claim(results, f"throughput, streams, {shape}", at[shape], THROUGHPUT)
    yield from claim(results, f"p99, streams, {ALONE}", at[ALONE], P99)
    for shape in (WIDE, PIPELINE):
        yield from claim(results, f"CPU, streams, {shape}", at[shape], CPU)
    for policy in DURABLE:
        durable = [
            cell
            for cell in results.cells
            if cell.workload not in NOT_STREAMS and policy_and_shape(cell)[0] == policy
        ]
        what = f"throughput, streams, {AOF}{policy}"
        yield from claim(results, what, durable, THROUGHPUT, name=title_and_shape)
    paced = [cell for cell in results.cells if cell.part == "half-load"]
    yield from claim(results, "p99.9 at half load", paced, P999)
    yield from figure_claim(results, "memory per entry", "memory", "entry,")
    yield from figure_claim(results, "memory per pending entry", "memory", "pending entry")
    yield from figure_claim(results, "longest pause", "pauses", "", ", longest")
    yield from fakeredis_claim(xadd)
    for part in results.parts():
        if part.startswith("scale-"):
            yield from growth_claim(results, part)


def claim(
    results: Results,
    what: str,
    cells: Sequence[Cell],
    measure: Measure,
    *,
    name: Callable[[Cell], str] = title,
) -> Iterator[Claim]:
    """The middle and the worst ratio of one measure; ``name`` tells the comparisons apart."""
    of_medians, by_round = (
        {
            name(cell): value
            for cell, value in compared(cells, results.rivals, measure, by_round=is_by_round)
        }
        for is_by_round in (False, True)
    )
    yield from spread(what, of_medians, by_round, is_high_good=measure.best is max)


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
        found = ratio(values, results.rivals, min)
        if found is not None:
            ratios[title] = found
    yield from spread(what, ratios, {}, is_high_good=False)


def spread(
    what: str, of_medians: dict[str, float], by_round: dict[str, float], *, is_high_good: bool
) -> Iterator[Claim]:
    """A row for these ratios, when there are any."""
    if of_medians:
        ways = [middle_and_worst(way, is_high_good=is_high_good) for way in (of_medians, by_round)]
        yield Claim(what, *ways[0], *ways[1])


def middle_and_worst(ratios: dict[str, float], *, is_high_good: bool) -> tuple[str, str]:
    """As a row shows them: the worst is named when there are several; nothing for none."""
    if not ratios:
        return "", ""
    worst = (min if is_high_good else max)(ratios, key=lambda title: ratios[title])
    named = f" ({worst})" if len(ratios) > 1 else ""
    return (
        show_ratio(median(ratios.values()), is_high_good=is_high_good),
        show_ratio(ratios[worst], is_high_good=is_high_good) + named,
    )


def fakeredis_claim(xadd: Sequence[Cell]) -> Iterator[Claim]:
    """Return how many times fakeredis's throughput ours is."""
    values = values_by_server(xadd, THROUGHPUT)
    if OURS in values and FAKEREDIS in values:
        times = f"**{values[OURS] / values[FAKEREDIS]:,.0f}**"
        yield Claim(f"throughput to fakeredis's, XADD, {WIDE}", times, times)


def growth_claim(results: Results, part: str) -> Iterator[Claim]:
    """Return what our commands cost at the greatest size to what they cost at the least."""
    cells = [cell for cell in results.cells if cell.part == part]
    titles = in_order(cell.title for cell in cells)
    of_medians, by_round = (
        {
            title: found
            for title in titles
            if (found := growth(cells, title, OURS, by_round=is_by_round)) is not None
        }
        for is_by_round in (False, True)
    )
    what = f"ours at most to ours at fewest {part.removeprefix('scale-')}"
    yield from spread(what, of_medians, by_round, is_high_good=False)
