"""The first spellings on the wire: each does, answers and records what today's command does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Factory

from support.client import Argument, RawClient, WireError
from support.process import Pair, ServerProcess
from support.waiting import wait_until

Request = tuple[Argument, ...]


@pytest.fixture
def twins(client: RawClient) -> Callable[[Request, Request], tuple[bytes, bytes]]:
    """Runs one request on the key ``then`` and another on the key ``now``, set up alike."""
    for key in ("then", "now"):
        client.call("XGROUP", "CREATE", key, "g", 0, "MKSTREAM")
        for number in range(1, 6):
            client.call("XADD", key, f"{number}-0", "f", number)
        client.call("XREADGROUP", "GROUP", "g", "a", "COUNT", 3, "STREAMS", key, ">")
        client.call("XREADGROUP", "GROUP", "g", "b", "COUNT", 1, "STREAMS", key, ">")

    def both(then: Request, now: Request) -> tuple[bytes, bytes]:
        return client.call(*then), client.call(*now)

    return both


ALIKE: list[tuple[str, str]] = [
    ("XREAD-GROUP GROUP g NAME c STREAMS K >", "XREADGROUP GROUP g c STREAMS K >"),
    ("xread-group count 1 name c group g streams K $", "xreadgroup count 1 group g c streams K >"),
    ("XREAD-GROUP GROUP g NAME a STREAMS K 0", "XREADGROUP GROUP g a STREAMS K 0"),
    ("XREAD-GROUP GROUP g NAME a NOACK STREAMS K >", "XREADGROUP GROUP g a NOACK STREAMS K >"),
    ("XREAD-GROUP GROUP h NAME a STREAMS K >", "XREADGROUP GROUP h a STREAMS K >"),
    ("XREAD-GROUP GROUP g NAME a STREAMS K x 0", "XREADGROUP GROUP g a STREAMS K x 0"),
    ("XREAD-GROUP GROUP g NAME a COUNT x STREAMS K >", "XREADGROUP GROUP g a COUNT x STREAMS K >"),
    ("XACK K g a 1-0 2-0", "XACK K g 1-0 2-0"),
    ("XACK K g a 1-0 no", "XACK K g 1-0 no"),
    ("XACK K g nobody 9-0", "XACK K g 9-0"),
    ("XACK K h a 1-0", "XACK K h 1-0"),
    ("XGROUP CLAIM K g c 0 1-0 4-0 5-0", "XCLAIM K g c 0 1-0 4-0 5-0 JUSTID"),
    ("XGROUP CLAIM K g c 60000 1-0", "XCLAIM K g c 60000 1-0 JUSTID"),
    ("XGROUP CLAIM K g c no 1-0", "XCLAIM K g c no 1-0 JUSTID"),
    ("XGROUP CLAIM K h c 0 1-0", "XCLAIM K h c 0 1-0 JUSTID"),
    ("XGROUP DEL K g", "XGROUP DESTROY K g"),
    ("XGROUP DEL K h", "XGROUP DESTROY K h"),
    ("XGROUP DEL none g", "XGROUP DESTROY none g"),
    ("XGROUP DEL-CONSUMER K g a", "XGROUP DELCONSUMER K g a"),
    ("XGROUP DEL-CONSUMER K g z", "XGROUP DELCONSUMER K g z"),
    ("XGROUP DEL-CONSUMER K h a", "XGROUP DELCONSUMER K h a"),
    ("XGROUP GET-PENDING K h - + 10", "XPENDING K h - + 10"),
    ("XGROUP GET-PENDING K g x + 10", "XPENDING K g x + 10"),
    ("XGROUP PENDING K h", "XPENDING K h"),
    ("XGROUP CONSUMERS K h", "XINFO CONSUMERS K h"),
]


def on(key: str, line: str) -> Request:
    """The words of a request, with ``key`` for K."""
    return tuple(key if word == "K" else word for word in line.split())


def state(client: RawClient, key: str) -> object:
    """Return who holds what, without times."""
    groups = client.call_parsed("XINFO", "GROUPS", key)
    rows = client.call_parsed("XPENDING", key, "g", "-", "+", 100)
    if isinstance(rows, list):
        rows = [[row[0], row[1], row[3]] for row in rows]
    else:
        rows = None
    return groups, rows


@pytest.mark.parametrize(("then", "today"), ALIKE)
def test_alike(
    twins: Callable[[Request, Request], tuple[bytes, bytes]],
    client: RawClient,
    then: str,
    today: str,
) -> None:
    old, new = twins(on("then", then), on("now", today))
    assert re.sub(rb"\$4\r\nthen\r\n|'then'", b"", old) == re.sub(
        rb"\$3\r\nnow\r\n|'now'", b"", new
    )
    assert state(client, "then") == state(client, "now")


def test_replies_of_another_shape(client: RawClient, server: ServerProcess) -> None:
    client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    assert client.call_parsed("XGROUP", "PENDING", "s", "g") == [None, None, 0]
    for number in (1, 2, 3):
        client.call("XADD", "s", f"{number}-0", "f", "v")
    client.call("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">")
    assert client.call_parsed("XGROUP", "PENDING", "s", "g") == [b"1-0", b"3-0", 3]
    with server.client(resp3=True) as client3:
        assert client3.call_parsed("XGROUP", "PENDING", "s", "g") == [b"1-0", b"3-0", 3]
    client.call("XCLAIM", "s", "g", "b", 0, "2-0", "IDLE", 7500, "RETRYCOUNT", 4)
    assert client.call_parsed("XGROUP", "GET-PENDING", "s", "g", "-", "+", 2) == [
        [b"1-0", b"a", 0, 1],
        [b"2-0", b"b", 7, 4],
    ]
    assert client.call_parsed("XGROUP", "GET-PENDING", "s", "g", "(3-0", "+", 2) == []
    names = client.call_parsed("XGROUP", "CONSUMERS", "s", "g")
    assert isinstance(names, list)
    assert [row[1] for row in names] == [b"a", b"b"]
    with server.client(resp3=True) as client3:
        maps = client3.call_parsed("XGROUP", "CONSUMERS", "s", "g")
        assert isinstance(maps, list)
        assert set(maps[0]) == {b"name", b"pending", b"idle", b"inactive"}


def test_pel(client: RawClient) -> None:
    client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    for number in (1, 2):
        client.call("XADD", "s", f"{number}-0", "f", "v")
    assert client.call("XGROUP", "PEL", "s", "g", "1-0", "a", 5500, 7) == b"+OK\r\n"
    rows = client.call_parsed("XGROUP", "GET-PENDING", "s", "g", "-", "+", 9)
    assert rows == [[b"1-0", b"a", 5, 7]]
    assert client.call("XGROUP", "PEL", "s", "g", "1-0", "b", 0, 0) == b"+OK\r\n"
    rows = client.call_parsed("XGROUP", "GET-PENDING", "s", "g", "-", "+", 9)
    assert rows == [[b"1-0", b"b", 0, 0]]
    assert client.call("XGROUP", "PEL", "s", "g", "9-0", "a", 0, 1) == b"$-1\r\n"
    before = state(client, "s")
    for words, line in (
        (("s", "g", "no", "a", 0, 1), b"ERR Invalid stream ID"),
        (("s", "g", "2-0", "a", "x", 1), b"ERR Invalid IDLE option argument"),
        (("s", "g", "2-0", "a", 0, "x"), b"ERR Invalid RETRYCOUNT option argument"),
        (("s", "h", "2-0", "a", 0, 1), b"NOGROUP"),
        (("none", "g", "2-0", "a", 0, 1), b"NOGROUP"),
    ):
        refused = client.call_parsed("XGROUP", "PEL", *words)
        assert isinstance(refused, WireError)
        assert refused.text.startswith(line)
    assert state(client, "s") == before


@pytest.mark.parametrize("end", ["DEL", "entry", "timeout", "key", "EXEC"])
def test_blocking(client: RawClient, server: ServerProcess, end: str) -> None:
    """A parked XREAD-GROUP is served, times out, and learns that its group is gone."""
    client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    with server.client() as parked:
        block_ms = 100 if end == "timeout" else 10_000
        words = ("XREAD-GROUP", "BLOCK", block_ms, "GROUP", "g", "NAME", "c")
        if end == "EXEC":
            replies = parked.pipeline(("MULTI",), (*words, "STREAMS", "s", ">"), ("EXEC",))
            assert replies[-1] == b"*1\r\n*-1\r\n"
            return
        parked.send_command(*words, "STREAMS", "s", "$")
        if end == "timeout":
            assert parked.read() == b"*-1\r\n"
            return
        assert parked.silent(0.05)
        if end == "entry":
            client.call("XADD", "s", "1-0", "f", "v")
            assert parked.read_parsed() == [[b"s", [[b"1-0", [b"f", b"v"]]]]]
            return
        client.call(*(("XGROUP", "DEL", "s", "g") if end == "DEL" else ("DEL", "s")))
        refused = parked.read_parsed()
        assert isinstance(refused, WireError)
        assert refused.text.startswith(b"NOGROUP No such key 's' or consumer group 'g'")


def test_rights_lost_while_waiting(client: RawClient, server: ServerProcess) -> None:
    client.call("ACL", "SETUSER", "u", "on", "nopass", "+@all", "~s")
    client.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    with server.client() as parked:
        assert parked.call("AUTH", "u", "x") == b"+OK\r\n"
        words = ("XREAD-GROUP", "BLOCK", 0, "GROUP", "g", "NAME", "streams")
        parked.send_command(*words, "STREAMS", "s", "$")
        wait_until(lambda: server.info("clients")["blocked_clients"] == "1")
        client.call("ACL", "SETUSER", "u", "resetkeys", "~other")
        client.call("XADD", "s", "1-0", "f", "v")
        assert parked.read() == b"-NOPERM No permissions to access a key\r\n"
    assert client.call_parsed("XPENDING", "s", "g") == [0, None, None, None]
    client.call("ACL", "DELUSER", "u")


def test_keys_are_found(client: RawClient) -> None:
    words = ("XREAD-GROUP", "GROUP", "g", "NAME", "streams", "STREAMS", "a", "b", ">", ">")
    assert client.call_parsed("COMMAND", "GETKEYS", *words) == [b"a", b"b"]
    assert client.call_parsed("COMMAND", "GETKEYS", "XGROUP", "PENDING", "k", "g") == [b"k"]
    wrong = client.call_parsed("COMMAND", "GETKEYS", *words[:-1])
    assert wrong == WireError(b"ERR Invalid arguments specified for command")


def records(path: Path) -> list[str]:
    data = path.read_bytes()
    found: list[str] = []
    while data:
        count = int(data[1 : data.index(b"\r\n")])
        words = data.split(b"\r\n", 2 * count + 1)
        data = words[-1]
        found.append(b" ".join(words[2 : 2 * count + 1 : 2]).decode())
    return found


def test_recorded_in_todays_words(fresh_server: Factory, tmp_path: Path) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always", directory=tmp_path)
    path = tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof"
    with server.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        for number in range(1, 5):
            client.call("XADD", "s", f"{number}-0", "f", "v")
        seen = len(records(path))
        client.call("XREAD-GROUP", "GROUP", "g", "NAME", "a", "COUNT", 2, "STREAMS", "s", ">")
        client.call("XACK", "s", "g", "a", "1-0")
        client.call("XGROUP", "CLAIM", "s", "g", "b", 0, "2-0")
        client.call("XGROUP", "PEL", "s", "g", "3-0", "c", 1000, 5)
        client.call("XGROUP", "PENDING", "s", "g")
        client.call("XGROUP", "GET-PENDING", "s", "g", "-", "+", 10)
        client.call("XGROUP", "DEL-CONSUMER", "s", "g", "c")
        client.call("XGROUP", "DEL", "s", "g")
        found = [re.sub(r"TIME \d{13}", "TIME *", line) for line in records(path)[seen:]]
    assert found == [
        "MULTI",
        "XCLAIM s g a 0 1-0 TIME * RETRYCOUNT 1 FORCE JUSTID LASTID 0-0",
        "XCLAIM s g a 0 2-0 TIME * RETRYCOUNT 1 FORCE JUSTID LASTID 0-0",
        "XGROUP SETID s g 2-0 ENTRIESREAD 2",
        "EXEC",
        "XACK s g 1-0",
        "XCLAIM s g b 0 2-0 TIME * RETRYCOUNT 1 FORCE JUSTID LASTID 2-0",
        "XCLAIM s g c 0 3-0 TIME * RETRYCOUNT 5 FORCE JUSTID LASTID 2-0",
        "XGROUP DELCONSUMER s g c",
        "XGROUP DESTROY s g",
    ]


@pytest.mark.parametrize("word", [">", "$", "-", "+", "*"])
def test_what_is_an_id_elsewhere_is_no_consumer(pair: Pair, word: str) -> None:
    for number in (1, 2):
        pair.both("XADD", "s", f"{number}-0", "f", "v")
    pair.both("XGROUP", "CREATE", "s", "g", 0)
    pair.both("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    pair.both("XACK", "s", "g", word, "1-0")
    pair.both("XACK", "s", "g", "1-0", word)
    pair.both("XACK", "s", "g", word)
    pair.both("XPENDING", "s", "g")
