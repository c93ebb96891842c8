"""What scripts take of the memory: it stays as it is, however many come."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from conftest import Factory

from support.process import Process

MANY = int(os.environ.get("HEADRACE_MANY_SCRIPTS", "12000"))
KEPT = 500  # scripts of EVAL; those of SCRIPT LOAD stay


def facts(server: Process) -> dict[str, int]:
    """Return what INFO says of scripts, and the size of the process, in bytes."""
    info = server.info("everything")
    names = ("number_of_cached_scripts", "evicted_scripts", "used_memory_vm_eval",
             "used_memory_scripts_eval", "used_memory_vm_functions", "number_of_libraries",
             "number_of_functions", "used_memory_functions")  # fmt: skip
    found = {name: int(info[name]) for name in names}
    pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1])
    return {**found, "rss": pages * 4096}


def evaluate(server: Process, first: int, count: int) -> None:
    """Run scripts that differ, each with a table and a closure of its own."""
    with server.client() as client:
        for start in range(first, first + count, 100):
            numbers = range(start, min(start + 100, first + count))
            replies = client.pipeline(
                *[
                    (
                        "EVAL",
                        f"local t = {{{n}}} local f = function() return t[1] end return f()",
                        0,
                    )
                    for n in numbers
                ]
            )
            assert replies == [b":%d\r\n" % number for number in numbers]


def test_the_newest_scripts_are_known(fresh_server: Factory) -> None:
    server = fresh_server()
    loaded = server.call("SCRIPT", "LOAD", "return 'loaded'")
    assert isinstance(loaded, bytes)
    server.call("EVAL", "return 'used again'", 0)
    used = hashlib.sha1(b"return 'used again'").hexdigest()
    evaluate(server, 0, KEPT - 1)
    assert facts(server)["number_of_cached_scripts"] == KEPT + 1
    assert server.call("EVALSHA", used, 0) == b"used again"
    evaluate(server, KEPT, 100)
    found = facts(server)
    assert found["number_of_cached_scripts"] == KEPT + 1
    assert found["evicted_scripts"] == 100
    assert server.call("SCRIPT", "EXISTS", loaded, used) == [1, 1]
    evaluate(server, 2 * KEPT, KEPT)
    assert server.call("SCRIPT", "EXISTS", loaded, used) == [1, 0]
    server.call("CONFIG", "RESETSTAT")
    assert facts(server)["evicted_scripts"] == 0
    for mode in ("ASYNC", "SYNC"):
        assert server.call("SCRIPT", "FLUSH", mode) == b"OK"
        assert server.call("SCRIPT", "EXISTS", loaded) == [0]
        assert facts(server)["number_of_cached_scripts"] == 0
        server.call("SCRIPT", "LOAD", "return 'loaded'")


@pytest.mark.parametrize("flushes", ["", "ASYNC", "SYNC"])
def test_many_scripts_take_no_more_memory(fresh_server: Factory, flushes: str) -> None:
    """They come and go, or are flushed. ``HEADRACE_MANY_SCRIPTS=100000`` is the long form."""
    server = fresh_server(debug=False)
    many = 6000
    for start in range(0, many, 1000):
        evaluate(server, start, 1000)
        if flushes:
            server.call("SCRIPT", "FLUSH", flushes)
    before = facts(server)
    for start in range(many, many + MANY, 1000):
        evaluate(server, start, 1000)
        if flushes:
            server.call("SCRIPT", "FLUSH", flushes)
    after = facts(server)
    assert after["number_of_cached_scripts"] == (0 if flushes else KEPT)
    assert after["used_memory_vm_eval"] < 4_000_000
    assert after["rss"] - before["rss"] < 3_000_000, (before, after)


def test_libraries_that_come_and_go_take_no_more_memory(fresh_server: Factory) -> None:
    server = fresh_server(debug=False)

    def load(first: int, count: int) -> None:
        with server.client() as client:
            for number in range(first, first + count):
                code = f"#!lua name=lib\nlocal n = {number}\n" + "-- long\n" * 100
                code += "redis.register_function('f', function() return n end)"
                assert client.call("FUNCTION", "LOAD", "REPLACE", code) == b"$3\r\nlib\r\n"
                assert client.call("FCALL", "f", 0) == b":%d\r\n" % number
                if number % 50 == 0:
                    client.call("FUNCTION", "FLUSH", "ASYNC")

    load(0, 1001)
    before = facts(server)
    load(2000, 2000)
    after = facts(server)
    assert after["number_of_libraries"] == after["number_of_functions"] == 1
    assert after["used_memory_vm_functions"] < 4_000_000
    assert after["rss"] - before["rss"] < 3_000_000, (before, after)
