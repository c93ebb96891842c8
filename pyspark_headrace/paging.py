"""The entries of a range, page by page, where a page is so many bytes rather than so many entries.

Both sides keep a page whole: the server in its reply, the reader as a block. So how many entries it
has follows their size.

- Where XREAD has MAXSIZE (Headrace, Redis 8.10), the server itself ends a page at ``TARGET`` bytes.
- Elsewhere the first page has ``FIRST`` entries. The next one has ``GROWTH`` times as many at most,
  and no more than fit into ``TARGET`` bytes if they are like the last ones. Entries may grow faster
  than that. So a reader that has received ``MOST`` bytes hangs up, and asks for fewer entries. The
  server has written its whole reply by then, so no page has more than ``MOST_BLIND`` entries; no
  command says how large entries are without sending them.

One entry alone is read whatever its size.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from pyspark_headrace.client import PASSING, Client, Words
from pyspark_headrace.columnar import Page, read_page
from pyspark_headrace.errors import OversizeError, ServerError
from pyspark_headrace.ids import StreamID, after, format_id, parse_id, upto
from pyspark_headrace.resp import Link
from pyspark_headrace.slots import slot_of

log = logging.getLogger("pyspark_headrace")

TARGET: Final = 8 << 20
MOST: Final = 2 * TARGET
FIRST: Final = 8
GROWTH: Final = 8
MOST_ENTRIES: Final = 5000  # longer pages are no faster
MOST_BLIND: Final = 256  # where the server does not limit its reply; as fast as longer ones
_NOTHING: Final = b"*-1"


class Pages:
    """Reads the entries after one ID and up to another one, itself included.

    When the connection breaks, reading goes on behind the last page that was given out.

    Args:
        count: entries to ask for while their size is not known.
        then: what to ask behind each page, in the same round trip.

    Attributes:
        low: the last ID that was given out, or the one to begin after.
        done: whether there can be no further page.
    """

    def __init__(
        self,
        link: Link,
        key: str,
        low: StreamID,
        high: StreamID,
        count: int,
        then: Sequence[Words] = (),
    ) -> None:
        self._link: Final = link
        self._key: Final = key
        self._slot: Final = slot_of(key)
        self._high: Final = high
        self._most_entries: Final = max(count, MOST_ENTRIES)
        self._then: Final = then
        self._count = count if link.limits_replies else min(count, FIRST)
        self.low = low
        self.done = low >= high

    def next(self, most: int = 0) -> tuple[Page, list[object]]:
        """The next page, and the replies to what is asked behind it; there may be no more entries.

        Args:
            most: entries it may have; 0 is as many as fit.
        """
        while True:
            count = min(self._count, most) if most else self._count
            try:
                data, replies = self._ask(count)
            except OversizeError:
                self._link.close()
                self._count = max(1, count // GROWTH)
                log.info("stream %s: %d entries have over %d bytes", self._key, count, MOST)
            except ServerError:
                if not self._link.limits_replies:
                    raise
                self._link.limits_replies = False  # there is no MAXSIZE, or no right to XREAD
                self._count = min(self._count, FIRST)
            else:
                return self._received(data, count), replies

    def ask_ahead(self) -> None:
        """Let the server write the next page while this one is turned into columns."""
        if not self.done:
            words = self._words(self._count)
            self._link.run(lambda client: client.ask_page(words, self._then), self._slot)

    def _ask(self, count: int) -> tuple[bytes, list[object]]:
        words = self._words(count)
        most_bytes = MOST if count > 1 else 0
        return self._link.run(lambda client: self._page(client, words, most_bytes), self._slot)

    def _page(self, client: Client, words: Words, most_bytes: int) -> tuple[bytes, list[object]]:
        """A page and what belongs to it; neither where a key is moved in between."""
        data, replies = client.page(words, self._then, most_bytes)
        for reply in replies:
            if isinstance(reply, ServerError) and reply.code in PASSING:
                raise reply
        return data, replies

    def _words(self, count: int) -> Words:
        if self._link.limits_replies:
            place = format_id(self.low)
            return ("XREAD", "COUNT", count, "MAXSIZE", TARGET, "STREAMS", self._key, place)
        return ("XRANGE", self._key, after(self.low), upto(self._high), "COUNT", count)

    def _received(self, data: bytes, count: int) -> Page:
        by_range = not self._link.limits_replies
        page = read_page(data if by_range else _entries_in(data))
        got = len(page)
        if got and parse_id(page.ids[-1]) > self._high:
            page = page.head(bisect_right(page.ids, self._high, key=parse_id))
        if len(page):
            self.low = parse_id(page.ids[-1])
        beyond = len(page) < got or not got or (by_range and got < count)
        self.done = beyond or self.low >= self._high
        if got:
            fitting = TARGET * got // len(data)
            most = MOST_BLIND if by_range else self._most_entries
            self._count = max(1, min(fitting, count * GROWTH, most))
        return page


def _entries_in(data: bytes) -> bytes:
    """The entries of one stream in a reply of XREAD, as XRANGE would have them."""
    if data.startswith(_NOTHING):
        return b"*0\r\n"
    head = data.index(b"\r\n", len(b"*1\r\n*2\r\n$"))  # behind the length of the name
    length = int(data[len(b"*1\r\n*2\r\n$") : head])
    return data[head + 2 + length + 2 :]
