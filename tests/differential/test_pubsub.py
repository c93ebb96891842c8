"""Pub/sub against the real Redis, byte for byte, in both versions of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from support.client import RawClient, encode
from support.process import Pair, Process, RedisProcess, ServerProcess
from support.waiting import wait_until

pytestmark = pytest.mark.judge


@pytest.fixture(params=[False, True], ids=["resp2", "resp3"])
def subscriber(
    request: pytest.FixtureRequest, server: ServerProcess, redis_server: RedisProcess
) -> Iterator[Pair]:
    both = Pair.of(server, redis_server, resp3=request.param)
    yield both
    both.close()
    for process in (server, redis_server):  # nobody may still be listening in the next test
        wait_until(partial(_has_no_listeners, process))


def _has_no_listeners(process: Process) -> bool:
    return not (process.call("PUBSUB", "CHANNELS") or process.call("PUBSUB", "NUMPAT"))


def script(pair: Pair, *lines: str) -> None:
    """Send commands one after the other; compare all that each of them brings, to a PING."""
    for line in lines:
        together(pair, line)


def together(pair: Pair, *lines: str) -> None:
    """Send commands in one write; compare all that they bring."""
    data = b"".join(encode(*line.split(" ")) for line in lines) + encode("PING", "fence")
    pair.real.send(data)
    pair.ours.send(data)
    real, ours = until_fence(pair.real), until_fence(pair.ours)
    assert ours == real, lines


def until_fence(client: RawClient) -> list[bytes]:
    found: list[bytes] = []
    while True:
        raw = client.read()
        if raw.endswith(b"$5\r\nfence\r\n"):
            return found
        found.append(raw)


def received(pair: Pair, count: int) -> list[bytes]:
    """The next messages, the same from both; Redis serves patterns in no order."""
    real = sorted([pair.real.read() for _ in range(count)])
    ours = sorted([pair.ours.read() for _ in range(count)])
    assert ours == real
    return ours


def test_confirmations_count(subscriber: Pair) -> None:
    script(
        subscriber,
        "SUBSCRIBE a", "SUBSCRIBE a b c", "PSUBSCRIBE x* y*", "PSUBSCRIBE x*", "SSUBSCRIBE s1 s2",
        "SSUBSCRIBE s1", "UNSUBSCRIBE b nothing", "PUNSUBSCRIBE y* nothing", "SUNSUBSCRIBE nothing",
        "SUNSUBSCRIBE s2", "SUNSUBSCRIBE", "SUNSUBSCRIBE", "PUNSUBSCRIBE", "PUNSUBSCRIBE",
        "UNSUBSCRIBE a", "UNSUBSCRIBE c", "UNSUBSCRIBE", "UNSUBSCRIBE z", "PUNSUBSCRIBE z",
        "SUNSUBSCRIBE z",
    )  # fmt: skip


def test_leaving_everything_at_once(subscriber: Pair) -> None:
    together(subscriber, "SUBSCRIBE only", "UNSUBSCRIBE", "UNSUBSCRIBE")


def test_what_a_subscriber_may_call(subscriber: Pair) -> None:
    script(
        subscriber,
        "SUBSCRIBE a", "GET x", "SET x 1", "PING", "PING hello", "PING a b", "ECHO x", "EXEC",
        "DISCARD", "WATCH x", "NOSUCH x", "SUBSCRIBE", "CLIENT NOSUCH", "PUBLISH other m",
        "HELLO x", "PUBSUB NUMPAT", "UNSUBSCRIBE", "PING", "GET x",
    )  # fmt: skip


def test_shard_subscribers_are_subscribers(subscriber: Pair) -> None:
    script(
        subscriber, "SSUBSCRIBE a", "GET x", "PING", "UNSUBSCRIBE", "GET x", "SUNSUBSCRIBE", "PING"
    )


def test_reset_ends_subscriptions(subscriber: Pair, pair: Pair) -> None:
    script(subscriber, "SUBSCRIBE a", "PSUBSCRIBE b*", "SSUBSCRIBE c")
    pair.both("PUBSUB", "NUMSUB", "a")
    script(subscriber, "RESET", "GET x")
    for question in ("CHANNELS", "NUMPAT", "SHARDCHANNELS"):
        pair.both("PUBSUB", question)


def test_messages(subscriber: Pair, pair: Pair) -> None:
    script(subscriber, "SUBSCRIBE news none", "PSUBSCRIBE n?ws n* *", "SSUBSCRIBE news")
    assert pair.both("PUBLISH", "news", b"a\r\nb") == b":4\r\n"
    received(subscriber, 4)
    assert pair.both("SPUBLISH", "news", b"\x00\xff") == b":1\r\n"
    received(subscriber, 1)
    assert pair.both("PUBLISH", "", "nobody hears an empty name by a star") == b":0\r\n"
    assert pair.both("PUBLISH", "other", "x" * 2000) == b":1\r\n"
    received(subscriber, 1)
    script(subscriber, "PUNSUBSCRIBE *", "UNSUBSCRIBE news")
    pair.both("PUBLISH", "news", "again")
    received(subscriber, 2)


def test_pubsub_questions(pair: Pair, subscriber: Pair) -> None:
    script(subscriber, "SUBSCRIBE abc", "PSUBSCRIBE a* b*", "SSUBSCRIBE xyz")
    for line in (
        "CHANNELS", "CHANNELS a*", "CHANNELS z*", "CHANNELS a b", "NUMPAT", "NUMPAT x", "NUMSUB",
        "NUMSUB abc none abc", "SHARDCHANNELS", "SHARDCHANNELS x?z", "SHARDCHANNELS a b",
        "SHARDNUMSUB", "SHARDNUMSUB xyz abc", "NOSUCH", "channels", "help x",
    ):  # fmt: skip
        pair.both("PUBSUB", *line.split())
    pair.both("PUBSUB")


@pytest.mark.parametrize(
    "line",
    [
        "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "PUBLISH", "PUBLISH a", "PUBLISH a b c",
        "SPUBLISH", "SPUBLISH a", "SPUBLISH a b c", "PUBSUB",
    ],
)  # fmt: skip
def test_wrong_arity(pair: Pair, line: str) -> None:
    pair.both(*line.split())


def test_inside_multi(subscriber: Pair) -> None:
    together(
        subscriber,
        "MULTI", "SUBSCRIBE a b", "PSUBSCRIBE p*", "PING", "UNSUBSCRIBE a", "GET x", "EXEC",
        "GET x", "UNSUBSCRIBE", "PUNSUBSCRIBE", "GET x",
    )  # fmt: skip


def test_replies_off_do_not_silence_messages(subscriber: Pair, pair: Pair) -> None:
    for client in (subscriber.real, subscriber.ours):
        client.send_command("CLIENT", "REPLY", "OFF")
        client.send_command("SUBSCRIBE", "news")
    received(subscriber, 1)
    pair.both("PUBLISH", "news", "hello")
    received(subscriber, 1)


def test_keyspace_events(subscriber: Pair, pair: Pair) -> None:
    pair.both("CONFIG", "SET", "notify-keyspace-events", "KEA")
    try:
        script(subscriber, "PSUBSCRIBE __key*__:*")
        pair.both("SET", "k", "v")
        received(subscriber, 2)
        pair.both("MSET", "a", "1", "b", "2")
        received(subscriber, 4)
        pair.both("DEL", "a", "nothing", "b")
        received(subscriber, 4)
        pair.both("EXPIRE", "k", "100")
        received(subscriber, 2)
        pair.both("MULTI")
        pair.both("SET", "a", "1")
        pair.both("PUBLISH", "__key__:mine", "between")
        pair.both("DEL", "a")
        pair.both("EXEC")
        received(subscriber, 5)
        pair.both("SELECT", "3")
        pair.both("INCR", "n")
        received(subscriber, 2)
    finally:
        pair.both("CONFIG", "SET", "notify-keyspace-events", "")


@pytest.mark.parametrize(
    "flags",
    [
        "K", "KEA", "AKE", "Elg", "KEg$lshzxet", "Km", "AKEm", "gxKE", "E$", "x",
        "A", "Kq", "k", "An",
        *[
            pytest.param(flags, marks=pytest.mark.since(8, 10))
            for flags in ("KEg$lshzxetd", "KEg$lshzxetda", "a", "KAa", "KAnoc")
        ],
    ],
)  # fmt: skip
def test_notify_flags(pair: Pair, flags: str) -> None:
    real = pair.real.call("CONFIG", "SET", "notify-keyspace-events", flags)
    ours = pair.ours.call("CONFIG", "SET", "notify-keyspace-events", flags)
    assert ours.partition(b" Use ")[0] == real.partition(b" Use ")[0]  # newer ones know more
    pair.both("CONFIG", "GET", "notify-keyspace-events")
    pair.both("CONFIG", "SET", "notify-keyspace-events", "")
