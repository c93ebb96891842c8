"""The time of day, read as cheaply as can be: once or twice for every command.

Durations are measured on a clock that is never set. Everything that decides what the data is asks
the clock of its server. So a server that is given another source of time lives wholly by that.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import Final

from librt.time import time
from mypy_extensions import mypyc_attr

MS: Final = 1_000_000  # nanoseconds
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
        self.started_ms: Final = self.now_ns // MS
        self.up_since_ms: Final = self.monotonic_ms()
        self.ahead_ms = self.started_ms - self.up_since_ms

    def read_ns(self) -> int:
        """Return nanoseconds since 1970, to a quarter of a microsecond."""
        return int(time() * 1e9)

    def monotonic_ms(self) -> int:
        """Return milliseconds since some moment, whatever is done to the time of day meanwhile."""
        return monotonic_ns() // MS

    def refresh(self) -> int:
        """Read the time; return milliseconds since 1970."""
        self.now_ns = self.read_ns()
        return self.now_ns // MS

    def without_step(self, spent_ns: int) -> int:
        """Return how long something took that ends now, even if the time of day was set since."""
        step_ms = self.now_ns // MS - self.monotonic_ms() - self.ahead_ms
        if abs(step_ms) >= STEP_MS:
            spent_ns -= step_ms * MS
        return max(0, spent_ns)


class VirtualClock(Clock):
    """A clock that shows the system's time until it is frozen, or moved ahead.

    Its time of day and its monotonic time move together, so a move is not taken for a clock that
    was set. A reset is: the time of day goes back, and the monotonic time does not.

    Attributes:
        frozen_ns: the time of day at which it stands; 0: it runs.
    """

    def __init__(self) -> None:
        self.frozen_ns = 0
        self._frozen_ms = 0  # the monotonic time at which it stands
        self._ahead_ns = 0  # the time of day, of the system's while it runs
        self._ahead_ms = 0  # likewise, the monotonic time
        super().__init__()

    def read_ns(self) -> int:
        return self.frozen_ns or super().read_ns() + self._ahead_ns

    def monotonic_ms(self) -> int:
        return self._frozen_ms if self.frozen_ns else super().monotonic_ms() + self._ahead_ms

    def state(self) -> bytes:
        """Return ``system``, ``running`` ahead of it, or ``frozen``."""
        if self.frozen_ns:
            return b"frozen"
        return b"running" if self._ahead_ns else b"system"

    def ahead_ms_of_system(self) -> int:
        """Return by how much it is ahead of the system now; below 0 where it has stood."""
        ahead_ns = self.frozen_ns - super().read_ns() if self.frozen_ns else self._ahead_ns
        return ahead_ns // MS

    def freeze(self) -> None:
        """Stand."""
        if not self.frozen_ns:
            self._frozen_ms = self.monotonic_ms()
            self.refresh()
            self.frozen_ns = self.now_ns

    def go_to(self, ns: int) -> None:
        """Stand at a later time of day."""
        self.freeze()
        self._frozen_ms += ns // MS - self.frozen_ns // MS
        self.frozen_ns = ns
        self.now_ns = ns

    def run(self) -> None:
        """Run on from the time that it shows."""
        if self.frozen_ns:
            self._ahead_ns = self.frozen_ns - super().read_ns()
            self._ahead_ms = self._frozen_ms - super().monotonic_ms()
            self.frozen_ns = 0

    def reset(self) -> None:
        """Show the system's time of day again."""
        self.run()
        self._ahead_ns = 0


def is_moved(clock: Clock) -> bool:
    """Return whether a clock shows another time than the system."""
    return isinstance(clock, VirtualClock) and clock.state() != b"system"
