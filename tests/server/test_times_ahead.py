"""Times that lie ahead, as they do when a clock was ahead and has been set right: they are now."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import Factory

from support.client import Argument, RawClient
from support.clock import START_MS, Clock
from support.groups import rows, table
from support.process import Process

HOUR_MS = 3_600_000


def work(client: RawClient) -> None:
    for number in (1, 2, 3):
        client.call("XADD", "s", "IDMP", "p", f"i{number}", "*", "f", "v")
    client.call("XGROUP", "CREATE", "s", "g", 0)
    client.call("XREADGROUP", "GROUP", "g", "dead", "STREAMS", "s", ">")


def restart(server: Process) -> None:
    server.restart(crash=True)


def rewrite_and_restart(server: Process) -> None:
    server.call("BGREWRITEAOF")
    server.wait_for_log("Append-only base file written")
    server.restart(crash=True)


def save_and_restart(server: Process) -> None:
    server.call("SAVE")
    server.restart(crash=True)


def restore(server: Process) -> None:
    value = server.call("DUMP", "s")
    assert isinstance(value, bytes)
    server.call("DEL", "s")
    server.call("RESTORE", "s", 0, value)


def reload(server: Process) -> None:
    server.call("DEBUG", "RELOAD")


def replay(server: Process) -> None:
    server.call("DEBUG", "LOADAOF")


WAYS: dict[str, tuple[Callable[[Process], None], list[str]]] = {
    "a log": (restart, ["--appendonly", "yes"]),
    "a snapshot as base": (rewrite_and_restart, ["--appendonly", "yes"]),
    "commands as base": (
        rewrite_and_restart,
        ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"],
    ),
    "a snapshot": (save_and_restart, ["--save", "3600 1"]),
    "RESTORE": (restore, ["--appendonly", "yes"]),
    "DEBUG RELOAD": (reload, []),
    "DEBUG LOADAOF": (replay, ["--appendonly", "yes"]),
}


def ids(client: RawClient, idle_ms: int) -> list[bytes]:
    reply = rows(client.call("XPENDING", "s", "g", "IDLE", idle_ms, "-", "+", 10))
    return [row[0] for row in reply]


@pytest.mark.parametrize("way", WAYS)
def test_what_was_delivered_ahead_can_be_claimed(
    fresh_server: Factory, settable_clock: Clock, way: str
) -> None:
    clock = settable_clock
    act, options = WAYS[way]
    clock.set(START_MS + HOUR_MS)
    server = fresh_server(*options, "--enable-debug-command", "yes", environment=clock.environment)
    with server.client() as client:
        work(client)
    clock.set(START_MS)
    act(server)
    with server.client() as client:
        assert [row[2] for row in rows(client.call("XPENDING", "s", "g", "-", "+", 9))] == [0] * 3
        [consumer] = map(table, rows(client.call("XINFO", "CONSUMERS", "s", "g")))
        assert consumer[b"idle"] == 0
        assert consumer[b"inactive"] == 0
        clock.advance(200)
        assert len(ids(client, 200)) == 3
        assert ids(client, 201) == []
        [consumer] = map(table, rows(client.call("XINFO", "CONSUMERS", "s", "g")))
        assert consumer[b"idle"] == 200
        assert consumer[b"inactive"] == 200
        claimed = rows(client.call("XAUTOCLAIM", "s", "g", "janitor", 200, 0, "COUNT", 1))
        assert len(claimed[1]) == 1
        read: list[Argument] = ["XREADGROUP", "GROUP", "g", "w", "CLAIM", 200, "STREAMS", "s", ">"]
        assert len(rows(client.call(*read))[0][1]) == 2


@pytest.mark.parametrize("way", [way for way in WAYS if way != "commands as base"])
def test_what_was_added_ahead_is_known_no_longer_than_it_should(
    fresh_server: Factory, settable_clock: Clock, way: str
) -> None:
    clock = settable_clock
    act, options = WAYS[way]
    clock.set(START_MS + HOUR_MS)
    server = fresh_server(
        *options,
        "--enable-debug-command",
        "yes",
        "--stream-idmp-duration",
        "10",
        environment=clock.environment,
    )
    with server.client() as client:
        work(client)
    clock.set(START_MS)
    act(server)
    add = ["XADD", "s", "IDMP", "p", "i1", "*", "f", "v"]
    with server.client() as client:
        client.call(*add)
        assert client.call_parsed("XLEN", "s") == 3
        clock.advance(10_001)
        client.call(*add)
        assert client.call_parsed("XLEN", "s") == 4
