"""Doubles as Redis reads them: scores, weights, bounds of scores."""

from __future__ import annotations

from math import inf, isinf
from typing import Final

from mypy_extensions import i64

_EXACT_DIGITS: Final = 15  # integers of so many digits are doubles
_DECIMAL: Final = b"0123456789.eE+-"
_HEXADECIMAL: Final = b"0123456789abcdefABCDEF.pPxX+-"
_INFINITE: Final = (b"INF", b"INFINITY")
_SPACE: Final = b" \t\n\v\f\r"
# Redis takes a number that is too large or too small for a double as infinity or as 0, where it has
# few digits and, as an integer times a power of ten, a power between these.
_SHORT_DIGITS: Final = 19
_LEAST_POWER: Final = -342
_GREATEST_POWER: Final = 308


def parse_double(word: bytes) -> float | None:
    """The number that ``word`` spells, infinite ones included, or None.

    It may be written in decimal or, behind ``0x``, in hexadecimal.
    """
    size: i64 = len(word)
    if 0 < size <= _EXACT_DIGITS:
        number: i64 = 0
        at: i64 = 0
        while at < size:
            char: i64 = word[at]
            if char < 0x30 or char > 0x39:
                break
            number = number * 10 + char - 0x30
            at += 1
        if at == size:
            return float(number)
    value = _spelled(word)
    if value is None:
        return None
    if value == 0 or isinf(value):
        return value if _is_in_range(word, value) else None
    return value


def parse_bound(word: bytes) -> float | None:
    """As ``parse_double``, as C's strtod reads a text: the bound of a range of scores.

    White space in front is skipped, and nothing is read from a NUL on. No text is 0. What is out of
    range is infinite or 0.
    """
    if 0 in word:
        word = word.partition(b"\0")[0]
    return _spelled(word.lstrip(_SPACE)) if word else 0.0


def _spelled(word: bytes) -> float | None:
    try:
        if not word.translate(None, _DECIMAL):
            return float(word)
        digits = word[1:] if word[:1] in (b"+", b"-") else word
        if digits[:2] in (b"0x", b"0X"):
            if digits[2:].translate(None, _HEXADECIMAL):
                return None
            return _hexadecimal(word.decode())
    except ValueError:
        return None
    if digits.upper() in _INFINITE:
        return -inf if word[0] == 0x2D else inf
    return None


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -inf if text[0] == "-" else inf


def _is_in_range(word: bytes, value: float) -> bool:
    """Whether a spelling that came to 0 or infinity stands for that."""
    text = word.lstrip(b"+-")
    if text[:2] in (b"0x", b"0X"):
        return value == 0 and not text.upper().partition(b"P")[0][2:].strip(b"0.")
    if value and text.upper() in _INFINITE:
        return True
    mantissa, _, power = text.upper().partition(b"E")
    whole, _, fraction = mantissa.partition(b".")
    digits = (whole + fraction).lstrip(b"0")
    if not digits:
        return True
    if len(digits) > _SHORT_DIGITS or len(power) > _SHORT_DIGITS:
        return False
    return _LEAST_POWER <= int(power or b"0") - len(fraction) <= _GREATEST_POWER
