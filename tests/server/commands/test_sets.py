"""Commands on sets: what they answer, what they record, and what is left after a restart."""

from __future__ import annotations

import random
import threading

import pytest
from conftest import Factory

from headrace.server.commands.sets import _REMOVED_AT_ONCE
from headrace.server.commands.shared import random_places
from support.client import Argument, RawClient, parse
from support.figures import done, info
from support.process import incr
from support.waiting import wait_until

DEBUG = ("--enable-debug-command", "yes")
AOF = ("--appendonly", "yes")
WRONGTYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"


@pytest.mark.parametrize("size", [5, 600])
def test_random_places_differ_and_each_is_met_at_each_place(size: int) -> None:
    drawn = [random_places(size, 3) for _ in range(40 * size)]
    assert all(len(set(places)) == 3 for places in drawn)
    for place in range(3):
        assert {places[place] for places in drawn} == set(range(size))


def members(client: RawClient, key: str) -> list[bytes]:
    found = client.call_parsed("SMEMBERS", key)
    assert isinstance(found, list)
    return found


def test_members_are_added_found_and_removed(client: RawClient) -> None:
    assert client.call("SADD", "s", "b", "a", "b") == b":2\r\n"
    assert client.call("SADD", "s", "a", "c") == b":1\r\n"
    assert client.call("SMEMBERS", "s") == b"*3\r\n$1\r\nb\r\n$1\r\na\r\n$1\r\nc\r\n"
    assert client.call("SCARD", "s") == b":3\r\n"
    assert client.call("SISMEMBER", "s", "a") == b":1\r\n"
    assert client.call("SMISMEMBER", "s", "a", "x", "c") == b"*3\r\n:1\r\n:0\r\n:1\r\n"
    assert client.call("SREM", "s", "a", "x", "b") == b":2\r\n"
    assert client.call("SREM", "s", "c") == b":1\r\n"
    assert client.call("EXISTS", "s") == b":0\r\n"


def test_integers_are_kept_in_order(client: RawClient) -> None:
    client.call("SADD", "s", 10, -5, 9, 2**40, 0)
    assert client.call("OBJECT", "ENCODING", "s") == b"$6\r\nintset\r\n"
    assert members(client, "s") == [b"-5", b"0", b"9", b"10", b"%d" % 2**40]
    client.call("SADD", "s", "x", 3)
    assert client.call("OBJECT", "ENCODING", "s") == b"$8\r\nlistpack\r\n"
    assert members(client, "s") == [b"-5", b"0", b"9", b"10", b"%d" % 2**40, b"x", b"3"]


def test_resp3_has_sets(client3: RawClient) -> None:
    client3.call("SADD", "s", "a")
    client3.call("SADD", "t", "a", "b")
    for request in [("SMEMBERS", "s"), ("SINTER", "s", "t"), ("SDIFF", "s", "none")]:
        assert client3.call(*request) == b"~1\r\n$1\r\na\r\n"
    assert client3.call("SUNION", "none") == b"~0\r\n"
    assert client3.call("SRANDMEMBER", "s", 5) == b"*1\r\n$1\r\na\r\n"
    assert client3.call("SSCAN", "s", 0) == b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n"
    assert client3.call("SPOP", "s", 0) == b"~0\r\n"
    assert client3.call("SPOP", "s", 5) == b"~1\r\n$1\r\na\r\n"
    assert client3.call("SPOP", "s") == b"_\r\n"
    assert client3.call("SRANDMEMBER", "s") == b"_\r\n"


def test_other_types_are_refused(client: RawClient) -> None:
    client.call("SET", "str", "x")
    client.call("SADD", "s", "a")
    for request in [
        ("SADD", "str", "a"),
        ("SREM", "str", "a"),
        ("SMOVE", "s", "str", "a"),
        ("SMOVE", "str", "s", "a"),
        ("SPOP", "str"),
        ("SINTERSTORE", "d", "none", "str"),
        ("SUNION", "s", "str"),
        ("SSCAN", "str", 0),
    ]:
        assert client.call(*request) == WRONGTYPE
    assert client.call("GET", "s") == WRONGTYPE
    assert client.call("XADD", "s", "*", "f", "v") == WRONGTYPE
    assert members(client, "s") == [b"a"]
    assert client.call("EXISTS", "d") == b":0\r\n"


