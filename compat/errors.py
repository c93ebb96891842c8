"""Every error text a client can see, once; ``CommandError`` carries one to the peer.

A constant is the wire line without its leading dash: ``CODE text``.
"""

from __future__ import annotations

from typing import Final


class CommandError(Exception):
    """A request that was understood and refused; ``line`` is ``CODE text`` without the dash."""

    def __init__(self, line: bytes) -> None:
        super().__init__(line)
        self.line: Final = line


WRONGTYPE: Final = b"WRONGTYPE Operation against a key holding the wrong kind of value"
SYNTAX: Final = b"ERR syntax error"
NO_SUCH_KEY: Final = b"ERR no such key"
NOT_AN_INTEGER: Final = b"ERR value is not an integer or out of range"
NOT_A_FLOAT: Final = b"ERR value is not a valid float"
INTERNAL: Final = b"ERR internal error"
TOO_MANY_FILES: Final = b"ERR too many open files: the first use of this command opens some"


def c_text(word: bytes) -> bytes:
    """Return a word as C prints it: none of it from a NUL on."""
    return word.partition(b"\0")[0]


def wrong_arity(full_name: bytes) -> bytes:
    """Return the error for a command, or ``container|subcommand``, with a wrong number of words."""
    return b"ERR wrong number of arguments for '%b' command" % full_name


NO_AUTH: Final = b"NOAUTH Authentication required."
NOT_IN_MULTI: Final = b"ERR Command not allowed inside a transaction"
LOADING: Final = b"LOADING Redis is loading the dataset in memory"
OUT_OF_MEMORY: Final = b"OOM command not allowed when used memory > 'maxmemory'."
MISCONF_AOF: Final = b"MISCONF Errors writing to the AOF file: %b"
OTHER_KEYS_REFUSED: Final = (
    b"ERR a region holds streams alone: other keys would not be in the other regions "
    b"(aa-other-keys local keeps them in this one)"
)
FULL_ID_IN_STRICT_MODE: Final = (
    b"ERR full stream IDs are not allowed in strict ID mode (aa-xadd-id-mode)"
)
ID_BELOW_PROMISE: Final = (
    b"ERR the stream has IDs that this region made, and this one is not above those that other "
    b"regions were promised (aa-stable-ids)"
)
GROUP_ON_ITS_WAY: Final = (
    b"AAMOVED group is on its way to this region: some of what it has read has not arrived"
)
NO_STABLE_IDS: Final = (
    b"ERR the stream has no stable IDs, because callers gave it IDs that may come late"
)
XSETID_OPTIONS_IN_REGION: Final = b"ERR XSETID takes no options in a region"
TRANSACTION_TOO_LARGE: Final = (
    b"ERR that is larger than one transaction between regions may be (aa-transaction-max-bytes)"
)
NO_REPLICAS: Final = b"NOREPLICAS Not enough good replicas to write."
MISCONF_SNAPSHOT: Final = (
    b"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
    b"disk. Commands that may modify the data set are disabled, because this instance is "
    b"configured to report errors during writes if RDB snapshotting fails "
    b"(stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB "
    b"error."
)
PROTOCOL: Final = b"ERR Protocol error: %b"
PROTECTED_MODE: Final = (
    b"DENIED Redis is running in protected mode because protected mode is enabled and no password "
    b"is set for the default user. In this mode connections are only accepted from the loopback "
    b"interface. Set a password with requirepass, or turn protected-mode off, to accept others."
)
TOO_MANY_CLIENTS: Final = b"ERR max number of clients reached"
INVALID_COMMAND: Final = b"ERR Invalid command specified"
INVALID_ARGUMENT_COUNT: Final = b"ERR Invalid number of arguments specified for command"
INVALID_ARGUMENTS: Final = b"ERR Invalid arguments specified for command"
NO_KEY_ARGUMENTS: Final = b"ERR The command has no key arguments"
NOT_IN_SUBSCRIBER: Final = (
    b"ERR Can't execute '%b': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / "
    b"PING / QUIT / RESET are allowed in this context"
)


def unknown_command(argv: list[bytes]) -> bytes:
    """Return the error for a name that is no command, with the first of its arguments, if any."""
    if len(argv) == 1:
        return b"ERR unknown command '%b'" % _shortened(argv[0], 128)
    shown = b""
    for argument in argv[1:]:
        if len(shown) >= 128:
            break
        shown += b"'%b' " % _shortened(argument, 128 - len(shown))
    return b"ERR unknown command '%b', with args beginning with: %b" % (
        _shortened(argv[0], 128),
        shown,
    )


def _shortened(word: bytes, most: int) -> bytes:
    """Return a word as C prints it into an error: so many bytes of it, and none from a NUL on."""
    return c_text(word[:most])


