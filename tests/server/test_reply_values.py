"""What commands return: values, of which what is packed is read back as what the client is sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.protocol.packing import all_unpacked, unpacked
from headrace.protocol.replies import (
    Attributed,
    ErrorReply,
    Map,
    NullArray,
    Packed,
    PackedReplies,
    Replies,
    Set,
    Status,
    Verbatim,
    encode,
)
from headrace.server.clients.session import NOBODY, Session
from headrace.server.config.config import Config
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.execute import execute
from headrace.server.dispatch.rows import TABLE, AlikeHandler, Command, Handler
from headrace.server.durability.durability import Durability
from headrace.server.settings import Settings
from headrace.server.state import Server
from support.client import parse

# Requests in a row are sent at once: those that are alike are then run together.
PIPELINES = [
    "XADD s 1-1 f a\n XADD s 2-1 f b\n XADD s 3-1 g c h d\n XADD s 4-1 f e",
    "XADD s * f v\n XADD s * f v\n XADD s * f v\n XADD s * f v",
    "XADD none NOMKSTREAM * f v",
    "XDEL s 4-1",
    "XLEN s",
    "XRANGE s - +\n XRANGE s - + COUNT 1\n XRANGE s (1-1 3-1\n XRANGE s 9-1 9-2",
    "XREVRANGE s + -\n XREVRANGE s 3-1 - COUNT 2",
    "XRANGE s - + COUNT 0",
    "XRANGE none - +",
    "XREAD STREAMS s none 1-1 0",
    "XREAD COUNT 1 STREAMS s s 0 1-1",
    "XREAD STREAMS none 0",
    "XGROUP CREATE s g 0",
    "XREADGROUP GROUP g c COUNT 2 STREAMS s >",
    "XREADGROUP GROUP g c CLAIM 0 COUNT 3 STREAMS s >",
    "XREADGROUP GROUP g c STREAMS s 0",
    "XDEL s 1-1",
    "XREADGROUP GROUP g c STREAMS s 0",
    "XPENDING s g",
    "XPENDING s g - + 10",
    "XCLAIM s g d 0 2-1",
    "XCLAIM s g d 0 2-1 JUSTID",
    "XAUTOCLAIM s g e 0 - COUNT 10",
    "XAUTOCLAIM s g e 0 - COUNT 10 JUSTID",
    "XINFO STREAM s",
    "XINFO STREAM s FULL",
    "XINFO GROUPS s",
    "XINFO CONSUMERS s g",
    "XINFO HELP",
    "XACK s g 2-1\n XACK s g 2-1\n XACK s g 3-1",
    "XACK s g 2-1 3-1",
    "XPENDING s none",
    "MULTI\n XADD s * f v\n XADD s * f v\n XRANGE s - + COUNT 1\n NOSUCH\n EXEC",
    "MULTI\n XADD s * f v\n XADD s * f v\n XRANGE s 2-1 + COUNT 1\n EXEC",
    "MULTI\n XRANGE s 2-1 + COUNT 1\n HELLO 3\n XINFO GROUPS s\n EXEC",
    "HELLO 2\n DEBUG PROTOCOL attrib\n DEBUG PROTOCOL map",
    "HELLO 3\n DEBUG PROTOCOL attrib\n DEBUG PROTOCOL push\n DEBUG PROTOCOL set",
    "SET k v\n GET k\n GET none\n INCR k\n MGET k none",
]
PLAIN = (
    *(bytes, int, bool, float, type(None), list, tuple, Map, Set, Status, ErrorReply, NullArray),
    *(Attributed, Verbatim, Replies, Packed, PackedReplies),
)


class Watched:
    """A row whose replies are looked at."""

    def __init__(self, row: Command, run: Handler, ask: AlikeHandler | None) -> None:
        self._row = row
        self.run = run
        self.ask = ask
        self.packed = 0

    def see(self, call: Call) -> object:
        reply = self.run(call)
        resp3 = call.session.resp3
        assert isinstance(reply, PLAIN), (self._row.name, type(reply))
        wire = encode(reply, resp3)
        plain = unpacked(reply)
        assert encode(plain, resp3) == wire, (self._row.name, wire)
        if isinstance(reply, Packed):
            self.packed += 1
            assert parse(wire) == parse(encode(plain, resp3))
        return reply

    def see_alike(
        self, call: Call, requests: list[list[bytes]], first: int, end: int
    ) -> tuple[int, PackedReplies]:
        assert self.ask is not None
        count, replies = self.ask(call, requests, first, end)
        plain = all_unpacked(replies)
        assert len(plain) == max(0, count), self._row.name
        assert b"".join([encode(each, call.session.resp3) for each in plain]) == replies.wire
        self.packed += len(plain)
        return count, replies


@pytest.fixture
def watched() -> Iterator[dict[bytes, Watched]]:
    """Every row of the table that has a function, while its replies are looked at."""
    found: dict[bytes, Watched] = {}
    rows = [row for top in TABLE.values() for row in (top, *top.subcommands.values())]
    for row in rows:
        if row.run is not None:
            found[row.name] = Watched(row, row.run, row.run_alike)
    for row in rows:
        if row.name in found:
            row.run = found[row.name].see
            row.run_alike = found[row.name].see_alike if found[row.name].ask else None
    yield found
    for row in rows:
        if row.name in found:
            row.run = found[row.name].run
            row.run_alike = found[row.name].ask


@pytest.mark.parametrize("resp3", [False, True])
def test_what_is_packed_is_read_back_as_what_is_sent(
    resp3: bool, watched: dict[bytes, Watched]
) -> None:
    config = Config()
    config.enable_debug_command = b"yes"
    server = Server(config)
    Settings(server)
    dispatcher = Dispatcher(server, Durability(server))
    session = Session(1, server.data.dbs[0], 0, NOBODY)
    session.resp3 = resp3
    for pipeline in PIPELINES:
        requests = [line.encode().split() for line in pipeline.split("\n")]
        session.out.clear()
        assert execute(dispatcher, session, requests, 0, len(requests)) == len(requests)
        assert b"internal error" not in b"".join(session.out), pipeline
    for name in (
        *(b"xadd", b"xrange", b"xrevrange", b"xread", b"xreadgroup", b"xpending", b"xclaim"),
        *(b"xack", b"xinfo|stream", b"xinfo|groups", b"xinfo|consumers", b"exec"),
    ):
        assert watched[name].packed, name
