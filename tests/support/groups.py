"""What two servers tell of the groups of a stream, compared except for what is of a clock.

Where Redis has become another since 7.0, which judges too, the newer one is followed:
``entries-read`` and ``lag`` are told exactly also after entries were removed.
"""

from __future__ import annotations

import re
from typing import Any

from support.client import Argument, RawClient, parse
from support.process import Pair

HALF_MS = 5_000_000  # what tests make old is twice as old, all else is new
FAR_MS = 4_102_444_800_000  # the year 2100
GREATEST = "18446744073709551615-18446744073709551615"


def rows(reply: bytes) -> list[Any]:
    """The value of a reply that is an array, maps as dicts."""
    value = parse(reply)
    assert isinstance(value, list), value
    return value


def table(flat: object) -> dict[bytes, Any]:
    """A map, which in RESP2 is an array of names and values in turn."""
    if isinstance(flat, dict):
        return flat
    assert isinstance(flat, list)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def without_clock(reply: bytes) -> bytes:
    """A reply of XPENDING, with only long and short idle times."""

    def shown(found: re.Match[bytes]) -> bytes:
        return found[1] + (b":long" if int(found[2]) >= HALF_MS else b":short")

    return re.sub(rb"(\*4\r\n\$\d+\r\n[\d-]+\r\n\$\d+\r\n\w*\r\n):(\d+)", shown, reply)


def compare_pending(pair: Pair, *words: Argument) -> None:
    ours, real = (client.call("XPENDING", *words) for client in (pair.ours, pair.real))
    assert without_clock(ours) == without_clock(real), words


def age(delivery_ms: int) -> str:
    return "long ago" if delivery_ms < FAR_MS / 4 else "now"


def compare_groups(pair: Pair, key: str, removed: bool, counters_set: bool) -> None:
    """All that is told of the groups of a stream, each way there is; arguments as below."""
    for name in compare_positions(pair, key, removed, counters_set):
        pair.both("XPENDING", key, name)
        compare_pending(pair, key, name, "-", "+", 100)
        compare_consumers(pair, key, name)
    compare_full(pair, key, 2)


def compare_positions(pair: Pair, key: str, removed: bool, counters_set: bool) -> list[bytes]:
    """Return how far the groups of a stream have come; their names.

    Args:
        removed: some entries were; Redis 7.0 then may tell a wrong position or none.
        counters_set: somebody set a position or counter by hand, which is then believed.
    """
    replies = [client.call("XINFO", "GROUPS", key) for client in (pair.ours, pair.real)]
    names: list[bytes] = []
    for ours, real in zip(*[map(table, rows(reply)) for reply in replies], strict=True):
        names.append(real[b"name"])
        our_lag, real_lag = ours.pop(b"lag"), real.pop(b"lag")
        to_come = len(live_after(pair.ours, key, real[b"last-delivered-id"]))
        assert our_lag == to_come
        if removed or counters_set:
            assert ours.pop(b"entries-read") != -1
            real.pop(b"entries-read")
        elif real_lag is not None:
            assert our_lag == real_lag
        assert list(ours) == list(real)
        assert ours == real
    assert names == sorted(names)
    return names


def live_after(client: RawClient, key: str, last_id: bytes) -> list[Any]:
    if last_id == GREATEST.encode():
        return []
    return rows(client.call("XRANGE", key, b"(" + last_id, "+"))


def compare_consumers(pair: Pair, key: str, group: bytes) -> None:
    ours, real = (
        [table(row) for row in rows(client.call("XINFO", "CONSUMERS", key, group))]
        for client in (pair.ours, pair.real)
    )
    for consumer in ours:
        assert list(consumer) == [b"name", b"pending", b"idle", b"inactive"]
        assert 0 <= consumer[b"idle"] < 60_000
        assert -1 <= consumer[b"inactive"] < 60_000
    told = [
        [(consumer[b"name"], consumer[b"pending"]) for consumer in consumers]
        for consumers in (ours, real)
    ]
    assert told[0] == told[1]
    assert told[0] == sorted(told[0])


def compare_full(pair: Pair, key: str, count: int = 0) -> None:
    words = ("XINFO", "STREAM", key, "FULL", "COUNT", count)
    ours, real = (table(parse(client.call(*words))) for client in (pair.ours, pair.real))
    for name in real:
        if not name.startswith((b"groups", b"radix-tree")):
            assert ours[name] == real[name], name
    assert full_groups(ours[b"groups"]) == full_groups(real[b"groups"])


def full_groups(groups: list[Any]) -> list[object]:
    found: list[object] = []
    for group in map(table, groups):
        pending = [
            (entry_id, owner, age(delivery_ms), count)
            for entry_id, owner, delivery_ms, count in group[b"pending"]
        ]
        consumers = []
        for consumer in map(table, group[b"consumers"]):
            held = [(i, age(delivery_ms), count) for i, delivery_ms, count in consumer[b"pending"]]
            consumers.append((consumer[b"name"], consumer[b"pel-count"], held))
        names = (b"name", b"last-delivered-id", b"pel-count")
        found.append(([group[name] for name in names], pending, consumers))
    return found
