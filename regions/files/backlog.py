"""The latest records of all origins in memory, which peers that keep up are sent from.

Records go to peers as they stand in a file, except those that concern this region alone: local
records, comments, the lines that count. A **unit** is what is applied whole or not at all: a
record, or a transaction. Of a transaction that holds other things, too, its numbered records of one
origin are left, still as a transaction if they are several. A batch is never cut within a unit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from headrace.regions.files.pieces import Piece

CUT_BYTES: Final[i64] = 4096  # between the places where a batch can be cut, about
_NOWHERE: Final[i64] = -1
_NONE: Final[list[tuple[int, int]]] = []  # of many objects; it is never added to
BACKLOG_BYTES: Final = 16 << 20
BATCH_BYTES: Final = 240  # of a batch beside its payload, about


class Batch(Piece):
    """Whole units of one origin.

    Attributes:
        ms: 0 where that is not known.
        cuts: units that can be the first of a part of this: where they begin, and their number.
    """

    def __init__(
        self,
        origin: bytes,
        first: int,
        count: int,
        ms: int,
        payload: bytes,
        cuts: list[tuple[int, int]],
    ) -> None:
        super().__init__(origin, first, count, ms, payload)
        self.cuts: Final = cuts

    @property
    def next(self) -> int:
        """Number behind the last one."""
        return self.first + self.count

    def part(self, number: int, most_bytes: int) -> Batch:
        """Return the part with the record behind ``number``: little before it, and what follows.

        It is as long as can be with ``most_bytes``. It may be longer where no cut is near enough.
        """
        start = 0
        first = self.first
        end = 0
        behind = 0
        for offset, at in self.cuts:
            if at <= number + 1:
                start = offset
                first = at
            elif not behind or offset - start <= most_bytes:
                end = offset
                behind = at
            else:
                break
        if not behind or len(self.payload) - start <= most_bytes:
            end = len(self.payload)
            behind = self.next
        if not start and behind == self.next:
            return self
        cuts = [(offset - start, at) for offset, at in self.cuts if start < offset < end]
        return Batch(self.origin, first, behind - first, self.ms, self.payload[start:end], cuts)


def joined(batches: list[Batch]) -> Batch:
    """Join batches that follow each other into one; its time is that of the first."""
    head = batches[0]
    if len(batches) == 1:
        return head
    cuts: list[tuple[int, int]] = []
    payloads: list[bytes] = []
    size = 0
    for batch in batches:
        if size:
            cuts.append((size, batch.first))
        for offset, number in batch.cuts:
            cuts.append((size + offset, number))
        payloads.append(batch.payload)
        size += len(batch.payload)
    count = batches[-1].next - head.first
    return Batch(head.origin, head.first, count, head.ms, b"".join(payloads), cuts)


class Run:
    """The consecutive records of one origin in a buffer, as slices of it.

    Attributes:
        first, next: the number of the first one, and the one behind the last.
        size: the length of all slices.
        cuts: as those of a ``Batch``.
    """

    def __init__(self, origin: bytes, first: int) -> None:
        self.origin: Final = origin
        self.first: Final = first
        self.next = first
        self.size: i64 = 0
        self.cuts = _NONE
        self.cut: i64 = 0  # the size at the last cut
        self.end: i64 = _NOWHERE  # of the last slice
        self._start: i64 = _NOWHERE
        self._slices = _NONE  # those before

    def add(self, start: i64, end: i64) -> None:
        """Add the bytes from ``start`` to ``end``."""
        if start != self.end:
            if self.end != _NOWHERE:
                if self._slices is _NONE:
                    self._slices = []
                self._slices.append((self._start, self.end))
            self._start = start
        self.end = end
        self.size += end - start

    def add_all(self, other: Run) -> None:
        """Add all slices of another run."""
        for start, end in other._slices:
            self.add(start, end)
        self.add(other._start, other.end)

    def end_unit(self, following: int) -> None:
        """End a unit here; ``following`` is the number of the next record."""
        self.next = following
        if self.size - self.cut >= CUT_BYTES:
            self.cut = self.size
            if self.cuts is _NONE:
                self.cuts = []
            self.cuts.append((self.size, following))

    def payload(self, buffer: bytes) -> bytes:
        """Return its bytes; the buffer itself where they are all of it."""
        if not self._slices:
            return buffer[self._start : self.end]
        pieces = [buffer[start:end] for start, end in self._slices]
        pieces.append(buffer[self._start : self.end])
        return b"".join(pieces)

    def batch(self, buffer: bytes) -> Batch:
        """Return the records as a batch."""
        cuts = self.cuts
        if cuts and cuts[-1][0] == self.size:
            cuts.pop()  # nothing follows
        return Batch(self.origin, self.first, self.next - self.first, 0, self.payload(buffer), cuts)


class Slicer:
    """Follows the writes to a buffer, or a scan of it, and finds the records of each origin.

    Args:
        wanted: skip the records of all other origins; empty to keep all.
        least: skip units all of whose numbers are below.

    Attributes:
        origin, next: the counting in force: the origin of the next numbered record, and its number.
        runs: those found, with one run for each origin unless its numbers have a gap.
        parts: the runs in the latest transaction, by origin.
    """

    def __init__(self, wanted: bytes = b"", least: int = 0) -> None:
        self.origin = b""
        self.next = 0
        self.runs: list[Run] = []
        self._wanted: Final = wanted
        self._least: Final = least
        self._skips = False  # the origin is not wanted
        self._run: Run | None = None  # of the origin, and up to the next number
        self._multi: i64 = _NOWHERE  # where the transaction under way begins
        self._multi_end: i64 = 0
        self.parts: list[Run] = []
        self._part: Run | None = None  # of the origin

    def count_from(self, origin: bytes, number: int) -> None:
        """Count the next numbered records as ``number``, ``number + 1`` and so on of ``origin``."""
        if origin != self.origin or number != self.next:
            self._run = None
            self._part = None
        self.origin = origin
        self.next = number
        self._skips = bool(self._wanted) and origin != self._wanted

    def clear(self) -> None:
        """Begin a new buffer; the counting goes on."""
        self.runs.clear()
        self.parts.clear()
        self._run = None
        self._part = None
        self._multi = _NOWHERE

    def numbered(self, start: i64, end: i64) -> None:
        """Note a numbered record there."""
        number = self.next
        following = number + 1
        self.next = following
        going_on = self._run
        if going_on is not None and going_on.end == start and self._multi < 0:
            going_on.end = end  # as ``add`` and ``end_unit`` do it, which would cost more
            size = going_on.size + end - start
            going_on.size = size
            going_on.next = following
            if size - going_on.cut < CUT_BYTES:
                return
            going_on.end_unit(following)
            return
        if self._skips:
            return
        if self._multi >= 0:
            part = self._part
            if part is None:
                part = _run_for(self.parts, self.origin, number)
                self._part = part
            part.add(start, end)
            part.next = following
            return
        if following > self._least:
            run = self._run
            if run is None:
                run = _run_for(self.runs, self.origin, number)
                self._run = run
            run.add(start, end)
            run.end_unit(following)

    def units(self, start: i64, end: i64, count: int) -> None:
        """Note whole units of the origin there, with ``count`` records."""
        run = self._run
        if run is None:
            run = _run_for(self.runs, self.origin, self.next)
            self._run = run
        self.next += count
        run.add(start, end)
        run.end_unit(self.next)

    def begin_transaction(self, start: i64, end: i64) -> None:
        """Note MULTI there."""
        self._multi = start
        self._multi_end = end
        self._part = None
        self.parts = []

    def end_transaction(self, start: i64, end: i64) -> None:
        """Note EXEC there."""
        for part in self.parts:
            if part.next <= self._least:
                continue
            run = _run_for(self.runs, part.origin, part.first)
            if part.next - part.first > 1:
                run.add(self._multi, self._multi_end)
                run.add_all(part)
                run.add(start, end)
            else:
                run.add_all(part)
            run.end_unit(part.next)
            self._run = None
        self._multi = _NOWHERE
        self._part = None


def _run_for(runs: list[Run], origin: bytes, number: int) -> Run:
    """Return the run that a record belongs to, a new one if need be."""
    for index in range(len(runs) - 1, -1, -1):
        run = runs[index]
        if run.origin == origin:
            if run.next == number:
                return run
            break
    run = Run(origin, number)
    runs.append(run)
    return run


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
        """Return the index of the batch with a number, which must be held."""
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
    """Batches of all origins, up to ``most_bytes``; the oldest go first.

    ``on_more`` is called when there is more that may be sent.
    """

    def __init__(self, most_bytes: int = BACKLOG_BYTES) -> None:
        self.most_bytes = most_bytes
        self.size_bytes = 0
        self.on_more: Callable[[], None] | None = None
        self._tails: Final[dict[bytes, _Tail]] = {}
        self._order: Final[deque[bytes]] = deque()  # origins of the batches, oldest first

    def begin(self, origin: bytes, number: int) -> None:
        """Make this the next record of an origin to come, whatever came so far."""
        tail = self._tails.get(origin)
        if tail is None or tail.next != number:
            self._forget(origin)
            self._tails[origin] = _Tail(number)

    def add(self, batch: Batch) -> None:
        """Take a batch that may be sent. Where records are missing before it, drop older ones."""
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
        """Report that there is more."""
        if self.on_more is not None:
            self.on_more()

    def after(self, origin: bytes, number: int, most_bytes: int) -> Batch | None:
        """Return records of an origin behind ``number``; None where the next one is not here.

        Returns: about ``most_bytes`` at most, with ``number + 1``, maybe from somewhat before that.
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
        """Return the bytes of the records of an origin behind ``number``, of those here."""
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
        """Return the lowest number of an origin that is here, or comes next; 0 for none."""
        tail = self._tails.get(origin)
        if tail is None:
            return 0
        return tail.batches[tail.start].first if tail.batches else tail.next

    def next(self, origin: bytes) -> int:
        """Return the number behind an origin's last sendable record; 0 for an unknown origin."""
        tail = self._tails.get(origin)
        return 0 if tail is None else tail.next

    def origins(self) -> list[bytes]:
        """Return all origins that have been met."""
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
