"""The time of day is set while clients wait, are idle, or hold entries."""

from __future__ import annotations

import re
import time

import pytest
from conftest import Factory

from support.client import Argument, RawClient
from support.clock import START_MS, Clock
from support.groups import rows
from support.process import Process
from support.scene import Scene
from support.waiting import wait_until

HOUR_MS = 3_600_000
BOTH_WAYS = pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
WAIT_MS = 1500  # long enough for the clock to be set in between, and for a tick


def start(fresh_server: Factory, clock: Clock, *options: str) -> Process:
    server = fresh_server(*options, environment=clock.environment)
    with server.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    return server


WAITING: dict[str, list[Argument]] = {
    "XREAD": ["XREAD", "BLOCK", WAIT_MS, "STREAMS", "s", "$"],
    "XREADGROUP": ["XREADGROUP", "GROUP", "g", "c", "BLOCK", WAIT_MS, "STREAMS", "s", ">"],
    "CLAIM": [
        *("XREADGROUP", "GROUP", "g", "c", "BLOCK", WAIT_MS, "CLAIM", 10**9, "STREAMS", "s", ">"),
    ],
    "WAIT": ["WAIT", 1, WAIT_MS],
    "WAITAOF": ["WAITAOF", 0, 1, WAIT_MS],
}


@BOTH_WAYS
def test_who_waits_waits_as_long_as_was_asked(
    fresh_server: Factory, settable_clock: Clock, step_ms: int
) -> None:
    server = start(fresh_server, settable_clock)
    scene = Scene(server)
    waiters = {name: scene.waiter() for name in WAITING}
    for name, words in WAITING.items():
        scene.block(waiters[name], *words)
    settable_clock.advance(step_ms)
    scene.do("PING")
    assert scene.blocked() == len(WAITING)
    for waiter in waiters.values():
        waiter.read()  # it has no hour to come
    scene.close()


def test_nobody_is_answered_early_because_the_clock_was_set(
    fresh_server: Factory, settable_clock: Clock
) -> None:
    server = start(fresh_server, settable_clock)
    scene = Scene(server)
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 1_000_000, "STREAMS", "s", "$")
    settable_clock.advance(HOUR_MS)
    server.wait_for_log("The time of day was set forward by")
    assert scene.blocked() == 1
    scene.do("XADD", "s", "1-0", "f", "v")
    assert waiter.read().startswith(b"*1")
    scene.close()


@BOTH_WAYS
def test_a_pause_lasts_as_long_as_was_asked(
    fresh_server: Factory, settable_clock: Clock, step_ms: int
) -> None:
    server = start(fresh_server, settable_clock)
    with server.client() as client, server.client() as other:
        started = time.monotonic()
        client.call("CLIENT", "PAUSE", WAIT_MS, "WRITE")
        settable_clock.advance(step_ms)
        other.send_command("SET", "k", "v")
        assert other.read() == b"+OK\r\n"
        assert (time.monotonic() - started) * 1000 > 0.99 * WAIT_MS


@BOTH_WAYS
def test_no_client_is_idle_or_young_because_the_clock_was_set(
    fresh_server: Factory, settable_clock: Clock, step_ms: int
) -> None:
    server = start(fresh_server, settable_clock, "--timeout", "600")
    way = "forward" if step_ms > 0 else "back"
    with server.client() as idle, server.client() as client:
        number = idle.call_parsed("CLIENT", "ID")
        settable_clock.advance(step_ms)
        server.wait_for_log(f"The time of day was set {way} by 3")

        reply = client.call_parsed("CLIENT", "LIST", "ID", str(number))
        assert isinstance(reply, bytes)
        assert re.search(rb" age=\d\d? idle=\d\d? ", reply)
        assert idle.call("PING") == b"+PONG\r\n"
    assert int(server.info("server")["uptime_in_seconds"]) < 600


def idle_ms(client: RawClient) -> list[int]:
    return [row[2] for row in rows(client.call("XPENDING", "s", "g", "-", "+", 10_000))]


@pytest.mark.parametrize("count", [3, 2500])
def test_what_was_delivered_before_the_clock_went_back_can_be_claimed(
    fresh_server: Factory, settable_clock: Clock, count: int
) -> None:
    """Without a restart; also by a reader that waits for it, and what was found deleted."""
    server = start(fresh_server, settable_clock)
    scene = Scene(server)
    for number in range(1, count + 1):
        scene.do("XADD", "s", f"{number}-0", "f", "v")
    scene.do("XREADGROUP", "GROUP", "g", "dead", "STREAMS", "s", ">")
    scene.do("XDEL", "s", "2-0")
    scene.do("XREADGROUP", "GROUP", "g", "dead", "COUNT", 1, "CLAIM", 0, "STREAMS", "s", ">")
    waiter = scene.waiter()
    words: list[Argument] = [
        "XREADGROUP",
        "GROUP",
        "g",
        "c",
        "BLOCK",
        0,
        "CLAIM",
        5000,
        "STREAMS",
        "s",
        ">",
    ]
    scene.block(waiter, *words)
    settable_clock.advance(-HOUR_MS)
    server.wait_for_log("The time of day was set back by 3")
    settable_clock.advance(500)

    def settled() -> bool:
        old = scene.do("XPENDING", "s", "g", "IDLE", 500, "-", "+", 10_000)
        assert isinstance(old, list)
        if len(old) == count:
            return True
        settable_clock.advance(1)
        return False

    wait_until(settled)
    assert scene.blocked() == 1
    settable_clock.advance(6000)
    assert len(rows(waiter.read())[0][1]) == count - 1
    scene.close()
    assert settable_clock.now_ms < START_MS


def test_snapshots_are_made_whatever_the_clock_says(
    fresh_server: Factory, settable_clock: Clock
) -> None:
    server = start(fresh_server, settable_clock, "--save", "1 1")
    settable_clock.advance(-HOUR_MS)
    with server.client() as client:
        client.call("SET", "k", "v")
    wait_until(lambda: server.info("persistence")["rdb_changes_since_last_save"] == "0")


def test_no_command_was_slow_because_the_clock_was_set(
    fresh_server: Factory, settable_clock: Clock
) -> None:
    """It is set within each command, by two seconds each time that anybody looks."""
    server = start(fresh_server, settable_clock, "--latency-monitor-threshold", "1000")
    with server.client() as client:
        client.call("CONFIG", "SET", "slowlog-log-slower-than", 1_500_000)
        settable_clock.set(settable_clock.now_ms, step_us=2_000_000)
        for _ in range(20):
            client.call("SET", "k", "v")
        settable_clock.set(settable_clock.now_ms)
        assert client.call("SLOWLOG", "LEN") == b":0\r\n"
        assert client.call("LATENCY", "LATEST") == b"*0\r\n"
        usec = int(server.info("commandstats")["cmdstat_set"].split(",")[1].split("=")[1])
        assert usec < 20 * 1_500_000


def test_what_is_old_enough_by_a_clock_that_was_set_is_claimed(
    fresh_server: Factory, settable_clock: Clock
) -> None:
    server = start(fresh_server, settable_clock)
    scene = Scene(server)
    scene.do("XADD", "s", "1-0", "f", "v")
    scene.do("XREADGROUP", "GROUP", "g", "dead", "STREAMS", "s", ">")
    waiter = scene.waiter()
    words: list[Argument] = ["XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "CLAIM", HOUR_MS]
    scene.block(waiter, *words, "STREAMS", "s", ">")
    settable_clock.advance(HOUR_MS)
    assert len(rows(waiter.read())[0][1]) == 1
    scene.close()
