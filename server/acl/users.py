"""Users: names, passwords, and rights in selectors, of which one has to fit a whole request.

A user has one selector of its own, and may have more, each in parentheses.
"""

from __future__ import annotations

from _operator import _compare_digest
from typing import Final

from headrace.compat.glob import Glob

READS: Final = 1
WRITES: Final = 2
_SIGNS: Final = {READS: b"%R~", WRITES: b"%W~", READS | WRITES: b"~"}


class KeyPattern:
    """A pattern of keys, and what may be done with those that fit."""

    def __init__(self, text: bytes, rights: int) -> None:
        self.text: Final = text
        self.rights = rights
        self.glob: Final = Glob(text)

    def shown(self) -> bytes:
        """Return the rule that makes it."""
        return _SIGNS[self.rights] + self.text


class ChannelPattern:
    """A pattern of channels."""

    def __init__(self, text: bytes) -> None:
        self.text: Final = text
        self.glob: Final = Glob(text)


class Selector:
    """A set of rights.

    Attributes:
        all_commands: without any exception.
        begins_with_all: ``+@all`` was the last rule about all commands, and not ``-@all``.
        commands: names of those that are allowed, without ``all_commands``.
        first_words: of commands, not in ``commands``, that are allowed with these behind them.
        rules: about commands, after ``+@all`` or ``-@all``, in the form in which they are shown.
        keys: the patterns, of which there are none with ``all_keys``; ``channels`` alike.
    """

    def __init__(self, all_channels: bool) -> None:
        self.all_commands = False
        self.begins_with_all = False
        self.commands: set[bytes] = set()
        self.first_words: dict[bytes, list[bytes]] = {}
        self.rules: list[bytes] = []
        self.all_keys = False
        self.keys: list[KeyPattern] = []
        self.all_channels = all_channels
        self.channels: list[ChannelPattern] = []

    def copy(self) -> Selector:
        """Return a copy with the same rights."""
        other = Selector(self.all_channels)
        other.all_commands = self.all_commands
        other.begins_with_all = self.begins_with_all
        other.commands = set(self.commands)
        other.first_words = {name: list(words) for name, words in self.first_words.items()}
        other.rules = list(self.rules)
        other.all_keys = self.all_keys
        other.keys = [KeyPattern(each.text, each.rights) for each in self.keys]
        other.channels = list(self.channels)
        return other

    # Rights

    def is_unlimited(self) -> bool:
        """Return whether everything may be done."""
        return self.all_commands and self.all_keys and self.all_channels

    def allows_command(self, name: bytes, argv: list[bytes]) -> bool:
        """Return whether a command may be run, whatever its keys and channels are."""
        if self.all_commands or name in self.commands:
            return True
        words = self.first_words.get(name)
        return words is not None and len(argv) > 1 and argv[1].lower() in words

    def allows_key(self, key: bytes, rights: int) -> bool:
        """Return whether a key may be read, written or, with no rights, be mentioned."""
        if self.all_keys:
            return True
        for pattern in self.keys:
            if pattern.rights & rights == rights and pattern.glob.matches(key):
                return True
        return False

    def allows_every_key(self, rights: int) -> bool:
        """Return whether ``allows_key`` holds for every possible key."""
        if self.all_keys:
            return True
        return any(each.text == b"*" and each.rights & rights == rights for each in self.keys)

    def allows_channel(self, channel: bytes, is_pattern: bool) -> bool:
        """Return whether a channel may be used; a pattern must be listed literally."""
        return self.all_channels or fits_any(self.channels, channel, is_pattern)

    # The rules that make it

    def shown_commands(self) -> bytes:
        """Return the rules about commands."""
        first = b"+@all" if self.begins_with_all else b"-@all"
        return b" ".join([first, *self.rules])

    def shown_keys(self) -> bytes:
        """Return the rules about keys."""
        return b"~*" if self.all_keys else b" ".join([each.shown() for each in self.keys])

    def shown_channels(self) -> bytes:
        """Return the rules that add channels."""
        return (
            b"&*" if self.all_channels else b" ".join([b"&" + each.text for each in self.channels])
        )

    def shown(self) -> bytes:
        """Return all rules that make it from a selector without rights."""
        channels = self.shown_channels()
        if not self.all_channels:
            channels = b"resetchannels " + channels
        words = [self.shown_keys(), channels.rstrip(b" "), self.shown_commands()]
        return b" ".join([word for word in words if word])


