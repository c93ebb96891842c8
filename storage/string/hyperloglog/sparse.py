"""The sparse form of a HyperLogLog: runs of registers that are alike.

=====================  ========================================================
``00nnnnnn``           n + 1 registers of 0 (ZERO)
``01nnnnnn nnnnnnnn``  the same, for up to 16,384 (XZERO)
``1vvvvvnn``           n + 1 registers, each v + 1, up to four of up to 32 (VAL)
=====================  ========================================================

All registers are there, in order. A register that is raised splits its run in up to three. Then the
runs around are joined where they are equal, as Redis does it and no further: strings are to be the
same.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from headrace.storage.string.hyperloglog.dense import HEADER
from headrace.storage.string.hyperloglog.hashing import REGISTERS

HIGHEST_SPARSE: Final = 32
_LONG_ZEROS: Final = 0x40
_VALUE: Final = 0x80
_LONGEST_ZEROS: Final = 64
_LONGEST_VALUES: Final = 4
_JOINED_RUNS: Final = 5  # that are looked at, from the one before the change on


class Corrupted(Exception):
    """The runs of a string do not add up to all registers."""


UNCHANGED: Final = 0
RAISED: Final = 1
TOO_LARGE: Final = 2  # for the sparse form


class Sparse:
    """A sparse string that is written to; each change makes a new string of it.

    A register is looked for from two runs before the last one that was looked for, if it stands
    behind that. The runs up to there have not changed since.

    Attributes:
        data: the string.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._last: i64 = -1  # the register that was looked for last
        # From where to look for those behind it: a run, and its first register.
        self._start: i64 = HEADER
        self._start_first: i64 = 0
        # The run that was found: where it stands and how many bytes it takes, where the run before
        # it stands (-1 for none), its registers and what they hold.
        self._at: i64 = HEADER
        self._width: i64 = 0
        self._before: i64 = -1
        self._first: i64 = 0
        self._length: i64 = 0
        self._count: i64 = 0

    def raise_register(self, index: int, count: int, most: int) -> int:
        """Raise a register to ``count``: ``UNCHANGED``, ``RAISED`` or ``TOO_LARGE``.

        Args:
            most: how many bytes the string may have when it grows.

        Raises: Corrupted.
        """
        if count > HIGHEST_SPARSE:
            return TOO_LARGE
        self._find(index)
        if self._count >= count:
            return UNCHANGED
        data = self.data
        at = int(self._at)
        if self._length == 1 and self._width == 1:
            pieces = _values(count, 1)
        else:
            old = int(self._count)
            ahead = index - int(self._first)
            behind = int(self._length) - 1 - ahead
            pieces = _alike(old, ahead) + _values(count, 1) + _alike(old, behind)
            grows = len(pieces) - int(self._width)
            if grows > 0 and len(data) + grows > most:
                return TOO_LARGE
        changed = data[:at] + pieces + data[at + int(self._width) :]
        self.data = _joined(changed, int(self._before) if self._before >= 0 else HEADER)
        return RAISED

    def _find(self, index: i64) -> None:
        """Find the run that holds a register; raises Corrupted where there is none."""
        data = self.data
        end: i64 = len(data)
        if index <= self._last:
            self._start = HEADER
            self._start_first = 0
        at: i64 = self._start
        first: i64 = self._start_first
        before: i64 = -1
        before_first: i64 = 0
        while at < end:
            byte: i64 = data[at]
            width: i64 = 1
            count: i64 = 0
            length: i64 = (byte & 0x3F) + 1
            if byte & _VALUE:
                length = (byte & 3) + 1
                count = ((byte >> 2) & 0x1F) + 1
            elif byte & _LONG_ZEROS:
                if at + 1 >= end:
                    break
                width = 2
                low: i64 = data[at + 1]
                length = (((byte & 0x3F) << 8) | low) + 1
            if index < first + length:
                self._last = index
                self._at = at
                self._width = width
                self._before = before
                self._first = first
                self._length = length
                self._count = count
                return
            if before >= 0:
                self._start = before
                self._start_first = before_first
            before = at
            before_first = first
            at += width
            first += length
        self._last = REGISTERS  # look from the front
        raise Corrupted


def _values(count: int, length: int) -> bytes:
    return bytes(((count - 1) << 2 | (length - 1) | _VALUE,))


def _alike(count: int, length: int) -> bytes:
    """A run of any length, maybe none."""
    if not length:
        return b""
    if count:
        return _values(count, length)
    if length > _LONGEST_ZEROS:
        return bytes(((length - 1) >> 8 | _LONG_ZEROS, (length - 1) & 0xFF))
    return bytes((length - 1,))


def _joined(data: bytes, at: int) -> bytes:
    """Join runs of the same value, from the one at ``at`` on."""
    for _ in range(_JOINED_RUNS):
        if at >= len(data):
            break
        byte = data[at]
        if not byte & _VALUE:
            at += 2 if byte & _LONG_ZEROS else 1
            continue
        following = data[at + 1] if at + 1 < len(data) else 0
        length = (byte & 3) + (following & 3) + 2
        if byte >> 2 == following >> 2 and length <= _LONGEST_VALUES:
            data = data[:at] + bytes((byte & 0xFC | (length - 1),)) + data[at + 2 :]
        else:
            at += 1
    return data


def raise_by_sparse(highest: vec[i64], data: bytes) -> None:
    """Raise registers to those of a sparse string where these are higher.

    Raises: Corrupted; some may have been raised then.
    """
    at: i64 = HEADER
    end: i64 = len(data)
    index: i64 = 0
    while at < end:
        byte: i64 = data[at]
        at += 1
        if byte & _VALUE:
            count: i64 = ((byte >> 2) & 0x1F) + 1
            stop: i64 = index + (byte & 3) + 1
            if stop > REGISTERS:
                raise Corrupted
            while index < stop:
                if count > highest[index]:
                    highest[index] = count
                index += 1
        elif byte & _LONG_ZEROS:
            if at >= end:
                raise Corrupted
            low: i64 = data[at]
            index += (((byte & 0x3F) << 8) | low) + 1
            at += 1
        else:
            index += (byte & 0x3F) + 1
        if index > REGISTERS:
            break
    if index != REGISTERS:
        raise Corrupted


def described(data: bytes) -> bytes:
    """The runs of a sparse string as PFDEBUG DECODE shows them."""
    words: list[bytes] = []
    at = HEADER
    while at < len(data):
        byte = data[at]
        at += 1
        if byte & _VALUE:
            words.append(b"v:%d,%d" % (((byte >> 2) & 0x1F) + 1, (byte & 3) + 1))
        elif byte & _LONG_ZEROS:
            low = data[at] if at < len(data) else 0
            words.append(b"Z:%d" % ((((byte & 0x3F) << 8) | low) + 1))
            at += 1
        else:
            words.append(b"z:%d" % ((byte & 0x3F) + 1))
    return b" ".join(words)
