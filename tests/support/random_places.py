"""Commands on places by chance, right and wrong ones."""

from __future__ import annotations

import random

ODD_PLACES = [["181", "0"], ["0", "86"], ["a", "0"], ["180", "85.05112878"], ["nan", "1"]]
KEYS = ["g", "h", "none", "text"]


class RandomPlaces:
    """Makes commands."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def key(self) -> str:
        return self.chance.choice([*KEYS, "g", "g", "h"])

    def member(self) -> str:
        return f"m{self.chance.randrange(60)}"

    def place(self) -> list[str]:
        chance = self.chance
        kind = chance.randrange(20)
        if kind == 0:
            return chance.choice(
                [
                    ["181", "0"],
                    ["0", "86"],
                    ["a", "0"],
                    ["0", ""],
                    ["180", "85.05112878"],
                    ["nan", "1"],
                ]
            )
        if kind == 1:
            return ["-180", "-85.05112878"]
        if kind < 8:
            return [repr(13 + chance.gauss(0, 0.2)), repr(38 + chance.gauss(0, 0.2))]
        if kind < 12:
            return [str(chance.randrange(-180, 181)), str(chance.randrange(-85, 86))]
        return [repr(chance.uniform(-180, 180)), repr(chance.uniform(-85.05, 85.05))]

    def unit(self) -> str:
        return self.chance.choice(["m", "km", "ft", "mi", "KM", "m", "km", "x"])

    def length(self) -> str:
        lengths = ["0", "1", "100", "1000", "20000", "-1", "a", "5000000", "1e30", "0.5"]
        if self.chance.random() < 0.5:
            return self.chance.choice(lengths)
        return repr(self.chance.uniform(0, 10 ** self.chance.randrange(1, 8)))

    def some(self, *options: str) -> list[str]:
        return [option for option in options if self.chance.random() < 0.3]

    def options(self) -> list[str]:
        chance = self.chance
        parts = [
            self.some("WITHDIST", "WITHHASH", "WITHCOORD"),
            self.some("ASC") or self.some("DESC"),
            ["COUNT", chance.choice(["1", "3", "1000", "0", "a"])] if chance.random() < 0.4 else [],
            ["ANY"] if chance.random() < 0.2 else [],
            ["NONE"] if chance.random() < 0.02 else [],
        ]
        chance.shuffle(parts)
        return [word for part in parts for word in part]

    def storing(self) -> list[str]:
        if self.chance.random() < 0.8:
            return []
        return [self.chance.choice(["STORE", "storedist"]), self.key()]

    def search(self) -> list[str]:
        chance = self.chance
        around = (
            ["FROMMEMBER", self.member()]
            if chance.random() < 0.5
            else ["FROMLONLAT", *self.place()]
        )
        shape = (
            ["BYRADIUS", self.length(), self.unit()]
            if chance.random() < 0.5
            else ["BYBOX", self.length(), self.length(), self.unit()]
        )
        parts = [around, shape, self.options()]
        if chance.random() < 0.05:
            parts[chance.randrange(2)] = ["ASC"]
        chance.shuffle(parts)
        return [word for part in parts for word in part]

    def command(self) -> list[str]:
        chance = self.chance
        kind = chance.randrange(16)
        if kind < 5:
            words = ["GEOADD", self.key()]
            if chance.random() < 0.3:
                words += self.some("NX", "XX", "CH")
            for _ in range(chance.choice([1, 2, 5])):
                words += [*self.place(), self.member()]
            return words if chance.random() < 0.97 else words[:-1]
        if kind < 7:
            return [chance.choice(["GEOPOS", "GEOHASH"]), self.key(), self.member(), self.member()]
        if kind == 7:
            return ["GEODIST", self.key(), self.member(), self.member(), *self.some(self.unit())]
        if kind == 8:
            name = chance.choice(["GEORADIUS", "GEORADIUS_RO"])
            words = [name, self.key(), *self.place(), self.length(), self.unit()]
            return words + self.options() + self.storing()
        if kind == 9:
            name = chance.choice(["GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO"])
            words = [name, self.key(), self.member(), self.length(), self.unit()]
            return words + self.options() + self.storing()
        if kind < 13:
            return ["GEOSEARCH", self.key(), *self.search()]
        if kind == 13:
            return [
                "GEOSEARCHSTORE",
                self.key(),
                self.key(),
                *self.search(),
                *self.some("STOREDIST"),
            ]
        if kind == 14:
            return ["ZRANGE", self.key(), "0", "-1", "WITHSCORES"]
        return chance.choice(
            [["SET", "text", "x"], ["DEL", "h"], ["ZADD", "g", "-1", self.member()]]
        )
