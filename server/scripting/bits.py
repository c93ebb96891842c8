"""``bit``: operations on 32-bit integers, with signed results, as Lua BitOp has them."""

from __future__ import annotations

import struct
from typing import Any, Final

from headrace.server.scripting.values import Operation, number_at

_MASK: Final = 0xFFFFFFFF
_EXACT: Final = 1 << 51
# Added to a double, it moves the whole part to the lowest bits of its mantissa: 2^52 + 2^51.
_SHIFTER: Final = 6755399441055744.0


def _word_at(words: tuple[Any, ...], index: int) -> int:
    """The number at a place modulo 2^32, rounded to the nearest, and halves to the even one.

    Above 2^51 it is what addition leaves of it, as in the original.
    """
    number = number_at(words, index)
    if isinstance(number, int) and -_EXACT < number < _EXACT:
        return number & _MASK
    return int.from_bytes(struct.pack("<d", number + _SHIFTER)[:4], "little")


def _signed(word: int) -> int:
    word &= _MASK
    return word - (1 << 32) if word & 0x80000000 else word


def tobit(words: tuple[Any, ...]) -> int:
    """A number as a 32-bit integer."""
    return _signed(_word_at(words, 0))


def bnot(words: tuple[Any, ...]) -> int:
    """Every bit turned round."""
    return _signed(~_word_at(words, 0))


# Of several bad arguments, the first is complained of, or else the last.


def band(words: tuple[Any, ...]) -> int:
    """The bits that all have."""
    result = _word_at(words, 0)
    for index in range(len(words) - 1, 0, -1):
        result &= _word_at(words, index)
    return _signed(result)


def bor(words: tuple[Any, ...]) -> int:
    """The bits that any has."""
    result = _word_at(words, 0)
    for index in range(len(words) - 1, 0, -1):
        result |= _word_at(words, index)
    return _signed(result)


def bxor(words: tuple[Any, ...]) -> int:
    """The bits that an odd number of them have."""
    result = _word_at(words, 0)
    for index in range(len(words) - 1, 0, -1):
        result ^= _word_at(words, index)
    return _signed(result)


def lshift(words: tuple[Any, ...]) -> int:
    """The bits moved up."""
    word = _word_at(words, 0)
    return _signed(word << (_word_at(words, 1) & 31))


def rshift(words: tuple[Any, ...]) -> int:
    """The bits moved down."""
    word = _word_at(words, 0)
    return _signed(word >> (_word_at(words, 1) & 31))


def arshift(words: tuple[Any, ...]) -> int:
    """The bits moved down, the sign staying."""
    word = _signed(_word_at(words, 0))
    return _signed(word >> (_word_at(words, 1) & 31))


def rol(words: tuple[Any, ...]) -> int:
    """The bits moved round, upwards."""
    word = _word_at(words, 0)
    count = _word_at(words, 1) & 31
    return _signed(word << count | word >> (32 - count))


def ror(words: tuple[Any, ...]) -> int:
    """The bits moved round, downwards."""
    word = _word_at(words, 0)
    count = _word_at(words, 1) & 31
    return _signed(word >> count | word << (32 - count))


def bswap(words: tuple[Any, ...]) -> int:
    """The four bytes in the other order."""
    word = _word_at(words, 0)
    return _signed(int.from_bytes(word.to_bytes(4, "big"), "little"))


def tohex(words: tuple[Any, ...]) -> bytes:
    """The lowest digits in base 16: eight, or as many as the second number says."""
    word = _word_at(words, 0)
    digits = 8 if len(words) < 2 else _signed(_word_at(words, 1))
    text = (b"%08x" % word)[8 - min(abs(digits), 8) :]
    return text.upper() if digits < 0 else text


OPERATIONS: Final[dict[str, Operation]] = {
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
