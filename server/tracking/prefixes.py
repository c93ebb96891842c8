"""Clients that are told of all keys that begin with certain prefixes.

At the end of each turn of the event loop they get one message for each prefix, with all keys that
have changed in this turn. What a client's user may not read then is left out, whoever gets its
messages.
"""

from __future__ import annotations

from typing import Final

from headrace.server.acl.user import User
from headrace.server.clients.session import Session
from headrace.server.tracking.invalidations import Invalidation


class _Prefix:
    """One prefix.

    Attributes:
        clients: who asked for it.
        changed: keys of this turn, each with the client that changed it last, where that is known.
    """

    def __init__(self) -> None:
        self.clients: Final[dict[Session, None]] = {}
        self.changed: dict[bytes, Session | None] = {}


class Prefixes:
    """All prefixes that anybody has asked for."""

    def __init__(self) -> None:
        self._prefixes: Final[dict[bytes, _Prefix]] = {}

    def count(self) -> int:
        """How many there are."""
        return len(self._prefixes)

    def add(self, prefix: bytes, session: Session) -> None:
        """Tell a client of keys that begin so."""
        found = self._prefixes.get(prefix)
        if found is None:
            found = self._prefixes[prefix] = _Prefix()
        found.clients[session] = None

    def remove(self, prefix: bytes, session: Session) -> None:
        """Tell it no more."""
        found = self._prefixes[prefix]
        del found.clients[session]
        if not found.clients:
            del self._prefixes[prefix]

    def note(self, key: bytes, by: Session | None) -> bool:
        """Note that a key has changed; whether anybody is to be told.

        Args:
            by: who changed it; None where nobody did, because its time was up.

        Complexity: O(prefixes).
        """
        noted = False
        for text, prefix in self._prefixes.items():
            if key.startswith(text):
                prefix.changed[key] = by
                noted = True
        return noted

    def tell(self, sessions: dict[int, Session]) -> None:
        """Tell clients what has changed since this was called last.

        Args:
            sessions: all there are, by ID.
        """
        for _, prefix in sorted(self._prefixes.items()):
            changed = prefix.changed
            if changed:
                prefix.changed = {}
                keys = sorted(changed)
                messages: dict[User, Invalidation] = {}
                for session in list(prefix.clients):
                    user = session.user
                    if session.tracking is not None and session.tracking.no_loop:
                        of_others = [key for key in keys if changed[key] is not session]
                        Invalidation(user.readable(of_others)).tell(session, sessions)
                        continue
                    message = messages.get(user)
                    if message is None:
                        message = messages[user] = Invalidation(user.readable(keys))
                    message.tell(session, sessions)
