"""What scripts leave in the append-only file, beside what they leave in Redis's."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from conftest import Factory

from support.client import Argument, RawClient
from support.process import Process, incr
from support.waiting import wait_until

LIBRARY = """#!lua name=lib
redis.register_function('two', function(keys, args)
    redis.call('SET', keys[1], args[1])
    return redis.call('INCR', keys[1])
end)
redis.register_function{function_name='reads', flags={'no-writes'}, callback=function(keys)
    return redis.call('GET', keys[1])
end}
"""


def evaluate(script: str, *words: Argument) -> tuple[Argument, ...]:
    """EVAL of a script whose words are all keys."""
    return ("EVAL", script, len(words), *words)


# Each list is sent to both servers, which write the same commands into their files.
CASES: dict[str, list[tuple[Argument, ...]]] = {
    "one": [evaluate("return redis.call('set', KEYS[1], 'v')", "k")],
    "several": [
        evaluate("redis.call('SET', 'a', 1) redis.call('INCR', 'a') redis.call('DEL', 'a')")
    ],
    "nothing": [
        evaluate("return redis.call('GET', KEYS[1])", "k"),
        evaluate("return redis.call('DEL', KEYS[1])", "k"),
        evaluate("return redis.call('SPOP', KEYS[1])", "k"),
        evaluate("return 1"),
        ("SCRIPT", "LOAD", "return redis.call('SET', 'k', 1)"),
        ("SCRIPT", "FLUSH"),
        ("EVAL_RO", "return redis.call('SET', 'k', 1)", 0),
    ],
    "an error half way": [
        evaluate("redis.call('SET', 'a', 1) redis.call('SET', 'b', 2) error('x')"),
        evaluate("redis.call('SET', 'a', 1) redis.call('LPUSH', 'a', 2) redis.call('SET', 'c', 2)"),
        evaluate("redis.call('SET', 'd', 1) return redis.error_reply('NO')"),
        evaluate("redis.call('SET', 'e', 1) redis.pcall('LPUSH', 'a', 2) redis.call('INCR', 'f')"),
    ],
    "set_repl": [
        evaluate(
            "redis.set_repl(redis.REPL_NONE) redis.call('SET', 'a', 1) "
            "redis.set_repl(redis.REPL_REPLICA) redis.call('SET', 'b', 1) "
            "redis.set_repl(redis.REPL_AOF) redis.call('SET', 'c', 1) "
            "redis.set_repl(redis.REPL_ALL) redis.call('SET', 'd', 1)"
        ),
        evaluate("redis.call('SET', 'e', 1)"),
        evaluate("redis.set_repl(redis.REPL_NONE) redis.call('SET', 'f', 1)"),
        evaluate("redis.set_repl(redis.REPL_NONE) redis.pcall('LPUSH', 'a', 1)"),
        ("SET", "g", 1),
        evaluate("redis.call('SET', 'a', 1) redis.set_repl(redis.REPL_NONE) error('x')"),
        evaluate("redis.call('SET', 'h', 1)"),
    ],
    "chance": [
        evaluate("redis.call('SADD', 's', 'm') return redis.call('SPOP', 's')"),
        evaluate("redis.call('SADD', 's', 'm') return redis.call('SPOP', 's', 2)"),
        evaluate("redis.call('SET', 'f', '1.5') return redis.call('INCRBYFLOAT', 'f', '1.25')"),
        evaluate("redis.call('HINCRBYFLOAT', 'h', 'f', '1.25')"),
        evaluate("return redis.call('XADD', 'x', '*', 'f', 'v')"),
    ],
    "times": [
        evaluate("redis.call('SET', 'a', 1, 'EX', 1000) redis.call('EXPIRE', 'a', 2000)"),
        evaluate("redis.call('SETEX', 'b', 1000, 1)"),
        evaluate("redis.call('GETEX', 'b', 'PX', 500000)"),
        evaluate("redis.call('HSET', 'h', 'f', 1)"),
        evaluate("return redis.call('HEXPIRE', 'h', 50, 'FIELDS', 1, 'f')"),
        evaluate("redis.call('PEXPIRE', 'a', -1)"),
    ],
    "databases": [
        evaluate("redis.call('SELECT', 2) redis.call('SET', 'k', 1)"),
        ("SET", "k", 1),
        evaluate("redis.call('SET', 'k', 1) redis.call('SELECT', 3) redis.call('SET', 'k', 2)"),
        ("SELECT", 5),
        evaluate("redis.call('MOVE', 'k', 1) redis.call('SET', 'k', 2)"),
        ("SELECT", 0),
    ],
    "transactions": [
        ("MULTI",),
        evaluate("redis.call('SET', 'a', 1) redis.call('SET', 'b', 1)"),
        ("SET", "c", 1),
        evaluate("redis.call('GET', 'a')"),
        ("EXEC",),
        ("MULTI",),
        evaluate("return redis.call('GET', 'a')"),
        ("EXEC",),
        ("MULTI",),
        evaluate("return redis.call('SET', 'a', 1)"),
        ("EXEC",),
        ("MULTI",),
        evaluate("redis.set_repl(0) return redis.call('SET', 'a', 1)"),
        ("SET", "d", 1),
        ("EXEC",),
    ],
    "blocking commands": [
        evaluate("redis.call('RPUSH', 'l', 1, 2) redis.call('BLPOP', 'l', 0)"),
        evaluate("return redis.call('BLMOVE', 'l', 'm', 'LEFT', 'RIGHT', 0)"),
        evaluate("return redis.call('BLPOP', 'nothing', 0)"),
        evaluate("redis.call('ZADD', 'z', 1, 'm') return redis.call('BZPOPMIN', 'z', 0)"),
    ],
    "functions": [
        ("FUNCTION", "LOAD", LIBRARY),
        ("FCALL", "two", 1, "k", 5),
        ("FCALL_RO", "reads", 1, "k"),
        ("FUNCTION", "DELETE", "nosuch"),
        ("FUNCTION", "LOAD", "REPLACE", LIBRARY),
        ("FUNCTION", "DELETE", "lib"),
        ("FUNCTION", "FLUSH"),
        ("FUNCTION", "FLUSH", "SYNC"),
    ],
    "functions in a transaction": [
        ("MULTI",),
        ("FUNCTION", "LOAD", LIBRARY),
        ("FCALL", "two", 1, "k", 5),
        ("FUNCTION", "DELETE", "nosuch"),
        ("FCALL_RO", "reads", 1, "k"),
        ("EXEC",),
        ("FCALL", "two", 1, "l", 5),
    ],
    "what it deletes": [
        ("MSET", "a", 1, "b", 2),
        evaluate("redis.call('DEL', 'a', 'b') redis.call('UNLINK', 'c')"),
        ("MSET", "a", 1, "b", 2),
        evaluate("redis.call('FLUSHALL') redis.call('SET', 'k', 1)"),
        evaluate("redis.call('RENAME', 'k', 'l') redis.call('COPY', 'l', 'm')"),
    ],
    "publishing": [
        evaluate("redis.call('PUBLISH', 'c', 'm') redis.call('SET', 'k', 1)"),
        evaluate("return redis.call('PUBLISH', 'c', 'm')"),
    ],
}  # fmt: skip


def commands(server: Process) -> list[list[str]]:
    """What the file holds: names in capitals, and long numbers, which come from clocks, hidden."""
    found: list[list[str]] = []
    data = incr(server)
    at = 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        count = int(data[at + 1 : end])
        at = end + 2
        words: list[str] = []
        for _ in range(count):
            end = data.index(b"\r\n", at)
            size = int(data[at + 1 : end])
            word = data[end + 2 : end + 2 + size].decode()
            words.append(re.sub(r"\d{10,}", "...", word))
            at = end + 4 + size
        found.append([words[0].upper(), *words[1:]])
    return found


def send(client: RawClient, requests: list[tuple[Argument, ...]]) -> list[bytes]:
    return [re.sub(rb"\d{13}", b"...", client.call(*words)) for words in requests]


@pytest.mark.since(8, 8)
def test_keys_that_expired_are_recorded(fresh_server: Factory, fresh_redis: Factory) -> None:
    """In front of the script that met them, whatever it says of its own writes."""
    options = ("--appendonly", "yes", "--enable-debug-command", "yes")
    written = []
    for server in (fresh_server(*options), fresh_redis(*options[:2])):
        with server.client() as client:
            client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            for key in ("a", "b", "c"):
                client.call("SET", key, 1, "PX", 1)
            wait_until(has_expired(client, "c"))
            script = "redis.set_repl(0) redis.call('GET', 'a') redis.call('SET', 'x', 1) "
            script += "redis.set_repl(3) redis.call('INCR', 'b') redis.call('SET', 'y', 1)"
            client.call("EVAL", script, 0)
            client.call("EVAL", "return redis.call('GET', 'c')", 0)
            client.call("SET", "the end", 1)
        wait_until(is_written(server))
        written.append([words for words in commands(server) if "PXAT" not in words])
    assert written[0] == written[1]


@pytest.mark.since(8, 8)
@pytest.mark.parametrize("name", CASES)
def test_the_same_records(fresh_server: Factory, fresh_redis: Factory, name: str) -> None:
    servers = [fresh_server("--appendonly", "yes"), fresh_redis("--appendonly", "yes")]
    written = []
    replies = []
    for server in servers:
        with server.client() as client:
            replies.append(send(client, CASES[name]))
            client.call("SET", "the end", 1)
        wait_until(is_written(server))
        written.append(commands(server))
    assert replies[0] == replies[1]
    assert written[0] == written[1]


def has_expired(client: RawClient, key: str) -> Callable[[], bool]:
    return lambda: client.call("PTTL", key) == b":-2\r\n"


def is_written(server: Process) -> Callable[[], bool]:
    return lambda: b"the end" in incr(server)
