"""The iids that IDMPAUTO makes, against the same formula in plain numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_128_intdigest

from compat.content_iid import content_iid

MASK = 2**64 - 1


def turned(number: int) -> int:
    return (number << 1 | number >> 63) & MASK


def by_the_formula(words: list[bytes]) -> bytes:
    sums = [0, 0]
    xors = [0, 0]
    for field, value in zip(words[::2], words[1::2], strict=True):
        digest = xxh3_128_intdigest(field + len(field).to_bytes(8, "little") + value)
        for half, number in enumerate((digest & MASK, digest >> 64)):
            sums[half] = sums[half] + number & MASK
            xors[half] ^= number
    low, high = sums[0] ^ turned(xors[1]), sums[1] ^ turned(xors[0])
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


@given(st.lists(st.tuples(st.binary(max_size=300), st.binary(max_size=9)), min_size=1, max_size=5))
def test_as_the_formula_has_it(pairs: list[tuple[bytes, bytes]]) -> None:
    words = [word for pair in pairs for word in pair]
    assert content_iid([b"XADD", *words], 1) == by_the_formula(words)
