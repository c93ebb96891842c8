"""MULTI, EXEC and WATCH against the real Redis, byte for byte."""

from __future__ import annotations

import contextlib
import time

import pytest
from _pytest.mark import ParameterSet

from support.client import RawClient, Status, WireError
from support.process import Pair

pytestmark = pytest.mark.judge


def script(pair: Pair, *lines: str) -> None:
    for line in lines:
        pair.both(*line.split(" "))


def not_as_valkey(*lines: str) -> ParameterSet:
    return pytest.param([*lines], marks=pytest.mark.since(8, 0))


@pytest.mark.parametrize("resp3", [False, True])
def test_replies(pair: Pair, pair3: Pair, resp3: bool) -> None:
    script(
        pair3 if resp3 else pair,
        "MULTI", "SET a 1", "GET a", "GET none", "INCR a", "MGET a none", "EXEC", "GET a",
        "MULTI", "EXEC", "MULTI", "PING", "DISCARD", "GET a",
    )  # fmt: skip


@pytest.mark.parametrize(
    "lines",
    [
        ["EXEC"],
        ["DISCARD"],
        ["UNWATCH"],
        ["MULTI x"],
        ["EXEC x"],
        ["DISCARD x"],
        ["WATCH"],
        ["UNWATCH x"],
        not_as_valkey("MULTI", "MULTI", "SET a 1", "EXEC"),
        not_as_valkey("MULTI", "WATCH a", "SET a 1", "EXEC"),
        ["MULTI", "UNWATCH", "EXEC"],
        ["MULTI", "NOSUCH x", "SET a 1", "EXEC", "GET a", "PING"],
        ["MULTI", "SET a", "SET a 1", "EXEC", "GET a"],
        ["MULTI", "CONFIG NOSUCH x", "EXEC"],
        ["MULTI", "CONFIG", "EXEC"],
        ["MULTI", "EXEC x", "EXEC", "PING"],
        ["MULTI", "NOSUCH x", "DISCARD", "MULTI", "PING", "EXEC"],
        ["MULTI", "SET a x", "INCR a", "SET b 1", "EXEC", "GET b"],
        ["SET s x", "MULTI", "XADD s * f v", "XLEN s", "GET s", "EXEC"],
        ["MULTI", "SELECT 5", "SET a 1", "EXEC", "GET a", "SELECT 0", "GET a", "SELECT 5", "GET a"],
        ["MULTI", "SELECT 99", "SET a 1", "EXEC", "GET a"],
        ["MULTI", "PING", "RESET", "EXEC", "PING"],
        not_as_valkey("MULTI", "SHUTDOWN", "EXEC"),
        not_as_valkey("MULTI", "SHUTDOWN x", "EXEC"),
        ["multi", "eXeC"],
        ["MULTI", "XREAD BLOCK 0 STREAMS s $", "EXEC"],
        ["MULTI", "FLUSHALL", "DBSIZE", "EXEC"],
    ],
)
def test_rules(pair: Pair, lines: list[str]) -> None:
    script(pair, *lines)


@pytest.mark.parametrize(
    ("watch", "change", "prepare"),
    [
        ("WATCH a", "SET a 1", ""),
        ("WATCH a b", "SET b 1", ""),
        ("WATCH a", "SET b 1", ""),
        ("WATCH a", "DEL a", ""),
        ("WATCH a", "DEL a", "SET a 1"),
        ("WATCH a", "GET a", "SET a 1"),
        ("WATCH a", "EXPIRE a 100", "SET a 1"),
        ("WATCH a", "EXPIRE a 100", ""),
        ("WATCH a", "PERSIST a", "SET a 1"),
        ("WATCH a", "PERSIST a", "SET a 1 EX 100"),
        ("WATCH a", "FLUSHALL", "SET a 1"),
        ("WATCH a", "FLUSHALL", ""),
        ("WATCH a", "FLUSHDB", "SET a 1"),
        ("WATCH a", "SWAPDB 0 1", ""),
        ("WATCH a", "SWAPDB 0 1", "SET a 1"),
        ("WATCH a", "SWAPDB 2 1", "SET a 1"),
        ("WATCH a", "RENAME a b", "SET a 1"),
        ("WATCH b", "RENAME a b", "SET a 1"),
        ("WATCH a", "XADD a * f v", ""),
        ("WATCH a", "XTRIM a MAXLEN 5", "XADD a * f v"),
        ("WATCH a", "XTRIM a MAXLEN 0", "XADD a * f v"),
        ("WATCH a", "XDEL a 1-1", "XADD a * f v"),
        ("WATCH a", "SETRANGE a 0 x", ""),
        ("WATCH a", "APPEND a x", "SET a 1"),
        ("WATCH a", "GETDEL a", "SET a 1"),
        ("WATCH a", "GETEX a", "SET a 1"),
        ("WATCH a", "GETEX a EX 100", "SET a 1"),
        ("WATCH a", "COPY b a", "SET b 1"),
        ("WATCH a", "MOVE a 1", "SET a 1"),
        ("WATCH a", "TOUCH a", "SET a 1"),
        ("WATCH a", "SET a 1 NX", "SET a 1"),
        ("WATCH a", "MSETNX a 1 b 2", "SET b 1"),
    ],
)
def test_watch(pair: Pair, watch: str, change: str, prepare: str) -> None:
    if prepare.startswith("XADD"):
        for server in (pair.real, pair.ours):
            server.call("XADD", "a", "1-1", "f", "v")
            server.call("XADD", "a", "1-2", "f", "v")
    elif prepare:
        script(pair, prepare)
    script(pair, watch)
    other = second(pair)
    if change.startswith("XADD"):
        other.ours.call(*change.split())
        other.real.call(*change.split())
    else:
        script(other, change)
    other.close()
    script(pair, "MULTI", "PING", "EXEC", "MULTI", "PING", "EXEC")


