"""Doubles as text, with the digits that Redis finds.

The digits are those of Grisu2. They name no other double, but in a few cases of a thousand they are
not the fewest, nor the closest ones: 1e23 becomes 9999999999999999 times ten to the 7th. To write
what Redis writes it takes the same steps, with 64-bit products that are rounded alike.

A double stands between two neighbours, and whatever lies closer to it than to them names it. The
middle and these two bounds are multiplied by a power of ten that makes their exponents small. Then
the digits of the upper bound are taken one by one, until what is left is less than the distance of
the bounds, and the last digit is lowered for as long as that leads closer to the double.

Products are put together from three limbs of 22 bits, because a machine word here has a sign.
Source: F. Loitsch, Printing Floating-Point Numbers Quickly and Accurately with Integers, 2010.
"""

from __future__ import annotations

from math import copysign, isinf, isnan
from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_f64_le, write_i16_le, write_i32_le
from mypy_extensions import i16, i32, i64

from headrace.protocol.wire import DECIMALS, write_bulk, write_digits

_FRACTION_BITS: Final[i64] = 52
_FRACTION_MASK: Final[i64] = (1 << 52) - 1
_HIDDEN: Final[i64] = 1 << 52
_EXPONENT_MASK: Final[i64] = 0x7FF
_BIAS: Final[i64] = 1075
_LIMB_MASK: Final[i64] = (1 << 22) - 1
_LOW_BITS: Final[i64] = 24  # of a product; the high ones are 40
_LOW_MASK: Final[i64] = (1 << 24) - 1

# The powers of ten to multiply with, as 64 bits and a binary exponent: 10**-348, 10**-340, ...
_FIRST_POWER: Final = -348
_STEP: Final = 8
_POWERS: Final = 87
_LEAST_EXPONENT: Final[i64] = -60  # of a product
_GREATEST_EXPONENT: Final[i64] = -32
_LOG_2: Final = 0.30102999566398114

_WORD_BITS: Final[i64] = 62
_ONES: Final[i64] = (1 << 62) - 1
_TENS: Final = [10**n for n in range(10)]


class Power:
    """A power of ten in three limbs, the last of 20 bits."""

    def __init__(self, power: int) -> None:
        if power >= 0:
            numerator, denominator = 10**power, 1
        else:
            numerator, denominator = 1, 10**-power
        exponent = numerator.bit_length() - denominator.bit_length() - 64
        if _rounded(numerator, denominator, exponent).bit_length() > 64:
            exponent += 1
        elif _rounded(numerator, denominator, exponent).bit_length() < 64:
            exponent -= 1
        bits = _rounded(numerator, denominator, exponent)
        self.low: Final[i64] = bits & 0x3FFFFF
        self.middle: Final[i64] = bits >> 22 & 0x3FFFFF
        self.high: Final[i64] = bits >> 44
        self.exponent: Final[i64] = exponent


def _rounded(numerator: int, denominator: int, exponent: int) -> int:
    if exponent > 0:
        denominator <<= exponent
    else:
        numerator <<= -exponent
    return (2 * numerator + denominator) // (2 * denominator)


_powers: Final[list[Power | None]] = [None] * _POWERS  # each made when it is first needed


def _power(index: i64) -> Power:
    power = _powers[index]
    if power is None:
        power = _powers[index] = Power(_FIRST_POWER + int(index) * _STEP)
    return power


