"""Which keys go by each policy, and what becomes known of it."""

from __future__ import annotations

import time

import pytest
from conftest import Factory

from support.client import Argument, RawClient, WireError, encode, parse
from support.process import Process
from support.waiting import wait_until

ROOM = 20_000
REPLIES_BYTES = 8_000  # of replies that a client has not read
OOM = WireError(b"OOM command not allowed when used memory > 'maxmemory'.")


def limit(server: Process, policy: str, room: int = ROOM) -> None:
    """Leave so much room from now on."""
    server.call("CONFIG", "SET", "maxmemory-policy", policy)
    used = int(server.info("memory")["used_memory"])
    server.call("CONFIG", "SET", "maxmemory", used + room)


def fill(client: RawClient, names: list[str], *options: Argument) -> list[object]:
    return [client.call_parsed("SET", name, "x" * 100, *options) for name in names]


def keys(server: Process) -> set[bytes]:
    found = server.call("KEYS", "*")
    assert isinstance(found, list)
    return set(found)


def evicted(server: Process) -> int:
    return int(server.info("stats")["evicted_keys"])


def fields(replies: object) -> tuple[dict[str, int], int]:
    """What INFO and DBSIZE replied in one transaction: numbers, and how many keys there are."""
    assert isinstance(replies, list)
    text, size = replies
    lines = [line.partition(":") for line in text.decode().splitlines()]
    return {name: int(value) for name, _, value in lines if value.isdigit()}, size


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-lrm", "allkeys-random"])
def test_two_thousand_keys_go_through_room_for_few(fresh_server: Factory, policy: str) -> None:
    server = fresh_server()
    with server.client() as client:
        limit(server, policy)
        replies = fill(client, [f"key:{number}" for number in range(2000)])
        assert replies == [b"OK"] * 2000
        # At one moment, because another connection takes room, and keys go before each command.
        moment = client.pipeline(("MULTI",), ("INFO", "memory", "stats"), ("DBSIZE",), ("EXEC",))
        info, left = fields(parse(moment[-1]))
        assert info["used_memory"] <= info["maxmemory"]
        assert 70 < left < 200
        assert info["evicted_keys"] == 2000 - left
        if policy in ("allkeys-lru", "allkeys-lrm"):
            assert server.call("EXISTS", "key:1999") == 1


