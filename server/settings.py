"""Values that the server derives from its configuration, and updates when that changes.

Most parameters are read where they are needed. Those here are turned into something else first, or
are looked at so often that the server holds them in its own attributes.
"""

from __future__ import annotations

from typing import Final

from headrace.server.clients.clients import settle_all
from headrace.server.config.config import ChangeHook, Config
from headrace.server.eviction import Frequencies, LastWrites, WriteClock, counts_uses
from headrace.server.gate import CLIENTS_LIMITED, MEMORY_LIMITED, NO_REPLICAS, STRICT_SLOTS
from headrace.server.log import hide_data, log, set_level
from headrace.server.state import Server
from headrace.server.statistics.statistics import NEVER_NS
from headrace.storage.collection import SmallLimits
from headrace.storage.key_page import Usage
from headrace.storage.list.piece import NodeLimits as ListLimits
from headrace.storage.set.small import SetLimits
from headrace.storage.sharing import MODES
from headrace.storage.stream.appending import NodeLimits

_SMALL_LIMITS: Final = (
    "zset-max-listpack-entries zset-max-listpack-value hash-max-listpack-entries "
    "hash-max-listpack-value set-max-intset-entries set-max-listpack-entries set-max-listpack-value"
)
STARTS_WITHOUT: Final = "memory tracking cannot be enabled at runtime"


