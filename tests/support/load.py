"""Load with an oracle: workers that know, for every request, what it does to their keys.

A worker has keys of its own and one connection, on which it sends its steps in order. Each step is
deterministic, so a ``Model`` tells the reply to expect and the state after it. After a crash the
server must show exactly the state after some step: none that was acknowledged may be missing, and
none that was not sent may have left a trace; what lies between was on its way. So nothing can be
lost, doubled, half done or out of order without showing.

Producers with idempotent ids are a worker's second half: the IDs are the server's choice there, so
the model knows the values and their order. What was acknowledged has to be answered with the same
ID when it is sent again after the crash.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from support.client import Argument, RawClient, encode, parse
from support.process import Process
from support.waiting import DEADLINE_S

Step = tuple[str, int, int]  # kind, and two numbers that mean what the kind makes of them
Command = tuple[Argument, ...]

CONSUMERS = ("ada", "grace")
MOST_STEPS = 12  # in one go
KNOWN_IIDS = 100  # what a stream remembers of a producer


def entry_id(number: int) -> bytes:
    return b"%d-1" % number


@dataclass
class Model:
    """The state of one worker's keys after some steps.

    Attributes:
        entries: numbers of the live entries of the stream, in order.
        number: of the last entry added.
        delivered: the last entry that the group has been given.
        pending: entry to (consumer, how often delivered).
        counter: of a string that is counted up.
        sent_iids: how many values were produced with an idempotent id.
    """

    name: str
    entries: dict[int, None] = field(default_factory=dict)
    number: int = 0
    max_deleted: int = 0
    delivered: int = 0
    pending: dict[int, tuple[int, int]] = field(default_factory=dict)
    counter: int = 0
    sent_iids: int = 0

    def copy(self) -> Model:
        return Model(
            self.name, dict(self.entries), self.number, self.max_deleted, self.delivered,
            dict(self.pending), self.counter, self.sent_iids,
        )  # fmt: skip

    def do(self, step: Step) -> list[tuple[Command, object]]:
        """Take a step: the requests that it consists of, and the replies to expect.

        A reply of ``...`` may be anything but an error.
        """
        kind, first, second = step
        action: Callable[[int, int], list[tuple[Command, object]]] = getattr(self, kind)
        return action(first, second)

    # Steps

    def add(self, _first: int, _second: int) -> list[tuple[Command, object]]:
        self.number += 1
        self.entries[self.number] = None
        words = ("XADD", self.name, entry_id(self.number), "n", self.number)
        return [(words, entry_id(self.number))]

    def add_and_trim(self, length: int, _second: int) -> list[tuple[Command, object]]:
        self.number += 1
        self.entries[self.number] = None
        self._trim(length)
        options = ("MAXLEN", length)
        words = ("XADD", self.name, *options, entry_id(self.number), "n", self.number)
        return [(words, entry_id(self.number))]

    def trim(self, length: int, _second: int) -> list[tuple[Command, object]]:
        removed = self._trim(length)
        return [(("XTRIM", self.name, "MAXLEN", length), removed)]

    def _trim(self, length: int) -> int:
        gone = list(self.entries)[: max(0, len(self.entries) - length)]
        for number in gone:
            del self.entries[number]
        return len(gone)

    def delete(self, number: int, _second: int) -> list[tuple[Command, object]]:
        there = number in self.entries
        if there:
            del self.entries[number]
            self.max_deleted = max(self.max_deleted, number)
        return [(("XDEL", self.name, entry_id(number)), int(there))]

    def read(self, consumer: int, count: int) -> list[tuple[Command, object]]:
        given = [number for number in self.entries if number > self.delivered][:count]
        for number in given:
            self.pending[number] = (consumer, 1)
            self.delivered = number
        words = ("XREADGROUP", "GROUP", "g", CONSUMERS[consumer], "COUNT", count)
        return [((*words, "STREAMS", self.name, ">"), self._shown(given))]

    def read_noack(self, consumer: int, count: int) -> list[tuple[Command, object]]:
        given = [number for number in self.entries if number > self.delivered][:count]
        if given:
            self.delivered = given[-1]
        words = ("XREADGROUP", "GROUP", "g", CONSUMERS[consumer], "COUNT", count, "NOACK")
        return [((*words, "STREAMS", self.name, ">"), self._shown(given))]

    def _shown(self, given: list[int]) -> object:
        if not given:
            return None
        entries = [[entry_id(number), [b"n", b"%d" % number]] for number in given]
        return [[self.name.encode(), entries]]

    def acknowledge(self, first: int, count: int) -> list[tuple[Command, object]]:
        chosen = [number for number in self.pending if number >= first][:count] or [first]
        known = [number for number in chosen if self.pending.pop(number, None) is not None]
        ids = [entry_id(number) for number in chosen]
        return [(("XACK", self.name, "g", *ids), len(known))]

    def claim(self, number: int, consumer: int) -> list[tuple[Command, object]]:
        words = ("XCLAIM", self.name, "g", CONSUMERS[consumer], 0, entry_id(number))
        claimed: list[object] = []
        if number in self.pending:
            if number in self.entries:
                self.pending[number] = (consumer, self.pending[number][1] + 1)
                claimed.append([entry_id(number), [b"n", b"%d" % number]])
            else:
                del self.pending[number]
        return [(words, claimed)]

    def count(self, _first: int, _second: int) -> list[tuple[Command, object]]:
        self.counter += 1
        return [(("INCR", self.name + ":counter"), self.counter)]

    def transaction(self, first: int, _second: int) -> list[tuple[Command, object]]:
        steps = [*self.add(0, 0), *self.count(0, 0), *self.acknowledge(first, 2)]
        steps += self.read(0, 1)
        queued: list[tuple[Command, object]] = [(words, b"QUEUED") for words, _ in steps]
        return [(("MULTI",), b"OK"), *queued, (("EXEC",), [reply for _, reply in steps])]

    def produce(self, _first: int, _second: int) -> list[tuple[Command, object]]:
        self.sent_iids += 1
        return [(produce(self.name, self.sent_iids), ...)]

    # Looking

    def facts(self) -> dict[str, object]:
        """Return what the server shows in this state; see ``facts_of``."""
        rows: dict[bytes, tuple[bytes, int]] = {}
        for number, (consumer, deliveries) in self.pending.items():
            rows[entry_id(number)] = (CONSUMERS[consumer].encode(), deliveries)
        return {
            "entries": [entry_id(number) for number in self.entries],
            "last": entry_id(self.number) if self.number else b"0-0",
            "added": self.number,
            "max deleted": entry_id(self.max_deleted) if self.max_deleted else b"0-0",
            "delivered": entry_id(self.delivered) if self.delivered else b"0-0",
            "consumers": sorted(name.encode() for name in CONSUMERS),
            "pending": rows,
            "counter": self.counter,
            "produced": [b"%d" % number for number in range(1, self.sent_iids + 1)],
            "iids added": self.sent_iids,
        }


def produce(name: str, number: int) -> Command:
    """An idempotent append."""
    return ("XADD", name + ":produced", "IDMP", name, f"iid-{number}", "*", "n", number)


def prepare(client: RawClient, name: str) -> None:
    """Make a worker's group and consumers, which a model takes for granted."""
    assert client.call("XGROUP", "CREATE", name, "g", "0", "MKSTREAM") == b"+OK\r\n"
    for consumer in CONSUMERS:
        assert client.call("XGROUP", "CREATECONSUMER", name, "g", consumer) == b":1\r\n"


