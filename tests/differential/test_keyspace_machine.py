"""Keys, expiry and strings in any order, beside the real Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from support.campaigns import drawn
from support.client import Argument, parse
from support.process import Pair, RedisProcess, ServerProcess

pytestmark = pytest.mark.judge

FAR_MS = 4102444800000  # the year 2100
MAX = (1 << 63) - 1

names = st.sampled_from(["a", "b", "c", "d", "s"])
databases = st.integers(0, 2)
numbers = st.one_of(
    st.integers(-20, 20), st.sampled_from([MAX, -MAX - 1, MAX - 1, 10_000]), st.just("x")
)
values = st.one_of(
    st.integers(-3, 30),
    st.sampled_from(["", "text", "x" * 40, "x" * 45, b"\x00\xff", "1.5", " 1", str(MAX)]),
)
moments = st.sampled_from([FAR_MS, FAR_MS + 1, FAR_MS + 2])
ttl_options = st.one_of(
    st.just(()),
    st.just(()),
    st.just(("KEEPTTL",)),
    st.just(("EX", 0)),
    moments.map(lambda moment: ("PXAT", moment)),
    moments.map(lambda moment: ("EXAT", moment // 1000)),
)
conditions = st.lists(st.sampled_from(["NX", "XX", "GET", "nx", "FOO"]), max_size=2)
expire_conditions = st.lists(st.sampled_from(["NX", "XX", "GT", "LT", "gt"]), max_size=2)
offsets = st.integers(-12, 12)


class Machine(RuleBasedStateMachine):
    pair: Pair

    @initialize()
    def empty(self) -> None:
        self.both("FLUSHALL")
        self.both("SELECT", 0)

    def both(self, *words: Argument) -> None:
        self.pair.both(*words)

    @rule(key=names, value=values, options=conditions, ttl=ttl_options)
    def set(self, key: str, value: Argument, options: list[str], ttl: tuple[Argument, ...]) -> None:
        self.both("SET", key, value, *options, *ttl)

    @rule(key=names, value=values, name=st.sampled_from(["SETNX", "GETSET", "APPEND"]))
    def set_plain(self, key: str, value: Argument, name: str) -> None:
        self.both(name, key, value)

    @rule(
        key=names,
        ttl=st.sampled_from(
            [(), ("PERSIST",), ("PXAT", 1), ("PXAT", FAR_MS), ("EX", "x"), ("KEEPTTL",)]
        ),
    )
    def getex(self, key: str, ttl: tuple[Argument, ...]) -> None:
        self.both("GETEX", key, *ttl)

    @rule(pairs=st.lists(st.tuples(names, values), min_size=1, max_size=3), new=st.booleans())
    def set_many(self, pairs: list[tuple[str, Argument]], new: bool) -> None:
        self.both("MSETNX" if new else "MSET", *[word for pair in pairs for word in pair])

    @rule(key=names, name=st.sampled_from(["INCR", "DECR"]))
    def step(self, key: str, name: str) -> None:
        self.both(name, key)

    @rule(key=names, number=numbers, name=st.sampled_from(["INCRBY", "DECRBY", "INCRBYFLOAT"]))
    def add(self, key: str, number: Argument, name: str) -> None:
        self.both(name, key, number)

    @rule(key=names, offset=offsets, value=values)
    def setrange(self, key: str, offset: int, value: Argument) -> None:
        self.both("SETRANGE", key, offset, value)

    @rule(key=names, start=offsets, end=offsets)
    def getrange(self, key: str, start: int, end: int) -> None:
        self.both("GETRANGE", key, start, end)

    @rule(
        key=names,
        name=st.sampled_from(["GET", "GETDEL", "STRLEN", "TYPE", "PERSIST", "EXPIRETIME"]),
    )
    def one_key(self, key: str, name: str) -> None:
        self.both(name, key)

    @rule(
        keys=st.lists(names, min_size=1, max_size=3),
        name=st.sampled_from(["DEL", "UNLINK", "EXISTS", "TOUCH", "MGET"]),
    )
    def some_keys(self, keys: list[str], name: str) -> None:
        self.both(name, *keys)

    @rule(key=names, moment=st.one_of(moments, st.just(1)), options=expire_conditions)
    def expire(self, key: str, moment: int, options: list[str]) -> None:
        self.both("PEXPIREAT", key, moment, *options)

    @rule(key=names, other=names, name=st.sampled_from(["RENAME", "RENAMENX"]))
    def rename(self, key: str, other: str, name: str) -> None:
        self.both(name, key, other)

    @rule(
        key=names,
        other=names,
        options=st.sampled_from([(), ("REPLACE",), ("DB", 1), ("DB", 2, "REPLACE"), ("DB", 99)]),
    )
    def copy(self, key: str, other: str, options: tuple[Argument, ...]) -> None:
        self.both("COPY", key, other, *options)

    @rule(key=names, database=databases)
    def move(self, key: str, database: int) -> None:
        self.both("MOVE", key, database)

    @rule(sequence=st.integers(1, 9))
    def stream(self, sequence: int) -> None:
        self.both("XADD", "s", f"1-{sequence}", "field", "value")

    @rule(database=databases)
    def select(self, database: int) -> None:
        self.both("SELECT", database)

    @rule(first=databases, second=databases)
    def swap(self, first: int, second: int) -> None:
        self.both("SWAPDB", first, second)

    @rule()
    def flush(self) -> None:
        self.both("FLUSHDB")

    @rule(key=names)
    def inspect(self, key: str) -> None:
        self.both("OBJECT", "ENCODING", key)

    def teardown(self) -> None:
        for database in range(3):
            self.both("SELECT", database)
            found = [parse(client.call("KEYS", "*")) for client in (self.pair.ours, self.pair.real)]
            assert isinstance(found[0], list)
            assert isinstance(found[1], list)
            assert sorted(found[0]) == sorted(found[1])
            for key in found[0]:
                self.both("TYPE", key)
                self.both("GET", key)
                self.both("PEXPIRETIME", key)
                self.both("OBJECT", "ENCODING", key) if key != b"s" else None
            self.both("DBSIZE")


@pytest.fixture
def quiet_pair(server: ServerProcess, redis_server: RedisProcess) -> Iterator[Pair]:
    """Both servers with active expiry off: what has expired goes when it is met."""
    both = Pair.of(server, redis_server)
    both.both("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    yield both
    both.both("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    both.close()


@pytest.mark.since(8, 0)  # Valkey embeds more
def test_any_sequence_gives_the_same_replies(quiet_pair: Pair) -> None:
    class Here(Machine):
        pair = quiet_pair

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=drawn(150),
            stateful_step_count=50,
            suppress_health_check=list(HealthCheck),
        ),
    )
