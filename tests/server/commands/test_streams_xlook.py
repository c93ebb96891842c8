"""XLOOK: one string for each stream, which changes whenever the stream does."""

from __future__ import annotations

import pytest

from support.client import RawClient
from support.process import Process, ServerProcess


def look(client: RawClient, *keys: str) -> list[list[str] | None]:
    found = client.call_parsed("XLOOK", *keys)
    assert isinstance(found, list)
    return [None if each is None else each.decode().split() for each in found]


def identity(client: RawClient, key: str) -> str:
    found = look(client, key)[0]
    assert found is not None
    return found[0]


@pytest.mark.parametrize("name", ["client", "client3"])
def test_what_it_says(name: str, request: pytest.FixtureRequest) -> None:
    client: RawClient = request.getfixturevalue(name)
    for number in range(1, 6):
        client.call("XADD", "s", f"{number}-7", "f", "v")
    client.call("XDEL", "s", "2-7")
    client.call("XGROUP", "CREATE", "empty", "g", "$", "MKSTREAM")
    client.call("SET", "text", "x")
    stream, empty, *others = look(client, "s", "empty", "text", "none", "s")
    assert stream is not None
    assert empty is not None
    assert stream[1:] == ["4", "5", "5-7"]
    assert empty[1:] == ["0", "0", "0-0"]
    assert stream[0] != empty[0]
    assert others == [None, None, stream]


def test_it_changes_with_the_stream_and_only_then(client: RawClient) -> None:
    client.call("XADD", "s", "1-0", "f", "v")
    last = look(client, "s")
    for words in (
        ("XRANGE", "s", "-", "+"),
        ("XGROUP", "CREATE", "s", "g", "0"),
        ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"),
        ("EXPIRE", "s", "100"),
    ):
        client.call(*words)
        assert look(client, "s") == last, words
    for words in (
        ("XADD", "s", "2-0", "f", "v"),
        ("XDEL", "s", "2-0"),
        ("XSETID", "s", "3-0"),
        ("XSETID", "s", "3-0", "ENTRIESADDED", "9"),
        ("XTRIM", "s", "MAXLEN", "0"),
    ):
        client.call(*words)
        now = look(client, "s")
        assert now != last, words
        last = now


def test_a_stream_keeps_its_identity_and_no_other_one_gets_it(client: RawClient) -> None:
    client.call("XADD", "s", "1-0", "f", "v")
    first = identity(client, "s")
    client.call("RENAME", "s", "t")
    assert identity(client, "t") == first
    assert look(client, "s") == [None]
    client.call("COPY", "t", "s")
    dumped = client.call_parsed("DUMP", "t")
    assert isinstance(dumped, bytes)
    met = {first, identity(client, "s")}
    client.call("RESTORE", "t", "0", dumped, "REPLACE")
    met.add(identity(client, "t"))
    client.call("DEL", "t")
    client.call("XADD", "t", "1-0", "f", "v")
    met.add(identity(client, "t"))
    client.call("FLUSHALL")
    client.call("XADD", "t", "1-0", "f", "v")
    met.add(identity(client, "t"))
    assert len(met) == 5


def test_a_restart_gives_another_identity(server: ServerProcess) -> None:
    with server.client() as client:
        client.call("XADD", "s", "1-0", "f", "v")
        first = look(client, "s")[0]
        client.call("DEBUG", "RELOAD")
        reloaded = look(client, "s")[0]
    assert first is not None
    assert reloaded is not None
    assert first[0] != reloaded[0]
    assert first[1:] == reloaded[1:]


def test_bad_input(server: Process) -> None:
    with server.client() as client:
        assert client.call("XLOOK") == (b"-ERR wrong number of arguments for 'xlook' command\r\n")
        client.call("ACL", "SETUSER", "ada", "on", "nopass", "~a*", "+xlook")
        client.call("AUTH", "ada", "x")
        assert client.call("XLOOK", "a1", "a2") == b"*2\r\n$-1\r\n$-1\r\n"
        refused = client.call("XLOOK", "a1", "b")
        assert refused.startswith(b"-NOPERM No permissions to access a key"), refused
        client.call("AUTH", "default", "")
    server.call("ACL", "DELUSER", "ada")
