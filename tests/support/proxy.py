"""A TCP proxy for one directed link: it passes bytes on, late, or not at all."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque
from typing import Final

from support.waiting import wait_until

CHUNK = 64 * 1024


class _Half:
    """One direction of a connection."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source = source
        self.target = target
        self.held: deque[tuple[float, bytes]] = deque()  # when each may be passed on


class Proxy:
    """Listens at ``port`` and passes on to ``target``, in a thread.

    Attributes:
        carried_bytes: how much has come back from the target.
    """

    def __init__(self, target: int, port: int = 0) -> None:
        self.target = target
        self.carried_bytes = 0
        self._delay_s = 0.0
        self._silent = False
        self._refusing = False
        self._left = -1  # bytes that may still come back from the target; -1: any number
        self._cut = threading.Event()
        self._stopping = False
        self._halves: list[_Half] = []
        self._selector: Final = selectors.DefaultSelector()
        self._listener: Final = socket.create_server(("127.0.0.1", port))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread: Final = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    # What happens to the link

    def cut(self) -> None:
        """End all connections, and take no new ones."""
        self._refusing = True
        self._cut.set()
        self._wait_for_cut()

    def break_off(self) -> None:
        """End all connections; new ones are taken."""
        self._cut.set()
        self._wait_for_cut()

    def cut_after(self, most_bytes: int) -> None:
        """Break off once so many more bytes have come back: in the middle of a message, mostly."""
        self._left = most_bytes

    def silence(self) -> None:
        """Pass nothing on any more, and tell nobody: the link is half open."""
        self._silent = True

    def heal(self) -> None:
        """Be as at the beginning; what a silent link has swallowed is lost with its connections."""
        if self._silent:
            self.break_off()
        self._silent = False
        self._refusing = False
        self._left = -1

    def delay(self, seconds: float) -> None:
        """Pass everything on so much later, in each direction."""
        self._delay_s = seconds

    def close(self) -> None:
        self._stopping = True
        self._thread.join()

    def _wait_for_cut(self) -> None:
        wait_until(lambda: not self._cut.is_set())

    # In the thread

    def _run(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select(0.002):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._read(key.data)
            if self._cut.is_set():
                for half in list(self._halves):
                    self._end(half)
                self._cut.clear()
            self._pass_on()
        for half in list(self._halves):
            self._end(half)
        self._listener.close()
        self._selector.close()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._refusing:
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            client.close()
            return
        for each in (client, server):
            each.setblocking(True)
            each.settimeout(5)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for half in (_Half(client, server), _Half(server, client)):
            self._halves.append(half)
            self._selector.register(half.source, selectors.EVENT_READ, half)

    def _read(self, half: _Half) -> None:
        try:
            data = half.source.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self._end(half)
            return
        half.held.append((time.monotonic() + self._delay_s, data))

    def _pass_on(self) -> None:
        now_s = time.monotonic()
        for half in list(self._halves):
            while half.held and half.held[0][0] <= now_s:
                data = half.held.popleft()[1]
                if self._silent:
                    continue
                try:
                    comes_back = half.target.getsockname()[1] == self.port
                    if comes_back and 0 <= self._left < len(data):
                        half.target.sendall(data[: self._left])
                        self._left = -1
                        self._end(half)
                        break
                    half.target.sendall(data)
                except OSError:
                    self._end(half)
                    break
                if comes_back:
                    self.carried_bytes += len(data)
                    if self._left > 0:
                        self._left -= len(data)

    def _end(self, half: _Half) -> None:
        for each in [h for h in self._halves if half.source in (h.source, h.target)]:
            self._halves.remove(each)
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(each.source)
        half.source.close()
        half.target.close()
