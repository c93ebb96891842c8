"""XREADGROUP, XNACK, XACKDEL, XDELEX and trimming with heed to groups."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Factory

from support.client import Argument, RawClient, WireError
from support.figures import done
from support.process import Pair

FATAL = 9223372036854775807
NOT_FOR_GROUPS = (
    "ERR The {0} ID is meaningless in the context of XREADGROUP: you want to read the history of "
    "this consumer by specifying a proper ID, or use the > ID to get new messages. The {0} ID "
    "would just return an empty result set."
)
NOGROUP = "NOGROUP No such key '{0}' or consumer group '{1}' in XREADGROUP with GROUP option"
INVALID_ID = "ERR Invalid stream ID specified as stream command argument"


class Client:
    """A connection on which commands are written as one line."""

    def __init__(self, raw: RawClient) -> None:
        self.raw = raw

    def __call__(self, line: str, *more: Argument) -> object:
        reply = self.raw.call_parsed(*line.split(), *more)
        assert not isinstance(reply, WireError), (line, reply)
        return reply

    def error(self, line: str) -> str:
        reply = self.raw.call_parsed(*line.split())
        assert isinstance(reply, WireError), (line, reply)
        return reply.text.decode()

    def rows(self, line: str) -> list[Any]:
        reply = self(line)
        assert isinstance(reply, list), reply
        return reply

    def ids(self, line: str) -> list[str]:
        """The IDs in the answer to a read of one stream, or to XRANGE."""
        reply = self.rows(line)
        if line.startswith("XREAD"):
            ((_, reply),) = reply
        return [entry[0].decode() for entry in reply]

    def pending(self, key: str = "s", group: str = "g") -> list[tuple[str, str, int]]:
        """(ID, consumer, deliveries) of everything pending."""
        found = self.rows(f"XPENDING {key} {group} - + 1000")
        return [(e[0].decode(), e[1].decode(), e[3]) for e in found]


@pytest.fixture
def run(client: RawClient) -> Client:
    """The shared server with a stream ``s`` of 1-0 to 5-0 and a group ``g`` that has read none."""
    run = Client(client)
    for number in range(1, 6):
        run(f"XADD s {number}-0 f v{number}")
    run("XGROUP CREATE s g 0")
    return run


# Reading


def test_new_entries_become_pending(run: Client) -> None:
    assert run.ids("XREADGROUP GROUP g a COUNT 2 STREAMS s >") == ["1-0", "2-0"]
    assert run.ids("XREADGROUP GROUP g b STREAMS s >") == ["3-0", "4-0", "5-0"]
    assert run("XREADGROUP GROUP g a STREAMS s >") is None
    assert run.pending() == [
        ("1-0", "a", 1), ("2-0", "a", 1), ("3-0", "b", 1), ("4-0", "b", 1), ("5-0", "b", 1),
    ]  # fmt: skip


def test_the_wire(run: Client, client3: RawClient) -> None:
    entry = b"*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$2\r\nv1\r\n"
    words = "XREADGROUP GROUP g a COUNT 1 STREAMS s".split()
    assert run.raw.call(*words, ">") == b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n" + entry
    assert client3.call(*words, "0") == b"%1\r\n$1\r\ns\r\n*1\r\n" + entry
    run("XDEL s 1-0")
    assert run.raw.call(*words, "0") == b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*-1\r\n"
    assert client3.call(*words, "0") == b"%1\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n_\r\n"
    assert run.raw.call(*words, "9") == b"*1\r\n*2\r\n$1\r\ns\r\n*0\r\n"
    assert client3.call(*words, "9") == b"%1\r\n$1\r\ns\r\n*0\r\n"
    run("XREADGROUP GROUP g a STREAMS s >")
    assert run.raw.call(*words, ">") == b"*-1\r\n"
    assert client3.call(*words, ">") == b"_\r\n"


def test_count_is_for_each_stream_and_empty_ones_are_left_out(run: Client) -> None:
    run("XADD t 1-0 f v")
    run("XGROUP CREATE t g 0")
    run("XGROUP CREATE u g 0 MKSTREAM")
    reply = run.rows("XREADGROUP GROUP g a COUNT 3 STREAMS u s t > > >")
    assert [(key, len(entries)) for key, entries in reply] == [(b"s", 3), (b"t", 1)]
    reply = run.rows("XREADGROUP GROUP g a COUNT 3 STREAMS u s t 0 > 1-0")
    assert [(key, len(entries)) for key, entries in reply] == [(b"u", 0), (b"s", 2), (b"t", 0)]


def test_a_stream_twice(run: Client) -> None:
    reply = run.rows("XREADGROUP GROUP g a COUNT 2 STREAMS s s > >")
    assert [entry[0] for _, entries in reply for entry in entries] == [
        b"1-0", b"2-0", b"3-0", b"4-0",
    ]  # fmt: skip


def test_the_greatest_id_stands_for_new_entries(run: Client) -> None:
    greatest = "18446744073709551615-18446744073709551615"
    assert len(run.ids(f"XREADGROUP GROUP g a STREAMS s {greatest}")) == 5


def test_a_history_is_the_consumers_own_and_counts_as_delivery(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 3 STREAMS s >")
    run("XREADGROUP GROUP g b STREAMS s >")
    time.sleep(0.02)
    assert run.ids("XREADGROUP GROUP g a BLOCK 0 NOACK CLAIM 0 STREAMS s 1-0") == ["2-0", "3-0"]
    assert run.ids("XREADGROUP GROUP g a COUNT 1 STREAMS s 1-0") == ["2-0"]
    assert run.pending() == [
        ("1-0", "a", 1), ("2-0", "a", 3), ("3-0", "a", 2), ("4-0", "b", 1), ("5-0", "b", 1),
    ]  # fmt: skip
    idle = {entry[0]: entry[2] for entry in run.rows("XPENDING s g - + 10")}
    assert idle[b"1-0"] - idle[b"2-0"] >= 20
    # What was shown again is claimed last.
    claimed = run.ids("XREADGROUP GROUP g c CLAIM 0 STREAMS s >")
    assert claimed == ["1-0", "4-0", "5-0", "3-0", "2-0"]


def test_a_history_shows_deleted_entries_untouched(run: Client) -> None:
    run("XREADGROUP GROUP g a STREAMS s >")
    run("XDEL s 2-0")
    assert run.rows("XREADGROUP GROUP g a COUNT 2 STREAMS s 0") == [
        [b"s", [[b"1-0", [b"f", b"v1"]], [b"2-0", None]]]
    ]
    assert run.pending()[:2] == [("1-0", "a", 2), ("2-0", "a", 1)]


def test_noack(run: Client) -> None:
    assert len(run.ids("XREADGROUP GROUP g a NOACK COUNT 2 STREAMS s >")) == 2
    assert run.pending() == []
    assert run.ids("XREADGROUP GROUP g a STREAMS s >") == ["3-0", "4-0", "5-0"]


def test_delivery_anew_after_setid(run: Client) -> None:
    run("XREADGROUP GROUP g a STREAMS s >")
    run("XREADGROUP GROUP g a STREAMS s 0")
    run("XGROUP SETID s g 3-0")
    assert run.ids("XREADGROUP GROUP g b STREAMS s >") == ["4-0", "5-0"]
    assert run.pending()[2:] == [("3-0", "a", 2), ("4-0", "b", 1), ("5-0", "b", 1)]


def position(run: Client) -> tuple[int, int]:
    """``entries-read`` and ``lag`` of the group."""
    ((*_, read, _, lag),) = run.rows("XINFO GROUPS s")
    return read, lag


def test_no_group_has_read_more_than_was_added(run: Client) -> None:
    run("XREADGROUP GROUP g a STREAMS s >")
    run("XTRIM s MAXLEN 2")
    run("XSETID s 5-0 ENTRIESADDED 2")
    assert position(run) == (2, 0)
    run("XSETID s 5-0 ENTRIESADDED 100")
    assert position(run) == (2, 0)


def test_a_counter_set_too_high_stops_at_what_was_added(run: Client) -> None:
    run("XGROUP SETID s g 3-0 ENTRIESREAD 4")
    run("XREADGROUP GROUP g a STREAMS s >")
    assert position(run) == (5, 0)


def test_maxcount(run: Client) -> None:
    for number in range(1, 4):
        run(f"XADD t {number}-0 f v")
    run("XGROUP CREATE t g 0")
    reply = run.rows("XREADGROUP GROUP g a COUNT 2 MAXCOUNT 3 STREAMS s t > >")
    assert [(key, len(entries)) for key, entries in reply] == [(b"s", 2), (b"t", 1)]
    assert run.pending("t") == [("1-0", "a", 1)]
    # What is claimed counts, too.
    reply = run.rows("XREADGROUP GROUP g b MAXCOUNT 4 CLAIM 0 STREAMS s t > >")
    assert [(key, len(entries)) for key, entries in reply] == [(b"s", 4)]
    assert [owner for _, owner, _ in run.pending()] == ["b"] * 4


def test_maxsize(run: Client) -> None:
    run("XADD big 1-0 f", "x" * 1000)
    run("XADD big 2-0 f", "x" * 1000)
    run("XADD big 3-0 f", "x" * 1000)
    run("XGROUP CREATE big g 0")
    words = "XREADGROUP GROUP g a MAXSIZE"
    assert run.ids(f"{words} 1 STREAMS big >") == ["1-0"]
    assert run.ids(f"{words} 5000 STREAMS big >") == ["2-0", "3-0"]
    assert run.ids(f"{words} 1000 STREAMS big 0") == ["1-0"]
    assert run.ids(f"{words} 2000 CLAIM 0 STREAMS big >") == ["2-0", "3-0"]
    assert [count for _, _, count in run.pending("big")] == [2, 2, 2]
    assert run.ids(f"{words} 20 STREAMS s big > 0") == ["1-0"]


# What is refused


def test_errors(run: Client) -> None:
    run("SET str x")
    for line, text in {
        "XREADGROUP GROUP g a STREAMS s": "ERR wrong number of arguments for 'xreadgroup' command",
        "XREADGROUP GROUP g a STREAMS s t >": (
            "ERR Unbalanced 'xreadgroup' list of streams: "
            "for each stream key an ID or '>' must be specified."
        ),
        "XREADGROUP COUNT 1 COUNT 1 STREAMS s >": "ERR Missing GROUP option for XREADGROUP",
        "XREADGROUP GROUP g a FOO STREAMS s >": "ERR syntax error",
        "XREADGROUP GROUP g a COUNT 1 BLOCK 1": "ERR syntax error",
        "XREADGROUP GROUP g a COUNT x STREAMS s >": "ERR value is not an integer or out of range",
        "XREADGROUP GROUP g a BLOCK x STREAMS s >": "ERR timeout is not an integer or out of range",
        "XREADGROUP GROUP g a BLOCK -1 STREAMS s >": "ERR timeout is negative",
        "XREADGROUP GROUP g a STREAMS s $": NOT_FOR_GROUPS.format("$"),
        "XREADGROUP GROUP g a STREAMS s +": NOT_FOR_GROUPS.format("+"),
        "XREADGROUP GROUP g a STREAMS s -": INVALID_ID,
        "XREADGROUP GROUP g a STREAMS s x": INVALID_ID,
        "XREADGROUP GROUP g a STREAMS s nokey > >": NOGROUP.format("nokey", "g"),
        "XREADGROUP GROUP h a STREAMS s >": NOGROUP.format("s", "h"),
        "XREADGROUP GROUP g a STREAMS s str > >": (
            "WRONGTYPE Operation against a key holding the wrong kind of value"
        ),
        "XREADGROUP GROUP g a CLAIM x STREAMS s >": (
            "ERR min-idle-time is not an integer or out of range"
        ),
        "XREADGROUP GROUP g a CLAIM -0 STREAMS s >": (
            "ERR min-idle-time is not an integer or out of range"
        ),
        "XREADGROUP GROUP g a CLAIM -1 STREAMS s >": (
            "ERR min-idle-time must be a positive integer"
        ),
        "XREADGROUP GROUP g a CLAIM STREAMS s >": (
            "ERR min-idle-time is not an integer or out of range"
        ),
        "XREADGROUP GROUP g a MAXCOUNT 0 STREAMS s >": "ERR MAXCOUNT must be a positive integer",
        "XREADGROUP GROUP g a MAXCOUNT 1 COUNT 2 STREAMS s >": (
            "ERR MAXCOUNT must be greater than or equal to COUNT"
        ),
        "XREADGROUP GROUP g a MAXSIZE 0 STREAMS s >": "ERR MAXSIZE must be a positive integer",
        "XREADGROUP GROUP g a MAXCOUNT x STREAMS s >": (
            "ERR value is not an integer or out of range"
        ),
        "XREAD MAXSIZE 9223372036854775808 STREAMS s 0": (
            "ERR value is not an integer or out of range"
        ),
        "XREAD GROUP g a STREAMS s >": (
            "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."
        ),
        "XREAD CLAIM 5 STREAMS s 0": (
            "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead."
        ),
    }.items():  # fmt: skip
        assert run.error(line) == text, line
    assert run("XINFO CONSUMERS s g") == []
    assert run.pending() == []


def test_as_redis(pair: Pair) -> None:
    """What Redis 7.0 knows of it, byte for byte."""
    for line in [
        "SET str x",
        *[f"XADD s {number}-1 f v{number}" for number in range(1, 8)],
        "XGROUP CREATE s g 0",
        "XGROUP CREATE s STREAMS 6",
        "XREADGROUP GROUP g a COUNT 2 STREAMS s >",
        "XREADGROUP COUNT 1 GROUP g b STREAMS s >",
        "XREADGROUP GROUP x y GROUP g b COUNT 9 COUNT 1 STREAMS s >",
        "XREADGROUP GROUP g b COUNT -5 NOACK STREAMS s >",
        "XREADGROUP GROUP g b STREAMS s >",
        "XREADGROUP GROUP g b BLOCK 5 STREAMS s >",
        "XREADGROUP GROUP g b STREAMS s 0",
        "XREADGROUP GROUP g b STREAMS s 3-1",
        "XREADGROUP GROUP g b STREAMS s 3",
        "XREADGROUP GROUP g nobody STREAMS s 0",
        "XREADGROUP GROUP STREAMS STREAMS STREAMS s >",
        "XREADGROUP GROUP g STREAMS s >",
        "XREADGROUP GROUP g b COUNT STREAMS s >",
        "XREADGROUP GROUP g b NOACK NOACK BLOCK 5 STREAMS s s > x",
        "XREADGROUP GROUP g b STREAMS s str x >",
        "XREADGROUP GROUP g b STREAMS str s > x",
        "XREADGROUP GROUP g b STREAMS nokey s > x",
        "XREADGROUP GROUP g b STREAMS s nokey x >",
        "XREADGROUP GROUP g b STREAMS s s $ x",
        "XINFO GROUPS s",
        "XPENDING s g",
        "XDEL s 1-1 3-1",
        "XREADGROUP GROUP g a STREAMS s 0",
        "XREADGROUP GROUP g b COUNT 0 STREAMS s 0",
        "XGROUP SETID s g 0",
        "XREADGROUP GROUP g c COUNT 3 STREAMS s >",
        "XREADGROUP GROUP g c STREAMS s >",
        "XINFO GROUPS s",
        "XPENDING s g",
    ]:
        pair.both(*line.split())


# What it leaves behind


def dirty(run: Client) -> int:
    text = run("INFO persistence")
    assert isinstance(text, bytes)
    return int(text.split(b"rdb_changes_since_last_save:")[1].split(b"\r\n")[0])


def test_changes_are_counted_by_stream(run: Client) -> None:
    before = dirty(run)
    for line, changes in [
        ("XREADGROUP GROUP g a STREAMS s 0", 1),  # the consumer
        ("XREADGROUP GROUP g a COUNT 3 STREAMS s >", 1),
        ("XREADGROUP GROUP g a STREAMS s 0", 0),
        ("XREADGROUP GROUP g a COUNT 1 NOACK STREAMS s >", 1),
        ("XREADGROUP GROUP g a CLAIM 0 STREAMS s >", 1),
        ("XREADGROUP GROUP g a STREAMS s >", 0),
        ("XREADGROUP GROUP g b BLOCK 1 STREAMS s >", 1),
    ]:
        run(line)
        now = dirty(run)
        assert now - before == changes, line
        before = now


@pytest.mark.parametrize("idle", [-(2**63), -1, 0, 1, 2**63 - 1])
def test_pending_entries_by_any_idle_time(run: Client, idle: int) -> None:
    """Less than nothing is as without IDLE."""
    run("XREADGROUP GROUP g a COUNT 2 STREAMS s >")
    run("XCLAIM s g a 0 1-0 2-0 IDLE 1000000 JUSTID")
    found = [row[0] for row in run.rows(f"XPENDING s g IDLE {idle} - + 10")]
    assert found == ([] if idle > 1 else [b"1-0", b"2-0"])
    assert [row[0] for row in run.rows(f"XPENDING s g IDLE {idle} - + 10 a")] == found


def test_events(run: Client, client3: RawClient) -> None:
    run("CONFIG SET notify-keyspace-events KEA")
    client3.call("PSUBSCRIBE", "__keyevent*")
    run("XREADGROUP GROUP g a STREAMS s 0")
    run("XREADGROUP GROUP g a STREAMS s >")
    run("XREADGROUP GROUP g b CLAIM 0 STREAMS s >")
    run("XNACK s g FAIL IDS 1 1-0")
    run("XACKDEL s g IDS 2 1-0 2-0")
    run("XDEL s 3-0")
    run("XACKDEL s g IDS 1 3-0")  # nothing to delete
    run("XDELEX s DELREF IDS 2 4-0 9-0")
    run("XTRIM s MAXLEN 0 DELREF")
    run("SET last x")
    events: list[object] = []
    while b"last" not in events:
        message = client3.read_parsed()
        assert isinstance(message, list)
        events += [message[2].split(b":")[1], message[3]]
    run("CONFIG SET notify-keyspace-events", "")
    assert events[:-2:2] == [
        b"xgroup-createconsumer", b"xgroup-createconsumer", b"xdel", b"xdel", b"xdel", b"xtrim",
    ]  # fmt: skip


def test_watch_is_not_touched_by_reading(run: Client, client3: RawClient) -> None:
    for line, touches in [
        ("XREADGROUP GROUP g a STREAMS s >", False),
        ("XREADGROUP GROUP g b CLAIM 0 STREAMS s >", False),
        ("XNACK s g FAIL IDS 1 1-0", False),
        ("XACKDEL s g ACKED IDS 1 1-0", True),
        ("XDELEX s IDS 1 9-0", False),
        ("XDELEX s IDS 1 2-0", True),
        ("XTRIM s MINID 0 ACKED", False),
    ]:
        client3.call("WATCH", "s")
        run(line)
        client3.call("MULTI")
        assert (client3.call("EXEC") == b"_\r\n") == touches, line


def records(path: Path) -> list[str]:
    data = re.sub(rb"^#TS:.*\r\n", b"", path.read_bytes(), flags=re.MULTILINE)
    found: list[str] = []
    while data:
        count = int(data[1 : data.index(b"\r\n")])
        words = data.split(b"\r\n", 2 * count + 1)
        data = words[-1]
        found.append(b" ".join(words[2 : 2 * count + 1 : 2]).decode())
    return [re.sub(r"TIME \d{13}", "TIME *", line) for line in found]


CASES: list[tuple[str, list[str]]] = [
    # A consumer that is made without being given anything is recorded, too.
    ("XREADGROUP GROUP g old STREAMS s 0", ["XGROUP CREATECONSUMER s g old"]),
    ("XCLAIM s g claims 0 9-0", ["XGROUP CREATECONSUMER s g claims"]),
    ("XCLAIM s g claims 0 9-0", []),
    ("XAUTOCLAIM s g sweeps 0 -", ["XGROUP CREATECONSUMER s g sweeps"]),
    (
        "XREADGROUP GROUP g a COUNT 2 STREAMS s >",
        [
            "MULTI",
            "XCLAIM s g a 0 1-0 TIME * RETRYCOUNT 1 FORCE JUSTID LASTID 0-0",
            "XCLAIM s g a 0 2-0 TIME * RETRYCOUNT 1 FORCE JUSTID LASTID 0-0",
            "XGROUP SETID s g 2-0 ENTRIESREAD 2",
            "EXEC",
        ],
    ),
    ("XREADGROUP GROUP g a STREAMS s 0", []),
    (
        "XREADGROUP GROUP g n COUNT 1 NOACK STREAMS s >",
        ["MULTI", "XGROUP SETID s g 3-0 ENTRIESREAD 3", "XGROUP CREATECONSUMER s g n", "EXEC"],
    ),
    (
        "XREADGROUP GROUP g n COUNT 1 NOACK STREAMS s >",
        ["XGROUP SETID s g 4-0 ENTRIESREAD 4"],
    ),
    ("XREADGROUP GROUP g m NOACK STREAMS s 0", ["XGROUP CREATECONSUMER s g m"]),
    (
        "XREADGROUP GROUP g b CLAIM 0 STREAMS s >",
        [
            "MULTI",
            "XCLAIM s g b 0 1-0 TIME * RETRYCOUNT 3 FORCE JUSTID LASTID 4-0",
            "XCLAIM s g b 0 2-0 TIME * RETRYCOUNT 3 FORCE JUSTID LASTID 4-0",
            "XCLAIM s g b 0 5-0 TIME * RETRYCOUNT 1 FORCE JUSTID LASTID 4-0",
            "XGROUP SETID s g 5-0 ENTRIESREAD 5",
            "EXEC",
        ],
    ),
    ("XREADGROUP GROUP g c STREAMS s >", ["XGROUP CREATECONSUMER s g c"]),
    ("XREADGROUP GROUP g c STREAMS s >", []),
    ("XNACK s g FATAL IDS 2 1-0 9-0", ["XNACK s g FATAL IDS 2 1-0 9-0"]),
    ("XNACK s g FATAL IDS 1 9-0", []),
    ("XACKDEL s g ACKED IDS 2 1-0 9-0", ["XACKDEL s g ACKED IDS 2 1-0 9-0"]),
    ("XACKDEL s g IDS 1 1-0", []),
    ("XDELEX s ACKED IDS 1 2-0", []),
    ("XDELEX s ACKED IDS 2 2-0 3-0", ["XDELEX s ACKED IDS 2 2-0 3-0"]),
    ("XDEL s 2-0", ["XDEL s 2-0"]),
    # A pending entry that was deleted goes, though to Redis that is no change.
    ("XDELEX s DELREF IDS 1 2-0", ["XDELEX s DELREF IDS 1 2-0"]),
    ("XDELEX s DELREF IDS 1 2-0", []),
    ("XTRIM s MAXLEN = 0 ACKED", ["XTRIM s MAXLEN = 1 ACKED"]),
    ("XTRIM s MINID ~ 9 ACKED", []),
    ("XADD s MINID ~ 5 ACKED 6-0 f v", ["XADD s MAXLEN = 2 ACKED 6-0 f v"]),
    ("XTRIM s MAXLEN = 0 DELREF", ["XTRIM s MAXLEN = 0 DELREF"]),
]


def test_records_and_their_repetition(fresh_server: Factory, tmp_path: Path) -> None:
    server = fresh_server(
        "--appendonly", "yes", "--appendfsync", "always", directory=tmp_path
    )  # fmt: skip
    path = tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof"
    with server.client() as raw:
        run = Client(raw)
        for number in range(1, 6):
            run(f"XADD s {number}-0 f v")
        run("XGROUP CREATE s g 0")
        seen = len(records(path))
        for line, expected in CASES:
            run(line)
            found = records(path)
            assert found[seen:] == expected, line
            seen = len(found)
        consumers = [row[1] for row in run.rows("XINFO CONSUMERS s g")]
        assert consumers == [b"a", b"b", b"c", b"claims", b"m", b"n", b"old", b"sweeps"]
    server.restart(crash=True)
    with server.client() as raw:
        run = Client(raw)
        assert [row[1] for row in run.rows("XINFO CONSUMERS s g")] == consumers
        assert run.pending() == []
        assert run("XRANGE s - +") == []
        assert b"last-delivered-id\r\n$3\r\n5-0" in raw.call("XINFO", "GROUPS", "s")


def test_a_count_at_its_end_can_be_read_back(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--aof-use-rdb-preamble", "no")
    with server.client() as raw:
        run = Client(raw)
        run("XADD s 1-0 f v")
        run("XGROUP CREATE s g 0")
        run(f"XSETID s 1-0 ENTRIESADDED {FATAL}")
        run("XADD s 2-0 f v")
        run("XREADGROUP GROUP g a STREAMS s >")
        assert position(run) == (FATAL, 0)
        before = run.rows("XINFO STREAM s")
    server.restart(crash=True)
    with server.client() as raw:
        run = Client(raw)
        assert position(run) == (FATAL, 0)
        assert run.rows("XINFO STREAM s") == before
        run("BGREWRITEAOF")
        done(raw, "aof_rewrite_in_progress")
    server.restart(crash=True)
    with server.client() as raw:
        assert position(Client(raw)) == (FATAL, 0)


def test_a_position_that_a_claim_sets_is_recorded_whatever_else_is(
    fresh_server: Factory, tmp_path: Path
) -> None:
    """The XCLAIM of an entry tells it; where there is none, as for one without owner, SETID."""
    server = fresh_server("--appendonly", "yes", directory=tmp_path)
    path = tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof"
    with server.client() as raw:
        run = Client(raw)
        for number in range(1, 6):
            run(f"XADD s {number}-0 f v")
        run("XGROUP CREATE s g 0")
        run("XNACK s g FAIL IDS 1 1-0 FORCE")
        run("XREADGROUP GROUP g a COUNT 2 STREAMS s >")
        run("XNACK s g FAIL IDS 1 1-0")
        run("XDEL s 1-0 2-0")
        seen = len(records(path))
        assert run("XCLAIM s g b 0 1-0 LASTID 3-0") == []
        assert run("XCLAIM s g b 0 2-0 LASTID 4-0") == []
        assert records(path)[seen:] == [
            "MULTI",
            "XACK s g 1-0",
            "XGROUP SETID s g 3-0 ENTRIESREAD 2",
            "XGROUP CREATECONSUMER s g b",
            "EXEC",
            "XCLAIM s g a 0 2-0 TIME * RETRYCOUNT 1 FORCE JUSTID LASTID 4-0",
        ]
        before = raw.call("XINFO", "GROUPS", "s")
    server.restart(crash=True)
    with server.client() as raw:
        after = raw.call("XINFO", "GROUPS", "s")
    for information in (before, after):
        assert b"last-delivered-id\r\n$3\r\n4-0" in information


def test_pending_entries_and_the_zone_outlive_a_crash(
    fresh_server: Factory, tmp_path: Path
) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always", directory=tmp_path)
    with server.client() as raw:
        run = Client(raw)
        for number in range(1, 8):
            run(f"XADD s {number}-0 f v")
        run("XGROUP CREATE s g 0")
        run("XREADGROUP GROUP g a COUNT 4 STREAMS s >")
        run("XREADGROUP GROUP g b COUNT 2 CLAIM 0 STREAMS s >")
        run("XNACK s g FAIL IDS 3 4-0 2-0 7-0 FORCE")
        before = run.pending()
        information = run("XINFO GROUPS s")
    server.restart(crash=True)
    with server.client() as raw:
        run = Client(raw)
        assert run.pending() == before
        assert run("XINFO GROUPS s") == information
        assert run.ids("XREADGROUP GROUP g c COUNT 5 CLAIM 0 STREAMS s >") == [
            "4-0", "2-0", "7-0", "3-0", "1-0",
        ]  # fmt: skip


@pytest.mark.parametrize("node_entries", [1, 2, 3, 100])
def test_acked_trimming_is_repeated_exactly(
    fresh_server: Factory, tmp_path: Path, node_entries: int
) -> None:
    """Whatever the nodes were: what stayed then stays after a restart with other nodes."""
    server = fresh_server(
        "--appendonly", "yes", "--stream-node-max-entries", str(node_entries), directory=tmp_path
    )  # fmt: skip
    lines = ["MAXLEN 2", "MAXLEN ~ 2", "MINID 7-0", "MINID ~ 7-0", "MAXLEN ~ 0", "MAXLEN = 0"]
    left: dict[str, list[str]] = {}
    with server.client() as raw:
        run = Client(raw)
        for line in lines:
            key = line.replace(" ", "")
            for number in range(1, 11):
                run(f"XADD {key} {number}-0 f v")
            run(f"XGROUP CREATE {key} g 0")
            run(f"XREADGROUP GROUP g a COUNT 9 STREAMS {key} >")
            run(f"XACK {key} g 2-0 5-0 6-0 8-0")
            run(f"XTRIM {key} ACKED {line}")
            left[key] = run.ids(f"XRANGE {key} - +")
            assert {"1-0", "3-0", "4-0", "7-0", "9-0", "10-0"} <= set(left[key])
        run("CONFIG SET stream-node-max-entries 4")
    server.kill()
    server.options = ("--appendonly", "yes", "--stream-node-max-entries", "4")
    server.start()
    with server.client() as raw:
        run = Client(raw)
        assert {key: run.ids(f"XRANGE {key} - +") for key in left} == left


# CLAIM


def test_claims_come_first_with_four_elements(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 2 STREAMS s >")
    time.sleep(0.03)
    (stream,) = run.rows("XREADGROUP GROUP g b COUNT 3 CLAIM 10 STREAMS s >")
    assert isinstance(stream[1], list)
    assert [(entry[0], entry[1], entry[3]) for entry in stream[1]] == [
        (b"1-0", [b"f", b"v1"], 1), (b"2-0", [b"f", b"v2"], 1), (b"3-0", [b"f", b"v3"], 0),
    ]  # fmt: skip
    assert [entry[2] >= 30 for entry in stream[1]] == [True, True, False]
    assert stream[1][2][2] == 0
    assert run.pending() == [("1-0", "b", 2), ("2-0", "b", 2), ("3-0", "b", 1)]


def test_without_claims_new_entries_have_four_elements_all_the_same(run: Client) -> None:
    assert run.rows("XREADGROUP GROUP g b COUNT 1 CLAIM 10 STREAMS s >") == [
        [b"s", [[b"1-0", [b"f", b"v1"], 0, 0]]]
    ]


def test_claims_are_in_the_order_of_delivery_and_old_enough(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 3 STREAMS s >")
    run("XCLAIM s g b 0 2-0 IDLE 5000")
    run("XCLAIM s g b 0 1-0 IDLE 3000")
    assert run.ids("XREADGROUP GROUP g c COUNT 2 CLAIM 3000 STREAMS s >") == ["2-0", "1-0"]
    assert run.ids("XREADGROUP GROUP g c COUNT 2 CLAIM 3000 STREAMS s >") == ["4-0", "5-0"]
    assert run("XREADGROUP GROUP g c COUNT 2 CLAIM 3000 STREAMS s >") is None


def test_one_may_claim_from_oneself(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    run("XREADGROUP GROUP g a COUNT 1 CLAIM 0 STREAMS s >")
    assert run.pending() == [("1-0", "a", 2)]


def test_a_count_reached_by_claims_leaves_new_entries(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 2 STREAMS s >")
    assert run.ids("XREADGROUP GROUP g b COUNT 2 CLAIM 0 STREAMS s >") == ["1-0", "2-0"]
    assert run.ids("XREADGROUP GROUP g b STREAMS s >") == ["3-0", "4-0", "5-0"]


def test_count_with_claims_is_for_each_stream(run: Client) -> None:
    for number in range(1, 4):
        run(f"XADD t {number}-0 f v")
    run("XGROUP CREATE t g 0")
    run("XREADGROUP GROUP g a COUNT 2 STREAMS s t > >")
    reply = run.rows("XREADGROUP GROUP g b COUNT 3 CLAIM 0 STREAMS s t > >")
    assert [(key, len(entries)) for key, entries in reply] == [(b"s", 3), (b"t", 3)]


def test_deleted_entries_are_passed_over_and_stay_pending(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 3 STREAMS s >")
    run("XDEL s 1-0 2-0")
    assert run.ids("XREADGROUP GROUP g b COUNT 1 CLAIM 0 STREAMS s >") == ["3-0"]
    assert run.pending() == [("1-0", "a", 1), ("2-0", "a", 1), ("3-0", "b", 2)]


@pytest.mark.parametrize("count", [3, 300])
def test_deleted_entries_that_were_met_are_pending_all_the_same(run: Client, count: int) -> None:
    for number in range(1, count + 1):
        run(f"XADD t {number}-0 f v")
    run("XGROUP CREATE t g 0")
    run("XREADGROUP GROUP g a STREAMS t >")
    run("XNACK t g FAIL IDS 1 2-0")
    run("XTRIM t MAXLEN 0")
    assert run("XREADGROUP GROUP g b CLAIM 0 STREAMS t >") is None
    run(f"XADD t {count + 1}-0 f v")
    run("XREADGROUP GROUP g b STREAMS t >")
    assert run.ids("XREADGROUP GROUP g c CLAIM 0 STREAMS t >") == [f"{count + 1}-0"]
    assert len(run.pending("t")) == count + 1
    assert len(run.rows("XPENDING t g IDLE 0 - + 1000")) == count + 1
    assert len(run.rows("XPENDING t g IDLE 5000 - + 1000")) == 1
    assert run("XNACK t g FAIL IDS 1 3-0") == 1
    assert run("XACK t g 1-0 2-0 3-0") == 3
    assert len(run.pending("t")) == count - 2


def test_a_trimmed_id_that_is_used_again_can_be_claimed(run: Client) -> None:
    run("XREADGROUP GROUP g a STREAMS s >")
    run("XNACK s g FAIL IDS 1 5-0")
    run("XTRIM s MAXLEN 0")
    assert run("XREADGROUP GROUP g b CLAIM 0 STREAMS s >") is None
    run("XSETID s 0-1")
    run("XADD s 4-0 f v")
    run("XADD s 5-0 f v")
    assert run.ids("XREADGROUP GROUP g b CLAIM 0 STREAMS s >") == ["5-0", "4-0"]


def test_noack_does_not_cover_claims(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    assert len(run.ids("XREADGROUP GROUP g b NOACK COUNT 2 CLAIM 0 STREAMS s >")) == 2
    assert run.pending() == [("1-0", "b", 2)]


def test_claimed_and_then_new_again(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    run("XGROUP SETID s g 0")
    (stream,) = run.rows("XREADGROUP GROUP g b COUNT 2 CLAIM 0 STREAMS s >")
    assert isinstance(stream[1], list)
    assert [(entry[0], entry[3]) for entry in stream[1]] == [(b"1-0", 1), (b"1-0", 0)]
    assert stream[1][1][2] == 0
    assert run.pending() == [("1-0", "b", 1)]


def test_claims_with_a_history_in_the_same_call(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    run("XADD t 1-0 f v")
    run("XGROUP CREATE t g 0")
    reply = run.rows("XREADGROUP GROUP g a COUNT 1 CLAIM 0 STREAMS s t 0 >")
    assert reply == [
        [b"s", [[b"1-0", [b"f", b"v1"]]]],
        [b"t", [[b"1-0", [b"f", b"v"]]]],
    ]


def test_a_history_ends_claiming_for_the_streams_after_it(run: Client) -> None:
    """As in Redis: those before it are claimed from, those after it are read as without CLAIM."""
    for key in "tuv":
        run(f"XADD {key} 1-0 f v")
        run(f"XADD {key} 2-0 f v")
        run(f"XGROUP CREATE {key} g 0")
        run(f"XREADGROUP GROUP g b COUNT 1 STREAMS {key} >")
    reply = run.rows("XREADGROUP GROUP g a CLAIM 0 STREAMS t u v > 0 >")
    assert [key for key, _ in reply] == [b"t", b"u", b"v"]
    assert [len(entry) for entry in reply[0][1]] == [4, 4]
    assert reply[1][1] == []
    assert reply[2][1] == [[b"2-0", [b"f", b"v"]]]
    assert [owner for _, owner, _ in run.pending("v")] == ["b", "a"]


# XNACK


def test_xnack_modes(run: Client) -> None:
    run("XREADGROUP GROUP g a STREAMS s >")
    run("XREADGROUP GROUP g a STREAMS s 0")
    assert run("XNACK s g SILENT IDS 1 1-0") == 1
    assert run("XNACK s g FAIL IDS 1 2-0") == 1
    assert run("XNACK s g FATAL IDS 1 3-0") == 1
    assert run("XNACK s g fatal RETRYCOUNT 7 ids 2 4-0 9-0") == 1
    assert run.pending() == [
        ("1-0", "", 1), ("2-0", "", 2), ("3-0", "", FATAL), ("4-0", "", 7), ("5-0", "a", 2),
    ]  # fmt: skip
    assert [entry[2] for entry in run.rows("XPENDING s g - + 4")] == [-1] * 4
    assert run.rows("XPENDING s g")[0] == 5
    assert run.rows("XPENDING s g")[3] == [[b"a", b"1"]]
    assert run.ids("XREADGROUP GROUP g a STREAMS s 0") == ["5-0"]
    assert [run("XNACK s g SILENT IDS 1 1-0") for _ in range(3)] == [1, 1, 1]
    assert run.pending()[0] == ("1-0", "", 0)


def test_xnack_force(run: Client) -> None:
    assert run("XNACK s g SILENT IDS 2 1-0 9-0 FORCE") == 1
    assert run("XNACK s g FATAL FORCE IDS 1 2-0") == 1
    assert run("XNACK s g FAIL IDS 1 3-0 FORCE RETRYCOUNT 5") == 1
    assert run("XNACK s g FAIL IDS 1 4-0") == 0
    assert run.pending() == [("1-0", "", 0), ("2-0", "", FATAL), ("3-0", "", 5)]
    assert run("XINFO CONSUMERS s g") == []
    assert run("XACK s g 1-0 2-0") == 2


def test_the_zone_is_first_in_first_out_and_survives_its_consumer(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 4 STREAMS s >")
    assert run("XNACK s g FAIL IDS 4 3-0 1-0 2-0 3-0") == 4  # 3-0 twice: it ends last
    assert run("XGROUP DELCONSUMER s g a") == 1
    before_ms = time.time_ns() // 1_000_000
    (stream,) = run.rows("XREADGROUP GROUP g b CLAIM 100000 COUNT 9 STREAMS s >")
    assert isinstance(stream[1], list)
    assert [(e[0], e[3]) for e in stream[1]] == [
        (b"1-0", 1), (b"2-0", 1), (b"3-0", 1), (b"5-0", 0),
    ]  # fmt: skip
    assert stream[1][0][2] >= before_ms
    assert run.pending()[0] == ("1-0", "b", 2)


def test_xnack_errors(run: Client) -> None:
    run("XREADGROUP GROUP g a STREAMS s >")
    run("SET str x")
    for line, text in {
        "XNACK str g FOO IDS 1 1": (
            "WRONGTYPE Operation against a key holding the wrong kind of value"
        ),
        "XNACK nokey g FOO IDS 1 1": "NOGROUP No such key 'nokey' or consumer group 'g'",
        "XNACK s h FOO IDS 1 1": "NOGROUP No such key 's' or consumer group 'h'",
        "XNACK s g FOO IDS 1 1": "ERR mode must be SILENT, FAIL, or FATAL",
        "XNACK s g FAIL FATAL IDS 1 1": "ERR Unrecognized XNACK option 'FATAL'",
        "XNACK s g FAIL IDS 1 1 2": "ERR Unrecognized XNACK option '2'",
        "XNACK s g FAIL IDS 1 1 RETRYCOUNT": "ERR Unrecognized XNACK option 'RETRYCOUNT'",
        "XNACK s g FAIL IDS 0 1": "ERR numids must be a positive integer",
        "XNACK s g FAIL IDS 2147483648 1": "ERR numids must be a positive integer",
        "XNACK s g FAIL IDS x 1": "ERR numids must be a positive integer",
        "XNACK s g FAIL IDS 3 1 2": "ERR number of IDs doesn't match numids",
        "XNACK s g FAIL IDS 1 1 RETRYCOUNT -1": "ERR Invalid RETRYCOUNT value, must be >= 0",
        "XNACK s g FAIL IDS 1 1 RETRYCOUNT x": "ERR value is not an integer or out of range",
        "XNACK s g FAIL RETRYCOUNT 1 FORCE": "ERR syntax error, expected IDS keyword",
        "XNACK s g FAIL IDS 2 1-0 x": INVALID_ID,
        "XNACK s g FAIL IDS 1": "ERR wrong number of arguments for 'xnack' command",
    }.items():
        assert run.error(line) == text, line
    assert [owner for _, owner, _ in run.pending()] == ["a"] * 5


# XACKDEL and XDELEX


def test_xackdel_modes(run: Client) -> None:
    run("XGROUP CREATE s h 0")
    run("XREADGROUP GROUP g a STREAMS s >")
    run("XREADGROUP GROUP h a COUNT 3 STREAMS s >")
    assert run("XACKDEL s g IDS 2 1-0 9-0") == [1, -1]
    assert run("XACKDEL s g DELREF IDS 2 2-0 2-0") == [1, -1]
    # 3-0 is pending in h, 4-0 was not given to h yet.
    assert run("XACKDEL s g IDS 2 3-0 4-0 ACKED") == [2, 2]
    assert run.ids("XRANGE s - +") == ["3-0", "4-0", "5-0"]
    assert [each[0] for each in run.pending("s", "h")] == ["1-0", "3-0"]
    assert run("XACKDEL s h ACKED IDS 1 3-0") == [1]
    # It is gone already, but was pending.
    assert run("XACKDEL s h ACKED IDS 1 1-0") == [1]
    # Not pending: nothing happens to it.
    assert run("XACKDEL s h DELREF IDS 1 5-0") == [-1]
    assert run.ids("XRANGE s - +") == ["4-0", "5-0"]
    assert run.pending() == [("5-0", "a", 1)]


def test_xackdel_takes_released_entries(run: Client) -> None:
    run("XNACK s g FAIL IDS 1 1-0 FORCE")
    assert run("XACKDEL s g IDS 1 1-0") == [1]
    assert run("XDEL s 1-0") == 0


def test_xdelex_modes(run: Client) -> None:
    run("XREADGROUP GROUP g a COUNT 4 STREAMS s >")
    run("XACK s g 2-0")
    assert run("XDELEX s ACKED IDS 6 1-0 2-0 5-0 2-0 9-0 0-1") == [2, 1, 2, -1, 2, -1]
    assert run("XDELEX s IDS 1 1-0") == [1]
    assert run("XDELEX s IDS 2 1-0 3-0 DELREF") == [-1, 1]
    assert run.pending() == [("4-0", "a", 1)]
    assert run("XDELEX s KEEPREF IDS 1 4-0") == [1]
    assert run.pending() == [("4-0", "a", 1)]
    assert run.ids("XRANGE s - +") == ["5-0"]
    run("XGROUP DESTROY s g")
    assert run("XDELEX s ACKED IDS 1 5-0") == [1]


@pytest.mark.parametrize("name", ["XDELEX {}", "XACKDEL {} g"])
def test_ids_block_errors(run: Client, name: str) -> None:
    run("XREADGROUP GROUP g a STREAMS s >")
    run("SET str x")
    here = name.format("s")
    for tail, text in {
        "IDS 0 1-0": "ERR Number of IDs must be a positive integer",
        "IDS -1 1-0": "ERR Number of IDs must be a positive integer",
        "IDS x 1-0": "ERR Number of IDs must be a positive integer",
        "IDS 3 1-0 2-0": "ERR The `numids` parameter must match the number of arguments",
        "IDS 1 1-0 2-0": "ERR syntax error",
        "IDS 1 1-0 ACKED DELREF": "ERR syntax error",
        "KEEPREF ACKED IDS 1 1-0": "ERR syntax error",
        "IDS 1 1-0 IDS": "ERR syntax error",
        "ACKED 1-0 IDS": "ERR syntax error",
        "IDS 2 1-0 x": INVALID_ID,
    }.items():
        assert run.error(f"{here} {tail}") == text, tail
    wrong = "WRONGTYPE Operation against a key holding the wrong kind of value"
    assert run.error(name.format("str") + " IDS 0 x") == wrong
    assert run(name.format("nokey") + " ACKED IDS 2 x y") == [-1, -1]
    assert run.error(name.format("nokey") + " IDS 0 x") == (
        "ERR Number of IDs must be a positive integer"
    )
    assert run("XLEN s") == 5
    assert len(run.pending()) == 5


def test_xackdel_without_the_group(run: Client) -> None:
    assert run("XACKDEL s none IDS 2 x y") == [-1, -1]


# Trimming


@pytest.fixture
def nodes(client: RawClient) -> Iterator[Client]:
    run = Client(client)
    yield run
    run("CONFIG SET stream-node-max-entries 100")


def fill(run: Client, count: int, node_entries: int) -> None:
    run(f"CONFIG SET stream-node-max-entries {node_entries}")
    for number in range(1, count + 1):
        run(f"XADD s {number}-0 f v")
    run("XGROUP CREATE s g 0")


@pytest.mark.parametrize("mode", ["", "KEEPREF", "DELREF", "ACKED"])
@pytest.mark.parametrize(
    ("node_entries", "count", "trim", "left"),
    [
        (100, 1000, "MAXLEN ~ 555", {"": 600, "DELREF": 555, "ACKED": 555}),
        (100, 666, "MAXLEN ~ 444", {"": 466, "DELREF": 444, "ACKED": 444}),
        (10, 100, "MAXLEN ~ 55 LIMIT 30", {"": 70, "DELREF": 70, "ACKED": 70}),
        (2, 3, "MAXLEN ~ 0 LIMIT 1", {"": 3, "DELREF": 3, "ACKED": 3}),
        (2, 3, "MAXLEN ~ 0 LIMIT 2", {"": 1, "DELREF": 1, "ACKED": 1}),
        (1, 102, "MAXLEN ~ 1", {"": 2, "DELREF": 2, "ACKED": 2}),
        (10, 100, "MINID ~ 46", {"": 60, "DELREF": 55, "ACKED": 55}),
        (10, 100, "MINID 46", {"": 55, "DELREF": 55, "ACKED": 55}),
    ],
)
def test_trimming_of_what_is_acknowledged(
    nodes: Client, mode: str, node_entries: int, count: int, trim: str, left: dict[str, int]
) -> None:
    fill(nodes, count, node_entries)
    nodes("XREADGROUP GROUP g a NOACK STREAMS s >")
    length = left[mode if mode in left else ""]
    assert nodes(f"XTRIM s {trim} {mode}") == count - length
    assert nodes("XLEN s") == length


def test_acked_leaves_what_is_needed_in_every_node(nodes: Client) -> None:
    fill(nodes, 5, 2)
    nodes("XREADGROUP GROUP g a STREAMS s >")
    nodes("XACK s g 1-0 2-0 4-0")
    assert nodes("XTRIM s MINID ~ 6-0 ACKED") == 3
    assert nodes.ids("XRANGE s - +") == ["3-0", "5-0"]


def test_acked_protects_what_a_group_was_not_given(nodes: Client) -> None:
    fill(nodes, 5, 100)
    nodes("XREADGROUP GROUP g a NOACK COUNT 2 STREAMS s >")
    assert nodes("XTRIM s MAXLEN 0 ACKED") == 2
    assert nodes("XADD s ACKED MAXLEN = 1 6-0 f v") == b"6-0"
    assert nodes.ids("XRANGE s - +") == ["3-0", "4-0", "5-0", "6-0"]


def test_delref_drops_what_is_pending_with_the_entry(nodes: Client) -> None:
    fill(nodes, 6, 2)
    nodes("XGROUP CREATE s h 0")
    nodes("XREADGROUP GROUP g a STREAMS s >")
    nodes("XREADGROUP GROUP h a COUNT 3 STREAMS s >")
    nodes("XNACK s h FAIL IDS 1 1-0")
    assert nodes("XTRIM s MAXLEN ~ 3 DELREF") == 3
    assert [each[0] for each in nodes.pending()] == ["4-0", "5-0", "6-0"]
    assert nodes.pending("s", "h") == []
    assert nodes("XADD s DELREF MAXLEN 1 7-0 f v") == b"7-0"
    assert nodes.pending() == []


def test_keepref_keeps_what_is_pending(nodes: Client) -> None:
    fill(nodes, 3, 2)
    nodes("XREADGROUP GROUP g a STREAMS s >")
    assert nodes("XTRIM s MAXLEN 0 KEEPREF") == 3
    assert len(nodes.pending()) == 3
    assert nodes("XACK s g 1-0 2-0 3-0") == 3