class Digits:
    """The digits of the double looked at last, times ten to the ``exponent``."""

    def __init__(self) -> None:
        self.exponent: i64 = 0
        # The product made last: 40 bits above 24.
        self._high: i64 = 0
        self._low: i64 = 0

    def _multiply(self, bits_high: i64, bits_low: i64, power: Power) -> None:
        """Multiply 64 bits, given as 32 and 32, with a power, and keep the upper 64, rounded."""
        low: i64 = bits_low & _LIMB_MASK
        middle: i64 = bits_low >> 22 | (bits_high & 0xFFF) << 10
        high: i64 = bits_high >> 12
        total: i64 = low * power.low >> 22
        total += low * power.middle + middle * power.low
        total = (total >> 22) + low * power.high + middle * power.middle + high * power.low
        total = (total + (1 << 19) >> 20) + (middle * power.high + high * power.middle << 2)
        self._high = high * power.high + (total >> 24)
        self._low = total & _LOW_MASK

    def of(self, value: float) -> bytes:
        """Return the digits of the amount of a finite value that is not 0."""
        out = BytesWriter()
        write_f64_le(out, value)
        bits = read_i64_le(out.getvalue(), 0)
        fraction: i64 = bits & _FRACTION_MASK
        exponent: i64 = bits >> _FRACTION_BITS & _EXPONENT_MASK
        if exponent:
            fraction += _HIDDEN
            exponent -= _BIAS
        else:
            exponent = 1 - _BIAS
        # The bounds are given with 2 bits more than the double itself.
        above: i64 = 4 * fraction + 2
        below: i64 = 4 * fraction - (1 if fraction == _HIDDEN else 2)
        middle: i64 = 4 * fraction
        shift: i64 = 0
        while above < 1 << 54:
            above <<= 1
            shift += 1
        exponent -= 2 + shift + 9  # 55 bits become 64
        power = _power(self._nearest(exponent))
        return self._generate(middle << shift, below << shift, above, exponent, power)

    def _nearest(self, exponent: i64) -> i64:
        """Return the place of the power that makes a binary exponent small, above 0 or below."""
        wanted = -float(exponent + _POWERS) * _LOG_2
        index: i64 = (int(wanted) - _FIRST_POWER) // _STEP
        while True:
            power = _power(index)
            product: i64 = exponent + power.exponent + 64
            if product < _LEAST_EXPONENT:
                index += 1
            elif product > _GREATEST_EXPONENT:
                index -= 1
            else:
                self.exponent = _STEP * -index - _FIRST_POWER
                return index

    def _generate(self, middle: i64, below: i64, above: i64, exponent: i64, power: Power) -> bytes:
        """Multiply, and take digits; all three numbers have 55 bits or less."""
        self._multiply(middle >> 23, (middle & 0x7FFFFF) << 9, power)
        middle_high = self._high
        middle_low = self._low
        self._multiply(below >> 23, (below & 0x7FFFFF) << 9, power)
        below_high = self._high
        below_low = self._low + 1
        self._multiply(above >> 23, (above & 0x7FFFFF) << 9, power)
        high = self._high
        low = self._low - 1
        if low < 0:
            low += 1 << 24
            high -= 1
        # What follows may be large where a double has few bits: ``int`` and no machine word.
        gap: int = int(high - middle_high) * (1 << 24) + int(low - middle_low)
        delta: int = int(high - below_high) * (1 << 24) + int(low - below_low)
        point: i64 = -(exponent + power.exponent + 64)
        whole: i64 = high >> (point - _LOW_BITS)
        part: i64 = (high & _ones(point - _LOW_BITS)) << _LOW_BITS | low
        digits = bytearray()
        kappa: i64 = 10
        while kappa > 0:
            kappa -= 1
            unit: i64 = _TENS[kappa]
            digit: i64 = whole // unit
            whole -= digit * unit
            if digit or digits:
                digits.append(0x30 + digit)
            rest: int = (int(whole) << int(point)) + int(part)
            if rest <= delta:
                self.exponent += kappa
                return _lowered(digits, delta, rest, int(unit) << int(point), gap)
        # All numbers are halved from here on: ten times as much would not fit a machine word.
        mask = _ones(point - 1)
        while True:
            part *= 5
            delta *= 5
            gap *= 5
            kappa -= 1
            digit = part >> (point - 1)
            if digit or digits:
                digits.append(0x30 + digit)
            part &= mask
            if part < delta:
                self.exponent += kappa
                return _lowered(digits, delta, int(part), int(mask) + 1, gap)
            part *= 2
            delta *= 2
            gap *= 2


def _ones(count: i64) -> i64:
    """Return so many ones; mypyc cannot shift a constant to the left by more than 30."""
    return _ONES >> (_WORD_BITS - count)


def _lowered(digits: bytearray, delta: int, rest: int, unit: int, gap: int) -> bytes:
    """Return the digits, the last one lowered as long as that leads closer to the double."""
    while (
        rest < gap
        and delta - rest >= unit
        and (rest + unit < gap or gap - rest > rest + unit - gap)
    ):
        digits[-1] -= 1
        rest += unit
    return bytes(digits)


_digits: Final = Digits()


def digits_of(value: float) -> bytes:
    """Return the digits of a finite value that is not 0, unsigned, and set ``exponent``."""
    return _digits.of(value)


def exponent_of_last() -> i64:
    """Return the power of ten to multiply those digits with that ``digits_of`` returned last."""
    return _digits.exponent


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
    """Return a double as Redis writes it, in digits that no other has; ``inf``, ``-inf``, ``nan``.

    Whole numbers are written as integers up to 2**62, powers of ten beyond with seven zeros at
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
    """Return a double as ``double``, also whole numbers in digits and zeros behind them."""
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
