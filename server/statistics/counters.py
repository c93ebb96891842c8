"""Counters behind INFO that no other part keeps."""

from __future__ import annotations

import logging
import time
from typing import Final

from mypy_extensions import i64

from headrace.protocol.replies import ErrorReply

log: Final = logging.getLogger("headrace")

MOST_CODES: Final = 128  # codes of errors that are counted apart
_MOST_OF_CODE: Final = 31  # bytes in which the code of an error and the space behind it stand


def thread_us() -> int:
    """Processor time that this thread has taken."""
    return time.thread_time_ns() // 1000


def _code_of(line: bytes) -> bytes:
    """The code of an error, whose text a script may have made up; ERR where there is none."""
    code, space, _ = ErrorReply(line).text[:_MOST_OF_CODE].partition(b" ")
    return code if space else b"ERR"


class Counters:
    """Counted since start or since CONFIG RESETSTAT; what was denied, since start.

    What each read touches is a machine integer.
    """

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
        """What the thread that runs everything has taken of a processor."""
        return thread_us() - self._busy_before_us

    def excess_ms(self, now_ms: int) -> int:
        """For how long there has been more than maxmemory; ``now_ms`` is of ``monotonic_ms``."""
        return max(0, now_ms - self.over_since_ms) if self.over_since_ms else 0

    def end_excess(self, now_ms: int) -> None:
        """There is no more than maxmemory from now on."""
        self.over_ms += self.excess_ms(now_ms)
        self.over_since_ms = 0

    def note_replicated(self, from_master: int, to_replica: int) -> None:
        """So many bytes of data and stream have come, or leave."""
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
