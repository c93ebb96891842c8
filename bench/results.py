"""What was measured: samples, their medians, and the file that keeps them.

A **sample** is one run of one workload against one server. A **cell** is all samples of one
workload in one variant (clients, depth, policy, size) with one server; it stands in the report with
the median of each of its numbers. A **figure** is a quantity outside of runs: memory, start time,
the longest pause. The report is made of these and of nothing else, so it can be made anew from the
file without measuring.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import median
from typing import Final

FORMAT: Final = 1
SHARE: Final = "%"  # the unit of what is told beside the figures, and not compared


@dataclass(frozen=True)
class Sample:
    """One run."""

    per_s: float  # of the workload's unit: commands, jobs, deliveries
    user_us: float  # CPU of the server per unit, outside of the kernel
    system_us: float  # and inside
    p50_us: float  # from sending a batch to the end of its last reply
    p99_us: float
    p999_us: float
    max_us: float
    server_busy: float  # share of the time that the server computed; 1.0 is one core
    load_busy: float  # the same for the busiest process of the load
    stolen: float = 0.0  # share of the machine's CPU time that its host gave to other machines

    @property
    def cpu_us(self) -> float:
        """CPU of the server per unit."""
        return self.user_us + self.system_us


def middle(samples: Sequence[Sample]) -> Sample:
    """The median of each number by itself; of CPU that of the sum, shared out as in all of them.

    A run is a few ticks of the kernel's clock long, so its own shares are coarse.
    """
    values = {
        part.name: median(getattr(sample, part.name) for sample in samples)
        for part in fields(Sample)
    }
    cpu_us = median(sample.cpu_us for sample in samples)
    all_us = sum(sample.cpu_us for sample in samples)
    user_us = sum(sample.user_us for sample in samples)
    values["user_us"] = cpu_us * (user_us / all_us) if all_us else 0.0
    values["system_us"] = cpu_us - values["user_us"]
    return Sample(**values)


@dataclass
class Cell:
    """One workload, in one variant, with one server."""

    part: str
    workload: str
    title: str
    unit: str
    variant: str
    server: str
    samples: list[Sample] = field(default_factory=list)
    missing: str = ""  # why there are no samples


@dataclass(frozen=True)
class Figure:
    """One quantity of one server."""

    part: str
    title: str
    unit: str
    server: str
    values: tuple[float, ...]
    missing: str = ""


@dataclass
class Results:
    """Everything that a report is made of."""

    facts: dict[str, str] = field(default_factory=dict)  # date, machine, options
    servers: dict[str, str] = field(default_factory=dict)  # name to version, ours first
    rivals: list[str] = field(default_factory=list)  # the servers that ratios are taken to
    cells: list[Cell] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # what came to no end, or not to a good one

    def parts(self) -> list[str]:
        """The parts that were measured, in order."""
        named = [cell.part for cell in self.cells] + [figure.part for figure in self.figures]
        return list(dict.fromkeys(named))

    def save(self, path: Path) -> None:
        """Write all of it, so that an end at any moment leaves a whole file."""
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n")
        beside.replace(path)


def load(path: Path) -> Results:
    """Read what ``Results.save`` wrote.

    Raises: ValueError for a file of another kind.
    """
    data = json.loads(path.read_text())
    if data.pop("format", None) != FORMAT:
        raise ValueError(f"{path} holds no results of this version")
    cells = [
        Cell(**{**cell, "samples": [Sample(**sample) for sample in cell["samples"]]})
        for cell in data.pop("cells")
    ]
    figures = [
        Figure(**{**figure, "values": tuple(figure["values"])}) for figure in data.pop("figures")
    ]
    return Results(cells=cells, figures=figures, **data)


def percentile(ordered: Sequence[int], share: float) -> int:
    """The smallest value that at least ``share`` of all do not exceed (nearest rank).

    Args:
        ordered: values in ascending order, at least one.
        share: 0.5 for the median, 1.0 for the greatest.
    """
    # In whole thousandths: 0.99 * 100 is 99.00000000000001 in floating point, and one rank too far.
    thousandths = round(share * 1000)
    rank = -(-thousandths * len(ordered) // 1000)
    return ordered[max(rank, 1) - 1]
