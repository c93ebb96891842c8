"""Arrays against the real Redis: the same bytes and events for every request."""

from __future__ import annotations

from random import Random

import pytest

from support.client import Argument
from support.fuzz.duel import Duel
from support.fuzz.steps import Step, call
from support.process import Pair

pytestmark = [pytest.mark.judge, pytest.mark.since(8, 10)]

KEYS = ["a", "b", "c", "none", "string"]
WRONG = ["", "x", "-1", "-0", "+3", "007", "1.0", " 2", "18446744073709551615", "-", "+"]
FAR = [4095, 4096, 1 << 20, (1 << 40) + 7, (1 << 63) - 1, 1 << 63, (1 << 64) - 2]
MAX = (1 << 64) - 1
VALUES = (
    "a b foo Foobar 1 2 -7 3.5 1e3 0x10 x 12345 9007199254740993 1e17 0.1 -3.7 inf 1e400 barfoo"
).split()
PATTERNS = ["a", "^f", "o+", "[0-9]+$", "(foo|bar)", "^.$", "a{2,}", "(", "[", "\\d\\.", ""]


class Arrays:
    """Requests by chance.

    Args:
        far: indexes of all sizes; without them digests can be compared.
    """

    def __init__(self, seed: int, far: bool) -> None:
        self.chance = Random(seed)
        self.far = far

    def index(self) -> Argument:
        chance = self.chance
        kind = chance.random()
        if kind < 0.02:
            return chance.choice(WRONG)
        if self.far and kind < 0.2:
            return chance.choice(FAR) - chance.randrange(3)
        return chance.randrange(80) if kind < 0.9 else chance.randrange(6000)

    def values(self, most: int = 4) -> list[Argument]:
        return list(self.chance.choices(VALUES, k=self.chance.randrange(1, most + 1)))

    def size(self) -> Argument:
        chance = self.chance
        wrong = ["0", "-1", "x"] if chance.random() < 0.1 else []
        return chance.choice(["1", "2", "3", "5", "8", "50", *wrong])

    def request(self) -> tuple[Argument, ...]:
        chance = self.chance
        key = chance.choice(KEYS)
        kind = chance.randrange(19)
        if kind < 2:
            return "ARSET", key, self.index(), *self.values()
        if kind == 2:
            pairs: list[Argument] = []
            for value in self.values():
                pairs += [self.index(), value]
            return "ARMSET", key, *pairs
        if kind == 3:
            return "ARGET", key, self.index()
        if kind == 4:
            return "ARMGET", key, self.index(), self.index(), self.index()
        if kind == 5:
            return "ARGETRANGE", key, self.index(), self.index()
        if kind == 6:
            return "ARDEL", key, *[self.index() for _ in range(chance.randrange(1, 9))]
        if kind == 7:
            start = chance.randrange(100)
            return "ARDELRANGE", key, self.index(), self.index(), start, start + 3
        if kind < 10:
            return "ARINSERT", key, *self.values()
        if kind < 12:
            return "ARRING", key, self.size(), *self.values(9)
        if kind == 12:
            seeks = [0, 1, 3, 18446744073709551615]
            return (
                "ARSEEK",
                key,
                chance.choice([self.index(), *seeks]) if self.far else self.index(),
            )
        if kind == 13:
            name = chance.choice(["ARNEXT", "ARLEN", "ARCOUNT", "TYPE"])
            return name, key
        if kind == 14:
            tail: list[Argument] = chance.choice([[], [], ["REV"], ["rev"], ["x"], ["REV", "REV"]])
            return "ARLASTITEMS", key, chance.choice(["0", "-1", "1", "2", "5", "100", "x"]), *tail
        if kind == 15:
            tail = chance.choice([[], [], ["LIMIT", 3], ["limit", 0], ["FOO", 1], ["LIMIT"]])
            return "ARSCAN", key, self.index(), self.index(), *tail
        if kind == 16:
            names = ["SUM", "min", "MAX", "AND", "or", "XOR", "USED", "x"]
            tail = [chance.choice(names)] if chance.random() < 0.8 else ["MATCH", *self.values(1)]
            return "AROP", key, self.index(), self.index(), *tail
        return self.grep(key)

    def grep(self, key: str) -> tuple[Argument, ...]:
        chance = self.chance
        words: list[Argument] = [
            chance.choice(["-", self.index()]),
            chance.choice(["+", self.index()]),
        ]
        for _ in range(chance.randrange(1, 3)):
            name = chance.choice(["EXACT", "match", "GLOB", "RE"])
            words += [name, chance.choice(PATTERNS if name == "RE" else [*VALUES, "f*", "?"])]
        options = ["AND", "OR", "NOCASE", "WITHVALUES", "LIMIT", "x"]
        for option in chance.choices(options, weights=[4, 4, 4, 4, 4, 1], k=chance.randrange(3)):
            words += [option, *([chance.choice([1, 2, 0])] if option == "LIMIT" else [])]
        return "ARGREP", key, *words


