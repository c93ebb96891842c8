"""What rules have to know of commands: their names, subcommands and categories.

The table of commands (``server.dispatch.rows``) notes each of its rows here. Rules may also name
commands of Redis that are not there, because a configuration that was made for Redis has to be
understood. Such a rule allows nothing.
"""

from __future__ import annotations

from typing import Final

CATEGORIES: Final = (
    b"keyspace",
    b"read",
    b"write",
    b"set",
    b"sortedset",
    b"list",
    b"hash",
    b"string",
    b"array",
    b"bitmap",
    b"hyperloglog",
    b"geo",
    b"stream",
    b"pubsub",
    b"admin",
    b"fast",
    b"slow",
    b"blocking",
    b"dangerous",
    b"connection",
    b"transaction",
    b"scripting",
)


class CommandBook:
    """The names that rules may mention; a subcommand's has its container in it: ``config|get``."""

    def __init__(self) -> None:
        self._categories: Final[dict[bytes, int]] = {}  # a bit for each, as CATEGORIES has them
        self._children: Final[dict[bytes, list[bytes]]] = {}
        self._of_redis: set[bytes] = set()

    def add(self, name: bytes, categories: list[bytes]) -> None:
        """Note a command that is there."""
        if name not in self._categories:
            parent, bar, _ = name.partition(b"|")
            if bar:
                self._children.setdefault(parent, []).append(name)
        self._categories[name] = sum([1 << CATEGORIES.index(each) for each in set(categories)])

    def has(self, name: bytes) -> bool:
        """Whether a command is there."""
        return name in self._categories

    def names(self) -> set[bytes]:
        """All that are there."""
        return set(self._categories)

    def knows(self, name: bytes) -> bool:
        """Whether a rule may name this command, in lower case."""
        return name in self._categories or name in self._names_of_redis()

    def has_children(self, name: bytes) -> bool:
        """Whether a command consists of subcommands."""
        if name in self._categories:
            return name in self._children
        return any(other.startswith(name + b"|") for other in self._names_of_redis())

    def children(self, name: bytes) -> list[bytes]:
        """The subcommands of a command that are there."""
        return self._children.get(name, [])

    def of_category(self, category: bytes) -> list[bytes]:
        """The commands of a category, each before its own subcommands, by name."""
        bit = 1 << CATEGORIES.index(category)
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
