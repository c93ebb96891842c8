"""Values of every type, small and large, in every encoding that Redis has for them."""

from __future__ import annotations

from support.client import Argument, RawClient

Requests = list[tuple[Argument, ...]]

LONG = b"long " * 3000  # compressed, where a server does that
MANY = 3000
NUMBERS = [
    0,
    12,
    127,
    128,
    -1,
    -128,
    4095,
    -4096,
    40_000,
    2**23,
    -(2**31),
    2**40,
    -(2**63),
    2**63 - 1,
]


def words(count: int) -> list[bytes]:
    """Different texts, some of them numbers, some long."""
    return [b"%d" % n if n % 3 == 0 else b"w%d " % n * (1 + n % 15) for n in range(count)]


def doubled(texts: list[bytes]) -> list[bytes]:
    return [word for text in texts for word in (text, text[::-1] * 2)]


def scored(texts: list[bytes]) -> list[Argument]:
    scores: list[Argument] = [0, 1.5, -7, "inf", "-inf", 1e300, 5e-324, 3.0000000000000004, 2**53]
    return [
        word
        for n, text in enumerate(texts)
        for word in (scores[n] if n < len(scores) else repr(n / 7), text)
    ]


def in_slices(name: str, key: str, given: list[Argument], width: int = 1) -> Requests:
    size = 500 * width
    return [(name, key, *given[at : at + size]) for at in range(0, len(given), size)]


VALUES: dict[str, Requests] = {
    "list": [("RPUSH", "k", "a", "", *NUMBERS, "x" * 70)],
    "list of one": [("RPUSH", "k", "only")],
    "long list": in_slices("RPUSH", "k", [*words(MANY)]),
    "list of long texts": [("RPUSH", "k", "a", LONG, "b", LONG, LONG)],
    "set of integers": [("SADD", "k", *NUMBERS)],
    "set of short integers": [("SADD", "k", -1, 1, 3000)],
    "set": [("SADD", "k", "a", "", *NUMBERS, "x" * 63)],
    "set of many integers": in_slices("SADD", "k", [*range(-900, 900)]),
    "large set": in_slices("SADD", "k", [*words(MANY)]),
    "set of long texts": [("SADD", "k", "a", LONG)],
    "sorted set": [("ZADD", "k", *scored([b"", b"x" * 63, *words(12)]))],
    "large sorted set": in_slices("ZADD", "k", [*scored(words(MANY))], 2),
    "sorted set of long texts": [("ZADD", "k", 1, "a", -0.0, LONG)],
    "hash": [("HSET", "k", *doubled([b"", *words(10)]))],
    "large hash": in_slices("HSET", "k", [*doubled(words(MANY))], 2),
    "hash of long texts": [("HSET", "k", "f", LONG, LONG, "v")],
}  # fmt: skip
# Values that only newer servers have, and from which version on.
NEWER: dict[str, tuple[tuple[int, int], Requests]] = {
    "hash with deadlines": (
        (7, 4),
        [
            ("HSET", "k", *doubled(words(9))),
            ("HPEXPIREAT", "k", 4_000_000_000_000, "FIELDS", 2, "0", "3"),
            ("HPEXPIREAT", "k", 3_900_000_000_001, "FIELDS", 1, "6"),
        ],
    ),
    "large hash with deadlines": (
        (7, 4),
        [
            *in_slices("HSET", "k", [*doubled(words(MANY))], 2),
            ("HPEXPIREAT", "k", 4_000_000_000_000, "FIELDS", 3, "0", "3", "2997"),
            ("HPEXPIREAT", "k", 3_900_000_000_001, "FIELDS", 1, "6"),
        ],
    ),
    "hash without its deadlines": (
        (7, 4),
        [
            ("HSET", "k", *doubled(words(9))),
            ("HPEXPIREAT", "k", 4_000_000_000_000, "FIELDS", 1, "0"),
            ("HPERSIST", "k", "FIELDS", 1, "0"),
        ],
    ),
    "array": (
        (8, 8),
        [
            ("ARSET", "k", 0, "1.5", "abcdefg", *NUMBERS, "x" * 300, "", "0.1", "-0"),
            ("ARSET", "k", 10_000, "far"),
        ],
    ),
    "array with a place to insert": ((8, 8), [("ARRING", "k", 3, "a", "b", "c", "d")]),
    "large array": ((8, 8), in_slices("ARINSERT", "k", [*words(MANY)])),
    "hash of a shape": (
        (8, 10),
        [("HIMPORT", "PREPARE", "few", "name", "age"), ("HIMPORT", "SET", "k", "few", "Ada", 36)],
    ),
    "hash of a shape with long texts": (
        (8, 10),
        [
            ("HIMPORT", "PREPARE", "many", *[f"field {n}" for n in range(30)]),
            ("HIMPORT", "SET", "k", "many", *["v" * 90] * 30),
        ],
    ),
}


def make(client: RawClient, requests: Requests, key: str = "k") -> None:
    """Make a value, whose key may have another name."""
    for request in requests:
        renamed = [key if word == "k" else word for word in request]
        reply = client.call(*renamed)
        assert not reply.startswith(b"-"), (request[:2], reply)


def names(since: tuple[int, int]) -> list[str]:
    """The values that a server of this version has."""
    return [*VALUES, *[name for name, (first, _) in NEWER.items() if first <= since]]


def requests(name: str) -> Requests:
    return VALUES[name] if name in VALUES else NEWER[name][1]
