"""Consumer groups: how far each has read, and which consumer holds which entries.

A group reads a stream once, its consumers together. It knows the ID it has delivered up to, and
its pending entries (``storage.stream.pel``). Whatever holds entries back (limits, delays, the order
of keys) is decided in one place: ``Group.room`` says how many new ones may go out now, and asks the
``Rules`` of policies where there are some.

A pending entry without a consumer may go out again at once, and stands in the zone; or at a moment,
which is its ``delivery_ms`` and its place by time; or at none (``HELD``).

Invariants: every Nack of a consumer's ``pel`` is the same object in its group's ``pel`` and
``by_time``, and its ``consumer`` is that consumer; a Nack without a consumer is in the zone, and
``zone`` counts those. Before a Nack is changed, ``assign`` or ``release`` is called, so that a
frozen group can keep what it was.
"""

from __future__ import annotations

from typing import Final, TypeVar, cast

from headrace.storage.stream.entry_log import EntryLog
from headrace.storage.stream.part import Part
from headrace.storage.stream.pel import (
    GONE,
    IN_ZONE,
    Chunk,
    Holder,
    Nack,
    NackKeeper,
    NacksById,
    NacksByTime,
)
from headrace.storage.stream.run import following, is_below
from headrace.storage.value import Freeable, Removed

Named = TypeVar("Named")
UNKNOWN: Final = -1
NEVER: Final = -1
HERE: Final = 0  # where a group is read; else it is the number of a region
ON_ITS_WAY: Final = -1
UNLIMITED: Final = -1
MOSTLY_IDLE: Final = 2000  # entries up to which those that are idle are looked at by time
# What one of these takes beside what it holds, about.
GROUP_BYTES: Final = 600
CONSUMER_BYTES: Final = 300
NACK_BYTES: Final = 104  # with its places in three lists


def by_name(named: dict[bytes, Named]) -> list[Named]:
    """Return groups of a stream, or consumers of a group, in byte order of their names."""
    if len(named) < 2:
        return list(named.values())
    return [named[name] for name in sorted(named)]


class Consumer(Holder):
    """A member of a group.

    Attributes:
        seen_ms: its last attempt to read or claim.
        active_ms: its last delivery or claim that brought something; ``NEVER`` before that.
    """

    def __init__(self, name: bytes, now_ms: int) -> None:
        super().__init__(name)
        self.seen_ms = now_ms
        self.active_ms = NEVER
        self.pel = NacksById()


class Position:
    """The position of a group in a stream of several regions: see ``regions.lanes.places``.

    Each region's entries come in order, and those of different regions do not. So one ID cannot
    tell how far a group has read.
    """

    def has_new(self, log: EntryLog) -> bool:
        """Return whether there is an entry that the group has not been given."""
        raise NotImplementedError

    def lag(self, log: EntryLog) -> int:
        """Return how many entries the group has not been given yet."""
        raise NotImplementedError

    def parts(self, log: EntryLog, count: int, most_bytes: int = 0) -> list[Part]:
        """Return where the next entries to be given are; see ``EntryLog.parts``."""
        raise NotImplementedError

    def with_namesakes(self, log: EntryLog, part: Part) -> list[Part]:
        """Return an entry, with those that other regions have given the same ID."""
        raise NotImplementedError

    def deliver(self, parts: list[Part]) -> None:
        """Count the entries of ``parts`` as given to the group."""
        raise NotImplementedError

    def is_to_come(self, log: EntryLog, ms: int, seq: int) -> bool:
        """Return whether the group has still to be given an entry that is there."""
        raise NotImplementedError

    def elsewhere(self, log: EntryLog) -> int:
        """Return the region that reads the group instead; ``HERE``, or ``ON_ITS_WAY`` here."""
        raise NotImplementedError

    def copy(self) -> Position:
        """Return an equal one."""
        raise NotImplementedError

    def used_bytes(self) -> int:
        """Return about how many bytes it takes."""
        raise NotImplementedError


