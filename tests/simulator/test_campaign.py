"""Many worlds: several processes count as one does, and a signal ends them in order."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

from simulator.campaign import CHUNK, Campaign
from simulator.world import Plan

STEPS = 5


def _plans(count: int) -> Iterator[Plan]:
    for seed in range(1, count + 1):
        yield Plan(seed, 2, STEPS)


def _campaign(jobs: int) -> Campaign:
    return Campaign(jobs, 0, 1, False)


def test_processes_count_together() -> None:
    alone, together = _campaign(1), _campaign(2)
    for campaign in (alone, together):
        campaign.run(_plans(2 * CHUNK + 1))
        assert not campaign.failures
        assert campaign.seeds == 2 * CHUNK + 1
    assert alone.tally == together.tally
    assert f"{alone.tally.operations:,} operations" in alone.text()


def test_a_signal_ends_it_with_what_is_at_hand() -> None:
    def plans() -> Iterator[Plan]:
        yield from _plans(CHUNK - 1)
        os.kill(os.getpid(), signal.SIGTERM)
        yield from _plans(5 * CHUNK)

    before = signal.getsignal(signal.SIGTERM)
    campaign = _campaign(1)
    campaign.run(plans())
    assert campaign.stopped
    assert campaign.seeds == CHUNK
    assert "stopped" in campaign.text()
    assert signal.getsignal(signal.SIGTERM) is before
