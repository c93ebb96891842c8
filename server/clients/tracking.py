"""What a client has asked for by CLIENT TRACKING."""

from __future__ import annotations

from typing import Final


class Tracking:
    """How a client is notified of changes to what it has read, while its ``TRACKED`` bit is set.

    Args:
        client_id: whose it is; scripts read for their callers.

    Attributes:
        redirect: the ID of the client that gets the messages; 0: this one.
        broadcast: it is notified of all keys that begin with one of its prefixes, read or not.
        opt_in: only what is read after CLIENT CACHING YES counts.
        opt_out: what is read after CLIENT CACHING NO does not.
        no_loop: it is not notified of what it has changed itself.
        broken: a message could not be sent, because the client that gets them has left.
        prefixes: see ``broadcast``.
        held: keys that the request under way has changed, None for all; it is sent after the reply.
    """

    def __init__(self, client_id: int) -> None:
        self.client_id: Final = client_id
        self.redirect = 0
        self.broadcast = False
        self.opt_in = False
        self.opt_out = False
        self.no_loop = False
        self.broken = False
        self.prefixes: Final[dict[bytes, None]] = {}
        self.held: list[bytes | None] = []
