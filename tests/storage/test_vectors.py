"""Number vectors and lane vectors, and their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.regions.knowledge.region import STEP, Region, latest_epoch
from headrace.storage.vectors import (
    BadVector,
    covers,
    decode_dots,
    decode_id,
    decode_lanes,
    decode_numbers,
    encode_dots,
    encode_lanes,
    encode_numbers,
    lane_key,
    lane_name,
    lane_origin,
    origin_of,
    raise_numbers,
    reaches,
    region_of,
)

ORIGINS = st.builds(origin_of, st.integers(1, 15), st.integers(0, 2**40 - 1))
LANES = st.builds(lane_name, ORIGINS, st.integers(0, 2**62 - 1))
IDS = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
NUMBERS = st.dictionaries(ORIGINS, st.integers(0, 2**62 - 1))


@given(NUMBERS)
def test_a_number_vector_is_read_as_it_was_written(numbers: dict[bytes, int]) -> None:
    assert decode_numbers(encode_numbers(numbers)) == numbers


@given(st.dictionaries(LANES, IDS))
def test_a_lane_vector_is_read_as_it_was_written(lanes: dict[bytes, tuple[int, int]]) -> None:
    assert decode_lanes(encode_lanes(lanes)) == lanes


@given(st.lists(st.tuples(ORIGINS, st.integers(0, 2**62 - 1)), unique=True))
def test_dots_are_read_as_they_were_written(dots: list[tuple[bytes, int]]) -> None:
    assert sorted(decode_dots(encode_dots(dots))) == sorted(dots)


def test_vectors_are_written_in_the_order_of_numbers_and_not_of_letters() -> None:
    assert encode_numbers({b"10.0": 1, b"2.10": 2, b"2.9": 3}) == b"2.9=3,2.10=2,10.0=1"
    assert encode_lanes({b"2.0.10": (1, 2), b"2.0.9": (3, 4)}) == b"2.0.9=3-4,2.0.10=1-2"
    assert encode_numbers({}) == encode_lanes({}) == encode_dots([]) == b"-"


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"=", b"1.0", b"1.0=", b"1.0=x", b"1.0=-1", b"1.0=1,", b"1.0=1,1.0=2", b"0.0=1"),
        *(b"16.0=1", b"01.0=1", b"1.00=1", b"1.0=01", b"1.0.0=1", b"1=1", b"1.0=\xd9\xa1"),
        b"1.0=4611686018427387904",
    ],
)
def test_what_is_no_number_vector_is_refused(text: bytes) -> None:
    with pytest.raises(BadVector):
        decode_numbers(text)


@pytest.mark.parametrize(
    "text", [b"1.0=1-1", b"1.0.1=1", b"1.0.1=1-", b"1.0.1=18446744073709551616-0"]
)
def test_what_is_no_lane_vector_is_refused(text: bytes) -> None:
    with pytest.raises(BadVector):
        decode_lanes(text)


def test_an_id_has_both_halves() -> None:
    assert decode_id(b"5-18446744073709551615") == (5, 2**64 - 1)
    with pytest.raises(BadVector):
        decode_id(b"5")


@given(NUMBERS, NUMBERS)
def test_raised_numbers_know_what_both_know(one: dict[bytes, int], other: dict[bytes, int]) -> None:
    both = one.copy()
    raise_numbers(both, other)
    for numbers in (one, other):
        assert all(covers(both, dot) for dot in numbers.items())
    assert all(covers(one, dot) or covers(other, dot) for dot in both.items() if dot[1])


def test_a_lane_vector_reaches_as_far_as_it_says() -> None:
    lanes = {b"1.0.1": (5, 1), b"2.0.7": (1, 2)}
    assert reaches(lanes, b"1.0.1", (5, 1))
    assert not reaches(lanes, b"1.0.1", (5, 17))
    assert not reaches(lanes, b"3.0.1", (0, 1))


def test_names_say_what_they_are_made_of() -> None:
    lane = lane_name(origin_of(12, 3), 17)
    assert lane == b"12.3.17"
    assert lane_origin(lane) == b"12.3"
    assert region_of(lane) == 12
    assert lane_key(lane) == (12, 3, 17)


def test_a_region_counts_its_own_records_and_those_of_others() -> None:
    region = Region(1)
    assert region.next_dot() == (b"1.0", 1)
    region.learned(b"1.0", 3)
    region.learned(b"2.0", 7)
    assert region.known() == {b"1.0": 3, b"2.0": 7}
    assert region.knows((b"1.0", 3))
    assert not region.knows((b"2.0", 8))


def test_a_new_epoch_begins_to_count_anew_and_knows_the_one_before() -> None:
    region = Region(2)
    region.learned(b"2.0", 9)
    region.begin_epoch(5, 1, b"n")
    assert region.origin == b"2.5"
    assert region.count == 0
    assert region.known() == {b"2.0": 9}
    assert latest_epoch(region.known(), 2) == 0
    assert latest_epoch(region.known(), 3) == -1
    assert region.base_seq() == (1 << 20) + 2
    assert region.base_seq() % STEP == 2


def test_no_lane_is_named_twice() -> None:
    region = Region(1)
    region.learned(b"1.0", 4)
    assert [region.new_lane(), region.new_lane()] == [5, 6]
    region.met_lane(b"1.0", 90)
    region.met_lane(b"2.0", 900)
    assert region.new_lane() == 91
