"""Timeouts of requests, as moments."""

from __future__ import annotations

from headrace.compat.errors import (
    TIMEOUT_NEGATIVE,
    TIMEOUT_NOT_A_FLOAT,
    TIMEOUT_NOT_INTEGER,
    TIMEOUT_OUT_OF_RANGE,
    CommandError,
)
from headrace.compat.long_double import milliseconds, parse
from headrace.compat.numbers import INT64_MAX, parse_integer


def deadline_of(word: bytes, now_ms: int) -> int:
    """The moment that lies ``word`` milliseconds ahead; 0 for a timeout of 0, which is never.

    Raises: CommandError.
    """
    timeout_ms = parse_integer(word)
    if timeout_ms is None:
        raise CommandError(TIMEOUT_NOT_INTEGER)
    if timeout_ms == 0:
        return 0
    if timeout_ms < 0:
        raise CommandError(TIMEOUT_NEGATIVE)
    deadline_ms = timeout_ms + now_ms
    if deadline_ms > INT64_MAX:
        raise CommandError(TIMEOUT_OUT_OF_RANGE)
    return deadline_ms


def deadline_of_seconds(word: bytes, now_ms: int) -> int:
    """As ``deadline_of``, of a number of seconds that may be a fraction, or hexadecimal.

    Raises: CommandError.
    """
    seconds = parse(word)
    if seconds is None:
        raise CommandError(TIMEOUT_NOT_A_FLOAT)
    timeout_ms = milliseconds(seconds)
    if timeout_ms is None or timeout_ms > INT64_MAX:
        raise CommandError(TIMEOUT_OUT_OF_RANGE)
    if timeout_ms < 0:
        raise CommandError(TIMEOUT_NEGATIVE)
    if timeout_ms == 0:
        return 0
    if timeout_ms + now_ms > INT64_MAX:
        raise CommandError(TIMEOUT_OUT_OF_RANGE)
    return timeout_ms + now_ms
