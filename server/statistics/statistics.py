"""All that is counted and measured of one server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.server.clock import STEP_MS, Clock
from headrace.server.statistics.counters import Counters
from headrace.server.statistics.key_sizes import KeySizes
from headrace.server.statistics.latency import LatencyMonitor
from headrace.server.statistics.rates import Rates
from headrace.server.statistics.slowlog import SlowLog

if TYPE_CHECKING:
    from headrace.server.statistics.hot_keys import HotKeys

NEVER_NS: Final = 1 << 61  # small enough to stay unboxed in compiled code


class Statistics:
    """What INFO, SLOWLOG, LATENCY and MEMORY show.

    Attributes:
        keyspace_hits, keyspace_misses: reads of keys that were there, and that were not.
        slow_ns: commands that take at least this long get a look by SLOWLOG and LATENCY.
        track_latency: how long commands take is put into histograms.
        hot_keys: what HOTKEYS has found; None where nobody has asked, or wants to know it still.
    """

    def __init__(self, clock: Clock) -> None:
        self.counters: Final = Counters()
        self.slowlog: Final = SlowLog()
        self.latency: Final = LatencyMonitor(clock)
        self.rates: Final = Rates()
        self.key_sizes: Final = KeySizes()
        self.keyspace_hits = 0
        self.keyspace_misses = 0
        self.slow_ns = NEVER_NS
        self.track_latency = True
        self.hot_keys: HotKeys | None = None
        self._clock: Final = clock

    def note_latency(self, event: bytes, spent_ns: int) -> None:
        """Show the latency monitor how long something took that has just ended."""
        clock = self._clock
        if spent_ns >= 1_000_000 * STEP_MS:
            spent_ns = clock.without_step(spent_ns)
        self.latency.sample(event, clock.now_ns // 1_000_000_000, spent_ns // 1_000_000)
