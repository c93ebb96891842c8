"""What is kept of clients that wait, and the cron, by themselves."""

from __future__ import annotations

import asyncio
import gc

import server.commands.families  # noqa: F401  (importing it fills the command table)
from server.blocking import Waiter
from server.call import Parked
from server.config.config import Config
from server.cron import Cron
from server.execute import execute
from server.registry import TABLE
from server.serving import serve_ready
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


def run_all(server: Server, session: Session, *lines: str) -> None:
    for line in lines:
        server.refresh_clock()
        session.out.clear()
        assert execute(server, session, [line.encode().split()]) == 1
        assert not b"".join(session.out).startswith(b"-"), (line, session.out)


def test_where_nothing_is_pending_nobody_looks_what_can_be_claimed() -> None:
    """Readers that claim at once would else be looked at without end."""
    server = Server(Config())
    actor, reader = (Session(number, server.dbs[0], 0, NOBODY) for number in (1, 2))
    run_all(server, actor, "XADD s 1-0 f v", "XGROUP CREATE s g $")
    run_all(server, reader, "XREADGROUP GROUP g a BLOCK 0 CLAIM 50 STREAMS s >")
    assert server.blocking.client_count == 1
    assert server.blocking.next_alarm_ms() == 0
    started_ms = server.refresh_clock()
    run_all(server, actor, "XCLAIM s g dead 0 1-0 FORCE")
    assert started_ms + 50 <= server.blocking.next_alarm_ms() <= server.refresh_clock() + 50
    run_all(server, actor, "XACK s g 1-0")
    server.blocking.ring(server.blocking.next_alarm_ms())
    serve_ready(server)
    assert server.blocking.next_alarm_ms() == 0
    assert server.blocking.client_count == 1
    run_all(server, actor, "MULTI", "XADD s 2-0 f v", "XREADGROUP GROUP g b STREAMS s >", "EXEC")
    assert server.blocking.client_count == 1
    assert server.blocking.next_alarm_ms() > started_ms


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
        # What is no session makes each round of the cron fail, which no correct type would.
        server.sessions[1] = "no session"  # type: ignore[assignment]
        cron = Cron(server)
        cron.start()
        await asyncio.wait_for(failed_twice.wait(), 10)
        cron.stop()

    asyncio.run(run())
    assert len(troubles) >= 2