def test_a_pipeline_is_evicted_for_one_by_one(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        limit(server, "allkeys-lru")
        request = b"*3\r\n$3\r\nSET\r\n$7\r\nk%06d\r\n$3\r\nabc\r\n"
        client.send(b"".join([request % number for number in range(2000)]))
        assert [client.read() for _ in range(2000)] == [b"+OK\r\n"] * 2000
        assert client.call("GET", "k001999") == b"$3\r\nabc\r\n"


def test_noeviction_refuses(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        limit(server, "noeviction")
        replies = fill(client, [f"key:{number}" for number in range(300)])
        assert OOM in replies
        assert evicted(server) == 0
        assert client.call_parsed("SET", "another", 1) == OOM
        assert client.call_parsed("GET", "key:0") == b"x" * 100
        client.call("DEL", *[f"key:{number}" for number in range(50)])
        assert client.call("SET", "another", 1) == b"+OK\r\n"


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu"])
def test_what_is_used_stays(fresh_server: Factory, policy: str) -> None:
    server = fresh_server()
    hot = [f"hot:{number}" for number in range(20)]
    with server.client() as client:
        limit(server, policy)
        server.call("CONFIG", "SET", "maxmemory-samples", 20)
        fill(client, hot)
        for number in range(1500):
            client.call("GET", hot[number % 20])
            client.call("SET", f"cold:{number}", "x" * 100)
        assert server.call("EXISTS", *hot) == 20


def test_what_is_written_stays_by_lrm(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        limit(server, "allkeys-lrm")
        server.call("CONFIG", "SET", "maxmemory-samples", 20)
        fill(client, ["read", "set"])
        client.call("RPUSH", "pushed", "a")
        for number in range(1500):
            client.call("GET", "read")  # which is no change
            client.call("SET", "set", "x" * 100)
            client.call("LSET", "pushed", 0, number)
            client.call("SET", f"cold:{number}", "x" * 100)
        assert server.call("EXISTS", "set") == 1
        assert server.call("EXISTS", "pushed") == 1
        assert server.call("EXISTS", "read") == 0


def test_the_next_deadline_goes_first(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        limit(server, "volatile-ttl")
        order = [(number * 7919) % 500 for number in range(500)]
        for number in order:
            client.call("SET", f"key:{number}", "x" * 20, "EX", 10_000 + number)
            if evicted(server):
                break
        there = sorted(int(key.split(b":")[1]) for key in keys(server))
        seen = order[: order.index(number) + 1]
        gone = sorted(set(seen) - set(there))
        assert gone
        assert max(gone) < min(there)


@pytest.mark.parametrize(
    "policy",
    ["volatile-lru", "volatile-lfu", "volatile-lrm", "volatile-random", "volatile-ttl"],
)
def test_volatile_policies_take_only_what_has_a_deadline(
    fresh_server: Factory, policy: str
) -> None:
    server = fresh_server()
    with server.client() as client:
        fill(client, [f"stays:{number}" for number in range(30)])
        limit(server, policy)
        replies = fill(client, [f"key:{number}" for number in range(300)], "EX", 10_000)
        assert OOM not in replies
        assert server.call("EXISTS", *[f"stays:{number}" for number in range(30)]) == 30
        assert evicted(server) > 100
        replies = fill(client, [f"more:{number}" for number in range(300)])
        assert replies[-1] == OOM  # nothing is left that has a deadline
        assert server.call("EXISTS", *[f"key:{number}" for number in range(300)]) == 0
        assert server.call("EXISTS", *[f"stays:{number}" for number in range(30)]) == 30


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random", "volatile-ttl"])
def test_streams_go_last_and_whole(fresh_server: Factory, policy: str) -> None:
    server = fresh_server()
    with server.client() as client:
        options: list[Argument] = ["EX", 10_000] if policy.startswith("volatile") else []
        limit(server, policy, 60_000)
        for number in range(20):
            client.call("XADD", f"log:{number}", "1-1", "f", "v")
            client.call("EXPIRE", f"log:{number}", 100)
        client.call("XGROUP", "CREATE", "log:0", "g", "0")
        client.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "log:0", ">")
        fill(client, [f"key:{number}" for number in range(1000)], *options)
        assert server.call("EXISTS", *[f"log:{number}" for number in range(20)]) == 20
        # A value for which all others are not enough: then streams go, one after the other.
        assert client.call("SET", "large", "x" * 55_000, *options) == b"+OK\r\n"
        client.call("XADD", "log:19", "2-1", "f", "v")
        server.call("CONFIG", "SET", "maxmemory", int(server.info("memory")["used_memory"]) - 100)
        client.call("PING")
        there = [number for number in range(20) if server.call("EXISTS", f"log:{number}")]
        for number in there:
            assert server.call("XLEN", f"log:{number}") == (2 if number == 19 else 1)


def test_all_databases_make_room(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        limit(server, "allkeys-random")
        for number in range(400):
            client.call("SELECT", number % 3)
            assert client.call("SET", f"key:{number}", "x" * 100) == b"+OK\r\n"
        sizes = [line for line in server.info("keyspace") if line.startswith("db")]
        assert sizes == ["db0", "db1", "db2"]


def test_what_becomes_known(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--notify-keyspace-events", "Ee")
    with server.client() as client, server.client() as other, server.client() as hearer:
        hearer.call("SUBSCRIBE", "__keyevent@0__:evicted")
        limit(server, "allkeys-lru")
        client.call("SET", "first", "x" * 100)
        other.call("WATCH", "first")
        other.call("MULTI")
        other.call("PING")
        fill(client, [f"key:{number}" for number in range(300)])
        assert server.call("EXISTS", "first") == 0
        assert other.call("EXEC") == b"*-1\r\n"
        count = evicted(server)
        heard = [hearer.read() for _ in range(count)]
        assert all(b"evicted" in message for message in heard)
        assert any(b"$5\r\nfirst\r\n" in message for message in heard)
    left = keys(server)
    server.restart(crash=True)
    assert keys(server) == left


def test_a_time_over_the_limit_is_told(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        client.call("SET", "a", "x" * 10_000)
        server.call("CONFIG", "SET", "maxmemory", 1)
        client.call("GET", "a")
        wait_until(lambda: int(server.info("stats")["current_eviction_exceeded_time"]) > 5)
        server.call("CONFIG", "SET", "maxmemory", 0)
        stats = server.info("stats")
        assert stats["current_eviction_exceeded_time"] == "0"
        assert int(stats["total_eviction_exceeded_time"]) > 5


def test_what_does_not_fit_in_time_goes_between_commands(fresh_server: Factory) -> None:
    server = fresh_server("--maxmemory-eviction-tenacity", "0", "--maxmemory-policy", "allkeys-lru")
    with server.client() as client:
        for start in range(0, 20_000, 1000):
            client.call("MSET", *[word for n in range(1000) for word in (f"k:{start + n}", n)])
        server.call("CONFIG", "SET", "maxmemory", int(server.info("memory")["used_memory"]) // 2)
        assert client.call("SET", "at once", 1) == b"+OK\r\n"
        wait_until(lambda: int(server.info("memory")["used_memory"]) <= limit_of(server))
        assert 2000 < len(keys(server)) < 12_000


def limit_of(server: Process) -> int:
    return int(server.info("memory")["maxmemory"])


def test_transactions_and_scripts(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        fill(client, ["a"])
        server.call("CONFIG", "SET", "maxmemory", 1)
        client.call("MULTI")
        assert client.call("GET", "a") == b"+QUEUED\r\n"
        assert client.call_parsed("SET", "b", 1) == OOM
        assert client.call("EXEC").startswith(b"-EXECABORT")
        allowed = "#!lua flags=allow-oom\nreturn redis.call('SET', 'b', 1)"
        assert client.call("EVAL", allowed, 0) == b"+OK\r\n"
        refused = client.call("EVAL", "return redis.call('SET', 'c', 1)", 0)
        assert refused.startswith(b"-OOM command not allowed when used memory > 'maxmemory'.")
        server.call("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        assert client.call("EVAL", "return redis.call('EXISTS', 'a', 'b')", 0) == b":0\r\n"


def test_nothing_is_evicted_while_writes_are_paused(fresh_server: Factory) -> None:
    server = fresh_server("--maxmemory-policy", "allkeys-random")
    with server.client() as client:
        fill(client, ["a"])
        client.call("CLIENT", "PAUSE", 10_000, "WRITE")
        server.call("CONFIG", "SET", "maxmemory", 1)
        assert client.call("EXISTS", "a") == b":1\r\n"
        client.call("CLIENT", "UNPAUSE")
        wait_until(lambda: server.call("EXISTS", "a") == 0)


def test_the_process_keeps_within_bounds(fresh_server: Factory) -> None:
    server = fresh_server("--maxmemory", "20mb", "--maxmemory-policy", "allkeys-lru")
    request = b"*3\r\n$3\r\nSET\r\n$11\r\nkey%08d\r\n$100\r\n" + b"x" * 92 + b"%08d\r\n"
    with server.client() as client:
        at = int(server.info("memory")["used_memory_rss"])
        for start in range(0, 400_000, 500):
            client.send(b"".join([request % (n, n) for n in range(start, start + 500)]))
            assert [client.read() for _ in range(500)] == [b"+OK\r\n"] * 500
        # One command evicts for a short while only: the rest is done behind it.
        wait_until(lambda: int(server.info("memory")["used_memory"]) <= 20 << 20)
        info = server.info("memory")
        assert int(info["used_memory_rss"]) < at + (50 << 20)
        assert evicted(server) > 200_000


@pytest.mark.parametrize(
    "line",
    [
        f"SET key:%04d {'x' * 10_000}",
        f"HSET hash f%04d {'x' * 10_000}",
        f"RPUSH list %04d{'x' * 10_000}",
        f"XADD stream * f%04d {'x' * 10_000}",
    ],
)
def test_a_pipeline_stops_at_the_limit(fresh_server: Factory, line: str) -> None:
    server = fresh_server("--maxmemory", "4000000")
    with server.client() as client:
        client.send(b"".join([encode(*(line % number).split()) for number in range(600)]))
        taken = [not client.read().startswith(b"-OOM ") for _ in range(600)]
    used = int(server.info("memory")["used_memory"])
    assert 4_000_000 - 20_000 <= used <= 4_000_000 + 20_000 + REPLIES_BYTES
    assert 250 < sum(taken) < 310
    assert sum(taken[-200:]) < 10  # what a large value takes is an estimate


def test_reads_of_a_pipeline_go_on_beyond_the_limit(fresh_server: Factory) -> None:
    server = fresh_server()
    server.call("SET", "key", "x" * 100_000)
    server.call("CONFIG", "SET", "maxmemory", 1_000)
    with server.client() as client:
        client.send(encode("GET", "key") * 20 + encode("SET", "a", "b") * 3 + encode("DEL", "key"))
        assert [len(client.read()) > 100_000 for _ in range(20)] == [True] * 20
        assert [client.read()[:5] for _ in range(3)] == [b"-OOM "] * 3
        assert client.read() == b":1\r\n"


def test_a_crash_under_eviction_loses_and_revives_nothing(fresh_server: Factory) -> None:
    server = fresh_server(
        *("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "allkeys-random")
    )
    with server.client() as client:
        limit(server, "allkeys-random")
        until = time.monotonic() + 60
        number = 0
        while evicted(server) <= 100:
            assert time.monotonic() < until
            for _ in range(100):
                number += 1
                client.call("SET", f"key:{number}", "x" * 50)
                client.call("XADD", "log", "*", "f", "v" * (number % 9))
                client.call("HSET", f"hash:{number % 5}", f"f{number}", "v")
    server.call("CONFIG", "SET", "maxmemory", 0)  # those who look cost memory, too
    left = keys(server)
    server.restart(crash=True)
    assert keys(server) == left


def test_a_client_is_closed_for_its_request(fresh_server: Factory) -> None:
    server = fresh_server("--maxmemory-clients", "1mb")
    with server.client() as client, server.client() as other:
        assert client.call("SET", "a", "x" * 400_000) == b"+OK\r\n"
        client.send_command("MSET", "b", "x" * 700_000, "c", "x" * 700_000)
        assert client.rest_until_close() == b""
        assert other.call("EXISTS", "a", "b") == b":1\r\n"
        assert server.info("stats")["evicted_clients"] == "1"


def test_watched_keys_and_channels_count(fresh_server: Factory) -> None:
    server = fresh_server("--maxmemory-clients", "200000")
    with server.client() as client:
        client.send_command("WATCH", *[f"key:{number}" for number in range(2000)])
        assert client.read() == b"+OK\r\n"
        client.send_command("PING")
        assert client.rest_until_close() == b""


def test_prefixes_of_tracking_count(fresh_server: Factory) -> None:
    server = fresh_server("--maxmemory-clients", "200000")
    with server.client() as client:
        words = [word for number in range(1000) for word in ("PREFIX", f"p{number}:")]
        client.send_command("CLIENT", "TRACKING", "ON", "BCAST", *words)
        client.send_command("PING")
        assert client.rest_until_close() in (b"", b"+OK\r\n")  # the cron may come first


def test_who_is_sent_messages_is_looked_at_at_once(fresh_server: Factory) -> None:
    """The cron looks at all clients, but much may be sent between two of its ticks."""
    server = fresh_server(
        *("--maxmemory-clients", "3000000", "--client-output-buffer-limit", "pubsub 0 0 0"),
        *("--enable-debug-command", "yes"),
    )
    with server.client() as reader, server.client() as writer:
        reader.call("SUBSCRIBE", "channel")
        assert writer.call("DEBUG", "PAUSE-CRON", 1) == b"+OK\r\n"
        told = [writer.call_parsed("PUBLISH", "channel", "x" * 200_000) for _ in range(200)]
        assert told[0] == 1
        assert told[-1] == 0
        assert server.info("stats")["evicted_clients"] == "1"


def test_a_reply_without_end_is_bounded(fresh_server: Factory) -> None:
    server = fresh_server("--client-output-buffer-limit", "normal 1mb 0 0")
    server.call("HSET", "h", "field", "value")
    server.call("SADD", "s", "member")
    server.call("ZADD", "z", 1, "member")
    for words in (
        ("HRANDFIELD", "h", -999_999_999),
        ("HRANDFIELD", "h", -999_999_999, "WITHVALUES"),
        ("SRANDMEMBER", "s", -999_999_999),
        ("ZRANDMEMBER", "z", -999_999_999, "WITHSCORES"),
    ):
        with server.client() as client:
            client.send_command(*words)
            assert client.rest_until_close() == b""
    assert server.info("stats")["client_output_buffer_limit_disconnections"] == "4"
