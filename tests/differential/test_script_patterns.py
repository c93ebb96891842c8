"""Functions of ``string`` that take patterns: what they answer and how they fail, as in Redis."""

from __future__ import annotations

import pytest

from support.process import Pair, ServerProcess

SAME = [
    "string.find('hello', 'l+')",
    "string.find('hello', '(l)(l)')",
    "string.find('a.b', '.', 1, true)",
    "string.find('a.b', '.', 2, true)",
    "('hello'):find('l', 4)",
    "string.find('hello', 'x')",
    "string.match('key: value', '(%w+): (%w+)')",
    "string.match('x', '()')",
    "('x'):match('y')",
    "string.gsub('hello', 'l', 'L')",
    "string.gsub('hello', 'l', 'L', 1)",
    "string.gsub('hello', '(l)', '<%1>')",
    "string.gsub('hello', 'l', {l = 'L'})",
    "string.gsub('hello', '.', function(c) return c == 'l' and 'L' or nil end)",
    "(function() for a, b in ('a1b2'):gmatch('(%a)(%d)') do return a, b end end)()",
    "('abcdefgh'):match('(a)(b)(c)(d)(e)(f)(g)(h)')",
    "('abcdefgh'):find('(a)(b)()(c)')",
    "string.gfind == string.gmatch",
    "string.find == ('').find",
    "string.find()",
    "string.find('x')",
    "string.find(nil, 'x')",
    "string.find({}, 'x')",
    "('x'):find()",
    "('x'):find(nil)",
    "('x'):find({})",
    "string.find('x', 'x', {})",
    "('x').find(nil, 'x')",
    "string.match('x')",
    "('x'):match(nil)",
    "string.gmatch('x')",
    "string.gmatch(nil)",
    "string.gsub('x', 'x')",
    "string.gsub('x', 'x', nil)",
    "string.gsub('x', 'x', true)",
    "('x'):gsub(nil, 'x')",
    "('x'):gsub('x', 'x', {})",
    "string.find('x', '[')",
    "string.find('x', '%')",
    "string.find('x', '(')",
    "string.find('x', ')')",
    "string.find('x', '%1')",
    "string.match('x', '%f')",
    "string.match('x', '%b')",
    "string.match('x', '[a')",
    "('x'):match('(()')",
    "string.gsub('x', '(', 'y')",
    "string.gsub('x', 'x', '%2')",
    "string.gsub('x', 'x', '%')",
    "string.gsub('x', 'x', function() return {} end)",
    "string.gsub('x', 'x', function() error('inside') end)",
    "string.gsub('x', 'x', function() error('inside', 0) end)",
    "string.gsub('x', 'x', function() error({err = 'ERR inside'}) end)",
    "string.gsub('x', 'x', function() return redis.call('NOSUCH') end)",
    "string.gsub('x', '[', function() return 'y' end)",
    "string.gsub('x', '(', {})",
    "string.gsub('x', 'x', setmetatable({}, {__index = function() error('inside') end}))",
    "string.gsub({}, 'x', {})",
    "(function() for _ in ('x'):gmatch('[') do end end)()",
    "(function() for _ in string.gmatch('x', '%') do end end)()",
    "string.find(('a'):rep(300000), ('a?'):rep(300000), 1, true)",
    "string.find(('a'):rep(20000), ('a'):rep(20000))",
    "(('a'):rep(20000)):gsub('a', 'b')",
    "string.find('x', ('x'):rep(20000) .. '[')",
    "pcall(string.find, 'x', '[')",
    "pcall(string.find)",
    "pcall(string.gsub, 'x', 'x', function() error('inside') end)",
    "pcall(('').match, 'x', nil)",
    "(function() local f = string.find return f(nil) end)()",
    "(function() local f = string.find local r = f(nil) return r end)()",
    "(function() local s = 'x' local r = s:find(nil) return r end)()",
]
WAYS = [
    "local function show(...) return {select('#', ...), tostring((...)), ...} end return show(%s)",
    "return %s",
    "local v = %s return tostring(v)",
    "return {pcall(function() return %s end)}",
    "return {pcall(function() local v = %s return tostring(v) end)}",
    "\n\nlocal v = cjson.encode({tostring(%s)})\nreturn v",
    "return {xpcall(function() local v = %s end, function(e) return type(e) == 'table' or e end)}",
]


@pytest.mark.judge
@pytest.mark.since(8, 10)
@pytest.mark.parametrize("way", WAYS)
def test_same_as_redis(pair: Pair, way: str) -> None:
    for expression in SAME:
        pair.both("EVAL", way % expression, 0)


@pytest.mark.parametrize("item", ["a?", "a*", "a+", "a-", "[ab]?", "%w*"])
@pytest.mark.parametrize(
    "call",
    [
        "string.find(text, pattern)",
        "text:find(pattern, 1, false)",
        "text:match(pattern, 1, true)",
        "text:gmatch(pattern)()",
        "text:gsub(pattern, '')",
        "text:gsub(pattern, {})",
        "text:gsub(pattern, function() end)",
    ],
)
def test_a_pattern_may_not_take_all_of_the_stack(
    server: ServerProcess, item: str, call: str
) -> None:
    """In Redis it ends the server."""
    script = f"local text, pattern = ('a'):rep(200000), ('{item}'):rep(200000)\nreturn {call}"
    with server.client() as client:
        refused = client.call("EVAL", script, 0)
        assert refused.startswith(b"-ERR user_script:2: pattern too complex script: ")
        assert refused.endswith(b", on @user_script:2.\r\n")
        for size in (1, 9):  # by Lua, and by the server
            script = f"local text, pattern = ('a'):rep({size}), ('{item}'):rep(9999)\nreturn {call}"
            if not item.endswith(("*", "+")):  # which would try every way to share the text out
                assert not client.call("EVAL", script, 0).startswith(b"-")
