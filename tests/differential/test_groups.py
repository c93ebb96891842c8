"""Consumer groups against the real Redis.

Where Redis has become another since 7.0, which judges too, the tests follow the newer one: a
consumer is made by every read and claim, so here it is made beforehand; ``entries-read`` and
``lag`` are told exactly also after entries were removed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.campaigns import drawn
from support.client import Argument, Status, parse
from support.groups import (
    FAR_MS,
    GREATEST,
    HALF_MS,
    compare_full,
    compare_groups,
    compare_pending,
    compare_positions,
    rows,
    table,
)
from support.process import Pair, RedisProcess, ServerProcess

pytestmark = pytest.mark.judge

LONG_MS = 2 * HALF_MS  # entries are delivered now or that long ago

WRONG_CALLS = [
    # XGROUP
    "XGROUP", "XGROUP FOO", "XGROUP foo s g", "XGROUP HELP x", "XGROUP CREATE", "XGROUP CREATE s",
    "XGROUP CREATE s n", "XGROUP CREATE s n 0 FOO", "XGROUP CREATE s n 0 MKSTREAM FOO",
    "XGROUP CREATE s n 0 ENTRIESREAD", "XGROUP CREATE s n 0 ENTRIESREAD x",
    "XGROUP CREATE s n 0 ENTRIESREAD -2", "XGROUP CREATE s n 0 ENTRIESREAD -1",
    "XGROUP CREATE s n 0 ENTRIESREAD 3 MKSTREAM", "XGROUP CREATE s n 0 mkstream entriesread 3",
    "XGROUP CREATE s n 0 ENTRIESREAD 1 ENTRIESREAD 2",
    "XGROUP CREATE s n 0 MKSTREAM MKSTREAM MKSTREAM MKSTREAM",
    "XGROUP CREATE s n 0 MKSTREAM MKSTREAM MKSTREAM",
    "XGROUP CREATE str n 0", "XGROUP CREATE str n x MKSTREAM", "XGROUP CREATE nokey n 0",
    "XGROUP CREATE nokey n x", "XGROUP CREATE nokey n x MKSTREAM",
    "XGROUP CREATE nokey n 0 MKSTREAM", "XGROUP CREATE nokey n $ MKSTREAM",
    "XGROUP CREATE nokey n 7-7 MKSTREAM", "XGROUP CREATE s n x", "XGROUP CREATE s n -",
    "XGROUP CREATE s n +", "XGROUP CREATE s n >", "XGROUP CREATE s n $", "XGROUP CREATE s n 5",
    "XGROUP CREATE s g 0", "XGROUP CREATE s g x", "XGROUP CREATE s g 0 FOO", "xgroup create s n 0",
    "XGROUP SETID", "XGROUP SETID s g", "XGROUP SETID s g x", "XGROUP SETID s g 0",
    "XGROUP SETID s g -", "XGROUP SETID s g +", "XGROUP SETID s g $", "XGROUP SETID s g (1",
    "XGROUP SETID s g 3 ENTRIESREAD 2", "XGROUP SETID s g 3 ENTRIESREAD", "XGROUP SETID s g 3 FOO",
    "XGROUP SETID s g 3 ENTRIESREAD x", "XGROUP SETID s g 3 ENTRIESREAD -2",
    "XGROUP SETID s g 3 ENTRIESREAD -1", "XGROUP SETID s g 3 MKSTREAM",
    "XGROUP SETID s g 3 ENTRIESREAD 1 ENTRIESREAD 2", "XGROUP SETID s none 0",
    "XGROUP SETID s none x", "XGROUP SETID nokey g 0", "XGROUP SETID nokey g x",
    "XGROUP SETID str g 0", "XGROUP SETID s none 0 FOO",
    "XGROUP DESTROY", "XGROUP DESTROY s", "XGROUP DESTROY s g x", "XGROUP DESTROY s none",
    "XGROUP DESTROY nokey g", "XGROUP DESTROY str g", "XGROUP DESTROY s g",
    "XGROUP CREATECONSUMER s g", "XGROUP CREATECONSUMER s g a", "XGROUP CREATECONSUMER s g n",
    "XGROUP CREATECONSUMER s none a", "XGROUP CREATECONSUMER nokey g a",
    "XGROUP CREATECONSUMER str g a", "XGROUP CREATECONSUMER s g a b",
    "XGROUP DELCONSUMER s g", "XGROUP DELCONSUMER s g a", "XGROUP DELCONSUMER s g none",
    "XGROUP DELCONSUMER s none a", "XGROUP DELCONSUMER nokey g a", "XGROUP DELCONSUMER str g a",
    "XGROUP DELCONSUMER s g a b", "XGROUP DELCONSUMER s g A",
    # XACK
    "XACK", "XACK s", "XACK s g", "XACK s g x", "XACK s g 1-1 x", "XACK s g -", "XACK s g 1",
    "XACK s g 1-1", "XACK s g 1-1 1-1", "XACK s g 1-1 9-9 3-3", "XACK s g 2-2", "XACK s none x",
    "XACK nokey g x", "XACK str g 1-1", "XACK str g x",
    # XPENDING
    "XPENDING", "XPENDING s", "XPENDING s g", "XPENDING s h", "XPENDING s none", "XPENDING nokey g",
    "XPENDING str g", "XPENDING s g -", "XPENDING s g - +", "XPENDING s g - + x",
    "XPENDING s g - + 0", "XPENDING s g - + -1", "XPENDING s g x + 5", "XPENDING s g - x 5",
    "XPENDING s g + - 5", "XPENDING s g 3 3 5", "XPENDING s g (1-1 (4-4 5", "XPENDING s g ( + 5",
    f"XPENDING s g ({GREATEST} + 5", "XPENDING s g - (0 5", "XPENDING s g (- + 5",
    "XPENDING s g - + 5 none", "XPENDING s g IDLE", "XPENDING s g IDLE 0",
    "XPENDING s g IDLE x - + 5", "XPENDING s g IDLE 0 - +", "XPENDING s g IDLE 0 - + x",
    "XPENDING s g IDLE 5 - 5", "XPENDING s g - + 5 none b", "XPENDING s g - + 5 none b c",
    "XPENDING s g - + 5 none b c d", "XPENDING s g IDLE 0 - + 5 none b",
    "XPENDING s none - + 5", "XPENDING s none x + 5", "XPENDING nokey g - + x",
    "XPENDING str g - + 5", "XPENDING str g x + 5", "XPENDING s g IDLE 9999999999 - + 5",
    "XPENDING s h - + 5", "XPENDING s g IDLE 99999999999999999999 - + 5",
    # XCLAIM
    "XCLAIM", "XCLAIM s g a", "XCLAIM s g a 0", "XCLAIM s g a x 1-1", "XCLAIM s g a 0 x",
    "XCLAIM s g a -5 1-1", "XCLAIM s g b 0 1-1 x 3-3", "XCLAIM s g b 0 1-1 FOO",
    "XCLAIM s g b 0 1-1 IDLE", "XCLAIM s g b 0 1-1 IDLE x", "XCLAIM s g b 0 1-1 TIME",
    "XCLAIM s g b 0 1-1 TIME x", "XCLAIM s g b 0 1-1 RETRYCOUNT", "XCLAIM s g b 0 1-1 LASTID",
    "XCLAIM s g b 0 1-1 RETRYCOUNT x", "XCLAIM s g b 0 1-1 RETRYCOUNT -1",
    "XCLAIM s g b 0 1-1 LASTID x", "XCLAIM s g b 0 1-1 LASTID -", "XCLAIM s g b 0 1-1 IDLE -5",
    "XCLAIM s g b 0 1-1 TIME -5", "XCLAIM s g b 0 FORCE", "XCLAIM s g b 0 FORCE JUSTID",
    "XCLAIM s g b 0 -", "XCLAIM s g b 0 1-1 FORCE 3-3", "XCLAIM s g b 0 1-1 1-1 JUSTID",
    "XCLAIM s g b 0 8-8", "XCLAIM s g b 0 8-8 FORCE", "XCLAIM s g b 0 8-8 FORCE JUSTID",
    "XCLAIM s g b 0 99-1 FORCE", "XCLAIM s g b 0 2-2", "XCLAIM s g b 0 2-2 1-1 JUSTID",
    "XCLAIM s g b 0 1-1 RETRYCOUNT 7 JUSTID", "XCLAIM s g b 0 1-1 RETRYCOUNT 0",
    "XCLAIM s g b 0 1-1 LASTID 8", "XCLAIM s g b 0 8-8 LASTID 9", "XCLAIM s g b 0 1-1 LASTID 1",
    "XCLAIM s g b 9999999999 1-1", "XCLAIM s none b 0 1-1", "XCLAIM s none b x 1-1",
    "XCLAIM nokey g b x y", "XCLAIM str g b 0 1-1", "XCLAIM str g b x 1-1",
    "XCLAIM s g b 0 1-1 justid force idle 5 retrycount 3", "XCLAIM s g b 0 1-1 IDLE 5 TIME 5",
    f"XCLAIM s g b 0 1-1 TIME {FAR_MS}", "XCLAIM s g b 0 1-1 IDLE 99999999999999",
    "XCLAIM s g b 0 1 3", "XCLAIM s g b 99999999999999999999 1-1",
    # XAUTOCLAIM
    "XAUTOCLAIM", "XAUTOCLAIM s g b 0", "XAUTOCLAIM s g b x 0", "XAUTOCLAIM s g b 0 x",
    "XAUTOCLAIM s g b 0 -", "XAUTOCLAIM s g b 0 +", "XAUTOCLAIM s g b 0 (1-1",
    f"XAUTOCLAIM s g b 0 ({GREATEST}", "XAUTOCLAIM s g b 0 (", "XAUTOCLAIM s g b 0 0 COUNT",
    "XAUTOCLAIM s g b 0 0 COUNT 0", "XAUTOCLAIM s g b 0 0 COUNT -1", "XAUTOCLAIM s g b 0 0 COUNT x",
    "XAUTOCLAIM s g b 0 0 COUNT 1", "XAUTOCLAIM s g b 0 0 COUNT 2", "XAUTOCLAIM s g b 0 0 FOO",
    "XAUTOCLAIM s g b 0 0 JUSTID", "XAUTOCLAIM s g b 0 0 COUNT 1 JUSTID COUNT 3",
    "XAUTOCLAIM s g b 0 0 JUSTID FOO", "XAUTOCLAIM s g b -5 0", "XAUTOCLAIM s g b 9999999999 0",
    "XAUTOCLAIM s none b 0 0", "XAUTOCLAIM s none b x 0", "XAUTOCLAIM nokey g b 0 x",
    "XAUTOCLAIM nokey g b 0 0", "XAUTOCLAIM str g b 0 0", "XAUTOCLAIM str g b 0 x",
    "XAUTOCLAIM s g b 0 0 COUNT 9223372036854775807", "XAUTOCLAIM s h a 0 0",
    "XAUTOCLAIM s g b 0 0 COUNT 576460752303423488", "XAUTOCLAIM s g b 0 9",
    # XREADGROUP
    "XREADGROUP", "XREADGROUP GROUP g a", "XREADGROUP GROUP g a STREAMS s",
    "XREADGROUP GROUP g a STREAMS s x", "XREADGROUP GROUP g a STREAMS s -",
    "XREADGROUP GROUP g a STREAMS s $", "XREADGROUP GROUP g a STREAMS s >",
    "XREADGROUP GROUP g a STREAMS s 0", "XREADGROUP GROUP g a STREAMS s 1-1",
    "XREADGROUP GROUP g a STREAMS s 3", "XREADGROUP GROUP g b COUNT 1 STREAMS s 0",
    f"XREADGROUP GROUP g a STREAMS s {GREATEST}", "XREADGROUP GROUP g a COUNT x STREAMS s >",
    "XREADGROUP GROUP g a COUNT 0 STREAMS s >", "XREADGROUP GROUP g a COUNT -1 STREAMS s >",
    "XREADGROUP GROUP g a BLOCK x STREAMS s >", "XREADGROUP GROUP g a BLOCK -1 STREAMS s >",
    "XREADGROUP GROUP none a STREAMS s >", "XREADGROUP GROUP none a STREAMS s 0",
    "XREADGROUP GROUP none a STREAMS s x", "XREADGROUP GROUP g a STREAMS nokey >",
    "XREADGROUP GROUP g a STREAMS str >", "XREADGROUP GROUP g a STREAMS s s > >",
    "XREADGROUP GROUP g a STREAMS s nokey > >", "XREADGROUP GROUP g a STREAMS s str > >",
    "XREADGROUP GROUP g a STREAMS str nokey > >", "XREADGROUP GROUP g a STREAMS nokey str > >",
    "XREADGROUP GROUP g a STREAMS nokey s > x", "XREADGROUP GROUP g a STREAMS s nokey x >",
    "XREADGROUP GROUP g STREAMS s >", "XREADGROUP COUNT 1 COUNT 1 STREAMS s >",
    "XREADGROUP GROUP g a NOACK STREAMS s >", "XREADGROUP GROUP g a NOACK COUNT 1 STREAMS s 0",
    "XREADGROUP GROUP g a FOO STREAMS s >", "XREADGROUP NOACK NOACK NOACK STREAMS s >",
    "XREADGROUP GROUP g a COUNT 1 GROUP g b STREAMS s >", "xreadgroup group g a streams s >",
    # XINFO
    "XINFO GROUPS", "XINFO GROUPS nokey", "XINFO GROUPS str", "XINFO GROUPS s x", "XINFO GROUPS t",
    "XINFO CONSUMERS", "XINFO CONSUMERS s", "XINFO CONSUMERS s none", "XINFO CONSUMERS nokey g",
    "XINFO CONSUMERS str g", "XINFO CONSUMERS t none", "XINFO CONSUMERS s g x",
    "XINFO STREAM s FULL COUNT x", "XINFO STREAM nokey FULL COUNT x", "XINFO STREAM s FULL FOO 1",
    "XINFO STREAM nokey FOO", "XINFO STREAM str FULL COUNT", "XINFO STREAM str FULL COUNT x",
]  # fmt: skip


def stock(pair: Pair) -> None:
    pair.both("FLUSHALL")
    pair.both("SET", "str", "x")
    pair.both("XGROUP", "CREATE", "t", "none", 0, "MKSTREAM")
    for number in range(1, 10):
        pair.both("XADD", "s", f"{number}-{number}", "field", f"value {number}", "n", number)
    for name in ("g", "h"):
        pair.both("XGROUP", "CREATE", "s", name, 0)
    pair.both("XGROUP", "CREATECONSUMER", "s", "h", "a")
    for consumer, count in ("a", 3), ("b", 2):
        pair.both("XREADGROUP", "GROUP", "g", consumer, "COUNT", count, "STREAMS", "s", ">")
    pair.both("XDEL", "s", "2-2")


@pytest.fixture(params=[False, True], ids=["resp2", "resp3"])
def stocked(
    request: pytest.FixtureRequest, server: ServerProcess, redis_server: RedisProcess
) -> Iterator[Pair]:
    """A stream ``s`` whose group ``g`` has two consumers; of what they hold 2-2 was deleted."""
    pair = Pair.of(server, redis_server, resp3=request.param)
    stock(pair)
    yield pair
    pair.close()


def test_more_streams_than_nine_in_one_reply(stocked: Pair) -> None:
    keys = [f"s{number}" for number in range(12)]
    for key in keys:
        stocked.both("XADD", key, "1-1", "f", key)
        stocked.both("XGROUP", "CREATE", key, "g", 0)
        stocked.both("XGROUP", "CREATECONSUMER", key, "g", "a")
    for some in (9, 10, 12):
        stocked.both("XREAD", "STREAMS", *keys[:some], *[0] * some)
        stocked.both("XREAD", "STREAMS", "nokey", *keys[:some], *[0] * (some + 1))
    stocked.both("XREADGROUP", "GROUP", "g", "a", "STREAMS", *keys, *">>>>>>>>>>>>")
    stocked.both("XREADGROUP", "GROUP", "g", "a", "STREAMS", *keys, *[0] * 12)


@pytest.mark.parametrize("command", sorted({call.split(" ")[0] for call in WRONG_CALLS}))
def test_wrong_and_odd_calls(stocked: Pair, command: str) -> None:
    for call in WRONG_CALLS:
        words = call.split(" ")
        if words[0] != command:
            continue
        stock(stocked)
        if command == "XPENDING":
            compare_pending(stocked, *words[1:])
        else:
            stocked.both(*words)
        for key in ("t", "str", "nokey"):
            stocked.both("TYPE", key)
        compare_full(stocked, "s")


@pytest.mark.parametrize("count", [1, 3, 10, 150])
def test_sweeps_and_histories_that_cross_blocks(pair: Pair, count: int) -> None:
    """Of 350 entries every 7th is idle for long and every 11th was deleted, some of them both."""
    pair.both("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    for consumer in "abc":
        pair.both("XGROUP", "CREATECONSUMER", "s", "g", consumer)
    for number in range(1, 351):
        pair.both("XADD", "s", f"{number}-1", "field", f"value {number}")
    for _ in range(50):
        for consumer, most in ("a", 5), ("b", 2):
            words = ("GROUP", "g", consumer, "COUNT", most, "STREAMS", "s", ">")
            pair.both("XREADGROUP", *words)
    idle = [f"{number}-1" for number in range(7, 351, 7)]
    pair.both("XCLAIM", "s", "g", "b", 0, *idle, "IDLE", LONG_MS, "JUSTID")
    pair.both("XDEL", "s", *[f"{number}-1" for number in range(11, 351, 11)])
    for consumer in "ab":
        for after in (0, 6, 49, 100, 340, 350):
            words = ("GROUP", "g", consumer, "COUNT", count, "STREAMS", "s", f"{after}-1")
            pair.both("XREADGROUP", *words)
    pair.both("XCLAIM", "s", "g", "b", 0, *idle, "IDLE", LONG_MS, "JUSTID")
    cursor = b"0-0"
    for _ in range(400):
        sweep = ("XAUTOCLAIM", "s", "g", "c", HALF_MS, cursor, "COUNT", count)
        ours, real = (client.call(*sweep) for client in (pair.ours, pair.real))
        assert ours == real
        cursor = rows(ours)[0]
        if cursor == b"0-0":
            break
    else:
        raise AssertionError("no end")
    compare_full(pair, "s")


def test_help_begins_and_ends_as_that_of_redis(stocked: Pair) -> None:
    for name in ("XGROUP", "XINFO"):
        ours, real = (rows(client.call(name, "HELP")) for client in (stocked.ours, stocked.real))
        assert all(isinstance(line, Status) for line in ours)
        assert (ours[0], ours[-2]) == (real[0], real[-2])
        assert ours[-1] == b"    Print this help."


# Anything in any order

KEY = "s"
# IDs are counted back from the newest one: few, so they meet again and again, however long it goes.
Back = st.integers(-1, 6)
Backs = st.lists(Back, min_size=1, max_size=4)
Bounds = st.one_of(st.tuples(st.sampled_from(["", "("]), Back), st.sampled_from(["-", "+"]))
Groups = st.sampled_from(["g", "h"])
Consumers = st.sampled_from(["a", "b", "c"])
Counts = st.sampled_from([0, 1, 2, 3])
EntriesRead = st.sampled_from([None, None, None, -1, 1, 2])
MinIdle = st.sampled_from([0, 0, HALF_MS])
ClaimOptions = st.tuples(
    st.sampled_from([(), (), ("IDLE", LONG_MS), ("IDLE", 0), ("TIME", 1_000), ("TIME", FAR_MS)]),
    st.sampled_from([(), (), ("RETRYCOUNT", 0), ("RETRYCOUNT", 5)]),
    st.sampled_from([(), ("FORCE",)]),
    st.sampled_from([(), ("JUSTID",)]),
).map(lambda parts: [word for part in parts for word in part])


class Machine(RuleBasedStateMachine):
    pair: Pair

    def __init__(self) -> None:
        super().__init__()
        self.newest = 0
        self.removed = False
        self.counters_set = False  # and may be, which the lag then depends on

    @initialize(count=st.integers(0, 8), counters_set=st.booleans())
    def start(self, count: int, counters_set: bool) -> None:
        self.counters_set = counters_set
        self.both("FLUSHALL")
        self.both("XGROUP", "CREATE", KEY, "g", 0, "MKSTREAM")
        self.both("XGROUP", "CREATE", KEY, "h", "$")
        self.add(count)

    def both(self, *words: Argument) -> bytes:
        return self.pair.both(*words)

    def id(self, back: int) -> str:
        return f"{max(0, self.newest - back)}-0"

    def ids(self, backs: list[int]) -> list[str]:
        return [self.id(back) for back in backs]

    def bound(self, bound: str | tuple[str, int]) -> str:
        return bound if isinstance(bound, str) else bound[0] + self.id(bound[1])

    # The log

    @rule(count=st.integers(1, 4))
    def add(self, count: int) -> None:
        for _ in range(count):
            self.newest += 1
            self.both("XADD", KEY, f"{self.newest}-0", "field", "value")

    @rule(backs=Backs)
    def delete(self, backs: list[int]) -> None:
        if self.both("XDEL", KEY, *self.ids(backs)) != b":0\r\n":
            self.removed = True

    @rule(
        strategy=st.sampled_from(["MAXLEN", "MINID"]),
        operator=st.sampled_from(["=", "~"]),
        keep=st.integers(0, 6),
    )
    def trim(self, strategy: str, operator: str, keep: int) -> None:
        threshold: Argument = keep if strategy == "MAXLEN" else self.id(keep - 1)
        if self.both("XTRIM", KEY, strategy, operator, threshold) != b":0\r\n":
            self.removed = True

    @precondition(lambda self: self.counters_set)
    @rule(back=Back, added=st.one_of(st.none(), st.integers(0, 9)), deleted=Back)
    def set_id(self, back: int, added: int | None, deleted: int) -> None:
        words: list[Argument] = ["XSETID", KEY, self.id(back)]
        if added is not None:
            words += ["ENTRIESADDED", added, "MAXDELETEDID", self.id(deleted)]
        ours = self.pair.ours.call(*words)
        if b"smaller than current max_deleted_entry_id" in ours:  # Redis 7.0 has no such
            return
        assert ours == self.pair.real.call(*words), words
        if ours == b"+OK\r\n":
            self.newest = max(0, self.newest - back)

    # The groups

    @rule(group=Groups, back=st.one_of(Back, st.none()), entries_read=EntriesRead)
    def create(self, group: str, back: int | None, entries_read: int | None) -> None:
        position = "$" if back is None else self.id(back)
        words = self.entries_read(entries_read)
        self.both("XGROUP", "CREATE", KEY, group, position, "MKSTREAM", *words)

    @rule(group=Groups, to=st.one_of(Back, st.sampled_from("-+$")), entries_read=EntriesRead)
    def move(self, group: str, to: int | str, entries_read: int | None) -> None:
        position = to if isinstance(to, str) else self.id(to)
        self.both("XGROUP", "SETID", KEY, group, position, *self.entries_read(entries_read))

    def entries_read(self, count: int | None) -> list[Argument]:
        """The option with that name; Redis 7.0 would take more than there ever were."""
        if count is None or not self.counters_set:
            return []
        facts = parse(self.pair.ours.call("XINFO", "STREAM", KEY))
        added = table(facts)[b"entries-added"] if isinstance(facts, list) else 0
        return ["ENTRIESREAD", min(count, added)]

    @rule(group=Groups, chance=st.integers(0, 4))
    def destroy(self, group: str, chance: int) -> None:
        if not chance:
            self.both("XGROUP", "DESTROY", KEY, group)
            self.both("XGROUP", "CREATE", KEY, group, 0)

    @rule(group=Groups, consumer=Consumers)
    def delete_consumer(self, group: str, consumer: str) -> None:
        self.both("XGROUP", "DELCONSUMER", KEY, group, consumer)

    def join(self, group: str, consumer: str) -> None:
        self.both("XGROUP", "CREATECONSUMER", KEY, group, consumer)

    # Reading and acknowledging

    @rule(group=Groups, consumer=Consumers, count=Counts, noack=st.sampled_from([(), ("NOACK",)]))
    def read(self, group: str, consumer: str, count: int, noack: tuple[str, ...]) -> None:
        self.join(group, consumer)
        options = ["COUNT", str(count), *noack]
        self.both("XREADGROUP", "GROUP", group, consumer, *options, "STREAMS", KEY, ">")

    @rule(group=Groups, consumer=Consumers)
    def read_all(self, group: str, consumer: str) -> None:
        self.read(group, consumer, 0, ())

    @rule(group=Groups, consumer=Consumers, count=Counts, back=st.integers(0, 12))
    def read_history(self, group: str, consumer: str, count: int, back: int) -> None:
        self.join(group, consumer)
        words = ("XREADGROUP", "GROUP", group, consumer, "COUNT", count)
        self.both(*words, "STREAMS", KEY, self.id(back))

    @rule(group=Groups, consumer=Consumers, back=Back)
    def read_new_and_history(self, group: str, consumer: str, back: int) -> None:
        self.join(group, consumer)
        words = ("XREADGROUP", "GROUP", group, consumer, "COUNT", 1)
        self.both(*words, "STREAMS", KEY, KEY, KEY, ">", self.id(back), ">")

    @rule(group=Groups)
    def deliver_anew(self, group: str) -> None:
        """What is pending may go to another, and starts anew there."""
        self.both("XGROUP", "SETID", KEY, group, self.id(3))
        self.read(group, "b", 2, ())

    @rule(group=Groups, backs=Backs)
    def acknowledge(self, group: str, backs: list[int]) -> None:
        self.both("XACK", KEY, group, *self.ids(backs))

    # Claiming

    @rule(
        group=Groups,
        consumer=Consumers,
        min_idle=MinIdle,
        backs=Backs,
        options=ClaimOptions,
        last=st.sampled_from([None, None, -1, 2]),
    )
    def claim(
        self,
        group: str,
        consumer: str,
        min_idle: int,
        backs: list[int],
        options: list[Argument],
        last: int | None,
    ) -> None:
        self.join(group, consumer)
        if last is not None and self.counters_set:
            options = [*options, "LASTID", self.id(last)]
        self.both("XCLAIM", KEY, group, consumer, min_idle, *self.ids(backs), *options)
        compare_pending(self.pair, KEY, group, "-", "+", 100)

    @rule(
        group=Groups,
        consumer=Consumers,
        min_idle=MinIdle,
        start=st.one_of(st.just("-"), Bounds),
        options=st.sampled_from([(), ("COUNT", 1), ("COUNT", 2), ("JUSTID",)]),
    )
    def claim_next(
        self,
        group: str,
        consumer: str,
        min_idle: int,
        start: str | tuple[str, int],
        options: tuple[Argument, ...],
    ) -> None:
        self.join(group, consumer)
        self.both("XAUTOCLAIM", KEY, group, consumer, min_idle, self.bound(start), *options)

    # Looking

    @rule(
        group=Groups,
        idle=st.sampled_from([(), ("IDLE", 0), ("IDLE", HALF_MS)]),
        start=Bounds,
        end=Bounds,
        count=Counts,
        consumer=st.one_of(st.just(()), Consumers.map(lambda name: (name,))),
    )
    def list_pending(
        self,
        group: str,
        idle: tuple[Argument, ...],
        start: str | tuple[str, int],
        end: str | tuple[str, int],
        count: int,
        consumer: tuple[str, ...],
    ) -> None:
        bounds = (self.bound(start), self.bound(end))
        compare_pending(self.pair, KEY, group, *idle, *bounds, count, *consumer)

    @invariant()
    def positions_agree(self) -> None:
        if self.newest:
            compare_positions(self.pair, KEY, self.removed, self.counters_set)

    @rule()
    def compare(self) -> None:
        compare_groups(self.pair, KEY, self.removed, self.counters_set)

    def teardown(self) -> None:
        self.compare()


def test_the_group_machine(pair: Pair) -> None:
    class Here(Machine):
        pass

    Here.pair = pair
    pair.both("CONFIG", "SET", "stream-node-max-entries", 3)
    try:
        run_state_machine_as_test(
            Here,
            settings=settings(
                max_examples=drawn(60),
                stateful_step_count=40,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        pair.both("CONFIG", "SET", "stream-node-max-entries", 100)
