"""The counters and measurements of one server."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from librt.vecs import vec
from mypy_extensions import i64

from headrace.protocol.replies import ErrorReply
from headrace.server.clock import MS, STEP_MS, Clock
from headrace.server.config.config import Config
from headrace.server.statistics.key_sizes import KeySizes

if TYPE_CHECKING:
    from headrace.server.statistics.hot_keys import HotKeys

_NO_CALLS: Final = [0] * 64
QUICK_US: Final = 2  # the end of the first bucket
QUICK_NS: Final = QUICK_US * 1000


class CallCounters:
    """The counters of one command; they are the row of the command, as far as clients know it.

    Attributes:
        name: lower case; ``container|subcommand`` for a subcommand.
        of_connection: it concerns the connection, and no data.
        calls: how often it was run; nsec: how long that took.
        rejected_calls: refused before it was run; failed_calls: run, and answered by an error.
        quick_calls: calls that took less than two microseconds.
        histogram: the others, by the bit length of their microseconds; empty while there are none.
    """

    def __init__(self, name: bytes, of_connection: bool) -> None:
        self.name: Final = name
        self.of_connection: Final = of_connection
        self.calls = 0
        self.nsec = 0
        self.rejected_calls = 0
        self.failed_calls = 0
        self.quick_calls = 0
        self.histogram = vec[i64]()

    def reset_counters(self) -> None:
        """Count its calls anew."""
        self.calls = 0
        self.nsec = 0
        self.rejected_calls = 0
        self.failed_calls = 0
        self.quick_calls = 0
        self.histogram = vec[i64]()

    def count(self, calls: int, each_ns: int, in_histogram: bool) -> None:
        """Count calls that took so long each."""
        self.calls += calls
        self.nsec += calls * each_ns
        if in_histogram and each_ns < QUICK_NS:
            self.quick_calls += calls
        elif in_histogram:
            if not len(self.histogram):
                self.histogram = vec[i64](_NO_CALLS)
            self.histogram[(each_ns // 1000).bit_length()] += calls


log: Final = logging.getLogger("headrace")

MOST_CODES: Final = 128  # codes of errors that are counted apart
_MOST_OF_CODE: Final = 31  # bytes in which the code of an error and the space behind it stand


def thread_us() -> int:
    """Return the processor time of this thread, in microseconds."""
    return time.thread_time_ns() // 1000


def _code_of(line: bytes) -> bytes:
    code, space, _ = ErrorReply(line).text[:_MOST_OF_CODE].partition(b" ")
    return code if space else b"ERR"


class Counters:
    """Counted since start or since CONFIG RESETSTAT; what was denied, since start."""

    def __init__(self) -> None:
        self.denied_authentications = 0
        self.denied_commands = 0
        self.denied_keys = 0
        self.denied_channels = 0
        self.denied_certificates = 0
        self.reset()

    def reset(self) -> None:
        """Start counting anew."""
        self.connections_received = 0
        self.rejected_connections = 0
        self.net_input_bytes: i64 = 0
        self.net_output_bytes: i64 = 0
        self.replicated_in: i64 = 0  # bytes from the master; they are in the input, too
        self.replicated_out: i64 = 0  # and to replicas
        self.reads: i64 = 0
        self.writes: i64 = 0
        self.turns: i64 = 0  # of the event loop, in which clients were served
        self.ticks: i64 = 0  # of the cron
        self.batches: i64 = 0  # requests of one client that were parsed at once
        self.requests: i64 = 0  # in all of these
        self._busy_before_us = thread_us()
        self.error_replies = 0
        self.errors_by_code: dict[bytes, int] = {}
        self.tells_errors_apart = True
        self.unexpected_errors = 0
        self.full_syncs = 0  # replicas that were sent a full copy
        self.partial_syncs = 0  # replicas that went on where they stood
        self.refused_partial_syncs = 0  # replicas that wanted to, and could not
        self.evicted_clients = 0
        self.evicted_keys = 0
        self.over_ms = 0  # for how long there was more than maxmemory, up to the last end of it
        self.over_since_ms = 0  # of ``monotonic_ms``: there is, since then; 0: there is not
        self.evicted_scripts = 0
        self.output_buffer_disconnections = 0
        self.query_buffer_disconnections = 0
        self.expiry_ns = 0  # time that active expiry took
        self.expiry_capped = 0  # how often it had to stop with keys left to expire
        self.expired_actively = 0  # keys that it met
        self.expired_parts_actively = 0  # parts of values that it met

    def busy_us(self) -> int:
        """Return the processor time of the thread that runs everything, in microseconds."""
        return thread_us() - self._busy_before_us

    def excess_ms(self, now_ms: int) -> int:
        """Return how long more than maxmemory was in use; ``now_ms`` is of ``monotonic_ms``."""
        return max(0, now_ms - self.over_since_ms) if self.over_since_ms else 0

    def end_excess(self, now_ms: int) -> None:
        """Note that no more than maxmemory is in use from now on."""
        self.over_ms += self.excess_ms(now_ms)
        self.over_since_ms = 0

    def note_replicated(self, from_master: int, to_replica: int) -> None:
        """Count so many bytes of data and stream that have come, or leave."""
        self.net_input_bytes += from_master
        self.replicated_in += from_master
        self.replicated_out += to_replica

    def note_write(self, size: int) -> None:
        """Count one write of ``size`` bytes to a client."""
        self.net_output_bytes += size
        self.writes += 1

    def count_error(self, line: bytes) -> None:
        """Count an error reply by its code."""
        self.error_replies += 1
        if not self.tells_errors_apart:
            return
        by_code = self.errors_by_code
        code = _code_of(line)
        if code not in by_code and len(by_code) >= MOST_CODES:
            log.warning(
                "INFO errorstats stops telling errors apart: more than %d codes. "
                "CONFIG RESETSTAT lets it start again.",
                MOST_CODES,
            )
            by_code.clear()
            by_code[b"ERRORSTATS_DISABLED"] = 1
            self.tells_errors_apart = False
            return
        by_code[code] = by_code.get(code, 0) + 1


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
        """Return the average of the samples."""
        return sum(self._rates) // _SAMPLES


class Rates:
    """All rates that INFO shows."""

    def __init__(self) -> None:
        self.sampled_ms = 0
        self.reset()

    def reset(self) -> None:
        """Start anew, as the counters do."""
        self.commands = Rate()
        self.input_bytes = Rate()
        self.output_bytes = Rate()
        self.replicated_in = Rate()
        self.replicated_out = Rate()
        self.cycles = Rate()
        self.busy_us = Rate()

    def is_due(self, now_ms: int) -> bool:
        """Return whether the last sample is old enough for a new one."""
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
        """Note a ``start`` or ``stop`` of the garbage collector: one of ``gc.callbacks``."""
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


class SlowCommand(NamedTuple):
    """One logged command; ``argv`` has those of its ``words`` that are kept, as in Redis."""

    number: int
    at_s: int
    usec: int
    argv: list[bytes]
    words: int
    address: bytes
    name: bytes


class SlowLog:
    """A bounded log of slow commands."""

    def __init__(self) -> None:
        self.commands: deque[SlowCommand] = deque()
        self.next_number = 0
        self.reset_counters()

    def reset_counters(self) -> None:
        """Count anew; logged commands stay."""
        self.count = 0
        self.longest_us = 0
        self.sum_us = 0

    def add(
        self, argv: list[bytes], at_s: int, usec: int, address: bytes, name: bytes, config: Config
    ) -> None:
        """Log a command of a client, and drop the oldest where there are too many."""
        self.count += 1
        self.sum_us += usec
        self.longest_us = max(self.longest_us, usec)
        most = config.slowlog_max_len
        if not most:
            return
        kept = _shorten(argv, config.slowlog_entry_max_argc, config.slowlog_entry_max_string_len)
        number = self.next_number
        self.commands.appendleft(SlowCommand(number, at_s, usec, kept, len(argv), address, name))
        self.next_number += 1
        self.trim(most)

    def trim(self, most: int) -> None:
        """Drop the oldest commands beyond ``most``."""
        while len(self.commands) > most:
            self.commands.pop()


def _shorten(argv: list[bytes], most_words: int, most_bytes: int) -> list[bytes]:
    dropped = 0 if len(argv) <= most_words else len(argv) - most_words + 1
    kept = [
        word
        if len(word) <= most_bytes
        else b"%b... (%d more bytes)" % (word[:most_bytes], len(word) - most_bytes)
        for word in argv[: len(argv) - dropped]
    ]
    if dropped:
        kept.append(b"... (%d more arguments)" % dropped)
    return kept


NEVER_NS: Final = 1 << 61  # small enough to stay unboxed in compiled code


class Statistics:
    """The figures of INFO, SLOWLOG, LATENCY and MEMORY.

    Attributes:
        keyspace_hits, keyspace_misses: reads of keys that were there, and that were not.
        slow_ns: commands that take at least this long get a look by SLOWLOG and LATENCY.
        track_latency: the durations of commands are put into histograms.
        syncs: of the append-only file; their durations are always put into one.
        hot_keys: the findings of HOTKEYS; None without a search, or after HOTKEYS RESET.
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
        self.syncs: Final = CallCounters(b"fsync", False)
        self.hot_keys: HotKeys | None = None
        self._clock: Final = clock

    def note_latency(self, event: bytes, spent_ns: int) -> None:
        """Pass the duration of something that has just ended to the latency monitor."""
        clock = self._clock
        if spent_ns >= STEP_MS * MS:
            spent_ns = clock.without_step(spent_ns)
        self.latency.sample(event, clock.now_ns // 1_000_000_000, spent_ns // MS)
