"""What a source asks a server about its streams."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final, cast

from pyspark_headrace.client import Client, Word, Words
from pyspark_headrace.errors import HeadraceError, NotAStreamError, ServerError
from pyspark_headrace.ids import GREATEST, LEAST, StreamID, after, format_id, parse_id, upto
from pyspark_headrace.offsets import Cut, Mark, Position, Sight
from pyspark_headrace.paging import Pages
from pyspark_headrace.resp import Link
from pyspark_headrace.slots import slot_of

log = logging.getLogger("pyspark_headrace")

SETTLE_S: Final = 5.0  # how long to wait until all that is there can be read
SETTLE_EVERY_S: Final = 0.1
SCAN_COUNT: Final = 1000
PAGE: Final = 2000


@dataclass(frozen=True)
class Figures:
    """What XINFO STREAM tells of a stream; of one that is not there, that it is empty.

    Attributes:
        length: entries that are there.
        added: entries ever added; -1 from servers that do not count (Redis before 7).
        last: the last ID generated.
        first: of the first entry; 0-0 when there is none.
        max_deleted: the greatest ID that was deleted by name; trimming does not count.
        oldest, newest: the first and the last entry; None when there is none.
        entry_bytes: of the oldest and the newest entry, on average; 0 when there is none.
        stable: where several regions write, the ID up to which nothing can come any more, 0-0 while
            that is not known; else None.
    """

    exists: bool = False
    length: int = 0
    added: int = 0
    last: StreamID = LEAST
    first: StreamID = LEAST
    max_deleted: StreamID = LEAST
    oldest: Mark | None = None
    newest: Mark | None = None
    entry_bytes: int = 0
    stable: StreamID | None = None

    @property
    def settled(self) -> bool:
        """Return whether no entry can come but behind all that are there."""
        return self.stable is None or self.stable >= self.last

    @property
    def top(self) -> StreamID:
        """The last ID that may be read: what comes later is above it."""
        return self.last if self.stable is None else min(self.last, self.stable)

    @property
    def top_rank(self) -> int:
        """Return how many entries there were up to that; -1 when it is not known."""
        return self.added if self.settled else -1

    @property
    def removed(self) -> int:
        """Entries that were trimmed or deleted, ever; -1 when it is not known."""
        return -1 if self.added < 0 else self.added - self.length

    def begins_behind(self, stream_id: StreamID) -> bool:
        """Return whether no entry is left up to an ID."""
        return not self.length or self.first > stream_id

    def sight(self) -> Sight | None:
        """Return what to remember of it; None where nothing is, or the server does not count.

        Nor is there anything while more may come in between, which is what tells another stream.
        """
        if not self.exists or self.added < 0 or not self.settled:
            return None
        return Sight(
            self.added, self.removed, self.last, self.max_deleted, self.oldest, self.newest
        )


@dataclass(frozen=True)
class Look:
    """A stream, compared with what is remembered of it.

    Attributes:
        there: of the entries from the remembered newest one up to the remembered last ID, the first
            two; empty when nothing was remembered.
        upto, behind: entries up to a position, and behind it; -1 when they were not counted.
    """

    figures: Figures
    there: tuple[Mark, ...] = ()
    upto: int = -1
    behind: int = -1


def pairs_of(reply: object) -> dict[str, object]:
    """A reply of names and values in turn."""
    flat = cast("list[object]", reply)
    names = [cast("bytes", name).decode("utf-8", "replace") for name in flat[0::2]]
    return dict(zip(names, flat[1::2], strict=True))


def figures_of(reply: object, key: str) -> Figures:
    """One reply of XINFO STREAM.

    Raises:
        NotAStreamError: the key holds something else.
        ServerError: the server refuses for another reason.
    """
    if isinstance(reply, ServerError):
        if reply.code == "WRONGTYPE":
            raise NotAStreamError(f"{key} is not a stream") from None
        if "no such key" in str(reply):
            return Figures()
        raise reply
    values = pairs_of(reply)
    ends = (values.get("first-entry"), values.get("last-entry"))
    oldest, newest = map(_mark_or_none, ends)
    return Figures(
        exists=True,
        length=cast("int", values["length"]),
        added=cast("int", values.get("entries-added", -1)),
        last=parse_id(cast("bytes", values["last-generated-id"])),
        first=LEAST if oldest is None else oldest.id,
        max_deleted=parse_id(cast("bytes", values.get("max-deleted-entry-id", b"0-0"))),
        oldest=oldest,
        newest=newest,
        entry_bytes=sum(map(_bytes_of, ends)) // 2,
        stable=_id_or_none(values.get("stable-id")),
    )


def _id_or_none(text: object) -> StreamID | None:
    return None if text is None else parse_id(cast("bytes", text))


def _mark_or_none(entry: object) -> Mark | None:
    return None if entry is None else mark_of(entry)


def _bytes_of(entry: object) -> int:
    if entry is None:
        return 0
    _, words = cast("tuple[bytes, list[bytes]]", entry)
    return sum(map(len, words))


def mark_of(entry: object) -> Mark:
    """By what an entry of a reply is known again."""
    entry_id, words = cast("tuple[bytes, list[bytes]]", entry)
    digest = blake2b(digest_size=8)
    for word in words:
        digest.update(b"%d:%b" % (len(word), word))
    return Mark(parse_id(entry_id), digest.hexdigest())


def newest_of(key: str, seen: Sight) -> Words:
    """The question for the newest entry that was seen.

    From there up to the last ID that was seen there can be no other entry in the same stream.
    """
    low = "-" if seen.end is None else format_id(seen.end.id)
    return ("XRANGE", key, low, format_id(seen.last), "COUNT", 2)


def marks_of(reply: object) -> tuple[Mark, ...]:
    """The entries of a small range."""
    return tuple(mark_of(entry) for entry in cast("list[object]", good(reply)))


@dataclass(frozen=True)
class Measure:
    """A range that was counted and cut.

    Attributes:
        rows: entries in it.
        cuts: the pieces but for the last one, which is what is left.
        rank: of its end: entries ever added up to there; -1 when it is not known.
        figures: what the stream looked like at that very moment.
    """

    rows: int
    cuts: tuple[Cut, ...]
    rank: int
    figures: Figures


class Server:
    """The questions; each is a round trip for all streams together."""

    def __init__(self, link: Link) -> None:
        self.link: Final = link
        self._offers_ranks: bool | None = None

    def offers_ranks(self) -> bool:
        """Return whether there are XCOUNT and XSPLIT, which make planning cheap and exact."""
        if self._offers_ranks is None:
            self._offers_ranks = has_commands(self.link, "XCOUNT", "XSPLIT")
        return self._offers_ranks

    def figures(self, keys: Sequence[str]) -> dict[str, Figures]:
        """Return what every stream looks like at this moment."""
        replies = self.link.pipeline([("XINFO", "STREAM", key) for key in keys])
        return {key: figures_of(reply, key) for key, reply in zip(keys, replies, strict=True)}

    def looks(self, keys: Sequence[str], at: Mapping[str, Position]) -> dict[str, Look]:
        """Return what every stream looks like, with what tells whether it still is the one it was.

        Figures are asked for last. What was counted before them can only have become less, and
        what was missing before them shows in them as removed.

        Args:
            at: the positions to compare with; ``seen`` in them is what is remembered.
        """
        ranks = self.offers_ranks()
        asked: dict[str, list[Words]] = {}
        for key in keys:
            asked[key] = []
            if key not in at:
                continue
            position = at[key]
            if ranks:
                asked[key].append(("XCOUNT", key, "-", format_id(position.id)))
                asked[key].append(("XCOUNT", key, after(position.id), "+"))
            if position.seen is not None:
                asked[key].append(newest_of(key, position.seen))
        words = [each for key in keys for each in (*asked[key], ("XINFO", "STREAM", key))]
        replies = iter(self.link.pipeline(words))
        found: dict[str, Look] = {}
        for key in keys:
            answers = [next(replies) for _ in asked[key]]
            figures = figures_of(next(replies), key)
            upto, behind = -1, -1
            if ranks and answers:
                upto, behind = (cast("int", good(answer)) for answer in answers[:2])
            there: tuple[Mark, ...] = ()
            if key in at and at[key].seen is not None:
                there = marks_of(answers[-1])
            found[key] = Look(figures, there, upto, behind)
        return found

    def without_stream(self, keys: Sequence[str]) -> list[str]:
        """Those of the keys at which there is no stream."""
        replies = self.link.pipeline([("TYPE", key) for key in keys]) if keys else []
        kinds = [cast("bytes | str", good(reply)) for reply in replies]
        return [
            key for key, kind in zip(keys, kinds, strict=True) if kind not in (b"stream", "stream")
        ]

    def place_of(self, key: str, mark: Mark, most: int) -> int:
        """Return how many entries there are up to one that is known; 0 when it is not there.

        Args:
            most: without XCOUNT: how far to walk; beyond that the answer is 0 too.
        """
        text = format_id(mark.id)
        if marks_of(self.link.call("XRANGE", key, text, text)) != (mark,):
            return 0
        if self.offers_ranks():
            return self.count([(key, LEAST, mark.id)])[0]
        ids = self.walk(key, LEAST, mark.id, most, PAGE)
        return len(ids) if ids and ids[-1] == mark.id else 0

    def matching(self, pattern: str) -> list[str]:
        """The names of the streams that a glob matches.

        Raises:
            HeadraceError: one of them is no text.
        """
        found: set[str] = set()
        how = ("MATCH", pattern, "COUNT", SCAN_COUNT, "TYPE", "stream")
        nodes = self.link.masters()
        # A key may move to a node that was asked already; so all but the last are asked once more.
        for slot in (*nodes, *nodes[:-1]):
            cursor = b""
            while cursor != b"0":
                words: Words = ("SCAN", cursor or b"0", *how)
                reply = self.link.run(partial(Client.call_words, words=words), slot)
                cursor, names = cast("tuple[bytes, list[bytes]]", reply)
                found.update(map(key_text, names))
        return sorted(found)

    def weights(self, keys: Sequence[str]) -> list[int]:
        """For each stream how many bytes of memory an entry takes; 0 where nobody tells.

        A server may keep entries smaller than they are sent.
        """
        words: list[Words] = []
        for key in keys:
            words += (("MEMORY", "USAGE", key), ("XLEN", key))
        replies = self.link.pipeline(words)
        pairs = zip(replies[0::2], replies[1::2], strict=True)
        return [
            size // length if isinstance(size, int) and isinstance(length, int) and length else 0
            for size, length in pairs
        ]

    # With XCOUNT and XSPLIT

    def count(self, ranges: Sequence[tuple[str, StreamID, StreamID]]) -> list[int]:
        """For each (key, after, upto): how many entries."""
        words = [("XCOUNT", key, after(low), upto(high)) for key, low, high in ranges]
        return [cast("int", good(reply)) for reply in self.link.pipeline(words)]

    def ends(self, wanted: Sequence[tuple[str, StreamID, StreamID, int]]) -> list[StreamID]:
        """For each (key, after, upto, rows): the ID of the entry so many rows on."""
        words = [
            ("XSPLIT", key, after(low), upto(high), "ROWS", rows, "COUNT", 1)
            for key, low, high, rows in wanted
        ]
        found = []
        for (_, low, _, _), reply in zip(wanted, self.link.pipeline(words), strict=True):
            shares = cast("list[list[bytes]]", good(reply))
            found.append(parse_id(shares[0][1]) if shares else low)
        return found

    def measure(self, wanted: Sequence[tuple[str, StreamID, StreamID, int]]) -> list[Measure]:
        """For each (key, after, upto, parts): its entries, cut into so many even pieces.

        All of it comes from one moment: MULTI holds the questions together.
        """
        words: list[Words] = []
        for key, low, high, parts in wanted:
            words += (
                ("MULTI",),
                ("XINFO", "STREAM", key),
                ("XCOUNT", key, after(high), "+"),
                ("XSPLIT", key, after(low), upto(high), "PARTS", parts),
                ("EXEC",),
            )
        replies = self.link.pipeline(words)
        found = []
        for number, (key, _, _, _) in enumerate(wanted):
            info, beyond, shares = cast("list[object]", good(replies[5 * number + 4]))
            figures = figures_of(info, key)
            rank = -1 if figures.added < 0 else figures.added - cast("int", good(beyond))
            pieces = [
                Cut(parse_id(share[1]), cast("int", share[2]))
                for share in cast("list[list[bytes]]", good(shares))
            ]
            rows = sum(piece.rows for piece in pieces)
            found.append(Measure(rows, tuple(pieces[:-1]), rank, figures))
        return found

    # Without

    def walk(
        self, key: str, low: StreamID, high: StreamID, most: int, page_size: int
    ) -> list[StreamID]:
        """The IDs of the first entries of a range, by reading them."""
        pages = Pages(self.link, key, low, high, page_size)
        found: list[StreamID] = []
        while not pages.done and len(found) < most:
            page, _ = pages.next(most - len(found))
            found += [parse_id(entry_id) for entry_id in page.ids]
        return found

    def first_behind(self, key: str, place: StreamID) -> StreamID | None:
        """The first entry behind a place, if there is one."""
        ids = self.walk(key, place, GREATEST, 1, 1)
        return ids[0] if ids else None

    def settled_figures(self, keys: Sequence[str]) -> dict[str, Figures]:
        """As ``figures``, once all that is there can be read, or as much as can be after a while.

        Where several regions write, others have to say first that they add nothing below.
        """
        found = self.figures(keys)
        wanted = {key: found[key].last for key in keys if not found[key].settled}
        until_s = time.monotonic() + SETTLE_S
        while wanted:
            if time.monotonic() >= until_s:
                log.warning(
                    "not all regions say up to where their entries are here: read up to %s",
                    ", ".join(f"{format_id(found[key].top)} in {key}" for key in wanted),
                )
                break
            time.sleep(SETTLE_EVERY_S)
            found = self.figures(keys)
            wanted = {key: last for key, last in wanted.items() if _waits_for(found[key], last)}
        return found

    def wait(
        self, positions: Iterable[tuple[str, StreamID]], wait_ms: int, stable: bool = False
    ) -> bool:
        """Wait until one of the streams has an entry after its ID; False when time is up.

        Args:
            stable: only entries count that nothing can come before any more.
        """
        places = list(positions)
        if self.link.is_cluster() and len({slot_of(key) for key, _ in places}) > 1:
            time.sleep(wait_ms / 1000)  # no command waits for keys of several slots
            return False
        words: list[Word] = ["XREAD", "COUNT", 1, "BLOCK", wait_ms]
        words += ["STABLE", "STREAMS"] if stable else ["STREAMS"]
        keys = [key for key, _ in places]
        ids = [format_id(stream_id) for _, stream_id in places]
        reply = self.link.run(
            lambda client: client.call(*words, *keys, *ids, wait_ms=wait_ms), slot_of(keys[0])
        )
        return reply is not None


def _waits_for(figures: Figures, last: StreamID) -> bool:
    return figures.stable is not None and figures.stable < last


def has_commands(link: Link, *names: str) -> bool:
    """Return whether the server knows all of these commands."""
    reply = link.call("COMMAND", "INFO", *names)
    return all(entry is not None for entry in cast("list[object]", reply))


def key_text(name: bytes) -> str:
    """A stream's name as text.

    Raises:
        HeadraceError: it is none.
    """
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise HeadraceError(
            f"the name of stream {name!r} is not UTF-8, as Spark needs it"
        ) from None


def good(reply: object) -> object:
    """A reply among others that is no error; else the error is raised."""
    if isinstance(reply, ServerError):
        raise reply
    return reply
