"""``maxmemory-clients``: a bound for what all clients together take.

Beyond it clients are closed, the largest first, until the others keep within it. Those that called
CLIENT NO-EVICT count, too, but stay.
"""

from __future__ import annotations

import logging
from typing import Final

from headrace.server.clients.session import NO_EVICT, REPLICA, Session
from headrace.server.config.config import Config
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")
_STAY: Final = NO_EVICT | REPLICA
_LEAST_BYTES: Final = 128 * 1024  # with less nobody could talk to the server any more


def limit_bytes(config: Config) -> int:
    """How much that is; 0 is no limit. A percentage, which is kept below zero, is of maxmemory."""
    limit = config.maxmemory_clients
    if limit < 0:
        limit = config.maxmemory * -limit // 100
    return max(limit, _LEAST_BYTES) if limit else 0


def evict_clients(server: Server, limit: int, at_hand: Session | None, argv_bytes: int) -> None:
    """Disconnect clients, the largest first, until the others keep within the limit.

    Args:
        at_hand: the client that is being served, with a request of ``argv_bytes``.
    """
    account = server.account
    if account.clients_bytes() <= limit:
        return
    clients = server.clients
    clients.weigh_all()
    if at_hand is not None:
        clients.weigh(at_hand, argv_bytes)
    candidates = [each for each in clients.sessions.values() if not each.special & _STAY]
    candidates.sort(key=_held)
    while candidates and account.clients_bytes() > limit:
        session = candidates.pop()
        log.info("client id=%d closed: maxmemory-clients reached", session.id)
        server.statistics.counters.evicted_clients += 1
        session.peer.abort()
        server.session_closed(session)


def _held(session: Session) -> int:
    return session.held_bytes
