"""Waiting for an element that only one client is given, as the types with BLPOP and the like need.

``support.letters`` is the type: LPUT puts letters into a string, LTAKE takes one or waits.
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
from support.process import ServerProcess
from support.scene import Scene

NULL_ARRAY = b"*-1\r\n"
NOGROUP = b"-NOGROUP No such key 'k' or consumer group 'g' in XREADGROUP with GROUP option\r\n"
WRONGTYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
CROWD = 900
TESTS = Path(__file__).parents[1]


class LettersServer(ServerProcess):
    """Our server with the commands of ``support.letters``."""

    def command(self) -> list[str]:
        return [*super().command()[:-1], "support.letters"]

    def variables(self) -> dict[str, str]:
        variables = super().variables()
        paths = [str(TESTS), *variables.get("PYTHONPATH", "").split(os.pathsep)]
        return {**variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture(scope="module")
def letters_server() -> Iterator[LettersServer]:
    server = LettersServer()
    try:
        yield server.start()
        server.check_log()
    finally:
        server.discard()


@pytest.fixture
def scene(letters_server: LettersServer) -> Iterator[Scene]:
    scene = Scene(letters_server)
    scene.do("FLUSHALL")
    yield scene
    scene.close()


def taken(letter: str, key: str = "k") -> list[bytes]:
    return [key.encode(), letter.encode()]


def test_those_who_wait_are_served_first_come_first_served(scene: Scene) -> None:
    waiters = [scene.waiter() for _ in range(5)]
    for waiter in waiters:
        scene.block(waiter, "LTAKE", "k", 0)
    assert scene.do("LPUT", "k", "a") == 1
    assert waiters[0].read_parsed() == taken("a")
    scene.do("LPUT", "k", "bc")
    assert waiters[1].read_parsed() == taken("b")
    assert waiters[2].read_parsed() == taken("c")
    assert scene.blocked() == 2
    scene.do("LPUT", "k", "defg")
    assert [waiter.read_parsed() for waiter in waiters[3:]] == [taken("d"), taken("e")]
    assert scene.do("GET", "k") == b"fg"
    assert scene.do("LTAKE", "k", 0) == taken("f")


def test_one_that_comes_back_stands_at_the_end(scene: Scene) -> None:
    first, second = scene.waiter(), scene.waiter()
    for waiter in (first, second):
        scene.block(waiter, "LTAKE", "k", 0)
    scene.do("LPUT", "k", "a")
    assert first.read_parsed() == taken("a")
    scene.block(first, "LTAKE", "k", 0)
    scene.do("LPUT", "k", "b")
    assert second.read_parsed() == taken("b")
    scene.do("LPUT", "k", "c")
    assert first.read_parsed() == taken("c")


def test_what_arrived_runs_as_many_as_it_serves(scene: Scene) -> None:
    """One letter and a crowd: one request is run, and the others stay asleep."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < CROWD + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, CROWD + 200), hard))
    first = scene.waiter()
    scene.block(first, "LTAKE", "k", 0)
    crowd: list[socket.socket] = []
    try:
        for _ in range(CROWD - 1):
            crowd.append(socket.create_connection(("127.0.0.1", scene.server.port), timeout=30))
            crowd[-1].sendall(encode("LTAKE", "other", "k", 0))
        scene.wait_for_blocked(CROWD)
        before = scene.do("LTAKES")
        assert isinstance(before, int)
        scene.do("LPUT", "k", "a")
        assert scene.do("LTAKES") == before + 1
        assert first.read_parsed() == taken("a")
        assert scene.blocked() == CROWD - 1
        scene.do_at_once("LPUT k b", "LPUT k c")
        assert scene.do("LTAKES") == before + 3
        assert scene.blocked() == CROWD - 3
        scene.do("LPUT", "other", "x" * CROWD)
        assert scene.blocked() == 0
        assert scene.do("LTAKES") == before + CROWD
        assert scene.do("GET", "other") == b"xxx"
        answers = [parse(sock.recv(1000)) for sock in crowd]
        assert answers.count(taken("b")) == answers.count(taken("c")) == 1
        assert answers.count(taken("x", "other")) == CROWD - 3
    finally:
        for sock in crowd:
            sock.close()


def test_two_pushes_in_one_transaction_serve_two(scene: Scene) -> None:
    waiters = [scene.waiter() for _ in range(3)]
    for waiter in waiters:
        scene.block(waiter, "LTAKE", "k", 0)
    scene.do_at_once("LPUT k a", "LPUT k b")
    assert waiters[0].read_parsed() == taken("a")
    assert waiters[1].read_parsed() == taken("b")
    assert scene.blocked() == 1


def test_what_a_transaction_takes_back_serves_nobody(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "LTAKE", "k", 0)
    before = scene.do("LTAKES")
    assert isinstance(before, int)
    scene.do_at_once("LPUT k a", "LTAKE k 0")
    scene.do_at_once("LPUT k a", "DEL k")
    assert scene.do("LTAKES") == before + 1  # the one of the transaction
    assert scene.blocked() == 1


