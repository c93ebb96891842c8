"""The data: all databases, parts that concern them together, and ``used_memory``.

The memory of data and clients, which ``maxmemory`` limits, is no measurement. Each key is counted
with the bytes of its parts (``storage.faces``), each client with those that it holds, the backlog
of replication with its bytes, and a constant stands for the server's own tables. So the figure
falls when keys go, is the same for the same data, and says exactly how much room is left. A key
counts the same whether it is folded or not. The interpreter, its code and what the allocator holds
back are not counted: the resident set of the process is reported beside it.

While ``maxmemory`` is set, the bytes of each key are kept with it, and a change of a key corrects
the sum. When that begins, present keys are counted in slices, and until then the counted ones stand
for the others. Without a limit nothing is kept. The keys are then counted on request, and of many
keys some, evenly spread, stand for all.
"""

from __future__ import annotations

from typing import Final

from headrace.server.clients.client_line import CLIENT_BYTES
from headrace.server.clients.clients import Clients
from headrace.server.clock import Clock
from headrace.server.role import Role
from headrace.storage.collection import SmallLimits
from headrace.storage.freezing import Freezing
from headrace.storage.key_table import KeyTable
from headrace.storage.keyspace import Databases, Keyspace
from headrace.storage.list.piece import NodeLimits as ListLimits
from headrace.storage.set.small import SetLimits
from headrace.storage.sharing import Member, new_member
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.value import Expiring, Freeable

HELD_BY_PAUSE: Final = 1  # CLIENT PAUSE
HELD_BY_REFUSAL: Final = 2  # this region takes no writes
HELD_BY_MASTER: Final = 8  # which reports itself what has expired
HELD_BY_LAG: Final = 4  # a deadline that it knows may have been put off where it was set


class Data:
    """The databases of one server.

    Attributes:
        expired: the keys that they found expired and that are not reported yet.
        unused: the values that wait to be freed in slices; freed: how many have been.
        expiring: the values of which parts expire.
        node_limits: the size of the blocks of streams; list_limits: of the nodes of lists.
        sorted_set_limits, hash_limits, set_limits: of small sorted sets, hashes and sets.
        guarded: changes of keys are announced before they happen; one reason is ``freezing``.
        freezing: the state that a snapshot takes, while one does; epoch: how many have been taken.
        sized: the bytes of each key are kept.
        expiry_held: for which reasons keys whose time has come are hidden, and not removed.
        active_expire: keys are removed when their time comes, met or not.
        shows_expired: what has expired is still read, and not removed.
        region: which region this is, of a database that has several; None without regions.
        tombstones: with regions, keys that are gone and of which something has to be remembered.
    """

    def __init__(self, databases: int, node_limits: NodeLimits) -> None:
        self.expired: Final[list[tuple[int, bytes]]] = []
        self.unused: Final[list[Freeable]] = []
        self.freed = 0
        self.expiring: Final = Expiring()
        self.dbs: Final = Databases(databases, self.expired, self.unused, self.expiring)
        self.node_limits = node_limits
        self.sorted_set_limits = SmallLimits(128, 64)
        self.list_limits = ListLimits(-2)
        self.hash_limits = SmallLimits(512, 64)
        self.set_limits = SetLimits(512, 128, 64)
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
        """Make this a region of a database, before anything is loaded."""
        region = new_member(number)
        region.database = database
        self.region = region
        for db in self.dbs:
            db.keep_expired()

    def keyspaces(self) -> list[Keyspace]:
        """Return all tables of keys: the databases and, with regions, the tombstones."""
        made = [*self.dbs]
        return made if self.region is None else [*made, self.tombstones]

    def freeze(self, freezing: Freezing | None) -> None:
        """Note the state that a snapshot takes from now on; None: it is done."""
        self.freezing = freezing
        self.guarded = self.sized or freezing is not None

    def keep_sizes(self, kept: bool) -> None:
        """Keep the bytes of each key from now on, or no more."""
        if kept != self.sized:
            self.sized = kept
            self.guarded = kept or self.freezing is not None
            for db in self.keyspaces():
                db.keep_sizes(kept)

    def free_later(self, value: object | None) -> None:
        """Let the cron free a value, or a part of one; a single object is freed at once."""
        if isinstance(value, Freeable) and value.effort():
            self.unused.append(value)

    def enable_expiry(self, enabled: bool) -> None:
        """Let keys expire, or keep them while files are read that record expiry themselves."""
        for db in self.dbs:
            db.expire_enabled = enabled and not self.shows_expired

    def hold_expiry(self, reason: int, held: bool) -> None:
        """Hide expired keys for one of the reasons above, or remove them again without one."""
        if held:
            self.expiry_held |= reason
        else:
            self.expiry_held &= ~reason
        for db in self.dbs:
            db.hold_expiry(self.expiry_held != 0)
            if reason == HELD_BY_MASTER:
                db.note_own(held)


