"""Error texts of ACL, of clusters, and of scripts and functions; see ``compat.errors``."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import c_text

# ACL: why a rule is wrong, and other errors.
SYNTAX_ERROR: Final = b"Syntax error"
UNKNOWN_TO_ACL: Final = b"Unknown command or category name in ACL"
ALL_KEYS_ALREADY: Final = (
    b"Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have "
    b"any effect. Try 'resetkeys' to start with an empty list of patterns"
)
ALL_CHANNELS_ALREADY: Final = (
    b"Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not "
    b"have any effect. Try 'resetchannels' to start with an empty list of channels"
)
NO_SUCH_PASSWORD: Final = b"The password you are trying to remove from the user does not exist"
BAD_HASH: Final = (
    b"The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
    b"characters"
)
SUBCOMMAND_WITH_WORD: Final = b"Allowing first-arg of a subcommand is not supported"

BAD_USER_NAME: Final = b"ERR Usernames can't contain spaces or null characters"
DEFAULT_USER_STAYS: Final = b"ERR The 'default' user cannot be removed"
BAD_BITS: Final = (
    b"ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
    b"number up to 4096"
)
NO_ACL_FILE: Final = (
    b"ERR This Redis instance is not configured to use an ACL file. You may want to specify users "
    b"via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis "
    b"configuration file set) in order to store users in the Redis configuration."
)
ACL_NOT_SAVED: Final = (
    b"ERR There was an error trying to save the ACLs. Please check the server logs for more "
    b"information"
)
NO_KEY_PERMISSION: Final = b"NOPERM No permissions to access a key"
NO_CHANNEL_PERMISSION: Final = b"NOPERM No permissions to access a channel"
_CHANGED_MEANWHILE: Final = (
    b"NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
    b"call. This command is no longer allowed for the following reason: "
)
COMMAND_LOST: Final = _CHANGED_MEANWHILE + b"no permission to execute the command or subcommand"
KEY_LOST: Final = _CHANGED_MEANWHILE + b"no permission to touch the specified keys"
CHANNEL_LOST: Final = (
    _CHANGED_MEANWHILE + b"no permission to access one of the channels used as arguments"
)
BY_DENIED: Final = b"ERR BY option of SORT denied due to insufficient ACL permissions."
GET_DENIED: Final = b"ERR GET option of SORT denied due to insufficient ACL permissions."


def bad_rule(rule: bytes, reason: bytes) -> bytes:
    """Return the error for a rule of ACL SETUSER that cannot be used."""
    return b"ERR Error in ACL SETUSER modifier '%b': %b" % (c_text(rule), reason)


def unmatched(word: bytes) -> bytes:
    """Return the error for a selector that is not closed."""
    return b"ERR Unmatched parenthesis in acl selector starting at '%b'." % c_text(word)


def unknown_category(name: bytes) -> bytes:
    """Return the error of ACL CAT for an unknown category."""
    return b"ERR Unknown category '%b'" % c_text(name[:128])


def unknown_user(name: bytes) -> bytes:
    """Return the error of ACL DRYRUN for an unknown user."""
    return b"ERR User '%b' not found" % c_text(name)


def command_not_found(name: bytes) -> bytes:
    """Return the error of ACL DRYRUN for an unknown command."""
    return b"ERR Command '%b' not found" % c_text(name)


# Without a code, as ACL DRYRUN says it: that a user may not run a command, use a key or a channel.
MAY_NOT_RUN: Final = b"User %b has no permissions to run the '%b' command"
MAY_NOT_USE_KEY: Final = b"User %b has no permissions to access the '%b' key"
MAY_NOT_USE_CHANNEL: Final = b"User %b has no permissions to access the '%b' channel"


# Clusters

ONE_NODE: Final = b"ERR This server is a cluster of one node, which owns all slots"

BAD_SLOT: Final = b"ERR Invalid slot"
BAD_SLOT_OR_COUNT: Final = b"ERR Invalid slot or number of keys"
NO_SUCH_SLOT: Final = b"ERR Invalid or out of range slot"
WRONG_RANGE: Final = b"ERR start slot number %d is greater than end slot number %d"
SLOT_TWICE: Final = b"ERR Slot %d specified multiple times"
NO_RANGES: Final = b"ERR missing ranges argument"
BAD_RANGE_COUNT: Final = b"ERR invalid number of ranges"
SERVES_SLOT: Final = b"ERR the slot %d is served by this node"
SLOT_BUSY: Final = b"ERR Slot %d is already busy"
OWNS_SLOT: Final = b"ERR I'm already the owner of hash slot %d"
OWNS_RANGE: Final = b"ERR this node is already the owner of the slot range"
BAD_ACTION: Final = b"ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP"

UNKNOWN_NODE: Final = b"ERR Unknown node %b"
STRANGE_NODE: Final = b"ERR I don't know about node %b"
CANNOT_FORGET_MYSELF: Final = b"ERR I tried hard but I can't forget myself..."
CANNOT_REPLICATE_MYSELF: Final = b"ERR Can't replicate myself"
FOR_REPLICAS: Final = b"ERR You should send CLUSTER FAILOVER to a replica"
FOR_INTERNAL_CLIENTS: Final = (
    b"ERR CLUSTER SYNCSLOTS subcommands are only allowed for internal clients"
)
BAD_PORT: Final = b"ERR Invalid base port specified: %b"
BAD_BUS_PORT: Final = b"ERR Invalid bus port specified: %b"
BAD_ADDRESS: Final = b"ERR Invalid node address specified: %b:%b"

RESET_WITH_KEYS: Final = b"ERR CLUSTER RESET can't be called with master nodes containing keys"
FLUSH_WITH_KEYS: Final = b"ERR DB must be empty to perform CLUSTER FLUSHSLOTS."
EPOCH_IS_SET: Final = b"ERR Node config epoch is already non-zero"
BAD_EPOCH: Final = b"ERR Invalid config epoch specified: %d"
NOT_SAVED: Final = b"ERR error saving the cluster node config: %b"

UNKNOWN_ARGUMENT: Final = b"ERR unknown argument"
WRONG_WORDS: Final = (
    b"ERR unknown subcommand or wrong number of arguments for '%b'. Try CLUSTER HELP."
)

NO_METRIC: Final = b"ERR Unrecognized sort metric for ORDERBY."
FILTER_TWICE: Final = b"ERR Multiple filters of the same type are disallowed."
BAD_LIMIT: Final = b"ERR Limit has to lie in between 1 and 16384 (maximum number of slots)."
WRONG_STATISTICS_RANGE: Final = b"ERR Start slot number %d is greater than end slot number %d"


# Scripts

NOT_ENOUGH_MEMORY: Final = b"ERR not enough memory"
INTERNAL: Final = b"ERR internal error"
NEEDS_ONE: Final = b"ERR Please specify at least one argument for this redis lib call"
BAD_ARGUMENT: Final = b"ERR Lua redis lib command arguments must be strings or integers"
UNKNOWN_COMMAND: Final = b"ERR Unknown Redis command called from script"
WRONG_ARITY: Final = b"ERR Wrong number of args calling Redis command from script"
NOT_FROM_SCRIPT: Final = b"ERR This Redis command is not allowed from script"
CALL_CROSSES_SLOTS: Final = (
    b"ERR Command '%b' in script attempted to access keys that don't hash to the same slot"
)
SCRIPT_CROSSES_SLOTS: Final = (
    b"ERR Script attempted to access keys that do not hash to the same slot"
)
NOT_ON_CLUSTER: Final = b"ERR Can not run script on cluster, 'no-cluster' flag is set."
READ_ONLY: Final = b"ERR Write commands are not allowed from read-only scripts."
STALE: Final = b"ERR Can not execute the command on a stale replica"
LOG_NEEDS_TWO: Final = b"ERR redis.log() requires two arguments or more."
LOG_NEEDS_LEVEL: Final = b"ERR First argument must be a number (log level)."
LOG_BAD_LEVEL: Final = b"ERR Invalid log level."
WRONG_COUNT: Final = b"ERR wrong number of arguments"
SETRESP_NEEDS_ONE: Final = b"ERR redis.setresp() requires one argument."
BAD_VERSION: Final = b"ERR RESP version must be 2 or 3."
SET_REPL_NEEDS_ONE: Final = b"ERR redis.set_repl() requires one argument."
BAD_REPL: Final = (
    b"ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE."
)
ACL_CHECK_ARITY: Final = b"ERR Wrong number of args for redis.acl_check_cmd()"
REGION_RECORDS_ALL: Final = b"ERR a region records all writes: other regions have to get them"
ACL_CHECK_UNKNOWN: Final = b"ERR Invalid command passed to redis.acl_check_cmd()"
KILLED: Final = b"ERR Script killed by user with SCRIPT KILL..."
NO_SCRIPT: Final = b"NOSCRIPT No matching script. Please use EVAL."
NEGATIVE_KEYS: Final = b"ERR Number of keys can't be negative"
TOO_MANY_KEYS: Final = b"ERR Number of keys can't be greater than number of args"
NOT_BUSY: Final = b"NOTBUSY No scripts in execution right now."
BUSY_SCRIPT: Final = (
    b"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
)
BUSY_FUNCTION: Final = (
    b"BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
)
UNKILLABLE: Final = (
    b"UNKILLABLE Sorry the script already executed write commands against the dataset. You can "
    b"either wait the script termination or kill the server in a hard way using the SHUTDOWN "
    b"NOSAVE command."
)
UNKILLABLE_OF_MASTER: Final = (
    b"UNKILLABLE The busy script was sent by a master instance in the context of replication and "
    b"cannot be killed."
)
SCRIPT_FLUSH_MODE: Final = b"ERR SCRIPT FLUSH only support SYNC|ASYNC option"


def of_script(line: bytes) -> bytes:
    """Return the error that a script gets for a bad request, from a client's ``line`` for it."""
    return WRONG_ARITY if line.startswith(b"ERR wrong number of arguments") else UNKNOWN_COMMAND


