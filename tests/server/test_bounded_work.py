"""Limits on an answer bound the work, too: a small part of a large value costs no more than it."""

from __future__ import annotations

import pytest

from support.client import Argument, RawClient
from support.process import ServerProcess

CALLS = 50
TRIES = 3
FEW = 60  # elements of the small value, or of one whose elements are long
TIMES = 40  # as many has the large one
LONG = "x" * 100_000
ALIKE = 3.0  # how many times the work may be
TICK_S = 0.005  # by which the system may count wrongly
READ = "XREADGROUP GROUP g c"
LIMITED = {
    "entries": [
        "XREAD COUNT 2000 MAXSIZE 1000 STREAMS k 0-0",
        "XREAD MAXSIZE 1000 STREAMS k 0-0",
        f"{READ} MAXSIZE 1000 STREAMS k 0-0",
        f"{READ} CLAIM 0 MAXSIZE 1000 STREAMS k >",
        "XREADGROUP GROUP h c NOACK MAXSIZE 1000 STREAMS k >",
        "XRANGE k - + COUNT 1",
        "XREVRANGE k + - COUNT 1",
        "XPENDING k g - + 1",
        "XAUTOCLAIM k g c 0 0 COUNT 1",
        "XAUTOCLAIM k g c 0 0 COUNT 1 JUSTID",
    ],
    "sorted set": [
        "ZINTERCARD 2 k k LIMIT 1",
        "SORT k BY nosort LIMIT 0 1",
        "SORT k BY nosort DESC LIMIT 3 1 GET #",
        "ZRANGE k 0 inf BYSCORE LIMIT 0 1",
        "ZRANDMEMBER k 2",
        "ZSCAN k 0 COUNT 1",
    ],
    "places": [
        "GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 5000 km COUNT 1 ANY",
        "GEORADIUS k 15 37 5000 km COUNT 1 ANY",
    ],
    "set": ["SINTERCARD 2 k k LIMIT 1", "ZINTERCARD 2 k k LIMIT 1", "SRANDMEMBER k 2"],
    "hash": ["HRANDFIELD k 2", "HSCAN k 0 COUNT 1"],
    "list": ["SORT k BY nosort LIMIT 0 1", "LRANGE k 10 11", "LPOS k none MAXLEN 5"],
    "long entries": [
        "XAUTOCLAIM k g c 0 0 JUSTID",
        "XAUTOCLAIM k g c 9999999 0",
        "XCLAIM k g c 0 1-1 2-1 3-1 4-1 JUSTID",
        "XCLAIM k g c 9999999 1-1 2-1 3-1 4-1",
    ],
    "long elements": ["LPOS k none", "LREM k 0 none"],
}


def fill(client: RawClient, key: str, kind: str, times: int) -> None:
    """Make a key of one kind, so many times as large as need be."""
    numbers = range(1, FEW * times + 1)
    few = range(1, FEW + 1)
    text = LONG if times > 1 else "x"
    calls: dict[str, list[tuple[Argument, ...]]] = {
        "entries": [("XADD", key, f"{n}-1", "f", "v" * 3000) for n in numbers],
        "sorted set": [("ZADD", key, n, f"member {n}") for n in numbers],
        "places": [("GEOADD", key, n % 30, n % 50, n) for n in numbers],
        "set": [("SADD", key, f"member {n}") for n in numbers],
        "hash": [("HSET", key, f"field {n}", "v") for n in numbers],
        "list": [("RPUSH", key, f"element {n}") for n in numbers],
        "long entries": [("XADD", key, f"{n}-1", "f", text) for n in few],
        "long elements": [("RPUSH", key, text) for n in few],
    }
    client.pipeline(*calls[kind])
    if "entries" in kind:
        client.call("XGROUP", "CREATE", key, "g", 0)
        client.call("XGROUP", "CREATE", key, "h", 0)
        client.call("XREADGROUP", "GROUP", "g", "c", "COUNT", 10**6, "STREAMS", key, ">")


def cost_s(server: ServerProcess, client: RawClient, call: str, key: str) -> float:
    """The processor time of some calls, at the best of some times: the first arranges things."""
    words = tuple(key if word == "k" else word for word in call.split())
    costs = []
    for _ in range(TRIES):
        before_s = server.cpu_s()
        client.pipeline(*[words] * CALLS)
        costs.append(server.cpu_s() - before_s)
    return min(costs)


@pytest.mark.parametrize("kind", LIMITED)
def test_limits_bound_the_work(server: ServerProcess, client: RawClient, kind: str) -> None:
    fill(client, "small", kind, 1)
    fill(client, "large", kind, TIMES)
    for call in LIMITED[kind]:
        least_s, most_s = (cost_s(server, client, call, key) for key in ("small", "large"))
        assert most_s < ALIKE * least_s + TICK_S, f"{call}: {least_s}, {most_s}"
