"""The one place where commands report changes, and from which these become known.

A report is an event, the record that repeats the change, and how many changes it counts for. From
here it goes

- to the logs, such as the append-only file: at once, in the order of what happened;
- to the count of changes that save points look at;
- to the clients that wait for the key: they are looked at when the command is over;
- to the listeners, such as WATCH and keyspace notifications: when the command is over.

Logs and listeners subscribe. A command never asks which there are; where a record costs something
to make, it asks whether any is wanted (``recorded``).

Keys that were found expired are reported before the present change, because they went before it.

Runs of alike commands take a shorter way. Where no listener asks for events, each of them leaves a
record and one change in the count (``record_alike``, ``count``), and listeners are notified of the
keys (``touched_alike``).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.persistence.log import Log, Written
from headrace.server.changes.events import EXPIRED, Event
from headrace.server.waiting import Blocking
from headrace.storage.keyspace import Keyspace

FILES: Final = 1  # kinds of logs, as bits
REPLICAS: Final = 2
NO_PARTS: Final[list[bytes]] = []


class Change:
    """One change of one key, for listeners; ``parts``: of a hash, the fields that it concerns."""

    def __init__(self, db: int, key: bytes, event: Event) -> None:
        self.db: Final = db
        self.key: Final = key
        self.event: Final = event
        self.parts = NO_PARTS


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener:
    """A part of the server that is notified of changes to keys."""

    def heard(self, change: Change) -> None:
        """Take a change that was made by a command, which is over."""
        if change.event.touches:
            self.touched(change.db, change.key)

    @abstractmethod
    def database_replaced(self, db: Keyspace, replaced_by: Keyspace | None, now_ms: int) -> None:
        """Prepare for all keys of a database to go, or to be replaced by those of another one."""

    def flushed(self) -> None:
        """Note that databases are being emptied, even if nothing is in them."""

    def asks_for_events(self) -> bool:
        """Return whether it wants each change; if not, ``touched`` may stand for ``heard``."""
        return True

    def touched(self, db: int, key: bytes) -> None:
        """Note that a command, which is over, has changed a key in a way that touches it."""
        raise NotImplementedError


class Expiries:
    """Makes the records of keys that expired."""

    def __init__(self) -> None:
        self.lazy = True  # they are recorded as unlinked

    def expired(self, changes: Changes, db: int, key: bytes) -> None:
        """Report a key that was found expired, and is not there any more."""
        name = b"UNLINK" if self.lazy else b"DEL"
        changes.report(db, key, EXPIRED, [name, key], count=1, wakes=False)


@mypyc_attr(allow_interpreted_subclasses=True)
class Turn:
    """Arranges that records are written at the end of a turn of the event loop."""

    def flush_soon(self) -> None:
        """Arrange that."""
        raise NotImplementedError


class Changes:
    """The changes of all databases.

    Args:
        expired: the keys that the databases find expired, as (database, key).
        waiting: the clients that wait for keys.

    Attributes:
        dirty: changes since the data was last saved; recorded: whether there is a log for records.
        has_listeners: whether there are listeners besides clients that wait for a key.
        asks_for_events: whether one of them wants more than the keys that have changed.
        unfinished: the current command has left something that ``end_command`` makes known.
        expired_keys: how many keys have expired; expired_parts: how many parts of values.
    """

    def __init__(self, expired: list[tuple[int, bytes]], waiting: Blocking, turn: Turn) -> None:
        self.dirty = 0
        self.recorded = False
        self.has_listeners = False
        self.asks_for_events = False
        self.unfinished = False
        self.expired_keys = 0
        self.expired_parts = 0
        self.expiries = Expiries()
        self.turn = turn
        self.expired: Final = expired
        self.pending: list[Change] = []  # that listeners have not been notified of
        self._waiting: Final = waiting
        self._log: Log | None = None  # mostly the only one: to walk a list of it costs more
        self._other_logs: list[Log] = []
        self._held: list[Log] | None = None  # all logs, while some do not get a script's calls
        self._held_kinds = 0
        self._listeners: list[Listener] = []

    # Logs and listeners
    #
    # Their lists are replaced and never changed, because one that is notified may end the
    # subscription of another: a message may be the last straw for a client that watches keys.

    def add_log(self, log: Log) -> None:
        """Let a log have all records from now on."""
        if self._log is None:
            self._log = log
        else:
            self._other_logs = [*self._other_logs, log]
        self.recorded = True

    def remove_log(self, log: Log) -> None:
        """Let a log have no more of them."""
        others = [each for each in self._other_logs if each is not log]
        if self._log is log:
            self._log = others.pop(0) if others else None
        self._other_logs = others
        self.recorded = self._log is not None

    def hold_back(self, kinds: int) -> None:
        """Withhold what is reported now from logs of some kinds, ``FILES`` and ``REPLICAS``.

        0 lets all logs have reports again.
        """
        if kinds == self._held_kinds:
            return
        logs = self._logs() if self._held is None else self._held
        self._held = logs if kinds else None
        self._held_kinds = kinds
        taking = [log for log in logs if not kinds & (REPLICAS if log.is_of_replicas() else FILES)]
        self._log = taking[0] if taking else None
        self._other_logs = taking[1:]
        self.recorded = self._log is not None

    def listen(self, listener: Listener, on: bool, first: bool = False) -> None:
        """Notify a listener of all changes from now on, or no longer; ``first``: before others."""
        if on != (listener in self._listeners):
            if on:
                others = self._listeners
                self._listeners = [listener, *others] if first else [*others, listener]
            else:
                self._listeners = [each for each in self._listeners if each is not listener]
            self.has_listeners = bool(self._listeners)
            asked = [each for each in self._listeners if each.asks_for_events()]
            self.asks_for_events = bool(asked)

    # Reports

    def report(
        self, db: int, key: bytes, event: Event, record: list[bytes] | None, count: int, wakes: bool
    ) -> None:
        """Make one change known.

        Args:
            record: the deterministic command that repeats it, which stays as it is from now on;
                None when the record of a change beside this one does.
            count: how many changes it counts for.
            wakes: clients that wait for the key may be served, whatever the event says.
        """
        if self.expired:
            self.report_expired()
        if record is not None and self.recorded:
            self._record(db, record)
        self.dirty += count
        if (wakes or event.wakes) and self._waiting.key_count:
            self._waiting.key_ready(db, key)
        if self.has_listeners:
            self.unfinished = True
            self.pending.append(Change(db, key, event))

    def name_parts(self, parts: list[bytes]) -> None:
        """Name the parts of the key of the last report; only called where there are listeners."""
        self.pending[-1].parts = parts

    def record(self, db: int, record: list[bytes]) -> None:
        """Record in one command what several reports without a record have said.

        It is called at the end, because records of keys that expired on the way stand before this
        one.
        """
        if self.expired:
            self.report_expired()
        if self.recorded:
            self._record(db, record)

    def record_wire(self, db: int, parts: list[bytes], written: Written) -> None:
        """As ``record``, of a long command that is on the wire already, in parts."""
        if self.expired:
            self.report_expired()
        for log in self._logs():
            self.unfinished = True
            if log.append_wire(db, parts):
                self.turn.flush_soon()
            log.note_end(written)

    def record_received(self, origin: bytes, first: int, count: int, payload: bytes) -> None:
        """Record what another region has sent; see ``Log.append_received``."""
        self.unfinished = True
        for log in self._logs():
            if log.append_received(origin, first, count, payload):
                self.turn.flush_soon()

    def replace_database(self, db: Keyspace, replaced_by: Keyspace | None, now_ms: int) -> None:
        """Report that all keys of a database are about to go, or to be those of another one."""
        self._waiting.database_ready(db.index)
        for listener in self._listeners:
            listener.database_replaced(db, replaced_by, now_ms)

    def flushed(self) -> None:
        """Report that databases are being emptied, even if nothing is in them."""
        for listener in self._listeners:
            listener.flushed()

    def report_expired(self, apart: bool = False) -> None:
        """Report the keys that were found expired; logs get them in any case.

        ``apart``: each is one unit by itself, and no part of what the command does.
        """
        found = self.expired.copy()
        self.expired.clear()
        held = self._held_kinds
        self.hold_back(0)
        for db, key in found:
            self.expired_keys += 1
            self.expiries.expired(self, db, key)
            if apart:
                self._end_records()
        self.hold_back(held)

    def stamp_next(self, second: int) -> None:
        """Keep the second of a change with its next record, which may be written in a later one."""
        for log in self._logs():
            log.stamp_next(second)

    def _logs(self) -> list[Log]:
        return [] if self._log is None else [self._log, *self._other_logs]

    def _record(self, db: int, record: list[bytes]) -> None:
        self.unfinished = True
        log = self._log
        if log is not None and log.append(db, record):
            self.turn.flush_soon()
        if self._other_logs:
            for other in self._other_logs:
                if other.append(db, record):
                    self.turn.flush_soon()

    # Commands that are alike

    def touched_alike(self, db: int, records: list[list[bytes]], first: int, end: int) -> None:
        """Notify listeners of ``records[first:end]``, which have changed the keys they name."""
        for listener in self._listeners:
            for record in records[first:end]:
                listener.touched(db, record[1])

    def record_alike(
        self, db: int, records: list[list[bytes]], alone: bool, written: Written | None
    ) -> None:
        """Record several commands of one kind that are run at once, and did nothing else.

        ``alone``: each is one unit, and not in a transaction. ``written``: of the client, if there
        is one.
        """
        if not alone:
            for record in records:
                self._record(db, record)
            return
        for log in self._logs():
            if log.append_alike(db, records):
                self.turn.flush_soon()
            if written is not None:
                log.note_end(written)

    # The end of a command

    def notify_listeners(self) -> None:
        """Notify listeners of the changes so far; the command may go on."""
        changes = self.pending
        if changes:
            self.pending = []
            for listener in self._listeners:
                for change in changes:
                    if listener not in self._listeners:
                        break  # it listens no longer
                    listener.heard(change)

    def end_command(self, written: Written | None = None) -> None:
        """Report what the present command has done, and end its records.

        ``written``: of the client whose command it is; None where there is none.
        """
        if self.unfinished:
            self.unfinished = False
            self.notify_listeners()
            self._end_records(written)

    def _end_records(self, written: Written | None = None) -> None:
        log = self._log
        if log is not None and log.end_command() and written is not None:
            log.note_end(written)
        if self._other_logs:
            for other in self._other_logs:
                if other.end_command() and written is not None:
                    other.note_end(written)
