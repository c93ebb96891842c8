"""Error texts of the connection and administration commands; see ``compat.errors``."""

from __future__ import annotations

from typing import Final

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
DB_OUT_OF_RANGE: Final = b"ERR DB index is out of range"

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
NO_REDIRECT_CLIENT: Final = b"ERR The client ID you want redirect to does not exist"
NO_TRACKING: Final = b"ERR CLIENT TRACKING is not supported by this server"

# MONITOR, SLOWLOG, REPLICAOF, SHUTDOWN, WAITAOF
MONITOR_TOUCHES_KEYS: Final = b"ERR Replica can't interact with the keyspace"
MONITOR_IN_MULTI: Final = b"ERR MONITOR isn't allowed for DENY BLOCKING client"
BAD_SLOWLOG_COUNT: Final = b"ERR count should be greater than or equal to -1"
BAD_MASTER_PORT: Final = b"ERR Invalid master port"
NO_REPLICATION: Final = b"ERR replication is not supported by this server; only NO ONE is accepted"
NO_SHUTDOWN: Final = b"ERR No shutdown in progress."
SHUTDOWN_FAILED: Final = b"ERR Errors trying to SHUTDOWN. Check logs."
WAITAOF_WITHOUT_AOF: Final = (
    b"ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
)

NOT_POSITIVE: Final = b"ERR value is out of range, must be positive"

REWRITE_IN_PROGRESS: Final = b"ERR Background append only file rewriting already in progress"
REWRITE_IMPOSSIBLE: Final = (
    b"ERR Can't execute an AOF background rewriting. "
    b"Please check the server logs for more information."
)

# DEBUG
DEBUG_NOT_ALLOWED: Final = (
    b'ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", '
    b"you can run it from a local connection, otherwise you need to set this option in the "
    b"configuration file, and then restart the server."
)
BAD_PACKED_THRESHOLD: Final = (
    b"ERR argument must be a memory value bigger than 1 and smaller than 4gb"
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
    """For a word that HELLO does not know, or that lacks what must follow it."""
    return b"ERR Syntax error in HELLO option '%b'" % word


def unknown_client_type(word: bytes) -> bytes:
    """For a TYPE that no client can have."""
    return b"ERR Unknown client type '%b'" % word


def no_such_user(name: bytes) -> bytes:
    """For a USER that there is not."""
    return b"ERR No such user '%b'" % name


def unknown_client_attribute(word: bytes) -> bytes:
    """For an attribute that CLIENT SETINFO does not know."""
    return b"ERR Unrecognized option '%b'" % word


def bad_client_attribute(word: bytes) -> bytes:
    """For a value that CLIENT SETINFO cannot take."""
    return b"ERR %b cannot contain spaces, newlines or special characters." % word


def no_latency_samples(event: bytes) -> bytes:
    """For LATENCY GRAPH of an event that was never slow."""
    return b"ERR No samples available for event '%b'" % event
