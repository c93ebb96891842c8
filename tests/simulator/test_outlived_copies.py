"""A copy is on its way, or being loaded, when it becomes known that its region takes part no more.

Others count on it that nothing is learned from there any more.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator

import pytest

from headrace.server.gate import HALF_JOINED
from simulator.region import Region
from simulator.scenarios import Scenario, run
from simulator.stage import Stage, staged

SLOW_MS = (4000, 4000)  # an answer takes so long
STEP_MS = 10
MOST_STEPS = 3000
STEP_NS = 500  # for one thing to be done, or a few


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged(Scenario("outlived", "", 3, "strict", "")) as stage:
        yield stage


def play(stage: Stage, steps: str) -> None:
    run(Scenario("", "", 3, "strict", steps), stage)


def need_copy(stage: Stage) -> Region:
    """Region 1 needs a copy of region 2, which alone has a second entry of ``x``."""
    play(
        stage,
        """
        1> XADD x * f first => $first
        sync
        cut
        2> XADD x * f late => $late
        fill 2
        heal
        cut 2 3
        resume
        """,
    )
    return stage.regions[1]


def is_copying(one: Region) -> bool:
    """Return whether a copy is on its way to a region."""
    file = one.regions.full_copy._file
    return file is not None and file.connection is not None and file.connection.is_up


def is_loading(one: Region) -> bool:
    """Return whether a copy is there, and none of its keys have been joined."""
    joins = one.regions.full_copy.join is not None
    return joins and not one.server.gate.reasons & HALF_JOINED


def check_left_alone(one: Region, before: int) -> None:
    """Region 1 has taken no more of region 2 than it had."""
    assert one.regions.full_copy.peer is None
    assert one.regions.region.number_of(b"2.0") == before
    assert not one.obstacle()
    one.check_counts()


def test_nothing_comes_below_what_is_stable(stage: Stage) -> None:
    """Region 3 forgets region 2 while its copy is on the way to region 1."""
    stage.network.delays_ms[1, 2] = ((1, 1), SLOW_MS)
    one = need_copy(stage)
    for _ in range(MOST_STEPS):
        stage.elapse(STEP_MS)
        if is_copying(one):
            break
    assert is_copying(one)
    before = one.regions.region.number_of(b"2.0")
    play(
        stage,
        """
        3> AA FORGET 2 => OK
        1> XADD x * f new => $new
        until 1> XINFO STREAM x => field stable-id from $new
        1> XRANGE x - + => texts first new
        pass 20000
        1> XRANGE x - + => texts first new
        """,
    )
    check_left_alone(one, before)


def test_a_copy_that_is_being_loaded_is_given_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator of region 1 forgets region 2, whose copy is there."""
    ticks = itertools.count(0, STEP_NS - 1)
    join = importlib.import_module("headrace.regions.exchange.copy_join")
    monkeypatch.setattr(join, "perf_counter_ns", lambda: next(ticks))
    one = stage.regions[1]
    one.apply = lambda: None  # type: ignore[method-assign]  # from here on this test does that
    need_copy(stage)
    for _ in range(MOST_STEPS):
        stage.elapse(STEP_MS)
        if is_loading(one):
            break
    with one.entered():
        one.regions.full_copy.step(STEP_NS)
    assert is_loading(one)
    before = one.regions.region.number_of(b"2.0")
    assert one.received([b"2.0"])[b"2.0"] > before
    play(stage, "1> AA FORGET 2 => OK")
    assert one.received([b"2.0"])[b"2.0"] == before
    del one.apply
    with one.entered():
        one.loop.call_soon(one.apply)
    play(stage, "pass 20000")
    play(stage, "1> XRANGE x - + => texts first")
    check_left_alone(one, before)
