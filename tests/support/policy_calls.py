"""Calls on the stream ``s`` and its group ``g``, as tests of policies make them."""

from __future__ import annotations

from typing import Final

from support.client import Argument, RawClient, WireError

ALL: Final = ("--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes")
BLOCKING: Final = ("XREADGROUP", "GROUP", "g", "w", "BLOCK", 0, "STREAMS", "s", ">")
AHEAD_MS: Final = 4_000_000_000_000


def policy(client: RawClient, *words: Argument) -> None:
    assert client.call_parsed("XPOLICY", "SET", "s", "GROUP", "g", *words) == b"OK"


def add(client: RawClient, number: int, *fields: Argument) -> None:
    assert not isinstance(client.call_parsed("XADD", "s", f"{number}-0", *fields), WireError)


def read(client: RawClient, name: str = "c", *words: Argument) -> list[str]:
    """The IDs that a consumer is given, without their zeros behind the dash."""
    reply = client.call_parsed("XREADGROUP", "GROUP", "g", name, *words, "STREAMS", "s", ">")
    if reply is None:
        return []
    assert isinstance(reply, list), reply
    return [entry[0].decode().removesuffix("-0") for entry in reply[0][1]]


def shift(client: RawClient, ms: int) -> None:
    client.call("DEBUG", "CLOCK", "SHIFT", ms)


def figures(client: RawClient) -> dict[str, object]:
    rows = client.call_parsed("XINFO", "GROUPS", "s")
    assert isinstance(rows, list)
    row = rows[0]
    return {name.decode(): value for name, value in zip(row[::2], row[1::2], strict=True)}


def letters(client: RawClient, key: str = "dead") -> list[dict[str, str]]:
    rows = client.call_parsed("XRANGE", key, "-", "+")
    assert isinstance(rows, list), rows
    found = []
    for _, words in rows:
        texts = [word.decode() for word in words]
        found.append(dict(zip(texts[::2], texts[1::2], strict=True)))
    return found
