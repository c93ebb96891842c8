"""What happens from time to time, not because a client asked."""

from __future__ import annotations

import asyncio

from server.execute import finish
from server.state import PAUSED_ALL, PAUSED_WRITES, Server

EXPIRE_BATCH = 500  # keys dropped in one go, so that no client waits for more
CRON_BUDGET_NS = 2_000_000  # what one tick may spend on expiry


async def run_cron(server: Server) -> None:
    """Tick ``hz`` times a second until cancelled."""
    while True:
        await asyncio.sleep(1 / server.config.hz)
        tick(server)


def tick(server: Server) -> None:
    """One tick: expiry, pauses, idle clients, memory to let go of, samples."""
    now_ms = server.refresh_clock()
    if server.active_expire and not server.special & (PAUSED_ALL | PAUSED_WRITES):
        expire_keys(server, now_ms)


def expire_keys(server: Server, now_ms: int) -> None:
    """Remove keys whose time has come, as many as the budget of a tick allows."""
    started_ns = server.clock_ns
    for db in server.dbs:
        while db.expire_due(now_ms, EXPIRE_BATCH) == EXPIRE_BATCH:
            flush_expired(server)
            server.refresh_clock()
            if server.clock_ns - started_ns > CRON_BUDGET_NS:
                return
    flush_expired(server)


def flush_expired(server: Server) -> None:
    """Make known the keys that were found expired outside of a command."""
    if server.expired_found:
        call = server.call
        call.row = None
        server.drain_expired(call, len(call.effects))
        finish(server, call)
