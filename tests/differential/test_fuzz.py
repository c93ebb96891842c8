"""The fuzz that compares us with a real server under one clock; ``make fuzz`` is its long form."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.server.commands.documentation import documentation
from support.campaigns import drawn
from support.fuzz.calls import Calls
from support.fuzz.duel import Duel, Fuzz, script
from support.fuzz.families import FAMILIES
from support.fuzz.known import SPARED, levelled, turns_large, waits
from support.fuzz.payloads import Payloads, payloads_in
from support.fuzz.play import Difference
from support.fuzz.shrink import shortest, smallest
from support.fuzz.steps import Sessions, Step, call, drop, tick
from support.judges import missing, present

DOCS = documentation()


def test_sessions_are_of_their_seed() -> None:
    names = set(DOCS)
    assert Sessions(5, names).session(3, 200) == Sessions(5, names).session(3, 200)
    assert Sessions(5, names).session(3, 200) != Sessions(6, names).session(3, 200)


def test_every_command_is_called() -> None:
    """Those in the documentation, not those in a list by hand."""
    calls = Calls(Random(1), Sessions(1, set(DOCS)).names)
    containers = {name.partition("|")[0] for name in DOCS if "|" in name}
    assert calls.names == set(DOCS) - containers - set(SPARED)
    for name in calls.names:
        words = calls.right(name)
        assert b"|".join(words[: name.count("|") + 1]).lower() == name.encode()


def test_what_fails_is_made_small() -> None:
    assert smallest(list(range(40)), lambda parts: {3, 17, 18} <= set(parts)) == [3, 17, 18]
    assert smallest([1], lambda parts: True) == []

    def fails(steps: list[Step]) -> bool:
        return any(step.words[:1] == (b"GET",) for step in steps) and tick(5) in steps

    steps = [call(0, b"SET", b"k", b"v"), tick(5), drop(1), call(1, b"GET", b"k", b"l")]
    assert shortest(steps, fails) == [tick(5), call(1, b"GET")]


@pytest.mark.judge
def test_a_difference_is_found_and_told(duel: Duel) -> None:
    """By a command that only we have, between others."""
    steps = [call(0, b"XADD", b"s", b"1-1", b"f", b"v"), tick(1), call(1, b"XCOUNT", b"s", b"-")]
    found = duel.fails([*steps, call(0, b"GET", b"k")])
    assert isinstance(found, Difference)
    assert found.place == 2
    assert found.ours == b"-ERR wrong number of arguments for 'xcount' command\r\n"
    assert found.real.startswith(b"-ERR unknown command 'XCOUNT'")
    small = duel.shrunk([*steps, call(0, b"GET", b"k")], found)
    assert small is not None
    assert small[0] == [call(1, b"XCOUNT")]
    told = script(duel.judge, small[0])
    assert "        call(1, b'XCOUNT'),\n    ],\n" in told
    compile(told, "told", "exec")


@pytest.mark.judge
def test_waits_events_and_listeners_are_compared(duel: Duel) -> None:
    """A session with all that can go on at once, in which the servers agree."""
    duel.player.play(
        [
            call(0, b"HELLO", b"3"),
            call(0, b"XGROUP", b"CREATE", b"s", b"g", b"$", b"MKSTREAM"),
            call(2, b"XREADGROUP", b"GROUP", b"g", b"c", b"BLOCK", b"0", b"STREAMS", b"s", b">"),
            call(3, b"SUBSCRIBE", b"a"),
            call(1, b"WATCH", b"k"),
            call(1, b"MULTI"),
            call(1, b"SET", b"k", b"v", b"PX", b"5"),
            call(0, b"XADD", b"s", b"*", b"f", b"v"),
            call(1, b"PUBLISH", b"a", b"hello"),
            call(1, b"EXEC"),
            tick(4),
            call(0, b"GET", b"k"),
            tick(2),
            call(0, b"GET", b"k"),
            call(2, b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"),
            call(0, b"CLIENT", b"UNBLOCK", b"{id:2}", b"ERROR"),
            drop(2),
        ]
    )


@pytest.mark.judge
@pytest.mark.parametrize("server", [0, 1])
def test_payloads_are_restored(duel: Duel, server: int) -> None:
    """What either server has dumped both restore; what is damaged, neither."""
    made = "SET k text|RPUSH l a b 1|HSET h f v|HPEXPIRE h 100 FIELDS 1 f|SADD e 1 2|SADD x a b"
    made += "|ZADD z 1.5 a 2 b|XADD s 1-1 f v|XGROUP CREATE s g 0|PFADD p a|ARSET a 5 v"
    keys = [b"k", b"l", b"h", b"e", b"x", b"z", b"s", b"p", b"a"]
    steps = [call(0, *words.split()) for words in made.encode().split(b"|")]
    for key in keys:
        steps.append(call(0, b"DUMP", key))
        steps.append(call(0, b"RESTORE", b"to " + key, b"0", b"{payload:%d:0:0}" % server))
        steps.append(call(0, b"RESTORE", key, b"50", b"{payload:%d:0:0}" % server, b"REPLACE"))
        for damage in range(1, 30):
            word = b"{payload:%d:0:%d}" % (server, damage)
            steps.append(call(1, b"RESTORE", b"damaged", b"0", word))
        for moment in (b"1", b"9223372036854775807"):
            passed = (b"RESTORE", b"passed", moment, b"{payload:%d:0:0}" % server)
            steps += [call(1, *passed), call(1, *passed, b"ABSTTL", b"REPLACE")]
    duel.player.play([*steps, tick(51)])


def test_payloads_are_named_before_they_are_there() -> None:
    payloads = Payloads()
    assert payloads.filled_in(b"{payload:0:0:0}") == b"no payload"
    assert not payloads_in(b"$-1\r\n", b"$-1\r\n")
    assert not payloads_in(b"<closed>", b"$1\r\na\r\n")
    assert payloads_in(b"$1\r\na\r\n", b"$1\r\nb\r\n")
    payloads.note(b"$12\r\nours12345678\r\n", b"$12\r\nreal12345678\r\n")
    assert payloads.filled_in(b"{payload:0:0:0}") == b"ours12345678"
    assert payloads.filled_in(b"{payload:1:0:0}") == b"real12345678"
    assert payloads.filled_in(b"{payload:1:1:0}") == b"no payload"
    assert payloads.filled_in(b"payload") == b"payload"
    harmed = {payloads.filled_in(b"{payload:0:0:%d}" % damage) for damage in range(1, 40)}
    assert b"ours12345678" not in harmed
    assert len(harmed) > 10


def test_drills_wait_for_nothing() -> None:
    """Calls of one family, sent at once; what depends on chance is undone."""
    names = {name for name in DOCS if DOCS[name].group in ("string", "generic")}
    steps = Sessions(5, names).drill(3, 200)
    assert steps[0].alone
    assert not any(waits(list(step.words)) for step in steps if step.words)
    assert sum(step.held for step in steps) > 150


def test_servers_are_made_alike_after_chance() -> None:
    assert levelled([b"spop", b"k", b"2"]) == (b"DEL", b"k")
    assert levelled([b"SPOP"]) is None
    assert turns_large((b"SADD", b"k", b"x" * 65))
    assert not turns_large((b"RESTORE", b"k", b"0", b"x" * 65))
    assert turns_large((b"CONFIG", b"SET", b"set-max-intset-entries", b"5"))
    assert not turns_large((b"SADD", b"k", b"x" * 64))


@pytest.fixture(scope="module")
def older_duel() -> Iterator[Duel]:
    program = next((judge.program() for judge in present() if judge.follows == (8, 0)), None)
    if program is None:
        missing("no Redis 8.0: `make judges` fetches it")
    with Duel(program) as duel:
        yield duel


@pytest.mark.judge
def test_what_an_older_judge_lacks_is_not_called(duel: Duel, older_duel: Duel) -> None:
    assert {"arset", "himport|set", "dump"}.isdisjoint(older_duel.names())
    assert {"arset", "himport|set", "dump"} <= duel.names()
    for words, known in (
        ("set k v IFEQ w", False), ("set k v XX", True), ("set k ifeq", False),
        ("xadd s IDMPAUTO p * f v", False), ("xadd s NOMKSTREAM * f v", True),
        ("hexpire h 5 NX FIELDS 1 f", True), ("hexpire h 5 FIELDS 1 f NX", False),
        ("hexpire h 0 FIELDS 1 f", False), ("hsetex h FNX EX 5 FIELDS 1 f v", True),
        ("hgetex FIELDS FIELDS 1 f", True), ("hgetex FIELDS 1 f", False),
        ("set k v PXAT 1800000000001", False), ("set k v PXAT 1900000000000", True),
        ("zcount z (0x10 1", False), ("zcount z 1 (2", True),
        ("zrange z 0 1 byscore limit -1 2", False), ("", True),
    ):  # fmt: skip
        call = tuple(words.encode().split())
        assert older_duel.older.lacks(call) != known, words
        assert not duel.older.lacks(call)


@pytest.mark.slow
@pytest.mark.judge
@pytest.mark.parametrize("family", ["list", "hash", "set", "sorted-set", "string", "stream"])
def test_drills_beside_an_older_judge(older_duel: Duel, family: str) -> None:
    fuzz = Fuzz(older_duel, seed=1, only=[family])
    fuzz.run(4_000, drills=True)
    assert not fuzz.scripts, fuzz.scripts[0]


@pytest.mark.slow
@pytest.mark.judge
@pytest.mark.parametrize("family", [*FAMILIES, "string", "stream"])
def test_drills_by_chance(duel: Duel, family: str) -> None:
    fuzz = Fuzz(duel, seed=1, only=[family])
    fuzz.run(drawn(8_000), drills=True)
    assert not fuzz.scripts, fuzz.scripts[0]


@pytest.mark.slow
@pytest.mark.judge
def test_sessions_by_chance(duel: Duel) -> None:
    fuzz = Fuzz(duel, seed=1)
    fuzz.run(drawn(12_000))
    assert not fuzz.scripts, fuzz.scripts[0]
