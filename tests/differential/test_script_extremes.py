"""Scripts that go far: many words, large replies, deep recursion; and what counts as an error."""

from __future__ import annotations

import pytest

from support.client import RawClient
from support.process import Pair, RedisProcess, ServerProcess

pytestmark = [pytest.mark.once, pytest.mark.judge, pytest.mark.since(8, 10)]

RAISED = (
    "error(redis.pcall('NOSUCH'))",
    "return redis.pcall('NOSUCH')",
    "redis.pcall('NOSUCH') return redis.pcall('NOSUCH')",
    "redis.call('NOSUCH')",
    "return {redis.pcall('NOSUCH'), redis.pcall('INCR', KEYS[1])}",
    "error(redis.pcall('INCR', KEYS[1]))",
    "redis.call('INCR', KEYS[1])",
    "local ok, e = pcall(redis.call, 'INCR', KEYS[1]) error(e)",
    "local ok, e = pcall(redis.call, 'INCR', KEYS[1]) return {err = e}",
    "local e = redis.pcall('INCR', KEYS[1]) error(e.err)",
    "local e = redis.pcall('INCR', KEYS[1]) error({err = e.err})",
    "local e = redis.pcall('INCR', KEYS[1]) e.ignore_error_stats_update = nil return e",
    "return redis.error_reply('MINE it is')",
    "error(redis.error_reply('MINE it is'))",
    "return {err = 'MINE it is'}",
    "error({err = 'MINE it is'})",
    "error('plain')",
    "local e = redis.pcall('NOSUCH') return {e, e, e}",
    "redis.call('EVAL', 'return 1', 0)",
    "error(redis.pcall('EVAL', 'return 1', 0))",
)
RECURSION = (
    "local function f(n) return 1 + f(n + 1) end return f(0)",
    "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return f(15000)",
    "local function f(n) return f(n) end local co = 0 return co",
    "local function f(n) if n == 0 then return 'end' end return f(n - 1) end return f(100000)",
    "local t = {} for n = 1, 100000 do t = {t} end return t",
    "local t = {} for n = 1, 7994 do t = {t} end return t",
    "local t = {} for n = 1, 7995 do t = {t} end return t",
    "local t = {} t[1] = t return t",
    "local t = {} t[1] = t return cjson.encode(t)",
    "local function f(n) return (('x'):gsub('x', function() return f(n + 1) end)) end return f(0)",
    "local function f() return pcall(f) end return tostring(f())",
    "return cjson.decode(('['):rep(2000) .. (']'):rep(2000))",
)


@pytest.mark.parametrize("script", RAISED)
def test_what_counts_as_an_error(
    server: ServerProcess, redis_server: RedisProcess, script: str
) -> None:
    """And how often: an error that a script passes on is counted where it began."""
    both = Pair.of(server, redis_server)
    both.both("CONFIG", "RESETSTAT")
    both.both("SET", "k", "no number")
    both.both("EVAL", script, 1, "k")
    both.both("INFO", "errorstats")
    both.both("CONFIG", "RESETSTAT")
    both.close()


@pytest.mark.parametrize("script", RECURSION)
def test_recursion(pair: Pair, script: str) -> None:
    pair.both("EVAL", script, 0)
    pair.both("EVAL", "return 1", 0)


@pytest.mark.slow
def test_a_million_words(pair: Pair) -> None:
    words = [str(number) for number in range(1_000_000)]
    pair.both("EVAL", "return {#KEYS, #ARGV, ARGV[1], ARGV[#ARGV]}", 0, *words)
    pair.both("EVAL", "return {#KEYS, #ARGV, KEYS[1], ARGV[#ARGV]}", 500_000, *words)
    pair.both("EVAL", "return ARGV", 0, *words[:100_000])
    pair.both("EVAL", "return redis.call('SADD', 's', unpack(ARGV, 1, 7000))", 0, *words)
    pair.both("EVAL", "return redis.sha1hex(table.concat(ARGV))", 0, *words)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "return ('x'):rep(100000000)",
        "return {('x'):rep(50000000), {('y'):rep(50000000)}}",
        "redis.call('SET', KEYS[1], ('z'):rep(50000000)) return redis.call('GET', KEYS[1])",
    ],
)
def test_a_large_reply(server: ServerProcess, redis_server: RedisProcess, script: str) -> None:
    replies = []
    for each in (server, redis_server):
        with RawClient(each.port, timeout_s=60) as client:
            replies.append(client.call("EVAL", script, 1, "k"))
            client.call("DEL", "k")
    ours, real = replies
    assert len(ours) > 50_000_000
    assert ours == real