def unknown_subcommand(container: bytes, word: bytes) -> bytes:
    """Return the error for a word that is no subcommand of its container."""
    return b"ERR unknown subcommand '%b'. Try %b HELP." % (_shortened(word, 128), container.upper())


def bad_subcommand(container: bytes, word: bytes) -> bytes:
    """Return the error for a subcommand whose own arguments do not fit."""
    return b"ERR unknown subcommand or wrong number of arguments for '%b'. Try %b HELP." % (
        _shortened(word, 128),
        container.upper(),
    )


CONFIG_NO_FILE: Final = b"ERR The server is running without a config file"


def config_unknown(name: bytes) -> bytes:
    """Return the error for CONFIG SET of an unknown parameter."""
    return b"ERR Unknown option or number of arguments for CONFIG SET - '%b'" % c_text(name)


def config_set_failed(name: bytes, reason: bytes) -> bytes:
    """Return the error for CONFIG SET that one parameter stopped; the reason may be empty."""
    line = b"ERR CONFIG SET failed (possibly related to argument '%b')" % name
    return b"%b - %b" % (line, reason) if reason else line


CONFIG_REWRITE_FAILED: Final = b"ERR Rewriting config file: %b"


# Streams
INVALID_STREAM_ID: Final = b"ERR Invalid stream ID specified as stream command argument"
XADD_ZERO_ID: Final = b"ERR The ID specified in XADD must be greater than 0-0"
XADD_SMALL_ID: Final = (
    b"ERR The ID specified in XADD is equal or smaller than the target stream top item"
)
STREAM_EXHAUSTED: Final = (
    b"ERR The stream has exhausted the last possible ID, unable to add more items"
)
ELEMENTS_TOO_LARGE: Final = b"ERR Elements are too large to be stored"
MAXLEN_NEGATIVE: Final = b"ERR The MAXLEN argument must be >= 0."
LIMIT_NEGATIVE: Final = b"ERR The LIMIT argument must be >= 0."
TWO_STRATEGIES: Final = (
    b"ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
)
LIMIT_WITHOUT_STRATEGY: Final = (
    b"ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
)
LIMIT_WITHOUT_TILDE: Final = b"ERR syntax error, LIMIT cannot be used without the special ~ option"
XTRIM_WITHOUT_STRATEGY: Final = b"ERR syntax error, XTRIM must be called with a trimming strategy"
INVALID_RANGE_START: Final = b"ERR invalid start ID for the interval"
INVALID_RANGE_END: Final = b"ERR invalid end ID for the interval"
IDMP_TWICE: Final = b"ERR syntax error, IDMP/IDMPAUTO specified multiple times"
IDMP_NO_PID: Final = b"ERR syntax error, IDMP requires a non-empty producer ID"
IDMP_NO_IID: Final = b"ERR syntax error, IDMP requires a non-empty idempotent ID"
IDMPAUTO_NO_PID: Final = b"ERR syntax error, IDMPAUTO requires a non-empty producer ID"
IDMP_WITH_ID: Final = b"ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs"
IDMP_DURATION_TWICE: Final = b"ERR IDMP-DURATION specified multiple times"
IDMP_MAXSIZE_TWICE: Final = b"ERR IDMP-MAXSIZE specified multiple times"
IDMP_DURATION_RANGE: Final = b"ERR IDMP-DURATION must be between 1 and 86400 seconds"
IDMP_MAXSIZE_RANGE: Final = b"ERR IDMP-MAXSIZE must be between 1 and 10000 entries"
IDMP_NOTHING_SET: Final = b"ERR At least one parameter must be specified"
RECORD_NO_PID: Final = b"ERR producer ID must be non-empty"
RECORD_NO_IID: Final = b"ERR idempotent ID must be non-empty"
NO_SUCH_MESSAGE: Final = b"ERR No such message in stream"
IID_ELSEWHERE: Final = b"ERR IID already exists for this producer with a different stream ID"
COUNT_NOT_POSITIVE: Final = b"ERR COUNT must be > 0"
NUMIDS_NOT_POSITIVE: Final = b"ERR Number of IDs must be a positive integer"
NUMIDS_MISMATCH: Final = b"ERR The `numids` parameter must match the number of arguments"
IDS_REQUIRED: Final = b"ERR IDS option is required"
ENTRIES_ADDED_NEGATIVE: Final = b"ERR entries_added must be positive"
XSETID_BELOW_GIVEN_DELETED: Final = (
    b"ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
)
XSETID_BELOW_DELETED: Final = (
    b"ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
)
XSETID_BELOW_TOP: Final = (
    b"ERR The ID specified in XSETID is smaller than the target stream top item"
)
XSETID_FEW_ADDED: Final = (
    b"ERR The entries_added specified in XSETID is smaller than the target stream length"
)
XREAD_UNBALANCED: Final = (
    b"ERR Unbalanced 'xread' list of streams: "
    b"for each stream key an ID, '+', or '$' must be specified."
)
XREAD_NEW_ID: Final = (
    b"ERR The > ID can be specified only when calling XREADGROUP "
    b"using the GROUP <group> <consumer> option."
)
XREADGROUP_UNBALANCED: Final = (
    b"ERR Unbalanced 'xreadgroup' list of streams: "
    b"for each stream key an ID or '>' must be specified."
)
TIMEOUT_NOT_INTEGER: Final = b"ERR timeout is not an integer or out of range"
TIMEOUT_NOT_A_FLOAT: Final = b"ERR timeout is not a float or out of range"
TIMEOUT_NEGATIVE: Final = b"ERR timeout is negative"
TIMEOUT_OUT_OF_RANGE: Final = b"ERR timeout is out of range"
MAXCOUNT_NOT_POSITIVE: Final = b"ERR MAXCOUNT must be a positive integer"
MAXCOUNT_BELOW_COUNT: Final = b"ERR MAXCOUNT must be greater than or equal to COUNT"
MAXSIZE_NOT_POSITIVE: Final = b"ERR MAXSIZE must be a positive integer"
GROUP_MISSING: Final = b"ERR Missing GROUP option for XREADGROUP"
CLAIM_NOT_INTEGER: Final = b"ERR min-idle-time is not an integer or out of range"
CLAIM_NEGATIVE: Final = b"ERR min-idle-time must be a positive integer"
ONLY_FOR_GROUPS: Final = (
    b"ERR The %b option is only supported by XREADGROUP. You called XREAD instead."
)


