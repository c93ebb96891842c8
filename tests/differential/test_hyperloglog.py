"""HyperLogLogs against the real Redis: the same bytes after every request."""

from __future__ import annotations

from random import Random

import pytest

from support.client import Argument
from support.fuzz.duel import Duel
from support.fuzz.steps import call
from support.process import Pair

pytestmark = pytest.mark.judge

KEYS = ["a", "b", "c", "d"]


def request(chance: Random, most: int) -> tuple[Argument, ...]:
    """One by chance, with up to so many elements."""
    key = chance.choice(KEYS)
    kind = chance.randrange(10)
    if kind < 6:
        count = chance.choice([0, 1, 1, 2, most])
        elements: list[Argument] = [chance.randbytes(chance.randrange(20)) for _ in range(count)]
        elements += [chance.randrange(10 ** chance.randrange(1, 9)) for _ in range(count)]
        return "PFADD", key, *elements
    if kind == 6:
        return "PFCOUNT", *chance.choices(KEYS, k=chance.randrange(1, 4))
    if kind == 7:
        return "PFMERGE", *chance.choices(KEYS, k=chance.randrange(1, 4))
    if kind == 8:
        words = ["encoding", "DECODE", "GETREG", "todense", "x"]
        return "PFDEBUG", chance.choice(words), key
    return "DEL", key


def look(pair: Pair) -> None:
    for key in KEYS:
        pair.both("GET", key)
        pair.both("OBJECT", "ENCODING", key)


@pytest.mark.parametrize("seed", range(6))
def test_same_bytes(pair: Pair, seed: int) -> None:
    chance = Random(seed)
    pair.both("CONFIG", "SET", "hll-sparse-max-bytes", [3000, 200, 3000, 18, 0, 20_000][seed])
    try:
        for _ in range(80):
            pair.both(*request(chance, 200))
            look(pair)
    finally:
        pair.both("CONFIG", "SET", "hll-sparse-max-bytes", 3000)


@pytest.mark.since(8, 10)  # which is more careful with what does not add up
@pytest.mark.parametrize("seed", range(6))
def test_same_bytes_of_damaged_ones(pair: Pair, seed: int) -> None:
    chance = Random(seed)
    for _ in range(300):
        words = request(chance, 1)
        if words[0] == "PFADD" and len(words) > 3:
            words = words[:3]  # Redis keeps what it has added before it finds the damage
        pair.both(*words)
        key = chance.choice(KEYS)
        size = pair.ours.call_parsed("STRLEN", key)
        assert isinstance(size, int)
        if size > 18 and chance.random() < 0.2:
            # Not the end: Redis reads on behind a string whose last run is cut off.
            damage = bytes(chance.choices(b"\x00\x3f\x80\x81\xff\xfc", k=chance.randrange(1, 3)))
            pair.both("SETRANGE", key, chance.randrange(size - 4), damage)
        look(pair)


def test_events_and_changes(duel: Duel) -> None:
    chance = Random(7)
    steps = []
    for _ in range(200):
        words = [_bytes(word) for word in request(chance, 5)]
        steps.append(call(chance.randrange(2), *words))
    duel.player.play(steps)


def _bytes(word: Argument) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()
