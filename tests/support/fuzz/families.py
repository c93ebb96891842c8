"""What each family of commands is about: its keys, and what may stand in its collections.

Few keys and few members, so that calls meet; numbers in all spellings; and sizes on both sides of
the limits at which a collection turns large.
"""

from __future__ import annotations

from random import Random
from typing import Final

# By the chapter of the manual. Those of "string" and "stream" stand in `words`.
KEYS: Final[dict[str, tuple[bytes, ...]]] = {
    "list": (b"l1", b"l1", b"l2", b"l3"),
    "hash": (b"h1", b"h1", b"h2"),
    "set": (b"e1", b"e1", b"e2", b"e3"),
    "sorted-set": (b"z1", b"z1", b"z2", b"z3", b"g1"),
    "bitmap": (b"b1", b"b1", b"b2", b"k"),
    "hyperloglog": (b"p1", b"p2", b"p3"),
    "geo": (b"g1", b"g1", b"g2"),
    "array": (b"a1", b"a1", b"a2"),
}
FAMILIES: Final = tuple(KEYS)
EQUAL: Final = b"zx"  # a sorted set in which all scores are equal
# What a family's commands take besides.
_GUESTS: Final = {"sorted-set": b"e1", "geo": b"z1", "hyperloglog": b"b1", "set": b"z1"}

_LETTERS: Final = tuple(b"%c" % letter for letter in b"abcdefghijkl")
_NUMBERS: Final = (
    b"0", b"1", b"2", b"3", b"5", b"-1", b"10", b"63", b"64", b"127", b"128", b"-128", b"-129",
    b"4095",
    b"4096", b"32767", b"32768", b"-32769", b"8388607", b"8388608", b"2147483647", b"-2147483649",
    b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808",
)  # fmt: skip
_NEARLY: Final = (
    b"01",
    b"+1",
    b" 1",
    b"1 ",
    b"1.0",
    b"-0",
    b"",
    b"1e2",
    b"\x00",
    b"\xff\xfe",
    b"\r\n$1\r\na",
)
_SHORT: Final = (b"x" * 12, b"x" * 13, b"y" * 63, b"y" * 64)
_LONG: Final = (*_SHORT, b"y" * 65, b"z" * 500, b"w" * 4095)
LIMIT: Final = 64  # bytes of an element above which most collections turn large
_SCORES: Final = (
    b"0", b"1", b"1", b"2", b"2", b"3", b"-1", b"1.5", b"0.1", b"-0", b"1e3", b"100", b"inf",
    b"-inf",
    b"+inf", b"Infinity", b"3.0", b"0x10", b".5", b"1.", b"123456789012345678", b"1e17", b"1e-7",
    b"1.7976931348623157e308", b"4.9e-324", b"9007199254740993", b"4611686018427387904", b"-1e300",
    b"0.30000000000000004", b"2.5", b"17.000000000000001",
)  # fmt: skip
_RANKS: Final = (
    b"0",
    b"0",
    b"1",
    b"2",
    b"3",
    b"-1",
    b"-1",
    b"-2",
    b"-3",
    b"5",
    b"10",
    b"-10",
    b"100",
    b"-100",
)
_COUNTS: Final = (b"1", b"1", b"2", b"2", b"3", b"5", b"10", b"0", b"-1", b"-2", b"100")
_LEX: Final = (
    b"-",
    b"-",
    b"+",
    b"+",
    b"[a",
    b"[c",
    b"(c",
    b"(e",
    b"[h",
    b"[",
    b"(",
    b"[y",
    b"c",
    b"[\xff",
)
_FLOATS: Final = (
    b"1", b"0.5", b"-1.5", b"1e2", b"3.0", b"0.1", b"1e-10", b"-0", b"1e17", b"17179869184.5",
    b"nan",
    b"inf", b"-inf", b"1e400", b"1e308",
)  # fmt: skip
_BIT_OFFSETS: Final = (
    b"0", b"1", b"2", b"7", b"8", b"9", b"15", b"31", b"63", b"64", b"100", b"511", b"1000",
    b"4095",
    b"-1", b"80000", b"4294967296",
)  # fmt: skip
_FIELD_OFFSETS: Final = (
    b"0",
    b"0",
    b"1",
    b"3",
    b"7",
    b"8",
    b"#0",
    b"#1",
    b"#2",
    b"#10",
    b"100",
    b"-1",
    b"#-1",
)
_FIELD_TYPES: Final = (
    b"u8", b"u8", b"i8", b"u4", b"i5", b"u1", b"i1", b"u16", b"i16", b"u31", b"i32", b"u33",
    b"u63", b"i63",
    b"i64", b"u64", b"i65", b"u0", b"i0", b"x8", b"u", b"U8",
)  # fmt: skip
_LONGITUDES: Final = (
    b"13.361389", b"15.087269", b"13.583333", b"-122.4", b"0", b"0.0001", b"180", b"-180",
    b"179.9999", b"181",
    b"2.349014", b"-74.0059413",
)  # fmt: skip
_LATITUDES: Final = (
    b"38.115556", b"37.502669", b"37.316667", b"37.7", b"0", b"0.0001", b"85.05112878",
    b"-85.05112878",
    b"85.06", b"48.864716", b"40.7127837",
)  # fmt: skip
_RADII: Final = (b"100", b"200", b"1", b"0", b"5000", b"20000000", b"0.5", b"-1", b"1e10")
_INDEXES: Final = (
    b"0", b"0", b"1", b"2", b"3", b"5", b"7", b"63", b"64", b"100", b"511", b"512", b"4095",
    b"4096", b"65536",
    b"1000000", b"2147483648", b"1152921504606846976", b"18446744073709551614",
    b"18446744073709551615", b"-1",
)  # fmt: skip

