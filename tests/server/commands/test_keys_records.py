"""What commands on keys and strings leave in the append-only file: what happened, in clock time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Factory

from support.client import Argument, parse

FAR_MS = 4102444800000
Request = tuple[Argument, ...]

CASES: list[tuple[Request, list[str]]] = [
    (("SET", "k", "v"), ["SET k v"]),
    (("SET", "k", "v", "XX", "GET"), ["SET k v XX"]),
    (("SET", "k", "v", "KEEPTTL"), ["SET k v KEEPTTL"]),
    (("SET", "k", "v", "EX", 100), ["SET k v PXAT *"]),
    (("SET", "k", "v", "PXAT", FAR_MS), [f"SET k v PXAT {FAR_MS}"]),
    (("SET", "k", "v", "NX"), []),
    (("SETNX", "k", "v"), []),
    (("SETNX", "x", "v"), ["SETNX x v"]),
    (("SETEX", "k", 100, "v"), ["SET k v PXAT *"]),
    (("PSETEX", "k", 100_000, "v"), ["SET k v PXAT *"]),
    (("GETSET", "k", "v"), ["SET k v"]),
    (("GETEX", "k"), []),
    (("GETEX", "k", "EX", 100), ["PEXPIREAT k *"]),
    (("GETEX", "k", "PERSIST"), ["PERSIST k"]),
    (("GETEX", "k", "PERSIST"), []),
    (("GETEX", "x", "PXAT", 1), ["DEL x"]),
    (("EXPIRE", "k", 100), ["PEXPIREAT k *"]),
    (("EXPIRE", "k", 100, "NX"), []),
    (("EXPIREAT", "k", FAR_MS // 1000), [f"PEXPIREAT k {FAR_MS}"]),
    (("PERSIST", "k"), ["PERSIST k"]),
    (("SET", "n", 5), ["SET n 5"]),
    (("INCRBYFLOAT", "n", "0.5"), ["SET n 5.5 KEEPTTL"]),
    (("INCR", "i"), ["INCR i"]),
    (("APPEND", "i", "0"), ["APPEND i 0"]),
    (("SETRANGE", "i", 3, "0"), ["SETRANGE i 3 0"]),
    (("SETRANGE", "i", 3, ""), []),
    (("GETDEL", "i"), ["DEL i"]),
    (("MSET", "a", 1, "b", 2), ["MSET a 1 b 2"]),
    (("MSETNX", "a", 1, "c", 2), []),
    (("MSETNX", "c", 1, "d", 2), ["MSETNX c 1 d 2"]),
    (("MSETEX", 1, "a", 1, "EX", 100), ["SET a 1 PXAT *"]),
    (
        ("MSETEX", 2, "a", 1, "b", 2, "KEEPTTL"),
        ["MULTI", "SET a 1 KEEPTTL", "SET b 2 KEEPTTL", "EXEC"],
    ),
    (("SET", "a", 1, "IFEQ", 1, "KEEPTTL"), ["SET a 1 KEEPTTL"]),
    (("SET", "a", 1, "IFEQ", 1, "GET", "PXAT", FAR_MS), [f"SET a 1 PXAT {FAR_MS}"]),
    (("SET", "a", 1, "IFEQ", 1), ["SET a 1"]),
    (("DELEX", "a", "IFEQ", 1), ["DEL a"]),
    (("DEL", "b", "none", "c"), ["DEL b none c"]),
    (("UNLINK", "d", "none"), ["UNLINK d none"]),
    (("DEL", "none"), []),
    (("RENAME", "k", "l"), ["RENAME k l"]),
    (("COPY", "l", "k"), ["COPY l k"]),
    (("MOVE", "k", 3), ["MOVE k 3"]),
    (("EXPIRE", "l", -1), ["DEL l"]),
    (("SET", "o", "v", "PXAT", 1), []),
    (("MSETEX", 1, "o", "v", "PXAT", 1), ["SET o v PXAT 1"]),
    (("GET", "o"), ["DEL o"]),
    (("MSETEX", 1, "o", "v", "PXAT", 1), ["SET o v PXAT 1"]),
    (("SET", "o", "w"), ["MULTI", "DEL o", "SET o w", "EXEC"]),
    (("SWAPDB", 3, 4), ["SWAPDB 3 4"]),
    (("FLUSHDB", "ASYNC"), ["FLUSHDB ASYNC"]),
    (("FLUSHALL",), ["FLUSHALL"]),
]


def records(path: Path) -> list[str]:
    data = path.read_bytes()
    data = re.sub(rb"^#TS:.*\r\n", b"", data, flags=re.MULTILINE)
    found: list[str] = []
    while data:
        count = int(data[1 : data.index(b"\r\n")])
        words = data.split(b"\r\n", 2 * count + 1)
        data = words[-1]
        found.append(b" ".join(words[2 : 2 * count + 1 : 2]).decode())
    return found


@pytest.fixture
def incr_path(tmp_path: Path) -> Path:
    return tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof"


def test_records(fresh_server: Factory, tmp_path: Path, incr_path: Path) -> None:
    server = fresh_server(
        "--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes",
        directory=tmp_path,
    )  # fmt: skip
    with server.client() as client:
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        client.call("SET", "first", 1)
        seen = len(records(incr_path))
        for request, expected in CASES:
            client.call(*request)
            found = records(incr_path)
            now = [re.sub(r"^(M?SET.* PXAT|PEXPIREAT k) 1[0-9]{12}$", r"\1 *", line)
                   for line in found[seen:]]  # fmt: skip
            assert now == expected, request
            seen = len(found)


def test_loading_keeps_what_expired_meanwhile_until_it_is_met(
    fresh_server: Factory, tmp_path: Path
) -> None:
    server = fresh_server(
        "--appendonly", "yes", "--enable-debug-command", "yes", directory=tmp_path
    )
    with server.client() as client:
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        client.call("MSETEX", 1, "k", "v", "PXAT", 1)
        client.call("APPEND", "a", "12")
        client.call("APPEND", "a", "3")
        client.call("SET", "n", "5", "PXAT", FAR_MS)
        client.call("INCR", "n")
        client.call("INCRBYFLOAT", "f", "0.1")
    server.restart(crash=True)
    with server.client() as client:
        assert client.call_parsed("GET", "k") is None
        assert client.call_parsed("MGET", "a", "n", "f") == [b"123", b"6", b"0.1"]
        assert parse(client.call("PEXPIRETIME", "n")) == FAR_MS
