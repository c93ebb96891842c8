"""Requests are held back for a time, all of them or those that write.

CLIENT PAUSE asks for it, and whatever waits for replicas that are to have all there is.
"""

from __future__ import annotations

from typing import Final

from headrace.server.clients.session import PAUSED
from headrace.server.data import HELD_BY_PAUSE
from headrace.server.gate import PAUSED_ALL, PAUSED_WRITES
from headrace.server.state import Server

HELD_BY_END: Final = 1  # the server is about to end
HELD_BY_FAILOVER: Final = 2  # a replica is about to be the master


def pause(server: Server, for_ms: int, writes_only: bool) -> None:
    """Hold requests back, or only those that write, for so long or until an end set before.

    Args:
        for_ms: 0 is no pause at all.
    """
    clients = server.clients
    end_ms = max(clients.pause_end_ms, server.clock.monotonic_ms() + for_ms if for_ms else 0)
    unpause(server)  # what is held back now may be free to run under the new rule
    if end_ms:
        clients.pause_end_ms = end_ms
        server.gate.set(PAUSED_WRITES if writes_only else PAUSED_ALL, True)
        server.data.hold_expiry(HELD_BY_PAUSE, True)
        server.host.wake_at(end_ms)


def hold_writes(server: Server, reason: int) -> None:
    """Hold requests that write back until ``release_writes``; CLIENT PAUSE goes on beside that."""
    server.clients.writes_held |= reason
    server.gate.set(PAUSED_WRITES, True)
    server.data.hold_expiry(HELD_BY_PAUSE, True)


def release_writes(server: Server, reason: int) -> None:
    """Hold them back no more for this reason."""
    clients = server.clients
    clients.writes_held &= ~reason
    if not clients.writes_held:
        if not clients.pause_end_ms:
            unpause(server)
        elif server.gate.reasons & PAUSED_ALL:
            server.gate.set(PAUSED_WRITES, False)


def unpause(server: Server) -> None:
    """Let the requests run that CLIENT PAUSE holds back."""
    held = bool(server.clients.writes_held)
    server.clients.pause_end_ms = 0
    server.gate.set(PAUSED_ALL | PAUSED_WRITES, False)
    server.gate.set(PAUSED_WRITES, held)
    server.data.hold_expiry(HELD_BY_PAUSE, held)
    for session in server.clients.everybody():
        if session.special & PAUSED:
            session.special &= ~PAUSED
            session.peer.resume_soon()
    if server.blocking.next_alarm_ms():
        server.host.wake_at(server.clock.monotonic_ms())
