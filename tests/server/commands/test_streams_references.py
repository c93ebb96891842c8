"""DELREF and what was deleted before: its places in a group that limits them come free.

In a group without a limit such entries stay pending where Redis leaves them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import Factory

from support.client import Argument, RawClient, parse
from support.process import Process, ServerProcess

BEFORE: dict[str, tuple[str, ...]] = {
    "XDEL": ("XDEL s 1-0 2-0",),
    "XDELEX": ("XDELEX s IDS 2 1-0 2-0",),
    "XACKDEL of another group": ("XACKDEL s other KEEPREF IDS 2 1-0 2-0",),
    "XTRIM by length": ("XTRIM s MAXLEN 5",),
    "XTRIM of whole nodes": ("XTRIM s MAXLEN ~ 0",),
    "XTRIM by ID": ("XTRIM s MINID 3-0",),
    "XADD": ("XADD s MINID = 3-0 8-0 f v",),
    "from the front and behind": ("XTRIM s MAXLEN 6", "XDEL s 2-0"),
}
FREEING: dict[str, str] = {
    "XTRIM by length": "XTRIM s MAXLEN 1 DELREF",
    "XTRIM by about a length": "XTRIM s MAXLEN ~ 1 DELREF",
    "XTRIM of all": "XTRIM s MAXLEN 0 DELREF",
    "XTRIM by ID": "XTRIM s MINID 3-0 DELREF",
    "XTRIM by about an ID": "XTRIM s MINID ~ 5-0 DELREF",
    "XADD": "XADD s MINID 3-0 DELREF 9-0 f v",
    "XADD by about a length": "XADD s MAXLEN ~ 3 DELREF 9-0 f v",
    "XDELEX": "XDELEX s DELREF IDS 2 1-0 2-0",
    "XDELEX, mode behind": "XDELEX s IDS 2 1-0 2-0 DELREF",
    "XACKDEL of another group": "XACKDEL s third DELREF IDS 2 1-0 2-0",
}


@pytest.fixture
def small_nodes(server: ServerProcess) -> Iterator[RawClient]:
    with server.client() as client:
        client.call("CONFIG", "SET", "stream-node-max-entries", 2)
        yield client
        client.call("CONFIG", "SET", "stream-node-max-entries", 100)


def read(group: str, *words: Argument) -> list[Argument]:
    return ["XREADGROUP", "GROUP", group, "c", *words, "STREAMS", "s", ">"]


def lock(client: RawClient) -> None:
    """A stream of seven entries, of which a group has as many in flight as it may have."""
    for number in range(1, 8):
        client.call("XADD", "s", f"{number}-0", "f", "v")
    for group in ("g", "other", "third"):
        client.call("XGROUP", "CREATE", "s", group, 0)
        if group == "g":
            client.call("XGROUP", "SETMODE", "s", group, "MAX-PENDING", 2)
        client.call(*read(group, "COUNT", 2))


def pending(client: RawClient, group: str) -> list[bytes]:
    rows = client.call_parsed("XPENDING", "s", group, "-", "+", 100)
    assert isinstance(rows, list)
    return [row[0] for row in rows]


@pytest.mark.parametrize("how", FREEING)
@pytest.mark.parametrize("before", BEFORE)
def test_what_was_deleted_before_locks_no_group(
    small_nodes: RawClient, server: ServerProcess, before: str, how: str
) -> None:
    client = small_nodes
    lock(client)
    for line in BEFORE[before]:
        assert not client.call(*line.split()).startswith(b"-")
    assert pending(client, "g") == [b"1-0", b"2-0"]
    with server.client() as parked:
        parked.send_command(*read("g", "BLOCK", 0))
        assert parked.silent(0.02)
        assert not client.call(*FREEING[how].split()).startswith(b"-")
        if client.call_parsed("XLEN", "s") == 0:
            assert pending(client, "g") == []
            client.call("XADD", "s", "10-0", "f", "v")
        given = parked.read_parsed()
        assert isinstance(given, list)
        assert pending(client, "g") == [row[0] for row in given[0][1]]


def test_other_groups_stay_as_in_redis(client: RawClient) -> None:
    lock(client)
    client.call("XDEL", "s", "1-0")
    assert client.call("XTRIM", "s", "MINID", "3-0", "DELREF") == b":1\r\n"
    assert pending(client, "g") == []
    assert pending(client, "other") == [b"1-0"]
    assert client.call("XDELEX", "s", "DELREF", "IDS", 1, "1-0") == b"*1\r\n:-1\r\n"
    assert pending(client, "other") == []


def test_a_trim_that_only_frees_changes_nothing_else(client: RawClient) -> None:
    """Nobody is told, nothing is removed, and no watch breaks, as in Redis."""
    lock(client)
    client.call("XTRIM", "s", "MINID", "3-0")
    client.call("WATCH", "s")
    with RawClient(client.sock.getpeername()[1]) as other:
        assert other.call("XTRIM", "s", "MINID", "3-0", "DELREF") == b":0\r\n"
    client.call("MULTI")
    client.call("PING")
    assert client.call("EXEC") == b"*1\r\n+PONG\r\n"
    assert pending(client, "g") == []


def facts(server: Process) -> list[object]:
    with server.client() as client:
        groups = client.call_parsed("XINFO", "GROUPS", "s")
        return [groups, *(pending(client, group) for group in ("g", "other", "third"))]


@pytest.mark.parametrize("how", FREEING)
def test_it_is_so_after_a_restart(fresh_server: Factory, how: str) -> None:
    server = fresh_server("--appendonly", "yes", "--stream-node-max-entries", "2")
    with server.client() as client:
        lock(client)
        client.call("XDEL", "s", "1-0")
        client.call("XTRIM", "s", "MINID", "3-0")
        client.call(*FREEING[how].split())
    told = facts(server)
    server.restart(crash=True)
    assert facts(server) == told


def test_pending_entries_of_deleted_ones_in_the_middle_stay(client: RawClient) -> None:
    """They stand behind the first entry that is left, so no trimming has come to them."""
    lock(client)
    client.call("XDEL", "s", "2-0")
    assert parse(client.call("XTRIM", "s", "MAXLEN", 6, "DELREF")) == 0
    assert pending(client, "g") == [b"1-0", b"2-0"]
