"""Reads one stream and its groups, in requests that are bounded.

Entries come in chunks that grow while they are small, so that one page of them neither takes
thousands of requests nor a gigabyte. No request asks for a whole stream or a whole list of
pending entries.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.console.link import Error, Link
from headrace.console.text import Fields

PAGE: Final = 50  # entries
PAGE_BYTES: Final = 2_000_000  # after which a page is cut short
LOOK: Final = 5_000  # entries that a filter looks at for one page
LOOK_BYTES: Final = 16_000_000
CHUNK: Final = 500
PENDING_CHUNK: Final = 1_000
PENDING_SHOWN: Final = 100
LETTER: Final = b"__dlq.errors."
_FATE: Final = {
    LETTER + name
    for name in (b"topic", b"offset", b"group", b"delivery.count", b"message", b"consumer")
}


@dataclass(slots=True)
class Entry:
    """One entry: its ID, its fields in order, of which a name may come twice, and their bytes."""

    id: str
    fields: Fields
    size: int

    def letter(self, name: str) -> bytes:
        """Return what a dead letter says under a name, such as ``message``; empty if nothing."""
        wanted = LETTER + name.encode()
        return next((value for field_name, value in self.fields if field_name == wanted), b"")

    def hidden(self) -> Entry:
        """Return the same entry with no value but what a dead letter says of its fate."""
        fields = [
            (name, value if name in _FATE else f"({len(value):,} bytes, hidden)".encode())
            for name, value in self.fields
        ]
        return Entry(self.id, fields, self.size)


@dataclass(slots=True)
class Filter:
    """Chooses the entries that have a field of this name, with this in its value."""

    name: bytes = b""
    value: bytes = b""

    def __bool__(self) -> bool:
        return bool(self.name or self.value)

    def fits(self, entry: Entry) -> bool:
        """Return whether an entry is shown."""
        return not self or any(
            (not self.name or name == self.name) and self.value in value
            for name, value in entry.fields
        )


@dataclass(slots=True)
class Page:
    """Entries, newest first, and how the search for them ended.

    Attributes:
        looked: how many entries were looked at.
        last: the ID of the last of them; empty if there was none.
        ended: whether the stream has no more in this direction.
    """

    entries: list[Entry] = field(default_factory=list)
    looked: int = 0
    last: str = ""
    ended: bool = False


def entries_of(reply: Any) -> list[Entry]:
    """Return the entries of a reply to XRANGE. Raises the error that it is."""
    if isinstance(reply, Error):
        raise reply
    return [
        Entry(entry_id.decode(), list(zip(flat[::2], flat[1::2], strict=True)), sum(map(len, flat)))
        for entry_id, flat in reply
        if flat is not None
    ]


async def walk(
    link: Link, key: bytes, start: str, end: str, most: int
) -> AsyncIterator[list[Entry]]:
    """Yield entries from ``start`` to ``end`` in chunks that grow; the last one may be empty.

    It goes backwards where ``start`` is ``+`` or ``end`` is ``-``. A chunk has ``most`` at most.
    """
    command = "XREVRANGE" if end == "-" else "XRANGE"
    count = min(2, most)
    while True:
        chunk = entries_of(await link.one(command, key, start, end, "COUNT", count))
        yield chunk
        if len(chunk) < count:
            return
        start = f"({chunk[-1].id}"
        count = min(2 * count, most)


async def read_page(link: Link, key: bytes, start: str, newer: bool, wanted: Filter) -> Page:
    """Return a page of entries from ``start`` on; with ``(`` before it, from the next one.

    Args:
        newer: towards the newest entry; else towards the oldest.

    Raises Unreachable, and the error reply where the stream cannot be read.
    """
    page = Page(ended=True)
    found_bytes = looked_bytes = 0
    async for chunk in walk(link, key, start, "+" if newer else "-", CHUNK if wanted else PAGE):
        for entry in chunk:
            is_full = len(page.entries) == PAGE or found_bytes > PAGE_BYTES
            if is_full or page.looked == LOOK or looked_bytes > LOOK_BYTES:
                page.ended = False
                break
            page.looked += 1
            page.last = entry.id
            looked_bytes += entry.size
            if wanted.fits(entry):
                page.entries.append(entry)
                found_bytes += entry.size
        if not page.ended:
            break
    if newer:
        page.entries.reverse()
    return page


async def count_before(link: Link, key: bytes, cut: str) -> tuple[int, bool]:
    """Return how many entries lie before an ID, and whether there are more than were counted.

    Raises as ``read_page`` does.
    """
    count = taken = 0
    async for chunk in walk(link, key, "-", f"({cut}", CHUNK):
        count += len(chunk)
        taken += sum(entry.size for entry in chunk)
        if count >= LOOK or taken > LOOK_BYTES:
            return count, True
    return count, False


async def read_entry(link: Link, key: bytes, entry_id: str) -> Entry | None:
    """Return one entry, or None where it is not there. Raises as ``read_page`` does."""
    found = entries_of(await link.one("XRANGE", key, entry_id, entry_id, "COUNT", 1))
    return found[0] if found else None


@dataclass(slots=True)
class Pending:
    """One pending entry. What nobody holds, because it was given back, has no consumer."""

    id: str
    consumer: bytes
    idle_ms: int
    deliveries: int


@dataclass(slots=True)
class PendingList:
    """Pending entries of a group, those first that are stuck for the longest time.

    Attributes:
        looked: how many were looked at, from the oldest ID on.
        more: whether there are others.
        ages: how many have been idle for how long: pairs of a text and a count.
        deliveries: likewise, how often they were delivered.
    """

    rows: list[Pending]
    looked: int
    more: bool
    ages: list[tuple[str, int]]
    deliveries: list[tuple[str, int]]


_AGES: Final = (("under 1 min", 60_000), ("1 to 10 min", 600_000), ("10 min to 1 h", 3_600_000))
_DELIVERIES: Final = (("once", 2), ("2 to 4 times", 5), ("5 to 9 times", 10))


def pending_rows(reply: Any) -> list[Pending]:
    """Return the rows of a reply to XPENDING with a range. Raises the error that it is."""
    if isinstance(reply, Error):
        raise reply
    return [Pending(row[0].decode(), row[1], row[2], row[3]) for row in reply]


async def read_pending(
    link: Link, key: bytes, group: bytes, look: int, consumer: bytes | None = None
) -> PendingList:
    """Return what of the ``look`` oldest pending entries is stuck. Raises as ``read_page`` does.

    Args:
        consumer: whose entries alone; None for those of all.
    """
    found: list[Pending] = []
    start, more = "-", True
    while more and len(found) < look:
        words = ("XPENDING", key, group, start, "+", PENDING_CHUNK)
        rows = pending_rows(await link.one(*words, *([] if consumer is None else [consumer])))
        found += rows
        more = len(rows) == PENDING_CHUNK
        start = f"({rows[-1].id}" if rows else start
    found.sort(key=lambda row: (-row.idle_ms, -row.deliveries))
    return PendingList(
        found[:PENDING_SHOWN],
        len(found),
        more,
        _counted([row.idle_ms for row in found], _AGES, "over 1 h"),
        _counted([row.deliveries for row in found], _DELIVERIES, "10 times or more"),
    )


def _counted(
    numbers: list[int], steps: tuple[tuple[str, int], ...], last: str
) -> list[tuple[str, int]]:
    counts = [0] * (len(steps) + 1)
    for number in numbers:
        counts[sum(number >= limit for _, limit in steps)] += 1
    return list(zip([*(name for name, _ in steps), last], counts, strict=True))


async def read_letters(link: Link, key: bytes, start: str, newer: bool, group: bytes) -> Page:
    """Return a page of dead letters; those of one group, or of all. Raises as ``read_page``."""
    wanted = Filter(LETTER + b"group", group) if group else Filter(LETTER + b"offset")
    page = await read_page(link, key, start, newer, wanted)
    if group:  # the filter takes longer names, too
        page.entries = [each for each in page.entries if each.letter("group") == group]
    return page
