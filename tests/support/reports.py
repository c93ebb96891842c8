"""For tests of the benchmark: samples that nobody measured, and the tables of a report."""

from __future__ import annotations

from bench.results import Sample


def sample(per_s: float = 1000.0, cpu_us: float = 1.0, **others: float) -> Sample:
    values = {
        "p50_us": 100.0, "p99_us": 200.0, "p999_us": 300.0, "max_us": 400.0,
        "server_busy": 1.0, "load_busy": 0.5,
    }  # fmt: skip
    return Sample(per_s=per_s, user_us=cpu_us, system_us=0.0, **{**values, **others})


def rows(text: str) -> list[list[str]]:
    """The words of each row of the tables in a report."""
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[word.strip() for word in line] for line in lines]
