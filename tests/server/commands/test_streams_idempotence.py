"""Idempotent production over the wire: options, limits, time, and what a repeat leaves alone."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest
from conftest import Factory

from support.client import Argument, RawClient, Status, WireError
from support.clock import Clock
from support.process import ServerProcess
from support.scene import Scene
from support.waiting import DEADLINE_S, wait_until

FAR_MS = 9_999_999_999_999
DEFAULTS = {"stream-idmp-duration": 100, "stream-idmp-maxsize": 100}
INVALID_ID = b"ERR Invalid stream ID specified as stream command argument"
TWICE = b"ERR syntax error, IDMP/IDMPAUTO specified multiple times"
WITH_ID = b"ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs"
ARITY = b"ERR wrong number of arguments for 'xadd' command"
NOT_AN_INTEGER = b"ERR value is not an integer or out of range"
SYNTAX = b"ERR syntax error"
NO_KEY = b"ERR no such key"
WRONGTYPE = b"WRONGTYPE Operation against a key holding the wrong kind of value"
DURATION_RANGE = b"ERR IDMP-DURATION must be between 1 and 86400 seconds"
MAXSIZE_RANGE = b"ERR IDMP-MAXSIZE must be between 1 and 10000 entries"


@pytest.fixture(params=[False, True], ids=["RESP2", "RESP3"])
def c(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    """A connection in either protocol."""
    with server.client(resp3=request.param) as connection:
        yield connection


@pytest.fixture
def scene(server: ServerProcess) -> Iterator[Scene]:
    there = Scene(server)
    yield there
    there.close()


def add(client: RawClient, key: str, pid: Argument, iid: Argument, *more: Argument) -> bytes:
    """XADD with IDMP; the ID."""
    reply = client.call_parsed("XADD", key, "IDMP", pid, iid, *(more or ("*", "f", "v")))
    assert isinstance(reply, bytes), reply
    return reply


def facts(client: RawClient, key: str, *full: str) -> dict[bytes, object]:
    """Return what XINFO STREAM tells."""
    reply = client.call_parsed("XINFO", "STREAM", key, *full)
    if isinstance(reply, dict):
        return reply
    assert isinstance(reply, list), reply
    return dict(zip(reply[::2], reply[1::2], strict=True))


def counters(client: RawClient, key: str) -> tuple[object, ...]:
    """Producers and iids tracked, iids added, duplicates."""
    told = facts(client, key)
    return tuple(
        told[name] for name in (b"pids-tracked", b"iids-tracked", b"iids-added", b"iids-duplicates")
    )


def limits(client: RawClient, key: str) -> tuple[object, object]:
    told = facts(client, key)
    return told[b"idmp-duration"], told[b"idmp-maxsize"]


def forgotten(client: RawClient, key: str) -> bool:
    return counters(client, key)[:2] == (0, 0)


# What is said


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("IDMP p i * f", ARITY),
        ("IDMP p i *", ARITY),
        ("IDMP p i * f v g", ARITY),
        ("IDMPAUTO p * f", ARITY),
        ("IDMPAUTO p * f v g", ARITY),
        ("IDMP p i", ARITY),
        ("MAXLEN 1 IDMP p", INVALID_ID),  # too short for IDMP, which is then taken for the ID
        ("IDMPAUTO p i", INVALID_ID),
        ("IDMP p * f v", INVALID_ID),  # the iid is *, the ID is f
        ("IDMPAUTO * f v", INVALID_ID),  # the pid is *, the ID is f
        ("IDMP p i f v", INVALID_ID),
        ("IDMPX p i * f v", INVALID_ID),
        ("IDMP p i FOO * f v", INVALID_ID),
        ("IDMP p i IDMP p i * f v", TWICE),
        ("IDMP p i IDMPAUTO p * f v", TWICE),
        ("IDMPAUTO p IDMP p i * f v", TWICE),
        ("IDMPAUTO p IDMPAUTO p * f v", TWICE),
        ("idmp p i MAXLEN 5 Idmpauto p * f v", TWICE),
        ("IDMP p i IDMP '' i * f v", TWICE),
        ("IDMP '' i * f v", b"ERR syntax error, IDMP requires a non-empty producer ID"),
        ("IDMP '' '' * f v", b"ERR syntax error, IDMP requires a non-empty producer ID"),
        ("IDMP p '' * f v", b"ERR syntax error, IDMP requires a non-empty idempotent ID"),
        ("idmp p '' MAXLEN 1 * f v", b"ERR syntax error, IDMP requires a non-empty idempotent ID"),
        ("IDMPAUTO '' * f v", b"ERR syntax error, IDMPAUTO requires a non-empty producer ID"),
        ("MAXLEN 1 IDMPAUTO '' * f v",
         b"ERR syntax error, IDMPAUTO requires a non-empty producer ID"),
        ("IDMP p i 1-1 f v", WITH_ID),
        ("IDMP p i 1 f v", WITH_ID),
        ("IDMP p i 1-* f v", WITH_ID),
        ("IDMP p i 0-0 f v", WITH_ID),
        ("IDMPAUTO p 1-1 f v", WITH_ID),
        ("IDMPAUTO p 5-* f v", WITH_ID),
        ("MAXLEN 3 IDMPAUTO p 5-5 f v", WITH_ID),
        ("IDMP p i x-y f v", INVALID_ID),  # an ID that is none comes first
        ("IDMP p i 1-1 f", WITH_ID),  # and the ID before the fields
        ("LIMIT 5 IDMP p i 1-1 f v", WITH_ID),  # and before LIMIT
        ("LIMIT 5 IDMP p i * f v",
         b"ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"),
        ("MAXLEN 5 LIMIT 5 IDMP p i * f v",
         b"ERR syntax error, LIMIT cannot be used without the special ~ option"),
        ("MAXLEN -1 IDMP '' i * f v", b"ERR The MAXLEN argument must be >= 0."),  # left to right
        ("MAXLEN 1 IDMP p i MINID 1 * f v",
         b"ERR syntax error, MAXLEN and MINID options at the same time are not compatible"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("there", [False, True], ids=["missing", "there"])
def test_refusals_change_nothing(c: RawClient, words: str, line: bytes, there: bool) -> None:
    if there:
        add(c, "s", "p", "other")
        before = c.call("XINFO", "STREAM", "s", "FULL"), c.call("XIDMP", "PRODUCERS", "s")
    argv = [b"" if word == "''" else word.encode() for word in words.split()]
    assert c.call_parsed("XADD", "s", *argv) == WireError(line)
    if there:
        after = c.call("XINFO", "STREAM", "s", "FULL"), c.call("XIDMP", "PRODUCERS", "s")
        assert after == before
    else:
        assert c.call("EXISTS", "s") == b":0\r\n"


def test_wrong_type(c: RawClient) -> None:
    c.call("SET", "s", "text")
    for words in (("IDMP", "p", "i"), ("IDMPAUTO", "p")):
        assert c.call_parsed("XADD", "s", *words, "*", "f", "v") == WireError(WRONGTYPE)
    for command in (
        ("XCFGSET", "s", "IDMP-MAXSIZE", 5),
        ("XCFGSET", "s", "nonsense"),
        ("XIDMPRECORD", "s", "p", "i", "1-1"),
        ("XIDMP", "CFGSET", "s", "MAXSIZE", 5),
        ("XIDMP", "CFGGET", "s"),
        ("XIDMP", "PRODUCERS", "s"),
    ):
        assert c.call_parsed(*command) == WireError(WRONGTYPE), command
    assert c.call("GET", "s") == b"$4\r\ntext\r\n"


OPTIONS = [
    ("NOMKSTREAM",),
    ("keepref",),
    ("IDMP", "p", "i"),
    ("MAXLEN", "~", "100", "LIMIT", "10"),
]


def test_options_in_any_order(c: RawClient) -> None:
    """Whatever the order and the spelling, it is the same request: only the first adds."""
    c.call("XADD", "s", "1-1", "f", "v")
    ids = set()
    for order in itertools.permutations(OPTIONS):
        words = list(itertools.chain(*order))
        ids.add(c.call("XADD", "s", *words, "*", "f", "v"))
        ids.add(c.call("XADD", "s", *[word.lower() for word in words], "*", "g", "w"))
    assert len(ids) == 1
    assert counters(c, "s") == (1, 1, 1, 47)
    automatic = {
        c.call("XADD", "s", *itertools.chain(*order), "*", "f", "v")
        for order in itertools.permutations([("DELREF",), ("IdmpAuto", "q"), ("MINID", "=", "0-1")])
    }
    assert len(automatic) == 1


@pytest.mark.parametrize(
    "iid", ["1", "*", "-", "+", "$", "IDMP", "MAXLEN", b"\0\r\n\xff", "x" * 65536]
)
def test_an_iid_is_any_bytes(c: RawClient, iid: str | bytes) -> None:
    first = add(c, "s", "p", iid)
    assert add(c, "s", "p", iid) == first
    assert add(c, "s", iid, "p") != first
    assert counters(c, "s") == (2, 2, 2, 1)


# What a repeat is


def test_a_repeat_answers_the_first_id(c: RawClient) -> None:
    first = add(c, "s", "p", "i", "*", "f", "1")
    assert add(c, "s", "p", "i", "*", "f", "2", "g", "3") == first
    assert add(c, "s", "p", "j", "*", "f", "4") != first
    assert c.call_parsed("XRANGE", "s", "-", "+", "COUNT", 1) == [[first, [b"f", b"1"]]]
    assert c.call_parsed("XLEN", "s") == 2
    assert counters(c, "s") == (1, 2, 2, 1)
    assert facts(c, "s")[b"entries-added"] == 2


def test_producers_know_nothing_of_each_other(c: RawClient) -> None:
    ids = {add(c, "s", pid, "i") for pid in ("p", "q", b"\0", "P", "p ")}
    assert len(ids) == 5
    assert {add(c, "s", pid, "i") for pid in ("p", "q", b"\0", "P", "p ")} == ids
    add(c, "t", "p", "i")  # nor do streams
    assert c.call_parsed("XLEN", "t") == 1
    assert counters(c, "s") == (5, 5, 5, 5)


@pytest.mark.parametrize("gone", ["XDEL", "XDELEX", "XTRIM", "XACKDEL", "XSETID"])
def test_the_id_outlives_its_entry(c: RawClient, gone: str) -> None:
    first = add(c, "s", "p", "i")
    c.call("XGROUP", "CREATE", "s", "g", 0)
    c.call("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">")
    end = {
        "XDEL": ("XDEL", "s", first),
        "XDELEX": ("XDELEX", "s", "IDS", 1, first),
        "XTRIM": ("XTRIM", "s", "MAXLEN", 0),
        "XACKDEL": ("XACKDEL", "s", "g", "IDS", 1, first),
        "XSETID": ("XSETID", "s", f"{FAR_MS}-5"),
    }[gone]
    c.call(*end)
    assert add(c, "s", "p", "i") == first
    assert c.call_parsed("XLEN", "s") == (1 if gone == "XSETID" else 0)
    assert counters(c, "s") == (1, 1, 1, 1)


def test_a_repeat_trims_nothing(c: RawClient) -> None:
    for number in range(5):
        add(c, "s", "p", number)
    assert add(c, "s", "p", 0, "MAXLEN", 1, "*", "f", "v")
    assert c.call_parsed("XLEN", "s") == 5
    assert add(c, "s", "p", 5, "MAXLEN", 2, "*", "f", "v")
    assert c.call_parsed("XLEN", "s") == 2
    assert counters(c, "s") == (1, 6, 6, 1)


def test_an_entry_that_is_trimmed_at_once_is_known(c: RawClient) -> None:
    first = add(c, "s", "p", "i", "MAXLEN", 0, "*", "f", "v")
    assert c.call_parsed("XLEN", "s") == 0
    assert add(c, "s", "p", "i") == first


def test_nomkstream(c: RawClient) -> None:
    for words in (("IDMP", "p", "i"), ("IDMPAUTO", "p")):
        assert c.call_parsed("XADD", "s", "NOMKSTREAM", *words, "*", "f", "v") is None
    assert c.call("EXISTS", "s") == b":0\r\n"
    first = add(c, "s", "p", "i")
    assert c.call_parsed("XADD", "s", "NOMKSTREAM", "IDMP", "p", "i", "*", "f", "v") == first


def test_what_cannot_be_added_is_not_known(c: RawClient) -> None:
    c.call("XADD", "s", "18446744073709551615-18446744073709551615", "f", "v")
    exhausted = WireError(
        b"ERR The stream has exhausted the last possible ID, unable to add more items"
    )
    for words in (("IDMP", "p", "i"), ("IDMPAUTO", "p")):
        assert c.call_parsed("XADD", "s", *words, "*", "f", "v") == exhausted
    assert counters(c, "s") == (0, 0, 0, 0)
    assert c.call_parsed("XIDMP", "PRODUCERS", "s") == []


def test_nobody_hears_of_a_repeat(scene: Scene, client: RawClient) -> None:
    """No event, no WATCH, no reader; but one change, as Redis counts."""
    add(client, "s", "p", "i")
    listener = scene.waiter()
    client.call("CONFIG", "SET", "notify-keyspace-events", "KEA")
    try:
        listener.call("PSUBSCRIBE", "__key*__:*")
        reader = scene.waiter()
        scene.block(reader, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        watcher = scene.waiter()
        watcher.call("WATCH", "s")
        changes = scene.figure("rdb_changes_since_last_save", "persistence")
        add(client, "s", "p", "i", "MAXLEN", 0, "*", "f", "v")
        assert scene.figure("rdb_changes_since_last_save", "persistence") == changes + 1
        assert watcher.pipeline(("MULTI",), ("PING",), ("EXEC",))[-1] == b"*1\r\n+PONG\r\n"
        assert scene.blocked() == 1
        client.call("XCFGSET", "s", "IDMP-MAXSIZE", 7)
        client.call("XADD", "t", "1-1", "f", "v")
        client.call("XIDMPRECORD", "t", "p", "i", "1-1")
        new = add(client, "s", "p", "j")
        assert new in reader.read()
        events = [listener.read_parsed() for _ in range(4)]
        assert [event[3] for event in events if isinstance(event, list)] == [
            b"xadd", b"t", b"xadd", b"s",
        ]  # fmt: skip
    finally:
        client.call("CONFIG", "SET", "notify-keyspace-events", "")


def test_groups_get_an_entry_once(c: RawClient) -> None:
    c.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    for _ in range(3):
        for number in range(4):
            add(c, "s", "p", number)
    c.call("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">")
    summary = c.call_parsed("XPENDING", "s", "g")
    assert isinstance(summary, list)
    assert summary[0] == 4


def test_in_a_transaction(c: RawClient) -> None:
    c.call("MULTI")
    for pid, iid in ("p1", "p2", "q1", "p1", "q2", "p3"):
        assert c.call("XADD", "s", "IDMP", pid, iid, "*", "f", "v") == b"+QUEUED\r\n"
    c.call("XCFGSET", "s", "IDMP-MAXSIZE", 100)
    c.call("XLEN", "s")
    ids = c.call_parsed("EXEC")
    assert isinstance(ids, list)
    assert ids[0] == ids[3]
    assert len(set(ids[:6])) == 5
    assert ids[6:] == [b"OK", 5]
    assert counters(c, "s") == (2, 5, 5, 1)


# IDs made of the content

VECTORS = {
    "6e95729ee727f0814aedffba55730079": ["f", "v"],
    "9d0899c463e3e6243812ff469716786e": ["field", ""],
    "1a9f7ebbaea1d61d30b6b8daa3e38da7": ["", ""],
    "56d921f6e826bd1bd78e58840d238837": ["field1", "a", "field2", "b", "field3", "c"],
    "e11c9a7017ea4839b25824062c8d8c50": ["amount", "100", "currency", "USD"],
    "242e89abe84b3bb5c44ecc0d6bacf753": ["a", "b", "a", "b"],
    "cd716045a670276ba36d448ef5da2ace": ["a", "bc"],
    "16a40e6f34744cb4db57cd2b7d195a72": ["ab", "c"],
    "55f0675b163024d29912c906531171a1": ["data", "x" * 10_000],
}


@pytest.mark.parametrize("iid", VECTORS)
def test_content_has_redis_iids(c: RawClient, iid: str) -> None:
    """IDMPAUTO and IDMP share the iids of a producer, so the one finds what the other added."""
    words = VECTORS[iid]
    first = c.call_parsed("XADD", "s", "IDMPAUTO", "p", "*", *words)
    assert c.call_parsed("XADD", "s", "IDMP", "p", bytes.fromhex(iid), "*", "any", "thing") == first
    assert c.call_parsed("XADD", "s", "IDMPAUTO", "q", "*", *words) != first
    added = add(c, "t", "p", bytes.fromhex(iid))
    pairs = list(zip(words[::2], words[1::2], strict=True))
    for order in itertools.permutations(pairs):
        mixed = itertools.chain(*order)
        assert c.call_parsed("XADD", "t", "IDMPAUTO", "p", "*", *mixed) == added


def test_content_that_differs(c: RawClient) -> None:
    contents = [
        ["a", "b"], ["a", "b", "a", "b"], ["b", "a"], ["a", "c"], ["ab", ""], ["", "ab"],
        ["a", "b", "c", "d"], ["a", "d", "c", "b"], ["a", "B"], ["a", "b "], ["n", "1"],
        ["n", "01"],
    ]  # fmt: skip
    ids = [c.call("XADD", "s", "IDMPAUTO", "p", "*", *words) for words in contents]
    assert len(set(ids)) == len(contents)
    assert counters(c, "s") == (1, len(contents), len(contents), 0)


# Limits


def test_the_oldest_go_first(c: RawClient) -> None:
    add(c, "s", "p", "before")
    assert c.call("XCFGSET", "s", "IDMP-MAXSIZE", 3) == b"+OK\r\n"
    ids = [add(c, "s", "p", number) for number in range(3)]
    assert [add(c, "s", "p", number) for number in range(3)] == ids  # which makes none younger
    add(c, "s", "q", 0)
    fourth = add(c, "s", "p", 3)
    assert add(c, "s", "p", 1) == ids[1]
    assert add(c, "s", "p", 2) == ids[2]
    assert add(c, "s", "p", 3) == fourth
    again = add(c, "s", "p", 0)
    assert again != ids[0]
    assert add(c, "s", "p", 1) != ids[1]  # 0 took its place
    assert add(c, "s", "p", 0) == again
    assert counters(c, "s")[:2] == (2, 4)


def test_a_limit_of_one(c: RawClient) -> None:
    c.call("XADD", "s", "1-1", "f", "v")
    c.call("XCFGSET", "s", "IDMP-MAXSIZE", 1)
    first = add(c, "s", "p", "i")
    assert add(c, "s", "p", "i") == first
    second = add(c, "s", "p", "j")
    assert add(c, "s", "p", "j") == second
    assert add(c, "s", "p", "i") not in (first, second)
    assert counters(c, "s") == (1, 1, 3, 2)


def test_the_greatest_limit(client: RawClient) -> None:
    """The last 10,000 are known, and not one more."""
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XCFGSET", "s", "IDMP-MAXSIZE", 10_000)
    ids: list[bytes] = []
    for start in range(0, 10_500, 500):
        words: list[tuple[Argument, ...]] = [
            ("XADD", "s", "IDMP", "p", number, "*", "f", "v")
            for number in range(start, start + 500)
        ]
        ids += client.pipeline(*words)
    assert counters(client, "s") == (1, 10_000, 10_500, 0)
    for number in (500, 501, 5_000, 10_499):
        reply = client.call("XADD", "s", "IDMP", "p", number, "*", "f", "v")
        assert reply == ids[number]
    assert client.call("XADD", "s", "IDMP", "p", 499, "*", "f", "v") not in ids
    assert client.call("XADD", "s", "IDMP", "p", 500, "*", "f", "v") not in ids


@pytest.mark.parametrize("resp3", [False, True])
def test_time_passes(fresh_server: Factory, settable_clock: Clock, resp3: bool) -> None:
    """Known for the duration, forgotten at most about a second later, with the producer."""
    server = fresh_server(environment=settable_clock.environment)
    with server.client(resp3=resp3) as client:
        known_for_two_seconds(client, settable_clock)


def known_for_two_seconds(c: RawClient, clock: Clock) -> None:
    c.call("XADD", "s", "1-1", "f", "v")
    c.call("XCFGSET", "s", "IDMP-DURATION", 2)
    first = add(c, "s", "p", "i")
    clock.advance(1999)
    assert add(c, "s", "p", "i") == first
    clock.advance(1001)
    wait_until(lambda: forgotten(c, "s"))
    assert c.call_parsed("XIDMP", "PRODUCERS", "s") == []
    second = add(c, "s", "p", "i")
    assert second != first
    assert add(c, "s", "p", "i") == second
    added = counters(c, "s")[2]
    assert added == 2


def test_what_is_too_old_is_not_known_however_late_it_is_forgotten(fresh_server: Factory) -> None:
    """With the cron at rest."""
    server = fresh_server("--enable-debug-command", "yes")
    with server.client() as client:
        client.call("XADD", "s", "1-1", "f", "v")
        client.call("XCFGSET", "s", "IDMP-DURATION", 1)
        client.call("DEBUG", "PAUSE-CRON", 1)
        first = add(client, "s", "p", "i")
        add(client, "s", "p", "j")
        wait_until(lambda: add(client, "s", "p", "i") != first)
        assert counters(client, "s")[:3] == (1, 2, 3)  # it took the old one's place
        client.call("DEBUG", "PAUSE-CRON", 0)
        wait_until(lambda: forgotten(client, "s"))


def test_only_what_is_due_is_forgotten(client: RawClient) -> None:
    for key, duration in (("short", 1), ("long", 1000)):
        client.call("XADD", key, "1-1", "f", "v")
        client.call("XCFGSET", key, "IDMP-DURATION", duration)
        for pid in ("p", "q"):
            add(client, key, pid, "i")
    wait_until(lambda: forgotten(client, "short"))
    assert counters(client, "long") == (2, 2, 2, 0)
    add(client, "short", "p", "i")
    assert counters(client, "short") == (1, 1, 3, 0)


@pytest.mark.parametrize("ahead", ["XSETID", "XADD"])
def test_a_stream_ahead_of_the_clock_forgets_too(client: RawClient, ahead: str) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XCFGSET", "s", "IDMP-DURATION", 1)
    if ahead == "XSETID":
        client.call("XSETID", "s", f"{FAR_MS}-7")
    else:
        client.call("XADD", "s", f"{FAR_MS}-7", "f", "v")
    first = add(client, "s", "p", "i")
    assert first == b"%d-8" % FAR_MS
    assert add(client, "s", "p", "i") == first
    wait_until(lambda: forgotten(client, "s"))
    assert add(client, "s", "p", "i") == b"%d-9" % FAR_MS


def test_many_are_forgotten_at_once(client: RawClient, server: ServerProcess) -> None:
    """Commands are served while it happens."""
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XCFGSET", "s", "IDMP-DURATION", 1, "IDMP-MAXSIZE", 10_000)
    for pid in range(20):
        words: list[tuple[Argument, ...]] = [
            ("XADD", "s", "IDMP", pid, number, "*", "f", "v") for number in range(300)
        ]
        client.pipeline(*words)
    assert counters(client, "s")[2] == 6_000

    def served_and_forgotten() -> bool:
        assert client.call("PING") == b"+PONG\r\n"
        return forgotten(client, "s")

    wait_until(served_and_forgotten)
    assert client.call_parsed("XLEN", "s") == 6_001


# Settings


@pytest.mark.parametrize("clears", [("IDMP-DURATION", 60), ("IDMP-MAXSIZE", 60)])
def test_another_value_forgets_everything(c: RawClient, clears: tuple[str, int]) -> None:
    first = add(c, "s", "p", "i")
    add(c, "s", "p", "i")
    add(c, "s", "q", "i")
    assert c.call("XCFGSET", "s", *clears) == b"+OK\r\n"
    assert counters(c, "s") == (0, 0, 2, 1)
    assert c.call_parsed("XIDMP", "PRODUCERS", "s") == []
    again = add(c, "s", "p", "i")
    assert again != first
    assert add(c, "s", "p", "i") == again
    assert c.call_parsed("XLEN", "s") == 3


def test_the_same_value_forgets_nothing(c: RawClient) -> None:
    first = add(c, "s", "p", "i")
    changes = (
        ("IDMP-DURATION", 100),
        ("IDMP-MAXSIZE", 100),
        ("IDMP-MAXSIZE", 100, "IDMP-DURATION", 100),
    )
    for change in changes:
        assert c.call("XCFGSET", "s", *change) == b"+OK\r\n"
    assert c.call("XIDMP", "CFGSET", "s", "DURATION", 100) == b"+OK\r\n"
    assert counters(c, "s") == (1, 1, 1, 0)
    assert add(c, "s", "p", "i") == first
    c.call("XCFGSET", "s", "IDMP-DURATION", 100, "IDMP-MAXSIZE", 99)  # one of two differs
    assert counters(c, "s") == (0, 0, 1, 1)
    assert limits(c, "s") == (100, 99)


REFUSED_LIMITS: list[tuple[str, bytes]] = [
    ("", b"ERR At least one parameter must be specified"),
    ("DURATION 0", DURATION_RANGE),
    ("DURATION -100", DURATION_RANGE),
    ("DURATION 86401", DURATION_RANGE),
    ("DURATION 9223372036854775807", DURATION_RANGE),
    ("DURATION 9223372036854775808", NOT_AN_INTEGER),
    ("MAXSIZE 0", MAXSIZE_RANGE),
    ("MAXSIZE -1", MAXSIZE_RANGE),
    ("MAXSIZE 10001", MAXSIZE_RANGE),
    *[(f"DURATION {word}", NOT_AN_INTEGER)
      for word in "A * - + 120-5 3.14 000 +5 '' 05 1e3 DURATION".split()],
    ("MAXSIZE x", NOT_AN_INTEGER),
    ("DURATION DURATION DURATION", NOT_AN_INTEGER),
    ("DURATION x MAXSIZE", NOT_AN_INTEGER),
    ("DURATION", SYNTAX),
    ("MAXSIZE", SYNTAX),
    ("NONSENSE", SYNTAX),
    ("NONSENSE 5", SYNTAX),
    ("DURATION 5 MAXSIZE", SYNTAX),
    ("DURATION 5 NONSENSE 5", SYNTAX),
    ("DURATION 5 DURATION", SYNTAX),
    ("DURATION 5 DURATION 5", b"ERR IDMP-DURATION specified multiple times"),
    ("MAXSIZE 5 DURATION 5 MAXSIZE 5", b"ERR IDMP-MAXSIZE specified multiple times"),
    ("DURATION 5 MAXSIZE 0", MAXSIZE_RANGE),  # and the first value is not set either
    ("MAXSIZE 5 DURATION 0", DURATION_RANGE),
]  # fmt: skip


@pytest.mark.parametrize("command", ["XCFGSET", "XIDMP CFGSET"])
@pytest.mark.parametrize(("words", "line"), REFUSED_LIMITS)
def test_refused_limits(client: RawClient, command: str, words: str, line: bytes) -> None:
    add(client, "s", "p", "i")
    argv: list[Argument] = [*command.split(), "s"]
    for word in words.split():
        today = command == "XCFGSET" and word in ("DURATION", "MAXSIZE")
        argv.append(f"IDMP-{word}" if today else "" if word == "''" else word)
    assert client.call_parsed(*argv) == WireError(line)
    assert counters(client, "s") == (1, 1, 1, 0)
    assert limits(client, "s") == (100, 100)
    argv[argv.index("s")] = "none"
    assert client.call_parsed(*argv) == WireError(NO_KEY)  # before the arguments are read
    assert client.call("EXISTS", "none") == b":0\r\n"


def test_each_spelling_has_its_own_words(client: RawClient) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    assert client.call_parsed("XCFGSET", "s", "DURATION", 5) == WireError(SYNTAX)
    assert client.call_parsed("XIDMP", "CFGSET", "s", "IDMP-DURATION", 5) == WireError(SYNTAX)
    assert client.call("xcfgset", "s", "idmp-Maxsize", 5, "Idmp-duration", 6) == b"+OK\r\n"
    assert client.call("xidmp", "cfgset", "s", "duration", 7) == b"+OK\r\n"
    assert limits(client, "s") == (7, 5)


@pytest.mark.parametrize("value", [1, 86_400])
def test_bounds_of_the_duration(client: RawClient, value: int) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    assert client.call("XIDMP", "CFGSET", "s", "DURATION", value) == b"+OK\r\n"
    assert limits(client, "s") == (value, 100)
    client.call("CONFIG", "SET", "stream-idmp-duration", value)
    try:
        client.call("XADD", "t", "1-1", "f", "v")
        assert limits(client, "t") == (value, 100)
    finally:
        client.call("CONFIG", "SET", "stream-idmp-duration", 100)


def test_what_the_limits_are(client: RawClient, client3: RawClient) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XIDMP", "CFGSET", "s", "MAXSIZE", 7)
    both = b"$8\r\nduration\r\n:100\r\n$7\r\nmaxsize\r\n:7\r\n"
    assert client.call("XIDMP", "CFGGET", "s") == b"*4\r\n" + both
    assert client3.call("XIDMP", "CFGGET", "s") == b"%2\r\n" + both
    assert client3.call_parsed("XIDMP", "CFGGET", "s", "DURATION") == {b"duration": 100}
    assert client3.call_parsed("xidmp", "cfgget", "s", "maxsize") == {b"maxsize": 7}
    swapped = client.call_parsed("XIDMP", "CFGGET", "s", "MAXSIZE", "DURATION", "MAXSIZE")
    assert swapped == [b"maxsize", 7, b"duration", 100]
    assert client.call_parsed("XIDMP", "CFGGET", "s", "SIZE") == WireError(SYNTAX)
    assert client.call_parsed("XIDMP", "CFGGET", "none") == WireError(NO_KEY)


def test_subcommands(c: RawClient) -> None:
    assert c.call_parsed("XIDMP", "FOO") == WireError(
        b"ERR unknown subcommand 'FOO'. Try XIDMP HELP."
    )
    for name in ("cfgset", "cfgget", "producers"):
        assert c.call_parsed("XIDMP", name) == WireError(
            b"ERR wrong number of arguments for 'xidmp|%b' command" % name.encode()
        )
    assert c.call_parsed("XIDMP") == WireError(b"ERR wrong number of arguments for 'xidmp' command")
    assert c.call_parsed("XIDMP", "HELP", "x") == WireError(
        b"ERR wrong number of arguments for 'xidmp|help' command"
    )
    lines = c.call_parsed("XIDMP", "HELP")
    assert isinstance(lines, list)
    assert lines[0] == Status(b"XIDMP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
    assert b"CFGSET key [DURATION duration] [MAXSIZE maxsize]" in lines
    assert b"CFGGET key [DURATION] [MAXSIZE]" in lines
    assert b"PRODUCERS key [MATCH pattern] [COUNT count]" in lines
    for name in ("XCFGSET", "XIDMPRECORD"):
        assert c.call_parsed(name) == WireError(
            b"ERR wrong number of arguments for '%b' command" % name.lower().encode()
        )


def test_server_wide_defaults_are_for_new_streams(client: RawClient) -> None:
    client.call("XADD", "old", "1-1", "f", "v")
    client.call("CONFIG", "SET", "stream-idmp-duration", 7, "stream-idmp-maxsize", 2)
    try:
        assert limits(client, "old") == (100, 100)
        add(client, "new", "p", "i")
        client.call("XGROUP", "CREATE", "group", "g", "$", "MKSTREAM")
        assert limits(client, "new") == limits(client, "group") == (7, 2)
        for number in range(5):
            add(client, "new", "p", number)
            add(client, "old", "p", number)
        assert counters(client, "new")[1] == 2
        assert counters(client, "old")[1] == 5
        client.call("CONFIG", "SET", "stream-idmp-duration", 100, "stream-idmp-maxsize", 100)
        assert limits(client, "new") == (7, 2)
    finally:
        client.call("CONFIG", "SET", "stream-idmp-duration", 100, "stream-idmp-maxsize", 100)


@pytest.mark.parametrize(
    ("name", "most"), [("stream-idmp-duration", 86_400), ("stream-idmp-maxsize", 10_000)]
)
def test_server_wide_bounds(client: RawClient, name: str, most: int) -> None:
    for value in (0, -1, most + 1):
        assert client.call_parsed("CONFIG", "SET", name, value) == WireError(
            b"ERR CONFIG SET failed (possibly related to argument '%b')"
            b" - argument must be between 1 and %d inclusive" % (name.encode(), most)
        )
    try:
        for value in (1, most):
            assert client.call("CONFIG", "SET", name, value) == b"+OK\r\n"
            assert client.call_parsed("CONFIG", "GET", name) == [name.encode(), b"%d" % value]
    finally:
        client.call("CONFIG", "SET", name, DEFAULTS[name])


def test_a_file_of_settings_is_rewritten(fresh_server: Factory) -> None:
    server = fresh_server(config="stream-idmp-duration 50\n")
    with server.client() as client:
        client.call("XADD", "s", "1-1", "f", "v")
        assert limits(client, "s") == (50, 100)
        client.call("CONFIG", "SET", "stream-idmp-duration", 60, "stream-idmp-maxsize", 70)
        assert client.call("CONFIG", "REWRITE") == b"+OK\r\n"
    text = server.config_path.read_text()
    assert "stream-idmp-duration 60" in text
    assert "stream-idmp-maxsize 70" in text
    server.restart()
    with server.client() as client:
        client.call("XADD", "t", "1-1", "f", "v")
        assert limits(client, "t") == (60, 70)


# What is told


def test_what_xinfo_tells(c: RawClient) -> None:
    c.call("XADD", "s", "1-1", "f", "v")
    told = facts(c, "s")
    names = list(told)
    at = names.index(b"idmp-duration")
    fields = [
        b"idmp-duration", b"idmp-maxsize", b"pids-tracked", b"iids-tracked", b"iids-added",
        b"iids-duplicates",
    ]  # fmt: skip
    assert names[at - 1] == b"recorded-first-entry-id"
    assert names[at : at + 6] == fields
    assert [told[name] for name in fields] == [100, 100, 0, 0, 0, 0]
    for pid in ("p", "q"):
        for number in (1, 2, 1):
            add(c, "s", pid, number)
    for told in (facts(c, "s"), facts(c, "s", "FULL")):
        assert [told[name] for name in fields] == [100, 100, 2, 4, 4, 2]


def test_producers(c: RawClient) -> None:
    assert c.call_parsed("XIDMP", "PRODUCERS", "s") == WireError(NO_KEY)
    c.call("XADD", "s", "1-1", "f", "v")
    assert c.call_parsed("XIDMP", "PRODUCERS", "s") == []
    held = {pid: [add(c, "s", pid, n) for n in range(count)]
            for pid, count in (("zeta", 1), ("app:1", 3), ("app:2", 2), ("APP", 1))}  # fmt: skip
    rows = [
        [pid.encode(), len(ids), ids[0], ids[-1]]
        for pid, ids in sorted(held.items(), key=lambda item: item[0].encode())
    ]
    assert c.call_parsed("XIDMP", "PRODUCERS", "s") == rows
    assert c.call_parsed("XIDMP", "PRODUCERS", "s", "MATCH", "app:*") == rows[1:3]
    assert c.call_parsed("XIDMP", "PRODUCERS", "s", "MATCH", "none*") == []
    assert c.call_parsed("XIDMP", "PRODUCERS", "s", "COUNT", 2) == rows[:2]
    assert c.call_parsed("XIDMP", "PRODUCERS", "s", "count", 1, "match", "*e*") == rows[3:]
    assert c.call_parsed("XIDMP", "PRODUCERS", "s", "COUNT", 100) == rows
    for words, line in (
        (("COUNT", 0), b"ERR COUNT must be > 0"),
        (("COUNT", -1), b"ERR COUNT must be > 0"),
        (("COUNT", "x"), NOT_AN_INTEGER),
        (("COUNT",), SYNTAX),
        (("MATCH",), SYNTAX),
        (("LIKE", "x"), SYNTAX),
    ):
        assert c.call_parsed("XIDMP", "PRODUCERS", "s", *words) == WireError(line)
    c.call("XCFGSET", "s", "IDMP-MAXSIZE", 2)
    ids = [add(c, "s", "p", n) for n in range(5)]
    assert c.call_parsed("XIDMP", "PRODUCERS", "s") == [[b"p", 2, ids[3], ids[4]]]


def test_memory_usage_counts_iids(client: RawClient) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XCFGSET", "s", "IDMP-MAXSIZE", 10_000)

    def size() -> int:
        told = client.call_parsed("MEMORY", "USAGE", "s", "SAMPLES", 0)
        assert isinstance(told, int)
        return told

    for maxsize, iid_bytes, least, most in (
        (9_999, 16, 35_000, 60_000),
        (9_998, 36, 90_000, 140_000),
    ):
        for number in range(1000):
            iid = f"{number:0{iid_bytes}}"
            client.call("XADD", "s", "IDMP", "p", iid, "MAXLEN", 1, "*", "f", "v")
        with_iids = size()
        client.call("XCFGSET", "s", "IDMP-MAXSIZE", maxsize)
        assert least < with_iids - size() < most


# XIDMPRECORD


def test_recording_an_iid(c: RawClient) -> None:
    c.call("XADD", "s", "1-1", "f", "v")
    c.call("XADD", "s", "2-1", "f", "v")
    changes = ("XIDMPRECORD", "s", "p", "i", "1-1")
    assert c.call(*changes) == b"+OK\r\n"
    assert c.call(*changes) == b"+OK\r\n"
    assert counters(c, "s") == (1, 1, 1, 0)
    assert c.call_parsed("XIDMPRECORD", "s", "p", "i", "2-1") == WireError(
        b"ERR IID already exists for this producer with a different stream ID"
    )
    assert c.call("XIDMPRECORD", "s", "q", "i", "2-1") == b"+OK\r\n"
    assert c.call("XIDMPRECORD", "s", "p", "j", "2-1") == b"+OK\r\n"
    assert add(c, "s", "p", "i") == b"1-1"
    assert add(c, "s", "q", "i") == b"2-1"
    assert c.call_parsed("XIDMP", "PRODUCERS", "s") == [
        [b"p", 2, b"1-1", b"2-1"], [b"q", 1, b"2-1", b"2-1"],
    ]  # fmt: skip
    assert counters(c, "s") == (2, 3, 3, 2)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("s", "p", "i", "x"), INVALID_ID),
        (("s", "p", "i", "-"), INVALID_ID),
        (("s", "p", "i", "+"), INVALID_ID),
        (("s", "", "", "x"), INVALID_ID),
        (("none", "", "", "1-1"), b"ERR producer ID must be non-empty"),
        (("none", "p", "", "1-1"), b"ERR idempotent ID must be non-empty"),
        (("none", "p", "i", "1-1"), NO_KEY),
        (("text", "p", "i", "1-1"), WRONGTYPE),
        (("s", "p", "i", "3-1"), b"ERR No such message in stream"),
        (("s", "p", "i", "2-1"), b"ERR No such message in stream"),
        (("s", "p", "i"), b"ERR wrong number of arguments for 'xidmprecord' command"),
        (("s", "p", "i", "1-1", "x"), b"ERR wrong number of arguments for 'xidmprecord' command"),
    ],
)
def test_refused_recordings(c: RawClient, words: tuple[str, ...], line: bytes) -> None:
    c.call("SET", "text", "x")
    for number in (1, 2):
        c.call("XADD", "s", f"{number}-1", "f", "v")
    c.call("XDEL", "s", "2-1")
    assert c.call_parsed("XIDMPRECORD", *words) == WireError(line)
    assert counters(c, "s") == (0, 0, 0, 0)
    assert c.call("EXISTS", "none") == b":0\r\n"


def test_recordings_are_limited_too(client: RawClient) -> None:
    for number in range(1, 6):
        client.call("XADD", "s", f"{number}-1", "f", "v")
    client.call("XCFGSET", "s", "IDMP-MAXSIZE", 2, "IDMP-DURATION", 1)
    for number in range(1, 6):
        client.call("XIDMPRECORD", "s", "p", number, f"{number}-1")
    assert client.call_parsed("XIDMP", "PRODUCERS", "s") == [[b"p", 2, b"4-1", b"5-1"]]
    wait_until(lambda: forgotten(client, "s"))
    assert counters(client, "s") == (0, 0, 5, 0)


# Moving and ending


def test_a_key_that_is_moved_takes_its_iids_along(client: RawClient) -> None:
    """And they still expire: each way in turn, to a stream that forgets soon."""
    first = add(client, "a", "p", "i")
    assert client.call("RENAME", "a", "b") == b"+OK\r\n"
    assert add(client, "b", "p", "i") == first
    client.call("MOVE", "b", 3)
    client.call("SELECT", 3)
    assert add(client, "b", "p", "i") == first
    client.call("SWAPDB", 3, 4)
    client.call("SELECT", 4)
    assert add(client, "b", "p", "i") == first
    assert counters(client, "b") == (1, 1, 1, 3)
    client.call("XCFGSET", "b", "IDMP-DURATION", 1)
    add(client, "b", "p", "i")
    client.call("RENAMENX", "b", "c")
    client.call("MOVE", "c", 5)
    client.call("SWAPDB", 5, 6)
    client.call("SELECT", 6)
    assert counters(client, "c")[:2] == (1, 1)
    wait_until(lambda: forgotten(client, "c"))


def test_a_copy_is_whole_and_its_own(client: RawClient) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XCFGSET", "s", "IDMP-MAXSIZE", 3, "IDMP-DURATION", 50)
    ids = [add(client, "s", "p", number) for number in range(4)]
    add(client, "s", "p", 3)
    assert client.call("COPY", "s", "t") == b":1\r\n"
    assert limits(client, "t") == (50, 3)
    assert counters(client, "t") == counters(client, "s") == (1, 3, 4, 1)
    assert client.call("XIDMP", "PRODUCERS", "t") == client.call("XIDMP", "PRODUCERS", "s")
    assert add(client, "t", "p", 1) == ids[1]
    add(client, "t", "p", "new")
    assert add(client, "t", "p", 1) != ids[1]  # the oldest there is the oldest here
    assert add(client, "s", "p", 1) == ids[1]
    assert counters(client, "s") == (1, 3, 4, 2)


def test_a_copy_forgets_too(client: RawClient) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XCFGSET", "s", "IDMP-DURATION", 1)
    add(client, "s", "p", "i")
    client.call("COPY", "s", "t")
    client.call("COPY", "s", "s", "DB", 7)
    client.call("DEL", "s")
    wait_until(lambda: forgotten(client, "t"))
    client.call("SELECT", 7)
    wait_until(lambda: forgotten(client, "s"))


ENDS: dict[str, tuple[tuple[Argument, ...], ...]] = {
    "DEL": (("DEL", "s"),),
    "UNLINK": (("UNLINK", "s"),),
    "SET": (("SET", "s", "x"), ("DEL", "s")),
    "FLUSHDB": (("FLUSHDB",),),
    "FLUSHALL": (("FLUSHALL", "ASYNC"),),
    "RENAME": (("XADD", "other", "1-1", "f", "v"), ("RENAME", "other", "s")),
    "COPY": (("XADD", "other", "1-1", "f", "v"), ("COPY", "other", "s", "REPLACE")),
    "EXPIRE": (("PEXPIRE", "s", -1),),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_key_that_ends_is_forgotten(client: RawClient, end: str) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XCFGSET", "s", "IDMP-DURATION", 1)
    add(client, "s", "p", "i")
    for command in ENDS[end]:
        assert not client.call(*command).startswith(b"-")
    add(client, "s", "p", "i")
    assert counters(client, "s") == (1, 1, 1, 0)
    assert limits(client, "s") == (100, 100)


# Races


def test_eight_producers_retry_the_same_fifty(server: ServerProcess) -> None:
    """All at once, each message three times by each: one entry for each message."""
    messages = range(50)
    seen: list[dict[int, set[bytes]]] = []
    barrier = threading.Barrier(8)

    def produce(offset: int) -> None:
        mine: dict[int, set[bytes]] = {number: set() for number in messages}
        with server.client() as client:
            barrier.wait()
            for turn in range(3):
                order = [(number + 7 * offset) % 50 for number in messages]
                if turn == 1:  # pipelined
                    words: list[tuple[Argument, ...]] = [
                        ("XADD", "s", "IDMP", "p", f"m{n}", "*", "n", n, "by", offset)
                        for n in order
                    ]
                    for number, reply in zip(order, client.pipeline(*words), strict=True):
                        mine[number].add(reply)
                    continue
                for number in order:
                    mine[number].add(
                        client.call("XADD", "s", "IDMP", "p", f"m{number}", "*", "n", number)
                    )
        seen.append(mine)

    threads = [threading.Thread(target=produce, args=(offset,)) for offset in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert len(seen) == 8
    ids = {number: set().union(*[mine[number] for mine in seen]) for number in messages}
    assert all(len(found) == 1 for found in ids.values())
    with server.client() as client:
        entries = client.call_parsed("XRANGE", "s", "-", "+")
        assert isinstance(entries, list)
        assert sorted(int(fields[1]) for _, fields in entries) == list(messages)
        assert counters(client, "s") == (1, 50, 50, 8 * 3 * 50 - 50)
