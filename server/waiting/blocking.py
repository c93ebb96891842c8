"""All clients that wait: until when, and which keys are to be looked at.

Clients that are woken are run again in order of arrival, which their tickets count. One that still
cannot be served gets a new ticket and keeps its deadline.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from headrace.server.waiting.waiters import Alarm, Interest, Line, Parked, Queue, Sleeper, Waiter

SMALL_HEAP: Final = 64
SPARE_ALARMS: Final = 64


class Blocking:
    """All blocked clients, by key.

    Attributes:
        queues: of each database, by key.
        key_count: keys that somebody waits for.
        needed_key_count: keys that somebody waits for who needs the key.
        client_count: clients that wait.
        deadline_count: those of them that have a deadline.
        ready: the keys to look at after the command at hand.
    """

    def __init__(self, databases: int) -> None:
        self.queues: Final[list[dict[bytes, Queue]]] = [{} for _ in range(databases)]
        self.key_count = 0
        self.needed_key_count = 0
        self.client_count = 0
        self.deadline_count = 0
        self.ready: Final[list[Queue]] = []
        self._tickets = 0
        self._deadlines: list[tuple[int, int, Waiter]] = []
        self._alarms: list[tuple[int, int, Alarm]] = []
        self._alarms_made = 0
        self._alarms_bound = SPARE_ALARMS  # how long they may become before the stale ones go

    # Who waits

    def park(self, client: Sleeper, db_index: int, parked: Parked) -> Waiter:
        """Let a client of a database wait."""
        self._tickets += 1
        waiter = Waiter(client, db_index, parked, self._tickets)
        client.waiter = waiter
        self.client_count += 1
        if waiter.deadline_ms:
            self.deadline_count += 1
            heappush(self._deadlines, (waiter.deadline_ms, waiter.ticket, waiter))
        self._stand(waiter)
        return waiter

    def park_again(self, waiter: Waiter, parked: Parked) -> None:
        """Move a waiter that could not be served to the end of its lines."""
        self._leave(waiter)
        self._tickets += 1
        waiter.ticket = self._tickets
        waiter.parked = parked
        self._stand(waiter)

    def unpark(self, client: Sleeper) -> None:
        """End the wait of a client, if it waits.

        Its deadline stays in the heap until it surfaces, or most of the heap is over.
        """
        waiter = client.waiter
        if waiter is None:
            return
        self._leave(waiter)
        waiter.active = False
        client.waiter = None
        self.client_count -= 1
        if waiter.deadline_ms:
            self.deadline_count -= 1
            deadlines = self._deadlines
            if len(deadlines) > SMALL_HEAP and len(deadlines) > 4 * self.deadline_count:
                self._deadlines = [each for each in deadlines if each[2].active]
                heapify(self._deadlines)

    def line(self, db_index: int, key: bytes, name: bytes) -> Line | None:
        """The line of this name at a key, if anybody stands in it."""
        queue = self.queues[db_index].get(key)
        return None if queue is None else queue.lines.get(name)

    def _stand(self, waiter: Waiter) -> None:
        interest = waiter.parked.interest
        if interest is None:
            return
        queues = self.queues[waiter.db_index]
        for number, key in enumerate(waiter.parked.keys):
            queue = queues.get(key)
            if queue is None:
                queue = queues[key] = Queue(waiter.db_index, key)
                self.key_count += 1
            line = queue.lines.get(interest.name)
            if line is None:
                line = self._begin_line(queue, interest)
            line.add(waiter, number)
            waiter.lines.append(line)

    def _leave(self, waiter: Waiter) -> None:
        for number, line in enumerate(waiter.lines):
            line.remove(waiter, number)
            if line.is_empty():
                self._end_line(line)
        waiter.lines.clear()

    def _begin_line(self, queue: Queue, interest: Interest) -> Line:
        line = queue.lines[interest.name] = interest.new_line(queue)
        if line.needs_key:
            if not queue.key_needed_by:
                self.needed_key_count += 1
            queue.key_needed_by += 1
        return line

    def _end_line(self, line: Line) -> None:
        queue = line.queue
        if queue.lines.pop(line.name, None) is None:  # the waiter named the key twice
            return
        if line.needs_key:
            queue.key_needed_by -= 1
            if not queue.key_needed_by:
                self.needed_key_count -= 1
        if not queue.lines:
            del self.queues[queue.db_index][queue.key]
            self.key_count -= 1

    # Keys that are ready

    def key_ready(self, db: int, key: bytes) -> None:
        """Note that the clients that wait for ``key`` may be served, if there are any."""
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

    # Alarms

    def set_alarm(self, alarm: Alarm) -> None:
        """Have a line looked at when its alarm comes."""
        self._alarms_made += 1
        heappush(self._alarms, (alarm.moment_ms, self._alarms_made, alarm))
        if len(self._alarms) > self._alarms_bound:
            self._alarms = [each for each in self._alarms if each[2].is_set]
            heapify(self._alarms)
            self._alarms_bound = 2 * len(self._alarms) + SPARE_ALARMS

    def next_alarm_ms(self) -> int:
        """The earliest moment to look at a line, or 0."""
        alarms = self._alarms
        while alarms and not alarms[0][2].is_set:
            heappop(alarms)
        return alarms[0][0] if alarms else 0

    def ring(self, now_ms: int) -> None:
        """Note as ready the keys whose alarms have come by now."""
        alarms = self._alarms
        while alarms and alarms[0][0] <= now_ms:
            alarm = heappop(alarms)[2]
            if alarm.is_set:
                alarm.is_set = False
                alarm.line.rang(alarm)
                self._note_ready(alarm.line.queue)

    # Deadlines

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
