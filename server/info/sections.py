"""The sections of INFO, and their lines.

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
from headrace.server.clients.client_line import CLIENT_BYTES, is_subscriber
from headrace.server.clients.session import PAUSED, REPLICA
from headrace.server.clock import MS, VirtualClock, is_moved
from headrace.server.data import STARTUP_BYTES
from headrace.server.dispatch.call import Call
from headrace.server.durability.durability import Durability
from headrace.server.durability.files import AofStatus, Files
from headrace.server.gate import LOADING_DATA
from headrace.server.info import command_stats
from headrace.server.state import ScriptFigures, Server
from headrace.server.statistics.memory import human, resident_bytes, system_bytes
from headrace.storage.faces import ENTRY_BYTES, EXPIRY_BYTES

_SYSTEM_BYTES: Final = system_bytes()


class MemoryFigures:
    """The memory in use, in bytes; ``resident`` is that of the whole process."""

    def __init__(self, server: Server, files: Files) -> None:
        server.clients.weigh_all()
        self.aof_buffer: Final = files.aof.buffer_bytes if files.aof is not None else 0
        self.backlog: Final = server.role.backlog_bytes()
        replicas = server.role.replicas
        self.unread_by_replicas: Final = 0 if replicas is None else replicas.unread_bytes()
        of_region = 0 if files.log is None else files.log.memory_bytes()
        self.regions_backlog: Final = of_region
        self.tombstones: Final = server.account.tombstones_bytes()
        self.not_counted: Final = self.aof_buffer + self.unread_by_replicas + of_region
        self.used: Final = server.account.used() + self.not_counted
        self.peak: Final = max(self.used, server.account.peak_bytes)
        self.peak_s: Final = server.account.peak_s
        self.startup: Final = STARTUP_BYTES
        self.resident: Final = resident_bytes()
        self.scripts: Final = server.script_figures()
        held_by_lua = self.scripts.interpreter_bytes + self.scripts.functions_bytes
        self.allocated: Final = max(self.used, self.resident - held_by_lua)  # by the allocator
        of_replicas = CLIENT_BYTES * server.clients.count(REPLICA)
        self.replicas: Final = of_replicas + self.unread_by_replicas
        self.clients: Final = server.account.clients_bytes() - of_replicas
        self.keys = 0
        self.databases: Final[list[tuple[int, int, int]]] = []
        tables = 0
        for db in server.data.dbs:
            if len(db):
                table = int(ENTRY_BYTES) * len(db)
                expiries = int(EXPIRY_BYTES) * db.volatile
                self.databases.append((db.index, table, expiries))
                self.keys += len(db)
                tables += table + expiries
        of_clients = self.clients + self.replicas + self.backlog
        besides = self.not_counted - self.unread_by_replicas + self.tombstones
        self.overhead: Final = self.startup + of_clients + besides + tables
        self.dataset: Final = max(0, self.used - self.overhead)

    @property
    def fragmentation(self) -> float:
        """Return how much larger the process is than what it uses."""
        return self.resident / self.used

    @property
    def allocated_share(self) -> float:
        """Return how much larger it is without what Lua has."""
        return self.allocated / self.used

    @property
    def overhead_share(self) -> float:
        """Return how much larger it is than what its allocator has."""
        return self.resident / self.allocated

    @property
    def dataset_percentage(self) -> float:
        """Return the share of the data in what was added since the start."""
        grown = self.used - self.startup
        return min(100.0, 100.0 * self.dataset / grown) if grown > 0 else 0.0

    @property
    def peak_percentage(self) -> float:
        """Return the share of the peak that is in use."""
        return 100.0 * self.used / self.peak

    @property
    def bytes_per_key(self) -> int:
        """Return what was added since the start, by key."""
        return max(0, self.used - self.startup) // self.keys if self.keys else 0


def memory(call: Call) -> list[bytes]:
    """Return the lines of the section.

    Python does not count what it allocates. So what is allocated is what is used, and active is all
    that the process has, as in Redis where the allocator says nothing.
    """
    server = call.server
    figures = MemoryFigures(server, call.durability.files)
    used = figures.used
    return [
        b"used_memory:%d" % used,
        b"used_memory_human:" + human(used),
        b"used_memory_rss:%d" % figures.resident,
        b"used_memory_rss_human:" + human(figures.resident),
        b"used_memory_peak:%d" % figures.peak,
        b"used_memory_peak_human:" + human(figures.peak),
        b"used_memory_peak_time:%d" % figures.peak_s,
        b"used_memory_peak_perc:%.2f%%" % figures.peak_percentage,
        b"used_memory_overhead:%d" % figures.overhead,
        b"used_memory_startup:%d" % figures.startup,
        b"used_memory_dataset:%d" % figures.dataset,
        b"used_memory_dataset_perc:%.2f%%" % figures.dataset_percentage,
        b"headrace_used_memory_measure:account",
        b"allocator_allocated:%d" % used,
        b"allocator_active:%d" % figures.allocated,
        b"allocator_resident:%d" % figures.allocated,
        b"allocator_muzzy:0",
        b"total_system_memory:%d" % _SYSTEM_BYTES,
        b"total_system_memory_human:" + human(_SYSTEM_BYTES),
        *_scripts(figures.scripts),
        b"maxmemory:%d" % server.config.maxmemory,
        b"maxmemory_human:" + human(server.config.maxmemory),
        b"maxmemory_policy:" + server.config.maxmemory_policy,
        b"allocator_frag_ratio:%.2f" % figures.allocated_share,
        b"allocator_frag_bytes:%d" % (figures.allocated - used),
        b"allocator_rss_ratio:1.00",
        b"allocator_rss_bytes:0",
        b"rss_overhead_ratio:%.2f" % figures.overhead_share,
        b"rss_overhead_bytes:%d" % (figures.resident - figures.allocated),
        b"mem_fragmentation_ratio:%.2f" % figures.fragmentation,
        b"mem_fragmentation_bytes:%d" % (figures.resident - used),
        b"mem_not_counted_for_evict:%d" % figures.not_counted,
        b"mem_replication_backlog:%d" % figures.backlog,
        b"mem_total_replication_buffers:%d" % max(figures.backlog, figures.unread_by_replicas),
        b"mem_replica_full_sync_buffer:0",
        b"mem_clients_slaves:%d" % figures.replicas,
        b"mem_clients_normal:%d" % figures.clients,
        b"mem_clients_normal_shared:0",
        b"mem_clients_normal_unshared:%d" % server.clients.unread_bytes(),
        b"mem_cluster_slot_migration_output_buffer:0",
        b"mem_cluster_slot_migration_input_buffer:0",
        b"mem_cluster_slot_migration_input_buffer_peak:0",
        b"mem_cluster_links:0",
        b"mem_aof_buffer:%d" % figures.aof_buffer,
        b"mem_allocator:libc",
        b"mem_overhead_db_hashtable_rehashing:0",
        b"active_defrag_running:0",
        b"lazyfree_pending_objects:%d" % len(server.data.unused),
        b"lazyfreed_objects:%d" % server.data.freed,
    ]


def _scripts(figures: ScriptFigures) -> list[bytes]:
    """Return the memory of scripts and functions: Lua's, and that of the texts kept beside it."""
    of_scripts = figures.interpreter_bytes
    total = of_scripts + figures.functions_bytes
    texts = figures.script_text_bytes + figures.library_text_bytes
    return [
        b"used_memory_lua:%d" % of_scripts,
        b"used_memory_vm_eval:%d" % of_scripts,
        b"used_memory_lua_human:" + human(of_scripts),
        b"used_memory_scripts_eval:%d" % figures.script_text_bytes,
        b"number_of_cached_scripts:%d" % figures.scripts,
        b"number_of_functions:%d" % figures.functions,
        b"number_of_libraries:%d" % figures.libraries,
        b"used_memory_vm_functions:%d" % figures.functions_bytes,
        b"used_memory_vm_total:%d" % total,
        b"used_memory_vm_total_human:" + human(total),
        b"used_memory_functions:%d" % figures.library_text_bytes,
        b"used_memory_hash_templates:0",
        b"used_memory_scripts:%d" % texts,
        b"used_memory_scripts_human:" + human(texts),
    ]


