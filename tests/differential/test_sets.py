"""Sets against the real Redis: the same bytes for every request, right or wrong."""

from __future__ import annotations

import random

import pytest

from support.client import Argument, RawClient, parse
from support.process import Pair

pytestmark = pytest.mark.judge

Request = tuple[Argument, ...]
MAX = (1 << 63) - 1

# Replies whose members may come in any order.
UNORDERED = {
    *("SINTER", "SUNION", "SDIFF", "SMEMBERS", "SPOP", "SRANDMEMBER", "SSCAN"),
}


def both(pair: Pair, *request: Argument) -> None:
    """The same reply, but for the order of members where a server may choose it."""
    if str(request[0]).upper() not in UNORDERED:
        pair.both(*request)
        return
    ours, real = pair.ours.call(*request), pair.real.call(*request)
    if request[0] == "SPOP":
        assert len(ours) == len(real), f"{request}: {ours!r} {real!r}"  # by chance
    elif ours != real:
        assert in_order(parse(ours)) == in_order(parse(real)), f"{request}: {ours!r} {real!r}"
        assert ours[:1] == real[:1]


def in_order(reply: object) -> object:
    if isinstance(reply, list) and len(reply) == 2 and isinstance(reply[1], list):
        return [reply[0], in_order(reply[1])]
    return sorted(reply, key=repr) if isinstance(reply, (list, set, tuple)) else reply


MEMBERS: list[Request] = [
    ("SADD", "s", "a", "b", "a"),
    ("SADD", "s", "a"),
    ("SADD", "s"),
    ("SADD", "str", "a"),
    ("SMEMBERS", "s"),
    ("SCARD", "s"),
    ("SCARD", "none"),
    ("SCARD", "str"),
    ("SISMEMBER", "s", "a"),
    ("SISMEMBER", "s", ""),
    ("SISMEMBER", "none", "a"),
    ("SISMEMBER", "str", "a"),
    ("SMISMEMBER", "s", "a", "x", "a"),
    ("SMISMEMBER", "none", "a", "x"),
    ("SMISMEMBER", "str", "a"),
    ("SMISMEMBER", "s"),
    ("SMEMBERS", "none"),
    ("SMEMBERS", "str"),
    ("SREM", "s"),
    ("SREM", "none", "a"),
    ("SREM", "str", "a"),
    ("SREM", "s", "x", "a", "a"),
    ("SREM", "s", "b"),
    ("EXISTS", "s"),
    ("SADD", "s", "", b"\r\n\x00", "3", "03"),
    ("SMEMBERS", "s"),
    ("TYPE", "s"),
    ("SMOVE", "s", "d", "x"),
    ("EXISTS", "d"),
    ("SMOVE", "s", "d", "3"),
    ("SMOVE", "s", "d", "3"),
    ("SMOVE", "s", "s", "03"),
    ("SMOVE", "s", "s", "x"),
    ("SMOVE", "none", "str", "x"),
    ("SMOVE", "s", "str", "x"),
    ("SMOVE", "str", "s", "x"),
    ("SMOVE", "str", "str", "x"),
    ("SMOVE", "s", "d"),
    ("SMEMBERS", "d"),
    ("OBJECT", "ENCODING", "d"),
    ("SMOVE", "d", "s", "3"),
    ("EXISTS", "d"),
]

CHANCE: list[Request] = [
    ("SPOP", "none"),
    ("SPOP", "none", 1),
    ("SPOP", "none", -1),
    ("SPOP", "none", "x"),
    ("SPOP", "str"),
    ("SPOP", "str", -1),
    ("SPOP", "str", 0),
    ("SPOP", "s", 1, 2),
    ("SPOP", "s", MAX + 1),
    ("SPOP",),
    ("SADD", "s", "a", "b", "c"),
    ("SPOP", "s", 0),
    ("SRANDMEMBER", "s", 3),
    ("SRANDMEMBER", "s", MAX),
    ("SRANDMEMBER", "s", 0),
    ("SRANDMEMBER", "s", -MAX - 1),
    ("SRANDMEMBER", "s", -MAX - 2),
    ("SRANDMEMBER", "s", "x"),
    ("SRANDMEMBER", "s", 1, 2),
    ("SRANDMEMBER", "none"),
    ("SRANDMEMBER", "none", 5),
    ("SRANDMEMBER", "none", -5),
    ("SRANDMEMBER", "none", "x"),
    ("SRANDMEMBER", "str"),
    ("SRANDMEMBER", "str", 1),
    ("SRANDMEMBER", "str", "x"),
    ("SPOP", "s", 3),
    ("EXISTS", "s"),
    ("SADD", "s", "a"),
    ("SRANDMEMBER", "s"),
    ("SRANDMEMBER", "s", -4),
    ("SPOP", "s"),
    ("EXISTS", "s"),
    ("SADD", "s", "a", "b", "c"),
    ("SPOP", "s", MAX),
    ("EXISTS", "s"),
]

