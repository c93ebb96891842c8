"""What is kept of clients that wait, and the cron, by themselves."""

from __future__ import annotations

import asyncio
import gc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import MsgspecError

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.server.clients.session import NOBODY, Session
from headrace.server.commands.streams.reading import MANY_IDS, EntryAfter, Readers
from headrace.server.config.config import Config
from headrace.server.cron import Cron
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.execute import execute
from headrace.server.dispatch.serving import serve_ready
from headrace.server.durability.durability import Durability
from headrace.server.state import Server
from headrace.server.waiting import SPARE_TICKETS, Arrivals, Parked, Queue, Waiter
from headrace.storage.stream.stream import Stream
from support.waiting import DEADLINE_S


def test_deadlines_of_those_who_were_served_are_forgotten() -> None:
    """A client that reads with a long timeout, again and again, leaves nothing behind."""
    server = Server(Config())
    session = Session(1, server.data.dbs[0], 0, NOBODY)
    other = Session(2, server.data.dbs[0], 0, NOBODY)
    wanted = EntryAfter([(0, 0)])
    server.blocking.park(other, 0, Parked([b"s"], 5000, [b"XREAD"], None, wanted))
    for number in range(10_000):
        parked = Parked([b"s"], 1_000_000 + number, [b"XREAD"], None, wanted)
        server.blocking.park(session, 0, parked)
        server.blocking.unpark(session)
    assert sum(isinstance(each, Waiter) for each in gc.get_objects()) < 100
    assert server.blocking.next_deadline_ms() == 5000
    assert [waiter.client for waiter in server.blocking.due(5000)] == [other]


_SERVER = Server(Config())


def waiter(ticket: int, after: tuple[int, int] = (0, 0)) -> Waiter:
    parked = Parked([b"s"], 0, [b"XREAD"], None, EntryAfter([after]))
    session = Session(ticket, _SERVER.data.dbs[0], 0, NOBODY)
    return Waiter(session, 0, parked, ticket)


@given(st.lists(st.booleans() | st.integers(0, 400), max_size=600))
@example([True] * 300 + [False] * 299 + [True] * 200 + [False] * 200)
def test_arrivals_tell_who_came_first_whoever_left(steps: list[bool | int]) -> None:
    """True comes, False is the first that leaves, a number one that leaves out of turn."""
    line = Arrivals()
    model: list[Waiter] = []
    for ticket, step in enumerate(steps):
        if step is True:
            model.append(waiter(ticket))
            line.add(model[-1])
            line.add(model[-1])  # for a key that it names twice
        elif model:
            gone = model.pop(0 if step is False else step % len(model))
            assert line.remove(gone)
            assert not line.remove(gone)
        assert line.first() is (model[0] if model else None)
        assert list(line.waiters.values()) == model


def test_arrivals_do_not_grow_with_those_who_come_and_leave() -> None:
    line = Arrivals()
    stays = waiter(0)
    line.add(stays)
    for ticket in range(1, 10_000):
        passes = waiter(ticket)
        line.add(passes)
        line.remove(passes)
    assert len(line._tickets) <= 2 * 2 + SPARE_TICKETS
    assert line.first() is stays


IDS = st.tuples(st.integers(0, 2), st.integers(0, MANY_IDS))


@given(st.lists(st.tuples(IDS, st.integers(0, 3), IDS), max_size=150))
@example([((0, number), number < 2 * MANY_IDS, (0, 7)) for number in range(4 * MANY_IDS)])
def test_readers_are_woken_whose_id_was_passed(
    steps: list[tuple[tuple[int, int], int, tuple[int, int]]],
) -> None:
    """Of each step the second says whether somebody comes or leaves."""
    readers = Readers(Queue(0, b"s"), EntryAfter([]))
    stream = Stream(100, 100)
    model: list[tuple[Waiter, tuple[int, int]]] = []
    for ticket, (after, what, last_id) in enumerate(steps):
        if what:
            model.append((waiter(ticket, after), after))
            readers.add(model[-1][0], 0)
        elif model:
            gone = model.pop(after[1] % len(model))
            readers.remove(gone[0], 0)
            readers.remove(gone[0], 0)  # for a key that it names twice
        stream.last_ms, stream.last_seq = last_id
        assert readers.is_empty() == (not model)
        assert readers.candidates(stream) == [each for each, after in model if after < last_id]
        assert readers.candidates(None) == readers.candidates(b"a string") == []