def of_acl_check(line: bytes) -> bytes:
    """Return ``of_script`` for a script that asks whether its client may make the request."""
    return ACL_CHECK_UNKNOWN if of_script(line) == UNKNOWN_COMMAND else ACL_CHECK_ARITY


def denied(line: bytes) -> bytes:
    """Return the error that a script gets for a denied request, from the client's ``line``."""
    return b"ERR ACL failure in script: " + line.removeprefix(b"NOPERM ")


def with_code(text: bytes) -> bytes:
    """Return the error that a script makes of a text, with the code ERR where that has none."""
    return text.rstrip(b"\r\n") if b" " in text else b"ERR " + text.strip(b"\r\n")


def unknown_list_argument(word: bytes) -> bytes:
    """Return the error for FUNCTION LIST; line breaks at the end become spaces, too."""
    return b"ERR Unknown argument " + word.replace(b"\r", b" ").replace(b"\n", b" ")


DOES_NOT_COMPILE: Final = b"ERR Error compiling script (new function): %b"


def located(text: bytes, sha: bytes, chunk: bytes | None, line: int | None) -> bytes:
    """Return an error with the script that it comes from, and where in there."""
    if chunk is None or line is None:
        return b"%b script: %b" % (text, sha)
    return b"%b script: %b, on %b:%d." % (text, sha, chunk, line)


