"""A HyperLogLog as a string: a header, and registers in a sparse or in a dense form.

**The hash** says which register an element belongs to, and what it counts there. It is
MurmurHash64A by Austin Appleby, which is in the public domain, with Redis's seed. Its products are
taken modulo 2**64. Compiled, 64-bit integers do that by themselves.

**The dense form** has 16,384 registers of 6 bits, the lowest bits first. Four registers lie in
three bytes; sixteen in twelve, and eight in the lower six of eight bytes, which are read at once.

**The sparse form** has runs of registers that are alike.

=====================  ========================================================
``00nnnnnn``           n + 1 registers of 0 (ZERO)
``01nnnnnn nnnnnnnn``  the same, for up to 16,384 (XZERO)
``1vvvvvnn``           n + 1 registers, each v + 1, up to four of up to 32 (VAL)
=====================  ========================================================

All registers are there, in order. A register that is raised splits its run in up to three. Then the
runs around are joined where they are equal, as Redis does it and no further: strings are to be the
same.

**The estimate** is how many different elements the registers have seen. Source: O. Ertl, "New
cardinality estimation algorithms for HyperLogLog sketches", arXiv 1702.01284.

=====  ====  =========================================================================
bytes
=====  ====  =========================================================================
0      4     ``HYLL``
4      1     the form: 0 dense, 1 sparse
5      3     nothing
8      8     the estimate when it was asked for last; its highest bit says that it is old
16           the registers
=====  ====  =========================================================================

It is sparse until it has grown to the size that the configuration says, or a register to more than
the sparse form can hold.
"""

from __future__ import annotations

import math
from types import FunctionType
from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from librt.vecs import append, extend, vec
from mypy_extensions import i64

INDEX_BITS: Final = 14
REGISTERS: Final = 1 << INDEX_BITS
LONGEST_RUN: Final = 51  # of zeros and the one behind them, in the bits that name no register

_SEED: Final = 0xADC83B19
_FACTOR: Final = 0xC6A4A7935BD1E995
_SIGNED_FACTOR: Final = -0x395B586CA42E166B  # the same as a signed number
_ALL: Final = 0xFFFFFFFFFFFFFFFF
_SHIFT: Final = 47
_SHIFTED: Final = 0x1FFFF  # the bits that are left behind the shift
_ABOVE: Final = 1 << 64 - INDEX_BITS  # a bit above those that are left


def place_of(element: bytes) -> i64:
    """Return a register, and above its ``INDEX_BITS`` the count that an element brings there."""
    if _COMPILED:
        hashed = _hash(element)
        rest = hashed >> INDEX_BITS | _ABOVE
        index = hashed & (REGISTERS - 1)
    else:
        plainly = _hash_plainly(element)
        rest = plainly >> INDEX_BITS | _ABOVE
        index = plainly & (REGISTERS - 1)
    count: i64 = 1
    while not rest & 1:
        rest >>= 1
        count += 1
    return count << INDEX_BITS | index


def _hash(data: bytes) -> i64:
    """Return the hash as a signed number; only compiled code can do this."""
    factor: i64 = _SIGNED_FACTOR
    size: i64 = len(data)
    seed: i64 = _SEED
    mixed: i64 = seed ^ (size * factor)
    at: i64 = 0
    while at + 8 <= size:
        word: i64 = read_i64_le(data, at) * factor
        word ^= (word >> _SHIFT) & _SHIFTED
        mixed = (mixed ^ (word * factor)) * factor
        at += 8
    if at < size:
        rest: i64 = 0
        shift: i64 = 0
        while at < size:
            byte: i64 = data[at]
            rest |= byte << shift
            shift += 8
            at += 1
        mixed = (mixed ^ rest) * factor
    mixed ^= (mixed >> _SHIFT) & _SHIFTED
    mixed *= factor
    return mixed ^ ((mixed >> _SHIFT) & _SHIFTED)


def _hash_plainly(data: bytes) -> int:
    whole = len(data) & -8
    mixed = _SEED ^ (len(data) * _FACTOR & _ALL)
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little") * _FACTOR & _ALL
        word ^= word >> _SHIFT
        mixed = (mixed ^ (word * _FACTOR & _ALL)) * _FACTOR & _ALL
    if whole < len(data):
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _ALL
    mixed ^= mixed >> _SHIFT
    mixed = mixed * _FACTOR & _ALL
    return mixed ^ (mixed >> _SHIFT)


_COMPILED: Final = not isinstance(_hash, FunctionType)


HEADER: Final = 16
DENSE_SIZE: Final = HEADER + REGISTERS * 6 // 8
_BITS: Final = 6
_MASK: Final = 0x3F
_AT_ONCE: Final = 8  # registers
_BYTES_AT_ONCE: Final = 6
_WORD_MASK: Final[i64] = (1 << 48) - 1


