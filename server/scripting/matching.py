"""Matching of patterns of Lua that counts its steps, so that it can be interrupted.

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
from headrace.server.scripting.patterns import (
    AGAIN,
    BALANCED,
    CLOSE,
    END,
    FEWEST,
    FRONTIER,
    MAYBE,
    MOST,
    MOST_CAPTURES,
    ONE,
    OPEN,
    PLACE,
    WRONG,
    Item,
    parsed,
)

MOST_WORK: Final = 100_000_000  # steps that are left to Lua: they take less than a second
STEPS_AT_ONCE: Final = 100_000  # between two looks at the clock
_IS_PLACE: Final[i64] = -1  # for a length
_NOT_ENDED: Final[i64] = -2
_FAILED: Final[i64] = -1
_WIDTH: Final[i64] = 4  # of an entry of the stack


class Matching:
    """Makes matchers for the scripts of an interpreter.

    Args:
        busy: knows whether the running script has to end.
    """

    def __init__(self, busy: Busy) -> None:
        self._busy: Final = busy

    def find(self, text: bytes, part: bytes, at: int) -> int:
        """Where a part of a text is, from a place on, both counted from 0; -1: nowhere."""
        return text.find(part, at)

    def matcher(self, text: bytes, pattern: bytes) -> object:
        """What looks for a pattern in a text; see ``Matcher.search``."""
        return Matcher(text, pattern, self._busy).search


class Matcher:
    """Looks for one pattern in one text.

    Args:
        busy: knows whether the running script has to end.
    """

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
        """The first match that begins at a place or, unless ``only_here``, behind it.

        Returns: start and end, and for each capture likewise; the end of a capture of a place is
            -1, and of one that has not ended -2. Nothing where there is none, and False with a text
            where the pattern is wrong.

        Raises:
            ScriptError: the script has to end.
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
        """Where a match that begins at ``start`` ends, or ``_FAILED``."""
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
        """Where an item ends that begins at ``at``; ``_FAILED`` where it does not match."""
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
        """Begin or end a capture, or match what one has; where that ends."""
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
        """Go back to what is still to be tried, at ``_place``.

        Returns: the number of the item to go on with, or ``_FAILED`` where nothing is left.
        """
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
