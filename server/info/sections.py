"""INFO: the sections, and what stands in each.

A section is a title and lines ``name:value``. Names and order are Redis's. What has no meaning here
(forks, replicas, scripts) is left out, or has the value that Redis shows when it is off. Names of
ours begin with ``headrace_``.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Callable
from typing import Final

from headrace.server.build import PYTHON_VERSION, REDIS_VERSION, VERSION, build_kind
from headrace.server.clients.client_line import is_subscriber
from headrace.server.clients.session import PAUSED, REPLICA
from headrace.server.dispatch.call import Call
from headrace.server.info import command_stats
from headrace.server.info.memory_section import memory
from headrace.server.info.persistence_section import persistence

Lines = list[bytes]
# The types of which INFO keysizes tells, and what their sizes are called.
_SIZED: Final = (
    (b"string", b"strings_sizes"),
    (b"list", b"lists_items"),
    (b"set", b"sets_items"),
    (b"zset", b"zsets_items"),
    (b"hash", b"hashes_items"),
)
# And those of which it tells how much memory they take, if that is asked for.
_WEIGHED: Final = (
    (b"list", b"lists_sizes"),
    (b"set", b"sets_sizes"),
    (b"zset", b"zsets_sizes"),
    (b"hash", b"hashes_sizes"),
)
Section = Callable[[Call], Lines]
_OF_REGIONS: Final[set[bytes]] = set()  # sections that other servers do not have

_UNAME: Final = os.uname()
_OS: Final = f"{_UNAME.sysname} {_UNAME.release} {_UNAME.machine}".encode()
_IN_NAMES: Final = bytes.maketrans(b"#:", b"__")  # what would end a name
_IN_LINES: Final = bytes.maketrans(b"\r\n", b"__")  # what would end a line
ACTIVE_MS: Final = 1000  # who sent something since then counts as active
_NO_FORKS: Final = [
    b"latest_fork_usec:0",
    b"total_forks:0",
    b"migrate_cached_sockets:0",
    b"slave_expires_tracked_keys:0",
    b"active_defrag_hits:0",
    b"active_defrag_misses:0",
    b"active_defrag_key_hits:0",
    b"active_defrag_key_misses:0",
    b"total_active_defrag_time:0",
    b"current_active_defrag_time:0",
]


def server_section(call: Call) -> Lines:
    """Section ``server``: versions, process, clock."""
    config = call.server.config
    uptime_s = (call.server.clock.monotonic_ms() - call.server.clock.up_since_ms) // 1000
    lines = [
        b"redis_version:" + REDIS_VERSION.encode(),
        b"redis_git_sha1:00000000",
        b"redis_git_dirty:0",
        b"redis_build_id:0",
        b"redis_mode:" + call.server.mode(),
        b"headrace_version:" + VERSION.encode(),
        b"headrace_build:" + build_kind().encode(),
        b"headrace_python:" + PYTHON_VERSION.encode(),
        b"headrace_event_loop:" + call.server.host.loop_name(),
        b"os:" + _OS,
        b"arch_bits:%d" % (sys.maxsize.bit_length() + 1),
        b"monotonic_clock:POSIX clock_gettime",
        b"multiplexing_api:epoll" if sys.platform == "linux" else b"multiplexing_api:kqueue",
        b"atomicvar_api:none",  # one thread runs all commands
        b"gcc_version:" + _compiler(),
        b"process_id:%d" % os.getpid(),
        b"process_supervised:" + call.server.host.supervisor(),
        b"run_id:" + call.server.run_id,
        b"tcp_port:%d" % (config.port or config.tls_port),
        b"server_time_usec:%d" % (call.server.clock.now_ns // 1000),
        b"uptime_in_seconds:%d" % uptime_s,
        b"uptime_in_days:%d" % (uptime_s // 86400),
        b"hz:%d" % config.hz,
        b"configured_hz:%d" % config.hz,
        b"lru_clock:%d" % (call.server.clock.now_ns // 1_000_000_000 & 0xFFFFFF),
        b"executable:" + os.fsencode(os.path.abspath(sys.argv[0] or sys.executable)),
        b"config_file:" + config.file,
        b"io_threads_active:0",
    ]
    return lines + _listeners(call)


def _compiler() -> bytes:
    """The version of the compiler that made Python: it stands in brackets behind Python's own."""
    return "".join(re.findall(r"\[.*?(\d+(?:\.\d+)+)", sys.version)[:1]).encode()


