"""Commands on sorted sets: what they answer and record, who waits, what is left after a restart."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from conftest import Factory

from support.client import RawClient
from support.figures import done, info
from support.process import incr
from support.scene import Scene
from support.waiting import wait_until

DEBUG = ("--enable-debug-command", "yes")
AOF = ("--appendonly", "yes")
WRONGTYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
NULL_ARRAY = b"*-1\r\n"


def test_members_stand_by_their_scores(client: RawClient) -> None:
    assert client.call("ZADD", "z", 3, "c", 1, "a", 2, "b", 2, "aa") == b":4\r\n"
    assert client.call_parsed("ZRANGE", "z", 0, -1) == [b"a", b"aa", b"b", b"c"]
    assert client.call_parsed("ZRANGE", "z", 1, 1, "WITHSCORES") == [b"aa", b"2"]
    assert client.call_parsed("ZRANGE", "z", "(1", "2", "BYSCORE") == [b"aa", b"b"]
    assert client.call_parsed("ZRANGE", "z", 0, 1, "REV") == [b"c", b"b"]
    assert client.call("ZRANK", "z", "c") == b":3\r\n"
    assert client.call("ZREVRANK", "z", "c") == b":0\r\n"
    assert client.call("ZADD", "z", "CH", 0.5, "c", 9, "d") == b":2\r\n"
    assert client.call("ZSCORE", "z", "c") == b"$3\r\n0.5\r\n"
    assert client.call("ZREM", "z", "a", "x", "b") == b":2\r\n"
    assert client.call_parsed("ZPOPMAX", "z") == [b"d", b"9"]
    assert client.call("ZREMRANGEBYRANK", "z", 0, -1) == b":2\r\n"
    assert client.call("EXISTS", "z") == b":0\r\n"


def test_doubles_and_pairs_of_resp3(client3: RawClient) -> None:
    client3.call("ZADD", "z", 1.5, "a", "inf", "b")
    assert client3.call("ZSCORE", "z", "a") == b",1.5\r\n"
    pair = b"*2\r\n$1\r\na\r\n,1.5\r\n"
    assert client3.call("ZRANGE", "z", 0, 0, "WITHSCORES") == b"*1\r\n" + pair
    assert client3.call("ZRANK", "z", "b", "WITHSCORE") == b"*2\r\n:1\r\n,inf\r\n"
    assert client3.call("ZPOPMIN", "z", 1) == b"*1\r\n" + pair
    assert client3.call("ZPOPMIN", "z") == b"*2\r\n$1\r\nb\r\n,inf\r\n"
    assert client3.call("ZPOPMIN", "z") == b"*0\r\n"


def test_members_by_chance(client: RawClient) -> None:
    everything = {b"m%d" % number for number in range(500)}
    client.call("ZADD", "z", *[word for each in everything for word in (1, each)])
    few = client.call_parsed("ZRANDMEMBER", "z", 50)
    most = client.call_parsed("ZRANDMEMBER", "z", 499)
    again = client.call_parsed("ZRANDMEMBER", "z", -1500)
    assert isinstance(few, list)
    assert isinstance(most, list)
    assert isinstance(again, list)
    assert len(set(few)) == 50
    assert len(set(most)) == 499
    assert len(again) == 1500
    assert len(set(again)) > 400
    assert {*few, *most, *again} <= everything
    assert client.call_parsed("ZRANDMEMBER", "z") in everything
    scored = client.call_parsed("ZRANDMEMBER", "z", 3, "WITHSCORES")
    assert isinstance(scored, list)
    assert scored[1::2] == [b"1"] * 3


def test_a_large_one_is_scanned(client: RawClient) -> None:
    client.call("ZADD", "z", *[word for number in range(5000) for word in (number, number)])
    met: list[bytes] = []
    cursor = b"0"
    calls = 0
    while calls == 0 or cursor != b"0":
        reply = client.call_parsed("ZSCAN", "z", cursor, "COUNT", 100)
        assert isinstance(reply, list)
        cursor, found = reply
        assert found[::2] == found[1::2]
        met += found[::2]
        calls += 1
    assert 25 < calls <= 50
    assert sorted(met) == sorted(b"%d" % number for number in range(5000))


def test_limits_are_configured(client: RawClient) -> None:
    client.call("CONFIG", "SET", "zset-max-listpack-entries", 2, "zset-max-ziplist-value", 3)
    client.call("ZADD", "z", 1, "a", 2, "abc")
    assert client.call("OBJECT", "ENCODING", "z") == b"$8\r\nlistpack\r\n"
    client.call("ZADD", "z", 3, "b")
    assert client.call("OBJECT", "ENCODING", "z") == b"$8\r\nskiplist\r\n"
    client.call("ZADD", "y", 3, "abcd")
    assert client.call("OBJECT", "ENCODING", "y") == b"$8\r\nskiplist\r\n"
    client.call("CONFIG", "SET", "zset-max-listpack-entries", 128, "zset-max-listpack-value", 64)
    client.call("ZRANGESTORE", "z", "z", 0, -1)
    assert client.call("OBJECT", "ENCODING", "z") == b"$8\r\nlistpack\r\n"


# Those who wait


@pytest.fixture(params=["server", pytest.param("redis_server", marks=pytest.mark.judge)])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Ours, or the newest Redis."""
    made = Scene(request.getfixturevalue(request.param))
    made.do("FLUSHALL")
    yield made
    made.close()


