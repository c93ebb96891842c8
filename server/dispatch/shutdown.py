"""The end of the server: it waits for its replicas first, so that they have all that was written.

While it waits, requests that write are held back, and the end can be called off.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from headrace.compat.errors import SHUTDOWN_FAILED
from headrace.protocol.replies import ErrorReply
from headrace.server.clients.session import Session
from headrace.server.dispatch.dispatcher import HELD_BY_END, hold_writes, release_writes
from headrace.server.durability.durability import Durability, ready_to_end
from headrace.server.state import ENDS, STAYS, WAITS, Server, Shutdown, ShutdownOptions

log: Final = logging.getLogger("headrace")


class OrderlyShutdown(Shutdown):
    """Ends one server."""

    def __init__(self, server: Server, durability: Durability) -> None:
        self._server: Final = server
        self._durability: Final = durability
        self._options: ShutdownOptions | None = None  # of the end that waits for replicas
        self._on_stay: Callable[[], None] | None = None
        self._clients: list[Session] = []  # that asked for it
        self._offset = 0  # up to where replicas are to have the stream
        self._deadline_ms = 0

    def begin(self, options: ShutdownOptions, on_stay: Callable[[], None] | None = None) -> int:
        if self._options is not None:
            return WAITS
        server = self._server
        replicas = server.role.replicas
        self._on_stay = on_stay
        timeout_s = server.config.shutdown_timeout
        if replicas is not None and timeout_s and not options.now:
            self._offset = replicas.end_offset()
            if replicas.lagging(self._offset):
                log.info("Waiting for replicas before shutting down.")
                self._options = options
                self._deadline_ms = server.clock.monotonic_ms() + timeout_s * 1000
                hold_writes(server, HELD_BY_END)
                replicas.ask_for_acks()
                server.host.notify_supervisor("Waiting for replicas")
                return WAITS
        return self._end(options)

    def await_with(self, session: Session) -> None:
        self._clients.append(session)

    def call_off(self) -> bool:
        if self._options is None:
            return False
        log.info("Shutdown manually aborted.")
        self._stay()
        return True

    def tick(self, now_ms: int) -> None:
        options = self._options
        replicas = self._server.role.replicas
        if options is None or replicas is None:
            return
        lagging = replicas.lagging(self._offset)
        if lagging and now_ms < self._deadline_ms:
            return
        count = replicas.count()
        log.info("%d of %d replicas are in sync when shutting down.", count - lagging, count)
        self._end(options)

    def _end(self, options: ShutdownOptions) -> int:
        if ready_to_end(
            self._server, self._durability, options.save, options.nosave, options.force
        ):
            self._options = None
            self._server.host.stop(0)
            return ENDS
        self._stay()
        return STAYS

    def _stay(self) -> None:
        """There is no end for now; who waits for it hears of that."""
        server = self._server
        if self._options is not None:
            self._options = None
            release_writes(server, HELD_BY_END)
        clients, self._clients = self._clients, []
        for session in clients:
            server.end_wait(session, ErrorReply(SHUTDOWN_FAILED))
        on_stay, self._on_stay = self._on_stay, None
        if on_stay is not None:
            on_stay()