COMBINING: list[Request] = [
    ("SADD", "a", "1", "2", "3", "x"),
    ("SADD", "b", "2", "3", "4"),
    ("SADD", "c", "3", "x", "y"),
    *((name, *keys) for name in ("SINTER", "SUNION", "SDIFF") for keys in (
        ("a",), ("none",), ("a", "b"), ("b", "a", "c"), ("a", "none"), ("none", "a"),
        ("a", "a"), ("b", "a", "b"), ("str",), ("a", "str"), ("none", "str"), ("str", "none"), (),
    )),
    *((name, "d", *keys) for name in ("SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE") for keys in (
        ("a",), ("none",), ("a", "b"), ("b", "a", "c"), ("a", "none"), ("none", "a"),
        ("a", "a"), ("b", "a", "b"), ("str",), ("a", "str"), ("none", "str"), ("str", "none"), (),
        ("d",), ("d", "c"), ("c", "d"),
    )),
    ("SUNIONSTORE", "d", "c", "a"),
    ("SMEMBERS", "d"),
    ("SINTERSTORE", "d", "a", "c"),
    ("SMEMBERS", "d"),
    ("SDIFFSTORE", "d", "c", "b"),
    ("SMEMBERS", "d"),
    ("SET", "other", "x", "EX", 1000),
    ("SUNIONSTORE", "other", "a", "b"),
    ("TTL", "other"),
    ("SET", "other", "x"),
    ("SINTERSTORE", "other", "a", "none"),
    ("EXISTS", "other"),
    ("SUNIONSTORE", "a", "a", "b"),
    ("SCARD", "a"),
]  # fmt: skip

COUNTING: list[Request] = [
    ("SADD", "a", "1", "2", "3", "x"),
    ("SADD", "b", "2", "3", "4"),
    *((*head, *rest) for head in (("SINTERCARD",),) for rest in (
        (1, "a"), (2, "a", "b"), (2, "a", "none"), (2, "none", "str"), (1, "str"), (0, "a"),
        ("x", "a"), (-1, "a"), (3, "a", "b"), (MAX, "a"), (MAX + 1, "a"), (1, "a", "b"), (1,), (),
        (1, "a", "LIMIT"), (1, "a", "LIMIT", 2), (1, "a", "limit", 0), (1, "a", "LIMIT", -1),
        (1, "a", "LIMIT", "x"), (1, "a", "LIMIT", 1, "LIMIT", 2), (2, "a", "b", "LIMIT", 1),
        (1, "str", "LIMIT", -1), (1, "str", "FOO"), (1, "a", "APPROX"), (2, "a", "a"),
    )),
]  # fmt: skip

NEW_COUNTING: list[Request] = [
    *COUNTING[:2],
    *((name, *request[1:]) for name in ("SUNIONCARD", "SDIFFCARD") for request in COUNTING[2:]),
    ("SUNIONCARD", 2, "a", "b", "APPROX", "LIMIT", 3),
    ("SUNIONCARD", 2, "a", "b", "LIMIT", 3, "approx"),
    ("SUNIONCARD", 2, "a", "b", "APPROX", "APPROX"),
    ("SDIFFCARD", 2, "a", "b", "LIMIT", 1),
    ("SDIFFCARD", 3, "a", "b", "a"),
]

SCANNING: list[Request] = [
    ("SADD", "s", "a", "b", "ab", "1"),
    ("SADD", "i", "10", "9", "100"),
    *(("SSCAN", key, *rest) for key in ("s", "i", "none", "str") for rest in (
        (0,), (7,), (0, "MATCH", "a*"), (0, "COUNT", 1), (0, "COUNT", 0), (0, "COUNT", "x"),
        (0, "MATCH"), (0, "COUNT"), (0, "NOVALUES"), (0, "TYPE", "set"), (0, "x"), ("x",), (-1,),
        (2**64 - 1,), (2**64,), ("01",), (0, "COUNT", 5, "MATCH", "1*", "COUNT", 9), (),
    )),
]  # fmt: skip


