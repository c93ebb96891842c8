"""Timeouts in seconds, beside the real Redis."""

from __future__ import annotations

import pytest

from headrace.compat.errors import CommandError
from headrace.server.dispatch.args import deadline_of_seconds
from support.process import RedisProcess

WORDS = [
    "-0.0001", "-0.0009", "-0.001", "-0.0011", "-1", "-inf", "inf", "+inf", "nan", "abc", "", " 1",
    "1 ", "-1e30", "1e30", "-1e4000", "1e4000", "9223372036854775.807", "9223372036854775.808",
    "9223372036854775", "1e5000", "0x", "1_0",
]  # fmt: skip


def refusal(word: str) -> bytes:
    try:
        deadline_of_seconds(word.encode(), 1_800_000_000_000)
    except CommandError as error:
        return b"-" + error.line + b"\r\n"
    return b""


@pytest.mark.judge
@pytest.mark.since(8, 0)  # before, what was too far away was negative
def test_what_is_refused(redis_server: RedisProcess) -> None:
    with redis_server.client() as client:
        for word in WORDS:
            answers = client.pipeline(("MULTI",), ("BZPOPMIN", "k", word), ("EXEC",))
            expected = answers[2].removeprefix(b"*1\r\n")
            assert refusal(word) == (b"" if expected == b"*-1\r\n" else expected), word


@pytest.mark.parametrize(
    ("word", "timeout_ms"),
    [
        (b"0", 0), (b"-0", 0), (b"0.0000001", 1), (b"0.01", 10), (b"1.0001", 1001), (b"5", 5000),
        (b"0x1p-30", 1), (b"0x1p3", 8000), (b"-0.0001", 0), (b"1e15", 10**18), (b".5", 500),
    ],
)  # fmt: skip
def test_deadlines(word: bytes, timeout_ms: int) -> None:
    assert deadline_of_seconds(word, 7) == (timeout_ms + 7 if timeout_ms else 0)