def set_dense(sketch: bytearray, index: i64, count: i64) -> bool:
    """Raise a register to ``count``; False where it is as high already."""
    place = HEADER + (index * _BITS >> 3)
    shift = index * _BITS & 7
    both: i64 = sketch[place]
    if shift > 2:  # the last register ends with the last byte
        high: i64 = sketch[place + 1]
        both |= high << 8
    if (both >> shift) & _MASK >= count:
        return False
    mask: i64 = _MASK
    both = both & ~(mask << shift) | count << shift
    sketch[place] = int(both & 0xFF)
    if shift > 2:
        sketch[place + 1] = int(both >> 8)
    return True


def raise_by_dense(highest: vec[i64], data: bytes) -> None:
    """Raise registers to those of a dense string where these are higher."""
    padded = data + b"\0\0"  # so that eight bytes can be read everywhere
    at: i64 = HEADER
    index: i64 = 0
    while index < REGISTERS:
        word: i64 = read_i64_le(padded, at) & _WORD_MASK
        end: i64 = index + _AT_ONCE
        if not word:  # most are, of a sketch that has seen little
            index = end
        while index < end:
            count: i64 = word & _MASK
            if count > highest[index]:
                highest[index] = count
            word >>= _BITS
            index += 1
        at += _BYTES_AT_ONCE


def packed(registers: vec[i64], header: bytes) -> bytearray:
    """Return a dense string of these registers."""
    writer = BytesWriter()
    writer.write(header)
    index: i64 = 0
    while index < REGISTERS:
        word: i64 = 0
        shift: i64 = 0
        while shift < _AT_ONCE * _BITS:
            word |= registers[index] << shift
            shift += _BITS
            index += 1
        write_i64_le(writer, word)
        writer.truncate(len(writer) - (_AT_ONCE - _BYTES_AT_ONCE))
    return bytearray(writer.getvalue())


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
    """A sparse string, in ``data``, that is written to; each change makes a new string of it.

    A register is looked for from two runs before the last one that was looked for, if it stands
    behind that. The runs up to there have not changed since.
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
        """Raise a register; the string may grow to ``most`` bytes. Raises: Corrupted.

        Returns: ``UNCHANGED``, ``RAISED`` or ``TOO_LARGE``.
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
        """Find the run that holds a register. Raises: Corrupted where there is none."""
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
    if not length:
        return b""
    if count:
        return _values(count, length)
    if length > _LONGEST_ZEROS:
        return bytes(((length - 1) >> 8 | _LONG_ZEROS, (length - 1) & 0xFF))
    return bytes((length - 1,))


def _joined(data: bytes, at: int) -> bytes:
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
    """Raise registers to those of a sparse string. Raises: Corrupted; some may be raised then."""
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
    """Return the runs of a sparse string as PFDEBUG DECODE shows them."""
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


_ALPHA: Final = 0.721347520444481703680  # 0.5 / ln(2)
_NO_NUMBER: Final = -(2**63)  # what C makes of an infinite one
_COUNTS: Final = 64


def estimate(registers: vec[i64]) -> int:
    """Return the number of elements; -2**63 where all registers are at their highest."""
    return from_histogram(_histogram(registers))


def _histogram(registers: vec[i64]) -> vec[i64]:
    found = vec[i64]()
    for _ in range(_COUNTS):
        found = append(found, 0)
    at: i64 = 0
    while at < REGISTERS:
        found[registers[at]] += 1
        at += 1
    return found


def from_histogram(found: vec[i64]) -> int:
    """Return the estimate from how many registers hold each count."""
    total = float(REGISTERS)
    mean = total * _tau((total - int(found[LONGEST_RUN])) / total)
    for count in range(LONGEST_RUN - 1, 0, -1):
        mean += int(found[count])
        mean *= 0.5
    mean += total * _sigma(int(found[0]) / total)
    if mean == 0.0:
        return _NO_NUMBER
    exact = _ALPHA * total * total / mean
    whole = math.floor(exact)
    return whole + 1 if exact - whole >= 0.5 else whole


def _sigma(share: float) -> float:
    if share == 1.0:
        return math.inf
    factor = 1.0
    total = share
    before = -1.0
    while before != total:
        share *= share
        before = total
        total += share * factor
        factor += factor
    return total


def _tau(share: float) -> float:
    if share in (0.0, 1.0):
        return 0.0
    factor = 1.0
    total = 1.0 - share
    before = -1.0
    while before != total:
        share = math.sqrt(share)
        before = total
        factor *= 0.5
        total -= math.pow(1.0 - share, 2.0) * factor
    return total / 3.0


