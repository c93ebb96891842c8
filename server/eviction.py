"""Evicting keys: how they are used, which goes first, and how much is freed before a command.

**How keys are used.** Under most policies, and under ``noeviction``, a key has the time of its last
access, in milliseconds since 1970. Others keep something else in its place:

- ``-lrm``: the time of the last change. Reading a key does not change it.
- ``-lfu``: a counter from 0 to 255, and the minute in which it was brought up to date::

      bit   60   8..59                  0..7
            1    minutes since 1970     counter

  A key begins with 5. An access adds 1 with a chance that falls as the counter rises, by
  ``lfu-log-factor``; each ``lfu-decay-time`` minutes without one take 1 away.

When the policy changes, keys keep what they have. Both forms are understood under every policy.

**Which key goes first.** A round takes random keys and puts the best of them, those that are missed
least, into a pool of 16. The best in the pool goes, if it is still as good as it was: a key that
was used since then is dropped from the pool. So the pool comes close to the best of all, as in
Redis. By deadline nothing is left to chance, because the nearest deadline is known.

Streams go only when nothing else is left, and whole, because they are no cache. Data that other
regions have a copy of never goes.

**Evicting.** Before a command is run, keys go until the memory in use is within ``maxmemory``. A
key goes as if deleted: it is recorded as DEL, ``evicted`` is its event, watches fail, and clients
that wait for it are looked at. Its change ends before the next key goes.

As in Redis, that happens before any command, also before one that only reads. It takes no longer
than ``maxmemory-eviction-tenacity`` says; then commands go on, and the rest is done between them.
Where nothing can go, commands that need memory are refused. Nothing is evicted while data is being
loaded, while writes are paused, while a command or a script is half way, and in a replica, unless
``replica-ignore-maxmemory`` is off.

**Clients.** ``maxmemory-clients`` bounds the memory of all clients together. Beyond it clients are
closed, the largest first, until the others keep within it. Those that called CLIENT NO-EVICT count,
too, but stay.
"""

from __future__ import annotations

import logging
from bisect import insort
from typing import Final

from librt.random import randrange
from mypy_extensions import i64

from headrace.server import gate
from headrace.server.changes.changes import Listener
from headrace.server.changes.events import EVICTED
from headrace.server.clients.session import NO_EVICT, REPLICA, Session
from headrace.server.clock import MS, Clock
from headrace.server.config.config import Config
from headrace.server.data import HELD_BY_MASTER
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import finish_own
from headrace.server.dispatch.serving import serve_ready
from headrace.server.state import Evicting, Server
from headrace.storage.key_page import Usage
from headrace.storage.key_table import NO_EXPIRY, NO_SLOT
from headrace.storage.keyspace import Keyspace, Keyspaces
from headrace.storage.value import Value

COUNTER_MAX: Final = 255
_FIRST: Final = 5  # the counter of a new key
_COUNTED: Final[i64] = 0x1000000000000000
_MINUTE_MS: Final = 60_000


def counts_uses(policy: bytes) -> bool:
    """Return whether a policy asks how often keys are used, and not when."""
    return policy.endswith(b"-lfu")


def last_ms(usage: int) -> int:
    """Return when a key was used last, in milliseconds since 1970."""
    return usage if usage < int(_COUNTED) else (usage - int(_COUNTED) >> 8) * _MINUTE_MS


