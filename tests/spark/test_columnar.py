"""The columnar reader against hiredis: whatever the entries, both see the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_headrace.columnar import Page, columns_of, read_page, rows_of

pytestmark = pytest.mark.once

Value = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([b"\r\n", b"$1", b"*2", b"\r\n$1\r\n", b"x" * 5000, b"*2\r\n$3\r\n1-1\r\n"]),
)
ID = st.builds(b"%d-%d".__mod__, st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 99)))
Row = st.lists(st.tuples(st.sampled_from([b"a", b"b", b"\r\n"]), Value), min_size=1, max_size=3)


def bulk(data: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(data), data)


def reply(entries: list[tuple[bytes, list[tuple[bytes, bytes]]]]) -> bytes:
    """Return what XRANGE answers with these entries."""
    out = [b"*%d\r\n" % len(entries)]
    for entry_id, row in entries:
        out += [b"*2\r\n", bulk(entry_id), b"*%d\r\n" % (2 * len(row))]
        for name, value in row:
            out += [bulk(name), bulk(value)]
    return b"".join(out)


def flat(page: Page) -> list[tuple[bytes, list[bytes]]]:
    return [(entry_id, page.row(number)) for number, entry_id in enumerate(page.ids)]


@given(st.lists(st.tuples(ID, Row), max_size=8))
def test_any_entries(entries: list[tuple[bytes, list[tuple[bytes, bytes]]]]) -> None:
    data = reply(entries)
    expected = [(entry_id, [word for pair in row for word in pair]) for entry_id, row in entries]
    assert flat(rows_of(data)) == expected
    assert flat(read_page(data)) == expected


@given(
    st.lists(st.sampled_from([b"a", b"b", b"name", b""]), min_size=1, max_size=4),
    st.lists(st.tuples(ID, st.lists(Value, min_size=4, max_size=4)), min_size=1, max_size=8),
)
def test_entries_alike(names: list[bytes], entries: list[tuple[bytes, list[bytes]]]) -> None:
    data = reply([(each, list(zip(names, row, strict=False))) for each, row in entries])
    page = columns_of(data)
    plain = not any(b"\r\n" in value for _, row in entries for value in row[: len(names)])
    if plain:
        assert page is not None
    if page is not None:
        assert page.names == names
        assert flat(page) == flat(rows_of(data))


def test_a_value_that_looks_like_an_entry() -> None:
    """Cut at CRLF, the pieces fit; only their lengths tell."""
    inner = b"x\r\n*2\r\n$3\r\n1-2\r\n*2\r\n$1\r\na\r\n$1\r\ny"
    data = reply([(b"1-1", [(b"a", inner)])])
    assert columns_of(data) is None
    assert flat(read_page(data)) == [(b"1-1", [b"a", inner])]
    # The same with the count of two entries, so that the number of pieces is right as well.
    forged = b"*2" + data[2:].replace(b"$%d" % len(inner), b"$1")
    real = reply([(b"1-1", [(b"a", b"x")]), (b"1-2", [(b"a", b"y")])])
    assert forged == real


def test_nothing() -> None:
    assert len(read_page(b"*0\r\n")) == 0
    assert len(read_page(b"*-1\r\n")) == 0


def test_long_values() -> None:
    page = columns_of(reply([(b"1-1", [(b"a", b"x" * 100_000)]), (b"1-2", [(b"a", b"")])]))
    assert page is not None
    assert [len(value) for value in page.columns[0]] == [100_000, 0]