def second(pair: Pair) -> Pair:
    """Another connection to each server."""
    ours, real = [client.sock.getpeername()[1] for client in (pair.ours, pair.real)]
    return Pair(RawClient(ours), RawClient(real), pair.version)


def test_watch_in_another_database(pair: Pair) -> None:
    script(pair, "SELECT 1", "WATCH a", "SELECT 0", "SET a 1", "MULTI", "PING", "EXEC")
    script(pair, "SELECT 1", "WATCH a", "SET a 1", "SELECT 0", "MULTI", "PING", "EXEC")


def test_unwatch_and_discard_forget(pair: Pair) -> None:
    script(pair, "WATCH a", "SET a 1", "UNWATCH", "MULTI", "PING", "EXEC")
    script(pair, "WATCH a", "SET a 2", "MULTI", "DISCARD", "MULTI", "PING", "EXEC")
    script(pair, "WATCH a", "SET a 3", "WATCH b", "MULTI", "PING", "EXEC")
    script(pair, "WATCH a", "MULTI", "SET a 4", "EXEC", "MULTI", "PING", "EXEC")
    script(pair, "WATCH a", "SET a 3", "MULTI", "NOSUCH x", "EXEC")


def test_a_watched_key_that_expires(pair: Pair) -> None:
    script(pair, "SET a 1 PX 600", "SET b 1 PX 600", "WATCH a", "MULTI", "PING")
    time.sleep(0.7)
    script(pair, "EXEC")


def test_a_key_that_had_expired_when_watched(pair: Pair) -> None:
    script(pair, "DEBUG SET-ACTIVE-EXPIRE 0", "SET a 1 PX 10")
    time.sleep(0.05)
    try:
        script(pair, "WATCH a", "MULTI", "PING", "EXEC")
        script(pair, "WATCH a", "GET a", "MULTI", "PING", "EXEC")
        script(pair, "SET a 1 PX 10")
        time.sleep(0.05)
        script(pair, "WATCH a", "SET a 2", "MULTI", "PING", "EXEC")
    finally:
        script(pair, "DEBUG SET-ACTIVE-EXPIRE 1")


@pytest.mark.parametrize(
    "lines",
    [
        ["SET x old PX 1", "WATCH x", "FLUSHDB"],
        ["SET x old PX 1", "WATCH x", "SWAPDB 0 1"],
        ["SET x old PX 1", "SELECT 1", "WATCH x", "SWAPDB 0 1"],
        ["SET x old PX 1", "SELECT 1", "SET x new", "WATCH x", "SWAPDB 0 1"],
        ["SET x old PX 1", "WATCH x", "SELECT 1", "SET x new", "SWAPDB 0 1"],
        ["SET x old PX 1", "SELECT 1", "SET x old PX 1", "WATCH x", "SWAPDB 0 1"],
    ],
)
def test_stale_keys_are_no_keys(pair: Pair, lines: list[str]) -> None:
    script(pair, "DEBUG SET-ACTIVE-EXPIRE 0")
    try:
        for line in lines:
            script(pair, line)
            time.sleep(0.005 if " PX " in line else 0)
        script(pair, "MULTI", "PING", "EXEC")
    finally:
        script(pair, "DEBUG SET-ACTIVE-EXPIRE 1")


@pytest.mark.since(8, 0)  # Valkey asks for a password first
def test_exec_before_auth(pair: Pair) -> None:
    script(pair, "CONFIG SET requirepass secret")
    try:
        other = second(pair)
        script(other, "EXEC", "MULTI", "DISCARD", "EXEC x", "NOSUCH x")
        other.close()
    finally:
        script(pair, "CONFIG SET requirepass ")


def test_commands_count_in_their_own_rows(pair: Pair) -> None:
    script(pair, "CONFIG RESETSTAT", "MULTI", "SET a x", "INCR a", "PING", "EXEC")
    for client in (pair.ours, pair.real):
        stats = client.call_parsed("INFO", "commandstats")
        assert isinstance(stats, bytes)
        assert b"cmdstat_multi:calls=1," in stats
        assert b"cmdstat_exec:calls=1," in stats
        assert b"cmdstat_set:calls=1," in stats
        assert b"cmdstat_ping:calls=1," in stats
        (incr,) = [line for line in stats.split(b"\r\n") if line.startswith(b"cmdstat_incr:")]
        assert incr.startswith(b"cmdstat_incr:calls=1,")
        assert incr.endswith(b"rejected_calls=0,failed_calls=1")