# The first line of a script

BAD_SHEBANG: Final = b"ERR Invalid script shebang"
UNEXPECTED_ENGINE: Final = b"ERR Unexpected engine in script shebang: %b"
UNKNOWN_SHEBANG_OPTION: Final = b"ERR Unknown lua shebang option: %b"
UNEXPECTED_FLAG: Final = b"ERR Unexpected flag in script shebang: %b"
WRITES_IN_READ_ONLY: Final = b"ERR Can not execute a script with write flag using *_ro command."
STALE_SCRIPT: Final = (
    b"MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and "
    b"'allow-stale' flag is not set on the script."
)
SCRIPT_ON_REPLICA: Final = b"READONLY Can not run script with write flag on readonly replica"
UNSAVED_SNAPSHOT: Final = (
    b"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
    b"disk. Writable scripts are blocked. Use 'no-writes' flag for read only scripts."
)
UNSAVED_AOF: Final = (
    b"MISCONF Redis is configured to persist data to AOF, but it's currently unable to persist to "
    b"disk. Writable scripts are blocked. Use 'no-writes' flag for read only scripts. "
    b"AOF error: %b"
)
DEBUG_MODE: Final = b"ERR Use SCRIPT DEBUG YES/SYNC/NO"
NO_DEBUGGER: Final = b"ERR there is no debugger of scripts"


# Functions

FUNCTION_NOT_FOUND: Final = b"ERR Function not found"
BAD_KEY_COUNT: Final = b"ERR Bad number of keys provided"
LIBRARY_NOT_FOUND: Final = b"ERR Library not found"
NO_METADATA: Final = b"ERR Missing library metadata"
NO_LIBRARY_NAME: Final = b"ERR Library name was not given"
NAME_TWICE: Final = b"ERR Invalid metadata value, name argument was given multiple times"
BAD_METADATA: Final = b"ERR Invalid metadata value given: %b"
BAD_NAME: Final = (
    b"Library names can only contain letters, numbers, or underscores(_) and must be at least one "
    b"character long"
)
ENGINE_NOT_FOUND: Final = b"ERR Engine '%b' not found"
NO_FUNCTIONS: Final = b"ERR No functions registered"
INVALID_METADATA: Final = b"ERR Invalid library metadata"
LIBRARY_EXISTS_RESTORING: Final = b"ERR Library %b already exists"
LIBRARY_EXISTS: Final = b"ERR Library '%b' already exists"
FUNCTION_EXISTS: Final = b"ERR Function %b already exists"
UNKNOWN_FLAG: Final = b"unknown flag given"
LIBRARY_NO_LUA: Final = b"ERR Error compiling function: %b"
NOT_REGISTERED: Final = b"ERR Error registering functions: %b"
UNKNOWN_LOAD_OPTION: Final = b"ERR Unknown option given: %b"
NO_LIST_PATTERN: Final = b"ERR library name argument was not given"
BAD_POLICY: Final = (
    b"ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
)
NOT_LIBRARIES: Final = b"ERR given type is not a function"
LOAD_TIMEOUT: Final = b"ERR FUNCTION LOAD timeout"
NO_ROOM_TO_RUN: Final = (
    b"OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'"
)