_POOLS: Final[dict[str, dict[str, tuple[bytes, ...]]]] = {
    "list": {
        "index": _RANKS, "start": _RANKS, "stop": _RANKS, "count": _COUNTS, "exactly": _COUNTS,
        "rank": (b"1", b"1", b"2", b"-1", b"-2", b"0", b"-9223372036854775808"),
        "num-matches": (b"0", b"1", b"2", b"10", b"-1"), "len": (b"0", b"1", b"3", b"100", b"-1"),
        "timeout": (b"0", b"0", b"0.01", b"1", b"1.5", b"-1", b"1e400", b"x"),
    },
    "hash": {
        "increment": (b"1", b"2", b"-1", b"9223372036854775807", b"-9223372036854775808", b"0",
        b"1.5"),
        "count": _COUNTS, "numfields": (b"0", b"1", b"2", b"3", b"-1", b"5"),
        "cursor": (b"0", b"0", b"0", b"0", b"1", b"x"), "fieldset-name": (b"fs", b"fs", b"ft"),
        "pattern": (b"*", b"*", b"[a-c]*", b"?", b"x*", b"\\a"),
    },
    "set": {
        "count": _COUNTS, "limit": (b"0", b"1", b"2", b"5", b"100", b"-1"),
        "cursor": (b"0", b"0", b"0", b"0", b"1", b"x"),
        "pattern": (b"*", b"*", b"[a-c]*", b"?", b"1*", b"\\a"),
    },
    "sorted-set": {
        "score": _SCORES, "count": _COUNTS, "limit": (b"0", b"1", b"2", b"5", b"100", b"-1"),
        "offset": (b"0", b"0", b"1", b"2", b"-1", b"100"),
        "weight": (b"1", b"2", b"0", b"-1", b"0.5", b"inf", b"1e300", b"nan"),
        "cursor": (b"0", b"0", b"0", b"0", b"1", b"x"),
        "pattern": (b"*", b"*", b"[a-c]*", b"?", b"x*"),
        "timeout": (b"0", b"0", b"0.01", b"1", b"1.5", b"-1", b"1e400", b"x"),
    },
    "bitmap": {
        "bit": (b"0", b"1", b"0", b"1", b"2", b"-1"), "value": (b"0", b"1", b"1", b"1", b"2",
        b"-5", b"255"),
        "start": _RANKS, "end": _RANKS, "encoding": _FIELD_TYPES,
        "increment": (b"1", b"-1", b"10", b"100", b"127", b"-129", b"9223372036854775807"),
    },
    "hyperloglog": {
        "subcommand": (b"GETREG", b"DECODE", b"ENCODING", b"TODENSE", b"decode", b"nosuch"),
    },
    "geo": {
        "longitude": _LONGITUDES, "latitude": _LATITUDES, "radius": _RADII, "width": _RADII,
        "height": _RADII, "count": _COUNTS,
    },
    "array": {
        "index": _INDEXES, "start": _INDEXES, "end": _INDEXES, "size": (b"1", b"2", b"3", b"5",
        b"0", b"100"),
        "count": _COUNTS, "limit": (b"0", b"1", b"2", b"5", b"100", b"-1"),
        "pattern": (b"*", b"a*", b"[a-c]", b"^a", b"x+$", b"(", b"."),
    },
}  # fmt: skip
_FLOAT_INCREMENTS: Final = {"hincrbyfloat", "zincrby"}
_SCORE_BOUNDS: Final = {"min", "max"}

