"""``lag``: the live entries after a group's last ID, whatever has moved the ID or the counters."""

from __future__ import annotations

import random

from conftest import Factory

from support.client import Argument, RawClient, parse
from support.groups import GREATEST, live_after, rows, table

STEPS = 400


def lags(client: RawClient) -> dict[bytes, tuple[bytes, int]]:
    """Position and lag by group, told alike in both ways there are."""
    found = {}
    for row in map(table, rows(client.call("XINFO", "GROUPS", "s"))):
        found[row[b"name"]] = (row[b"last-delivered-id"], row[b"lag"])
    full = table(parse(client.call("XINFO", "STREAM", "s", "FULL", "COUNT", 1)))
    for row in map(table, full[b"groups"]):
        assert found[row[b"name"]] == (row[b"last-delivered-id"], row[b"lag"])
    return found


def check(client: RawClient) -> None:
    for last_id, lag in lags(client).values():
        assert lag == len(live_after(client, "s", last_id)), last_id


class Walk:
    """Random commands of all kinds that move a group, its counter, or what lies behind it."""

    def __init__(self, client: RawClient, seed: int) -> None:
        self.client = client
        self.random = random.Random(seed)
        self.newest = 0
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        client.call("XGROUP", "CREATE", "s", "h", "$")

    def id(self) -> str:
        return f"{self.random.randint(0, self.newest + 1)}-{self.random.choice([0, 0, 1])}"

    def step(self) -> None:
        pick = self.random
        group = pick.choice("gh")
        number = pick.choice([-1, 0, 1, self.newest, self.newest + 3, 2**62])
        words: list[Argument] = pick.choice(
            [
                ["XADD", "s", f"{self.newest + 1}-0", "f", "v"],
                ["XADD", "s", f"{self.newest + 1}-0", "f", "v"],
                ["XDEL", "s", self.id()],
                ["XTRIM", "s", "MINID", self.id()],
                ["XTRIM", "s", "MAXLEN", pick.randint(1, 5)],
                ["XREADGROUP", "GROUP", group, "c", "COUNT", 1, "STREAMS", "s", ">"],
                ["XREADGROUP", "GROUP", group, "c", "NOACK", "COUNT", 2, "STREAMS", "s", ">"],
                ["XCLAIM", "s", group, "c", 0, self.id(), "LASTID", self.id()],
                ["XCLAIM", "s", group, "c", 0, self.id(), "FORCE", "LASTID", self.id()],
                ["XGROUP", "SETID", "s", group, self.id(), "ENTRIESREAD", number],
                ["XGROUP", "SETID", "s", group, pick.choice(["$", "0", self.id()])],
                ["XGROUP", "DESTROY", "s", group],
                ["XGROUP", "CREATE", "s", group, self.id(), "ENTRIESREAD", number],
                ["XGROUP", "CREATE", "s", group, "$"],
                ["XSETID", "s", self.id(), "ENTRIESADDED", number, "MAXDELETEDID", self.id()],
            ]
        )
        reply = self.client.call(*words)
        if words[0] == "XADD" and not reply.startswith(b"-"):
            self.newest += 1


def test_lag_is_what_is_to_come(client: RawClient) -> None:
    walk = Walk(client, 1)
    for _ in range(STEPS):
        walk.step()
        check(client)
    told = lags(client)
    dump = client.call_parsed("DUMP", "s")
    assert isinstance(dump, bytes)
    assert client.call("RESTORE", "s", 0, dump, "REPLACE") == b"+OK\r\n"
    assert lags(client) == told
    client.call("COPY", "s", "copy")
    client.call("RENAME", "copy", "s")
    assert lags(client) == told


def test_lag_is_the_same_after_a_restart(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--save", "")
    with server.client() as client:
        walk = Walk(client, 2)
        for _ in range(STEPS):
            walk.step()
        told = lags(client)
    server.restart(crash=True)
    with server.client() as client:
        assert lags(client) == told
        check(client)


def test_lag_at_the_greatest_id(client: RawClient) -> None:
    client.call("XADD", "s", "1-18446744073709551615", "f", "v")
    client.call("XADD", "s", "18446744073709551615-5", "f", "v")
    client.call("XGROUP", "CREATE", "s", "g", "1-18446744073709551614")
    for place, lag in [
        ("1-18446744073709551614", 2),
        ("1-18446744073709551615", 1),
        ("18446744073709551615-4", 1),
        ("18446744073709551615-5", 0),
        (GREATEST, 0),
    ]:
        client.call("XGROUP", "SETID", "s", "g", place, "ENTRIESREAD", 0)
        assert lags(client) == {b"g": (place.encode(), lag)}


def test_a_claim_that_names_a_last_id_moves_the_position(client: RawClient) -> None:
    for number in range(1, 6):
        client.call("XADD", "s", f"{number}-0", "f", "v")
    client.call("XGROUP", "CREATE", "s", "g", "0")
    client.call("XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "STREAMS", "s", ">")
    assert lags(client) == {b"g": (b"1-0", 4)}
    client.call("XCLAIM", "s", "g", "d", 0, "1-0", "LASTID", "3-0")
    assert lags(client) == {b"g": (b"3-0", 2)}
    client.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    assert lags(client) == {b"g": (b"5-0", 0)}
