"""Integers and doubles as Redis reads them: one spelling for each integer, 64 bits."""

from __future__ import annotations

from math import inf, isinf, isnan, nan
from typing import Final

from mypy_extensions import i64

INT64_MAX: Final = (1 << 63) - 1
INT64_MIN: Final = -(1 << 63)
UINT64_MAX: Final = (1 << 64) - 1
INT32_MAX: Final = (1 << 31) - 1
INT32_MIN: Final = -(1 << 31)

_NEAR: Final = 1 << 61
_LONGEST: Final = 20  # the digits of INT64_MIN and its sign
_PLAIN_DIGITS: Final = 18  # surely no overflow of 64 bits


def parse_integer(word: bytes) -> int | None:
    """Return the signed 64-bit integer that ``word`` spells, or None.

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


def is_int64(number: int) -> bool:
    """Return whether a number fits into 64 bits; in compiled code nearly all are quick to see."""
    return -_NEAR < number < _NEAR or INT64_MIN <= number <= INT64_MAX


def parse_unsigned(word: bytes) -> int | None:
    """Return the unsigned 64-bit integer that ``word`` spells, as a SCAN cursor does, or None.

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
    """Return the integer that ``word`` begins with, as C's atoi reads it; 0 where there is none.

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
    """Return the form of a string value: an int where ``word`` spells one, else as it is."""
    if 0 < len(word) <= _LONGEST and word[0] <= 0x39:
        value = parse_integer(word)
        if value is not None:
            return value
    return word


_EXACT_DIGITS: Final[i64] = 15  # so many, as an integer, are a double
_TENS: Final = [float(10**power) for power in range(16)]  # all of them exact
_POINT: Final[i64] = 0x2E
_MINUS: Final[i64] = 0x2D
_PLUS: Final[i64] = 0x2B
_EXPONENT: Final[i64] = 0x65
_LOWER: Final[i64] = 0x20
_ZERO: Final[i64] = 0x30
_NINE: Final[i64] = 0x39
_HEXADECIMAL: Final = b"0123456789abcdefABCDEF.pPxX+-"
_INFINITE: Final = (b"INF", b"INFINITY")
_ENDS: Final = {b"+inf": inf, b"-inf": -inf, b"inf": inf}  # as bounds mostly are spelled
_SPACE: Final = b" \t\n\v\f\r"
# Redis takes a number that is too large or too small for a double as infinity or as 0, where it has
# few digits and, as an integer times a power of ten, a power between these.
_SHORT_DIGITS: Final = 19
_LEAST_POWER: Final = -342
_GREATEST_POWER: Final = 308


def parse_double(word: bytes) -> float:
    """Return the decimal or ``0x`` number of ``word``, maybe infinite; not a number for others."""
    value = _plain(word, 0)
    if not isnan(value):
        return value
    value = _spelled(word)
    if (value == 0 or isinf(value)) and not _is_in_range(word, value):
        return nan
    return value


def parse_bound(word: bytes, start: int = 0) -> float:
    """Return the bound of a range of scores from ``start`` on, as C's strtod reads a text.

    White space in front is skipped, and nothing is read from a NUL on. No text is 0. What is out of
    range is infinite or 0.
    """
    value = _plain(word, start)
    if not isnan(value):
        return value
    if word in _ENDS:
        return _ENDS[word]
    word = word[start:].partition(b"\0")[0]
    return _spelled(word.lstrip(_SPACE)) if word else 0.0


def _plain(word: bytes, at: i64) -> float:
    """Return the number in a word from a place on, if it is as most are: short, no exponent.

    Digits that make an exact double, divided by an exact power of ten, are rounded once, and so as
    they should be.
    """
    size: i64 = len(word)
    negative = at < size and i64(word[at]) == _MINUS
    if negative:
        at += 1
    digits = size - at
    if digits > _EXACT_DIGITS + 1:
        return nan
    number: i64 = 0
    fraction: i64 = -1  # how many digits it has
    while at < size:
        char: i64 = word[at]
        if _ZERO <= char <= _NINE:
            number = number * 10 + char - _ZERO
        elif char == _POINT and fraction < 0:
            fraction = size - at - 1
            digits -= 1
        else:
            return nan
        at += 1
    if digits > _EXACT_DIGITS or digits <= 0:
        return nan
    value = float(number)
    if fraction > 0:
        value /= _TENS[fraction]
    return -value if negative else value


def _spelled(word: bytes) -> float:
    try:
        if _is_decimal(word):
            return float(word)
        digits = word[1:] if word[:1] in (b"+", b"-") else word
        if digits[:2] in (b"0x", b"0X"):
            if digits[2:].translate(None, _HEXADECIMAL):
                return nan
            return _hexadecimal(word.decode())
    except ValueError:
        return nan
    if digits.upper() in _INFINITE:
        return -inf if word[0] == 0x2D else inf
    return nan


def _is_decimal(word: bytes) -> bool:
    at: i64 = 0
    size: i64 = len(word)
    while at < size:
        char: i64 = word[at]
        is_digit = _ZERO <= char <= _NINE
        if not is_digit and char != _POINT and not _is_of_exponent(char):
            return False
        at += 1
    return True


def _is_of_exponent(char: i64) -> bool:
    return char in (_MINUS, _PLUS) or char | _LOWER == _EXPONENT


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -inf if text[0] == "-" else inf


def _is_in_range(word: bytes, value: float) -> bool:
    """Return whether a spelling that came to 0 or infinity stands for that."""
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
