"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# Only what never comes is waited for that long: it is no measure of how fast anything is.
DEADLINE_S: Final = 60.0


def wait_until(condition: Callable[[], object], timeout_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
