"""LATENCY: events that took longer than latency-monitor-threshold, in short time series."""

from __future__ import annotations

from typing import Final

from headrace.server.clock import Clock

SERIES_LENGTH: Final = 160


class LatencySeries:
    """Samples of one event, oldest first: (second, milliseconds); one sample per second."""

    def __init__(self) -> None:
        self.samples: list[tuple[int, int]] = []
        self.highest_ms = 0

    def add(self, at_s: int, ms: int) -> None:
        """Add a sample; within one second the highest stays."""
        self.highest_ms = max(self.highest_ms, ms)
        if self.samples and self.samples[-1][0] == at_s:
            self.samples[-1] = (at_s, max(ms, self.samples[-1][1]))
            return
        self.samples.append((at_s, ms))
        if len(self.samples) > SERIES_LENGTH:
            del self.samples[0]


class LatencyMonitor:
    """Series by event name; docs/differences.md lists the events."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self.threshold_ms = 0  # 0: off
        self.events: dict[bytes, LatencySeries] = {}
        self._collecting_ms = 0  # since when the garbage collector is at work

    def collector(self, phase: str, facts: dict[str, int]) -> None:
        """The garbage collector begins (``start``) or ends (``stop``): one of ``gc.callbacks``."""
        if not self.threshold_ms:
            return
        if phase == "start":
            self._collecting_ms = self._clock.monotonic_ms()
        else:
            spent_ms = self._clock.monotonic_ms() - self._collecting_ms
            self.sample(b"gc", self._clock.read_ns() // 1_000_000_000, spent_ms)

    def sample(self, event: bytes, at_s: int, ms: int) -> None:
        """Record that ``event`` took ``ms`` milliseconds, if that is long enough."""
        if self.threshold_ms and ms >= self.threshold_ms:
            series = self.events.get(event)
            if series is None:
                series = self.events[event] = LatencySeries()
            series.add(at_s, ms)
