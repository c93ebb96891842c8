"""The bits of strings against their spelling in zeros and ones."""

from __future__ import annotations

from random import Random

import pytest

from headrace.storage.string import bits
from headrace.storage.string.bits import AND, AND_NOT, OR, XOR

SIZES = [0, 1, 3, 8, 9, 63, 64, 65, 130, 700, 4095, 4097, 9000, 70_000]


def strings(chance: Random) -> list[bytes | bytearray]:
    """Of each size: one by chance, and ones that are all but alike."""
    found: list[bytes | bytearray] = []
    for size in SIZES:
        found += [chance.randbytes(size), bytes(size), b"\xff" * size]
        for filler in (b"\x00", b"\xff"):
            nearly = bytearray(filler * size)
            if size:
                nearly[chance.randrange(size)] ^= 1 << chance.randrange(8)
            found.append(nearly)
    return found


def spelled(data: bytes | bytearray) -> str:
    return "".join(f"{byte:08b}" for byte in data)


def test_counts_and_places() -> None:
    chance = Random(1)
    for data in strings(chance):
        text = spelled(data)
        assert bits.count_bits(data, 0, len(data)) == text.count("1")
        for _ in range(20 if data else 0):
            first = chance.randrange(len(text))
            last = chance.randrange(first, len(text))
            assert bits.count_bit_range(data, first, last) == text[first : last + 1].count("1")
            for bit in (0, 1):
                assert bits.find_bit(data, bit, first, last) == text.find(str(bit), first, last + 1)


def test_fields() -> None:
    chance = Random(2)
    for data in strings(chance):
        text = spelled(data)
        for _ in range(20):
            width = chance.randrange(1, 65)
            offset = chance.randrange(len(text) + 70)
            there = text[offset : offset + width].ljust(width, "0")
            assert bits.read_field(data, offset, width) == int(there, 2)
            if offset + width <= len(text):
                changed = bytearray(data)
                number = chance.getrandbits(width + 3)
                bits.write_field(changed, offset, width, number)
                fitting = f"{number & ((1 << width) - 1):0{width}b}"
                assert spelled(changed) == text[:offset] + fitting + text[offset + width :]


@pytest.mark.parametrize("operation", [AND, OR, XOR, AND_NOT])
def test_combined(operation: int) -> None:
    chance = Random(3)
    for data in strings(chance):
        left = bytes(data)
        right = chance.randbytes(chance.choice([0, 1, 7, 8, len(left), len(left) + 9]))
        size = max(len(left), len(right))
        expected = bytes(
            {AND: one & other, OR: one | other, XOR: one ^ other, AND_NOT: one & ~other}[operation]
            for one, other in zip(left.ljust(size, b"\0"), right.ljust(size, b"\0"), strict=True)
        )
        assert bits.combine(operation, left, right) == expected


def test_complement() -> None:
    assert bits.complement(b"\x00\xff\x0f" * 30) == b"\xff\x00\xf0" * 30
    assert bits.complement(b"") == b""
