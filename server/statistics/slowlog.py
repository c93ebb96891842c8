"""SLOWLOG: the latest commands that took long, newest first, shortened."""

from __future__ import annotations

from collections import deque
from typing import Final

from headrace.server.config.config import Config


class SlowCommand:
    """One logged command; ``argv`` has those of its ``words`` that are kept, as in Redis."""

    def __init__(
        self,
        number: int,
        at_s: int,
        usec: int,
        argv: list[bytes],
        words: int,
        address: bytes,
        name: bytes,
    ) -> None:
        self.number: Final = number
        self.at_s: Final = at_s
        self.usec: Final = usec
        self.argv: Final = argv
        self.words: Final = words
        self.address: Final = address
        self.name: Final = name


class SlowLog:
    """A bounded log of slow commands."""

    def __init__(self) -> None:
        self.commands: deque[SlowCommand] = deque()
        self.next_number = 0
        self.reset_counters()

    def reset_counters(self) -> None:
        """Count anew; what is remembered stays."""
        self.count = 0
        self.longest_us = 0
        self.sum_us = 0

    def add(
        self,
        argv: list[bytes],
        at_s: int,
        usec: int,
        address: bytes,
        name: bytes,
        config: Config,
    ) -> None:
        """Log a command of a client, and forget the oldest where there are too many."""
        self.count += 1
        self.sum_us += usec
        self.longest_us = max(self.longest_us, usec)
        most = config.slowlog_max_len
        if not most:
            return
        kept = _shorten(argv, config.slowlog_entry_max_argc, config.slowlog_entry_max_string_len)
        number = self.next_number
        self.commands.appendleft(SlowCommand(number, at_s, usec, kept, len(argv), address, name))
        self.next_number += 1
        self.trim(most)

    def trim(self, most: int) -> None:
        """Forget the oldest commands beyond ``most``."""
        while len(self.commands) > most:
            self.commands.pop()


def _shorten(argv: list[bytes], most_words: int, most_bytes: int) -> list[bytes]:
    dropped = 0 if len(argv) <= most_words else len(argv) - most_words + 1
    kept = [
        word
        if len(word) <= most_bytes
        else b"%b... (%d more bytes)" % (word[:most_bytes], len(word) - most_bytes)
        for word in argv[: len(argv) - dropped]
    ]
    if dropped:
        kept.append(b"... (%d more arguments)" % dropped)
    return kept