def not_for_groups(text: bytes) -> bytes:
    """Return the error for ``$`` or ``+`` as an ID of XREADGROUP."""
    return (
        b"ERR The %b ID is meaningless in the context of XREADGROUP: you want to read the history "
        b"of this consumer by specifying a proper ID, or use the > ID to get new messages. "
        b"The %b ID would just return an empty result set."
    ) % (text, text)


NOT_BETWEEN: Final = b"ERR value is out of range, value must between %d and %d"


# Keys and databases

SAME_OBJECT: Final = b"ERR source and destination objects are the same"
DB_OUT_OF_RANGE: Final = b"ERR DB index is out of range"
INVALID_FIRST_DB: Final = b"ERR invalid first DB index"
INVALID_SECOND_DB: Final = b"ERR invalid second DB index"
NO_CLUSTER_SUPPORT: Final = b"ERR This instance has cluster support disabled"
CROSS_SLOT: Final = b"CROSSSLOT Keys in request don't hash to the same slot"
SELECT_IN_CLUSTER: Final = b"ERR SELECT is not allowed in cluster mode"
MOVE_IN_CLUSTER: Final = b"ERR MOVE is not allowed in cluster mode"
SWAPDB_IN_CLUSTER: Final = b"ERR SWAPDB is not allowed in cluster mode"
REPLICAOF_IN_FAILOVER: Final = b"ERR REPLICAOF not allowed while failing over."
REPLICAOF_IN_CLUSTER: Final = b"ERR REPLICAOF not allowed in cluster mode."
SORT_BY_IN_CLUSTER: Final = (
    b"ERR BY option of SORT denied in Cluster mode when keys formed by the pattern may be in "
    b"different slots."
)
SORT_GET_IN_CLUSTER: Final = (
    b"ERR GET option of SORT denied in Cluster mode when keys formed by the pattern may be in "
    b"different slots."
)
NO_MODULE_COMMAND: Final = (
    b'ERR MODULE command not allowed. If the enable-module-command option is set to "local", you '
    b"can run it from a local connection, otherwise you need to set this option in the "
    b"configuration file, and then restart the server."
)
INVALID_CURSOR: Final = b"ERR invalid cursor"
NOVALUES_NOT_HERE: Final = b"ERR NOVALUES option can only be used in HSCAN"
_SWITCHING: Final = (
    b"Please note that when switching between policies at runtime LRU and LFU data will take "
    b"some time to adjust."
)
NO_IDLE_TIME: Final = (
    b"ERR An LFU maxmemory policy is selected, idle time not tracked. " + _SWITCHING
)
NO_FREQUENCY: Final = (
    b"ERR An LFU maxmemory policy is not selected, access frequency not tracked. " + _SWITCHING
)


# Expiry

EXPIRE_NX_EXCLUDES: Final = b"ERR NX and XX, GT or LT options at the same time are not compatible"
EXPIRE_GT_LT: Final = b"ERR GT and LT options at the same time are not compatible"
INVALID_EXPIRE: Final = b"ERR invalid expire time in '%b' command"


def without_line_end(text: bytes) -> bytes:
    """Return a text without the line breaks at its end."""
    return text.rstrip(b"\r\n")


def unsupported_option(option: bytes) -> bytes:
    """Return the error for an unknown option of EXPIRE, without line breaks at its end."""
    return b"ERR Unsupported option %b" % without_line_end(option)


