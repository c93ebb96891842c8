"""RESP as the simulator reads it: replies to its clients, and records in files.

The server's own parsers have no part in this, because what they leave out would go unseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.scenarios import Refused

Words = list[bytes]
ARRAY: Final = ord("*")
COMMENT: Final = ord("#")


class Incomplete(Exception):
    """The bytes end in the middle."""


def read_replies(data: bytes) -> list[object]:
    """All replies of RESP2 in these bytes."""
    lines = iter(data.split(b"\r\n"))
    replies: list[object] = []
    for line in lines:
        if not line:
            break
        replies.append(_reply(line, lines))
    assert next(lines, None) is None, data
    return replies


def _reply(line: bytes, lines: Iterator[bytes]) -> object:
    kind = line[:1]
    if kind == b"$":
        size = int(line[1:])
        if size < 0:
            return None
        text = next(lines)
        while len(text) < size:  # it holds an end of line, as what DUMP answers may
            text += b"\r\n" + next(lines)
        assert len(text) == size, text
        return text
    if kind == b":":
        return int(line[1:])
    if kind == b"*":
        count = int(line[1:])
        return [_reply(next(lines), lines) for _ in range(count)] if count >= 0 else None
    if kind == b"+":
        return line[1:]
    assert kind == b"-", line
    return Refused(line[1:])


def read_record(data: bytes, at: int) -> tuple[Words, int]:
    """The record that begins at an offset of a file, and where it ends."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    if data[at] == COMMENT:
        return [data[at:end]], end + 2
    assert data[at] == ARRAY, data[at:end]
    count = int(data[at + 1 : end])
    at = end + 2
    words: Words = []
    for _ in range(count):
        end = data.find(b"\r\n", at)
        if end < 0:
            raise Incomplete
        begin = end + 2
        end = begin + int(data[at + 1 : end])
        at = end + 2
        if len(data) < at:
            raise Incomplete
        words.append(data[begin:end])
    return words, at
