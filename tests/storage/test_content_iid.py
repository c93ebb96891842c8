"""The iid that IDMPAUTO makes: known ones, and the same formula in plain integers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_128_intdigest

from headrace.storage.stream.idmp import SHORT_BYTES, content_iid, iid_made_of, text_of

WORD = 1 << 64
pairs = st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=40)), min_size=1, max_size=6)


def plainly(words: list[bytes]) -> bytes:
    """Return what the module describes, with integers of any size."""
    digests = [
        xxh3_128_intdigest(field + len(field).to_bytes(8, "little") + value)
        for field, value in zip(words[::2], words[1::2], strict=True)
    ]
    sums = [0, 0]
    xors = [0, 0]
    for digest in digests:
        for half, number in enumerate((digest % WORD, digest // WORD)):
            sums[half] = (sums[half] + number) % WORD
            xors[half] ^= number
    turned = [(number * 2 + (number >> 63)) % WORD for number in xors]
    low, high = sums[0] ^ turned[1], sums[1] ^ turned[0]
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


def as_bytes(words: list[bytes], at: int) -> bytes:
    return text_of(iid_made_of(*content_iid(words, at), SHORT_BYTES, b""))


@pytest.mark.parametrize(
    ("words", "iid"),
    [
        ("f=v", "6e95729ee727f0814aedffba55730079"),
        ("field=", "9d0899c463e3e6243812ff469716786e"),
        ("=", "1a9f7ebbaea1d61d30b6b8daa3e38da7"),
        ("field1=a field2=b field3=c", "56d921f6e826bd1bd78e58840d238837"),
        ("field3=c field1=a field2=b", "56d921f6e826bd1bd78e58840d238837"),
        ("amount=100 currency=USD", "e11c9a7017ea4839b25824062c8d8c50"),
        ("a=b a=b", "242e89abe84b3bb5c44ecc0d6bacf753"),
        ("a=bc", "cd716045a670276ba36d448ef5da2ace"),
        ("ab=c", "16a40e6f34744cb4db57cd2b7d195a72"),
        ("data=" + "x" * 10_000, "55f0675b163024d29912c906531171a1"),
    ],
)
def test_known_iids(words: str, iid: str) -> None:
    flat = [part.encode() for pair in words.split(" ") for part in pair.split("=")]
    assert as_bytes([b"XADD", b"s", b"*", *flat], 3).hex() == iid
    assert plainly(flat).hex() == iid


@given(pairs, st.randoms(use_true_random=False))
def test_the_order_of_pairs_does_not_matter(
    content: list[tuple[bytes, bytes]], chance: random.Random
) -> None:
    words = [word for pair in content for word in pair]
    expected = plainly(words)
    assert as_bytes(words, 0) == expected
    chance.shuffle(content)
    assert as_bytes([b"before", *[word for pair in content for word in pair]], 1) == expected


@pytest.mark.parametrize("size", [255, 256, 257, 70_000])
def test_long_fields(size: int) -> None:
    words = [b"f" * size, b"v" * size, b"g", b"w"]
    assert as_bytes(words, 0) == plainly(words)
