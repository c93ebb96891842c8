"""Lists and SORT against the real Redis: the same bytes for every request, the same encodings."""

from __future__ import annotations

from random import Random

import pytest
from conftest import Factory

from support.client import Argument
from support.process import Pair, RedisProcess

pytestmark = pytest.mark.judge

KEYS = ["a", "a", "b", "c", "text", "none"]
WRONG = ["", "x", "1.0", " 1", "9223372036854775808", "-9223372036854775808", "0x1"]
SIDES = ["LEFT", "RIGHT", "left", "Right"]
SORTED_BY = ["w_*", "w_*", "nosort", "#", "*", "w_*x", "w_*->f", "h_*->f"]
FOUND = ["#", "w_*", "w_1", "*", "w_*->f", "h_*->g", "h_*->", "h_*"]
FILLS = [-2, -1, -5, 0, 1, 4, 32]


class Lists:
    """Requests by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def key(self) -> str:
        return self.chance.choice(KEYS)

    def element(self) -> Argument:
        chance = self.chance
        if chance.random() < 0.5:
            return chance.choice(["x", "y", "", "1", "-1", "300", "70000", "01", "\r\n$1\r\nx"])
        if chance.random() < 0.05:
            return "z" * chance.choice([4100, 8192, 8193, 9000, 66_000])
        return chance.randbytes(chance.choice([5, 20, 63, 64, 200, 1500]))

    def elements(self) -> list[Argument]:
        return [self.element() for _ in range(self.chance.choice([1, 1, 2, 3, 8, 30]))]

    def number(self, *usual: int) -> Argument:
        if self.chance.random() < 0.02:
            return self.chance.choice(WRONG)
        return self.chance.choice(usual)

    def index(self) -> Argument:
        return self.number(0, 1, 2, -1, -2, 5, 17, -9, 40, 300)

    def side(self) -> str:
        return self.chance.choice(SIDES) if self.chance.random() < 0.98 else "UP"

    def count(self) -> Argument:
        return self.number(0, 1, 2, 3, 10, 50, -1)

    def request(self) -> list[Argument]:
        make = self.chance.choice(
            [
                *(self.push, self.push, self.push, self.push, self.pop, self.pop, self.lset),
                *(self.lset, self.linsert, self.linsert, self.lrem, self.ltrim, self.lrange),
                *(self.lindex, self.lpos, self.llen, self.lmove, self.lmpop, self.rpoplpush),
            ]
        )
        return make()

    def push(self) -> list[Argument]:
        name = self.chance.choice(["LPUSH", "RPUSH", "LPUSHX", "RPUSHX"])
        return [name, self.key(), *self.elements()]

    def pop(self) -> list[Argument]:
        counted = [self.count()] if self.chance.random() < 0.5 else []
        return [self.chance.choice(["LPOP", "RPOP"]), self.key(), *counted]

    def lset(self) -> list[Argument]:
        return ["LSET", self.key(), self.index(), self.element()]

    def linsert(self) -> list[Argument]:
        where = self.chance.choice(["BEFORE", "AFTER", "after", "AT"])
        return ["LINSERT", self.key(), where, self.element(), self.element()]

    def lrem(self) -> list[Argument]:
        return ["LREM", self.key(), self.count(), self.element()]

    def ltrim(self) -> list[Argument]:
        return ["LTRIM", self.key(), self.number(0, 0, 1, 3, -30), self.number(-1, -1, -2, 40)]

    def lrange(self) -> list[Argument]:
        return ["LRANGE", self.key(), self.index(), self.index()]

    def lindex(self) -> list[Argument]:
        return ["LINDEX", self.key(), self.index()]

    def lpos(self) -> list[Argument]:
        options: list[Argument] = []
        for name in ("RANK", "COUNT", "MAXLEN"):
            if self.chance.random() < 0.4:
                options += [name, self.number(0, 1, 2, 5, -1, -2)]
        return ["LPOS", self.key(), self.element(), *options]

    def llen(self) -> list[Argument]:
        return ["LLEN", self.key()]

    def lmove(self) -> list[Argument]:
        return ["LMOVE", self.key(), self.key(), self.side(), self.side()]

    def lmpop(self) -> list[Argument]:
        keys = [self.key() for _ in range(self.chance.choice([1, 2]))]
        counted = ["COUNT", self.count()] if self.chance.random() < 0.5 else []
        return ["LMPOP", self.number(len(keys), len(keys), 3), *keys, self.side(), *counted]

    def rpoplpush(self) -> list[Argument]:
        return ["RPOPLPUSH", self.key(), self.key()]


@pytest.mark.since(8, 10)  # 8.0 takes the least integer as an index of LSET for 0
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fill", FILLS)
def test_requests_by_chance(
    fresh_server: Factory, fresh_redis: Factory, fill: int, seed: int
) -> None:
    """On servers of its own, because encodings depend on what other tests may have set."""
    lists = Lists(1000 * seed + fill)
    option = ("--list-max-listpack-size", str(fill))
    real = fresh_redis(*option)
    assert isinstance(real, RedisProcess)
    both = Pair.of(fresh_server(*option), real)
    both.both("SET", "text", "some text")
    for number in range(400):
        request = lists.request()
        both.both(*request)
        for key in {key for key in request[1:3] if key in KEYS}:
            both.both("OBJECT", "ENCODING", key)
        if not number % 40:
            for key in ("a", "b", "c"):
                both.both("LRANGE", key, 0, -1)
    both.close()


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.since(8, 10)
def test_several_at_once(pair: Pair, same: bool) -> None:
    target = "a" if same else "b"
    for start in ("LEFT", "RIGHT"):
        for end in ("LEFT", "RIGHT"):
            for count in (1, 2, 5, 9):
                for how in ("COUNT", "EXACTLY"):
                    for order in ("OBO", "bulk"):
                        pair.both("DEL", "a", "b")
                        pair.both("RPUSH", "a", *"12345")
                        pair.both("RPUSH", target, "x")
                        pair.both("LMOVEM", "a", target, start, end, how, count, order)
                        pair.both("LRANGE", "a", 0, -1)
                        pair.both("LRANGE", target, 0, -1)
            pair.both("LMOVEM", "a", target, start, end)
            pair.both("LRANGE", target, 0, -1)


@pytest.mark.since(8, 10)
def test_order_of_checks_of_several_at_once(pair: Pair) -> None:
    pair.both("RPUSH", "a", *"123")
    pair.both("SET", "text", "x")
    for line in [
        "a b UP LEFT", "a b LEFT UP", "a b LEFT LEFT COUNT", "a b LEFT LEFT COUNT 1",
        "a b LEFT LEFT COUNT x", "a b LEFT LEFT COUNT 0 OBO", "a b LEFT LEFT COUNT x UP",
        "a b LEFT LEFT FOO 1 OBO", "a b LEFT LEFT COUNT 1 OBO x", "a text LEFT LEFT",
        "text a LEFT LEFT", "none text LEFT LEFT", "a text LEFT LEFT EXACTLY 9 OBO",
        "a b LEFT LEFT COUNT 9223372036854775808 OBO",
    ]:  # fmt: skip
        pair.both("LMOVEM", *line.split())
        words = line.split()
        for timeout in ("x", "-1", "inf", "0.01"):
            pair.both("BLMOVEM", *words[:4], timeout, *words[4:])
    pair.both("LRANGE", "a", 0, -1)


@pytest.mark.since(8, 0)
def test_order_of_checks_of_those_that_wait(pair: Pair) -> None:
    pair.both("SET", "text", "x")
    for timeout in ("x", "-1", "inf", "nan", "", "0.01"):
        pair.both("BLPOP", "text", timeout)
        pair.both("BRPOP", "none", "text", timeout)
        pair.both("BLMOVE", "text", "b", "UP", "LEFT", timeout)
        pair.both("BLMOVE", "text", "b", "LEFT", "LEFT", timeout)
        pair.both("BRPOPLPUSH", "text", "b", timeout)
        for rest in ("0 a LEFT", "x a LEFT", "2 a LEFT", "1 a UP", "1 text LEFT COUNT 0"):
            pair.both("BLMPOP", timeout, *rest.split())
    pair.both("MULTI")
    for line in ["BLPOP a 0", "BRPOP a 0", "BLMPOP 0 1 a LEFT", "BLMOVE a b LEFT LEFT 0"]:
        pair.both(*line.split())
    pair.both("BRPOPLPUSH", "a", "b", 0)
    pair.both("EXEC")


@pytest.mark.since(8, 10)
def test_sorting_by_chance(pair: Pair) -> None:
    chance = Random(5)
    for name in ("1", "2", "10"):
        pair.both("HSET", f"h_{name}", "f", f"-{name}", "g", "text")
    pair.both("HSET", "h_3", "f", "7")
    pair.both("HPEXPIRE", "h_3", 1, "FIELDS", 1, "f")
    numbers = ["1", "2", "10", "-5", "1.5", "1e2", "0x10", "inf", "3", "3.0"]
    for number in range(300):
        pair.both("DEL", "l", "s", "z", "t")
        members = chance.sample(numbers + (["x", "", " 1"] if chance.random() < 0.2 else []), 6)
        pair.both("RPUSH", "l", *members, members[0])
        pair.both("SADD", "s", *members)
        pair.both("ZADD", "z", *[part for each in enumerate(members) for part in each])
        pair.both("SET", f"w_{chance.choice(numbers)}", chance.choice([*numbers, "abc"]))
        words: list[str] = []
        if chance.random() < 0.5:
            words += [
                "BY",
                chance.choice(SORTED_BY),
            ]
        if chance.random() < 0.5:
            words += ["LIMIT", str(chance.randrange(-2, 9)), str(chance.randrange(-2, 9))]
        for _ in range(chance.choice([0, 0, 1, 2])):
            words += [
                "GET",
                chance.choice(["#", "w_*", "w_1", "*", "w_*->f", "h_*->g", "h_*->", "h_*"]),
            ]
        words += chance.choice([[], ["DESC"], ["ASC"]])
        if chance.random() < 0.4:
            words.append("ALPHA")
        # The order of a set is its own, and so is that of what BY leads nowhere.
        nowhere = "BY" in words and "ALPHA" in words
        plain = "nosort" in words or "#" in words[:2]
        if nowhere and "LIMIT" in words:
            continue
        for key in ("l",) if nowhere else ("l", "z") if plain else ("l", "s", "z"):
            pair.both("SORT", key, *words)
            pair.both("SORT", key, *words, "STORE", "t")
            pair.both("LRANGE", "t", 0, -1)
            pair.both("SORT_RO", key, *words, *(["STORE", "t"] if number % 50 == 0 else []))
    for words in (["foo"], ["LIMIT", "1"], ["LIMIT", "x", "1"], ["BY"], ["GET"], ["STORE"]):
        pair.both("SORT", "l", *words)
        pair.both("SORT", "none", *words)
    pair.both("SORT", "w_1", "BY", "nosort")
    pair.both("SORT", "none", "STORE", "t")
    pair.both("EXISTS", "t")


@pytest.mark.since(8, 10)
def test_what_debug_object_tells_of_nodes(pair: Pair) -> None:
    pair.both("RPUSH", "a", *["x" * 300] * 100)
    pair.both("LSET", "a", 3, "y" * 9000)
    told = [client.call("DEBUG", "OBJECT", "a") for client in (pair.ours, pair.real)]
    ours, real = [reply.partition(b" ql_nodes:")[2] for reply in told]
    assert ours == real
    assert ours
