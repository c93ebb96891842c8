"""``headrace verify``: what a client sends goes to two servers, and their replies are compared."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from headrace.testing import HeadraceServer
from support.build import ROOT, environment
from support.client import parse
from support.process import Pair

COMMANDS = """
SET a 1
INCR a
LPUSH l a b c
SADD set x y z
SMEMBERS set
XADD s * f v
XGROUP CREATE s g 0
XREADGROUP GROUP g c STREAMS s >
XPENDING s g
HSET h a 1 b 2
HGETALL h
GET none
INCR l
NO SUCH command
MULTI
SET t "some words" EX 100
TTL t
EXEC
EVAL "return {1, ARGV[1], false}" 0 x
"""
PROGRAM = """
import os, redis
r = redis.from_url(os.environ["REDIS_URL"])
made = r.xadd("q", {"f": "v"})
r.xgroup_create("q", "g", "0")
r.xreadgroup("g", "c", {"q": ">"})
assert r.xack("q", "g", made) == 1
assert r.xrange("q", made, made)
p = r.pubsub()
p.subscribe("one", "two")
assert [p.get_message(timeout=5)["data"] for _ in "12"] == [1, 2]
r.publish("one", "hello")
assert p.get_message(timeout=5)["data"] == b"hello"
assert r.blpop("none", 1) is None
raise SystemExit(7)
"""


@pytest.fixture
def other() -> Iterator[HeadraceServer]:
    with HeadraceServer() as server:
        yield server


def verify(url: str, *words: str, commands: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace", "verify", "--against", url, *words],
        input=commands,
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.judge
@pytest.mark.since(8, 10)
def test_a_real_server_does_not_differ(pair: Pair) -> None:
    pair.real.call("FLUSHALL")
    found = parse(pair.real.call("CONFIG", "GET", "port"))
    assert isinstance(found, list)
    url = f"redis://127.0.0.1:{found[1].decode()}"
    done = verify(url, "--commands", "-", commands=COMMANDS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "20 replies compared, 0 were not: no difference\n"
    pair.real.call("FLUSHALL")
    done = verify(url, "--", sys.executable, "-c", PROGRAM)
    assert done.returncode == 7, done.stderr
    assert "no difference" in done.stdout
    pair.real.call("FLUSHALL")


def test_the_first_difference_is_shown(other: HeadraceServer) -> None:
    other.faults.error("INCR", "ERR another text")
    done = verify(other.url, "--commands", "-", commands="SET a 1\nINCR a\nGET a\n")
    assert done.returncode == 1
    assert done.stderr == "The servers differ:\nINCR a\n  ours:   2\n  theirs: ERR another text\n"
    assert done.stdout == "3 replies compared, 0 were not: the servers differ\n"


def test_a_reply_that_never_comes_is_a_difference(other: HeadraceServer) -> None:
    other.faults.silence("GET")
    done = verify(other.url, "--commands", "-", commands="SET a 1\nGET a\n")
    assert done.returncode == 1
    assert "GET a\n  ours:   b'1'\n  theirs: 'no reply'\n" in done.stderr


def test_what_cannot_be_compared(other: HeadraceServer) -> None:
    other.call("SET", "k", "v")
    done = verify(other.url, "--commands", "-")
    assert (done.returncode, done.stderr) == (
        2,
        "The other server has keys: it has to be empty\n",
    )
    other.stop()
    done = verify(other.url, "--commands", "-")
    assert done.returncode == 2
    assert done.stderr.startswith("The other server does not answer: ")
    done = verify("http://127.0.0.1", "--commands", "-")
    assert (done.returncode, done.stderr) == (2, "http://127.0.0.1 is not redis://host:port\n")