def fits_any(patterns: list[ChannelPattern], channel: bytes, is_pattern: bool) -> bool:
    """Return whether a channel fits one of these, or a pattern is one of them."""
    for pattern in patterns:
        if pattern.text == channel if is_pattern else pattern.glob.matches(channel):
            return True
    return False


def hashed(password: bytes) -> bytes:
    """Return the SHA-256 of a password, as users keep it."""
    from hashlib import sha256  # late: it loads OpenSSL, and few servers have passwords

    return sha256(password).hexdigest().encode()


class User:
    """A user, as whom clients log in.

    Attributes:
        enabled: clients may log in.
        no_password: any password will do.
        skips_checks: the flag ``skip-sanitize-payload``, which is shown but changes nothing:
            RESTORE always checks what it is given.
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
        """Return a copy of this user."""
        other = User(self.name, False)
        other.become(self)
        return other

    def become(self, other: User) -> None:
        """Take the flags, passwords and rights of another user."""
        self.enabled = other.enabled
        self.no_password = other.no_password
        self.skips_checks = other.skips_checks
        self.passwords = list(other.passwords)
        self.selectors = [each.copy() for each in other.selectors]
        self.settle()

    def settle(self) -> None:
        """Set ``limited`` after the rights have changed."""
        self.limited = not any(each.is_unlimited() for each in self.selectors)

    def readable(self, keys: list[bytes]) -> list[bytes]:
        """Return those keys that it may read, by any command."""
        if not self.limited or any(each.allows_every_key(READS) for each in self.selectors):
            return keys
        return [key for key in keys if self._may_read(key)]

    def _may_read(self, key: bytes) -> bool:
        return any(each.allows_key(key, READS) for each in self.selectors)

    def flags(self) -> list[bytes]:
        """Return its flags as words, in Redis's order."""
        flags = [b"on" if self.enabled else b"off"]
        if self.no_password:
            flags.append(b"nopass")
        flags.append(b"skip-sanitize-payload" if self.skips_checks else b"sanitize-payload")
        return flags

    def shown(self) -> bytes:
        """Return the line that makes it, as it stands in files."""
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


# The user for what is read from files, and for other regions, which have a secret instead.
UNLIMITED: Final = _unlimited()


DEFAULT_USER: Final = b"default"


class Users:
    """All users; clients begin as ``default``, which needs ``password`` unless that is empty."""

    def __init__(self, password: bytes) -> None:
        self.default: Final = UNLIMITED.copy()
        self._by_name: dict[bytes, User] = {DEFAULT_USER: self.default}
        if password:
            self.set_password(password)

    def find(self, name: bytes) -> User | None:
        """Return the user of a name."""
        return self._by_name.get(name)

    def add(self, user: User) -> None:
        """Add a user."""
        self._by_name[user.name] = user

    def remove(self, name: bytes) -> User | None:
        """Remove and return a user."""
        return self._by_name.pop(name, None)

    def replace(self, others: dict[bytes, User]) -> None:
        """Replace all users; ``default`` gets all rights again unless it is one of them."""
        given = others.get(DEFAULT_USER)
        self.default.become(UNLIMITED if given is None else given)
        self._by_name = {**others, DEFAULT_USER: self.default}

    def all(self) -> list[User]:
        """Return all users, in the order of their names."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def login_needed(self) -> bool:
        """Return whether a client has to log in before it may do anything."""
        return not (self.default.enabled and self.default.no_password)

    def set_password(self, password: bytes) -> None:
        """Set the only password of the default user; empty is none."""
        self.default.no_password = not password
        self.default.passwords = [hashed(password)] if password else []

    def authenticated(self, name: bytes, password: bytes) -> User | None:
        """Return the user of this name, if it may log in with this password."""
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
