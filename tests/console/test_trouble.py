"""Servers that are not there, go away, are slow, half closed, encrypted, or allow half of it."""

from __future__ import annotations

import html
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from support.certificates import Certificates
from support.consoles import Console, Shop
from support.process import ServerProcess, free_port
from support.waiting import wait_until

pytestmark = pytest.mark.once
Show = Callable[..., Console]
Start = Callable[..., ServerProcess]


def test_a_server_that_is_not_there_and_then_is(show: Show, fresh_server: Start) -> None:
    port = free_port()
    console = show(f"redis://127.0.0.1:{port}")
    assert "The server does not answer" in console.get("./")
    assert "The server does not answer" in console.get("stream?key=orders", 503)
    server = fresh_server(port=port)
    server.call("XADD", "orders", "1-1", "a", "b")
    wait_until(lambda: "orders" in console.get("./"))
    assert "1-1" in console.get("stream?key=orders")


def test_a_server_that_goes_away_and_comes_back(show: Show, fresh_server: Start) -> None:
    server = fresh_server("--appendonly", "yes", port=free_port())
    server.call("XADD", "orders", "1-1", "a", "b")
    console = show(f"redis://127.0.0.1:{server.port}")
    wait_until(lambda: "orders" in console.get("./"))
    server.stop()
    wait_until(lambda: "The server does not answer" in console.get("./"))
    assert "orders" in console.get("./")  # as it was before
    assert "This page tries again by itself" in console.get("group?key=orders&group=g", 503)
    server.start()
    wait_until(lambda: "does not answer:" not in console.get("./"))
    assert "1-1" in console.get("stream?key=orders")


@pytest.fixture(params=["silent", "half-closed", "closing", "nonsense"])
def bad_server(request: pytest.FixtureRequest) -> Iterator[int]:
    """Something that is no good server: it says nothing, ends its half, closes, or talks HTTP."""
    listener = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            kept.append(peer)
            if request.param == "half-closed":
                peer.shutdown(socket.SHUT_WR)
            elif request.param == "closing":
                peer.close()
            elif request.param == "nonsense":
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    thread = threading.Thread(target=serve)
    thread.start()
    port: int = listener.getsockname()[1]
    yield port
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
    for peer in kept:
        peer.close()


def test_a_bad_server_is_told_and_harms_nobody(bad_server: int, show: Show) -> None:
    console = show(f"redis://127.0.0.1:{bad_server}")
    assert "The server does not answer" in console.get("stream?key=orders", 503)
    assert "500" not in console.log()


def test_rights_for_half_of_it_show_that_half(our_shop: Shop, show: Show) -> None:
    server = our_shop.server
    rules = "on >p ~orders ~emails +xrange +xrevrange +xlen +xinfo +xpending +scan +ping"
    server.call("ACL", "SETUSER", "half", "reset", *rules.split())
    console = show(f"redis://half:p@127.0.0.1:{server.port}")
    wait_until(lambda: "emails" in console.get("./"))
    assert "240 entries" not in console.get("./")
    page = console.get("stream?key=orders")
    assert "billing" in page
    page = html.unescape(console.get("group?key=orders&group=billing"))
    assert "holds <b>9 entries</b>" in page
    stuck = page.split('name="id" value="')[1].partition('"')[0]
    answer = console.post("claim?key=orders&group=billing", id=[stuck], consumer="ann")
    assert "no permissions to run the 'xclaim'" in html.unescape(answer.text)
    page = html.unescape(console.get("group?key=orders&group=billing"))
    assert "The user of --url may not run XCLAIM." in page
    assert "No permissions to access a key" in console.get("stream?key=payments")
    server.call("ACL", "SETUSER", "half", "-scan")
    console = show(f"redis://half:p@127.0.0.1:{server.port}")
    wait_until(lambda: "may not list keys" in console.get("./"))
    assert "billing" in console.get("stream?key=orders")
    server.call("ACL", "DELUSER", "half")


def test_a_user_without_rights_sees_why(our_shop: Shop, show: Show) -> None:
    our_shop.server.call("ACL", "SETUSER", "nobody", "reset", "on", ">p")
    console = show(f"redis://nobody:p@127.0.0.1:{our_shop.server.port}")
    for place in (
        "./",
        "stream?key=orders",
        "group?key=orders&group=billing",
        "regions",
        "cluster",
    ):
        page = html.unescape(console.get(place))
        assert (
            "no permissions" in page
            or "may not ask" in page
            or "may ask" in page
            or "alone" in page
        ), place
    our_shop.server.call("ACL", "DELUSER", "nobody")


def test_an_encrypted_server(certificates: Certificates, show: Show, fresh_server: Start) -> None:
    tls_port = free_port()
    options = (*certificates.options(), "--tls-port", str(tls_port))
    server = fresh_server(*options, "--requirepass", "p")
    with server.client() as client:
        client.call("AUTH", "p")
        client.call("XADD", "orders", "1-1", "a", "b")
    url = f"rediss://:p@localhost:{tls_port}"
    made = certificates.client
    shown = ("--cert", str(made.file), "--key", str(made.key))
    console = show(url, "--cacert", str(certificates.authority.file), *shown)
    assert "1-1" in console.get("stream?key=orders")
    console = show(url, *shown)
    assert "certificate" in console.get("stream?key=orders", 503).lower()
    console = show(url, "--insecure", *shown)
    assert "1-1" in console.get("stream?key=orders")


def test_a_replica_shows_its_master(show: Show, fresh_server: Start) -> None:
    master = fresh_server("--repl-diskless-sync-delay", "0")
    replica = fresh_server("--replicaof", f"127.0.0.1 {master.port}")
    wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
    console = show(f"redis://127.0.0.1:{replica.port}")
    page = console.get("cluster")
    assert f"127.0.0.1:{master.port}" in page
    master.call("XADD", "orders", "1-1", "a", "b")
    wait_until(lambda: "1-1" in console.get("stream?key=orders"))
    answer = console.post("append?key=orders", name=["a"], value=["b"])
    assert "read only replica" in answer.text
