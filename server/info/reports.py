"""LATENCY GRAPH, LATENCY DOCTOR and MEMORY DOCTOR: samples drawn, and explained."""

from __future__ import annotations

from typing import Final

from headrace.server.clients.session import REPLICA
from headrace.server.config.config import Config
from headrace.server.durability.files import Files
from headrace.server.info.sections import MemoryFigures
from headrace.server.state import Server
from headrace.server.statistics.memory import anonymous_huge_bytes, human
from headrace.server.statistics.statistics import LatencySeries

_COLUMNS: Final = 80
_ROWS: Final = 4
_LEVELS: Final = b" _o#"  # how full one row is, in thirds

_EXPLAINED: Final[dict[bytes, str]] = {
    b"command": "Some commands take long: SLOWLOG GET shows which. Look for commands that walk "
    "many keys or entries (KEYS, XRANGE without COUNT, large trims), and give them limits.",
    b"fast-command": "Commands that are cheap took long, so the process did not get to run: lower "
    "the load of this machine, look for noisy neighbours, and measure the machine itself with "
    "redis-cli --intrinsic-latency 100.",
    b"aof-fsync-always": "Every write waits for the disk. A faster disk helps; so does "
    "appendfsync everysec, which may lose one second of writes when the machine fails.",
    b"aof-write": "Writing to the append-only file took long: the disk is busy, or remote. Use a "
    "local SSD and keep other work off it.",
    b"expire-cycle": "Many keys expire at the same moment. Spread their deadlines, or raise hz so "
    "that they are removed in smaller steps.",
}


class LatencySummary:
    """A summary of the samples of one event, in milliseconds and seconds."""

    def __init__(self, series: LatencySeries) -> None:
        values = [ms for _, ms in series.samples]
        count = len(values)
        self.count: Final = count
        self.mean_ms: Final = sum(values) // count
        self.deviation_ms: Final = sum([abs(ms - self.mean_ms) for ms in values]) // count
        span_s = series.samples[-1][0] - series.samples[0][0]
        self.period_s: Final = span_s / count
        self.highest_ms: Final = series.highest_ms


def graph(event: bytes, series: LatencySeries, now_s: int) -> bytes:
    """Draw the samples of an event, oldest first, each with its age below it."""
    values = [ms for _, ms in series.samples]
    high, low = max(values), min(values)
    lines = [
        b"%b - high %d ms, low %d ms (all time high %d ms)" % (event, high, low, series.highest_ms),
        b"-" * _COLUMNS,
    ]
    for start in range(0, len(values), _COLUMNS):
        part = series.samples[start : start + _COLUMNS]
        lines.extend(_bars([ms for _, ms in part], low, high))
        lines.append(b"")
        lines.extend(_labels([_age(now_s - at_s) for at_s, _ in part]))
        lines.append(b"")
    return b"\n".join([line.rstrip() for line in lines]) + b"\n"


