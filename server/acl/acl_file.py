"""Users in files: a line ``user NAME RULE ...`` for each."""

from __future__ import annotations

from typing import Final

from headrace.compat.acl_errors import UNKNOWN_COMMAND
from headrace.server.acl.rules import (
    RuleError,
    UnmatchedError,
    change_user,
    has_spaces,
    merged,
)
from headrace.server.acl.user import User

_NOTHING_CHANGED: Final = (
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
)


class UsersError(Exception):
    """Users that cannot be read; the text says why, all in one line."""


def parse_users(text: bytes, path: str, all_channels: bool) -> dict[bytes, User]:
    """The users of a file, by name.

    Raises: UsersError, with everything that is wrong.
    """
    users: dict[bytes, User] = {}
    errors: list[str] = []
    for number, line in enumerate(text.split(b"\n"), 1):
        words = line.strip(b"\r\t ").split(b" ")
        if not words[0] or words[0][:1] == b"#":
            continue
        place = f"{path}:{number}"
        if words[0] != b"user" or len(words) < 2:
            errors.append(f"{place} should start with user keyword followed by the username. ")
            continue
        name = words[1]
        shown = name.decode("utf-8", "backslashreplace")
        if has_spaces(name):
            errors.append(f"'{place}: username '{shown}' contains invalid characters. ")
            continue
        if name in users:
            errors.append(f"WARNING: Duplicate user '{shown}' found on line {number}. ")
            continue
        user = User(name, all_channels)
        users[name] = user
        errors += _applied(user, words[2:], place, all_channels)
    if errors:
        raise UsersError("".join([*errors, _NOTHING_CHANGED]))
    return users


def _applied(user: User, words: list[bytes], place: str, all_channels: bool) -> list[str]:
    """Apply the rules of a line; what is wrong with it."""
    try:
        rules = merged(words)
    except UnmatchedError:
        return [f"{place}: Unmatched parenthesis in selector definition."]
    errors: list[str] = []
    reported = False
    for rule in rules:
        try:
            change_user(user, rule.strip(b"\r\t"), all_channels)
        except RuleError as error:
            reason = error.reason.decode()
            if error.reason == UNKNOWN_COMMAND:  # the only kind that holds no secret
                shown = error.rule.decode("utf-8", "backslashreplace")
                errors.append(f"{place}: Error in applying operation '{shown}': {reason}. ")
            elif not reported:
                errors.append(f"{place}: {reason}. ")
                reported = True
    return errors


def rendered(users: list[User]) -> bytes:
    """The contents of a file with these users."""
    return b"".join([user.shown() + b"\n" for user in users])
