"""Fields that expire: by themselves, when they are met, after a restart, and while loading."""

from __future__ import annotations

import pytest
from conftest import Factory

from support.client import RawClient
from support.clock import Clock
from support.process import Process, incr
from support.waiting import wait_until

DEBUG = ("--enable-debug-command", "yes")
AOF = ("--appendonly", "yes", *DEBUG)
SOON_MS = 60_000  # by a clock that the test moves


def subexpiry(server: Process, database: int = 0) -> int:
    told = server.info("keyspace").get(f"db{database}", "subexpiry=0")
    return int(told.rpartition("subexpiry=")[2].partition(",")[0])


@pytest.mark.parametrize("size", [4, 1500])
def test_fields_go_by_themselves(fresh_server: Factory, settable_clock: Clock, size: int) -> None:
    server = fresh_server(*AOF, environment=settable_clock.environment)
    with server.client() as client, server.client() as listener:
        client.call("CONFIG", "SET", "notify-keyspace-events", "Eh")
        listener.call("SUBSCRIBE", "__keyevent@0__:hexpired")
        words = [word for at in range(size) for word in (f"f{at}", "v")]
        client.call("HSET", "h", *words)
        client.call("HSET", "stays", *words)
        half = [f"f{at}" for at in range(size // 2)]
        client.call("HPEXPIRE", "h", SOON_MS, "FIELDS", len(half), *half)
        client.call("HEXPIRE", "stays", 1000, "FIELDS", len(half), *half)
        assert subexpiry(server) == 2
        settable_clock.advance(SOON_MS + 1)
        wait_until(lambda: client.call_parsed("HLEN", "h") == size - len(half))
        assert subexpiry(server) == 1
        assert b"hexpired" in listener.read()
        stats = server.info("stats")
        assert int(stats["expired_subkeys"]) == len(half)
        assert int(stats["expired_subkeys_active"]) == len(half)
        assert int(stats["expired_keys"]) == 0
    assert b"HDEL\r\n$1\r\nh\r\n" in incr(server)
    server.restart(crash=True)
    assert server.call("HLEN", "h") == size - len(half)
    assert server.call("HLEN", "stays") == size


def test_the_key_goes_with_its_last_field(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    with server.client() as client, server.client() as listener:
        client.call("CONFIG", "SET", "notify-keyspace-events", "KA")
        listener.call("PSUBSCRIBE", "__keyspace@0__:h")
        client.call("HSETEX", "h", "PX", 20, "FIELDS", 2, "a", 1, "b", 2)
        heard = [listener.read() for _ in range(4)]
        for event, message in zip((b"hset", b"hexpire", b"hexpired", b"del"), heard, strict=True):
            assert message.endswith(b"\r\n%b\r\n" % event)
        assert client.call("EXISTS", "h") == b":0\r\n"
        assert server.info("keyspace") == {}
    server.restart(crash=True)
    assert server.call("DBSIZE") == 0


def test_they_stay_while_nothing_expires(fresh_server: Factory) -> None:
    server = fresh_server(*DEBUG)
    with server.client() as client:
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        client.call("HSET", "h", "a", 1, "b", 2)
        client.call("HPEXPIRE", "h", 1, "FIELDS", 1, "a")
        wait_until(lambda: client.call("HTTL", "h", "FIELDS", 1, "a") == b"*1\r\n:-2\r\n")
        wait_until(lambda: client.call_parsed("HGETALL", "h") == [b"b", b"2"])
        assert client.call("HLEN", "h") == b":2\r\n"
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        wait_until(lambda: client.call("HLEN", "h") == b":1\r\n")


def test_nothing_is_removed_while_writes_are_paused(
    fresh_server: Factory, settable_clock: Clock
) -> None:
    server = fresh_server(environment=settable_clock.environment)
    with server.client() as client:
        client.call("HSET", "h", "a", 1, "b", 2)
        client.call("HPEXPIRE", "h", SOON_MS, "FIELDS", 1, "a")
        client.call("CLIENT", "PAUSE", 10**8, "WRITE")
        settable_clock.advance(SOON_MS + 1)
        server.wait_for_log("The time of day was set forward by")  # periodic work has come by
        assert client.call_parsed("HGETALL", "h") == [b"b", b"2"]
        assert client.call("HGET", "h", "a") == b"$-1\r\n"
        assert client.call("HLEN", "h") == b":2\r\n"
        client.call("CLIENT", "UNPAUSE")
        wait_until(lambda: client.call("HLEN", "h") == b":1\r\n")


@pytest.mark.parametrize(("size", "left"), [(1, -2), (1500, 0)])
def test_the_last_millisecond(
    fresh_server: Factory, settable_clock: Clock, size: int, left: int
) -> None:
    """A field lives to its end; only a small hash tells its time as over, as in Redis."""
    server = fresh_server(environment=settable_clock.environment)
    deadline_ms = settable_clock.now_ms + 5000
    with server.client() as client:
        client.call("HSET", "h", *[word for at in range(size) for word in (f"f{at}", "v")])
        client.call("HPEXPIREAT", "h", deadline_ms, "FIELDS", 1, "f0")
        settable_clock.set(deadline_ms)
        assert client.call_parsed("HPTTL", "h", "FIELDS", 1, "f0") == [left]
        assert client.call_parsed("HTTL", "h", "FIELDS", 1, "f0") == [left]
        told = [deadline_ms if left == 0 else left]
        assert client.call_parsed("HPEXPIRETIME", "h", "FIELDS", 1, "f0") == told
        assert client.call("HGET", "h", "f0") == b"$1\r\nv\r\n"
        settable_clock.set(deadline_ms + 1)
        assert client.call_parsed("HPTTL", "h", "FIELDS", 1, "f0") == [-2]
        assert client.call("HGET", "h", "f0") == b"$-1\r\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("XX GT FIELDS 1 a", "Multiple condition flags specified"),
        ("FIELDS 1 a LT NX", "Multiple condition flags specified"),
        ("XX GT COUNT", "unknown argument: COUNT"),
        ("XX GT XX", "missing FIELDS argument"),
        ("XX GT FIELDS 0 a", "Parameter `numFields` should be greater than 0"),
        ("XX GT FIELDS 3 a", "wrong number of arguments"),
        ("XX GT FIELDS 1 a FIELDS 1 b", "FIELDS keyword specified multiple times"),
    ],
)
def test_two_conditions_are_the_last_mistake(client: RawClient, words: str, error: str) -> None:
    client.call("HSET", "h", "a", 1)
    for name in ("HEXPIRE", "HPEXPIRE", "HEXPIREAT", "HPEXPIREAT"):
        assert client.call(name, "h", 4102444800, *words.split()) == f"-ERR {error}\r\n".encode()
    assert client.call_parsed("HTTL", "h", "FIELDS", 1, "a") == [-1]


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_what_expired_while_it_was_down(
    fresh_server: Factory, settable_clock: Clock, preamble: str
) -> None:
    """The file says what has gone; the rest goes when the server is up."""
    server = fresh_server(
        *AOF, "--aof-use-rdb-preamble", preamble, environment=settable_clock.environment
    )
    with server.client() as client:
        client.call("HSET", "small", "a", 1, "b", 2)
        client.call("HSET", "large", *[word for at in range(1000) for word in (f"f{at}", at)])
        for key, field in (("small", "a"), ("large", "f7")):
            client.call("HPEXPIRE", key, 5000, "FIELDS", 1, field)
            client.call("HINCRBY", key, field, 5)
        client.call("BGREWRITEAOF")
        server.wait_for_log("Append-only base file written")
        client.call("HINCRBY", "small", "a", 1)
    server.kill()
    settable_clock.advance(60_000)
    server.start()
    assert server.call("HGET", "small", "a") is None
    wait_until(lambda: server.call("HLEN", "small") == 1)
    wait_until(lambda: server.call("HLEN", "large") == 999)
    assert server.call("HGET", "large", "f7") is None
    assert subexpiry(server) == 0


MOVES = [
    ("RENAME h g", 0, "g"),
    ("MOVE h 1", 1, "h"),
    ("SWAPDB 0 1", 1, "h"),
    ("COPY h g", 0, "g"),
    ("COPY h g DB 1", 1, "g"),
]


@pytest.mark.parametrize(("words", "database", "key"), MOVES)
@pytest.mark.parametrize("size", [3, 700])
def test_deadlines_go_with_the_hash(
    fresh_server: Factory, settable_clock: Clock, words: str, database: int, key: str, size: int
) -> None:
    server = fresh_server(environment=settable_clock.environment)
    with server.client() as client:
        client.call("HSET", "h", *[word for at in range(size) for word in (f"f{at}", at)])
        client.call("HPEXPIRE", "h", SOON_MS, "FIELDS", 1, "f1")
        client.call(*words.split())
        assert subexpiry(server, database) == (2 if words == "COPY h g" else 1)
        if not words.startswith("COPY"):
            assert subexpiry(server, 1 - database) == 0 or database == 0
        settable_clock.advance(SOON_MS + 1)
        client.call("SELECT", database)
        wait_until(lambda: client.call_parsed("HLEN", key) == size - 1)
        assert subexpiry(server, database) == 0


@pytest.mark.parametrize(
    "words",
    ["DEL h", "UNLINK h", "SET h x", "FLUSHDB", "FLUSHALL", "HPERSIST h FIELDS 1 a",
     "HSET h a 5", "HDEL h a", "RENAME other h", "COPY other h REPLACE"],
)  # fmt: skip
def test_no_deadline_is_left_behind(fresh_server: Factory, words: str) -> None:
    server = fresh_server(*DEBUG)
    with server.client() as client:
        client.call("HSET", "h", "a", 1, "b", 2)
        client.call("HSET", "other", "a", 1)
        client.call("HEXPIRE", "h", 100, "FIELDS", 1, "a")
        assert subexpiry(server) == 1
        client.call(*words.split())
        assert subexpiry(server) == 0


def test_watched_keys_break(fresh_server: Factory, settable_clock: Clock) -> None:
    """A field that is swept breaks a WATCH of its hash, as any change does."""
    server = fresh_server(environment=settable_clock.environment)
    with server.client() as one, server.client() as other:
        other.call("HSET", "h", "a", 1, "b", 2)
        other.call("HPEXPIRE", "h", SOON_MS, "FIELDS", 1, "a")
        one.call("WATCH", "h")
        settable_clock.advance(SOON_MS + 1)
        wait_until(lambda: other.call("HLEN", "h") == b":1\r\n")
        one.call("MULTI")
        one.call("PING")
        assert one.call("EXEC") == b"*-1\r\n"


def test_many_are_swept_in_slices(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    with server.client() as client, server.client() as listener:
        client.call("CONFIG", "SET", "notify-keyspace-events", "Kgh")
        listener.call("SUBSCRIBE", "__keyspace@0__:h")
        words = [word for at in range(3000) for word in (f"f{at}", "v")]
        client.call("HSETEX", "h", "PX", 100, "FIELDS", 3000, *words)
        client.call("SET", "other", "1")
        heard = [listener.read()]
        while not heard[-1].endswith(b"\r\ndel\r\n"):
            heard.append(listener.read())
    assert sum([message.endswith(b"hexpired\r\n") for message in heard]) > 10
    assert incr(server).count(b"HDEL\r\n") == 3000  # one for each, as in Redis
    assert b"MULTI\r\n" not in incr(server)
    server.restart(crash=True)
    assert server.call("KEYS", "*") == [b"other"]


def test_what_is_met_expired_is_recorded_field_by_field(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    with server.client() as client:
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        client.call("HSET", "h", "a", 1, "b", 2, "c", 3, "d", 4)
        client.call("HPEXPIRE", "h", 1, "FIELDS", 3, "a", "b", "c")
        wait_until(lambda: client.call("HEXISTS", "h", "c") == b":0\r\n")
        client.call("HMGET", "h", "a", "d", "b")
    told = incr(server)
    told = told[told.index(b"HDEL") :].replace(b"\r\n", b" ")
    one = b"HDEL $1 h $1 "
    assert told.startswith(
        one + b"c *1 $5 MULTI *3 $4 " + one + b"a *3 $4 " + one + b"b *1 $4 EXEC"
    )
    server.restart(crash=True)
    assert server.call("HGETALL", "h") == [b"d", b"4"]
