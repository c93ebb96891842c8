"""What a session consists of: calls, moves of the clock, connections that are dropped.

A call may be held back and sent together with the next one of its client: a pipeline. And nobody
may look on, so that requests that are alike may be run at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from support.fuzz import families, known
from support.fuzz.calls import Calls
from support.fuzz.words import MOVES_MS

CLIENTS: Final = 4
_WAITING: Final = (2, 3)  # those that may wait: the others go on
LISTENER: Final = 3
_ALIKE: Final = ("xadd", "xack", "xrange", "xrevrange", "xreadgroup", "set", "get")  # run at once
_NEEDED: Final = {  # in each session, as far as its families are called
    "xadd", "xreadgroup", "xgroup|create", "set", "rpush", "hset", "sadd", "zadd", "pfadd",
    "geoadd", "arset", "setbit",
}  # fmt: skip
Words = tuple[bytes, ...]
ID_OF: Final = b"{id:%d}"  # stands for what CLIENT ID says to one of the connections


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        client: which connection it is about; -1 for the clock.
        words: the call; none: the connection is closed, and opened anew.
        move_ms: how far the clock moves.
        held: send the call with the next one of the client.
        alone: from now on nobody looks on.
    """

    client: int = -1
    words: tuple[bytes, ...] = ()
    move_ms: int = 0
    held: bool = False
    alone: bool = False

    def __str__(self) -> str:
        if self.alone:
            return "alone()"
        if self.client < 0:
            return f"tick({self.move_ms})"
        if not self.words:
            return f"drop({self.client})"
        name = "hold" if self.held else "call"
        return f"{name}({self.client}, {', '.join(map(repr, self.words))})"

    def with_words(self, words: tuple[bytes, ...]) -> Step:
        """The same call with other words."""
        return replace(self, words=words)


def call(client: int, *words: bytes) -> Step:
    """A call by one of the clients."""
    return Step(client, words)


def hold(client: int, *words: bytes) -> Step:
    """A call that is sent together with the next one of the client."""
    return Step(client, words, held=True)


def alone() -> Step:
    """Nobody looks on any more: no MONITOR, and no key events."""
    return Step(alone=True)


def tick(ms: int) -> Step:
    """The clock moves."""
    return Step(move_ms=ms)


def drop(client: int) -> Step:
    """A connection is closed, and another takes its place."""
    return Step(client)


def steps_of(text: str) -> list[Step]:
    """Steps as lines: a client's number and the words of its call, or ``tick`` and how far."""
    steps = []
    for line in text.strip().splitlines():
        client, *words = line.encode().split()
        steps.append(tick(int(words[0])) if client == b"tick" else call(int(client), *words))
    return steps


def _odd(words: list[bytes]) -> bool:
    """Return whether a call begins or ends what lasts longer than itself."""
    name = words[0].upper()
    return name in (b"MULTI", b"EXEC", b"DISCARD", b"RESET", b"QUIT") or b"SUBSCRIBE" in name


def knows_all(_: Words) -> bool:
    """The newest judge lacks nothing."""
    return False


class Sessions:
    """Makes sessions by chance.

    Args:
        seed: the same number makes the same sessions, and each session has its number.
        names: the commands that both servers know.
        lacks: whether the judge does not know what a call asks for.

    Attributes:
        names: those that are called.
    """

    def __init__(
        self, seed: int, names: set[str], lacks: Callable[[Words], bool] = knows_all
    ) -> None:
        self._seed: Final = seed
        self._lacks: Final = lacks
        self.names: Final = names - set(known.SPARED)

    def session(self, number: int, length: int) -> list[Step]:
        """The steps of one session."""
        chance = Random(self._seed * 1_000_003 + number)
        maker = _Session(chance, Calls(chance, self._some(chance)))
        steps = maker.opening()
        while len(steps) < length:
            steps += self._levelled(maker.steps())
        return steps

    def drill(self, number: int, length: int) -> list[Step]:
        """The steps of a session of many calls that are sent at once, and that wait for nothing."""
        chance = Random(self._seed * 1_000_003 + number)
        maker = _Session(chance, Calls(chance, self._some(chance)))
        steps = [alone(), *maker.opening()]
        while len(steps) < length:
            steps += self._levelled(maker.batch())
        return steps

    def _some(self, chance: Random) -> set[str]:
        """All commands, or, more often, those few that often meet each other then."""
        if chance.random() < 0.35:
            return self.names
        every = Calls(chance, self.names)
        return {every.any_name() for _ in range(chance.choice((4, 8, 12)))} | _NEEDED & self.names

    def _levelled(self, steps: list[Step]) -> list[Step]:
        """The steps but for those to avoid; servers are made alike after what is by chance."""
        made = []
        for step in steps:
            if known.avoided(step.words) is None and not self._lacks(step.words):
                levelled = known.levelled(step.words)
                made.append(step)
                if levelled is not None:
                    made.append(step.with_words(levelled))
        return made


