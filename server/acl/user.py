"""A user: a name, passwords and rights."""

from __future__ import annotations

from typing import Final

from headrace.server.acl.selector import READS, Selector


class User:
    """Who a client is.

    Attributes:
        enabled: clients may log in.
        no_password: any password will do.
        skips_checks: the flag ``skip-sanitize-payload``. It is shown, and changes nothing: what
            RESTORE is given is always checked.
        passwords: their SHA-256, in hexadecimal digits.
        selectors: the user's own, and then those in parentheses.
        limited: there is something that it may not do.
    """

    def __init__(self, name: bytes, all_channels: bool) -> None:
        self.name: Final = name
        self.enabled = False
        self.no_password = False
        self.skips_checks = False
        self.passwords: list[bytes] = []
        self.selectors: list[Selector] = [Selector(all_channels)]
        self.limited = True

    def copy(self) -> User:
        """Another one that is the same."""
        other = User(self.name, False)
        other.become(self)
        return other

    def become(self, other: User) -> None:
        """Have the flags, passwords and rights of another user."""
        self.enabled = other.enabled
        self.no_password = other.no_password
        self.skips_checks = other.skips_checks
        self.passwords = list(other.passwords)
        self.selectors = [each.copy() for each in other.selectors]
        self.settle()

    def settle(self) -> None:
        """Find out whether it is limited, after its rights have changed."""
        self.limited = not any(each.is_unlimited() for each in self.selectors)

    def readable(self, keys: list[bytes]) -> list[bytes]:
        """Those of some keys that it may read, by whichever commands."""
        if not self.limited or any(each.allows_every_key(READS) for each in self.selectors):
            return keys
        return [key for key in keys if self._may_read(key)]

    def _may_read(self, key: bytes) -> bool:
        return any(each.allows_key(key, READS) for each in self.selectors)

    def flags(self) -> list[bytes]:
        """The words that say what it is, in their order."""
        flags = [b"on" if self.enabled else b"off"]
        if self.no_password:
            flags.append(b"nopass")
        flags.append(b"skip-sanitize-payload" if self.skips_checks else b"sanitize-payload")
        return flags

    def shown(self) -> bytes:
        """The line that makes it, as it stands in files."""
        words = [b"user", self.name, *self.flags()]
        words += [b"#" + password for password in self.passwords]
        words.append(self.selectors[0].shown())
        words += [b"(" + each.shown() + b")" for each in self.selectors[1:]]
        return b" ".join(words)


def _unlimited() -> User:
    user = User(b"default", True)
    user.enabled = True
    user.no_password = True
    own = user.selectors[0]
    own.all_commands = True
    own.begins_with_all = True
    own.all_keys = True
    user.settle()
    return user


# Whoever is no client: what is read from files, and other regions, which have a secret instead.
UNLIMITED: Final = _unlimited()
