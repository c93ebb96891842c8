"""What a source asks a server about its streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pyspark_headrace.columnar import Page, read_page
from pyspark_headrace.errors import HeadraceError, ServerError
from pyspark_headrace.ids import GREATEST, LEAST, StreamID, format_id, parse_id
from pyspark_headrace.offsets import Cut
from pyspark_headrace.resp import Link, Words

SCAN_COUNT: Final = 1000


@dataclass(frozen=True)
class Figures:
    """What XINFO STREAM tells of a stream; of one that is not there, that it is empty.

    Attributes:
        length: entries that are there.
        added: entries ever added; -1 from servers that do not count (Redis before 7).
        last: the last ID generated.
        first: of the first entry; 0-0 when there is none.
        max_deleted: the greatest ID that was deleted by name; trimming does not count.
    """

    exists: bool = False
    length: int = 0
    added: int = 0
    last: StreamID = LEAST
    first: StreamID = LEAST
    max_deleted: StreamID = LEAST

    @property
    def removed(self) -> int:
        """Entries that were trimmed or deleted, ever; -1 when it is not known."""
        return -1 if self.added < 0 else self.added - self.length


def pairs_of(reply: object) -> dict[str, object]:
    """A reply of names and values in turn."""
    flat = cast("list[object]", reply)
    names = [cast("bytes", name).decode("utf-8", "replace") for name in flat[0::2]]
    return dict(zip(names, flat[1::2], strict=True))


def figures_of(reply: object, key: str) -> Figures:
    """One reply of XINFO STREAM.

    Raises:
        HeadraceError: the key holds something else.
        ServerError: the server refuses for another reason.
    """
    if isinstance(reply, ServerError):
        if reply.code == "WRONGTYPE":
            raise HeadraceError(f"{key} is not a stream") from None
        if "no such key" in str(reply):
            return Figures()
        raise reply
    values = pairs_of(reply)
    first_entry = values.get("first-entry")
    first = LEAST if first_entry is None else parse_id(cast("list[bytes]", first_entry)[0])
    return Figures(
        exists=True,
        length=cast("int", values["length"]),
        added=cast("int", values.get("entries-added", -1)),
        last=parse_id(cast("bytes", values["last-generated-id"])),
        first=first,
        max_deleted=parse_id(cast("bytes", values.get("max-deleted-entry-id", b"0-0"))),
    )


def after(stream_id: StreamID) -> str:
    """A range's start behind an ID."""
    return "-" if stream_id == LEAST else f"({format_id(stream_id)}"


def upto(stream_id: StreamID) -> str:
    """A range's end at an ID."""
    return "+" if stream_id == GREATEST else format_id(stream_id)


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
        """Whether there are XCOUNT and XSPLIT, which make planning cheap and exact."""
        if self._offers_ranks is None:
            self._offers_ranks = has_commands(self.link, "XCOUNT", "XSPLIT")
        return self._offers_ranks

    def figures(self, keys: Sequence[str]) -> dict[str, Figures]:
        """What every stream looks like at this moment."""
        replies = self.link.pipeline([("XINFO", "STREAM", key) for key in keys])
        return {key: figures_of(reply, key) for key, reply in zip(keys, replies, strict=True)}

    def matching(self, pattern: str) -> list[str]:
        """The names of the streams that a glob matches.

        Raises:
            HeadraceError: one of them is no text.
        """
        found: set[str] = set()
        cursor = b"0"
        while True:
            words: Words = ("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT, "TYPE", "stream")
            reply = cast("list[object]", self.link.call(*words))
            for name in cast("list[bytes]", reply[1]):
                found.add(key_text(name))
            cursor = cast("bytes", reply[0])
            if cursor == b"0":
                return sorted(found)

    # With XCOUNT and XSPLIT

    def count(self, ranges: Sequence[tuple[str, StreamID, StreamID]]) -> list[int]:
        """For each (key, after, upto): how many entries."""
        words = [("XCOUNT", key, after(low), upto(high)) for key, low, high in ranges]
        return [cast("int", _good(reply)) for reply in self.link.pipeline(words)]

    def ends(self, wanted: Sequence[tuple[str, StreamID, StreamID, int]]) -> list[StreamID]:
        """For each (key, after, upto, rows): the ID of the entry so many rows on."""
        words = [
            ("XSPLIT", key, after(low), upto(high), "ROWS", rows, "COUNT", 1)
            for key, low, high, rows in wanted
        ]
        found = []
        for (_, low, _, _), reply in zip(wanted, self.link.pipeline(words), strict=True):
            shares = cast("list[list[bytes]]", _good(reply))
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
            info, beyond, shares = cast("list[object]", _good(replies[5 * number + 4]))
            figures = figures_of(info, key)
            rank = -1 if figures.added < 0 else figures.added - cast("int", _good(beyond))
            pieces = [
                Cut(parse_id(share[1]), cast("int", share[2]))
                for share in cast("list[list[bytes]]", _good(shares))
            ]
            rows = sum(piece.rows for piece in pieces)
            found.append(Measure(rows, tuple(pieces[:-1]), rank, figures))
        return found

    # Without

    def walk(
        self, key: str, low: StreamID, high: StreamID, most: int, page_size: int
    ) -> list[StreamID]:
        """The IDs of the first entries of a range, by reading them."""
        found: list[StreamID] = []
        while len(found) < most:
            count = min(page_size, most - len(found))
            page = self.page(key, low, high, count)
            found += [parse_id(entry_id) for entry_id in page.ids]
            if len(page) < count:
                break
            low = found[-1]
        return found

    def page(self, key: str, low: StreamID, high: StreamID, count: int) -> Page:
        """The first entries of a range."""
        words = ("XRANGE", key, after(low), upto(high), "COUNT", count)
        return read_page(self.link.run(lambda client: client.page(*words)))

    def wait(self, positions: Iterable[tuple[str, StreamID]], wait_ms: int) -> bool:
        """Wait until one of the streams has an entry after its ID; False when time is up."""
        places = list(positions)
        words = ("XREAD", "COUNT", 1, "BLOCK", wait_ms, "STREAMS")
        keys = [key for key, _ in places]
        ids = [format_id(stream_id) for _, stream_id in places]
        reply = self.link.run(lambda client: client.call(*words, *keys, *ids, wait_ms=wait_ms))
        return reply is not None


def has_commands(link: Link, *names: str) -> bool:
    """Whether the server knows all of these commands."""
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


def _good(reply: object) -> object:
    if isinstance(reply, ServerError):
        raise reply
    return reply