def counted(counter: int, now_ms: int) -> int:
    """Return the usage of a key that has this counter now."""
    return int(_COUNTED) + (max(0, now_ms) // _MINUTE_MS << 8) + counter


def counter_of(usage: int, now_ms: int, decay_minutes: int) -> int:
    """Return the present value of a key's counter."""
    counter = usage & COUNTER_MAX if usage >= int(_COUNTED) else _FIRST
    if not decay_minutes:
        return counter
    minutes = (now_ms - last_ms(usage)) // _MINUTE_MS
    return max(0, counter - max(0, minutes) // decay_minutes)


class Frequencies(Usage):
    """Counts how often keys are used."""

    def __init__(self, config: Config) -> None:
        self._config: Final = config

    def of_new(self, now_ms: i64) -> i64:
        return counted(_FIRST, int(now_ms))

    def of_asked(self, usage: i64, now_ms: i64) -> i64:
        config = self._config
        counter = counter_of(int(usage), int(now_ms), config.lfu_decay_time)
        if counter < COUNTER_MAX:
            above = max(0, counter - _FIRST)
            if not above or not randrange(above * config.lfu_log_factor + 1):
                counter += 1
        return counted(counter, int(now_ms))

    def of_replaced(self, usage: i64, now_ms: i64) -> i64:
        return self.of_asked(usage, now_ms)


class LastWrites(Usage):
    """Keeps the time of the last change of a key, which reading does not change."""

    def of_new(self, now_ms: i64) -> i64:
        return now_ms

    def of_asked(self, usage: i64, now_ms: i64) -> i64:
        return usage

    def of_replaced(self, usage: i64, now_ms: i64) -> i64:
        return now_ms


class WriteClock(Listener):
    """Notes when keys change in place, as most values do."""

    def __init__(self, databases: Keyspaces, clock: Clock) -> None:
        self._databases: Final = databases
        self._clock: Final = clock

    def asks_for_events(self) -> bool:
        return False

    def touched(self, db: int, key: bytes) -> None:
        table = self._databases[db].table
        slot = table.find(key)
        if slot != NO_SLOT:
            table.use(slot, self._clock.now_ns // MS)

    def database_replaced(self, db: Keyspace, replaced_by: Keyspace | None, now_ms: int) -> None:
        """Do nothing, because the keys bring their times with them."""


POOL: Final = 16
_ROUNDS: Final = 8  # for something that is no stream, before it is looked for one by one
_WALKED: Final = 20_000  # keys that are passed at once, when it is

Choice = tuple[Keyspace, bytes]


class Pool:
    """The best candidates by one policy; ``looks_on``: none was found, but a further call may."""

    def __init__(self, server: Server) -> None:
        self._server: Final = server
        self._policy = b""
        self._needs_deadline = False
        self._best: list[tuple[int, int, bytes]] = []  # (score, database, key), the best last
        self._next_db = 0
        self._walk_db = 0
        self._walk_at: i64 = 0
        self._walked = 0  # places since one was found
        self.looks_on = False

    def choose(self, policy: bytes, now_ms: int) -> Choice | None:
        """Return the next key to evict, or None; the policy must not be ``noeviction``."""
        self.looks_on = False
        if policy != self._policy:
            self._policy = policy
            self._needs_deadline = policy.startswith(b"volatile-")
            self._best = []
        found = self._choose(False, now_ms)
        if found is not None or self.looks_on or self._server.data.region is not None:
            return found  # other regions have a copy of what lasts
        return self._choose(True, now_ms)

    def _choose(self, lasting: bool, now_ms: int) -> Choice | None:
        dbs = [db for db in self._server.data.dbs if self._has_any(db, lasting)]
        if not dbs:
            return None
        if self._policy == b"volatile-ttl":
            found = _soonest(dbs, lasting)
            if found is not None:
                return found
        by_chance = self._policy.endswith(b"-random")
        for _ in range(_ROUNDS):
            if by_chance:
                self._next_db += 1
                db = dbs[self._next_db % len(dbs)]
                for key in self._sample(db, lasting):
                    return db, key
            else:
                for db in dbs:
                    for key in self._sample(db, lasting):
                        self._add(self._score(db, key, now_ms), db, key)
                found = self._take(lasting, now_ms)
                if found is not None:
                    return found
        return self._walk(lasting)

    def _has_any(self, db: Keyspace, lasting: bool) -> bool:
        table = db.table
        if self._needs_deadline:
            return db.volatile > 0
        return table.lasting > 0 if lasting else table.count > table.lasting

    def _sample(self, db: Keyspace, lasting: bool) -> list[bytes]:
        found: list[bytes] = []
        table = db.table
        for _ in range(self._server.config.maxmemory_samples if table.count else 0):
            slot: i64 = randrange(int(table.count))
            if self._needs_deadline:
                slot = table.next_with_deadline(slot)
            if slot != NO_SLOT:
                key = table.key_at(slot)
                if self._may_go(db, key, lasting):
                    found.append(key)
        return found

    def _may_go(self, db: Keyspace, key: bytes, lasting: bool) -> bool:
        slot = db.table.find(key)
        if slot == NO_SLOT or (self._needs_deadline and db.table.deadline_ms(slot) == NO_EXPIRY):
            return False
        return _is_to_go(db.table.value_at(slot), lasting)

    def _score(self, db: Keyspace, key: bytes, now_ms: int) -> int:
        if self._policy == b"volatile-ttl":
            return -db.deadline_ms(key)
        usage = int(db.table.usage_of(db.table.find(key)))
        if counts_uses(self._policy):
            decay_minutes = self._server.config.lfu_decay_time
            return COUNTER_MAX - counter_of(usage, now_ms, decay_minutes)
        return now_ms - last_ms(usage)

    def _add(self, score: int, db: Keyspace, key: bytes) -> None:
        best = self._best
        if len(best) >= POOL and score <= best[0][0]:
            return
        candidate = (score, db.index, key)
        for other in best:
            if other[2] == key and other[1] == db.index:
                return
        insort(best, candidate)
        if len(best) > POOL:
            del best[0]

    def _take(self, lasting: bool, now_ms: int) -> Choice | None:
        """Return the best of the pool that is as good as it was."""
        best = self._best
        while best:
            score, index, key = best.pop()
            db = self._server.data.dbs[index]
            if self._may_go(db, key, lasting) and self._score(db, key, now_ms) >= score:
                return db, key
        return None

    def _walk(self, lasting: bool) -> Choice | None:
        """Return the next key that can go, where these are so few that chance finds none."""
        dbs = [*self._server.data.dbs]
        total = sum([len(db) for db in dbs])
        for _ in range(min(_WALKED, total + len(dbs))):
            db = dbs[self._walk_db % len(dbs)]
            if self._walk_at >= db.table.count:
                self._walk_db += 1
                self._walk_at = 0
                continue
            key = db.table.key_at(self._walk_at)
            self._walked += 1
            if self._may_go(db, key, lasting):
                self._walked = 0
                return db, key
            self._walk_at += 1
        self.looks_on = self._walked < total
        if not self.looks_on:
            self._walked = 0
        return None


def _soonest(dbs: Keyspaces, lasting: bool) -> Choice | None:
    found: Choice | None = None
    found_ms: i64 = 0
    for db in dbs:
        table = db.table
        slot = table.first_due()
        if slot == NO_SLOT or not _is_to_go(table.value_at(slot), lasting):
            continue
        deadline_ms = table.deadline_ms(slot)
        if found is None or deadline_ms < found_ms:
            found = (db, table.key_at(slot))
            found_ms = deadline_ms
    return found


def _is_to_go(value: object, lasting: bool) -> bool:
    return (isinstance(value, Value) and value.is_lasting()) == lasting


log: Final = logging.getLogger("headrace")
_STAY: Final = NO_EVICT | REPLICA
_LEAST_BYTES: Final = 128 * 1024  # with less no client could talk to the server any more


def limit_bytes(config: Config) -> int:
    """Return the limit in bytes, 0 for none; a percentage of maxmemory is kept below zero."""
    limit = config.maxmemory_clients
    if limit < 0:
        limit = config.maxmemory * -limit // 100
    return max(limit, _LEAST_BYTES) if limit else 0


def evict_clients(server: Server, limit: int, at_hand: Session | None, argv_bytes: int) -> None:
    """Disconnect clients, the largest first, until the others keep within the limit.

    ``at_hand`` is the client that is being served, with a request of ``argv_bytes``.
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
    gate.LOADING_DATA
    | gate.PAUSED_ALL
    | gate.PAUSED_WRITES
    | gate.LENGTHY_AT_WORK
    | gate.SCRIPT_AT_WORK
    | gate.HALF_JOINED
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
        if server.gate.reasons & gate.CLIENTS_LIMITED:
            limit = limit_bytes(server.config)
            if limit:
                if 0 < server.config.maxmemory < server.account.used():
                    server.clients.weigh_all()  # before keys go in their place
                evict_clients(server, limit, at_hand, argv_bytes)
        if server.gate.reasons & gate.MEMORY_LIMITED:
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
        server = self._server
        policy = server.config.maxmemory_policy
        self.has_more = False
        if policy == b"noeviction":
            return False
        limit = server.config.maxmemory
        started_ns = server.clock.read_ns()
        now_ms = started_ns // MS
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
