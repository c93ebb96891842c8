"""What clients ask for: commands of every kind that touches a stream, with weights drawn anew for
each seed.

Some seeds delete much, others hardly ever; some have one key, others six. A workload that is the
same mixture always finds what that mixture finds, and nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from simulator.oracle import Entry, show_id
from simulator.resp import Words

if TYPE_CHECKING:
    from simulator.region import Region

STRICT: Final = "strict"
SEMI_STRICT: Final = "semi-strict"
LIBERAL: Final = "liberal"


class Asked(NamedTuple):
    """What one client sends at once: one command, or a transaction.

    Attributes:
        client: who asks; names of their own have those that may wait.
    """

    client: str
    requests: list[Words]


class Sight:
    """What a client of a region may know of it, to ask for what is there mostly."""

    def __init__(self, region: Region, regions: Iterable[Region], now_ms: int) -> None:
        self.view = region.view
        self._regions = list(regions)
        self.now_ms = now_ms
        self._region = region

    def entries(self, key: bytes) -> Sequence[Entry]:
        found = self.view.keys.get(key)
        return found.entries() if found is not None else ()

    def dump(self, key: bytes) -> bytes | None:
        """Return what DUMP says of a key."""
        return self._region.dump(key)

    def token(self, chance: random.Random) -> bytes:
        """Return what AA TOKEN says in some region."""
        ready = [region for region in self._regions if region.ready]
        found = chance.choice(ready).call("oracle", [b"AA", b"TOKEN"])
        assert isinstance(found, bytes), found
        return found

    def read_upto(self, key: bytes) -> bytes:
        """Return how far a reader has come who reads what is stable."""
        return show_id(self._region.read_upto.get(key, (0, 0)))


Maker = Callable[["Workload", Sight], list[Words]]


class Workload:
    """Makes requests by chance.

    Args:
        mode: of the IDs that callers give.
        regions: how many there are.
        more: chance of its own that the later kinds have, so that leaving them out changes nothing.
        without: kinds that are left out.
    """

    def __init__(
        self,
        chance: random.Random,
        mode: str,
        regions: int,
        more: random.Random,
        without: frozenset[str],
    ) -> None:
        self.chance: Final = chance
        self.mode = mode
        self.regions: Final = regions
        self.keys: Final = [b"s%d" % number for number in range(chance.choice((1, 2, 3, 6)))]
        self.groups: Final = [b"g%d" % number for number in range(chance.choice((1, 2, 3)))]
        self.consumers: Final = [b"a", b"b"]
        self.pids: Final = [b"p", b"q"]
        self.weights: Final = {
            name: base * 10 ** chance.uniform(-1.3, 0.7) if chance.random() < 0.85 else 0.0
            for name, base in _BASE.items()
        }
        for name in ("add", "read_group"):  # without them there is nothing
            self.weights[name] = max(self.weights[name], _BASE[name] / 3)
        for name, base in LATER.items():
            weight = base * 10 ** more.uniform(-1.0, 0.5) if more.random() < 0.5 else 0.0
            self.weights[name] = 0.0 if name in without else weight
        self.gives_ids: Final = self.weights["read_stable"] == 0 or more.random() < 0.3
        self._names: Final = list(self.weights)
        self._cumulative: Final[list[float]] = []
        total = 0.0
        for name in self._names:
            total += self.weights[name]
            self._cumulative.append(total)
        self._value = 0

    def next(self, sight: Sight) -> Asked:
        """Return what some client asks for now."""
        name = self.chance.choices(self._names, cum_weights=self._cumulative)[0]
        if name == "transaction":
            inner: list[Words] = []
            for _ in range(self.chance.randint(1, 4)):
                name = self.chance.choices(self._names, cum_weights=self._cumulative)[0]
                if name not in ("transaction", "wait", "overwrite", "follow", "sync"):
                    inner += _MAKERS[name](self, sight)
            return Asked("t", [[b"MULTI"], *inner, [b"EXEC"]])
        requests = _MAKERS[name](self, sight)
        client = "c"
        if name in ("wait", "follow", "sync"):
            client = f"w{self.chance.randrange(3)}"
        return Asked(client, requests)

    # What commands are made of

    def key(self) -> bytes:
        return self.chance.choice(self.keys)

    def group(self) -> bytes:
        return self.chance.choice(self.groups)

    def consumer(self) -> bytes:
        return self.chance.choice(self.consumers)

    def some_id(self, sight: Sight, key: bytes) -> bytes:
        """Mostly the ID of an entry that is there."""
        entries = sight.entries(key)
        chance = self.chance
        if entries and chance.random() < 0.9:
            return show_id(chance.choice(entries).id)
        return b"%d-%d" % (sight.now_ms - chance.randrange(2000), chance.randrange(40))

    def some_ids(self, sight: Sight, key: bytes, most: int = 4) -> Words:
        return [self.some_id(sight, key) for _ in range(self.chance.randint(1, most))]

    def fields(self) -> Words:
        self._value += 1
        fields: Words = []
        for name in self.chance.choice(((b"f",), (b"f", b"g"), (b"h",))):
            fields += [name, b"%d" % self._value]
        return fields

    def number(self) -> bytes:
        return b"%d" % self.chance.choice((0, 1, 2, 3, 5, 8, 20))


def _add_id(work: Workload, sight: Sight, key: bytes) -> bytes:
    chance = work.chance
    kind = chance.random()
    if kind < 0.6 or not work.gives_ids:
        return b"*"
    entries = sight.entries(key)
    top = entries[-1].id[0] if entries else sight.now_ms - 1000
    ms = top + chance.choice((0, 0, 1, 2, 10, -1))
    if kind < 0.75:
        return b"%d" % ms
    if kind < 0.82:
        return b"%d-*" % ms
    if work.mode == STRICT and chance.random() < 0.8:
        return b"*"
    return b"%d-%d" % (ms, chance.choice((0, 1, 2, 3, 16, 17)))


def _add(work: Workload, sight: Sight) -> list[Words]:
    chance = work.chance
    key = work.key()
    words: Words = [b"XADD", key]
    if chance.random() < 0.03:
        words.append(b"NOMKSTREAM")
    kind = chance.random()
    references = chance.random() < 0.05
    if references:
        words.append(chance.choice((b"KEEPREF", b"DELREF", b"ACKED")))
    if kind < 0.06:
        words += [b"MAXLEN", chance.choice((b"=", b"~")), work.number()]
    elif kind < 0.09:
        words += [b"MINID", chance.choice((b"=", b"~")), work.some_id(sight, key)]
    return [[*words, _add_id(work, sight, key), *work.fields()]]


def _produce(work: Workload, sight: Sight) -> list[Words]:
    chance = work.chance
    key = work.key()
    if chance.random() < 0.25:
        return [[b"XADD", key, b"IDMPAUTO", chance.choice(work.pids), b"*", b"f", work.number()]]
    pair = [chance.choice(work.pids), b"%d" % chance.randrange(12)]
    return [[b"XADD", key, b"IDMP", *pair, b"*", *work.fields()]]


def _delete_entries(work: Workload, sight: Sight) -> list[Words]:
    key = work.key()
    kind = work.chance.random()
    ids = work.some_ids(sight, key)
    if kind < 0.6:
        return [[b"XDEL", key, *ids]]
    rule = work.chance.choice((b"KEEPREF", b"DELREF", b"ACKED"))
    if kind < 0.8:
        return [[b"XDELEX", key, rule, b"IDS", b"%d" % len(ids), *ids]]
    return [[b"XACKDEL", key, work.group(), rule, b"IDS", b"%d" % len(ids), *ids]]


def _trim(work: Workload, sight: Sight) -> list[Words]:
    key = work.key()
    chance = work.chance
    kind = chance.choice((b"=", b"~"))
    if chance.random() < 0.6:
        words = [b"XTRIM", key, b"MAXLEN", kind, work.number()]
    else:
        words = [b"XTRIM", key, b"MINID", kind, work.some_id(sight, key)]
    if kind == b"~" and chance.random() < 0.3:
        words += [b"LIMIT", b"10"]
    if chance.random() < 0.2:
        words.append(chance.choice((b"KEEPREF", b"DELREF", b"ACKED")))
    return [words]


def _delete_key(work: Workload, sight: Sight) -> list[Words]:
    name = work.chance.choice((b"DEL", b"UNLINK"))
    return [[name, *{work.key(): None for _ in range(work.chance.choice((1, 1, 2)))}]]


def _flush(work: Workload, sight: Sight) -> list[Words]:
    return [[work.chance.choice((b"FLUSHALL", b"FLUSHDB"))]]


def _expire(work: Workload, sight: Sight) -> list[Words]:
    key = work.key()
    kind = work.chance.random()
    if kind < 0.25:
        return [[b"PERSIST", key]]
    if kind < 0.6:
        return [[b"PEXPIRE", key, b"%d" % work.chance.choice((1, 50, 500, 5000))]]
    if kind < 0.8:
        return [[b"PEXPIREAT", key, b"%d" % (sight.now_ms + work.chance.randrange(3000))]]
    return [[b"EXPIRE", key, work.chance.choice((b"1", b"100", b"-1"))]]


def _rename(work: Workload, sight: Sight) -> list[Words]:
    a, b = work.key(), work.key()
    kind = work.chance.random()
    if kind < 0.5:
        return [[b"RENAME", a, b]]
    if kind < 0.6:
        return [[b"RENAMENX", a, b]]
    return [[b"COPY", a, b, *([b"REPLACE"] if work.chance.random() < 0.7 else [])]]


def _set_id(work: Workload, sight: Sight) -> list[Words]:
    key = work.key()
    entries = sight.entries(key)
    top = entries[-1].id[0] if entries else sight.now_ms
    return [[b"XSETID", key, b"%d-0" % (top + work.chance.choice((-5, 0, 1, 20)))]]


def _make_group(work: Workload, sight: Sight) -> list[Words]:
    key = work.key()
    start = work.chance.choice((b"0", b"0", b"$", work.some_id(sight, key)))
    made = [b"MKSTREAM"] if work.chance.random() < 0.5 else []
    return [[b"XGROUP", b"CREATE", key, work.group(), start, *made]]


def _end_group(work: Workload, sight: Sight) -> list[Words]:
    return [[b"XGROUP", b"DESTROY", work.key(), work.group()]]


def _group_odds(work: Workload, sight: Sight) -> list[Words]:
    key, group = work.key(), work.group()
    kind = work.chance.random()
    if kind < 0.3:
        at = work.chance.choice((b"0", b"$", work.some_id(sight, key)))
        return [[b"XGROUP", b"SETID", key, group, at]]
    if kind < 0.5:
        return [[b"XGROUP", b"CREATECONSUMER", key, group, work.consumer()]]
    if kind < 0.8:
        return [[b"XGROUP", b"DELCONSUMER", key, group, work.consumer()]]
    return [[b"XGROUP", b"SETMODE", key, group, b"MAX-PENDING", work.number()]]


def _read_group(work: Workload, sight: Sight) -> list[Words]:
    key, group = work.key(), work.group()
    words = [b"XREADGROUP", b"GROUP", group, work.consumer()]
    kind = work.chance.random()
    if kind < 0.7:
        words += [b"COUNT", b"%d" % work.chance.choice((1, 2, 3, 10, 100))]
    if work.chance.random() < 0.06:
        words.append(b"NOACK")
    at = b">" if work.chance.random() < 0.9 else b"0"
    return [[*words, b"STREAMS", key, at]]


def _ack(work: Workload, sight: Sight) -> list[Words]:
    key = work.key()
    group = work.group()
    entries = sight.entries(key)
    if entries and work.chance.random() < 0.6:  # in order, as most clients do
        at = work.chance.randrange(len(entries))
        if work.chance.random() < 0.5:
            at = 0
        ids = [show_id(entry.id) for entry in entries[at : at + work.chance.randint(1, 6)]]
    else:
        ids = work.some_ids(sight, key)
    return [[b"XACK", key, group, *ids]]


def _claim(work: Workload, sight: Sight) -> list[Words]:
    key, group, consumer = work.key(), work.group(), work.consumer()
    kind = work.chance.random()
    if kind < 0.5:
        return [[b"XAUTOCLAIM", key, group, consumer, b"0", b"0", b"COUNT", b"5"]]
    words = [b"XCLAIM", key, group, consumer, b"0", *work.some_ids(sight, key)]
    if work.chance.random() < 0.3:
        words.append(b"JUSTID")
    if work.chance.random() < 0.1:
        words.append(b"FORCE")
    return [words]


def _nack(work: Workload, sight: Sight) -> list[Words]:
    key, group = work.key(), work.group()
    ids = work.some_ids(sight, key)
    kind = work.chance.choice((b"SILENT", b"FAIL", b"FATAL"))
    return [[b"XNACK", key, group, kind, b"IDS", b"%d" % len(ids), *ids]]


def _look(work: Workload, sight: Sight) -> list[Words]:
    key, group = work.key(), work.group()
    some = work.some_id(sight, key)
    return [
        work.chance.choice(
            (
                [b"XRANGE", key, b"-", b"+"],
                [b"XRANGE", key, some, b"+", b"COUNT", b"3"],
                [b"XREVRANGE", key, b"+", b"-"],
                [b"XREVRANGE", key, some, b"-", b"COUNT", b"2"],
                [b"XREAD", b"COUNT", b"3", b"STREAMS", key, some],
                [b"XREAD", b"STREAMS", key, b"0"],
                [b"XLEN", key],
                [b"XINFO", b"STREAM", key],
                [b"XINFO", b"STREAM", key, b"FULL"],
                [b"XINFO", b"GROUPS", key],
                [b"XPENDING", key, group],
                [b"XPENDING", key, group, b"-", b"+", b"10"],
                [b"EXISTS", key],
                [b"TYPE", key],
                [b"PTTL", key],
            )
        )
    ]


def _limits(work: Workload, sight: Sight) -> list[Words]:
    words = [b"XCFGSET", work.key()]
    if work.chance.random() < 0.6:
        words += [b"IDMP-DURATION", work.chance.choice((b"1", b"100"))]
    return [[*words, b"IDMP-MAXSIZE", work.chance.choice((b"1", b"4", b"100"))]]


def _wait(work: Workload, sight: Sight) -> list[Words]:
    block = [b"BLOCK", b"%d" % work.chance.choice((20, 200, 2000))]
    if work.chance.random() < 0.5:
        return [[b"XREAD", *block, b"STREAMS", work.key(), b"$"]]
    reader = [b"XREADGROUP", b"GROUP", work.group(), work.consumer()]
    return [[*reader, *block, b"STREAMS", work.key(), b">"]]


def _move_group(work: Workload, sight: Sight) -> list[Words]:
    to = b"%d" % work.chance.randint(1, work.regions) if work.chance.random() < 0.8 else b"*"
    force = [b"FORCE"] if work.chance.random() < 0.4 else []
    return [[b"AA", b"MOVE", work.key(), work.group(), to, *force]]


def _read_stable(work: Workload, sight: Sight) -> list[Words]:
    key = work.key()
    count = b"%d" % work.chance.choice((1, 3, 100))
    return [[b"XREAD", b"COUNT", count, b"STABLE", b"STREAMS", key, sight.read_upto(key)]]


def _restore(work: Workload, sight: Sight) -> list[Words]:
    payload = sight.dump(work.key())
    key = work.key()
    if payload is None:
        return [[b"EXISTS", key]]
    replace = [b"REPLACE"] if work.chance.random() < 0.7 else []
    ttl = work.chance.choice((b"0", b"0", b"700"))
    return [[b"RESTORE", key, ttl, payload, *replace]]


def _follow(work: Workload, sight: Sight) -> list[Words]:
    """Return who comes from another region, and wants to find here what was there."""
    timeout = work.chance.choice((b"50", b"1000"))
    return [[b"AA", b"WAIT", sight.token(work.chance), timeout]]


def _sync(work: Workload, sight: Sight) -> list[Words]:
    """Return who wants all that the other regions have."""
    return [[b"AA", b"SYNC", work.chance.choice((b"300", b"3000"))]]


def _run(work: Workload, sight: Sight) -> list[Words]:
    """Entries that come at once, of one stream, which may be added together."""
    key = work.key()
    trim = [b"MAXLEN", b"~", work.number()] if work.chance.random() < 0.5 else []
    count = work.chance.randint(2, 6)
    return [[b"XADD", key, *trim, b"*", b"f", work.number()] for _ in range(count)]


def _overwrite(work: Workload, sight: Sight) -> list[Words]:
    """A string in the place of a stream, which is no key of all regions, and goes at once."""
    key = work.key()
    return [[b"MULTI"], [b"SET", key, b"text"], [b"DEL", key], [b"EXEC"]]


_BASE: Final = {
    "add": 40.0,
    "produce": 6.0,
    "delete_entries": 8.0,
    "trim": 3.0,
    "delete_key": 2.5,
    "flush": 0.4,
    "expire": 2.0,
    "rename": 1.5,
    "set_id": 1.0,
    "make_group": 6.0,
    "end_group": 1.5,
    "group_odds": 2.0,
    "read_group": 18.0,
    "ack": 14.0,
    "claim": 3.0,
    "nack": 1.0,
    "look": 5.0,
    "limits": 0.6,
    "wait": 2.0,
    "transaction": 3.0,
}
LATER: Final = {
    "move_group": 4.0,
    "read_stable": 6.0,
    "restore": 1.0,
    "overwrite": 0.5,
    "follow": 2.0,
    "sync": 1.0,
    "run": 8.0,
}
_MAKERS: Final[dict[str, Maker]] = {
    "move_group": _move_group,
    "read_stable": _read_stable,
    "restore": _restore,
    "overwrite": _overwrite,
    "follow": _follow,
    "sync": _sync,
    "run": _run,
    "add": _add,
    "produce": _produce,
    "delete_entries": _delete_entries,
    "trim": _trim,
    "delete_key": _delete_key,
    "flush": _flush,
    "expire": _expire,
    "rename": _rename,
    "set_id": _set_id,
    "make_group": _make_group,
    "end_group": _end_group,
    "group_odds": _group_odds,
    "read_group": _read_group,
    "ack": _ack,
    "claim": _claim,
    "nack": _nack,
    "look": _look,
    "limits": _limits,
    "wait": _wait,
}
