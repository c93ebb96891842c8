"""The rules that make a user, the names of commands in them, and files of users.

The table of commands (``server.dispatch.rows``) notes each of its rows here. Rules may also name
commands of Redis that are not there, because a configuration for Redis has to be understood. Such a
rule allows nothing.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import server_errors
from headrace.protocol.requests import split_words
from headrace.server.acl.users import (
    READS,
    WRITES,
    ChannelPattern,
    KeyPattern,
    Selector,
    User,
    hashed,
)

CATEGORIES: Final = tuple(
    b"keyspace read write set sortedset list hash string array bitmap hyperloglog geo stream "
    b"pubsub admin fast slow blocking dangerous connection transaction scripting".split()
)
CATEGORY_BITS: Final = {name: 1 << number for number, name in enumerate(CATEGORIES)}


class CommandBook:
    """The names that rules may mention; a subcommand's has its container in it: ``config|get``."""

    def __init__(self) -> None:
        self._categories: Final[dict[bytes, int]] = {}  # the CATEGORY_BITS of each
        self._children: Final[dict[bytes, list[bytes]]] = {}
        self._of_redis: set[bytes] = set()

    def add(self, name: bytes, categories: int) -> None:
        """Add a command that is there; ``categories`` are some of ``CATEGORY_BITS``."""
        if name not in self._categories:
            parent, bar, _ = name.partition(b"|")
            if bar:
                self._children.setdefault(parent, []).append(name)
        self._categories[name] = categories

    def has(self, name: bytes) -> bool:
        """Return whether a command is there."""
        return name in self._categories

    def names(self) -> set[bytes]:
        """Return the names of all commands that are there."""
        return set(self._categories)

    def knows(self, name: bytes) -> bool:
        """Return whether a rule may name this command, in lower case."""
        return name in self._categories or name in self._names_of_redis()

    def has_children(self, name: bytes) -> bool:
        """Return whether a command consists of subcommands."""
        if name in self._categories:
            return name in self._children
        return any(other.startswith(name + b"|") for other in self._names_of_redis())

    def children(self, name: bytes) -> list[bytes]:
        """Return the subcommands of a command that are there."""
        return self._children.get(name, [])

    def of_category(self, category: bytes) -> list[bytes]:
        """Return the commands of a category, each before its own subcommands, by name."""
        bit = CATEGORY_BITS[category]
        return sorted([name for name, those in self._categories.items() if those & bit])

    def _names_of_redis(self) -> set[bytes]:
        if not self._of_redis:
            from headrace.compat.redis_commands import COMMANDS, commands  # late: for few rules

            for chapter in COMMANDS:
                for shown, _ in commands(chapter):
                    name = shown.encode()
                    self._of_redis.add(name)
                    self._of_redis.add(name.partition(b"|")[0])
        return self._of_redis


BOOK: Final = CommandBook()


_SPACES: Final = b" \t\n\v\f\r\0"
_HASH_DIGITS: Final = b"0123456789abcdef"
_HASH_SIZE: Final = 64


class RuleError(Exception):
    """A rule that cannot be used; ``reason`` says why."""

    def __init__(self, rule: bytes, reason: bytes) -> None:
        super().__init__(reason.decode())
        self.rule: Final = rule
        self.reason: Final = reason


class UnmatchedError(Exception):
    """A selector that is not closed; ``word`` opens it."""

    def __init__(self, word: bytes) -> None:
        super().__init__()
        self.word: Final = word


def has_spaces(text: bytes) -> bool:
    """Return whether there is a space, a line break or a NUL in a name or a pattern."""
    return any(char in _SPACES for char in text)


def merged(words: list[bytes]) -> list[bytes]:
    """Return the rules in a list of words; a selector may fill several. Raises: UnmatchedError."""
    rules: list[bytes] = []
    opened: list[bytes] = []
    for word in words:
        if opened:
            opened.append(word)
            if word[-1:] == b")":
                rules.append(b" ".join(opened))
                opened = []
        elif word[:1] == b"(" and word[-1:] != b")":
            opened = [word]
        else:
            rules.append(word)
    if opened:
        raise UnmatchedError(opened[0])
    return rules


