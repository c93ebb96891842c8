"""A reader that has left is given nothing: what one reader of a group is given, no other is.

The server is stopped for a moment, so that it finds both at once when it goes on: that the reader
has left, and the entry that would have been the reader's.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from support.client import Argument
from support.leaving import leave
from support.process import ServerProcess
from support.scene import Scene

ROUNDS = 5


@pytest.fixture
def scene(server: ServerProcess) -> Iterator[Scene]:
    scene = Scene(server)
    scene.do("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    yield scene
    scene.close()


def read(*options: Argument) -> list[Argument]:
    return ["XREADGROUP", "GROUP", "g", "c", *options, "STREAMS", "s", ">"]


@pytest.mark.parametrize("how", ["closes", "resets", "sends no more", "pipelines more and closes"])
@pytest.mark.parametrize("left_first", [True, False])
def test_a_reader_that_has_left_takes_nothing(scene: Scene, how: str, left_first: bool) -> None:
    for number in range(1, ROUNDS + 1):
        reader = scene.waiter()
        scene.block(reader, *read("NOACK", "BLOCK", 0))
        scene.server.signal(signal.SIGSTOP)
        try:
            if left_first:
                leave(reader, how)
            scene.actor.send_command("XADD", "s", f"{number}-0", "f", "v")
            if not left_first:
                leave(reader, how)
        finally:
            scene.server.signal(signal.SIGCONT)
        scene.actor.read()
        answer = [[b"s", [[b"%d-0" % number, [b"f", b"v"]]]]]
        assert scene.do(*read()) == answer
        scene.wait_for_blocked(0)


def test_who_stands_behind_one_that_has_left_is_served(scene: Scene) -> None:
    gone, here = scene.waiter(), scene.waiter()
    scene.block(gone, *read("BLOCK", 0))
    scene.block(here, *read("BLOCK", 0))
    scene.server.signal(signal.SIGSTOP)
    try:
        scene.actor.send_command("XADD", "s", "1-0", "f", "v")
        leave(gone, "resets")
    finally:
        scene.server.signal(signal.SIGCONT)
    assert here.read_parsed() == [[b"s", [[b"1-0", [b"f", b"v"]]]]]


def test_who_has_left_claims_nothing(scene: Scene) -> None:
    scene.do("XADD", "s", "1-0", "f", "v")
    scene.do(*read())
    reader = scene.waiter()
    scene.block(reader, *read("CLAIM", 3_600_000, "BLOCK", 0))
    scene.server.signal(signal.SIGSTOP)
    try:
        words: list[Argument] = ["XNACK", "s", "g", "FAIL", "IDS", 1, "1-0"]
        scene.actor.send_command(*words)
        leave(reader, "resets")
    finally:
        scene.server.signal(signal.SIGCONT)
    assert scene.actor.read() == b":1\r\n"
    assert scene.do("XPENDING", "s", "g", "-", "+", 10) == [[b"1-0", b"", -1, 1]]


def test_a_reader_that_is_killed_before_the_entry_comes_takes_nothing(scene: Scene) -> None:
    reader = scene.waiter()
    number = reader.call_parsed("CLIENT", "ID")
    scene.block(reader, *read("NOACK", "BLOCK", 0))
    scene.actor.pipeline(("CLIENT", "KILL", "ID", str(number)), ("XADD", "s", "1-0", "f", "v"))
    assert scene.do(*read()) == [[b"s", [[b"1-0", [b"f", b"v"]]]]]
