"""The entries of ACL LOG: requests that were refused, and logins that failed."""

from __future__ import annotations

from typing import Final

AUTH: Final = b"auth"
COMMAND: Final = b"command"
KEY: Final = b"key"
CHANNEL: Final = b"channel"
CERTIFICATE: Final = b"tls-cert"

TOPLEVEL: Final = b"toplevel"
TRANSACTION: Final = b"multi"
SCRIPT: Final = b"lua"

_ALIKE_MS: Final = 60_000  # what is alike and not further apart is one entry
_LOOKED_AT: Final = 10  # entries, the youngest, among which one that is alike is looked for


class Entry:
    """A refusal of the command, key or channel ``what``, and its count.

    ``number`` is the entry's own; ``client`` is the client's line of CLIENT LIST.
    """

    def __init__(
        self, reason: bytes, context: bytes, what: bytes, user: bytes, client: bytes, now_ms: int
    ) -> None:
        self.number = 0
        self.reason: Final = reason
        self.context: Final = context
        self.what: Final = what
        self.user: Final = user
        self.client = client
        self.count = 1
        self.created_ms: Final = now_ms
        self.updated_ms = now_ms

    def is_alike(self, other: Entry) -> bool:
        """Return whether the other one is the same, again."""
        return (
            self.reason == other.reason
            and self.context == other.context
            and abs(self.updated_ms - other.updated_ms) <= _ALIKE_MS
            and self.what == other.what
            and self.user == other.user
        )


class DenialLog:
    """The youngest entries; the last one that happened comes first."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._next_number = 0

    def add(self, new: Entry, limit: int) -> None:
        """Add an entry, and remove those beyond ``limit``."""
        entries = self.entries
        if limit > 0:
            for at, entry in enumerate(entries[:_LOOKED_AT]):
                if entry.is_alike(new):
                    del entries[at]
                    entry.client = new.client
                    entry.updated_ms = new.updated_ms
                    entry.count += 1
                    new = entry
                    break
            else:
                new.number = self._next_number
                self._next_number += 1
            entries.insert(0, new)
        del entries[max(0, limit) :]
