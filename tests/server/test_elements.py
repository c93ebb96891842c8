"""Waiting for an element that only one client is given, as the types with BLPOP and the like need.

Lists are the type. What can be seen from outside is asked of the newest Redis as well; how often a
request was run is ours to tell (``support.counted_pops``).
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.client import encode, parse
from support.leaving import leave
from support.process import Process, ServerProcess
from support.scene import Scene

NULL_ARRAY = b"*-1\r\n"
NOGROUP = b"-NOGROUP No such key 'k' or consumer group 'g' in XREADGROUP with GROUP option\r\n"
WRONGTYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
CROWD = 900
TESTS = Path(__file__).parents[1]


class CountingServer(ServerProcess):
    """Our server with the command of ``support.counted_pops``."""

    def command(self) -> list[str]:
        return [*super().command()[:-1], "support.counted_pops"]

    def variables(self) -> dict[str, str]:
        variables = super().variables()
        paths = [str(TESTS), *variables.get("PYTHONPATH", "").split(os.pathsep)]
        return {**variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture(scope="module")
def counting_server() -> Iterator[CountingServer]:
    server = CountingServer()
    try:
        yield server.start()
        server.check_log()
    finally:
        server.discard()


@pytest.fixture(params=["ours", pytest.param("redis", marks=pytest.mark.judge)])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Ours, or the newest Redis."""
    name = "counting_server" if request.param == "ours" else "redis_server"
    server: Process = request.getfixturevalue(name)
    yield from scene_of(server)


@pytest.fixture
def ours(counting_server: CountingServer) -> Iterator[Scene]:
    yield from scene_of(counting_server)


def scene_of(server: Process) -> Iterator[Scene]:
    scene = Scene(server)
    scene.do("FLUSHALL")
    yield scene
    scene.close()


def popped(element: str, key: str = "k") -> list[bytes]:
    return [key.encode(), element.encode()]


def times_run(scene: Scene) -> int:
    count = scene.do("BLPOPS")
    assert isinstance(count, int)
    return count


# As Redis


def test_those_who_wait_are_served_first_come_first_served(scene: Scene) -> None:
    waiters = [scene.waiter() for _ in range(5)]
    for waiter in waiters:
        scene.block(waiter, "BLPOP", "k", 0)
    assert scene.do("RPUSH", "k", "a") == 1
    assert waiters[0].read_parsed() == popped("a")
    assert scene.do("RPUSH", "k", "b", "c") == 2
    assert waiters[1].read_parsed() == popped("b")
    assert waiters[2].read_parsed() == popped("c")
    assert scene.blocked() == 2
    scene.do("RPUSH", "k", *"defg")
    assert [waiter.read_parsed() for waiter in waiters[3:]] == [popped("d"), popped("e")]
    assert scene.do("LLEN", "k") == 2
    assert scene.do("BLPOP", "k", 0) == popped("f")


def test_who_comes_back_stands_at_the_end(scene: Scene) -> None:
    first, second = scene.waiter(), scene.waiter()
    for waiter in (first, second):
        scene.block(waiter, "BLPOP", "k", 0)
    scene.do("RPUSH", "k", "a")
    assert first.read_parsed() == popped("a")
    scene.block(first, "BLPOP", "k", 0)
    scene.do("RPUSH", "k", "b")
    assert second.read_parsed() == popped("b")
    scene.do("RPUSH", "k", "c")
    assert first.read_parsed() == popped("c")


def test_two_pushes_in_one_transaction_serve_two(scene: Scene) -> None:
    waiters = [scene.waiter() for _ in range(3)]
    for waiter in waiters:
        scene.block(waiter, "BLPOP", "k", 0)
    scene.do_at_once("RPUSH k a", "RPUSH k b")
    assert waiters[0].read_parsed() == popped("a")
    assert waiters[1].read_parsed() == popped("b")
    assert scene.blocked() == 1


def test_another_type_leaves_them_waiting(scene: Scene) -> None:
    """A reader of a group that waits at the same key is told."""
    scene.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    reader, late, waiter = scene.waiter(), scene.waiter(), scene.waiter()
    assert late.call("BLPOP", "k", 0) == WRONGTYPE
    scene.do("DEL", "k")
    scene.block(waiter, "BLPOP", "k", 0)
    scene.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    scene.do("XADD", "k", "1-0", "f", "v")
    scene.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">")
    assert scene.blocked() == 1
    scene.block(reader, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "k", ">")
    assert scene.figure("total_blocking_keys") == 1
    assert scene.figure("total_blocking_keys_on_nokey") == 1
    scene.do("XADD", "k", "2-0", "f", "v")
    assert reader.read_parsed() == [[b"k", [[b"2-0", [b"f", b"v"]]]]]
    scene.block(reader, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "k", ">")
    scene.do("DEL", "k")
    assert reader.read() == NOGROUP
    assert scene.blocked() == 1
    assert scene.figure("total_blocking_keys_on_nokey") == 0
    scene.do("RPUSH", "k", "a")
    assert waiter.read_parsed() == popped("a")


def test_a_list_in_the_place_of_a_stream(scene: Scene) -> None:
    """Both kinds wait at one key; what it holds then fails one and serves the other."""
    waiter, reader = scene.waiter(), scene.waiter()
    scene.block(waiter, "BLPOP", "k", 0)
    scene.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    scene.block(reader, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "k", ">")
    scene.do_at_once("DEL k", "RPUSH k a b")
    assert waiter.read_parsed() == popped("a")
    assert reader.read() == WRONGTYPE
    assert scene.do("LLEN", "k") == 1