STARTUP_BYTES: Final = 1_000_000  # stands for a server without keys and clients
_COUNTED: Final = 10_000  # keys of a database that are counted on request
_SPREAD: Final = 2_000  # of more keys, so many stand for all
_SIZED_AT_ONCE: Final = 500  # keys, between two looks at the clock
_SIZED_AGAIN: Final = 20  # keys of each database, in a tick


class Account:
    """The memory of data and clients together: ``used_memory``.

    ``peak_bytes`` is the most that was seen, and ``peak_s`` when, in seconds since 1970.
    """

    def __init__(self, data: Data, clients: Clients, clock: Clock, role: Role) -> None:
        self._data: Final = data
        self._role: Final = role
        self._clients: Final = clients
        self._clock: Final = clock
        self.peak_bytes = 0
        self.peak_s = 0

    def keep(self, kept: bool) -> None:
        """Keep the sum up to date from now on, or no more."""
        self._data.keep_sizes(kept)

    def keys_bytes(self) -> int:
        """Return the bytes of all keys, with those that are gone and still remembered."""
        total = 0
        for db in self._data.keyspaces():
            if db.table.count:
                total += _bytes_of(db.table)
        return total

    def tombstones_bytes(self) -> int:
        """Return the bytes of keys that are gone, and remembered until all regions know of it."""
        return _bytes_of(self._data.tombstones.table)

    def clients_bytes(self) -> int:
        """Return the bytes that all clients hold, as they were seen last."""
        return CLIENT_BYTES * len(self._clients.sessions) + self._clients.held_bytes

    def used(self) -> int:
        """Return the sum of all of it, in bytes."""
        of_clients = self.clients_bytes() + self._role.backlog_bytes()
        used = STARTUP_BYTES + self.keys_bytes() + of_clients
        if used > self.peak_bytes:
            self.peak_bytes = used
            self.peak_s = self._clock.now_ns // 1_000_000_000
        return used

    def is_counting(self) -> bool:
        """Return whether there are keys to be counted yet."""
        if self._data.sized:
            for db in self._data.keyspaces():
                if db.table.unsized:
                    return True
        return False

    def count_some(self) -> bool:
        """Count some of them; True where more are left."""
        for db in self._data.keyspaces():
            if db.table.unsized:
                db.table.size_some(_SIZED_AT_ONCE)
                return True
        return False

    def check_some(self) -> None:
        """Count some of the keys again."""
        if self._data.sized:
            for db in self._data.keyspaces():
                db.table.settle()
                db.table.size_again(_SIZED_AGAIN)


def _bytes_of(table: KeyTable) -> int:
    """Return the bytes of a table's keys; counted keys stand for those that are not."""
    if not table.sized:
        return int(table.all_bytes(_COUNTED if table.count <= _COUNTED else _SPREAD))
    table.settle()
    total = int(table.bytes)
    if table.unsized:
        sized = table.count - table.unsized
        if sized > _SPREAD:
            total += int(table.bytes // sized * table.unsized)
        else:
            total += int(table.all_bytes(_SPREAD) - table.bytes)
    return total
