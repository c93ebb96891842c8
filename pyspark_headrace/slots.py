"""The nodes of a cluster: which of them has a key.

A key belongs to one of 16,384 slots, by a checksum of its name, or of what stands in the first
braces of it. A node answers with MOVED to what is not its own; then the map is asked for again.
"""

from __future__ import annotations

from binascii import crc_hqx
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, cast

from pyspark_headrace.connection import Connection

SLOTS: Final = 16_384
_SECOND: Final = frozenset(("XINFO", "XGROUP", "MEMORY", "OBJECT"))  # their key is the second word
_NONE: Final = frozenset(("MULTI", "EXEC", "COMMAND", "PING", "SCAN", "CLUSTER"))

Word = bytes | str | int


def slot_of(key: bytes | str) -> int:
    """The slot that a key belongs to."""
    name = key if isinstance(key, bytes) else key.encode()
    opened = name.find(b"{")
    closed = name.find(b"}", opened + 1) if opened >= 0 else -1
    tagged = closed > opened + 1
    return crc_hqx(name[opened + 1 : closed] if tagged else name, 0) % SLOTS


def key_of(words: Sequence[Word]) -> bytes | str | None:
    """The key that a command names, its first one; None where it names none."""
    name = words[0]
    if name in _NONE:
        return None
    at = 1
    if name in _SECOND:
        at = 2
    elif name == "XREAD":
        at = list(words).index("STREAMS") + 1
    key = words[at]
    assert not isinstance(key, int)
    return key


def keys_of(commands: Sequence[Sequence[Word]]) -> list[bytes | str | None]:
    """The key of each command; a whole transaction has that of its first command."""
    found: list[bytes | str | None] = []
    opened = -1
    for words in commands:
        if words[0] == "MULTI":
            opened = len(found)
        found.append(key_of(words))
        if words[0] == "EXEC":
            key = found[opened + 1]
            found[opened:] = [key] * (len(found) - opened)
    return found


class Slots:
    """Which master has which slots, as CLUSTER SLOTS says.

    Args:
        reply: the reply.
        asked: the node that was asked; nodes that do not know their own host are there.
    """

    def __init__(self, reply: object, asked: Connection) -> None:
        ranges: list[tuple[int, int, Connection]] = []
        for row in cast("list[list[object]]", reply):
            first, last = cast("int", row[0]), cast("int", row[1])
            host, port = cast("list[object]", row[2])[:2]
            name = cast("bytes | None", host)
            ranges.append(
                (
                    first,
                    last,
                    replace(
                        asked,
                        host=name.decode() if name else asked.host,
                        port=cast("int", port),
                        unix_path="",
                    ),
                )
            )
        ranges.sort(key=lambda each: each[0])
        self._starts: Final = [first for first, _, _ in ranges]
        self._ranges: Final = ranges

    def master_of(self, slot: int) -> Connection | None:
        """Return who has a slot; None while nobody does."""
        at = bisect_right(self._starts, slot) - 1
        if at < 0 or slot > self._ranges[at][1]:
            return None
        return self._ranges[at][2]

    def masters(self) -> dict[Connection, int]:
        """All masters, and of each a slot that it has."""
        found: dict[Connection, int] = {}
        for first, _, master in self._ranges:
            found.setdefault(master, first)
        return found
