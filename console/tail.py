"""The live tail: new entries as server-sent events, all of them or a sample, and which.

Four times a second it reads on from the last entry that was shown. If more have come than may be
looked at, it goes on from the newest ones and says how many it has passed over and between which
IDs. It blocks no connection to the server, and a browser that reads slowly gets fewer entries.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from headrace.console.link import Error, Link, Unreachable, pairs
from headrace.console.streams import Entry, Filter, entries_of

EVERY_S: Final = 0.25
SHOWN: Final = 20  # entries at a time
LOOKED_AT: Final = 500  # where a filter chooses
BYTES: Final = 400_000  # of entries at a time, about
CATCH_UP: Final = 10  # a tail that goes on where it was paused reads so many times as much at first
VIEWERS: Final = 16
BEAT_S: Final = 10.0


def event(kind: str, value: object, cursor: str = "") -> bytes:
    """Return an event as it goes out; a browser that lost the connection asks for what follows."""
    head = f"id: {cursor}\n" if cursor else ""
    return f"event: {kind}\n{head}data: {json.dumps(value)}\n\n".encode()


class Tail:
    """One viewer's tail of a stream.

    Args:
        after: the ``id`` of the event to go on after, or an ID of an entry; empty begins with what
            comes next.
        render: makes of an entry what the page shows.
        may_go_on: whether the viewer may still see it.
    """

    def __init__(
        self,
        link: Link,
        key: bytes,
        after: str,
        wanted: Filter,
        render: Callable[[Entry], object],
        may_go_on: Callable[[], bool],
    ) -> None:
        self._link: Final = link
        self._key: Final = key
        self._last, _, added = after.partition("/")
        self._wanted: Final = wanted
        self._render: Final = render
        self._may_go_on: Final = may_go_on
        self._count = (LOOKED_AT if wanted else SHOWN) * (CATCH_UP if after else 1)
        self._added: int | None = int(added) if added.isdigit() else None
        self._counts = True

    async def events(self) -> AsyncIterator[bytes]:
        """Yield events for ever: ``begun``, ``entries``, ``passed``, ``rate`` and ``trouble``."""
        yield b"retry: 2000\n\n"
        said_s = rated_s = time.monotonic()
        rated: int | None = None
        in_trouble = False
        while self._may_go_on():
            begun_s = time.monotonic()
            try:
                found = [each async for each in self._step()]
                if in_trouble:
                    found.insert(0, event("trouble", ""))
                in_trouble = False
                if begun_s - rated_s >= 1.0:
                    if rated is not None and self._added is not None:
                        found.append(event("rate", (self._added - rated) / (begun_s - rated_s)))
                    rated, rated_s = self._added, begun_s
            except (Unreachable, Error) as why:
                found = [] if in_trouble else [event("trouble", f"The server: {why}")]
                in_trouble = True
            if not found and begun_s - said_s > BEAT_S:
                found = [b":\n\n"]
            for each in found:
                said_s = begun_s
                yield each
            await asyncio.sleep(max(EVERY_S - (time.monotonic() - begun_s), 0.05))

    async def _step(self) -> AsyncIterator[bytes]:
        if not self._last:
            newest, said = await self._link.ask(
                ("XREVRANGE", self._key, "+", "-", "COUNT", 1), ("XINFO", "STREAM", self._key)
            )
            self._added = self._added_of(said)
            found = entries_of(newest)
            self._last = found[0].id if found else "0-0"
            yield event("begun", None, self._cursor())
            return
        words = ("XRANGE", self._key, f"({self._last}", "+", "COUNT", self._count)
        entries = entries_of(await self._link.one(*words))
        is_full = len(entries) == self._count
        if self._added is not None:
            self._added += len(entries)
        if entries:
            yield self._shown(entries)
            total = sum(entry.size for entry in entries)
            most = LOOKED_AT if self._wanted else SHOWN
            self._count = min(max(BYTES * len(entries) // max(total, 1), 1), most)
        if is_full:
            async for each in self._leap():
                yield each

    async def _leap(self) -> AsyncIterator[bytes]:
        """Go on from the newest entries, and say how many are left out; None if not known."""
        after, before = self._last, self._added
        asked = ("XREVRANGE", self._key, "+", f"({after}", "COUNT", self._count)
        said, newest = await self._link.ask(
            ("XINFO", "STREAM", self._key) if self._counts else ("XLEN", self._key), asked
        )
        entries = entries_of(newest)[::-1]
        self._added = self._added_of(said)
        if not entries:
            return
        passed = None
        if self._added is not None and before is not None:
            passed = self._added - before - len(entries)
        if len(entries) == self._count and passed != 0:
            yield event("passed", [passed, after, entries[0].id])
        yield self._shown(entries)

    def _added_of(self, said: object) -> int | None:
        """Return how many entries were ever added; no more where that brings large entries, too."""
        fields = pairs(said)
        ends = [fields.get(b"first-entry"), fields.get(b"last-entry")]
        self._counts = sum(len(part) for each in ends if each for part in each[1]) < BYTES
        added = fields.get(b"entries-added")
        return added if isinstance(added, int) else None

    def _shown(self, entries: list[Entry]) -> bytes:
        chosen = [each for each in entries if self._wanted.fits(each)]
        self._last = entries[-1].id
        return event("entries", [self._render(each) for each in chosen], self._cursor())

    def _cursor(self) -> str:
        return f"{self._last}/{'' if self._added is None else self._added}"
