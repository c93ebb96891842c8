"""The port of metrics: HTTP, bad visitors, and what CONFIG SET does to it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support import metrics
from support.build import environment
from support.client import WireError
from support.process import ServerProcess, free_port
from support.waiting import wait_until

pytest.importorskip("prometheus_client", reason="only with the extra `metrics`")
pytest.importorskip("h11", reason="only with the extra `metrics`")

Start = Callable[..., ServerProcess]


@pytest.fixture
def scraped(fresh_server: Start) -> tuple[ServerProcess, int]:
    port = free_port()
    return fresh_server("--metrics-port", str(port)), port


def visit(port: int) -> socket.socket:
    visitor = socket.create_connection(("127.0.0.1", port), timeout=30)
    visitor.settimeout(30)
    return visitor


def read_all(visitor: socket.socket) -> bytes:
    """What comes until the connection is closed."""
    found = b""
    while True:
        try:
            more = visitor.recv(1 << 16)
        except ConnectionResetError:
            return found
        if not more:
            return found
        found += more


def test_what_is_answered(scraped: tuple[ServerProcess, int]) -> None:
    _, port = scraped
    assert metrics.get(port)[0] == 200
    assert metrics.get(port, "/metrics?a=b")[0] == 200
    assert metrics.get(port, method="HEAD") == (200, "")
    assert metrics.get(port, "/")[0] == 404
    assert metrics.get(port, "/metrics/more")[0] == 404
    assert metrics.get(port, method="POST")[0] == 405


def test_one_connection_asks_again_and_again(scraped: tuple[ServerProcess, int]) -> None:
    """Prometheus keeps its connection; requests that come at once are answered in order."""
    _, port = scraped
    with visit(port) as visitor:
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        visitor.sendall(
            request * 3 + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        )
        assert read_all(visitor).count(b"HTTP/1.1 200") == 4


def test_half_a_connection_is_answered(scraped: tuple[ServerProcess, int]) -> None:
    _, port = scraped
    with visit(port) as visitor:
        visitor.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        visitor.shutdown(socket.SHUT_WR)
        assert read_all(visitor).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "garbage",
    [
        b"*1\r\n$4\r\nPING\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\r\nno header\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n\r\n",  # without a host
        b"\x00" * 100 + b"\r\n\r\n",
        os.urandom(20_000),
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20_000,
        b"GET /" + b"x" * 20_000,
    ],
)
def test_garbage_is_refused_and_disconnected(
    scraped: tuple[ServerProcess, int], garbage: bytes
) -> None:
    server, port = scraped
    with visit(port) as visitor:
        visitor.sendall(garbage)
        answer = read_all(visitor)
        assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    assert server.call("PING") == b"PONG"
    assert metrics.get(port)[0] == 200


def test_who_is_slow_with_a_request_is_disconnected(fresh_server: Start, tmp_path: Path) -> None:
    server, port = impatient(fresh_server, tmp_path)
    with visit(port) as visitor:
        visitor.sendall(b"GET /met")
        assert read_all(visitor) == b""
    with visit(port) as visitor:
        assert read_all(visitor) == b""
    with visit(port) as visitor:  # a body that does not end
        visitor.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1")
        assert read_all(visitor) == b""
    assert server.call("PING") == b"PONG"


def test_who_does_not_read_is_disconnected(fresh_server: Start, tmp_path: Path) -> None:
    server, port = impatient(fresh_server, tmp_path)
    for number in range(900):
        server.call(
            "XGROUP", "CREATE", f"a-long-name-of-a-stream-{number:090}", "g", "0", "MKSTREAM"
        )
    with socket.socket() as visitor:
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        visitor.settimeout(30)
        visitor.connect(("127.0.0.1", port))
        visitor.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 8)
        wait_until(lambda: connections(server, port) == 1)
        wait_until(lambda: connections(server, port) == 0)
    assert metrics.get(port)[0] == 200


def impatient(fresh_server: Start, folder: Path) -> tuple[ServerProcess, int]:
    """A server whose patience with visitors is half a second."""
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'headrace.metrics.wing':\n"
        "            sys.meta_path.remove(self)\n"
        "            from headrace.metrics import endpoint\n"
        "            endpoint.REQUEST_S = endpoint.ANSWER_S = 0.5\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    port = free_port()
    known = environment().get("PYTHONPATH", "")
    variables = {"PYTHONPATH": f"{folder}:{known}" if known else str(folder)}
    return fresh_server("--metrics-port", str(port), environment=variables), port


def connections(server: ServerProcess, port: int) -> int:
    """How many connections the server has at a port."""
    found = Path(f"/proc/{server.pid}/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in found]
    here = f"0100007F:{port:04X}"
    return sum(each[1] == here and each[3] in ("01", "08") for each in fields)


def test_there_are_not_more_connections_than_so_many(scraped: tuple[ServerProcess, int]) -> None:
    _, port = scraped
    visitors = [visit(port) for _ in range(16)]
    wait_until(lambda: b" 503" in asked(port))
    for visitor in visitors:
        visitor.close()
    wait_until(lambda: b" 200" in asked(port))


def asked(port: int) -> bytes:
    with visit(port) as visitor:
        visitor.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        return read_all(visitor)[:16]


def test_many_ask_at_once_while_commands_run(scraped: tuple[ServerProcess, int]) -> None:
    """Streams come and go during scrapes."""
    server, port = scraped
    for number in range(300):
        server.call("XGROUP", "CREATE", f"s:{number}", "g", "0", "MKSTREAM")
    failed: list[object] = []

    def ask() -> None:
        for _ in range(5):
            status, page = metrics.get(port)
            if status != 200 or "redis_up 1" not in page:
                failed.append(page)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    number = 0
    while any(thread.is_alive() for thread in threads):
        name = f"s:{number % 300}"
        server.call("XGROUP", "DESTROY", name, "g")
        server.call("XGROUP", "CREATE", name, "other", "0")
        server.call("DEL", name)
        server.call("XGROUP", "CREATE", name, "g", "0", "MKSTREAM")
        number += 1
    assert failed == []
    assert number > 0


# The port


def refused(port: int) -> bool:
    try:
        visit(port).close()
    except ConnectionRefusedError:
        return True
    return False


def test_config_set_opens_moves_and_closes_it(fresh_server: Start) -> None:
    server = fresh_server()
    first, second = free_port(), free_port()
    assert server.call("CONFIG", "SET", "metrics-port", str(first)) == b"OK"
    assert metrics.get(first)[0] == 200
    kept = visit(first)
    assert server.call("CONFIG", "SET", "metrics-port", str(second)) == b"OK"
    assert metrics.get(second)[0] == 200
    assert refused(first)
    assert server.call("CONFIG", "SET", "metrics-bind", "127.0.0.1") == b"OK"
    assert metrics.get(second)[0] == 200
    assert server.call("CONFIG", "SET", "metrics-port", "0") == b"OK"
    assert refused(second)
    assert read_all(kept) == b""
    kept.close()
    assert server.call("CONFIG", "SET", "metrics-port", str(first)) == b"OK"
    assert metrics.get(first)[0] == 200


def test_config_set_to_a_taken_port_changes_nothing(scraped: tuple[ServerProcess, int]) -> None:
    server, port = scraped
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(WireError, match="Unable to listen on this port"):
            server.call("CONFIG", "SET", "metrics-port", str(taken.getsockname()[1]))
    assert server.call("CONFIG", "GET", "metrics-port") == [b"metrics-port", b"%d" % port]
    assert metrics.get(port)[0] == 200
    with pytest.raises(WireError, match="Unable to listen"):
        server.call("CONFIG", "SET", "metrics-bind", "192.0.2.1")
    assert metrics.get(port)[0] == 200


def test_the_first_port_by_config_set_may_be_taken(fresh_server: Start) -> None:
    server = fresh_server()
    with pytest.raises(WireError, match="Unable to listen on this port"):
        server.call("CONFIG", "SET", "metrics-port", str(server.port))
    assert server.call("CONFIG", "GET", "metrics-port") == [b"metrics-port", b"0"]
    port = free_port()
    assert server.call("CONFIG", "SET", "metrics-port", str(port)) == b"OK"
    assert metrics.get(port)[0] == 200


def test_a_taken_port_ends_the_start(fresh_server: Start) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = fresh_server("--metrics-port", str(port), start=False)
        server.spawn()
        assert server.wait() == 1
    assert f"Could not create server TCP listening socket 127.0.0.1:{port}" in server.log()
    assert f"Failed listening on port {port} (metrics), aborting" in server.log()


def test_what_is_missing_is_said(fresh_server: Start, tmp_path: Path) -> None:
    (tmp_path / "h11.py").write_text("raise ModuleNotFoundError('No h11', name='h11')\n")
    known = environment().get("PYTHONPATH", "")
    variables = {"PYTHONPATH": f"{tmp_path}:{known}" if known else str(tmp_path)}
    sentence = "there is no h11 here; pip install 'headrace[metrics]' brings it"
    server = fresh_server(environment=variables)
    with pytest.raises(WireError) as refusal:
        server.call("CONFIG", "SET", "metrics-port", str(free_port()))
    assert sentence in str(refusal.value)
    assert server.call("CONFIG", "GET", "metrics-port") == [b"metrics-port", b"0"]
    other = fresh_server("--metrics-port", str(free_port()), environment=variables, start=False)
    other.spawn()
    assert other.wait() == 1
    assert sentence in other.log()


def test_metrics_are_there_while_data_is_loaded(fresh_server: Start) -> None:
    port = free_port()
    server = fresh_server("--appendonly", "yes", "--metrics-port", str(port))
    server.call("XADD", "s", "*", "f", "v")
    server.restart(crash=True)
    page = metrics.scrape(port)
    assert metrics.value(page, "redis_loading_dump_file") == 0
    assert metrics.value(page, "redis_stream_length", db="db0", stream="s") == 1


def test_the_event_loop_is_watched(scraped: tuple[ServerProcess, int]) -> None:
    _, port = scraped
    deadline = time.monotonic() + 30
    name = "headrace_eventloop_delay_seconds_count"
    while metrics.value(metrics.scrape(port), name) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_server_ends_while_metrics_are_read(
    scraped: tuple[ServerProcess, int],
) -> None:
    server, port = scraped
    for number in range(200):
        server.call("XGROUP", "CREATE", f"s:{number}", "g", "0", "MKSTREAM")
    request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    with visit(port) as silent, visit(port) as asking, visit(port) as answered:
        answered.sendall(request)
        assert answered.recv(1)
        asking.sendall(request * 50)
        server.stop()
        assert read_all(silent) == b""