@pytest.mark.since(7, 2)
@pytest.mark.parametrize("resp3", [False, True])
@pytest.mark.parametrize(
    "requests",
    [MEMBERS, CHANCE, COMBINING, COUNTING],
    ids=["members", "chance", "combining", "counting"],
)
def test_same_replies(pair: Pair, pair3: Pair, requests: list[Request], resp3: bool) -> None:
    used = pair3 if resp3 else pair
    used.both("SET", "str", "x")
    for request in requests:
        both(used, *request)


@pytest.mark.since(8, 10)
@pytest.mark.parametrize("requests", [NEW_COUNTING, SCANNING], ids=["counting", "scanning"])
def test_same_replies_of_the_newest(pair: Pair, requests: list[Request]) -> None:
    pair.both("SET", "str", "x")
    for request in requests:
        both(pair, *request)


@pytest.mark.since(8, 10)
@pytest.mark.parametrize("count", [0, 1, 100, 1000, 10_000])
def test_same_estimates(pair: Pair, count: int) -> None:
    pair.both("SADD", "i", *range(400))
    for low in range(0, count, 1000):
        pair.both("SADD", "s", *[f"member:{each}" for each in range(low, low + 1000)])
        pair.both("SADD", "t", *[f"member:{each}" for each in range(low + 500, low + 1500)])
    for keys in (("s",), ("s", "t"), ("i", "s", "none"), ("i",)):
        pair.both("SUNIONCARD", len(keys), *keys, "APPROX")
        pair.both("SUNIONCARD", len(keys), *keys, "APPROX", "LIMIT", 1001)
        pair.both("SUNIONCARD", len(keys), *keys)


def numbers(low: int, high: int) -> list[Argument]:
    return [*range(low, high)]


def strings(low: int, high: int) -> list[Argument]:
    return [f"m{number}" for number in range(low, high)]


def sadd(*members: Argument) -> Request:
    return ("SADD", "s", *members)


MORE: list[list[Argument]] = [["x"], ["y" * 64], ["y" * 65], [-1]]
TO_NUMBERS: list[list[Argument]] = [*MORE, ["0"] * 129, ["0"] * 513, ["x"] * 129]
TO_STRINGS: list[list[Argument]] = [*MORE, ["m0"] * 128, ["m0"] * 129]
ODD: list[Argument] = ["01", "-0", "+1", " 1", MAX, MAX + 1, -MAX - 1, -MAX - 2, "", "-", "1e3"]
ENCODINGS: list[list[Request]] = [
    *([sadd(*["a"] * count)] for count in (1, 128, 129)),
    *([sadd(*["1"] * count)] for count in (1, 128, 129, 512, 513)),
    *(
        [sadd(*numbers(0, count)), sadd(*more)]
        for count in (1, 5, 127, 128, 129, 511, 512, 513)
        for more in TO_NUMBERS
    ),
    *([sadd(*strings(0, count)), sadd(*more)] for count in (1, 127, 128) for more in TO_STRINGS),
    *([sadd(text)] for text in ODD),
    [("SADD", "t", *strings(0, 300)), ("SREM", "t", *strings(1, 300)), ("SMOVE", "t", "s", "m0")],
    [sadd(*strings(0, 300)), ("SREM", "s", *strings(1, 300))],
    [("SADD", "t", "a", 7), ("SMOVE", "t", "s", 7), ("SMOVE", "t", "s", "a")],
    [sadd("b", 3, "a", 1), ("SREM", "s", "b"), ("SREM", "s", "a")],
]


@pytest.mark.since(7, 2)
def test_same_encodings(pair: Pair) -> None:
    for requests in ENCODINGS:
        pair.both("DEL", "s", "t")
        for request in requests:
            pair.both(*request)
            pair.both("OBJECT", "ENCODING", "s")
            both(pair, "SMEMBERS", "s")
        encoding = parse(pair.ours.call("OBJECT", "ENCODING", "s"))
        if encoding in (b"intset", b"listpack"):
            pair.both("SMEMBERS", "s")


