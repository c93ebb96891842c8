"""XREAD STABLE: entries up to where nothing can come any more, so that a reader skips none.

Entries of other regions come late, and may have lower IDs than what has been read. Those who read
with STABLE are given what is stable alone (``Region.stable_ms``). They wait while there is more.
"""

from __future__ import annotations

from typing import Final

from headrace.regions.exchange.effects import region_of
from headrace.regions.knowledge.stability import NO_STABLE_MS
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.commands.streams.reading import EntryAfter, Readers
from headrace.server.state import Server
from headrace.server.waiting import Line, Queue, Waiter
from headrace.storage.stream.part import Part
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import ID, NO_ID

_INTEREST: Final = b"stable entries"


def stable_id(server: Server, stream: RegionalStream) -> ID | None:
    """The ID up to which nothing can come any more; (0, 0) while that is not known.

    Returns: None where callers give IDs that may come late.
    """
    if stream.is_manual():
        return None
    ms = region_of(server).stable_ms()
    return NO_ID if ms == NO_STABLE_MS else (ms, ID_MAX)


def parts_up_to(
    stream: Stream, after: ID, bound: ID, count: int, most_bytes: int = 0
) -> list[Part]:
    """Return where the entries after an ID are, up to a bound. See ``EntryLog.parts``."""
    if after >= bound or not stream.length:
        return []
    return stream.parts(following(after[0], after[1]), bound, count, False, most_bytes)


class StableEntryAfter(EntryAfter):
    """An entry after an ID, once nothing can come before it."""

    def __init__(self, server: Server, after: list[ID]) -> None:
        super().__init__(after, _INTEREST)
        self.server: Final = server

    def new_line(self, queue: Queue) -> Line:
        return StableReaders(queue, self)


class StableReaders(Readers):
    """Those who wait for stable entries at one key."""

    def __init__(self, queue: Queue, interest: StableEntryAfter) -> None:
        super().__init__(queue, interest)
        self._server: Final = interest.server

    def add(self, waiter: Waiter, number: int) -> None:
        super().add(waiter, number)
        region_of(self._server).stable_readers[self.queue.key] = None

    def remove(self, waiter: Waiter, number: int) -> None:
        super().remove(waiter, number)
        if self.is_empty():
            region_of(self._server).stable_readers.pop(self.queue.key, None)

    def candidates(self, value: object | None) -> list[Waiter]:
        """See ``SharedLine``; where the stream has no stable IDs, all get that for an answer."""
        if not isinstance(value, RegionalStream):
            return []
        bound = stable_id(self._server, value)
        found: list[Waiter] = []
        for after, same in self.by_id.items():
            if bound is None or parts_up_to(value, after, bound, 1):
                found.extend(same.values())
        found.sort(key=lambda waiter: waiter.ticket)
        return found
