"""The checksum of RDB files and payloads, beside one that goes bit by bit."""

from __future__ import annotations

import random

from headrace.persistence.rdb.crc64 import crc64


def bit_by_bit(data: bytes, crc: int) -> int:
    """The definition."""
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
    return crc


def test_what_the_catalogue_of_checksums_says() -> None:
    assert crc64(b"123456789", 0) == 0xE9C6D914C4B8D9CA


def test_every_length_and_what_comes_before() -> None:
    drawn = random.Random(1)
    for size in range(70):
        data = drawn.randbytes(size)
        for before in (0, 1, 1 << 63, (1 << 64) - 1, drawn.getrandbits(64)):
            assert crc64(data, before) == bit_by_bit(data, before)


def test_pieces_have_the_checksum_of_the_whole() -> None:
    data = random.Random(2).randbytes(10_000)
    for cut in (0, 1, 7, 8, 9, 5_000, 9_999, 10_000):
        assert crc64(data[cut:], crc64(data[:cut], 0)) == crc64(data, 0)
