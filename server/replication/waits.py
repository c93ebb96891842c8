"""Clients of WAIT and WAITAOF, answered when enough replicas have what they have written."""

from __future__ import annotations

from typing import Final

from headrace.server.clients.session import Session
from headrace.server.role import Replicas
from headrace.server.state import Server
from headrace.server.waiting.waiters import Parked, Sleeper


class _Wait:
    """One client that waits.

    Attributes:
        wanted: how many replicas are to have it.
        local: whether this server's disk is to have it, too: 1 or 0; below 0 for WAIT.
        offset: up to where they have to have the stream.
        synced: this server's disk has it.
    """

    def __init__(
        self, session: Session, parked: Parked, wanted: int, local: int, offset: int, synced: int
    ) -> None:
        self.session: Final = session
        self.parked: Final = parked
        self.wanted: Final = wanted
        self.local: Final = local
        self.offset: Final = offset
        self.synced = synced

    @property
    def over(self) -> bool:
        """Whether the client waits no more: answered, timed out or gone."""
        waiter = self.session.waiter
        return waiter is None or waiter.parked is not self.parked


class ReplicaWaits:
    """All of them."""

    def __init__(self, server: Server, replicas: Replicas) -> None:
        self._server: Final = server
        self._replicas: Final = replicas
        self._waits: list[_Wait] = []

    def add(self, client: Sleeper, parked: Parked, wanted: int, local: int, offset: int) -> None:
        """Answer a client when that has come true."""
        assert isinstance(client, Session)
        first = parked.timeout_reply
        synced = first[0] if isinstance(first, list) else 0
        self._waits.append(_Wait(client, parked, wanted, local, offset, synced))

    def synced(self, client: Sleeper) -> None:
        """What a client waits for is on this server's disk."""
        for wait in self._waits:
            if wait.session is client and not wait.over:
                wait.synced = 1
        self.look()

    def look(self) -> None:
        """Answer those for whom it has come true, and note what the others get at the end."""
        still: list[_Wait] = []
        for wait in self._waits:
            if wait.over:
                continue
            count = self._replicas.acknowledged(wait.offset, wait.local >= 0)
            reply: object = count if wait.local < 0 else [wait.synced, count]
            if count >= wait.wanted and wait.synced >= wait.local:
                self._server.end_wait(wait.session, reply)
            else:
                wait.parked.timeout_reply = reply
                still.append(wait)
        self._waits = still
