"""Policies of eviction beside real servers: names, errors, what OBJECT tells."""

from __future__ import annotations

import pytest

from support.process import Pair

POLICIES = (
    *("volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "volatile-lrm"),
    *("allkeys-lru", "allkeys-lfu", "allkeys-random", "allkeys-lrm", "noeviction"),
)


@pytest.mark.since(8, 10)
def test_policies_and_what_object_says(pair: Pair) -> None:
    pair.both("CONFIG", "SET", "maxmemory-policy", "foo")
    pair.both("CONFIG", "SET", "maxmemory-policy", "")
    try:
        for policy in POLICIES:
            pair.both("CONFIG", "SET", "maxmemory-policy", policy.upper())
            pair.both("CONFIG", "GET", "maxmemory-policy")
            pair.both("DEL", "k")
            pair.both("SET", "k", "v")
            pair.both("OBJECT", "FREQ", "k")
            pair.both("OBJECT", "IDLETIME", "k")
            pair.both("OBJECT", "FREQ", "none")
            pair.both("OBJECT", "IDLETIME", "none")
    finally:
        pair.both("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_frequencies(pair: Pair) -> None:
    """Up to the initial count each access counts; a factor of 0 counts all of them."""
    pair.both("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
    pair.both("CONFIG", "SET", "lfu-log-factor", 0)
    try:
        pair.both("SET", "k", "v")
        pair.both("OBJECT", "FREQ", "k")
        for _ in range(20):
            pair.both("GET", "k")
        pair.both("OBJECT", "FREQ", "k")
        pair.both("SET", "k", "w")
        pair.both("OBJECT", "FREQ", "k")
        for _ in range(300):
            pair.both("GET", "k")
        pair.both("OBJECT", "FREQ", "k")
    finally:
        pair.both("CONFIG", "SET", "lfu-log-factor", 10)
        pair.both("CONFIG", "SET", "maxmemory-policy", "noeviction")


@pytest.mark.since(8, 10)
def test_where_nothing_can_go(pair: Pair) -> None:
    pair.both("SET", "k", "v")
    pair.both("CONFIG", "SET", "maxmemory", 1)
    try:
        for policy in ("noeviction", "volatile-lru", "volatile-ttl", "volatile-random"):
            pair.both("CONFIG", "SET", "maxmemory-policy", policy)
            pair.both("SET", "other", "v")
            pair.both("GET", "k")
            pair.both("APPEND", "k", "v")
            pair.both("LPUSH", "l", "v")
            pair.both("XADD", "s", "1-1", "f", "v")
            pair.both("SUBSCRIBE", "channel")
            pair.both("DEL", "none")
            pair.both("MULTI")
            pair.both("GET", "k")
            pair.both("SET", "k", "v")
            pair.both("EXEC")
            pair.both("EVAL", "return redis.call('GET', 'k')", 0)
            pair.both("EVAL", "#!lua\nreturn redis.call('GET', 'k')", 0)
            pair.both("EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', 'k')", 0)
            pair.both("EVAL", "#!lua flags=allow-oom\nreturn redis.call('APPEND', 'k', 'w')", 0)
        pair.both("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        pair.both("EXISTS", "k")
    finally:
        pair.both("CONFIG", "SET", "maxmemory", 0)
        pair.both("CONFIG", "SET", "maxmemory-policy", "noeviction")