@pytest.mark.since(8, 10)
def test_same_encodings_with_other_limits(pair: Pair) -> None:
    try:
        for intset, entries, value in ((4, 2, 3), (0, 0, 0), (2, 6, 1), (1000, 600, 100)):
            for client in (pair.ours, pair.real):
                client.call("CONFIG", "SET", "set-max-intset-entries", intset)
                client.call("CONFIG", "SET", "set-max-listpack-entries", entries)
                client.call("CONFIG", "SET", "set-max-listpack-value", value)
            test_same_encodings(pair)
            pair.both("DEL", "s")
            for member in (1, 2, 30000, 4, 5, "a", "bb", "ccc", "dddd"):
                pair.both("SADD", "s", member)
                pair.both("OBJECT", "ENCODING", "s")
    finally:
        for client in (pair.ours, pair.real):
            client.call("CONFIG", "SET", "set-max-intset-entries", 512)
            client.call("CONFIG", "SET", "set-max-listpack-entries", 128)
            client.call("CONFIG", "SET", "set-max-listpack-value", 64)


RESULTS: list[tuple[list[Request], Request]] = [
    ([("SADD", "a", *strings(0, 300))], ("SINTERSTORE", "d", "a", "a")),
    (
        [("SADD", "a", *strings(0, 300)), ("SADD", "b", *strings(299, 800))],
        ("SINTERSTORE", "d", "a", "b"),
    ),
    (
        [("SADD", "a", *numbers(0, 600)), ("SADD", "b", *numbers(599, 2000))],
        ("SINTERSTORE", "d", "a", "b"),
    ),
    ([("SADD", "a", "x", 2, 1), ("SADD", "b", "y", 2, 1, "z")], ("SINTERSTORE", "d", "a", "b")),
    ([("SADD", "a", "x", 2, 1), ("SADD", "b", "x", 2, 1, "z")], ("SINTERSTORE", "d", "a", "b")),
    ([("SADD", "a", "x", 2, 1), ("SADD", "b", 2, 1)], ("SINTERSTORE", "d", "a", "b")),
    ([("SADD", "a", 2, 1), ("SADD", "b", 3)], ("SUNIONSTORE", "d", "a", "b")),
    ([("SADD", "a", "x", 2, 1), ("SADD", "b", 3)], ("SUNIONSTORE", "d", "a", "b")),
    ([("SADD", "a", 2, 1), ("SADD", "b", 3, "x")], ("SUNIONSTORE", "d", "a", "b")),
    ([("SADD", "a", *numbers(0, 600))], ("SUNIONSTORE", "d", "a")),
    ([("SADD", "a", *strings(0, 100)), ("SADD", "b", *numbers(0, 28))],
     ("SUNIONSTORE", "d", "a", "b")),
    ([("SADD", "a", *strings(0, 300)), ("SREM", "a", *strings(1, 300))], ("SUNIONSTORE", "d", "a")),
    (
        [("SADD", "a", *strings(0, 300)), ("SADD", "b", *strings(1, 900))],
        ("SDIFFSTORE", "d", "a", "b"),
    ),
    (
        [("SADD", "a", *strings(0, 300)), ("SADD", "b", *strings(1, 300)), ("SADD", "c", "q")],
        ("SDIFFSTORE", "d", "a", "b", "c", "c", "c"),
    ),
    (
        [("SADD", "a", "x", 1, 2), ("SADD", "b", "x"), ("SADD", "c", 2)],
        ("SDIFFSTORE", "d", "a", "b", "c"),
    ),
    (
        [("SADD", "a", 5, 1, 2, 4), ("SADD", "b", "x"), ("SADD", "c", 2)],
        ("SDIFFSTORE", "d", "a", "b", "c"),
    ),
]  # fmt: skip


@pytest.mark.since(8, 0)
@pytest.mark.parametrize(("sources", "request_"), RESULTS)
def test_a_result_is_encoded_alike(pair: Pair, sources: list[Request], request_: Request) -> None:
    for source in sources:
        pair.both(*source)
    pair.both(*request_)
    pair.both("OBJECT", "ENCODING", "d")
    both(pair, "SMEMBERS", "d")
    # What comes of a table may come in any order, before it is small again.
    large = [source for source in sources if len(source) > 130]
    if not large:
        pair.both("SMEMBERS", "d")


