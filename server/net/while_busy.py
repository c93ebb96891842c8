"""Clients are served while a script keeps the event loop waiting.

The script calls this now and then. Then everything that has arrived at the sockets is read, run and
answered here, past the event loop. Most of it is answered BUSY. The event loop gets back all
connections when the script has ended, those too that came meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from headrace.server.net.listeners import Listeners
from headrace.server.process.signals import ENDING, heed_signals
from headrace.server.scripting.busy import Busy, Serving
from headrace.server.state import Server

if TYPE_CHECKING:
    from types import FrameType

log: Final = logging.getLogger("headrace")


class WhileBusy(Serving):
    """Serves clients past the event loop, while the script ``busy`` runs."""

    def __init__(
        self, server: Server, busy: Busy, listeners: Listeners, send_waiting: Callable[[], None]
    ) -> None:
        self._server: Final = server
        self._busy: Final = busy
        self._listeners: Final = listeners
        self._send_waiting: Final = send_waiting
        self._sockets: select.poll | None = None
        # Copies of the sockets at which clients are awaited, with what makes their protocols.
        self._awaited: list[tuple[socket.socket, Callable[[], asyncio.Protocol]]] = []
        self._newcomers: dict[int, Any] = {}  # protocols that have no session yet
        self._peers: dict[int, int] = {}  # the ID of the session at each descriptor
        self._accepted: list[tuple[socket.socket, asyncio.Protocol]] = []
        self._handlers: dict[int, Any] = {}  # of signals, as they were before
        self._tasks: set[asyncio.Task[Any]] = set()

    def serve(self) -> None:
        if self._sockets is None:
            self._begin()
        heed_signals()
        sockets = self._sockets
        assert sockets is not None
        for fd, _ in sockets.poll(0):
            if fd in self._newcomers:
                self._shake(fd)
            session = self._server.clients.sessions.get(self._peers.get(fd, -1))
            if session is not None:
                session.peer.serve_now()
        for awaited, connect in self._awaited:
            with contextlib.suppress(OSError):
                self._accept(awaited.accept()[0], connect)

    def _begin(self) -> None:
        self._send_waiting()
        self._sockets = select.poll()
        for session in self._server.clients.sessions.values():
            self._watch(session.fd, session.id)
        for protocol in self._listeners.shaking():
            self._await_handshake(protocol.get_extra_info("socket").fileno(), protocol)
        for fd, connect in self._listeners.awaited():
            copy = socket.socket(fileno=os.dup(fd))
            copy.setblocking(False)
            self._awaited.append((copy, connect))
        for number in ENDING:
            self._handlers[number] = signal.signal(number, self._signalled)

    def _watch(self, fd: int, session_id: int) -> None:
        if fd >= 0 and self._sockets is not None:
            self._sockets.register(fd, select.POLLIN)
            self._peers[fd] = session_id

    def _accept(self, opened: socket.socket, connect: Callable[[], asyncio.Protocol]) -> None:
        opened.setblocking(False)
        protocol = connect()
        before = self._server.clients.next_id
        protocol.connection_made(_SocketTransport(opened))
        self._accepted.append((opened, protocol))
        if self._server.clients.next_id != before:
            self._watch(opened.fileno(), before)
        elif hasattr(protocol, "shake_now") and opened.fileno() >= 0:
            self._await_handshake(opened.fileno(), protocol)

    def _await_handshake(self, fd: int, protocol: Any) -> None:
        if fd >= 0:
            self._watch(fd, -1)
            self._newcomers[fd] = protocol
            self._shake(fd)  # by what has come already

    def _shake(self, fd: int) -> None:
        before = self._server.clients.next_id
        self._newcomers[fd].shake_now(fd)
        if self._server.clients.next_id != before:
            self._peers[fd] = before
            del self._newcomers[fd]
            session = self._server.clients.sessions.get(before)
            if session is not None:
                session.peer.serve_now()  # by what came with the end of the handshake

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        """Stop the script, if it has not written, because a signal asks for the end."""
        run = self._busy.run
        if run is None or run.wrote:
            self._server.host.leave()
        else:
            run.is_to_end = True
            asyncio.get_running_loop().call_soon(self._server.host.ask_to_end, number)

    def end(self) -> None:
        if self._sockets is None:
            return
        self._sockets = None
        self._peers = {}
        self._newcomers = {}
        for awaited, _ in self._awaited:
            awaited.close()
        self._awaited = []
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}
        for opened, protocol in self._accepted:
            task = asyncio.get_running_loop().create_task(self._hand_over(opened, protocol))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._accepted = []

    async def _hand_over(self, opened: socket.socket, protocol: asyncio.Protocol) -> None:
        """Give the event loop a connection that it has not seen yet."""
        if opened.fileno() < 0:
            protocol.connection_lost(None)
            return
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: protocol, opened)


class _SocketTransport(asyncio.Transport):
    """Carries the bytes of a connection that the event loop has not seen yet.

    Bytes that the peer does not take at once are lost; the answers here are short.
    """

    def __init__(self, opened: socket.socket) -> None:
        names = {"socket": opened, "peername": opened.getpeername()}
        super().__init__({**names, "sockname": opened.getsockname()})
        self._socket: Final = opened

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        with contextlib.suppress(OSError):
            self._socket.send(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self._socket.fileno() < 0

    def close(self) -> None:
        self._socket.close()

    def abort(self) -> None:
        self._socket.close()

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass
