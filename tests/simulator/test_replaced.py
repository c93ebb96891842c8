"""A copy replaces what a region's files hold, and the ledger knows what the region knows then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulator.scenarios import Scenario, run
from simulator.stage import Stage, staged


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged(Scenario("replaced", "", 3, "strict", "")) as stage:
        yield stage


def play(stage: Stage, steps: str) -> None:
    run(Scenario("", "", 3, "strict", steps), stage)


@pytest.mark.parametrize("crash", [True, False])
def test_records_follow_those_of_the_copy(stage: Stage, crash: bool) -> None:
    """Before the copy comes, region 1 gets a record of region 3, so it keeps the file with that."""
    one = stage.regions[1]
    play(
        stage,
        """
        1> XADD x 100 f v => 100-1
        sync
        keep 1 old
        3> XADD x 150 f v => 150-3
        sync
        cut
        stop 1
        restore 1 old
        2> XADD x 200 f v => 200-2
        fill 2
        start 1
        heal
        cut 1 2
        cut 2 3
        resume
        until 1> XRANGE x - + => ids 100-1 150-3
        heal
        cut 2 3
        until 1> XLEN other => 2000
        """,
    )
    assert one.known == one.regions.region.known()
    assert one.known[b"2.0"] > 2000
    if crash:
        stage.network.ended(1)
        one.kill()
        stage.start(1)
        assert one.known == one.regions.region.known()
    play(
        stage,
        """
        resume
        2> XADD x 300 f v => 300-2
        until 1> XRANGE x - + => ids 100-1 150-3 200-2 300-2
        heal
        settle 1
        1> XADD x 400 f v => $last
        sync
        all> XRANGE x - + => ids 100-1 150-3 200-2 300-2 $last
        """,
    )
    for region in stage.regions.values():
        region.check_counts()


def forget_all(stage: Stage) -> None:
    """Let time go by until nothing is left of what was removed."""
    for _ in range(100):
        stage.elapse(1000)
        left = {number: region.garbage() for number, region in stage.regions.items()}
        if not any(left.values()):
            return
    raise AssertionError(f"they still remember {left}")


def test_what_a_copy_remembers_is_forgotten_in_the_end(stage: Stage) -> None:
    """Who has a deletion from a copy alone says that it has it, and so all may forget it."""
    play(
        stage,
        """
        1> XADD x 100 f v => 100-1
        1> XADD y 100 f v => 100-1
        sync
        1> DEL y => 1
        sync
        heal
        resume
        """,
    )
    forget_all(stage)
    play(
        stage,
        """
        cut
        2> DEL x => 1
        fill 2
        heal
        resume
        until 1> XLEN other => 2000
        until 1> EXISTS x => 0
        """,
    )
    forget_all(stage)
