"""A script that does not end: what others are answered meanwhile, and what ends it."""

from __future__ import annotations

import contextlib
import signal

import pytest
from conftest import Factory

from support.client import RawClient, WireError
from support.process import Process
from support.stopping import stopped
from support.waiting import wait_until

BUSY = (
    b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
)
ENDLESS = (
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do pcall(error) end",
    "while true do coroutine.wrap(function() for i = 1, 9000 do end end)() end",
    ("while true do pcall(coroutine.wrap(function() while true do "
     "pcall(coroutine.wrap(function() while true do end end)) end end)) end"),
    "while true do xpcall(function() while true do end end, function() return 1 end) end",
    "table.sort({1, 2, 3}, function() while true do end end)",
    "('x'):gsub('x', function() while true do end end)",
    "return setmetatable({}, {__index = function() while true do end end}).x",
    "while true do redis.pcall('NOSUCH') end",
    "loadstring('while true do pcall(function() while true do end end) end', '@sandbox.lua')()",
    "repeat local ok = pcall(string.rep, 'x', 10) until not ok",
)  # fmt: skip


def _started(client: RawClient, other: RawClient, script: str) -> None:
    """Begin a script, and wait until others are refused."""
    assert other.call("PING") == b"+PONG\r\n"  # the server knows it
    client.send_command("EVAL", script, 1, "k")
    wait_until(lambda: other.call("PING") == BUSY)


@pytest.mark.parametrize("script", ENDLESS)
def test_any_loop_is_ended(fresh_server: Factory, script: str) -> None:
    server = fresh_server("--busy-reply-threshold", "50")
    with server.client() as client, server.client() as other:
        _started(client, other, script)
        assert other.call("SCRIPT", "KILL") == b"+OK\r\n"
        reply = client.read()
        assert reply.startswith(b"-ERR Script killed by user with SCRIPT KILL..."), reply
        assert client.call("EVAL", "local n = 0 for i = 1, 1e5 do n = n + i end return n", 0) == (
            b":5000050000\r\n"
        )


ALIKE = [b'{"id":%06d,"text":"%b"}' % (number, b"x" * 1200) for number in range(20_000)]
MAKING = "local t = {} for i = 1, 1e6 do t[i] = ('{\"id\":%06d'):format(i) .. ARGV[1] end"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("return #redis.call('LRANGE', KEYS[1], 0, -1)", []),
        ("return #ARGV", ALIKE),
        (MAKING, ALIKE[:1]),
    ],
    ids=["reply", "arguments", "concatenation"],
)
def test_strings_that_look_alike_to_lua(
    fresh_server: Factory, script: str, words: list[bytes]
) -> None:
    """Lua 5.1 goes along all of those when it makes one; others are served meanwhile."""
    server = fresh_server("--busy-reply-threshold", "10")
    with server.client() as client, server.client() as other:
        for at in range(0, len(ALIKE), 1000):
            client.call("RPUSH", "k", *ALIKE[at : at + 1000])
        client.call("EVAL", "return 1", 0)
        client.send_command("EVAL", script, 1, "k", *words)
        wait_until(lambda: other.call("PING") == BUSY)
        assert other.call("SCRIPT", "KILL") == b"+OK\r\n"
        reply = client.read()
        assert reply.startswith(b"-ERR Script killed by user with SCRIPT KILL..."), reply
        assert client.call("EVAL", "return ARGV[1]", 0, "x") == b"$1\r\nx\r\n"


FAILS = (
    "for _ = 1, 20 do if pcall(cjson.decode, ARGV[1]) ~= (ARGV[2] == 'good') then return 0 end end"
)


def test_an_error_in_a_deep_value_costs_no_more_than_the_value(fresh_server: Factory) -> None:
    server = fresh_server(debug=False)
    with server.client() as client:
        client.call("EVAL", "cjson.decode_max_depth(10000)", 0)
        spent_s = []
        for kind, text in (("good", "[" * 7000 + "]" * 7000), ("bad", "[" * 7000 + "x")):
            before_s = server.cpu_s()
            assert client.call("EVAL", FAILS, 0, text, kind) == b"$-1\r\n"
            spent_s.append(server.cpu_s() - before_s)
        assert spent_s[1] < 8 * spent_s[0]