def check_rules(words: list[bytes]) -> None:
    """Check the rules of a user, whatever commands there are. Raises: RuleError, UnmatchedError."""
    user = User(b"", False)
    for rule in merged(words):
        try:
            change_user(user, rule, False)
        except RuleError as error:
            if error.reason != server_errors.UNKNOWN_TO_ACL:
                raise


def change_user(user: User, rule: bytes, all_channels: bool) -> None:
    """Apply one rule to a user; ``all_channels``: ``reset`` gives a user all channels.

    Raises: RuleError; then nothing has changed.
    """
    if not rule:
        return
    word = rule.lower()
    sign = rule[:1]
    if word in (b"on", b"off"):
        user.enabled = word == b"on"
    elif word in (b"sanitize-payload", b"skip-sanitize-payload"):
        user.skips_checks = word == b"skip-sanitize-payload"
    elif word in (b"nopass", b"resetpass"):
        user.no_password = word == b"nopass"
        user.passwords.clear()
    elif sign in (b">", b"#"):
        password = _password(rule, b">")
        if password not in user.passwords:
            user.passwords.append(password)
        user.no_password = False
    elif sign in (b"<", b"!"):
        password = _password(rule, b"<")
        if password not in user.passwords:
            raise RuleError(rule, server_errors.NO_SUCH_PASSWORD)
        user.passwords.remove(password)
    elif sign == b"(" and rule[-1:] == b")":
        user.selectors.append(_selector(rule))
    elif word == b"clearselectors":
        del user.selectors[1:]
    elif word == b"reset":
        user.become(User(user.name, all_channels))
    else:
        _change_selector(user.selectors[0], rule)
    user.settle()


def _password(rule: bytes, plain: bytes) -> bytes:
    """Return the hash that a rule has, or that of the password it has behind ``plain``."""
    if rule[:1] == plain:
        return hashed(rule[1:])
    digits = rule[1:]
    if len(digits) != _HASH_SIZE or any(char not in _HASH_DIGITS for char in digits):
        raise RuleError(rule, server_errors.BAD_HASH)
    return digits


def _selector(rule: bytes) -> Selector:
    selector = Selector(False)
    for inner in split_words(rule[1:-1]) or []:
        try:
            _change_selector(selector, inner)
        except RuleError as error:
            raise RuleError(rule, error.reason) from None
    return selector


def _change_selector(selector: Selector, rule: bytes) -> None:
    word = rule.lower()
    sign = rule[:1]
    if word in (b"allkeys", b"~*"):
        selector.all_keys = True
        selector.keys.clear()
    elif word == b"resetkeys":
        selector.all_keys = False
        selector.keys.clear()
    elif word in (b"allchannels", b"&*"):
        selector.all_channels = True
        selector.channels.clear()
    elif word == b"resetchannels":
        selector.all_channels = False
        selector.channels.clear()
    elif word in (b"allcommands", b"+@all", b"nocommands", b"-@all"):
        _set_all(selector, word in (b"allcommands", b"+@all"))
    elif sign in (b"~", b"%"):
        _add_keys(selector, rule)
    elif sign == b"&":
        _add_channels(selector, rule)
    elif sign in (b"+", b"-"):
        _change_commands(selector, rule)
    else:
        raise RuleError(rule, server_errors.SYNTAX_ERROR)


def _set_all(selector: Selector, allow: bool) -> None:
    selector.all_commands = allow
    selector.begins_with_all = allow
    selector.commands = set()
    selector.first_words.clear()
    selector.rules.clear()


def _add_keys(selector: Selector, rule: bytes) -> None:
    if selector.all_keys:
        raise RuleError(rule, server_errors.ALL_KEYS_ALREADY)
    rights = READS | WRITES
    signs = b""
    text = rule[1:]
    if rule[:1] == b"%":
        signs, tilde, text = text.partition(b"~")
        rights = 0
        for sign in signs.upper():
            right = {0x52: READS, 0x57: WRITES}.get(sign, 0)
            if not right or rights & right:
                raise RuleError(rule, server_errors.SYNTAX_ERROR)
            rights |= right
        if not rights:
            raise RuleError(rule, server_errors.SYNTAX_ERROR)
        if not tilde:
            text = b""
    if has_spaces(text):
        raise RuleError(rule, server_errors.SYNTAX_ERROR)
    for pattern in selector.keys:
        if pattern.text == text:
            pattern.rights |= rights
            return
    selector.keys.append(KeyPattern(text, rights))


