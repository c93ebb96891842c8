"""A proxy that passes bytes on between clients and a server, and cuts connections on command."""

from __future__ import annotations

import contextlib
import socket
import threading

from support.accepting import accepted
from support.waiting import DEADLINE_S


class Breaker:
    """Listens on a port of its own.

    Attributes:
        port: where to connect.
        connections: how many have been made.
        cut_after_bytes: the next connection is cut when the server has sent so much; 0 is never.
    """

    def __init__(self, target_port: int) -> None:
        self._target = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self.cut_after_bytes = 0
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        for client in accepted(self._listener):
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += (client, server)
            most, self.cut_after_bytes = self.cut_after_bytes, 0
            for arguments in ((client, server, 0), (server, client, most)):
                self._threads.append(threading.Thread(target=self._pass_on, args=arguments))
                self._threads[-1].start()

    def _pass_on(self, one: socket.socket, other: socket.socket, most: int) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if most and passed + len(data) > most:
                    other.sendall(data[: most - passed])
                    break
                other.sendall(data)
                passed += len(data)
        for each in (one, other):
            _shut(each)

    def close(self) -> None:
        """End all connections and stop listening."""
        _shut(self._listener)
        self._threads[0].join(DEADLINE_S)
        for each in self._sockets:
            _shut(each)
        for thread in self._threads:
            thread.join(DEADLINE_S)
        for each in (*self._sockets, self._listener):
            each.close()


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
