"""What is kept of clients that wait, and the cron, by themselves."""

from __future__ import annotations

import asyncio
import gc

import server.commands.families  # noqa: F401  (importing it fills the command table)
from server.blocking import Waiter
from server.call import Parked
from server.config.config import Config
from server.cron import Cron
from server.registry import TABLE
from server.session import NOBODY, Session
from server.state import Server


def test_deadlines_of_those_who_were_served_are_forgotten() -> None:
    """A client that reads with a long timeout, again and again, leaves nothing behind."""
    server = Server(Config())
    session = Session(1, server.dbs[0], 0, NOBODY)
    other = Session(2, server.dbs[0], 0, NOBODY)
    row = TABLE[b"xread"]
    server.blocking.park(other, row, Parked([b"s"], 5000, [b"XREAD"], None, [(0, 0)]))
    for number in range(10_000):
        parked = Parked([b"s"], 1_000_000 + number, [b"XREAD"], None, [(0, 0)])
        server.blocking.park(session, row, parked)
        server.blocking.unpark(session)
    assert sum(isinstance(each, Waiter) for each in gc.get_objects()) < 100
    assert server.blocking.next_deadline_ms() == 5000
    assert [waiter.session for waiter in server.blocking.due(5000)] == [other]


def test_a_tick_that_fails_is_not_the_last() -> None:
    troubles: list[object] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        failed_twice = asyncio.Event()

        def note(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
            troubles.append(context["exception"])
            if len(troubles) == 2:
                failed_twice.set()

        loop.set_exception_handler(note)
        server = Server(Config())
        server.config.hz = 500
        server.sessions[1] = "no session"  # type: ignore[assignment]
        cron = Cron(server)
        cron.start()
        await asyncio.wait_for(failed_twice.wait(), 10)
        cron.stop()

    asyncio.run(run())
    assert len(troubles) >= 2