def test_a_function_is_ended(fresh_server: Factory) -> None:
    server = fresh_server("--busy-reply-threshold", "50")
    code = "#!lua name=l\nredis.register_function('f', function() while true do end end)"
    with server.client() as client, server.client() as other:
        assert client.call("FUNCTION", "LOAD", code) == b"$1\r\nl\r\n"
        client.send_command("FCALL", "f", 0)
        wait_until(lambda: other.call("PING").startswith(b"-BUSY"))
        assert other.call("SCRIPT", "KILL").startswith(b"-BUSY")
        assert other.call("FUNCTION", "STATS").startswith(b"*4\r\n$14\r\nrunning_script\r\n*6")
        assert other.call("FUNCTION", "KILL") == b"+OK\r\n"
        reply = client.read()
        assert reply.startswith(b"-ERR Script killed by user with SCRIPT KILL..."), reply
        assert other.call("PING") == b"+PONG\r\n"
        assert other.call("FUNCTION", "KILL").startswith(b"-NOTBUSY")


def test_what_is_allowed_meanwhile(fresh_server: Factory) -> None:
    server = fresh_server("--busy-reply-threshold", "50")
    with server.client() as client, server.client() as other:
        _started(client, other, "while true do end")
        for refused in (("GET", "k"), ("EVAL", "return 1", 0), ("INFO",), ("SHUTDOWN",)):
            assert other.call(*refused) == BUSY
        kill = b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN"
        assert other.call("FUNCTION", "KILL").startswith(kill)
        assert other.call("MULTI") == b"+OK\r\n"
        assert other.call("SET", "k", "v") == BUSY
        assert other.call("EXEC").startswith(b"-EXECABORT Transaction discarded because of: BUSY")
        with server.client(resp3=True) as newcomer:
            newcomer.send_command("PING")
            newcomer.send_command("SCRIPT", "KILL")
            assert [newcomer.read(), newcomer.read()] == [BUSY, b"+OK\r\n"]
            assert client.read().startswith(b"-ERR Script killed")
            assert newcomer.call("PING") == b"+PONG\r\n"
        assert other.call("SCRIPT", "KILL").startswith(b"-NOTBUSY")


@pytest.mark.parametrize("sends", ["at once", "later"])
def test_who_comes_with_the_script(fresh_server: Factory, sends: str) -> None:
    """Those who connect in the turn in which it begins are answered, as those who come later."""
    server = fresh_server("--busy-reply-threshold", "50")
    with server.client() as client, server.client() as other, contextlib.ExitStack() as stack:
        assert client.call("PING") == other.call("PING") == b"+PONG\r\n"
        with stopped(server):
            newcomers = [stack.enter_context(server.client()) for _ in range(3)]
            if sends == "at once":
                for newcomer in newcomers:
                    newcomer.send_command("GET", "k")
            client.send_command("EVAL", "while true do end", 0)
        wait_until(lambda: other.call("PING") == BUSY)
        for newcomer in newcomers:
            if sends == "later":
                newcomer.send_command("GET", "k")
            assert newcomer.read() == BUSY
        assert newcomers[0].call("SCRIPT", "KILL") == b"+OK\r\n"
        assert client.read().startswith(b"-ERR Script killed")
        assert [each.call("GET", "k") for each in newcomers] == [b"$-1\r\n"] * 3


@pytest.mark.parametrize("writes", [0, 1, 3])
@pytest.mark.parametrize("policy", ["none", "everysec", "always"])
def test_who_is_answered_before_the_script(fresh_server: Factory, policy: str, writes: int) -> None:
    """The replies to what ran in its turn do not wait for its end, even if it has written."""
    options = ["--appendonly", "yes", "--appendfsync", policy] if policy != "none" else []
    server = fresh_server("--busy-reply-threshold", "50", *options)
    with server.client() as client, contextlib.ExitStack() as stack:
        others = [stack.enter_context(server.client()) for _ in range(3)]
        for other in (client, *others):
            assert other.call("PING") == b"+PONG\r\n"
        with stopped(server):
            for number, other in enumerate(others):
                other.send_command("SET", f"k{number}", "v")
            script = f"for n = 1, {writes} do redis.call('SET', KEYS[1] .. n, n) end"
            client.send_command("EVAL", f"{script} while true do end", 1, "half")
        assert [other.read() for other in others] == [b"+OK\r\n"] * 3
        wait_until(lambda: all(other.call("PING") == BUSY for other in others))
        server.restart(crash=True)
    if policy != "none":
        assert server.call("DBSIZE") == 3