# DUMP and RESTORE

BUSY_KEY: Final = b"BUSYKEY Target key name already exists."
INVALID_TTL: Final = b"ERR Invalid TTL value, must be >= 0"
INVALID_IDLE_TIME: Final = b"ERR Invalid IDLETIME value, must be >= 0"
INVALID_FREQ: Final = b"ERR Invalid FREQ value, must be >= 0 and <= 255"
KEYS_BESIDE_A_KEY: Final = (
    b"ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"
)
PEER_NOT_CONNECTED: Final = b"IOERR error or timeout connecting to the client"
PEER_NOT_WRITTEN: Final = b"IOERR error or timeout writing to target instance"
PEER_NOT_READ: Final = b"IOERR error or timeout reading to target instance"
TARGET_REPLIED: Final = b"ERR Target instance replied with error: %b"
BAD_DUMP_FOOTER: Final = b"ERR DUMP payload version or checksum are wrong"
BAD_DATA_FORMAT: Final = b"ERR Bad data format"


# Strings

STRING_TOO_LONG: Final = b"ERR string exceeds maximum allowed size (proto-max-bulk-len)"
NEGATIVE_OFFSET: Final = b"ERR offset is out of range"
ADD_OVERFLOW: Final = b"ERR increment or decrement would overflow"
NEGATE_OVERFLOW: Final = b"ERR decrement would overflow"
ADD_NOT_FINITE: Final = b"ERR increment would produce NaN or Infinity"
ENX_WITHOUT_EXPIRY: Final = b"ERR ENX flag requires an expiration"
BOUNDS_CROSSED: Final = b"ERR LBOUND can't be greater than UBOUND"
INCREMENT_INFINITE: Final = b"ERR BYFLOAT increment cannot be Infinity"
VALUE_INFINITE: Final = b"ERR value cannot be Infinity"
APPLIED_OVERFLOW: Final = b"ERR applied increment would overflow"
APPLIED_INFINITE: Final = b"ERR applied increment would be Infinity"
INVALID_NUMKEYS: Final = b"ERR invalid numkeys value"
WRONG_PAIR_COUNT: Final = b"ERR wrong number of key-value pairs"
DIGEST_LENGTH: Final = b"ERR must be exactly 16 hexadecimal characters"
CONDITION_NEEDS_STRING: Final = b"ERR Key should be of string type if conditions are specified"
INVALID_CONDITION: Final = b"ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"
LCS_NEEDS_STRINGS: Final = b"ERR The specified keys must contain string values"
LCS_LENGTH_AND_INDEXES: Final = b"ERR If you want both the length and indexes, please just use IDX."
LCS_TOO_LARGE: Final = (
    b"ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
)
NUMBER_NOT_INTEGER: Final = b"ERR %b is not an integer or out of range"
NUMBER_NOT_FLOAT: Final = b"ERR %b is not a valid float"
NESTED_MULTI: Final = b"ERR MULTI calls can not be nested"
EXEC_WITHOUT_MULTI: Final = b"ERR EXEC without MULTI"
DISCARD_WITHOUT_MULTI: Final = b"ERR DISCARD without MULTI"
WATCH_IN_MULTI: Final = b"ERR WATCH inside MULTI is not allowed"
EXEC_ABORTED: Final = b"EXECABORT Transaction discarded because of previous errors."


def exec_refused(line: bytes) -> bytes:
    """Return the error for EXEC that was not run for the reason in another error line."""
    return b"EXECABORT Transaction discarded because of: " + line.removeprefix(b"ERR ")


FUNCTION_FLUSH_MODE: Final = b"ERR FUNCTION FLUSH only supports SYNC|ASYNC option"

# AUTH, HELLO, SELECT
AUTH_WITHOUT_PASSWORD: Final = (
    b"ERR AUTH <password> called without any password configured for the default user. "
    b"Are you sure your configuration is correct?"
)
WRONG_PASSWORD: Final = b"WRONGPASS invalid username-password pair or user is disabled."
BAD_PROTOCOL_VERSION: Final = b"ERR Protocol version is not an integer or out of range"
NO_SUCH_PROTOCOL: Final = b"NOPROTO unsupported protocol version"
HELLO_NEEDS_AUTH: Final = (
    b"NOAUTH HELLO must be called with the client already authenticated, otherwise the "
    b"HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and "
    b"select the RESP protocol version at the same time"
)

