"""CLIENT: what it tells of connections, and what it does to them."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

import pytest

from support.client import RawClient, encode
from support.process import Pair, Process, ServerProcess
from support.waiting import wait_until

FIELDS = [
    "id",
    "addr",
    "laddr",
    "fd",
    "name",
    "age",
    "idle",
    "flags",
    "db",
    "sub",
    "psub",
    "ssub",
    "multi",
    "watch",
    "qbuf",
    "qbuf-free",
    "argv-mem",
    "multi-mem",
    "rbs",
    "rbp",
    "obl",
    "oll",
    "omem",
    "omem-shared",
    "omem-unshared",
    "tot-mem",
    "events",
    "cmd",
    "user",
    "redir",
    "resp",
    "lib-name",
    "lib-ver",
    "io-thread",
    "tot-net-in",
    "tot-net-out",
    "tot-cmds",
    "read-events",
    "avg-pipeline-len-sum",
    "avg-pipeline-len-cnt",
]


def fields(line: bytes) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in line.decode().strip().split(" "))


def own(client: RawClient) -> dict[str, str]:
    line = client.call_parsed("CLIENT", "INFO")
    assert isinstance(line, bytes)
    return fields(line)


def listed(client: RawClient, *filters: str) -> list[dict[str, str]]:
    text = client.call_parsed("CLIENT", "LIST", *filters)
    assert isinstance(text, bytes)
    return [fields(line) for line in text.splitlines()]


def number(client: RawClient) -> int:
    found = client.call_parsed("CLIENT", "ID")
    assert isinstance(found, int)
    return found


def test_info_line_has_every_field_in_order(client: RawClient) -> None:
    line = own(client)
    assert list(line) == FIELDS
    assert line["cmd"] == "client|info"
    assert line["flags"] == "N"
    assert line["multi"] == "-1"
    assert line["argv-mem"] == "10"
    assert line["resp"] == "2"
    assert line["laddr"].startswith("127.0.0.1:")


@pytest.mark.since(8, 10)
def test_info_line_has_the_fields_of_redis(pair: Pair) -> None:
    for client in (pair.ours, pair.real):
        client.call("PING")
        client.send(encode("PING") + encode("CLIENT", "INFO"))
        assert client.read() == b"+PONG\r\n"
        line = fields(client.read().split(b"\r\n")[1])
        assert list(line) == FIELDS
        shown = [line[name] for name in FIELDS if name.startswith(("read-", "avg-"))]
        assert shown == ["2", "3", "2"]


def test_info_line_follows_the_session(client: RawClient) -> None:
    client.call("CLIENT", "SETNAME", "me")
    client.call("CLIENT", "SETINFO", "LIB-NAME", "mylib")
    client.call("CLIENT", "SETINFO", "LIB-VER", "1.2")
    client.call("SELECT", 4)
    client.call("WATCH", "a", "b")
    client.call("CLIENT", "NO-EVICT", "on")
    client.call("CLIENT", "NO-TOUCH", "on")
    client.call("HELLO", 3)
    client.call("SUBSCRIBE", "one")
    client.call("PSUBSCRIBE", "two*")
    client.call("SSUBSCRIBE", "three")
    line = own(client)
    assert (line["name"], line["lib-name"], line["lib-ver"]) == ("me", "mylib", "1.2")
    assert (line["db"], line["watch"], line["resp"]) == ("4", "2", "3")
    assert (line["sub"], line["psub"], line["ssub"]) == ("1", "1", "1")
    assert line["flags"] == "PeT"


def test_info_line_counts_bytes_and_commands(client: RawClient) -> None:
    before = own(client)
    client.call("ECHO", "x" * 1000)
    after = own(client)
    assert int(after["tot-cmds"]) == int(before["tot-cmds"]) + 2
    assert int(after["tot-net-in"]) > int(before["tot-net-in"]) + 1000
    assert int(after["tot-net-out"]) > int(before["tot-net-out"]) + 1000


def test_others_in_a_transaction_and_blocked(server: ServerProcess, client: RawClient) -> None:
    with server.client() as busy, server.client() as blocked:
        busy.call("MULTI")
        busy.call("SET", "a", "b" * 100)
        mine, other = number(blocked), number(client)
        blocked.send_command("XREAD", "BLOCK", 0, "STREAMS", "nothing", "$")
        wait_until(lambda: listed(client, "ID", str(mine))[0]["flags"] == "b")
        line = next(each for each in listed(client) if each["multi"] != "-1")
        assert (line["flags"], line["multi"], line["cmd"]) == ("x", "1", "set")
        assert int(line["multi-mem"]) >= 100
        assert other != mine


def memory(asking: RawClient, name: int) -> tuple[int, int, int]:
    """What the query buffer of a client holds, its room, and what the client takes in all."""
    line = listed(asking, "ID", str(name))[0]
    return int(line["qbuf"]), int(line["qbuf-free"]), int(line["tot-mem"])


def announce(asking: RawClient, sender: RawClient) -> None:
    """Send a large argument in pieces, and look what room there is for it."""
    size = 1_000_000
    name = number(sender)
    before = memory(asking, name)[2]
    sender.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % size)
    wait_until(lambda: memory(asking, name)[1] >= size)
    assert memory(asking, name)[2] >= before + size
    sender.send(b"x" * (size // 2))
    wait_until(lambda: memory(asking, name)[0] >= size // 2)
    held, room, total = memory(asking, name)
    assert size <= held + room < size * 1.1
    assert total >= before + size * 0.98  # Redis has grown a buffer that it had before
    sender.send(b"x" * (size // 2) + b"\r\n")
    assert sender.read() == b"+OK\r\n"


def test_room_for_a_large_argument(pair: Pair, server: Process, redis_server: Process) -> None:
    """It is there, and counts, as soon as the argument is announced, until that has come."""
    with server.client() as sender:
        announce(pair.ours, sender)
    with redis_server.client() as sender:
        announce(pair.real, sender)


def test_list_filters(server: ServerProcess, client: RawClient) -> None:
    with server.client() as subscriber:
        subscriber.call("SUBSCRIBE", "news")
        mine = number(client)
        assert [each["id"] for each in listed(client, "ID", str(mine), "0")] == [str(mine)]
        assert [each["sub"] for each in listed(client, "TYPE", "pubsub")] == ["1"]
        assert str(mine) in [each["id"] for each in listed(client, "TYPE", "normal")]
        assert listed(client, "TYPE", "replica") == []


def test_kill_by_id_and_address(server: ServerProcess, client: RawClient) -> None:
    with server.client() as first, server.client() as second:
        assert client.call("CLIENT", "KILL", "ID", number(first)) == b":1\r\n"
        assert first.rest_until_close() == b""
        address = own(second)["addr"]
        assert client.call("CLIENT", "KILL", address) == b"+OK\r\n"
        assert second.rest_until_close() == b""
        assert client.call("CLIENT", "KILL", "ADDR", address) == b":0\r\n"


def test_kill_spares_oneself_unless_asked(server: ServerProcess, client: RawClient) -> None:
    mine = number(client)
    assert client.call("CLIENT", "KILL", "ID", mine) == b":0\r\n"
    assert client.call("CLIENT", "KILL", "ID", mine, "SKIPME", "no") == b":1\r\n"
    assert client.rest_until_close() == b""


def test_kill_by_type_ends_subscriptions(server: ServerProcess, client: RawClient) -> None:
    with server.client() as subscriber:
        subscriber.call("SUBSCRIBE", "news")
        assert client.call("CLIENT", "KILL", "TYPE", "pubsub", "USER", "default") == b":1\r\n"
        assert client.call("PUBLISH", "news", "x") == b":0\r\n"
        assert subscriber.rest_until_close() == b""


def test_kill_by_age(server: ServerProcess, client: RawClient) -> None:
    with server.client() as young:
        mine = number(young)
        assert client.call("CLIENT", "KILL", "ID", mine, "MAXAGE", 1000) == b":0\r\n"
        time.sleep(1.1)
        assert client.call("CLIENT", "KILL", "ID", mine, "MAXAGE", 1) == b":1\r\n"


def test_kill_a_blocked_client(server: ServerProcess, client: RawClient) -> None:
    with server.client() as blocked:
        mine = number(blocked)
        blocked.send_command("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        wait_until(lambda: server.info("clients")["blocked_clients"] == "1")
        assert client.call("CLIENT", "KILL", "ID", mine) == b":1\r\n"
        assert server.info("clients")["blocked_clients"] == "0"
        assert client.call("XADD", "s", "1-1", "a", "b") == b"$3\r\n1-1\r\n"


@pytest.mark.parametrize(
    ("reason", "reply"),
    [
        ((), b"*-1\r\n"),
        (("TIMEOUT",), b"*-1\r\n"),
        (("ERROR",), b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"),
    ],
)
def test_unblock(
    server: ServerProcess, client: RawClient, reason: tuple[str, ...], reply: bytes
) -> None:
    with server.client() as blocked:
        mine = number(blocked)
        assert client.call("CLIENT", "UNBLOCK", mine, *reason) == b":0\r\n"
        blocked.send_command("XREAD", "BLOCK", 0, "STREAMS", "nothing", "$")
        wait_until(lambda: client.call("CLIENT", "UNBLOCK", mine, *reason) == b":1\r\n")
        assert blocked.read() == reply
        assert blocked.call("PING") == b"+PONG\r\n"


def test_pause_holds_writes_and_lets_reads_pass(server: ServerProcess, client: RawClient) -> None:
    assert client.call("CLIENT", "PAUSE", 10_000, "WRITE") == b"+OK\r\n"
    try:
        with server.client() as writer:
            writer.send_command("SET", "a", 1)
            writer.send_command("GET", "a")
            assert writer.silent()
            assert client.call("GET", "a") == b"$-1\r\n"
            assert server.info("clients")["blocked_clients"] == "1"
            assert client.call("CLIENT", "UNPAUSE") == b"+OK\r\n"
            assert writer.read() == b"+OK\r\n"
            assert writer.read() == b"$1\r\n1\r\n"
    finally:
        client.call("CLIENT", "UNPAUSE")


def test_pause_ends_by_itself(server: ServerProcess, client: RawClient) -> None:
    started = time.monotonic()
    client.call("CLIENT", "PAUSE", 200)
    with server.client() as other:
        assert other.call("PING") == b"+PONG\r\n"
    assert time.monotonic() - started > 0.19


def test_pause_hides_expired_keys_without_removing_them(
    server: ServerProcess, client: RawClient
) -> None:
    client.pipeline(("SET", "a", 1, "PX", 100), ("CLIENT", "PAUSE", 100_000, "WRITE"))
    try:
        expired = server.info("stats")["expired_keys"]
        wait_until(lambda: client.call("GET", "a") == b"$-1\r\n")
        time.sleep(0.3)
        assert server.info("stats")["expired_keys"] == expired
        client.call("CLIENT", "UNPAUSE")
        wait_until(lambda: int(server.info("stats")["expired_keys"]) == int(expired) + 1)
    finally:
        client.call("CLIENT", "UNPAUSE")


def test_reply_off_is_silent(client: RawClient) -> None:
    client.send_command("CLIENT", "REPLY", "OFF")
    client.send_command("SET", "a", 1)
    client.send_command("GET", "a")
    assert client.silent()
    assert client.call("CLIENT", "REPLY", "ON") == b"+OK\r\n"
    assert client.call("GET", "a") == b"$1\r\n1\r\n"


def test_idle_clients_are_closed(fresh_server: Callable[..., Process]) -> None:
    server = fresh_server()
    with server.client() as idle, server.client() as subscriber, server.client() as blocked:
        subscriber.call("SUBSCRIBE", "news")
        blocked.send_command("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        wait_until(lambda: server.info("clients")["blocked_clients"] == "1")
        assert idle.call("PING") == b"+PONG\r\n"
        server.call("CONFIG", "SET", "timeout", 1)
        assert idle.rest_until_close() == b""
        time.sleep(1.2)
        server.call("CONFIG", "SET", "timeout", 0)
        server.call("XADD", "s", "1-1", "a", "b")
        assert b"1-1" in blocked.read()
        assert server.call("PUBLISH", "news", "x") == 1


def test_a_reader_that_does_not_read_is_dropped(
    fresh_server: Callable[..., Process],
) -> None:
    server = fresh_server()
    with server.client() as client, server.client() as lazy:
        client.call("SET", "big", "x" * 1_000_000)
        client.call("CONFIG", "SET", "client-output-buffer-limit", "normal 500000 0 0")
        lazy.send_command("GET", "big")
        assert lazy.rest_until_close() == b""
        info = server.info("stats")
        assert info["client_output_buffer_limit_disconnections"] == "1"


def test_who_has_to_log_in_leaves_little_unread(fresh_server: Callable[..., Process]) -> None:
    """Nobody without a password makes the server keep megabytes."""
    server = fresh_server("--requirepass", "secret")
    requests = encode("SET", "k", "v") * 200_000  # of which the refusals take 6 MB
    with server.client() as lazy:
        lazy.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(ConnectionError):
            for _ in range(20):
                lazy.send(requests)
        answers = lazy.rest_until_close()
    assert len(answers) < 20 * 200_000 * 30
    with server.client() as client:
        assert client.call("AUTH", "secret") == b"+OK\r\n"
        info = client.call("INFO", "stats")
    assert b"\r\nclient_output_buffer_limit_disconnections:1\r\n" in info


@pytest.mark.parametrize("appendonly", ["no", "yes"])
def test_a_reader_that_reads_is_kept_whoever_else_is_at_work(
    fresh_server: Callable[..., Process], appendonly: str
) -> None:
    server = fresh_server("--appendonly", appendonly)
    with server.client() as client, server.client() as other:
        client.call("SET", "big", "x" * 3_000_000)
        # Less than both replies; more than the kernel leaves of them when the first is sent early.
        client.call("CONFIG", "SET", "client-output-buffer-limit", "normal 5700000 0 0")
        for _ in range(5):
            assert other.call("PING") == b"+PONG\r\n"
            client.send(encode("GET", "big") * 2)
            for _ in range(2):
                assert client.read_parsed() == b"x" * 3_000_000


def test_a_request_over_the_input_limit_is_dropped(
    fresh_server: Callable[..., Process],
) -> None:
    server = fresh_server("--client-query-buffer-limit", "1mb")
    with server.client() as client:
        client.send(b"*2\r\n$4\r\nECHO\r\n$3000000\r\n")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.send(b"x" * 2_000_000)
        assert client.rest_until_close() == b""
    assert server.info("stats")["client_query_buffer_limit_disconnections"] == "1"
