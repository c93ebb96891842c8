"""All users of a server, and those in files."""

from __future__ import annotations

from _operator import _compare_digest
from typing import Final

from headrace.compat.server_errors import UNKNOWN_TO_ACL
from headrace.server.acl.rules import (
    RuleError,
    UnmatchedError,
    change_user,
    has_spaces,
    hashed,
    merged,
)
from headrace.server.acl.user import UNLIMITED, User

DEFAULT_USER: Final = b"default"


class Users:
    """Who there is.

    Args:
        password: of the user ``default``; empty where it needs none.

    Attributes:
        default: who every client is that has not logged in.
    """

    def __init__(self, password: bytes) -> None:
        self.default: Final = UNLIMITED.copy()
        self._by_name: dict[bytes, User] = {DEFAULT_USER: self.default}
        if password:
            self.set_password(password)

    def find(self, name: bytes) -> User | None:
        """The user of a name."""
        return self._by_name.get(name)

    def add(self, user: User) -> None:
        """Have one more."""
        self._by_name[user.name] = user

    def remove(self, name: bytes) -> User | None:
        """Forget a user, who is returned."""
        return self._by_name.pop(name, None)

    def replace(self, others: dict[bytes, User]) -> None:
        """Have these instead, of whom ``default`` may be one; else that has all rights again."""
        given = others.get(DEFAULT_USER)
        self.default.become(UNLIMITED if given is None else given)
        self._by_name = {**others, DEFAULT_USER: self.default}

    def all(self) -> list[User]:
        """Everybody, in the order of their names."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def login_needed(self) -> bool:
        """Return whether a client has to log in before it may do anything."""
        return not (self.default.enabled and self.default.no_password)

    def set_password(self, password: bytes) -> None:
        """Let this be the one password of the default user; empty is none."""
        self.default.no_password = not password
        self.default.passwords = [hashed(password)] if password else []

    def authenticated(self, name: bytes, password: bytes) -> User | None:
        """The user of this name, if it may log in with this password."""
        user = self._by_name.get(name)
        if user is None or not user.enabled:
            return None
        if user.no_password:
            return user
        found = hashed(password)
        fits = False
        for known in user.passwords:
            fits |= _compare_digest(found, known)
        return user if fits else None


_NOTHING_CHANGED: Final = (
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
)


class UsersError(Exception):
    """Users that cannot be read; the text says why, all in one line."""


def parse_users(text: bytes, path: str, all_channels: bool) -> dict[bytes, User]:
    """The users of a file, by name. Raises: UsersError, with everything that is wrong."""
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
            if error.reason == UNKNOWN_TO_ACL:  # the only kind that holds no secret
                shown = error.rule.decode("utf-8", "backslashreplace")
                errors.append(f"{place}: Error in applying operation '{shown}': {reason}. ")
            elif not reported:
                errors.append(f"{place}: {reason}. ")
                reported = True
    return errors


def rendered(users: list[User]) -> bytes:
    """The contents of a file with these users."""
    return b"".join([user.shown() + b"\n" for user in users])
