"""CRC-64 as Redis has it, with the polynomial of Jones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_JONES: Final = 0x1AD93D23594C935A9
_made: list[Callable[[bytes, int], int]] = []


def crc64(data: bytes, before: int) -> int:
    """The checksum of some bytes, and of those before them, whose checksum is ``before``."""
    if not _made:
        _made.append(_make())
    return _made[0](data, before)


def _make() -> Callable[[bytes, int], int]:
    import crcmod  # late: it makes tables, which many servers never need

    return crcmod.mkCrcFun(_JONES, initCrc=0, rev=True, xorOut=0)