@pytest.mark.since(8, 0)
@pytest.mark.parametrize(
    ("members", "count"),
    [
        (strings(0, 300), 249),
        (strings(0, 300), 250),
        (strings(0, 300), 299),
        (numbers(0, 600), 550),
        (numbers(0, 500), 450),
        (strings(0, 100), 95),
        (strings(0, 3000), 2500),
        ([*strings(0, 200), "y" * 65], 200),
    ],
)
def test_what_is_left_is_encoded_alike(pair: Pair, members: list[Argument], count: int) -> None:
    left = []
    for client in (pair.ours, pair.real):
        client.call("SADD", "s", *members)
        taken = client.call_parsed("SPOP", "s", count)
        assert isinstance(taken, list)
        rest = client.call_parsed("SMEMBERS", "s")
        assert isinstance(rest, list)
        everything = {str(member).encode() for member in members}
        assert len(taken) == count
        assert len(rest) == len(members) - count
        assert {*taken, *rest} == everything
        longest = max(map(len, rest))
        left.append((client.call("OBJECT", "ENCODING", "s"), longest > 64))
    if left[0][1] == left[1][1]:
        assert left[0] == left[1]


EVENTS: list[Request] = [
    ("SADD", "s", "a", "b", "a"),
    ("SADD", "s", "a"),
    ("SREM", "s", "a", "x"),
    ("SREM", "s", "x"),
    ("SREM", "s", "b"),
    ("SADD", "s", "a", "b"),
    ("SMOVE", "s", "d", "x"),
    ("SMOVE", "s", "d", "a"),
    ("SMOVE", "s", "d", "b"),
    ("SADD", "s", "a"),
    ("SMOVE", "s", "d", "a"),
    ("SMOVE", "d", "d", "a"),
    ("SPOP", "none"),
    ("SPOP", "none", 2),
    ("SPOP", "d", 0),
    ("SPOP", "d", 2),
    ("SADD", "s", "a"),
    ("SPOP", "s"),
    ("SADD", "s", *strings(0, 10)),
    ("SPOP", "s", 9),
    ("DEL", "s"),
    ("SADD", "s", "a", "b"),
    ("SINTERSTORE", "d", "s", "s"),
    ("SINTERSTORE", "d", "s", "none"),
    ("SINTERSTORE", "d", "s", "none"),
    ("SET", "str", "x"),
    ("SUNIONSTORE", "str", "s", "none"),
    ("SUNIONSTORE", "str", "none"),
    ("SDIFFSTORE", "d", "s"),
    ("SDIFFSTORE", "d", "s", "none"),
    ("SDIFFSTORE", "d", "s", "s"),
    ("SUNIONSTORE", "s", "s"),
    ("SINTER", "s", "none", "none2"),
    ("SUNION", "none"),
    ("SDIFF", "none", "s"),
    ("SINTERCARD", 2, "none", "s"),
    ("SISMEMBER", "none", "a"),
    ("SMISMEMBER", "none", "a"),
    ("SCARD", "none"),
    ("SMEMBERS", "none"),
    ("SRANDMEMBER", "none"),
    ("SRANDMEMBER", "none", 2),
    ("SSCAN", "none", 0),
    ("SREM", "none", "a"),
    ("SMOVE", "none", "s", "a"),
]


@pytest.mark.since(8, 10)
def test_same_events_and_counts_of_changes(pair: Pair) -> None:
    listeners = []
    heard: list[list[bytes]] = [[], []]
    try:
        for client in (pair.ours, pair.real):
            client.call("CONFIG", "SET", "notify-keyspace-events", "KEAnmoc")
            listener = RawClient(client.sock.getpeername()[1])
            listener.call("PSUBSCRIBE", "__key*__:*")
            listeners.append(listener)
        for request in EVENTS:
            before = changes(pair)
            both(pair, *request)
            for number, client in enumerate((pair.ours, pair.real)):
                client.call("PUBLISH", "__key__:end", "")
                heard[number] = []
                while not (message := listeners[number].read()).count(b"__key__:end"):
                    heard[number].append(message)
            assert heard[0] == heard[1], request
            after = changes(pair)
            assert after[0] - before[0] == after[1] - before[1], request
    finally:
        for listener in listeners:
            listener.close()
        for client in (pair.ours, pair.real):
            client.call("CONFIG", "SET", "notify-keyspace-events", "")