def facts_of(client: RawClient, name: str) -> dict[str, object]:
    """Return what the server shows of a worker's keys."""
    info = as_dict(client.call_parsed("XINFO", "STREAM", name))
    groups = client.call_parsed("XINFO", "GROUPS", name)
    consumers = client.call_parsed("XINFO", "CONSUMERS", name, "g")
    rows = client.call_parsed("XPENDING", name, "g", "-", "+", 1_000_000)
    counter = client.call_parsed("GET", name + ":counter")
    assert isinstance(groups, list)
    assert isinstance(consumers, list)
    assert isinstance(rows, list)
    [group] = [as_dict(each) for each in groups]
    assert group[b"pending"] == len(rows)
    produced = numbers_of(client, name + ":produced")
    iids = 0
    if produced:
        counted = as_dict(client.call_parsed("XINFO", "STREAM", name + ":produced"))
        assert isinstance(counted[b"iids-added"], int)
        iids = counted[b"iids-added"]
    entries = client.call_parsed("XRANGE", name, "-", "+")
    assert isinstance(entries, list)
    for each, fields in entries:
        assert fields == [b"n", each.removesuffix(b"-1")]
    assert info[b"length"] == len(entries)
    return {
        "entries": [each for each, _ in entries],
        "last": info[b"last-generated-id"],
        "added": info[b"entries-added"],
        "max deleted": info[b"max-deleted-entry-id"],
        "delivered": group[b"last-delivered-id"],
        "consumers": sorted(as_dict(each)[b"name"] for each in consumers),  # type: ignore[type-var]
        "pending": {row[0]: (row[1], row[3]) for row in rows},
        "counter": int(counter) if isinstance(counter, bytes) else 0,
        "produced": produced,
        "iids added": iids,
    }


