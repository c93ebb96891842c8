"""A HyperLogLog as a string: a header, and registers in a sparse or in a dense form.

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

from typing import Final

from librt.strings import read_i64_le
from librt.vecs import vec
from mypy_extensions import i64

from headrace.storage.string.hyperloglog.dense import (
    DENSE_SIZE,
    HEADER,
    packed,
    raise_by_dense,
    set_dense,
)
from headrace.storage.string.hyperloglog.estimate import estimate
from headrace.storage.string.hyperloglog.hashing import INDEX_BITS, REGISTERS, place_of
from headrace.storage.string.hyperloglog.sparse import RAISED, TOO_LARGE, Sparse, raise_by_sparse

_DENSE_HEAD: Final = b"HYLL\x00"
_SPARSE_HEAD: Final = b"HYLL\x01"
EMPTY: Final = _SPARSE_HEAD + bytes(11) + b"\x7f\xff"  # one run of zeros
_FORM: Final = 4
_DENSE: Final = 0
ESTIMATE: Final = 8
_AGE: Final = 15  # the byte of the estimate with the bit that says that it is old
_OLD: Final = 0x80
_ZEROS: Final = vec[i64]([0] * REGISTERS)  # never written to: a part of it is a copy


def is_sketch(value: bytes | bytearray) -> bool:
    """Whether a string looks like one; a sparse one is looked through when it is read."""
    head = bytes(value[: _FORM + 1])
    size = len(value)
    return (head == _SPARSE_HEAD and size >= HEADER) or (head == _DENSE_HEAD and size == DENSE_SIZE)


def is_dense(sketch: bytes | bytearray) -> bool:
    """Whether it has the dense form."""
    return sketch[_FORM] == _DENSE


def known_estimate(sketch: bytearray) -> int | None:
    """The estimate that it holds, or None where that is old."""
    number = read_i64_le(bytes(sketch[ESTIMATE:HEADER]), 0)
    return None if number < 0 else int(number)


def keep_estimate(sketch: bytearray, number: int) -> None:
    """Let it hold its estimate."""
    sketch[ESTIMATE:HEADER] = (number & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")


def forget_estimate(sketch: bytearray) -> None:
    """Let the estimate be old, because a register has changed."""
    sketch[_AGE] |= _OLD


def add(sketch: bytearray, words: list[bytes], first: int, most: int) -> int:
    """Add the elements ``words[first:]``; how many of them have raised a register.

    Args:
        most: how many bytes the sparse form may have.

    Raises: Corrupted; nothing is added then.
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
    """As ``add``, where it has the dense form, which it keeps for ever."""
    raised = 0
    for at in range(first, len(words)):
        place = place_of(words[at])
        raised += set_dense(sketch, place & (REGISTERS - 1), place >> INDEX_BITS)
    if raised:
        forget_estimate(sketch)
    return raised


def made_dense(sketch: bytes) -> bytearray:
    """A sparse one in the dense form; raises Corrupted."""
    union = Union()
    union.take(sketch)
    return packed(union.registers, _DENSE_HEAD + sketch[_FORM + 1 : HEADER])


class Union:
    """The registers of what has seen all that some have seen.

    Attributes:
        registers: the highest count of each register.
        dense: one of them was dense.
    """

    def __init__(self) -> None:
        self.registers = _ZEROS[0:REGISTERS]
        self.dense = False

    def take(self, sketch: bytes) -> None:
        """Take one more; raises Corrupted."""
        if is_dense(sketch):
            self.dense = True
            raise_by_dense(self.registers, sketch)
        else:
            raise_by_sparse(self.registers, sketch)

    def see(self, elements: list[bytes]) -> None:
        """Take what a sketch would be that has seen these elements."""
        registers = self.registers
        for element in elements:
            place = place_of(element)
            index = place & (REGISTERS - 1)
            count = place >> INDEX_BITS
            if registers[index] < count:
                registers[index] = count

    def estimate(self) -> int:
        """How many different elements they have seen."""
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
