"""The latest records of all origins in memory: what peers that keep up are sent from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from headrace.regions.files.batch import Batch, joined

BACKLOG_BYTES: Final = 16 << 20
BATCH_BYTES: Final = 240  # what a batch takes beside its payload, about


class _Tail:
    """The latest batches of one origin, which follow each other."""

    def __init__(self, following: int) -> None:
        self.batches: list[Batch] = []
        self.start = 0  # those before have been dropped
        self.next = following  # the number behind the last record that may be sent

    def drop_first(self) -> Batch:
        batch = self.batches[self.start]
        self.start += 1
        if 2 * self.start > len(self.batches):
            del self.batches[: self.start]
            self.start = 0
        return batch

    def find(self, number: int) -> int:
        """The index of the batch that holds a number which is held."""
        low = self.start
        high = len(self.batches)
        while high - low > 1:
            middle = (low + high) // 2
            if self.batches[middle].first <= number:
                low = middle
            else:
                high = middle
        return low


class Backlog:
    """Batches of all origins, up to a number of bytes; the oldest go first.

    Attributes:
        most_bytes: how much it holds.
        size_bytes: how much it holds now.
        on_more: called when there is more that may be sent.
    """

    def __init__(self, most_bytes: int = BACKLOG_BYTES) -> None:
        self.most_bytes = most_bytes
        self.size_bytes = 0
        self.on_more: Callable[[], None] | None = None
        self._tails: Final[dict[bytes, _Tail]] = {}
        self._order: Final[deque[bytes]] = deque()  # whose the batches are, oldest first

    def begin(self, origin: bytes, number: int) -> None:
        """The next record of an origin to come is this one, whatever came so far."""
        tail = self._tails.get(origin)
        if tail is None or tail.next != number:
            self._forget(origin)
            self._tails[origin] = _Tail(number)

    def add(self, batch: Batch) -> None:
        """Take a batch that may be sent. Where records are missing before it, older ones go."""
        origin = batch.origin
        tail = self._tails.get(origin)
        if tail is None or tail.next != batch.first:
            self.begin(origin, batch.first)
            tail = self._tails[origin]
        tail.batches.append(batch)
        tail.next = batch.first + batch.count
        self._order.append(origin)
        self.size_bytes += len(batch.payload) + BATCH_BYTES
        while self.size_bytes > self.most_bytes and len(self._order) > 1:
            oldest = self._tails[self._order.popleft()].drop_first()
            self.size_bytes -= len(oldest.payload) + BATCH_BYTES

    def added(self) -> None:
        """Let know who waits that there is more."""
        if self.on_more is not None:
            self.on_more()

    def after(self, origin: bytes, number: int, most_bytes: int) -> Batch | None:
        """The records of an origin behind ``number``; None where the next one is not here.

        Returns: a batch of about ``most_bytes`` at most that holds ``number + 1``. It may begin
            somewhat before that.
        """
        tail = self._tails.get(origin)
        if tail is None or not self.reach(origin) <= number + 1 < tail.next:
            return None
        index = tail.find(number + 1)
        found = tail.batches[index].part(number, most_bytes)
        if found.next < tail.batches[index].next:
            return found
        size = len(found.payload)
        some = [found]
        index += 1
        while index < len(tail.batches):
            batch = tail.batches[index]
            size += len(batch.payload)
            if size > most_bytes:
                break
            some.append(batch)
            index += 1
        return joined(some)

    def bytes_after(self, origin: bytes, number: int) -> int:
        """How long the records of an origin behind ``number`` are, as far as they are here."""
        tail = self._tails.get(origin)
        if tail is None or not tail.batches or number + 1 >= tail.next:
            return 0
        index = max(tail.start, tail.find(number + 1))
        size = 0
        while index < len(tail.batches):
            size += len(tail.batches[index].payload)
            index += 1
        return size

    def reach(self, origin: bytes) -> int:
        """The lowest number of an origin that is here, or comes next; 0 for one never met."""
        tail = self._tails.get(origin)
        if tail is None:
            return 0
        return tail.batches[tail.start].first if tail.batches else tail.next

    def next(self, origin: bytes) -> int:
        """The number behind the last record of an origin that may be sent; 0 for one never met."""
        tail = self._tails.get(origin)
        return 0 if tail is None else tail.next

    def origins(self) -> list[bytes]:
        """All origins that have been met."""
        return list(self._tails)

    def _forget(self, origin: bytes) -> None:
        tail = self._tails.get(origin)
        if tail is None or not tail.batches:
            return
        for batch in tail.batches[tail.start :]:
            self.size_bytes -= len(batch.payload) + BATCH_BYTES
        kept = [each for each in self._order if each != origin]
        self._order.clear()
        self._order.extend(kept)
