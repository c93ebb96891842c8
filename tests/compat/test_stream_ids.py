"""Stream IDs as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compat.stream_ids import ID_MAX, format_id, parse_id, plain_id

Halves = st.integers(0, ID_MAX)


@given(ms=Halves, seq=Halves)
def test_what_is_written_reads_back(ms: int, seq: int) -> None:
    assert format_id(ms, seq) == b"%d-%d" % (ms, seq)
    assert parse_id(format_id(ms, seq)) == (ms, seq)


@given(st.binary(max_size=140))
def test_anything_reads_as_an_id_or_as_none(text: bytes) -> None:
    found = parse_id(text)
    assert found is None or (0 <= found[0] <= ID_MAX and 0 <= found[1] <= ID_MAX)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"7", (7, 5)),
        (b"007", (7, 5)),
        (b"9" * 18, (10**18 - 1, 5)),
        (b"1" + b"0" * 18, (10**18, 5)),
        (b"18446744073709551615", (ID_MAX, 5)),
        (b"18446744073709551616", None),
        (b"7x", None),
        (b"007-1", (7, 1)),
        (b"+9-1", (9, 1)),
        (b" 5-1", (5, 1)),
        (b"1-+5", (1, 5)),
        (b"1--0", (1, 0)),
        (b"14-00", (14, 0)),
        (b"1-2\x00x", (1, 2)),
        (b"18446744073709551615-18446744073709551615", (ID_MAX, ID_MAX)),
        (b"11-", None),
        (b"-12", None),
        (b"--", None),
        (b"13-1x", None),
        (b"1--5", None),
        (b"18446744073709551616-0", None),
        (b"-", None),
        (b"+", None),
        (b"", None),
        (b"1" * 128, None),
    ],
)
def test_odd_forms(text: bytes, place: tuple[int, int] | None) -> None:
    assert parse_id(text, 5) == place


@given(st.integers(0, ID_MAX), st.integers(0, ID_MAX), st.integers(0, 45), st.integers(0, 45))
def test_zeros_may_stand_in_front(ms: int, seq: int, ms_digits: int, seq_digits: int) -> None:
    halves = (b"%d" % ms).rjust(ms_digits, b"0"), (b"%d" % seq).rjust(seq_digits, b"0")
    padded = b"-".join(halves)
    assert parse_id(padded) == (ms, seq)
    assert parse_id(padded.partition(b"-")[0], 7) == (ms, 7)
    if len(padded) < 100:
        assert plain_id(padded) in ((ms, seq), (-1, -1))
    if ms < 10**18 and seq < 10**18:
        assert plain_id(padded) == (ms, seq)
