"""Operations on a connection's socket that do not wait for the event loop.

A socket is read from and written to while the event loop is kept from it. And it is ended behind
its last reply: the loop closes a socket in its next turn only, and a client that has its reply
would take the connection for one to be used again.

**Busy polling.** A client that waits for each answer before it asks again leaves the server idle
for some ten microseconds at a time. To sleep for that long and be woken takes longer than the
command. So after the answer to a lone client the event loop goes on looking for ``busy-poll-us``,
each time giving way to other threads on its processor.

That pays only while requests do come that soon. So after a look in vain, some answers pass before
the next look, and more of them each time. A client that asks now and then costs next to nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from typing import Final

from headrace.server.config.config import Config

MOST_PASSED: Final = 1024  # the most answers without a look, after many looks in vain


class BusyPoll:
    """Keeps the event loop awake after the answer to a lone client; ``polling``: it does so now."""

    def __init__(self, config: Config) -> None:
        self.polling = False
        self._config: Final = config
        self._until_ns = 0
        self._passing = 0  # answers that still pass before the next look
        self._passed = 1  # after the next look in vain so many of them will have

    def answered(self) -> None:
        """Note that a lone client has been given its answer."""
        if self.polling:  # it asked in time
            self._passed = 1
        elif self._passing:
            self._passing -= 1
            return
        window_us = self._config.busy_poll_us
        if not window_us:
            return
        self._until_ns = time.perf_counter_ns() + window_us * 1000
        if not self.polling:
            self.polling = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        if time.perf_counter_ns() < self._until_ns:
            os.sched_yield()
            asyncio.get_running_loop().call_soon(self._look)
            return
        self.polling = False
        self._passing = self._passed
        self._passed = min(self._passed * 2, MOST_PASSED)


READ_BYTES: Final = 4096  # that are read in one go
_CORK: Final = getattr(socket, "TCP_CORK", 0)


def read_now(transport: asyncio.Transport, fd: int) -> bytes:
    """Return what the peer has sent; empty, too, after an end, which the loop will notice."""
    secured = transport.get_extra_info("tls")
    if secured is not None:
        decrypted: bytes = secured.read_now(fd)
        return decrypted
    try:
        return os.read(fd, READ_BYTES)
    except OSError:
        return b""


def write_now(transport: asyncio.Transport, fd: int, wire: bytes) -> None:
    """Send some bytes; the event loop sends later what does not go now."""
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


def cork(transport: asyncio.Transport) -> None:
    """Let everything that is written from now on leave together with the end of the connection."""
    known = transport.get_extra_info("socket")
    if _CORK and known is not None:
        with contextlib.suppress(OSError):  # a Unix socket has no packets
            known.setsockopt(socket.IPPROTO_TCP, _CORK, 1)


def close_now(transport: asyncio.Transport) -> None:
    """Close a connection behind the last bytes that were written to it."""
    transport.close()
    end_if_sent(transport)


def abort_now(transport: asyncio.Transport) -> None:
    """Close a connection, and drop the bytes that wait to be sent."""
    transport.abort()
    _end(transport)


def end_if_sent(transport: asyncio.Transport) -> None:
    """Report a closed connection to its peer at once, if nothing waits to be sent."""
    if not transport.get_write_buffer_size():
        _end(transport)


def _end(transport: asyncio.Transport) -> None:
    known = transport.get_extra_info("socket")
    if known is not None:
        # A copy, because uvloop's own objects refuse it. The peer may have been faster.
        with contextlib.suppress(OSError), known.dup() as copy:
            copy.shutdown(socket.SHUT_RDWR)