def _add_channels(selector: Selector, rule: bytes) -> None:
    if selector.all_channels:
        raise RuleError(rule, server_errors.ALL_CHANNELS_ALREADY)
    text = rule[1:]
    if has_spaces(text):
        raise RuleError(rule, server_errors.SYNTAX_ERROR)
    if not any(each.text == text for each in selector.channels):
        selector.channels.append(ChannelPattern(text))


def _change_commands(selector: Selector, rule: bytes) -> None:
    """Apply ``+name``, ``-name``, ``+container|sub``, ``+name|first-word`` or ``+@category``."""
    allow = rule[:1] == b"+"
    name = rule[1:].lower()
    if name[:1] == b"@":
        if name[1:] not in CATEGORIES:
            raise RuleError(rule, server_errors.UNKNOWN_TO_ACL)
        for each in BOOK.of_category(name[1:]):
            _set_command(selector, each, allow)
    elif allow and b"|" in name:
        _allow_part(selector, rule, name)
    else:
        if not BOOK.knows(name):
            raise RuleError(rule, server_errors.UNKNOWN_TO_ACL)
        _set_command(selector, name, allow)
    _remember(selector, name, allow)


def _allow_part(selector: Selector, rule: bytes, name: bytes) -> None:
    """Allow a subcommand, or a command if a certain word is behind it."""
    command, _, word = name.rpartition(b"|")
    if not BOOK.knows(command):
        raise RuleError(rule, server_errors.UNKNOWN_TO_ACL)
    if b"|" in command:
        raise RuleError(rule, server_errors.SUBCOMMAND_WITH_WORD)
    if not word:
        raise RuleError(rule, server_errors.SYNTAX_ERROR)
    if BOOK.has_children(command):
        if not BOOK.knows(name):
            raise RuleError(rule, server_errors.UNKNOWN_TO_ACL)
        _set_command(selector, name, True)
        return
    if has_spaces(word):  # it could not be read back
        raise RuleError(rule, server_errors.SYNTAX_ERROR)
    words = selector.first_words.setdefault(command, [])
    if word not in words:
        words.append(word)


def _set_command(selector: Selector, name: bytes, allow: bool) -> None:
    """Allow or forbid a command with all its subcommands."""
    if selector.all_commands and not allow:
        selector.all_commands = False
        selector.commands = BOOK.names()
    selector.first_words.pop(name, None)
    for each in [name, *BOOK.children(name)]:
        if allow:
            selector.commands.add(each)
        else:
            selector.commands.discard(each)


def _remember(selector: Selector, name: bytes, allow: bool) -> None:
    """Put a rule behind the others, without those that it makes void."""
    inner = name + b"|"
    rules = [each for each in selector.rules if each[1:] != name and not each[1:].startswith(inner)]
    rules.append((b"+" if allow else b"-") + name)
    selector.rules = rules


# Files of users

_NOTHING_CHANGED: Final = (
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
)


class UsersError(Exception):
    """Users that cannot be read; the text says why, all in one line."""


def parse_users(text: bytes, path: str, all_channels: bool) -> dict[bytes, User]:
    """Return the users of a file, by name. Raises: UsersError, with everything that is wrong."""
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
            if error.reason == server_errors.UNKNOWN_TO_ACL:  # the only kind that holds no secret
                shown = error.rule.decode("utf-8", "backslashreplace")
                errors.append(f"{place}: Error in applying operation '{shown}': {reason}. ")
            elif not reported:
                errors.append(f"{place}: {reason}. ")
                reported = True
    return errors


def rendered(users: list[User]) -> bytes:
    """Return the contents of a file with these users."""
    return b"".join([user.shown() + b"\n" for user in users])
