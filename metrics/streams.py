"""The figures of streams, groups and consumers, in slices.

A slice is ``ROWS`` streams, groups or consumers, or ``KEYS`` keys that are looked at. Between two
of them anything may change, so the next one is found anew by its name.

Streams that the patterns of ``metrics-streams`` name with wildcards have to be looked for among all
keys. A scrape looks at ``SEARCHED`` keys at most, and the next one goes on behind them. What was
found is remembered until it is gone, so that in a large database a new stream appears some scrapes
later, and none disappears in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.compat.glob import matches
from headrace.metrics.page import SECTIONS, Family, Page
from headrace.server.commands.streams.groups import found_group, keys_of_streams
from headrace.server.commands.streams.shared import policies
from headrace.server.dispatch.call import Call
from headrace.server.gate import FOLLOWS
from headrace.storage.keyspace import Databases, Keyspace
from headrace.storage.stream.groups import UNKNOWN, Consumer, Group, lag
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.stream.stream import Stream

ROWS: Final = 20  # streams, groups and consumers in one slice
KEYS: Final = 500  # that are looked at in one slice
SEARCHED: Final = 50_000  # keys that one scrape looks at
LOOKED: Final = 64  # pending entries among which the oldest that was delivered is looked for

Place = tuple[int, bytes]  # of a stream: database and key


class Finder:
    """Knows which streams are reported.

    Attributes:
        found: those that fit the patterns, in the order in which they were found.
        left_out: there are more than may be reported.
    """

    def __init__(self, dbs: Databases) -> None:
        self.found: Final[dict[Place, None]] = {}
        self.left_out = False
        self._dbs: Final = dbs
        self._patterns: list[bytes] = []
        self._db = 0  # where the search goes on
        self._cursor = 0

    def search(self, patterns: list[bytes], most: int) -> Iterator[None]:
        """Look for streams, in slices; at most ``most`` are reported."""
        if patterns != self._patterns or len(self.found) > most:
            self._patterns = patterns
            self.found.clear()
            self._db = self._cursor = 0
        self.left_out = False
        wild = [each for each in patterns if any(char in each for char in b"*?[\\")]
        for name in patterns:
            if name not in wild:
                for db in self._dbs:
                    if stream_of(db, name) is not None:
                        self._take((db.index, name), most)
        if wild:
            yield from self._walk(wild, most)

    def _take(self, place: Place, most: int) -> None:
        if len(self.found) < most:
            self.found[place] = None
        elif place not in self.found:
            self.left_out = True

    def _walk(self, wild: list[bytes], most: int) -> Iterator[None]:
        """Look at keys until all have been seen, or there are enough streams, or of keys."""
        made = list(self._dbs)
        start = (self._db, self._cursor)
        looked = 0
        while looked < SEARCHED and not self.left_out:
            db = made[self._db]
            self._cursor, entries = db.scan(self._cursor, KEYS)
            looked += 1 + len(entries)
            for key in keys_of_streams(entries):
                if any(matches(pattern, key) for pattern in wild):
                    self._take((db.index, key), most)
            if not self._cursor:
                self._db = (self._db + 1) % len(made)
            if entries:
                yield
            if (self._db, self._cursor) == start:
                break


def stream_of(db: Keyspace, key: bytes) -> Stream | None:
    """Return a stream, if the key is one."""
    return found_group(db, key, b"")[0]


def text(name: bytes) -> str:
    """Return a name for a label; bytes that are no UTF-8 are written as ``\\xff``."""
    return name.decode("utf-8", "backslashreplace")


class StreamReporter:
    """Puts the streams of one server on a page."""

    def __init__(self, call: Call, finder: Finder, page: Page, consumers: bool) -> None:
        self._call: Final = call
        self._finder: Final = finder
        self._page: Final = page
        self._consumers: Final = consumers
        self._left = ROWS

    def report(self) -> Iterator[None]:
        """Put all of them there, in slices."""
        for place in list(self._finder.found):
            index, key = place
            db = self._call.db = self._call.server.data.dbs[index]
            stream = stream_of(db, key)
            if stream is None:
                self._finder.found.pop(place, None)
                continue
            labels = self._page.labels(db=f"db{index}", stream=text(key))
            _put(self._page, _STREAM, labels, figures_of_stream(stream))
            yield from self._rest()
            for name in list(stream.groups):
                yield from self._group(db, key, name)

    def _rest(self) -> Iterator[None]:
        """Let others go on where a slice is full."""
        self._left -= 1
        if self._left <= 0:
            yield
            self._left = ROWS

    def _group(self, db: Keyspace, key: bytes, name: bytes) -> Iterator[None]:
        stream, group = found_group(db, key, name)
        if stream is None or group is None:
            return
        call = self._call
        server = call.server
        if server.policies is not None and not server.gate.reasons & FOLLOWS:
            policies().attend(call, key, stream, group)
        names = {"db": f"db{db.index}", "stream": text(key), "group": text(name)}
        labels = self._page.labels(**names)
        _put(self._page, _GROUP, labels, figures_of_group(stream, group, call.now_ms))
        yield from self._rest()
        for each in list(group.consumers) if self._consumers else []:
            group = found_group(db, key, name)[1]
            consumer = None if group is None else group.consumers.get(each)
            if consumer is not None:
                labels = self._page.labels(**names, consumer=text(each))
                _put(self._page, _CONSUMER, labels, figures_of_consumer(consumer, call.now_ms))
                yield from self._rest()


def _put(page: Page, families: list[Family], labels: str, figures: dict[str, float]) -> None:
    for family in families:
        figure = figures.get(family.source)
        if figure is not None:
            page.add(family.name, labels, figure)


_STREAM: Final = SECTIONS["stream"]
_GROUP: Final = SECTIONS["group"]
_CONSUMER: Final = SECTIONS["consumer"]


def figures_of_stream(stream: Stream) -> dict[str, float]:
    """Return the figures of XINFO STREAM, and the memory, by the sources of the table."""
    nodes = stream.node_count()
    idmp = stream.idmp
    return {
        "length": stream.length,
        "groups": len(stream.groups),
        "nodes": nodes,
        "tree_nodes": nodes + 1,
        "first_ms": stream.first_id()[0],
        "last_ms": stream.last_entry_id()[0],
        "generated_ms": stream.last_ms,
        "deleted_ms": stream.max_deleted_ms,
        "entries_added": stream.entries_added,
        "idmp_duration": stream.idmp_duration_s,
        "idmp_maxsize": stream.idmp_maxsize,
        "pids": 0 if idmp is None else len(idmp.producers),
        "iids": 0 if idmp is None else int(idmp.count),
        "iids_added": stream.iids_added,
        "duplicates": stream.iids_duplicates,
        "bytes": stream.used_bytes(0),
    }


def figures_of_group(stream: Stream, group: Group, now_ms: int) -> dict[str, float]:
    """Return the figures of XINFO GROUPS, and ages in seconds, by the sources of the table."""
    unread = lag(stream, group)
    rules = group.rules
    undelivered = 0 if rules is None else rules.undelivered
    found: dict[str, float] = {
        "consumers": len(group.consumers),
        "pending": group.pel.size - undelivered,
        "nacked": group.zone,
        "delivered_ms": group.last_ms,
        "entries_read": 0 if group.entries_read == UNKNOWN else group.entries_read,
        "lag": unread + undelivered,
        "lag_s": _age_s(_first_unread_ms(stream, group) if unread else 0, now_ms),
        "oldest_s": _age_s(_oldest_ms(group), now_ms),
        "idle_s": _age_s(_delivered_first_ms(group, now_ms), now_ms),
        "deliveries": group.deliveries,
        "redeliveries": group.redeliveries,
        "ready": unread + group.zone,
    }
    if rules is not None:
        of_policies = policies().figures(stream, group, now_ms)
        found.update(zip(_OF_POLICIES, of_policies, strict=True))
        found["next_due_s"] = found["next_due_ms"] / 1000
    return found


# In the order of ``PolicySteps.figures``.
_OF_POLICIES: Final = (
    *("ready", "held", "delayed", "backing_off", "dead_pending"),
    *("dead_lettered", "expired", "next_due_ms", "window_full"),
)


def figures_of_consumer(consumer: Consumer, now_ms: int) -> dict[str, float]:
    """Return the figures of XINFO CONSUMERS, by the sources of the table."""
    return {"pending": consumer.pel.size, "idle_s": _age_s(consumer.seen_ms, now_ms)}


def _age_s(since_ms: int, now_ms: int) -> float:
    return max(0, now_ms - since_ms) / 1000 if since_ms else 0


def _first_unread_ms(stream: Stream, group: Group) -> int:
    """Return the milliseconds of the first entry that a group was not given; 0 without one."""
    if group.places is not None:
        parts = group.places.parts(stream, 1)
    else:
        start = following(group.last_ms, group.last_seq)
        parts = stream.parts(start, (ID_MAX, ID_MAX), 1, False)
    return parts[0].run.ms[parts[0].low] if parts else 0


def _oldest_ms(group: Group) -> int:
    """Return the milliseconds of the first pending entry that was delivered; 0 without one."""
    return next((nack.ms for nack in group.pel.from_id(0, 0, LOOKED) if nack.count), 0)


def _delivered_first_ms(group: Group, now_ms: int) -> int:
    """Return when the entry was delivered that a consumer has had for the longest time, or 0."""
    some = group.by_time.from_time(0, now_ms, LOOKED)
    return next((int(nack.delivery_ms) for nack in some if nack.consumer is not None), 0)