def _listeners(call: Call) -> Lines:
    config = call.server.config
    lines: Lines = []
    bound = b"".join([b",bind=" + address for address in config.bind])
    if config.port:
        lines.append(b"listener0:name=tcp%b,port=%d" % (bound, config.port))
    if config.unixsocket:
        lines.append(b"listener1:name=unix,bind=" + config.unixsocket)
    if config.tls_port:
        lines.append(b"listener2:name=tls%b,port=%d" % (bound, config.tls_port))
    return lines


def clients(call: Call) -> Lines:
    """Section ``clients``: who is connected, who waits for what."""
    watching = subscribed = paused = active = 0
    since_ms = call.server.clock.now_ns // 1_000_000 - ACTIVE_MS
    for session in call.server.clients.sessions.values():
        if session.watched:
            watching += 1
        if is_subscriber(session):
            subscribed += 1
        if session.special & PAUSED:
            paused += 1
        if session.active_ms > since_ms:
            active += 1
    blocking = call.server.blocking
    everybody = call.server.clients.everybody()
    return [
        b"connected_clients:%d" % (len(everybody) - call.server.clients.count(REPLICA)),
        b"cluster_connections:0",
        b"maxclients:%d" % call.server.config.maxclients,
        b"client_recent_max_input_buffer:%d" % call.server.clients.recent_max_input_bytes,
        b"client_recent_max_output_buffer:%d" % call.server.clients.recent_max_output_bytes,
        b"blocked_clients:%d" % (blocking.client_count + paused),
        b"tracking_clients:%d" % call.server.tracking.client_count,
        b"pubsub_clients:%d" % subscribed,
        b"watching_clients:%d" % watching,
        b"clients_in_timeout_table:%d" % blocking.deadline_count,
        b"active_clients:%d" % active,
        b"total_watched_keys:%d" % call.server.watches.key_count,
        b"total_blocking_keys:%d" % blocking.key_count,
        b"total_blocking_keys_on_nokey:%d" % blocking.needed_key_count,
    ]


def stats(call: Call) -> Lines:
    """Section ``stats``: counters since the start or CONFIG RESETSTAT."""
    counted = call.server.statistics.counters
    over_ms = counted.excess_ms(call.server.clock.monotonic_ms())
    pubsub = call.server.clients.pubsub
    tracking = call.server.tracking
    return [
        *_traffic(call),
        b"sync_full:%d" % counted.full_syncs,
        b"sync_partial_ok:%d" % counted.partial_syncs,
        b"sync_partial_err:%d" % counted.refused_partial_syncs,
        *_expiry(call),
        b"evicted_keys:%d" % counted.evicted_keys,
        b"evicted_clients:%d" % counted.evicted_clients,
        b"evicted_scripts:%d" % counted.evicted_scripts,
        b"total_eviction_exceeded_time:%d" % (counted.over_ms + over_ms),
        b"current_eviction_exceeded_time:%d" % over_ms,
        b"keyspace_hits:%d" % call.server.statistics.keyspace_hits,
        b"keyspace_misses:%d" % call.server.statistics.keyspace_misses,
        b"pubsub_channels:%d" % len(pubsub.channels),
        b"pubsub_patterns:%d" % len(pubsub.patterns),
        b"pubsubshard_channels:%d" % len(pubsub.shard_channels),
        *_NO_FORKS,
        b"tracking_total_keys:%d" % tracking.key_count,
        b"tracking_total_items:%d" % tracking.item_count,
        b"tracking_total_prefixes:%d" % tracking.prefixes.count(),
        b"unexpected_error_replies:%d" % counted.unexpected_errors,
        b"total_error_replies:%d" % counted.error_replies,
        b"dump_payload_sanitizations:0",
        *_buffers(call),
        *_turns(call),
        *_slow_log(call),
        b"hash_templates:0",
        b"hash_template_keys:0",
        b"acl_access_denied_auth:%d" % counted.denied_authentications,
        b"acl_access_denied_cmd:%d" % counted.denied_commands,
        b"acl_access_denied_key:%d" % counted.denied_keys,
        b"acl_access_denied_channel:%d" % counted.denied_channels,
        b"acl_access_denied_tls_cert:%d" % counted.denied_certificates,
    ]