class _Session:
    """Makes the steps of one session."""

    def __init__(self, chance: Random, calls: Calls) -> None:
        self._chance: Final = chance
        self._calls: Final = calls
        self._in_transaction = [False] * CLIENTS
        self._alone: Final = chance.random() < 0.3

    def opening(self) -> list[Step]:
        """What is there to begin with: groups and small nodes, so that calls find something."""
        chance = self._chance
        entries, size = chance.choice((b"100", b"100", b"3", b"0")), chance.choice((b"4096", b"64"))
        words = (b"stream-node-max-entries", entries, b"stream-node-max-bytes", size)
        steps = [call(0, b"CONFIG", b"SET", *words)]
        if self._alone:
            steps.insert(0, alone())
        for client in range(CLIENTS):
            if chance.random() < 0.4:
                steps.append(call(client, b"HELLO", b"3"))
        for key in (b"s", b"t") if "xgroup|create" in self._calls.names else ():
            if chance.random() < 0.8:
                steps.append(call(0, b"XGROUP", b"CREATE", key, b"g", b"0", b"MKSTREAM"))
        return steps + self._filled()

    def _filled(self) -> list[Step]:
        """Collections beyond their limits, and limits that are met soon, in every other session."""
        chance = self._chance
        about = self._calls.about
        if not about or chance.random() < 0.4:
            return []
        self._calls.words.long = True
        calls = []
        if chance.random() < 0.7:
            calls += [
                [b"CONFIG", b"SET", name.encode(), chance.choice(values)]
                for name, values in families.LIMITS.items()
            ]
        if chance.random() < 0.6:
            calls += families.filled(chance.choice(about), chance)
        return [call(0, *words) for words in calls]

    def batch(self) -> list[Step]:
        """Calls that one client sends at once, some of them in a transaction; then time passes."""
        chance = self._chance
        client = chance.randrange(2)
        requests = [self._calls.next() for _ in range(chance.randint(20, 60))]
        requests = [words for words in requests if not known.waits(words) and not _odd(words)]
        if chance.random() < 0.2:
            first = chance.randrange(len(requests))
            last = first + chance.randint(0, 12)
            requests[last:last] = [[chance.choice((b"EXEC", b"EXEC", b"DISCARD"))]]
            requests[first:first] = [[b"MULTI"]]
        steps = [hold(client, *words) for words in requests]
        steps.append(call(client, b"ECHO", b"end"))
        if chance.random() < 0.3:
            move_ms = chance.choice(MOVES_MS)
            self._calls.words.now_ms += move_ms
            steps.append(tick(move_ms))
        return steps

    def steps(self) -> list[Step]:
        """The next step, or a pipeline."""
        if self._chance.random() < (0.2 if self._alone else 0.05):
            return self._pipeline()
        return [self._step()]

    def _pipeline(self) -> list[Step]:
        """Requests that are alike, by a client that sends them at once, in a transaction or not."""
        chance = self._chance
        client = chance.randrange(LISTENER)
        name = chance.choice(_ALIKE) if chance.random() < 0.6 else self._calls.any_name()
        make = self._calls.right if chance.random() < 0.5 else self._calls.call
        requests = [make(name) for _ in range(chance.randint(2, 7))]
        if chance.random() < 0.4:  # one and the same, but for where it is written to
            requests = requests[:1] * len(requests)
        if chance.random() < 0.3 and not self._in_transaction[client]:
            requests = [[b"MULTI"], *requests, [b"EXEC"]]
        if any(known.waits(words) or b"SUBSCRIBE" in words[0].upper() for words in requests):
            return []
        steps = [hold(client, *words) for words in requests]
        return [*steps, call(client, b"ECHO", b"end")]

    def _step(self) -> Step:
        chance = self._chance
        kind = chance.random()
        client = chance.randrange(CLIENTS)
        if kind < 0.06:
            move_ms = chance.choice(MOVES_MS)
            self._calls.words.now_ms += move_ms
            return tick(move_ms)
        if kind < 0.065:
            self._in_transaction[client] = False
            return drop(client)
        if kind < 0.068:
            killed = chance.choice(_WAITING)
            self._in_transaction[killed] = False
            return call(0, b"CLIENT", b"KILL", b"ID", ID_OF % killed)
        if kind < 0.09:
            waiting = chance.choice(_WAITING)
            how = chance.choice(((), (b"TIMEOUT",), (b"ERROR",)))
            return call(chance.choice((0, 1)), b"CLIENT", b"UNBLOCK", ID_OF % waiting, *how)
        if kind < 0.095:
            return call(client, b"HELLO", chance.choice((b"2", b"3")))
        if kind < 0.11:
            self._in_transaction[LISTENER] = False
            return call(LISTENER, b"RESET")
        if kind < 0.15 or (self._in_transaction[client] and kind < 0.3):
            return self._transaction(client)
        words = known.calmed(self._calls.next())
        name = words[0].upper()
        if known.waits(words):
            client = chance.choice(_WAITING)
        elif b"SUBSCRIBE" in name and chance.random() < 0.9:
            client = LISTENER  # for it can do little else while it speaks RESP2
        if b"SUBSCRIBE" in name and self._in_transaction[client]:
            return tick(0)  # more replies in EXEC than it promises
        return call(client, *words)

    def _transaction(self, client: int) -> Step:
        """The next step of a transaction of this client."""
        chance = self._chance
        if self._in_transaction[client]:
            self._in_transaction[client] = False
            return call(client, chance.choice((b"EXEC", b"EXEC", b"EXEC", b"DISCARD")))
        if chance.random() < 0.4:
            return call(client, b"WATCH", self._calls.words.key(""))
        self._in_transaction[client] = True
        return call(client, b"MULTI")
