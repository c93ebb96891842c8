"""Requests in the first spellings, word by word."""

from __future__ import annotations

import pytest

from headrace.compat import group_dialect
from headrace.compat.errors import CommandError


def words(text: str) -> list[bytes]:
    return text.encode().split()


@pytest.mark.parametrize(
    ("then", "today"),
    [
        (
            "XREAD-GROUP GROUP g NAME c STREAMS k >",
            "XREADGROUP GROUP g c STREAMS k >",
        ),
        (
            "xread-group block 5 name c count 3 NOACK group g claim 9 streams a b > 0-0",
            "XREADGROUP GROUP g c block 5 count 3 NOACK claim 9 streams a b > 0-0",
        ),
        (
            "XREAD-GROUP GROUP streams NAME group STREAMS STREAMS $ $ >",
            "XREADGROUP GROUP streams group STREAMS STREAMS $ > >",
        ),
    ],
)
def test_read_group(then: str, today: str) -> None:
    assert group_dialect.read_group(words(then)) == words(today)
    assert group_dialect.is_translated(words(today))
    assert not group_dialect.is_translated(words(then))


@pytest.mark.parametrize(
    "line",
    [
        "XREAD-GROUP GROUP g c STREAMS k >",
        "XREAD-GROUP GROUP g STREAMS k > x y",
        "XREAD-GROUP NAME c COUNT 1 STREAMS k >",
        "XREAD-GROUP GROUP g NAME c STREAM k >",
        "XREAD-GROUP GROUP g NAME c COUNT 1 BLOCK",
    ],
)
def test_what_is_not_read_group(line: str) -> None:
    with pytest.raises(CommandError):
        group_dialect.read_group(words(line))


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("XREAD-GROUP GROUP g NAME c STREAMS a b > >", [6, 7]),
        ("XREAD-GROUP NOACK GROUP streams NAME streams BLOCK 0 STREAMS a >", [9]),
        ("XREAD-GROUP GROUP g NAME c STREAMS a b >", []),
        ("XREAD-GROUP GROUP g NAME c WHAT STREAMS a >", []),
    ],
)
def test_keys_of_read_group(line: str, keys: list[int]) -> None:
    assert group_dialect.read_group_keys(words(line)) == keys


@pytest.mark.parametrize(
    ("then", "today"),
    [
        ("XACK k g c 1-0 2-0", "XACK k g 1-0 2-0"),
        ("XACK k g 1-0 2-0", "XACK k g 1-0 2-0"),
        ("XACK k g 7 2-0", "XACK k g 7 2-0"),  # a name that is an ID is one
        ("XACK k g c", "XACK k g c"),
        ("XACK k g > 2-0", "XACK k g > 2-0"),  # an ID elsewhere, and refused here
        ("XACK k g $ 2-0", "XACK k g $ 2-0"),
    ],
)
def test_ack(then: str, today: str) -> None:
    assert group_dialect.ack(words(then)) == words(today)


def test_replies() -> None:
    assert group_dialect.pending_row(b"1-0", b"c", 1999, 2) == [b"1-0", b"c", 1, 2]
    assert group_dialect.pending_row(b"2-0", b"", -1, 1) == [b"2-0", b"", -1, 1]
