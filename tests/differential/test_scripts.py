"""EVAL and its kin against the real Redis: replies, conversions, errors with their lines."""

from __future__ import annotations

import hashlib
import random
import re

import pytest

from support.process import Pair
from support.random_calls import KEYS, RandomCalls
from support.scripts import evaluated

pytestmark = [pytest.mark.judge, pytest.mark.since(8, 10)]

WRONG_CALLS = (
    ("EVAL",), ("EVAL", "return 1"), ("EVAL", "return 1", "x"), ("EVAL", "return 1", "-1"),
    ("EVAL", "return 1", "2", "k"), ("EVAL", "return 1", "99999999999999999999"),
    ("EVAL", "return", "1.5"), ("EVALSHA", "x", "0"), ("EVALSHA", "f" * 40, "0"),
    ("EVALSHA", "f" * 40, "1"), ("EVALSHA", "f", "1"), ("EVALSHA", "f" * 41, "x"),
    ("EVALSHA", "g" * 40, "0"), ("EVALSHA_RO", "f" * 40, "0"),
    ("EVAL_RO", "return redis.call('SET', 'a', '1')", "0"),
    ("EVAL_RO", "return redis.pcall('SET', 'a', '1')", "0"), ("EVAL_RO", "return 1", "0"),
    ("SCRIPT",), ("SCRIPT", "NOSUCH"), ("SCRIPT", "LOAD"), ("SCRIPT", "LOAD", "x"),
    ("SCRIPT", "LOAD", "return 5", "x"), ("SCRIPT", "EXISTS"), ("SCRIPT", "EXISTS", "x", "f" * 40),
    ("SCRIPT", "FLUSH", "x"), ("SCRIPT", "FLUSH", "SYNC", "x"), ("SCRIPT", "FLUSH", "ASYNC"),
    ("SCRIPT", "KILL"), ("SCRIPT", "KILL", "x"), ("SCRIPT", "DEBUG"), ("SCRIPT", "DEBUG", "no"),
    ("SCRIPT", "SHOW", "x"), ("EVAL", "#!js\nreturn 1", "0"), ("EVAL", "#!lua flags=bad\n", "0"),
    ("EVAL", "#!lua name=a\nreturn 1", "0"), ("EVAL", "#!", "0"), ("EVAL", "#!lua", "0"),
    ("EVAL", "return 1 +", "0"), ("EVAL", "\x1bLua", "0"), ("EVAL", "", "0"),
    ("EVAL", "#!lua flags=no-writes,allow-oom , allow-stale\nreturn 1", "0"),
)  # fmt: skip


@pytest.mark.parametrize("protocol", [2, 3])
def test_scripts(pair: Pair, protocol: int) -> None:
    pair.ours.call("HELLO", protocol)
    pair.real.call("HELLO", protocol)
    pair.both("FLUSHALL")
    for script in evaluated():
        pair.both("EVAL", script, 2, "k1", "k2", "a1", "a2")


def test_wrong_calls(pair: Pair) -> None:
    pair.both("SCRIPT", "FLUSH")
    for call in WRONG_CALLS:
        pair.both(*call)


ODD_TEXTS = (
    "a\\0b", "a\\rb", "a\\r\\nb", "\\0", "a\\r\\n", "\\nERR x", "-ERR a\\0b c", "ERR a\\nb c\\0d",
    "a b\\0c", "--x", "-x y\\r\\n", "", " ", "ERR", "-",
)  # fmt: skip
WITH_TEXT = (
    "return redis.error_reply('%s')", "return redis.error_reply('%s').err",
    "return redis.status_reply('%s')", "return redis.status_reply('%s').ok", "return {err='%s'}",
    "return {ok='%s'}", "return {{err='%s'}, {ok='%s'}, '%s'}", "error('%s')", "error('%s', 0)",
    "error({err='%s'})", "error({ok='%s'})", "error({err='%s', ignore_error_stats_update=true})",
    "return {pcall(error, '%s')}", "return {pcall(error, {err='%s'})}", "assert(false, '%s')",
    "return redis.pcall('%s').err", "return redis.call('GET', '%s', 'x')",
    "return {big_number='%s'}",
    "return {verbatim_string={format='%s', string='%s'}}", "return {map={['%s']={err='%s'}}}",
    "return loadstring('%s')", "return {pcall(cjson.decode, '%s')}",
    "return redis.pcall('OBJECT', '%s', 'x')", "return redis.pcall('SET', 'k', 'v', '%s')",
)  # fmt: skip
SIGNED = (
    "return {double=-0.0}", "return {{double=-0.0}, {map={a={double=-0.0}}}}",
    "return {double=0.0}",
    "return struct.pack('dfd', -0.0, -0.0, 0)", "return redis.sha1hex(-0.0)", "return -0.0",
    "return struct.pack('s', -0.0)", "return struct.pack()", "return {pcall(struct.pack, 'd', {})}",
    "return redis.sha1hex(0.5)", "return redis.sha1hex()", "return cmsgpack.pack(-0.0)",
    "return redis.call('SET', 'k', -0.0)", "return cjson.encode({-0.0})", "return ('d'):pack('x')",
    "return tostring(struct.unpack('d', struct.pack('d', -0.0)))", "return cjson.encode(redis)",
    "return cjson.encode({bit})", "return redis.debug()", "return {redis.debug()}",
    "return type(redis.debug())", "return select('#', redis.debug(1, 2))",
    "local t = {} for i = 1, 7999 do t[i] = i end return #{unpack(t)}",
    "local t = {} for i = 1, 8000 do t[i] = i end return #{unpack(t)}",
    "local t = {} for i = 1, 8000 do t[i] = i end return #{unpack(t, 3)}",
    "local t = {} for i = 1, 8000 do t[i] = i end return #{unpack(t, 1, 7997)}",
    "local t = {} for i = 1, 8000 do t[i] = i end return #{unpack(t, 1, 7998)}",
)  # fmt: skip


