"""Which key goes first, found by looking at a few.

A round takes some keys by chance and puts the best of them, those that are missed least, into a
pool of 16. The best in the pool goes, if it is still as good as it was: a key that was used since
then is dropped from the pool. So the pool comes close to the best of all, as in Redis. By deadline
nothing is left to chance: the nearest one is known.

Streams are no cache: they go only when nothing else is there, and whole. What other regions have
a copy of never goes.
"""

from __future__ import annotations

from bisect import insort
from typing import Final

from librt.random import randrange
from mypy_extensions import i64

from headrace.server.eviction.usage import COUNTER_MAX, counter_of, counts_uses, last_ms
from headrace.server.state import Server
from headrace.storage.key_table import NO_EXPIRY, NO_SLOT
from headrace.storage.keyspace import Keyspace
from headrace.storage.value import Value

POOL: Final = 16
_SOON: Final = 64  # of the keys with deadlines, so many of the next ones are looked at
_ROUNDS: Final = 8  # for something that is no stream, before it is looked for one by one
_WALKED: Final = 20_000  # keys that are passed at once, when it is

Choice = tuple[Keyspace, bytes]


class Pool:
    """The best candidates so far, by one policy.

    Attributes:
        looks_on: none was found yet, though there may be one: it pays to ask again.
    """

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
        """The key that is to go by a policy other than ``noeviction``; None where there is none."""
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
        """As ``choose``, among what lasts or among the others."""
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
        """Return whether a database may have a key that could go."""
        table = db.table
        if self._needs_deadline:
            return db.volatile > 0
        return table.lasting > 0 if lasting else table.count > table.lasting

    def _sample(self, db: Keyspace, lasting: bool) -> list[bytes]:
        """Some keys of a database, by chance: as many as ``maxmemory-samples`` were looked at."""
        found: list[bytes] = []
        places = self._places(db)
        for _ in range(self._server.config.maxmemory_samples if places else 0):
            key = self._key_at(db, randrange(places))
            if self._may_go(db, key, lasting):
                found.append(key)
        return found

    def _may_go(self, db: Keyspace, key: bytes, lasting: bool) -> bool:
        slot = db.table.find(key)
        if slot == NO_SLOT or (self._needs_deadline and db.table.deadline_ms(slot) == NO_EXPIRY):
            return False
        return _is_to_go(db.table.value_at(slot), lasting)

    def _score(self, db: Keyspace, key: bytes, now_ms: int) -> int:
        """Return how well a key can be missed: the more, the better."""
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
        """The best of the pool that is as good as it was."""
        best = self._best
        while best:
            score, index, key = best.pop()
            db = self._server.data.dbs[index]
            if self._may_go(db, key, lasting) and self._score(db, key, now_ms) >= score:
                return db, key
        return None

    def _walk(self, lasting: bool) -> Choice | None:
        """The next key that can go, where those that can are so few that chance finds none."""
        dbs = self._server.data.dbs
        total = sum([self._places(db) for db in dbs])
        for _ in range(min(_WALKED, total + len(dbs))):
            db = dbs[self._walk_db % len(dbs)]
            if self._walk_at >= self._places(db):
                self._walk_db += 1
                self._walk_at = 0
                continue
            key = self._key_at(db, self._walk_at)
            self._walked += 1
            if self._may_go(db, key, lasting):
                self._walked = 0
                return db, key
            self._walk_at += 1
        self.looks_on = self._walked < total
        if not self.looks_on:
            self._walked = 0
        return None

    def _places(self, db: Keyspace) -> int:
        """Among how many places the keys of a database stand."""
        return int(db.order.pairs.size if self._needs_deadline else db.table.count)

    def _key_at(self, db: Keyspace, place: i64) -> bytes:
        """The key at one of them; its deadline may be gone."""
        return db.order.name_at(place) if self._needs_deadline else db.table.key_at(place)


def _soonest(dbs: list[Keyspace], lasting: bool) -> Choice | None:
    """The key with the nearest deadline, if it is not behind many that may not go."""
    found: Choice | None = None
    found_ms: i64 = 0
    for db in dbs:
        table = db.table
        for key in db.order.fresh(_SOON):
            slot = table.find(key)
            if slot == NO_SLOT or not _is_to_go(table.value_at(slot), lasting):
                continue
            deadline_ms = table.deadline_ms(slot)
            if found is None or deadline_ms < found_ms:
                found = (db, key)
                found_ms = deadline_ms
    return found


def _is_to_go(value: object, lasting: bool) -> bool:
    """Return whether a value may go, among what lasts or among the others."""
    return (isinstance(value, Value) and value.is_lasting()) == lasting
