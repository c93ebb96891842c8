"""Integers as Redis reads them: one spelling for each number, 64 bits."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

INT64_MAX: Final = (1 << 63) - 1
INT64_MIN: Final = -(1 << 63)
UINT64_MAX: Final = (1 << 64) - 1
INT32_MAX: Final = (1 << 31) - 1
INT32_MIN: Final = -(1 << 31)

_LONGEST: Final = 20  # the digits of INT64_MIN and its sign
_PLAIN_DIGITS: Final = 18  # surely no overflow of 64 bits


def parse_integer(word: bytes) -> int | None:
    """The signed 64-bit integer that ``word`` spells, or None.

    Only the canonical spelling counts: no plus sign, no leading zeros, no minus zero, no spaces.
    """
    size: i64 = len(word)
    if 0 < size <= _PLAIN_DIGITS:
        number: i64 = 0
        negative = word[0] == 0x2D
        first: i64 = 1 if negative else 0
        at = first
        while at < size:
            char: i64 = word[at]
            if char < 0x30 or char > 0x39:
                return None
            number = number * 10 + char - 0x30
            at += 1
        if at == first or (word[first] == 0x30 and size > 1):
            return None
        return int(-number if negative else number)
    if not 0 < size <= _LONGEST:
        return None
    digits = word[1:] if word[0] == 0x2D else word
    if not digits.isdigit():
        return None
    if digits[0] == 0x30:
        return 0 if word == b"0" else None
    value = int(word)
    return value if INT64_MIN <= value <= INT64_MAX else None


def parse_unsigned(word: bytes) -> int | None:
    """The unsigned 64-bit integer that ``word`` spells, as a SCAN cursor does, or None.

    Looser than ``parse_integer``, as C's strtoull is: white space in front, a sign, leading zeros
    and whatever follows a NUL are taken; a canonical negative number is not.
    """
    word = word.partition(b"\0")[0]
    exact = parse_integer(word)
    if exact is not None:
        return exact if exact >= 0 else None
    word = word.lstrip(b" \t\n\v\f\r")
    if not word:
        return None
    digits = word[1:] if word[0] in b"+-" else word
    if not digits.isdigit():
        return None
    digits = digits.lstrip(b"0")
    if len(digits) > _LONGEST:
        return None
    value = int(digits) if digits else 0
    if value > UINT64_MAX:
        return None
    return value if word[0] != 0x2D else -value & UINT64_MAX


def leading_integer(word: bytes) -> int:
    """The integer that ``word`` begins with, as C's atoi reads it; 0 where there is none.

    White space in front and a sign are taken. It has 32 bits, to which a larger one is cut.
    """
    word = word.lstrip(b" \t\n\v\f\r")
    at = 1 if word[:1] in (b"+", b"-") else 0
    while at < len(word) and 0x30 <= word[at] <= 0x39:
        at += 1
    digits = word[:at].lstrip(b"+-")
    if not digits:
        return 0
    number = int(digits) if len(digits) <= _LONGEST else INT64_MAX + 1
    number = max(-number, INT64_MIN) if word[:1] == b"-" else min(number, INT64_MAX)
    return (number - INT32_MIN) % (1 << 32) + INT32_MIN


def encode_string(word: bytes) -> bytes | int:
    """The form in which a string value is kept: an int where ``word`` spells one, else as it is."""
    if 0 < len(word) <= _LONGEST and word[0] <= 0x39:
        value = parse_integer(word)
        if value is not None:
            return value
    return word
