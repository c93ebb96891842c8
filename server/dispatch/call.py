"""The call: one command being run, as its function sees it, with reports of what it did.

There is one ``Call`` at a time and it is used again for the next command, so a function keeps no
reference to it.

A request of very many words may be a call in parts, which are run one after another while others go
on. A command that declares itself with ``@lengthy`` makes a ``Lengthy`` for such a request. It has
the same effects, reply and record as the request in one piece. ``server.dispatch.slicing`` runs it
and sees that no other request meets a part of it.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import OTHER_KEYS_REFUSED, CommandError
from headrace.protocol.client import LongRequest
from headrace.server.changes.events import CREATED, DELETED, MISSED, Event
from headrace.server.clients.client_line import limit_class
from headrace.server.clients.session import IN_MULTI, NO_TOUCH, NOBODY, TRACKED, Session
from headrace.server.durability.durability import Durability
from headrace.server.state import Server
from headrace.server.statistics.statistics import CallCounters
from headrace.storage.entry import Entry
from headrace.storage.keyspace import Keyspace
from headrace.storage.sharing import Replicated

LENGTHY_WORDS: Final = 8192  # of a request, at least
PARTS: Final = 32  # a power of two: a table that grows does so in one piece


class Call:
    """One command being run.

    Attributes:
        row: the command; argv: the request's words, the name included.
        now_ms: the time of this command, in milliseconds since 1970.
        may_block: False inside MULTI and while loading; then a blocking command times out at once.
        replaying: the AOF is being loaded; what it says has happened, whatever the time is.
        stamp_s: while replaying, the second in which the command ran first; 0 where unknown.
    """

    def __init__(self, server: Server, durability: Durability, session: Session) -> None:
        self.server: Final = server
        self.durability: Final = durability
        self.session = session
        self.row: CallCounters | None = None
        self.db: Keyspace = session.db
        self.argv: list[bytes] = []
        self.now_ms = 0
        self.may_block = True
        self.replaying = False
        self.stamp_s = 0

    def name(self) -> bytes:
        """Return the full name of the command being run, as error texts have it."""
        assert self.row is not None
        return self.row.name

    def lookup(self, key: bytes) -> object | None:
        """Return the value of ``key`` or None, for a command that reads; counts a hit or a miss."""
        db = self.db
        if self.session.special & NO_TOUCH:
            value = db.value_of(key, self.now_ms)
        else:
            value = db.get(key, self.now_ms)
        if value is None:
            self.missed(key)
        else:
            self.server.statistics.keyspace_hits += 1
        return value

    def report_expired_apart(self) -> None:
        """Report the keys that a walk found expired: each by itself, except in a transaction."""
        self.server.changes.report_expired(not self.session.special & IN_MULTI)

    def note_hits(self, key: bytes, count: int) -> None:
        """Count ``count`` reads of a key that is there, as ``lookup`` does one."""
        self.server.statistics.keyspace_hits += count
        if not self.session.special & NO_TOUCH:
            self.db.touch(key, self.now_ms)

    def counted_entry(self, key: bytes) -> Entry | None:
        """Return the entry of ``key`` or None; counts as ``counted`` does."""
        return self.db.peek(key) if self.counted(key) else None

    def counted(self, key: bytes) -> bool:
        """Return whether ``key`` is there; counts a hit or a miss as ``lookup``, but no access."""
        if self.db.lives(key, self.now_ms):
            self.server.statistics.keyspace_hits += 1
            return True
        self.missed(key)
        return False

    def missed(self, key: bytes) -> None:
        """Count a read of a key that is not there, and report it."""
        server = self.server
        server.statistics.keyspace_misses += 1
        if server.key_events.flags & MISSED.kind:
            self.changed(key, MISSED, None, count=0)

    def changed(
        self,
        key: bytes,
        event: Event,
        record: list[bytes] | None,
        count: int = 1,
        wakes: bool = False,
    ) -> None:
        """Report one change of the current database; see ``Changes.report`` for the arguments."""
        self.server.changes.report(self.db.index, key, event, record, count, wakes)

    @property
    def listened(self) -> bool:
        """Return whether any client or part listens to changes; see ``name_parts``."""
        return self.server.changes.has_listeners

    def name_parts(self, parts: list[bytes]) -> None:
        """Report the parts of its key that the last change concerned, where there is a listener."""
        self.server.changes.name_parts(parts)

    def changed_in(
        self,
        db: Keyspace,
        key: bytes,
        event: Event,
        record: list[bytes] | None,
        count: int = 1,
        wakes: bool = False,
    ) -> None:
        """Report as ``changed``, for a key of another database."""
        self.server.changes.report(db.index, key, event, record, count, wakes)

    def record(self, record: list[bytes], count: int = 0) -> None:
        """Record what was reported without a record, or what concerns no key.

        Args:
            count: how many changes it counts for, besides those that have been reported.
        """
        changes = self.server.changes
        changes.record(self.db.index, record)
        changes.dirty += count

    def record_wire(self, parts: list[bytes]) -> None:
        """Record as ``record``, for a long command that is encoded already, in parts."""
        self.server.changes.record_wire(self.db.index, parts, self.session.written)

    @property
    def recorded(self) -> bool:
        """Return whether records are taken; if not, none need be made."""
        return self.server.changes.recorded

    @property
    def notes_changes(self) -> bool:
        """Return whether requests that change something are wanted: see ``changed_alike``."""
        changes = self.server.changes
        return changes.recorded or changes.has_listeners

    def needs_no_events(self) -> bool:
        """Return whether it is enough to say which requests have changed their keys.

        Clients that wait for a key may want more. One that tracks gets the invalidations of its own
        changes behind each reply, unless it has called with NOLOOP.
        """
        server = self.server
        changes = server.changes
        if changes.asks_for_events or changes.expired:
            return False
        tracking = self.session.tracking
        return not self.session.special & TRACKED or (tracking is not None and tracking.no_loop)

    def needs_no_events_of(self, key: bytes) -> bool:
        """Return whether ``needs_no_events`` holds, and no client waits for this key."""
        waiting = self.server.blocking
        return self.needs_no_events() and key not in waiting.queues(self.db.index)

    def needs_no_events_of_any(self) -> bool:
        """Return ``needs_no_events`` if no client waits, ``db`` hides nothing, outside regions."""
        server = self.server
        alone = self.needs_no_events() and not self.db.hides and not server.blocking.key_count
        return alone and server.data.region is None

    def reports_misses(self) -> bool:
        """Return whether to report a key that was not found: it expired, or misses are notified."""
        server = self.server
        return bool(server.changes.expired) or bool(server.key_events.flags & MISSED.kind)

    def reply_is_too_long(self, size: int) -> bool:
        """Return whether a reply of ``size`` bytes so far exceeds what may wait for its client."""
        session = self.session
        limit = self.server.config.output_limit(limit_class(session))[0]
        if not 0 < limit < size or session.peer is NOBODY:
            return False
        session.peer.drop_reader()
        return True

    def count_reads(self, hits: int, misses: int) -> None:
        """Count reads of commands that are run at once."""
        self.server.statistics.keyspace_hits += hits
        self.server.statistics.keyspace_misses += misses

    def changed_alike(self, records: list[list[bytes]], first: int, end: int, changes: int) -> None:
        """Report ``records[first:end]``, each of which has changed a key, and count the changes.

        They need be there only if they are wanted: see ``notes_changes``.
        """
        if end > first:
            if self.recorded:
                self.record_alike(records[first:end])
            if self.listened:
                self.server.changes.touched_alike(self.db.index, records, first, end)
        self.count(changes)

    def count(self, changes: int) -> None:
        """Count changes of commands that are run at once."""
        self.server.changes.dirty += changes

    def record_alike(self, records: list[list[bytes]]) -> None:
        """Record one or more of the commands that are run at once; see ``Changes.record_alike``."""
        alone = not self.session.special & IN_MULTI
        written = self.session.written
        self.server.changes.record_alike(self.db.index, records, alone, written)

    def put(self, key: bytes, value: object) -> None:
        """Set ``key``; a new key fires ``new`` and wakes the clients that wait for it.

        Raises: CommandError, where a region does not take a value of which others get none.
        """
        if self.server.data.region is not None and not isinstance(value, Replicated):
            self.refuse_other_keys()
        if key not in self.db:
            self.created(key)
        self.db.put(key, value, self.now_ms)

    def refuse_other_keys(self) -> None:
        """Raise CommandError for a value that other regions would not get, unless allowed here."""
        if not self.replaying and self.server.config.aa_other_keys != b"local":
            raise CommandError(OTHER_KEYS_REFUSED)

    def created(self, key: bytes) -> None:
        """Report that ``key`` is about to be created in the current database."""
        self.created_in(self.db, key)

    def created_in(self, db: Keyspace, key: bytes) -> None:
        """Report as ``created``, for a key of another database."""
        server = self.server
        if server.changes.asks_for_events or server.blocking.key_count:
            self.changed_in(db, key, CREATED, None, count=0)

    def delete(
        self, key: bytes, record: list[bytes] | None = None, expired_too: bool = False
    ) -> bool:
        """Remove ``key`` and report it, by ``record`` or else DEL; False when it was not there.

        With ``expired_too`` an expired key that no command has met since counts as there.
        """
        db = self.db
        if expired_too and not db.hides:
            there = key in db
        else:
            there = db.lives(key, self.now_ms)
        if not there:
            return False
        self.server.data.free_later(db.remove(key))
        self.changed(key, DELETED, record or [b"DEL", key])
        return True


class KeySet:
    """A set of very many keys."""

    def __init__(self) -> None:
        self.parts: list[set[bytes]] = [set[bytes]() for _ in range(PARTS)]

    def add(self, key: bytes) -> None:
        """Add a key."""
        self.parts[hash(key) & (PARTS - 1)].add(key)

    def holds(self, key: bytes) -> bool:
        """Return whether a key is in the set."""
        return key in self.parts[hash(key) & (PARTS - 1)]


class Lengthy:
    """The work for one request, for its words from ``first`` on.

    First each word is checked (``prepare``), which changes nothing and may refuse the request, and
    then each does its part (``change``), where nothing may be refused.

    Attributes:
        argv: the request's words; those from ``first`` on belong together by ``step``.
        keys: all that it may change; others keep away from these.
    """

    def __init__(self, argv: list[bytes], first: int, step: int) -> None:
        self.argv: Final = argv
        self.first: Final = first
        self.step: Final = step
        self.keys: Final = KeySet()
        self._record = LongRequest()

    def prepare(self, call: Call, low: int, high: int) -> None:
        """Check ``argv[low:high]``, and note the keys; raises CommandError for a wrong request."""
        raise NotImplementedError

    def begin(self, call: Call) -> None:
        """Find what to change, which nothing else may change from now on; raises CommandError."""

    def change(self, call: Call, low: int, high: int) -> None:
        """Do what ``argv[low:high]`` ask for, and report it, except the record."""
        raise NotImplementedError

    def finish(self, call: Call) -> object:
        """Report what is reported once, and record all of it (``record``); return the reply."""
        raise NotImplementedError

    def note(self, call: Call, words: list[bytes]) -> None:
        """Add words to the record."""
        if call.recorded:
            self._record.add(words)

    def record(self, call: Call, name: bytes) -> None:
        """Record what was noted, as one command."""
        call.record_wire(self._record.pieces(name))
        self._record = LongRequest()
