"""Everything that a client may do, over an encrypted connection."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl

import pytest
from conftest import Factory

from support.certificates import Certificates
from support.client import RawClient, encode
from support.encrypted import Encrypted, Start
from support.process import ServerProcess
from support.stopping import stopped
from support.waiting import wait_until

MB = 1 << 20


@pytest.fixture
def server(encrypted: Start) -> Encrypted:
    return encrypted()


def test_both_ports_serve(server: Encrypted) -> None:
    with server.client() as client, server.process.client() as plain:
        assert client.call("SET", "k", "v") == b"+OK\r\n"
        assert plain.call("GET", "k") == b"$1\r\nv\r\n"
        assert client.call("HELLO", 3).startswith(b"%")
        assert client.call("QUIT") == b"+OK\r\n"
        assert client.rest_until_close() == b""
    info = server.process.info("server")
    assert info["tcp_port"] == str(server.process.port)
    assert info["listener2"].startswith("name=tls,bind=127.0.0.1")
    assert info["listener2"].endswith(f",port={server.port}")


def test_only_encrypted(fresh_server: Factory, certificates: Certificates, tls_port: int) -> None:
    process = fresh_server(
        *("--port", "0", "--tls-port", str(tls_port)), *certificates.options(), start=False
    )
    process.spawn()
    server = Encrypted(process, tls_port, certificates)
    process.wait_for_log("Ready to accept connections")
    with server.client() as client:
        info = client.call("INFO", "server").decode()
        assert f"tcp_port:{tls_port}\r\n" in info
        assert "listener0" not in info
        address = f":{client.sock.getsockname()[1]} laddr=127.0.0.1:{tls_port}".encode()
        assert address in client.call("CLIENT", "LIST")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_long_requests_and_replies(
    server: Encrypted, certificates: Certificates, version: ssl.TLSVersion
) -> None:
    context = certificates.context(certificates.client)
    context.minimum_version = context.maximum_version = version
    value = bytes(range(256)) * (40 * MB // 256)
    with RawClient(server.port, tls=context) as client:
        assert client.call("SET", "k", value) == b"+OK\r\n"
        assert client.call("GET", "k") == b"$%d\r\n%b\r\n" % (len(value), value)
        assert client.call("STRLEN", "k") == b":%d\r\n" % len(value)


def test_a_long_pipeline(server: Encrypted) -> None:
    count = 200_000
    with server.client(timeout_s=60.0) as client:
        client.sock.setblocking(False)
        request = encode("RPUSH", "list", "x" * 30) * count
        sent = 0
        received = bytearray()
        while sent < len(request) or not received.endswith(b":%d\r\n" % count):
            with contextlib.suppress(ssl.SSLWantWriteError, ssl.SSLWantReadError):
                sent += client.sock.send(request[sent : sent + MB])
            with contextlib.suppress(ssl.SSLWantReadError):
                received += client.sock.recv(MB)
        assert received.count(b"\r\n") == count


def test_one_byte_at_a_time(server: Encrypted) -> None:
    with server.client() as client:
        client.send_slowly(encode("SET", "k", "value"))
        assert client.read() == b"+OK\r\n"


def test_blocking_and_publishing(server: Encrypted) -> None:
    with server.client() as client, server.client() as other, server.client(resp3=True) as third:
        client.send_command("BLPOP", "list", 0)
        wait_until(lambda: server.process.info("clients")["blocked_clients"] == "1")
        other.call("RPUSH", "list", "x")
        assert client.read() == b"*2\r\n$4\r\nlist\r\n$1\r\nx\r\n"
        third.call("SUBSCRIBE", "news")
        other.call("PUBLISH", "news", "hello")
        assert third.read() == b">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n"
        client.call("MONITOR")
        other.call("SET", "k", "v")
        assert client.read().endswith(b'"SET" "k" "v"\r\n')


def test_kill_and_pause(server: Encrypted) -> None:
    with server.client() as client, server.process.client() as other:
        number = client.call_parsed("CLIENT", "ID")
        other.call("CLIENT", "PAUSE", 100_000, "WRITE")
        client.send_command("SET", "k", "v")
        assert client.silent()
        other.call("CLIENT", "UNPAUSE")
        assert client.read() == b"+OK\r\n"
        assert other.call("CLIENT", "KILL", "ID", str(number)) == b":1\r\n"
        assert client.rest_until_close() == b""


def test_output_that_nobody_reads_counts(server: Encrypted) -> None:
    value = "x" * MB
    with server.client() as client, server.process.client() as other:
        other.call("SET", "k", value)
        number = client.call_parsed("CLIENT", "ID")
        client.send(encode("GET", "k") * 40)

        def held() -> int:
            line = other.call("CLIENT", "LIST", "ID", str(number)).decode()
            return int(line.partition(" omem=")[2].partition(" ")[0])

        wait_until(lambda: held() > 8 * MB)
        for _ in range(40):
            assert len(client.read()) > MB
        wait_until(lambda: held() == 0)


def test_a_reader_that_is_too_slow_is_dropped(server: Encrypted) -> None:
    with server.client() as client, server.process.client() as other:
        other.call("CONFIG", "SET", "client-output-buffer-limit", "normal 2mb 0 0")
        other.call("SET", "k", "x" * MB)
        client.send(encode("GET", "k") * 20)
        wait_until(lambda: b"cmd=get" not in other.call("CLIENT", "LIST"))
        with contextlib.suppress(OSError):
            assert client.rest_until_close().count(b"$") < 20
        assert other.call("PING") == b"+PONG\r\n"


def test_an_end_is_answered_first(server: Encrypted) -> None:
    """The peer ends its direction, by TLS's notice or without, and still has its replies."""
    with server.client() as client:
        client.send(encode("SET", "k", "v") + encode("GET", "k"))
        with socket.socket(fileno=os.dup(client.sock.fileno())) as wire:
            wire.shutdown(socket.SHUT_WR)
        assert client.rest_until_close() == b"+OK\r\n$1\r\nv\r\n"
    with server.client() as client:
        client.call("PING")
        assert isinstance(client.sock, ssl.SSLSocket)
        client.sock.unwrap()  # which the server answers
    wait_until(lambda: server.process.info("clients")["connected_clients"] == "1")


