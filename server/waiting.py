"""Blocked clients: their lines at each key, their deadlines, and which of them is served next.

Clients that are woken are run again in order of arrival, which their tickets count. A client that
still cannot be served gets a new ticket and keeps its deadline.

**Waiting for an element of a collection.** Each element goes to one client. A type of collection
has one ``ElementOf``, which all its blocking commands share. An empty collection leaves the
keyspace, so a key that holds one has an element, and the first client in line is run. A key without
a value, or with one of another type, leaves the clients waiting. A client that wants several
elements at once has an ``ElementOf`` of its own. While there are too few it keeps its place in the
line, and those behind it are served.
"""

from __future__ import annotations

from abc import abstractmethod
from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import trait


class Parked:
    """The reply of a blocking command that must wait.

    Args:
        keys: where to wait.
        deadline_ms: when to give up, in milliseconds since 1970, and of ``monotonic_ms`` once the
            client waits; 0 is never.
        argv: the request to run again, with what must not move (``$``) resolved.
        timeout_reply: what the client gets at the deadline.
        interest: what is waited for at each key; None where there are no keys.
    """

    def __init__(
        self,
        keys: list[bytes],
        deadline_ms: int,
        argv: list[bytes],
        timeout_reply: object,
        interest: Interest | None,
    ) -> None:
        self.keys: Final = keys
        self.deadline_ms = deadline_ms
        self.argv: Final = argv
        self.timeout_reply = timeout_reply
        self.interest: Final = interest


class Interest:
    """The thing that a client waits for at its keys. Each kind of waiting is a class of its own.

    Args:
        name: of its line at each key: the same for all clients that are served by one rule.
        needs_key: whether the wait ends with an error when the key goes away.
    """

    def __init__(self, name: bytes, needs_key: bool) -> None:
        self.name: Final = name
        self.needs_key: Final = needs_key

    @abstractmethod
    def new_line(self, queue: Queue) -> Line:
        """Return a new line, for a key where no client waits for this yet."""


@trait
class Sleeper:
    """A client, as far as waiting is concerned; ``waiter`` is its wait, None while it has none."""

    waiter: Waiter | None


class Waiter:
    """A client that waits.

    Attributes:
        lines: its lines, one for each of its keys.
        ticket: the lower, the earlier it came; new for a client that was run again in vain.
    """

    def __init__(self, client: Sleeper, db_index: int, parked: Parked, ticket: int) -> None:
        self.client: Final = client
        self.db_index: Final = db_index
        self.parked = parked
        self.lines: list[Line] = []
        self.ticket = ticket
        self.deadline_ms: Final = parked.deadline_ms
        self.active = True


class Line:
    """The clients that wait for one kind of thing at one key; one of the two classes below."""

    def __init__(self, queue: Queue, interest: Interest) -> None:
        self.queue: Final = queue
        self.name: Final = interest.name
        self.needs_key: Final = interest.needs_key

    @abstractmethod
    def add(self, waiter: Waiter, number: int) -> None:
        """Add a waiter at the end, for the key of this number among its keys.

        It may stand here already, because it may name a key twice.
        """

    @abstractmethod
    def remove(self, waiter: Waiter, number: int) -> None:
        """Remove a waiter, if it stands here."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether no client waits here."""

    @abstractmethod
    def waiters(self) -> list[Waiter]:
        """Return all of them. Complexity: O(waiters)."""

    def ripens(self) -> bool:
        """Return whether time alone may let a client be served: then ``new_alarms`` is called."""
        return False

    def new_alarms(self, value: object | None, now_ms: int) -> list[Alarm]:
        """Return the alarms that are to be set now, for a key with this value or None."""
        return []

    def rang(self, alarm: Alarm) -> None:
        """Note that one of the alarms has come, and is not set any more."""


class SharedLine(Line):
    """A line whose waiters may all be served by the same change."""

    @abstractmethod
    def candidates(self, value: object | None) -> list[Waiter]:
        """Return the waiters that may be served now, for this value or None; first come first.

        Complexity: is to depend on the number found, and not on the number that wait.
        """


class ExclusiveLine(Line):
    """A line whose waiters are served one by one, because each takes something away."""

    def __init__(self, queue: Queue, interest: Interest) -> None:
        super().__init__(queue, interest)
        self.arrivals: Final = Arrivals()

    def add(self, waiter: Waiter, number: int) -> None:
        self.arrivals.add(waiter)

    def remove(self, waiter: Waiter, number: int) -> None:
        self.arrivals.remove(waiter)

    def is_empty(self) -> bool:
        return not self.arrivals.waiters

    def waiters(self) -> list[Waiter]:
        return list(self.arrivals.waiters.values())

    @abstractmethod
    def next(self, value: object | None, now_ms: int) -> Waiter | None:
        """Return the next waiter to serve; None when ``value`` has too little left for any."""


class Alarm:
    """A moment, by the time of day, to look at a line, though nothing happens to its key."""

    def __init__(self, line: Line, number: int, moment_ms: int) -> None:
        self.line: Final = line
        self.number: Final = number
        self.moment_ms: Final = moment_ms
        self.is_set = True


