"""``maxmemory-clients``: a bound for what all clients together have waiting in memory."""

from __future__ import annotations

import logging
from typing import Final

from headrace.server.clients.session import NO_EVICT, REPLICA, Session
from headrace.server.config.config import Config
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")


def limit_bytes(config: Config) -> int:
    """How much that is; 0 is no limit. A percentage, which is kept below zero, is of maxmemory."""
    limit = config.maxmemory_clients
    return limit if limit >= 0 else config.maxmemory * -limit // 100


def evict_clients(server: Server) -> None:
    """Disconnect clients, the largest first, until the others keep within the limit."""
    limit = limit_bytes(server.config)
    if not limit:
        return
    sizes: list[tuple[int, Session]] = []
    total = 0
    for session in server.clients.sessions.values():
        size = session.peer.pending_output_bytes() + session.peer.pending_input_bytes()
        for piece in session.out:
            size += len(piece)
        if session.transaction is not None:
            size += session.transaction.size_bytes
        total += size
        if not session.special & (NO_EVICT | REPLICA):
            sizes.append((size, session))
    if total <= limit:
        return
    sizes.sort(key=_size)
    while sizes and total > limit:
        size, session = sizes.pop()
        total -= size
        log.info("client id=%d closed: maxmemory-clients reached", session.id)
        server.statistics.counters.evicted_clients += 1
        session.peer.abort()
        server.session_closed(session)


def _size(pair: tuple[int, Session]) -> int:
    return pair[0]
