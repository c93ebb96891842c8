"""Producers whose connections break between a command and its reply: the case IDMP exists for."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from support.accepting import accepted
from support.client import RawClient, encode
from support.process import ServerProcess
from support.redis_py import Client

pytestmark = pytest.mark.once

MESSAGES = 10_000
CUT_SHARE = 0.2
DEPTH = 4  # messages in flight


class CuttingProxy(threading.Thread):
    """Passes requests on, one client at a time, and now and then cuts it off before the reply.

    The server has run the request by then: its reply is read, and thrown away.
    """

    def __init__(self, port: int, share: float) -> None:
        super().__init__(daemon=True)
        self.cuts = 0
        self._share = share
        self._chance = random.Random(20)
        self._server = socket.create_connection(("127.0.0.1", port))
        self._server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def run(self) -> None:
        for client in accepted(self._listener):
            with client:
                self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := client.recv(1 << 16):
            self._server.sendall(data)
            reply = b""
            while reply.count(b"\r\n") < self._lines(data):
                reply += self._server.recv(1 << 16)
            if self._chance.random() < self._share:
                self.cuts += 1
                return
            client.sendall(reply)

    @staticmethod
    def _lines(data: bytes) -> int:
        """The lines that answer ``data``: an ID behind its length for each XADD, OK for CLIENT."""
        return 2 * data.count(b"$4\r\nXADD\r\n") + data.count(b"$6\r\nCLIENT\r\n")

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._server.close()


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[CuttingProxy]:
    through = CuttingProxy(server.port, CUT_SHARE)
    through.start()
    yield through
    through.close()
    through.join(10)
    assert not through.is_alive()


def numbers_in(server: ServerProcess, key: str) -> list[int]:
    entries = server.call("XRANGE", key, "-", "+")
    assert isinstance(entries, list)
    return [int(fields[1]) for _, fields in entries]


def test_ten_thousand_messages_and_every_fifth_cut(
    server: ServerProcess, proxy: CuttingProxy
) -> None:
    """In batches, of which every fifth is cut; what is not answered is sent again."""
    batches = [range(start, start + DEPTH) for start in range(0, MESSAGES, DEPTH)]
    wires = [
        b"".join(encode("XADD", "log", "IDMP", "producer", n, "*", "n", n) for n in batch)
        for batch in batches
    ]
    ids: list[bytes] = []
    client = RawClient(proxy.port)
    for batch, wire in zip(batches, wires, strict=True):
        while True:
            try:
                client.send(wire)
                ids += [client.read() for _ in batch]
                break
            except OSError:
                client.close()
                client = RawClient(proxy.port)
    client.close()
    assert proxy.cuts > 0.9 * CUT_SHARE * len(batches)
    assert numbers_in(server, "log") == list(range(MESSAGES))
    assert len(set(ids)) == MESSAGES  # each was answered with the ID of its own entry
    facts = server.call("XINFO", "STREAM", "log")
    assert isinstance(facts, list)
    told = dict(zip(facts[::2], facts[1::2], strict=True))
    assert told[b"iids-added"] == MESSAGES
    assert told[b"iids-duplicates"] == proxy.cuts * DEPTH


def test_redis_py_retries_by_itself(server: ServerProcess, proxy: CuttingProxy) -> None:
    with redis.Redis(port=proxy.port, protocol=2, retry=Retry(NoBackoff(), 50)) as r:
        for n in range(200):
            r.xadd("log", {"n": n}, idmp=("producer", b"%d" % n))
        for n in range(200, 400):
            r.xadd("log", {"n": n}, idmpauto="producer")
    assert proxy.cuts > 40
    assert numbers_in(server, "log") == list(range(400))


def test_without_idmp_a_retry_adds_twice(server: ServerProcess, proxy: CuttingProxy) -> None:
    """What the proxy does is the real thing."""
    client = RawClient(proxy.port)
    for number in range(200):
        while True:
            try:
                client.call("XADD", "log", "*", "n", number)
                break
            except OSError:
                client.close()
                client = RawClient(proxy.port)
    client.close()
    assert len(numbers_in(server, "log")) == 200 + proxy.cuts > 210


def test_redis_py_knows_the_arguments(r: Client) -> None:
    first = r.xadd("s", {"f": "v"}, idmp=("p", b"i"))
    assert r.xadd("s", {"g": "w"}, idmp=("p", b"i")) == first
    assert r.xadd("s", {"f": "v"}, idmp=("q", b"i")) != first
    content = r.xadd("s", {"a": 1, "b": 2}, idmpauto="p")
    assert r.xadd("s", {"b": 2, "a": 1}, idmpauto="p", maxlen=1) == content
    assert r.xadd("none", {"f": "v"}, idmpauto="p", nomkstream=True) is None
    assert r.xlen("s") == 3
    told = r.xinfo_stream("s")
    assert (told["pids-tracked"], told["iids-tracked"]) == (2, 3)
    assert (told["iids-added"], told["iids-duplicates"]) == (3, 2)
    assert (told["idmp-duration"], told["idmp-maxsize"]) == (100, 100)
    assert r.xinfo_stream("s", full=True)["iids-tracked"] == 3
    assert r.xcfgset("s", idmp_duration=200, idmp_maxsize=50)
    told = r.xinfo_stream("s")
    assert (told["idmp-duration"], told["idmp-maxsize"], told["iids-tracked"]) == (200, 50, 0)
    with pytest.raises(redis.ResponseError, match="IDMP requires a non-empty producer ID"):
        r.xadd("s", {"f": "v"}, idmp=("", b"i"))
    limits = r.execute_command("XIDMP", "CFGGET", "s")
    assert limits in ({"duration": 200, "maxsize": 50}, ["duration", 200, "maxsize", 50])
