"""How many bytes Redis's listpack would take for what is packed here.

Nothing here is a listpack. But what ``XTRIM ~`` removes, what XINFO counts and what OBJECT ENCODING
answers depend on where Redis starts a new node, so blocks of streams and pieces of lists are cut at
the same places. A listpack is 7 bytes, and for each element its encoding and a back length of one
byte per 7 bits of the encoding's size. Text that is a canonical 64-bit integer is encoded as one.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

EMPTY_BYTES: Final = 7
_SHORT_TEXT_BYTES: Final = 64  # below, text that is no number takes two bytes beside its own
_NUMBER_TEXT_BYTES: Final = 20  # of a 64-bit integer, its sign included, at most
_MINUS: Final = 0x2D
_ZERO: Final = 0x30
_NINE: Final = 0x39
_U64: Final = 2**64
_SMALL: Final = 2**61  # within this, a number stays unboxed in compiled code
_I64_MAX: Final = 2**63 - 1
_I64_MIN: Final = -(2**63)
# By number of digits, where that alone decides the size of a positive integer; else 0.
_POSITIVE_BYTES: Final = [0, 2, 2, 0, 0, 0, 5, 0, 6, 6, 0, 10, 10, 10, 10, 10, 10, 10, 10]


def text_bytes(text: bytes) -> i64:
    """The size of one element that holds ``text``."""
    size: i64 = len(text)
    if 0 < size <= _NUMBER_TEXT_BYTES:
        first: i64 = text[0]
        last: i64 = text[size - 1]
        if first <= _NINE and last <= _NINE and (first >= _ZERO or first == _MINUS):
            found = _number_bytes(text)
            if found:
                return found
    if size < _SHORT_TEXT_BYTES:
        return size + 2
    size += 2 if size < 4096 else 5
    return size + _back_length(size)


def _number_bytes(text: bytes) -> int:
    """The size of ``text`` as an integer element; 0 when it is no canonical integer."""
    size = len(text)
    digits = text if text[0] != _MINUS else text[1:]
    if not digits.isdigit() or (digits[0] == _ZERO and size > 1):
        return 0
    if size < len(_POSITIVE_BYTES) and text[0] != _MINUS and _POSITIVE_BYTES[size]:
        return _POSITIVE_BYTES[size]
    number = int(text)
    return integer_bytes(number) if _I64_MIN <= number <= _I64_MAX else 0


def integer_bytes(number: int) -> int:
    """The size of one element that holds a signed 64-bit ``number``, back length included."""
    if 0 <= number <= 127:
        return 2
    if -4096 <= number <= 4095:
        return 3
    if -32768 <= number <= 32767:
        return 4
    if -8388608 <= number <= 8388607:
        return 5
    if -2147483648 <= number <= 2147483647:
        return 6
    return 10


def delta_bytes(delta: int) -> int:
    """As ``integer_bytes``, for the difference of two unsigned 64-bit numbers, which wraps."""
    if -_SMALL < delta < _SMALL:
        return integer_bytes(delta)
    wrapped = delta % _U64
    return integer_bytes(wrapped - _U64 if wrapped > _I64_MAX else wrapped)


def are_as_long(first: int, last: int) -> bool:
    """Whether ``delta_bytes`` is surely the same for all differences from ``first`` to ``last``."""
    return (first < 0) == (last < 0) and delta_bytes(first) == delta_bytes(last)


def _back_length(size: i64) -> i64:
    if size <= 127:
        return 1
    if size < 16383:
        return 2
    if size < 2097151:
        return 3
    return 4 if size < 268435455 else 5
