"""Doubles as they are read, beside the real Redis: what is a number, and which one."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from math import copysign, inf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compat import long_double
from headrace.compat.long_double import LongDouble
from headrace.compat.numbers import parse_bound, parse_double
from headrace.protocol.doubles import double
from support.process import RedisProcess

NO_BOUND = b"-ERR min or max is not a float\r\n"
SPELLINGS = [
    "1.", ".5", "+5", " 5", "5 ", "0x10", "0x1p3", "0X1P-3", "0x1.8", "-0x10", "+0x10", "0x", "0x.",
    "0x.8", "0x8.", "0x1.8p", "0xAp-1", "0x1p1024", "0x1p-1074", "0x1p-1075", "0x0p99999", "0xg",
    "0x1p5000", "-0x1p5000", "1e400", "-1e400", "1e-400", "5e-324", "2e-324", "nan", "-nan", "NaN",
    "inf", "+inf", "-inf", "INF", "Infinity", "infinit", "infinityx", "", "-", "+", ".", "e5", "1e",
    "1e+", "1e5", "1E5", "+.5", "-.e5", "1_0", "1e308", "1.8e308", "2e308", "18e307", "-180e306",
    "1e309", "0.1e310", "0.001e311", "0.00000000000001e325", "1e-342", "1e-343", "10e-343",
    "0.1e-341", "0.1e-342", "1" + "0" * 308, "2" + "0" * 308, "0." + "0" * 330 + "1",
    "0." + "0" * 345 + "1", "1e99999999999999999999", "0e99999999999999999999", "000001", "00.5",
    "1e-0", "++1", "+-1", "0b1", "1,5", "1 2", "1d", "nan(1)", "123456789012345678901234567890e290",
    "999999999999999", "9999999999999999", "99999999999999999", "9007199254740993", "1\0", "1\0a",
    "12345678901234567890123", "\t7", "-12", "- 1", "1-", "0x1p", "0x-1", "1e1e1", "1.5.5",
    "-0", "-0.0", "-.5", "-1.", "0.000001", "13.361389", "-122.419416", "12345678901234.5",
    "123456789012345.6", ".123456789012345", ".1234567890123456", "0.0000000000000001", "-.",
]  # fmt: skip


def random_spelling(chance: random.Random) -> str:
    """A number, or nearly one."""
    if chance.random() < 0.3:
        return "".join(chance.choices("0123456789.eE+-xpa ", k=chance.randint(1, 8)))
    whole = "".join(chance.choices("0123456789", k=chance.randint(0, 25)))
    text = chance.choice(["", "", "-", "+"]) + whole
    if chance.random() < 0.7:
        text += "." + "".join(chance.choices("0123456789", k=chance.randint(0, 25)))
    if chance.random() < 0.7:
        text += f"e{chance.randint(-400, 400)}"
    return text


@pytest.mark.judge
@pytest.mark.since(8, 10)
def test_scores_and_bounds_are_read_as_by_redis(fresh_redis: Callable[..., RedisProcess]) -> None:
    chance = random.Random(3)
    with fresh_redis("--zset-max-listpack-entries", "0").client() as client:
        for text in [*SPELLINGS, *(random_spelling(chance) for _ in range(3000))]:
            client.call("DEL", "z")
            client.call("ZADD", "z", text, "m")
            expected = client.call_parsed("ZSCORE", "z", "m")
            score = parse_double(text.encode())
            found = None if isnan(score) else double(score)
            assert found == expected, text
            # Where two bounds stand, all between them is counted.
            bound = parse_bound(text.encode())
            if not isnan(bound):
                client.call("ZADD", "z", double(bound), "m")
            counted = client.call("ZCOUNT", "z", text, text)
            assert counted == (b":1\r\n" if not isnan(bound) else NO_BOUND), text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0.0), (" 1", 1.0), ("1\0junk", 1.0), ("1e400", inf), ("-0x1p5000", -inf),
        ("nan", None), (" ", None), ("1 ", None), ("\0", 0.0),
    ],
)  # fmt: skip
def test_bounds(text: str, value: float | None) -> None:
    for bound in (parse_bound(text.encode()), parse_bound(b"(" + text.encode(), 1)):
        assert (None if isnan(bound) else bound) == value


@given(st.floats(allow_nan=False))
def test_every_double_is_read(value: float) -> None:
    assert parse_double(repr(value).encode()) == value
    assert parse_double(value.hex().encode()) == value
    assert parse_double(double(value)) == value


@given(st.integers(-(10**16), 10**16), st.integers(0, 17))
def test_every_short_number_is_read(number: int, point: int) -> None:
    digits = f"{abs(number):0{point + 1}d}"
    whole = len(digits) - point
    text = f"{'-' if number < 0 else ''}{digits[:whole]}.{digits[whole:]}"
    value = parse_double(text.encode())
    assert value == float(text)
    assert copysign(1.0, value) == copysign(1.0, float(text))


def exact(value: LongDouble) -> Fraction:
    return Fraction(value.mantissa) * Fraction(2) ** value.exponent


@given(*2 * [st.from_regex(rb"[+-]?([0-9]{1,9}\.?[0-9]{0,7}|\.[0-9]{1,16})", fullmatch=True)])
def test_a_short_decimal_is_the_long_double_that_its_exponent_makes(
    one: bytes, other: bytes
) -> None:
    plain = [long_double.parse(one), long_double.parse(other)]
    spelled = [long_double.parse(one + b"e0"), long_double.parse(other + b"e0")]
    sums = []
    for left, right in (plain, spelled):
        assert left is not None
        assert right is not None
        sums.append(long_double.add(left, right))
        assert long_double.text(left) == long_double.text(long_double.add(left, LongDouble(0, 0)))
    assert [exact(each) for each in plain if each] == [exact(each) for each in spelled if each]
    assert exact(sums[0]) == exact(sums[1])
    assert long_double.text(sums[0]) == long_double.text(sums[1])