def run_all(dispatcher: Dispatcher, session: Session, *lines: str) -> None:
    for line in lines:
        dispatcher.server.clock.refresh()
        session.out.clear()
        assert execute(dispatcher, session, [line.encode().split()], 0, 1) == 1
        assert not b"".join(session.out).startswith(b"-"), (line, session.out)


def test_where_nothing_is_pending_nobody_looks_what_can_be_claimed() -> None:
    """Readers that claim at once would else be looked at without end."""
    server = Server(Config())
    dispatcher = Dispatcher(server, Durability(server))
    actor, reader = (Session(number, server.data.dbs[0], 0, NOBODY) for number in (1, 2))
    run_all(dispatcher, actor, "XADD s 1-0 f v", "XGROUP CREATE s g $")
    run_all(dispatcher, reader, "XREADGROUP GROUP g a BLOCK 0 CLAIM 50 STREAMS s >")
    assert server.blocking.client_count == 1
    assert server.blocking.next_alarm_ms() == 0
    started_ms = server.clock.refresh()
    run_all(dispatcher, actor, "XCLAIM s g dead 0 1-0 FORCE")
    assert started_ms + 50 <= server.blocking.next_alarm_ms() <= server.clock.refresh() + 50
    run_all(dispatcher, actor, "XACK s g 1-0")
    server.blocking.ring(server.blocking.next_alarm_ms())
    serve_ready(dispatcher)
    assert server.blocking.next_alarm_ms() == 0
    assert server.blocking.client_count == 1
    run_all(
        dispatcher, actor, "MULTI", "XADD s 2-0 f v", "XREADGROUP GROUP g b STREAMS s >", "EXEC"
    )
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
        server.clients.sessions[1] = "no session"  # type: ignore[assignment]
        cron = Cron(Dispatcher(server, Durability(server)))
        cron.start()
        await asyncio.wait_for(failed_twice.wait(), DEADLINE_S)
        cron.stop()

    asyncio.run(run())
    assert len(troubles) >= 2


def test_one_that_cannot_be_served_keeps_nobody_else_waiting() -> None:
    """A block that cannot be decoded, as a file that is taken as it is may hold one."""
    server = Server(Config())
    dispatcher = Dispatcher(server, Durability(server))
    actor, claimer, reader = (
        Session(number, server.data.dbs[0], 0, NOBODY) for number in (1, 2, 3)
    )
    run_all(
        dispatcher, actor, *(f"XADD bad {number}-0 f {number * number}" for number in range(1, 151))
    )
    run_all(dispatcher, actor, "XGROUP CREATE bad g 0", "XGROUP CREATE good g 0 MKSTREAM")
    run_all(dispatcher, actor, "XREADGROUP GROUP g a STREAMS bad >")
    run_all(dispatcher, claimer, "XREADGROUP GROUP g b BLOCK 0 CLAIM 9000000 STREAMS bad >")
    run_all(dispatcher, reader, "XREADGROUP GROUP g c BLOCK 0 STREAMS good >")
    stream = server.data.dbs[0].get(b"bad", 0)
    assert isinstance(stream, Stream)
    block = stream.index.blocks[0]
    block.payload = block.payload[: block.ids_bytes] + b"\xc1" * 20
    block.run = None
    run_all(dispatcher, actor, "MULTI", "XCLAIM bad g a 0 150-0", "XADD good 1-0 f v")
    with pytest.raises((IndexError, MsgspecError)):
        run_all(dispatcher, actor, "EXEC")
    assert server.blocking.client_count == 2
    run_all(dispatcher, actor, "PING")
    assert server.blocking.client_count == 1
    assert b"$3\r\n1-0\r\n" in b"".join(reader.out)
    assert server.blocking.ready == []
    assert claimer.waiter is not None
