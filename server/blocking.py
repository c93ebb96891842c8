"""Clients that wait for keys: who waits, for what, until when, and who can be served now.

A blocked client is a ``Waiter``: its request, to be run again. It stands under each of its keys.
Readers of streams say after which ID they want an entry. They stand with those that want the same,
mostly all of them, and these lines stand in the order of the IDs. So a key that is ready yields
only those whose ID has been passed: finding whom to wake costs the number of clients woken, not the
number parked. Readers for a consumer group stand by group, in order of arrival, for what one of
them is given the others are not: they are woken one by one while the group has something to give.
All others stand in order of arrival. Whoever is woken is run again in order of arrival, counted by
ticket; one that still cannot be served gets a new ticket and keeps its deadline.

Time alone makes pending entries old enough to be claimed, so each group that has some has an alarm
for each idle time that its readers ask for.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from sortedcontainers import SortedDict

if TYPE_CHECKING:
    from server.call import Parked
    from server.registry import Command
    from server.session import Session

SMALL_HEAP: Final = 64
Place = tuple[int, bytes]  # index of the database, key
SPARE_ALARMS: Final = 64


class Waiter:
    """A blocked client and the request to run again."""

    def __init__(self, session: Session, row: Command, parked: Parked, ticket: int) -> None:
        self.session: Final = session
        self.row: Final = row
        self.parked = parked
        self.ticket = ticket
        self.deadline_ms: Final = parked.deadline_ms
        self.db_index: Final = session.db.index
        self.active = True


class GroupQueue:
    """The waiters of one key that read for one consumer group.

    Attributes:
        waiters: all of them, by ticket, first come first.
        consumers: how many of them read as each consumer.
        claimers: those that also claim, by the idle time they ask for.
        alarms: for such an idle time, the moment at which something may be claimed.
        alarmed_ms: the time of delivery that they were set for; none of them is for a later one.
    """

    def __init__(self) -> None:
        self.waiters: OrderedDict[int, Waiter] = OrderedDict()
        self.consumers: dict[bytes, int] = {}
        self.claimers: dict[int, OrderedDict[int, Waiter]] = {}
        self.alarms: dict[int, int] = {}
        self.alarmed_ms = 0

    def add(self, waiter: Waiter) -> None:
        """Let a waiter stand at the end; it may name the key twice."""
        if waiter.ticket in self.waiters:
            return
        self.waiters[waiter.ticket] = waiter
        consumer = waiter.parked.consumer
        self.consumers[consumer] = self.consumers.get(consumer, 0) + 1
        claim_ms = waiter.parked.claim_ms
        if claim_ms >= 0:
            line = self.claimers.get(claim_ms)
            if line is None:
                line = self.claimers[claim_ms] = OrderedDict()
            line[waiter.ticket] = waiter

    def remove(self, waiter: Waiter) -> None:
        """Let a waiter go, if it stands here."""
        if self.waiters.pop(waiter.ticket, None) is None:
            return
        consumer = waiter.parked.consumer
        self.consumers[consumer] -= 1
        if not self.consumers[consumer]:
            del self.consumers[consumer]
        claim_ms = waiter.parked.claim_ms
        if claim_ms >= 0:
            line = self.claimers[claim_ms]
            del line[waiter.ticket]
            if not line:
                del self.claimers[claim_ms]
                self.alarms.pop(claim_ms, None)

    def first(self) -> Waiter | None:
        """Who came first."""
        for waiter in self.waiters.values():
            return waiter
        return None

    def first_claimer(self, idle_ms: int) -> Waiter | None:
        """Who came first of those that take what has been idle for ``idle_ms``."""
        found: Waiter | None = None
        for claim_ms, line in self.claimers.items():
            if claim_ms <= idle_ms:
                for waiter in line.values():
                    if found is None or waiter.ticket < found.ticket:
                        found = waiter
                    break
        return found


class Queue:
    """The waiters of one key.

    Attributes:
        groups: those that read for a group, by its name.
        readers: other readers of a stream, by the (ms, seq) that is to be passed, by ticket.
        others: everybody else, by ticket.
    """

    def __init__(self) -> None:
        self.groups: dict[bytes, GroupQueue] = {}
        self.readers: SortedDict[tuple[int, int], dict[int, Waiter]] = SortedDict()
        self.others: dict[int, Waiter] = {}

    def __len__(self) -> int:
        return len(self.readers) + len(self.others) + len(self.groups)


class Blocking:
    """All blocked clients, by key."""

    def __init__(self) -> None:
        self.queues: dict[Place, Queue] = {}
        self.key_count = 0  # keys that somebody waits for
        self.group_key_count = 0  # keys that somebody reads for a group
        self.client_count = 0
        self.deadline_count = 0
        self.ready: dict[Place, None] = {}  # keys to look at after the command at hand
        self._tickets = 0
        self._deadlines: list[tuple[int, int, Waiter]] = []
        self._alarms: list[tuple[int, Place, bytes, int]] = []  # moment, key, group, idle time
        self._alarms_bound = SPARE_ALARMS  # how long they may become before the stale ones go

    def park(self, session: Session, row: Command, parked: Parked) -> Waiter:
        """Let ``session`` wait."""
        self._tickets += 1
        waiter = Waiter(session, row, parked, self._tickets)
        session.waiter = waiter
        self.client_count += 1
        if waiter.deadline_ms:
            self.deadline_count += 1
            heappush(self._deadlines, (waiter.deadline_ms, waiter.ticket, waiter))
        self._stand(waiter)
        return waiter

    def park_again(self, waiter: Waiter, parked: Parked) -> None:
        """Move a waiter that could not be served to the end of its queues."""
        self._leave(waiter)
        self._tickets += 1
        waiter.ticket = self._tickets
        waiter.parked = parked
        self._stand(waiter)

    def unpark(self, session: Session) -> None:
        """End the wait of ``session``, if it waits.

        Its deadline stays in the heap until it surfaces, or most of the heap is over.
        """
        waiter = session.waiter
        if waiter is None:
            return
        self._leave(waiter)
        waiter.active = False
        session.waiter = None
        self.client_count -= 1
        if waiter.deadline_ms:
            self.deadline_count -= 1
            deadlines = self._deadlines
            if len(deadlines) > SMALL_HEAP and len(deadlines) > 4 * self.deadline_count:
                self._deadlines = [each for each in deadlines if each[2].active]
                heapify(self._deadlines)

    def key_ready(self, db: int, key: bytes) -> None:
        """Note that who waits for ``key`` may be served, if somebody does."""
        place = (db, key)
        if place in self.queues:
            self.ready[place] = None

    def database_ready(self, db: int) -> None:
        """As ``key_ready``, for all keys of a database that was emptied or swapped."""
        for place in self.queues:
            if place[0] == db:
                self.ready[place] = None

    def candidates(self, place: Place, last_id: tuple[int, int] | None) -> list[Waiter]:
        """Who may be served at a key now, first come first.

        Args:
            last_id: the last ID of the stream at the key; None when there is no stream, which
                leaves its readers asleep.
        """
        queue = self.queues.get(place)
        if queue is None:
            return []
        found: list[Waiter] = list(queue.others.values())
        if last_id is not None and queue.readers:
            for after in queue.readers.irange(maximum=last_id, inclusive=(True, False)):
                found.extend(queue.readers[after].values())
            found.sort(key=attrgetter("ticket"))
        return found

    def groups_at(self, place: Place) -> list[bytes]:
        """The consumer groups that somebody reads for at a key."""
        queue = self.queues.get(place)
        return [] if queue is None else list(queue.groups)

    def group_queue(self, place: Place, group: bytes) -> GroupQueue | None:
        """Who reads for a group at a key, if anybody does."""
        queue = self.queues.get(place)
        return None if queue is None else queue.groups.get(group)

    def set_alarm(self, place: Place, group: bytes, claim_ms: int, moment_ms: int) -> None:
        """Look at a group's claiming readers at ``moment_ms``, or at an earlier moment set."""
        queue = self.group_queue(place, group)
        if queue is None or 0 < queue.alarms.get(claim_ms, 0) <= moment_ms:
            return
        queue.alarms[claim_ms] = moment_ms
        heappush(self._alarms, (moment_ms, place, group, claim_ms))
        if len(self._alarms) > self._alarms_bound:
            self._drop_stale_alarms()

    def next_alarm_ms(self) -> int:
        """The earliest moment to look at a group, or 0."""
        alarms = self._alarms
        while alarms and not self._is_set(alarms[0]):
            heappop(alarms)
        return alarms[0][0] if alarms else 0

    def ring(self, now_ms: int) -> None:
        """Note as ready the keys at which something may be claimed by now."""
        alarms = self._alarms
        while alarms and alarms[0][0] <= now_ms:
            alarm = heappop(alarms)
            if self._is_set(alarm):
                del self.queues[alarm[1]].groups[alarm[2]].alarms[alarm[3]]
                self.ready[alarm[1]] = None

    def _is_set(self, alarm: tuple[int, Place, bytes, int]) -> bool:
        queue = self.group_queue(alarm[1], alarm[2])
        return queue is not None and queue.alarms.get(alarm[3]) == alarm[0]

    def _drop_stale_alarms(self) -> None:
        self._alarms = [alarm for alarm in self._alarms if self._is_set(alarm)]
        heapify(self._alarms)
        self._alarms_bound = 2 * len(self._alarms) + SPARE_ALARMS

    def next_deadline_ms(self) -> int:
        """The earliest deadline, or 0 when nobody has one."""
        deadlines = self._deadlines
        while deadlines and not deadlines[0][2].active:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else 0

    def due(self, now_ms: int) -> list[Waiter]:
        """Waiters whose deadline has come; they are still parked."""
        found: list[Waiter] = []
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now_ms:
            waiter = heappop(deadlines)[2]
            if waiter.active:
                found.append(waiter)
        return found

    def _stand(self, waiter: Waiter) -> None:
        parked = waiter.parked
        for number, key in enumerate(parked.keys):
            place = (waiter.db_index, key)
            queue = self.queues.get(place)
            if queue is None:
                queue = self.queues[place] = Queue()
                self.key_count += 1
            if parked.group is not None:
                self._stand_in_group(queue, waiter, parked.group)
            elif parked.after:
                line = queue.readers.get(parked.after[number])
                if line is None:
                    line = queue.readers[parked.after[number]] = {}
                line[waiter.ticket] = waiter
            else:
                queue.others[waiter.ticket] = waiter

    def _leave(self, waiter: Waiter) -> None:
        parked = waiter.parked
        for number, key in enumerate(parked.keys):
            place = (waiter.db_index, key)
            queue = self.queues.get(place)
            if queue is None:
                continue
            if parked.group is not None:
                self._leave_group(queue, waiter, parked.group)
            elif parked.after:
                line = queue.readers.get(parked.after[number])
                if line is not None:
                    line.pop(waiter.ticket, None)
                    if not line:
                        del queue.readers[parked.after[number]]
            else:
                queue.others.pop(waiter.ticket, None)
            if not len(queue):
                del self.queues[place]
                self.key_count -= 1

    def _stand_in_group(self, queue: Queue, waiter: Waiter, group: bytes) -> None:
        line = queue.groups.get(group)
        if line is None:
            if not queue.groups:
                self.group_key_count += 1
            line = queue.groups[group] = GroupQueue()
        line.add(waiter)

    def _leave_group(self, queue: Queue, waiter: Waiter, group: bytes) -> None:
        line = queue.groups.get(group)
        if line is None:
            return
        line.remove(waiter)
        if not line.waiters:
            del queue.groups[group]
            if not queue.groups:
                self.group_key_count -= 1
