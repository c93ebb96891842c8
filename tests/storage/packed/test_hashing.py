"""The hash function of packed tables."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from headrace.storage.packed.table import HASH_BITS, SEED_BITS, hash_of, mixed

SEEDS = [0x0123456789ABCDEF, 0x1B2D_3F51_7769_8AC3, 0x0EDC_BA98_7654_3210]


def of(data: bytes, seed: int = 0x0123456789ABCDEF) -> int:
    return int(hash_of(data, 0, len(data), seed))


def test_the_numbers_stay_what_they_are_because_files_depend_on_them() -> None:
    known = {
        b"": 0xE427DF50,
        b"a": 0x3335D2D0,
        b"abc": 0xE08276EB,
        b"abcd": 0xA1E7C731,
        b"member:00000042": 0x70951FBF,
        bytes(range(256)): 0x7C46DB59,
    }
    assert {data: of(data) for data in known} == known


def test_a_part_of_a_piece_has_the_hash_of_that_part_alone() -> None:
    piece = bytes(range(200, 256)) + b"some text"
    for start in range(20):
        for size in range(40):
            assert hash_of(piece, start, size, 99) == of(piece[start : start + size], 99)


def test_every_byte_and_the_length_and_the_seed_count() -> None:
    for size in range(20):
        data = bytes(size)
        seen = {of(data), of(data + b"\0"), of(data, 7)}
        for at in range(size):
            seen |= {of(data[:at] + bytes([b]) + data[at + 1 :]) for b in (1, 0x80, 0xFF)}
        assert len(seen) == 3 + 3 * size


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "form", [b"%d", b"member:%08d", b"%d:user", b"%08x-aaaa-bbbb", b"x" * 30 + b"%d" + b"y" * 9]
)
def test_counted_names_spread_evenly(form: bytes, seed: int) -> None:
    """By chi squared: over lower bits, and over the upper ones of what those leave equal."""
    count = 20_000
    hashes = [of(form % number, seed) for number in range(count)]
    assert all(0 <= each < 2**HASH_BITS for each in hashes)
    assert count - len(set(hashes)) < 4  # by chance: 0.05
    for shift in (0, 10, HASH_BITS - 8):
        cells = Counter((each >> shift) & 255 for each in hashes)
        mean = count / 256
        chi = sum((cells[cell] - mean) ** 2 / mean for cell in range(256))
        assert chi < 360, (shift, chi)  # 255 on average, 22 its deviation


def test_mixed_numbers_spread_evenly() -> None:
    chance = random.Random(4)
    for turn in (0, 1, 6):
        cells = Counter(mixed(turn, chance.getrandbits(SEED_BITS)) >> 24 for _ in range(20_000))
        mean = 20_000 / 256
        assert sum((cells[cell] - mean) ** 2 / mean for cell in range(256)) < 360
