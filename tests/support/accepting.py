"""Listening for clients, in a test that plays the server."""

from __future__ import annotations

import socket
from collections.abc import Iterator


def accepted(listener: socket.socket) -> Iterator[socket.socket]:
    """Those who connect, one after the other, until the listener is shut down or closed."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        yield client