class Settings:
    """Carries values from a configuration into a server, now and after each CONFIG SET."""

    def __init__(self, server: Server) -> None:
        self._server: Final = server
        self._config: Final[Config] = server.config
        self._write_clock: WriteClock | None = None
        at_once: list[tuple[str, ChangeHook]] = [  # and in this order at the start
            (_SMALL_LIMITS, self.take_small_limits),
            ("aa-xadd-id-mode", self.take_id_mode),
            ("aa-peers", self.take_peers),
            ("notify-keyspace-events", self.take_events),
            ("cluster-strict-slots", self.take_strictness),
            ("lazyfree-lazy-expire", self.take_lazy_expiry),
            ("maxmemory", self.take_memory_limit),
            ("maxmemory-clients", self.take_clients_limit),
            ("maxmemory-policy", self.take_eviction_policy),
            ("min-replicas-to-write min-replicas-max-lag", self.take_replicas),
            ("hide-user-data-from-log", self.take_hiding),
            ("slowlog-log-slower-than latency-monitor-threshold", self.take_slowness),
            ("latency-tracking", self.take_latency_tracking),
            ("list-max-listpack-size", self.take_list_limits),
            ("stream-policy stream-consumer-reclaim-ms", self.take_policies),
        ]
        later: list[tuple[str, ChangeHook]] = [
            ("repl-backlog-size", self.take_backlog),
            ("slowlog-max-len", self.take_slowlog_length),
            ("key-memory-histograms", self.take_histograms),
            ("tracking-table-max-keys", self.take_tracking_limit),
            ("requirepass", self.take_password),
            ("loglevel", self.take_log_level),
            ("proto-max-bulk-len", self.take_bulk_length),
            ("stream-node-max-bytes stream-node-max-entries", self.take_node_limits),
        ]
        for names, take in at_once + later:
            self._config.on_change.update(dict.fromkeys(names.split(), take))
        for _, take in at_once:
            take()

    def take_policies(self) -> str | None:
        """Let policies hold by ``stream-policy``, and idle consumers go."""
        if self._config.stream_policy or self._config.stream_consumer_reclaim_ms:
            self._server.ready_policies()
        return None

    def take_events(self) -> str | None:
        """Publish the events that ``notify-keyspace-events`` asks for."""
        self._server.key_events.ask_for(self._config.notify_keyspace_events)
        return None

    def take_strictness(self) -> str | None:
        """Refuse requests whose keys are of several slots, as ``cluster-strict-slots`` says."""
        config = self._config
        strict = config.cluster_enabled and config.cluster_strict_slots
        self._server.gate.set(STRICT_SLOTS, strict)
        return None

    def take_lazy_expiry(self) -> str | None:
        """Record keys that expire as unlinked, or as deleted."""
        self._server.changes.expiries.lazy = self._config.lazyfree_lazy_expire
        return None

    def take_id_mode(self) -> str | None:
        """Let callers give the IDs that the new mode allows."""
        region = self._server.data.region
        if region is not None:
            region.mode = MODES[self._config.aa_xadd_id_mode]
        return None

    def take_peers(self) -> str | None:
        """Take the regions of the new list for those that take part."""
        region = self._server.data.region
        if region is not None:
            region.peers = {peer.region for peer in self._config.aa_peers}
        return None

    def take_memory_limit(self) -> str | None:
        """Look at memory before commands that need more of it only while there is a limit."""
        server = self._server
        limit = self._config.maxmemory
        server.gate.set(MEMORY_LIMITED, limit > 0)
        if not limit:
            server.account.keep(False)
            server.statistics.counters.end_excess(server.clock.monotonic_ms())
        elif server.account.used() > limit:
            log.warning(
                "maxmemory %d: %d bytes are in use. Keys are evicted as maxmemory-policy says, or "
                "commands that need memory are refused",
                limit,
                server.account.used(),
            )
        return None

    def take_tracking_limit(self) -> str | None:
        """Limit the keys that are remembered for clients that track."""
        self._server.tracking.bound()
        return None

    def take_clients_limit(self) -> str | None:
        """Look at what clients hold before commands only while there is a limit."""
        limited = self._config.maxmemory_clients != 0
        self._server.gate.set(CLIENTS_LIMITED, limited)
        if limited:
            self._server.clients.weigh_all()
        return None

    def take_eviction_policy(self) -> str | None:
        """Keep the usage of keys that the new policy needs."""
        server = self._server
        policy = self._config.maxmemory_policy
        usage: Usage | None = None
        if self._write_clock is not None:
            server.changes.listen(self._write_clock, False)
            self._write_clock = None
        if counts_uses(policy):
            usage = Frequencies(self._config)
        elif policy.endswith(b"-lrm"):
            usage = LastWrites()
            self._write_clock = WriteClock(server.data.dbs, server.clock)
            server.changes.listen(self._write_clock, True)
        for db in server.data.dbs:
            db.remember(usage)
        return None

    def take_replicas(self) -> str | None:
        """Refuse writes where more replicas are asked for than there are."""
        self._server.limit_writes()
        if self._server.gate.reasons & NO_REPLICAS:
            log.warning(
                "min-replicas-to-write %d: there are fewer, so all writes are refused",
                self._config.min_replicas_to_write,
            )
        return None

    def take_backlog(self) -> str | None:
        """Keep as much of the stream as is configured."""
        replicas = self._server.role.replicas
        return None if replicas is None else replicas.settings_changed()

    def take_hiding(self) -> str | None:
        """Write data to the log, or leave it out."""
        hide_data(self._config.hide_user_data_from_log)
        return None

    def take_slowness(self) -> str | None:
        """Set the shortest time that SLOWLOG or LATENCY has to see."""
        slow_us = self._config.slowlog_log_slower_than
        slow_ns = slow_us * 1000 if slow_us >= 0 else NEVER_NS
        threshold_ms = self._config.latency_monitor_threshold
        self._server.statistics.latency.threshold_ms = threshold_ms
        if threshold_ms:
            slow_ns = min(slow_ns, threshold_ms * 1_000_000)
        self._server.statistics.slow_ns = min(slow_ns, NEVER_NS)
        return None

    def take_slowlog_length(self) -> str | None:
        """Drop the commands that no longer fit into SLOWLOG."""
        self._server.statistics.slowlog.trim(self._config.slowlog_max_len)
        return None

    def take_histograms(self) -> str | None:
        """Refuse histograms at run time, as Redis does, which has to count from the start."""
        return STARTS_WITHOUT if self._config.key_memory_histograms else None

    def take_latency_tracking(self) -> str | None:
        """Measure commands, or stop it."""
        self._server.statistics.track_latency = self._config.latency_tracking
        return None

    def take_node_limits(self) -> str | None:
        """Append to streams by the new limits."""
        config = self._config
        self._server.data.node_limits = NodeLimits(
            config.stream_node_max_bytes, config.stream_node_max_entries
        )
        return None

    def take_small_limits(self) -> str | None:
        """Keep sorted sets, hashes and sets small up to the new limits."""
        config = self._config
        data = self._server.data
        data.sorted_set_limits = SmallLimits(
            config.zset_max_listpack_entries, config.zset_max_listpack_value
        )
        data.hash_limits = SmallLimits(
            config.hash_max_listpack_entries, config.hash_max_listpack_value
        )
        data.set_limits = SetLimits(
            config.set_max_intset_entries,
            config.set_max_listpack_entries,
            config.set_max_listpack_value,
        )
        return None

    def take_list_limits(self) -> str | None:
        """Cut lists by the new limit; that goes for lists that are short so far, too."""
        self._server.data.list_limits = ListLimits(self._config.list_max_listpack_size)
        return None

    def take_password(self) -> str | None:
        """Set the default user's password; clients that are logged in need not log in again."""
        server = self._server
        server.users.set_password(self._config.requirepass)
        settle_all(server.clients, server.users)
        return None

    def take_log_level(self) -> str | None:
        """Log from the new level on."""
        set_level(self._config.loglevel)
        return None

    def take_bulk_length(self) -> str | None:
        """Bound the words of connected clients, too."""
        for session in self._server.clients.sessions.values():
            session.peer.bound_words(self._config.proto_max_bulk_len)
        return None
