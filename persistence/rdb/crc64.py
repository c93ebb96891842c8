"""CRC-64 as Redis has it, with the polynomial of Jones.

Compiled, eight bytes are taken in at once, each with a table of its own: the effect of a byte
depends on how many bytes come after it, and on nothing else. The pure build leaves the same work to
a library in C, which takes in one byte after the other.

Source: M. Kounavis, F. Berry, "A Systematic Approach to Building High Performance Software-based
CRC Generators", the part on slicing by 8.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Final

from librt.strings import read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64

_JONES: Final = 0x1AD93D23594C935A9  # the highest power first
_REFLECTED: Final = 0x95AC9329AC4BC9B5  # the lowest power in the highest bit, and without the first
_WORD: Final = 8
_BYTE: Final[i64] = 0xFF
_WITHOUT_HIGHEST: Final[i64] = (1 << 56) - 1  # byte, which a shift to the right fills with the sign
_ENTRIES: Final[i64] = 256  # of a table


class _Made:
    """Tables made when the first checksum is asked for, because many servers never need one."""

    def __init__(self) -> None:
        self.tables = vec[i64]()  # the first is for a byte with none behind it, and so on
        self.plainly: list[Callable[[bytes, int], int]] = []


_made: Final = _Made()


def crc64(data: bytes, before: int) -> int:
    """Return the checksum of some bytes behind those whose checksum is ``before``."""
    if not _COMPILED:
        return _plainly(data, before)
    if not len(_made.tables):
        _made.tables = _tables()
    return _unsigned(_sliced(data, _signed(before), _made.tables))


def crc64_ahead(crc: int, size: int) -> int:
    """Return a checksum as it becomes by ``size`` zeros behind it.

    A checksum is the remainder of a polynomial, so that is a product: with x to the power of so
    many bits. The checksums of texts that differ in their beginnings differ by this of the
    difference of the beginnings' checksums.
    """
    power = 1 << 63  # x to the power of 0
    factor = 1 << 55  # of 8
    while size:
        if size & 1:
            power = _product(power, factor)
        factor = _product(factor, factor)
        size >>= 1
    return _product(crc, power)


def _product(one: int, other: int) -> int:
    product = 0
    for bit in range(63, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = (other >> 1) ^ _REFLECTED if other & 1 else other >> 1
    return product


def _sliced(data: bytes, crc: i64, tables: vec[i64]) -> i64:
    at: i64 = 0
    end: i64 = len(data)
    while at + _WORD <= end:
        crc ^= read_i64_le(data, at)
        crc = (
            tables[1792 + (crc & _BYTE)]
            ^ tables[1536 + ((crc >> 8) & _BYTE)]
            ^ tables[1280 + ((crc >> 16) & _BYTE)]
            ^ tables[1024 + ((crc >> 24) & _BYTE)]
            ^ tables[768 + ((crc >> 32) & _BYTE)]
            ^ tables[512 + ((crc >> 40) & _BYTE)]
            ^ tables[256 + ((crc >> 48) & _BYTE)]
            ^ tables[(crc >> 56) & _BYTE]
        )
        at += _WORD
    while at < end:
        byte: i64 = data[at]
        crc = tables[(crc ^ byte) & _BYTE] ^ ((crc >> 8) & _WITHOUT_HIGHEST)
        at += 1
    return crc


def _tables() -> vec[i64]:
    made = vec[i64]()
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ _REFLECTED if crc & 1 else crc >> 1
        made = append(made, _signed(crc))
    at: i64 = 0
    while at < (_WORD - 1) * _ENTRIES:
        crc_before = made[at]
        behind = made[crc_before & _BYTE]  # of one byte more, which is zero
        made = append(made, behind ^ ((crc_before >> 8) & _WITHOUT_HIGHEST))
        at += 1
    return made


def _signed(crc: int) -> i64:
    return crc - (1 << 64) if crc >> 63 else crc


def _unsigned(crc: int) -> int:
    return crc + (1 << 64) if crc < 0 else crc


def _plainly(data: bytes, before: int) -> int:
    if not _made.plainly:
        import crcmod  # late: it makes a table

        _made.plainly.append(crcmod.mkCrcFun(_JONES, initCrc=0, rev=True, xorOut=0))
    return _made.plainly[0](data, before)


_COMPILED: Final = not isinstance(_sliced, FunctionType)
