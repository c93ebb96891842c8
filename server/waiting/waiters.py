"""The clients that wait for one key, and which of them can be served now.

Readers of streams say after which ID they want an entry. They stand with those that want the same,
mostly all of them, and where these lines are many they stand in the order of the IDs. So a key that
is ready yields only those whose ID has been passed: finding whom to wake costs the number of
clients woken, not the number parked. Readers for a consumer group stand by group, in order of
arrival, for what one of them is given the others are not: they are woken one by one while the group
has something to give. All others stand in order of arrival.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from sortedcontainers import SortedList

from headrace.storage.stream.ids import is_below

if TYPE_CHECKING:
    from headrace.server.clients.session import Session
    from headrace.server.dispatch.call import Parked
    from headrace.server.dispatch.rows import Command

MANY_LINES: Final = 16  # that are kept in order: fewer are looked at one by one
SPARE_TICKETS: Final = 64


class Waiter:
    """A blocked client and the request to run again.

    Attributes:
        queues: where it stands, one for each of its keys.
        active: whether it waits.
    """

    def __init__(self, session: Session, row: Command, parked: Parked, ticket: int) -> None:
        self.session: Final = session
        self.row: Final = row
        self.parked = parked
        self.queues: list[Queue] = []
        self.ticket = ticket
        self.deadline_ms: Final = parked.deadline_ms
        self.db_index: Final = session.db.index
        self.active = True


class Line:
    """Waiters in order of arrival. Anybody may leave, and who is the first is soon told.

    Attributes:
        waiters: all of them, by ticket, first come first.
    """

    def __init__(self) -> None:
        self.waiters: dict[int, Waiter] = {}
        self._tickets: list[int] = []  # of all who came, or of those left after many had gone
        self._gone = 0  # how many at the front of these are surely gone

    def add(self, waiter: Waiter) -> None:
        """Let a waiter stand at the end; it may name the key twice."""
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
        """Let a waiter go; False when it does not stand here."""
        if waiter.ticket not in self.waiters:
            return False
        del self.waiters[waiter.ticket]
        return True

    def first(self) -> Waiter | None:
        """Who came first. A look into ``waiters`` would have to pass the places of all who left."""
        tickets = self._tickets
        while self._gone < len(tickets):
            waiter = self.waiters.get(tickets[self._gone])
            if waiter is not None:
                return waiter
            self._gone += 1
        return None


class GroupQueue:
    """The waiters of one key that read for one consumer group.

    Attributes:
        claimers: those that also claim, by the idle time they ask for.
        alarms: for such an idle time, the moment at which something may be claimed.
        alarmed_ms: the time of delivery that they were set for; none of them is for a later one.
    """

    def __init__(self) -> None:
        self._line: Final = Line()
        self.claimers: dict[int, Line] = {}
        self.alarms: dict[int, int] = {}
        self.alarmed_ms = 0

    def add(self, waiter: Waiter) -> None:
        """Let a waiter stand at the end; it may name the key twice."""
        self._line.add(waiter)
        claim_ms = waiter.parked.claim_ms
        if claim_ms >= 0:
            line = self.claimers.get(claim_ms)
            if line is None:
                line = self.claimers[claim_ms] = Line()
            line.add(waiter)

    def remove(self, waiter: Waiter) -> None:
        """Let a waiter go, if it stands here."""
        if not self._line.remove(waiter):
            return
        claim_ms = waiter.parked.claim_ms
        if claim_ms >= 0:
            line = self.claimers[claim_ms]
            line.remove(waiter)
            if not line.waiters:
                del self.claimers[claim_ms]
                self.alarms.pop(claim_ms, None)

    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self._line.waiters

    def waiters(self) -> list[Waiter]:
        """All of them."""
        return list(self._line.waiters.values())

    def consumers(self) -> set[bytes]:
        """As whom they read. Complexity: O(waiters)."""
        return {waiter.parked.consumer for waiter in self._line.waiters.values()}

    def first(self) -> Waiter | None:
        """Who came first."""
        return self._line.first()

    def first_claimer(self, idle_ms: int) -> Waiter | None:
        """Who came first of those that take what has been idle for ``idle_ms``."""
        found: Waiter | None = None
        for claim_ms, line in self.claimers.items():
            if claim_ms <= idle_ms:
                waiter = line.first()
                if waiter is not None and (found is None or waiter.ticket < found.ticket):
                    found = waiter
        return found


class Readers:
    """Readers of a stream, in lines of those who want an entry after the same ID."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, int], dict[int, Waiter]] = {}  # in each line by ticket
        self._order: SortedList[tuple[int, int]] | None = None  # of the lines, once they are many

    def add(self, waiter: Waiter, after: tuple[int, int]) -> None:
        """Let a waiter wait for an entry after an ID."""
        line = self._lines.get(after)
        if line is None:
            line = self._lines[after] = {}
            if self._order is not None:
                self._order.add(after)
            elif len(self._lines) >= MANY_LINES:
                self._order = SortedList(self._lines)
        line[waiter.ticket] = waiter

    def remove(self, waiter: Waiter, after: tuple[int, int]) -> None:
        """Let a waiter go, if it waits for that."""
        line = self._lines.get(after)
        if line is None or waiter.ticket not in line:
            return
        del line[waiter.ticket]
        if not line:
            del self._lines[after]
            if self._order is not None:
                self._order.remove(after)
                if not self._lines:
                    self._order = None

    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self._lines

    def waiters(self) -> list[Waiter]:
        """All of them."""
        return [waiter for line in self._lines.values() for waiter in line.values()]

    def passed(self, last_ms: int, last_seq: int) -> list[Waiter]:
        """Those who want an entry after an ID that is below this one."""
        found: list[Waiter] = []
        order = self._order
        if order is None:
            for after, line in self._lines.items():
                if is_below(after[0], after[1], last_ms, last_seq):
                    found.extend(line.values())
        else:
            for after in order.irange(maximum=(last_ms, last_seq), inclusive=(True, False)):
                found.extend(self._lines[after].values())
        return found


class Queue:
    """The waiters of one key.

    Attributes:
        db_index: of the database that the key is in.
        groups: those that read for a group, by its name.
        readers: other readers of a stream.
        others: everybody else, by ticket.
        is_ready: whether they are to be looked at after the command at hand.
    """

    def __init__(self, db_index: int, key: bytes) -> None:
        self.db_index: Final = db_index
        self.key: Final = key
        self.is_ready = False
        self.groups: dict[bytes, GroupQueue] = {}
        self.readers: Final = Readers()
        self.others: dict[int, Waiter] = {}

    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self.groups and self.is_for_groups()

    def is_for_groups(self) -> bool:
        """Whether nobody waits but to read for a group."""
        return not self.others and self.readers.is_empty()

    def waiters(self) -> list[Waiter]:
        """All of them. Complexity: O(waiters)."""
        found = list(self.others.values())
        for line in self.groups.values():
            found += line.waiters()
        return found + self.readers.waiters()

    def candidates(self, last_id: tuple[int, int] | None) -> list[Waiter]:
        """Who may be served now, first come first, those left out that read for a group.

        Args:
            last_id: the last ID of the stream at the key; None when there is no stream, which
                leaves its readers asleep.
        """
        found: list[Waiter] = list(self.others.values())
        if last_id is not None and not self.readers.is_empty():
            found += self.readers.passed(last_id[0], last_id[1])
        if len(found) > 1:
            found.sort(key=attrgetter("ticket"))
        return found
