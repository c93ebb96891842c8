"""Pipelines of several clients against the real Redis, while other clients wait.

A client sends what it has in one write, many requests alike in a row as workers do. IDs are of the
far future, so that ``*`` stands for the same on both servers: the sequence after the last one.

Left out, for Redis 7.0 is not as newer ones are, which we follow:

- A consumer is made by every read, so all are made beforehand.
- Who is woken is served as if it had asked anew. Redis 7.0 looks at nothing but the key that has
  become ready, and gives an empty list for what was removed at once. So one transaction has one
  key, and ends with an entry that stays; no group is moved back while a client reads two streams
  for it; and no group goes while the newest entry of its stream is deleted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.campaigns import drawn
from support.client import Argument, RawClient, encode, parse
from support.groups import FAR_MS, HALF_MS, compare_groups, rows, table, without_clock
from support.process import Pair, RedisProcess, ServerProcess
from support.waiting import wait_until

pytestmark = pytest.mark.judge

KEYS = ("s", "t")
GROUPS = ("g", "h")
CONSUMERS = ("a", "b", "c")
ONE_READ_BYTES = 16 * 1024  # Redis reads no more at once
GONE = re.compile(
    rb"-UNBLOCKED the stream key no longer exists\r\n"
    rb"|-NOGROUP the consumer group this client was blocked on no longer exists\r\n"
)

Request = tuple[Argument, ...]


class Id(NamedTuple):
    """An ID, counted back from the newest of the stream; the next request has it a step later."""

    back: int
    rest: str = "-0"
    step: int = 1
    before: str = ""


class New(NamedTuple):
    """The ID of an entry to add, a step later than the newest."""

    step: int
    rest: str = "-0"


class Numbered(NamedTuple):
    """A value that tells the requests alike apart."""

    text: str


Word = Argument | Id | New | Numbered
Part = tuple[tuple[Word, ...], int]  # a request, and how many alike there are in a row


# What is sent


def request(*words: object) -> st.SearchStrategy[tuple[Word, ...]]:
    """A request of words, strategies for words, and strategies for tuples of words."""
    drawn = [word if isinstance(word, st.SearchStrategy) else st.just(word) for word in words]

    def flat(parts: Iterable[object]) -> tuple[Word, ...]:
        found: list[Word] = []
        for part in parts:
            if type(part) is tuple:  # and no ``Id`` or other word with a name
                found += part
            else:
                found.append(cast("Word", part))
        return tuple(found)

    return st.tuples(*drawn).map(flat)


def some(*choices: object) -> st.SearchStrategy[Any]:
    return st.sampled_from(choices)


Key = some(*KEYS)
Group = some("g", "g", "h")
Consumer = some(*CONSUMERS)
Ids = st.tuples(
    st.integers(-1, 20), st.sampled_from(["-0", "-0", "-0", "-1", ""]), st.sampled_from([1, 1, 0])
).map(lambda parts: Id(*parts))
Few = st.lists(Ids, min_size=1, max_size=3).map(tuple)
Start = st.one_of(st.just("-"), Ids, Ids.map(lambda found: found._replace(before="(")))
End = st.one_of(st.just("+"), Ids)
Count = some((), ("COUNT", 1), ("COUNT", 1), ("COUNT", 2), ("COUNT", 10))
Fields = some(
    ("f", Numbered("v")), ("f", Numbered("v")), ("f", Numbered("v")), ("f", Numbered("v"), "g", 7),
    ("f", Numbered("")), ("f", "x" * 64), ("g", "", "f", Numbered("v")),
)  # fmt: skip
Trim = some(
    (), (), ("MAXLEN", "~", 5), ("MAXLEN", "~", 5), ("MAXLEN", 5), ("MAXLEN", "=", 1),
    ("MINID", Id(9, step=0)), ("MINID", "~", Id(4, step=0)), ("MAXLEN", "~", 3, "LIMIT", 4),
    ("NOMKSTREAM",),
)  # fmt: skip
NewId = some(
    New(1), New(1), New(1), New(2), New(1, ""), New(1, "-*"), New(0, "-*"), New(0), "*", "*", "*"
)
MinIdle = some(0, 0, HALF_MS)

# Whatever gives its entry the newest ID succeeds, or what MINID trims would be the entry itself.
Add = st.one_of(
    request("XADD", Key, Trim, NewId, Fields),
    request("XADD", Key, Trim, NewId, Fields),
    request("XADD", Key, Trim, some("*", Id(0, step=0)), "f", "odd", "g"),
)
Look = st.one_of(
    request("XRANGE", Key, Start, End, Count),
    request("XREVRANGE", Key, End, Start, Count),
    request("XREAD", Count, "STREAMS", Key, Ids),
    request("XREAD", Count, "STREAMS", *KEYS, Ids, some("$", "0", Id(3))),
    request("XLEN", some(*KEYS, "none")),
    request("XPENDING", Key, Group),
    request("XPENDING", Key, Group, some((), ("IDLE", HALF_MS)), Start, End, 10),
    request("XPENDING", Key, Group, "-", "+", some(1, 20), Consumer),
)
ReadGroup = request(
    "XREADGROUP", "GROUP", Group, Consumer, Count, some((), (), ("NOACK",)), "STREAMS",
    st.one_of(request(Key, some(">", ">", Id(12), 0)), request(*KEYS, some(">", Id(5)), ">")),
)  # fmt: skip
Acknowledge = request("XACK", Key, some("g", "g", "h", "none"), st.one_of(Ids, Ids, Few))
Claim = st.one_of(
    request(
        "XCLAIM", Key, Group, Consumer, MinIdle, Few, some((), (), ("JUSTID",), ("FORCE",)),
        some((), ("IDLE", 2 * HALF_MS), ("RETRYCOUNT", 4)),
    ),
    request("XAUTOCLAIM", Key, Group, Consumer, MinIdle, Start, Count, some((), ("JUSTID",))),
)  # fmt: skip
Remove = st.one_of(
    request("XDEL", Key, Few),
    request("XTRIM", Key, some(("MAXLEN", 3), ("MAXLEN", "~", 6), ("MINID", Id(3)), ("MAXLEN", 0))),
)
Times = st.sampled_from([1, 2, 3, 8, 15])
Alike = st.one_of(
    st.tuples(st.one_of(Add, ReadGroup, Acknowledge), Times),
    st.tuples(st.one_of(Add, Look, ReadGroup, Acknowledge, Claim, Remove), Times),
)
Parts = st.lists(Alike, min_size=1, max_size=4)
Alikes = st.lists(Alike, max_size=1)
Looks = st.lists(st.tuples(Look, st.sampled_from([1, 2])), max_size=2)
Client = st.integers(0, 3)
STOCK: list[Part] = [
    (("XADD", "s", New(1), "f", Numbered("v")), 20),
    (("XREADGROUP", "GROUP", "g", "a", "COUNT", 1, "STREAMS", "s", ">"), 9),
    (("XREADGROUP", "GROUP", "g", "b", "COUNT", 6, "STREAMS", "s", ">"), 1),
    (("XACK", "s", "g", Id(17)), 2),
    (("XRANGE", "s", Id(17), "+", "COUNT", 2), 2),
    (("XREVRANGE", "s", "+", Id(17), "COUNT", 2), 2),
]


def joined(key: str, group: str) -> list[Request]:
    """A new group and its consumers."""
    names: list[Request] = [("XGROUP", "CREATECONSUMER", key, group, name) for name in CONSUMERS]
    return [("XGROUP", "CREATE", key, group, 0), *names]


def within(parts: list[Part], key: str) -> list[Part]:
    """The same for one stream alone."""
    return [(tuple(key if word in KEYS else word for word in words), n) for words, n in parts]


class Waiter:
    """A client that waits now and then.

    Attributes:
        requests: what it sent that has no reply: one that waits, and what stands behind it.
        keys, group: what it waits for.
    """

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.ids = [int(client.call("CLIENT", "ID")[1:]) for client in (pair.ours, pair.real)]
        self.requests: list[Request] = []
        self.keys: tuple[str, ...] = ()
        self.group = ""


class Machine(RuleBasedStateMachine):
    connect: Callable[[bool], Pair]

    def __init__(self) -> None:
        super().__init__()
        self.newest = dict.fromkeys(KEYS, 0)
        self.settled = False  # nothing is on its way, and nothing was found to differ
        self.watcher = self.connect(False)
        self.clients = [self.connect(number % 2 == 1) for number in range(4)]
        self.waiters = [Waiter(self.connect(number > 1)) for number in range(4)]

    @initialize(node_entries=some(3, 100), parts=Parts)
    def start(self, node_entries: int, parts: list[Part]) -> None:
        both = (self.watcher.ours, self.watcher.real)
        # Those of a run before have left.
        wait_until(lambda: all(b"blocked_clients:0\r" in c.call("INFO", "clients") for c in both))
        self.watcher.both("DEL", *KEYS)  # FLUSHALL would save, and meanwhile nothing runs at once
        self.watcher.both("CONFIG", "SET", "stream-node-max-entries", node_entries)
        for key in KEYS:
            self.send(self.clients[0], self.anew(key))
            self.send(self.clients[1], self.requests(within(STOCK, key)))
        self.send(self.clients[2], self.requests(parts))

    # What words stand for

    def requests(self, parts: list[Part]) -> list[Request]:
        found: list[Request] = []
        for words, times in parts:
            key = next((word for word in words if word in KEYS), KEYS[0])
            newest = self.newest[key]
            for number in range(times):
                found.append(tuple(self.argument(word, key, newest, number) for word in words))
        return found

    def argument(self, word: Word, key: str, newest: int, number: int) -> Argument:
        if isinstance(word, Id):
            ms = FAR_MS + newest - word.back + number * word.step
            return f"{word.before}{ms}{word.rest}"
        if isinstance(word, New):
            self.newest[key] += word.step
            return f"{FAR_MS + self.newest[key]}{word.rest}"
        return f"{word.text}{number}" if isinstance(word, Numbered) else word

    def anew(self, key: str) -> list[Request]:
        """An entry, and all groups and consumers."""
        found = self.requests([(("XADD", key, New(1), "f", "first"), 1)])
        return found + [words for group in GROUPS for words in joined(key, group)]

    def at_once(self, parts: list[Part], key: str) -> list[Request]:
        """A transaction about one stream."""
        if any(words[0] in ("XDEL", "XTRIM") for words, _ in parts):
            parts = [*parts, (("XADD", key, New(1), "f", "stays"), 1)]
        return [("MULTI",), *self.requests(within(parts, key)), ("EXEC",)]

    # Sending and comparing

    def send(self, pair: Pair, requests: list[Request], gone: str = "") -> None:
        """Send requests in one write; compare the replies, also those to clients that waited.

        Args:
            gone: the key that is deleted, or of which a group is destroyed.
        """
        self.write(pair, requests, requests)
        compare_replies(pair, requests)
        self.settle(gone)

    def write(self, pair: Pair, for_ours: list[Request], for_real: list[Request]) -> None:
        self.settled = False
        for client, requests in (pair.ours, for_ours), (pair.real, for_real):
            data = b"".join(encode(*words) for words in requests)
            assert len(data) < ONE_READ_BYTES
            client.send(data)

    def settle(self, gone: str = "") -> None:
        """See that the same clients wait on both; compare what the others have been told."""
        ours, real = (self.waiting(side) for side in (0, 1))
        assert ours == real, f"waiting\n  ours {ours!r}\n  real {real!r}"
        for number, waiter in enumerate(self.waiters):
            if not waiter.requests or number in ours:
                continue
            for words in waiter.requests:
                told, judged = waiter.pair.ours.read(), waiter.pair.real.read()
                if gone and waiter.group and GONE.fullmatch(judged):
                    judged = no_group(gone, waiter.group)
                compare(words, told, judged)
            waiter.requests = []
        self.settled = True

    def waiting(self, side: int) -> list[int]:
        """The waiters that a server says are blocked."""
        client = (self.watcher.ours, self.watcher.real)[side]
        lines = parse(client.call("CLIENT", "LIST", "ID", *[w.ids[side] for w in self.waiters]))
        assert isinstance(lines, bytes)
        blocked = re.findall(rb"^id=(\d+) .* flags=\w*b", lines, re.MULTILINE)
        return [n for n, w in enumerate(self.waiters) if b"%d" % w.ids[side] in blocked]

    def waits_or_is_told(self, number: int, side: int, client: RawClient) -> bool:
        return number in self.waiting(side) or not client.silent(0.001)

    def one_of_those_who_wait(self, number: int) -> Waiter:
        """If any does."""
        found = [waiter for waiter in self.waiters if waiter.requests] or self.waiters
        return found[number % len(found)]

    def reads_two_for_a_group(self) -> bool:
        return any(w.requests and w.group and len(w.keys) > 1 for w in self.waiters)

    # Pipelines

    @rule(client=Client, parts=Parts)
    def pipeline(self, client: int, parts: list[Part]) -> None:
        self.send(self.clients[client], self.requests(parts))

    @rule(client=Client, before=Alikes, inside=Parts, key=Key, after=Looks)
    def transaction(
        self, client: int, before: list[Part], inside: list[Part], key: str, after: list[Part]
    ) -> None:
        requests = self.requests(before)
        requests += self.at_once(inside, key)
        self.send(self.clients[client], requests + self.requests(after))

    @precondition(lambda self: all(len(w.keys) == 1 for w in self.waiters if w.requests))
    @rule(client=Client, other=Client, parts=Parts, others=Parts)
    def side_by_side(self, client: int, other: int, parts: list[Part], others: list[Part]) -> None:
        """Two clients at once, each with a stream of its own."""
        if client != other:
            mine = self.requests(within(parts, "s"))
            theirs = self.requests(within(others, "t"))
            self.write(self.clients[client], mine, mine)
            self.write(self.clients[other], theirs, theirs)
            compare_replies(self.clients[client], mine)
            compare_replies(self.clients[other], theirs)
            self.settle()

    # Waiting

    @rule(
        before=Alikes,
        count=Count,
        keys=some(("s",), ("s",), ("t",), KEYS, ("t", "s")),
        after=some("$", "$", Id(0, step=0), Id(2, step=0)),
        behind=Looks,
        clients=st.integers(1, 3),
    )
    def read(
        self,
        before: list[Part],
        count: Request,
        keys: tuple[str, ...],
        after: Word,
        behind: list[Part],
        clients: int,
    ) -> None:
        words = ("XREAD", *count, "BLOCK", 0, "STREAMS", *keys, *[after] * len(keys))
        for _ in range(clients):
            self.wait([*before, (words, 1)], behind, keys, "")

    @rule(
        before=Alikes,
        group=Group,
        consumers=st.lists(Consumer, min_size=1, max_size=3),
        count=Count,
        noack=some((), (), ("NOACK",)),
        keys=some(("s",), ("s",), ("t",), KEYS, ("t", "s")),
        behind=Looks,
    )
    def read_group(
        self,
        before: list[Part],
        group: str,
        consumers: list[str],
        count: Request,
        noack: Request,
        keys: tuple[str, ...],
        behind: list[Part],
    ) -> None:
        streams = ("STREAMS", *keys, *[">"] * len(keys))
        # Else there would mostly be something to give at once.
        before = [*before, (("XREADGROUP", "GROUP", group, "c", *streams), 1)]
        for name in consumers:
            words = ("XREADGROUP", "GROUP", group, name, *count, *noack, "BLOCK", 0, *streams)
            self.wait([*before, (words, 1)], behind, keys, group)

    def wait(
        self, parts: list[Part], behind: list[Part], keys: tuple[str, ...], group: str
    ) -> None:
        """Let a client send requests, the last of ``parts`` one that waits, if any client is free.

        Args:
            behind: what it sends in the same write, to be run when the wait is over.
        """
        number = next((n for n, waiter in enumerate(self.waiters) if not waiter.requests), None)
        if number is None:
            return
        waiter = self.waiters[number]
        requests = self.requests(parts)
        rest = self.requests(within(behind, keys[0]))
        self.write(waiter.pair, requests + rest, requests + rest)
        waiter.keys, waiter.group = keys, group
        waiter.requests = [requests.pop(), *rest]
        compare_replies(waiter.pair, requests)
        for side, client in enumerate((waiter.pair.ours, waiter.pair.real)):
            wait_until(partial(self.waits_or_is_told, number, side, client))
        self.settle()

    @rule(
        client=Client,
        before=Alikes,
        number=Client,
        how=some((), ("TIMEOUT",), ("ERROR",), ("ERROR",)),
        after=Parts,
    )
    def unblock(
        self, client: int, before: list[Part], number: int, how: Request, after: list[Part]
    ) -> None:
        """In the middle of a pipeline."""
        pair = self.clients[client]
        first, rest = self.requests(before), self.requests(after)
        ours, real = (
            [*first, ("CLIENT", "UNBLOCK", client_id, *how), *rest]
            for client_id in self.one_of_those_who_wait(number).ids
        )
        self.write(pair, ours, real)
        compare_replies(pair, ours)
        self.settle()

    # What they wait for goes

    @rule(client=Client, number=Client, key=Key, group=some(None, *GROUPS), chance=st.booleans())
    def lose(self, client: int, number: int, key: str, group: str | None, chance: bool) -> None:
        """A stream goes, or a group, and there is another."""
        if chance:
            return
        waiter = self.one_of_those_who_wait(number)
        if waiter.requests and key not in waiter.keys:
            key = waiter.keys[0]
        if group is None:
            self.send(self.clients[client], [("DEL", key), *self.anew(key)], key)
        elif self.newest_is_there(key):
            group = waiter.group or group
            requests = [("XGROUP", "DESTROY", key, group), *joined(key, group)]
            self.send(self.clients[client], requests, key)

    def newest_is_there(self, key: str) -> bool:
        facts = table(rows(self.watcher.real.call("XINFO", "STREAM", key)))
        entry = facts[b"last-entry"]
        return entry is not None and entry[0] == facts[b"last-generated-id"]

    @precondition(lambda self: not self.reads_two_for_a_group())
    @rule(client=Client, key=Key, group=Group, to=some("$", 0, Id(5)), parts=Parts)
    def move(self, client: int, key: str, group: str, to: Word, parts: list[Part]) -> None:
        """What was delivered comes again, to who asks or waits."""
        words = ("XGROUP", "SETID", key, group, to)
        self.send(self.clients[client], self.requests([(words, 1), *parts]))

    # The end

    def teardown(self) -> None:
        try:
            if self.settled:
                self.finish()
        finally:
            for pair in [self.watcher, *self.clients, *[waiter.pair for waiter in self.waiters]]:
                pair.close()

    def finish(self) -> None:
        for _ in self.waiters:
            self.unblock(0, [], 0, (), [])
        for key in KEYS:
            self.watcher.both("XRANGE", key, "-", "+")
            compare_groups(self.watcher, key, removed=True, counters_set=False)


def compare_replies(pair: Pair, requests: list[Request]) -> None:
    for words in requests:
        compare(words, pair.ours.read(), pair.real.read())


def compare(words: Request, ours: bytes, real: bytes) -> None:
    ours, real = without_clock(ours), without_clock(real)
    assert ours == real, f"{words!r}\n  ours {ours!r}\n  real {real!r}"


def no_group(key: str, group: str) -> bytes:
    """Return what is told since Redis 7.2."""
    text = f"-NOGROUP No such key '{key}' or consumer group '{group}'"
    return f"{text} in XREADGROUP with GROUP option\r\n".encode()


def test_any_pipelines(server: ServerProcess, redis_server: RedisProcess) -> None:
    class Here(Machine):
        @staticmethod
        def connect(resp3: bool) -> Pair:
            return Pair.of(server, redis_server, resp3=resp3)

    try:
        run_state_machine_as_test(
            Here,
            settings=settings(
                max_examples=drawn(50),
                stateful_step_count=30,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        for process in (server, redis_server):
            process.call("CONFIG", "SET", "stream-node-max-entries", 100)