class Queue:
    """All clients that wait for one key.

    Attributes:
        lines: by name; the line that began first is looked at first.
        key_needed_by: how many of the lines need the key.
        is_ready: whether they are to be looked at after the current command.
    """

    def __init__(self, db_index: int, key: bytes) -> None:
        self.db_index: Final = db_index
        self.key: Final = key
        self.lines: Final[dict[bytes, Line]] = {}
        self.key_needed_by = 0
        self.is_ready = False

    def waiters(self) -> list[Waiter]:
        """Return all of them. Complexity: O(waiters)."""
        found: list[Waiter] = []
        for line in self.lines.values():
            found += line.waiters()
        return found


SPARE_TICKETS: Final = 64


class Arrivals:
    """Waiters by ticket, in order of arrival. Any may leave; the first is found at little cost."""

    def __init__(self) -> None:
        self.waiters: Final[dict[int, Waiter]] = {}
        self._tickets: list[int] = []  # all that came, or those left after many had gone
        self._gone = 0  # how many at the front of these are surely gone

    def add(self, waiter: Waiter) -> None:
        """Add a waiter at the end; it may name the key twice."""
        ticket = waiter.ticket
        if ticket in self.waiters:
            return
        self.waiters[ticket] = waiter
        if len(self._tickets) < 2 * len(self.waiters) + SPARE_TICKETS:
            self._tickets.append(ticket)
        else:
            self._tickets = list(self.waiters)
            self._gone = 0

    def remove(self, waiter: Waiter) -> bool:
        """Remove a waiter; False when it does not stand here."""
        if waiter.ticket not in self.waiters:
            return False
        del self.waiters[waiter.ticket]
        return True

    def first(self) -> Waiter | None:
        """Return the first waiter, without a walk past those that left, as in ``waiters``."""
        tickets = self._tickets
        while self._gone < len(tickets):
            waiter = self.waiters.get(tickets[self._gone])
            if waiter is not None:
                return waiter
            self._gone += 1
        return None


SMALL_HEAP: Final = 64
SPARE_ALARMS: Final = 64


_NO_QUEUES: Final[dict[bytes, Queue]] = {}


class Blocking:
    """All blocked clients, by key.

    Attributes:
        key_count: keys with waiting clients; needed_key_count: those whose clients need the key.
        client_count: clients that wait; deadline_count: those of them that have a deadline.
        ready: the keys to look at after the current command.
    """

    def __init__(self) -> None:
        self._queues: Final[dict[int, dict[bytes, Queue]]] = {}
        self.key_count = 0
        self.needed_key_count = 0
        self.client_count = 0
        self.deadline_count = 0
        self.ready: Final[list[Queue]] = []
        self._tickets = 0
        self._deadlines: list[tuple[int, int, Waiter]] = []
        self._alarms: list[tuple[int, int, Alarm]] = []
        self._alarms_made = 0
        self._alarms_bound = SPARE_ALARMS  # their greatest length before stale ones are removed

    # Waiting clients

    def queues(self, db: int) -> dict[bytes, Queue]:
        """Return who waits in a database, by key; not to be changed."""
        return self._queues.get(db, _NO_QUEUES)

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
        """End the wait of a client, if any; its deadline is removed from the heap later."""
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
        """Return the line of this name at a key, if any client stands in it."""
        queue = self.queues(db_index).get(key)
        return None if queue is None else queue.lines.get(name)

    def _stand(self, waiter: Waiter) -> None:
        interest = waiter.parked.interest
        if interest is None:
            return
        queues = self._queues.setdefault(waiter.db_index, {})
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
            del self._queues[queue.db_index][queue.key]
            self.key_count -= 1

    # Keys that are ready

    def key_ready(self, db: int, key: bytes) -> None:
        """Note that the clients that wait for ``key`` may be served, if there are any."""
        queue = self.queues(db).get(key)
        if queue is not None:
            self._note_ready(queue)

    def database_ready(self, db: int) -> None:
        """As ``key_ready``, for all keys of a database that was emptied or swapped."""
        for queue in self.queues(db).values():
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
        """Return the earliest moment to look at a line, or 0."""
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
        """Return the earliest deadline, or 0 when no client has one."""
        deadlines = self._deadlines
        while deadlines and not deadlines[0][2].active:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else 0

    def due(self, now_ms: int) -> list[Waiter]:
        """Return the waiters whose deadline has come; they are still parked."""
        found: list[Waiter] = []
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now_ms:
            waiter = heappop(deadlines)[2]
            if waiter.active:
                found.append(waiter)
        return found


class ElementOf(Interest):
    """An element of a collection, of class ``type_``; ``least``: how many are wanted at least.

    ``name`` is that of the line, and of the type.
    """

    def __init__(self, name: bytes, type_: type[object], least: int = 1) -> None:
        super().__init__(name, False)
        self.type: Final = type_
        self.least: Final = least

    def how_many(self, value: object) -> int:
        """Return how many elements a collection has; called where a client wants more than one."""
        return 1

    def new_line(self, queue: Queue) -> Line:
        return _ElementLine(queue, self)


class _ElementLine(ExclusiveLine):
    def __init__(self, queue: Queue, interest: ElementOf) -> None:
        super().__init__(queue, interest)
        self._interest: Final = interest

    def next(self, value: object | None, now_ms: int) -> Waiter | None:
        if not isinstance(value, self._interest.type):
            return None
        first = self.arrivals.first()
        if first is None or _least(first) == 1:
            return first
        there = self._interest.how_many(value)
        for waiter in self.arrivals.waiters.values():
            if _least(waiter) <= there:
                return waiter
        return None


def _least(waiter: Waiter) -> int:
    interest = waiter.parked.interest
    assert isinstance(interest, ElementOf)
    return interest.least
