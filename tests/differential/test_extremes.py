"""Extreme numbers in each numeric place of each command: the replies and effects of Redis."""

from __future__ import annotations

import pytest

from support.fuzz.duel import Duel, script
from support.fuzz.extremes import Extremes

CALLS = 2
WORDS = 16


@pytest.mark.judge
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_extremes(duel: Duel, seed: int) -> None:
    extremes = Extremes(seed, duel.names())
    told = []
    for name in extremes.names:
        steps = extremes.session(name, CALLS, WORDS)
        found = duel.fails(steps)
        if found is None:
            continue
        small = duel.shrunk(steps, found)
        shown = script(duel.judge, small[0]) if small is not None else ""
        told.append(f"{found}\n{shown}")
    assert not told, "\n".join(told)
    duel.check_log()