def persistence(call: Call) -> list[bytes]:
    """Return the lines on loading, what is being written, snapshots and the append-only file."""
    server, durability = call.server, call.durability
    loading = bool(server.gate.reasons & LOADING_DATA)
    return [
        b"loading:%d" % loading,
        b"async_loading:0",
        *_job(durability),
        *_snapshots(server, durability),
        *_rewrites(server, durability),
        b"backup_in_progress:0",
        b"module_fork_in_progress:0",
        b"module_fork_last_cow_size:0",
        *_open_file(durability.files),
        *(_loading(durability.files.status) if loading else ()),
    ]


def _job(durability: Durability) -> list[bytes]:
    job = durability.job()
    copied = 0 if job is None else job.copied_bytes
    return [
        b"current_cow_peak:%d" % copied,
        b"current_cow_size:%d" % copied,
        b"current_cow_size_age:0",
        b"current_fork_perc:%.2f" % (0.0 if job is None else job.share()),
        b"current_save_keys_processed:%d" % (0 if job is None else job.keys_done),
        b"current_save_keys_total:%d" % (0 if job is None else job.keys_total),
    ]


def _snapshots(server: Server, durability: Durability) -> list[bytes]:
    files = durability.files
    saves = durability.saving.status
    job = durability.job()
    saving = durability.saving.is_running()
    now_s = server.clock.now_ns // 1_000_000_000
    return [
        b"rdb_changes_since_last_save:%d" % server.changes.dirty,
        b"rdb_bgsave_in_progress:%d" % saving,
        b"rdb_last_save_time:%d" % files.last_save_s,
        b"rdb_last_bgsave_status:" + _word(saves.last_ok),
        b"rdb_last_bgsave_time_sec:%d" % saves.last_duration_s,
        b"rdb_current_bgsave_time_sec:%d"
        % (max(0, now_s - job.started_s) if saving and job is not None else -1),
        b"rdb_saves:%d" % saves.saves,
        b"rdb_saves_consecutive_failures:%d" % saves.failures_in_a_row,
        b"rdb_last_cow_size:%d" % saves.last_copied_bytes,
        b"rdb_last_load_keys_expired:%d" % files.status.keys_expired,
        b"rdb_last_load_keys_loaded:%d" % files.status.keys_loaded,
    ]