def is_ended_in_form(client: RawClient) -> bool:
    """Return whether the server ends a connection by TLS's own notice."""
    assert isinstance(client.sock, ssl.SSLSocket)
    client.sock.suppress_ragged_eofs = False  # type: ignore[attr-defined]
    try:
        client.rest_until_close()
    except ssl.SSLEOFError:
        return False
    return True


def ends(server: Encrypted) -> list[bool]:
    """Return whether a server ends connections with notice, each in another way."""
    seen = []
    asked = [
        encode("QUIT"),
        encode("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"),
        b"*1\r\n#\r\n",
        encode("SETRANGE", "k", 2 * MB, "x") + encode("GET", "k"),  # more than may wait
    ]
    server.process.call("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0")
    for request in asked:
        with server.client() as client:
            client.send(request)
            seen.append(is_ended_in_form(client))
    with server.client() as client:
        number = client.call_parsed("CLIENT", "ID")
        assert server.process.call("CLIENT", "KILL", "ID", int(str(number))) == 1
        seen.append(is_ended_in_form(client))
    with server.client() as client:
        client.call("PING")
        server.process.call("CONFIG", "SET", "timeout", "1")
        seen.append(is_ended_in_form(client))
    return seen


def test_an_end_has_its_notice(server: Encrypted, real: Encrypted) -> None:
    """However it comes about: without one a client has to take it for an attack."""
    assert ends(server) == ends(real) == [True] * 6
    with server.client() as client:
        client.send(encode("SHUTDOWN", "NOSAVE"))
        assert is_ended_in_form(client)


def test_scripts_at_work_do_not_keep_others_waiting(encrypted: Start) -> None:
    server = encrypted("--busy-reply-threshold", "50")
    with server.client() as client, server.client() as other:
        other.call("PING")
        client.send_command("EVAL", "while true do end", 0)
        wait_until(lambda: other.call("PING").startswith(b"-BUSY"))
        with server.client() as newcomer:
            assert newcomer.call("PING").startswith(b"-BUSY")
            assert newcomer.call("SCRIPT", "KILL") == b"+OK\r\n"
            assert client.read().startswith(b"-ERR Script killed by user")
            assert newcomer.call("PING") == b"+PONG\r\n"
            assert newcomer.call("SET", "k", "x" * MB) == b"+OK\r\n"
            assert len(newcomer.call("GET", "k")) > MB
        assert other.call("PING") == b"+PONG\r\n"


@pytest.mark.parametrize("step", ["connected", "greeted", "with the script"])
def test_handshakes_that_are_under_way_when_a_script_begins(
    encrypted: Start, certificates: Certificates, step: str
) -> None:
    """They go on while it runs."""
    server = encrypted("--busy-reply-threshold", "50")
    context = certificates.context(certificates.client)
    with server.client() as client, server.client() as other, contextlib.ExitStack() as stack:
        assert client.call("PING") == other.call("PING") == b"+PONG\r\n"
        if step == "with the script":
            stack.enter_context(stopped(server.process))
        opened = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        newcomer = context.wrap_socket(opened, do_handshake_on_connect=False)
        if step != "connected":
            newcomer.setblocking(False)
            with contextlib.suppress(ssl.SSLWantReadError):
                newcomer.do_handshake()  # which sends the first message
            newcomer.settimeout(30)
        if step == "greeted":
            select.select([newcomer], [], [], 30)  # it has been answered
        elif step == "connected":
            assert other.call("PING") == b"+PONG\r\n"
        client.send_command("EVAL", "while true do end", 0)
        stack.close()
        wait_until(lambda: other.call("PING").startswith(b"-BUSY"))
        newcomer.do_handshake()
        newcomer.sendall(encode("PING"))
        assert newcomer.recv(100).startswith(b"-BUSY")
        newcomer.sendall(encode("SCRIPT", "KILL"))
        assert newcomer.recv(100) == b"+OK\r\n"
        assert client.read().startswith(b"-ERR Script killed by user")
        newcomer.sendall(encode("SET", "k", "v"))
        assert newcomer.recv(100) == b"+OK\r\n"
        newcomer.close()
        wait_until(lambda: server.process.info("clients")["connected_clients"] == "3")


def test_appended_before_it_is_answered(encrypted: Start) -> None:
    server = encrypted("--appendonly", "yes", "--appendfsync", "always")
    with server.client() as client:
        for number in range(100):
            assert client.call("RPUSH", "l", str(number)) == b":%d\r\n" % (number + 1)
    assert isinstance(server.process, ServerProcess)
    server.process.restart(crash=True)
    with server.client() as client:
        assert client.call("LLEN", "l") == b":100\r\n"
