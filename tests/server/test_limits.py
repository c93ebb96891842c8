"""What one client can cost: pipelines, large words, replies that nobody reads, input that waits."""

from __future__ import annotations

import contextlib
import re
import resource
import socket
import time
from pathlib import Path

import pytest
from conftest import Factory

from support.certificates import Certificates
from support.client import RawClient, encode
from support.process import Pair, Process, ServerProcess, claim_port
from support.waiting import wait_until

MB = 2**20


def memory_bytes(process: Process) -> int:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError


def input_bytes(server: Process) -> int:
    """Return what the greatest of all query buffers holds."""
    listed = server.call("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    return max(int(size) for size in re.findall(rb"qbuf=(\d+)", listed))


def flood(client: RawClient, data: bytes, seconds: float) -> int:
    """Send without reading for as long as anything is taken; the number of bytes sent."""
    sent = 0
    client.sock.settimeout(0.3)
    deadline = time.monotonic() + seconds
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline:
            sent += client.sock.send(data)
    return sent


def test_ten_thousand_commands_in_one_write(client: RawClient) -> None:
    client.send(b"".join(encode("SET", f"k{number}", number) for number in range(10_000)))
    assert [client.read() for _ in range(10_000)] == [b"+OK\r\n"] * 10_000
    client.send(b"".join(encode("GET", f"k{number}") for number in range(10_000)))
    for number in range(10_000):
        assert client.read() == b"$%d\r\n%d\r\n" % (len(str(number)), number)


def test_ten_thousand_inline_commands(client: RawClient) -> None:
    client.send(b"PING\r\n" * 10_000)
    assert [client.read() for _ in range(10_000)] == [b"+PONG\r\n"] * 10_000


def test_one_byte_at_a_time(client: RawClient) -> None:
    client.send_slowly(encode("SET", "k", "v") + b"GET k\r\n" + encode("DEL", "k"))
    assert [client.read() for _ in range(3)] == [b"+OK\r\n", b"$1\r\nv\r\n", b":1\r\n"]


def test_a_large_word(client: RawClient) -> None:
    value = bytes(range(256)) * 4 * 16 * 1024  # 16 MB
    assert client.call("SET", "large", value) == b"+OK\r\n"
    assert client.call("GET", "large") == b"$%d\r\n%b\r\n" % (len(value), value)
    client.call("DEL", "large")


def test_longest_word_is_configured(server: ServerProcess, client: RawClient) -> None:
    client.call("CONFIG", "SET", "proto-max-bulk-len", "1mb")
    try:
        with server.client() as other:
            assert other.call("SET", "k", "x" * MB) == b"+OK\r\n"
            other.send(b"*2\r\n$3\r\nGET\r\n$%d\r\n" % (MB + 1))
            assert other.rest_until_close() == b"-ERR Protocol error: invalid bulk length\r\n"
    finally:
        client.call("CONFIG", "SET", "proto-max-bulk-len", "512mb")


def test_a_client_that_does_not_read_is_dropped(fresh_server: Factory) -> None:
    server = fresh_server(
        "--client-output-buffer-limit", "normal 8mb 0 0", debug=False, check_log=False
    )
    server.call("SET", "k", "x" * 100_000)
    before = memory_bytes(server)
    with server.client() as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(encode("GET", "k") * 2000)  # 200 MB of replies
        time.sleep(0.5)
        assert memory_bytes(server) - before < 64 * MB
        assert server.call("PING") == b"PONG"
    wait_until(lambda: server.info("clients")["connected_clients"] == "1")


def test_all_may_be_sent_before_the_first_reply_is_read(client: RawClient) -> None:
    """As clients do with a pipeline: far more than sockets hold, both ways."""
    words = [b"%06d" % number + b"x" * 1000 for number in range(40_000)]
    client.sock.settimeout(60)
    client.send(b"".join(encode("ECHO", word) for word in words))
    for word in words:
        assert client.read() == b"$1006\r\n%b\r\n" % word


def test_commands_wait_while_replies_do(fresh_server: Factory) -> None:
    """A client that does not read costs what it has sent and some of the replies, not all."""
    server = fresh_server(debug=False)
    server.call("SET", "k", "x" * 10_000)
    before = memory_bytes(server)
    with server.client() as client:
        client.sock.settimeout(60)
        client.send(encode("GET", "k") * 500_000)  # 5 GB of replies
        assert server.call("PING") == b"PONG"
        wait_until(lambda: input_bytes(server) > MB)
        assert memory_bytes(server) - before < 128 * MB
        # It reads after all, and gets what it asked for.
        reply = b"$10000\r\n" + b"x" * 10_000 + b"\r\n"
        for _ in range(5000):
            assert client.read() == reply


def test_input_of_a_client_that_does_not_read_is_bounded(fresh_server: Factory) -> None:
    server = fresh_server("--client-query-buffer-limit", "1mb", debug=False)
    server.call("SET", "k", "x" * 100_000)
    with server.client() as client:
        sent = flood(client, encode("GET", "k") * 1000, 10.0)
        assert sent < 16 * MB
        wait_until(lambda: server.info("stats")["client_query_buffer_limit_disconnections"] == "1")


def test_a_slow_subscriber_is_dropped(fresh_server: Factory) -> None:
    server = fresh_server("--client-output-buffer-limit", "pubsub 1mb 0 0", debug=False)
    with server.client() as slow, server.client() as fast, server.client() as publisher:
        slow.call("SUBSCRIBE", "news")
        fast.call("SUBSCRIBE", "news")
        message = "x" * 100_000
        deliveries = 0
        while publisher.call_parsed("PUBLISH", "news", message) == 2:
            assert fast.read().endswith(b"x\r\n")
            deliveries += 1
            assert deliveries < 500
        assert deliveries > 5
        assert server.info("stats")["client_output_buffer_limit_disconnections"] == "1"


def test_who_was_cut_off_is_listed_no_more(fresh_server: Factory) -> None:
    server = fresh_server(
        "--client-output-buffer-limit", "normal 1mb 0 0", debug=False, check_log=False
    )
    server.call("SET", "k", "x" * (2 * MB))
    with server.client() as looking:
        for number in range(1, 21):
            with server.client() as greedy:
                greedy.send(encode("GET", "k"))
                cut = False
                while not cut:  # both requests are run at once
                    stats, listed = looking.pipeline(("INFO", "stats"), ("CLIENT", "LIST"))
                    cut = b"output_buffer_limit_disconnections:%d\r\n" % number in stats
                    assert not cut or listed.count(b" addr=") == 1
                assert greedy.rest_until_close() == b""


def test_input_of_a_blocked_client_is_bounded(fresh_server: Factory) -> None:
    server = fresh_server("--client-query-buffer-limit", "1mb", debug=False)
    with server.client() as client:
        client.send_command("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        sent = flood(client, encode("PING") * 1000, 10.0)
        assert sent < 16 * MB
        wait_until(lambda: server.info("stats")["client_query_buffer_limit_disconnections"] == "1")


@pytest.mark.judge
@pytest.mark.parametrize(
    "data",
    [
        b"*x\r\n", b"*1\r\n$x\r\n", b"*1\r\n$-1\r\n", b"*1\r\n+OK\r\n", b"*2147483648\r\n",
        b'SET k "a\r\n', b"SET k 'a\r\n", b"x" * 100_000, b"*" + b"1" * 100_000,
        pytest.param(b'SET k "a"b\r\n', marks=pytest.mark.since(8, 0)),  # Valkey waits
        b"*1\r\n$600000000\r\n", b"PING\r\n*1\r\nPING\r\n",
        encode("PING") + b"*1\r\n:4\r\n", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n\r\n\r\n",
    ],
    ids=range(14),
)  # fmt: skip
def test_protocol_errors(pair: Pair, data: bytes) -> None:
    ends: list[bytes] = []
    for client in (pair.ours, pair.real):
        with contextlib.suppress(ConnectionError):
            client.send(data)
        ends.append(client.rest_until_close())
    assert ends[0] == ends[1]


WORDS_ALONE = [b'""\r\n', encode(""), encode("x" * 300)]  # no command


def test_a_length_without_an_end(client: RawClient) -> None:
    """Redis 8.10 waits for more of it."""
    client.send(b"*1\r\n$" + b"1" * 100_000)
    assert client.rest_until_close() == b"-ERR Protocol error: too big bulk count string\r\n"


@pytest.mark.judge
@pytest.mark.parametrize(
    "data",
    [
        b"\r\nPING\r\n", b"\n\n PING \n", b"*0\r\n*-5\r\nPING\r\n", b"ECHO 'a \\' b'\r\n",
        b'ECHO "\\x41\\n\\t\\"\\q"\r\n', b"ECHO a b c\r\n", b"'' x\r\n",
        b"nosuch 'a b'\r\n",
        encode("nosuch", b"\r\n\x00", "x" * 200), encode("x" * 300, *["y" * 50] * 9),
        encode("PING", "a", "b"), encode("config", "nosuch"), encode("GET"),
        *[pytest.param(word, marks=pytest.mark.since(8, 10)) for word in WORDS_ALONE],
    ],
    ids=range(16),
)  # fmt: skip
def test_odd_requests(pair: Pair, data: bytes) -> None:
    pair.both_send(data)


@pytest.mark.judge
@pytest.mark.since(8, 0)  # Valkey asks for a password first
def test_limits_before_auth(fresh_server: Factory, fresh_redis: Factory) -> None:
    servers = [fresh(("--requirepass"), "secret") for fresh in (fresh_server, fresh_redis)]
    fine = encode("AUTH", "x" * 16_384) + encode("AUTH", "secret") + encode("ECHO", "x" * 20_000)
    for data in (
        b"*11\r\n",
        b"*2\r\n$4\r\nAUTH\r\n$16385\r\n",
        encode("PING") + b"*11\r\n",
        encode("GET", "k") + encode("NOSUCH", "x") + encode("QUIT"),
        fine + encode(*["MGET", *range(20)]) + b"QUIT\r\n",
    ):
        ends: list[bytes] = []
        for server in servers:
            with server.client() as client:
                client.send(data)
                ends.append(client.rest_until_close())
        assert ends[0] == ends[1], data[:100]


@pytest.mark.slow
def test_half_a_gigabyte(fresh_server: Factory) -> None:
    server = fresh_server(debug=False)
    size = 512 * MB
    with server.client(timeout_s=60) as client:
        client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % size)
        block = bytes(MB)
        for _ in range(512):
            client.send(block)
        client.send(b"\r\n")
        assert client.read() == b"+OK\r\n"
        assert client.call_parsed("STRLEN", "k") == size
        assert memory_bytes(server) < size + 200 * MB


LIBRARY = "#!lua name=l\nredis.register_function('f', function() return redis.sha1hex('') end)"
FIRST_USES = (
    ("EVAL", "return cjson.encode({1})", 0), ("FUNCTION", "LOAD", LIBRARY), ("FCALL", "f", 0),
    ("SCRIPT", "FLUSH"), ("EVAL", "return redis.sha1hex('')", 0), ("COMMAND", "DOCS", "GET"),
    ("OBJECT", "HELP"), ("LOLWUT",), ("ACL", "GENPASS"), ("ACL", "SETUSER", "a", ">secret"),
    ("HOTKEYS", "START", "METRICS", 1, "CPU"), ("ARSET", "a", 0, "x"),
    ("ARGREP", "a", "-", "+", "RE", "x"), ("DEBUG", "DIGEST"), ("SPOP", "s"),
    ("CONFIG", "SET", "maxmemory", "1gb"), ("REPLICAOF", "127.0.0.1", 1),
    ("REPLICAOF", "NO", "ONE"),
)  # fmt: skip


def limit_descriptors(server: Process, count: int) -> int:
    """Give a server no descriptor from so many on; the limit that it had."""
    soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (count, hard))
    return soft


