"""redis-py, the blocking client: data and what is done with it, in both protocols."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import redis

from support.redis_py import Client, Entries, by_stream
from support.waiting import DEADLINE_S, wait_until

# What redis-py has deprecated or calls an experiment is ours to serve all the same.
OLD_OR_NEW = pytest.mark.filterwarnings("ignore:Call to .*(deprecated|experimental)")


def fill(r: Client, key: str, count: int) -> None:
    with r.pipeline(transaction=False) as pipe:
        for n in range(1, count + 1):
            pipe.xadd(key, {"n": n}, id=f"{n}-0")
        pipe.execute()


# Strings


def test_set_with_every_option(r: Client) -> None:
    assert r.set("k", "v") is True
    assert r.set("k", "w", nx=True) is None
    assert r.set("none", "w", xx=True) is None
    assert r.set("k", "w", get=True) == "v"
    assert r.set("k", "x", ex=100) is True
    assert r.ttl("k") == 100
    assert r.set("k", "y", keepttl=True) is True
    assert r.ttl("k") == 100
    assert r.set("k", "y", px=100_000) is True
    assert 99_000 < r.pttl("k") <= 100_000
    at = int(time.time()) + 1000
    assert r.set("k", "y", exat=at) is True
    assert r.expiretime("k") == at
    assert r.set("k", "y", pxat=at * 1000 + 7) is True
    assert r.pexpiretime("k") == at * 1000 + 7
    with pytest.raises(redis.ResponseError, match="syntax error"):
        r.execute_command("SET", "k", "v", "NX", "XX")
    with pytest.raises(redis.ResponseError, match="invalid expire time in 'set' command"):
        r.set("k", "v", ex=-1)


@OLD_OR_NEW
def test_get_and_its_kin(r: Client) -> None:
    assert r.get("none") is None
    r.set("k", "hello")
    assert r.getrange("k", 1, 3) == "ell"
    assert r.substr("k", -3) == "llo"
    assert r.strlen("k") == 5
    assert r.getset("k", "new") == "hello"
    assert r.getex("k", ex=50) == "new"
    assert r.ttl("k") == 50
    assert r.getex("k", persist=True) == "new"
    assert r.ttl("k") == -1
    assert r.getdel("k") == "new"
    assert r.getdel("k") is None
    assert r.setnx("k", "a") is True
    assert r.setnx("k", "b") is False
    assert r.append("k", "bc") == 3
    assert r.setrange("k", 5, "!") == 6
    assert r.get("k") == "abc\0\0!"
    assert r.setex("k", 10, "v") is True
    assert r.psetex("k", 10_000, "v") is True
    assert 9_000 < r.pttl("k") <= 10_000


def test_counters(r: Client) -> None:
    assert r.incr("n") == 1
    assert r.incrby("n", 41) == 42
    assert r.decr("n") == 41
    assert r.decrby("n", 1) == 40
    assert r.incrbyfloat("n", 2.5) == 42.5
    with pytest.raises(redis.ResponseError, match="not an integer or out of range"):
        r.incr("n")
    r.set("n", 2**63 - 1)
    with pytest.raises(redis.ResponseError, match="increment or decrement would overflow"):
        r.incr("n")


def test_counters_with_bounds(r: Client) -> None:
    assert r.increx("n") == [1, 1]
    assert r.increx("n", byint=5, ubound=3) == [1, 0]
    assert r.increx("n", byint=5, lbound=0, ubound=3, saturate=True, ex=100) == [3, 2]
    assert r.increx("n", px=50_000, enx=True) == [4, 1]
    assert r.ttl("n") == 100
    assert [float(n) for n in r.increx("n", byfloat=0.5, persist=True)] == [4.5, 0.5]
    assert r.ttl("n") == -1


def test_many_strings(r: Client) -> None:
    assert r.mset({"a": 1, "b": 2}) is True
    assert r.mget("a", "none", "b") == ["1", None, "2"]
    assert r.msetnx({"b": 3, "c": 3}) is False
    assert r.msetnx({"c": 3, "d": 4}) is True
    assert r.msetex({"a": 5, "b": 6}, ex=100) == 1
    assert r.mget("a", "b") == ["5", "6"]
    assert (r.ttl("a"), r.ttl("c")) == (100, -1)


@OLD_OR_NEW
def test_compare_before_changing(r: Client) -> None:
    r.set("k", "hello")
    digest = r.digest("k")
    assert len(digest) == 16
    assert r.set("k", "new", ifeq="other") is None
    assert r.set("k", "new", ifdeq=digest) is True
    assert r.set("k", "newer", ifdne=digest) is True
    assert r.set("k", "newest", ifne="newest") is True
    assert r.delex("k", ifeq="hello") == 0
    assert r.delex("k", ifne="hello") == 1
    assert r.digest("k") is None


def test_bytes_come_back_as_they_went(r: Client) -> None:
    with redis.Redis(
        port=r.get_connection_kwargs()["port"],
        protocol=r.get_connection_kwargs()["protocol"],
        decode_responses=False,
    ) as plain:
        value = bytes(range(256)) * 300
        assert plain.set(b"k\r\n\0", value) is True
        assert plain.get(b"k\r\n\0") == value
        plain.xadd(b"s", {b"\xff\0": b"\r\n"}, id="1-1")
        assert plain.xrange(b"s") == [(b"1-1", {b"\xff\0": b"\r\n"})]
    r.set("k", "grüße")
    assert r.get("k") == "grüße"


# Keys


def test_keys(r: Client) -> None:
    r.mset({"a": 1, "b": 2, "c": 3})
    r.xadd("s", {"f": "v"})
    assert sorted(r.keys("*")) == ["a", "b", "c", "s"]
    assert r.keys("[ab]") in (["a", "b"], ["b", "a"])
    assert r.dbsize() == 4
    assert (r.type("a"), r.type("s"), r.type("none")) == ("string", "stream", "none")
    assert r.exists("a", "a", "none") == 2
    assert r.touch("a", "b", "none") == 2
    assert r.randomkey() in {"a", "b", "c", "s"}
    assert r.rename("a", "z") is True
    assert r.renamenx("z", "b") is False
    with pytest.raises(redis.ResponseError, match="no such key"):
        r.rename("none", "x")
    assert r.copy("b", "z") is False
    assert r.copy("b", "z", replace=True) is True
    assert r.get("z") == "2"
    assert r.copy("s", "s", destination_db="3") is True
    assert r.move("z", 3) is True
    assert r.move("none", 3) is False
    assert r.delete("b", "none") == 1
    assert r.unlink("c", "none") == 1
    assert r.swapdb(0, 3) is True
    assert sorted(r.keys()) == ["s", "z"]
    assert r.flushdb() is True
    assert r.dbsize() == 0
    assert r.flushall(asynchronous=True) is True


def test_expiry(r: Client) -> None:
    r.set("k", "v")
    assert r.expire("none", 10) is False
    assert r.expire("k", 100, xx=True) is False
    assert r.expire("k", 100, nx=True) is True
    assert r.expire("k", 50, gt=True) is False
    assert r.expire("k", 50, lt=True) is True
    assert r.ttl("k") == 50
    assert r.pexpire("k", 60_000) is True
    assert r.expireat("k", int(time.time()) + 500) is True
    assert r.pexpireat("k", int(time.time() * 1000) + 500_000) is True
    assert 490 < r.ttl("k") <= 500
    assert r.persist("k") is True
    assert r.persist("k") is False
    assert (r.ttl("k"), r.ttl("none"), r.expiretime("k")) == (-1, -2, -1)
    assert r.pexpire("k", 20) is True
    wait_until(lambda: r.get("k") is None)
    r.set("k", "v")
    assert r.expire("k", -1) is True
    assert r.exists("k") == 0


def test_scan(r: Client) -> None:
    with r.pipeline(transaction=False) as pipe:
        for n in range(500):
            pipe.set(f"key:{n}", n)
        pipe.xadd("stream:1", {"f": "v"})
        pipe.execute()
    assert len(set(r.scan_iter())) == 501
    assert len(set(r.scan_iter(match="key:?", count=7))) == 10
    assert list(r.scan_iter(_type="stream")) == ["stream:1"]
    cursor, keys = r.scan(0, count=10)
    assert isinstance(cursor, int)
    assert 10 <= len(keys) < 501
    assert cursor != 0


def test_object(r: Client) -> None:
    r.set("n", 5)
    r.set("s", "short")
    r.set("l", "long" * 100)
    r.xadd("x", {"f": "v"})
    names = [r.object("encoding", key) for key in "nslx"]
    assert names == ["int", "embstr", "raw", "stream"]
    assert r.object("refcount", "s") == 1
    assert r.object("idletime", "s") == 0
    assert r.memory_usage("l") > 400
    assert r.memory_usage("x", samples=0) > 0
    assert r.memory_usage("none") is None


# Streams


def test_xadd_with_every_option(r: Client) -> None:
    assert r.xadd("s", {"f": "v"}, id="5-1") == "5-1"
    assert r.xadd("s", {"f": "v"}, id="5-*") == "5-2"
    ms, _, seq = r.xadd("s", {"f": "v", "g": "w"}).partition("-")
    assert abs(int(ms) - time.time() * 1000) < 60_000
    assert seq == "0"
    assert r.xadd("none", {"f": "v"}, nomkstream=True) is None
    assert r.exists("none") == 0
    r.xadd("s", {"f": "v"}, maxlen=2, approximate=False)
    assert r.xlen("s") == 2
    r.xadd("t", {"f": "v"}, id="1-0")
    r.xadd("t", {"f": "v"}, id="2-0", minid="2", approximate=False)
    assert [i for i, _ in r.xrange("t")] == ["2-0"]
    fill(r, "u", 1000)
    r.xadd("u", {"n": 0}, id="1001-0", maxlen=10, approximate=True, limit=300)
    assert r.xlen("u") == 701
    for policy in ("KEEPREF", "DELREF", "ACKED"):
        r.xadd("u", {"n": 0}, maxlen=100, approximate=False, ref_policy=policy)
    assert r.xlen("u") == 100


def test_xadd_refuses(r: Client) -> None:
    r.xadd("s", {"f": "v"}, id="5-1")
    smaller = "equal or smaller than the target stream top item"
    with pytest.raises(redis.ResponseError, match=smaller):
        r.xadd("s", {"f": "v"}, id="5-1")
    with pytest.raises(redis.ResponseError, match="must be greater than 0-0"):
        r.xadd("new", {"f": "v"}, id="0-0")
    with pytest.raises(redis.ResponseError, match="Invalid stream ID"):
        r.xadd("new", {"f": "v"}, id="five")
    with pytest.raises(redis.ResponseError, match="wrong number of arguments"):
        r.execute_command("XADD", "new", "*", "f")
    r.set("k", "v")
    with pytest.raises(redis.ResponseError, match="wrong kind of value"):
        r.xadd("k", {"f": "v"})
    assert r.exists("new") == 0


def test_ranges(r: Client) -> None:
    fill(r, "s", 250)
    assert len(r.xrange("s")) == 250
    assert r.xrange("s", min="2", max="3") == [("2-0", {"n": "2"}), ("3-0", {"n": "3"})]
    assert [i for i, _ in r.xrange("s", min="(2-0", count=2)] == ["3-0", "4-0"]
    assert [i for i, _ in r.xrevrange("s", max="100", count=2)] == ["100-0", "99-0"]
    assert [i for i, _ in r.xrevrange("s", max="(100-0", min="98-0")] == ["99-0", "98-0"]
    assert r.xrange("s", min="300") == []
    assert r.xrange("none") == []


def test_read(r: Client) -> None:
    fill(r, "a", 5)
    fill(r, "b", 3)
    reply = by_stream(r.xread({"a": "3-0", "b": "2-0", "c": "0"}))
    assert reply == {
        "a": [("4-0", {"n": "4"}), ("5-0", {"n": "5"})],
        "b": [("3-0", {"n": "3"})],
    }
    assert by_stream(r.xread({"a": "0"}, count=1)) == {"a": [("1-0", {"n": "1"})]}
    assert by_stream(r.xread({"a": "+"})) == {"a": [("5-0", {"n": "5"})]}
    assert by_stream(r.xread({"a": "$"})) == {}
    limited = by_stream(r.xread({"a": "0", "b": "0"}, max_count=6))
    assert [len(entries) for entries in limited.values()] == [5, 1]
    sized = by_stream(r.xread({"a": "0", "b": "0"}, max_size=10))
    assert sum(len(entries) for entries in sized.values()) >= 1


def test_read_blocks(r: Client, other: Client) -> None:
    got: list[dict[str, Entries]] = []
    reader = threading.Thread(
        target=lambda: got.append(by_stream(other.xread({"a": "$", "b": "$"}, block=60_000)))
    )
    reader.start()
    wait_until(lambda: r.info("clients")["blocked_clients"] == 1)
    r.xadd("b", {"f": "v"}, id="9-9")
    reader.join()
    assert got == [{"b": [("9-9", {"f": "v"})]}]
    start = time.monotonic()
    assert by_stream(r.xread({"a": "$"}, block=50)) == {}
    assert time.monotonic() - start > 0.048  # a deadline is a whole millisecond


def test_trim_and_delete(r: Client) -> None:
    fill(r, "s", 1000)
    assert r.xtrim("s", maxlen=250, approximate=True) == 700  # whole blocks of 100
    assert r.xtrim("s", maxlen=250, approximate=False) == 50
    assert r.xtrim("s", minid="800", approximate=False) == 49
    assert r.xtrim("s", minid="900", limit=100) == 1  # the one entry left in the oldest block
    assert r.xtrim("s", maxlen=100, approximate=False, ref_policy="DELREF") == 100
    assert r.xdel("s", "1000-0", "1000-0", "1-0") == 1
    assert r.xdelex("s", "999-0", "1-0", ref_policy="KEEPREF") == [1, -1]
    assert r.xlen("s") == 98
    assert r.xlen("none") == 0


def test_inspect_a_stream(r: Client) -> None:
    fill(r, "s", 150)
    r.xdel("s", "7-0")
    info = r.xinfo_stream("s")
    assert info["length"] == 149
    assert info["last-generated-id"] == "150-0"
    assert info["max-deleted-entry-id"] == "7-0"
    assert info["entries-added"] == 150
    assert info["recorded-first-entry-id"] == "1-0"
    assert info["groups"] == 0
    assert info["first-entry"] == ("1-0", {"n": "1"})
    assert info["last-entry"] == ("150-0", {"n": "150"})
    full = r.xinfo_stream("s", full=True)
    assert list(full["entries"].items())[:2] == [("1-0", {"n": "1"}), ("2-0", {"n": "2"})]
    assert len(full["entries"]) == 10
    assert full["groups"] == []
    with pytest.raises(redis.ResponseError, match="no such key"):
        r.xinfo_stream("none")


def test_xsetid(r: Client) -> None:
    r.xadd("s", {"f": "v"}, id="1-0")
    words = ("ENTRIESADDED", 7, "MAXDELETEDID", "0-1")
    assert r.execute_command("XSETID", "s", "10-0", *words) in (True, "OK")
    info = r.xinfo_stream("s")
    assert (info["last-generated-id"], info["entries-added"]) == ("10-0", 7)
    with pytest.raises(redis.ResponseError, match="smaller than the target stream top item"):
        r.execute_command("XSETID", "s", "0-2")


# Pipelines and transactions


@pytest.mark.parametrize("transaction", [True, False])
def test_pipeline(r: Client, transaction: bool) -> None:
    with r.pipeline(transaction=transaction) as pipe:
        pipe.set("k", "v").incr("n").xadd("s", {"f": "v"}, id="1-1").xrange("s").get("none")
        replies = pipe.execute()
    assert replies == [True, 1, "1-1", [("1-1", {"f": "v"})], None]


@pytest.mark.parametrize("transaction", [True, False])
def test_an_error_in_a_pipeline(r: Client, transaction: bool) -> None:
    with r.pipeline(transaction=transaction) as pipe:
        pipe.set("k", "v").xadd("k", {"f": "v"}).set("after", "v")
        with pytest.raises(redis.ResponseError, match=r"Command # 2 .* wrong kind of value"):
            pipe.execute()
        assert r.get("after") == "v"
        pipe.set("k", "v").xlen("k").strlen("k")
        first, second, third = pipe.execute(raise_on_error=False)
    assert (first, third) == (True, 1)
    assert isinstance(second, redis.ResponseError)


def test_a_command_that_cannot_be_queued(r: Client) -> None:
    with r.pipeline() as pipe:
        pipe.set("k", "v").execute_command("XADD", "s")
        with pytest.raises(redis.ResponseError, match="wrong number of arguments for 'xadd'"):
            pipe.execute()
    assert r.exists("k") == 0


def test_watch(r: Client, other: Client) -> None:
    r.set("n", 1)
    with r.pipeline() as pipe:
        pipe.watch("n")
        value = int(pipe.get("n"))
        other.set("n", 10)
        pipe.multi()
        pipe.set("n", value + 1)
        with pytest.raises(redis.WatchError):
            pipe.execute()
        pipe.watch("n")
        pipe.multi()
        pipe.incr("n")
        assert pipe.execute() == [11]
        pipe.watch("n")
        other.touch("n")
        pipe.unwatch()
    with r.pipeline() as pipe:
        pipe.watch("s")
        other.xadd("s", {"f": "v"})
        pipe.multi()
        pipe.xlen("s")
        with pytest.raises(redis.WatchError):
            pipe.execute()


def test_optimistic_counter(r: Client) -> None:
    """Threads that all add one under WATCH lose none."""

    def increase(pipe: Any) -> None:
        value = int(pipe.get("n") or 0)
        pipe.multi()
        pipe.set("n", value + 1)

    def add() -> None:
        for _ in range(20):
            r.transaction(increase, "n")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert r.get("n") == "80"


def test_a_large_pipeline(r: Client) -> None:
    fill(r, "s", 10_000)
    assert r.xlen("s") == 10_000
    assert r.xrange("s")[-1] == ("10000-0", {"n": "10000"})


# Messages


def next_message(pubsub: Any) -> dict[str, Any]:
    message: dict[str, Any] | None = pubsub.get_message(timeout=DEADLINE_S)
    assert message is not None
    return message


def test_messages(r: Client, protocol: int) -> None:
    with r.pubsub() as pubsub:
        pubsub.subscribe("news")
        pubsub.psubscribe("n*")
        pubsub.ssubscribe("shard")
        kinds = [next_message(pubsub)["type"] for _ in range(3)]
        assert kinds == ["subscribe", "psubscribe", "ssubscribe"]
        assert r.pubsub_channels() == ["news"]
        assert r.pubsub_shardchannels() == ["shard"]
        assert r.pubsub_numsub("news", "none") == [("news", 1), ("none", 0)]
        assert r.pubsub_shardnumsub("shard") == [("shard", 1)]
        assert r.pubsub_numpat() == 1
        assert r.publish("news", "hello") == 2
        assert r.spublish("shard", "there") == 1
        got = [next_message(pubsub) for _ in range(3)]
        assert [(m["type"], m["pattern"], m["channel"], m["data"]) for m in got] == [
            ("message", None, "news", "hello"),
            ("pmessage", "n*", "news", "hello"),
            ("smessage", None, "shard", "there"),
        ]
        if protocol == 2:  # in RESP3 the reply is no message, and redis-py takes it for one
            pubsub.ping("are you there")
            assert next_message(pubsub)["data"] == "are you there"
        pubsub.unsubscribe()
        pubsub.punsubscribe()
        pubsub.sunsubscribe()
        kinds = [next_message(pubsub)["type"] for _ in range(3)]
        assert kinds == ["unsubscribe", "punsubscribe", "sunsubscribe"]
        assert r.publish("news", "nobody") == 0


def test_messages_in_a_thread(r: Client) -> None:
    seen: list[str] = []
    with r.pubsub(ignore_subscribe_messages=True) as pubsub:
        pubsub.subscribe(news=lambda message: seen.append(message["data"]))
        thread = pubsub.run_in_thread(sleep_time=0.01)
        try:
            wait_until(lambda: r.publish("news", "first") == 1)
            for n in range(100):
                r.publish("news", n)
            wait_until(lambda: len(seen) == 101)
        finally:
            thread.stop()
            thread.join()
    assert seen == ["first", *map(str, range(100))]


def test_keyspace_notifications(r: Client) -> None:
    r.config_set("notify-keyspace-events", "KEA")
    try:
        with r.pubsub(ignore_subscribe_messages=True) as pubsub:
            pubsub.psubscribe("__key*@0__:*")
            assert pubsub.get_message(timeout=5) is None  # the confirmation, ignored
            r.xadd("s", {"f": "v"}, maxlen=0, approximate=False)
            r.set("k", "v", px=10)
            wait_until(lambda: r.get("k") is None)
            events = [
                (m["channel"].removeprefix("__keyevent@0__:"), m["data"])
                for m in (next_message(pubsub) for _ in range(10))
                if m["channel"].startswith("__keyevent")
            ]
        assert events == [
            ("xadd", "s"),
            ("xtrim", "s"),
            ("set", "k"),
            ("expire", "k"),
            ("expired", "k"),
        ]
    finally:
        r.config_set("notify-keyspace-events", "")
