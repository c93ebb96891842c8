"""Looking for the next request without going to sleep: when, for how long, and when not."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from headrace.server.app import App
from headrace.server.config.config import Config
from headrace.server.loading.starting import start_persistence
from headrace.server.net.past_loop import MOST_PASSED, BusyPoll
from support.client import encode

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
    poll = poll_of(200_000)
    started_s = time.perf_counter()
    poll.answered()
    waiting = asyncio.ensure_future(asyncio.sleep(10))
    assert await turns_until_rest(poll) > 10
    waiting.cancel()
    assert time.perf_counter() - started_s >= 0.2


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


# Connections


class Client:
    """A connection to a server in this process, which so can be looked at between two answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, *requests: bytes) -> None:
        """Send requests at once, and wait for as many lines of an answer."""
        self._writer.write(b"".join(encode(*request.split()) for request in requests))
        for _ in requests:
            assert (await self._reader.readline())[:1] in b"+:*"


Connect = Callable[[], Awaitable[Client]]


@contextlib.asynccontextmanager
async def serving(config: Config, folder: Path) -> AsyncIterator[tuple[BusyPoll, Connect]]:
    config.dir = bytes(folder)
    app = App(config)
    await start_persistence(app.server, app.durability)
    listener = await asyncio.get_running_loop().create_server(app._connect, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    writers = []

    async def connect() -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        return Client(reader, writer)

    try:
        yield app._busy_poll, connect
    finally:
        for writer in writers:
            writer.close()
            await writer.wait_closed()
        listener.close()
        app.durability.committer.close()
        app.durability.files.worker.close()


async def test_who_is_alone_and_waits_for_each_answer_is_looked_for(tmp_path: Path) -> None:
    config = Config()
    async with serving(config, tmp_path) as (poll, connect):
        one, two = await connect(), await connect()
        config.busy_poll_us = 1_000_000
        for _ in range(3):
            await one.ask(b"PING")
            await two.ask(b"PING")
        assert not poll.polling
        await two.ask(b"PING", b"PING")
        assert not poll.polling
        await two.ask(b"PING")
        assert poll.polling


TRANSACTION = (b"MULTI", b"PING", b"exec")


@pytest.mark.parametrize(
    ("requests", "looked_for"),
    [
        (TRANSACTION, True),
        ((b"MULTI", b"EXEC", b"PING"), False),
        ((*TRANSACTION, *TRANSACTION), False),
        ((b"PING", *TRANSACTION), False),
        ((b"MULTI", b"PING"), False),
    ],
)
async def test_a_transaction_is_one_question(
    tmp_path: Path, requests: tuple[bytes, ...], looked_for: bool
) -> None:
    config = Config()
    async with serving(config, tmp_path) as (poll, connect):
        lone = await connect()
        await lone.ask(b"PING")
        config.busy_poll_us = 1_000_000
        await lone.ask(*requests)
        assert poll.polling == looked_for


@pytest.mark.parametrize("policy", [b"always", b"everysec", b"no"])
async def test_so_is_one_whose_answer_waits_for_the_disk(tmp_path: Path, policy: bytes) -> None:
    config = Config()
    config.appendonly = True
    config.appendfsync = policy
    async with serving(config, tmp_path) as (poll, connect):
        lone = await connect()
        config.busy_poll_us = 1_000_000
        await lone.ask(b"INCR n")
        assert not poll.polling
        await lone.ask(b"INCR n")
        assert poll.polling
