"""Commands on sorted sets by chance, right and wrong ones."""

from __future__ import annotations

import random

KEYS = ["z1", "z2", "z3", "z4", "text", "none"]
ODD_SCORES = [
    "inf",
    "-inf",
    "+inf",
    "nan",
    "abc",
    "",
    "1e400",
    "2e308",
    "-0",
    "0x10",
    "1e-320",
    " 1",
]
LONG = "x" * 64


class RandomSortedSets:
    """Makes commands.

    Args:
        large: many members, and some that are long; sets are large then, and what their members of
            different scores answer by name depends in Redis on chance.
    """

    def __init__(self, chance: random.Random, large: bool) -> None:
        self.chance = chance
        self.large = large

    def key(self) -> str:
        return self.chance.choice(KEYS)

    def member(self) -> str:
        kind = self.chance.randrange(12)
        if kind == 0:
            tail = str(self.chance.randrange(5))
            return (LONG if self.large else LONG[:50]) + tail
        if kind == 1:
            return ""
        return f"m{self.chance.randrange(200 if self.large else 20)}"

    def score(self) -> str:
        chance = self.chance
        kind = chance.randrange(12)
        if kind == 0:
            return chance.choice(ODD_SCORES)
        if kind == 1:
            return repr(chance.uniform(-10, 10))
        if kind == 2:
            return repr(chance.uniform(-10, 10) * 10 ** chance.randrange(-20, 25))
        if kind == 3:
            return str(chance.getrandbits(chance.randrange(1, 70)))
        return str(chance.randrange(-5, 6))

    def bound(self) -> str:
        word = self.score()
        if self.chance.random() < 0.3:
            word = self.chance.choice(["-inf", "+inf", "", "(", "-", "((1"])
        return "(" + word if self.chance.random() < 0.3 else word

    def name(self) -> str:
        if self.chance.random() < 0.3:
            return self.chance.choice(["-", "+", "-", "+", "+x", "", "m1", "(", "["])
        return self.chance.choice("[(") + self.member()

    def number(self) -> str:
        numbers = ["0", "1", "2", "5", "-1", "-2", "-5", "100", "-100", "a", "1.5", str(2**63)]
        return self.chance.choice(numbers)

    def some(self, *options: str) -> list[str]:
        taken = [option for option in options if self.chance.random() < 0.3]
        self.chance.shuffle(taken)
        return [option.lower() if self.chance.random() < 0.2 else option for option in taken]

    def limit(self) -> list[str]:
        if self.chance.random() < 0.3:
            return ["LIMIT", self.number(), self.number()]
        return ["LIMIT", "1"] if self.chance.random() < 0.02 else []

    def sources(self) -> list[str]:
        count = self.chance.randrange(1, 4)
        said = str(count) if self.chance.random() < 0.9 else self.number()
        keys = [self.chance.choice([*KEYS, "set"]) for _ in range(count)]
        return [said, *keys]

    def combining(self, count: int) -> list[str]:
        words: list[str] = []
        if self.chance.random() < 0.3:
            weights = ["1", "2", "-1", "0.5", "inf", "0", "nan", "a"]
            words += [
                "WEIGHTS",
                *self.chance.choices(weights[: self.chance.choice([4, 8])], k=count),
            ]
        if self.chance.random() < 0.4:
            words += ["AGGREGATE", self.chance.choice(["SUM", "MIN", "MAX", "COUNT", "NONE"])]
        return words

    def adding(self) -> list[str]:
        words = ["ZADD", self.key()]
        if self.chance.random() < 0.4:
            words += self.some("NX", "XX", "GT", "LT", "CH", "INCR")
        for _ in range(self.chance.choice([1, 1, 1, 2, 3, 40 if self.large else 4])):
            words += [self.score(), self.member()]
        return words[:-1] if self.chance.random() < 0.03 else words

    def range(self) -> list[str]:
        kind = self.chance.choice(["", "BYSCORE"] if self.large else ["", "BYSCORE", "BYLEX"])
        bound = {"": self.number, "BYSCORE": self.bound, "BYLEX": self.name}[kind]
        parts = [[kind] if kind else [], self.limit(), self.some("REV"), self.some("WITHSCORES")]
        self.chance.shuffle(parts)
        words = [self.key(), bound(), bound(), *(word for part in parts for word in part)]
        if self.chance.random() < 0.2:
            return ["ZRANGESTORE", self.key(), *words]
        return ["ZRANGE", *words]

    def older_range(self) -> list[str]:
        kind = self.chance.randrange(2 if self.large else 3)
        if kind == 0:
            return ["ZREVRANGE", self.key(), self.number(), self.number(), *self.some("WITHSCORES")]
        bound, names = (
            (self.bound, ["ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZCOUNT", "ZREMRANGEBYSCORE"])
            if kind == 1
            else (self.name, ["ZRANGEBYLEX", "ZREVRANGEBYLEX", "ZLEXCOUNT", "ZREMRANGEBYLEX"])
        )
        name = self.chance.choice([*names[:2], *names[:3], *names])
        words = [name, self.key(), bound(), bound()]
        if name in names[:2]:
            words += self.some("WITHSCORES") + self.limit()
        return words

    def combined(self) -> list[str]:
        sources = self.sources()
        name = self.chance.choice(["ZUNION", "ZINTER", "ZDIFF", "ZINTERCARD"])
        if name == "ZINTERCARD":
            return [
                name,
                *sources,
                *(["LIMIT", self.number()] if self.chance.random() < 0.4 else []),
            ]
        words = [] if name == "ZDIFF" else self.combining(len(sources) - 1)
        if self.chance.random() < 0.4:
            return [name + "STORE", self.key(), *sources, *words]
        return [name, *sources, *words, *self.some("WITHSCORES")]

    def popping(self) -> list[str]:
        kind = self.chance.randrange(3)
        end = self.chance.choice(["MIN", "MAX"])
        count = [self.number()] if self.chance.random() < 0.5 else []
        if kind == 0:
            return [f"ZPOP{end}", self.key(), *count]
        if kind == 1:
            return ["ZMPOP", *self.sources(), end, *(["COUNT", *count] if count else [])]
        return [f"BZPOP{end}", self.key(), self.key(), self.chance.choice(["0.0001", "a", "-1"])]

    def single(self) -> list[str]:
        key = self.key()
        return self.chance.choice(
            [
                ["ZCARD", key],
                ["ZSCORE", key, self.member()],
                ["ZMSCORE", key, self.member(), self.member()],
                ["ZRANK", key, self.member(), *self.some("WITHSCORE")],
                ["ZREVRANK", key, self.member(), *self.some("WITHSCORE")],
                ["ZINCRBY", key, self.score(), self.member()],
                ["ZREM", key, self.member(), self.member(), self.member()],
                ["ZREMRANGEBYRANK", key, self.number(), self.number()],
                ["ZRANDMEMBER", "text", self.number(), *self.some("WITHSCORES", "NONE")],
                ["ZRANDMEMBER", "none", self.number()],
                ["OBJECT", "ENCODING", key],
                ["DEBUG", "DIGEST-VALUE", key],
                ["COPY", key, self.key(), "REPLACE"],
                ["DEL", key],
                ["SADD", "set", self.member(), self.member(), "m1", "7"],
                ["SREM", "set", self.member(), self.member()],
                ["SET", "text", "x"],
            ]
        )

    def command(self) -> list[str]:
        kind = self.chance.randrange(20)
        if kind < 5:
            return self.adding()
        if kind < 9:
            return self.range()
        if kind < 11:
            return self.older_range()
        if kind < 13:
            return self.combined()
        return self.popping() if kind == 13 else self.single()
