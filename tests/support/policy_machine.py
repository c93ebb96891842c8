"""Compares a server's policies with the model, step by step, in worlds made by chance.

``python -m support.policy_machine --steps 1000000`` starts the server under test, runs that many
commands, and says what differed first. A world has one or two policies (or more, by chance), some
producers and workers, a clock that is moved, and reloads of the append-only file.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Final

from support.client import RawClient, WireError
from support.policy_model import ID, Model
from support.process import ServerProcess
from support.waiting import wait_until

KEY: Final = "s"
GROUP: Final = "g"
LETTERS: Final = "d"
STEPS: Final = 200  # of a world
MOVES_MS: Final = (1, 300, 900, 1000, 3000, 6000)
FRESH: Final = 20  # worlds in one append-only file
CONSUMERS: Final = ("a", "b", "c")
# Each of these is one policy, or what belongs together.
PARTS: Final[dict[str, list[dict[str, str]]]] = {
    "limit": [{"delivery-limit": "2"}, {"delivery-limit": "1", "dead-letter-key": LETTERS}],
    "letters": [{"dead-letter-key": LETTERS, "delivery-limit": "3"}, {"dead-letter-key": LETTERS}],
    "retry": [
        {"retry-delay": "1s,5s,30s"},
        {"retry-delay-min": "2s", "retry-delay-max": "5s"},
        {"retry-delay": "700ms,3s", "retry-delay-type": "all"},
    ],
    "wait": [{"ack-wait": "3s"}, {"ack-wait": "900ms"}],
    "most": [{"max-pending": "2"}, {"max-pending": "5"}],
    "each": [{"max-pending-per-consumer": "1"}, {"max-pending-per-consumer": "3"}],
    "order": [{"order-key": "k"}, {"order-key": "k", "order-on-dead": "hold"}],
    "at": [{"deliver-at-field": "at"}],
    "delay": [{"deliver-delay": "4s"}],
    "ttl": [{"message-ttl": "8s"}, {"message-ttl-field": "ttl"}],
    "pause": [{"pause-until": "+5000"}],
    "most entries": [{"max-len": "4"}, {"max-len": "5", "overflow": "reject"}],
    "age": [{"max-age": "5567ms"}],
    "retention": [{"retention": "acked"}],
    "keep": [{"keep-alive": "connection", "keep-alive-grace": "1600ms", "ack-wait": "3s"}],
}
START_MS: Final = 4_000_000_000_000
OPTIONS: Final = (
    *("--appendonly", "yes", "--appendfsync", "no", "--save", ""),
    *("--enable-debug-command", "yes"),
)


OF_STREAM: Final = ("max-age", "max-len", "overflow", "retention")
FULL: Final = WireError(b"OOM the stream is full: overflow reject")


class Differs(AssertionError):
    """The server has answered otherwise than the model."""


class World:
    """One server's stream and group, and the model of them."""

    def __init__(
        self,
        connect: Callable[[], RawClient],
        client: RawClient,
        policy: dict[str, str],
        seed: int,
        now_ms: int,
    ) -> None:
        self.connect = connect
        self.workers: dict[str, RawClient] = {}  # who keep alive what they hold
        self.random = random.Random(seed)
        self.client = client
        self.log: list[str] = []
        self.model = Model(policy, now_ms, known_ms=now_ms)
        self.last: ID = (now_ms, -1)
        self.call("DEL", KEY, LETTERS)
        self.call("XGROUP", "CREATE", KEY, GROUP, "0", "MKSTREAM")
        self.stream_policy = {name: policy[name] for name in policy if name in OF_STREAM}
        self.group_policy = {name: policy[name] for name in policy if name not in OF_STREAM}
        for where, values in (((), self.stream_policy), (("GROUP", GROUP), self.group_policy)):
            words = [word for pair in values.items() for word in pair]
            if words:
                self.call("XPOLICY", "SET", KEY, *where, *words)

    def end(self) -> None:
        for worker in self.workers.values():
            worker.close()
        for where, values in (((), self.stream_policy), (("GROUP", GROUP), self.group_policy)):
            if values:
                self.call("XPOLICY", "UNSET", KEY, *where, *values)

    def call(self, *words: str | int, by: RawClient | None = None) -> object:
        self.log.append(" ".join(map(str, words)))
        reply = (by or self.client).call_parsed(*words)
        if isinstance(reply, WireError):
            raise Differs(f"{self.log[-1]}: {reply.text!r}")
        return reply

    def same(self, what: object, expected: object) -> None:
        if what != expected:
            raise Differs(f"{self.log[-1]}: {what!r} instead of {expected!r}")

    # Steps

    def step(self) -> None:
        steps = (
            *[self.add] * 6,
            *[self.read] * 8,
            *[self.ack] * 4,
            *[self.nack] * 3,
            *[self.move] * 3,
            *(self.nack_in, self.claim, self.auto_claim, self.ack_fenced, self.delete),
            *(self.redrive, self.look, self.look),
            *[self.leave] * (2 * ("keep-alive" in self.group_policy)),
        )
        self.random.choice(steps)()
        self.settle()
        if self.random.random() < 0.01:
            self.reload()
            self.settle()

    def settle(self) -> None:
        """Let what is acknowledged go, of which the server knows no more after a start."""
        if "retention" in self.stream_policy:
            self.call("DEBUG", "CLOCK", "SHIFT", 0)
            self.model.drop_acked()

    def some(self) -> ID:
        """A pending entry, mostly, or any other."""
        aside_too = self.random.random() < 0.1
        pending = self.model.pending
        places = [place for place, each in pending.items() if aside_too or not each.is_aside()]
        if places and self.random.random() < 0.9:
            return self.random.choice(places)
        return self.random.choice([*self.model.entries, (1, 1)])

    def add(self) -> None:
        chance = self.random
        now_ms = self.model.now_ms
        self.last = (now_ms, self.last[1] + 1) if self.last[0] == now_ms else (now_ms, 0)
        fields = {"n": str(len(self.model.entries))}
        if chance.random() < 0.9:
            fields["k"] = chance.choice("xyz")
        if chance.random() < 0.5:
            until_ms = chance.choice((chance.randrange(-3000, 6000), *[ms + 1 for ms in MOVES_MS]))
            fields["at"] = str(now_ms + until_ms)  # often a moment after one that is looked at
        elif chance.random() < 0.2:
            fields["at"] = "soon"
        if chance.random() < 0.5:
            fields["ttl"] = str(chance.randrange(0, 9000))
        words = [word for pair in fields.items() for word in pair]
        words = ["XADD", KEY, f"{self.last[0]}-{self.last[1]}", *words]
        if self.model.has_room():
            self.call(*words)
            self.model.add(self.last, fields)
        else:
            self.log.append(" ".join(words))
            self.same(self.client.call_parsed(*words), FULL)

    def read(self) -> None:
        consumer = self.random.choice(CONSUMERS)
        count = self.random.choice((1, 1, 2, 3, 10))
        words = ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, "STREAMS", KEY, ">")
        worker: RawClient | None = None
        if "keep-alive" in self.group_policy:
            worker = self.workers.get(consumer) or self.connect()
            self.workers[consumer] = worker
        reply = self.call(*words, by=worker)
        found = [] if reply is None else [place_of(entry) for entry in reply[0][1]]  # type: ignore[index]
        self.same(found, self.model.read(consumer, count))

    def ack(self) -> None:
        place = self.some()
        self.same(self.call("XACK", KEY, GROUP, text(place)), self.model.ack(place))

    def ack_fenced(self) -> None:
        place = self.some()
        pending = self.model.pending.get(place)
        consumer = self.random.choice(CONSUMERS)
        count = 1
        if pending is not None and self.random.random() < 0.7:
            consumer, count = pending.consumer or consumer, max(1, pending.count)
        reply = self.call("XACKF", KEY, GROUP, consumer, count, "IDS", 1, text(place))
        self.same(reply, self.model.ack_fenced(place, consumer, count))

    def nack(self) -> None:
        place = self.some()
        mode = self.random.choice(("fail", "fail", "fail", "silent", "fatal"))
        reply = self.call("XNACK", KEY, GROUP, mode.upper(), "IDS", 1, text(place))
        self.same(reply, self.model.nack(mode, place))

    def nack_in(self) -> None:
        place = self.some()
        ms = self.random.choice((0, 1, 800, 5000))
        reply = self.call("XNACKIN", KEY, GROUP, ms, "IDS", 1, text(place))
        self.same(reply, self.model.nack_in(place, ms))

    def claim(self) -> None:
        place = self.some()
        consumer = self.random.choice(CONSUMERS)
        least_ms = self.random.choice((0, 0, 500, 3000))
        just_id = self.random.random() < 0.5
        words: list[str | int] = ["XCLAIM", KEY, GROUP, consumer, least_ms, text(place)]
        if just_id:
            words.append("JUSTID")
        forces = place in self.model.pending and self.random.random() < 0.2
        if forces:
            words.append("FORCE")
        reply = self.call(*words)
        claimed = self.model.claim(consumer, least_ms, place, just_id, forces)
        self.same(len(reply), int(claimed))  # type: ignore[arg-type]

    def auto_claim(self) -> None:
        consumer = self.random.choice(CONSUMERS)
        least_ms = self.random.choice((0, 500, 3000))
        reply = self.call("XAUTOCLAIM", KEY, GROUP, consumer, least_ms, "0-0", "COUNT", 100)
        claimed = [
            place
            for place in sorted(self.model.pending)
            if self.model.claim(consumer, least_ms, place, False, False)
        ]
        self.same([place_of(entry) for entry in reply[1]], claimed)  # type: ignore[index]

    def delete(self) -> None:
        pending = self.model.pending
        ordered = "order-key" in self.model.policy
        places = [
            place
            for place in self.model.entries
            if not ordered or place not in pending or pending[place].is_aside()
        ]
        if places and self.random.random() < 0.5:
            place = self.random.choice(places)
            self.same(self.call("XDEL", KEY, text(place)), 1)
            del self.model.entries[place]
            if place in pending and pending[place].is_aside():
                del pending[place]

    def redrive(self) -> None:
        reply = self.call("XREDRIVE", LETTERS, "COUNT", 1)
        done = self.model.redrive()
        self.same([row[1].decode() for row in reply], done)  # type: ignore[attr-defined]
        if done == ["appended"]:
            place = tuple(map(int, reply[0][2].split(b"-")))  # type: ignore[index]
            entry = self.call("XRANGE", KEY, text(place), text(place))
            words = [word.decode() for word in entry[0][1]]  # type: ignore[index]
            self.last = (place[0], place[1])
            self.model.add(self.last, dict(zip(words[::2], words[1::2], strict=True)))

    def move(self) -> None:
        ms = self.random.choice(MOVES_MS)
        self.call("DEBUG", "CLOCK", "SHIFT", ms)
        self.model.advance(self.model.now_ms + ms)

    def reload(self) -> None:
        if self.random.random() < 0.5:
            self.call("DEBUG", "RELOAD")
        else:
            self.call("DEBUG", "LOADAOF")
        self.model.reloads()

    def leave(self) -> None:
        """A worker's connection ends, and the server has seen it."""
        if not self.workers:
            return
        name = self.random.choice(sorted(self.workers))
        self.log.append(f"{name} leaves")
        self.workers.pop(name).close()
        clients = b"\r\nconnected_clients:%d\r\n" % (len(self.workers) + 1)
        wait_until(lambda: clients in self.client.call("INFO", "clients"))
        self.model.leaves(name)
        self.call("DEBUG", "CLOCK", "SHIFT", 1)
        self.model.advance(self.model.now_ms + 1)

    def look(self) -> None:
        reply = self.call("XINFO", "GROUPS", KEY)
        words = reply[0]  # type: ignore[index]
        shown = {name.decode(): value for name, value in zip(words[::2], words[1::2], strict=True)}
        expected = self.model.figures()
        if not self.group_policy and "retention" not in self.stream_policy:
            expected = {name: expected[name] for name in ("pending", "lag")}
        self.same({name: shown[name] for name in expected}, expected)
        letters = self.call("XRANGE", LETTERS, "-", "+")
        self.same(sorted(map(letter_of, letters)), sorted(self.model.dead))  # type: ignore[call-overload]


