"""What data takes is kept exactly: the sum is what counting all anew comes to."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.server.clients.session import NOBODY, Session
from headrace.server.config.config import Config
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.execute import execute
from headrace.server.dispatch.rows import TABLE, WRITE
from headrace.server.durability.durability import Durability
from headrace.server.eviction import RoomMaking
from headrace.server.settings import Settings
from headrace.server.state import Server
from support.all_types import NEWER, VALUES
from support.client import to_bytes
from support.fuzz.calls import Calls
from support.fuzz.families import filled
from support.fuzz.known import avoided, huge, waits

WRITERS = {name.decode() for name, row in TABLE.items() if row.flags & WRITE}
READERS = {"get", "lrange", "lindex", "hgetall", "smembers", "zrange", "xrange", "sort", "pfcount"}
LEFT_OUT = {"migrate"}  # it waits for another server
FAMILIES = ("list", "hash", "set", "sorted-set")


class Kept:
    """A server with a limit that is never reached, and a client of it."""

    def __init__(self) -> None:
        self.server = Server(Config())
        Settings(self.server)
        self.dispatcher = Dispatcher(self.server, Durability(self.server))
        self.server.make_evicting = lambda: RoomMaking(self.dispatcher)
        self.session = Session(1, self.server.data.dbs[0], 0, NOBODY)
        self.run([b"CONFIG", b"SET", b"maxmemory", b"100gb"])
        self.run([b"PING"])
        assert self.server.data.sized

    def run(self, words: list[bytes]) -> None:
        self.server.clock.refresh()
        self.session.out.clear()
        execute(self.dispatcher, self.session, [list(words)], 0, 1)
        self.server.changes.end_command()

    def check(self) -> None:
        """The sum is what all keys come to now, and so is each part of it."""
        total = self.server.account.keys_bytes()
        counted = 0
        for db in self.server.data.dbs:
            table = db.table
            assert table.unsized == 0
            for slot in range(table.count):
                counted += int(table.bytes_at(slot))
            lasting = [entry for entry in db.every() if hasattr(entry.value, "groups")]
            assert table.lasting == len(lasting)
        assert total == counted


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=40)
def test_random_commands_of_all_types(seed: int, many: bool) -> None:
    kept = Kept()
    chance = random.Random(seed)
    calls = Calls(chance, (WRITERS | READERS) - LEFT_OUT, spoilt=0.05)
    if many:
        for family in FAMILIES:
            for words in filled(family, chance):
                kept.run(words)
    for _ in range(150):
        words = calls.next()
        if not words or waits(words) or huge(words) or avoided(tuple(words)):
            continue
        kept.run(words)
        kept.check()
    kept.run([b"FLUSHALL"])
    assert kept.server.account.keys_bytes() == 0
    kept.check()


@pytest.mark.parametrize("name", [*VALUES, *NEWER])
def test_values_of_every_type(name: str) -> None:
    kept = Kept()
    requests = VALUES[name] if name in VALUES else NEWER[name][1]
    for request in requests:
        kept.run([to_bytes(word) for word in request])
        kept.check()
    whole = kept.server.account.keys_bytes()
    kept.run([b"COPY", b"k", b"twin"])
    kept.check()
    assert kept.server.account.keys_bytes() >= whole * 19 // 10
    kept.run([b"DEL", b"twin"])
    kept.run([b"RENAME", b"k", b"other"])
    kept.check()
    kept.run([b"MOVE", b"other", b"3"])
    kept.check()
    kept.run([b"SWAPDB", b"0", b"3"])
    kept.check()
    kept.run([b"EXPIRE", b"other", b"100"])
    kept.check()
    kept.run([b"PERSIST", b"other"])
    kept.run([b"UNLINK", b"other"])
    kept.check()
    assert kept.server.account.keys_bytes() == 0


def test_streams() -> None:
    kept = Kept()
    for number in range(700):
        kept.run([b"XADD", b"s", b"%d-1" % (number + 1), b"f", b"v%d" % number])
        if number % 50 == 0:
            kept.check()
    kept.run([b"XGROUP", b"CREATE", b"s", b"g", b"0"])
    kept.run([b"XREADGROUP", b"GROUP", b"g", b"c", b"COUNT", b"300", b"STREAMS", b"s", b">"])
    kept.check()
    pending = kept.server.account.keys_bytes()
    kept.run([b"XACK", b"s", b"g", *[b"%d-1" % number for number in range(1, 200)]])
    kept.check()
    assert kept.server.account.keys_bytes() < pending
    for number in range(100, 250):
        kept.run([b"XDEL", b"s", b"%d-1" % number])
        kept.check()
    for most in (b"300", b"101", b"7", b"0"):
        kept.run([b"XTRIM", b"s", b"MAXLEN", b"=", most])
        kept.check()
    kept.run([b"XADD", b"s", b"IDMP", b"p", b"1", b"*", b"f", b"v"])
    kept.check()


def test_keys_that_are_there_are_counted_in_slices() -> None:
    kept = Kept()
    kept.run([b"CONFIG", b"SET", b"maxmemory", b"0"])
    for number in range(3000):
        kept.run([b"SET", b"key:%d" % number, b"x" * 50])
    plain = kept.server.account.keys_bytes()
    kept.run([b"CONFIG", b"SET", b"maxmemory", b"100gb"])
    kept.run([b"PING"])
    account = kept.server.account
    assert account.is_counting()
    assert abs(account.keys_bytes() - plain) < plain // 100  # some stand for the others
    kept.run([b"DEL", b"key:1", b"key:2999"])
    kept.run([b"SET", b"new", b"x"])
    while account.is_counting():
        account.count_some()
    kept.check()
    assert kept.server.data.dbs[0].table.bytes == account.keys_bytes()


def test_without_a_limit_many_keys_are_judged_by_some() -> None:
    kept = Kept()
    kept.run([b"CONFIG", b"SET", b"maxmemory", b"0"])
    account = kept.server.account
    for number in range(10_001):
        kept.run([b"SET", b"key:%05d" % number, b"x"])
    judged = account.keys_bytes()
    kept.run([b"DEL", b"key:00000"])
    exact = account.keys_bytes()
    assert abs(judged - exact) < exact // 50
    for number in range(5000):
        kept.run([b"DEL", b"key:%05d" % number])
    assert account.keys_bytes() < exact * 6 // 10
    kept.run([b"FLUSHALL"])
    assert account.keys_bytes() == 0
