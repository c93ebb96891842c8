"""POSIX regular expressions, as ARGREP takes them: whether one fits somewhere in a text.

A pattern becomes an automaton whose states are the places of the pattern that take a byte. A set
of states is one integer. For each byte of a text, one step leads from all states that were possible
to all that are possible now; steps are remembered. So no text takes longer than its length says,
unlike with programs that try one way after another.

What takes no byte (``^``, ``$``, ``\\b`` and its kin) is a place as well: where it holds, a set
grows by what follows it.

Source: V. Glushkov, "The abstract theory of automata"; the syntax is that of the TRE library.
"""

from __future__ import annotations

from typing import Final

EMPTY: Final = b"regular expression is empty"
BACK_REFERENCE: Final = b"regular expression backreferences are not supported"
_INVALID: Final = b"invalid regular expression: %b"
_NO_PARENTHESIS: Final = _INVALID % b"Missing ')'"
_NO_BRACKET: Final = _INVALID % b"Missing ']'"
_NO_BRACE: Final = _INVALID % b"Missing '}'"
_TRAILING: Final = _INVALID % b"Trailing backslash"
_BAD_BRACE: Final = _INVALID % b"Invalid contents of {}"
_TOO_OFTEN: Final = _INVALID % b"Maximum repetition in {} larger than 255"
_NO_SUCH_GROUP: Final = _INVALID % b"Invalid back reference"
_BAD_RANGE: Final = _INVALID % b"Invalid character range"
_BAD_CLASS: Final = _INVALID % b"Unknown character class name"
_BAD_ELEMENT: Final = _INVALID % b"Unknown collating element"
_BAD_REPEAT: Final = _INVALID % b"Invalid use of repetition operators"
_BAD_REGEX: Final = _INVALID % b"Invalid regexp"
_TOO_LARGE: Final = _INVALID % b"Out of memory"

_MOST_PLACES: Final = 4096
_MOST_REPEATS: Final = 255
_KEPT_STEPS: Final = 20_000
_UNLIMITED: Final = -1

_REPEATS: Final = frozenset(b"*+?{")
_GREEDY: Final = frozenset(b"*+")
_COUNTS: Final[dict[int, tuple[int, int]]] = {
    0x2A: (0, _UNLIMITED),
    0x2B: (1, _UNLIMITED),
    0x3F: (0, 1),
}
_FLAGS_END: Final = frozenset(b":)")
_OTHER_FLAGS: Final = frozenset(b"nrU")

# What takes no byte, by its bit.
_AT_START: Final = 1
_AT_END: Final = 2
_AT_WORD_START: Final = 4
_AT_WORD_END: Final = 8
_AT_BOUNDARY: Final = 16
_AT_NO_BOUNDARY: Final = 32

_DIGITS: Final = frozenset(b"0123456789")
_UPPER: Final = frozenset(range(0x41, 0x5B))
_LOWER: Final = frozenset(range(0x61, 0x7B))
_ALPHA: Final = _UPPER | _LOWER
_WORD: Final = _ALPHA | _DIGITS | frozenset(b"_")
_SPACE: Final = frozenset(b" \t\n\v\f\r")
_PRINTED: Final = frozenset(range(0x20, 0x7F))
_ALL: Final = frozenset(range(256))
_CLASSES: Final[dict[bytes, frozenset[int]]] = {
    b"alnum": _ALPHA | _DIGITS,
    b"alpha": _ALPHA,
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(range(0x20)) | {0x7F},
    b"digit": _DIGITS,
    b"graph": _PRINTED - {0x20},
    b"lower": _LOWER,
    b"print": _PRINTED,
    b"punct": _PRINTED - {0x20} - _ALPHA - _DIGITS,
    b"space": _SPACE,
    b"upper": _UPPER,
    b"xdigit": _DIGITS | frozenset(b"abcdefABCDEF"),
}
_SHORTHANDS: Final[dict[int, frozenset[int]]] = {
    0x64: _DIGITS,
    0x44: _ALL - _DIGITS,
    0x77: _WORD,
    0x57: _ALL - _WORD,
    0x73: _SPACE,
    0x53: _ALL - _SPACE,
}
_ESCAPED: Final[dict[int, int]] = {0x74: 9, 0x6E: 10, 0x72: 13, 0x66: 12, 0x61: 7, 0x65: 27}
_BETWEEN: Final[dict[int, int]] = {
    0x3C: _AT_WORD_START,
    0x3E: _AT_WORD_END,
    0x62: _AT_BOUNDARY,
    0x42: _AT_NO_BOUNDARY,
}


