"""Whatever was done, the append-only file repeats it: random commands, a crash, equal data."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from conftest import Factory

from protocol.replies import request
from support.client import Argument, RawClient
from support.process import Process

KEYS = ["a", "b", "c", "d"]
STREAMS = ["s", "t", "u"]
DATABASES = [0, 1, 2]


def far_away(chance: random.Random) -> int:
    return chance.randint(10**6, 10**7)


def string_command(chance: random.Random) -> list[Argument]:
    key, other = chance.choice(KEYS), chance.choice(KEYS)
    number = chance.randint(-9, 99)
    ttl = far_away(chance)
    return chance.choice(
        [
            ["SET", key, number],
            ["SET", key, "\r\n", "PX", ttl],
            ["SET", key, number, "KEEPTTL", "GET"],
            ["SET", key, number, "XX", "EX", ttl],
            ["SETNX", key, number],
            ["SETEX", key, ttl, number],
            ["PSETEX", key, ttl, number],
            ["GETSET", key, number],
            ["GETDEL", key],
            ["GETEX", key, "EX", ttl],
            ["GETEX", key, "PERSIST"],
            ["INCR", key],
            ["DECRBY", key, number],
            ["INCRBYFLOAT", key, "0.1"],
            ["APPEND", key, number],
            ["SETRANGE", key, chance.randint(0, 9), number],
            ["MSET", key, 1, other, number],
            ["MSETNX", key, 1, other, number],
        ]
    )


def key_command(chance: random.Random) -> list[Argument]:
    key, other = chance.choice(KEYS + STREAMS), chance.choice(KEYS + STREAMS)
    ttl = far_away(chance)
    return chance.choice(
        [
            ["DEL", key, other],
            ["UNLINK", key],
            ["RENAME", key, other],
            ["RENAMENX", key, other],
            ["COPY", key, other, "REPLACE"],
            ["COPY", key, other, "DB", chance.choice(DATABASES)],
            ["MOVE", key, chance.choice(DATABASES)],
            ["EXPIRE", key, ttl],
            ["PEXPIRE", key, ttl, chance.choice(["NX", "XX", "GT", "LT"])],
            ["EXPIREAT", key, int(time.time()) + ttl],
            ["PEXPIRE", key, -1],
            ["PERSIST", key],
            ["SELECT", chance.choice(DATABASES)],
            ["SWAPDB", chance.choice(DATABASES), chance.choice(DATABASES)],
        ]
    )


def stream_command(chance: random.Random, number: int) -> list[Argument]:
    key = chance.choice(STREAMS)
    entry = f"{number}-{chance.randint(0, 2)}"
    old = f"{chance.randint(0, number)}-{chance.randint(0, 2)}"
    count = chance.randint(0, 30)
    plain: list[Argument] = ["XADD", key, entry, "f", "v"]
    return chance.choice(
        [
            ["XADD", key, entry, "f", "v"],
            ["XADD", key, f"{number}-*", "f", "v", "g", number],
            ["XADD", key, "NOMKSTREAM", entry, "f", "v"],
            ["XADD", key, "MAXLEN", count, entry, "f", "v"],
            ["XADD", key, "MAXLEN", "~", count, "LIMIT", 5, entry, "f", "v"],
            ["XADD", key, "MINID", "~", old, entry, "f", "v"],
            ["XDEL", key, old, f"{number // 2}-1"],
            ["XTRIM", key, "MAXLEN", count],
            ["XTRIM", key, "MAXLEN", "~", count],
            ["XTRIM", key, "MINID", "~", old],
            ["XSETID", key, f"{number}-9"],
            *([plain] * 10),
        ]
    )


def do_things(client: RawClient, chance: random.Random, count: int) -> None:
    for number in range(1, count):
        kind = chance.random()
        if kind < 0.5:
            client.call(*stream_command(chance, number))
        elif kind < 0.75:
            client.call(*string_command(chance))
        elif kind < 0.95:
            client.call(*key_command(chance))
        elif kind < 0.99:
            client.call("MULTI")
            for _ in range(chance.randint(0, 4)):
                client.call(*chance.choice([string_command(chance), key_command(chance)]))
            client.call("EXEC")
        elif kind < 0.993:
            client.call("FLUSHDB")


def contents(server: Process) -> dict[str, object]:
    found: dict[str, object] = {}
    with server.client() as client:
        for db in DATABASES:
            client.call("SELECT", db)
            keys = client.call_parsed("KEYS", "*")
            assert isinstance(keys, list)
            for key in sorted(keys):
                place = f"{db} {key!r}"
                found[place + " deadline"] = client.call("PEXPIRETIME", key)
                if client.call_parsed("TYPE", key) == b"string":
                    found[place] = client.call("GET", key)
                    continue
                found[place] = client.call("XRANGE", key, "-", "+")
                info = client.call_parsed("XINFO", "STREAM", key)
                assert isinstance(info, list)
                facts = dict(zip(info[::2], info[1::2], strict=True))
                for name in (b"last-generated-id", b"max-deleted-entry-id", b"entries-added"):
                    found[f"{place} {name!r}"] = facts[name]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_file_repeats_what_happened(fresh_server: Factory, seed: int) -> None:
    server = fresh_server("--appendonly", "yes", "--stream-node-max-entries", "5", debug=False)
    chance = random.Random(seed)
    for _ in range(2):
        with server.client() as client:
            do_things(client, chance, 1500)
        before = contents(server)
        assert before
        server.restart(crash=True)
        assert contents(server) == before
        server.call("BGREWRITEAOF")
        server.restart()
        assert contents(server) == before


@pytest.mark.judge
@pytest.mark.parametrize("seed", range(2))
def test_redis_repeats_it_too(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, seed: int
) -> None:
    server = fresh_server("--appendonly", "yes", debug=False, directory=tmp_path)
    with server.client() as client:
        do_things(client, random.Random(seed), 1500)
    before = contents(server)
    server.stop()
    assert contents(fresh_redis("--appendonly", "yes", directory=tmp_path)) == before


def test_a_key_that_expired_meanwhile_does_not_come_back(fresh_server: Factory) -> None:
    """What was done to it before its end is repeated on it, not on a new key without deadline."""
    server = fresh_server("--appendonly", "yes")
    server.kill()
    path = server.directory / "appendonlydir" / "appendonly.aof.1.incr.aof"
    commands = [
        [b"SELECT", b"0"],
        [b"SET", b"k", b"v"],
        [b"PEXPIREAT", b"k", b"%d" % (time.time_ns() // 1_000_000 - 1000)],
        [b"APPEND", b"k", b"w"],
        [b"XADD", b"s", b"1-1", b"a", b"b"],
        [b"PEXPIREAT", b"s", b"1"],
        [b"XADD", b"s", b"2-1", b"a", b"b"],
    ]
    path.write_bytes(b"".join(request(command) for command in commands))
    server.start()
    assert server.call("EXISTS", "k", "s") == 0
