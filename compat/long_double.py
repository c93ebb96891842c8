"""The arithmetic of INCRBYFLOAT: the 80-bit ``long double`` of x86-64, in exact integers.

A finite value is ``mantissa * 2**exponent`` with a signed mantissa of at most 64 bits. Reading a
number and adding two round once, to nearest with ties to even, as the hardware does, so results
agree with Redis to the last digit on any machine. Exponents are bounded on the way in, so neither
``1e999999999`` nor a number of thousands of digits costs more than microseconds.
Source: util.c of Redis 7.0, string2ld and ld2string; C11 strtold.
"""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64

MANTISSA_BITS: Final = 64
LEAST_EXPONENT: Final = -16445  # of the last bit of the smallest subnormal
GREATEST_EXPONENT: Final = 16384 - MANTISSA_BITS  # of the last bit of the greatest value
LONGEST: Final = 5 * 1024 - 1  # bytes that Redis looks at
DECIMALS: Final = 17  # that a result is written with
_PLAIN_BYTES: Final = 18
_FIVES: Final = [5**power for power in range(_PLAIN_BYTES)]
_TENS: Final = [10**power for power in range(_PLAIN_BYTES)]
_MOST_DIGITS: Final = 4000  # Python converts up to 4300 at once
_CHUNK: Final[int] = 10**_MOST_DIGITS

# Patterns that are compiled when first needed: that takes half a millisecond, which no start has.
_DECIMAL: Final = rb"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?\Z"
_HEXADECIMAL: Final = rb"([+-]?)0[xX]([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?(?:[pP]([+-]?[0-9]+))?\Z"
_INFINITE: Final = rb"[+-]?(?:inf|infinity)\Z"


class LongDouble:
    """A finite value, or an infinite one, whose mantissa is 1 or -1."""

    def __init__(self, mantissa: int, exponent: int, infinite: bool = False) -> None:
        self.mantissa: Final = mantissa
        self.exponent: Final = exponent
        self.infinite: Final = infinite


GREATEST: Final = LongDouble((1 << MANTISSA_BITS) - 1, GREATEST_EXPONENT)
LEAST: Final = LongDouble(1 - (1 << MANTISSA_BITS), GREATEST_EXPONENT)


def from_integer(value: int) -> LongDouble:
    """Return a 64-bit integer as a long double; it fits without rounding."""
    return LongDouble(value, 0)


def parse(word: bytes) -> LongDouble | None:
    """Return the number of ``word``; None for no number, NaN, overflow and underflow to 0."""
    if not 0 < len(word) <= LONGEST:
        return None
    plain = _plain(word)
    if plain is not None:
        return plain
    found = re.match(_DECIMAL, word)
    if found is not None:
        return _from_decimal(found)
    found = re.match(_HEXADECIMAL, word)
    if found is not None:
        return _from_hexadecimal(found)
    if re.match(_INFINITE, word, re.IGNORECASE):
        return _infinity(word[0] == 0x2D)
    return None