class Rules:
    """Decides about a group by its policies: see ``policies.rules``.

    Attributes:
        undelivered: how many pending entries no consumer has been given yet; they count as lag.
        keeps_order: entries have to be acknowledged.
        most_new: how many new entries the present request may be given.
        new: those that were chosen for it; the group's position has passed them.
    """

    def __init__(self) -> None:
        self.undelivered = 0
        self.keeps_order = False
        self.most_new = UNLIMITED
        self.new: list[Part] = []

    def room(self, group: Group) -> int:
        """Return as ``Group.room``."""
        raise NotImplementedError

    def may_give(self, log: EntryLog, group: Group, now_ms: int) -> bool:
        """Return whether an entry may go out that ``has_new`` does not know of."""
        raise NotImplementedError

    def has_room_for(self, group: Group, consumer: bytes) -> bool:
        """Return whether a consumer may be given an entry that it does not hold."""
        raise NotImplementedError

    def is_late(self, group: Group, consumer: bytes, now_ms: int) -> bool:
        """Return whether a consumer holds an entry that it is to be given again."""
        raise NotImplementedError

    def delivered_before(self, nack: Nack) -> None:
        """Note that a claim has set the time of a delivery to one that is over."""
        raise NotImplementedError

    def next_ms(self, group: Group, now_ms: int) -> int:
        """Return when time alone lets something go out next, or happen; 0: never."""
        raise NotImplementedError

    def leaves(self, nack: Nack, dropped: bool) -> None:
        """Note that a pending entry is about to go to a consumer, or to be dropped."""
        raise NotImplementedError

    def moment_ms(self, log: EntryLog, nack: Nack) -> int:
        """Return from when on an entry may go out, in a region to which the group is moved."""
        raise NotImplementedError

    def reset(self) -> None:
        """Note that pending entries have changed otherwise: all is to be looked at anew."""
        raise NotImplementedError


