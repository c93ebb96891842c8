"""Pending entries: those that a group has delivered and that are not acknowledged.

One ``Nack`` for each pending entry stands in three ordered lists: its group's by ID, its
consumer's by ID, and its group's by time. A list is cut into chunks, so finding, adding and
removing cost a search and a short move at most: O(log n). New deliveries come last in all three,
which costs O(1). What is taken out leaves a hole and moves nothing.

A client that acknowledges entries in order takes the next one from behind the last, so that place
is looked at first. Mostly the entry is in the same place of the other lists, too, because lists
that hold the same entries have them in the same order. When many clients acknowledge at once they
are soon far apart, and entries lie scattered in memory. So a search looks at one or two of them.

The order by time starts with the zone: the entries that XNACK released, first released first. Then
come the owned ones by delivery time, and among equals by when they got it. Only XREADGROUP CLAIM
reads this order. An entry that it finds deleted from the stream is moved to the end, so as not to
be met again.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, pop, vec
from mypy_extensions import i64, mypyc_attr, trait

from headrace.storage.stream.reach import REACH_MAX, Reach, evenly
from headrace.storage.stream.run import is_below

CHUNK: Final = 127  # as much as fits where a vector has doubled its size six times
COUNT_MAX: Final = 2**63 - 1
_SPARSE: Final = 8  # slots to an entry, above which holes are closed


class Holder:
    """The holder of pending entries: the part of its ``groups.Consumer`` that an entry knows."""

    def __init__(self, name: bytes) -> None:
        self.name: Final = name


@mypyc_attr(acyclic=True)  # its consumer knows it, but forgets it: see ``Group.delete_consumer``
class Nack:
    """One pending entry.

    Attributes:
        ms, seq: the entry's ID.
        consumer: its holder; None when it was released.
        delivery_ms: when it was delivered last, in milliseconds since 1970. When released: from
            when on it goes out by itself; 0 where only a claim hands it out.
        count: how often it was delivered.
        order_ms, ticket: its place in the order by time; ``order_ms`` is ``IN_ZONE`` when released,
            ``GONE`` when the stream's entry was found deleted.
    """

    def __init__(self, ms: int, seq: int, consumer: Holder | None, delivery_ms: i64) -> None:
        self.ms: Final = ms
        self.seq: Final = seq
        self.consumer = consumer
        self.delivery_ms: i64 = delivery_ms
        self.count = 1
        self.order_ms: i64 = delivery_ms
        self.ticket: i64 = 0

    def is_aside(self) -> bool:
        """Return whether no consumer has ever had it: a policy holds it back."""
        return self.consumer is None and not self.count and self.delivery_ms > 0

    def count_up(self) -> None:
        """Count one more delivery."""
        if self.count != COUNT_MAX:  # with a smaller number it would have to be boxed
            self.count += 1


@mypyc_attr(acyclic=True)
class Chunk:
    """One or more pending entries, in order, in up to ``2 * CHUNK`` slots.

    What is taken out leaves a hole, so that nothing moves; where few entries are left, holes are
    closed. The last slot has an entry, and so has ``start``; ``size`` counts entries.
    """

    def __init__(self, nacks: list[Nack]) -> None:
        self.slots = vec[Nack | None](nacks)
        self.start: i64 = 0
        self.size: i64 = len(nacks)

    def first(self) -> Nack:
        """Return the entry that comes first."""
        return self.at(self.start)

    def last(self) -> Nack:
        """Return the entry that comes last."""
        return self.at(len(self.slots) - 1)

    def at(self, place: i64) -> Nack:
        """Return the entry at a place that has one."""
        nack = self.slots[place]
        assert nack is not None
        return nack

    def holds(self, place: i64, nack: Nack) -> bool:
        """Return whether an entry is at a place, which may be behind the last."""
        return place < len(self.slots) and self.slots[place] is nack

    def entry_from(self, place: i64) -> i64:
        """Return the first place from this one on that has an entry, or the number of places."""
        while place < len(self.slots) and self.slots[place] is None:
            place += 1
        return place

    def live(self) -> list[Nack]:
        """Return the entries without the holes."""
        return [nack for nack in self.slots if nack is not None]

    def copy(self) -> Chunk:
        """Return a copy with the same in each place."""
        chunk = Chunk([])
        chunk.slots = self.slots[:]
        chunk.start = self.start
        chunk.size = self.size
        return chunk

    def append(self, nack: Nack) -> None:
        """Put an entry behind all others."""
        self.slots = append(self.slots, nack)
        self.size += 1

    def pop(self, place: i64) -> i64:
        """Take out the entry at a place; return where the next one is then, or a hole before it.

        When it was the only one, the chunk is of no use any more.
        """
        self.size -= 1
        if not self.size:
            return len(self.slots)
        self.slots[place] = None
        place += 1
        if place == len(self.slots):
            while self.slots[-1] is None:
                self.slots, _ = pop(self.slots)
            place = len(self.slots)
        elif place == self.start + 1:
            place = self.entry_from(place)
            self.start = place
        if len(self.slots) - self.start > _SPARSE * self.size:
            return self._close(place)
        return place

    def _close(self, place: i64) -> i64:
        """Close the holes; return the new place of what was at a place, or behind it."""
        kept: list[Nack] = []
        found: i64 = self.size
        for number in range(self.start, len(self.slots)):
            if number == place:
                found = len(kept)
            nack = self.slots[number]
            if nack is not None:
                kept.append(nack)
        self.slots = vec[Nack | None](kept)
        self.start = 0
        return found

    def insert(self, place: i64, nack: Nack) -> Chunk | None:
        """Insert an entry at a place; return the rear half if the chunk is too large then."""
        self.size += 1
        for hole in (place, place - 1):
            if 0 <= hole < len(self.slots) and self.slots[hole] is None:
                self.slots[hole] = nack
                self.start = min(self.start, hole)
                return None
        self.slots = append(self.slots, nack)
        for number in range(len(self.slots) - 1, place, -1):
            self.slots[number] = self.slots[number - 1]
        self.slots[place] = nack
        if len(self.slots) <= 2 * CHUNK:
            return None
        self._close(place)
        if self.size <= CHUNK:
            return None
        nacks = self.live()
        half = self.size >> 1
        self.slots = vec[Nack | None](nacks[:half])
        self.size = half
        return Chunk(nacks[half:])


IN_ZONE: Final[i64] = -1
GONE: Final[i64] = 2**62 - 1
HELD: Final[i64] = GONE - 1  # until something else is done, at no moment: see ``groups.Rules``
MOVE_ALL_ABOVE: Final = 64  # entries from which it may pay to walk all
FILTER_FROM: Final = 12  # entries of a chunk from which it pays to go through all of it
GUESSES: Final = 4  # before a search in a chunk halves what is left


class _Chunks(Reach):
    """An ordered list in chunks, none of them empty.

    ``_reach`` covers all chunks except the last. It says too much once a chunk's last entry has
    gone.

    Attributes:
        size: the number of entries.
        found_chunk, found_place: where the entry stands, or stood, that was found last.
    """

    def __init__(self) -> None:
        super().__init__()
        self.chunks: list[Chunk] = []
        self.size = 0
        self.found_chunk: i64 = 0
        self.found_place: i64 = 0
        self._near_place: i64 = 0  # where the one behind it stands, in the chunk ``_near``
        self._in_order = True  # it was the one behind the one before

    def add(self, nack: Nack) -> None:
        """Add an entry that is not there, where it belongs."""
        self.size += 1
        chunks = self.chunks
        if not chunks:
            chunks.append(Chunk([nack]))
            return
        last = chunks[-1].last()
        if not self._is_before(last, nack):
            major, minor = self._key(nack)
            at = self._find(0, major, minor)
            rear = self._own(at).insert(self._place_of(at, major, minor), nack)
            if rear is not None:
                chunks.insert(at + 1, rear)
                self._reach_anew()
        elif len(chunks[-1].slots) < CHUNK:
            self._own(len(chunks) - 1).append(nack)
        else:
            self._reach = append(self._reach, self._reach_of(last))
            chunks.append(Chunk([nack]))

    def _has(self, at: i64, place: i64, nack: Nack) -> bool:
        return at < len(self.chunks) and self.chunks[at].holds(place, nack)

    def remove_found(self) -> None:
        """Take out the entry that was found last; the one behind it is near then."""
        at = self.found_chunk
        place = self.found_place
        self.size -= 1
        chunk = self._own(at)
        place = chunk.pop(place)
        if place >= len(chunk.slots):
            if not chunk.size:
                self._remove_chunk(at)
            else:
                at += 1
            place = 0
        self._near = at
        self._near_place = place

    def _remove_chunk(self, at: i64) -> None:
        self.chunks.pop(at)
        last: i64 = len(self._reach) - 1
        if last >= 0:
            self._reach, _ = pop(self._reach, min(at, last))

    def remove(self, nack: Nack, other: _Chunks) -> None:
        """Take out an entry that is there, perhaps where ``other`` found it just now."""
        self.locate(nack, other)
        self.remove_found()

    def locate(self, nack: Nack, other: _Chunks) -> None:
        """Find an entry that is there, perhaps where ``other`` found it just now."""
        at = other.found_chunk
        place = other.found_place
        if not self._has(at, place, nack):
            at = self._near
            place = self._near_place
            if not self._has(at, place, nack):
                major, minor = self._key(nack)
                at = self._find(0, major, minor)
                place = self._place_of(at, major, minor)
        self.found_chunk = at
        self.found_place = place

    def drop_all_of(self, consumer: Holder, held: NacksById) -> None:
        """Take out every entry of one consumer, which are those of ``held``.

        Complexity: O(k log n) for k entries far apart, less for those side by side; at most O(n).
        """
        self.size -= held.size
        if held.size > self.size:
            self.chunks = _without(self.chunks, consumer)
            self._reach_anew()
            return
        for chunk in held.chunks:
            nacks = chunk.live()
            low = 0
            while low < len(nacks):
                if not self.chunks:  # all went with others that were met before
                    return
                major, minor = self._key(nacks[low])
                at = self._find(0, major, minor)
                own = self.chunks[at]
                first = own.first()
                last = own.last()
                high = low + 1
                while high < len(nacks) and not (
                    self._is_before(nacks[high], first) or self._is_before(last, nacks[high])
                ):
                    high += 1
                if high - low < FILTER_FROM:
                    own = self._own(at)
                    for number in range(low, high):
                        major, minor = self._key(nacks[number])
                        place = self._place_of(at, major, minor)
                        if own.holds(place, nacks[number]):
                            own.pop(place)
                else:
                    own = Chunk([nack for nack in own.live() if nack.consumer is not consumer])
                    self.chunks[at] = own
                if not own.size:
                    self._remove_chunk(at)
                low = high

    def _own(self, at: i64) -> Chunk:
        """Return a chunk that may be changed."""
        return self.chunks[at]

    def _place_of(self, at: i64, major: int, minor: int) -> i64:
        """Return the place in a chunk of (major, minor); if it is not there, where to insert it.

        Mostly entries were delivered as they were added, and so stand at equal distances.
        """
        chunk = self.chunks[at]
        low = chunk.start
        high: i64 = len(chunk.slots)
        reach = self._reach
        left: i64 = -1
        right = high - 1
        by_minor = False
        if 0 < at < len(reach) and reach[at - 1] != reach[at]:
            before = reach[at - 1]
            after = reach[at]
        else:
            left = low
            first = self._key(chunk.first())
            last = self._key(chunk.last())
            by_minor = first[0] == last[0]
            before = _half(first, by_minor)
            after = _half(last, by_minor)
        wanted = _half((major, minor), by_minor)
        guesses = GUESSES
        while low < high:
            if guesses and before < wanted < after:
                guesses -= 1
                middle = evenly(left, right, before, after, wanted)
                middle = max(low, min(middle, high - 1))
            else:
                middle = (low + high) >> 1
            place = chunk.entry_from(middle)
            if place >= high:
                high = middle
                continue
            found = self._key(chunk.at(place))
            if found[1] == minor and found[0] == major:
                return place
            if is_below(found[0], found[1], major, minor):
                low = place + 1
                left = place
                before = _half(found, by_minor)
            else:
                high = middle
                right = place
                after = _half(found, by_minor)
        return low

    def _ends_before(self, number: i64, major: int, minor: int) -> bool:
        last = self._key(self.chunks[number].last())
        return is_below(last[0], last[1], major, minor)

    def _reach_of(self, nack: Nack) -> i64:
        return min(self._key(nack)[0], REACH_MAX)

    def _reach_anew(self) -> None:
        self._reach = vec[i64]()
        for number in range(len(self.chunks) - 1):
            self._reach = append(self._reach, self._reach_of(self.chunks[number].last()))

    # What an order says of itself: methods that each of the two has to have.

    def _key(self, nack: Nack) -> tuple[int, int]:
        """Return the key that the list is ordered by."""
        raise NotImplementedError

    def _is_before(self, one: Nack, other: Nack) -> bool:
        raise NotImplementedError


class NacksById(_Chunks):
    """Pending entries in ID order, each ID once."""

    def get(self, ms: int, seq: int) -> Nack | None:
        """Return the entry with this ID, or None."""
        chunks = self.chunks
        if not chunks:
            return None
        near = self._near
        near_place = self._near_place
        if self._in_order and near < len(chunks):
            found = _with_id(chunks[near], near_place, ms, seq)
            if found is not None:
                self.found_chunk = near
                self.found_place = near_place
                return found
        at = self._find(0, ms, seq)
        place = self._place_of(at, ms, seq)
        found = _with_id(chunks[at], place, ms, seq)
        if found is not None:
            self._in_order = at == near and place == near_place
            self.found_chunk = at
            self.found_place = place
        return found

    def first(self) -> Nack | None:
        """Return the entry with the lowest ID."""
        return self.chunks[0].first() if self.chunks else None

    def last(self) -> Nack | None:
        """Return the entry with the highest ID."""
        return self.chunks[-1].last() if self.chunks else None

    def from_id(self, ms: int, seq: int, most: int) -> list[Nack]:
        """Return up to ``most`` entries (0: all) from (ms, seq) on, in ID order."""
        found: list[Nack] = []
        if not self.chunks:
            return found
        at = self._find(0, ms, seq)
        place = self._place_of(at, ms, seq)
        while at < len(self.chunks):
            chunk = self.chunks[at]
            if place or (most and most - len(found) < chunk.size):
                for number in range(max(place, chunk.start), len(chunk.slots)):
                    nack = chunk.slots[number]
                    if nack is not None:
                        found.append(nack)
                        if len(found) == most:
                            return found
            else:
                found.extend(chunk.live())
            place = 0
            at += 1
        return found

    def between(
        self, start: tuple[int, int], end: tuple[int, int], most: int, latest_ms: i64
    ) -> list[Nack]:
        """Return up to ``most`` entries from ``start`` to ``end``, both included, in ID order.

        What was delivered later than ``latest_ms`` is left out; the released stay in.
        Complexity: O(log n + entries met).
        """
        found: list[Nack] = []
        if most <= 0 or not self.chunks:
            return found
        at = self._find(0, start[0], start[1])
        place = self._place_of(at, start[0], start[1])
        end_ms, end_seq = end
        while at < len(self.chunks):
            chunk = self.chunks[at]
            for number in range(max(place, chunk.start), len(chunk.slots)):
                nack = chunk.slots[number]
                if nack is None:
                    continue
                if nack.ms > end_ms or (nack.ms == end_ms and nack.seq > end_seq):
                    return found
                if nack.consumer is None or nack.delivery_ms <= latest_ms:
                    found.append(nack)
                    if len(found) == most:
                        return found
            place = 0
            at += 1
        return found

    def _key(self, nack: Nack) -> tuple[int, int]:
        return nack.ms, nack.seq

    def _is_before(self, one: Nack, other: Nack) -> bool:
        return is_below(one.ms, one.seq, other.ms, other.seq)


def _half(key: tuple[int, int], minor: bool) -> i64:
    """Return one half of the key of an entry, cut to what a search compares."""
    return min(key[1] if minor else key[0], REACH_MAX)


def _with_id(chunk: Chunk, place: i64, ms: int, seq: int) -> Nack | None:
    """Return the entry at a place, maybe behind the last, of a chunk, if it has this ID."""
    nack = chunk.slots[place] if place < len(chunk.slots) else None
    return nack if nack is not None and nack.seq == seq and nack.ms == ms else None


def _without(chunks: list[Chunk], consumer: Holder) -> list[Chunk]:
    kept: list[Chunk] = []
    last: list[Nack] = []
    for chunk in chunks:
        rest = [nack for nack in chunk.live() if nack.consumer is not consumer]
        if not last:
            last = rest  # which may be longer than a chunk that is filled from its end
        elif len(last) + len(rest) <= CHUNK:
            last.extend(rest)
        else:
            kept.append(Chunk(last))
            last = rest
    if last:
        kept.append(Chunk(last))
    return kept


class NacksByTime(_Chunks):
    """Pending entries in the order in which they may be claimed.

    ``shared`` is None, or has the id() of chunks that a frozen group reads, too: such a chunk is
    replaced by a copy before it changes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shared: set[int] | None = None
        self._ticket: i64 = 0

    def add(self, nack: Nack) -> None:
        """Add an entry behind all that come before it by time."""
        self._ticket += 1
        nack.ticket = self._ticket
        super().add(nack)

    def last_order_ms(self) -> i64:
        """Return the place of the last entry by time; ``IN_ZONE`` without entries."""
        return self.chunks[-1].last().order_ms if self.chunks else IN_ZONE

    def delivered_by(self, latest_ms: int, most: int) -> list[Nack] | None:
        """Return all released or delivered at ``latest_ms`` or before; None for more than ``most``.

        Complexity: O(answer, and what was found deleted), up to ``most``.
        """
        found: list[Nack] = []
        latest_ms = max(latest_ms, IN_ZONE)  # the released come in whatever it is
        surely = 0  # of whole chunks, which are counted at little cost
        for chunk in self.chunks:
            if chunk.last().order_ms > latest_ms:
                break
            surely += chunk.size
            if surely > most:
                return None
        for chunk in self.chunks:
            if chunk.first().order_ms > latest_ms:
                break
            for nack in chunk.live():
                if nack.order_ms > latest_ms:
                    break
                found.append(nack)
            if len(found) > most:
                return None
        met = 0
        for at in range(len(self.chunks) - 1, -1, -1):
            chunk = self.chunks[at]
            if chunk.last().order_ms != GONE:
                break
            met += chunk.size
            if met > most:
                return None
            for nack in chunk.live():
                if nack.order_ms == GONE and (
                    nack.consumer is None or nack.delivery_ms <= latest_ms
                ):
                    found.append(nack)
        return None if len(found) > most else found

    def delivered_after(self, now_ms: i64, most: int) -> list[Nack]:
        """Return the last ones that consumers got later than ``now_ms``, up to about ``most``.

        Complexity: O(answer, and what was found deleted or is to go out later).
        """
        found: list[Nack] = []
        for chunk in reversed(self.chunks):
            if chunk.last().order_ms <= now_ms or len(found) >= most:
                break
            for nack in chunk.live():
                if nack.consumer is not None and nack.delivery_ms > now_ms:
                    found.append(nack)
        return found

    def from_time(self, after_ms: i64, until_ms: i64, most: int) -> list[Nack]:
        """Return up to ``most`` (0: all) in order, later than ``after_ms``, up to ``until_ms``."""
        found: list[Nack] = []
        if not self.chunks:
            return found
        at = self._find(0, after_ms + 1, 0)
        place = self._place_of(at, after_ms + 1, 0)
        for number in range(at, len(self.chunks)):
            chunk = self.chunks[number]
            for slot in range(max(place, chunk.start), len(chunk.slots)):
                nack = chunk.slots[slot]
                if nack is not None:
                    if nack.order_ms > until_ms:
                        return found
                    found.append(nack)
                    if len(found) == most:
                        return found
            place = 0
        return found

    def move_to_end(self, nacks: list[Nack]) -> None:
        """Put entries that are there behind all others, as ``GONE``."""
        if len(nacks) <= MOVE_ALL_ABOVE:
            for nack in nacks:
                self.remove(nack, self)
                nack.order_ms = GONE
                self.add(nack)
            return
        for nack in nacks:
            nack.order_ms = GONE
        self._order_anew()

    def revive(self) -> None:
        """Put entries that are ``GONE`` where they belong by time: deleted IDs are used again.

        Among equals they come last, in the order in which they were found deleted.
        """
        gone: list[Nack] = []
        while self.chunks and self.chunks[-1].last().order_ms == GONE:
            nack = self.chunks[-1].last()
            self.remove(nack, self)
            gone.append(nack)
        for nack in reversed(gone):
            nack.order_ms = IN_ZONE if nack.consumer is None else nack.delivery_ms
            self.add(nack)

    def _order_anew(self) -> None:
        chunks = self.chunks
        self.chunks = []
        self._reach = vec[i64]()
        self.size = 0
        gone: list[Nack] = []
        for chunk in chunks:
            for nack in chunk.live():
                if nack.order_ms == GONE:
                    gone.append(nack)
                else:
                    self.add(nack)
        for nack in gone:
            self.add(nack)

    def _key(self, nack: Nack) -> tuple[int, int]:
        return int(nack.order_ms), int(nack.ticket)

    def _is_before(self, one: Nack, other: Nack) -> bool:
        if one.order_ms != other.order_ms:
            return one.order_ms < other.order_ms
        return one.ticket < other.ticket

    def _own(self, at: i64) -> Chunk:
        chunk = self.chunks[at]
        if self.shared is not None and id(chunk) in self.shared:
            chunk = chunk.copy()
            self.chunks[at] = chunk
        return chunk


@trait
class NackKeeper:
    """Gets reports from a group of changes of its pending entries."""

    def keep(self, nack: Nack) -> None:
        """Keep a pending entry as it is, because it is about to change."""
        raise NotImplementedError
