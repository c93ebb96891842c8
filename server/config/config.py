"""The configuration: a typed attribute for each parameter, CONFIG GET and CONFIG SET.

Parameters are declared in ``server.config.parameters``; ``server.config.files`` reads files and
command lines. A part of the server that must act when a value changes registers a function in
``Config.on_change``; it may refuse, and then nothing of the whole CONFIG SET holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from headrace.compat.errors import LOADING, CommandError, config_set_failed, config_unknown
from headrace.compat.glob import matches
from headrace.compat.parameters import (
    HIDDEN,
    IMMUTABLE,
    MULTI,
    NOT_WHILE_LOADING,
    PROTECTED,
    RELOADS,
    BadValue,
    Parameter,
)
from headrace.protocol.requests import split_words
from headrace.server.config.kinds import OutputLimit, PeerAddress, PolicyLines
from headrace.server.config.parameters import ACTIVE, ALL, BY_NAME
from headrace.storage.sharing import NAME_MAX_BYTES

IS_IMMUTABLE: Final = "can't set immutable config"
IS_PROTECTED: Final = "can't set protected config"
IS_DUPLICATE: Final = "duplicate parameter"
NEEDS_FILE: Final = "a region (aa-region-id) needs appendonly yes"
NEEDS_SNAPSHOTS: Final = "a region (aa-region-id) needs aof-use-rdb-preamble yes"
IS_CLIENTS_PORT: Final = "aa-port is for other regions alone: it cannot be the port of clients"
IS_LONG_NAME: Final = f"aa-database has {NAME_MAX_BYTES} bytes at most"
IS_OWN_REGION: Final = "aa-peers names the region itself (aa-region-id)"

# Called after a value has changed; a text refuses the change and is the reason for the user.
ChangeHook = Callable[[], "str | None"]


class Config:
    """The values of all parameters, by attribute.

    Attributes:
        on_change: functions to call at run time when a parameter has changed, by its name.
        file: absolute path of the configuration file; empty when there is none.
        ignored: names met while loading, with another value than the default, that change nothing.
        renamed_commands: (name, new name or empty) of ``rename-command``, in order.
        users: of the lines ``user NAME RULE ...``, in order: the name and the rules of each.
    """

    port: int
    bind: list[bytes]
    bind_source_addr: bytes
    protected_mode: bool
    unixsocket: bytes
    unixsocketperm: int
    tcp_backlog: int
    tcp_keepalive: int
    timeout: int
    socket_mark_id: int
    maxclients: int
    metrics_port: int
    metrics_bind: list[bytes]
    metrics_streams: bytes
    metrics_streams_max: int
    metrics_consumers: bool
    requirepass: bytes
    acl_pubsub_default: bytes
    aclfile: bytes
    acllog_max_len: int
    tls_port: int
    tls_cert_file: bytes
    tls_key_file: bytes
    tls_key_file_pass: bytes
    tls_ca_cert_file: bytes
    tls_ca_cert_dir: bytes
    tls_auth_clients: bytes
    tls_auth_clients_user: bytes
    tls_protocols: bytes
    tls_ciphers: bytes
    tls_ciphersuites: bytes
    tls_prefer_server_ciphers: bool
    tls_session_caching: bool
    tls_session_cache_size: int
    tls_session_cache_timeout: int
    tls_dh_params_file: bytes
    tls_client_cert_file: bytes
    tls_client_key_file: bytes
    tls_client_key_file_pass: bytes
    tls_replication: bool
    tls_expected_peer_name: bytes
    max_new_tls_connections_per_cycle: int
    proto_max_bulk_len: int
    hll_sparse_max_bytes: int
    client_query_buffer_limit: int
    client_output_buffer_limit: list[OutputLimit]
    maxmemory: int
    maxmemory_policy: bytes
    maxmemory_samples: int
    maxmemory_eviction_tenacity: int
    lfu_log_factor: int
    lfu_decay_time: int
    maxmemory_clients: int
    tracking_table_max_keys: int
    dir: bytes
    appendonly: bool
    appendfsync: bytes
    appendfilename: bytes
    appenddirname: bytes
    aof_load_truncated: bool
    aof_load_corrupt_tail_max_size: int
    aof_use_rdb_preamble: bool
    aof_timestamp_enabled: bool
    no_appendfsync_on_rewrite: bool
    auto_aof_rewrite_percentage: int
    auto_aof_rewrite_min_size: int
    save: list[tuple[int, int]]
    dbfilename: bytes
    min_replicas_to_write: int
    min_replicas_max_lag: int
    repl_backlog_size: int
    repl_backlog_ttl: int
    repl_diskless_sync: bool
    repl_diskless_sync_delay: int
    repl_diskless_sync_max_replicas: int
    repl_ping_replica_period: int
    repl_timeout: int
    replicaof: bytes
    masteruser: bytes
    masterauth: bytes
    replica_read_only: bool
    replica_ignore_maxmemory: bool
    replica_serve_stale_data: bool
    replica_announce_ip: bytes
    replica_announce_port: int
    replica_priority: int
    replica_announced: bool
    stop_writes_on_bgsave_error: bool
    rdb_key_save_delay: int
    hash_max_listpack_entries: int
    hash_max_listpack_value: int
    list_max_listpack_size: int
    stream_node_max_bytes: int
    stream_node_max_entries: int
    zset_max_listpack_entries: int
    zset_max_listpack_value: int
    stream_idmp_duration: int
    stream_idmp_maxsize: int
    stream_consumer_reclaim_ms: int
    stream_policy: list[bytes]
    set_max_intset_entries: int
    set_max_listpack_entries: int
    set_max_listpack_value: int
    aa_region_id: int
    aa_database: bytes
    aa_peers: list[PeerAddress]
    aa_port: int
    aa_secret: bytes
    aa_tls: bool
    aa_allow_plaintext: bool
    aa_xadd_id_mode: bytes
    aa_other_keys: bytes
    aa_stable_ids: bool
    aa_send: bytes
    aa_backlog_bytes: int
    aa_log_max_bytes: int
    aa_transaction_max_bytes: int
    aa_compress: bool
    aa_ack_interval_ms: int
    aa_beat_ms: int
    aa_start_wait_ms: int
    aa_relay_after_ms: int
    aa_join_lag_ms: int
    aa_max_lag_ms: int
    cluster_enabled: bool
    cluster_strict_slots: bool
    cluster_config_file: bytes
    cluster_announce_ip: bytes
    cluster_announce_hostname: bytes
    cluster_preferred_endpoint_type: bytes
    cluster_announce_port: int
    cluster_announce_tls_port: int
    cluster_announce_bus_port: int
    cluster_port: int
    notify_keyspace_events: int
    slowlog_log_slower_than: int
    slowlog_max_len: int
    slowlog_entry_max_argc: int
    slowlog_entry_max_string_len: int
    latency_monitor_threshold: int
    latency_tracking: bool
    key_memory_histograms: bool
    latency_tracking_info_percentiles: list[float]
    loglevel: bytes
    logfile: bytes
    hide_user_data_from_log: bool
    syslog_enabled: bool
    syslog_ident: bytes
    syslog_facility: bytes
    crash_log_enabled: bool
    databases: int
    daemonize: bool
    supervised: bytes
    pidfile: bytes
    oom_score_adj: bytes
    oom_score_adj_values: list[int]
    disable_thp: bool
    busy_poll_us: int
    busy_reply_threshold: int
    hz: int
    dynamic_hz: bool
    active_expire_effort: int
    lazyfree_lazy_eviction: bool
    lazyfree_lazy_expire: bool
    lazyfree_lazy_server_del: bool
    lazyfree_lazy_user_del: bool
    lazyfree_lazy_user_flush: bool
    enable_debug_command: bytes
    enable_protected_configs: bytes
    shutdown_timeout: int
    shutdown_on_sigint: bytes
    shutdown_on_sigterm: bytes

    def __init__(self) -> None:
        self.on_change: dict[str, ChangeHook] = {}
        self.file = b""
        self.ignored: list[bytes] = []
        self.renamed_commands: list[tuple[bytes, bytes]] = []
        self.users: list[list[bytes]] = []
        self._inert: dict[str, object] = {}
        self._asked: dict[str, object] = {}  # of parameters that are something else here
        self._active: Final = {row.name for row in ACTIVE}
        self._started: dict[bytes, object] = {}  # the first values of what was changed since
        for row in ALL:
            self.store(row, row.default)
        self.dir = os.getcwdb()

    def value(self, row: Parameter) -> object:
        """Return the value of a parameter as its kind keeps it."""
        if row.name in self._active:
            found: object = getattr(self, row.attribute)
            return found
        return self._inert[row.name]

    def store(self, row: Parameter, value: object) -> None:
        """Set a parameter to a value that its kind made; no hook is called."""
        if row.name in self._active:
            setattr(self, row.attribute, value)
        else:
            self._inert[row.name] = value

    def overrule(self, row: Parameter, value: object) -> None:
        """Set a parameter to another value than was asked for, which its file keeps."""
        self._asked.setdefault(row.name, self.value(row))
        self.store(row, value)

    def asked(self, row: Parameter) -> object:
        """Return the value of a parameter as its file has it."""
        return self._asked.get(row.name, self.value(row))

    def is_active(self, row: Parameter) -> bool:
        """Return whether the parameter means something here."""
        return row.name in self._active

    def text(self, name: bytes) -> bytes:
        """Return the value of the parameter ``name`` (or an alias) as CONFIG GET shows it."""
        row = BY_NAME[name]
        return row.show(self.value(row))

    def output_limit(self, of_class: int) -> tuple[int, int, int]:
        """Return the limits of a class's waiting output: (hard bytes, soft bytes, soft seconds)."""
        limit = self.client_output_buffer_limit[of_class]
        return limit.hard_bytes, limit.soft_bytes, limit.soft_s

    def get(self, patterns: list[bytes]) -> list[tuple[bytes, bytes]]:
        """Return names and values of the parameters that fit any of the glob patterns, each once.

        A name without wildcards is answered as it was written; hidden parameters need that form.
        """
        found: dict[bytes, tuple[bytes, bytes]] = {}
        for pattern in patterns:
            if not any(char in pattern for char in b"[*?"):
                name = pattern.lower()
                if name in BY_NAME and name not in found:
                    found[name] = (pattern, self.text(name))
                continue
            for name, row in BY_NAME.items():
                if row.flags & HIDDEN or name in found:
                    continue
                if matches(pattern, name, True):
                    found[name] = (name, self.text(name))
        return list(found.values())

    def set_many(
        self, pairs: list[tuple[bytes, bytes]], allow_protected: bool, loading: bool
    ) -> None:
        """Change all of ``pairs`` at run time, or none; raises CommandError with Redis's text."""
        names = _check_names(pairs, allow_protected, loading)
        backup = [(BY_NAME[name], self.value(BY_NAME[name])) for name in names]
        changed: list[tuple[bytes, Parameter]] = []
        for name, (_, given) in zip(names, pairs, strict=True):
            row = BY_NAME[name]
            current = self.value(row)
            try:
                value = row.read(_words(row, given), current)
            except BadValue as refusal:
                self._restore(backup)
                raise CommandError(config_set_failed(name, refusal.reason.encode())) from None
            if value != current or row.flags & RELOADS:
                self.store(row, value)
                changed.append((name, row))
                self._started.setdefault(row.wire, current)
        found = self.contradiction()
        if found is not None:
            self._restore(backup)
            raise CommandError(config_set_failed(found[0].encode(), found[1].encode()))
        self._announce(changed, backup)

    def undo(self) -> None:
        """Give all parameters back the values with which the server was started."""
        rows = [(name, BY_NAME[name]) for name in self._started]
        backup = [(row, self.value(row)) for _, row in rows]
        for name, row in rows:
            self.store(row, self._started[name])
        self._announce(rows, backup)
        self._started.clear()

    def region_text(self) -> bytes:
        """Return which region this is, of which database; empty where it is none."""
        number = self.aa_region_id
        return b"region %d of %b" % (number, self.aa_database) if number else b""

    def contradiction(self) -> tuple[str, str] | None:
        """Return a parameter that cannot have its value beside the others, and why; or None."""
        if not self.aa_region_id:
            return None
        if not self.appendonly:
            return "appendonly", NEEDS_FILE
        if not self.aof_use_rdb_preamble:
            return "aof-use-rdb-preamble", NEEDS_SNAPSHOTS
        if any(peer.region == self.aa_region_id for peer in self.aa_peers):
            return "aa-peers", IS_OWN_REGION
        if self.aa_port and self.aa_port == self.port:
            return "port", IS_CLIENTS_PORT  # aa-port stays as it was at the start
        if self.aa_port and self.aa_port == self.tls_port:
            return "tls-port", IS_CLIENTS_PORT
        if len(self.aa_database) > NAME_MAX_BYTES:
            return "aa-database", IS_LONG_NAME
        return None

    def _announce(
        self, changed: list[tuple[bytes, Parameter]], backup: list[tuple[Parameter, object]]
    ) -> None:
        """Call the hooks of what changed; on a refusal put everything back and raise."""
        called: list[ChangeHook] = []
        for name, row in changed:
            hook = self.on_change.get(row.name)
            if hook is None:
                continue
            called.append(hook)
            reason = hook()
            if reason is not None:
                self._restore(backup)
                for undo in called:
                    undo()
                raise CommandError(config_set_failed(name, reason.encode()))

    def _restore(self, backup: list[tuple[Parameter, object]]) -> None:
        for row, value in backup:
            self.store(row, value)


