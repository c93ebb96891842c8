"""SLOWLOG: the latest commands that took long, newest first, shortened."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from server.session import Session

MOST_ARGUMENTS: Final = 32
MOST_BYTES: Final = 128


class SlowCommand:
    """One logged command; ``argv`` is shortened as Redis shortens it."""

    def __init__(
        self, number: int, at_s: int, usec: int, argv: list[bytes], address: bytes, name: bytes
    ) -> None:
        self.number: Final = number
        self.at_s: Final = at_s
        self.usec: Final = usec
        self.argv: Final = argv
        self.address: Final = address
        self.name: Final = name


class SlowLog:
    """A bounded log of slow commands."""

    def __init__(self) -> None:
        self.commands: deque[SlowCommand] = deque()
        self.next_number = 0

    def add(self, argv: list[bytes], at_s: int, usec: int, session: Session, most: int) -> None:
        """Log a command and forget the oldest beyond ``most``; 0 is no log at all."""
        if not most:
            return
        shortened = _shorten(argv)
        self.commands.appendleft(
            SlowCommand(self.next_number, at_s, usec, shortened, session.address, session.name)
        )
        self.next_number += 1
        self.trim(most)

    def trim(self, most: int) -> None:
        """Forget the oldest commands beyond ``most``."""
        while len(self.commands) > most:
            self.commands.pop()


def _shorten(argv: list[bytes]) -> list[bytes]:
    kept = argv
    if len(argv) > MOST_ARGUMENTS:
        rest = len(argv) - MOST_ARGUMENTS + 1
        kept = [*argv[: MOST_ARGUMENTS - 1], b"... (%d more arguments)" % rest]
    return [
        argument
        if len(argument) <= MOST_BYTES
        else b"%b... (%d more bytes)" % (argument[:MOST_BYTES], len(argument) - MOST_BYTES)
        for argument in kept
    ]