@pytest.mark.parametrize("seed", range(6))
def test_same_replies(pair: Pair, pair3: Pair, seed: int) -> None:
    pair.both("SET", "string", "v")
    arrays = Arrays(seed, far=seed % 2 == 1)
    for number in range(1000):
        (pair, pair3)[number % 2].both(*arrays.request())
    for key in KEYS:
        for name in ("ARLEN", "ARCOUNT", "ARNEXT"):
            pair.both(name, key)
        pair.both("ARSCAN", key, 0, (1 << 64) - 2)
        pair.both("OBJECT", "ENCODING", key)
        if not arrays.far:
            pair.both("DEBUG", "DIGEST-VALUE", key)


TEXTS = ["foo", "FOO", "xy", "xY", "abb", "abab", "ab", "a", "b", "a-b", "x1y\x01", "foo bar", ""]
# What stands in a pattern by itself, and what a pattern is made of by chance.
HARD = [
    "(" * 900 + "a" + ")" * 900, "(" * 2048, "()" * 1024, "(" * 10 + "){2}" * 10,
    "\\1(", "\\1(a)", "\\2(a)", "(\\2)(b)", "(?:a)\\1", "\\9", "\\0", "[\\1]",
    "a{256}", "a{300,2}", "a{2,1}", "a{1,256}", "a{,5}", "a{}", "a{1,,2}", "a{1", "{2}", "a{2}{3}",
    "x(?i)y|foo", "((?i)x)|foo", "a|(?i)x|foo", "(x(?i)y|foo)", "(?i:x)|foo", "a(?i)b)", "((?i)a",
    "^\\Qab\\E{2}$", "^\\Qab\\E+$", "\\Qa\\E{2,1}", "\\Qa\\E**", "^a\\Q\\E*b$", "\\Q(\\E",
    "\\x{0000041}", "\\x{000000041}", "\\x{100}", "\\x{g}", "\\x{4", "\\x", "\\xg", "\\x41",
    "a**", "a{2}*", "a|", "(|a)", ")", "a)b", "[[:foo:]]", "[z-a]", "[[.a.]]", "(?x", "a\\",
]  # fmt: skip
ATOMS = "a b ab . x [ab] [^a] [[:alpha:]] \\w \\d \\Qab\\E".split()
COUNTS = "* + ? {2} {1,2} {0,1} {2,}".split()


def pattern(chance: Random, depth: int = 0) -> str:
    """A regular expression by chance; Redis counts groups wrongly that have counts within."""
    parts = []
    for _ in range(chance.randrange(1, 4)):
        if depth < 3 and chance.random() < 0.3:
            head = chance.choice(["(", "(", "(?:", "(?i:", "(?-i:"])
            parts.append(head + pattern(chance, depth + 1) + ")")
        else:
            atom = chance.choice(ATOMS)
            parts.append(atom + chance.choice(COUNTS) if chance.random() < 0.3 else atom)
    return ("|" if chance.random() < 0.2 else "").join(parts)


