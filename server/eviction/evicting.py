"""Evicting keys until memory is within ``maxmemory``, and clients within ``maxmemory-clients``."""

from __future__ import annotations

import logging
from typing import Final

from mypy_extensions import i64

from headrace.server.changes.events import EVICTED
from headrace.server.clients.session import NO_EVICT, REPLICA, Session
from headrace.server.config.config import Config
from headrace.server.data import HELD_BY_MASTER
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import finish_own
from headrace.server.dispatch.serving import serve_ready
from headrace.server.eviction.candidates import Pool
from headrace.server.gate import (
    CLIENTS_LIMITED,
    HALF_JOINED,
    LENGTHY_AT_WORK,
    LOADING_DATA,
    MEMORY_LIMITED,
    PAUSED_ALL,
    PAUSED_WRITES,
    SCRIPT_AT_WORK,
)
from headrace.server.state import Evicting, Server
from headrace.storage.keyspace import Keyspace

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


NOT_NOW: Final = (
    LOADING_DATA | PAUSED_ALL | PAUSED_WRITES | LENGTHY_AT_WORK | SCRIPT_AT_WORK | HALF_JOINED
)
_GROWTH_BYTES: Final[i64] = 16384  # the most that a command adds to a value, beside its words
_KEYS_AT_ONCE: Final = 16  # between two looks at the clock
_BASE_NS: Final = 50_000  # for each point of tenacity up to 10
_GROWTH: Final = 1.15  # by each point above
_FOREVER: Final = 100


class RoomMaking(Evicting):
    """Evicts clients and keys."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__()
        self._dispatcher: Final = dispatcher
        self._server: Final = dispatcher.server
        self._pool: Final = Pool(dispatcher.server)

    def make_room(self, at_hand: Session | None = None, argv_bytes: int = 0) -> None:
        server = self._server
        if server.gate.reasons & CLIENTS_LIMITED:
            limit = limit_bytes(server.config)
            if limit:
                if 0 < server.config.maxmemory < server.account.used():
                    server.clients.weigh_all()  # before keys go in their place
                evict_clients(server, limit, at_hand, argv_bytes)
        if server.gate.reasons & MEMORY_LIMITED:
            self._make_room_by_keys()

    def _make_room_by_keys(self) -> None:
        server = self._server
        held_back = bool(server.gate.reasons & NOT_NOW | server.data.expiry_held & ~HELD_BY_MASTER)
        if server.role.follows and server.config.replica_ignore_maxmemory:
            held_back = True  # it has what its master has
        if held_back:
            self.short = False
            self.has_more = False
            self.room_bytes = 0
            return
        if not server.data.sized:
            server.account.keep(True)
        self.room_bytes = server.config.maxmemory - server.account.used()
        if self.room_bytes >= 0:
            self._note_within()
        else:
            self._note_exceeded()
            self.short = not self._evict()
            if not self.short and not self.has_more:
                self._note_within()

    def fits_until(self, requests: list[list[bytes]], at: i64, end: i64) -> i64:
        room_bytes: i64 = self.room_bytes
        while at < end:
            room_bytes -= _GROWTH_BYTES
            for word in requests[at]:  # as ``size_of``, without a call for each request
                room_bytes -= len(word)
            at += 1
            if room_bytes < 0:
                break
        return at

    def _note_exceeded(self) -> None:
        if not self._server.statistics.counters.over_since_ms:
            self._server.statistics.counters.over_since_ms = self._server.clock.monotonic_ms()

    def _note_within(self) -> None:
        self.short = False
        self.has_more = False
        counters = self._server.statistics.counters
        if counters.over_since_ms:
            counters.end_excess(self._server.clock.monotonic_ms())

    def _evict(self) -> bool:
        """Evict keys until there is room or the time is up; False where there are none to go."""
        server = self._server
        policy = server.config.maxmemory_policy
        self.has_more = False
        if policy == b"noeviction":
            return False
        limit = server.config.maxmemory
        started_ns = server.clock.read_ns()
        now_ms = started_ns // 1_000_000
        budget_ns = budget_of(server.config.maxmemory_eviction_tenacity)
        found_all = True
        count = 0
        while server.account.used() > limit:
            choice = self._pool.choose(policy, now_ms)
            if choice is None and not self._pool.looks_on:
                found_all = False
                break
            if choice is not None:
                self._remove(choice[0], choice[1])
                count += 1
            is_late = choice is None or count % _KEYS_AT_ONCE == 0
            if is_late and budget_ns and abs(server.clock.read_ns() - started_ns) > budget_ns:
                self.has_more = True
                break
        finish_own(server)
        if server.blocking.ready:
            serve_ready(self._dispatcher)
        server.statistics.note_latency(b"eviction-cycle", max(0, server.clock.now_ns - started_ns))
        return found_all

    def _remove(self, db: Keyspace, key: bytes) -> None:
        server = self._server
        server.data.free_later(db.remove(key))
        name = b"UNLINK" if server.config.lazyfree_lazy_eviction else b"DEL"
        server.changes.report(db.index, key, EVICTED, [name, key], count=0, wakes=False)
        server.changes.end_command()
        server.statistics.counters.evicted_keys += 1


def budget_of(tenacity: int) -> int:
    """Return how long evicting may hold up a command, in nanoseconds; 0 is no limit."""
    if tenacity >= _FOREVER:
        return 0
    if tenacity <= 10:
        return max(1, _BASE_NS * tenacity)
    return int(10 * _BASE_NS * _GROWTH ** (tenacity - 10))
