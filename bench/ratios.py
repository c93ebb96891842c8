"""What is compared, and how: ours to the best rival.

That is the fastest for throughput, the cheapest for CPU and memory, the quickest for latency, each
time anew. Rivals are the real servers; fakeredis and our own pure build have no say in what is
best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple

from bench.peers import OURS
from bench.results import Cell, Results, Sample, middle

BUSY: Final = 0.9  # of a core; more is all there is, with what a measurement loses
WIDE: Final = "50 clients, 16 deep"
FAN_OUT: Final = "fan-out"
AOF: Final = "AOF "  # and the fsync policy, at the start of a variant
NO_FILE: Final = "off"
DURABLE: Final = ("everysec", "always")  # the fsync policies that are measured
BY_POLICY: Final = ("commands", "durability")  # the parts without an append-only file and with one
LOAD_BOUND: Final = "*"


class Measure(NamedTuple):
    """One number of a sample, and how it is shown."""

    heading: str
    value: Callable[[Sample], float]
    show: Callable[[Sample], str]
    best: Callable[[Iterable[float]], float]  # of the rivals


def show_quantity(value: float, place: object = None) -> str:
    """A quantity, to three digits or so; matplotlib calls this too, with the place of a tick."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def show_throughput(sample: Sample) -> str:
    """Units per second, marked when the load was the limit."""
    is_bound = sample.load_busy > BUSY > sample.server_busy
    return show_quantity(sample.per_s) + LOAD_BOUND * is_bound


def show_cpu(sample: Sample) -> str:
    """Microseconds, in all and by where they went."""
    return f"{sample.cpu_us:.2f} ({sample.user_us:.2f} + {sample.system_us:.2f})"


def show_latency(sample: Sample) -> str:
    """Milliseconds at four ranks."""
    ranks = (sample.p50_us, sample.p99_us, sample.p999_us, sample.max_us)
    return " / ".join(show_quantity(rank / 1000) for rank in ranks)


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


def in_order(names: Iterable[str]) -> list[str]:
    """Each name once, in the order of its first appearance."""
    return list(dict.fromkeys(names))


def values_by_server(cells: Iterable[Cell], measure: Measure) -> dict[str, float]:
    """The median of a measure for each server that has one."""
    return {cell.server: measure.value(middle(cell.samples)) for cell in cells if cell.samples}


def ratio(
    values: dict[str, float], rivals: Sequence[str], best: Callable[[Iterable[float]], float]
) -> float | None:
    """Ours to the best rival's; None when one of them is missing."""
    theirs = [values[name] for name in rivals if name in values]
    if OURS not in values or not theirs:
        return None
    goal = best(theirs)
    return values[OURS] / goal if goal else None


def ratio_of_medians(
    cells: Iterable[Cell], rivals: Sequence[str], measure: Measure
) -> float | None:
    """Ours to the best rival's, each the median of all rounds."""
    return ratio(values_by_server(cells, measure), rivals, measure.best)


def ratio_by_round(cells: Iterable[Cell], rivals: Sequence[str], measure: Measure) -> float | None:
    """Ours to a rival's of the same round, the median over all rounds; of the best rival.

    Where a machine is fast in one moment and slow in the next one, the medians of two servers may
    be of different moments. Those of one round lie next to each other.
    """
    values = {cell.server: [measure.value(sample) for sample in cell.samples] for cell in cells}
    found = []
    for name in rivals:
        pairs = zip(values.get(OURS, []), values.get(name, []), strict=False)
        ratios = [ours / theirs for ours, theirs in pairs if theirs]
        if ratios:
            found.append(median(ratios))
    if not found:
        return None
    return min(found) if measure.best is max else max(found)


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


def compared(
    cells: Iterable[Cell], rivals: Sequence[str], measure: Measure, *, by_round: bool = False
) -> Iterator[tuple[Cell, float]]:
    """Ours to the best rival's wherever both were measured, with a cell that says where."""
    work_out = ratio_by_round if by_round else ratio_of_medians
    for together in grouped(cells).values():
        found = work_out(together, rivals, measure)
        if found is not None:
            yield together[0], found


def growth(
    cells: Iterable[Cell], title: str, server: str, *, by_round: bool = False
) -> float | None:
    """CPU at the last size to that at the first; sizes are in ascending order.

    It is that of medians, or the median of what each round gives, which goes over all sizes.
    """
    sizes = [
        cell.samples
        for cell in cells
        if cell.title == title and cell.server == server and cell.samples
    ]
    if len(sizes) < 2:
        return None
    first, last = sizes[0], sizes[-1]
    pairs = zip(first, last, strict=False) if by_round else [(middle(first), middle(last))]
    grown = [most.cpu_us / fewest.cpu_us for fewest, most in pairs if fewest.cpu_us]
    return median(grown) if grown else None


def title_of(cell: Cell) -> str:
    """The workload, with its unit where that is not plain commands."""
    return cell.title if cell.unit == "commands" else f"{cell.title} ({cell.unit})"


def title_and_variant(cell: Cell) -> str:
    """The workload and how it was sent."""
    return f"{title_of(cell)}, {cell.variant.rpartition(FAN_OUT + ', ')[2]}"


def policy_and_shape(cell: Cell) -> tuple[str, str]:
    """Return how the AOF was synced, ``off`` without one, and the rest of the variant."""
    if not cell.variant.startswith(AOF):
        return NO_FILE, cell.variant
    policy, _, shape = cell.variant.removeprefix(AOF).partition(", ")
    return policy, shape


class ByPolicy(NamedTuple):
    """Ratios of throughput with and without an append-only file; fan-outs are left out."""

    shapes: list[str]
    policies: list[str]
    rows: dict[str, dict[tuple[str, str], float]]  # of each workload, by shape and policy


def throughput_by_policy(results: Results) -> ByPolicy:
    """Ours to the best rival's, of each workload in each shape under each fsync policy."""
    rows: dict[str, dict[tuple[str, str], float]] = {}
    cells = [cell for cell in results.cells if cell.part in BY_POLICY]
    for cell, found in compared(cells, results.rivals, THROUGHPUT):
        policy, shape = policy_and_shape(cell)
        if not shape.startswith(FAN_OUT):
            rows.setdefault(cell.title, {})[shape, policy] = found
    places = [place for row in rows.values() for place in row]
    shapes = in_order(shape for shape, _ in places)
    policies = in_order(policy for _, policy in places)
    return ByPolicy(shapes, policies, rows)
