"""Doubles as text."""

from __future__ import annotations

from math import copysign, isinf, isnan
from typing import Final

from mypy_extensions import i64

from headrace.protocol.grisu import digits_of, exponent_of_last
from headrace.protocol.wire import DECIMALS

_WHOLE: Final = float(1 << 62)
_SHORT: Final[i64] = 1000


def double(value: float) -> bytes:
    """A double as Redis writes it, in digits that no other double has; ``inf``, ``-inf``, ``nan``.

    Whole numbers are written as integers up to 2 ** 62, powers of ten beyond with seven zeros at
    most.
    """
    if -_WHOLE <= value <= _WHOLE:
        whole: i64 = i64(value)
        if float(whole) == value and whole:
            return DECIMALS[whole] if 0 < whole < _SHORT else b"%d" % int(whole)
    return in_digits(value)


def in_digits(value: float) -> bytes:
    """As ``double``, with no other way to write whole numbers: digits, and zeros behind them."""
    if isnan(value):
        return b"nan"
    if value == 0:
        text = b"0"
    elif isinf(value):
        text = b"inf"
    else:
        digits = digits_of(value)
        text = _write_out(digits, int(exponent_of_last()))
    return b"-" + text if copysign(1.0, value) < 0 else text


def _write_out(digits: bytes, exponent: int) -> bytes:
    """``digits`` times ten to the ``exponent``."""
    size = len(digits)
    leading = exponent + size - 1  # power of ten of the first digit
    if exponent >= 0 and leading < size + 7:
        return digits + b"0" * exponent
    if -7 < exponent < 0 or (exponent < 0 and abs(leading) < 4):
        point = size + exponent
        if point <= 0:
            return b"0." + b"0" * -point + digits
        return digits[:point] + b"." + digits[point:]
    mantissa = digits[:1] + b"." + digits[1:] if size > 1 else digits
    return b"%be%b%d" % (mantissa, b"-" if leading < 0 else b"+", abs(leading))
