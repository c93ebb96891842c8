"""Scripts and other clients, beside Redis: who is woken, told, stopped, and what is counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from conftest import Factory

from support.client import Argument, RawClient
from support.process import Pair, Process, RedisProcess, ServerProcess
from support.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.since(8, 8)

Opener = Callable[[], Pair]


@pytest.fixture
def opened(server: ServerProcess, redis_server: RedisProcess) -> Iterator[Opener]:
    """Opens one more connection to each of the two servers."""
    with ExitStack() as stack:

        def another() -> Pair:
            both = Pair.of(server, redis_server)
            stack.callback(both.close)
            return both

        yield another
        with server.client() as ours, redis_server.client() as real:
            for client in (ours, real):
                client.call("FUNCTION", "FLUSH")
                client.call("SCRIPT", "FLUSH")
                client.call("CONFIG", "RESETSTAT")
                for name, value in (
                    *(("maxmemory", "0"), ("notify-keyspace-events", "")),
                    *(("slowlog-log-slower-than", "10000"), ("latency-monitor-threshold", "0")),
                ):
                    client.call("CONFIG", "SET", name, value)
                client.call("CLIENT", "UNPAUSE")


def clients(both: Pair) -> tuple[RawClient, RawClient]:
    return both.ours, both.real


def send(both: Pair, *words: Argument) -> None:
    for client in clients(both):
        client.send_command(*words)


def blocked(both: Pair, count: int) -> None:
    """Wait until so many clients are blocked in each server."""
    for client in clients(both):

        def are_blocked(client: RawClient = client) -> bool:
            return b"blocked_clients:%d\r\n" % count in client.call("INFO", "clients")

        wait_until(are_blocked)


def read(both: Pair) -> bytes:
    """The next reply, the same from both."""
    ours, real = both.ours.read(), both.real.read()
    hidden = [re.sub(rb"\d{13}", b"...", raw) for raw in (ours, real)]
    assert hidden[0] == hidden[1]
    return ours


def silent(both: Pair) -> bool:
    return all(client.silent() for client in clients(both))


# Who is served


BLOCKING: list[tuple[tuple[Argument, ...], str]] = [
    (("BLPOP", "l", "m", 0), "redis.call('RPUSH', 'm', 1, 2) redis.call('RPUSH', 'l', 3)"),
    (("BLPOP", "l", 0), "redis.call('RPUSH', 'l', 1, 2) redis.call('LPOP', 'l')"),
    (
        ("BLMOVE", "l", "m", "LEFT", "LEFT", 0),
        "redis.call('RPUSH', 'l', 1) redis.call('SET', 'x', 1)",
    ),
    (
        ("BZPOPMIN", "z", 0),
        "redis.call('ZADD', 'z', 2, 'b', 1, 'a') redis.call('ZINCRBY', 'z', 5, 'a')",
    ),
    (
        ("XREAD", "BLOCK", 0, "STREAMS", "s", "$"),
        "redis.call('XADD', 's', '1-1', 'f', 1) redis.call('XADD', 's', '1-2', 'f', 2)",
    ),
    (
        ("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "t", ">"),
        "redis.call('XADD', 't', '1-1', 'f', 1) redis.call('XADD', 't', '1-2', 'f', 2)",
    ),
]


@pytest.mark.parametrize(("waits", "script"), BLOCKING)
@pytest.mark.parametrize("fails", [False, True])
def test_who_waits_is_served_after_the_script(
    opened: Opener, waits: tuple[Argument, ...], script: str, fails: bool
) -> None:
    waiting, other = opened(), opened()
    other.both("XGROUP", "CREATE", "t", "g", 0, "MKSTREAM")
    send(waiting, *waits)
    blocked(other, 1)
    other.both("EVAL", script + (" error('x')" if fails else " return 'done'"), 0)
    read(waiting)
    for key in ("l", "m"):
        other.both("LRANGE", key, 0, -1)
    other.both("ZRANGE", "z", 0, -1, "WITHSCORES")
    other.both("XLEN", "s")
    other.both("XPENDING", "t", "g")


def test_what_is_gone_at_the_end_of_the_script_serves_nobody(opened: Opener) -> None:
    waiting, group, other = opened(), opened(), opened()
    other.both("XGROUP", "CREATE", "t", "g", 0, "MKSTREAM")
    send(waiting, "BLPOP", "l", 0)
    send(group, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "t", ">")
    blocked(other, 2)
    other.both("EVAL", "redis.call('RPUSH', 'l', 1) return redis.call('LPOP', 'l')", 0)
    other.both(
        "EVAL", "redis.call('RPUSH', 'l', 1) redis.call('DEL', 'l') redis.call('SET', 'l', 1)", 0
    )
    assert silent(waiting)
    other.both("EVAL", "redis.call('DEL', 't') return redis.call('XADD', 't', '1-1', 'f', 1)", 0)
    assert read(group).startswith(b"-")
    other.both("DEL", "l")
    other.both("MULTI")
    other.both("EVAL", "return redis.call('RPUSH', 'l', 1)", 0)
    other.both("EVAL", "return redis.call('RPUSH', 'l', 2)", 0)
    other.both("LPOP", "l")
    other.both("EXEC")
    assert read(waiting) == b"*2\r\n$1\r\nl\r\n$1\r\n2\r\n"


@pytest.mark.parametrize(
    "words",
    [
        "'BLPOP', 'l', 0", "'BRPOPLPUSH', 'l', 'm', 0", "'BLMPOP', 0, 1, 'l', 'LEFT'",
        "'BZPOPMIN', 'z', 0", "'BZMPOP', 0, 1, 'z', 'MIN'",
        "'XREAD', 'BLOCK', 0, 'STREAMS', 's', '$'",
        "'XREADGROUP', 'GROUP', 'g', 'c', 'BLOCK', 0, 'STREAMS', 't', '>'",
        "'WAIT', 0, 0", "'WAITAOF', 0, 0, 0",
    ],
)  # fmt: skip
def test_a_script_does_not_block(opened: Opener, words: str) -> None:
    both = opened()
    both.both("XGROUP", "CREATE", "t", "g", 0, "MKSTREAM")
    both.both("EVAL", f"return redis.call({words})", 0)
    both.both("EVAL", f"return redis.pcall({words}) == false", 0)
    both.both("MULTI")
    both.both("EVAL", f"return redis.call({words})", 0)
    both.both("EXEC")


# Who is told


def test_events_come_in_the_order_of_the_calls(opened: Opener) -> None:
    heard, both = opened(), opened()
    both.both("CONFIG", "SET", "notify-keyspace-events", "KEA")
    heard.both("PSUBSCRIBE", "*")
    both.both("SET", "old", 1, "PX", 1)
    wait_until(lambda: all(c.call("EXISTS", "old") == b":0\r\n" for c in clients(both)))
    both.both(
        "EVAL",
        "redis.call('SET', 'a', 1) redis.call('PUBLISH', 'c', 'between') redis.call('INCR', 'a') "
        "redis.call('SELECT', 3) redis.call('RPUSH', 'l', 1) redis.call('LPOP', 'l') "
        "redis.pcall('LPUSH', 'none') redis.call('EXPIRE', 'a', 10) redis.set_repl(0) "
        "redis.call('HSET', 'h', 'f', 1) redis.call('DEL', 'h') error('end')",
        0,
    )
    both.both("PUBLISH", "c", "last")
    while b"last" not in read(heard):
        pass


def test_a_script_breaks_a_watch(opened: Opener) -> None:
    watching, both = opened(), opened()
    for script, key in (
        ("return redis.call('SET', 'k', 1)", "k"),
        ("return redis.call('GET', 'k')", "k"),
        ("redis.call('SELECT', 3) return redis.call('SET', 'k', 1)", "k"),
        ("redis.call('SET', 'x', 1) redis.call('DEL', 'x') return 1", "x"),
        ("redis.set_repl(redis.REPL_NONE) return redis.call('INCR', 'k')", "k"),
        ("redis.call('FLUSHALL') return 1", "k"),
    ):
        watching.both("WATCH", key)
        both.both("EVAL", script, 0)
        watching.both("MULTI")
        watching.both("PING")
        watching.both("EXEC")
        watching.both("WATCH", key)  # one's own script, too
        watching.both("EVAL", script, 0)
        watching.both("MULTI")
        watching.both("PING")
        watching.both("EXEC")
        both.both("SET", "k", 5)


def test_a_script_does_not_move_its_client(opened: Opener) -> None:
    both = opened()
    both.both("EVAL", "redis.call('SELECT', 3) return redis.call('SET', 'k', 'three')", 0)
    both.both("GET", "k")
    both.both("EVAL", "return redis.call('GET', 'k')", 0)
    both.both("EVAL", "return redis.pcall('SELECT', 99)", 0)
    both.both("SELECT", 3)
    both.both("EVAL", "return redis.call('GET', 'k')", 0)
    both.both("MULTI")
    both.both("EVAL", "redis.call('SELECT', 0) return redis.call('SET', 'k', 'zero')", 0)
    both.both("GET", "k")
    both.both("EXEC")
    both.both("FLUSHALL")


def test_time_stands_still_in_a_script(opened: Opener) -> None:
    both = opened()
    spend = "local n = 0 for i = 1, 3000000 do n = n + i end "
    both.both("SET", "old", "v", "PX", 60_000)
    both.both(
        "EVAL",
        "redis.call('SET', 'k', 'v', 'PX', 1) local t = redis.call('TIME') " + spend +
        "local u = redis.call('TIME') "
        "return {redis.call('GET', 'k'), redis.call('EXISTS', 'k'), redis.call('PTTL', 'k'), "
        "t[1] == u[1] and t[2] == u[2], redis.call('DBSIZE'), redis.call('GET', 'old')}",
        0,
    )  # fmt: skip
    wait_until(lambda: all(c.call("GET", "k") == b"$-1\r\n" for c in clients(both)))


# Replies that are not sent


def test_client_reply(opened: Opener) -> None:
    both = opened()
    script = ("EVAL", "return redis.call('INCR', 'k')", 0)
    send(both, "CLIENT", "REPLY", "OFF")
    for _ in range(3):
        send(both, *script)
    send(both, "EVAL", "error('x')", 0)
    send(both, "CLIENT", "REPLY", "ON")
    assert read(both) == b"+OK\r\n"
    send(both, "CLIENT", "REPLY", "SKIP")
    send(both, *script)
    send(both, *script)
    assert read(both) == b":5\r\n"
    both.both("EVAL", "return redis.pcall('CLIENT', 'REPLY', 'OFF')", 0)


# Clients that are paused


def test_client_pause(opened: Opener) -> None:
    both, other = opened(), opened()
    both.both("SET", "k", "v")
    both.both(
        "FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
    )
    for words, waits in (
        (("EVAL", "return redis.call('GET', 'k')", 0), True),
        (("EVAL_RO", "return redis.call('GET', 'k')", 0), False),
        (("EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', 'k')", 0), False),
        (("EVAL", "#!lua\nreturn redis.call('GET', 'k')", 0), True),
        (("FCALL", "f", 0), True),
        (("EVALSHA", "f" * 40, 0), True),
    ):
        both.both("CLIENT", "PAUSE", 100_000, "WRITE")
        send(other, *words)
        ours, real = [client.silent(0.15 if waits else DEADLINE_S) for client in clients(other)]
        assert ours == real, words
        assert ours == waits, words
        both.both("CLIENT", "UNPAUSE")
        read(other)


def test_time_stands_still_in_a_transaction(opened: Opener) -> None:
    for client in clients(opened()):
        before = client.call_parsed("TIME")
        client.call("MULTI")
        client.call("TIME")
        client.call("EVAL", "local n = 0 for i = 1, 100000 do n = n + i end return n", 0)
        client.call("EVAL", "return redis.call('TIME')", 0)
        client.call("TIME")
        replies = client.call_parsed("EXEC")
        assert isinstance(replies, list)
        assert replies[0] == replies[2] == replies[3]
        assert [int(part) for part in replies[0]] >= [int(part) for part in before]  # type: ignore[attr-defined]
        assert client.call_parsed("TIME") != replies[0]


# What is counted and shown


def scrubbed(raw: bytes) -> list[bytes]:
    """Lines without times, addresses and identities."""
    lines = []
    for line in raw.split(b"\r\n"):
        line = re.sub(rb"^\+?\d+\.\d+ ", b"", line)
        line = re.sub(rb"127\.0\.0\.1:\d+", b"address", line)
        lines.append(re.sub(rb"(usec|usec_per_call)=[\d.]+,?", b"", line))
    return lines


SCRIPTS: list[tuple[Argument, ...]] = [
    ("EVAL", "redis.call('set', KEYS[1], 'v') redis.pcall('incr', KEYS[1]) return 1", 1, "k"),
    ("EVAL", "redis.call('select', 3) return redis.call('lpush', 'l', 1, 2)", 0),
    ("EVAL", "return redis.call('lpush', 'k', 'x')", 0),
    ("EVAL", "return redis.pcall('lpush', 'k', 'x')", 0),
    ("EVAL", "return {err = 'MY error'}", 0),
    ("EVAL", "return redis.error_reply('OTHER error')", 0),
    ("EVAL", "error('x')", 0),
    ("EVAL", "error({err = 'TABLE x'})", 0),
    ("EVAL", "x x", 0),
    ("EVAL", "return redis.call('nosuch')", 0),
    ("EVAL", "return redis.pcall('get')", 0),
    ("EVAL", "return redis.pcall('config', 'get', 'x')", 0),
    ("EVALSHA", "0" * 40, 0),
    ("EVAL_RO", "return redis.call('set', 'k', 1)", 0),
    ("EVAL", "return 1", "x"),
    ("FCALL", "nosuch", 0),
    ("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 1 end)"),
    ("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() end)"),
    ("FCALL", "f", 0),
    ("FCALL_RO", "f", 0),
    ("MULTI",),
    ("EVAL", "return redis.call('incr', 'n')", 0),
    ("EVAL", "error('x')", 0),
    ("EXEC",),
    ("SCRIPT", "LOAD", "return 2"),
    ("SCRIPT", "KILL"),
]  # fmt: skip


def test_commandstats_and_errorstats(opened: Opener) -> None:
    both = opened()
    both.both("CONFIG", "RESETSTAT")
    for words in SCRIPTS:
        both.both(*words)
    for section in ("errorstats", "commandstats"):
        ours, real = [sorted(scrubbed(c.call("INFO", section))[1:]) for c in clients(both)]
        assert ours == real
    names = (b"total_error_replies", b"number_of_cached_scripts", b"number_of_functions",
             b"number_of_libraries", b"evicted_scripts")  # fmt: skip
    found = [
        sorted(
            line for line in c.call("INFO", "everything").split(b"\r\n") if line.startswith(names)
        )
        for c in clients(both)
    ]
    assert found[0] == found[1]
    assert len(found[0]) == len(names)


def test_monitor(opened: Opener) -> None:
    watching, both = opened(), opened()
    watching.both("MONITOR")
    for words in SCRIPTS:
        both.both(*words)
    both.both("ECHO", "the end")
    shown = []
    for client in clients(watching):
        lines: list[bytes] = []
        while not lines or b"the end" not in lines[-1]:
            lines += scrubbed(client.read().rstrip())
        shown.append(lines)
    assert shown[0] == shown[1]
    assert any(b"[3 lua] " in line for line in shown[0])


def test_slowlog_has_the_script_and_not_its_calls(opened: Opener) -> None:
    both = opened()
    both.both("CONFIG", "SET", "slowlog-log-slower-than", 0)
    both.both("SLOWLOG", "RESET")
    for words in SCRIPTS:
        both.both(*words)
    shown = []
    for client in clients(both):
        entries = client.call_parsed("SLOWLOG", "GET", 100)
        assert isinstance(entries, list)
        shown.append([entry[3] for entry in entries])
    assert shown[0] == shown[1]


def test_latency_of_a_slow_script(opened: Opener) -> None:
    both = opened()
    both.both("CONFIG", "SET", "latency-monitor-threshold", 10)
    both.both("LATENCY", "RESET")
    for client in clients(both):
        client.call("EVAL", "local n = 0 for i = 1, 10000000 do n = n + i end return n", 0)
        latest = client.call_parsed("LATENCY", "LATEST")
        assert isinstance(latest, list)
        assert b"command" in [event[0] for event in latest]


# Memory that runs out


FLAGS = ("", "#!lua\n", "#!lua flags=allow-oom\n", "#!lua flags=no-writes\n")
ENDS = (
    "return redis.call('SET', 'k', 'v')",
    "redis.call('DEL', 'k') return redis.call('SET', 'k', 'v')",
    "return redis.pcall('SET', 'k', 'v')",
    "return redis.call('GET', 'k')",
    "return redis.call('DEL', 'k')",
    "return 1",
)


def test_out_of_memory(opened: Opener) -> None:
    both = opened()
    both.both("SET", "k", "v")
    for flags in FLAGS:
        both.both("FUNCTION", "LOAD", "REPLACE", library(flags))
    both.both("CONFIG", "SET", "maxmemory", 1)
    for flags in FLAGS:
        for end in ENDS:
            both.both("EVAL", flags + end, 0)
            both.both("EVAL_RO", flags + end, 0)
        both.both("FCALL", "f" + suffix(flags), 0)
        both.both("FCALL_RO", "f" + suffix(flags), 0)
        both.both("MULTI")
        both.both("EVAL", flags + ENDS[0], 0)
        both.both("EXEC")
    both.both("FUNCTION", "LOAD", "REPLACE", library(""))
    both.both("SCRIPT", "LOAD", "return 3")
    both.both("CONFIG", "SET", "maxmemory", 0)
    both.both("EVAL", ENDS[0], 0)


def suffix(flags: str) -> str:
    return flags.partition("=")[2].strip().replace("-", "_")


def library(flags: str) -> str:
    name = suffix(flags)
    listed = f"'{flags.partition('=')[2].strip()}'" if name else ""
    return (
        f"#!lua name=lib{name}\n"
        f"redis.register_function{{function_name='f{name}', flags={{{listed}}}, "
        "callback=function() return redis.call('SET', 'k', 'v') end}"
    )


def wait_for_snapshot(server: Process, status: str) -> None:
    server.call("BGSAVE")
    wait_until(lambda: server.info("persistence")["rdb_last_bgsave_status"] == status)


# A disk that refuses


@pytest.mark.parametrize("appendonly", ["no", "yes"])
def test_a_disk_that_refuses(fresh_server: Factory, fresh_redis: Factory, appendonly: str) -> None:
    """After a snapshot that failed nobody writes, scripts neither."""
    options = ("--appendonly", appendonly)
    ours = fresh_server(*options, "--save", "3600 1", check_log=False)
    real = fresh_redis(*options)
    real.call("CONFIG", "SET", "save", "3600 1")
    both = Pair(ours.client(), real.client())
    both.both("SET", "k", "v")
    both.both("FUNCTION", "LOAD", library(""))
    both.both("FUNCTION", "LOAD", library("#!lua flags=no-writes\n"))
    for server, name in ((ours, "dump.hrs"), (real, "dump.rdb")):
        (server.directory / name).mkdir()
        wait_for_snapshot(server, "err")
    for flags in FLAGS:
        for end in ENDS:
            both.both("EVAL", flags + end, 0)
            both.both("EVAL_RO", flags + end, 0)
    for name in ("f", "fno_writes"):
        both.both("FCALL", name, 0)
        both.both("FCALL_RO", name, 0)
    both.both("FUNCTION", "DELETE", "lib")
    both.both("SCRIPT", "LOAD", "return 1")
    for name, directory in (("dump.hrs", ours.directory), ("dump.rdb", real.directory)):
        (directory / name).rmdir()
    for server in (ours, real):
        wait_for_snapshot(server, "ok")
    both.both("EVAL", ENDS[0], 0)
    both.close()


def wait_for_busy(client: RawClient, busy: bool) -> None:
    wait_until(lambda: client.call("ECHO", "x").startswith(b"-BUSY") == busy)


# A script that takes too long


def test_a_transaction_with_a_script_that_takes_too_long(opened: Opener) -> None:
    """Others are told so; the transaction is broken where its script is killed, and goes on."""
    slow, other, queueing, killer = opened(), opened(), opened(), opened()
    other.both("CONFIG", "SET", "busy-reply-threshold", 10)
    try:
        queueing.both("MULTI")
        queueing.both("SET", "q", 1)
        slow.both("MULTI")
        slow.both("SET", "before", 1)
        slow.both("EVAL", "while true do redis.call('GET', 'before') end", 0)
        slow.both("SET", "behind", 1)
        send(slow, "EXEC")
        for client in clients(other):
            wait_for_busy(client, True)
        queueing.both("SET", "q", 2)
        other.both("GET", "before")
        other.both("MULTI")
        other.both("SET", "other", 1)
        other.both("SCRIPT", "KILL")  # it is queued
        killer.both("SCRIPT", "KILL")
        read(slow)
        for client in clients(killer):
            wait_for_busy(client, False)
        other.both("EXEC")
        queueing.both("EXEC")
        other.both("MGET", "before", "behind", "q", "other")
        slow.both("MULTI")
        slow.both("EVAL", "redis.call('INCR', 'n') for i = 1, 3000000 do end return 1", 0)
        slow.both("EVAL", "return redis.call('INCR', 'n')", 0)
        slow.both("EXEC")
    finally:
        other.both("CONFIG", "SET", "busy-reply-threshold", 5000)