def text(place: ID | tuple[int, ...]) -> str:
    return f"{place[0]}-{place[1]}"


def place_of(entry: object) -> ID:
    ms, seq = entry[0].split(b"-")  # type: ignore[index]
    return int(ms), int(seq)


def letter_of(entry: object) -> tuple[ID, int, str, int]:
    words = [word.decode() for word in entry[1]]  # type: ignore[index]
    fields = dict(zip(words[::2], words[1::2], strict=True))
    ms, seq = fields["__dlq.errors.offset"].split("-")
    count, redrives = fields["__dlq.errors.delivery.count"], fields["__dlq.errors.redrives"]
    return (int(ms), int(seq)), int(count), fields["__dlq.errors.message"], int(redrives)


def mixtures(seed: int) -> Iterator[dict[str, str]]:
    """Every policy alone, every pair, and then three or more by chance, without an end."""
    chance = random.Random(seed)
    singles = [(name,) for name in PARTS]
    for names in [*singles, *combinations(PARTS, 2)]:
        yield _mixed(names, chance)
    while True:
        yield _mixed(tuple(chance.sample(list(PARTS), chance.randrange(1, 6))), chance)


def _mixed(names: tuple[str, ...], chance: random.Random) -> dict[str, str]:
    policy: dict[str, str] = {}
    for name in names:
        policy.update(chance.choice(PARTS[name]))
    if "overflow" in policy:  # old entries stay there for a time that is not exact
        policy.pop("max-age", None)
    return policy


