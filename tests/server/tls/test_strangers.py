"""Peers that do not speak TLS, or badly: they go, and nobody else notices."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import struct
import subprocess
import time

import pytest

from support.certificates import Certificates
from support.client import RawClient, encode
from support.encrypted import Encrypted, Start
from support.programs import program
from support.waiting import DEADLINE_S, wait_until

HELLO_HEAD = bytes.fromhex("160301")


@pytest.fixture
def server(encrypted: Start) -> Encrypted:
    return encrypted("--loglevel", "verbose")


def closed_without(client: RawClient) -> bytes:
    """Return what comes before the end."""
    return client.rest_until_close()


@pytest.mark.parametrize(
    "sent",
    [
        encode("PING"),
        b"PING\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(64),
        HELLO_HEAD + b"\xff\xff" + bytes(70_000),
        HELLO_HEAD + b"\x00\x04\x01\xff\xff\xff" + bytes(100),
        os.urandom(100_000),
    ],
    ids=["resp", "inline", "http", "zeros", "huge record", "huge hello", "noise"],
)
def test_what_is_no_handshake(server: Encrypted, sent: bytes) -> None:
    with server.client() as witness, RawClient(server.port) as stranger:
        stranger.send(sent)
        assert b"PONG" not in closed_without(stranger)
        assert witness.call("PING") == b"+PONG\r\n"
    server.process.wait_for_log("Error accepting a client connection: ")
    assert server.process.info("stats")["total_commands_processed"] != "0"


def test_garbage_behind_the_handshake(server: Encrypted) -> None:
    with server.client() as witness, server.client() as stranger:
        assert stranger.call("PING") == b"+PONG\r\n"
        plain = socket.socket(fileno=os.dup(stranger.sock.fileno()))
        with plain:
            plain.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
        with pytest.raises((OSError, ConnectionError)):
            stranger.read()
        assert witness.call("PING") == b"+PONG\r\n"
    wait_until(lambda: server.process.info("clients")["connected_clients"] == "1")


def test_a_reset_in_the_middle(server: Encrypted) -> None:
    linger = struct.pack("ii", 1, 0)
    with server.client() as witness:
        for sent in (b"", HELLO_HEAD, HELLO_HEAD + b"\x01\x00\x01"):
            with RawClient(server.port) as stranger:
                stranger.send(sent)
                stranger.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        with server.client() as stranger:
            stranger.send(encode("ECHO", "x" * 100_000))
            stranger.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        assert witness.call("PING") == b"+PONG\r\n"
        wait_until(lambda: server.process.info("clients")["connected_clients"] == "2")


def test_a_handshake_that_stops(server: Encrypted) -> None:
    with server.client() as witness, RawClient(server.port) as stranger:
        started = time.monotonic()
        stranger.send(HELLO_HEAD + b"\x01\x00\x01")
        assert closed_without(stranger) == b""
        assert time.monotonic() - started > 5
        assert witness.call("PING") == b"+PONG\r\n"
    assert "the handshake took too long" in server.process.log()


def test_an_encrypted_client_at_the_plain_port(
    server: Encrypted, certificates: Certificates
) -> None:
    with server.process.client() as witness:
        with pytest.raises(OSError, match=r"."):
            RawClient(server.process.port, tls=certificates.context(), timeout_s=1.0)
        assert witness.call("PING") == b"+PONG\r\n"


def test_many_handshakes_at_once(server: Encrypted, certificates: Certificates) -> None:
    """Others are served between any two of them.

    The system may have us wait while the server goes on, so it may need several tries.
    """
    assert any(most_between_two_replies(server, certificates) < 0.2 for _ in range(10))


def most_between_two_replies(server: Encrypted, certificates: Certificates) -> float:
    """The part of the processor time for many handshakes at once that somebody else waited for."""
    context = certificates.context(certificates.client)
    count = 1000
    began_s = server.process.cpu_s()
    with server.client() as witness:
        sockets = []
        for _ in range(count):
            opened = socket.create_connection(("127.0.0.1", server.port))
            secured = context.wrap_socket(opened, do_handshake_on_connect=False)
            secured.setblocking(False)
            sockets.append(secured)
        for each in sockets:
            with contextlib.suppress(ssl.SSLWantReadError):
                each.do_handshake()  # which sends the first message
        most_s = 0.0
        for _ in range(50):
            before_s = server.process.cpu_s()
            assert witness.call("PING") == b"+PONG\r\n"
            most_s = max(most_s, server.process.cpu_s() - before_s)
        for each in sockets:
            each.settimeout(DEADLINE_S)
            each.do_handshake()
        wait_until(lambda: server.process.info("clients")["connected_clients"] == str(count + 2))
        spent_s = server.process.cpu_s() - began_s
        for each in sockets:
            each.close()
    wait_until(lambda: server.process.info("clients")["connected_clients"] == "1")
    return most_s / spent_s


def test_a_client_that_wants_to_negotiate_again(
    server: Encrypted, certificates: Certificates
) -> None:
    """TLS up to 1.2 lets a client ask for another handshake, and another: we do not."""
    command = [
        *(program("openssl"), "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2"),
        *("-cert", str(certificates.client.file), "-key", str(certificates.client.key)),
    ]
    with server.client() as witness:
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as stranger:
            assert stranger.stdin is not None
            wait_until(lambda: server.process.info("clients")["connected_clients"] == "3")
            stranger.stdin.write(b"R\n")  # which makes it ask
            stranger.stdin.flush()
            said, _ = stranger.communicate(timeout=DEADLINE_S)
        assert b"RENEGOTIATING" in said
        assert b"no renegotiation" in said
        assert witness.call("PING") == b"+PONG\r\n"


def test_one_too_many(encrypted: Start) -> None:
    server = encrypted("--maxclients", "3")
    with server.client() as witness, RawClient(server.port), RawClient(server.port):
        assert witness.call("PING") == b"+PONG\r\n"
        with RawClient(server.port) as stranger:
            assert closed_without(stranger) == b""
        info = witness.call("INFO", "stats")
        assert b"\r\nrejected_connections:1\r\n" in info
