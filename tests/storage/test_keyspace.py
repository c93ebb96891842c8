"""The keyspace: its invariants under any sequence of operations, and what SCAN promises."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.storage.entry import NO_EXPIRY, Emptied
from headrace.storage.freezing import Freezing
from headrace.storage.key_table import NO_SLOT
from headrace.storage.keyspace import Databases, Keyspace
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Expiring, Freeable

NAMES = [b"k%d" % number for number in range(12)]
keys = st.sampled_from(NAMES)
moments = st.integers(0, 300)


def keyspace() -> Keyspace:
    return Keyspace(0, [], [], Expiring())


def check(db: Keyspace) -> None:
    """The invariants that the class states."""
    assert [db.table.find(key) for key in db.names()] == list(range(len(db)))
    deadlines = {entry.key: entry.expire_ms for entry in db.every() if entry.expire_ms != NO_EXPIRY}
    assert db.volatile == len(deadlines)
    late = {key for _, key in db.late}
    assert all(db.table.due_ms <= deadlines[key] for key in deadlines.keys() - late)
    first = db.table.first_due()
    first_ms = NO_EXPIRY if first == NO_SLOT else db.table.deadline_ms(first)
    assert first_ms == min(deadlines.values(), default=NO_EXPIRY)


class KeyspaceMachine(RuleBasedStateMachine):
    """Two databases beside plain dicts of (value, deadline)."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.expired: list[tuple[int, bytes]] = []
        self.unused: list[Freeable] = []
        self.dbs = [Keyspace(index, self.expired, self.unused, Expiring()) for index in range(2)]
        self.models: list[dict[bytes, tuple[int, int]]] = [{}, {}]

    def forget_expired(self, index: int, key: bytes) -> None:
        found = self.models[index].get(key)
        if found is not None and NO_EXPIRY < found[1] < self.now_ms:
            del self.models[index][key]
            assert self.expired.pop() == (index, key)

    @rule(index=st.integers(0, 1), key=keys, value=st.integers(0, 9))
    def put(self, index: int, key: bytes, value: int) -> None:
        self.dbs[index].entry(key, self.now_ms)
        self.forget_expired(index, key)
        self.dbs[index].put(key, value, self.now_ms)
        _, deadline = self.models[index].get(key, (0, NO_EXPIRY))
        self.models[index][key] = (value, deadline)

    @rule(index=st.integers(0, 1), key=keys)
    def get(self, index: int, key: bytes) -> None:
        found = self.dbs[index].get(key, self.now_ms)
        self.forget_expired(index, key)
        assert found == self.models[index].get(key, (None,))[0]

    @rule(index=st.integers(0, 1), key=keys)
    def remove(self, index: int, key: bytes) -> None:
        assert self.dbs[index].remove(key) == self.models[index].pop(key, (None,))[0]

    @rule(index=st.integers(0, 1), key=keys, deadline=moments)
    def expire_at(self, index: int, key: bytes, deadline: int) -> None:
        if key in self.models[index]:
            self.dbs[index].expire_at(key, deadline)
            self.models[index][key] = (self.models[index][key][0], deadline)

    @rule(index=st.integers(0, 1), key=keys)
    def persist(self, index: int, key: bytes) -> None:
        value, deadline = self.models[index].get(key, (0, NO_EXPIRY))
        assert self.dbs[index].deadline_ms(key) == deadline
        assert self.dbs[index].persist(key) == (deadline != NO_EXPIRY)
        if deadline != NO_EXPIRY:
            self.models[index][key] = (value, NO_EXPIRY)

    @rule(step=st.integers(1, 60))
    def time_passes(self, step: int) -> None:
        self.now_ms += step

    @rule(index=st.integers(0, 1), most=st.integers(1, 20))
    def expire_due(self, index: int, most: int) -> None:
        model = self.models[index]
        seen = self.dbs[index].expire_due(self.now_ms, most)
        due = {key for key, (_, end) in model.items() if NO_EXPIRY < end < self.now_ms}
        gone = {key for _, key in self.expired}
        assert gone <= due
        assert gone == due or seen == most
        for key in gone:
            del model[key]
        self.expired.clear()

    @rule()
    def swap(self) -> None:
        self.dbs[0].swap(self.dbs[1])
        self.models.reverse()

    @precondition(lambda self: len(self.models[0]) > 5)
    @rule(index=st.integers(0, 1))
    def clear(self, index: int) -> None:
        self.dbs[index].clear()
        self.models[index].clear()

    @invariant()
    def holds(self) -> None:
        assert not self.expired
        for db, model in zip(self.dbs, self.models, strict=True):
            check(db)
            assert {entry.key: (entry.value, entry.expire_ms) for entry in db.every()} == model


TestKeyspaceMachine = KeyspaceMachine.TestCase
TestKeyspaceMachine.settings = settings(max_examples=60, stateful_step_count=60)