def test_who_waits_is_served_in_order_of_arrival(scene: Scene) -> None:
    least, greatest, some = scene.waiter(), scene.waiter(), scene.waiter()
    scene.block(least, "BZPOPMIN", "none", "z", 0)
    scene.block(greatest, "BZPOPMAX", "z", 0)
    scene.block(some, "BZMPOP", 0, 2, "none", "z", "MAX", "COUNT", 2)
    assert scene.do("ZADD", "z", 1, "a", 2, "b", 3, "c", 4, "d", 5, "e") == 5
    assert least.read_parsed() == [b"z", b"a", b"1"]
    assert greatest.read_parsed() == [b"z", b"e", b"5"]
    assert some.read_parsed() == [b"z", [[b"d", b"4"], [b"c", b"3"]]]
    assert scene.do("ZRANGE", "z", 0, -1) == [b"b"]
    assert scene.blocked() == 0


@pytest.mark.parametrize(
    "wake",
    [["RENAME src z"], ["COPY src z"], ["ZUNIONSTORE z 1 src"], ["ZRANGESTORE z src 0 -1"],
     ["GEOADD z 13 38 a"], ["ZINCRBY z 1 a"], ["SET z x", "DEL z", "ZADD z 1 a"]],
    ids=" and ".join,
)  # fmt: skip
def test_whatever_brings_a_sorted_set_wakes(scene: Scene, wake: list[str]) -> None:
    scene.do("ZADD", "src", 1, "a")
    waiter = scene.waiter()
    scene.block(waiter, "BZPOPMIN", "z", 0)
    scene.do_at_once(*wake)
    reply = waiter.read_parsed()
    assert isinstance(reply, list)
    assert reply[:2] == [b"z", b"a"]
    assert scene.do("EXISTS", "z") == 0


def test_another_type_leaves_them_waiting(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "BZPOPMIN", "z", 0)
    scene.do("SADD", "z", "a")
    assert scene.blocked() == 1
    late = scene.waiter()
    assert late.call("BZPOPMIN", "z", 0) == WRONGTYPE
    scene.do_at_once("DEL z", "ZADD z 1 a", "DEL z")
    assert scene.blocked() == 1
    scene.do("ZADD", "z", 7, "b")
    assert waiter.read_parsed() == [b"z", b"b", b"7"]


def test_a_wait_ends(scene: Scene) -> None:
    assert scene.actor.call("BZPOPMIN", "z", 0.01) == NULL_ARRAY
    assert scene.actor.call("BZMPOP", "0.01", 1, "z", "MIN") == NULL_ARRAY
    found = scene.actor.pipeline(("MULTI",), ("BZPOPMAX", "z", 0), ("EXEC",))
    assert found[2] == b"*1\r\n*-1\r\n"


# What is recorded, and what is left