@pytest.mark.parametrize("writes", [1, 3])
@pytest.mark.parametrize("policy", ["everysec", "always"])
def test_what_a_long_script_has_written_is_one_unit(
    fresh_server: Factory, policy: str, writes: int
) -> None:
    """It goes on with its records where it was when replies to others were sent."""
    server = fresh_server(
        *("--busy-reply-threshold", "50", "--appendonly", "yes", "--appendfsync", policy)
    )
    script = f"""
        for n = 1, {writes} do redis.call('SET', KEYS[1] .. n, n) end
        local i = 0
        while i < 3e7 do i = i + 1 end
        redis.call('SELECT', 1)
        redis.call('SET', 'last', 'v')
    """
    with server.client() as client, server.client() as other:
        assert client.call("PING") == other.call("PING") == b"+PONG\r\n"
        with stopped(server):
            other.send_command("SET", "before", "v")
            client.send_command("EVAL", script, 1, "k")
        assert other.read() == b"+OK\r\n"
        wait_until(lambda: other.call("PING") == BUSY)
        assert client.read() == b"$-1\r\n"
        assert other.call("SET", "after", "v") == b"+OK\r\n"
        server.restart(crash=True)
    assert server.call("DBSIZE") == writes + 2
    with server.client() as client:
        client.call("SELECT", 1)
        assert client.call("GET", "last") == b"$1\r\nv\r\n"
    records = b"".join(path.read_bytes() for path in server.directory.glob("*/*.incr.aof"))
    order = [
        records.index(name) for name in (b"before", b"MULTI", b"k1", b"last", b"EXEC", b"after")
    ]
    assert order == sorted(order)


def test_who_was_answered_alone_before_the_script(fresh_server: Factory) -> None:
    server = fresh_server("--busy-reply-threshold", "50")
    with server.client() as client, server.client() as other:
        for each in (client, other, other):
            assert each.call("PING") == b"+PONG\r\n"
        with stopped(server):
            other.send_command("PING")
            client.send_command("EVAL", "while true do end", 0)
        assert other.read() == b"+PONG\r\n"
        wait_until(lambda: other.call("PING") == BUSY)
        assert other.call("SCRIPT", "KILL") == b"+OK\r\n"


def test_a_script_that_has_written(fresh_server: Factory) -> None:
    """It is not killed; the server can be ended, without what it has written."""
    server = fresh_server("--busy-reply-threshold", "50", "--appendonly", "yes")
    with server.client() as client, server.client() as other:
        assert client.call("SET", "k", "before") == b"+OK\r\n"
        _started(client, other, "redis.call('SET', KEYS[1], 'half') while true do end")
        assert other.call("SCRIPT", "KILL").startswith(b"-UNKILLABLE Sorry")
        other.send_command("SHUTDOWN", "NOSAVE")
        server.wait()
    server.start()
    assert server.call("GET", "k") == b"before"


@pytest.mark.parametrize("write", ["", "redis.call('SET', KEYS[1], 1)"])
def test_a_signal_ends_the_server(fresh_server: Factory, write: str) -> None:
    server = fresh_server("--busy-reply-threshold", "50")
    with server.client() as client, server.client() as other:
        _started(client, other, f"{write} while true do end")
        server.signal(signal.SIGTERM)
        server.wait()


@pytest.mark.parametrize(
    "script",
    [
        "local t = {} while true do t[#t + 1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10} end",
        "local s = 'x' while true do s = s .. s end",
        ("local t = {} while true do pcall(function() while true do "
         "t[#t + 1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10} end end) end"),
    ],
)  # fmt: skip
def test_a_script_that_takes_all_memory(fresh_server: Factory, script: str) -> None:
    server: Process = fresh_server("--busy-reply-threshold", "100000")
    with server.client(timeout_s=60) as client:
        reply = client.call_parsed("EVAL", script, 0)
        assert isinstance(reply, WireError)
        assert reply.text.startswith(b"ERR not enough memory"), reply
        assert client.call("EVAL", "return #string.rep('x', 1000000)", 0) == b":1000000\r\n"
        assert int(server.info("memory")["used_memory_lua"]) < 600 << 20


def test_a_library_has_half_a_second(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        reply = client.call("FUNCTION", "LOAD", "#!lua name=slow\nwhile true do end")
        assert reply == b"-ERR Error registering functions: ERR FUNCTION LOAD timeout\r\n"
        assert client.call("FUNCTION", "LIST") == b"*0\r\n"
