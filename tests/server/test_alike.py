"""What a pipeline runs at once has the effects and replies that it has one by one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain
from tempfile import TemporaryDirectory

from conftest import Factory
from hypothesis import example, given, settings
from hypothesis import strategies as st

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.persistence.aof.file import AppendOnlyFile
from headrace.protocol.replies import PackedReplies
from headrace.protocol.requests import RequestParser
from headrace.server.clients.session import NOBODY, Session
from headrace.server.config.config import Config
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.execute import execute
from headrace.server.dispatch.invoke import MOST_ALIKE, alike_until, run_alike
from headrace.server.dispatch.rows import NONE_ALIKE, TABLE
from headrace.server.durability.durability import Durability
from headrace.server.settings import Settings
from headrace.server.state import Server
from headrace.storage.stream.entry_log import SCATTERED_BLOCKS
from headrace.storage.stream.groups import Group
from headrace.storage.stream.run import ID_MAX
from headrace.storage.stream.stream import Stream
from headrace.storage.string.string import string_bytes
from support.campaigns import drawn
from support.client import Argument, parse
from support.process import ServerProcess
from support.snapshots import plain_stream

FUTURE = b"9999999999999-5"  # what `*` gives then does not depend on the time
KEYS = (b"s", b"t", b"text")
STRINGS = (b"a", b"b", b"c", b"text")
RECORDED = (b"SET", b"DEL", b"APPEND", b"XADD", b"XACK", b"SELECT", b"MULTI", b"EXEC")
OPTIONS: tuple[list[bytes], ...] = (
    [b"*"],
    [b"*"],
    [b"*"],
    [b"9999999999999-*"],
    [b"1-1"],
    [b"NOMKSTREAM", b"*"],
    [b"MAXLEN", b"~", b"3", b"*"],
    [b"MAXLEN", b"~", b"3", b"*"],
    [b"maxlen", b"~", b"0", b"*"],
    [b"MAXLEN", b"~", b"2", b"LIMIT", b"1", b"*"],
    [b"MAXLEN", b"~", b"2", b"DELREF", b"*"],
    [b"MAXLEN", b"=", b"4", b"*"],
    [b"IDMP", b"p", b"1", b"*"],
)
FIELDS: tuple[list[bytes], ...] = (
    [],
    [b"f", b"v"],
    [b"f", b"v"],
    [b"f", b"12"],
    [b"g", b"v"],
    [b"f", b"v", b"g"],
    [b"f", b"v", b"g", b"x" * 300],
)
Adding = st.tuples(
    st.sampled_from([b"XADD", b"XADD", b"xadd"]),
    st.sampled_from(KEYS[:2] * 4 + KEYS),
    st.sampled_from(OPTIONS),
    st.sampled_from(FIELDS),
).map(lambda words: [words[0], words[1], *words[2], *words[3]])
Range = st.tuples(
    st.sampled_from([b"XRANGE", b"XRANGE", b"XREVRANGE", b"xrange"]),
    st.sampled_from((*KEYS[:1] * 6, *KEYS, b"none")),
    st.sampled_from([(b"-", b"+"), (b"+", b"-"), (FUTURE, b"+"), (b"+", FUTURE), (b"x", b"-")]),
    st.sampled_from([[], *[[b"COUNT", b"2"]] * 3, [b"count", b"0"], [b"COUNT", b"x"], [b"COUNT"]]),
).map(lambda words: [words[0], words[1], *words[2], *words[3]])
TooShort = st.sampled_from([[b"XRANGE"], [b"XRANGE", b"s"], [b"XREVRANGE", b"s", b"+"]])
Ranges = st.lists(Range | Range | Range | TooShort, min_size=2, max_size=8)
Ack = st.tuples(
    st.sampled_from([*[b"XACK"] * 6, b"xack"]),
    st.sampled_from((*KEYS[:1] * 6, *KEYS, b"none")),
    st.sampled_from([*[b"g"] * 6, b"h", b"none"]),
    st.lists(
        st.sampled_from([*[b"9999999999999-%d" % seq for seq in range(4, 10)] * 2, b"7", b"x"]),
        min_size=1,
        max_size=2,
    ),
).map(lambda words: [words[0], words[1], words[2], *words[3]])
Delivery: list[list[bytes]] = [
    [b"XGROUP", b"CREATE", b"s", b"g", b"0"],
    [b"XREADGROUP", b"GROUP", b"g", b"c", b"STREAMS", b"s", b">"],
]
Acks = st.lists(Ack, min_size=2, max_size=8).map(lambda requests: [*Delivery, *requests])
Strings = st.lists(
    st.sampled_from(
        [
            *[[b"GET", key] for key in (*STRINGS, b"s", b"none")],
            *[[b"SET", key, value] for key in STRINGS for value in (b"12", b"text")],
            [b"SET", b"s", b"no stream any more"],
            [b"get", b"a"],
            [b"SET", b"a", b"v", b"EXAT", b"9999999999"],
            [b"SET", b"a", b"v", b"NX"],
            [b"SET", b"b", b"v", b"PXAT", b"1"],
            [b"APPEND", b"b", b"more"],
            [b"DEL", b"a", b"b"],
            [b"GET"],
        ]
    ),
    min_size=2,
    max_size=12,
)
Transaction = st.lists(Adding | Ack, min_size=2, max_size=12).map(
    lambda requests: [[b"MULTI"], *requests, [b"EXEC"]]
)
Others = st.sampled_from(
    [
        [b"XADD"],
        [b"XLEN", b"s"],
        [b"XDEL", b"s", b"9999999999999-6"],
        [b"XTRIM", b"s", b"MAXLEN", b"0"],
        [b"XGROUP", b"CREATE", b"s", b"g", b"$"],
        [b"XGROUP", b"DESTROY", b"s", b"g"],
        [b"XINFO", b"GROUPS", b"s"],
        [b"XINFO", b"STREAM", b"s"],
        [b"XGROUP", b"SETMODE", b"s", b"g", b"MAX-PENDING", b"3"],
        Delivery[1],
        [b"CONFIG", b"SET", b"stream-node-max-entries", b"2"],
        [b"MULTI"],
        [b"EXEC"],
        [b"CLIENT", b"REPLY", b"SKIP"],
        [b"SELECT", b"1"],
        [b"SELECT", b"0"],
        [b"HELLO", b"3"],
        [b"NOSUCH"],
    ]
)


class Side:
    """A server, and a client of it."""

    def __init__(self, aof_path: str | None = None) -> None:
        self.server = Server(Config())
        Settings(self.server)
        durability = Durability(self.server)
        self.files = durability.files
        self.dispatcher = Dispatcher(self.server, durability)
        if aof_path is not None:
            self.files.record_to(AppendOnlyFile(os.fsencode(aof_path), 0, 0))
        self.session = Session(1, self.server.data.dbs[0], 0, NOBODY)
        self.run([[b"CONFIG", b"SET", b"stream-node-max-entries", b"5"]])
        for db in (b"1", b"0"):
            self.run([[b"SELECT", db], [b"SET", b"text", b"x"]])
            self.run([[b"XADD", key, FUTURE, b"f", b"first"] for key in KEYS[:2]])

    def run(self, requests: list[list[bytes]]) -> bytes:
        """Return what the client gets."""
        self.session.out.clear()
        copies = [list(words) for words in requests]
        assert execute(self.dispatcher, self.session, copies, 0, len(copies)) == len(copies)
        return b"".join(self.session.out)

    def streams(self) -> list[object]:
        """All there is of the streams, what has a time left out."""
        found: list[object] = []
        for db in (self.server.data.dbs[0], self.server.data.dbs[1]):
            for key in KEYS[:2]:
                if key not in db:
                    continue
                stream = db[key].value
                if not isinstance(stream, Stream):
                    continue
                groups = [(name, self._pending(group)) for name, group in stream.groups.items()]
                found.append((key, plain_stream(stream)[:-2], groups))
        return found

    def strings(self) -> list[object]:
        """All strings with their deadlines."""
        entries = [
            entry
            for db in (self.server.data.dbs[0], self.server.data.dbs[1])
            for entry in db.every()
        ]
        return [(entry.key, string_bytes(entry.value), entry.expire_ms) for entry in entries]

    @staticmethod
    def _pending(group: Group) -> list[object]:
        """Return what is pending by ID, for whom, and then the order by time."""
        by_id = [
            (nack.ms, nack.seq, nack.count, nack.consumer and nack.consumer.name)
            for nack in group.pel.from_id(0, 0, 0)
        ]
        by_time = [(nack.ms, nack.seq) for chunk in group.by_time.chunks for nack in chunk.live()]
        return [by_id, by_time]

    def records(self) -> list[list[bytes]]:
        """What the append-only file has of the entries that were added, and of transactions."""
        aof = self.files.aof
        if aof is None:
            return []
        aof.write()
        with open(aof.path, "rb") as file:
            parser = RequestParser()
            parser.feed(file.read())
        aof.close()
        return [words for words in parser.take() if words[0].upper() in RECORDED]

    def calls(self, before: dict[bytes, int] | None = None) -> dict[bytes, int]:
        """Calls of each command, less those of ``before``."""
        before = before or {}
        return {name: row.calls - before.get(name, 0) for name, row in TABLE.items()}


@contextmanager
def none_alike() -> Iterator[None]:
    """Return what comes at once is run one by one, in a transaction, too."""
    asked = {row: row.run_alike for row in TABLE.values()}
    for row in asked:
        row.run_alike = None
    try:
        yield
    finally:
        for row, run_alike in asked.items():
            row.run_alike = run_alike


SAME: list[list[bytes]] = [[b"XADD", b"s", b"*", b"f", b"v"]] * 3
ACKS: list[list[bytes]] = [
    [b"XACK", b"s", b"g", b"9999999999999-%d" % seq] for seq in (5, 5, 8, 7, 6, 6)
]


@settings(max_examples=drawn(400))
@given(
    st.lists(
        (Adding | Adding | Adding | Others).map(lambda words: [words])
        | Transaction
        | Ranges
        | Acks
        | Strings
        | Strings.map(lambda requests: [[b"MULTI"], *requests, [b"EXEC"]])
    ).map(lambda parts: list(chain.from_iterable(parts))),
    st.booleans(),
)
@example(SAME, True)
@example([[b"MULTI"], *SAME, [b"EXEC"], *SAME], True)
@example([*SAME, *Delivery, *ACKS], True)
@example([*SAME, *Delivery, [b"MULTI"], *ACKS, [b"EXEC"]], True)
@example([*[[b"XINFO", b"GROUPS", b"s"]] * 2, [b"XINFO", b"STREAM", b"s"], [b"XINFO"]], False)
@example([[b"XRANGE", b"s", b"-", b"+"]] * 3 + [[b"XRANGE", b"s"], [b"XRANGE"]], False)
def test_a_pipeline_is_as_one_by_one(requests: list[list[bytes]], recorded: bool) -> None:
    with TemporaryDirectory() as directory:
        at_once = Side(f"{directory}/at_once" if recorded else None)
        by_one = Side(f"{directory}/by_one" if recorded else None)
        check_alike(at_once, by_one, requests)
        assert at_once.records() == by_one.records()


def check_alike(at_once: Side, by_one: Side, requests: list[list[bytes]]) -> None:
    """The replies and all else are the same whether requests come at once or one by one."""
    start = at_once.calls()
    got = at_once.run(requests)
    calls = at_once.calls(start)
    start = at_once.calls()
    with none_alike():
        assert got == b"".join([by_one.run([words]) for words in requests])
    assert at_once.streams() == by_one.streams()
    assert at_once.strings() == by_one.strings()
    assert at_once.server.changes.dirty == by_one.server.changes.dirty
    assert at_once.server.statistics.keyspace_hits == by_one.server.statistics.keyspace_hits
    assert at_once.server.statistics.keyspace_misses == by_one.server.statistics.keyspace_misses
    assert calls == by_one.calls(start)


def count_at_once(side: Side, requests: list[list[bytes]]) -> int:
    """Return how many of a pipeline are run at once, from its start on."""
    row = TABLE[requests[0][0].lower()]
    assert row.run_alike is not None
    until = alike_until(requests, 0, len(requests), row.alike_of_any_key)
    return run_alike(side.server, side.dispatcher.call, row, row.run_alike, requests, 0, until)[0]


def test_nodes_and_field_names_do_not_part_a_pipeline() -> None:
    side = Side()
    known, other, large = (
        [b"XADD", b"s", b"*", name, value]
        for name, value in ((b"f", b"v"), (b"g", b"v"), (b"f", b"v" * 5000))
    )
    mixed = [known, known, other, known, large, large, known]
    assert count_at_once(side, mixed) == len(mixed)
    assert count_at_once(side, [known] * (3 * MOST_ALIKE)) == MOST_ALIKE
    wider = [*known, b"g", b"v"]
    assert count_at_once(side, [known, known, wider, wider]) == 2


def test_strings_of_any_keys_are_set_and_read_at_once() -> None:
    side = Side()
    sets = [[b"SET", b"key:%d" % number, b"v" * number] for number in range(40)]
    assert count_at_once(side, sets) == len(sets)
    gets = [[b"GET", b"key:%d" % number] for number in range(60)]
    assert count_at_once(side, gets) == len(gets)
    assert count_at_once(side, [*gets, [b"GET", b"s"], *gets]) == len(gets)
    side.run([[b"SET", b"long", b"x" * 40_000]])
    assert count_at_once(side, [[b"GET", b"long"]] * 5) == 2
    side.run([[b"CONFIG", b"SET", b"notify-keyspace-events", b"KA"]])
    assert count_at_once(side, sets) == NONE_ALIKE


def test_many_keys_are_looked_at_ahead() -> None:
    """Where they are so many that they are in no cache, what each gets is the same."""
    side = Side()
    names = [b"key:%d" % number for number in range(9000)]
    assert side.run([[b"SET", name, name[4:]] for name in names]) == b"+OK\r\n" * len(names)
    wanted = b"".join([b"$%d\r\n%b\r\n" % (len(name) - 4, name[4:]) for name in names])
    assert side.run([[b"GET", name] for name in names]) == wanted
    assert side.run([[b"GET", b"n" + name] for name in names]) == b"$-1\r\n" * len(names)
    wanted = b"".join([b":%d\r\n" % (number + 1) for number in range(len(names))])
    assert side.run([[b"INCR", name] for name in names]) == wanted


def test_a_transaction_adds_its_entries_at_once() -> None:
    side = Side()
    row = TABLE[b"xadd"]
    ask = row.run_alike
    assert ask is not None
    counts: list[int] = []

    def asked(
        call: Call, requests: list[list[bytes]], first: int, end: int
    ) -> tuple[int, PackedReplies]:
        count, replies = ask(call, requests, first, end)
        counts.append(count)
        return count, replies

    row.run_alike = asked
    try:
        side.run([[b"MULTI"], *SAME, [b"XLEN", b"s"], *SAME, [b"EXEC"]])
    finally:
        row.run_alike = ask
    assert counts == [len(SAME), len(SAME)]


def test_ranges_of_one_stream_are_read_at_once_up_to_a_limit() -> None:
    side = Side()
    all_of_it = [b"XRANGE", b"s", b"-", b"+"]
    other = [b"XRANGE", b"t", b"-", b"+"]
    assert count_at_once(side, [all_of_it] * 5 + [other]) == 5
    side.run([[b"XADD", b"s", b"*", b"f", b"x" * 40_000]])
    assert count_at_once(side, [all_of_it] * 5) == 2


RangeEnds = st.sampled_from(
    [b"-", b"+", b"(5", b"5", b"0", b"x", b"%d-3" % 2**64]
    + [b"%d" % (2**exponent + by) for exponent in (10, 20, 40, 62, 63) for by in (-1, 1)]
) | st.integers(0, 4 * SCATTERED_BLOCKS).map(b"%d".__mod__)


@settings(max_examples=drawn(60))
@given(
    st.sampled_from([b"XRANGE", b"XREVRANGE"]),
    st.lists(st.tuples(RangeEnds, RangeEnds, st.integers(0, 3)), min_size=2, max_size=40),
)
def test_ranges_of_a_scattered_stream(name: bytes, ranges: list[tuple[bytes, bytes, int]]) -> None:
    """Their entries are looked for together before they are read."""
    side = _scattered()
    requests = [[name, b"s", start, end, b"COUNT", b"%d" % most] for start, end, most in ranges]
    at_once = side.run(requests)
    with none_alike():
        assert at_once == b"".join([side.run([words]) for words in requests])


@cache
def _scattered() -> Side:
    """A server with a stream of so many nodes that they are in no cache, some of them empty.

    Their times come evenly first, then further and further apart, up to the greatest.
    """
    side = Side()
    side.run([[b"CONFIG", b"SET", b"stream-node-max-entries", b"1"], [b"DEL", b"s"]])
    even = [b"%d-1" % (2 * number + 1) for number in range(SCATTERED_BLOCKS)]
    apart = [b"%d-7" % 2**exponent for exponent in range(14, 64)]
    last = b"%d-%d" % (ID_MAX, ID_MAX)
    side.run([[b"XADD", b"s", ms, b"f", ms] for ms in (*even, *apart, last)])
    side.run([[b"XDEL", b"s", *even[:9], *even[20:400:7], apart[3], last]])
    stream = side.server.data.dbs[0][b"s"].value
    assert isinstance(stream, Stream)
    assert stream.is_scattered()
    return side


def test_entries_of_one_group_are_acknowledged_at_once() -> None:
    side = Side()
    side.run([*SAME, *Delivery])
    other = [b"XACK", b"s", b"h", b"9999999999999-5"]
    wrong = [b"XACK", b"s", b"g", b"x"]
    assert count_at_once(side, [*ACKS, other]) == len(ACKS)
    assert count_at_once(side, [*ACKS, wrong, *ACKS]) == len(ACKS)
    assert count_at_once(side, [other, other]) == NONE_ALIKE
    side.run([[b"XGROUP", b"SETMODE", b"s", b"g", b"MAX-PENDING", b"1"]])
    assert count_at_once(side, ACKS) == NONE_ALIKE


def test_requests_without_fields_do_not_touch_their_key() -> None:
    side = Side()
    db = side.server.data.dbs[0]
    db.touch(b"s", 1)
    wrong = [b"XADD", b"s", b"MAXLEN", b"~", b"3", b"*"]
    assert side.run([wrong, wrong]).count(b"-ERR wrong number of arguments") == 2
    assert db[b"s"].usage == 1


def test_time_stands_still_in_a_transaction() -> None:
    side = Side()
    times = side.run([[b"MULTI"], *[[b"TIME"]] * 50, [b"EXEC"]]).split(b"*50\r\n")[1]
    assert times == 50 * times[: len(times) // 50]


def test_what_a_client_sees_of_itself_counts_before_it_is_sent() -> None:
    side = Side()
    big = [b"ECHO", b"x" * 100_000]
    assert execute(side.dispatcher, side.session, [big] * 30, 0, 30) == 11
    side.run([[b"MONITOR"]])
    assert execute(side.dispatcher, side.session, [big] * 30, 0, 30) == 6


def entries(count: int, key: str = "s") -> list[tuple[Argument, ...]]:
    return [("XADD", key, "*", "f", number) for number in range(count)]


def test_calls_are_counted_one_by_one(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        client.pipeline(*entries(1))
        client.call("CONFIG", "RESETSTAT")
        client.pipeline(*entries(500))
        assert server.info("commandstats")["cmdstat_xadd"].startswith("calls=500,usec=")
        told = client.call_parsed("LATENCY", "HISTOGRAM", "xadd")
        assert isinstance(told, list)
        assert told[1][:2] == [b"calls", 500]


def test_the_slow_log_has_every_one(fresh_server: Factory) -> None:
    server = fresh_server("--slowlog-log-slower-than", "0", "--slowlog-max-len", "100")
    with server.client() as client:
        client.pipeline(*entries(1))
        client.call("SLOWLOG", "RESET")
        client.pipeline(*entries(20))
        log = client.call_parsed("SLOWLOG", "GET", 100)
        assert isinstance(log, list)
        assert [words[4] for _, _, _, words, *_ in log if words[0] == b"XADD"] == [
            b"%d" % number for number in reversed(range(20))
        ]


def test_a_reader_that_waits_gets_the_first_one_alone(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client, server.client() as reader:
        client.pipeline(*entries(1))
        reader.send_command("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        while server.info("clients")["blocked_clients"] == "0":
            time.sleep(0.001)
        ids = [parse(reply) for reply in client.pipeline(*entries(5))]
        assert reader.read_parsed() == [[b"s", [[ids[0], [b"f", b"0"]]]]]


def test_listeners_are_told_of_every_one(fresh_server: Factory) -> None:
    server = fresh_server("--notify-keyspace-events", "Kt")
    with server.client() as client, server.client() as listener:
        client.pipeline(*entries(1))
        listener.call("SUBSCRIBE", "__keyspace@0__:s")
        client.pipeline(*entries(5))
        for _ in range(5):
            assert listener.read_parsed() == [b"message", b"__keyspace@0__:s", b"xadd"]
        assert listener.silent()


def test_who_watches_is_told(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client, server.client() as other:
        client.pipeline(*entries(1))
        client.pipeline(("WATCH", "s"), ("MULTI",), ("PING",))
        other.pipeline(*entries(5))
        assert client.call_parsed("EXEC") is None


def test_all_of_them_are_in_the_file(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    assert isinstance(server, ServerProcess)
    for count in (100, 1, 100):
        with server.client() as client:
            client.pipeline(*entries(count))
    before = server.call("XRANGE", "s", "-", "+")
    server.restart(crash=True)
    assert server.call("XRANGE", "s", "-", "+") == before
    assert server.call("XLEN", "s") == 201