def test_regular_expressions(pair: Pair) -> None:
    pair.both("ARSET", "a", 0, *TEXTS)
    for hard in HARD:
        pair.both("ARGREP", "a", "-", "+", "RE", hard)
        pair.both("ARGREP", "a", "-", "+", "RE", hard, "NOCASE")


@pytest.mark.parametrize("seed", range(4))
def test_regular_expressions_by_chance(pair: Pair, seed: int) -> None:
    pair.both("ARSET", "a", 0, *TEXTS)
    chance = Random(seed)
    for _ in range(300):
        # What Redis makes of an assertion that may be left out is its own.
        words = chance.choice(["", "^"]) + pattern(chance) + chance.choice(["", "$"])
        pair.both("ARGREP", "a", "-", "+", "RE", words)


def test_limits_of_predicates(pair: Pair) -> None:
    pair.both("ARSET", "a", 0, "foo")
    for count in (250, 251):
        words = ["MATCH", "f"] * count
        pair.both("ARGREP", "a", "-", "+", *words)
        pair.both("ARGREP", "none", "-", "+", *words)
        pair.both("ARGREP", "a", "-", "+", *words, "LIMIT", "x")
        pair.both("ARGREP", "a", "-", "+", *words, "x")
    for size in (2048, 2049):
        pair.both("ARGREP", "a", "-", "+", "RE", "a" * size)
        pair.both("ARGREP", "a", "-", "+", "RE", "a" * size, "x")
        pair.both("ARGREP", "a", "-", "+", "GLOB", "a" * size)


@pytest.mark.parametrize("seed", range(4))
def test_payloads(pair: Pair, seed: int) -> None:
    """What one server DUMPs the other RESTOREs, in both directions."""
    arrays = Arrays(seed, far=True)
    for _ in range(150):
        pair.both(*arrays.request())
    for key in KEYS[:3]:
        ours = pair.ours.call_parsed("DUMP", key)
        theirs = pair.real.call_parsed("DUMP", key)
        if ours is None:
            continue
        assert isinstance(ours, bytes)
        assert isinstance(theirs, bytes)
        assert pair.real.call_parsed("RESTORE", "copy", 0, ours, "REPLACE") == b"OK"
        assert pair.ours.call_parsed("RESTORE", "copy", 0, theirs, "REPLACE") == b"OK"
        for name in ("ARLEN", "ARCOUNT", "ARNEXT"):
            pair.both(name, "copy")
        pair.both("ARSCAN", "copy", 0, (1 << 64) - 2)
        pair.both("ARLASTITEMS", "copy", 100)


def test_events_and_changes(duel: Duel) -> None:
    arrays = Arrays(11, far=True)
    steps: list[Step] = [call(0, b"SET", b"string", b"v")]
    for _ in range(400):
        words = [
            word if isinstance(word, bytes) else str(word).encode() for word in arrays.request()
        ]
        steps.append(call(arrays.chance.randrange(2), *words))
    duel.player.play(steps)


@pytest.mark.parametrize("operation", ["MIN", "MAX", "SUM"])
@pytest.mark.parametrize(
    "elements", ["-0", "-0 -0", "0 -0", "-0 0", "1 -1", "-0.0 x", "-0e5 1 -0x0", "1 -0", "x -0"]
)
def test_zeros_have_a_sign(pair: Pair, operation: str, elements: str) -> None:
    pair.both("ARSET", "a", 0, *elements.split())
    pair.both("AROP", "a", 0, 5, operation)
    pair.both("AROP", "a", 2**64 - 2, 0, operation)  # the last one first


def test_a_sum_is_rounded_in_the_order_of_the_range(pair: Pair) -> None:
    pair.both("ARSET", "a", 0, "1e30", "3", "-1e30", "5")
    assert pair.both("AROP", "a", 0, 3, "SUM") != pair.both("AROP", "a", 3, 0, "SUM")
