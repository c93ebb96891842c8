"""Patterns of Lua, matched so that steps are counted and a script can be interrupted.

A pattern of Lua consists of items that are matched one after the other. A mistake is an item, too:
it is found when matching has come so far, and not before.

Lua's own functions are faster. They match whatever they surely match in a short time, and a pattern
that may take for ever on a long text is matched here (``lua/patterns.lua`` decides). What is still
to be tried stands on a stack of our own, four numbers for each::

    MOST     item, least, last      the item before ``item`` may end at any place from least to last
    FEWEST   item, place            one more byte for ``item`` at ``place``, then what follows it
    MAYBE    item, place            go on there
    OPEN     number                 the capture has not begun, after all
    CLOSE    number                 it has not ended
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64

from headrace.server.scripting.busy import Busy
from headrace.server.scripting.errors import ScriptError

_ESCAPE: Final = 0x25
_DASH: Final = 0x2D
_CARET: Final = 0x5E
_LETTERS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_DIGITS: Final = frozenset(b"0123456789")
_CLASSES: Final[dict[int, frozenset[int]]] = {
    ord("a"): _LETTERS,
    ord("c"): frozenset([*range(32), 127]),
    ord("d"): _DIGITS,
    ord("l"): frozenset(range(ord("a"), ord("z") + 1)),
    ord("p"): frozenset(range(33, 127)) - _LETTERS - _DIGITS,
    ord("s"): frozenset(b" \t\n\v\f\r"),
    ord("u"): frozenset(range(ord("A"), ord("Z") + 1)),
    ord("w"): _LETTERS | _DIGITS,
    ord("x"): frozenset(b"0123456789abcdefABCDEF"),
    ord("z"): frozenset([0]),
}
_ALL: Final = frozenset(range(256))


def _flags(members: frozenset[int]) -> bytes:
    """Return for each byte 1 if it is among ``members``, else 0."""
    return bytes([1 if code in members else 0 for code in range(256)])


ANY: Final = _flags(_ALL)


def literal(code: int) -> bytes:
    """Return the flags of one byte."""
    return _flags(frozenset([code]))


def _class(letter: int) -> frozenset[int]:
    """Return the members of the class whose letter stands behind a ``%``."""
    lower = letter | 0x20
    members = _CLASSES.get(lower) if letter in _LETTERS else None
    if members is None:
        return frozenset([letter])
    return members if letter == lower else _ALL - members


def escaped(letter: int) -> bytes:
    """Return the flags of what stands behind a ``%``."""
    return _flags(_class(letter))


def set_end(pattern: bytes, at: int) -> int:
    """Return where a set ends whose first byte, behind the bracket, is at ``at``; -1 if nowhere."""
    if at < len(pattern) and pattern[at] == _CARET:
        at += 1
    while at < len(pattern):
        code = pattern[at]
        at += 1
        if code == _ESCAPE and at < len(pattern):
            at += 1
        if at < len(pattern) and pattern[at] == 0x5D:
            return at
    return -1


def set_flags(inside: bytes) -> bytes:
    """Return the flags of a set, given what stands between its brackets."""
    complement = inside[:1] == b"^"
    at = 1 if complement else 0
    end = len(inside)
    members: set[int] = set()
    while at < end:
        code = inside[at]
        at += 1
        if code == _ESCAPE and at < end:
            members |= _class(inside[at])
            at += 1
        elif at + 1 < end and inside[at] == _DASH:
            members.update(range(code, inside[at + 1] + 1))
            at += 2
        else:
            members.add(code)
    return _flags(_ALL - members if complement else frozenset(members))


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
_QUANTIFIERS: Final = b"*+-?"


class Item:
    """A part of a pattern.

    Attributes:
        kind: one of the constants; flags: of the bytes that it stands for.
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
    """Return the items of a pattern, which ends at a NUL."""
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
        """Read one byte, with how often it may be there."""
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
        """Return the flags of the bytes that fit here; None for a part that does not end."""
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


MOST_WORK: Final = 100_000_000  # steps that are left to Lua: they take less than a second
STEPS_AT_ONCE: Final = 100_000  # between two looks at the clock
_IS_PLACE: Final[i64] = -1  # for a length
_NOT_ENDED: Final[i64] = -2
_FAILED: Final[i64] = -1
_WIDTH: Final[i64] = 4  # of an entry of the stack


class Matching:
    """Makes matchers, which ask ``busy`` whether the running script has to end."""

    def __init__(self, busy: Busy) -> None:
        self._busy: Final = busy

    def find(self, text: bytes, part: bytes, at: int) -> int:
        """Return where ``part`` is in a text from ``at`` on, both counted from 0; -1 if nowhere."""
        return text.find(part, at)

    def matcher(self, text: bytes, pattern: bytes) -> object:
        """Return what looks for a pattern in a text; see ``Matcher.search``."""
        return Matcher(text, pattern, self._busy).search


