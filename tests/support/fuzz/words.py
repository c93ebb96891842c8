"""The words that a call is made of, chosen by chance by the name of the argument they stand for.

Few keys, IDs, groups and numbers, so that calls meet: what one makes, another deletes.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from support.clock import START_MS
from support.fuzz import families, payloads

STREAMS: Final = (b"s", b"t")
STRINGS: Final = (b"k", b"n")
EITHER: Final = (b"m",)

MAX: Final = 2**63 - 1
EXTREMES: Final = tuple(
    b"%d" % number
    for number in (
        MAX, MAX + 1, -MAX - 1, -MAX - 2, MAX // 1000, MAX // 1000 + 1, -(MAX // 1000) - 1,
        2**64 - 1, 2**64, 2**31 - 1, 2**31, -(2**31), 2**32, 10**15, -(10**15), 10**25,
    )
)  # fmt: skip
# What no number, ID or option is, or only nearly.
ODD: Final = (
    b"", b"x", b"-1", b"-", b"+", b"$", b">", b"*", b"~", b"=", b"(", b"01", b"+1", b" 1", b"1 ",
    b"1.0", b"1e2", b"0x1", b"nan", b"inf", b"-0", b"1-", b"-1-1", b"1-x", b"1-1-1", b"(1-1",
    b"1-*", b"\x00", b"\xff\r\n", b"18446744073709551615-18446744073709551615",
    b"18446744073709551616-0", b"0-18446744073709551616", b"0-0",
)  # fmt: skip
WRONG: Final = (*EXTREMES, *ODD)

SMALL: Final = (b"0", b"1", b"1", b"2", b"2", b"3", b"5", b"10", b"-1", b"100")
SHORT_MS: Final = (
    0,
    1,
    1,
    2,
    5,
    10,
    20,
    100,
    1000,
    1500,
)  # lengths of time that moves of the clock meet
FIRST_AND_LAST_MS: Final = (0, 0, 1, 2**46 - 1)  # moments; the last one is that of a field
MOVES_MS: Final = (1, 1, 2, 4, 5, 6, 9, 10, 11, 20, 50, 99, 100, 101, 500, 999, 1000, 1001, 2000)

_POOLS: Final[dict[str, tuple[bytes, ...]]] = {
    "group": (b"g",) * 12 + (b"h", b"h", b"none"),
    "consumer": (b"c", b"c", b"d", b"d", b"e"),
    "field": (b"f", b"f", b"g", b"value", b""),
    "value": (b"v", b"w", b"1", b"10", b"-3", b"1.5", b"", b"value", b"9223372036854775807"),
    "message": (b"hello", b""),
    "pid": (b"p", b"p", b"q"),
    "iid": (b"i", b"i", b"j", b"l"),
    "pattern": (b"*", b"k*", b"[a-m]", b"s", b"?", b"\\k"),
    "channel": (b"a", b"b"),
    "shardchannel": (b"a", b"b"),
    "cursor": (b"0", b"0", b"0", b"1"),
    "type": (
        b"string", b"stream", b"STRING", b"list", b"hash", b"set", b"zset", b"array", b"nosuch",
        b"stringx", b"",
    ),
    "count": (b"1", b"1", b"1", b"2", b"2", b"3", b"5", b"10", b"100", b"0", b"-1"),
    "numlocal": (b"0", b"0", b"1"),
    "numreplicas": (b"0", b"0", b"1"),
    "duration": (b"60", b"100", b"86400", b"0", b"86401"),  # none ends within a session
    "maxsize": (b"1", b"30", b"43", b"50", b"80", b"100", b"200", b"1000", b"0"),
    "maxcount": (b"1", b"1", b"2", b"2", b"3", b"5", b"0"),
    "idmp-maxsize": (b"1", b"2", b"100", b"0", b"10000", b"10001"),
    "protover": (b"2", b"3", b"3", b"4"),
    "parameter": (b"stream-node-max-entries", b"stream-node-max-bytes", b"nosuch"),
    "index": (b"0", b"0", b"0", b"0", b"1", b"1", b"2", b"3", b"4"),
    "username": (b"default", b"nobody"),
    "clientname": (b"me", b"", b"a b"),
    "connection-name": (b"me", b"", b"a b"),
    "retrycount": (b"0", b"1", b"2", b"7"),
    "increment": (b"1", b"2", b"-1", b"0.5", b"1e3", b"9223372036854775807", b"nan", b"inf"),
    "offset": (b"0", b"1", b"3", b"-1", b"536870912"),
    "command-name": (b"get", b"xadd", b"xinfo", b"xinfo|stream", b"nosuch", b"SET"),
    "integer": SMALL,
    "by-pattern": (b"w_*", b"w_*", b"h_*->f", b"nosort", b"*", b"nosuch_*", b"h_*->"),
    "get-pattern": (b"#", b"#", b"w_*", b"h_*->f", b"*", b"nosort", b"h_*->nosuch"),
    "double": (b"1", b"0.5", b"-1.5", b"1e2", b"3.0", b"nan", b"inf", b"1e400"),
}  # fmt: skip
_LIKE: Final = {
    "id": "id", "ID": "id", "lastid": "id", "last-id": "id", "max-deleted-id": "id",
    "stream-id": "id",
    "start": "bound", "end": "bound", "min": "bound", "max": "bound",
    "milliseconds": "length_ms", "min-idle-time": "length_ms", "ms": "length_ms",
    "idle": "length_ms",
    "timeout": "length_ms",
    "seconds": "length_s",
    "unix-time-seconds": "moment_s", "unix-time-milliseconds": "moment_ms",
    "threshold": "threshold", "idmp-duration": "duration",
    "ifeq-value": "value", "ifne-value": "value", "lowerbound": "integer", "upperbound": "integer",
    "index1": "index", "index2": "index", "db": "index", "destination-db": "index",
    "index": "index", "numids": "count", "numkeys": "count",
}  # fmt: skip


_KEYS: Final = {"stream": STREAMS, "string": STRINGS, **families.KEYS}
ABOUT: Final = tuple(_KEYS)


class Words:
    """Chooses words.

    Args:
        chance: where all choices come from.
        wrong: how often a value is one that does not fit.
        about: the families whose keys commands on any type are about.

    Attributes:
        now_ms: what the servers' clock will show when the call is made.
        long: whether elements may be so long that their collection turns large.
    """

    def __init__(
        self, chance: Random, wrong: float = 0.02, about: Sequence[str] = ("stream", "string")
    ) -> None:
        self._chance: Final = chance
        self._wrong: Final = wrong
        self._about: Final = about
        self._any_key: Final = tuple(key for family in about for key in _KEYS[family]) + EITHER
        self.long = False
        self._next_id = 1
        self._by_clock = chance.random() < 0.3  # whether IDs are mostly those that the clock gives
        self.now_ms = START_MS

    def takes_producers(self) -> bool:
        """Return whether to name a producer, which goes with IDs that the clock gives."""
        return self._by_clock or self._chance.random() < 0.05

    def pick(self, pool: Sequence[bytes]) -> bytes:
        return self._chance.choice(pool)

    def value(self, name: str, kind: str, family: str, command: str = "") -> bytes:
        """A word for an argument.

        Args:
            name: as the documentation calls it.
            kind: its type there.
            family: the chapter of its command, which says what keys are taken for.
        """
        chance = self._chance
        if chance.random() < self._wrong:
            return self.pick(WRONG)
        if kind == "key":
            return self.key(family)
        if family in families.KEYS:
            word = families.value(family, command, name, kind, chance, self.long)
            if word is not None:
                return word
        if name == "serialized-value":
            return payloads.named(chance)
        like = _LIKE.get(name, name)
        if like == "id":
            return self.entry_id()
        if like == "bound":
            return self._bound() if family == "stream" else self.pick(SMALL)
        if like == "length_ms":
            return b"%d" % chance.choice(SHORT_MS)
        if like == "ttl":  # of RESTORE: a length, or a moment with ABSTTL
            moment = b"%d" % (self.now_ms + chance.choice(SHORT_MS))
            return self.pick((b"0", b"0", b"%d" % chance.choice(SHORT_MS), moment))
        if like == "length_s":
            return self.pick((b"1", b"1", b"2", b"10", b"0", b"-1"))
        if like.startswith("moment") and chance.random() < 0.06:
            return b"%d" % (chance.choice(FIRST_AND_LAST_MS) // (1000 if like == "moment_s" else 1))
        if like == "moment_ms":
            return b"%d" % (self.now_ms + chance.choice((0, 1, 1, 2, 5, 10, 100, 1000, -1, -1000)))
        if like == "moment_s":
            return b"%d" % (self.now_ms // 1000 + chance.choice((0, 1, 1, 2, 10, -1)))
        if like == "threshold":
            return self.entry_id() if chance.random() < 0.15 else self.pick(SMALL)
        if like.endswith("digest"):
            return self.pick((b"e1b5b5d5d6d3d0c8", b"0000000000000000", b"2d06800538d394c2"))
        pool = _POOLS.get(like) or _POOLS.get(kind) or _POOLS["value"]
        return self.pick(pool)

    def key(self, family: str) -> bytes:
        """A key, more often than not one that holds what the command is about."""
        chance = self._chance
        if chance.random() > 0.95:
            return self.pick(self._any_key)
        if family in families.KEYS:
            return families.key(family, chance)
        return self.pick(_KEYS.get(family) or _KEYS[self._chance.choice(self._about)])

    def entry_id(self) -> bytes:
        """An ID that an entry has, had, or might come to have."""
        chance = self._chance
        kind = chance.random()
        if kind < (0.8 if self._by_clock else 0.01):
            ms = chance.choice((START_MS, self.now_ms, self.now_ms - 1, self.now_ms - 5))
            return b"%d-%d" % (ms, chance.choice((0, 0, 0, 1, 1, 2, 3)))
        if kind < 0.14:
            return b"0" if chance.random() < 0.5 else b"0-0"
        late = chance.random() < 0.5  # what was added lately is there and pending, probably
        ms = chance.randint(max(1, self._next_id - 5) if late else 1, max(2, self._next_id))
        return b"%d" % ms if kind < 0.24 else b"%d-%d" % (ms, chance.choice((0, 1, 1, 1, 2)))

    def new_id(self) -> bytes:
        """An ID to append at, above the last one more often than not."""
        chance = self._chance
        kind = chance.random()
        if kind < (0.8 if self._by_clock else 0.01):
            return b"*"
        if kind < 0.1:
            return self.entry_id()
        self._next_id += chance.choice((0, 1, 1, 1))
        return b"%d-*" % self._next_id if kind < 0.35 else b"%d-1" % self._next_id

    def _bound(self) -> bytes:
        kind = self._chance.random()
        if kind < 0.3:
            return b"-"
        if kind < 0.6:
            return b"+"
        return b"(" + self.entry_id() if kind < 0.7 else self.entry_id()
