"""Bytes, IDs, times and numbers as people read and type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("redis", reason="only with the extra `console`")

from headrace.console import text

pytestmark = pytest.mark.once
NOW_MS = 1_796_000_000_000  # 2026-11-29 19:33:20 UTC


@given(st.binary() | st.text().map(str.encode))
def test_what_a_form_shows_becomes_the_same_bytes(data: bytes) -> None:
    typed = text.escape(data).replace("\n", "\r\n")
    assert text.unescape(typed) == data


@given(st.binary(), st.integers(0, 12))
def test_what_is_shown_can_be_sent_and_seen(data: bytes, limit: int) -> None:
    shown = text.shown(data, limit)
    shown.encode()
    assert all(
        character.isprintable() or character in "\t\n"
        for character in shown
        if character < "\u00ff"
    )


@given(st.binary())
def test_a_url_keeps_bytes(data: bytes) -> None:
    assert text.from_url(text.to_url(data)) == data


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("12-3", "12-3"),
        (" 1796000000001-0 ", "1796000000001-0"),
        ("1796000000", "1796000000000"),
        ("5m ago", str(NOW_MS - 300_000)),
        ("-2h", str(NOW_MS - 7_200_000)),
        ("1 d", str(NOW_MS - 86_400_000)),
        ("12:30", "1795955400000"),
        ("2026-11-29 12:30", "1795955400000"),
        ("2026-11-29T12:30:00.5", "1795955400500"),
        ("2026-11-29T13:30:00+01:00", "1795955400000"),
        ("0", "0"),
    ],
)
def test_points_that_people_mean(typed: str, found: str) -> None:
    assert text.point(typed, NOW_MS) == found


@pytest.mark.parametrize(
    "typed", ["", "soon", "1-2-3", "25:00", "99999999999999999999-0", "+", "(1"]
)
def test_what_is_no_point(typed: str) -> None:
    with pytest.raises(ValueError, match="ID"):
        text.point(typed, NOW_MS)


def test_times_ages_and_sizes() -> None:
    assert text.time_of("1795955400500-7") == "2026-11-29 12:30:00.500"
    assert text.time_of("12-0") == ""
    assert [text.age(ms) for ms in (0, 900, 5_000, 119_000, 120_000, 7_200_000, 200_000_000)] == [
        *("now", "0.9 s", "5 s", "119 s", "2 min", "2 h", "2 d")
    ]
    assert [text.size(n) for n in (0, 999, 1_000, 123_456, 20_000_000, 7 * 10**15)] == [
        *("0 B", "999 B", "1.0 kB", "123 kB", "20.0 MB", "7000 TB")
    ]
    assert [text.rate(n) for n in (None, 0, 0.25, 12.4, 5000)] == [
        "\u2013",
        "0",
        "0.2",
        "12",
        "5,000",
    ]


def test_a_command_is_copied_as_redis_cli_takes_it() -> None:
    assert text.command_line([b"XPOLICY", b"a b", b'"\\\xff\n']) == r'XPOLICY "a b" "\"\\\xff\x0a"'
    assert text.command_line([b""]) == '""'


@pytest.mark.parametrize(
    "value",
    [b'["\\ud800"]', b"[" * 100_000, b'{"a": "\xe2\x80\xae"}', b"[1" + b"0" * 5_000 + b"]", b"{"],
)
def test_odd_json_is_shown_all_the_same(value: bytes) -> None:
    shown, _ = text.as_json([(b"f", value)], 400_000)
    shown.encode()
    assert "\u202e" not in shown
    assert '"f"' in shown


def test_json_has_a_limit() -> None:
    shown, is_all = text.as_json([(b"%d" % n, b'{"a":1}' * 1) for n in range(1_000)], 2_000)
    assert len(shown) <= 2_000
    assert not is_all
    assert text.as_json([(b"a", b"1")], 2_000) == ('{\n  "a": "1"\n}', True)
