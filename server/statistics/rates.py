"""Rates per second over the last moments: the ``instantaneous_`` fields of INFO."""

from __future__ import annotations

from typing import Final

from headrace.server.statistics.counters import Counters

_SAMPLES: Final = 16
SAMPLE_MS: Final = 100  # the least time between two samples


class Rate:
    """The growth per second of a counter, averaged over the last 16 samples."""

    def __init__(self) -> None:
        self._last_total = 0
        self._last_ms = 0
        self._rates: list[int] = [0] * _SAMPLES
        self._next = 0

    def sample(self, total: int, now_ms: int) -> None:
        """Note the counter's value; a counter that went back has been reset."""
        elapsed_ms = now_ms - self._last_ms
        if self._last_ms and elapsed_ms > 0:
            growth = max(0, total - self._last_total)
            self._rates[self._next] = growth * 1000 // elapsed_ms
            self._next = (self._next + 1) % _SAMPLES
        self._last_total = total
        self._last_ms = now_ms

    @property
    def per_second(self) -> int:
        """The average of the samples."""
        return sum(self._rates) // _SAMPLES


class Rates:
    """All rates that INFO shows."""

    def __init__(self) -> None:
        self.commands = Rate()
        self.input_bytes = Rate()
        self.output_bytes = Rate()
        self.replicated_in = Rate()
        self.replicated_out = Rate()
        self.cycles = Rate()
        self.busy_us = Rate()
        self.sampled_ms = 0

    def reset(self) -> None:
        """Start anew with counters that start anew."""
        self.commands = Rate()
        self.input_bytes = Rate()
        self.output_bytes = Rate()
        self.replicated_in = Rate()
        self.replicated_out = Rate()
        self.cycles = Rate()
        self.busy_us = Rate()

    def is_due(self, now_ms: int) -> bool:
        """Whether the last sample is old enough for a new one."""
        return now_ms - self.sampled_ms >= SAMPLE_MS or now_ms < self.sampled_ms

    def sample(self, commands: int, counted: Counters, now_ms: int) -> None:
        """Note all counters."""
        self.sampled_ms = now_ms
        self.commands.sample(commands, now_ms)
        self.input_bytes.sample(counted.net_input_bytes, now_ms)
        self.output_bytes.sample(counted.net_output_bytes, now_ms)
        self.replicated_in.sample(counted.replicated_in, now_ms)
        self.replicated_out.sample(counted.replicated_out, now_ms)
        self.cycles.sample(counted.turns + counted.ticks, now_ms)
        self.busy_us.sample(counted.busy_us(), now_ms)
