"""The data: all databases, and what concerns them together."""

from __future__ import annotations

from typing import Final

from headrace.storage.collection import SmallLimits
from headrace.storage.freezing import Freezing
from headrace.storage.keyspace import Keyspace
from headrace.storage.list.piece import NodeLimits as ListLimits
from headrace.storage.sharing import Member, new_member
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.value import Expiring, Freeable

HELD_BY_PAUSE: Final = 1  # CLIENT PAUSE
HELD_BY_REFUSAL: Final = 2  # this region takes no writes
HELD_BY_MASTER: Final = 8  # which says itself what has expired
HELD_BY_LAG: Final = 4  # a deadline that it knows may have been put off where it was set


class Data:
    """The databases of one server.

    Args:
        databases: how many there are.
        node_limits: see there.

    Attributes:
        dbs: the databases.
        expired: the keys that they found expired and that are not reported yet.
        unused: what waits to be freed in slices; freed: how many values have been.
        expiring: what expires inside of values.
        node_limits: the size of the blocks of streams.
        sorted_set_limits: of small sorted sets.
        list_limits: the size of the nodes of lists.
        hash_limits: of small hashes.
        guarded: somebody is to know before keys change; one reason is ``freezing``.
        freezing: the state that a snapshot takes, while one does.
        sized: what each key takes is kept.
        expiry_held: for which reasons keys whose time has come are hidden, and not removed.
        epoch: how many states have been taken.
        active_expire: keys are removed when their time comes, met or not.
        shows_expired: whoever meets what has expired reads it, and does not remove it.
        region: which region this is, of a database that has several; None without regions.
        tombstones: with regions, keys that are gone and of which something has to be remembered.
    """

    def __init__(self, databases: int, node_limits: NodeLimits) -> None:
        self.expired: Final[list[tuple[int, bytes]]] = []
        self.unused: Final[list[Freeable]] = []
        self.freed = 0
        self.expiring: Final = Expiring()
        self.dbs: Final[list[Keyspace]] = [
            Keyspace(index, self.expired, self.unused, self.expiring) for index in range(databases)
        ]
        self.node_limits = node_limits
        self.sorted_set_limits = SmallLimits(128, 64)
        self.list_limits = ListLimits(-2)
        self.hash_limits = SmallLimits(512, 64)
        self.guarded = False
        self.freezing: Freezing | None = None
        self.sized = False
        self.epoch = 0
        self.active_expire = True
        self.shows_expired = False
        self.expiry_held = 0
        self.region: Member | None = None
        self.tombstones: Final = Keyspace(databases, [], self.unused, Expiring())

    def become_region(self, number: int, database: bytes) -> None:
        """Be a region of a database, before anything is loaded."""
        region = new_member(number)
        region.database = database
        self.region = region
        for db in self.dbs:
            db.keep_expired()

    def keyspaces(self) -> list[Keyspace]:
        """All that takes memory: the databases and, with regions, the tombstones behind them."""
        return self.dbs if self.region is None else [*self.dbs, self.tombstones]

    def freeze(self, freezing: Freezing | None) -> None:
        """A snapshot takes this state from now on; None: it is done."""
        self.freezing = freezing
        self.guarded = self.sized or freezing is not None

    def keep_sizes(self, kept: bool) -> None:
        """Keep what each key takes from now on, or no more."""
        if kept != self.sized:
            self.sized = kept
            self.guarded = kept or self.freezing is not None
            for db in self.keyspaces():
                db.keep_sizes(kept)

    def free_later(self, value: object | None) -> None:
        """Free a value, or a part of one, without holding up the request: the cron does it.

        A value that is a single object is freed at once.
        """
        if isinstance(value, Freeable) and value.effort():
            self.unused.append(value)

    def enable_expiry(self, enabled: bool) -> None:
        """Let keys expire, or keep them while files are read that say themselves what expired."""
        for db in self.dbs:
            db.expire_enabled = enabled and not self.shows_expired

    def hold_expiry(self, reason: int, held: bool) -> None:
        """Hide keys whose time has come instead of removing them, or remove them again.

        Args:
            reason: one of those below; keys are removed while there is none.
        """
        if held:
            self.expiry_held |= reason
        else:
            self.expiry_held &= ~reason
        for db in self.dbs:
            db.hold_expiry(self.expiry_held != 0)
            if reason == HELD_BY_MASTER:
                db.note_own(held)
