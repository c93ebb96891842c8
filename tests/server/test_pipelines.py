"""Requests one behind the other, and peers that stop sending before they have their replies."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import time
from pathlib import Path

import pytest
from conftest import Factory

from headrace.server.app import App
from headrace.server.config.config import Config
from headrace.server.net.connection import Connection
from headrace.server.process.signals import ENDING, IGNORED
from support.client import RawClient, encode
from support.process import Pair, ServerProcess, free_port
from support.waiting import DEADLINE_S

PING = b"PING\r\n"
PONG = b"+PONG\r\n"


def replies_after_half_close(port: int, data: bytes, *, wait_for: bytes = b"") -> bytes:
    """Send ``data``, say that no more comes, and read until the server closes.

    Args:
        wait_for: what has to arrive before that is said.
    """
    with RawClient(port) as client:
        client.send(data)
        got = b""
        while len(got) < len(wait_for):
            got += client.sock.recv(len(wait_for) - len(got))
        client.sock.shutdown(socket.SHUT_WR)
        return got + client.rest_until_close()


# A peer that shuts down its side


@pytest.fixture(params=["memory", "everysec", "always", "asyncio"])
def any_server(request: pytest.FixtureRequest, fresh_server: Factory, tmp_path: Path) -> int:
    """The port of a server of each kind: replies leave it in different ways."""
    kind: str = request.param
    if kind == "asyncio":
        (tmp_path / "uvloop.py").write_text("raise ImportError('not here')\n")
        path = str(tmp_path)
        server = fresh_server(start=False)
        assert isinstance(server, ServerProcess)
        known = server.variables().get("PYTHONPATH")
        server = fresh_server(environment={"PYTHONPATH": f"{path}:{known}" if known else path})
    elif kind == "memory":
        server = fresh_server()
    else:
        server = fresh_server("--appendonly", "yes", "--appendfsync", kind)
    return server.port


def test_one_request_and_the_end(any_server: int) -> None:
    assert replies_after_half_close(any_server, PING) == PONG
    assert replies_after_half_close(any_server, PING, wait_for=PONG) == PONG
    assert replies_after_half_close(any_server, b"") == b""


def test_a_long_pipeline_and_the_end(any_server: int) -> None:
    assert replies_after_half_close(any_server, PING * 50_000) == PONG * 50_000
    data = b"".join(encode("SET", f"k{number}", number) for number in range(5_000))
    assert replies_after_half_close(any_server, data) == b"+OK\r\n" * 5_000


def test_replies_longer_than_any_buffer(any_server: int) -> None:
    """They are made in goes of a megabyte, while the peer reads."""
    value = b"x" * 60_000
    assert replies_after_half_close(any_server, encode("SET", "large", value)) == b"+OK\r\n"
    reply = b"$60000\r\n" + value + b"\r\n"
    assert replies_after_half_close(any_server, b"GET large\r\n" * 500) == reply * 500


def test_the_beginning_of_a_request_and_the_end(any_server: int) -> None:
    assert replies_after_half_close(any_server, PING + encode("ECHO", "x")[:-1]) == PONG


def test_a_wait_and_the_end(any_server: int) -> None:
    """Who has left waits for nothing, and what stands behind the wait is not run."""
    data = PING + encode("XREAD", "BLOCK", 0, "STREAMS", "s", "$") + encode("SET", "after", 1)
    assert replies_after_half_close(any_server, data) == PONG
    assert replies_after_half_close(any_server, data, wait_for=PONG) == PONG
    with RawClient(any_server) as client:
        assert client.call("EXISTS", "after") == b":0\r\n"
        assert b"blocked_clients:0\r\n" in client.call("INFO", "clients")


def test_the_end_during_a_pause(client: RawClient, server: ServerProcess) -> None:
    client.call("CLIENT", "PAUSE", 100, "WRITE")
    assert replies_after_half_close(server.port, PING + encode("SET", "k", 1)) == PONG + b"+OK\r\n"


def test_a_subscriber_and_the_end(server: ServerProcess) -> None:
    wanted = b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
    assert replies_after_half_close(server.port, encode("SUBSCRIBE", "c")) == wanted


# One behind the other


def test_errors_in_the_middle(pair: Pair) -> None:
    data = b"NOPE x\r\nPING\r\nXADD s 1-1 f\r\nSET s x\r\nXLEN s\r\nGET s\r\nPING a b\r\nPING\r\n"
    pair.ours.send(data)
    pair.real.send(data)
    for _ in range(8):
        assert pair.ours.read() == pair.real.read()


@pytest.mark.parametrize(
    "data",
    [
        PING + b"QUIT\r\nPING\r\n",
        PING + b"*1\r\n$x\r\nPING\r\n",
        PING + b"MULTI\r\nPING\r\nQUIT\r\nPING\r\n",
        PING + b"CLIENT REPLY OFF\r\nPING\r\n*1\r\nx\r\n",
    ],
)
def test_requests_behind_the_last_one_are_not_run(server: ServerProcess, data: bytes) -> None:
    with server.client() as client:
        client.send(data + encode("SET", "after", 1))
        assert client.rest_until_close().startswith(PONG)
    assert server.call("EXISTS", "after") == 0


def test_the_protocol_changes_between_two_requests(client: RawClient) -> None:
    client.send(b"GET no\r\nHELLO 3\r\nGET no\r\nXREAD STREAMS no 0\r\nHELLO 2\r\nGET no\r\n")
    assert client.read() == b"$-1\r\n"
    assert client.read().startswith(b"%7\r\n")
    assert [client.read(), client.read()] == [b"_\r\n", b"_\r\n"]
    assert client.read().startswith(b"*14\r\n")
    assert client.read() == b"$-1\r\n"


def test_silenced_replies(pair: Pair) -> None:
    data = (
        b"CLIENT REPLY SKIP\r\nPING\r\nECHO 1\r\nCLIENT REPLY SKIP\r\nCLIENT REPLY SKIP\r\nPING\r\n"
        b"ECHO 2\r\nCLIENT REPLY OFF\r\nPING\r\nNOPE x\r\nCLIENT REPLY SKIP\r\nPING\r\n"
        b"CLIENT REPLY ON\r\nECHO 3\r\n"
    )
    pair.ours.send(data)
    pair.real.send(data)
    for _ in range(4):
        assert pair.ours.read() == pair.real.read()


# What a connection leaves behind


ENDINGS = [
    PING,
    PING + b"QUIT\r\n",
    PING + b"*1\r\n$x\r\n",
    PING + b"XREAD BLOCK 0 STREAMS s $\r\n",
    PING + b"SUBSCRIBE c d\r\n",
    PING + b"WATCH k\r\nMULTI\r\nPING\r\n",
    PING + b"MONITOR\r\n",
]


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
            await asyncio.sleep(0.01)


async def connections_left(port: int, data: bytes) -> int:
    """Open connections, send ``data``, close them: how many are in memory afterwards."""
    for _ in range(20):
        reader, writer = await connect(port)
        writer.write(data)
        await reader.readexactly(len(PONG))
        writer.close()
        await writer.wait_closed()
    deadline = time.monotonic() + DEADLINE_S
    while True:
        left = sum(isinstance(each, Connection) for each in gc.get_objects())
        if not left or time.monotonic() > deadline:
            return left
        await asyncio.sleep(0)


def test_a_connection_leaves_no_cycles() -> None:
    """The collector looks at what is old never again, so reference counts have to be enough."""

    async def run() -> list[int]:
        config = Config()
        config.port = free_port()
        app = App(config)
        serving = asyncio.get_running_loop().create_task(app.serve())
        (await connect(config.port))[1].close()
        gc.collect()
        gc.disable()
        left = [await connections_left(config.port, data) for data in ENDINGS]
        app.stop(0)
        await serving
        return left

    thresholds = gc.get_threshold()
    handlers = {number: signal.getsignal(number) for number in (*ENDING, *IGNORED)}
    try:
        assert asyncio.run(run()) == [0] * len(ENDINGS)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        gc.enable()
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def test_replies_of_several_clients_leave_whoever_else_is_at_work(any_server: int) -> None:
    """Who is alone is answered at once and who is not at the end of the turn: in order, always."""
    with RawClient(any_server) as one, RawClient(any_server) as other:
        for turn in range(50):
            text = b"%d" % turn
            one.send(encode("ECHO", text) + encode("ECHO", text + b"+"))
            if turn % 3:
                other.send(encode("ECHO", b"other " + text))
            one.send(encode("ECHO", text + b"++"))
            assert [one.read_parsed() for _ in range(3)] == [text, text + b"+", text + b"++"]
            if turn % 3:
                assert other.read_parsed() == b"other " + text
