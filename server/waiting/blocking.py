"""Clients that wait for keys: until when, and which keys are to be looked at.

A blocked client is a ``Waiter``: its request, to be run again. It stands in the queue of each of
its keys (``server.waiting.waiters``). Whoever is woken is run again in order of arrival, counted
by ticket; one that still cannot be served gets a new ticket and keeps its deadline.

Time alone makes pending entries old enough to be claimed, so each group that has some has an alarm
for each idle time that its readers ask for.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from headrace.server.waiting.waiters import GroupQueue, Queue, Waiter

if TYPE_CHECKING:
    from headrace.server.clients.session import Session
    from headrace.server.dispatch.call import Parked
    from headrace.server.dispatch.rows import Command

SMALL_HEAP: Final = 64
Alarm = tuple[int, int, bytes, bytes, int]  # moment, database, key, group, idle time
SPARE_ALARMS: Final = 64


class Blocking:
    """All blocked clients, by key."""

    def __init__(self, databases: int) -> None:
        # By key, of each database.
        self.queues: Final[list[dict[bytes, Queue]]] = [{} for _ in range(databases)]
        self.key_count = 0  # keys that somebody waits for
        self.group_key_count = 0  # keys that somebody reads for a group
        self.client_count = 0
        self.deadline_count = 0
        self.ready: Final[list[Queue]] = []  # to look at after the command at hand
        self._tickets = 0
        self._deadlines: list[tuple[int, int, Waiter]] = []
        self._alarms: list[Alarm] = []
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
        queue = self.queues[db].get(key)
        if queue is not None:
            self._note_ready(queue)

    def database_ready(self, db: int) -> None:
        """As ``key_ready``, for all keys of a database that was emptied or swapped."""
        for queue in self.queues[db].values():
            self._note_ready(queue)

    def _note_ready(self, queue: Queue) -> None:
        if not queue.is_ready:
            queue.is_ready = True
            self.ready.append(queue)

    def group_queue(self, db: int, key: bytes, group: bytes) -> GroupQueue | None:
        """Who reads for a group at a key, if anybody does."""
        queue = self.queues[db].get(key)
        return None if queue is None else queue.groups.get(group)

    def set_alarm(self, db: int, key: bytes, group: bytes, claim_ms: int, moment_ms: int) -> None:
        """Look at a group's claiming readers at ``moment_ms``, or at an earlier moment set."""
        queue = self.group_queue(db, key, group)
        if queue is None or 0 < queue.alarms.get(claim_ms, 0) <= moment_ms:
            return
        queue.alarms[claim_ms] = moment_ms
        heappush(self._alarms, (moment_ms, db, key, group, claim_ms))
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
                _, db, key, group, claim_ms = alarm
                del self.queues[db][key].groups[group].alarms[claim_ms]
                self.key_ready(db, key)

    def _is_set(self, alarm: Alarm) -> bool:
        moment_ms, db, key, group, claim_ms = alarm
        queue = self.group_queue(db, key, group)
        return queue is not None and queue.alarms.get(claim_ms) == moment_ms

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
        queues = self.queues[waiter.db_index]
        waiter.queues = []
        for number, key in enumerate(parked.keys):
            queue = queues.get(key)
            if queue is None:
                queue = queues[key] = Queue(waiter.db_index, key)
                self.key_count += 1
            waiter.queues.append(queue)
            if parked.group is not None:
                self._stand_in_group(queue, waiter, parked.group)
            elif parked.after:
                queue.readers.add(waiter, parked.after[number])
            else:
                queue.others[waiter.ticket] = waiter

    def _leave(self, waiter: Waiter) -> None:
        parked = waiter.parked
        queues = self.queues[waiter.db_index]
        for number, queue in enumerate(waiter.queues):
            if parked.group is not None:
                self._leave_group(queue, waiter, parked.group)
            elif parked.after:
                queue.readers.remove(waiter, parked.after[number])
            else:
                queue.others.pop(waiter.ticket, None)
            if queue.is_empty() and queue.key in queues:  # it may have named the key twice
                del queues[queue.key]
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
        if line.is_empty():
            del queue.groups[group]
            if not queue.groups:
                self.group_key_count -= 1