def _rewrites(server: Server, durability: Durability) -> list[bytes]:
    status = durability.files.status
    now_s = server.clock.now_ns // 1_000_000_000
    return [
        b"aof_enabled:%d" % durability.rewriting.is_on,
        b"aof_rewrite_in_progress:%d" % status.rewriting,
        b"aof_rewrite_scheduled:%d" % status.rewrite_scheduled,
        b"aof_last_rewrite_time_sec:%d" % status.last_rewrite_s,
        b"aof_current_rewrite_time_sec:%d"
        % (max(0, now_s - status.rewrite_started_s) if status.rewriting else -1),
        b"aof_last_bgrewrite_status:" + _word(status.last_rewrite_ok),
        b"aof_rewrites:%d" % status.rewrites,
        b"aof_rewrites_consecutive_failures:%d" % status.failures_in_a_row,
        b"aof_last_write_status:" + _word(status.write_ok and status.sync_ok and not status.lost),
        b"aof_last_cow_size:%d" % status.last_copied_bytes,
    ]


def _open_file(files: Files) -> list[bytes]:
    aof = files.aof
    if aof is None:
        return []
    status = files.status
    return [
        b"aof_current_size:%d" % aof.total_bytes,
        b"aof_base_size:%d" % aof.base_bytes,
        b"aof_pending_rewrite:%d" % status.rewrite_scheduled,
        b"aof_buffer_length:%d" % aof.buffer_bytes,
        b"aof_pending_bio_fsync:%d" % status.syncing,
        b"aof_delayed_fsync:%d" % status.delayed_syncs,
    ]


def _loading(status: AofStatus) -> list[bytes]:
    return [
        b"loading_start_time:%d" % status.loading_started_s,
        b"loading_total_bytes:%d" % status.total_bytes,
        b"loading_rdb_used_mem:0",
        b"loading_loaded_bytes:%d" % status.loaded_bytes,
        b"loading_loaded_perc:%.2f" % status.loaded_share(),
        b"loading_eta_seconds:%d" % status.loading_eta_s(),
    ]


def _word(ok: bool) -> bytes:
    return b"ok" if ok else b"err"