# Within a chapter, where it is not 1: what fills comes often, what empties seldom.
OFTEN: Final = {
    "rpush": 4, "lpush": 4, "linsert": 2, "ltrim": 0.5, "lrem": 1, "lrange": 3, "hset": 6,
    "hsetnx": 2,
    "hincrby": 2, "hincrbyfloat": 2, "hgetall": 2, "hexpire": 2, "hpexpire": 2, "hsetex": 2,
    "sadd": 7,
    "spop": 0.6, "sinterstore": 0.7, "smembers": 2, "zadd": 9, "zincrby": 2, "zrange": 4,
    "zrangestore": 0.7,
    "zremrangebyrank": 0.4, "zremrangebyscore": 0.4, "zremrangebylex": 0.4, "zunionstore": 0.7,
    "zinterstore": 0.5, "zdiffstore": 0.5, "setbit": 5, "bitfield": 4, "pfadd": 6, "geoadd": 6,
    "arset": 5, "armset": 3, "arinsert": 2, "pfselftest": 0.002,
}  # fmt: skip


def key(family: str, chance: Random) -> bytes:
    """A key of this family, as a rule."""
    guest = _GUESTS.get(family)
    return guest if guest and chance.random() < 0.04 else chance.choice(KEYS[family])


def value(
    family: str, command: str, name: str, kind: str, chance: Random, long: bool
) -> bytes | None:
    """A word for an argument; None where the family has nothing of its own to say.

    Args:
        family: the chapter of the manual.
        name, kind: the argument's, as the documentation calls it.
        long: whether an element may be so long that its collection turns large.
    """
    if name in _SCORE_BOUNDS and kind == "double":
        return (b"(" if chance.random() < 0.25 else b"") + chance.choice(_SCORES)
    if name in _SCORE_BOUNDS and family == "sorted-set":
        return chance.choice(_LEX)
    if name == "increment" and command in _FLOAT_INCREMENTS:
        return chance.choice(_FLOATS)
    if name == "offset" and family == "bitmap":
        return chance.choice(_FIELD_OFFSETS if command.startswith("bitfield") else _BIT_OFFSETS)
    if name in ("start", "stop", "end") and family != "array":
        return chance.choice(_RANKS)
    pool = _POOLS[family].get(name)
    if pool is not None:
        return chance.choice(pool)
    return _member(family, chance, long) if kind in ("string", "pattern") else None