class Matcher:
    """Looks for one pattern in one text; asks ``busy`` whether the script has to end."""

    def __init__(self, text: bytes, pattern: bytes, busy: Busy) -> None:
        self._text: Final = text
        self._items: Final[list[Item]] = parsed(pattern)
        self._busy: Final = busy
        self._stack = vec[i64]()
        self._height: i64 = 0
        self._starts = vec[i64]([0] * MOST_CAPTURES)
        self._lengths = vec[i64]([0] * MOST_CAPTURES)
        self._captures: i64 = 0  # that have begun
        self._place: i64 = 0  # where to go on
        self._steps: i64 = 0
        self._fault = b""

    def search(self, at: int, only_here: bool) -> tuple[object, ...]:
        """Return the first match that begins at a place or, unless ``only_here``, behind it.

        Returns: start and end, and for each capture likewise; the end of a capture of a place is
            -1, and of one that has not ended -2. Nothing where there is none, and False with a text
            where the pattern is wrong.
        Raises: ScriptError, where the script has to end.
        """
        start: i64 = at
        while start <= len(self._text):
            end = self._match(start)
            if self._fault:
                return False, self._fault
            if end != _FAILED:
                return self._found(start, end)
            if only_here:
                break
            start += 1
        return ()

    def _found(self, start: i64, end: i64) -> tuple[object, ...]:
        found: list[object] = [int(start), int(end)]
        number: i64 = 0
        while number < self._captures:
            begin = self._starts[number]
            length = self._lengths[number]
            found.append(int(begin))
            found.append(int(begin + length if length >= 0 else length))
            number += 1
        return tuple(found)

    def _match(self, start: i64) -> i64:
        """Return where a match that begins at ``start`` ends, or ``_FAILED``."""
        items = self._items
        count: i64 = len(items)
        self._height = 0
        self._captures = 0
        at = start
        number: i64 = 0
        while number < count:
            self._steps += 1
            if self._steps >= STEPS_AT_ONCE:
                self._look()
            item = items[number]
            number += 1
            at = self._matched(item, number, at)
            if self._fault:
                return _FAILED
            if at == _FAILED:
                number = self._retry()
                if number == _FAILED:
                    return _FAILED
                at = self._place
        return at

    def _matched(self, item: Item, following: i64, at: i64) -> i64:
        """Return where an item ends that begins at ``at``; ``_FAILED`` where it does not match."""
        text = self._text
        kind = item.kind
        if kind == ONE:
            return at + 1 if at < len(text) and item.flags[text[at]] else _FAILED
        if kind == MOST:
            return self._most(item, following, at)
        if kind == FEWEST:
            self._push(FEWEST, following, at, 0)
            return at
        if kind == MAYBE:
            if at < len(text) and item.flags[text[at]]:
                self._push(MAYBE, following, at, 0)
                return at + 1
            return at
        if kind == END:
            return at if at == len(text) else _FAILED
        if kind == FRONTIER:
            before = text[at - 1] if at else 0
            here = text[at] if at < len(text) else 0
            return at if item.flags[here] and not item.flags[before] else _FAILED
        if kind == BALANCED:
            return self._balanced(item, at)
        if kind == WRONG:
            self._fault = item.fault
            return _FAILED
        return self._captured(item, at)

    def _most(self, item: Item, following: i64, at: i64) -> i64:
        text = self._text
        flags = item.flags
        size: i64 = len(text)
        end = at
        while end < size and flags[text[end]]:
            end += 1
        self._steps += end - at
        at += item.low
        if end < at:
            return _FAILED
        if end > at:
            self._push(MOST, following, at, end - 1)
        return end

    def _balanced(self, item: Item, at: i64) -> i64:
        text = self._text
        size: i64 = len(text)
        if at >= size or text[at] != item.low:
            return _FAILED
        depth: i64 = 1
        end = at + 1
        while end < size:
            code = text[end]
            end += 1
            if code == item.high:
                depth -= 1
                if depth == 0:
                    self._steps += end - at
                    return end
            elif code == item.low:
                depth += 1
        self._steps += end - at
        return _FAILED

    def _captured(self, item: Item, at: i64) -> i64:
        """Begin or end a capture, or match one's text; return where that ends."""
        capture: i64 = item.low
        if item.kind == AGAIN:
            begin = self._starts[capture]
            length = self._lengths[capture]
            if length < 0:
                return _FAILED  # a capture of a place is as long as no text
            self._steps += length
            text = self._text
            same = text[begin : begin + length] == text[at : at + length]
            return at + length if same else _FAILED
        if item.kind == CLOSE:
            self._lengths[capture] = at - self._starts[capture]
            self._push(CLOSE, capture, 0, 0)
            return at
        self._starts[capture] = at
        self._lengths[capture] = _IS_PLACE if item.kind == PLACE else _NOT_ENDED
        self._captures = capture + 1
        self._push(OPEN, capture, 0, 0)
        return at

    def _push(self, kind: i64, first: i64, second: i64, third: i64) -> None:
        at = self._height
        stack = self._stack
        if at == len(stack):
            for _ in range(_WIDTH):
                stack = append(stack, i64(0))
            self._stack = stack
        stack[at] = kind
        stack[at + 1] = first
        stack[at + 2] = second
        stack[at + 3] = third
        self._height = at + _WIDTH

    def _retry(self) -> i64:
        """Go back to the choice at ``_place``; return the next item's number, or ``_FAILED``."""
        text = self._text
        while self._height > 0:
            top = self._height - _WIDTH
            stack = self._stack
            kind = stack[top]
            number = stack[top + 1]
            place = stack[top + 2]
            self._height = top
            if kind == MOST:
                last = stack[top + 3]
                if last > place:
                    stack[top + 3] = last - 1
                    self._height = top + _WIDTH
                self._place = last
                return number
            if kind == MAYBE:
                self._place = place
                return number
            if kind == FEWEST:
                item = self._items[number - 1]
                if place < len(text) and item.flags[text[place]]:
                    stack[top + 2] = place + 1
                    self._height = top + _WIDTH
                    self._place = place + 1
                    return number
            elif kind == OPEN:
                self._captures = number
            else:
                self._lengths[number] = _NOT_ENDED
        return _FAILED

    def _look(self) -> None:
        """Let others be served. Raises: ScriptError, where the script has to end."""
        self._steps = 0
        if self._busy.is_to_end():
            raise ScriptError(self._busy.refusal())
