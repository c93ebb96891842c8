"""Regions by chance: many worlds, and that a seed is always the same world."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.tombstones import collect
from headrace.storage.stream.appending import NodeLimits
from simulator.attempts import attempt, command_of, shrink
from simulator.ledger import Record
from simulator.resp import read_replies
from simulator.scenarios import SCENARIOS, Scenario
from simulator.stage import play, staged
from simulator.states import outlived
from simulator.world import Plan, Tally, World
from support import judges

pytestmark = pytest.mark.once

SECONDS = float(os.environ.get("HEADRACE_SIMULATOR_SECONDS", "60"))
REGIONS = (2, 3, 5)
STEPS = 120
_NODES = NodeLimits(4096, 100)
# However fast the machine is; `make simulate` goes on from there.
MOST_SEEDS = 300 if judges.everything() else 90


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_scenario(name: str) -> None:
    play(SCENARIOS[name])


def _records(plan: Plan, root: Path) -> list[Record]:
    world = World(plan, root)
    world.run()
    return [record for records in world.ledger.records.values() for record in records]


def test_a_seed_is_always_the_same_world(tmp_path: Path) -> None:
    plan = Plan(7, 3, 60)
    assert _records(plan, tmp_path / "one") == _records(plan, tmp_path / "another")


@pytest.mark.parametrize("ahead_ms", [60_000, 0, -60_000])
def test_a_lag_is_that_of_one_clock(ahead_ms: int) -> None:
    with staged(Scenario("lag", "", 2, "strict", "")) as stage:
        two = stage.regions[2]
        stage.set_clock(1, stage.time.now_ms + ahead_ms)
        stage.resume()
        stage.elapse(3000)
        peer = two.regions.peers[1]
        assert two.regions.lag_ms(peer) == 0
        assert abs(peer.statistics.clock_ahead_ms - ahead_ms) < 100
        stage.call(2, "client", b"CLIENT PAUSE 60000 WRITE".split())
        stage.call(1, "client", b"XADD x * f v".split())
        stage.elapse(2000)
        assert 1500 < two.regions.lag_ms(peer) < 2500


def test_what_is_left_out_changes_nothing_else(tmp_path: Path) -> None:
    plan = Plan(8, 2, 40, without=frozenset(("kill", "stop", "power", "lose", "restore")))
    shorter = Plan(8, 2, 40, frozenset(range(20, 50)), plan.without)
    longer = [record.words for record in _records(plan, tmp_path / "one")]
    for record in _records(shorter, tmp_path / "another"):
        if record.words[0] == b"XADD" and b"IDMP" not in record.words:
            assert any(words[-2:] == record.words[-2:] for words in longer)


def test_replies_may_hold_ends_of_lines() -> None:
    data = b"*2\r\n$5\r\na\r\n\r\n\r\n$0\r\n\r\n$4\r\n\r\n\r\n\r\n:7\r\n$-1\r\n"
    assert read_replies(data) == [[b"a\r\n\r\n", b""], b"\r\n\r\n", 7, None]


def test_a_lane_that_waits_for_what_is_lost_is_no_garbage() -> None:
    """Its region lost an entry; who had it has trimmed it, and its disk is lost as well."""
    stream = RegionalStream(Region(1), 100, 100)
    for origin in (b"5.0", b"5.7"):
        words = [b"f", b"v"]
        assert stream.arrive(origin, 1, False, 100, int(origin[-1:]), words, 0, _NODES)
    stream.trim_to({b"5.0.1": (100, 0)})
    assert outlived(stream) == [b"5.0.1"]
    stream.trim_to({b"5.0.1": (200, 5)})
    stream.end_lanes({b"5.0.1": (100, 0)})
    assert outlived(stream) == []
    collect(stream, {b"5.0": 9, b"5.7": 9})
    assert not stream.arrive(b"5.0", 0, False, 200, 5, [b"f", b"v"], 0, _NODES)


@pytest.mark.parametrize(
    ("seed", "regions"),
    [
        (500586, 2),  # who had come back was no member after a kill, so a removal was forgotten
        (501010, 3),  # a copy was given from a base older than what had been joined, without end
        (501344, 5),  # a barrier was level while a copy was joined
        (501005, 5),  # a lag was that of records which a peer passed on
        (503345, 5),  # what a copy had brought was stable already, and was never forgotten
        (609676, 3),  # acknowledgements for a create that never came outlived their lanes
        (611970, 2),  # a lane was to end when nothing could be written, and never after
        (613968, 2),  # the last entry of a lane came already removed, so it never ended
        (943447, 3),  # a lane was forgotten while a copy of its stream was half joined
        (962531, 5),  # a removal waited for an entry whose lane a copy's maker had forgotten
    ],
)
def test_worlds_that_have_shown_a_fault(seed: int, regions: int) -> None:
    found = attempt(Plan(seed, regions, 240))
    assert found is None, str(found)


@pytest.mark.slow
def test_worlds_by_chance() -> None:
    until_s = time.monotonic() + SECONDS
    tally = Tally()
    seed = 0
    while (time.monotonic() < until_s and seed < MOST_SEEDS) or seed < len(REGIONS):
        seed += 1
        failure = attempt(Plan(seed, REGIONS[seed % len(REGIONS)], STEPS), tally)
        if failure is not None:
            short = shrink(failure, SECONDS)
            pytest.fail(f"{short.text}\n{command_of(short.plan)}")
    assert tally.operations > 0
    assert tally.records > 0
