"""Error texts that only ACL has; see ``compat.errors``."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import c_text

# Why a rule is wrong.
SYNTAX_ERROR: Final = b"Syntax error"
UNKNOWN_COMMAND: Final = b"Unknown command or category name in ACL"
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
    """For a rule of ACL SETUSER that cannot be used."""
    return b"ERR Error in ACL SETUSER modifier '%b': %b" % (c_text(rule), reason)


def unmatched(word: bytes) -> bytes:
    """For a selector that is not closed."""
    return b"ERR Unmatched parenthesis in acl selector starting at '%b'." % c_text(word)


def unknown_category(name: bytes) -> bytes:
    """For ACL CAT."""
    return b"ERR Unknown category '%b'" % c_text(name[:128])


def unknown_user(name: bytes) -> bytes:
    """For ACL DRYRUN."""
    return b"ERR User '%b' not found" % c_text(name)


def unknown_command(name: bytes) -> bytes:
    """For ACL DRYRUN."""
    return b"ERR Command '%b' not found" % c_text(name)


def no_command_permission(user: bytes, command: bytes) -> bytes:
    """For a command that a user may not run, without a code."""
    return b"User %b has no permissions to run the '%b' command" % (user, command)


def no_key_permission(user: bytes, key: bytes) -> bytes:
    """As ``no_command_permission``, for a key, as ACL DRYRUN says it."""
    return b"User %b has no permissions to access the '%b' key" % (user, key)


def no_channel_permission(user: bytes, channel: bytes) -> bytes:
    """As ``no_key_permission``, for a channel."""
    return b"User %b has no permissions to access the '%b' channel" % (user, channel)