@pytest.mark.parametrize("protocol", [2, 3])
def test_odd_texts_and_signed_zeros(pair: Pair, protocol: int) -> None:
    pair.ours.call("HELLO", protocol)
    pair.real.call("HELLO", protocol)
    for text in ODD_TEXTS:
        for script in WITH_TEXT:
            pair.both("EVAL", script.replace("%s", text), 0)
    for script in SIGNED:
        pair.both("EVAL", script, 0)


LEAVING = (
    "redis.call('SELECT', 5) redis.setresp(3) return redis.call('HIMPORT', 'PREPARE', 'f', 'a')",
    "redis.call('HIMPORT', 'PREPARE', 'f', 'a') return redis.call('HIMPORT', 'SET', 'h', 'f', 1)",
    "redis.set_repl(redis.REPL_NONE) redis.call('HIMPORT', 'PREPARE', 'f', 'a') error('x')",
)
LOOKING = (
    "return {redis.pcall('HIMPORT', 'SET', 'h', 'f', 1), redis.call('HIMPORT', 'DISCARDALL')}",
    "return {redis.call('EXISTS', 'here'), redis.call('HGETALL', 'h'), #KEYS, #ARGV}",
)


def test_a_script_leaves_nothing_to_the_next_one(pair: Pair) -> None:
    """Its database, its protocol, its arguments and the fields that it has named end with it."""
    pair.both("SET", "here", 1)
    pair.both("HIMPORT", "PREPARE", "mine", "a")
    for script in LEAVING:
        for look in LOOKING:
            pair.both("EVAL", script, 1, "k", "a")
            pair.both("EVAL", look, 0)
            pair.both("MULTI")
            pair.both("EVAL", script, 1, "k", "a")
            pair.both("EVAL", look, 0)
            pair.both("EXEC")
    pair.both("HIMPORT", "SET", "h", "f", 1)
    pair.both("HIMPORT", "SET", "h", "mine", 1)


def test_scripts_by_their_hash(pair: Pair) -> None:
    """An evaluated script is known, in either case of its digits, until the cache is emptied."""
    script = b"return {KEYS[1], ARGV[1], redis.call('INCR', KEYS[1])}"
    sha = hashlib.sha1(script).hexdigest()
    pair.both("FLUSHALL")
    pair.both("SCRIPT", "FLUSH", "SYNC")
    for name in (sha, sha.upper()):
        pair.both("EVALSHA", name, 1, "k", "a")
        pair.both("SCRIPT", "EXISTS", name, "x" * 40, sha)
        pair.both("SCRIPT", "LOAD", script)
        pair.both("SCRIPT", "EXISTS", name)
        pair.both("EVALSHA", name, 1, "k", "a")
        pair.both("EVALSHA_RO", name, 1, "k", "a")
        pair.both("SCRIPT", "FLUSH")
        pair.both("EVAL", script, 1, "k", "a")
        pair.both("EVALSHA", name, 1, "k", "a")
        pair.both("SCRIPT", "FLUSH", "ASYNC")


@pytest.mark.parametrize("seed", [1, 2])
def test_random_calls(pair: Pair, seed: int) -> None:
    """What commands give to scripts, and what scripts make of it."""
    scripts = RandomCalls(random.Random(seed))
    for number in range(600):
        if number % 100 == 0:
            pair.both("FLUSHALL")
        pair.both("EVAL", scripts.script(), len(KEYS), *KEYS, "11", "arg")


def test_each_command_is_charged_with_its_own_time(pair: Pair) -> None:
    """The time of Lua is that of the script, which is charged with all."""
    spin = "for _ = 1, 100 do for _ = 1, 20000 do end redis.call('GET', 'k') end "
    long = "for _ = 1, 20 do redis.call('LRANGE', 'l', 0, -1) end return 1"
    for client in (pair.ours, pair.real):
        client.call("RPUSH", "l", *range(5000))
        client.call("CONFIG", "RESETSTAT")
        client.call("CONFIG", "SET", "slowlog-log-slower-than", 0)
        client.call("SLOWLOG", "RESET")
        client.call("EVAL", spin + long, 0)
        stats = client.call("INFO", "commandstats")
        usec = {
            name: int(re.findall(rb"cmdstat_%b:calls=\d+,usec=(\d+)" % name, stats)[0])
            for name in (b"eval", b"get", b"lrange")
        }
        assert usec[b"get"] < usec[b"eval"] / 5
        assert usec[b"get"] + usec[b"lrange"] < usec[b"eval"]
        client.call("CONFIG", "SET", "slowlog-log-slower-than", 10000)
        logged = client.call_parsed("SLOWLOG", "GET", 10)
        assert isinstance(logged, list)
        whose = {entry[3][0].lower(): entry[4] for entry in logged}
        assert whose[b"lrange"] == b""
        assert whose[b"eval"] != b""