def _bars(values: list[int], low: int, high: int) -> list[bytes]:
    steps = _ROWS * (len(_LEVELS) - 1)
    heights = [1 + (ms - low) * (steps - 1) // (high - low) if high > low else 1 for ms in values]
    rows: list[bytes] = []
    for row in range(_ROWS - 1, -1, -1):
        base = row * (len(_LEVELS) - 1)
        marks = [max(0, min(len(_LEVELS) - 1, height - base)) for height in heights]
        rows.append(bytes([_LEVELS[mark] for mark in marks]))
    return rows


def _labels(ages: list[bytes]) -> list[bytes]:
    """Return the ages written downwards, one column each."""
    longest = max([len(age) for age in ages])
    columns = [age.ljust(longest) for age in ages]
    return [bytes([column[row] for column in columns]) for row in range(longest)]


def _age(seconds: int) -> bytes:
    if seconds < 60:
        return b"%ds" % seconds
    if seconds < 3600:
        return b"%dm" % (seconds // 60)
    if seconds < 86400:
        return b"%dh" % (seconds // 3600)
    return b"%dd" % (seconds // 86400)


def latency_diagnosis(server: Server) -> bytes:
    """Return what was slow, and what may help, in plain words."""
    monitor = server.statistics.latency
    if not monitor.events:
        if not monitor.threshold_ms:
            return (
                b"Latency is not being watched. To watch it, say which events are worth a look: "
                b"CONFIG SET latency-monitor-threshold <milliseconds>.\n"
            )
        return b"Nothing took longer than %d ms. All is well.\n" % monitor.threshold_ms
    lines = ["These events took longer than they should:", ""]
    advice: list[str] = []
    for number, (event, series) in enumerate(monitor.events.items(), 1):
        summary = LatencySummary(series)
        lines.append(
            f"{number}. {event.decode()}: {summary.count} latency spikes (average "
            f"{summary.mean_ms}ms, mean deviation {summary.deviation_ms}ms, period "
            f"{summary.period_s:.2f} sec). Worst all time event {summary.highest_ms}ms."
        )
        if event in _EXPLAINED:
            advice.append(f"- {_EXPLAINED[event]}")
    if b"command" in monitor.events:
        advice.extend(_slowlog_advice(server.config))
    if advice:
        lines += ["", "What may help:", "", *advice]
    return ("\n".join(lines) + "\n").encode()


def _slowlog_advice(config: Config) -> list[str]:
    threshold_us = config.latency_monitor_threshold * 1000
    slower_us = config.slowlog_log_slower_than
    if slower_us < 0 or not config.slowlog_max_len or slower_us > threshold_us > 0:
        remedy = f"CONFIG SET slowlog-log-slower-than {threshold_us}"
        return [f"- SLOWLOG does not see these commands: {remedy}"]
    return []


_LEAST_BYTES: Final = 5 << 20  # of an instance that is worth a look
_NOT_DATA_BYTES: Final = 64 << 20  # what the interpreter and its code take, at most
_LARGE_CLIENT_BYTES: Final = 200 << 10
_LARGE_REPLICA_BYTES: Final = 10 << 20
_MANY_SCRIPTS: Final = 1000


def memory_diagnosis(server: Server, files: Files) -> bytes:
    """Return what is odd, and what may help."""
    figures = MemoryFigures(server, files)
    if figures.used < _LEAST_BYTES:
        return b"There is too little data here to say anything about its memory.\n"
    reports: list[bytes] = []
    if figures.peak > figures.used * 3 // 2:
        reports.append(
            b"Peak memory: up to %b were in use once, much more than now. New data will use what "
            b"the allocator kept; MEMORY PURGE gives some of it back." % human(figures.peak)
        )
    if figures.resident > _NOT_DATA_BYTES + figures.used * 7 // 5:
        reports.append(
            b"High total RSS: the process has %b, and uses %b. MEMORY PURGE gives back what the "
            b"allocator holds free." % (human(figures.resident), human(figures.used))
        )
    replicas = server.clients.count(REPLICA)
    clients = len(server.clients.sessions) - replicas
    if clients and figures.clients // clients > _LARGE_CLIENT_BYTES:
        reports.append(
            b"Big client buffers: clients hold %b, mostly replies that they do not read. CLIENT "
            b"LIST shows them by tot-mem; client-output-buffer-limit and maxmemory-clients bound "
            b"them." % human(figures.clients)
        )
    if replicas and figures.unread_by_replicas // replicas > _LARGE_REPLICA_BYTES:
        reports.append(
            b"Big replica buffers: %b wait for replicas, which are slower than the writes. "
            b"INFO replication shows how far each of them is." % human(figures.unread_by_replicas)
        )
    if figures.scripts.scripts > _MANY_SCRIPTS:
        reports.append(
            b"Many scripts: %d of them are kept. A script that takes what changes as KEYS and ARGV "
            b"is kept once; SCRIPT FLUSH forgets all." % figures.scripts.scripts
        )
    if anonymous_huge_bytes() > figures.resident // 2:
        reports.append(
            b"Huge pages: most of the memory lies in transparent huge pages, which wastes some "
            b"and makes latency uneven. They can be turned off for the whole machine."
        )
    if not reports:
        return b"Nothing looks odd about the memory in use.\n"
    lines = [b" * %b\n" % report for report in reports]
    return b"This is what looks odd:\n\n" + b"\n".join(lines)
