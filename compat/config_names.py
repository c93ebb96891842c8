"""The parameters that Redis 7.0 to 8.10 has and that mean nothing here.

A parameter of ``INERT`` is read, checked and shown as Redis does and changes nothing, so that a
configuration made for Redis starts this server and CONFIG GET and SET of it work. Each group says
why nothing is lost by that. A parameter is refused, never ignored, if it would change who may do
what, where the data is or what becomes of it.

Source: config.c of Redis 7.0 and 7.4; the release notes of 8.0 to 8.8, CONFIG GET of 8.10.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.parameters import (
    HIDDEN,
    IMMUTABLE,
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    MB,
    NOT_WHILE_LOADING,
    ULONG_MAX,
    Choice,
    Integer,
    Memory,
    Parameter,
    Text,
    YesNo,
)

NO_PRELOADING: Final = "a file to load at the start is not supported"

# Directives of Redis that are no parameters. Each is refused with the reason given, because
# ignoring it would leave the server more open, or less able, than its owner believes.
REFUSED_DIRECTIVES: Final[dict[bytes, str]] = {
    b"loadmodule": "modules are not supported",
    b"sentinel": "sentinel directive while not in sentinel mode",
}

# Directives that Redis still takes, with one value, and ignores.
OBSOLETE_DIRECTIVES: Final = (
    b"list-max-ziplist-entries",
    b"list-max-ziplist-value",
    b"lua-replicate-commands",
)

INERT_GROUPS: Final[tuple[tuple[str, tuple[Parameter, ...]], ...]] = (
    (
        "A full copy that comes goes through a file, and one that leaves has one connection.",
        (
            YesNo("rdb-del-sync-files", False),
            YesNo("repl-disable-tcp-nodelay", False),
            YesNo("replica-lazy-flush", False, alias="slave-lazy-flush"),
            YesNo("replica-ignore-disk-write-errors", False),
            Choice(
                "repl-diskless-load",
                b"disabled",
                (b"disabled", b"on-empty-db", b"swapdb", b"flushdb"),
                flags=NOT_WHILE_LOADING,
            ),
            YesNo("repl-rdb-channel", True),
            Memory("replica-full-sync-buffer-limit", 0, 0, LONG_MAX),
        ),
    ),
    (
        "A cluster here has one node, which has all slots and nobody to speak to.",
        (
            YesNo("cluster-bus-port-protected-mode", False),
            YesNo("cluster-require-full-coverage", True),
            YesNo("cluster-replica-no-failover", False, alias="cluster-slave-no-failover"),
            YesNo("cluster-allow-reads-when-down", False),
            YesNo("tls-cluster", False),
            YesNo("cluster-allow-pubsubshard-when-down", True),
            YesNo("cluster-allow-replica-migration", True),
            Text("cluster-announce-human-nodename"),
            Integer(
                "cluster-replica-validity-factor",
                10,
                0,
                INT_MAX,
                alias="cluster-slave-validity-factor",
            ),
            Integer("cluster-migration-barrier", 1, 0, INT_MAX),
            Integer("cluster-node-timeout", 15000, 0, LONG_MAX),
            Integer("cluster-ping-interval", 0, 0, LONG_MAX, flags=HIDDEN),
            Memory("cluster-link-sendbuf-limit", 0, 0, ULONG_MAX),
            YesNo("cluster-slot-stats-enabled", False),
            Integer("cluster-compatibility-sample-ratio", 0, 0, 100),
            Integer("cluster-slot-migration-write-pause-timeout", 10000, 0, LONG_MAX),
            Memory("cluster-slot-migration-handoff-max-lag-bytes", MB, 0, LONG_MAX),
        ),
    ),
    (
        "There are no keys of the types that it is about, and no hash tables of Redis's.",
        (
            YesNo("vset-force-single-threaded-execution", False),
            Integer("array-slice-size", 4096, 256, 65536),
            Integer("array-sparse-kmin", 5, 0, 256),
            Integer("array-sparse-kmax", 10, 0, 256),
            Integer("hash-min-template-entries", 0, 0, LONG_MAX),
            Integer("hash-max-template-entries", 0, 0, LONG_MAX),
            Integer("hash-rdb-load-min-template-entries", 0, 0, LONG_MAX),
            Integer("hash-rdb-load-max-template-entries", 0, 0, LONG_MAX),
            Integer("hash-rdb-load-template-disassembly-threshold", 0, 0, LONG_MAX),
            YesNo("activerehashing", True),
            Integer("list-compress-depth", 0, 0, INT_MAX),
            YesNo("lazyexpire-nested-arbitrary-keys", True),
        ),
    ),
    (
        "Memory is given out by Python and the C library, not by Redis's allocator.",
        (
            YesNo("jemalloc-bg-thread", True),
            YesNo("activedefrag", False),
            Integer("active-defrag-cycle-min", 1, 1, 99),
            Integer("active-defrag-cycle-max", 25, 1, 99),
            Integer("active-defrag-threshold-lower", 10, 0, 1000),
            Integer("active-defrag-threshold-upper", 100, 0, 1000),
            Integer("active-defrag-max-scan-fields", 1000, 1, LONG_MAX),
            Memory("active-defrag-ignore-bytes", 100 * MB, 1, LONG_MAX),
        ),
    ),
    (
        (
            "One thread runs all commands, and those that write files run on the same processors: "
            "this is about speed alone. `taskset` says on which."
        ),
        (
            YesNo("io-threads-do-reads", False, flags=IMMUTABLE),
            Text("server-cpulist", flags=IMMUTABLE, alias="server_cpulist"),
            Text("bio-cpulist", flags=IMMUTABLE, alias="bio_cpulist"),
            Text("aof-rewrite-cpulist", flags=IMMUTABLE, alias="aof_rewrite_cpulist"),
            Text("bgsave-cpulist", flags=IMMUTABLE, alias="bgsave_cpulist"),
            Integer("io-threads", 1, 1, 128, flags=IMMUTABLE),
            Integer("max-new-connections-per-cycle", 10, 1, 1000),
            Integer("prefetch-batch-max-size", 16, 0, 128, flags=HIDDEN),
            Integer("lookahead", 16, 1, INT_MAX),
        ),
    ),
    (
        (
            "What it asks for is always done, or done more strictly: files are synced as they "
            "grow, values are stored compactly, checksums are written and verified, what RESTORE "
            "is given is looked at entry by entry, and a recorded command that fails ends the "
            "start."
        ),
        (
            YesNo("rdbchecksum", True, flags=IMMUTABLE),
            YesNo("rdbcompression", True),
            YesNo("aof-rewrite-incremental-fsync", True),
            YesNo("rdb-save-incremental-fsync", True),
            Choice("sanitize-dump-payload", b"no", (b"no", b"yes", b"clients")),
            Choice(
                "propagation-error-behavior", b"ignore", (b"ignore", b"panic", b"panic-on-replicas")
            ),
        ),
    ),
    (
        (
            "What it is about is not there: modules, backups by BACKUP, words that are compared by "
            "a locale, a logo, a test of the memory, a warning to silence."
        ),
        (
            YesNo("always-show-logo", False, flags=IMMUTABLE),
            YesNo("crash-memcheck-enabled", True),
            Text("ignore-warnings"),
            Text("locale-collate"),
            Choice("enable-module-command", b"no", (b"no", b"yes", b"local"), flags=IMMUTABLE),
            Text("backupdirname", b"backupdir", flags=IMMUTABLE),
            Integer("backup-sealed-ttl", 0, 0, LONG_MAX),
            Text("preload-file", flags=IMMUTABLE, unsupported=NO_PRELOADING),
        ),
    ),
    (
        "The process is shown as it was started, except for passwords.",
        (
            YesNo("set-proc-title", True, flags=IMMUTABLE),
            Text("proc-title-template", b"{title} {listen-addr} {server-mode}"),
        ),
    ),
    (
        "For tests of Redis itself.",
        (
            YesNo("use-exit-on-panic", False, flags=HIDDEN),
            YesNo("aof-disable-auto-gc", False, flags=HIDDEN),
            Integer("key-load-delay", 0, INT_MIN, INT_MAX, flags=HIDDEN),
            Integer("watchdog-period", 0, 0, INT_MAX, flags=HIDDEN),
            Integer("loading-process-events-interval-bytes", 2 * MB, 1024, INT_MAX, flags=HIDDEN),
        ),
    ),
)

INERT: Final[tuple[Parameter, ...]] = tuple([row for _, rows in INERT_GROUPS for row in rows])
