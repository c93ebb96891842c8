"""Timeouts of requests, as moments."""

from __future__ import annotations

from headrace.compat.errors import (
    TIMEOUT_NEGATIVE,
    TIMEOUT_NOT_INTEGER,
    TIMEOUT_OUT_OF_RANGE,
    CommandError,
)
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
