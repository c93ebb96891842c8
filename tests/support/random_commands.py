"""Random commands that write: strings, keys, streams and their groups, and transactions.

Keys are few, so that commands meet what others left behind.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from support.client import Argument, RawClient

KEYS = ["a", "b", "c", "d"]
STREAMS = ["s", "t", "u"]
DATABASES = [0, 1, 2]

Chosen = Callable[[random.Random], int]


def far_away(chance: random.Random) -> int:
    """A time to live that no test lasts for."""
    return chance.randint(10**6, 10**7)


def string_command(chance: random.Random, choose_ttl: Chosen = far_away) -> list[Argument]:
    key, other = chance.choice(KEYS), chance.choice(KEYS)
    number = chance.randint(-9, 99)
    ttl = choose_ttl(chance)
    pairs: list[Argument] = []
    for name in chance.sample(KEYS + STREAMS, 4):
        pairs += [name, chance.randint(0, 9)]
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
            ["MSET", *pairs],
            ["MSETEX", 4, *pairs, chance.choice(["PX", "EX"]), ttl],
            ["MSETEX", 2, key, 1, other, number, chance.choice(["NX", "XX"]), "KEEPTTL"],
        ]
    )


def key_command(chance: random.Random, choose_ttl: Chosen = far_away) -> list[Argument]:
    key, other = chance.choice(KEYS + STREAMS), chance.choice(KEYS + STREAMS)
    ttl = choose_ttl(chance)
    return chance.choice(
        [
            ["DEL", key, other],
            ["DEL", *chance.sample(KEYS + STREAMS, 4)],
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


def group_command(chance: random.Random, number: int) -> list[Argument]:
    key, other = chance.sample(STREAMS, 2)
    old = f"{chance.randint(0, number)}-{chance.randint(0, 2)}"
    read: list[Argument] = ["XREADGROUP", "GROUP", "g", chance.choice(["x", "y"]), "COUNT", 3]
    return chance.choice(
        [
            ["XGROUP", "CREATE", key, "g", "0", "MKSTREAM"],
            ["XGROUP", "SETID", key, "g", old],
            ["XGROUP", "DESTROY", key, "g"],
            ["XGROUP", "DELCONSUMER", key, "g", "x"],
            ["XACK", key, "g", old, f"{number - 1}-1"],
            ["XCLAIM", key, "g", "y", 0, old],
            ["XAUTOCLAIM", key, "g", "x", 0, "0", "COUNT", 2],
            [*read, "STREAMS", key, other, ">", ">"],
            [*read, "NOACK", "STREAMS", key, other, ">", ">"],
        ]
    )


def do_things(
    client: RawClient, chance: random.Random, count: int, choose_ttl: Chosen = far_away
) -> None:
    for number in range(1, count):
        kind = chance.random()
        if kind < 0.4:
            client.call(*stream_command(chance, number))
        elif kind < 0.5:
            client.call(*group_command(chance, number))
        elif kind < 0.75:
            client.call(*string_command(chance, choose_ttl))
        elif kind < 0.95:
            client.call(*key_command(chance, choose_ttl))
        elif kind < 0.99:
            client.call("MULTI")
            for _ in range(chance.randint(0, 4)):
                command = chance.choice([string_command, key_command])
                client.call(*command(chance, choose_ttl))
            client.call("EXEC")
        elif kind < 0.993:
            client.call("FLUSHDB")
