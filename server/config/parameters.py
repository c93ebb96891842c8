"""The parameters that this server acts on: one row each, with what the documentation says of it.

A row's value is the attribute of ``Config`` that has its name with underscores. Defaults and
ranges are those of Redis 8, except that ``bind`` keeps to this machine.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.config_names import INERT
from headrace.compat.parameters import (
    GB,
    HIDDEN,
    IMMUTABLE,
    INT_MAX,
    INT_MIN,
    KB,
    LONG_MAX,
    MB,
    MULTI,
    NOT_WHILE_LOADING,
    PROTECTED,
    SENSITIVE,
    UINT_MAX,
    ULONG_MAX,
    Choice,
    ChoiceSet,
    Integer,
    Memory,
    MemoryOrPercent,
    Octal,
    OomScores,
    Parameter,
    ReplicaOf,
    Text,
    YesNo,
)
from headrace.server.config.kinds import (
    Address,
    Bind,
    Directory,
    HostName,
    KeyspaceEvents,
    OutputLimit,
    OutputLimits,
    Peers,
    Percentiles,
    Save,
)
from headrace.server.config.tls_parameters import TLS
from headrace.storage.sharing import REGION_MAX
from headrace.storage.stream.contents import (
    IDMP_DURATION_S,
    IDMP_DURATION_S_MAX,
    IDMP_MAXSIZE,
    IDMP_MAXSIZE_MAX,
)

_ALLOWED: Final = (b"no", b"yes", b"local")
_ON_SIGNAL: Final = (b"default", b"save", b"nosave", b"now", b"force")
_POLICIES: Final = (
    b"volatile-lru",
    b"volatile-lfu",
    b"volatile-random",
    b"volatile-ttl",
    b"volatile-lrm",
    b"allkeys-lru",
    b"allkeys-lfu",
    b"allkeys-random",
    b"allkeys-lrm",
    b"noeviction",
)

NETWORK: Final[tuple[Parameter, ...]] = (
    Integer("port", 6379, 0, 65535, doc="TCP port to listen at; 0 is none."),
    Bind(
        "bind",
        [b"127.0.0.1", b"-::1"],
        flags=MULTI,
        doc="Addresses to listen at. Redis listens at all of them by default, we do not.",
    ),
    YesNo(
        "protected-mode",
        True,
        doc="Refuse clients of other machines while there is no password.",
    ),
    Text("bind-source-addr", doc="Address from which links to other servers begin; empty is any."),
    Text("unixsocket", flags=IMMUTABLE, doc="Path of a Unix socket to listen at; empty is none."),
    Octal(
        "unixsocketperm",
        0,
        0,
        0o777,
        flags=IMMUTABLE,
        doc="Permissions of that socket; 0 leaves them to the umask.",
    ),
    Integer("tcp-backlog", 511, 0, INT_MAX, flags=IMMUTABLE, doc="Length of the accept queue."),
    Integer(
        "tcp-keepalive",
        300,
        0,
        INT_MAX,
        doc="Seconds of silence after which a connection is probed; 0 is never.",
    ),
    Integer(
        "socket-mark-id",
        0,
        0,
        UINT_MAX,
        flags=IMMUTABLE,
        doc="Mark of the sockets for the rules of a firewall, Linux's SO_MARK; 0 is none.",
    ),
    Integer(
        "timeout", 0, 0, INT_MAX, doc="Seconds after which an idle client is closed; 0 is never."
    ),
    Integer("maxclients", 10000, 1, UINT_MAX, doc="How many clients may be connected at once."),
    Text(
        "requirepass",
        flags=SENSITIVE,
        doc="Password of the default user, which clients give with AUTH; empty is none.",
    ),
    Choice(
        "acl-pubsub-default",
        b"resetchannels",
        (b"allchannels", b"resetchannels"),
        doc="Channels that a new user may use until rules say otherwise.",
    ),
    Text(
        "aclfile",
        flags=IMMUTABLE,
        doc="File with the users, which ACL LOAD reads and ACL SAVE writes; empty is none.",
    ),
    Integer("acllog-max-len", 128, 0, LONG_MAX, doc="How many entries ACL LOG keeps; 0 is none."),
)

LIMITS: Final[tuple[Parameter, ...]] = (
    Memory(
        "proto-max-bulk-len",
        512 * MB,
        MB,
        LONG_MAX,
        doc="Longest word of a request, and longest string.",
    ),
    Memory(
        "hll-sparse-max-bytes",
        3000,
        0,
        LONG_MAX,
        doc="How many bytes a HyperLogLog may have in its sparse form.",
    ),
    Memory(
        "client-query-buffer-limit",
        GB,
        MB,
        LONG_MAX,
        doc="How much unparsed input one client may have; more closes it.",
    ),
    OutputLimits(
        "client-output-buffer-limit",
        [
            OutputLimit(0, 0, 0),
            OutputLimit(256 * MB, 64 * MB, 60),
            OutputLimit(32 * MB, 8 * MB, 60),
        ],
        flags=MULTI,
        doc="How much output may wait for one client of a class; more closes it, "
        "the soft limit after that many seconds. 0 is no limit.",
    ),
    Memory(
        "maxmemory",
        0,
        0,
        ULONG_MAX,
        doc="How much the data and the clients may take before keys are evicted or commands that "
        "need more are refused; 0 is no limit. See `maxmemory-policy`.",
    ),
    Choice(
        "maxmemory-policy",
        b"noeviction",
        _POLICIES,
        doc="Which keys make room: of all, or of those that have a deadline, the ones that were "
        "not used (`lru`) or not changed (`lrm`) for the longest time, those that are used least "
        "(`lfu`), any, or those whose deadline is next. Streams go last.",
    ),
    Integer(
        "maxmemory-samples",
        5,
        1,
        64,
        doc="How many keys are looked at to find one to evict: more find a better one.",
    ),
    Integer(
        "maxmemory-eviction-tenacity",
        10,
        0,
        100,
        doc="How long evicting may hold up a command: 50 us for each point up to 10, and 15% more "
        "for each point above; 100 is no limit. What is left is done between commands.",
    ),
    Integer(
        "lfu-log-factor",
        10,
        0,
        INT_MAX,
        doc="How slowly the counter of a key rises under an `lfu` policy.",
    ),
    Integer(
        "lfu-decay-time",
        1,
        0,
        INT_MAX,
        doc="Minutes without a use after which that counter falls by 1; 0: it never does.",
    ),
    MemoryOrPercent(
        "maxmemory-clients",
        0,
        -100,
        LONG_MAX,
        doc="How much the requests and replies of all clients together may hold; beyond it the "
        "largest ones are closed, but those of CLIENT NO-EVICT. 0 is no limit.",
    ),
    Integer(
        "tracking-table-max-keys",
        1_000_000,
        0,
        LONG_MAX,
        doc="How many keys are remembered for clients that called CLIENT TRACKING; beyond it keys "
        "are forgotten by chance, and their readers get an invalidation. 0 is no limit.",
    ),
)

FILES: Final[tuple[Parameter, ...]] = (
    Directory(
        "dir",
        b"",
        flags=PROTECTED | NOT_WHILE_LOADING,
        doc="Folder of the data files; the one the server was started in by default.",
    ),
    YesNo("appendonly", False, doc="Write each change to the append-only file."),
    Choice(
        "appendfsync",
        b"everysec",
        (b"everysec", b"always", b"no"),
        doc="When the file is forced to disk: each second, before each reply, or never by us.",
    ),
    Text(
        "appendfilename",
        b"appendonly.aof",
        flags=IMMUTABLE,
        base_name_of="filename",
        may_be_empty=False,
        doc="What the names of the append-only files begin with.",
    ),
    Text(
        "appenddirname",
        b"appendonlydir",
        flags=IMMUTABLE,
        base_name_of="dirname",
        may_be_empty=False,
        doc="Folder of the append-only files, inside `dir`.",
    ),
    YesNo(
        "aof-load-truncated",
        True,
        doc="Start although the last command of the append-only file is torn, without it.",
    ),
    Memory(
        "aof-load-corrupt-tail-max-size",
        0,
        0,
        LONG_MAX,
        doc="Start although the end of the append-only file is damaged, without it, where that "
        "is shorter than this. A file system can leave zeros there when the machine fails.",
    ),
    YesNo(
        "aof-use-rdb-preamble",
        True,
        doc="Write bases of the append-only file as snapshots, which load fast; `no` writes them "
        "as commands, which Redis reads too.",
    ),
    YesNo(
        "aof-timestamp-enabled", False, doc="Write the time into the append-only file, as comments."
    ),
    YesNo(
        "no-appendfsync-on-rewrite",
        False,
        doc="Leave the append-only file to the system while a snapshot or a new base is being "
        "written, as with `appendfsync no`.",
    ),
    Integer(
        "auto-aof-rewrite-percentage",
        100,
        0,
        INT_MAX,
        doc="Write the append-only file anew when it is longer by that much, in per cent, than "
        "after the last time; 0 is never.",
    ),
    Memory(
        "auto-aof-rewrite-min-size",
        64 * MB,
        0,
        LONG_MAX,
        doc="The least length at which that happens.",
    ),
    Save(
        "save",
        [(3600, 1), (300, 100), (60, 10000)],
        flags=MULTI,
        doc="When to write a snapshot: that many seconds after the last one if there were that "
        "many changes; also at the end of the server.",
    ),
    Text(
        "dbfilename",
        b"dump.hrs",
        flags=PROTECTED,
        base_name_of="filename",
        doc="Name of the snapshot in `dir`; it is loaded at start where `appendonly` is off. One "
        "that ends with `.rdb` is in Redis's form.",
    ),
    YesNo(
        "stop-writes-on-bgsave-error",
        True,
        doc="Refuse writes while there are save points and the last snapshot failed.",
    ),
    Integer(
        "rdb-key-save-delay",
        0,
        INT_MIN,
        INT_MAX,
        flags=HIDDEN,
        doc="Microseconds to rest after each key of a snapshot or base, for tests.",
    ),
)

REPLICATION: Final[tuple[Parameter, ...]] = (
    ReplicaOf(
        "replicaof",
        b"",
        flags=IMMUTABLE | MULTI,
        alias="slaveof",
        doc="The server to follow from the start on; REPLICAOF changes it.",
    ),
    Text("masteruser", flags=SENSITIVE, doc="Who we are at the master; empty is `default`."),
    Text("masterauth", flags=SENSITIVE, doc="Password that we have there; empty is none."),
    YesNo(
        "replica-read-only",
        True,
        alias="slave-read-only",
        doc="Refuse writes of clients while we follow a master; what they write else stays here.",
    ),
    YesNo(
        "replica-serve-stale-data",
        True,
        alias="slave-serve-stale-data",
        doc="Answer while there is no link with the master; otherwise most commands are refused.",
    ),
    Text(
        "replica-announce-ip",
        alias="slave-announce-ip",
        doc="Address that the master shows for us; empty is where we come from.",
    ),
    Integer(
        "replica-announce-port",
        0,
        0,
        65535,
        alias="slave-announce-port",
        doc="Port that it shows; 0 is `port`.",
    ),
    Integer(
        "replica-priority",
        100,
        0,
        INT_MAX,
        alias="slave-priority",
        doc="What INFO shows to those who choose a new master.",
    ),
    YesNo(
        "replica-ignore-maxmemory",
        True,
        alias="slave-ignore-maxmemory",
        doc="A replica evicts nothing by itself: its master says what goes.",
    ),
    YesNo("replica-announced", True, doc="Likewise: whether they are to know of this one."),
    YesNo(
        "repl-diskless-sync",
        True,
        doc="Send a full copy while it is being made, to replicas that can take it so; else from "
        "a file.",
    ),
    Integer(
        "repl-diskless-sync-delay",
        5,
        0,
        INT_MAX,
        doc="Seconds that the first replica waits for others, to share such a copy.",
    ),
    Integer(
        "repl-diskless-sync-max-replicas",
        0,
        0,
        INT_MAX,
        doc="So many that wait are enough; 0 is any number.",
    ),
    Memory(
        "repl-backlog-size",
        MB,
        1,
        LONG_MAX,
        doc="How much of the latest changes is kept, so that a replica that was away can go on.",
    ),
    Integer(
        "repl-backlog-ttl",
        3600,
        0,
        LONG_MAX,
        doc="Seconds without any replica after which nothing is kept any more; 0 is never.",
    ),
    Integer(
        "repl-ping-replica-period",
        10,
        1,
        INT_MAX,
        alias="repl-ping-slave-period",
        doc="Seconds between two signs of life that replicas are sent.",
    ),
    Integer(
        "repl-timeout",
        60,
        1,
        INT_MAX,
        doc="Seconds of silence after which a link is closed, with a replica or with a master.",
    ),
    Integer(
        "min-replicas-to-write",
        0,
        0,
        INT_MAX,
        alias="min-slaves-to-write",
        doc="Refuse writes unless so many replicas have acknowledged data of late.",
    ),
    Integer(
        "min-replicas-max-lag",
        10,
        0,
        INT_MAX,
        alias="min-slaves-max-lag",
        doc="How many seconds ago that may be; 0 turns the refusal off, too.",
    ),
)

STREAMS: Final[tuple[Parameter, ...]] = (
    Memory(
        "stream-node-max-bytes",
        4096,
        0,
        LONG_MAX,
        doc="Size at which a block of a stream is full; 0 is 1 GiB.",
    ),
    Integer(
        "stream-node-max-entries",
        100,
        0,
        LONG_MAX,
        doc="Number of entries at which a block of a stream is full; 0 is no limit.",
    ),
    Integer(
        "stream-idmp-duration",
        IDMP_DURATION_S,
        1,
        IDMP_DURATION_S_MAX,
        doc="Seconds for which a new stream remembers idempotent IDs.",
    ),
    Integer(
        "stream-idmp-maxsize",
        IDMP_MAXSIZE,
        1,
        IDMP_MAXSIZE_MAX,
        doc="How many idempotent IDs a new stream remembers for one producer.",
    ),
    Integer(
        "stream-consumer-reclaim-ms",
        0,
        0,
        LONG_MAX,
        doc="Milliseconds after which a consumer that holds nothing and has not been seen is "
        "removed from its group; 0 is never.",
    ),
)

WATCHING: Final[tuple[Parameter, ...]] = (
    KeyspaceEvents(
        "notify-keyspace-events",
        0,
        doc="Which events of keys to publish: `K` and `E` choose the channels, "
        "the other letters the classes.",
    ),
    Integer(
        "slowlog-log-slower-than",
        10000,
        -1,
        LONG_MAX,
        doc="Microseconds from which a command is slow; 0 logs all, -1 none.",
    ),
    Integer("slowlog-max-len", 128, 0, LONG_MAX, doc="How many slow commands are remembered."),
    Integer(
        "slowlog-entry-max-argc",
        32,
        2,
        INT_MAX,
        doc="How many words of a slow command are remembered.",
    ),
    Integer(
        "slowlog-entry-max-string-len",
        128,
        1,
        LONG_MAX,
        doc="How many bytes of each of these words.",
    ),
    Integer(
        "latency-monitor-threshold",
        0,
        0,
        LONG_MAX,
        doc="Milliseconds from which LATENCY remembers an event; 0 is never.",
    ),
    YesNo("latency-tracking", True, doc="Count how long the calls of each command take."),
    YesNo(
        "key-memory-histograms",
        False,
        doc="INFO keysizes also tells how many collections take how much memory. While the server "
        "runs this can only be turned off.",
    ),
    Percentiles(
        "latency-tracking-info-percentiles",
        [50.0, 99.0, 99.9],
        flags=MULTI,
        doc="Percentiles in the section `latencystats` of INFO.",
    ),
    Choice(
        "loglevel",
        b"notice",
        (b"debug", b"verbose", b"notice", b"warning", b"nothing"),
        doc="The least level that is logged.",
    ),
    Text("logfile", flags=IMMUTABLE, doc="File to log to; empty is standard output."),
    YesNo(
        "hide-user-data-from-log",
        False,
        doc="Leave out of the log what errors tell of data: names of keys, arguments.",
    ),
    YesNo("syslog-enabled", False, flags=IMMUTABLE, doc="Log to syslog, too."),
    Text("syslog-ident", b"redis", flags=IMMUTABLE, doc="Name of the process there."),
    Choice(
        "syslog-facility",
        b"local0",
        (
            b"user",
            b"local0",
            b"local1",
            b"local2",
            b"local3",
            b"local4",
            b"local5",
            b"local6",
            b"local7",
        ),
        flags=IMMUTABLE,
        doc="Facility there.",
    ),
    YesNo("crash-log-enabled", True, doc="Log where each thread was when the process crashes."),
)

PROCESS: Final[tuple[Parameter, ...]] = (
    Integer("databases", 16, 1, INT_MAX, flags=IMMUTABLE, doc="Number of databases."),
    YesNo(
        "daemonize",
        False,
        flags=IMMUTABLE,
        doc="Go to the background, unless somebody supervises the process. A container ends then, "
        "as it does with Redis.",
    ),
    Choice(
        "supervised",
        b"no",
        (b"upstart", b"systemd", b"auto", b"no"),
        flags=IMMUTABLE,
        doc="Whom to tell that the server is ready, and that it stops; `auto` asks the environment "
        "for NOTIFY_SOCKET or UPSTART_JOB.",
    ),
    Text("pidfile", flags=IMMUTABLE, doc="File to write the process ID to; empty is none."),
    Choice(
        "oom-score-adj",
        b"no",
        (b"no", b"yes", b"relative", b"absolute"),
        synonyms={b"relative": b"yes"},
        doc="Set how early the kernel ends the process when memory is short, relative to what it "
        "was at start or absolutely.",
    ),
    OomScores(
        "oom-score-adj-values",
        [0, 200, 800],
        flags=MULTI,
        doc="By how much; the first number counts, the others are of replicas and of processes "
        "that save.",
    ),
    YesNo(
        "disable-thp",
        True,
        flags=IMMUTABLE,
        doc="Use no transparent huge pages where the system would everywhere.",
    ),
    Integer(
        "busy-poll-us",
        200,
        0,
        1_000_000,
        doc="For how many microseconds after the answer to a lone client its next request is "
        "looked for before the server goes to sleep, while that mostly comes in time; 0 is not.",
    ),
    Integer(
        "busy-reply-threshold",
        5000,
        0,
        LONG_MAX,
        alias="lua-time-limit",
        doc="For how many milliseconds a script may run before others are answered BUSY and may "
        "end it.",
    ),
    Integer(
        "hz", 10, 0, INT_MAX, clamp=(1, 500), doc="How often per second background work is done."
    ),
    YesNo("dynamic-hz", True, doc="Kept and shown; the work of a tick is bounded instead."),
    Integer(
        "active-expire-effort",
        1,
        1,
        10,
        doc="Kept and shown; expired keys stand in order of time and are not searched for.",
    ),
    YesNo("lazyfree-lazy-eviction", False, doc="Record what is evicted as UNLINK, not DEL."),
    YesNo("lazyfree-lazy-expire", False, doc="Record what expires as UNLINK, not DEL."),
    YesNo("lazyfree-lazy-server-del", False, doc="Record as UNLINK, not DEL, what SPOP empties."),
    YesNo("lazyfree-lazy-user-del", False, doc="Kept and shown; DEL always acts as UNLINK."),
    YesNo(
        "lazyfree-lazy-user-flush",
        False,
        doc="Kept and shown; FLUSHDB and FLUSHALL always act as with ASYNC.",
    ),
    Choice(
        "enable-debug-command",
        b"no",
        _ALLOWED,
        flags=IMMUTABLE,
        doc="Who may call DEBUG: nobody, all, or clients of this machine.",
    ),
    Choice(
        "enable-protected-configs",
        b"no",
        _ALLOWED,
        flags=IMMUTABLE,
        doc="Who may change `dir` and `dbfilename` at run time: nobody, all, "
        "or clients of this machine.",
    ),
    Integer(
        "shutdown-timeout",
        10,
        0,
        INT_MAX,
        doc="Seconds that a shutdown waits for replicas that lack something; 0 is not at all.",
    ),
    ChoiceSet(
        "shutdown-on-sigint",
        b"default",
        _ON_SIGNAL,
        flags=MULTI,
        doc="What SIGINT does besides finishing the append-only file, in words of SHUTDOWN.",
    ),
    ChoiceSet(
        "shutdown-on-sigterm",
        b"default",
        _ON_SIGNAL,
        flags=MULTI,
        doc="What SIGTERM does besides finishing the append-only file, in words of SHUTDOWN.",
    ),
)

COLLECTIONS: Final[tuple[Parameter, ...]] = (
    Integer(
        "hash-max-listpack-entries",
        512,
        0,
        LONG_MAX,
        alias="hash-max-ziplist-entries",
        doc="Number of fields above which a hash becomes a table.",
    ),
    Memory(
        "hash-max-listpack-value",
        64,
        0,
        LONG_MAX,
        alias="hash-max-ziplist-value",
        doc="Length of a field or a value above which a hash becomes a table.",
    ),
    Integer(
        "list-max-listpack-size",
        -2,
        INT_MIN,
        INT_MAX,
        alias="list-max-ziplist-size",
        doc="Number of elements that a listpack of Redis may have; -1 to -5: 4, 8, 16, 32 or 64 kB."
        " It decides what OBJECT ENCODING answers.",
    ),
    Integer(
        "set-max-intset-entries",
        512,
        0,
        LONG_MAX,
        doc="Number of members above which a set of integers becomes a table.",
    ),
    Integer(
        "set-max-listpack-entries",
        128,
        0,
        LONG_MAX,
        doc="Number of members above which a set becomes a table.",
    ),
    Integer(
        "set-max-listpack-value",
        64,
        0,
        LONG_MAX,
        doc="Length of a member above which a set becomes a table.",
    ),
    Integer(
        "zset-max-listpack-entries",
        128,
        0,
        LONG_MAX,
        alias="zset-max-ziplist-entries",
        doc="Number of members up to which a sorted set is small.",
    ),
    Memory(
        "zset-max-listpack-value",
        64,
        0,
        LONG_MAX,
        alias="zset-max-ziplist-value",
        doc="Size of a member up to which a sorted set is small.",
    ),
)

REGIONS: Final[tuple[Parameter, ...]] = (
    Integer(
        "aa-region-id",
        0,
        0,
        REGION_MAX,
        flags=IMMUTABLE,
        doc="Number of this region among those that share a database, 1 to 15; 0 is a server on "
        "its own. A region needs `appendonly yes` and `aof-use-rdb-preamble yes`, and has database "
        "0 only.",
    ),
    Text(
        "aa-database",
        b"default",
        flags=IMMUTABLE,
        may_be_empty=False,
        doc="Name of the database that the regions share. Regions with another one are refused.",
    ),
    Peers(
        "aa-peers",
        [],
        flags=MULTI,
        doc="The other regions, such as `2 eu.example 7400, 3 us.example 7400`.",
    ),
    Integer(
        "aa-port",
        0,
        0,
        65535,
        flags=IMMUTABLE,
        doc="TCP port at which the other regions are answered, on the addresses of `bind`; 0 is "
        "none.",
    ),
    Text(
        "aa-secret",
        flags=SENSITIVE,
        doc="Secret that all regions of a database have; empty is none. It never travels: each "
        "side shows that it has it.",
    ),
    YesNo(
        "aa-tls",
        False,
        flags=IMMUTABLE,
        doc="Exchange with other regions encrypted. Each side has to show a certificate that "
        "`tls-ca-cert-file` or `tls-ca-cert-dir` vouches for.",
    ),
    YesNo(
        "aa-allow-plaintext",
        False,
        flags=IMMUTABLE,
        doc="Exchange with regions on other machines without encryption, as in a network that is "
        "protected by other means.",
    ),
    Choice(
        "aa-xadd-id-mode",
        b"strict",
        (b"strict", b"semi-strict", b"liberal"),
        alias="crdt_xadd_id_uniqueness_mode",
        doc="Which IDs XADD takes: `strict` the milliseconds at most, so no ID is there twice; "
        "`semi-strict` whole ones too; `liberal` any, and milliseconds alone mean the sequence 0. "
        "Also set as `crdt_xadd_id_uniqueness_mode`.",
    ),
    Choice(
        "aa-other-keys",
        b"refused",
        (b"refused", b"local"),
        doc="Whether keys that are no streams may be written; they stay in this region.",
    ),
    YesNo(
        "aa-stable-ids",
        True,
        doc="Refuse IDs of callers that would come too late for those who read in order, in "
        "streams that have entries with IDs of the server.",
    ),
    Choice(
        "aa-send",
        b"written",
        (b"written", b"synced"),
        doc="When a change is sent to other regions: once it is written to the append-only file, "
        "or once that is on the disk.",
    ),
    Memory(
        "aa-backlog-bytes",
        16 * MB,
        64 * KB,
        LONG_MAX,
        doc="How much of what was written last is kept in memory for other regions.",
    ),
    Memory(
        "aa-log-max-bytes",
        4 * GB,
        MB,
        LONG_MAX,
        doc="How much is kept in files for regions that are away. One that needs more gets a copy "
        "of everything.",
    ),
    Memory(
        "aa-transaction-max-bytes",
        64 * MB,
        MB,
        GB,
        doc="Largest change that is exchanged in one piece: a transaction, RENAME, COPY, RESTORE.",
    ),
    YesNo("aa-compress", False, doc="Compress what is sent to other regions, where it is long."),
    Integer(
        "aa-ack-interval-ms",
        10,
        0,
        60_000,
        doc="Milliseconds for which acknowledgements of a group are collected before other regions "
        "hear of them.",
    ),
    Integer(
        "aa-beat-ms",
        1000,
        10,
        3_600_000,
        doc="Milliseconds between two reports of what this region knows, while one is needed.",
    ),
    Integer(
        "aa-start-wait-ms",
        1000,
        0,
        3_600_000,
        flags=IMMUTABLE,
        doc="Milliseconds for which a start waits for the other regions to say what they know of "
        "this one.",
    ),
    Integer(
        "aa-relay-after-ms",
        5000,
        10,
        LONG_MAX,
        doc="Milliseconds after which the changes of a region that does not answer are asked of "
        "others.",
    ),
    Integer(
        "aa-join-lag-ms",
        1000,
        1,
        LONG_MAX,
        doc="Milliseconds that a new region may be behind when it begins to take writes.",
    ),
    Integer(
        "aa-max-lag-ms",
        60_000,
        0,
        LONG_MAX,
        doc="Milliseconds behind another region from which the log says so, once an hour; 0 is "
        "never.",
    ),
)

CLUSTER: Final[tuple[Parameter, ...]] = (
    YesNo(
        "cluster-enabled",
        False,
        flags=IMMUTABLE,
        doc="Answer as a cluster of one node, which owns all slots, so that clients for clusters "
        "start. There is database 0 only.",
    ),
    YesNo(
        "cluster-strict-slots",
        False,
        doc="In such a cluster, refuse what a cluster of several nodes would: requests and scripts "
        "whose keys are of several slots.",
    ),
    Text(
        "cluster-config-file",
        b"nodes.conf",
        flags=IMMUTABLE,
        may_be_empty=False,
        doc="File in `dir` that keeps the ID of the node.",
    ),
    Address(
        "cluster-announce-ip",
        doc="Address of the node, as clients see it; without it they see the one to "
        "which they have come.",
    ),
    HostName("cluster-announce-hostname", doc="Host name of the node, as clients see it."),
    Choice(
        "cluster-preferred-endpoint-type",
        b"ip",
        (b"ip", b"hostname", b"unknown-endpoint"),
        doc="Which of the two clients are to use, or that they have to know it themselves.",
    ),
    Integer("cluster-announce-port", 0, 0, 65535, doc="Port that clients see; 0 is `port` itself."),
    Integer(
        "cluster-announce-tls-port",
        0,
        0,
        65535,
        doc="Port that clients see for TLS; 0 is none.",
    ),
    Integer(
        "cluster-announce-bus-port",
        0,
        0,
        65535,
        doc="Port that is shown for other nodes; 0 is `cluster-port`.",
    ),
    Integer(
        "cluster-port",
        0,
        0,
        65535,
        flags=IMMUTABLE,
        doc="The same; 0 is `port` and 10000. Nobody listens there.",
    ),
)

SECTIONS: Final[list[tuple[str, tuple[Parameter, ...]]]] = [
    ("Network", NETWORK),
    ("Encryption", TLS),
    ("Limits", LIMITS),
    ("Files", FILES),
    ("Replication", REPLICATION),
    ("Streams", STREAMS),
    ("Collections", COLLECTIONS),
    ("Regions", REGIONS),
    ("Cluster", CLUSTER),
    ("Logs, events and measurements", WATCHING),
    ("Process", PROCESS),
]

ACTIVE: Final[list[Parameter]] = [row for _, rows in SECTIONS for row in rows]
ALL: Final[list[Parameter]] = [*ACTIVE, *INERT]


def _by_name() -> dict[bytes, Parameter]:
    found = {row.wire: row for row in ALL}
    found.update({row.alias: row for row in ALL if row.alias})
    return found


BY_NAME: Final[dict[bytes, Parameter]] = _by_name()


def is_sensitive(name: bytes) -> bool:
    """Whether the value of the parameter ``name`` must stay out of logs and of SLOWLOG."""
    row = BY_NAME.get(name.lower())
    return row is not None and bool(row.flags & SENSITIVE)
