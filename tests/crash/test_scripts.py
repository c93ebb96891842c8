"""Crashes under a load of scripts: never half of one, and none that was acknowledged is lost."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import threading
import time

import pytest
from conftest import Factory

from support.client import Argument, RawClient
from support.faults import Rule, faulty_server
from support.process import Process
from support.waiting import DEADLINE_S, wait_until

ROUNDS = int(os.environ.get("HEADRACE_CRASH_ROUNDS", "3"))
WORKERS = 3
STOCK = 1_000_000

# One unit goes from one key to another, a note of it to a list, a stream and a hash of everybody.
MOVE = """
local left = redis.call('DECR', KEYS[1])
redis.call('INCR', KEYS[2])
redis.call('RPUSH', KEYS[3], ARGV[1])
redis.call('XADD', KEYS[4], '*', 'n', ARGV[1])
redis.call('HINCRBY', 'moved', KEYS[3], 1)
redis.call('SADD', KEYS[5], ARGV[1], '-' .. ARGV[1])
redis.call('SPOP', KEYS[5])
return left
"""
LIBRARY = f"""#!lua name=lib
redis.register_function('move', function(KEYS, ARGV) {MOVE} end)
"""
WAYS = ("EVAL", "EVALSHA", "FCALL", "MULTI")


class Mover(threading.Thread):
    """Has units moved until the server is gone.

    Attributes:
        begun: how many moves were sent; done: how many were answered. Both since it was made.
    """

    def __init__(self, number: int, port: int, begun: int, sha: bytes) -> None:
        super().__init__(daemon=True)
        self.keys = [f"{kind}{number}" for kind in ("from", "to", "list", "stream", "set")]
        self.begun = begun
        self.done = begun
        self.trouble = ""
        self._port = port
        self._sha = sha

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError), RawClient(self._port) as client:
            for way in itertools.cycle(WAYS):
                self.begun += 1
                reply = self._move(client, way)
                if reply != b":%d\r\n" % (STOCK - self.begun):
                    self.trouble = f"{way}: {reply!r} to move {self.begun}"
                    return
                self.done += 1

    def _move(self, client: RawClient, way: str) -> bytes:
        scripts: dict[str, Argument] = {"EVALSHA": self._sha, "FCALL": "move"}
        first = scripts.get(way, MOVE)
        name = "EVAL" if way == "MULTI" else way
        words = (name, first, len(self.keys), *self.keys, self.begun)
        if way != "MULTI":
            return client.call(*words)
        client.send(b"*1\r\n$5\r\nMULTI\r\n")
        client.read()
        client.call(*words)
        return client.call("EXEC").removeprefix(b"*1\r\n")


class Movers:
    """The load, and what has to be there of it."""

    def __init__(self, server: Process) -> None:
        self._server = server
        self._begun = [0] * WORKERS
        self._movers: list[Mover] = []
        with server.client() as client:
            for number in range(WORKERS):
                client.call("MSET", f"from{number}", STOCK, f"to{number}", 0)
            client.call("FUNCTION", "LOAD", LIBRARY)

    def begin(self) -> None:
        sha = self._server.call("SCRIPT", "LOAD", MOVE)
        assert isinstance(sha, bytes)
        port = self._server.port
        self._movers = [Mover(n, port, begun, sha) for n, begun in enumerate(self._begun)]
        for mover in self._movers:
            mover.start()

    def wait_for_moves(self, count: int) -> None:
        least = [mover.done + count for mover in self._movers]
        movers = list(zip(self._movers, least, strict=True))
        wait_until(lambda: all(m.done >= at or m.trouble for m, at in movers))

    def end(self) -> None:
        for mover in self._movers:
            mover.join(DEADLINE_S)
            assert not mover.is_alive()
            assert not mover.trouble, mover.trouble

    def check(self) -> None:
        """Each move is there wholly or not at all, and all that were acknowledged are."""
        with self._server.client() as client:
            for number, mover in enumerate(self._movers):
                source, target, notes, stream, chosen = mover.keys
                values = client.call_parsed("MGET", source, target)
                assert isinstance(values, list)
                left, moved = [int(value) for value in values]
                assert left + moved == STOCK
                assert mover.done <= moved <= mover.begun
                numbers = [b"%d" % each for each in range(1, moved + 1)]
                assert client.call_parsed("LRANGE", notes, 0, -1) == numbers
                entries = client.call_parsed("XRANGE", stream, "-", "+")
                assert isinstance(entries, list)
                assert [fields[1] for _, fields in entries] == numbers
                total = client.call_parsed("HGET", "moved", notes)
                assert total == (b"%d" % moved if moved else None)
                assert client.call_parsed("SCARD", chosen) == moved
                self._begun[number] = moved


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_kill_9_takes_no_script(fresh_server: Factory, policy: str) -> None:
    chance = random.Random()
    server = fresh_server("--appendonly", "yes", "--appendfsync", policy, debug=False)
    movers = Movers(server)
    for _ in range(ROUNDS):
        movers.begin()
        movers.wait_for_moves(10)
        time.sleep(chance.uniform(0.0, 0.2))
        server.kill()
        movers.end()
        server.start()
        movers.check()


def test_a_kill_within_the_write_of_a_script() -> None:
    """The process ends when a part of a turn is in the file: a script that it cuts is dropped."""
    chance = random.Random()
    with faulty_server("always") as server:
        movers = Movers(server)
        for _ in range(ROUNDS):
            part = chance.randint(1, 600)
            server.disk(Rule("write", "incr", skip=chance.randint(10, 40), part=part, kill=True))
            movers.begin()
            server.wait()
            movers.end()
            server.disk()
            server.start()
            movers.check()


def test_a_power_cut_takes_no_script_under_always() -> None:
    chance = random.Random()
    with faulty_server("always") as server:
        movers = Movers(server)
        for delay_s in [0.0005, 0.003][:ROUNDS]:
            server.disk(Rule("fdatasync", "incr", delay_s=delay_s))
            movers.begin()
            movers.wait_for_moves(10)
            time.sleep(chance.uniform(0.0, 0.2))
            server.cut_power()
            movers.end()
            server.start()
            movers.check()


@pytest.mark.parametrize("forms", [("yes",), ("yes", "no")])
def test_a_kill_during_rewrites_takes_no_script(
    fresh_server: Factory, forms: tuple[str, ...]
) -> None:
    """A base is the state between two scripts, and the incr file begins there."""
    chance = random.Random()
    server = fresh_server("--appendonly", "yes", debug=False)
    movers = Movers(server)
    for _ in range(ROUNDS):
        server.call("CONFIG", "SET", "appendfsync", chance.choice(["always", "everysec"]))
        server.call("CONFIG", "SET", "rdb-key-save-delay", chance.choice([0, 3000, 50_000]))
        movers.begin()
        rewriter = threading.Thread(target=rewrite_until_the_end, args=(server.port, forms))
        rewriter.start()
        movers.wait_for_moves(10)
        time.sleep(chance.uniform(0.0, 0.5))
        server.kill()
        movers.end()
        rewriter.join(DEADLINE_S)
        assert not rewriter.is_alive()
        server.start()
        movers.check()


def rewrite_until_the_end(port: int, forms: tuple[str, ...]) -> None:
    """Ask for rewrites and snapshots until the server is gone."""
    with contextlib.suppress(OSError, ValueError), RawClient(port) as client:
        for form in itertools.cycle(forms):
            client.call("CONFIG", "SET", "aof-use-rdb-preamble", form)
            client.call("BGREWRITEAOF")
            client.call("BGSAVE", "SCHEDULE")
            time.sleep(0.02)


def test_a_snapshot_among_scripts_is_of_one_moment(fresh_server: Factory) -> None:
    """What a script is about to change is taken before, whether or not the script names it."""
    server = fresh_server("--rdb-key-save-delay", "2000", debug=False)
    movers = Movers(server)
    with server.client() as client:
        client.pipeline(*[("SET", f"other{number}", "v" * 100) for number in range(200)])
        unnamed = "for i = 0, 199 do redis.call('SET', 'other' .. i, ARGV[1]) end"
        movers.begin()
        for number in range(ROUNDS):
            movers.wait_for_moves(5)
            client.call("BGSAVE")
            wait_until(lambda: int(server.info("persistence")["current_save_keys_total"]) > 0)
            client.call("EVAL", unnamed, 0, f"round {number}")
            movers.wait_for_moves(5)
            wait_until(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0")
            assert server.info("persistence")["rdb_last_bgsave_status"] == "ok"
            copy = fresh_server(directory=server.directory, start=False)
            other = copy_of(server, copy)
            check_moment(other, f"round {number - 1}".encode() if number else b"v" * 100)
            other.kill()
        server.kill()
    movers.end()


def copy_of(server: Process, other: Process) -> Process:
    """Another server on what the snapshot holds."""
    other.directory = server.directory / "copy"
    other.directory.mkdir(exist_ok=True)
    (other.directory / "dump.hrs").write_bytes((server.directory / "dump.hrs").read_bytes())
    other.log_path = other.directory / "headrace.log"
    return other.start()


def check_moment(server: Process, other: bytes) -> None:
    with server.client() as client:
        values = client.call_parsed("MGET", *[f"other{number}" for number in range(200)])
        assert values == [other] * 200
        total = 0
        for number in range(WORKERS):
            pair = client.call_parsed("MGET", f"from{number}", f"to{number}")
            assert isinstance(pair, list)
            assert int(pair[0]) + int(pair[1]) == STOCK
            assert client.call_parsed("LLEN", f"list{number}") == int(pair[1])
            assert client.call_parsed("XLEN", f"stream{number}") == int(pair[1])
            total += int(pair[1])
        counts = client.call_parsed("HVALS", "moved")
        assert isinstance(counts, list)
        assert sum(int(count) for count in counts) == total
