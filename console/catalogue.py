"""All streams of the server, as they were a moment ago: the list that pages sort and filter.

One task keeps it while somebody looks, and rests when nobody does. It finds streams by SCAN, and
looks at them in slices of ``SLICE``: first at those that are on a page, then at the one it has not
looked at for the longest time. After a slice it pauses so long that it takes ``SHARE`` of a core at
the most. Until it has seen all streams once that is ``FIRST_SHARE``, and ``FIRST_SCAN`` until it
knows their names. What a slice costs the server is taken to be what it took when it took least, of
the last ``COSTS`` of its kind, because it may have had to wait for others.

XINFO STREAM brings the first and the last entry whole. Where entries are large it is left out, or
asked the more seldom the longer its replies are.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from headrace.console.link import Error, Link, Unreachable, pairs
from headrace.console.streams import Pending, pending_rows

SLICE: Final = 20
SHARE: Final = 0.025  # of which a server itself takes the smaller part
FIRST_SHARE: Final = 0.25
FIRST_SCAN: Final = 0.5
SCAN_COUNT: Final = 1_000
SCAN_EVERY_S: Final = 3.0  # 15 seconds where there are many streams
MANY: Final = 5_000
COSTS: Final = 8
PAUSE_S: Final = 10.0  # at the most
FRESH_S: Final = 2.0  # how old a row on a page may become
WATCHED_S: Final = 6.0  # how long a page counts as looked at
REST_AFTER_S: Final = 30.0  # without a visitor
LARGE_BYTES: Final = 1_000_000  # entries that are larger, on average, are not asked for
REPLY_BYTES_S: Final = 200_000  # of replies to XINFO STREAM in a second, for one stream
RATE_OVER_S: Final = 1.0
HISTORY: Final = 150
STUCK_MS: Final = 60_000  # from then on a pending entry counts as stuck
GROUPS: Final = 50  # that are kept of one stream


@dataclass(slots=True)
class Group:
    """A consumer group. ``lag`` and ``read`` are None where the server does not know them.

    Attributes:
        oldest: the pending entry with the lowest ID; None where none is pending.
        read: how many entries it has read, since the stream was created.
    """

    name: bytes
    consumers: int
    pending: int
    lag: int | None
    read: int | None
    last_id: str
    oldest: Pending | None = None


@dataclass(slots=True)
class Row:
    """Keeps what is known of a stream. Times are of ``time.monotonic``, in seconds.

    Attributes:
        seen_s: when it was looked at; 0 if not yet.
        bytes: memory that it takes; None if the server does not say.
        first: the ID of the first entry; empty where there is none, or it was not asked for.
        added: how many entries were ever added; None if not known.
        into, out: entries that are added, and that groups read, in a second; None if not known.
        error: why it cannot be looked at.
    """

    key: bytes
    seen_s: float = 0.0
    length: int = 0
    bytes: int | None = None
    first: str = ""
    last: str = ""
    added: int | None = None
    groups: tuple[Group, ...] = ()
    group_count: int = 0
    into: float | None = None
    out: float | None = None
    rest_until_s: float = 0.0
    error: str = ""
    rated: tuple[float, int | None, int | None] | None = None

    @property
    def lag(self) -> int:
        """Return how far the group that is furthest behind is behind."""
        return max((group.lag or 0 for group in self.groups), default=0)

    @property
    def pending(self) -> int:
        """Return how many entries are pending in all its groups."""
        return sum(group.pending for group in self.groups)

    @property
    def stuck_ms(self) -> int:
        """Return how long the oldest pending entry of a group is idle, from ``STUCK_MS`` on."""
        idle_ms = max((group.oldest.idle_ms for group in self.groups if group.oldest), default=0)
        return idle_ms if idle_ms >= STUCK_MS else 0


SORTS: Final[dict[str, Callable[[Row], Any]]] = {
    "name": lambda row: row.key,
    "length": lambda row: row.length,
    "in": lambda row: row.into or 0.0,
    "out": lambda row: row.out or 0.0,
    "bytes": lambda row: row.bytes or 0,
    "oldest": lambda row: int(row.first.partition("-")[0] or 0),
    "newest": lambda row: int(row.last.partition("-")[0] or 0),
    "lag": lambda row: row.lag,
    "pending": lambda row: row.pending,
    "stuck": lambda row: row.stuck_ms,
}


class Catalogue:
    """The streams of one server.

    Attributes:
        rows: by key.
        trouble: why the server cannot be asked now; empty if it can.
        refusal: why it lists no keys; empty if it does.
        scanned: how many rounds of SCAN were completed.
        keys_total: how many keys the database had.
    """

    def __init__(self, link: Link) -> None:
        self._link: Final = link
        self.rows: Final[dict[bytes, Row]] = {}
        self.trouble = self.refusal = ""
        self.scanned = 0
        self.keys_total = 0
        self._keys_passed = 0
        self._cursor = b"0"
        self._found: set[bytes] = set()
        self._scan_at_s = 0.0
        self._costs: Final = {
            "scan": deque[float](maxlen=COSTS),
            "look": deque[float](maxlen=COSTS),
        }
        self._scans_now = False
        self._queue: Final[deque[bytes]] = deque()  # not looked at for the longest time first
        self._unseen = 0
        self._names: Final[dict[bytes, bytes]] = {}  # of groups and consumers, each kept once
        self._watched: Final[dict[bytes, float]] = {}
        self._histories: Final[dict[bytes, deque[tuple[float, float | None, float | None]]]] = {}
        self._asked_s = 0.0
        self._known: Final = asyncio.Event()  # all names, or that the server does not answer
        self._visit: Final = asyncio.Event()
        self._one_at_a_time: Final = asyncio.Lock()
        self._order: dict[tuple[str, bool, bytes, str], tuple[float, list[Row]]] = {}

    # For pages

    def visited(self) -> None:
        """Go on: somebody looks."""
        self._asked_s = time.monotonic()
        self._visit.set()

    @property
    def progress(self) -> float:
        """Return how much of the keys was passed in the first SCAN: 0 to 1."""
        return 1.0 if self.scanned else min(self._keys_passed / max(self.keys_total, 1), 1.0)

    @property
    def unseen(self) -> int:
        """Return how many streams are known by name alone."""
        return self._unseen

    async def first_look(self, patience_s: float) -> None:
        """Wait until the names of all streams are known, or for ``patience_s`` seconds."""
        if not self.scanned and not self.trouble:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._known.wait(), patience_s)

    def ordered(self, sort: str, descending: bool, part: bytes, only: str) -> list[Row]:
        """Return the rows whose key has ``part`` in it, in order, as of some seconds ago.

        Args:
            sort: a name of ``SORTS``.
            only: of ``SORTS``, too: those where this is not 0; empty for all.
        """
        now_s = time.monotonic()
        wanted = (sort, descending, part, only)
        made_s, rows = self._order.get(wanted, (0.0, []))
        if now_s - made_s > (FRESH_S if len(self.rows) <= MANY else 4 * FRESH_S):
            lower = part.lower()
            rows = [row for row in self.rows.values() if lower in row.key.lower()]
            if only:
                rows = [row for row in rows if SORTS[only](row)]
            rows.sort(key=SORTS["name"])
            if sort != "name" or descending:
                rows.sort(key=SORTS[sort], reverse=descending)
            if len(self._order) >= (8 if len(self.rows) <= MANY else 2):
                self._order.clear()
            self._order[wanted] = (now_s, rows)
        return rows

    async def fresh(self, keys: Iterable[bytes]) -> None:
        """Watch streams, and look at once at those that were never looked at.

        Raises Unreachable.
        """
        now_s = time.monotonic()
        new: list[bytes] = []
        for key in keys:
            self._watched[key] = now_s
            if not self.rows.get(key, Row(key)).seen_s:
                new.append(key)
        for at in range(0, len(new), SLICE):
            await self._look(new[at : at + SLICE])

    async def row(self, key: bytes) -> Row:
        """Return what a stream is like, not older than ``FRESH_S``. Raises Unreachable."""
        self._watched[key] = time.monotonic()
        self._histories.setdefault(key, deque(maxlen=HISTORY))
        while len(self._histories) > 50:
            del self._histories[next(iter(self._histories))]
        known = self.rows.get(key)
        if known is None or known.error or time.monotonic() - known.seen_s > FRESH_S:
            return (await self._look([key]))[0]
        return known

    async def again(self, key: bytes) -> None:
        """Look at a stream again, because somebody has changed it here. Raises Unreachable."""
        await self._look([key])
        self._order.clear()

    def history(self, key: bytes) -> list[tuple[float, float | None, float | None]]:
        """Return (seconds since 1970, entries in, entries out) of the last minutes, in seconds."""
        return list(self._histories.get(key, ()))

    # The task

    async def keep(self) -> None:
        """Keep the list until cancelled."""
        self.visited()
        while True:
            if time.monotonic() - self._asked_s > REST_AFTER_S:
                self._visit.clear()
                await self._visit.wait()
            try:
                pause_s = await self._step()
                self.trouble = ""
            except Unreachable as why:
                self.trouble = str(why)
                self._known.set()
                await asyncio.sleep(1.0)
                continue
            await asyncio.sleep(pause_s)

    async def _step(self) -> float:
        """Do one slice of work; return for how long to pause then."""
        now_s = time.monotonic()
        self._scans_now = not self._scans_now  # in turns, because there may be many other keys
        if self._scans_now and (self._cursor != b"0" or now_s >= self._scan_at_s):
            await self._scan()
            return self._pause("scan", now_s, 1, SHARE if self.scanned else FIRST_SCAN)
        keys = self._due(now_s)
        if not keys:
            return 0.1 if self.scanned else 0.001
        await self._look(keys)
        return self._pause("look", now_s, len(keys), FIRST_SHARE if self._unseen else SHARE)

    def _pause(self, kind: str, begun_s: float, count: int, share: float) -> float:
        costs = self._costs[kind]
        costs.append((time.monotonic() - begun_s) / count)
        return min(min(costs) * count * (1 / share - 1), PAUSE_S)

    def _due(self, now_s: float) -> list[bytes]:
        for key in [key for key, at_s in self._watched.items() if now_s - at_s > WATCHED_S]:
            del self._watched[key]
        keys = [
            key
            for key in self._watched
            if key in self.rows and now_s - self.rows[key].seen_s >= FRESH_S
        ]
        keys.sort(key=lambda key: self.rows[key].seen_s)
        del keys[SLICE:]
        for _ in range(len(self._queue)):
            if len(keys) >= SLICE or not self.scanned:  # names first
                break
            key = self._queue.popleft()
            row = self.rows.get(key)
            if row is None:
                continue
            self._queue.append(key)
            if now_s - row.seen_s < FRESH_S:
                break  # all that follow are younger
            keys.append(key)
        return list(dict.fromkeys(keys))

    async def _scan(self) -> None:
        if self._cursor == b"0":
            self._found = set()
            self._keys_passed = 0
            reply = await self._link.one("DBSIZE")
            self.keys_total = reply if isinstance(reply, int) else 0
        words = ("SCAN", self._cursor, "COUNT", SCAN_COUNT, "TYPE", "stream")
        reply = await self._link.one(*words)
        self.refusal = str(reply) if isinstance(reply, Error) else ""
        self._cursor, keys = (b"0", []) if self.refusal else reply
        self._keys_passed += SCAN_COUNT
        for key in keys:
            self._found.add(key)
            if key not in self.rows:
                self.rows[key] = Row(key)
                self._queue.appendleft(key)
                self._unseen += 1
        if self._cursor == b"0":
            for key in self.rows.keys() - self._found:
                self._forget(key)
            self._found = set()
            self.scanned += 1
            self._names.clear()
            self._known.set()
            every_s = SCAN_EVERY_S * (5 if len(self.rows) > MANY else 1)
            self._scan_at_s = time.monotonic() + every_s
            self._order.clear()

    def _forget(self, key: bytes) -> None:
        row = self.rows.pop(key, None)
        self._watched.pop(key, None)
        if row is not None and not row.seen_s:
            self._unseen -= 1

    async def _look(self, keys: list[bytes]) -> list[Row]:
        """Look at streams, in two pipelines: at all of them, then at entries where they are small.

        Raises Unreachable.
        """
        async with self._one_at_a_time:
            asked: list[tuple[bytes | str | int, ...]] = []
            for key in keys:
                asked += [("XLEN", key), ("MEMORY", "USAGE", key), ("XINFO", "GROUPS", key)]
            first = await self._link.ask(*asked)
            now_s = time.monotonic()
            rows: list[Row] = []
            then: list[tuple[Row, Group | None]] = []
            for at, key in enumerate(keys):
                row = self.rows.get(key) or Row(key)
                rows.append(row)
                self._take(row, *first[3 * at : 3 * at + 3])
                if row.error:
                    continue
                if row.length and (row.bytes or 0) / row.length > LARGE_BYTES:
                    row.first = row.last = ""
                elif now_s >= row.rest_until_s:
                    then.append((row, None))
                then += [(row, group) for group in row.groups if group.pending]
            second = await self._link.ask(*(_more(row, group) for row, group in then))
            for (row, group), reply in zip(then, second, strict=True):
                if group is None:
                    _take_stream(row, reply, now_s)
                elif not isinstance(reply, Error):
                    group.oldest = next(iter(pending_rows(reply)), None)
                    if group.oldest is not None:
                        consumer = group.oldest.consumer
                        group.oldest.consumer = self._names.setdefault(consumer, consumer)
            for row in rows:
                _share(row)
                self._rate(row, now_s)
                if row.key in self.rows and not row.seen_s:
                    self._unseen -= 1
                row.seen_s = now_s
            return rows

    def _take(self, row: Row, length: Any, size: Any, groups: Any) -> None:
        row.error = str(length) if isinstance(length, Error) else ""
        if isinstance(groups, Error) and "no such key" in str(groups):
            row.error = "There is no such stream."
        row.length = length if isinstance(length, int) else 0
        row.bytes = size if isinstance(size, int) else None
        found = [pairs(each) for each in groups] if isinstance(groups, list) else []
        row.group_count = len(found)
        row.groups = tuple(
            Group(
                self._names.setdefault(each[b"name"], each[b"name"]),
                each[b"consumers"],
                each[b"pending"],
                each.get(b"lag"),
                each.get(b"entries-read"),
                each[b"last-delivered-id"].decode(),
            )
            for each in found[:GROUPS]
        )

    def _rate(self, row: Row, now_s: float) -> None:
        reads = [group.read for group in row.groups]
        read = None if None in reads else sum(each or 0 for each in reads)
        if row.rated is None:
            row.rated = (now_s, row.added, read)
            return
        since_s, added, read_before = row.rated
        if now_s - since_s < RATE_OVER_S:
            return
        row.into = _per_second(added, row.added, now_s - since_s)
        row.out = _per_second(read_before, read, now_s - since_s)
        row.rated = (now_s, row.added, read)
        if row.key in self._histories:
            self._histories[row.key].append((time.time(), row.into, row.out))


def _more(row: Row, group: Group | None) -> tuple[bytes | str | int, ...]:
    if group is None:
        return ("XINFO", "STREAM", row.key)
    return ("XPENDING", row.key, group.name, "-", "+", 1)


def _take_stream(row: Row, reply: Any, now_s: float) -> None:
    said = pairs(reply)
    if not said:
        return
    ends = [said.get(b"first-entry"), said.get(b"last-entry")]
    row.first, row.last = [each[0].decode() if each else "" for each in ends]
    row.added = said.get(b"entries-added")
    taken = sum(len(part) for each in ends if each for part in each[1])
    row.rest_until_s = now_s + taken / REPLY_BYTES_S if taken > REPLY_BYTES_S else 0.0


def _share(row: Row) -> None:
    """Keep each ID once, since there may be 100,000 rows."""
    for group in row.groups:
        if group.last_id == row.last:
            group.last_id = row.last
        if group.oldest is not None and group.oldest.id == row.first:
            group.oldest.id = row.first


def _per_second(before: int | None, after: int | None, seconds: float) -> float | None:
    if before is None or after is None or after < before:
        return None
    return (after - before) / seconds
