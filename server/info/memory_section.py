"""Section ``memory`` of INFO, and the same figures for MEMORY STATS."""

from __future__ import annotations

from typing import Final

from headrace.server.account import STARTUP_BYTES
from headrace.server.clients.client_line import CLIENT_BYTES
from headrace.server.clients.session import REPLICA
from headrace.server.durability.files import Files
from headrace.server.state import ScriptFigures, Server
from headrace.server.statistics.memory import human, resident_bytes, system_bytes
from headrace.storage.costs import ENTRY_BYTES, EXPIRY_BYTES

_SYSTEM_BYTES: Final = system_bytes()


class MemoryFigures:
    """What is known of the memory in use, in bytes.

    ``used`` has all of it but ``resident``, which is the process with all that it consists of.
    """

    def __init__(self, server: Server, files: Files) -> None:
        server.clients.weigh_all()
        self.aof_buffer: Final = files.aof.buffer_bytes if files.aof is not None else 0
        self.backlog: Final = server.role.backlog_bytes()
        self.unread_by_replicas: Final = server.role.unread_bytes()
        of_region = 0 if files.log is None else files.log.memory_bytes()
        self.regions_backlog: Final = of_region
        self.graves: Final = server.account.graves_bytes()
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
        besides = self.not_counted - self.unread_by_replicas + self.graves
        self.overhead: Final = self.startup + of_clients + besides + tables
        self.dataset: Final = max(0, self.used - self.overhead)

    @property
    def fragmentation(self) -> float:
        """How much larger the process is than what it uses."""
        return self.resident / self.used

    @property
    def allocated_share(self) -> float:
        """How much larger it is without what Lua has."""
        return self.allocated / self.used

    @property
    def overhead_share(self) -> float:
        """How much larger it is than what its allocator has."""
        return self.resident / self.allocated

    @property
    def dataset_percentage(self) -> float:
        """The share of the data in what was added since the start."""
        grown = self.used - self.startup
        return min(100.0, 100.0 * self.dataset / grown) if grown > 0 else 0.0

    @property
    def peak_percentage(self) -> float:
        """The share of the peak that is in use."""
        return 100.0 * self.used / self.peak

    @property
    def bytes_per_key(self) -> int:
        """What was added since the start, by key."""
        return max(0, self.used - self.startup) // self.keys if self.keys else 0


def memory(server: Server, files: Files) -> list[bytes]:
    """The lines of the section.

    Nobody counts what Python allocates. So what is allocated is what is used, and active is all
    that the process has, as in Redis where the allocator says nothing.
    """
    figures = MemoryFigures(server, files)
    config = server.config
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
        b"maxmemory:%d" % config.maxmemory,
        b"maxmemory_human:" + human(config.maxmemory),
        b"maxmemory_policy:" + config.maxmemory_policy,
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
    """What scripts and functions take: what Lua holds, and the texts that are kept beside it."""
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
