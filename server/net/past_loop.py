"""Reading from and writing to a connection's socket while the event loop is kept from it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Final

READ_BYTES: Final = 4096  # that are read in one go


def read_now(transport: asyncio.Transport, fd: int) -> bytes:
    """What the peer has sent; nothing where that is nothing, and where the connection has ended.

    The event loop will see what became of the connection.
    """
    secured = transport.get_extra_info("tls")
    if secured is not None:
        decrypted: bytes = secured.read_now(fd)
        return decrypted
    try:
        return os.read(fd, READ_BYTES)
    except OSError:
        return b""


def write_now(transport: asyncio.Transport, fd: int, wire: bytes) -> None:
    """Send some bytes; what does not go now waits for the event loop."""
    secured = transport.get_extra_info("tls")
    if secured is not None:
        secured.write_now(fd, wire)
        return
    sent = 0
    if wire and not transport.get_write_buffer_size():
        with contextlib.suppress(OSError):
            sent = os.write(fd, wire)
    if sent < len(wire):
        transport.write(wire[sent:])