def _check_names(
    pairs: list[tuple[bytes, bytes]], allow_protected: bool, loading: bool
) -> list[bytes]:
    """Return the names in lower case; raises for the first that may not be set."""
    names: list[bytes] = []
    rows: list[Parameter] = []
    for given, _ in pairs:
        name = given.lower()
        row = BY_NAME.get(name)
        if row is None:
            raise CommandError(config_unknown(given))
        reason = ""
        if row.flags & IMMUTABLE:
            reason = IS_IMMUTABLE
        elif row.flags & PROTECTED and not allow_protected:
            reason = IS_PROTECTED
        elif loading and row.flags & NOT_WHILE_LOADING:
            raise CommandError(LOADING)
        elif row in rows:  # by its other name, too
            reason = IS_DUPLICATE
        if reason:
            raise CommandError(config_set_failed(given, reason.encode()))
        names.append(name)
        rows.append(row)
    return names


def _words(row: Parameter, given: bytes) -> list[bytes]:
    if isinstance(row, PolicyLines):  # whose words may have spaces, in quotes
        return split_words(given) or [given]
    if not row.flags & MULTI:
        return [given]
    return given.split(b" ") if given else []


_SIZES: Final = tuple(
    "list-max-listpack-size hash-max-listpack-entries hash-max-listpack-value "
    "set-max-intset-entries set-max-listpack-entries set-max-listpack-value "
    "zset-max-listpack-entries zset-max-listpack-value".split()
)
_IDMP: Final = ("stream-idmp-duration", "stream-idmp-maxsize")


def sizes(config: Config) -> dict[str, int]:
    """Return the sizes up to which values are small, by the names of parameters.

    They decide how a value is kept, and not what it is. So the append-only file may depend on them.
    """
    return _values(config, _SIZES)


def defaults(config: Config) -> dict[str, int]:
    """Return the defaults of values where a file says nothing, by the names of parameters."""
    return _values(config, (*_SIZES, *_IDMP))


def _values(config: Config, names: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        value = config.value(BY_NAME[name.encode()])
        assert isinstance(value, int)
        found[name] = value
    return found
