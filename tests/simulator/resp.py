"""RESP as the simulator reads it: replies to its clients, and records in files.

The server's own parsers have no part in this, because what they leave out would go unseen.
"""

from __future__ import annotations

from simulator.scenarios import Refused

Words = list[bytes]


class Incomplete(Exception):
    """The bytes end in the middle."""


def read_reply(data: bytes, at: int) -> tuple[object, int]:
    """The reply of RESP2 that begins at an offset, and where it ends."""
    line, at = _line(data, at)
    kind = line[:1]
    rest = line[1:]
    if kind == b"+":
        return rest, at
    if kind == b"-":
        return Refused(rest), at
    if kind == b":":
        return int(rest), at
    size = int(rest)
    if size < 0:
        return None, at
    if kind == b"$":
        if len(data) < at + size + 2:
            raise Incomplete
        assert data[at + size : at + size + 2] == b"\r\n"
        return data[at : at + size], at + size + 2
    assert kind == b"*", line
    items: list[object] = []
    for _ in range(size):
        item, at = read_reply(data, at)
        items.append(item)
    return items, at


def read_replies(data: bytes) -> list[object]:
    """All replies in these bytes."""
    replies: list[object] = []
    at = 0
    while at < len(data):
        reply, at = read_reply(data, at)
        replies.append(reply)
    return replies


def read_record(data: bytes, at: int) -> tuple[Words, int]:
    """The record that begins at an offset of a file, and where it ends."""
    line, at = _line(data, at)
    if line[:1] == b"#":
        return [line], at
    assert line[:1] == b"*", line
    words: Words = []
    for _ in range(int(line[1:])):
        line, at = _line(data, at)
        size = int(line[1:])
        if len(data) < at + size + 2:
            raise Incomplete
        words.append(data[at : at + size])
        at += size + 2
    return words, at


def _line(data: bytes, at: int) -> tuple[bytes, int]:
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    return data[at:end], end + 2
