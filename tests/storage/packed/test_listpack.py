"""What Redis's listpack would take, by its rules spelled out a second time."""

from __future__ import annotations

import pytest

from headrace.storage.packed.strings import delta_bytes, integer_bytes, text_bytes

INTEGERS = {
    2: [0, 127],
    3: [-1, 128, -4096, 4095],
    4: [-4097, 4096, -32768, 32767],
    5: [-32769, 32768, -8388608, 8388607],
    6: [-8388609, 8388608, -2147483648, 2147483647],
    10: [-2147483649, 2147483648, -(2**63), 2**63 - 1],
}


@pytest.mark.parametrize(("size", "numbers"), INTEGERS.items())
def test_integers(size: int, numbers: list[int]) -> None:
    for number in numbers:
        assert integer_bytes(number) == size, number
        assert text_bytes(b"%d" % number) == size, number


@pytest.mark.parametrize("text", [b"007", b"-0", b"+1", b" 1", b"1 ", b"-", b"", b"9" * 20, b"x"])
def test_what_only_looks_like_an_integer_is_text(text: bytes) -> None:
    assert text_bytes(text) == len(text) + 2


@pytest.mark.parametrize(
    ("length", "size"),
    [(63, 65), (64, 67), (125, 128), (126, 130), (4095, 4099), (4096, 4103), (16384, 16392)],
)
def test_text(length: int, size: int) -> None:
    assert text_bytes(b"x" * length) == size


def test_differences_wrap_at_64_bits() -> None:
    assert delta_bytes(5) == 2
    assert delta_bytes(-5) == 3
    assert delta_bytes(2**64 - 1) == 3
    assert delta_bytes(2**63) == 10