class Group(Freeable):
    """One consumer group of a stream.

    Attributes:
        last_ms, last_seq: the last ID delivered.
        entries_read: how many entries that is, or ``UNKNOWN``.
        pel, by_time: all pending entries, in ID order and in the order of claiming.
        zone: how many of them are released.
        max_pending: the most pending entries at which new ones still go out; 0 is no limit.
        frozen: what keeps a pending entry as it is before it changes, or None.
        places: how far it has read where several regions write the stream; else None.
        rules: of its policies; None without.
        deliveries: how many there were since the start; redeliveries: not the first of an entry.
    """

    def __init__(self, name: bytes, last_ms: int, last_seq: int, entries_read: int) -> None:
        self.name: Final = name
        self.last_ms = last_ms
        self.last_seq = last_seq
        self.entries_read = entries_read
        self.pel = NacksById()
        self.by_time = NacksByTime()
        self.consumers: dict[bytes, Consumer] = {}
        self.zone = 0
        self.max_pending = 0
        self.frozen: NackKeeper | None = None
        self.places: Position | None = None
        self.rules: Rules | None = None
        self.deliveries = 0
        self.redeliveries = 0

    def create_consumer(self, name: bytes, now_ms: int) -> Consumer:
        """Add a consumer that is not there."""
        consumer = Consumer(name, now_ms)
        self.consumers[name] = consumer
        return consumer

    def delete_consumer(self, name: bytes) -> Removed[Chunk]:
        """Remove a consumer that is there, and all it holds, which is returned.

        Complexity: O(k log n) for its k of n entries, at most O(n); O(1) where no other holds any.
        """
        consumer = self.consumers.pop(name)
        held = consumer.pel
        consumer.pel = NacksById()  # its entries know it: a ring otherwise
        removed = Removed(held.size, held.chunks)
        if self.rules is not None:
            self.rules.reset()
        if held.size == self.pel.size:
            removed.pieces.extend(self.pel.chunks)
            removed.pieces.extend(self.by_time.chunks)
            self.pel = NacksById()
            self.by_time = NacksByTime()
        else:
            self.pel.drop_all_of(consumer, held)
            self.by_time.drop_all_of(consumer, held)
        return removed

    def idle_between(
        self,
        consumer: Consumer | None,
        start: tuple[int, int],
        end: tuple[int, int],
        most: int,
        latest_ms: int,
    ) -> list[Nack]:
        """Return up to ``most`` pending entries from ``start`` to ``end`` that are idle.

        Args:
            consumer: whose; None is all consumers', and the released ones.
            latest_ms: they were delivered at this moment or before, or are released.

        Complexity: O(what is idle for so long) where that is little, else O(entries met by ID).
        """
        pel = self.pel if consumer is None else consumer.pel
        if pel.size <= MOSTLY_IDLE:
            return pel.between(start, end, most, latest_ms)
        idle = self.by_time.delivered_by(latest_ms, MOSTLY_IDLE)
        if idle is None:
            return pel.between(start, end, most, latest_ms)
        found: list[Nack] = []
        for nack in idle:
            if (consumer is None or nack.consumer is consumer) and start <= _id(nack) <= end:
                found.append(nack)
        found.sort(key=_id)
        return found[:most]

    def room(self) -> int:
        """Return how many new entries may go out now; ``UNLIMITED`` where no limit holds."""
        if self.rules is not None:
            return self.rules.room(self)
        if self.max_pending:
            return max(0, self.max_pending - self.pel.size)
        return UNLIMITED

    def is_limited(self) -> bool:
        """Return whether others may go out when an entry is pending no more."""
        return self.max_pending != 0 or self.rules is not None

    def add_pending(self, ms: int, seq: int, consumer: Consumer | None, delivery_ms: int) -> Nack:
        """Make an entry pending that is not; with count 1.

        Without a consumer it may go out at ``delivery_ms``; 0 is at once, in the zone.
        """
        nack = Nack(ms, seq, consumer, delivery_ms)
        self.pel.add(nack)
        if consumer is None:
            nack.order_ms = delivery_ms or IN_ZONE
            self.zone += 1
        else:
            consumer.pel.add(nack)
        self.by_time.add(nack)
        return nack

    def restore_pending(
        self, ms: int, seq: int, consumer: Consumer | None, delivery_ms: int, count: int
    ) -> None:
        """Make an entry pending that is the last by time, as it was written to a snapshot.

        What comes behind an entry that was delivered later can only stand there because it was
        found deleted (``NacksByTime.move_to_end``).
        """
        nack = Nack(ms, seq, consumer, delivery_ms)
        nack.count = count
        last_ms = self.by_time.last_order_ms()
        if consumer is None:
            self.zone += 1
            nack.order_ms = delivery_ms or IN_ZONE
        else:
            consumer.pel.add(nack)
        if nack.order_ms < last_ms:
            nack.order_ms = GONE
        self.pel.add(nack)
        self.by_time.add(nack)

    def deliver(self, ms: int, seq: int, consumer: Consumer, now_ms: int) -> None:
        """Deliver a new entry to ``consumer``; one that is pending already starts anew with it."""
        last = self.pel.last()
        if last is not None and (ms < last.ms or (ms == last.ms and seq <= last.seq)):
            nack = self.pel.get(ms, seq)
            if nack is not None:
                self.assign(nack, consumer, now_ms)
                nack.count = 1
                return
        self.add_pending(ms, seq, consumer, now_ms)

    def assign(self, nack: Nack, consumer: Consumer, delivery_ms: int) -> None:
        """Hand a pending entry to ``consumer``, as delivered at ``delivery_ms``."""
        if self.frozen is not None:
            self.frozen.keep(nack)
        if self.rules is not None:
            self.rules.leaves(nack, False)
        if nack.consumer is not consumer:
            if nack.consumer is not None:
                _consumer(nack.consumer).pel.remove(nack, self.pel)
            else:
                self.zone -= 1
            nack.consumer = consumer
            consumer.pel.add(nack)
        self.by_time.remove(nack, self.pel)
        nack.delivery_ms = delivery_ms
        nack.order_ms = delivery_ms
        self.by_time.add(nack)

    def count_delivery(self, nack: Nack) -> None:
        """Count one more delivery of a pending entry."""
        self.deliveries += 1
        self.redeliveries += nack.count > 0
        nack.count_up()

    def settle_times(self, now_ms: int, most: int) -> int:
        """Set times that are later than now to now, because the clock was set back.

        Returns: how many pending entries that was; if ``most``, there may be more.
        """
        for consumer in self.consumers.values():
            consumer.seen_ms = min(consumer.seen_ms, now_ms)
            consumer.active_ms = min(consumer.active_ms, now_ms)
        late = self.by_time.delivered_after(now_ms, most)
        for nack in late:
            if nack.consumer is not None:
                self.assign(nack, _consumer(nack.consumer), now_ms)
        return len(late)

    def release(self, nack: Nack, until_ms: int = 0) -> None:
        """Take a pending entry from its consumer; it may go out again from a moment on.

        0 is at once, as the last of the zone; ``HELD`` is at no moment.
        """
        if self.frozen is not None:
            self.frozen.keep(nack)
        if self.rules is not None:
            self.rules.leaves(nack, False)
        if nack.consumer is not None:
            _consumer(nack.consumer).pel.remove(nack, self.pel)
            nack.consumer = None
            self.zone += 1
        self.by_time.remove(nack, self.pel)
        nack.delivery_ms = until_ms
        nack.order_ms = until_ms or IN_ZONE
        # The zone comes first by time, so its end is a place in the middle.
        self.by_time.add(nack)

    def drop(self, nack: Nack) -> None:
        """Take an entry out of the pending ones, because it was acknowledged, or is gone."""
        self.pel.locate(nack, self.pel)
        self._drop_found(nack)

    def _drop_found(self, nack: Nack) -> None:
        """Drop as ``drop`` what has just been found in ``pel``.

        It is found in all lists before it is taken out of any: each look may have to wait for
        memory, and those that stand close together wait together.
        """
        by_time = self.by_time
        if self.rules is not None:
            self.rules.leaves(nack, True)
        by_time.locate(nack, self.pel)
        holder = nack.consumer
        if holder is not None:
            consumer = cast("Consumer", holder)
            consumer.pel.locate(nack, self.pel)
            consumer.pel.remove_found()
        else:
            self.zone -= 1
        by_time.remove_found()
        self.pel.remove_found()

    def ack(self, ms: int, seq: int) -> bool:
        """Acknowledge an entry; False when it was not pending."""
        nack = self.pel.get(ms, seq)
        if nack is None:
            return False
        self._drop_found(nack)
        return True

    def free_some(self, most: int) -> bool:
        for consumer in self.consumers.values():
            if consumer.pel.chunks:
                del consumer.pel.chunks[-most:]
                return False
        self.consumers.clear()
        del self.pel.chunks[-most:]
        if self.pel.chunks:
            return False
        del self.by_time.chunks[-most:]
        return not self.by_time.chunks

    def used_bytes(self) -> int:
        """Return about how many bytes the group takes."""
        total = GROUP_BYTES + len(self.name) + NACK_BYTES * self.pel.size
        total += CONSUMER_BYTES * len(self.consumers)
        if self.places is not None:
            total += self.places.used_bytes()
        return total

    def copy(self) -> Group:
        """Return an equal group; the order by time, the zone's included, is kept."""
        twin = Group(self.name, self.last_ms, self.last_seq, self.entries_read)
        twin.max_pending = self.max_pending
        if self.places is not None:
            twin.places = self.places.copy()
        for consumer in self.consumers.values():
            other = twin.create_consumer(consumer.name, consumer.seen_ms)
            other.active_ms = consumer.active_ms
        for chunk in self.by_time.chunks:
            for nack in chunk.live():
                owner = None if nack.consumer is None else twin.consumers[nack.consumer.name]
                twin.add_pending(nack.ms, nack.seq, owner, nack.delivery_ms).count = nack.count
        return twin


