"""How late the event loop is: a timer that is due ten times a second says so."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from headrace.metrics.page import Page

PERIOD_S: Final = 0.1
ENDS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class LoopDelay:
    """A histogram of delays, in seconds, between ``start`` and ``stop``."""

    def __init__(self) -> None:
        self._counts: Final = [0] * (len(ENDS_S) + 1)
        self._total_s = 0.0
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to measure, or go on."""
        if self._timer is None:
            self._arm()

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def note(self, seconds: float) -> None:
        """Count one delay."""
        self._total_s += seconds
        self._counts[sum(end < seconds for end in ENDS_S)] += 1

    def report(self, page: Page) -> None:
        """Put the histogram on a page."""
        under = 0
        pairs: list[tuple[float, int]] = []
        for end, count in zip(ENDS_S, self._counts, strict=False):
            under += count
            pairs.append((end, under))
        name = "headrace_eventloop_delay_seconds"
        page.add_histogram(name, "", pairs, sum(self._counts), self._total_s)

    def _arm(self) -> None:
        self._due_s = time.monotonic() + PERIOD_S
        self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self._wake)

    def _wake(self) -> None:
        self.note(max(0.0, time.monotonic() - self._due_s))
        self._arm()
