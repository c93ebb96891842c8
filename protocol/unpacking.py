"""Packed replies read back as plain values, for callers that look into a reply.

A client is sent a packed reply as it is. A script is not: it wants lists, strings and numbers.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.protocol.replies import (
    NULL_ARRAY,
    Attributed,
    BigNumber,
    Decimal,
    ErrorReply,
    Map,
    Packed,
    PackedReplies,
    Push,
    Replies,
    Set,
    Status,
    Verbatim,
)

_STAR: Final = 0x2A
_DOLLAR: Final = 0x24
_COLON: Final = 0x3A
_MINUS: Final = 0x2D
_CR: Final = 0x0D
_ZERO: Final = 0x30
_AGGREGATES: Final = b"*~>"
_PAIRS: Final = b"%|"
_LENGTHS: Final = b"$="


def unpacked(reply: object) -> object:
    """``reply`` with every packed part replaced by the values it stands for.

    It is written to the same bytes as before, in the protocol for which it was packed. Arrays are
    lists, bulk strings ``bytes`` and integers ``int``; the rest is as ``replies`` names it, where a
    RESP3 double has become a ``Decimal``.
    """
    if isinstance(reply, Packed):
        return _Reader(reply.wire).value()
    if isinstance(reply, PackedReplies):
        return Replies(all_unpacked(reply))
    if isinstance(reply, list | tuple):
        return [unpacked(item) for item in reply]
    if isinstance(reply, Map):
        return Map([(unpacked(name), unpacked(value)) for name, value in reply.pairs])
    if isinstance(reply, Set):
        return Set([unpacked(item) for item in reply.items])
    if isinstance(reply, Push):
        return Push([unpacked(item) for item in reply.items])
    if isinstance(reply, Replies):
        return Replies([unpacked(item) for item in reply.items])
    if isinstance(reply, Attributed):
        pairs = [(unpacked(name), unpacked(value)) for name, value in reply.attributes]
        return Attributed(pairs, unpacked(reply.reply))
    return reply


def all_unpacked(replies: PackedReplies) -> list[object]:
    """Each of several replies in a row."""
    reader = _Reader(replies.wire)
    found: list[object] = []
    while not reader.is_at_end():
        found.append(reader.value())
    return found


def bulk_text(wire: bytes) -> bytes | None:
    """The string that a packed reply is; None of any other reply."""
    if wire[0] != _DOLLAR or wire[1] == _MINUS:
        return None
    return wire[wire.index(b"\r\n") + 2 : -2]


def flat_items(wire: bytes, null: object = None) -> list[object] | None:
    """The items of a packed array of strings, integers and nulls; None of any other reply.

    It gives what ``unpacked`` gives, in a third of the time.

    Args:
        null: what stands for a null.
    """
    if wire[0] != _STAR or wire[1] == _MINUS:
        return None
    at: i64 = 1
    left: i64 = 0
    while wire[at] != _CR:
        left = 10 * left + wire[at] - _ZERO
        at += 1
    at += 2
    found: list[object] = []
    while left > 0:
        left -= 1
        kind = wire[at]
        at += 1
        size: i64 = 0
        if kind == _DOLLAR and wire[at] == _MINUS:
            found.append(null)
            at += 4
        elif kind == _DOLLAR:
            while wire[at] != _CR:
                size = 10 * size + wire[at] - _ZERO
                at += 1
            at += 2
            found.append(wire[at : at + size])
            at += size + 2
        elif kind == _COLON:
            while wire[at + size] != _CR:
                size += 1
            found.append(int(wire[at : at + size]))
            at += size + 2
        else:
            return None
    return found


class _Reader:
    """Reads values one after the other from what we have written ourselves."""

    def __init__(self, wire: bytes) -> None:
        self._wire: Final = wire
        self._at = 0

    def is_at_end(self) -> bool:
        return self._at == len(self._wire)

    def value(self) -> object:
        kind = self._wire[self._at]
        line = self._line()
        if kind == _COLON:
            return int(line)
        if kind in _LENGTHS:
            return self._string(kind, int(line))
        if kind in _AGGREGATES:
            return self._items(kind, int(line))
        if kind in _PAIRS:
            pairs = [(self.value(), self.value()) for _ in range(int(line))]
            return Map(pairs) if kind == _PAIRS[0] else Attributed(pairs, self.value())
        return _of_line(kind, line)

    def _line(self) -> bytes:
        """Return what follows the type, to the end of the line."""
        end = self._wire.index(b"\r\n", self._at)
        line = self._wire[self._at + 1 : end]
        self._at = end + 2
        return line

    def _string(self, kind: int, size: int) -> object:
        if size < 0:
            return None
        data = self._wire[self._at : self._at + size]
        self._at += size + 2
        return data if kind == _DOLLAR else Verbatim(data[4:], data[:3])

    def _items(self, kind: int, size: int) -> object:
        if size < 0:
            return NULL_ARRAY
        items = [self.value() for _ in range(size)]
        if kind == _STAR:
            return items
        return Set(items) if kind == _AGGREGATES[1] else Push(items)


def _of_line(kind: int, line: bytes) -> object:
    """The value that one line is."""
    mark = bytes([kind])
    if mark == b"+":
        return Status(line)
    if mark == b"-":
        return ErrorReply(line)
    if mark == b"#":
        return line == b"t"
    if mark == b",":
        return Decimal(line)
    if mark == b"(":
        return BigNumber(int(line))
    assert mark == b"_", mark
    return None
