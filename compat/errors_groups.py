"""Error texts of the commands on consumer groups; see ``compat.errors`` for what they are."""

from __future__ import annotations

from typing import Final

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
XAUTOCLAIM_COUNT: Final = b"ERR COUNT must be > 0"
MAX_PENDING_NEGATIVE: Final = b"ERR MAX-PENDING must be 0 or a positive integer"
READ_GROUP_INCOMPLETE: Final = b"ERR XREAD-GROUP requires the GROUP and NAME options"
# In Redis these say ERR twice, for the texts repeat what the call adds.
XNACK_MODE: Final = b"ERR mode must be SILENT, FAIL, or FATAL"
XNACK_NUMIDS: Final = b"ERR numids must be a positive integer"
XNACK_NUMIDS_MISMATCH: Final = b"ERR number of IDs doesn't match numids"
XNACK_RETRYCOUNT: Final = b"ERR Invalid RETRYCOUNT value, must be >= 0"
XNACK_IDS_EXPECTED: Final = b"ERR syntax error, expected IDS keyword"


def no_such_group(group: bytes, key: bytes) -> bytes:
    """For a key that is there without the group asked for."""
    return b"NOGROUP No such consumer group '%b' for key name '%b'" % (_shown(group), _shown(key))


def no_key_or_group(key: bytes, group: bytes) -> bytes:
    """For a command that needs a key with a group and does not tell which is missing."""
    return b"NOGROUP No such key '%b' or consumer group '%b'" % (_shown(key), _shown(group))


def unrecognized_xclaim_option(word: bytes) -> bytes:
    """For a word after the IDs of XCLAIM that is none of its options."""
    return b"ERR Unrecognized XCLAIM option '%b'" % _shown(word)


def unrecognized_xnack_option(word: bytes) -> bytes:
    """For a word of XNACK that is none of its options."""
    return b"ERR Unrecognized XNACK option '%b'" % _shown(word)


def _shown(word: bytes) -> bytes:
    """A word as C prints it: none of it from a NUL on."""
    return word.partition(b"\0")[0]
