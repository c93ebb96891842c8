"""What scripts may not do, beside the real Redis: nothing leads out, and nothing stays changed."""

from __future__ import annotations

import pytest

from support.process import Pair, Process
from support.scripts import escapes

# All that scripts are given, and what it does.
WORLD = """local lines = {}
for name, value in pairs(_G) do
  if type(value) == 'table' and name ~= '_G' then
    for inner, item in pairs(value) do
      lines[#lines + 1] = name .. '.' .. tostring(inner) .. ' ' .. type(item)
    end
  elseif name ~= '__redis__err__handler' then
    lines[#lines + 1] = name .. ' ' .. type(value)
  end
end
table.sort(lines)
return {
  lines, ('x'):upper(), ('x'):rep(3), string.format('%05.1f', 2.25), math.floor(1.5),
  cjson.encode(cjson.decode('[1,{"a":null}]')), struct.pack('>I2', 258), bit.band(7, 2),
  cmsgpack.pack({1}), tostring(pcall(error)), redis.pcall('GET'), redis.call('PING'),
  select('#', unpack({1, 2, 3})), coroutine.wrap(function() return 5 end)(), type(os.clock()),
  redis.sha1hex(''), tostring(getmetatable({})), #KEYS, #ARGV,
}
"""
NOT_AT_ALL = (
    "debug", "getfenv", "setfenv", "package", "require", "module", "io", "dofile", "loadfile",
    "print", "newproxy", "python", "lupa", "as_attrgetter", "as_itemgetter", "as_function",
)  # fmt: skip


@pytest.mark.judge
@pytest.mark.since(8, 10)
def test_escapes(pair: Pair) -> None:
    """Each is answered as by the real one, and the next script finds the world as it was."""
    pair.both("SCRIPT", "FLUSH")
    pair.both("FLUSHALL")
    world = pair.both("EVAL", WORLD, 0)
    for number, script in enumerate(escapes()):
        pair.both("EVAL", script, 1, "k", "a1", "a2")
        if number % 10 == 0:
            assert pair.both("EVAL", WORLD, 0) == world, script
    assert pair.both("EVAL", WORLD, 0) == world
    assert pair.both("GET", "x") == b"$-1\r\n"


def test_nothing_of_ours_is_seen(server: Process) -> None:
    """Names that would lead out, and functions of the server's own that have no attributes."""
    with server.client() as client:
        for name in NOT_AT_ALL:
            assert client.call("EVAL", f"return rawget(_G, '{name}')", 0) == b"$-1\r\n"
        for path in ("redis.call", "struct.pack", "math.random", "redis.log"):
            for tried in ("x.__class__", "x['__globals__']", "x.__self__", "#x", "x .. ''", "-x"):
                script = f"local x = {path} local ok, text = pcall(function() return {tried} end)"
                reply = client.call_parsed("EVAL", script + " return text", 0)
                assert isinstance(reply, bytes)
                assert reply.startswith(b"user_script:1: attempt to"), (script, reply)


def test_a_chunk_cannot_pose_as_ours(server: Process) -> None:
    """What is ours is not ended in the middle; a script may not take such a name."""
    with server.client() as client:
        for name in (b"@sandbox.lua", b"@cjson.lua", b"@complaints.lua"):
            script = b"local _, text = loadstring('x', '%b') return text" % name
            reply = client.call_parsed("EVAL", script, 0)
            assert isinstance(reply, bytes)
            assert reply.startswith(name + b":1:")
