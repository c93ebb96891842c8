"""Whatever was done, the append-only file repeats it: random commands, a crash, equal data."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from conftest import Factory

from headrace.protocol.client import request
from support.clock import Clock
from support.contents import contents
from support.process import Process
from support.random_commands import do_things
from support.torture import state as torture_state
from support.torture.work import Work, command_names


@pytest.mark.parametrize("seed", range(4))
def test_the_file_repeats_what_happened(fresh_server: Factory, seed: int) -> None:
    server = fresh_server("--appendonly", "yes", "--stream-node-max-entries", "5", debug=False)
    chance = random.Random(seed)
    for _ in range(2):
        with server.client() as client:
            do_things(client, chance, 1500)
        before = contents(server)
        assert before
        server.restart(crash=True)
        assert contents(server) == before
        server.call("BGREWRITEAOF")
        server.restart()
        assert contents(server) == before


def soon(chance: random.Random) -> int:
    """A time to live of a few milliseconds, or of seconds where it is counted in those."""
    return chance.randint(1, 15)


@pytest.mark.parametrize("seed", range(2))
def test_the_file_repeats_what_expired_on_the_way(
    fresh_server: Factory, settable_clock: Clock, seed: int
) -> None:
    """Deadlines pass between commands, within a transaction and while a command runs."""
    server = fresh_server(
        "--appendonly", "yes", "--stream-node-max-entries", "5", "--hz", "1", debug=False,
        environment=settable_clock.environment,
    )  # fmt: skip
    chance = random.Random(seed)
    for number in range(8):
        settable_clock.set(settable_clock.now_ms, step_us=chance.choice([50, 400, 3000]))
        with server.client() as client:
            do_things(client, chance, 150, soon)
        settable_clock.set(settable_clock.now_ms)
        before = contents(server)
        server.restart(crash=True)
        assert contents(server) == before
        if number % 3 == 2:
            server.call("BGREWRITEAOF")


@pytest.mark.parametrize("seed", range(3))
def test_the_file_repeats_every_command_that_writes(
    fresh_server: Factory, settable_clock: Clock, seed: int
) -> None:
    """As above, with calls of all commands made from their documentation."""
    server = fresh_server(
        "--appendonly", "yes", "--databases", str(torture_state.DATABASES), "--hz", "1",
        debug=False, environment=settable_clock.environment,
    )  # fmt: skip
    chance = random.Random(seed)
    writing, reading = command_names(server)
    work = Work(chance, writing | reading)
    for _ in range(5):
        settable_clock.set(settable_clock.now_ms, step_us=chance.choice([20, 200, 1000]))
        with server.client() as client:
            for _ in range(40):
                client.pipeline(*map(tuple, work.next(settable_clock.now_ms).commands))
        settable_clock.set(settable_clock.now_ms)
        with server.client() as client:
            before = torture_state.state(client)
        server.restart(crash=True)
        with server.client() as client:
            assert not torture_state.differences(torture_state.state(client), before)


def with_a_key_that_is_due(fresh_server: Factory, settable_clock: Clock, key: str) -> Process:
    """A server that has not noticed yet that the time of one key is over."""
    server = fresh_server(
        "--appendonly", "yes", "--hz", "1", environment=settable_clock.environment
    )
    server.call("SET", key, "old", "PX", 10)
    settable_clock.advance(11)
    return server


def test_a_key_that_expired_within_mset_is_set(
    fresh_server: Factory, settable_clock: Clock
) -> None:
    server = with_a_key_that_is_due(fresh_server, settable_clock, "b")
    with server.client() as client:
        client.call("MSET", "a", 1, "b", 2)
    server.restart(crash=True)
    assert server.call("MGET", "a", "b") == [b"1", b"2"]


def test_what_is_set_in_a_transaction_that_pauses_expiry_stays(
    fresh_server: Factory, settable_clock: Clock
) -> None:
    """Keys do not expire during a pause: one that is due is replaced all the same."""
    server = with_a_key_that_is_due(fresh_server, settable_clock, "k")
    with server.client() as client:
        client.call("MULTI")
        client.call("CLIENT", "PAUSE", 60_000, "WRITE")
        client.call("SET", "k", "new")
        client.call("EXEC")
        assert client.call_parsed("GET", "k") == b"new"
    server.restart(crash=True)
    assert server.call("GET", "k") == b"new"
    assert server.call("TTL", "k") == -1


@pytest.mark.judge
@pytest.mark.parametrize("seed", range(2))
def test_redis_repeats_it_too(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, seed: int
) -> None:
    server = fresh_server("--appendonly", "yes", debug=False, directory=tmp_path)
    with server.client() as client:
        do_things(client, random.Random(seed), 1500)
    before = contents(server)
    server.stop()
    assert contents(fresh_redis("--appendonly", "yes", directory=tmp_path)) == before


def test_a_key_that_expired_meanwhile_does_not_come_back(fresh_server: Factory) -> None:
    """What was done to it before its end is repeated on it, not on a new key without deadline."""
    server = fresh_server("--appendonly", "yes")
    server.kill()
    path = server.directory / "appendonlydir" / "appendonly.aof.1.incr.aof"
    commands = [
        [b"SELECT", b"0"],
        [b"SET", b"k", b"v"],
        [b"PEXPIREAT", b"k", b"%d" % (time.time_ns() // 1_000_000 - 1000)],
        [b"APPEND", b"k", b"w"],
        [b"XADD", b"s", b"1-1", b"a", b"b"],
        [b"PEXPIREAT", b"s", b"1"],
        [b"XADD", b"s", b"2-1", b"a", b"b"],
    ]
    path.write_bytes(b"".join(request(command) for command in commands))
    server.start()
    assert server.call("EXISTS", "k", "s") == 0
