"""Which bytes the items of a pattern of Lua stand for: one, a class such as ``%a``, or a set."""

from __future__ import annotations

from typing import Final

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
    """For each byte 1 if it is among these, else 0."""
    return bytes([1 if code in members else 0 for code in range(256)])


ANY: Final = _flags(_ALL)


def literal(code: int) -> bytes:
    """The flags of one byte."""
    return _flags(frozenset([code]))


def _class(letter: int) -> frozenset[int]:
    """The members of what stands behind a ``%``."""
    lower = letter | 0x20
    members = _CLASSES.get(lower) if letter in _LETTERS else None
    if members is None:
        return frozenset([letter])
    return members if letter == lower else _ALL - members


def escaped(letter: int) -> bytes:
    """The flags of what stands behind a ``%``."""
    return _flags(_class(letter))


def set_end(pattern: bytes, at: int) -> int:
    """Where the set ends of which the first byte, behind the bracket, is at ``at``; -1: nowhere."""
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
    """The flags of a set: of what stands between its brackets."""
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
