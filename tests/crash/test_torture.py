"""Every command that writes, ended in every way, beside a twin that never ends.

``make torture`` is the long form; ``support.torture`` says how it is done.
"""

from __future__ import annotations

import pytest

from support import clock
from support.torture.campaign import Campaign
from support.torture.state import differences, state

needs_clock = pytest.mark.skipif(not clock.can_be_set(), reason="needs a settable clock")


@needs_clock
@pytest.mark.parametrize("number", range(2))
def test_kills_power_cuts_and_signals_lose_nothing(number: int) -> None:
    with Campaign(1, number, with_aof=True) as campaign:
        campaign.run()
        assert campaign.commands > 100
        campaign.server.kill()
        campaign.server.check_log()


@needs_clock
def test_the_last_snapshot_holds_all_that_was_acknowledged() -> None:
    with Campaign(1, 2, with_aof=False) as campaign:
        campaign.run()
        assert campaign.commands > 100


@needs_clock
def test_what_is_missing_shows() -> None:
    """The comparison itself: one entry less is a difference."""
    with Campaign(1, 3, with_aof=True) as campaign:
        campaign.run(1)
        with campaign.server.client() as client:
            client.call("XADD", "more", "1-1", "f", "v")
            before = state(client)
            client.call("XADD", "more", "1-2", "f", "v")
            assert "(0, b'more')" in differences(state(client), before)
            assert not differences(before, before)
