"""Commands as bytes: what a base in RESP form consists of."""

from __future__ import annotations

from typing import Final

from headrace.protocol.outgoing import request

STAMP: Final = b"#TS:"


def annotation(second: int) -> bytes:
    """The line that gives the time of what follows, in seconds since 1970."""
    return b"%b%d\r\n" % (STAMP, second)


class Commands:
    """Collects commands.

    Attributes:
        stamped: comments may say when something happened; only files have a place for them.
        size_bytes: the length of what ``take`` would return.
    """

    def __init__(self, stamped: bool) -> None:
        self.stamped: Final = stamped
        self.size_bytes = 0
        self._made: list[bytes] = []

    def add(self, words: list[bytes]) -> None:
        """Add a command."""
        wire = request(words)
        self._made.append(wire)
        self.size_bytes += len(wire)

    def add_wire(self, wire: bytes) -> None:
        """Add commands that are bytes already."""
        self._made.append(wire)
        self.size_bytes += len(wire)

    def take(self) -> list[bytes]:
        """What has been added since the last call."""
        made = self._made
        self._made = []
        self.size_bytes = 0
        return made
