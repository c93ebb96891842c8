"""Rows written once on servers that know none again: a marker beside them says how many are there.

Each partition of a writer has a marker, a string of its own, and each window of rows goes out with
it in one transaction::

    MULTI   XADD ...   XADD ...   SET <marker> "<batch>:<rows>:<hash>"   EXEC   WATCH, GET <marker>

So whatever was killed, the marker says how many of the partition's rows the server has, and the
next attempt leaves out as many. Nothing is forgotten after a time, and no batch is too large; but
rows are known by their place alone. The hash, of all rows up to there, is what makes that safe: an
attempt that meets other rows in these places, because the plan was changed or the order of the rows
is left to chance, is refused before it has lost or repeated one.

WATCH sees to it that of two attempts that run at the same time, one writes a window; the other one
finds the marker ahead of it and goes on from there. A server that restarts and has lost what it had
acknowledged has lost marker and rows together: the attempt fails, and the next one writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final, cast

from pyspark_headrace.client import Client, encode
from pyspark_headrace.errors import ServerError, UnsafeWriteError
from pyspark_headrace.pipe import ANY_ID, Request
from pyspark_headrace.resp import Link
from pyspark_headrace.slots import slot_of

_BECAUSE: Final = "because of: "


@dataclass(frozen=True)
class Mark:
    """How many rows of a batch a partition has written, and a hash of all of them."""

    batch: int
    rows: int
    digest: str

    def text(self) -> str:
        """As the marker holds it."""
        return f"{self.batch}:{self.rows}:{self.digest}"


class MarkedPipe:
    """Sends rows in windows, each of them a transaction with the marker.

    Args:
        key: of the marker.
        batch: the rows'; a marker of an older one counts as none.
        life_s: for how long the marker stays; 0 is for good.
        on_known: called with the number of rows that were left out.
    """

    def __init__(
        self, link: Link, key: str, batch: int, life_s: int, on_known: Callable[[int], None]
    ) -> None:
        self._link: Final = link
        self._key: Final = key
        self._batch: Final = batch
        self._life: Final[tuple[str | int, ...]] = ("EX", life_s) if life_s else ()
        self._on_known: Final = on_known
        self._rows = 0  # that were written or left out
        self._hash = blake2b(digest_size=12)
        self._watching: Client | None = None  # the connection on which the marker is watched
        self._slot: Final = slot_of(key)
        self._there = link.run(self._watch, self._slot)

    def push(self, window: Sequence[Request]) -> None:
        """Write those rows of a window that the server does not have.

        Raises:
            UnsafeWriteError: these are not the rows that the server has.
            ServerError: the server refuses one.
            UnreachableError: it did not come back in time.
        """
        rows = self._leave_out(window)
        while rows:
            wanted = self._mark_after(rows)
            self._there = self._link.run(partial(self._write, rows=rows, wanted=wanted), self._slot)
            if self._there == wanted:
                self._pass(rows)
                return
            rows = self._leave_out(rows)

    def drain(self) -> None:
        """All rows have come.

        Raises:
            UnsafeWriteError: there are fewer than the server has.
        """
        if self._there.rows > self._rows:
            raise self._other_rows()

    def close(self) -> None:
        """Nothing is on its way; whoever owns the link ends it."""

    def _pass(self, rows: Sequence[Request]) -> None:
        self._hash = _hashed(self._hash, rows)
        self._rows += len(rows)

    def _mark_after(self, rows: Sequence[Request]) -> Mark:
        digest = _hashed(self._hash, rows).hexdigest()
        return Mark(self._batch, self._rows + len(rows), digest)

    def _leave_out(self, window: Sequence[Request]) -> Sequence[Request]:
        """Return what is left of a window without the rows that the server has."""
        there = self._there
        known = there.rows - self._rows
        if known < 0:
            raise UnsafeWriteError(
                f"{self._key}: the server had {self._rows} rows of this partition, and has "
                f"{there.rows} now. It has lost some; this batch, written again, brings them back"
            )
        mine = window[:known]
        if mine:
            self._pass(mine)
            self._on_known(len(mine))
        if self._rows == there.rows and there.rows and self._hash.hexdigest() != there.digest:
            raise self._other_rows()
        return window[known:]

    def _other_rows(self) -> UnsafeWriteError:
        return UnsafeWriteError(
            f"{self._key}: this partition begins with other rows than an attempt before has "
            f"written ({self._there.rows} of them). identity=marker knows rows by their place: it "
            "wants a plan that stays and an order that is fixed, sortWithinPartitions say; and two "
            "writes to one stream in a batch want a writerId each"
        )

    def _watch(self, client: Client) -> Mark:
        """Ask to hear of changes to the marker, and read it."""
        self._watching = None
        watched, text = client.pipeline([("WATCH", self._key), ("GET", self._key)])
        return self._read(client, watched, text)

    def _read(self, client: Client, watched: object, text: object) -> Mark:
        for reply in (watched, text):
            if isinstance(reply, ServerError):
                raise reply
        self._watching = client
        none = Mark(self._batch, 0, "")
        if text is None:
            return none
        batch, rows, digest = cast("bytes", text).decode().split(":")
        if int(batch) > self._batch:
            raise UnsafeWriteError(
                f"{self._key}: batch {batch} is being written, so this attempt of batch "
                f"{self._batch} comes too late"
            )
        return Mark(self._batch, int(rows), digest) if int(batch) == self._batch else none

    def _write(self, client: Client, rows: Sequence[Request], wanted: Mark) -> Mark:
        """Try to write rows; the marker afterwards, ``wanted`` if it was done.

        Run again after a broken connection, it finds out what became of the first try.
        """
        if client is not self._watching:
            found = self._watch(client)
            if found != self._there:
                return found
        self._watching = None
        mark = encode(("SET", self._key, wanted.text(), *self._life))
        again = client.request(("WATCH", self._key)) + client.request(("GET", self._key))
        words = b"".join([words for _, words in rows])
        client.send(client.request(("MULTI",)) + words + mark + encode(("EXEC",)) + again)
        queued = [client.read() for _ in range(len(rows) + 2)]
        done, watched, text = (client.read() for _ in range(3))
        refused = next((reply for reply in queued if isinstance(reply, ServerError)), done)
        if isinstance(refused, ServerError):
            self._read(client, watched, text)
            reason = str(refused)
            raise ServerError(reason.partition(_BECAUSE)[2] or reason)
        if done is not None:
            self._check(client, rows, cast("list[object]", done))
        return self._read(client, watched, text)

    def _check(self, client: Client, rows: Sequence[Request], replies: list[object]) -> None:
        """A row may be refused, and the marker is set all the same: put it back then."""
        for (target, _), reply in zip(rows, replies, strict=False):
            if isinstance(reply, ServerError):
                client.call("SET", self._key, self._there.text(), *self._life)
                raise ServerError(f"{reply} (stream {target.decode('utf-8', 'replace')})")


def _hashed(before: blake2b, rows: Sequence[Request]) -> blake2b:
    """A hash with some rows more: their streams and fields, whatever else XADD is given."""
    found = before.copy()
    for target, words in rows:
        found.update(b"%d:%b" % (len(target), target))
        found.update(words[words.index(ANY_ID) :])
    return found