_DENSE_HEAD: Final = b"HYLL\x00"
_SPARSE_HEAD: Final = b"HYLL\x01"
EMPTY: Final = _SPARSE_HEAD + bytes(11) + b"\x7f\xff"  # one run of zeros
_FORM: Final = 4
_DENSE: Final = 0
ESTIMATE: Final = 8
_AGE: Final = 15  # the byte of the estimate with the bit that says that it is old
_OLD: Final = 0x80
_FIRST_ZEROS: Final = 64  # registers that are made one by one: all others are copies


def is_sketch(value: bytes | bytearray) -> bool:
    """Return whether a string looks like one; a sparse one is looked through when it is read."""
    head = bytes(value[: _FORM + 1])
    size = len(value)
    return (head == _SPARSE_HEAD and size >= HEADER) or (head == _DENSE_HEAD and size == DENSE_SIZE)


def is_dense(sketch: bytes | bytearray) -> bool:
    """Return whether it has the dense form."""
    return sketch[_FORM] == _DENSE


def known_estimate(sketch: bytearray) -> int | None:
    """Return the estimate that it holds, or None where that is old."""
    number = read_i64_le(bytes(sketch[ESTIMATE:HEADER]), 0)
    return None if number < 0 else int(number)


def keep_estimate(sketch: bytearray, number: int) -> None:
    """Store the estimate."""
    sketch[ESTIMATE:HEADER] = (number & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")


def forget_estimate(sketch: bytearray) -> None:
    """Mark the estimate as old, because a register has changed."""
    sketch[_AGE] |= _OLD


def add(sketch: bytearray, words: list[bytes], first: int, most: int) -> int:
    """Add the elements ``words[first:]``; return how many of them have raised a register.

    The sparse form may have ``most`` bytes. Raises: Corrupted; nothing is added then.
    """
    raised = 0
    at = first
    end = len(words)
    if not is_dense(sketch):
        sparse = Sparse(bytes(sketch))
        while at < end:
            place = place_of(words[at])
            result = sparse.raise_register(
                int(place & (REGISTERS - 1)), int(place >> INDEX_BITS), most
            )
            if result == TOO_LARGE:
                break
            raised += result == RAISED
            at += 1
        if at < end:
            sketch[:] = made_dense(sparse.data)
        elif raised:
            sketch[:] = sparse.data
    if raised:
        forget_estimate(sketch)
    return raised + add_to_dense(sketch, words, at)


def add_to_dense(sketch: bytearray, words: list[bytes], first: int) -> int:
    """Add as ``add`` to one in the dense form, which it keeps for ever."""
    raised = 0
    for at in range(first, len(words)):
        place = place_of(words[at])
        raised += set_dense(sketch, place & (REGISTERS - 1), place >> INDEX_BITS)
    if raised:
        forget_estimate(sketch)
    return raised


def made_dense(sketch: bytes) -> bytearray:
    """Return a sparse one in the dense form. Raises: Corrupted."""
    union = Union()
    union.take(sketch)
    return packed(union.registers, _DENSE_HEAD + sketch[_FORM + 1 : HEADER])


class Union:
    """The union of sketches: ``registers`` has the highest counts; one of them was ``dense``."""

    def __init__(self) -> None:
        self.registers = vec[i64]([0] * _FIRST_ZEROS)
        while len(self.registers) < REGISTERS:
            self.registers = extend(self.registers, self.registers)
        self.dense = False

    def take(self, sketch: bytes) -> None:
        """Take one more sketch. Raises: Corrupted."""
        if is_dense(sketch):
            self.dense = True
            raise_by_dense(self.registers, sketch)
        else:
            raise_by_sparse(self.registers, sketch)

    def see(self, elements: list[bytes]) -> None:
        """Take the sketch that would have seen these elements."""
        registers = self.registers
        for element in elements:
            place = place_of(element)
            index = place & (REGISTERS - 1)
            count = place >> INDEX_BITS
            if registers[index] < count:
                registers[index] = count

    def estimate(self) -> int:
        """Return how many different elements they have seen."""
        return estimate(self.registers)

    def write(self, sketch: bytearray, most: int) -> None:
        """Raise the registers of one that was taken, or is empty, to these.

        It becomes dense if one of the others is, or if the sparse form would have more than
        ``most`` bytes.
        """
        if self.dense or not self._write_sparse(sketch, most):
            sketch[:] = packed(self.registers, _DENSE_HEAD + sketch[_FORM + 1 : HEADER])
        forget_estimate(sketch)

    def _write_sparse(self, sketch: bytearray, most: int) -> bool:
        """Raise the registers of a sparse one; False where it would be too large, and unchanged."""
        sparse = Sparse(bytes(sketch))
        for index in range(REGISTERS):
            count = int(self.registers[index])
            if count and sparse.raise_register(index, count, most) == TOO_LARGE:
                return False
        sketch[:] = sparse.data
        return True
