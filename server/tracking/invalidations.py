"""What a client is told: that keys are not what it has read, or that a redirection is broken."""

from __future__ import annotations

from typing import Final

from headrace.protocol.replies import Push, encode
from headrace.server.clients.session import CLOSING, SUBSCRIBED, Session

_CHANNEL: Final = b"__redis__:invalidate"


class Invalidation:
    """A message that keys have changed; it is written once for each version of the protocol.

    Args:
        keys: which; None for all that there are. An empty list sends nothing.
    """

    def __init__(self, keys: list[bytes] | None) -> None:
        self._keys: Final = keys
        self._wire2 = b""
        self._wire3 = b""

    def tell(self, session: Session, sessions: dict[int, Session]) -> None:
        """Tell a client that tracks, or the one that it has redirected messages to.

        One that speaks RESP2 can be told only as a subscriber to whom another client redirects.

        Args:
            sessions: all there are, by ID.
        """
        tracking = session.tracking
        if tracking is None or (self._keys is not None and not self._keys):
            return
        target = session
        if tracking.redirect:
            found = sessions.get(tracking.redirect)
            if found is None or found.special & CLOSING:
                tracking.broken = True
                if session.resp3:
                    session.deliver(Push([b"tracking-redir-broken", tracking.redirect]))
                return
            target = found
        if target.resp3:
            self._wire3 = self._wire3 or encode(Push([b"invalidate", self._keys]), True)
            target.deliver_wire(self._wire3)
        elif tracking.redirect and target.special & SUBSCRIBED:
            self._wire2 = self._wire2 or encode(Push([b"message", _CHANNEL, self._keys]), False)
            target.deliver_wire(self._wire2)
