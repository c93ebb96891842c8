"""Looking for the next request without going to sleep: when, for how long, and when not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from conftest import Factory

from server.busy_poll import MOST_PASSED, BusyPoll
from server.config.config import Config
from support.process import Process

WINDOW_US = 500


def poll_of(window_us: int = WINDOW_US) -> BusyPoll:
    config = Config()
    config.busy_poll_us = window_us
    return BusyPoll(config)


async def turns_until_rest(poll: BusyPoll) -> int:
    """Wait until it looks no more; in how many turns of the loop that was."""
    turns = 0
    while poll.polling:
        turns += 1
        await asyncio.sleep(0)
    return turns


async def look_in_vain(poll: BusyPoll) -> int:
    """Answer until the loop looks, and let that be in vain; how many answers passed before."""
    passed = 0
    poll.answered()
    while not poll.polling:
        passed += 1
        poll.answered()
    await turns_until_rest(poll)
    return passed


async def test_the_loop_does_not_sleep_while_it_looks() -> None:
    poll = poll_of(20_000)
    started_s = time.perf_counter()
    poll.answered()
    waiting = asyncio.ensure_future(asyncio.sleep(10))
    assert await turns_until_rest(poll) > 10
    waiting.cancel()
    assert time.perf_counter() - started_s >= 0.02


async def test_what_is_in_vain_is_done_ever_less() -> None:
    poll = poll_of()
    passed = [await look_in_vain(poll) for _ in range(13)]
    assert passed == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, MOST_PASSED, MOST_PASSED]


async def test_a_request_in_time_is_hoped_for_again() -> None:
    poll = poll_of()
    for _ in range(6):
        await look_in_vain(poll)
    while not poll.polling:
        poll.answered()
    poll.answered()  # the next request came while it looked
    await turns_until_rest(poll)
    assert await look_in_vain(poll) == 1


async def test_no_time_is_no_look() -> None:
    poll = poll_of(0)
    poll.answered()
    assert not poll.polling
    poll._config.busy_poll_us = WINDOW_US
    poll.answered()
    assert poll.polling


# A server


LONG_US = 200_000
MUCH_S = 0.02  # of processor time; at rest it takes a tenth of that


def spent_s(server: Process, work: Callable[[], object]) -> float:
    """What a server that looks for long spends while something is asked of it, and afterwards."""
    before_s = server.cpu_s()
    work()
    time.sleep(LONG_US / 1e6)
    return server.cpu_s() - before_s


def test_a_lone_client_is_looked_for(fresh_server: Factory) -> None:
    server = fresh_server("--busy-poll-us", str(LONG_US))
    with server.client() as one, server.client() as two:
        # Several that take turns, and one that sends pipelines, need not be waited for.
        assert (
            spent_s(server, lambda: [one.call("PING") + two.call("PING") for _ in "abc"]) < MUCH_S
        )
        assert spent_s(server, lambda: [two.pipeline(("PING",), ("PING",)) for _ in "abc"]) < MUCH_S
        assert spent_s(server, lambda: [two.call("PING") for _ in "abc"]) > MUCH_S


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_so_is_one_whose_answer_waits_for_the_disk(fresh_server: Factory, policy: str) -> None:
    options = ("--busy-poll-us", str(LONG_US), "--appendonly", "yes", "--appendfsync", policy)
    server = fresh_server(*options)
    with server.client() as lone:
        assert spent_s(server, lambda: [lone.call("INCR", "n") for _ in "abc"]) > MUCH_S
