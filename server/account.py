"""What the data and the clients take: ``used_memory``, and what ``maxmemory`` is a limit of.

It is no measurement. Each key is counted with what its parts take (``storage.faces``), each client
with what it holds, the backlog of replication with its bytes, and a constant stands for the
server's own tables. So the figure falls when keys go, is the same for the same data, and says
exactly how much room is left. Keys that are folded are counted with less. The interpreter and its
code are not in it, nor what the allocator holds back: the resident set of the process is reported
beside it.

While ``maxmemory`` is set, what each key takes is kept with it, and a change of a key corrects the
sum. When that begins, keys that are there already are counted in slices, and until then those that
are counted stand for the others. Without a limit nothing is kept. Whoever asks has the keys counted
now, and of many keys some, evenly spread, stand for all.
"""

from __future__ import annotations

from typing import Final

from headrace.server.clients.client_line import CLIENT_BYTES
from headrace.server.clients.clients import Clients
from headrace.server.clock import Clock
from headrace.server.data import Data
from headrace.server.role import Role
from headrace.storage.faces import FOLDED_BYTES
from headrace.storage.key_table import KeyTable

STARTUP_BYTES: Final = 1_000_000  # what stands for a server without keys and clients
_COUNTED: Final = 10_000  # keys of a database that are counted when somebody asks
_SPREAD: Final = 2_000  # of more keys, so many stand for all
_SIZED_AT_ONCE: Final = 500  # keys, between two looks at the clock
_SIZED_AGAIN: Final = 20  # keys of each database, in a tick


class Account:
    """The sum of it all.

    Attributes:
        peak_bytes: the most that was seen, and peak_s: when, in seconds since 1970.
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
        """Return what all keys take, those included that are gone and still remembered."""
        total = 0
        for db in self._data.keyspaces():
            if db.table.count:
                total += _bytes_of(db.table)
        return total

    def tombstones_bytes(self) -> int:
        """Return what is remembered of keys that are gone, until all regions know of it."""
        return _bytes_of(self._data.tombstones.table)

    def clients_bytes(self) -> int:
        """Return what all clients take, as they were seen last."""
        return CLIENT_BYTES * len(self._clients.sessions) + self._clients.held_bytes

    def used(self) -> int:
        """All of it, in bytes."""
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
    """What the keys of a table take; where not all are counted, some stand for the others."""
    return _bytes_of_objects(table) - FOLDED_BYTES * int(table.folded)


def _bytes_of_objects(table: KeyTable) -> int:
    """Return what they would take if none were folded."""
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