@given(seed=st.integers(0, 1 << 32), size=st.integers(0, 200), count=st.integers(1, 40))
@settings(max_examples=150)
def test_scan_returns_what_stays_whatever_else_changes(seed: int, size: int, count: int) -> None:
    chance = random.Random(seed)
    db = keyspace()
    for number in range(size):
        db.put(b"%d" % number, number, 0)
    lasting = {key for key in db.names() if chance.random() < 0.5}
    found: set[bytes] = set()
    cursor = -1
    steps = 0
    while cursor != 0:
        cursor, entries = db.scan(max(cursor, 0), count)
        found.update(entry.key for entry in entries)
        others = [key for key in db.names() if key not in lasting]
        for key in chance.sample(others, min(len(others), chance.randrange(8))):
            db.remove(key)
        for _ in range(chance.randrange(4) if steps < 50 else 0):
            db.put(b"new%d" % chance.randrange(1 << 30), 0, 0)
        steps += 1
    assert lasting <= found
    check(db)


def test_a_scan_ends_and_returns_a_quiet_database_once() -> None:
    db = keyspace()
    for number in range(95):
        db.put(b"%d" % number, number, 0)
    cursor, entries = db.scan(0, 10)
    found = [entry.key for entry in entries]
    while cursor:
        cursor, entries = db.scan(cursor, 10)
        found += [entry.key for entry in entries]
    assert sorted(found) == sorted(db.names())
    assert db.scan(1 << 64, 10)[0] == 85  # a cursor of another time: from the start again


def test_a_deadline_that_was_put_off_is_not_due() -> None:
    db = keyspace()
    for number in range(1000):
        db.put(b"%d" % number, number, 0)
    for moment in range(5000):
        db.expire_at(b"1", moment)
    assert db.expire_due(4998, 100) < 100
    assert db.deadline_ms(b"1") == 4999
    assert db.expire_due(5000, 100) == 1
    assert b"1" not in db


def test_while_loading_nothing_expires() -> None:
    db = keyspace()
    db.expire_enabled = False
    db.put(b"k", b"v", 0)
    db.expire_at(b"k", 10)
    assert db.get(b"k", 100) == b"v"
    db.expire_enabled = True
    assert db.get(b"k", 100) is None
    assert db.expired == [(0, b"k")]


def test_what_was_emptied_is_freed_in_slices() -> None:
    unused: list[Freeable] = []
    db = Keyspace(0, [], unused, Expiring())
    large = Stream(100, 100)
    for number in range(10):
        db.put(b"%d" % number, large if number == 3 else b"small", 0)
        db.expire_at(b"%d" % number, 100)
    db.clear()
    db.clear()
    emptied = unused.pop()
    assert isinstance(emptied, Emptied)
    assert not unused
    assert not emptied.free_some(4)
    assert not emptied.free_some(4)
    assert emptied.free_some(4)
    assert unused == [large]
    assert emptied.table.count == 0


def test_mean_ttl() -> None:
    db = keyspace()
    assert db.mean_ttl_ms(0) == 0
    for number, deadline in enumerate((100, 300)):
        db.put(b"%d" % number, 0, 0)
        db.expire_at(b"%d" % number, deadline)
    assert db.mean_ttl_ms(50) == 150


def test_a_hidden_key_goes_before_another_one_takes_its_name() -> None:
    db = keyspace()
    for key in (b"gone", b"alive"):
        db.put(key, b"v", 0)
    db.expire_at(b"gone", 10)
    db.hold_expiry(True)
    assert db.get(b"gone", 11) is None
    assert b"gone" in db
    db.end_held(b"alive", 11)
    db.end_held(b"missing", 11)
    assert db.expired == []
    db.end_held(b"gone", 11)
    assert db.expired == [(0, b"gone")]
    assert db.names() == [b"alive"]
    check(db)


def test_a_database_is_made_when_it_is_used() -> None:
    dbs = Databases(100_000, [], [], Expiring())
    assert len(dbs) == 100_000
    assert [db.index for db in dbs] == [0]
    dbs[0].hold_expiry(True)
    dbs[0].keep_sizes(True)
    freezing = Freezing([*dbs], 7)
    dbs[4711].put(b"k", b"v", 0)
    dbs[9].put(b"k", b"v", 0)
    assert [db.index for db in dbs] == [0, 9, 4711]
    assert dbs[4711] is dbs[4711]
    assert dbs[4711].expire_held
    assert dbs[4711].sized
    dbs[0].put(b"new", b"v", 0)
    dbs[0].swap(dbs[9])
    assert freezing.next_keys(100) == []  # all of it came after the start
    freezing.end([])
    assert all(db.freezing is None for db in dbs)
    for index in (-1, 100_000):
        with pytest.raises(IndexError):
            dbs[index]
