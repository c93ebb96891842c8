"""Patterns that are matched by the server, beside Lua's own functions."""

from __future__ import annotations

import os
import random
from importlib import import_module
from typing import Any

import pytest
from conftest import Factory

from headrace.server.config.config import Config
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.durability.durability import Durability
from headrace.server.scripting.busy import Busy
from headrace.server.scripting.interpreter import _load, _matching
from headrace.server.state import Server
from support.client import RawClient
from support.waiting import wait_until

# How many patterns are made by chance: more with HEADRACE_PATTERNS.
PATTERNS = int(os.environ.get("HEADRACE_PATTERNS", "3000"))
SINGLE = [
    *["a", "b", "c", ".", "%a", "%d", "%A", "%.", "%%", "[ab]", "[^a]", "[a-c]", "[%d_]"],
    *["[]a]", "[^]]", "%s", "%z", "[%a-]", "[c-a]", "^", "%w", "%x", "%p", "%c", "%U", "$"],
]
REST = [
    "()",
    "$",
    "%b()",
    "%bab",
    "%f[%a]",
    "%f[^b]",
    "%1",
    "%2",
    "(",
    ")",
    "%",
    "[",
    "[a",
    "%f",
    "%b",
]
SCRIPT = """
local text, pattern, by, most = ...
local function all(...) return select('#', ...), ... end
local out = {}
local function add(ok, ...)
  for number = 1, select('#', ...) do
    local value = select(number, ...)
    value = tostring(value)
    out[#out + 1] = ok and value or value:match('([^:]*)$')
  end
  out[#out + 1] = '|'
end
for _, from in ipairs({ 1, 2, -2, 0, 99 }) do
  add(pcall(string.find, text, pattern, from))
  add(pcall(string.match, text, pattern, from))
end
add(pcall(function()
  local found = {}
  for a, b in string.gmatch(text, pattern) do
    found[#found + 1] = tostring(a) .. '/' .. tostring(b)
  end
  return table.concat(found, ' ')
end))
add(pcall(string.gsub, text, pattern, by))
add(pcall(string.gsub, text, pattern, by, most))
add(pcall(string.gsub, text, pattern, { a = 1, b = false, ab = 'x' }))
add(pcall(string.gsub, text, pattern, function(a, b) return b or a ~= 'a' and a .. '!' end))
return table.concat(out, '\\n')
"""


def _lua(most_work: int | None) -> Any:
    """What runs ``SCRIPT``; with our functions where it is said how much is left to Lua's."""
    lua = import_module("lupa.lua51").LuaRuntime(encoding=None, unpack_returned_tuples=True)
    if most_work is not None:
        server = Server(Config())
        busy = Busy(Dispatcher(server, Durability(server)))
        complaints = _load(lua, "complaints")
        made = _load(lua, "patterns", complaints, lua.table_from(_matching(busy)), most_work)
        for name in (b"find", b"match", b"gmatch", b"gsub"):
            lua.globals()[b"string"][name] = made[name]
    return lua.execute(b"return function(...)" + SCRIPT.encode() + b" end")


def _pattern(rng: random.Random) -> bytes:
    parts = []
    for _ in range(rng.choice([1, 1, 2, 2, 3, 4, 6])):
        part = rng.choice(REST) if rng.random() < 0.15 else rng.choice(SINGLE)
        if part not in REST:
            part += rng.choice(["", "", "*", "+", "-", "?"])
        if rng.random() < 0.25:
            part = f"({part})"
        parts.append(part)
    pattern = "".join(parts)
    if rng.random() < 0.2:
        pattern = "^" + pattern
    return pattern.encode() + (b"\0a*" if rng.random() < 0.03 else b"")


def test_the_server_matches_as_lua_does() -> None:
    rng = random.Random(7)
    ours, real = _lua(0), _lua(None)
    for _ in range(PATTERNS):
        pattern = _pattern(rng)
        letters = rng.choice([b"ab", b"abc1", b"a(b)", b"ab. ", b"aB_-\0]%"])
        text = bytes(rng.choices(letters, k=rng.choice([0, 1, 2, 5, 8, 12])))
        by = rng.choice([b"x", b"<%0>", b"<%1>", b"%2", b"%%", b"%", b"%a", 7])
        most = rng.choice([0, 1, 2, -1])
        assert ours(text, pattern, by, most) == real(text, pattern, by, most), (text, pattern, by)


EXPLODING = [
    "string.find(('a'):rep(100000), '.-.-.-.-b')",
    "string.match(('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(41))",
    "string.gsub(('a'):rep(100000), '(a*)*b', '')",
    "string.gsub(('a'):rep(1000000), 'a*b', function() end)",
    "(function() for _ in string.gmatch(('a'):rep(300000), '(a-)%1b') do end end)()",
    "string.find(('('):rep(3000000), '%b()')",
]


@pytest.mark.parametrize("line", EXPLODING)
def test_a_pattern_that_explodes_is_ended(fresh_server: Factory, line: str) -> None:
    server = fresh_server("--busy-reply-threshold", "50")
    with server.client() as client, server.client() as other:
        assert other.call("PING") == b"+PONG\r\n"
        client.send_command("EVAL", f"return {line}", 0)
        wait_until(lambda: other.call("PING").startswith(b"-BUSY"))
        assert other.call("SCRIPT", "KILL") == b"+OK\r\n"
        assert b"Script killed by user" in client.read()
        assert other.call("PING") == b"+PONG\r\n"


def test_a_pattern_that_explodes_does_not_hold_off_the_end(fresh_server: Factory) -> None:
    server = fresh_server("--busy-reply-threshold", "50")
    with server.client() as client, server.client() as other:
        assert other.call("PING") == b"+PONG\r\n"
        client.send_command("EVAL", f"return {EXPLODING[0]}", 0)
        wait_until(lambda: other.call("PING").startswith(b"-BUSY"))
        server.stop()


def test_a_long_text_is_searched_in_time(client: RawClient) -> None:
    """What is no pattern is looked for without one."""
    script = "return {string.find(ARGV[1], ARGV[2], 1, true) or 0, (string.find(ARGV[1], ARGV[2]))}"
    text = "a" * 1_000_000 + "b"
    assert client.call_parsed("EVAL", script, 0, text, "a" * 500_000 + "c") == [0]
    assert client.call_parsed("EVAL", script, 0, text, "a" * 500_000 + "b") == [500001, 500001]
