"""A short campaign of malformed requests; ``make fuzz ARGS=--malformed`` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Factory

from support.client import encode
from support.fuzz.malformed import campaign


@pytest.mark.parametrize("seed", [1, 2])
def test_malformed_requests(fresh_server: Factory, seed: int) -> None:
    server = fresh_server("--enable-debug-command", "yes")
    campaign(server.port, server.pid, 20_000, seed)
    assert server.running
    server.check_log()
    assert server.call("PING") == b"PONG"


def test_headers_that_promise_memory(fresh_server: Factory) -> None:
    """What a peer announces and does not send takes no memory and no time."""
    server = fresh_server()
    clients = [server.client() for _ in range(20)]
    for client in clients:
        client.send(b"*2147483647\r\n$536870912\r\nabc")
    for client in clients[:10]:
        client.send(b"x" * 1000)
    assert server.call("PING") == b"PONG"
    resident = [
        int(line.split()[1]) * 1024
        for line in Path(f"/proc/{server.pid}/status").read_text().splitlines()
        if line.startswith("VmRSS:")
    ]
    assert resident[0] < 200 * 2**20
    for client in clients:
        client.close()
    with server.client() as client:
        client.send(encode("PING") * 3 + b"*1\r\n*2147483647\r\n")
        assert client.rest_until_close() == (
            b"+PONG\r\n" * 3 + b"-ERR Protocol error: expected '$', got '*'\r\n"
        )
