"""One command being run: what its function sees, and where it reports what it did.

There is one ``Call`` at work at a time and it is used again for the next command, so a function
keeps no reference to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.server.changes.effects import EVENT_GENERIC, EVENT_KEY_MISS, EVENT_NEW, Effect
from headrace.server.clients.session import IN_MULTI, NO_TOUCH
from headrace.storage.entry import Entry
from headrace.storage.keyspace import Keyspace

if TYPE_CHECKING:
    from headrace.server.clients.session import Session
    from headrace.server.dispatch.rows import Command
    from headrace.server.state import Server


class Call:
    """One command being run.

    Attributes:
        server, session, row: who runs what for whom.
        argv: the request's words, the name included.
        db: the session's database.
        now_ms: the time of this command, in milliseconds since 1970.
        may_block: False inside MULTI and while loading; then a blocking command times out at once.
        replaying: the AOF is being loaded: what it says has happened, relative to nothing.
        stamp_s: while replaying, the second in which the command ran first; 0 where it is not told.
        effects: what has been done so far, oldest first.
    """

    def __init__(self, server: Server, session: Session) -> None:
        self.server = server
        self.session = session
        self.row: Command | None = None
        self.db: Keyspace = session.db
        self.argv: list[bytes] = []
        self.now_ms = 0
        self.may_block = True
        self.replaying = False
        self.stamp_s = 0
        self.effects: list[Effect] = []

    def name(self) -> bytes:
        """The full name of the command being run, as error texts have it."""
        assert self.row is not None
        return self.row.name

    def lookup(self, key: bytes) -> object | None:
        """The value of ``key`` or None, for a command that reads; counts a hit or a miss."""
        found = self.peek(key)
        if found is None:
            return None
        self._touch(found)
        return found.value

    def note_hits(self, found: Entry, count: int) -> None:
        """Count so many reads of a value that is there, as ``lookup`` does one."""
        self.server.keyspace_hits += count
        self._touch(found)

    def _touch(self, found: Entry) -> None:
        if not self.session.special & NO_TOUCH:
            found.access_ms = self.now_ms

    def peek(self, key: bytes) -> Entry | None:
        """As ``lookup``, for a look that is no access to the value; the whole entry."""
        found = self.db.entry(key, self.now_ms)
        if found is None:
            self.missed(key)
        else:
            self.server.keyspace_hits += 1
        return found

    def missed(self, key: bytes) -> None:
        """Count a look at a key that is not there, and report it."""
        server = self.server
        server.keyspace_misses += 1
        if server.notify_flags & EVENT_KEY_MISS:
            self.changed(key, b"keymiss", EVENT_KEY_MISS, None, 0, False)

    def changed(
        self,
        key: bytes,
        event: bytes,
        event_class: int,
        record: list[bytes] | None,
        dirty: int = 1,
        touched: bool = True,
        ready: bool = False,
    ) -> None:
        """Report one change; see ``Effect`` for the arguments.

        Args:
            record: the deterministic command that repeats the change, which stays as it is from
                now on; None when that of a change beside this one does, see ``record_all``.
        """
        server = self.server
        if server.expired_found:  # told first, as it happened first
            server.drain_expired(self)
        if record is not None:
            server.record(self.db.index, record)
        if not server.has_listeners():  # then an effect would say no more than this
            server.dirty += dirty
            if ready and server.blocking.key_count:
                server.blocking.key_ready(self.db.index, key)
            return
        self.effects.append(Effect(self.db.index, key, event, event_class, dirty, touched, ready))

    def record_all(self, record: list[bytes]) -> None:
        """Have the AOF repeat all that several effects have reported, in one command.

        It is called when all of that has happened: keys that were found expired on the way went
        before, and their records have to stand before this one.
        """
        server = self.server
        if server.expired_found:
            server.drain_expired(self)
        server.record(self.db.index, record)

    def record_wire(self, parts: list[bytes]) -> None:
        """As ``record_all``, of a long command that is on the wire already, in parts."""
        server = self.server
        if server.expired_found:
            server.drain_expired(self)
        if server.aof is not None:
            if not server.aof.pending:
                server.host.flush_soon()
            server.aof.append_wire(self.db.index, parts)

    def record_one(self, record: list[bytes]) -> None:
        """Have the AOF repeat one of several commands that are run at once, and did nothing else.

        It is by itself there, but not in a transaction: that is one command.
        """
        server = self.server
        server.record(self.db.index, record)
        if server.aof is not None and not self.session.special & IN_MULTI:
            server.aof.end_command()

    def is_unheard(self) -> bool:
        """Whether nobody is told of a change but the append-only file."""
        server = self.server
        if server.freezing is not None or server.expired_found:
            return False
        return not server.has_listeners()

    def is_unheeded(self, key: bytes) -> bool:
        """Whether, besides, nobody waits for a change to ``key``."""
        return self.is_unheard() and key not in self.server.blocking.queues[self.db.index]

    def changed_in(
        self,
        db: Keyspace,
        key: bytes | None,
        event: bytes,
        event_class: int,
        record: list[bytes] | None,
        dirty: int = 1,
        touched: bool = True,
        ready: bool = False,
    ) -> None:
        """As ``changed``, for a key of another database or (``key`` None) for a whole one."""
        if self.server.expired_found:
            self.server.drain_expired(self)
        if record is not None:
            self.server.record(db.index, record)
        self.effects.append(Effect(db.index, key, event, event_class, dirty, touched, ready))

    def put(self, key: bytes, value: object) -> None:
        """Set ``key``; a key that is new fires ``new`` and wakes who waits for it."""
        if key not in self.db.entries:
            self.created(key)
        self.db.put(key, value, self.now_ms)

    def created(self, key: bytes) -> None:
        """Tell that ``key`` is about to be created in the database at hand."""
        if self.server.notify_flags or self.server.blocking.key_count:
            self.changed(key, b"new", EVENT_NEW, None, 0, False, True)

    def delete(self, key: bytes, event: bytes = b"del", dirty: int = 1) -> bool:
        """Remove ``key`` with its own effect, recorded as DEL; False when it was not there."""
        if self.db.entry(key, self.now_ms) is None:
            return False
        self.server.free_later(self.db.remove(key))
        self.changed(key, event, EVENT_GENERIC, [b"DEL", key], dirty, True, True)
        return True