def _member(family: str, chance: Random, long: bool) -> bytes:
    """An element, a member, a field or its value."""
    kind = chance.random()
    if family == "set" and kind < 0.4:
        return b"%d" % chance.randrange(24)
    if kind < 0.7:
        return chance.choice(_LETTERS)
    if kind < 0.9:
        return chance.choice(_NUMBERS)
    return chance.choice(_NEARLY if kind < 0.95 else _LONG if long else _SHORT)


def levels(words: list[bytes]) -> bool:
    """Return whether a call puts members into the set in which all scores are to be equal."""
    return words[0].upper() in (b"ZADD", b"ZRANGESTORE") and EQUAL in words[1:2]


def suited(words: list[bytes], name: str, chance: Random) -> list[bytes]:
    """A call on a sorted set whose bounds are of the kind that it asks for.

    What asks for members in the order of their bytes goes to a set in which all scores are equal:
    on others it finds what depends on how they have grown.
    """
    first = {"zrange": 2, "zrangestore": 3}.get(name)
    options = {word.upper() for word in words[2:]}
    if first is not None and len(words) >= first + 2:
        pool = _LEX if b"BYLEX" in options else _SCORES if b"BYSCORE" in options else _RANKS
        bounds = [chance.choice(pool), chance.choice(pool)]
        if b"BYSCORE" in options and chance.random() < 0.4:
            bounds[0] = b"(" + bounds[0]
        words = [*words[:first], *bounds, *words[first + 2 :]]
    if b"BYLEX" in options or "lex" in name:
        place = 2 if name == "zrangestore" else 1
        return [*words[:place], EQUAL, *words[place + 1 :]]
    if name == "zadd" and chance.random() < 0.2:
        members = [chance.choice(_LETTERS) for _ in range(chance.randint(1, 4))]
        return [words[0], EQUAL, *[word for member in members for word in (b"0", member)]]
    return words


# The limits at which collections turn large, those of Redis first.
LIMITS: Final[dict[str, tuple[bytes, ...]]] = {
    "hash-max-listpack-entries": (b"512", b"512", b"6", b"20"),
    "hash-max-listpack-value": (b"64", b"64", b"12"),
    "set-max-intset-entries": (b"512", b"512", b"5"),
    "set-max-listpack-entries": (b"128", b"128", b"6", b"20"),
    "set-max-listpack-value": (b"64", b"64", b"12"),
    "zset-max-listpack-entries": (b"128", b"128", b"6", b"20"),
    "zset-max-listpack-value": (b"64", b"64", b"12"),
    "list-max-listpack-size": (b"-2", b"-2", b"4", b"16", b"-1", b"-5"),
    "hll-sparse-max-bytes": (b"3000", b"3000", b"100", b"0"),
}


def filled(family: str, chance: Random) -> list[list[bytes]]:
    """Calls that fill a key of a family with much."""
    key = KEYS[family][0]
    many = chance.choice((20, 60, 150, 600))
    numbers = [b"%d" % number for number in chance.sample(range(1000), many)]
    names = [b"m%b" % number for number in numbers]
    pairs = [word for pair in zip(numbers, names, strict=True) for word in pair]
    if family == "list":
        return [[b"RPUSH", key, *chance.choice((names, [b"v" * 100] * (many // 4), numbers))]]
    if family == "hash":
        return [[b"HSET", key, *pairs]]
    if family == "set":
        return [[b"SADD", key, *chance.choice((names, numbers))]]
    if family == "sorted-set":
        return [[b"ZADD", key, *pairs]]
    if family == "bitmap":
        return [[b"SET", key, chance.randbytes(many)]]
    if family == "hyperloglog":
        return [[b"PFADD", key, *names]]
    if family == "geo":
        return [
            [
                b"GEOADD",
                key,
                b"%.4f" % chance.uniform(-180, 180),
                b"%.4f" % chance.uniform(-85, 85),
                name,
            ]
            for name in names[:60]
        ]
    return [[b"ARSET", key, chance.choice(_INDEXES[:15]), *names]]
