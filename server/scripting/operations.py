"""Operations of Lua's libraries: ``bit``, ``struct`` and ``math.random``.

``bit`` has operations on 32-bit integers, with signed results, as Lua BitOp has them; ``struct``
packs numbers and strings as C has them in memory; ``math.random`` draws the same numbers after
every start, as in Redis.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

from headrace.server.scripting.errors import LibraryError
from headrace.server.scripting.values import (
    Operation,
    number_at,
    number_of,
    refused,
    text_at,
    whole,
    whole_at,
)

_WORD_MASK: Final = 0xFFFFFFFF
_EXACT: Final = 1 << 51
# Added to a double, it moves the whole part to the lowest bits of its mantissa: 2^52 + 2^51.
_SHIFTER: Final = 6755399441055744.0


def _word_at(words: tuple[Any, ...], index: int) -> int:
    """Return the number at a place modulo 2^32, rounded to the nearest, and halves to the even one.

    Above 2^51 it is what addition leaves of it, as in the original.
    """
    number = number_at(words, index)
    if isinstance(number, int) and -_EXACT < number < _EXACT:
        return number & _WORD_MASK
    return int.from_bytes(struct.pack("<d", number + _SHIFTER)[:4], "little")


def _signed(word: int) -> int:
    word &= _WORD_MASK
    return word - (1 << 32) if word & 0x80000000 else word


def tobit(words: tuple[Any, ...]) -> int:
    """Return a number as a 32-bit integer."""
    return _signed(_word_at(words, 0))


def bnot(words: tuple[Any, ...]) -> int:
    """Return every bit inverted."""
    return _signed(~_word_at(words, 0))


# The error is about the first bad argument of several, or else the last.


def band(words: tuple[Any, ...]) -> int:
    """Return the bits that all have."""
    result = _word_at(words, 0)
    for index in range(len(words) - 1, 0, -1):
        result &= _word_at(words, index)
    return _signed(result)


def bor(words: tuple[Any, ...]) -> int:
    """Return the bits that any has."""
    result = _word_at(words, 0)
    for index in range(len(words) - 1, 0, -1):
        result |= _word_at(words, index)
    return _signed(result)


def bxor(words: tuple[Any, ...]) -> int:
    """Return the bits that an odd number of them have."""
    result = _word_at(words, 0)
    for index in range(len(words) - 1, 0, -1):
        result ^= _word_at(words, index)
    return _signed(result)


def lshift(words: tuple[Any, ...]) -> int:
    """Return the bits shifted left."""
    word = _word_at(words, 0)
    return _signed(word << (_word_at(words, 1) & 31))


def rshift(words: tuple[Any, ...]) -> int:
    """Return the bits shifted right."""
    word = _word_at(words, 0)
    return _signed(word >> (_word_at(words, 1) & 31))


def arshift(words: tuple[Any, ...]) -> int:
    """Return the bits shifted right, with copies of the sign."""
    word = _signed(_word_at(words, 0))
    return _signed(word >> (_word_at(words, 1) & 31))


def rol(words: tuple[Any, ...]) -> int:
    """Return the bits rotated left."""
    word = _word_at(words, 0)
    count = _word_at(words, 1) & 31
    return _signed(word << count | word >> (32 - count))


def ror(words: tuple[Any, ...]) -> int:
    """Return the bits rotated right."""
    word = _word_at(words, 0)
    count = _word_at(words, 1) & 31
    return _signed(word >> count | word << (32 - count))


def bswap(words: tuple[Any, ...]) -> int:
    """Return the four bytes in reverse order."""
    word = _word_at(words, 0)
    return _signed(int.from_bytes(word.to_bytes(4, "big"), "little"))


def tohex(words: tuple[Any, ...]) -> bytes:
    """Return the lowest digits in base 16: eight, or as many as the second number says."""
    word = _word_at(words, 0)
    digits = 8 if len(words) < 2 else _signed(_word_at(words, 1))
    text = (b"%08x" % word)[8 - min(abs(digits), 8) :]
    return text.upper() if digits < 0 else text


BIT_OPERATIONS: Final[dict[str, Operation]] = {
    "tobit": tobit,
    "bnot": bnot,
    "band": band,
    "bor": bor,
    "bxor": bxor,
    "lshift": lshift,
    "rshift": rshift,
    "arshift": arshift,
    "rol": rol,
    "ror": ror,
    "bswap": bswap,
    "tohex": tohex,
}


_MOST_INTEGER: Final = 32
_MOST: Final = (1 << 31) - 1
MOST_RESULTS: Final = 7995  # that the stack of a function has room for
_LONG_MASK: Final = (1 << 64) - 1
_INTEGERS: Final = "bBhHlLTiI"
_SIGNED: Final = "bhli"
_SIZES: Final = {"b": 1, "B": 1, "h": 2, "H": 2, "l": 8, "L": 8, "T": 8, "f": 4, "d": 8, "x": 1}
_DIGITS: Final = "0123456789"
_TOO_SHORT: Final = "data string too short"


class _Format:
    """A format, which ends at a NUL as in C; with ``little`` the lowest byte comes first."""

    def __init__(self, words: tuple[Any, ...]) -> None:
        text = text_at(words, 0).decode("latin-1")
        self._text: Final = text.split("\0", 1)[0]
        self._at = 0
        self._align = 1
        self.little = True

    def ends(self) -> bool:
        return self._at >= len(self._text)

    def next(self) -> tuple[str, int]:
        """Return the next option and its size, which is 0 for what has none of its own."""
        option = self._text[self._at]
        self._at += 1
        if option == "c":
            return option, self._number(1)
        if option in "iI":
            size = self._number(4)
            if size > _MOST_INTEGER:
                text = b"integral size %d is larger than limit of %d"
                raise LibraryError(text % (size, _MOST_INTEGER))
            return option, size
        return option, _SIZES.get(option, 0)

    def _number(self, default: int) -> int:
        start = self._at
        number = 0
        while self._at < len(self._text) and self._text[self._at] in _DIGITS:
            number = 10 * number + ord(self._text[self._at]) - 48
            if number > _MOST:
                raise LibraryError(b"integral size overflow")
            self._at += 1
        return number if self._at > start else default

    def padding(self, option: str, size: int, at: int) -> int:
        """Return the bytes of padding that align an option.

        A size that is no power of two gets what C's masks make of it.
        """
        if size == 0 or option == "c":
            return 0
        size = min(size, self._align)
        return (size - (at & (size - 1))) & (size - 1)

    def control(self, option: str) -> None:
        """Apply an option that stands for no value. Raises: LibraryError."""
        if option == "<":
            self.little = True
        elif option == ">":
            self.little = False
        elif option == "!":
            align = self._number(8)
            if align <= 0 or align & (align - 1):
                raise LibraryError(b"alignment %d is not a power of 2" % align)
            self._align = align
        elif option != " ":
            raise refused(0, f"invalid format option '{option}'")

    def order(self) -> str:
        return "<" if self.little else ">"


def pack(words: tuple[Any, ...]) -> bytes:
    """Return the values, packed by the format."""
    layout = _Format(words)
    words = (*words, None)  # a value that is missing is nil
    out = bytearray()
    index = 1
    while not layout.ends():
        option, size = layout.next()
        out += bytes(layout.padding(option, size, len(out)))
        if option == "x":
            out.append(0)
        elif option in _INTEGERS:
            out += _integer(number_at(words, index), size, layout.little)
            index += 1
        elif option == "f" or option == "d":
            out += _double(number_at(words, index), layout.order() + option)
            index += 1
        elif option == "c" or option == "s":
            text = text_at(words, index)
            index += 1
            if len(text) < size:
                raise refused(index, "string too short")
            out += text[:size] if size else text
            if option == "s":
                out.append(0)
        else:
            layout.control(option)
    return bytes(out)


def _unsigned(number: float) -> int:
    """Return the unsigned 64-bit integer that C makes of a double."""
    if number >= 1 << 63:
        return (whole(number - float(1 << 63)) ^ (1 << 63)) & _LONG_MASK
    return whole(number) & _LONG_MASK


def _integer(number: float, size: int, little: bool) -> bytes:
    value = _unsigned(number)
    if size < 8:
        value &= (1 << 8 * size) - 1
    return value.to_bytes(size, "little" if little else "big")


def _double(number: float, form: str) -> bytes:
    try:
        return struct.pack(form, number)
    except OverflowError:
        return struct.pack(form, float("inf") if number > 0 else float("-inf"))


def unpack(words: tuple[Any, ...]) -> tuple[object, ...]:
    """Return the values that are packed in a string, and the place behind them."""
    layout = _Format(words)
    data = text_at(words, 1)
    length = len(data)
    at = whole_at(words, 2, 1) & _LONG_MASK
    if at == 0:
        raise refused(2, "offset must be 1 or greater")
    at -= 1
    found: list[object] = []
    while not layout.ends():
        option, size = layout.next()
        if len(found) > MOST_RESULTS:
            raise LibraryError(b"stack overflow (too many results)")
        at = (at + layout.padding(option, size, at)) & _LONG_MASK
        if at + size > length:
            raise refused(1, _TOO_SHORT)
        if option in _INTEGERS:
            found.append(_read_integer(data[at : at + size], layout.little, option in _SIGNED))
        elif option == "f" or option == "d":
            found.append(struct.unpack(layout.order() + option, data[at : at + size])[0])
        elif option == "c":
            if size == 0:
                size = _size_before(found)
                if at + size > length:
                    raise refused(1, _TOO_SHORT)
            found.append(data[at : at + size])
        elif option == "s":
            end = data.find(b"\0", at)
            if end < 0:
                raise LibraryError(b"unfinished string in data")
            found.append(data[at:end])
            size = end + 1 - at
        elif option != "x":
            layout.control(option)
        at += size
    at = (at + 1) & _LONG_MASK
    found.append(at - (1 << 64) if at >> 63 else at)
    return tuple(found)


def _size_before(found: list[object]) -> int:
    """Return the last number read, as the length of a string. Raises: LibraryError."""
    last = found.pop() if found else None
    if isinstance(last, bytes):
        last = number_of(last)
    if not isinstance(last, int | float):
        raise LibraryError(b"format 'c0' needs a previous size")
    return _unsigned(last)


def _read_integer(part: bytes, little: bool, signed: bool) -> int | float:
    number = int.from_bytes(part, "little" if little else "big") & _LONG_MASK
    if signed:
        sign = 1 << ((8 * len(part) - 1) & 63)
        mask = -sign & _LONG_MASK
        if number & mask:
            number |= mask
        return number - (1 << 64) if number >> 63 else number
    return float(number) if number >> 63 else number


def size(words: tuple[Any, ...]) -> int:
    """Return the length of the values of a format, in bytes."""
    layout = _Format(words)
    total = 0
    while not layout.ends():
        option, size = layout.next()
        total += layout.padding(option, size, total)
        if option == "s":
            raise refused(0, "option 's' has no fixed size")
        if option == "c" and size == 0:
            raise refused(0, "option 'c0' has no fixed size")
        if not (option.isascii() and option.isalnum()):
            layout.control(option)
        total += size
    return total


def pack_double(number: float) -> bytes:
    """Return a number as MessagePack has it: four bytes where they hold it, else eight."""
    try:
        short = struct.pack(">f", number)
    except OverflowError:
        short = b""
    if short and struct.unpack(">f", short)[0] == number:
        return b"\xca" + short
    return b"\xcb" + struct.pack(">d", number)


def unpack_double(part: bytes) -> float:
    """Return the number in four or eight bytes."""
    number: float = struct.unpack(">f" if len(part) == 4 else ">d", part)[0]
    return number


STRUCT_OPERATIONS: Final[dict[str, Operation]] = {"pack": pack, "unpack": unpack, "size": size}


_FACTOR: Final = 0x5DEECE66D
_START: Final = 0x1234ABCD330E
_STATE_MASK: Final = (1 << 48) - 1
_MOST_DRAWN: Final = (1 << 31) - 1


class Chance:
    """The 48-bit generator of POSIX."""

    def __init__(self) -> None:
        self._state = _START

    def random(self, words: tuple[Any, ...]) -> int | float:
        """Return the next number: below 1, or an integer in the range that is given, or from 1."""
        self._state = (self._state * _FACTOR + 0xB) & _STATE_MASK
        drawn = (self._state >> 17) % _MOST_DRAWN / _MOST_DRAWN
        if not words:
            return drawn
        if len(words) > 2:
            raise LibraryError(b"wrong number of arguments")
        low = 1 if len(words) == 1 else whole_at(words, 0)
        high = whole_at(words, len(words) - 1)
        if low > high:
            raise refused(len(words) - 1, "interval is empty")
        return math.floor(drawn * (high - low + 1)) + low

    def seed(self, words: tuple[Any, ...]) -> None:
        """Restart the sequence with a number."""
        number = whole_at(words, 0)
        self._state = ((number & 0xFFFFFFFF) << 16 | 0x330E) & _STATE_MASK
