"""stream-consumer-reclaim-ms: consumers that hold nothing and are not seen go away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from conftest import Factory

from support.client import Argument, RawClient
from support.process import Process
from support.waiting import wait_until

RECLAIM_MS = 300


@pytest.fixture
def reclaiming(fresh_server: Factory) -> Iterator[tuple[Process, RawClient]]:
    server = fresh_server(
        *("--stream-consumer-reclaim-ms", str(RECLAIM_MS), "--hz", "50"),
        *("--appendonly", "yes", "--enable-debug-command", "yes"),
    )
    with server.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        yield server, client


def read(client: RawClient, name: Argument, *words: Argument) -> object:
    return client.call_parsed("XREADGROUP", "GROUP", "g", name, *words, "STREAMS", "s", ">")


def names(client: RawClient) -> list[bytes]:
    rows = client.call_parsed("XINFO", "CONSUMERS", "s", "g")
    assert isinstance(rows, list)
    return [row[1] for row in rows]


def count(client: RawClient) -> object:
    """Return how many consumers there are, told without listing them."""
    groups = client.call_parsed("XINFO", "GROUPS", "s")
    assert isinstance(groups, list)
    return dict(zip(groups[0][::2], groups[0][1::2], strict=True))[b"consumers"]


def wait_until_left(client: RawClient, left: int) -> None:
    wait_until(lambda: count(client) == left)


def test_the_cron_comes_by(reclaiming: tuple[Process, RawClient]) -> None:
    server, client = reclaiming
    client.call("XADD", "s", "1-0", "f", "v")
    client.call("CONFIG", "SET", "stream-consumer-reclaim-ms", 0)
    read(client, "holder")
    for number in range(700):
        client.call("XGROUP", "CREATECONSUMER", "s", "g", number)
    assert count(client) == 701
    client.call("CONFIG", "SET", "stream-consumer-reclaim-ms", RECLAIM_MS)
    wait_until_left(client, 1)
    assert names(client) == [b"holder"]
    client.call("XACK", "s", "g", "1-0")
    wait_until_left(client, 0)
    server.restart(crash=True)
    with server.client() as after:
        after.call("CONFIG", "SET", "stream-consumer-reclaim-ms", 0)
        assert count(after) == 0


def test_recorded_as_delconsumer(reclaiming: tuple[Process, RawClient]) -> None:
    server, client = reclaiming
    client.call("XGROUP", "CREATECONSUMER", "s", "g", "gone")
    wait_until_left(client, 0)
    [path] = (server.directory / "appendonlydir").glob("*.incr.aof")
    record = b"DELCONSUMER\r\n$1\r\ns\r\n$1\r\ng\r\n$4\r\ngone\r\n"
    wait_until(lambda: record in path.read_bytes())


def test_one_that_is_seen_stays(reclaiming: tuple[Process, RawClient]) -> None:
    _, client = reclaiming
    stop = time.monotonic() + 4 * RECLAIM_MS / 1000
    while time.monotonic() < stop:
        _, shown = client.pipeline(
            ("XREADGROUP", "GROUP", "g", "busy", "STREAMS", "s", ">"),
            ("XINFO", "CONSUMERS", "s", "g"),
        )
        assert b"busy" in shown
        time.sleep(RECLAIM_MS / 10_000)


def test_one_that_waits_stays(reclaiming: tuple[Process, RawClient]) -> None:
    """For as long as its client waits; the same name may wait twice."""
    server, client = reclaiming
    with server.client() as parked, server.client() as twin:
        for waiting in (parked, twin):
            waiting.send_command(
                *("XREADGROUP", "GROUP", "g", "waiting", "BLOCK", 0, "STREAMS", "s", "s", ">", ">")
            )
            assert waiting.silent(0.05)
        read(client, "passing")
        wait_until_left(client, 1)
        time.sleep(2 * RECLAIM_MS / 1000)
        assert names(client) == [b"waiting"]
        twin.close()
        time.sleep(2 * RECLAIM_MS / 1000)
        assert names(client) == [b"waiting"]
        client.call("XADD", "s", "1-0", "f", "v")
        assert b"1-0" in parked.read()
        client.call("XACK", "s", "g", "1-0")
        wait_until_left(client, 0)


@pytest.mark.parametrize("listing", ["XINFO CONSUMERS s g", "XINFO STREAM s FULL"])
def test_a_listing_shows_none_of_them(fresh_server: Factory, listing: str) -> None:
    """Without the cron, whoever lists consumers sees those that are left."""
    server = fresh_server("--enable-debug-command", "yes", "--notify-keyspace-events", "Kt")
    with server.client() as client, server.client() as subscriber:
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        client.call("XGROUP", "CREATECONSUMER", "s", "g", "gone")
        assert b"gone" in client.call(*listing.split())
        subscriber.call("SUBSCRIBE", "__keyspace@0__:s")
        client.call("DEBUG", "PAUSE-CRON", 1)
        client.call("CONFIG", "SET", "stream-consumer-reclaim-ms", 1)
        client.call("DEBUG", "SLEEP", 0.01)
        assert count(client) == 1
        assert b"gone" not in client.call(*listing.split())
        assert count(client) == 0
        assert b"xgroup-delconsumer" in subscriber.read()


def test_off_by_default(fresh_server: Factory) -> None:
    server = fresh_server("--hz", "100")
    with server.client() as client:
        assert client.call_parsed("CONFIG", "GET", "stream-consumer-reclaim-ms") == [
            b"stream-consumer-reclaim-ms",
            b"0",
        ]
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        client.call("XGROUP", "CREATECONSUMER", "s", "g", "c")
        time.sleep(0.1)
        assert names(client) == [b"c"]
