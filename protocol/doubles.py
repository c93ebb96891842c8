"""Doubles as text."""

from __future__ import annotations

from math import copysign, isinf, isnan
from typing import Final

from librt.strings import BytesWriter, write_i16_le, write_i32_le
from mypy_extensions import i16, i32, i64

from headrace.protocol.grisu import digits_of, exponent_of_last
from headrace.protocol.wire import DECIMALS, write_bulk, write_digits

_WHOLE: Final = float(1 << 62)
_SHORT: Final[i64] = 1000
_EXACT: Final = 1e15  # whole numbers below have fewer than 16 digits
_DOLLAR_LINE: Final[i64] = 0x0A0D3024  # ``$0\r\n`` with the lowest byte first
_LONG_LINE: Final[i64] = 0x0D303124  # ``$10\r``, to be followed by a line feed
_LINE_FEED: Final = 0x0A
_END_OF_LINE: Final[i16] = 0x0A0D
_COMMA: Final = 0x2C
_MINUS: Final = 0x2D


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


def write_double(out: BytesWriter, value: float, resp3: bool) -> None:
    """Append a double to ``out``: in RESP2 as a bulk string."""
    if -_EXACT < value < _EXACT:
        whole: i64 = i64(value)
        if whole and float(whole) == value:
            _write_whole(out, whole, resp3)
            return
    text = double(value)
    if resp3:
        out.append(_COMMA)
        out.write(text)
        write_i16_le(out, _END_OF_LINE)
    else:
        write_bulk(out, text)


def _write_whole(out: BytesWriter, number: i64, resp3: bool) -> None:
    """Write a whole number without making its digits first."""
    amount = -number if number < 0 else number
    if resp3:
        out.append(_COMMA)
    else:
        size: i64 = 1 if number > 0 else 2
        limit: i64 = 10
        while limit <= amount:
            limit *= 10
            size += 1
        if size < 10:
            write_i32_le(out, i32(_DOLLAR_LINE + (size << 8)))
        else:
            write_i32_le(out, i32(_LONG_LINE + ((size - 10) << 16)))
            out.append(_LINE_FEED)
    if number < 0:
        out.append(_MINUS)
    write_digits(out, amount)
    write_i16_le(out, _END_OF_LINE)


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