def test_results_are_recorded(fresh_server: Factory) -> None:
    """What depends on who waits, or on where a place is, is recorded as what came of it."""
    server = fresh_server(*AOF)
    scene = Scene(server)
    waiter = scene.waiter()
    for line in (
        "zadd z 0.1 a 0.2 b 0.3 c 0.4 d", "zincrby z 0.2 a", "zadd z incr 0.1 b", "zadd z nx 5 a",
        "zpopmin z", "zpopmax z 1", "zmpop 2 none z max", "zadd z xx 5 none", "zrem z none",
        "geoadd g 13.361389 38.115556 p", "bzpopmin g 0", "zremrangebyscore g 0 1",
    ):  # fmt: skip
        scene.do(*line.split())
    scene.block(waiter, "BZMPOP", 0, 1, "y", "MIN", "COUNT", 5)
    scene.do("ZADD", "y", 1, "m", 2, "n")
    waiter.read_parsed()
    scene.close()
    wait_until(lambda: b"zpopmin\r\n$1\r\ny" in incr(server).lower())
    words = [word for word in incr(server).split(b"\r\n") if word[:1] not in b"$*"]
    assert b" ".join(words) == (
        b"SELECT 0 zadd z 0.1 a 0.2 b 0.3 c 0.4 d "
        b"zincrby z 0.2 a zadd z incr 0.1 b "
        b"zpopmin z zpopmax z 1 ZPOPMAX z 1 zadd g 3479099956230698 p ZPOPMIN g "
        b"ZADD y 1 m 2 n ZPOPMIN y 2"
    )


def fill(client: RawClient) -> None:
    """Sorted sets of both forms, changed in all ways."""
    client.call("ZADD", "small", 1.5, "a", "-inf", "b", 3, "", 1e-7, "c" * 64, "inf", "d")
    client.call("ZINCRBY", "small", 0.1, "a")
    client.call("ZREM", "small", "b")
    for low in range(0, 30_000, 5000):
        words = [w for n in range(low, low + 5000) for w in (n * 7919 % 30_000 / 8, f"member:{n}")]
        client.call("ZADD", "large", *words)
    client.call("ZREM", "large", "member:7")
    client.call("ZADD", "large", 0.123, "member:8")
    client.call("ZPOPMIN", "large", 100)
    client.call("ZREMRANGEBYRANK", "large", 5000, 5999)
    client.call("ZADD", "long", 1, "x" * 100_000, 2, "y", 0, "z")
    client.call("ZADD", "mortal", *[word for n in range(300) for word in (1, n)])
    client.call("PEXPIREAT", "mortal", 4_102_444_800_000)
    client.call("ZUNIONSTORE", "union", 2, "small", "mortal", "WEIGHTS", 0.1, 3)
    client.call("ZRANGESTORE", "range", "large", 100, 5000)
    client.call(
        "GEOADD", "places", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"
    )
    client.call("ZADD", "gone", 1, "a")
    client.call("ZPOPMAX", "gone")


KEYS = ["small", "large", "long", "mortal", "union", "range", "places"]


def facts(client: RawClient) -> list[bytes]:
    found = [client.call("DEBUG", "DIGEST"), client.call("DBSIZE")]
    for key in KEYS:
        found += [client.call("OBJECT", "ENCODING", key), client.call("ZCARD", key)]
        found += [client.call("ZRANGE", key, 0, 200, "WITHSCORES")]
        found += [client.call("ZRANGE", key, 0, 5, "REV", "WITHSCORES")]
    found.append(client.call("ZRANK", "large", "member:20000", "WITHSCORE"))
    return [*found, client.call("PEXPIRETIME", "mortal")]


def test_a_snapshot_brings_them_back(fresh_server: Factory) -> None:
    server = fresh_server(*DEBUG)
    with server.client() as client:
        fill(client)
        before = facts(client)
        client.call("BGSAVE")
        done(client, "rdb_bgsave_in_progress")
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before
        client.call("ZADD", "large", 1e9, "more")
        client.call("ZREM", "large", "member:20000")
        assert client.call("DEBUG", "RELOAD") == b"+OK\r\n"
        assert client.call_parsed("ZRANGE", "large", -1, -1) == [b"more"]
        assert client.call("ZSCORE", "large", "member:20000") == b"$-1\r\n"


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_an_append_only_folder_brings_them_back(fresh_server: Factory, preamble: str) -> None:
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
        client.call("ZADD", "large", 5, "late")
        client.call("ZPOPMAX", "large", 10)
        before = facts(client)
    base = next((server.directory / "appendonlydir").glob("*.base.*")).read_bytes()
    assert (b"ZADD" in base) == (preamble == "no")
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before