def test_monitor_sees_what_runs_in_its_order(pair: Pair) -> None:
    watcher = second(pair)
    script(watcher, "MONITOR")
    script(pair, "MULTI", "SET a 1", "SELECT 3", "GET a", "EXEC", "SELECT 0", "MULTI", "NOSUCH x")
    script(pair, "EXEC", "ECHO end")
    seen: list[list[bytes]] = []
    for client in (watcher.ours, watcher.real):
        lines: list[bytes] = []
        while not lines or b'"end"' not in lines[-1]:
            lines.append(client.read())
        seen.append([line.partition(b" [")[2].partition(b" ")[0] + line.partition(b"]")[2]
                     for line in lines])  # fmt: skip
    assert seen[0] == seen[1]
    watcher.close()


def test_one_clock_for_all(pair: Pair) -> None:
    reply = pair.ours.pipeline(
        ("MULTI",),
        ("SET", "a", "1", "PX", "1"),
        ("DEBUG", "SLEEP", "0.01"),
        ("GET", "a"),
        ("EXEC",),
    )
    assert reply[-1] == b"*3\r\n+OK\r\n+OK\r\n$1\r\n1\r\n"


def test_a_subscriber_of_its_own_channel(pair3: Pair) -> None:
    """The message follows the reply, inside EXEC too (since Redis 7.2)."""
    client = pair3.ours
    client.call("SUBSCRIBE", "me")
    assert client.call_parsed("PUBLISH", "me", "1") == 1
    assert client.read_parsed() == [b"message", b"me", b"1"]
    assert client.call_parsed("MULTI") == Status(b"OK")
    client.call("PUBLISH", "me", "2")
    client.call("PING")
    assert client.call_parsed("EXEC") == [1, Status(b"PONG")]
    assert client.read_parsed() == [b"message", b"me", b"2"]


def test_refused_for_memory(pair: Pair) -> None:
    script(pair, "MULTI", "SET a 1")
    other = second(pair)
    script(other, "CONFIG SET maxmemory 1")
    try:
        script(pair, "EXEC", "GET a", "MULTI", "EXEC", "MULTI", "SET a 1", "EXEC")
    finally:
        script(other, "CONFIG SET maxmemory 0")
        other.close()


def test_a_queue_is_bounded(pair: Pair) -> None:
    other = second(pair)
    script(pair, "CONFIG SET client-query-buffer-limit 1mb")
    try:
        script(other, "MULTI")
        with contextlib.suppress(ConnectionError):
            for _ in range(20):
                other.ours.send_command("SET", "a", "x" * 100_000)
        assert b"-" not in other.ours.rest_until_close()
    finally:
        script(pair, "CONFIG SET client-query-buffer-limit 1gb")
        other.close()


def test_wrong_places_are_errors_of_their_own(pair: Pair) -> None:
    reply = pair.ours.pipeline(("MULTI",), ("INCR", "a", "b"), ("EXEC",))
    assert reply[1].startswith(b"-ERR wrong number")
    assert reply[2] == b"-EXECABORT Transaction discarded because of previous errors.\r\n"
    assert pair.ours.call_parsed("NOSUCH", "x") == WireError(
        b"ERR unknown command 'NOSUCH', with args beginning with: 'x' "
    )
    pair.both("NOSUCH", since=(8, 10))


@pytest.mark.since(8, 0)
@pytest.mark.parametrize("queued", ["GET k", "PING", "SET k w", "MULTI", "CONFIG GET hz", "TIME"])
def test_a_replica_that_has_lost_its_master_meanwhile(pair: Pair, queued: str) -> None:
    """EXEC runs nothing that would be refused by now."""
    others = [client.sock.getpeername()[1] for client in (pair.ours, pair.real)]
    pair.both("SET", "k", "v")
    pair.both("CONFIG", "SET", "replica-serve-stale-data", "no")
    try:
        pair.both("MULTI")
        pair.both(*queued.split(" "))
        for port in others:
            with RawClient(port) as other:
                assert other.call("REPLICAOF", "127.0.0.1", 1) == b"+OK\r\n"
        found = [client.call("EXEC") for client in (pair.ours, pair.real)]
        assert found[0] == found[1] or (queued == "TIME" and found[0][:2] == found[1][:2])
        pair.both("GET", "k")
        pair.both("MULTI")
        pair.both("GET", "k")
    finally:
        for port in others:
            with RawClient(port) as other:
                assert other.call("REPLICAOF", "NO", "ONE") == b"+OK\r\n"
        pair.both("EXEC")
        pair.both("CONFIG", "SET", "replica-serve-stale-data", "yes")