def _plain(word: bytes) -> LongDouble | None:
    """Return a decimal number of few digits and no exponent, as most are; None for all others."""
    size: i64 = len(word)
    if size > _PLAIN_BYTES:
        return None
    first: i64 = word[0]
    at: i64 = 1 if first == 0x2D or first == 0x2B else 0
    digits = size - at
    decimals: i64 = -1
    number: i64 = 0
    while at < size:
        char: i64 = word[at]
        if 0x30 <= char <= 0x39:
            number = number * 10 + char - 0x30
        elif char == 0x2E and decimals < 0:
            decimals = size - at - 1
            digits -= 1
        else:
            return None
        at += 1
    if digits <= 0:
        return None
    mantissa = int(-number if first == 0x2D else number)
    if decimals <= 0 or not number:
        return LongDouble(mantissa, 0)
    fives = _FIVES[decimals]
    if number % fives == 0:  # a number of halves, quarters, ...: exact
        return LongDouble(mantissa // fives, -int(decimals))
    return _rounded(mantissa, _TENS[decimals], 0)


def add(left: LongDouble, right: LongDouble) -> LongDouble:
    """Return the sum, rounded once; infinite when it overflows or one side is infinite."""
    if left.infinite:
        return left
    if right.infinite:
        return right
    exponent = min(left.exponent, right.exponent)
    total = _shifted(left, exponent) + _shifted(right, exponent)
    if exponent <= 0 and total.bit_length() <= MANTISSA_BITS:  # exact
        return LongDouble(total, exponent)
    return _rounded(total, 1, exponent) or _infinity(total < 0)


def milliseconds(seconds: LongDouble) -> int | None:
    """Return seconds in milliseconds, rounded up; None where infinite or far too large.

    What is below 0 by less than a millisecond is 0, as in C.
    """
    if seconds.infinite:
        return None if seconds.mantissa > 0 else -1
    product = _rounded(seconds.mantissa * 1000, 1, seconds.exponent)
    if product is None:
        return 0 if seconds.exponent < 0 else (None if seconds.mantissa > 0 else -1)
    if product.exponent > MANTISSA_BITS:
        return None if product.mantissa > 0 else -1
    if product.exponent >= 0:
        return product.mantissa << product.exponent
    return -(-product.mantissa >> -product.exponent)


def negated(value: LongDouble) -> LongDouble:
    """Return the number with the other sign."""
    return LongDouble(-value.mantissa, value.exponent, value.infinite)


def exceeds(left: LongDouble, right: LongDouble) -> bool:
    """Return whether ``left`` is the greater one."""
    if left.infinite or right.infinite:
        return _side(left) > _side(right)
    exponent = min(left.exponent, right.exponent)
    return _shifted(left, exponent) > _shifted(right, exponent)


def text(value: LongDouble) -> bytes:
    """Return a finite value in decimal, at most 17 digits after the point, no zeros at the end."""
    magnitude = abs(value.mantissa)
    if value.exponent >= 0:
        digits = _digits(magnitude << value.exponent)
    elif value.exponent >= -DECIMALS:  # a number of halves, quarters, ...: exact
        shift = -value.exponent
        whole = magnitude >> shift
        decimals = (magnitude - (whole << shift)) * _FIVES[shift]
        digits = _digits(whole)
        if decimals:
            digits += b"." + (b"%d" % (_TENS[shift] + decimals))[1:].rstrip(b"0")
    else:
        # As ``_divided`` by a power of two: to nearest, ties to even.
        scaled = magnitude * _TENS[DECIMALS]
        odd = (scaled >> -value.exponent) & 1
        scaled = (scaled + (1 << (-value.exponent - 1)) - 1 + odd) >> -value.exponent
        whole, decimals = divmod(scaled, _TENS[DECIMALS])
        digits = _digits(whole)
        if decimals:
            digits += (b".%017d" % decimals).rstrip(b"0")
    return b"-" + digits if value.mantissa < 0 and digits != b"0" else digits


def short_text(value: LongDouble) -> bytes:
    """Return a value in 17 significant digits, as C's ``%.17Lg`` writes it."""
    if value.infinite:
        return b"inf" if value.mantissa > 0 else b"-inf"
    magnitude = abs(value.mantissa)
    if not magnitude:
        return b"0"
    numerator = magnitude << max(value.exponent, 0)
    denominator = 1 << max(-value.exponent, 0)
    # The power of ten of the first digit, maybe one too high.
    power = (numerator.bit_length() - denominator.bit_length()) * 30103 // 100_000 + 1
    if numerator * 10 ** max(-power, 0) < denominator * 10 ** max(power, 0):
        power -= 1
    shift = DECIMALS - 1 - power
    digits = b"%d" % _divided(numerator * 10 ** max(shift, 0), denominator * 10 ** max(-shift, 0))
    if len(digits) > DECIMALS:  # rounded up to the next power
        power += 1
    digits = digits[:DECIMALS].rstrip(b"0")
    sign = b"-" if value.mantissa < 0 else b""
    if -5 < power < 0:
        return b"%b0.%b%b" % (sign, b"0" * (-power - 1), digits)
    if 0 <= power < DECIMALS:
        whole, rest = digits[: power + 1].ljust(power + 1, b"0"), digits[power + 1 :]
        return b"%b%b.%b" % (sign, whole, rest) if rest else sign + whole
    digits = digits[:1] + (b"." + digits[1:] if len(digits) > 1 else b"")
    return b"%b%be%c%02d" % (sign, digits, b"+" if power > 0 else b"-", abs(power))


def truncated(value: LongDouble) -> int:
    """Return the integer of a finite value, without its fraction."""
    magnitude = abs(value.mantissa)
    whole = magnitude << value.exponent if value.exponent >= 0 else magnitude >> -value.exponent
    return -whole if value.mantissa < 0 else whole


def _infinity(negative: bool) -> LongDouble:
    return LongDouble(-1 if negative else 1, 0, True)


def _side(value: LongDouble) -> int:
    """Return -1 and 1 for the infinities, 0 for all between."""
    return value.mantissa if value.infinite else 0


def _shifted(value: LongDouble, exponent: int) -> int:
    return value.mantissa << (value.exponent - exponent)


def _from_decimal(found: re.Match[bytes]) -> LongDouble | None:
    sign, whole, fraction, power = found.groups(default=b"")
    if not whole and not fraction:
        return None
    digits = (whole + fraction).lstrip(b"0")
    if not digits:
        return LongDouble(0, 0)
    exponent = _bounded(power) - len(fraction)
    if len(digits) > _MOST_DIGITS:
        # What is cut off can only decide on which side of a tie the number is.
        rest = digits[_MOST_DIGITS:]
        exponent += len(rest) - 1
        digits = digits[:_MOST_DIGITS] + (b"1" if rest.strip(b"0") else b"0")
    if not -5000 < len(digits) + exponent < 5000:
        return None
    mantissa = int(digits)
    if sign == b"-":
        mantissa = -mantissa
    if exponent >= 0:
        return _rounded(mantissa * 10**exponent, 1, 0)
    return _rounded(mantissa, 10**-exponent, 0)


def _from_hexadecimal(found: re.Match[bytes]) -> LongDouble | None:
    sign, whole, fraction, power = found.groups(default=b"")
    if not whole and not fraction:
        return None
    mantissa = int(whole + fraction, 16)
    if mantissa == 0:
        return LongDouble(0, 0)
    exponent = _bounded(power) - 4 * len(fraction)
    if not -20000 < mantissa.bit_length() + exponent < 20000:
        return None
    return _rounded(-mantissa if sign == b"-" else mantissa, 1, exponent)


def _bounded(power: bytes) -> int:
    """Return an exponent as written; where it is far out of range, some number that is too."""
    if not power:
        return 0
    digits = power.lstrip(b"+-").lstrip(b"0")
    size = int(digits) if 0 < len(digits) < 7 else (1_000_000 if digits else 0)
    return -size if power[0] == 0x2D else size


def _rounded(numerator: int, denominator: int, exponent: int) -> LongDouble | None:
    """Return ``numerator / denominator * 2**exponent`` as a long double; None if too large."""
    if numerator == 0:
        return LongDouble(0, 0)
    magnitude = abs(numerator)
    shift = magnitude.bit_length() - denominator.bit_length() - MANTISSA_BITS
    shift = max(shift, LEAST_EXPONENT - exponent)
    mantissa = _scaled(magnitude, denominator, shift)
    if mantissa.bit_length() > MANTISSA_BITS:  # one bit too many, or rounded up to the next power
        shift += 1
        mantissa = _scaled(magnitude, denominator, shift)
    if mantissa == 0 or exponent + shift > GREATEST_EXPONENT:
        return None
    return LongDouble(mantissa if numerator > 0 else -mantissa, exponent + shift)


def _scaled(numerator: int, denominator: int, shift: int) -> int:
    if shift >= 0:
        return _divided(numerator, denominator << shift)
    return _divided(numerator << -shift, denominator)


def _divided(numerator: int, denominator: int) -> int:
    """Return the quotient of two positive integers, rounded to nearest, ties to even."""
    quotient, rest = divmod(numerator, denominator)
    if 2 * rest > denominator or (2 * rest == denominator and quotient & 1):
        quotient += 1
    return quotient


def _digits(value: int) -> bytes:
    if value < _CHUNK:
        return b"%d" % value
    high, low = divmod(value, _CHUNK)
    return b"%d%04000d" % (high, low)
