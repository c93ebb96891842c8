"""Doubles as text."""

from __future__ import annotations

from math import copysign, isinf, isnan
from typing import Final

_WHOLE: Final = float(1 << 62)


def double(value: float) -> bytes:
    """A double in the fewest digits that no other double has; ``inf``, ``-inf``, ``nan``.

    Whole numbers are written as integers up to 2 ** 62, as Redis does since 7.2; powers of ten
    beyond as its fpconv_dtoa writes them out: seven zeros at most.
    """
    if isinf(value):
        return b"inf" if value > 0 else b"-inf"
    if isnan(value):
        return b"nan"
    if -_WHOLE <= value <= _WHOLE and value.is_integer():
        return b"%d" % int(value)
    sign = b"-" if copysign(1.0, value) < 0 else b""
    mantissa, _, power = repr(abs(value)).encode().partition(b"e")
    whole, _, fraction = mantissa.partition(b".")
    exponent = int(power or b"0") - len(fraction)
    digits = (whole + fraction).lstrip(b"0")
    size = len(digits)
    digits = digits.rstrip(b"0")
    exponent += size - len(digits)
    if not digits:
        return sign + b"0"
    return sign + _write_out(digits, exponent)


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
