"""Counters of the rows of the command table: calls, times, percentiles, histograms.

A row keeps its calls in buckets by duration: the quick ones, below two microseconds, and for every
bit length of the microseconds one bucket. A percentile is the upper end of the bucket it falls in.
"""

from __future__ import annotations

from headrace.server.dispatch.rows import TABLE, Command
from headrace.server.statistics.statistics import QUICK_US, CallCounters


def all_rows() -> list[Command]:
    """Return every command and subcommand, a container before its subcommands."""
    rows: list[Command] = []
    for row in TABLE.values():
        rows.append(row)
        rows.extend(row.subcommands.values())
    return rows


def calls_of_all() -> int:
    """Return how many commands have been run."""
    return sum([row.calls for row in all_rows()])


def microseconds_of_all() -> int:
    """Return how long all commands that have been run took."""
    return sum([row.nsec for row in all_rows()]) // 1000


def cumulative(row: CallCounters) -> list[tuple[int, int]]:
    """Return the histogram of a row: (microseconds, calls that took less), in rising order."""
    pairs: list[tuple[int, int]] = []
    count = row.quick_calls
    if count:
        pairs.append((QUICK_US, count))
    for bits, calls in enumerate(row.histogram):
        if calls:
            count += calls
            pairs.append((1 << bits, count))
    return pairs


def percentile_us(pairs: list[tuple[int, int]], percent: float) -> int:
    """Return the microseconds that ``percent`` of the calls stay below; 0 without calls."""
    if not pairs:
        return 0
    wanted = pairs[-1][1] * percent / 100
    for usec, count in pairs:
        if count >= wanted:
            return usec
    return pairs[-1][0]


def stats_lines() -> list[bytes]:
    """Return the lines of ``INFO commandstats``."""
    lines: list[bytes] = []
    for row in all_rows():
        if row.calls or row.rejected_calls or row.failed_calls:
            usec = row.nsec // 1000
            lines.append(
                b"cmdstat_%b:calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d"
                % (
                    row.name,
                    row.calls,
                    usec,
                    usec / row.calls if row.calls else 0.0,
                    row.rejected_calls,
                    row.failed_calls,
                )
            )
    return lines


def latency_lines(percentiles: list[float]) -> list[bytes]:
    """Return the lines of ``INFO latencystats``."""
    lines: list[bytes] = []
    for row in all_rows():
        pairs = cumulative(row)
        if pairs:
            shown = [
                b"p%b=%.3f" % (_plain(percent), percentile_us(pairs, percent))
                for percent in percentiles
            ]
            lines.append(b"latency_percentiles_usec_%b:%b" % (row.name, b",".join(shown)))
    return lines


def _plain(percent: float) -> bytes:
    """Return a percentile without needless zeros: 50, 99.9."""
    return (b"%.6f" % percent).rstrip(b"0").rstrip(b".")