def _consumer(holder: Holder) -> Consumer:
    """Return the holder of an entry as the consumer that it is: nothing else holds entries."""
    return cast("Consumer", holder)


def _id(nack: Nack) -> tuple[int, int]:
    return nack.ms, nack.seq


def has_tombstone_after(log: EntryLog, ms: int, seq: int) -> bool:
    """Return whether an entry at or after (ms, seq) may have been deleted."""
    if not log.length or (log.max_deleted_ms == 0 and log.max_deleted_seq == 0):
        return False
    return not is_below(log.max_deleted_ms, log.max_deleted_seq, ms, seq)


def estimate_position(log: EntryLog, ms: int, seq: int) -> int:
    """Return the number of entries added up to (ms, seq); ``UNKNOWN`` where no counter says it.

    Source: t_stream.c, streamEstimateDistanceFromFirstEverEntry.
    """
    place = (ms, seq)
    last = (log.last_ms, log.last_seq)
    max_deleted = (log.max_deleted_ms, log.max_deleted_seq)
    if not log.entries_added:
        return 0
    if not log.length and place <= last:
        return log.entries_added
    if place != (0, 0) and place < max_deleted:
        return UNKNOWN
    if place == last:
        return log.entries_added
    if place > last:
        return UNKNOWN
    first = log.first_id()
    if max_deleted == (0, 0) or max_deleted < first:
        if place < first:
            return log.entries_added - log.length
        if place == first:
            return log.entries_added - log.length + 1
    return UNKNOWN


def has_unread(log: EntryLog, group: Group) -> bool:
    """Return whether there is an entry that a group has not been given, by its position."""
    if group.places is not None:
        return group.places.has_new(log)
    return log.has_after(group.last_ms, group.last_seq)


def lag(log: EntryLog, group: Group) -> int:
    """Return how many live entries stand after the group's last ID.

    Counters do not give it, because the position can be set without them. Complexity: O(log n).
    """
    if group.places is not None:
        return group.places.lag(log)
    if not log.length or not is_below(group.last_ms, group.last_seq, log.last_ms, log.last_seq):
        return 0
    ms, seq = following(group.last_ms, group.last_seq)
    return log.length - log.count_before(ms, seq)