def take_descriptors(server: Process, stack: contextlib.ExitStack, left: int) -> None:
    """Connect until a server has so few descriptors left beside those that it keeps."""
    opened = Path(f"/proc/{server.pid}/fd")
    limit = max(int(each.name) for each in opened.iterdir()) + 1 + left
    limit_descriptors(server, limit)
    while len(list(opened.iterdir())) < limit - left:
        assert stack.enter_context(server.client()).call("PING") == b"+PONG\r\n"


def test_what_is_opened_late_finds_a_descriptor(fresh_server: Factory) -> None:
    server = fresh_server("--enable-debug-command", "yes")
    other = fresh_server()
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(server.client())
        client.call("SADD", "s", 1, 2, 3)
        client.call("MSET", "one", 1, "two", 2)
        take_descriptors(server, stack, 0)
        for words in FIRST_USES:
            reply = client.call(*words)
            assert not reply.startswith(b"-"), (words, reply)
        for key in ("one", "two"):
            reply = client.call("MIGRATE", "127.0.0.1", other.port, key, 0, 5000)
            assert reply == b"+OK\r\n", (key, reply)
        assert other.call("DBSIZE") == 2


def test_a_handshake_finds_a_descriptor(fresh_server: Factory, certificates: Certificates) -> None:
    """The first encrypted connection takes the last one that clients may have."""
    port, claim = claim_port()
    with claim, contextlib.ExitStack() as stack:
        server = fresh_server("--tls-port", str(port), *certificates.options())
        take_descriptors(server, stack, 1)
        context = certificates.context(certificates.client)
        client = stack.enter_context(RawClient(port, tls=context))
        assert client.call("PING") == b"+PONG\r\n"
        assert client.call("EVAL", "return redis.sha1hex('')", 0).startswith(b"$40\r\n")


def test_what_cannot_be_opened_is_refused_until_it_can(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        assert client.call("SET", "k", "v") == b"+OK\r\n"
        limit = limit_descriptors(server, 3)
        for words in (
            *(("EVAL", "return 1", 0), ("LOLWUT",), ("OBJECT", "HELP")),
            *(("FUNCTION", "LOAD", LIBRARY), ("FUNCTION", "FLUSH")),
        ):
            assert client.call(*words).startswith(b"-ERR too many open files"), words
        assert client.call("MIGRATE", "127.0.0.1", 1, "k", 0, 100).startswith(b"-")
        limit_descriptors(server, limit)
        assert client.call("EVAL", "return 1", 0) == b":1\r\n"
        assert client.call("OBJECT", "HELP").startswith(b"*")
        assert client.call("FUNCTION", "LOAD", LIBRARY) == b"$1\r\nl\r\n"
