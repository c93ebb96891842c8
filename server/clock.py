"""The time of day, read as cheaply as can be: once or twice for every command.

Durations are measured on a clock that is never set. Everything that decides what the data is asks
the clock of its server. So a server that is given another source of time lives wholly by that.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import Final

from librt.time import time
from mypy_extensions import mypyc_attr

STEP_MS: Final = 1000  # less is a clock that is corrected little by little


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """The time as the server knows it. A subclass may have another source of it.

    Attributes:
        now_ns: nanoseconds since 1970, read at the end of each command: the start of the next.
        started_ms: when the server started, in milliseconds since 1970.
        up_since_ms: the same moment of ``monotonic_ms``.
        ahead_ms: by how much the time of day is ahead of ``monotonic_ms``.
    """

    def __init__(self) -> None:
        self.now_ns = self.read_ns()
        self.started_ms: Final = self.now_ns // 1_000_000
        self.up_since_ms: Final = self.monotonic_ms()
        self.ahead_ms = self.started_ms - self.up_since_ms

    def read_ns(self) -> int:
        """Return nanoseconds since 1970, to a quarter of a microsecond."""
        return int(time() * 1e9)

    def monotonic_ms(self) -> int:
        """Return milliseconds since some moment, whatever is done to the time of day meanwhile."""
        return monotonic_ns() // 1_000_000

    def refresh(self) -> int:
        """Read the time; return milliseconds since 1970."""
        self.now_ns = self.read_ns()
        return self.now_ns // 1_000_000

    def without_step(self, spent_ns: int) -> int:
        """Return how long something took that ends now, even if the time of day was set since."""
        step_ms = self.now_ns // 1_000_000 - self.monotonic_ms() - self.ahead_ms
        if abs(step_ms) >= STEP_MS:
            spent_ns -= step_ms * 1_000_000
        return max(0, spent_ns)