def numbers_of(client: RawClient, name: str) -> list[bytes]:
    """The values of a stream's field ``n``."""
    entries = client.call_parsed("XRANGE", name, "-", "+")
    assert isinstance(entries, list)
    return [fields[1] for _, fields in entries]


def as_dict(pairs: object) -> dict[bytes, object]:
    assert isinstance(pairs, list), pairs
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


class Worker(threading.Thread):
    """Takes random steps, several in one go, until the server is gone.

    Attributes:
        steps: all that were sent since ``start``.
        acknowledged: how many of them were answered whole.
        trouble: a reply that was not the expected one.
    """

    def __init__(self, port: int, state: Model, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.start_state = state
        self.steps: list[Step] = []
        self.acknowledged = 0
        self.trouble = ""
        self.given_ids: dict[int, object] = {}  # of produced values, by number
        self._model = state.copy()
        self._chance = chance

    def run(self) -> None:
        try:
            with RawClient(self.port) as client:
                while not self.trouble:
                    self._turn(client)
        except (OSError, ValueError):
            return  # the server is gone

    def _turn(self, client: RawClient) -> None:
        wire: list[bytes] = []
        expected: list[list[tuple[Command, object]]] = []
        first_produced = self._model.sent_iids
        for _ in range(self._chance.randint(1, MOST_STEPS)):
            step = self._choose()
            self.steps.append(step)
            expected.append(self._model.do(step))
            wire += [encode(*words) for words, _ in expected[-1]]
        client.send(b"".join(wire))
        for requests in expected:
            for words, wanted in requests:
                reply = parse(client.read())
                if isinstance(reply, Exception) or wanted not in (..., reply):
                    self.trouble = f"{words}: {reply!r} instead of {wanted!r}"
                    return
                if wanted is ...:
                    first_produced += 1
                    self.given_ids[first_produced] = reply
            self.acknowledged += 1

    def _choose(self) -> Step:
        chance, model = self._chance, self._model
        some = max(1, model.number - chance.randint(0, 30))
        kind = chance.random()
        if kind < 0.35:
            return ("add", 0, 0)
        if kind < 0.5:
            return ("read", chance.randrange(2), chance.randint(1, 5))
        if kind < 0.6:
            return ("acknowledge", some, chance.randint(1, 5))
        if kind < 0.75:
            return ("produce", 0, 0)
        if kind < 0.8:
            return ("transaction", some, 0)
        rest: list[Step] = [
            ("count", 0, 0),
            ("add_and_trim", chance.randint(50, 90), 0),
            ("trim", chance.randint(40, 80), 0),
            ("delete", some, 0),
            ("claim", some, chance.randrange(2)),
            ("read_noack", chance.randrange(2), chance.randint(1, 3)),
        ]
        return chance.choice(rest)


class Observer(threading.Thread):
    """Reads a stream as others append to it; ``seen`` is the last entry it was shown."""

    def __init__(self, port: int, name: str) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.name = name
        self.seen = 0

    def run(self) -> None:
        try:
            with RawClient(self.port) as client:
                while True:
                    after = entry_id(self.seen) if self.seen else "$"
                    reply = client.call_parsed("XREAD", "BLOCK", 200, "STREAMS", self.name, after)
                    if isinstance(reply, list):
                        self.seen = int(reply[0][1][-1][0].removesuffix(b"-1"))
        except (OSError, ValueError):
            return  # the server is gone


class Load:
    """Workers, and for each an observer, over several lives of one server.

    Args:
        forgets: pending entries whose message was deleted may be lost by a restart, and how many
            iids there ever were, as they are when the files were written anew as commands.
    """

    def __init__(
        self, server: Process, workers: int, chance: random.Random, *, forgets: bool = False
    ) -> None:
        self.server = server
        self.forgets = forgets
        self.states = [Model(f"log{number}") for number in range(workers)]
        self.total = 0  # steps that were acknowledged, in all lives
        self.workers: list[Worker] = []
        self._chance = chance
        self._observers: list[Observer] = []
        with server.client() as client:
            for state in self.states:
                prepare(client, state.name)

    def begin(self) -> None:
        """Let the workers work."""
        port = self.server.port
        seeds = [random.Random(self._chance.random()) for _ in self.states]
        pairs = zip(self.states, seeds, strict=True)
        self.workers = [Worker(port, state, seed) for state, seed in pairs]
        self._observers = [Observer(port, state.name) for state in self.states]
        for thread in (*self.workers, *self._observers):
            thread.start()

    def wait_for_steps(self, count: int, timeout_s: float = 2 * DEADLINE_S) -> None:
        """Return when every worker has had so many steps acknowledged."""
        deadline = time.monotonic() + timeout_s
        while min(worker.acknowledged for worker in self.workers) < count:
            assert time.monotonic() < deadline, [worker.acknowledged for worker in self.workers]
            assert all(worker.is_alive() for worker in self.workers), self._troubles()
            time.sleep(0.005)

    def end(self) -> None:
        """Wait for the workers, whose server is gone."""
        for thread in (*self.workers, *self._observers):
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
        assert not self._troubles()

    def _troubles(self) -> list[str]:
        return [worker.trouble for worker in self.workers if worker.trouble]

    def check(self, least: list[int] | None = None, *, seen: bool = True) -> None:
        """Compare what the server shows now with what it may show, and go on from there.

        Args:
            least: for each worker, how many steps must be there; without it all acknowledged.
            seen: whether all that observers were shown must be there, too.
        """
        with self.server.client() as client:
            for number, worker in enumerate(self.workers):
                required = worker.acknowledged if least is None else least[number]
                actual = facts_of(client, worker.start_state.name)
                state = find_state(worker, actual, required, self.forgets)
                if seen:
                    assert self._observers[number].seen <= state.number
                retry(client, worker, state)
                self.total += worker.acknowledged
                self.states[number] = state


def find_state(worker: Worker, actual: dict[str, object], least: int, forgets: bool) -> Model:
    """The state after one of the steps, from ``least`` to all that were sent, that is there."""
    state = worker.start_state.copy()
    for step in worker.steps[:least]:
        state.do(step)
    nearest = state.facts()
    there = _comparable(actual, forgets)
    for step in worker.steps[least:]:
        if _comparable(state.facts(), forgets) == there:
            break
        state.do(step)
    if _comparable(state.facts(), forgets) == there:
        pending = actual["pending"]
        assert isinstance(pending, dict)
        for number in [each for each in state.pending if entry_id(each) not in pending]:
            del state.pending[number]
        return state
    wrong = {name: (nearest[name], fact) for name, fact in actual.items() if nearest[name] != fact}
    raise AssertionError(
        f"{worker.start_state.name} shows the state after none of the steps {least} to "
        f"{len(worker.steps)}. After step {least} it should be, and is: {wrong}"
    )


def _comparable(facts: dict[str, object], forgets: bool) -> dict[str, object]:
    """Facts without those that may be lost, if any may."""
    if not forgets:
        return facts
    pending, entries = facts["pending"], facts["entries"]
    assert isinstance(pending, dict)
    assert isinstance(entries, list)
    live = set(entries)
    kept = {each: row for each, row in pending.items() if each in live}
    return {**facts, "pending": kept, "iids added": None}


def retry(client: RawClient, worker: Worker, state: Model) -> None:
    """Send again what a producer sends again after a crash: what is there is not added twice.

    Nothing new is sent, so that ``state`` stays true.
    """
    for number in range(max(1, state.sent_iids - KNOWN_IIDS // 2), state.sent_iids + 1):
        answered = worker.given_ids.get(number)
        reply = client.call_parsed(*produce(state.name, number))
        assert isinstance(reply, bytes), reply
        assert answered in (None, reply), f"iid-{number} was {answered!r} and is {reply!r}"
    assert len(numbers_of(client, state.name + ":produced")) == state.sent_iids
