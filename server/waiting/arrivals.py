"""Waiters in order of arrival."""

from __future__ import annotations

from typing import Final

from headrace.server.waiting.waiters import Waiter

SPARE_TICKETS: Final = 64


class Arrivals:
    """Waiters in order of arrival. Anybody may leave, and the first is found at little cost.

    Attributes:
        waiters: all of them, by ticket, first come first.
    """

    def __init__(self) -> None:
        self.waiters: Final[dict[int, Waiter]] = {}
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
