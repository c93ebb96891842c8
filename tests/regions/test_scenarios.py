"""The founding document's tables, and more of that kind, with processes over redis-py."""

from __future__ import annotations

import pytest

from simulator.scenarios import SCENARIOS
from support import clock
from support.scenes import play

NEEDS_CLOCK = frozenset(("clock", "pass"))


def is_played(name: str) -> bool:
    """Stable IDs rise by beats, which take their time: see test_strangers.py.

    Where only some regions are cut from each other, or a disk is full, the simulator plays it
    alone.
    """
    lines = SCENARIOS[name].steps.splitlines()
    return name != "S21" and not any(line.strip().startswith(("cut ", "full ")) for line in lines)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if is_played(name)])
def test_scenario(name: str) -> None:
    scenario = SCENARIOS[name]
    words = {line.partition(" ")[0] for line in scenario.steps.splitlines()}
    if words & NEEDS_CLOCK and not clock.can_be_set():
        pytest.skip("needs a settable clock")
    play(scenario, "--notify-keyspace-events", "KEA")
