"""Bitmaps against the real Redis: the same bytes and events for every request."""

from __future__ import annotations

from random import Random

import pytest

from support.client import Argument
from support.fuzz.duel import Duel
from support.fuzz.steps import Step, call
from support.process import Pair

pytestmark = pytest.mark.judge

KEYS = ["a", "b", "c", "number", "text", "stream", "none"]
PREPARED: list[tuple[Argument, ...]] = [
    ("SET", "number", -123456),
    ("SET", "text", "some text of several words, longer than sixty-four bytes to have whole words"),
    ("SET", "b", b"\xff" * 40),
    ("XADD", "stream", "1-1", "f", "v"),
]
WRONG = ["", "x", "-", "1.0", " 1", "#", "#x", "#-1", "9223372036854775808", "-9223372036854775808"]


class Bitmaps:
    """Requests by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def number(self, *usual: int) -> Argument:
        chance = self.chance
        if chance.random() < 0.03:
            return chance.choice(WRONG)
        return chance.choice(usual) if usual else chance.randrange(-80, 700)

    def offset(self) -> Argument:
        return self.number(*range(700))

    def request(self) -> tuple[Argument, ...]:
        chance = self.chance
        kind = chance.randrange(8)
        key = chance.choice(KEYS)
        if kind == 0:
            return "SETBIT", key, self.offset(), self.number(0, 1)
        if kind == 1:
            return "GETBIT", key, self.offset()
        if kind == 2:
            return "BITCOUNT", key, *self.bounds()
        if kind == 3:
            return "BITPOS", key, self.number(0, 1), *self.bounds()
        if kind == 4:
            names = ["AND", "or", "XOR", "NOT", "DIFF", "diff1", "ANDOR", "ONE"]
            sources = chance.choices(KEYS, k=chance.randrange(1, 5))
            return "BITOP", chance.choice(names), key, *sources
        if kind == 5:
            return "GET", key
        fields: list[Argument] = []
        for _ in range(chance.randrange(4)):
            fields += self.field()
        return "BITFIELD_RO" if kind == 6 and chance.random() < 0.3 else "BITFIELD", key, *fields

    def bounds(self) -> list[Argument]:
        units = ["BIT", "byte", "BYTES"]
        whole = [self.number(), self.number(), self.chance.choice(units)]
        return whole[: self.chance.choice([0, 1, 2, 2, 3, 3, 3])]

    def field(self) -> list[Argument]:
        chance = self.chance
        if chance.random() < 0.2:
            return ["OVERFLOW", chance.choice(["WRAP", "sat", "SAT", "FAIL", "fail", "x"])]
        width = chance.choice([1, 5, 8, 16, 31, 32, 63, 64, chance.randrange(1, 67)])
        kind = f"{chance.choice('iiuuU')}{width}"
        offset: Argument = self.offset()
        if chance.random() < 0.3:
            offset = f"#{chance.randrange(9)}"
        name = chance.choice(["GET", "SET", "incrby"])
        largest = 1 << chance.choice([1, 7, 31, 62, 63])
        number = chance.choice([largest - 1, -largest, chance.randrange(-largest, largest)])
        return [name, kind, offset, *([] if name == "GET" else [self.number(number)])]


@pytest.mark.since(8, 10)  # which says that DIFF needs two sources
@pytest.mark.parametrize("seed", range(4))
def test_same_replies(pair: Pair, pair3: Pair, seed: int) -> None:
    for request in PREPARED:
        pair.both(*request)
    bitmaps = Bitmaps(seed)
    for number in range(1500):
        (pair, pair3)[number % 2].both(*bitmaps.request())
    for key in KEYS:
        pair.both("DEBUG", "DIGEST-VALUE", key)
        pair.both("OBJECT", "ENCODING", key)


def test_events_and_changes(duel: Duel) -> None:
    bitmaps = Bitmaps(11)
    steps: list[Step] = [call(0, *[_bytes(word) for word in request]) for request in PREPARED]
    for _ in range(400):
        request = [_bytes(word) for word in bitmaps.request()]
        steps.append(call(bitmaps.chance.randrange(2), *request))
    duel.player.play(steps)


def _bytes(word: Argument) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()