Lines = list[bytes]
# The types that INFO keysizes shows, and the names of their sizes.
_SIZED: Final = (
    (b"string", b"strings_sizes"),
    (b"list", b"lists_items"),
    (b"set", b"sets_items"),
    (b"zset", b"zsets_items"),
    (b"hash", b"hashes_items"),
)
# The types whose memory it shows, if that is asked for.
_WEIGHED: Final = (
    (b"list", b"lists_sizes"),
    (b"set", b"sets_sizes"),
    (b"zset", b"zsets_sizes"),
    (b"hash", b"hashes_sizes"),
)
Section = Callable[[Call], Lines]
_ADDED: Final[set[bytes]] = set()  # sections that not every server has

_UNAME: Final = os.uname()
_OS: Final = f"{_UNAME.sysname} {_UNAME.release} {_UNAME.machine}".encode()
_IN_NAMES: Final = bytes.maketrans(b"#:", b"__")  # what would end a name
_IN_LINES: Final = bytes.maketrans(b"\r\n", b"__")  # what would end a line
ACTIVE_MS: Final = 1000  # clients that sent something since then count as active
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
    clock = call.server.clock
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
    if isinstance(clock, VirtualClock) and is_moved(clock):
        lines.append(b"headrace_clock:" + clock.state())
        lines.append(b"headrace_clock_ahead_ms:%d" % clock.ahead_ms_of_system())
    return lines + _listeners(call)


def _compiler() -> bytes:
    """Return the version of Python's compiler, which stands in brackets behind Python's own."""
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
    """Section ``clients``: connected and waiting clients."""
    watching = subscribed = paused = active = 0
    since_ms = call.server.clock.now_ns // MS - ACTIVE_MS
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
        b"expire_cycle_cpu_milliseconds:%d" % (counted.expiry_ns // MS),
    ]


def _buffers(call: Call) -> Lines:
    """Return the lines on the buffers of clients, and on clients that their limits cut off."""
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
    """Return the lines on turns of the event loop in which something was done.

    A turn takes the processor's time of the thread that runs everything. A batch is what a client
    had sent when it was its turn.
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
    """Section ``replication``: this server as a master or a replica."""
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
        b"repl_backlog_first_byte_offset:%d" % (0 if backlog is None else backlog[0]),
        b"repl_backlog_histlen:%d" % (0 if backlog is None else backlog[1]),
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
    """Section ``hotkeys``: whether HOTKEYS is active, and the cost of that."""
    found = call.server.statistics.hot_keys
    if found is None:
        return []
    return [
        b"hotkeys-tracking-active:%d" % found.is_active,
        b"hotkeys-cmd-cpu-time:%d" % (found.note_ns // MS),
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
    """Return the least size of so many bits, as Redis writes it."""
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
    now_ms = call.server.clock.now_ns // MS
    return [
        b"db%d:keys=%d,expires=%d,avg_ttl=%d,subexpiry=%d"
        % (db.index, len(db), db.volatile, db.mean_ttl_ms(now_ms), db.parts.count())
        for db in call.server.data.dbs
        if len(db)
    ]


# In the order in which Redis shows them:
# (name to ask for, title, lines, shown by default).
SECTIONS: Final[list[tuple[bytes, bytes, Section, bool]]] = [
    (b"server", b"Server", server_section, True),
    (b"clients", b"Clients", clients, True),
    (b"memory", b"Memory", memory, True),
    (b"persistence", b"Persistence", persistence, True),
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
    """Add a section behind all others, which is shown where it has lines."""
    SECTIONS.append((name, title, section, True))
    _ADDED.add(name)


def info_text(call: Call, words: list[bytes]) -> bytes:
    """Return the sections that ``words`` ask for, the default ones without words."""
    asked = {word.lower() for word in words}
    everything = b"all" in asked or b"everything" in asked
    default = not words or b"default" in asked
    parts: list[bytes] = []
    for name, title, section, is_default in SECTIONS:
        if everything or name in asked or (default and is_default):
            found = section(call)
            if not found and name in _ADDED:
                continue
            lines = [b"# " + title, *found]
            parts.append(b"".join([line.translate(_IN_LINES) + b"\r\n" for line in lines]))
    return b"\r\n".join(parts)