# CLIENT
BAD_CLIENT_NAME: Final = b"ERR Client names cannot contain spaces, newlines or special characters."
BAD_CLIENT_ID: Final = b"ERR Invalid client ID"
CLIENT_ID_NOT_POSITIVE: Final = b"ERR client-id should be greater than 0"
BAD_MAXAGE: Final = b"ERR maxage is not an integer or out of range"
MAXAGE_NOT_POSITIVE: Final = b"ERR maxage should be greater than 0"
NO_SUCH_CLIENT: Final = b"ERR No such client"
BAD_PAUSE_MODE: Final = b"ERR CLIENT PAUSE mode must be WRITE or ALL"
BAD_UNBLOCK_REASON: Final = b"ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"
UNBLOCKED: Final = b"UNBLOCKED client unblocked via CLIENT UNBLOCK"
CACHING_WITHOUT_TRACKING: Final = (
    b"ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
    b"OPTOUT mode enabled"
)
CACHING_WITHOUT_OPTIN: Final = (
    b"ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
)
CACHING_WITHOUT_OPTOUT: Final = (
    b"ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
)
NO_REDIRECT_CLIENT: Final = b"ERR The client ID you want redirect to does not exist"
TWO_REDIRECTS: Final = b"ERR A client can only redirect to a single other client"
PREFIX_WITHOUT_BCAST: Final = b"ERR PREFIX option requires BCAST mode to be enabled"
OPT_WITH_BCAST: Final = b"ERR OPTIN and OPTOUT are not compatible with BCAST"
OPTIN_AND_OPTOUT: Final = b"ERR You can't specify both OPTIN mode and OPTOUT mode"
_SWITCHING_TRACKING: Final = (
    b"ERR You can't switch %b before disabling tracking for this client, and then re-enabling it "
    b"with a different mode."
)
SWITCHING_BCAST: Final = _SWITCHING_TRACKING % b"BCAST mode on/off"
SWITCHING_OPT: Final = _SWITCHING_TRACKING % b"OPTIN/OPTOUT mode"


def overlapping_prefixes(prefix: bytes, other: bytes, is_there: bool) -> bytes:
    """Return the error for a prefix of CLIENT TRACKING that begins with another, or vice versa."""
    which = b"an existing" if is_there else b"another provided"
    return (
        b"ERR Prefix '%b' overlaps with %b prefix '%b'. Prefixes for a single client must not "
        b"overlap." % (c_text(prefix), which, c_text(other))
    )


# HOTKEYS

HOTKEYS_IN_PROGRESS: Final = b"ERR hotkey tracking session already in progress"
HOTKEYS_STILL_IN_PROGRESS: Final = b"ERR hotkey tracking session in progress, stop tracking first"
HOTKEYS_WITHOUT_METRICS: Final = b"ERR METRICS parameter is required"
HOTKEYS_BAD_METRICS: Final = b"ERR METRICS count must be > 0 and <= 2"
HOTKEYS_TOO_FEW_METRICS: Final = b"ERR METRICS count does not match number of metric types provided"
HOTKEYS_METRIC_TWICE: Final = b"ERR METRICS %b defined more than once!"
HOTKEYS_NO_METRIC: Final = b"ERR METRICS no valid metrics passed. Supported: CPU|NET"
HOTKEYS_BAD_COUNT: Final = b"ERR COUNT must be between 1 and 64"
HOTKEYS_BAD_DURATION: Final = b"ERR DURATION must be between 1 and 1000000"
HOTKEYS_BAD_SAMPLE: Final = b"ERR SAMPLE ratio must be positive"
HOTKEYS_SLOTS_WITHOUT_CLUSTER: Final = b"ERR SLOTS parameter cannot be used in non-cluster mode"
HOTKEYS_SLOTS_TWICE: Final = b"ERR SLOTS parameter already specified"
HOTKEYS_BAD_SLOT_COUNT: Final = b"ERR SLOTS count must be between 1 and 16384"
HOTKEYS_TOO_FEW_SLOTS: Final = b"ERR not enough slot numbers provided"
HOTKEYS_SLOT_TWICE: Final = b"ERR duplicate slot number"