def changes(pair: Pair) -> list[int]:
    counts = []
    for client in (pair.ours, pair.real):
        told = client.call("INFO", "persistence")
        counts.append(int(told.split(b"rdb_changes_since_last_save:")[1].split(b"\r\n")[0]))
    return counts


WATCHED: list[tuple[Request, bool]] = [
    (("SADD", "s", "a"), False),
    (("SADD", "s", "x"), True),
    (("SREM", "s", "x"), False),
    (("SREM", "s", "a"), True),
    (("SMOVE", "s", "d", "a"), True),
    (("SMOVE", "s", "d", "x"), False),
    (("SPOP", "s"), True),
    (("SPOP", "s", 0), False),
    (("SUNIONSTORE", "s", "none"), True),
    (("SINTERSTORE", "s", "s", "s"), True),
]


@pytest.mark.since(7, 2)
@pytest.mark.parametrize(("request_", "changes_"), WATCHED)
def test_a_watched_set(pair: Pair, request_: Request, changes_: bool) -> None:
    pair.both("SADD", "s", "a", "b")
    pair.both("WATCH", "s")
    both(pair, *request_)
    pair.both("MULTI")
    pair.both("PING")
    assert (pair.both("EXEC") == b"*-1\r\n") == changes_


@pytest.mark.since(8, 0)
@pytest.mark.parametrize("members", [numbers(0, 5), strings(0, 5), strings(0, 500)])
def test_same_digest_and_copy(pair: Pair, members: list[Argument]) -> None:
    pair.both("SADD", "s", *members)
    pair.both("DEBUG", "DIGEST-VALUE", "s")
    pair.both("DEBUG", "DIGEST")
    pair.both("COPY", "s", "t")
    pair.both("SADD", "t", "more")
    pair.both("SREM", "s", members[0])
    pair.both("DEBUG", "DIGEST-VALUE", "s", "t")
    pair.both("OBJECT", "ENCODING", "t")
    pair.both("RENAME", "t", "u")
    pair.both("MOVE", "u", 3)
    pair.both("SCARD", "u")


WORDS: list[Argument] = [*range(12), "a", "b", "c", "01", "", "y" * 64, "z" * 65, "-1"]
NAMES = ["s1", "s2", "s3", "str", "none"]


def chosen(chance: random.Random) -> Request:
    """A command by chance that both servers answer alike."""
    key = chance.choice(NAMES)
    members = [chance.choice(WORDS) for _ in range(chance.choice([1, 1, 2, 5, 140]))]
    keys = [chance.choice(NAMES) for _ in range(chance.randint(1, 4))]
    target = chance.choice(NAMES[:3])
    many = [*(range(600) if chance.random() < 0.5 else strings(0, 200))]
    requests: list[Request] = [
        ("SADD", key, *members),
        ("SADD", key, *members),
        ("SREM", key, *members),
        ("SREM", key, *members[:1]),
        ("SADD", key, *(many if chance.random() < 0.1 else members)),
        ("SREM", key, *(many if chance.random() < 0.3 else members)),
        ("SMOVE", key, target, members[0]),
        ("SISMEMBER", key, members[0]),
        ("SMISMEMBER", key, *members),
        ("SCARD", key),
        ("SMEMBERS", key),
        ("OBJECT", "ENCODING", key),
        (chance.choice(["SINTER", "SUNION", "SDIFF"]), *keys),
        (chance.choice(["SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"]), target, *keys),
        (chance.choice(["SINTERCARD", "SUNIONCARD", "SDIFFCARD"]), len(keys), *keys),
        ("SPOP", key, chance.choice(["0", "1000", "-1", "x"])),
        ("SRANDMEMBER", key, chance.choice(["0", "1000", "x"])),
        ("SSCAN", key, 0, "COUNT", 1000),
        ("COPY", target, chance.choice(NAMES[:3]), "REPLACE"),
        ("DEL", target),
        ("DEBUG", "DIGEST-VALUE", key),
    ]
    return chance.choice(requests)


@pytest.mark.since(8, 10)
@pytest.mark.parametrize("seed", range(3))
def test_commands_by_chance(pair: Pair, pair3: Pair, seed: int) -> None:
    chance = random.Random(seed)
    pair.both("SET", "str", "x")
    for number in range(1500):
        both(pair if number % 3 else pair3, *chosen(chance))
    pair.both("DEBUG", "DIGEST")