@pytest.mark.parametrize(
    "wake",
    [["RENAME src k"], ["COPY src k"], ["SWAPDB 0 5"], ["RPUSH k x", "DEL k", "RPUSH k a"]],
    ids=" and ".join,
)
def test_whatever_brings_a_list_wakes(scene: Scene, wake: list[str]) -> None:
    scene.do_at_once("SELECT 5", "RPUSH k a", "SELECT 0", "RPUSH src a")
    waiter = scene.waiter()
    scene.block(waiter, "BLPOP", "k", 0)
    scene.do_at_once(*wake)
    assert waiter.read_parsed() == popped("a")


def test_databases_are_apart(scene: Scene) -> None:
    here, there = scene.waiter(), scene.waiter()
    there.call("SELECT", 3)
    scene.block(here, "BLPOP", "k", 0)
    scene.block(there, "BLPOP", "k", 0)
    assert scene.figure("total_blocking_keys") == 2
    scene.do("RPUSH", "k", "a", "b")
    assert here.read_parsed() == popped("a")
    assert scene.blocked() == 1
    scene.do("FLUSHALL")
    assert scene.blocked() == 1
    scene.do("RPUSH", "k", "c")
    scene.do("MOVE", "k", 3)
    assert there.read_parsed() == popped("c")


def test_several_keys_and_one_of_them_twice(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "BLPOP", "j", "k", "k", 0)
    assert scene.figure("total_blocking_keys") == 2
    scene.do("RPUSH", "k", *"abc")
    assert waiter.read_parsed() == popped("a")
    assert scene.figure("total_blocking_keys") == 0
    assert scene.do("LLEN", "k") == 2


def test_other_ends_of_waiting(scene: Scene) -> None:
    waiter, behind = scene.waiter(), scene.waiter()
    number = waiter.call_parsed("CLIENT", "ID")
    assert isinstance(number, int)
    started = time.monotonic()
    assert waiter.call("BLPOP", "k", "0.05") == NULL_ARRAY
    assert time.monotonic() - started >= 0.045
    scene.block(waiter, "BLPOP", "k", 0)
    assert scene.do("CLIENT", "UNBLOCK", number, "ERROR") == 1
    assert waiter.read() == b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
    scene.block(waiter, "BLPOP", "k", 0)
    scene.block(behind, "BLPOP", "k", 0)
    assert scene.do("CLIENT", "KILL", "ID", number) == 1
    assert waiter.rest_until_close() == b""
    scene.do("RPUSH", "k", "a")
    assert behind.read_parsed() == popped("a")
    assert scene.figure("total_blocking_keys") == 0
    assert scene.actor.pipeline(("MULTI",), ("BLPOP", "k", 0), ("EXEC",))[2] == b"*1\r\n*-1\r\n"


# What it costs, and who has left


def test_what_arrived_runs_as_many_as_it_serves(ours: Scene) -> None:
    """One element and a crowd: one request is run, and the others stay asleep."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < CROWD + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, CROWD + 200), hard))
    first = ours.waiter()
    ours.block(first, "BLPOP", "k", 0)
    crowd: list[socket.socket] = []
    try:
        for _ in range(CROWD - 1):
            crowd.append(socket.create_connection(("127.0.0.1", ours.server.port), timeout=30))
            crowd[-1].sendall(encode("BLPOP", "other", "k", 0))
        ours.wait_for_blocked(CROWD)
        before = times_run(ours)
        ours.do("RPUSH", "k", "a")
        assert times_run(ours) == before + 1
        assert first.read_parsed() == popped("a")
        assert ours.blocked() == CROWD - 1
        ours.do_at_once("RPUSH k b", "RPUSH k c")
        assert times_run(ours) == before + 3
        assert ours.blocked() == CROWD - 3
        ours.do("RPUSH", "other", *("x" * CROWD))
        assert ours.blocked() == 0
        assert times_run(ours) == before + CROWD
        assert ours.do("LLEN", "other") == 3
        answers = [parse(sock.recv(1000)) for sock in crowd]
        assert answers.count(popped("b")) == answers.count(popped("c")) == 1
        assert answers.count(popped("x", "other")) == CROWD - 3
    finally:
        for sock in crowd:
            sock.close()


def test_what_is_gone_again_runs_nobody(ours: Scene) -> None:
    waiter = ours.waiter()
    ours.block(waiter, "BLPOP", "k", 0)
    before = times_run(ours)
    ours.do_at_once("RPUSH k a", "DEL k")
    ours.do("XADD", "k", "1-0", "f", "v")
    ours.do("DEL", "k")
    assert times_run(ours) == before
    ours.do_at_once("RPUSH k a", "BLPOP k 0")
    assert times_run(ours) == before + 1  # the one of the transaction
    assert ours.blocked() == 1


@pytest.mark.parametrize("how", ["closes", "resets"])
def test_who_has_left_is_passed_over(ours: Scene, how: str) -> None:
    gone, here = ours.waiter(), ours.waiter()
    for waiter in (gone, here):
        ours.block(waiter, "BLPOP", "k", 0)
    ours.server.signal(signal.SIGSTOP)
    try:
        ours.actor.send_command("RPUSH", "k", "a")
        leave(gone, how)
    finally:
        ours.server.signal(signal.SIGCONT)
    assert ours.actor.read_parsed() == 1
    assert here.read_parsed() == popped("a")
    assert ours.blocked() == 0
