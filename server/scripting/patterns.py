"""What a pattern of Lua consists of: items that are matched one after the other.

A mistake is an item, too: it is found when matching has come so far, and not before.
"""

from __future__ import annotations

from typing import Final

from headrace.server.scripting.classes import ANY, escaped, literal, set_end, set_flags

ONE: Final = 0  # kinds of items: one byte of some
MOST: Final = 1  # as many of them as possible, rather than fewer
FEWEST: Final = 2
MAYBE: Final = 3
OPEN: Final = 4  # a capture begins; ``low`` is its number
CLOSE: Final = 5
PLACE: Final = 6  # a capture of the place
END: Final = 7  # of the text
BALANCED: Final = 8  # from ``low`` to the ``high`` that belongs to it
FRONTIER: Final = 9
AGAIN: Final = 10  # what the capture ``low`` has
WRONG: Final = 11

MOST_CAPTURES: Final = 32
_ESCAPE: Final = 0x25
_QUANTIFIERS: Final = b"*+-?"


class Item:
    """A part of a pattern.

    Attributes:
        kind: what it is; flags: of the bytes that it stands for.
        low, high: see the kinds; of ``MOST``, low is how many are needed.
        fault: the error of what is wrong.
    """

    def __init__(self, kind: int, flags: bytes = b"", low: int = 0, high: int = 0) -> None:
        self.kind: Final = kind
        self.flags: Final = flags
        self.low: Final = low
        self.high: Final = high
        self.fault = b""


def _wrong(fault: bytes) -> Item:
    item = Item(WRONG)
    item.fault = fault
    return item


def parsed(pattern: bytes) -> list[Item]:
    """The items of a pattern, which ends at a NUL."""
    return _Parser(pattern.split(b"\0", 1)[0]).items()


class _Parser:
    def __init__(self, pattern: bytes) -> None:
        self._pattern: Final = pattern
        self._at = 0
        self._count = 0  # of captures
        self._open: list[int] = []  # those that have begun and not ended

    def items(self) -> list[Item]:
        found: list[Item] = []
        while self._at < len(self._pattern):
            item = self._item()
            found.append(item)
            if item.kind == WRONG:
                return found
        return found

    def _item(self) -> Item:
        pattern = self._pattern
        code = pattern[self._at]
        following = pattern[self._at + 1 : self._at + 2]
        if code == 0x28:
            return self._begin(following == b")")
        if code == 0x29:
            self._at += 1
            if not self._open:
                return _wrong(b"invalid pattern capture")
            return Item(CLOSE, low=self._open.pop())
        if code == 0x24 and not following:
            self._at += 1
            return Item(END)
        if code == _ESCAPE and following == b"b":
            return self._balanced()
        if code == _ESCAPE and following == b"f":
            return self._frontier()
        if code == _ESCAPE and following.isdigit():
            return self._again(following[0] - 0x31)
        return self._repeated()

    def _begin(self, is_place: bool) -> Item:
        number = self._count
        if number >= MOST_CAPTURES:
            return _wrong(b"too many captures")
        self._count += 1
        if is_place:
            self._at += 2
            return Item(PLACE, low=number)
        self._at += 1
        self._open.append(number)
        return Item(OPEN, low=number)

    def _balanced(self) -> Item:
        ends = self._pattern[self._at + 2 : self._at + 4]
        if len(ends) < 2:
            return _wrong(b"unbalanced pattern")
        self._at += 4
        return Item(BALANCED, low=ends[0], high=ends[1])

    def _frontier(self) -> Item:
        self._at += 2
        if self._pattern[self._at : self._at + 1] != b"[":
            return _wrong(b"missing '[' after '%f' in pattern")
        flags = self._flags()
        return _wrong(_NO_BRACKET) if flags is None else Item(FRONTIER, flags)

    def _again(self, number: int) -> Item:
        if not 0 <= number < self._count or number in self._open:
            return _wrong(b"invalid capture index")
        self._at += 2
        return Item(AGAIN, low=number)

    def _repeated(self) -> Item:
        """One byte, with how often it may be there."""
        if self._pattern[self._at :] == b"%":
            return _wrong(b"malformed pattern (ends with '%')")
        flags = self._flags()
        if flags is None:
            return _wrong(_NO_BRACKET)
        sign = self._pattern[self._at : self._at + 1]
        if not sign or sign not in _QUANTIFIERS:
            return Item(ONE, flags)
        self._at += 1
        if sign == b"?":
            return Item(MAYBE, flags)
        if sign == b"-":
            return Item(FEWEST, flags)
        return Item(MOST, flags, low=1 if sign == b"+" else 0)

    def _flags(self) -> bytes | None:
        """The bytes that what stands here is for; None where it does not end."""
        pattern = self._pattern
        code = pattern[self._at]
        self._at += 1
        if code == 0x2E:
            return ANY
        if code == _ESCAPE:
            self._at += 1
            return escaped(pattern[self._at - 1])
        if code != 0x5B:
            return literal(code)
        begin = self._at
        end = set_end(pattern, begin)
        if end < 0:
            return None
        self._at = end + 1
        return set_flags(pattern[begin:end])


_NO_BRACKET: Final = b"malformed pattern (missing ']')"
