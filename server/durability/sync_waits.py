"""Clients of WAITAOF: who waits for which part of the append-only file to reach the disk."""

from __future__ import annotations

from typing import Final

from headrace.persistence.aof.file import AppendOnlyFile
from headrace.server.clients.session import Session
from headrace.server.waiting.waiters import Parked


class SyncWait:
    """One client that waits until everything it has written so far is on the disk.

    Args:
        aof: the file that records go to; None while the first one, whose base will hold everything
            that was written before, is not open yet.
        end: where that ends in the file.
        with_replicas: what has the replicas answers it.
    """

    def __init__(
        self,
        session: Session,
        parked: Parked,
        aof: AppendOnlyFile | None,
        end: int,
        with_replicas: bool,
    ) -> None:
        self.session: Final = session
        self.parked: Final = parked
        self.with_replicas: Final = with_replicas
        self._aof: Final = aof
        self._end: Final = end

    @property
    def over(self) -> bool:
        """Whether the client waits no more: answered, timed out or gone."""
        waiter = self.session.waiter
        return waiter is None or waiter.parked is not self.parked

    def is_synced(self, aof: AppendOnlyFile | None) -> bool:
        """Whether it is there.

        If the file cannot be found any more, the base in front of the other one holds its records.
        """
        if self._aof is None or not self._aof.named:
            return aof is not None and aof is not self._aof and aof.named
        return aof is not self._aof or aof.has_synced(self._end)
