"""Hashes against the real Redis, under one clock: replies, events, and what is there afterwards."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from support.clock import START_MS
from support.fuzz.duel import Duel
from support.fuzz.steps import Step, call, steps_of, tick

pytestmark = pytest.mark.judge

KEYS = (b"h", b"h", b"h", b"g", b"str")
FIELDS = (b"a", b"b", b"c", b"dd", b"e\r\n$1\r\ne", b"", b"n", b"n2")
VALUES = (
    *(b"", b"1", b"2", b"-7", b"x", b"9223372036854775807", b"1.5", b"2e10", b"abc", b"y" * 64),
    *(b"a\r\nb", b" 1", b"0x10", b"inf", b"-0"),
)
LONG = b"z" * 65
MOMENTS = (-5, 0, 1, 5, 20, 1000)
WRONG = (b"", b"x", b"-1", b"0", b"FIELDS", b"99", b"NX", b"1.0", b"18446744073709551616")
ORDERLESS = {b"HGETALL", b"HKEYS", b"HVALS", b"HSCAN"}  # of a table


class Makes:
    """Makes calls on hashes by chance."""

    def __init__(self, seed: int, longer: bool) -> None:
        self.chance = Random(seed)
        self.longer = longer

    def one_of(self, *choices: bytes) -> bytes:
        return self.chance.choice(choices)

    def field(self) -> bytes:
        if self.longer and self.chance.random() < 0.5:
            return b"f%d" % self.chance.randrange(40)
        return self.one_of(*FIELDS)

    def value(self) -> bytes:
        return LONG if self.longer and self.chance.random() < 0.02 else self.one_of(*VALUES)

    def fields(self, width: int = 1) -> list[bytes]:
        found = [self.field() for _ in range(self.chance.choice((1, 1, 2, 3, 6)))]
        if width == 1:
            return found
        return [word for field in found for word in (field, self.value())]

    def counted(self, width: int = 1) -> list[bytes]:
        words = self.fields(width)
        return [self.one_of(b"FIELDS", b"fields"), b"%d" % (len(words) // width), *words]

    def expiry(self, alone: bytes) -> list[bytes]:
        ms = self.chance.choice(MOMENTS)
        return self.chance.choice(
            (
                [b"PX", b"%d" % ms],
                [b"EX", b"%d" % ms],
                [b"PXAT", b"%d" % (START_MS + ms)],
                [b"EXAT", b"%d" % (START_MS // 1000 + ms)],
                [alone],
                [],
                [],
            )
        )

    def call(self) -> list[bytes]:
        """One right call, without its key."""
        makers: list[Callable[[], list[bytes]]] = [
            lambda: [b"HSET", *self.fields(2)],
            lambda: [b"HSET", *self.fields(2)],
            lambda: [b"HMSET", *self.fields(2)],
            lambda: [b"HSETNX", self.field(), self.value()],
            lambda: [b"HGET", self.field()],
            lambda: [b"HMGET", *self.fields()],
            lambda: [b"HDEL", *self.fields()],
            lambda: [self.one_of(b"HLEN", *ORDERLESS - {b"HSCAN"})],
            lambda: [self.one_of(b"HSTRLEN", b"HEXISTS"), self.field()],
            lambda: [b"HINCRBY", self.field(), self.one_of(b"1", b"-3", b"9223372036854775807")],
            lambda: [b"HINCRBYFLOAT", self.field(), self.one_of(b"1", b"-.5", b"3e3", b"1e19")],
            lambda: [b"HSCAN", b"0", *self.chance.choice(([], [b"NOVALUES"], [b"MATCH", b"?"]))],
            self.expire,
            self.expire,
            lambda: [
                self.one_of(b"HTTL", b"HPTTL", b"HEXPIRETIME", b"HPEXPIRETIME", b"HPERSIST"),
                *self.counted(),
            ],
            lambda: [b"HGETEX", *self.expiry(b"PERSIST"), *self.counted()],
            lambda: [b"HGETDEL", *self.counted()],
            lambda: [
                b"HSETEX",
                *self.chance.choice(([], [], [b"FNX"], [b"FXX"])),
                *self.expiry(b"KEEPTTL"),
                *self.counted(2),
            ],
            lambda: [b"HRANDFIELD", self.one_of(b"100", b"0")],
            lambda: [b"OBJECT", b"ENCODING"],
        ]
        return self.chance.choice(makers)()

    def expire(self) -> list[bytes]:
        ms = self.chance.choice(MOMENTS)
        name, time = self.chance.choice(
            (
                (b"HPEXPIRE", ms),
                (b"HEXPIRE", ms),
                (b"HPEXPIREAT", START_MS + ms),
                (b"HEXPIREAT", START_MS // 1000 + ms),
            )
        )
        condition = self.chance.choice(([], [], [b"NX"], [b"XX"], [b"GT"], [b"LT"]))
        return [name, b"%d" % time, *condition, *self.counted()]

    def spoilt(self, words: list[bytes]) -> list[bytes]:
        """The same with something wrong."""
        at = self.chance.randrange(1, len(words) + 1)
        change = self.chance.randrange(3)
        if change == 0:
            return words[:at]
        if change == 1:
            return [*words[:at], self.one_of(*WRONG), *words[at:]]
        return [*words[:at], self.one_of(*WRONG), *words[at + 1 :]]

    def step(self) -> list[Step]:
        chance = self.chance.random()
        if chance < 0.08:
            return [tick(self.chance.choice((1, 4, 5, 6, 30, 1500)))]
        if chance < 0.12:
            return [call(0, *self.one_of(*OTHERS).split())]
        words = self.call()
        if self.chance.random() < 0.15:
            words = self.spoilt(words)
        at = 2 if words[0] == b"OBJECT" else 1
        words = [*words[:at], self.one_of(*KEYS), *words[at:]]
        if words[0] == b"HRANDFIELD" and len(words) == 2:
            return []
        if self.longer and words[0] in (*ORDERLESS, b"HRANDFIELD"):
            return []
        return [call(0, *words)]


OTHERS = (
    *(b"DEL h", b"SET str x", b"RENAME h g", b"RENAME g h", b"COPY h g REPLACE", b"EXPIRE g 1"),
    *(b"MOVE g 1", b"PERSIST g", b"SET g x", b"DEL g", b"SWAPDB 0 1", b"EXISTS h", b"TYPE h"),
)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("longer", [False, True])
def test_by_chance(duel: Duel, seed: int, longer: bool) -> None:
    makes = Makes(seed, longer)
    steps: list[Step] = [call(0, b"HELLO", b"3")] if seed % 2 else []
    if longer:
        steps.append(call(0, b"CONFIG", b"SET", b"hash-max-listpack-entries", b"12"))
    while len(steps) < 300:
        steps += makes.step()
    steps.append(call(0, b"CONFIG", b"SET", b"hash-max-listpack-entries", b"512"))
    duel.player.play(steps)


@pytest.mark.parametrize(
    "words",
    [
        *("HSET h a", "HSET h a 1 b", "HMSET h a 1 b", "HGET h", "HSTRLEN h", "HLEN h x"),
        *("HRANDFIELD h x", "HRANDFIELD h 1 x", "HRANDFIELD h 5 WITHVALUES x", "HSCAN h x"),
        "HRANDFIELD h -9223372036854775808",
        "HRANDFIELD h -4611686018427387904 WITHVALUES",
        "HRANDFIELD h 4611686018427387904 WITHVALUES",
        *("HSCAN h 0 COUNT 0", "HSCAN h 0 FOO", "HSCAN h 0 COUNT", "HSCAN h 0 TYPE hash"),
        *("HINCRBYFLOAT h a inf", "HINCRBYFLOAT h s inf", "HINCRBYFLOAT h a nan"),
        *("HEXPIRE h 10 NX NX NX", "HEXPIRE h 10 NX NX FIELDS", "HEXPIRE h 10 NX FIELDS 1"),
        *("HEXPIRE h 10 FIELDS 1 a NX", "HEXPIRE h 10 FIELDS 1 a FIELDS 1 s"),
        *("HEXPIRE h 10 NX XX FIELDS 1 a", "HEXPIRE h 10 FIELDS 2 a", "HEXPIRE h 10 FIELDS 1 a b"),
        *("HEXPIRE h x FOO FIELDS 1 a", "HEXPIRE h -1 FOO FIELDS 1 a", "HEXPIRE h 10 FOO 1 a"),
        "HPEXPIREAT h 70368744177663 FIELDS 1 a",
        "HPEXPIREAT h 70368744177664 FIELDS 1 a",
        "HEXPIREAT h 70368744177 FIELDS 1 a",
        "HEXPIRE h 9223372036854775807 FIELDS 1 a",
        "HPEXPIRE h 9223372036854775807 FIELDS 1 a",
        *("HTTL h FIELDS 0 a", "HTTL h FIELDS 2 a", "HTTL h FOO 1 a", "HTTL h FIELDS x a"),
        *("HGETEX h FIELDS 1 a EX 100", "HGETEX h FIELDS 1 a EX", "HGETEX h EX 1 PX 1 FIELDS 1 a"),
        *("HGETEX h EX 10 FIELDS", "HGETEX h PERSIST FIELDS 1", "HGETEX h EX 10 PX"),
        *("HIMPORT SET h none a", "HSCAN h 18446744073709551615 COUNT 9223372036854775807"),
        *("HGETEX h EX x FOO", "HGETEX h EX 1 FOO 1 a", "HGETEX h FIELDS 1 a FIELDS 1 a"),
        *("HGETEX h FIELDS 2147483648 a", "HGETDEL h FIELDS 2147483648 a", "HGETEX h EX -1 F 1 a"),
        *("HSETEX h FNX FXX FIELDS 1 a 1", "HSETEX h EX 1 KEEPTTL FIELDS 1 a 1"),
        *("HSETEX h FIELDS 2 a 1", "HSETEX h FIELDS 1 a 1 2", "HSETEX h FIELDS 0 a 1"),
        *("HSETEX h FIELDS 1 a 1 EX 10", "HSETEX h FIELDS 1 a 1 FNX", "HSETEX h KEEPTTL FNX EX 1"),
        *(
            "HSETEX h PERSIST FIELDS 1 a 1",
            "HSETEX h FNX KEEPTTL EX 10",
            "HSETEX h EX FIELDS 1 a 1",
        ),
    ],
)
@pytest.mark.parametrize("before", ["HSET h a 1 s xyz", "SET h x", "DEL h"])
def test_what_is_wrong(duel: Duel, words: str, before: str) -> None:
    duel.player.play(
        steps_of(f"0 {before}\n 0 {words}\n 1 HELLO 3\n 1 {words}\n 0 HTTL h FIELDS 1 a")
    )


@pytest.mark.parametrize(
    "words",
    [
        *("HGET h a", "HMGET h a b c", "HEXISTS h a", "HSTRLEN h b", "HLEN h", "HGETALL h"),
        *("HKEYS h", "HVALS h", "HSCAN h 0", "HSCAN h 0 NOVALUES", "HDEL h a", "HDEL h a b c d"),
        *("HSET h a 9", "HSETNX h a 9", "HINCRBY h b 1", "HINCRBYFLOAT h b 1", "HRANDFIELD h 9"),
        *("HTTL h FIELDS 2 a c", "HPERSIST h FIELDS 2 a c", "HEXPIRE h 100 FIELDS 2 a c"),
        *("HEXPIRE h 100 XX FIELDS 2 a c", "HEXPIRE h 0 FIELDS 2 a c", "HGETEX h FIELDS 2 a c"),
        *("HGETEX h EX 100 FIELDS 2 a c", "HGETEX h PERSIST FIELDS 2 a c", "HRANDFIELD h -2"),
        *("HGETDEL h FIELDS 2 a c", "HSETEX h FIELDS 2 a 1 c 2", "HSETEX h FNX FIELDS 1 a 1"),
        *("HSETEX h FXX FIELDS 1 a 1", "HSETEX h KEEPTTL FIELDS 1 a 1", "COPY h g", "RENAME h g"),
        *("HMGET h a b", "HGETDEL h FIELDS 2 a b", "EXISTS h", "MOVE h 1", "OBJECT ENCODING h"),
    ],
)
@pytest.mark.parametrize("fields", ["2 a b", "4 a b c d"])
@pytest.mark.parametrize("late_ms", [-1, 0, 1])
def test_fields_that_have_expired(duel: Duel, words: str, fields: str, late_ms: int) -> None:
    if words == "HRANDFIELD h -2" and fields == "2 a b":
        words = "HRANDFIELD h"  # by chance
        fields = "3 a b c" if late_ms > 0 else "4 a b c d"
    if words.startswith("HRANDFIELD") and not words.endswith("9") and late_ms <= 0:
        words = "HLEN h"
    duel.player.play(
        steps_of(f"""
            0 HSET h a 1 b 2 c 3 d 4
            0 HPEXPIRE h 10 FIELDS {fields}
            1 WATCH h
            1 MULTI
            1 HLEN h
            tick {10 + late_ms}
            0 {words}
            0 HLEN h
            0 HGETALL h
            1 EXEC
            0 HSET h a 9 z 9
            0 HGETALL h
        """)
    )


SUBKEYS = [
    *("HSET h f v g w f x", "HDEL h f nope g g", "HSETNX h n 1", "HINCRBY h n 2"),
    *("HINCRBYFLOAT h n 2.5", "HEXPIRE h 100 FIELDS 2 n q", "HPERSIST h FIELDS 2 n q"),
    *("HGETEX h EX 100 FIELDS 2 n q", "HGETEX h PERSIST FIELDS 2 n q"),
    *("HSETEX h EX 100 FIELDS 2 a 1 b 2", "HSETEX h PXAT 1 FIELDS 2 a 1 b 2"),
    *("HEXPIRE h 0 FIELDS 2 n n", "HGETDEL h FIELDS 2 n q", "HSET h a 1", "DEL h", "SET s 1"),
    *("HIMPORT PREPARE u zz b", "HIMPORT SET h u 1 2", "HMSET h zz 1 zz 2"),
]


@pytest.mark.parametrize("classes", ["STIVh", "SA", "TA", "IAKE", "VA", "STIV", "STIVg"])
def test_fields_in_events(duel: Duel, classes: str) -> None:
    """Listeners of S, T, I and V are told the fields."""
    sides = duel.player.sides
    for side in sides:
        side.call("FLUSHALL")
        side.call("CONFIG", "SET", "notify-keyspace-events", classes)
    heard = []
    for side in sides:
        with side.process.client() as listener, side.process.client() as writer:
            listener.call("PSUBSCRIBE", "__*")
            for words in SUBKEYS:
                writer.call(*words.split())
            listener.send(b"PING\r\n")
            found = []
            while not (message := listener.read()).endswith(b"pong\r\n$0\r\n\r\n"):
                found.append(message)
            heard.append(found)
        side.call("CONFIG", "SET", "notify-keyspace-events", "")
    assert heard[0] == heard[1]
    assert bool(heard[0]) == (classes != "STIV" and classes != "STIVg")


@pytest.mark.parametrize("large", [b"1", LONG])
@pytest.mark.parametrize(
    "command",
    [
        *("HPEXPIREAT h {now} FIELDS 2 b c", "HPEXPIREAT h {now} FIELDS 1 b"),
        *("HPEXPIREAT h {now} XX FIELDS 2 b d", "HPEXPIREAT h {now} GT FIELDS 2 b d"),
        *("HSETEX h PXAT {now} FIELDS 2 b x c y", "HSETEX h PXAT {now} FIELDS 1 b x"),
        *("HSETEX h PXAT {now} FIELDS 3 b x b y c z", "HSETEX h EX 0 FXX FIELDS 1 b x"),
        *("HGETEX h PXAT {now} FIELDS 2 b c", "HGETEX h PXAT {now} FIELDS 3 b b d"),
        *("HRANDFIELD h", "HRANDFIELD h 0", "HPEXPIREAT h {before} FIELDS 3 b c d"),
    ],
)
def test_the_last_millisecond_of_a_field(duel: Duel, command: str, large: bytes) -> None:
    steps = [call(0, b"HSET", b"h", b"a", large, b"b", b"1", b"c", b"2", b"d", b"3")]
    steps += steps_of("0 HPEXPIRE h 20 FIELDS 1 b\n0 HPEXPIRE h 19 FIELDS 1 d\ntick 20")
    steps += steps_of("0 " + command.format(now=START_MS + 20, before=START_MS + 19))
    steps += steps_of("0 HPTTL h FIELDS 4 a b c d\n0 HLEN h\ntick 1\n0 HMGET h a b c d")
    duel.player.play(steps)


def test_fields_that_do_not_stay_leave_a_hash_small(duel: Duel) -> None:
    """However many they are, one goes before the next one comes."""
    many = b" ".join(b"f%d 1" % number for number in range(6)).split()
    duel.player.play(
        [
            call(0, b"CONFIG", b"SET", b"hash-max-listpack-entries", b"6"),
            call(0, b"HSET", b"h", b"a", b"1", b"b", b"2", b"c", b"3"),
            call(0, b"HSETEX", b"h", b"PX", b"0", b"FIELDS", b"6", *many),
            call(0, b"HSETEX", b"h", b"PX", b"0", b"FIELDS", b"7", *many, b"f7", b"1"),
        ]
    )


@pytest.mark.parametrize("large", [b"1", LONG])
def test_a_dump_of_fields_that_may_expire(duel: Duel, large: bytes) -> None:
    """In order where they end at once; and a hash that is ready to have deadlines, and has none."""
    steps = steps_of("0 HSET i a 1 b 2 c 3 d 4 e 5\n0 HEXPIRE i 9 FIELDS 4 c b e a\n0 DUMP i")
    steps += steps_of("0 RESTORE j 0 {payload:0:0:0}\n0 RESTORE k 0 {payload:1:0:0}")
    steps.append(call(0, b"HSET", b"h", b"a", large, b"b", b"1"))
    steps += steps_of(
        "0 HEXPIRE h 9 FIELDS 1 none\n0 HSET h a 1\n0 DUMP h\n0 HEXPIRE h 9 FIELDS 1 b"
    )
    steps += steps_of("0 DUMP h\n0 RESTORE g 0 {payload:0:0:0}\n0 RESTORE f 0 {payload:1:0:0}")
    duel.player.play([*steps, call(0, b"HGETEX", b"h", b"\r\n\xff\r\n\r", b"1", b"f")])
