"""Packed strings, beside lists of Python and the encoder of the protocol."""

from __future__ import annotations

from random import Random

import pytest
from librt.strings import BytesWriter

from headrace.protocol.replies import encode
from headrace.storage.packed.strings import (
    count,
    is_same,
    is_sound,
    length_at,
    next_at,
    pack,
    packed_bytes,
    string_at,
    unpack,
    with_string,
    write_string,
)

SIZES = [0, 1, 2, 7, 8, 9, 10, 15, 16, 17, 99, 100, 999, 1000, 1023, 1024, 9999, 10_000, 123_456]


def some_strings(chance: Random, number: int) -> list[bytes]:
    pool = [b"", b"a", b"$1\r\na\r\n", b"\r\n", b"12345678", b"123456789", bytes(range(256))]
    pool += [chance.randbytes(chance.randrange(40)) for _ in range(10)]
    return [chance.choice(pool) for _ in range(number)]


@pytest.mark.parametrize("size", SIZES)
def test_a_string_stands_as_it_is_sent(size: int) -> None:
    string = Random(size).randbytes(size)
    piece = pack([string])
    assert piece == encode(string)
    assert len(piece) == packed_bytes(size)
    assert length_at(piece, 0) == size
    assert string_at(piece, 0) == string


def test_strings_come_back_in_their_order() -> None:
    chance = Random(1)
    for number in range(60):
        strings = some_strings(chance, number)
        piece = pack(strings)
        assert unpack(piece) == strings
        assert count(piece) == number
        at = 0
        for place, string in enumerate(strings):
            assert next_at(piece, 0, place) == at
            assert string_at(piece, at) == string
            at = next_at(piece, at)
        assert at == len(piece)
        assert is_sound(piece)


def test_one_string_takes_the_place_of_another() -> None:
    chance = Random(3)
    for number in range(1, 60):
        strings = some_strings(chance, number)
        place = chance.randrange(number)
        other = chance.choice(
            [b"", b"a", b"x" * len(strings[place]), b"y" * 10, b"z" * 2000, b"z" * 99_999]
        )
        piece = pack(strings)
        expected = pack([*strings[:place], other, *strings[place + 1 :]])
        assert with_string(piece, next_at(piece, 0, place), other) == expected


@pytest.mark.parametrize("size", range(40))
def test_a_string_is_compared_with_all_its_bytes(size: int) -> None:
    string = Random(size).randbytes(size)
    piece = b"before" + string + b"behind"
    assert is_same(piece, 6, string)
    for at in range(size):
        other = bytearray(piece)
        other[6 + at] ^= 1
        assert not is_same(bytes(other), 6, string)


@pytest.mark.parametrize(
    "piece",
    [
        b"x",
        b"$",
        b"$1\r\n",
        b"$1\r\na\r",
        b"$1\r\nab\r\n",
        b"$01\r\na\r\n",
        b"$-1\r\n",
        b"$+1\r\na\r\n",
        b"$a\r\n\r\n",
        b"$\r\n\r\n",
        b"*1\r\na\r\n",
        b"$99999999999999999999999999\r\n",
        pack([b"a"]) + b"$",
        pack([b"a", b"b"])[:-1],
    ],
)
def test_what_is_not_packed_is_not_sound(piece: bytes) -> None:
    assert not is_sound(piece)


def test_strings_are_written_behind_what_is_there() -> None:
    out = BytesWriter()
    out.write(b"head")
    write_string(out, b"a")
    assert out.getvalue() == b"head$1\r\na\r\n"
