"""The arithmetic of the benchmark: percentiles, medians, laps and processes added up."""

from __future__ import annotations

import os
import time
from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import load, measure, peers, results
from bench.clients import Tally
from support.reports import sample

pytestmark = pytest.mark.once


@given(st.lists(st.integers(0, 1000), min_size=1), st.sampled_from([0.5, 0.99, 0.999, 1.0]))
def test_percentile_is_the_least_value_that_covers_the_share(
    values: list[int], share: float
) -> None:
    ordered = sorted(values)
    found = results.percentile(ordered, share)

    def covered(limit: int) -> int:
        return 1000 * sum(value <= limit for value in ordered)

    needed = round(share * 1000) * len(ordered)
    assert found in ordered
    assert covered(found) >= needed
    assert covered(found - 1) < needed


@pytest.mark.parametrize(
    ("count", "share", "rank"), [(100, 0.99, 99), (1000, 0.999, 999), (3, 0.5, 2), (1, 0.5, 1)]
)
def test_percentile_at_whole_ranks(count: int, share: float, rank: int) -> None:
    assert results.percentile(range(1, count + 1), share) == rank


def test_middle_takes_the_median_of_each_number() -> None:
    found = results.middle([sample(1.0, 30.0), sample(2.0, 10.0), sample(9.0, 20.0)])
    assert (found.per_s, found.user_us, found.p50_us) == (2.0, 20.0, 100.0)


def test_the_middle_of_cpu_is_that_of_the_sum() -> None:
    kernel_first, own_first, both = (
        replace(sample(), user_us=user_us, system_us=system_us)
        for user_us, system_us in ((1.0, 9.0), (9.0, 2.0), (6.0, 6.0))
    )
    found = results.middle([kernel_first, own_first, both])
    assert found.cpu_us == pytest.approx(11.0)
    assert found.user_us == pytest.approx(11.0 * 16 / 33)


def test_laps_are_added_up_to_one_sample() -> None:
    laps = [
        load.Outcome(100, 100, 1.0, [1_000, 5_000], 0.25),
        load.Outcome(300, 300, 1.0, [2_000, 4_000], 0.75),
    ]
    used = [peers.CpuTime(0.5, 30, 20), peers.CpuTime(1.5, 120, 30)]
    found = measure.sample_of(laps, used, 0.1)
    assert found.per_s == 200.0
    assert found.cpu_us == pytest.approx(2.0 / 400 * 1e6)
    assert found.user_us == pytest.approx(found.cpu_us * 150 / 200)
    assert (found.p50_us, found.p99_us, found.max_us) == (2.0, 5.0, 5.0)
    assert found.server_busy == pytest.approx(1.0)
    assert found.stolen == pytest.approx(0.05)
    assert found.load_busy == 0.75


def test_processes_are_added_up_from_the_first_start_to_the_last_reply() -> None:
    tallies = [
        Tally(10, 10, 1_000_000_000, 2_000_000_000, array("q", [5, 3]).tobytes(), 0.5),
        Tally(20, 20, 1_500_000_000, 3_000_000_000, array("q", [4]).tobytes(), 1.0),
    ]
    outcome = load.add_up(tallies)
    assert (outcome.units, outcome.elapsed_s, outcome.latencies_ns) == (30, 2.0, [3, 4, 5])
    assert outcome.busiest == 0.5


def test_cpu_time_of_a_process() -> None:
    before = time.process_time()
    found = peers.cpu_time(os.getpid())
    after = time.process_time()
    assert before <= found.total_s <= after
    ticks = (found.user_ticks + found.system_ticks) / peers.TICKS_PER_S
    assert found.total_s == pytest.approx(ticks, abs=0.1)