def _traffic(call: Call) -> Lines:
    counted = call.server.statistics.counters
    rates = call.server.statistics.rates
    return [
        b"total_connections_received:%d" % counted.connections_received,
        b"total_commands_processed:%d" % command_stats.calls_of_all(),
        b"instantaneous_ops_per_sec:%d" % rates.commands.per_second,
        b"total_net_input_bytes:%d" % counted.net_input_bytes,
        b"total_net_output_bytes:%d" % counted.net_output_bytes,
        b"total_net_repl_input_bytes:%d" % counted.replicated_in,
        b"total_net_repl_output_bytes:%d" % counted.replicated_out,
        b"instantaneous_input_kbps:%.2f" % (rates.input_bytes.per_second / 1024),
        b"instantaneous_output_kbps:%.2f" % (rates.output_bytes.per_second / 1024),
        b"instantaneous_input_repl_kbps:%.2f" % (rates.replicated_in.per_second / 1024),
        b"instantaneous_output_repl_kbps:%.2f" % (rates.replicated_out.per_second / 1024),
        b"rejected_connections:%d" % counted.rejected_connections,
    ]


def _expiry(call: Call) -> Lines:
    counted = call.server.statistics.counters
    return [
        b"expired_subkeys:%d" % call.server.changes.expired_parts,
        b"expired_subkeys_active:%d" % counted.expired_parts_actively,
        b"expired_keys:%d" % call.server.changes.expired_keys,
        b"expired_keys_active:%d" % counted.expired_actively,
        b"expired_stale_perc:0.00",
        b"expired_time_cap_reached_count:%d" % counted.expiry_capped,
        b"expire_cycle_cpu_milliseconds:%d" % (counted.expiry_ns // 1_000_000),
    ]


def _buffers(call: Call) -> Lines:
    """What went through the buffers of clients, and whom their limits cut off."""
    counted = call.server.statistics.counters
    return [
        b"total_reads_processed:%d" % counted.reads,
        b"total_writes_processed:%d" % counted.writes,
        b"io_threaded_reads_processed:0",
        b"io_threaded_writes_processed:0",
        b"io_threaded_total_prefetch_batches:0",
        b"io_threaded_total_prefetch_entries:0",
        b"client_query_buffer_limit_disconnections:%d" % counted.query_buffer_disconnections,
        b"client_output_buffer_limit_disconnections:%d" % counted.output_buffer_disconnections,
        b"reply_buffer_shrinks:0",
        b"reply_buffer_expands:0",
    ]


def _slow_log(call: Call) -> Lines:
    slow_log = call.server.statistics.slowlog
    return [
        b"slowlog_commands_count:%d" % slow_log.count,
        b"slowlog_commands_time_ms_max:%.2f" % (slow_log.longest_us / 1000),
        b"slowlog_commands_time_ms_sum:%.2f" % (slow_log.sum_us / 1000),
    ]


def _turns(call: Call) -> Lines:
    """Turns of the event loop: those in which something was done, and what they took.

    A turn takes the processor's time of the thread that runs everything. A batch of a client is
    what it had sent when it was its turn.
    """
    counted = call.server.statistics.counters
    rates = call.server.statistics.rates
    cycles = rates.cycles.per_second
    batches = counted.batches
    return [
        b"eventloop_cycles:%d" % (counted.turns + counted.ticks),
        b"eventloop_duration_sum:%d" % counted.busy_us(),
        b"eventloop_duration_cmd_sum:%d" % command_stats.microseconds_of_all(),
        b"instantaneous_eventloop_cycles_per_sec:%d" % cycles,
        b"instantaneous_eventloop_duration_usec:%d"
        % (rates.busy_us.per_second // cycles if cycles else 0),
        b"eventloop_cycles_with_clients_processing:%d" % counted.turns,
        b"total_client_processing_events:%d" % batches,
        b"avg_pipeline_length_sum:%d" % counted.requests,
        b"avg_pipeline_length_cnt:%d" % batches,
        b"avg_pipeline_length:%.2f" % (int(counted.requests) / batches if batches else 0.0),
    ]


def replication(call: Call) -> Lines:
    """Section ``replication``: what this server is to others that hold the same data."""
    config = call.server.config
    of_server = call.server.role
    replicas = of_server.replicas
    following = of_server.following if of_server.follows else None
    good: list[bytes] = []
    if config.min_replicas_to_write and config.min_replicas_max_lag:
        good = [b"min_slaves_good_slaves:%d" % (0 if replicas is None else replicas.good())]
    backlog = None if replicas is None else replicas.backlog()
    return [
        *([b"role:master"] if following is None else [b"role:slave", *following.info()]),
        b"connected_slaves:%d" % (0 if replicas is None else replicas.count()),
        *good,
        *([] if replicas is None else replicas.info()),
        b"master_failover_state:" + of_server.failover,
        b"master_replid:" + of_server.id,
        b"master_replid2:" + of_server.second_id,
        b"master_repl_offset:%d" % of_server.offset(),
        b"second_repl_offset:%d" % of_server.second_offset,
        b"repl_backlog_active:%d" % (backlog is not None),
        b"repl_backlog_size:%d" % config.repl_backlog_size,
        b"repl_backlog_first_byte_offset:%d" % (0 if backlog is None else backlog.first),
        b"repl_backlog_histlen:%d" % (0 if backlog is None else backlog.size),
    ]


def cpu(call: Call) -> Lines:
    """Section ``cpu``: seconds that the process and its children took."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = [
        b"used_cpu_sys:%.6f" % own.ru_stime,
        b"used_cpu_user:%.6f" % own.ru_utime,
        b"used_cpu_sys_children:%.6f" % children.ru_stime,
        b"used_cpu_user_children:%.6f" % children.ru_utime,
    ]
    if sys.platform == "linux":
        thread = resource.getrusage(resource.RUSAGE_THREAD)
        lines.append(b"used_cpu_sys_main_thread:%.6f" % thread.ru_stime)
        lines.append(b"used_cpu_user_main_thread:%.6f" % thread.ru_utime)
    return lines


def threads(call: Call) -> Lines:
    """Section ``threads``: the one that serves clients."""
    counted = call.server.statistics.counters
    return [
        b"io_thread_0:clients=%d,reads=%d,writes=%d"
        % (len(call.server.clients.sessions), counted.reads, counted.writes)
    ]


def hot_keys(call: Call) -> Lines:
    """Section ``hotkeys``: whether HOTKEYS looks for them, and what that costs."""
    found = call.server.statistics.hot_keys
    if found is None:
        return []
    return [
        b"hotkeys-tracking-active:%d" % found.is_active,
        b"hotkeys-cmd-cpu-time:%d" % (found.note_ns // 1_000_000),
    ]


def key_sizes(call: Call) -> Lines:
    """Section ``keysizes``: how many keys are how large; see ``statistics.key_sizes``."""
    lines: Lines = []
    server = call.server
    with_memory = server.config.key_memory_histograms
    for sizes in server.statistics.key_sizes.ask(server.data.dbs, with_memory):
        lines += _distributions(sizes.db, _SIZED, sizes.by_type)
        if with_memory:
            lines += _distributions(sizes.db, _WEIGHED, sizes.memory)
    return lines


def _distributions(
    db: int, kinds: tuple[tuple[bytes, bytes], ...], found: dict[bytes, list[int]]
) -> Lines:
    lines: Lines = []
    for name, title in kinds:
        counts = found.get(name)
        if counts is not None:
            shown = [_size(bits) + b"=%d" % count for bits, count in enumerate(counts) if count]
            lines.append(b"db%d_distrib_%b:%b" % (db, title, b",".join(shown)))
    return lines


def _size(bits: int) -> bytes:
    """The least size of so many bits, as Redis writes it."""
    if not bits:
        return b"0"
    power, rest = divmod(bits - 1, 10)
    return b"%d%b" % (1 << rest, (b"", b"K", b"M", b"G", b"T", b"P", b"E")[power])


def modules(call: Call) -> Lines:
    """Section ``modules``: none."""
    return []


def command_statistics(call: Call) -> Lines:
    """Section ``commandstats``."""
    return command_stats.stats_lines()


def error_statistics(call: Call) -> Lines:
    """Section ``errorstats``: error replies by code, which may be a script's."""
    by_code = call.server.statistics.counters.errors_by_code
    return [
        b"errorstat_%b:count=%d" % (code.translate(_IN_NAMES), by_code[code])
        for code in sorted(by_code)
    ]


def latency_statistics(call: Call) -> Lines:
    """Section ``latencystats``: percentiles by command."""
    if not call.server.statistics.track_latency:
        return []
    return command_stats.latency_lines(call.server.config.latency_tracking_info_percentiles)


def cluster(call: Call) -> Lines:
    """Section ``cluster``."""
    return [b"cluster_enabled:%d" % (call.server.cluster is not None)]


def keyspace(call: Call) -> Lines:
    """Section ``keyspace``: the databases that hold keys."""
    now_ms = call.server.clock.now_ns // 1_000_000
    return [
        b"db%d:keys=%d,expires=%d,avg_ttl=%d,subexpiry=%d"
        % (db.index, len(db), db.volatile, db.mean_ttl_ms(now_ms), db.parts.count())
        for db in call.server.data.dbs
        if len(db)
    ]


def _memory(call: Call) -> Lines:
    return memory(call.server, call.durability.files)


def _persistence(call: Call) -> Lines:
    return persistence(call.server, call.durability)


# In the order in which Redis shows them:
# (name to ask for, title, what it says, shown by default).
SECTIONS: Final[list[tuple[bytes, bytes, Section, bool]]] = [
    (b"server", b"Server", server_section, True),
    (b"clients", b"Clients", clients, True),
    (b"memory", b"Memory", _memory, True),
    (b"persistence", b"Persistence", _persistence, True),
    (b"threads", b"Threads", threads, True),
    (b"stats", b"Stats", stats, True),
    (b"replication", b"Replication", replication, True),
    (b"cpu", b"CPU", cpu, True),
    (b"hotkeys", b"Hotkeys", hot_keys, True),
    (b"modules", b"Modules", modules, True),
    (b"commandstats", b"Commandstats", command_statistics, False),
    (b"errorstats", b"Errorstats", error_statistics, True),
    (b"latencystats", b"Latencystats", latency_statistics, False),
    (b"cluster", b"Cluster", cluster, True),
    (b"keyspace", b"Keyspace", keyspace, True),
    (b"keysizes", b"Keysizes", key_sizes, True),
]


def add_section(name: bytes, title: bytes, section: Section) -> None:
    """Have a section of ours behind all others, for a server that is a region."""
    SECTIONS.append((name, title, section, True))
    _OF_REGIONS.add(name)


def info_text(call: Call, words: list[bytes]) -> bytes:
    """The sections that ``words`` ask for, the default ones without words."""
    asked = {word.lower() for word in words}
    everything = b"all" in asked or b"everything" in asked
    default = not words or b"default" in asked
    parts: list[bytes] = []
    for name, title, section, is_default in SECTIONS:
        if name in _OF_REGIONS and call.server.data.region is None:
            continue
        if everything or name in asked or (default and is_default):
            lines = [b"# " + title, *section(call)]
            parts.append(b"".join([line.translate(_IN_LINES) + b"\r\n" for line in lines]))
    return b"\r\n".join(parts)
