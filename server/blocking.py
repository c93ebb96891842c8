"""Clients that wait for keys: who waits, for what, until when, and who can be served now.

A blocked client is a ``Waiter``: its request, to be run again. It stands under each of its keys.
Readers of streams say after which ID they want an entry and stand in that order, so a key that is
ready yields only those whose ID has been passed: finding whom to wake costs the number of clients
woken, not the number parked. All others stand in order of arrival. Whoever is woken is run again
in order of arrival, counted by ticket; one that still cannot be served gets a new ticket and keeps
its deadline.
"""

from __future__ import annotations

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


class Queue:
    """The waiters of one key.

    ``readers`` is ordered by the (ms, seq, ticket) that they wait to be passed, ``others`` by
    ticket.
    """

    def __init__(self) -> None:
        self.readers: SortedDict[tuple[int, int, int], Waiter] = SortedDict()
        self.others: SortedDict[int, Waiter] = SortedDict()

    def __len__(self) -> int:
        return len(self.readers) + len(self.others)


class Blocking:
    """All blocked clients, by key."""

    def __init__(self) -> None:
        self.queues: dict[Place, Queue] = {}
        self.key_count = 0  # keys that somebody waits for
        self.client_count = 0
        self.deadline_count = 0
        self.ready: dict[Place, None] = {}  # keys to look at after the command at hand
        self._tickets = 0
        self._deadlines: list[tuple[int, int, Waiter]] = []

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
            ms, seq = last_id
            for position in queue.readers.irange(maximum=(ms, seq, 0), inclusive=(True, False)):
                found.append(queue.readers[position])
            found.sort(key=attrgetter("ticket"))
        return found

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
            if parked.after:
                ms, seq = parked.after[number]
                queue.readers[(ms, seq, waiter.ticket)] = waiter
            else:
                queue.others[waiter.ticket] = waiter

    def _leave(self, waiter: Waiter) -> None:
        parked = waiter.parked
        for number, key in enumerate(parked.keys):
            place = (waiter.db_index, key)
            queue = self.queues.get(place)
            if queue is None:
                continue
            if parked.after:
                ms, seq = parked.after[number]
                queue.readers.pop((ms, seq, waiter.ticket), None)
            else:
                queue.others.pop(waiter.ticket, None)
            if not len(queue):
                del self.queues[place]
                self.key_count -= 1
