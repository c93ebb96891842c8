"""The log against the real Redis, byte for byte."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from support.campaigns import drawn
from support.client import RawClient
from support.process import Pair, RedisProcess, ServerProcess

INVALID_IDS = [
    b"", b"-", b"--", b"-1", b"1-", b"1--5", b"abc", b"1-abc", b"1-2-3", b"18446744073709551616",
    b"1-18446744073709551616", b"*-1", b"+", b"$", b">", b"1 ", b"1-1 ", b"0x1", b"1" * 128,
]  # fmt: skip
ODD_IDS = [
    b"007-1",
    b"+9-1",
    b" 5-1",
    b"1-+5",
    b"1--0",
    b"14-00",
    b"\t3-3",
    b"1\x00-5",
    b"2-2\x00x",
]
RANGES = [b"-", b"+", b"0", b"5", b"5-1", b"(5-1", b"(5", b"(0-0", b"(-", b"(+", b"(", b"((5",
          b"18446744073709551615-18446744073709551615",
          b"(18446744073709551615-18446744073709551615"]  # fmt: skip

WRONG_CALLS = [
    "XADD", "XADD s", "XADD s *", "XADD s * f", "XADD s * f v g", "XADD s 1-1", "XADD s FOO * f v",
    "XADD s MAXLEN * f v", "XADD s MAXLEN ~ * f v", "XADD s MAXLEN -1 * f v",
    "XADD s MAXLEN x * f v", "XADD s MAXLEN ~ -1 * f v", "XADD s MINID x * f v",
    "XADD s MINID - * f v", "XADD s MAXLEN 5 MAXLEN 6 * f v", "XADD s MAXLEN 5 MINID 6 * f v",
    "XADD s MINID 6 MINID 6 * f v", "XADD s MAXLEN 5 LIMIT 10 * f v",
    "XADD s MAXLEN = 5 LIMIT 10 * f v", "XADD s MAXLEN ~ 5 LIMIT -1 * f v",
    "XADD s MAXLEN ~ 5 LIMIT x * f v", "XADD s LIMIT 10 * f v", "XADD s LIMIT 0 * f v",
    "XADD s MAXLEN = 5 LIMIT 0 * f v", "XADD s MAXLEN", "XADD s MAXLEN 5", "XADD s LIMIT 5 1",
    "XADD s MAXLEN 5 1", "XADD s MAXLEN 5 *", "XADD s NOMKSTREAM", "XADD s NOMKSTREAM * f",
    "XADD s 0-0 f v", "XADD s 0 f v", "XADD nokey 0-0 f v", "XADD s 1-** f v", "XADD s -* f v",
    "XADD s 1-1-* f v", "XADD str * f v", "XADD str NOMKSTREAM * f v", "XADD str x f v",
    "XADD nokey NOMKSTREAM * f v", "XADD nokey NOMKSTREAM x f v",
    "XTRIM", "XTRIM s", "XTRIM s MAXLEN", "XTRIM s FOO 1", "XTRIM s MAXLEN x", "XTRIM s MAXLEN -1",
    "XTRIM s MINID x", "XTRIM s MAXLEN 1 2", "XTRIM s MAXLEN 1 LIMIT 5", "XTRIM s LIMIT 5 LIMIT 5",
    "XTRIM s MAXLEN = 1 LIMIT 0", "XTRIM s MAXLEN ~ 1 LIMIT -1", "XTRIM s MAXLEN 1 MINID 1",
    "XTRIM str MAXLEN 1", "XTRIM nokey MAXLEN 1", "XTRIM nokey MAXLEN x", "XTRIM s ~ 5 5",
    "XTRIM s MAXLEN ~", "XTRIM s MAXLEN ~ 1 LIMIT", "XTRIM s MAXLEN 5 NOMKSTREAM", "XTRIM s * *",
    "XDEL", "XDEL s", "XDEL s x", "XDEL s 1-1 x", "XDEL str 1-1", "XDEL str x", "XDEL nokey x",
    "XDEL s -", "XDEL s +", "XDEL s 1", "XDEL s 1-1 1-1 1-1",
    "XLEN", "XLEN s t", "XLEN str", "XLEN nokey",
    "XSETID s", "XSETID s x", "XSETID s -", "XSETID nokey 1-1", "XSETID str 1-1", "XSETID s 1-1",
    "XSETID s 0-1", "XSETID s 9-9 ENTRIESADDED", "XSETID s 9-9 ENTRIESADDED x MAXDELETEDID 1-1",
    "XSETID s 9-9 ENTRIESADDED -1 MAXDELETEDID 1-1", "XSETID s 9-9 FOO 1 BAR 2",
    "XSETID s 9-9 ENTRIESADDED 0 MAXDELETEDID 1-1", "XSETID s 9-9 ENTRIESADDED 9 MAXDELETEDID x",
    "XSETID s 9-9 ENTRIESADDED 9 MAXDELETEDID 10-1",
    "XSETID s 9-9 ENTRIESADDED 9 MAXDELETEDID 0-0",
    "XSETID s 9-9 ENTRIESADDED 9 MAXDELETEDID 1-1",
    "XSETID s 9-9 ENTRIESADDED 9 MAXDELETEDID 1-1 x",
    "XRANGE s", "XRANGE s -", "XRANGE s - + COUNT", "XRANGE s - + COUNT x", "XRANGE s - + FOO 1",
    "XRANGE s - + COUNT 1 COUNT 2", "XRANGE s - + COUNT 0", "XRANGE s - + COUNT -1",
    "XRANGE nokey - + COUNT 0", "XRANGE nokey x +", "XRANGE str - +", "XRANGE str x +",
    "XRANGE s + -", "XREVRANGE s + -", "XREVRANGE s - +", "XREVRANGE s 2 1 COUNT 1",
    "XREVRANGE s + - COUNT 0", "XREVRANGE s + - COUNT", "XREVRANGE str + -", "XREVRANGE s x -",
    "XREAD", "XREAD STREAMS", "XREAD STREAMS s", "XREAD COUNT STREAMS s 0",
    "XREAD COUNT x STREAMS s 0", "XREAD COUNT -5 STREAMS s 0", "XREAD COUNT 0 STREAMS s 0",
    "XREAD COUNT 1 STREAMS s 0", "XREAD COUNT 1 COUNT 2 STREAMS s 0", "XREAD FOO STREAMS s 0",
    "XREAD BLOCK x STREAMS s 0", "XREAD BLOCK -1 STREAMS s 0", "XREAD BLOCK 0 STREAMS s 0",
    "XREAD STREAMS s >", "XREAD STREAMS s x", "XREAD STREAMS s -", "XREAD STREAMS s $",
    "XREAD STREAMS s s 0 0", "XREAD STREAMS s str 0 0", "XREAD STREAMS str 0", "XREAD STREAMS s t",
    "XREAD STREAMS nokey 0", "XREAD STREAMS nokey $", "XREAD NOACK STREAMS s 0",
    "XREAD GROUP g c STREAMS s 0", "XREAD COUNT 1", "XREAD BLOCK 10 COUNT 1",
    "XREAD STREAMS s str x 0", "XREAD STREAMS str s x 0", "XREAD STREAMS s str > x",
    "XREAD STREAMS STREAMS s 0 0", "XREAD BLOCK 10 STREAMS s 99-0", "XREAD BLOCK 5 STREAMS nokey $",
    "XINFO", "XINFO FOO", "XINFO STREAM", "XINFO STREAM nokey", "XINFO STREAM str",
    "XINFO STREAM s FOO", "XINFO STREAM s FULL COUNT", "XINFO STREAM s FULL FOO 1",
    "XINFO STREAM s FULL COUNT x", "XINFO STREAM nokey FULL", "XINFO HELP x",
]  # fmt: skip


def stock(pair: Pair) -> None:
    pair.both("FLUSHALL")
    pair.both("SET", "str", "x")
    for number in range(1, 10):
        pair.both("XADD", "s", f"{number}-{number}", "field", f"value {number}", "n", number)
    pair.both("XADD", "t", "1-0", "a", "b", "a", "c")


@pytest.fixture(params=[False, True], ids=["resp2", "resp3"])
def stocked(
    request: pytest.FixtureRequest, server: ServerProcess, redis_server: RedisProcess
) -> Iterator[Pair]:
    pair = Pair.of(server, redis_server, resp3=request.param)
    stock(pair)
    yield pair
    pair.close()


@pytest.mark.parametrize("command", sorted({call.split(" ")[0] for call in WRONG_CALLS}))
def test_wrong_and_odd_calls(stocked: Pair, command: str) -> None:
    for call in WRONG_CALLS:
        words = call.split(" ")
        if words[0] == command:
            stock(stocked)
            stocked.both(*words)
            for key in ("s", "t", "str", "nokey"):
                stocked.both("TYPE", key)
            stocked.both("XRANGE", "s", "-", "+")


def test_ids_are_read_as_redis_reads_them(stocked: Pair) -> None:
    for text in INVALID_IDS + ODD_IDS:
        stocked.both("XDEL", "s", text)
        stocked.both("XADD", "fresh", text, "f", "v")
        if text != b"+":  # Redis 7.0 has no such
            stocked.both("XREAD", "STREAMS", "s", text)
        stocked.both("XRANGE", "s", text, "+")
        stocked.both("XRANGE", "fresh", "-", "+")
        stocked.both("DEL", "fresh")


def test_ranges_and_exclusive_bounds(stocked: Pair) -> None:
    for start in RANGES:
        for end in RANGES:
            stocked.both("XRANGE", "s", start, end)
            stocked.both("XREVRANGE", "s", start, end, "COUNT", 2)


def test_partial_ids(stocked: Pair) -> None:
    for wanted in ("12-*", "12-*", "12", "11-*", "12-18446744073709551615", "13-*", "14"):
        stocked.both("XADD", "s", wanted, "f", "v")
    stocked.both("XADD", "new", "0-*", "f", "v")
    stocked.both("XADD", "new", "18446744073709551615-18446744073709551615", "f", "v")
    for wanted in ("*", "18446744073709551615-*", "1-1"):
        stocked.both("XADD", "new", wanted, "f", "v")


def node_count(client: RawClient, key: str) -> bytes:
    found = re.search(rb"radix-tree-keys\r\n:(\d+)", client.call("XINFO", "STREAM", key))
    return found[1] if found else b"none"


NODE_SIZES = [(1, 0), (2, 0), (10, 4096), (100, 4096), (0, 200), (7, 120), (128, 100000)]


@pytest.mark.parametrize(("entries", "size"), NODE_SIZES)
def test_nodes_and_approximate_trimming(stocked: Pair, entries: int, size: int) -> None:
    chance = random.Random(entries * 1000 + size)
    values = "1 -1 127 128 -4097 40000 9000000 3000000000 007 -0 9223372036854775808".split()
    values += ["", "x" * 63, "x" * 64, "y" * 500, "12345678901234567890123"]
    stocked.both("CONFIG", "SET", "stream-node-max-entries", entries)
    stocked.both("CONFIG", "SET", "stream-node-max-bytes", size)
    ms = 1
    try:
        for step in range(400):
            ms += chance.choice([0, 0, 1, 1, 1000])
            names = ["f", "g"] if chance.random() < 0.8 else ["f", "h", "17"]
            words = [word for name in names for word in (name, chance.choice(values))]
            stocked.both("XADD", "n", f"{ms}-*", *words)
            if chance.random() < 0.15:
                key = f"{chance.randint(1, ms)}-{chance.randint(0, 2)}"
                stocked.both("XDEL", "n", key)
            if chance.random() < 0.1:
                most = chance.randint(0, step + 1)
                limit: list[str | int] = []
                if chance.random() < 0.5:
                    limit = ["LIMIT", chance.randint(0, 30)]
                operator = [] if not limit and chance.random() < 0.3 else ["~"]
                if chance.random() < 0.5:
                    stocked.both("XTRIM", "n", "MAXLEN", *operator, most, *limit)
                else:
                    least = max(1, ms - chance.randint(0, 2000))
                    stocked.both("XTRIM", "n", "MINID", *operator, least, *limit)
            assert node_count(stocked.ours, "n") == node_count(stocked.real, "n"), step
        stocked.both("XRANGE", "n", "-", "+")
    finally:
        stocked.both("CONFIG", "SET", "stream-node-max-entries", 100)
        stocked.both("CONFIG", "SET", "stream-node-max-bytes", 4096)


def test_what_is_said_since_redis_7_2(client: RawClient) -> None:
    unbalanced = (
        b"-ERR Unbalanced 'xread' list of streams: "
        b"for each stream key an ID, '+', or '$' must be specified.\r\n"
    )
    assert client.call("XREAD", "STREAMS", "s", "t", "0") == unbalanced
    assert client.call("XREAD", "STREAMS", "s", "0", "0") == unbalanced
    out_of_range = b"-ERR timeout is out of range\r\n"
    assert client.call("XREAD", "BLOCK", "9223372036854775807", "STREAMS", "s", "$") == out_of_range
    client.call("XADD", "s", "12-18446744073709551615", "f", "v")
    small = b"-ERR The ID specified in XADD is equal or smaller than the target stream top item\r\n"
    assert client.call("XADD", "s", "12-*", "f", "v") == small


def test_xadd_trims_what_it_adds(stocked: Pair) -> None:
    stocked.both("XADD", "s", "MAXLEN", "0", "20-0", "f", "v")
    stocked.both("XLEN", "s")
    stocked.both("XADD", "s", "20-0", "f", "v")
    stocked.both("XADD", "s", "MINID", "30", "25-0", "f", "v")
    stocked.both("XLEN", "s")
    stocked.both("XADD", "u", "MAXLEN", "~", "0", "1-0", "f", "v")
    stocked.both("XINFO", "STREAM", "nokey")


Small = st.tuples(st.integers(0, 6), st.integers(0, 2)).map(lambda pair: f"{pair[0]}-{pair[1]}")


def log_machine(pair: Pair) -> type[RuleBasedStateMachine]:
    class LogMachine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            pair.both("FLUSHALL")

        @rule(key=st.sampled_from("st"), new_id=Small, value=st.sampled_from(["", "1", "x" * 80]))
        def add(self, key: str, new_id: str, value: str) -> None:
            pair.both("XADD", key, new_id, "field", value)

        @rule(key=st.sampled_from("st"), ms=st.integers(0, 6))
        def add_next(self, key: str, ms: int) -> None:
            pair.both("XADD", key, f"{ms}-*", "field", "v")

        @rule(key=st.sampled_from("st"), ids=st.lists(Small, min_size=1, max_size=3))
        def delete(self, key: str, ids: list[str]) -> None:
            pair.both("XDEL", key, *ids)

        @rule(
            key=st.sampled_from("st"),
            threshold=st.one_of(
                st.tuples(st.just("MAXLEN"), st.integers(0, 4).map(str)),
                st.tuples(st.just("MINID"), Small),
            ),
            operator=st.sampled_from(["=", "~"]),
        )
        def trim(self, key: str, threshold: tuple[str, str], operator: str) -> None:
            pair.both("XTRIM", key, threshold[0], operator, threshold[1])

        @rule(key=st.sampled_from("st"), new_id=Small, added=st.integers(0, 9), deleted=Small)
        def set_id(self, key: str, new_id: str, added: int, deleted: str) -> None:
            request = ("XSETID", key, new_id, "ENTRIESADDED", added, "MAXDELETEDID", deleted)
            ours = pair.ours.call(*request)
            if b"smaller than current max_deleted_entry_id" not in ours:  # Redis 7.0 has no such
                assert ours == pair.real.call(*request), request

        @rule(key=st.sampled_from("st"))
        def remove(self, key: str) -> None:
            pair.both("DEL", key)

        @rule(source=st.sampled_from("st"), other=st.sampled_from("st"))
        def copy(self, source: str, other: str) -> None:
            pair.both("COPY", source, other, "REPLACE")

        @rule(key=st.sampled_from("st"), start=Small, end=Small, count=st.integers(0, 3))
        def read(self, key: str, start: str, end: str, count: int) -> None:
            pair.both("XRANGE", key, start, end, "COUNT", count)
            pair.both("XREVRANGE", key, end, f"({start}")
            pair.both("XREAD", "COUNT", count, "STREAMS", "s", "t", start, end)
            pair.both("XLEN", key)
            self.figures(key)

        def figures(self, key: str) -> None:
            ours = pair.ours.call("XINFO", "STREAM", key)
            real = pair.real.call("XINFO", "STREAM", key)
            for name in (b"length", b"radix-tree-keys", b"entries-added"):
                found = re.findall(name + rb"\r\n:(\d+)", real)
                assert re.findall(name + rb"\r\n:(\d+)", ours) == found, (key, name)
            for name in (b"last-generated-id", b"max-deleted-entry-id", b"recorded-first-entry-id"):
                found = re.findall(name + rb"\r\n\$\d+\r\n([0-9-]+)", real)
                assert re.findall(name + rb"\r\n\$\d+\r\n([0-9-]+)", ours) == found, (key, name)

    return LogMachine


def test_the_log_machine(pair: Pair) -> None:
    for option in ("stream-node-max-entries", "3"), ("stream-node-max-bytes", "4096"):
        pair.both("CONFIG", "SET", *option)
    try:
        run_state_machine_as_test(
            log_machine(pair),
            settings=settings(
                max_examples=drawn(60),
                stateful_step_count=40,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        pair.both("CONFIG", "SET", "stream-node-max-entries", "100")