class BadRegex(Exception):
    """A pattern that is none; ``text`` says why, as Redis does."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text: Final = text


class _Part:
    """A part of a pattern: sets of places, each a bit.

    ``first`` and ``last`` are the places at which it may begin and end; ``empty``: it may take
    nothing.
    """

    def __init__(self, first: int, last: int, empty: bool) -> None:
        self.first: Final = first
        self.last: Final = last
        self.empty: Final = empty


_NOTHING: Final = _Part(0, 0, True)


class Regex:
    """A pattern that is ready to be used. Raises: BadRegex."""

    def __init__(self, pattern: bytes, ignore_case: bool) -> None:
        if not pattern:
            raise BadRegex(EMPTY)
        # Place 0 is where a match may begin: it is always possible.
        self._bytes: Final[list[frozenset[int]]] = [frozenset()]
        self._follow: Final[list[int]] = [0]
        self._between: Final[dict[int, int]] = {}  # the bit of a place that takes no byte: when
        whole = _Parser(self, pattern, ignore_case).whole()
        self._follow[0] = whole.first
        self._ends: Final = whole.last
        self._empty: Final = whole.empty
        self._takes: Final = [
            sum([1 << place for place, taken in enumerate(self._bytes) if byte in taken])
            for byte in range(256)
        ]
        self._steps: dict[int, list[int]] = {}
        self._step_count = 0

    def fits(self, text: bytes) -> bool:
        """Return whether it fits somewhere in a text."""
        if self._empty:
            return True
        possible = 1
        words = any(when & ~(_AT_START | _AT_END) for when in self._between.values())
        for at in range(len(text) + 1):
            if words or at in (0, len(text)):
                possible = self._between_bytes(possible, text, at)
            if possible & self._ends:
                return True
            if at < len(text):
                possible = self._step(possible, text[at])
        return False

    def _step(self, possible: int, byte: int) -> int:
        known = self._steps.get(possible)
        if known is None:
            if self._step_count >= _KEPT_STEPS:
                self._steps.clear()
                self._step_count = 0
            known = [-1] * 256
            self._steps[possible] = known
            self._step_count += 1
        reached = known[byte]
        if reached < 0:
            reached = (self._followers(possible) & self._takes[byte]) | 1
            known[byte] = reached
        return reached

    def _between_bytes(self, possible: int, text: bytes, at: int) -> int:
        """Return what is possible as well where nothing is taken before byte ``at``."""
        if not self._between:
            return possible
        before = at > 0 and text[at - 1] in _WORD
        behind = at < len(text) and text[at] in _WORD
        outside = at in (0, len(text))  # which is a boundary, whatever stands beside it
        holds = (_AT_START if at == 0 else 0) | (_AT_END if at == len(text) else 0)
        if before != behind:
            holds |= _AT_WORD_START if behind else _AT_WORD_END
        holds |= _AT_BOUNDARY if outside or before != behind else _AT_NO_BOUNDARY
        allowed = sum([bit for bit, when in self._between.items() if when & holds])
        while True:
            more = possible | (self._followers(possible) & allowed)
            if more == possible:
                return possible
            possible = more

    def _followers(self, places: int) -> int:
        found = 0
        while places:
            lowest = places & -places
            found |= self._follow[lowest.bit_length() - 1]
            places ^= lowest
        return found

    # What the parser makes of it

    def place(self, taken: frozenset[int], when: int = 0) -> _Part:
        """Add a place with the bytes that it takes, or when it holds without any."""
        if len(self._bytes) > _MOST_PLACES:
            raise BadRegex(_TOO_LARGE)
        bit = 1 << len(self._bytes)
        self._bytes.append(taken)
        self._follow.append(0)
        if when:
            self._between[bit] = when
        return _Part(bit, bit, False)

    def both(self, one: _Part, other: _Part) -> _Part:
        """Return the two parts, one behind the other."""
        self._link(one.last, other.first)
        first = one.first | other.first if one.empty else one.first
        last = other.last | one.last if other.empty else other.last
        return _Part(first, last, one.empty and other.empty)

    def copies(self, part: _Part, begin: int, times: int) -> list[_Part]:
        """Return a part and so many copies of it, one behind the other and not linked.

        Its places are all from ``begin`` on.
        """
        end = len(self._bytes)
        found = [part]
        for time in range(1, times + 1):
            shift = time * (end - begin)
            for at in range(begin, end):
                bit = 1 << at
                copy = self.place(self._bytes[at], self._between.get(bit, 0))
                self._follow[copy.first.bit_length() - 1] = self._follow[at] << shift
            found.append(_Part(part.first << shift, part.last << shift, part.empty))
        return found

    def places(self) -> int:
        """Return how many places there are."""
        return len(self._bytes)

    def repeated(self, part: _Part) -> _Part:
        """Return the part, to come once or more often."""
        self._link(part.last, part.first)
        return part

    def _link(self, places: int, followers: int) -> None:
        while places and followers:
            lowest = places & -places
            self._follow[lowest.bit_length() - 1] |= followers
            places ^= lowest


class _Group:
    """A group that is being read, or the whole pattern.

    Args:
        begin: the first place that it may have.
        ignore_case: what holds behind it.
        implied: what follows ``(?i)`` up to the end of the group around it, alternatives included.
    """

    def __init__(self, begin: int, ignore_case: bool, implied: bool = False) -> None:
        self.begin: Final = begin
        self.ignore_case: Final = ignore_case
        self.implied: Final = implied
        self.row = _NOTHING
        self._before: _Part | None = None  # the alternatives before that row

    def choice(self) -> _Part:
        """Return the alternatives, the last row among them."""
        before, row = self._before, self.row
        if before is None:
            return row
        return _Part(before.first | row.first, before.last | row.last, before.empty or row.empty)

    def begin_row(self) -> None:
        """Begin another alternative."""
        self._before = self.choice()
        self.row = _NOTHING


class _Parser:
    def __init__(self, regex: Regex, pattern: bytes, ignore_case: bool) -> None:
        self._regex: Final = regex
        self._pattern: Final = pattern
        self._at = 0
        self._ignore_case = ignore_case
        self._group = _Group(regex.places(), ignore_case)
        self._outer: list[_Group] = []  # those around it
        self._depth = 0  # how many of all these have a parenthesis
        self._groups = 0  # that may be referred to
        self._referred = -1  # the highest group that a back reference names

    def whole(self) -> _Part:
        """Return the part that the whole pattern is."""
        while self._at < len(self._pattern):
            begin = self._regex.places()
            if self._skip(b"|"):
                self._group.begin_row()
            elif self._skip(b"("):
                self._outer.append(self._group)
                self._group = self._opened()
            elif self._depth and self._skip(b")"):
                self._depth -= 1
                begin = self._end_implied().begin
                self._add(self._end_group(), begin)
            else:
                self._add(self._atom(), begin)
        if self._depth:
            raise BadRegex(_NO_PARENTHESIS)
        if self._referred > self._groups:
            raise BadRegex(_NO_SUCH_GROUP)
        if self._referred >= 0:
            raise BadRegex(BACK_REFERENCE)
        return self._end_implied().choice()

    def _add(self, part: _Part, begin: int) -> None:
        group = self._group
        group.row = self._regex.both(group.row, self._counted(part, begin))

    def _end_implied(self) -> _Group:
        while self._group.implied:
            part = self._end_group()
            self._group.row = self._regex.both(self._group.row, part)
        return self._group

    def _end_group(self) -> _Part:
        """Go on in the group around the current one; return the part of the one that ended."""
        ended = self._group
        self._ignore_case = ended.ignore_case
        self._group = self._outer.pop()
        return ended.choice()

    def _next(self) -> int:
        return self._pattern[self._at] if self._at < len(self._pattern) else -1

    def _skip(self, word: bytes) -> bool:
        if not self._pattern.startswith(word, self._at):
            return False
        self._at += len(word)
        return True

    def _opened(self) -> _Group:
        kept = self._ignore_case
        self._depth += 1
        if not self._skip(b"?"):
            self._groups += 1
            return _Group(self._regex.places(), kept)
        on = True
        while self._next() not in _FLAGS_END:
            byte = self._next()
            if byte == 0x2D:
                on = False
            elif byte == 0x69:
                self._ignore_case = on
            elif byte not in _OTHER_FLAGS:
                raise BadRegex(_BAD_REGEX)
            self._at += 1
        implied = self._skip(b")")
        if implied:
            self._depth -= 1
        else:
            self._at += 1
        return _Group(self._regex.places(), kept, implied)

    def _counted(self, part: _Part, begin: int) -> _Part:
        while self._next() in _REPEATS:
            if self._skip(b"{"):
                low, high = self._bounds()
            else:
                low, high = _COUNTS[self._next()]
                self._at += 1
            if self._next() in _GREEDY:
                raise BadRegex(_BAD_REPEAT)
            self._skip(b"?")  # to take as little as possible changes nothing here
            part = self._times(part, begin, low, high)
        return part

    def _times(self, part: _Part, begin: int, low: int, high: int) -> _Part:
        if high == 0:
            return _NOTHING
        parts = self._regex.copies(part, begin, max(low, high, 1) - 1)
        whole = _NOTHING
        for time, each in enumerate(parts, 1):
            if high == _UNLIMITED and each is parts[-1]:
                each = self._regex.repeated(each)
            if time > low:
                each = _Part(each.first, each.last, True)
            whole = self._regex.both(whole, each)
        return whole

    def _bounds(self) -> tuple[int, int]:
        low = self._number()
        high = low
        if self._skip(b","):
            high = self._number()
            if high < 0:
                high = _UNLIMITED
            low = max(low, 0)
        if self._next() < 0:
            raise BadRegex(_NO_BRACE)
        if not self._skip(b"}") or low < 0:
            raise BadRegex(_BAD_BRACE)
        if high != _UNLIMITED and low > high:
            raise BadRegex(_BAD_BRACE)
        if max(low, high) > _MOST_REPEATS:
            raise BadRegex(_TOO_OFTEN)
        return low, high

    def _number(self) -> int:
        start = self._at
        while self._next() in _DIGITS:
            self._at += 1
        digits = self._pattern[start : self._at]
        return min(int(digits[:5]), _MOST_REPEATS + 1) if digits else -1

    def _atom(self) -> _Part:
        byte = self._next()
        self._at += 1
        if byte == 0x5B:
            return self._place(self._set())
        if byte == 0x5C:
            return self._escape()
        if byte == 0x2E:
            return self._regex.place(_ALL)
        if byte == 0x5E:
            return self._regex.place(frozenset(), _AT_START)
        if byte == 0x24:
            return self._regex.place(frozenset(), _AT_END)
        if byte in _REPEATS:
            self._at -= 1  # nothing, so many times
            return _NOTHING
        return self._place(frozenset((byte,)))

    def _place(self, taken: frozenset[int]) -> _Part:
        if self._ignore_case:
            upper = {byte - 0x20 for byte in taken & _LOWER}
            taken = taken | upper | {byte + 0x20 for byte in taken & _UPPER}
        return self._regex.place(taken)

    def _escape(self) -> _Part:
        byte = self._next()
        if byte < 0:
            raise BadRegex(_TRAILING)
        self._at += 1
        if byte in _SHORTHANDS:
            return self._place(_SHORTHANDS[byte])
        if byte in _BETWEEN:
            return self._regex.place(frozenset(), _BETWEEN[byte])
        if byte in _DIGITS:
            self._referred = max(self._referred, byte - 0x30)
            return _NOTHING
        if byte == 0x51:  # \Q: as it is, up to \E
            return self._quoted()
        if byte == 0x78:
            return self._place(self._hexadecimal())
        return self._place(frozenset((_ESCAPED.get(byte, byte),)))

    def _quoted(self) -> _Part:
        end = self._pattern.find(b"\\E", self._at)
        text = self._pattern[self._at : end if end >= 0 else len(self._pattern)]
        self._at += len(text)
        found = _NOTHING
        for byte in text:
            found = self._regex.both(found, self._place(frozenset((byte,))))
        if self._skip(b"\\E"):
            self._counted(
                _NOTHING, self._regex.places()
            )  # what is counted is the end, not the text
        return found

    def _hexadecimal(self) -> frozenset[int]:
        """Return the byte of this number; none where there is no such byte."""
        most = 8 if self._skip(b"{") else 2
        braced = most == 8
        start = self._at
        while self._next() in _CLASSES[b"xdigit"] and self._at < start + most:
            self._at += 1
        value = int(self._pattern[start : self._at] or b"0", 16)
        if braced and not self._skip(b"}"):
            raise BadRegex(_NO_BRACE)
        return frozenset((value,)) & _ALL

    def _set(self) -> frozenset[int]:
        """Read ``[a-z]``, behind the first bracket."""
        turned = self._skip(b"^")
        found: set[int] = set()
        first = True
        while first or self._next() != 0x5D:
            first = False
            byte = self._next()
            if byte < 0:
                raise BadRegex(_NO_BRACKET)
            if self._skip(b"[:"):
                found |= self._class()
                continue
            if self._pattern.startswith((b"[.", b"[="), self._at):
                raise BadRegex(_BAD_ELEMENT)
            self._at += 1
            last = byte
            if self._next() == 0x2D and self._pattern[self._at + 1 : self._at + 2] not in (
                b"",
                b"]",
            ):
                last = self._pattern[self._at + 1]
                self._at += 2
            if last < byte:
                raise BadRegex(_BAD_RANGE)
            found.update(range(byte, last + 1))
        self._at += 1
        if self._ignore_case:
            found |= {byte ^ 0x20 for byte in found & _ALPHA}
        return _ALL - found if turned else frozenset(found)

    def _class(self) -> frozenset[int]:
        end = self._pattern.find(b":]", self._at)
        name = self._pattern[self._at : end] if end >= 0 else b""
        if name not in _CLASSES:
            raise BadRegex(_BAD_CLASS)
        self._at = end + 2
        return _CLASSES[name]
