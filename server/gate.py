"""The reasons to look at requests before they run."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

LOADING_DATA: Final = 1 << 0
MONITORED: Final = 1 << 1
PAUSED_WRITES: Final = 1 << 2
PAUSED_ALL: Final = 1 << 3
WRITES_REFUSED: Final = 1 << 4  # the AOF cannot be written: MISCONF
MEMORY_LIMITED: Final = 1 << 5  # maxmemory is set
SAVE_FAILED: Final = 1 << 6  # the last snapshot failed, and writes are to be refused: MISCONF
NO_REPLICAS: Final = 1 << 7  # as many as min-replicas-to-write asks for: NOREPLICAS
LENGTHY_AT_WORK: Final = 1 << 8  # a request is being run in slices, and some have to wait for it

REGION_REFUSES: Final = 1 << 9  # a region that does not know yet what others have of it: AASTART
HALF_JOINED: Final = 1 << 10  # what is in memory has some of a copy, and is of no moment
STRICT_SLOTS: Final = 1 << 12  # the keys of a request have to be of one slot: CROSSSLOT
SCRIPT_AT_WORK: Final = 1 << 11  # a script has run for so long that others are refused: BUSY
CLIENTS_LIMITED: Final = 1 << 13  # maxmemory-clients is set
FOLLOWS: Final = 1 << 14  # a replica, which clients may not write to: READONLY
LINK_DOWN: Final = 1 << 15  # a replica without a link to its master: MASTERDOWN, maybe
KEYS_MEASURED: Final = 1 << 16  # HOTKEYS looks for keys that cost much
NEWCOMERS: Final = 1 << 17  # connections were accepted that have no session yet
FAULTY: Final = 1 << 18  # DEBUG FAULT has added some
BETWEEN_ROLES: Final = 1 << 19  # a replica that becomes a master when it has all of its own


class Work:
    """A request that is being run in slices."""

    @abstractmethod
    def finish_now(self) -> None:
        """Run all the rest, while all clients wait."""


class Gate:
    """A check that every request has to pass; without any reason to look, all take the fast path.

    Attributes:
        reasons: the bits above; work: the request that is being run in slices, if any.
        busy: the reply to clients while a script is at work.
    """

    def __init__(self) -> None:
        self.reasons = 0
        self.work: Work | None = None
        self.busy = b""

    def finish_work(self) -> None:
        """Run the rest of the request that is being run in slices."""
        if self.work is not None:
            self.work.finish_now()

    def set(self, bits: int, on: bool) -> None:
        """Set or clear some of the reasons."""
        if on:
            self.reasons |= bits
        else:
            self.reasons &= ~bits
