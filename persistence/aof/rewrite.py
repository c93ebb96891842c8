"""The rewrite: the keyspace as commands, a base file in RESP form.

A database is a SELECT and then its keys. A key is made by the commands that the form of its type
knows; a deadline follows as PEXPIREAT.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.forms.form import Commands, Walk, annotation
from headrace.persistence.forms.table import form_of
from headrace.persistence.taker import Encoder
from headrace.protocol.requests import RequestParser
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.freezing import FrozenKey

BULK_MAX_BYTES: Final = 1 << 40


class RewriteEncoder(Encoder):
    """Makes commands of keys.

    Args:
        stamped: say when an iid was added, in a comment; only a file has a place for it.
        begun_s: the second to begin with, in a comment; 0 for none.
        portable: leave out what Redis does not know.
    """

    def __init__(self, stamped: bool = True, begun_s: int = 0, portable: bool = False) -> None:
        super().__init__()
        self._begun_s: Final = begun_s
        self._commands: Final = Commands(stamped, portable)
        self._db = -1
        self._key = b""
        self._expire_ms = NO_EXPIRY
        self._walk: Walk | None = None
        self._plain: Final = form_of(b"")

    def begin(self) -> None:
        """Write the time, where that is asked for."""
        if self._begun_s:
            self._commands.add_wire(annotation(self._begun_s))
            self.size_bytes = self._commands.size_bytes

    def add_library(self, code: bytes) -> None:
        if not code.startswith(b"*"):
            self._commands.add([b"FUNCTION", b"LOAD", code])
        elif not self._commands.portable:
            self._commands.add_wire(code)
        self.size_bytes = self._commands.size_bytes

    def add(self, key: FrozenKey) -> bool:
        commands = self._commands
        if key.db != self._db:
            self._db = key.db
            commands.add([b"SELECT", b"%d" % key.db])
        value = key.value
        form = self._plain if isinstance(value, (bytes, int)) else form_of(value)
        self._key = key.key
        self._expire_ms = key.expire_ms
        self._walk = form.rewrite(commands, key.key, value)
        if self._walk is None:
            self._expire()
        self.size_bytes = commands.size_bytes
        return self._walk is not None

    def more(self) -> bool:
        if self._walk is not None and not self._walk.step():
            self._walk = None
            self._expire()
        self.size_bytes = self._commands.size_bytes
        return self._walk is not None

    def take(self) -> list[bytes]:
        self.size_bytes = 0
        return self._commands.take()

    def _expire(self) -> None:
        if self._expire_ms != NO_EXPIRY:
            self._commands.add([b"PEXPIREAT", self._key, b"%d" % self._expire_ms])


def key_commands(key: FrozenKey) -> list[list[bytes]]:
    """Return the commands that make one key in the database that is selected."""
    encoder = RewriteEncoder(stamped=False)
    more = encoder.add(key)
    while more:
        more = encoder.more()
    parser = RequestParser(BULK_MAX_BYTES)
    parser.feed(b"".join(encoder.take()))
    commands: list[list[bytes]] = []
    while True:
        some = parser.take()
        if not some:
            return commands[1:]  # without SELECT
        commands += some