def begin_anew(client: RawClient) -> None:
    """Have the append-only file rewritten, which else holds all worlds so far."""
    client.call("FLUSHALL")
    client.call("BGREWRITEAOF")
    wait_until(lambda: b"aof_rewrite_in_progress:0" in client.call("INFO", "persistence"))


def run(connect: Callable[[], RawClient], steps: int, seed: int) -> int:
    """Run worlds for at least so many steps; return how many worlds. Raises Differs."""
    with connect() as client:
        return _run(connect, client, steps, seed)


def _run(connect: Callable[[], RawClient], client: RawClient, steps: int, seed: int) -> int:
    now_ms = START_MS
    client.call("DEBUG", "CLOCK", "FREEZE")
    client.call("DEBUG", "CLOCK", "MOVE-TO", now_ms)
    worlds = 0
    for number, policy in enumerate(mixtures(seed)):
        if worlds * STEPS >= steps:
            return worlds
        if worlds % FRESH == FRESH - 1:
            begin_anew(client)
        if "pause-until" in policy:
            policy["pause-until"] = str(now_ms + 5000)
        world = World(connect, client, policy, seed * 1_000_000 + number, now_ms)
        try:
            for _ in range(STEPS):
                world.step()
            world.look()
        except Differs as found:
            lines = "\n".join(world.log[-250:]) + repr(world.model)
            raise Differs(f"world {number} of seed {seed}, {policy}:\n{lines}\n{found}") from None
        world.end()
        now_ms = world.model.now_ms
        worlds += 1
    return worlds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began_s = time.monotonic()
    with ServerProcess(*OPTIONS) as server:
        try:
            worlds = run(server.client, options.steps, options.seed)
        except Differs as found:
            print(found, server.log()[-300:], sep="\n")
            return 1
    spent_s = time.monotonic() - began_s
    print(f"{worlds} worlds, {worlds * STEPS:,} steps, {spent_s:.0f} s: no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
