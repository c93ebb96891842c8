"""Integers as they are read: one spelling for each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compat.numbers import INT64_MAX, INT64_MIN, leading_integer, parse_integer

NO_NUMBERS = [
    "", "-", "+1", " 1", "1 ", "00", "01", "-0", "-01", "--1", "1-", "1.0", "a", "-a", "1a", "\0",
    "0" * 18, "0" * 19, "0" * 20, "9" * 19, "9" * 20, str(INT64_MAX + 1), str(INT64_MIN - 1),
    "-" * 19, "-0" + "1" * 15,
]  # fmt: skip


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_no_number(text: str) -> None:
    assert parse_integer(text.encode()) is None


@given(st.integers(INT64_MIN, INT64_MAX) | st.integers(-1200, 1200))
def test_every_number_is_read(number: int) -> None:
    assert parse_integer(b"%d" % number) == number


@pytest.mark.parametrize("digits", [1, 16, 17, 18, 19])
def test_numbers_of_so_many_digits(digits: int) -> None:
    for number in (10 ** (digits - 1), min(10**digits - 1, INT64_MAX)):
        assert parse_integer(b"%d" % number) == number
        assert parse_integer(b"-%d" % number) == -number


AS_ATOI = {
    "": 0, "x": 0, "+": 0, "-": 0, "7": 7, "007": 7, "+7": 7, "-7": -7, "--7": 0, "+-7": 0,
    " \t\n7": 7, "7x": 7, "7.9": 7, "7 8": 7, "0x7": 0, "2147483647": 2147483647,
    "2147483648": -2147483648, "4294967303": 7, "-4294967303": -7, "9" * 19: -1, "9" * 30: -1,
    "-" + "9" * 30: 0,
}  # fmt: skip


@pytest.mark.parametrize("text", AS_ATOI)
def test_what_a_word_begins_with(text: str) -> None:
    assert leading_integer(text.encode()) == AS_ATOI[text]
