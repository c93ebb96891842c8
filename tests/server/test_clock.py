"""A server lives by the clock that it is given, and by the turns that its committer ends."""

from __future__ import annotations

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.server.clients.session import Peer, Session
from headrace.server.clock import Clock
from headrace.server.config.config import Config
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.execute import execute
from headrace.server.dispatch.serving import time_out_waiters
from headrace.server.durability.durability import Durability
from headrace.server.state import Server


class Stopped(Clock):
    """Time that passes only where somebody says so."""

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms
        super().__init__()

    def read_ns(self) -> int:
        return self.at_ms * 1_000_000

    def monotonic_ms(self) -> int:
        return self.at_ms


class Client(Peer):
    """What carries nothing, and is no process's."""


def test_time_is_that_of_the_clock_given() -> None:
    clock = Stopped(1_000_000)
    server = Server(Config(), clock)
    dispatcher = Dispatcher(server, Durability(server))
    session = Session(1, server.data.dbs[0], 0, Client())

    def run(*words: bytes) -> bytes:
        execute(dispatcher, session, [list(words)], 0, 1)
        said = b"".join(session.out)
        session.out.clear()
        return said

    assert run(b"XADD", b"s", b"*", b"f", b"v") == b"$9\r\n1000000-0\r\n"
    assert run(b"PEXPIRE", b"s", b"100") == b":1\r\n"
    clock.at_ms += 99
    server.clock.refresh()
    assert run(b"PTTL", b"s") == b":1\r\n"
    clock.at_ms += 2
    server.clock.refresh()
    assert run(b"EXISTS", b"s") == b":0\r\n"
    run(b"MULTI")
    run(b"XADD", b"t", b"*", b"f", b"v")
    assert run(b"EXEC") == b"*1\r\n$9\r\n1000101-0\r\n"

    assert run(b"XREAD", b"BLOCK", b"50", b"STREAMS", b"t", b"$") == b""
    clock.at_ms += 49
    assert time_out_waiters(server) == clock.at_ms + 1
    assert session.out == []
    clock.at_ms += 1
    assert time_out_waiters(server) == 0
    assert b"".join(session.out) == b"*-1\r\n"