@pytest.mark.parametrize("how", ["closes", "resets"])
def test_who_has_left_is_passed_over(scene: Scene, how: str) -> None:
    gone, here = scene.waiter(), scene.waiter()
    for waiter in (gone, here):
        scene.block(waiter, "LTAKE", "k", 0)
    scene.server.signal(signal.SIGSTOP)
    try:
        scene.actor.send_command("LPUT", "k", "a")
        leave(gone, how)
    finally:
        scene.server.signal(signal.SIGCONT)
    assert scene.actor.read_parsed() == 1
    assert here.read_parsed() == taken("a")
    assert scene.blocked() == 0


def test_another_type_leaves_them_waiting(scene: Scene) -> None:
    """As BLPOP does; a reader of a group that waits beside them is told."""
    scene.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    reader, elsewhere = scene.waiter(), scene.waiter()
    scene.block(reader, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "k", ">")
    assert elsewhere.call("LTAKE", "k", 0) == WRONGTYPE
    scene.do("XADD", "k", "1-0", "f", "v")
    assert reader.read_parsed() == [[b"k", [[b"1-0", [b"f", b"v"]]]]]

    scene.do("DEL", "k")
    waiter = scene.waiter()
    scene.block(waiter, "LTAKE", "k", 0)
    before = scene.do("LTAKES")
    scene.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    scene.do("XADD", "k", "1-0", "f", "v")
    scene.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">")
    assert scene.blocked() == 1
    scene.block(reader, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "k", ">")
    assert scene.figure("total_blocking_keys") == 1
    assert scene.figure("total_blocking_keys_on_nokey") == 1
    scene.do("DEL", "k")
    assert reader.read() == NOGROUP
    assert scene.blocked() == 1
    assert scene.figure("total_blocking_keys_on_nokey") == 0
    assert scene.do("LTAKES") == before
    scene.do("LPUT", "k", "a")
    assert waiter.read_parsed() == taken("a")


def test_a_string_in_the_place_of_a_stream(scene: Scene) -> None:
    """Both kinds wait at one key; what it holds now fails one and serves the other."""
    waiter, reader = scene.waiter(), scene.waiter()
    scene.block(waiter, "LTAKE", "k", 0)
    scene.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    scene.block(reader, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "k", ">")
    scene.do("SET", "k", "ab")
    assert waiter.read_parsed() == taken("a")
    assert reader.read() == WRONGTYPE
    assert scene.do("GET", "k") == b"b"


@pytest.mark.parametrize(
    "wake",
    [["SET k a"], ["RENAME src k"], ["COPY src k"], ["SWAPDB 0 5"], ["DEL k", "LPUT k a"]],
    ids=" and ".join,
)
def test_whatever_brings_letters_wakes(scene: Scene, wake: list[str]) -> None:
    scene.do_at_once("SELECT 5", "SET k a", "SELECT 0", "SET src a")
    waiter = scene.waiter()
    scene.block(waiter, "LTAKE", "k", 0)
    scene.do_at_once(*wake)
    assert waiter.read_parsed() == taken("a")


def test_databases_are_apart(scene: Scene) -> None:
    here, there = scene.waiter(), scene.waiter()
    there.call("SELECT", 3)
    scene.block(here, "LTAKE", "k", 0)
    scene.block(there, "LTAKE", "k", 0)
    assert scene.figure("total_blocking_keys") == 2
    scene.do("LPUT", "k", "ab")
    assert here.read_parsed() == taken("a")
    assert scene.blocked() == 1
    scene.do("FLUSHALL")
    assert scene.blocked() == 1
    scene.do("SET", "k", "c")
    scene.do("MOVE", "k", 3)
    assert there.read_parsed() == taken("c")


def test_several_keys_and_one_of_them_twice(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "LTAKE", "j", "k", "k", 0)
    assert scene.figure("total_blocking_keys") == 2
    scene.do("LPUT", "k", "abc")
    assert waiter.read_parsed() == taken("a")
    assert scene.figure("total_blocking_keys") == 0
    assert scene.do("GET", "k") == b"bc"


def test_other_ends_of_waiting(scene: Scene) -> None:
    waiter, behind = scene.waiter(), scene.waiter()
    number = waiter.call_parsed("CLIENT", "ID")
    assert isinstance(number, int)
    started = time.monotonic()
    assert waiter.call("LTAKE", "k", 50) == NULL_ARRAY
    assert time.monotonic() - started >= 0.045
    scene.block(waiter, "LTAKE", "k", 0)
    assert scene.do("CLIENT", "UNBLOCK", number, "ERROR") == 1
    assert waiter.read() == b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
    scene.block(waiter, "LTAKE", "k", 0)
    scene.block(behind, "LTAKE", "k", 0)
    assert scene.do("CLIENT", "KILL", "ID", number) == 1
    assert waiter.rest_until_close() == b""
    scene.do("LPUT", "k", "a")
    assert behind.read_parsed() == taken("a")
    assert scene.figure("total_blocking_keys") == 0
    assert scene.actor.pipeline(("MULTI",), ("LTAKE", "k", 0), ("EXEC",))[2] == b"*1\r\n*-1\r\n"