# MONITOR, SLOWLOG, REPLICAOF, SHUTDOWN, WAITAOF
MONITOR_TOUCHES_KEYS: Final = b"ERR Replica can't interact with the keyspace"
SSUBSCRIBE_IN_MULTI: Final = b"ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"
MONITOR_IN_MULTI: Final = b"ERR MONITOR isn't allowed for DENY BLOCKING client"
BAD_SLOWLOG_COUNT: Final = b"ERR count should be greater than or equal to -1"
BAD_MASTER_PORT: Final = b"ERR Invalid master port"
READ_ONLY_REPLICA: Final = b"READONLY You can't write against a read only replica."
MASTER_DOWN: Final = (
    b"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
)
NO_MASTER_LINK: Final = b"NOMASTERLINK Can't SYNC while not connected with my master"
FORCED_UNBLOCK: Final = (
    b"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)
WAIT_AT_REPLICA: Final = (
    b"ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a "
    b"replica is configured to be writable (which is not the default) writes to replicas are just "
    b"local and are not propagated."
)
WAITAOF_AT_REPLICA: Final = (
    b"ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas "
    b"are just local and are not propagated."
)
NO_FAILOVER_UNDER_WAY: Final = b"ERR No failover in progress."
FAILOVER_UNDER_WAY: Final = b"ERR FAILOVER already in progress."
FAILOVER_IN_CLUSTER: Final = b"ERR FAILOVER not allowed in cluster mode."
FAILOVER_AT_REPLICA: Final = b"ERR FAILOVER is not valid when server is a replica."
FAILOVER_ALONE: Final = b"ERR FAILOVER requires connected replicas."
FAILOVER_FORCED_TO_NOBODY: Final = (
    b"ERR FAILOVER with force option requires both a timeout and target HOST and IP."
)
FAILOVER_TO_STRANGER: Final = b"ERR FAILOVER target HOST and PORT is not a replica."
FAILOVER_TO_ABSENT: Final = b"ERR FAILOVER target replica is not online."
FAILOVER_TIMEOUT_NOT_POSITIVE: Final = b"ERR FAILOVER timeout must be greater than 0"
FAILOVER_TO_MASTER: Final = b"ERR PSYNC FAILOVER can't be sent to a master."
FAILOVER_OF_OTHER_DATA: Final = b"ERR PSYNC FAILOVER replid must match my replid."
REPLCONF_LONG_ADDRESS: Final = (
    b"ERR REPLCONF ip-address provided by replica instance is too long: 255 bytes at most"
)
REPLCONF_NO_BIT: Final = b"ERR value is out of range, value must between 0 and 1"
NO_SHUTDOWN: Final = b"ERR No shutdown in progress."
SHUTDOWN_FAILED: Final = b"ERR Errors trying to SHUTDOWN. Check logs."
WAITAOF_WITHOUT_AOF: Final = (
    b"ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
)

VALUE_OUT_OF_RANGE: Final = b"ERR value is out of range"
NOT_POSITIVE: Final = b"ERR value is out of range, must be positive"
NUMKEYS_BELOW_ONE: Final = b"ERR numkeys should be greater than 0"
NOT_SORTABLE: Final = b"ERR One or more scores can't be converted into double"
COUNT_BELOW_ONE: Final = b"ERR count should be greater than 0"
LIMIT_BELOW_ZERO: Final = b"ERR LIMIT can't be negative"
NO_INPUT_KEYS: Final = b"ERR at least 1 input key is needed for '%b' command"
SAVE_IN_PROGRESS: Final = b"ERR Background save already in progress"
SAVE_FAILED: Final = b"ERR"
OTHER_JOB_IN_PROGRESS: Final = (
    b"ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in "
    b"order to schedule a BGSAVE whenever possible."
)
REWRITE_FAILED: Final = (
    b"ERR Can't execute an AOF background rewriting. Please check the server logs for more "
    b"information."
)
REWRITE_IN_PROGRESS: Final = b"ERR Background append only file rewriting already in progress"

# DEBUG
DEBUG_NOT_ALLOWED: Final = (
    b'ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", '
    b"you can run it from a local connection, otherwise you need to set this option in the "
    b"configuration file, and then restart the server."
)
BAD_CLOCK: Final = b"ERR DEBUG CLOCK takes %b"
BAD_FAULT: Final = b"ERR DEBUG FAULT takes %b"
BAD_FAULT_PART: Final = b"ERR DEBUG FAULT: %b"
USERS_NOT_READ: Final = b"ERR the users cannot be read again: %b"
NO_SUCH_FAULT: Final = b"ERR there is no fault with this ID"
NOT_CLEANED: Final = b"ERR a region, a replica, or a server that loads data cannot be cleaned"
CLOCK_NOT_MOVABLE: Final = b"ERR this server lives by a clock that cannot be moved"
CLOCK_NOT_BACK: Final = b"ERR the clock cannot go back: RESET returns to the system's time"
CLOCK_TOO_FAR: Final = b"ERR the clock cannot go that far"
CLOCK_MUST_WAIT: Final = b"ERR the clock cannot be changed in a transaction or while data is loaded"
CLOCK_IS_SHARED: Final = (
    b"ERR the clock of a region, a replica, or a server with replicas cannot be changed, because "
    b"the others would live by another one"
)
CLOCK_WAS_MOVED: Final = (
    b"ERR the clock of this server was moved (DEBUG CLOCK): no replica can live by it"
)
BAD_PACKED_THRESHOLD: Final = (
    b"ERR argument must be a memory value bigger than 1 and smaller than 4gb"
)
NOT_A_LISTPACK: Final = b"ERR Not a listpack encoded object."
NOT_A_QUICKLIST: Final = b"ERR Not a quicklist encoded object."
NOT_A_HASH_TABLE: Final = (
    b"ERR The value stored at the specified key is not represented using an hash table"
)
BAD_RELOAD_OPTION: Final = b"ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."
RELOAD_FAILED: Final = b"ERR Error trying to load the RDB dump, check server logs."
LOADAOF_FAILED: Final = b"ERR Error trying to load the AOF files, check server logs."
PUSH_NEEDS_RESP3: Final = b"ERR RESP2 is not supported by this command"
BAD_PROTOCOL_TYPE: Final = (
    b"ERR Wrong protocol type name. Please use one of the following: string|integer|double|"
    b"bignum|null|array|set|map|attrib|push|verbatim|true|false"
)


def bad_hello_option(word: bytes) -> bytes:
    """Return the error for a word that HELLO does not know, or that lacks what must follow it."""
    return b"ERR Syntax error in HELLO option '%b'" % c_text(word)


def unknown_client_type(word: bytes) -> bytes:
    """Return the error for a TYPE that no client can have."""
    return b"ERR Unknown client type '%b'" % c_text(word)


def no_such_user(name: bytes) -> bytes:
    """Return the error for an unknown USER."""
    return b"ERR No such user '%b'" % c_text(name)


def unknown_client_attribute(word: bytes) -> bytes:
    """Return the error for an attribute that CLIENT SETINFO does not know."""
    return b"ERR Unrecognized option '%b'" % c_text(word)


def bad_client_attribute(word: bytes) -> bytes:
    """Return the error for a value that CLIENT SETINFO cannot take."""
    return b"ERR %b cannot contain spaces, newlines or special characters." % c_text(word)


def no_latency_samples(event: bytes) -> bytes:
    """Return the error for LATENCY GRAPH of an event that was never slow."""
    return b"ERR No samples available for event '%b'" % c_text(event)


# Consumer groups
XGROUP_NEEDS_KEY: Final = (
    b"ERR The XGROUP subcommand requires the key to exist. "
    b"Note that for CREATE you may want to use the MKSTREAM option "
    b"to create an empty stream automatically."
)
BUSY_GROUP: Final = b"BUSYGROUP Consumer Group name already exists"
ENTRIES_READ_NEGATIVE: Final = b"ERR value for ENTRIESREAD must be positive or -1"
XCLAIM_MIN_IDLE: Final = b"ERR Invalid min-idle-time argument for XCLAIM"
XCLAIM_IDLE: Final = b"ERR Invalid IDLE option argument for XCLAIM"
XCLAIM_TIME: Final = b"ERR Invalid TIME option argument for XCLAIM"
XCLAIM_RETRYCOUNT: Final = b"ERR Invalid RETRYCOUNT option argument for XCLAIM"
XAUTOCLAIM_MIN_IDLE: Final = b"ERR Invalid min-idle-time argument for XAUTOCLAIM"
NOACK_BREAKS_ORDER: Final = (
    b"ERR this group keeps the order of keys (order-key), which NOACK cannot: entries have to be "
    b"acknowledged"
)
MAX_PENDING_NEGATIVE: Final = b"ERR MAX-PENDING must be 0 or a positive integer"
READ_GROUP_INCOMPLETE: Final = b"ERR XREAD-GROUP requires the GROUP and NAME options"
# In Redis these say ERR twice, because the texts repeat what the call adds.
XNACK_MODE: Final = b"ERR mode must be SILENT, FAIL, or FATAL"
XNACK_NUMIDS: Final = b"ERR numids must be a positive integer"
XNACK_NUMIDS_MISMATCH: Final = b"ERR number of IDs doesn't match numids"
XNACK_RETRYCOUNT: Final = b"ERR Invalid RETRYCOUNT value, must be >= 0"
XNACK_IDS_EXPECTED: Final = b"ERR syntax error, expected IDS keyword"


def no_such_group(group: bytes, key: bytes) -> bytes:
    """Return the error for a key that is there without the group asked for."""
    return b"NOGROUP No such consumer group '%b' for key name '%b'" % (c_text(group), c_text(key))


def no_key_or_group(key: bytes, group: bytes) -> bytes:
    """Return the error for a missing key or group, without saying which."""
    return b"NOGROUP No such key '%b' or consumer group '%b'" % (c_text(key), c_text(group))


def unrecognized_xclaim_option(word: bytes) -> bytes:
    """Return the error for a word after the IDs of XCLAIM that is none of its options."""
    return b"ERR Unrecognized XCLAIM option '%b'" % c_text(word)


def unrecognized_xnack_option(word: bytes) -> bytes:
    """Return the error for a word of XNACK that is none of its options."""
    return b"ERR Unrecognized XNACK option '%b'" % c_text(word)


# Regions
AA_NO_REGION: Final = b"ERR this server is no region (aa-region-id)"
AA_DATABASE: Final = b"AADATABASE this region belongs to another database (aa-database)"
AA_OTHER_PORT: Final = b"ERR only another region may ask for that, at aa-port"
AA_NOT_AT_THIS_PORT: Final = (
    b"ERR this port is for other regions: it takes AA AUTH, AA HELLO, AA PULL, AA COPY and PING"
)
AA_HELLO_FIRST: Final = b"AAHELLO who is asking? AA HELLO comes first"
AA_SECRET_WRONG: Final = b"AASECRET the other side has another secret (aa-secret)"
AA_SECRET_NONE: Final = b"AASECRET this region has no secret (aa-secret)"
AA_NO_CHALLENGE: Final = b"AASECRET a nonce comes first"
AA_NO_BASE: Final = b"AANOBASE there is no base yet; it is being written, so ask again"
AA_NO_COPY: Final = b"AANOCOPY there is no such copy, or not so much of it; begin again"
AA_NO_SUCH_PEER: Final = b"ERR there is no such peer (aa-peers)"
AA_NO_SUCH_EFFECT: Final = b"ERR there is no such effect"
AA_BAD_TOKEN: Final = b"ERR that is no token"
AA_NO_MEMBER: Final = b"ERR that region does not take part (aa-peers, AA JOIN)"
AA_NEVER_MEMBER: Final = b"ERR that region has never taken part, so there is nothing to forget"
AA_OWN_REGION: Final = b"ERR that is this region itself"
AA_STRANGER: Final = (
    b"AATLS the certificate of the region that calls has none of the names in "
    b"tls-expected-peer-name of that one"
)
AA_PLAIN: Final = b"AATLS that region does not encrypt what it exchanges (aa-tls)"
AA_ENCRYPTS: Final = b"AATLS that region encrypts what it exchanges (aa-tls)"
AA_OWN_ADDRESS: Final = b"AASELF that is the address of the region that calls (aa-peers)"
AASTART: Final = (
    b"AASTART the files of this region may be older than what others know of it: it takes no "
    b"writes until it knows all that they do"
)
AASYNCING: Final = (
    b"AASYNCING this region takes no writes until all others have answered and it has what they do"
)
AA_HALF_JOINED: Final = (
    b"AASYNCING a copy of another region's data is being joined: nothing can be read before it is"
)
AA_STOPPED: Final = (
    b"AATWIN another server is this region, too, or has been in a later life: this one takes no "
    b"writes until it is started again"
)

AA_LEFT_OUT: Final = (
    b"AAFORGOTTEN the other regions keep nothing for this one any more, and take nothing of it: it "
    b"takes no writes until it is started again, with an empty folder"
)


def aa_version(region: int, version: int, other: int, lowest: int) -> bytes:
    """Return the error for two regions of which one is too old for the other."""
    return (
        b"AAVERSION region %d speaks version %d of the exchange, and region %d none below %d: "
        b"region %d has to be upgraded" % (region, version, other, lowest, region)
    )


def aa_unaware(name: bytes, version: int, region: int) -> bytes:
    """Return the error for a request that not all regions would understand."""
    return (
        b"AAVERSION region %d has to be upgraded before: it has not said that it knows AA %b, of "
        b"version %d" % (region, name, version)
    )


def not_of_region(own: bytes, theirs: bytes) -> bytes:
    """Return the error for a replica that is no standby of the region here, or where none is."""
    return (
        b"ERR The master is %b and the replica %b: the standby of a region has its aa-region-id "
        b"and aa-database" % (own or b"no region", theirs or b"none")
    )


def aa_twin(origin: bytes) -> bytes:
    """Return the error for one of two lives under the same name."""
    return b"AATWIN there is another %b" % origin


def aa_taken(origin: bytes) -> bytes:
    """Return the error for a life of a region while another server is that region."""
    return b"AATWIN another server is that region, as %b" % origin


def aa_forgotten(region: int, epoch: int) -> bytes:
    """Return the error for a region that takes part no more."""
    return b"AAFORGOTTEN region %d has been forgotten up to epoch %d" % (region, epoch)


def aa_ahead(origin: bytes, number: int) -> bytes:
    """Return the error for a peer that knows more of a region than that does itself."""
    return b"AAAHEAD %b has %d records: whoever knows more has them of a life before" % (
        origin,
        number,
    )


def group_moved(region: int) -> bytes:
    """Return the error for readers of a group that is read in another region."""
    return b"AAMOVED group reads in region %d" % region


def aa_behind(origin: bytes, number: int) -> bytes:
    """Return the error for a request for records that the log does not hold any more."""
    return b"AABEHIND the log of %b begins with %d: a full copy is needed" % (origin, number)


def aa_malformed(reason: bytes) -> bytes:
    """Return the error for words of another region that mean nothing."""
    return b"ERR malformed: %b" % reason


UNKNOWN_REPLCONF: Final = b"ERR Unrecognized REPLCONF option: %b"
UNKNOWN_RDB_FILTER: Final = b"ERR Unsupported rdb-filter-only option: %b"
