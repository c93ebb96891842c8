"""The figures of the server itself: the fields of INFO, and what INFO has in lines of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.metrics.page import SECTIONS, Page
from headrace.protocol.replies import Verbatim
from headrace.server.clock import MS
from headrace.server.commands.server.cluster import cluster_info
from headrace.server.dispatch.call import Call
from headrace.server.info.command_stats import (
    all_rows,
    cumulative,
    percentile_us,
)
from headrace.server.info.sections import SECTIONS as SECTIONS_OF_INFO
from headrace.server.statistics.statistics import QUICK_US, CallCounters

COMMANDS: Final = 4  # in one slice
# Not asked for: what they say is made here from the counters, or would take a look at all keys.
_LEFT_OUT: Final = (b"keysizes", b"commandstats", b"latencystats", b"modules", b"hotkeys")
# The ends of the buckets of a histogram, in microseconds: each is twice the one before.
_ENDS_US: Final = [QUICK_US << power for power in range(24)]
_FIRST_OF_LABELS: Final = ("role", "redis_version", "redis_build_id", "redis_mode", "os")
_IDENTITY: Final = (*_FIRST_OF_LABELS, "maxmemory_policy", "tcp_port", "run_id", "process_id")

Fields = dict[str, str]


def report_server(call: Call, page: Page) -> Iterator[None]:
    """Put all of it on a page, in slices."""
    fields: Fields = {}
    for name, _, section, _ in SECTIONS_OF_INFO:
        if name not in _LEFT_OUT:
            fields.update(fields_of(section(call)))
            yield
    if call.server.cluster is not None:
        reply = cluster_info(call)
        assert isinstance(reply, Verbatim)
        fields.update(fields_of(reply.text.splitlines()))
    report_fields(page, fields)
    _report_identity(call, page, fields)
    _report_replication(page, fields)
    _report_regions(page, fields)
    yield
    _report_databases(call, page, fields)
    _report_configuration(call, page)
    _report_logs(call, page)
    yield
    yield from _report_commands(call, page)


def fields_of(lines: list[bytes]) -> Fields:
    """Return the lines ``name:value`` by their names."""
    pairs = [line.decode("utf-8", "backslashreplace").partition(":") for line in lines]
    return {name: value for name, _, value in pairs}


def report_fields(page: Page, fields: Fields) -> None:
    """Put the fields on a page that the table names; a word is 1 where it says that all is well."""
    for family in SECTIONS["info"]:
        name, _, divisor = family.source.partition("/")
        value = fields.get(name)
        if value is not None:
            number = number_of(value)
            page.add(family.name, "", number / int(divisor) if divisor else number)


def number_of(value: str) -> float:
    """Return the value of a field as a number, as redis_exporter reads it."""
    if value in ("ok", "err", "fail"):
        return int(value == "ok")
    return float(value) if "." in value else int(value)


def parts_of(value: str) -> Fields:
    """Return ``name=value,name=value`` by the names."""
    pairs = [part.partition("=") for part in value.split(",")]
    return {name: found for name, _, found in pairs}


def _report_identity(call: Call, page: Page, fields: Fields) -> None:
    page.add("redis_up", "", 1)
    facts = {name: fields[name] for name in (*_IDENTITY, "master_replid")}
    page.add("redis_instance_info", page.labels(**facts), 1)
    up_s = int(fields["uptime_in_seconds"])
    page.add("redis_start_time_seconds", "", call.server.clock.now_ns // (1000 * MS) - up_s)


def _report_replication(page: Page, fields: Fields) -> None:
    master = fields.get("master_host")
    if master is not None:
        place = {"master_host": master, "master_port": fields["master_port"]}
        labels = page.labels(**place)
        page.add("redis_master_link_up", labels, int(fields["master_link_status"] == "up"))
        for name in ("master_last_io_seconds_ago", "master_sync_in_progress", "slave_repl_offset"):
            page.add(f"redis_{name}", labels, int(fields[name]))
        labels = page.labels(**place, read_only=fields["slave_read_only"])
        page.add("redis_slave_info", labels, 1)
    for number in range(int(fields["connected_slaves"])):
        parts = parts_of(fields.get(f"slave{number}", ""))
        if "offset" in parts:
            facts = {f"slave_{name}": parts[name] for name in ("ip", "port", "state")}
            labels = page.labels(**facts)
            page.add("redis_connected_slave_offset_bytes", labels, int(parts["offset"]))
            page.add("redis_connected_slave_lag_seconds", labels, int(parts["lag"]))


def _report_regions(page: Page, fields: Fields) -> None:
    for name, value in fields.items():
        peer = name.removeprefix("aa_peer")
        if peer.isdigit():
            parts = parts_of(value)
            labels = page.labels(peer=peer)
            page.add("headrace_region_up", labels, int(parts["state"] in ("up", "copying")))
            lag_ms = int(parts["lag_ms"])
            if lag_ms >= 0:  # else it is not known
                page.add("headrace_region_lag_seconds", labels, lag_ms / 1000)
            for figure in ("missing_records", "unacknowledged_records"):
                page.add(f"headrace_region_{figure}", labels, int(parts[figure]))


def _report_databases(call: Call, page: Page, fields: Fields) -> None:
    """Report all databases, empty ones, too, and of errors by their code."""
    for index in range(len(call.server.data.dbs)):
        parts = parts_of(fields.get(f"db{index}", "keys=0,expires=0"))
        labels = page.labels(db=f"db{index}")
        page.add("redis_db_keys", labels, int(parts["keys"]))
        page.add("redis_db_keys_expiring", labels, int(parts["expires"]))
        if "avg_ttl" in parts:
            page.add("redis_db_avg_ttl_seconds", labels, int(parts["avg_ttl"]) / 1000)
    for name, value in fields.items():
        code = name.removeprefix("errorstat_")
        if code != name:
            page.add("redis_errors_total", page.labels(err=code), int(parts_of(value)["count"]))


def _report_configuration(call: Call, page: Page) -> None:
    config = call.server.config
    for name in ("maxclients", "maxmemory", "io-threads", "repl-backlog-size"):
        value = int(config.text(name.encode()))
        page.add(f"redis_config_{name.replace('-', '_')}", "", value)
    limits = config.text(b"client-output-buffer-limit").decode().split()
    before = "redis_config_client_output_buffer_limit"
    for start in range(0, len(limits), 4):
        kind, hard, soft, seconds = limits[start : start + 4]
        hardly = page.labels(**{"class": kind, "limit": "hard"})
        softly = page.labels(**{"class": kind, "limit": "soft"})
        page.add(f"{before}_bytes", hardly, int(hard))
        page.add(f"{before}_bytes", softly, int(soft))
        page.add(f"{before}_overcome_seconds", softly, int(seconds))


def _report_logs(call: Call, page: Page) -> None:
    statistics = call.server.statistics
    commands = statistics.slowlog.commands
    page.add("redis_slowlog_length", "", len(commands))
    page.add("redis_slowlog_last_id", "", commands[0].number if commands else 0)
    seconds = commands[0].usec / 1e6 if commands else 0
    page.add("redis_last_slow_execution_duration_seconds", "", seconds)
    for event, series in statistics.latency.events.items():
        labels = page.labels(event_name=event.decode())
        at_s, ms = series.samples[-1]
        page.add("redis_latency_spike_last", labels, at_s)
        page.add("redis_latency_spike_duration_seconds", labels, ms / 1000)
    report_durations(page, "headrace_aof_fsync_seconds", "", statistics.syncs)


def _report_commands(call: Call, page: Page) -> Iterator[None]:
    reported = 0
    for row in all_rows():
        if row.calls or row.rejected_calls or row.failed_calls:
            _report_command(call, page, row)
            reported += 1
            if reported % COMMANDS == 0:
                yield


def _report_command(call: Call, page: Page, row: CallCounters) -> None:
    name = row.name.decode("utf-8", "backslashreplace")
    labels = page.labels(cmd=name)
    usec = row.nsec // 1000
    page.add("redis_commands_total", labels, row.calls)
    page.add("redis_commands_duration_seconds_total", labels, usec / 1e6)
    page.add("redis_commands_rejected_calls_total", labels, row.rejected_calls)
    page.add("redis_commands_failed_calls_total", labels, row.failed_calls)
    pairs = cumulative(row)
    if not pairs:
        return
    ends: list[tuple[float, int]] = [(float(end), under) for end, under in pairs]
    page.add_histogram("redis_commands_latencies_usec", labels, ends, pairs[-1][1], usec)
    report_durations(page, "headrace_command_latency_seconds", labels, row)
    if not call.server.statistics.track_latency:
        return
    family = "redis_latency_percentiles_usec"
    for percent in call.server.config.latency_tracking_info_percentiles:
        of_quantile = page.labels(cmd=name, quantile=f"{percent:g}")
        page.add(family, of_quantile, percentile_us(pairs, percent))
    page.add(f"{family}_sum", labels, usec)
    page.add(f"{family}_count", labels, row.calls)


def report_durations(page: Page, name: str, labels: str, row: CallCounters) -> None:
    """Put a histogram on a page, in seconds, whose buckets are always the same."""
    ends: list[tuple[float, int]] = []
    pairs = cumulative(row)
    at = under = 0
    for end_us in _ENDS_US:
        while at < len(pairs) and pairs[at][0] <= end_us:
            under = pairs[at][1]
            at += 1
        ends.append((end_us / 1e6, under))
    page.add_histogram(name, labels, ends, pairs[-1][1] if pairs else 0, row.nsec / 1e9)