def test_results_are_stored(client: RawClient) -> None:
    client.call("SADD", "a", "x", 3, 1)
    client.call("SADD", "b", 1, 2, 3)
    assert client.call("SINTERSTORE", "d", "a", "b") == b":2\r\n"
    assert members(client, "d") == [b"1", b"3"]
    assert client.call("SUNIONSTORE", "d", "b", "a") == b":4\r\n"
    assert members(client, "d") == [b"1", b"2", b"3", b"x"]
    assert client.call("SDIFFSTORE", "d", "d", "b") == b":1\r\n"
    assert members(client, "d") == [b"x"]
    assert client.call("SDIFFSTORE", "d", "d", "a") == b":0\r\n"
    assert client.call("EXISTS", "d") == b":0\r\n"
    assert client.call("SINTERCARD", 2, "a", "b") == b":2\r\n"
    assert client.call("SINTERCARD", 2, "a", "b", "LIMIT", 1) == b":1\r\n"
    assert client.call("SUNIONCARD", 2, "a", "b") == b":4\r\n"
    assert client.call("SDIFFCARD", 2, "a", "b") == b":1\r\n"


@pytest.mark.parametrize("size", [20, 400, 5000])
def test_members_by_chance(client: RawClient, size: int) -> None:
    everything = {b"m%d" % number for number in range(size)}
    client.call("SADD", "s", *everything)
    few = client.call_parsed("SRANDMEMBER", "s", size // 10)
    most = client.call_parsed("SRANDMEMBER", "s", size - 1)
    again = client.call_parsed("SRANDMEMBER", "s", -3 * size)
    assert isinstance(few, list)
    assert isinstance(most, list)
    assert isinstance(again, list)
    assert len(set(few)) == size // 10
    assert len(set(most)) == size - 1
    assert len(again) == 3 * size
    assert size / 2 < len(set(again)) <= size
    assert {*few, *most, *again} <= everything
    assert client.call("SCARD", "s") == b":%d\r\n" % size
    left = set(everything)
    for count in (1, size // 2, size // 2 - 2):
        taken = client.call_parsed("SPOP", "s", count)
        assert isinstance(taken, list)
        assert len(taken) == count
        left -= set(taken)
        assert set(members(client, "s")) == left
    assert client.call_parsed("SPOP", "s") in left
    assert len(members(client, "s")) == len(left) - 1 == 0 or len(left) == 1


def test_a_large_set_is_scanned(client: RawClient) -> None:
    client.call("SADD", "s", *range(10_000))
    met: list[bytes] = []
    cursor = b"0"
    calls = 0
    while True:
        reply = client.call_parsed("SSCAN", "s", cursor, "COUNT", 100)
        assert isinstance(reply, list)
        cursor, found = reply
        assert len(found) >= 100 or cursor == b"0"
        met += found
        calls += 1
        if cursor == b"0":
            break
    assert 50 < calls <= 100
    assert sorted(met) == sorted(b"%d" % number for number in range(10_000))
    reply = client.call_parsed("SSCAN", "s", 0, "MATCH", "12?4", "COUNT", 20_000)
    assert isinstance(reply, list)
    assert sorted(reply[1]) == [b"12%d4" % number for number in range(10)]


def fill(client: RawClient) -> None:
    """Sets of all forms, changed in all ways."""
    client.call("SADD", "integers", 5, 70_000, -1, 2**50, 6)
    client.call("SREM", "integers", 6)
    client.call("SADD", "small", "b", "a", 3, "", "c" * 64)
    client.call("SMOVE", "small", "moved", "b")
    for low in range(0, 60_000, 5000):
        client.call("SADD", "large", *[f"member:{number}" for number in range(low, low + 5000)])
    client.call("SREM", "large", "member:7")
    client.call("SADD", "long", "x" * 100_000, "y")
    client.call("SADD", "mortal", *range(1000))
    client.call("PEXPIREAT", "mortal", 4_102_444_800_000)
    client.call("SADD", "popped", *range(5000))
    client.call("SPOP", "popped", 3000)
    client.call("SPOP", "popped")
    client.call("SADD", "gone", "a", "b")
    client.call("SPOP", "gone", 5)
    client.call("SADD", "gone2", "a")
    client.call("SREM", "gone2", "a")
    client.call("SUNIONSTORE", "union", "small", "moved", "integers")
    client.call("SINTERSTORE", "inter", "large", "large")
    client.call("SDIFFSTORE", "diff", "large", "popped")


KEYS = ["integers", "small", "moved", "large", "long", "mortal", "popped", "union", "inter", "diff"]


def facts(client: RawClient) -> list[bytes]:
    found = [client.call("DEBUG", "DIGEST"), client.call("DBSIZE")]
    for key in KEYS:
        found += [client.call("OBJECT", "ENCODING", key), client.call("SCARD", key)]
    found += [client.call("SMEMBERS", key) for key in ("integers", "small", "union")]
    return [*found, client.call("PEXPIRETIME", "mortal")]


def test_a_snapshot_brings_sets_back(fresh_server: Factory) -> None:
    server = fresh_server(*DEBUG)
    with server.client() as client:
        fill(client)
        before = facts(client)
        client.call("BGSAVE")
        done(client, "rdb_bgsave_in_progress")
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before
        client.call("SADD", "large", "more")
        client.call("SREM", "large", "member:8")
        assert client.call("SCARD", "large") == b":59999\r\n"
        assert client.call("DEBUG", "RELOAD") == b"+OK\r\n"
        assert client.call("SISMEMBER", "large", "more") == b":1\r\n"


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_an_append_only_folder_brings_sets_back(fresh_server: Factory, preamble: str) -> None:
    server = fresh_server(*DEBUG, *AOF, "--aof-use-rdb-preamble", preamble)
    with server.client() as client:
        fill(client)
        before = facts(client)
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before
        client.call("BGREWRITEAOF")
        done(client, "aof_rewrite_in_progress")
        done(client, "aof_rewrite_scheduled")
        client.call("SADD", "large", "late")
        client.call("SPOP", "popped", 10)
        before = facts(client)
    base = next((server.directory / "appendonlydir").glob("*.base.*")).read_bytes()
    assert (b"SADD" in base) == (preamble == "no")
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before


def test_what_chance_took_is_recorded_as_removed(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    with server.client() as client:
        client.call("SADD", "one", "a")
        client.call("SPOP", "one")
        client.call("SADD", "all", "a", "b")
        client.call("SPOP", "all", 3)
        client.call("SADD", "many", *range(5000))
        client.call("SPOP", "many", 3000)
    written = incr(server)
    assert b"SPOP" not in written.upper()
    assert b"$4\r\nSREM\r\n$3\r\none\r\n$1\r\na\r\n" in written
    assert b"$3\r\nDEL\r\n$3\r\nall\r\n" in written
    assert written.count(b"$4\r\nSREM\r\n$4\r\nmany\r\n") == -(-3000 // _REMOVED_AT_ONCE)
    assert written.count(b"MULTI") == written.count(b"EXEC") == 1


def test_a_snapshot_holds_what_there_was_when_it_began(fresh_server: Factory) -> None:
    server = fresh_server(*DEBUG, "--rdb-key-save-delay", "1000000")
    with server.client() as client:
        for key in range(20):
            client.call("SADD", f"s{key}", *range(key, 40 * key + 2))
        for low in range(0, 100_000, 5000):
            client.call("SADD", "large", *[f"m{number}" for number in range(low, low + 5000)])
        before = client.call("DEBUG", "DIGEST")
        client.call("BGSAVE")
        for key in range(20):
            client.call("SADD", f"s{key}", "late")
            client.call("SPOP", f"s{(key * 7) % 20}", 30)
        for number in range(0, 100_000, 1000):
            client.call("SREM", "large", f"m{number}")
            client.call("SADD", "large", f"late{number}")
        assert info(client, "rdb_bgsave_in_progress") == 1, "it was over before the changes"
        client.call("CONFIG", "SET", "rdb-key-save-delay", 0)
        done(client, "rdb_bgsave_in_progress")
        assert client.call("SCARD", "large") == b":100000\r\n"
    server.restart(crash=True)
    with server.client() as client:
        assert client.call("DEBUG", "DIGEST") == before


def test_what_was_answered_is_there_after_a_kill(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    answered: set[bytes] = set()
    removed: set[bytes] = set()

    def write() -> None:
        with server.client() as client:
            try:
                for number in range(10**9):
                    member = b"m%d" % number
                    client.call("SADD", "s", member)
                    answered.add(member)
                    if number % 3 == 0:
                        taken = client.call_parsed("SPOP", "s")
                        assert isinstance(taken, bytes)
                        removed.add(taken)
            except (ConnectionError, EOFError, OSError, AssertionError):
                pass

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: len(answered) > 200)
    server.kill()
    writer.join()
    server.start()
    with server.client() as client:
        found = set(members(client, "s"))
        # One command may have been under way: an SADD without its answer, or an SPOP.
        assert len(answered - removed - found) <= 1
        assert not removed & found
        assert len(found - answered) <= 1


@pytest.mark.parametrize("count", [3, 100, 1000])
def test_dump_and_restore(client: RawClient, count: int) -> None:
    client.call("SADD", "s", *[f"m{number}" for number in range(count)])
    data = client.call_parsed("DUMP", "s")
    assert isinstance(data, bytes)
    assert client.call("RESTORE", "t", 0, data) == b"+OK\r\n"
    assert sorted(members(client, "t")) == sorted(members(client, "s"))
    client.call("SADD", "t", "more")
    assert client.call("SISMEMBER", "s", "more") == b":0\r\n"


def test_a_large_set_is_removed_without_haste(client: RawClient) -> None:
    for low in range(0, 50_000, 5000):
        client.call("SADD", "s", *range(low, low + 5000))
    client.call("COPY", "s", "t")
    client.call("DEL", "s")
    assert client.call("EXISTS", "s") == b":0\r\n"
    client.call("SADD", "s", "new")
    assert parse(client.call("SCARD", "t")) == 50_000
    client.call("SUNIONSTORE", "t", "s")
    assert members(client, "t") == [b"new"]


def chosen_requests(seed: int) -> list[tuple[Argument, ...]]:
    """Runs of requests for single sets, some of them wrong or out of the ordinary."""
    chance = random.Random(seed)
    requests: list[tuple[Argument, ...]] = []
    for _ in range(60):
        name = chance.choice(["SADD", "SADD", "SREM", "SISMEMBER", "sadd", "SCARD"])
        key = chance.choice(["s", "s", "t", "str", "none"])
        width = 1 if name == "SISMEMBER" else chance.choice([1, 1, 1, 2, 200])
        for _ in range(chance.choice([1, 2, 3, 20])):
            low = chance.randrange(chance.choice([3, 600]))
            words = [f"{chance.choice(['', 'm'])}{number}" for number in range(low, low + width)]
            requests.append((name, key) if name == "SCARD" else (name, key, *words))
            if chance.random() < 0.02:
                requests.append(
                    chance.choice([("MULTI",), ("EXEC",), ("SADD", key), ("WATCH", key)])
                )
    return [*requests, ("EXEC",)]


@pytest.mark.parametrize("seed", range(4))
def test_a_pipeline_is_as_one_by_one(fresh_server: Factory, seed: int) -> None:
    server = fresh_server(*AOF, *DEBUG)
    requests = chosen_requests(seed)
    outcomes: list[list[object]] = []
    with server.client() as client:
        for _ in range(2):
            client.call("FLUSHALL")
            client.call("CONFIG", "RESETSTAT")
            client.call("SET", "str", "x")
            before = len(incr(server))
            changes = info(client, "rdb_changes_since_last_save")
            if not outcomes:
                replies = client.pipeline(*requests)
            else:
                replies = [client.call(*request) for request in requests]
            outcomes.append(
                [
                    *replies,
                    incr(server)[before:],
                    client.call("DEBUG", "DIGEST"),
                    *(info(client, f"keyspace_{name}") for name in ("hits", "misses")),
                    info(client, "rdb_changes_since_last_save") - changes,
                ]
            )
    assert outcomes[0] == outcomes[1]


def test_members_by_chance_come_in_a_pipeline(client: RawClient) -> None:
    client.call("SADD", "s", *range(300))
    replies = client.pipeline(*[("SRANDMEMBER", "s")] * 200)
    found = {parse(reply) for reply in replies}
    assert found <= {b"%d" % number for number in range(300)}
    assert len(found) > 100
    assert client.pipeline(*[("SRANDMEMBER", "s", 300)] * 3)[0].startswith(b"*300\r\n")


def test_members_by_chance_of_many_keys(fresh_server: Factory) -> None:
    server = fresh_server()
    for key in range(10):
        server.call("SADD", f"k{key}", f"m{key}", f"n{key}")
    requests = [("SRANDMEMBER", f"k{at % 11}") for at in range(1100)]
    with server.client() as client:
        found = client.pipeline(*requests)
    for key in range(10):
        wanted = {b"$2\r\nm%d\r\n" % key, b"$2\r\nn%d\r\n" % key}
        assert set(found[key::11]) == wanted  # one of them alone: once in 2**99
    assert set(found[10::11]) == {b"$-1\r\n"}
    assert server.info()["keyspace_hits"] == "1000"
    assert server.info()["keyspace_misses"] == "100"