def test_a_snapshot_holds_what_there_was_when_it_began(fresh_server: Factory) -> None:
    server = fresh_server(*DEBUG, "--rdb-key-save-delay", "1000000")
    with server.client() as client:
        for key in range(20):
            client.call("ZADD", f"z{key}", *[w for n in range(40 * key + 2) for w in (n, n)])
        for low in range(0, 60_000, 5000):
            words = [w for n in range(low, low + 5000) for w in (n * 7919 % 60_000, f"m{n}")]
            client.call("ZADD", "large", *words)
        before = client.call("DEBUG", "DIGEST")
        client.call("BGSAVE")
        for key in range(20):
            client.call("ZADD", f"z{key}", 1, "late")
            client.call("ZPOPMIN", f"z{(key * 7) % 20}", 30)
        for number in range(0, 60_000, 1000):
            client.call("ZREM", "large", f"m{number}")
            client.call("ZINCRBY", "large", 500, f"m{number + 1}")
        assert info(client, "rdb_bgsave_in_progress") == 1, "it was over before the changes"
        client.call("CONFIG", "SET", "rdb-key-save-delay", 0)
        done(client, "rdb_bgsave_in_progress")
        assert client.call("ZCARD", "large") == b":59940\r\n"
    server.restart(crash=True)
    with server.client() as client:
        assert client.call("DEBUG", "DIGEST") == before


def test_what_was_answered_is_there_after_a_kill(fresh_server: Factory) -> None:
    server = fresh_server(*AOF, "--appendfsync", "always")
    scores: list[float] = []
    popped: list[bytes] = []

    def write() -> None:
        with server.client() as client:
            try:
                for number in range(10**9):
                    client.call("ZADD", "z", number, b"m%d" % number)
                    score = client.call_parsed("ZINCRBY", "sum", "0.1", "m")
                    assert isinstance(score, bytes)
                    scores.append(float(score))
                    if number % 3 == 0:
                        taken = client.call_parsed("BZPOPMIN", "z", 0)
                        assert isinstance(taken, list)
                        popped.append(taken[1])
            except (ConnectionError, EOFError, OSError, AssertionError, TimeoutError):
                pass

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: len(scores) > 100)
    server.kill()
    writer.join()
    server.start()
    with server.client() as client:
        found = client.call_parsed("ZRANGE", "z", 0, -1)
        assert isinstance(found, list)
        # One command may have been under way.
        assert len(scores) - len(popped) - 1 <= len(found) <= len(scores) - len(popped) + 1
        assert not set(popped) & set(found)
        score = client.call_parsed("ZSCORE", "sum", "m")
        assert isinstance(score, bytes)
        assert float(score) in (scores[-1], scores[-1] + 0.1)


def test_a_large_one_is_removed_without_haste(client: RawClient) -> None:
    for low in range(0, 50_000, 5000):
        client.call("ZADD", "z", *[word for n in range(low, low + 5000) for word in (n, n)])
    client.call("COPY", "z", "y")
    client.call("DEL", "z")
    assert client.call("EXISTS", "z") == b":0\r\n"
    client.call("ZADD", "z", 1, "new")
    assert client.call("ZCARD", "y") == b":50000\r\n"
    client.call("ZUNIONSTORE", "y", 1, "z")
    assert client.call_parsed("ZRANGE", "y", 0, -1) == [b"new"]


def test_zeros_of_a_large_set_keep_their_signs_in_commands(fresh_server: Factory) -> None:
    server = fresh_server(*AOF, "--aof-use-rdb-preamble", "no")
    with server.client() as client:
        client.call("ZADD", "z", 5, "m" * 65, "-0", "a", 0, "b", -3, "c")
        client.call("ZADD", "many", *[word for n in range(200) for word in (n - 100, f"m{n}")])
        client.call("ZADD", "many", "-0", "m7")
        client.call("ZADD", "none", *[word for n in range(1, 200) for word in (n, f"m{n}")])
        before = [client.call("ZRANGE", key, 0, -1, "WITHSCORES") for key in ("z", "many", "none")]
        assert b"$2\r\n-0\r\n" in before[0]
        assert b"$2\r\n-0\r\n" in before[1]
        client.call("BGREWRITEAOF")
        done(client, "aof_rewrite_in_progress")
    server.kill()
    with server.start().client() as client:
        after = [client.call("ZRANGE", key, 0, -1, "WITHSCORES") for key in ("z", "many", "none")]
    assert after == before
