"""Scripts of a region: other regions get all of what one did at once, and never a part."""

from __future__ import annotations

import re
import shutil

from support.client import WireError
from support.mesh import Mesh

ADD_TWO = "redis.call('XADD', KEYS[1], '*', 'f', 1) redis.call('XADD', KEYS[2], '*', 'f', 2)"
SMALL = ("--proto-max-bulk-len", "1mb", "--aa-transaction-max-bytes", "1mb")
FUNCTIONS = """#!lua name=lib
redis.register_function('two', function(keys)
    redis.call('XADD', keys[1], '*', 'f', 1)
    redis.call('XADD', keys[2], '*', 'f', 2)
end)
"""


def units(aof: bytes) -> list[str]:
    """The names of the commands in a file, in its order."""
    return re.findall(r"\*\d+\r\n\$\d+\r\n(\w+)\r\n", aof.decode("latin-1"))


def test_a_script_is_one_transaction(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    with one.client() as client:
        for _ in range(50):
            assert client.call("EVAL", ADD_TWO, 2, "a", "b") == b"$-1\r\n"
        assert client.call("FUNCTION", "LOAD", FUNCTIONS) == b"$3\r\nlib\r\n"
        assert client.call("FCALL", "two", 2, "a", "b") == b"$-1\r\n"
        client.call("MULTI")
        client.call("EVAL", ADD_TWO, 2, "a", "b")
        client.call("EVAL", "return redis.call('XADD', KEYS[1], '*', 'f', 1)", 1, "c")
        assert client.call("EXEC").startswith(b"*2\r\n$-1\r\n$")
    two_regions.sync()
    for region in (one, two):
        assert len(region.ids("a")) == len(region.ids("b")) == 52
        assert len(region.ids("c")) == 1
        shape = "".join(
            {"MULTI": "(", "EXEC": ")", "XADD": "+"}.get(n, "") for n in units(region.aof())
        )
        assert shape == "(++)" * 51 + "(+++)"
    assert two.call("FUNCTION", "LIST") == []  # functions are a region's own
    assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")
    for region in (one, two):
        region.kill()
        region.start_again()
    assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")
    assert len(one.ids("a")) == 52
    one.wait_until_writable()
    assert one.call("FCALL", "two", 2, "a", "b") is None
    one.call("BGREWRITEAOF")
    one.call("EVAL", ADD_TWO, 2, "a", "b")
    two_regions.sync()
    assert len(two.ids("a")) == 54


def test_what_a_region_refuses_inside_a_script(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    with one.client() as client:
        refused = client.call("EVAL", ADD_TWO + " redis.call('SET', 'k', 'v')", 2, "a", "b")
        assert refused.startswith(client.call("SET", "k", "v")[:30])
        caught = "return redis.pcall('SET', 'k', 'v')"
        assert client.call("EVAL", ADD_TWO + caught, 2, "a", "b").startswith(b"-")
        for flags in ("NONE", "REPLICA"):
            refused = client.call(
                "EVAL", f"redis.set_repl(redis.REPL_{flags}) " + ADD_TWO, 2, "a", "b"
            )
            assert refused.startswith(b"-ERR a region records all writes")
        assert (
            client.call("EVAL", "redis.set_repl(redis.REPL_AOF) " + ADD_TWO, 2, "a", "b")
            == b"$-1\r\n"
        )
    two_regions.sync()
    assert len(two.ids("a")) == len(two.ids("b")) == 3
    assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")
    two.kill()
    two_regions.partition({1}, {2})
    shutil.rmtree(two.directory / "appendonlydir")
    two.start_again()
    with two.client() as client:  # it has nothing, and does not write before it has a copy
        refused = client.call("XADD", "a", "*", "f", "v")
        assert refused.startswith(b"-AASYNCING")
        assert client.call("EVAL", ADD_TWO, 2, "a", "b").startswith(refused.rstrip())
        assert client.call("EVAL", "return redis.call('XLEN', 'a')", 0) == b":0\r\n"
        two_regions.heal()
        two.wait_until_writable()
        assert client.call("EVAL", ADD_TWO, 2, "a", "b") == b"$-1\r\n"
    two_regions.sync()
    assert len(one.ids("a")) == 4


def test_a_script_is_no_more_than_a_link_carries() -> None:
    with Mesh(2, *SMALL) as mesh:
        one, two = mesh[1], mesh[2]
        with one.client() as client:
            writes = "for i = 1, 100 do redis.call('XADD', KEYS[1], '*', 'f', ARGV[1]) end"
            refused = client.call_parsed("EVAL", writes, 1, "s", "x" * 100_000)
            assert isinstance(refused, WireError)
            assert b"larger than one transaction between regions" in refused.text
            added = len(one.ids("s"))
            assert added == 10
            client.call("MULTI")
            for _ in range(3):
                client.call("EVAL", writes.replace("100", "4"), 1, "t", "x" * 100_000)
            replies = client.call_parsed("EXEC")
            assert isinstance(replies, list)
            assert [type(each) for each in replies] == [type(None), WireError, WireError]
            assert (
                client.call("EVAL", writes.replace("100", "9"), 1, "t", "x" * 100_000) == b"$-1\r\n"
            )
            assert client.call("EVAL", "redis.call('FLUSHALL')", 0) == b"$-1\r\n"
            assert client.call("EVAL", ADD_TWO, 2, "a", "b") == b"$-1\r\n"
        mesh.sync()
        assert two.call("DBSIZE") == 2
        assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")
        for region in mesh.regions.values():
            region.check_log()
