"""CLIENT TRACKING: clients that keep copies of what they read are told when it changes.

A client is told in one of two ways. Mostly the server remembers which keys each client has read, in
one table, and tells of each of them once. A client that asks for broadcasts is told of all keys
that begin with its prefixes, and nothing is remembered for it.

What a client changes itself it is told of behind the reply to its request, the requests of one
transaction or script behind the reply to the whole.

The table has a limit, ``tracking-table-max-keys``. Beyond it keys are taken out by chance, and
their readers are told as if they had changed.
"""

from __future__ import annotations

from typing import Final

from headrace.server.changes.changes import Change, Changes, Listener
from headrace.server.changes.events import EXPIRED
from headrace.server.clients.clients import Clients
from headrace.server.clients.session import CACHING, TRACKED, Session
from headrace.server.clients.tracking import Tracking
from headrace.server.config.config import Config
from headrace.server.tracking.invalidations import Invalidation
from headrace.server.tracking.prefixes import Prefixes
from headrace.server.tracking.read_keys import ReadKeys
from headrace.storage.freeable import Freeable
from headrace.storage.key_table import KeyTable
from headrace.storage.keyspace import Keyspace

_EFFORT: Final = 100  # keys taken out at once; more each time while they are too many


class ClientTracking(Listener):
    """The clients that track.

    Args:
        unused: takes what is to be freed in slices.

    Attributes:
        caller: whose request is being run, where it may be one of them.
        of_script: it runs a script, and does not know what that changes.
        prefixes: those of broadcasts.
        is_told_at_end: something has changed that is told of at the end of the turn.
    """

    def __init__(
        self, config: Config, changes: Changes, clients: Clients, unused: list[Freeable]
    ) -> None:
        self.caller: Session | None = None
        self.of_script = False
        self.prefixes: Final = Prefixes()
        self.is_told_at_end = False
        self._config: Final = config
        self._changes: Final = changes
        self._sessions: Final = clients.sessions
        self._unused: Final = unused
        self._trackers: Final[dict[int, Session]] = {}  # by ID
        self._keys = ReadKeys()
        self._efforts = 0  # how often in a row there were too many keys

    # Who tracks

    @property
    def client_count(self) -> int:
        """How many clients track."""
        return len(self._trackers)

    @property
    def key_count(self) -> int:
        """How many keys somebody has read since they changed."""
        return self._keys.count()

    @property
    def item_count(self) -> int:
        """As ``key_count``, each key counted for each of its readers."""
        return self._keys.items

    def turn_on(self, session: Session, asked: Tracking) -> None:
        """Have a client track as it has asked; it keeps the prefixes that it had."""
        before = session.tracking
        if before is not None:
            asked.held = before.held
            if session.special & TRACKED:
                asked.prefixes.update(before.prefixes)
        session.tracking = asked
        session.special |= TRACKED
        self._trackers[session.id] = session
        for prefix in asked.prefixes:
            self.prefixes.add(prefix, session)
        self._changes.listen(self, True, first=True)

    def turn_off(self, session: Session) -> None:
        """Have a client track no more; calling it again does nothing."""
        tracking = session.tracking
        if tracking is None or not session.special & TRACKED:
            return
        session.special &= ~(TRACKED | CACHING)
        del self._trackers[session.id]
        for prefix in tracking.prefixes:
            self.prefixes.remove(prefix, session)
        tracking.prefixes.clear()
        self._settle()

    def _settle(self) -> None:
        """Listen on while somebody tracks, or may again with what it has read before."""
        if not self._trackers:
            self._changes.listen(self, self._keys.count() > 0)

    # Reads

    def remember(self, session: Session, keys: list[bytes]) -> None:
        """Note that a client that tracks, or a script for it, has read these keys."""
        for key in keys:
            self.remember_one(session, key)

    def remember_one(self, session: Session, key: bytes) -> None:
        """As ``remember``, of one key."""
        tracking = session.tracking
        if tracking is not None and _counts(session, tracking):
            self._keys.add(key, tracking.client_id, self._trackers)

    def remember_alike(
        self, session: Session, requests: list[list[bytes]], first: int, end: int
    ) -> None:
        """As ``remember``, of the second words of ``requests[first:end]``."""
        tracking = session.tracking
        if tracking is not None and _counts(session, tracking):
            self._keys.add_alike(requests, first, end, tracking.client_id, self._trackers)

    def reader_of(self, session: Session) -> int:
        """The ID under which it is remembered what a client reads now; 0 where it is not."""
        tracking = session.tracking
        return tracking.client_id if tracking is not None and _counts(session, tracking) else 0

    def readers(self) -> KeyTable:
        """The keys that somebody has read, with the ID of the only reader, or the set of all."""
        return self._keys.table

    def remember_found(
        self, reader: int, keys: KeyTable, key: bytes, readers: object | None
    ) -> None:
        """As ``remember``, of a key that ``reader_of`` has just found among those of a database.

        Args:
            readers: what ``readers`` is known to hold for it: not this reader alone.
        """
        self._keys.add_found(keys, key, readers, reader, self._trackers)

    def bound(self) -> None:
        """Take keys out of the table, by chance, while there are too many."""
        most = self._config.tracking_table_max_keys
        if not most or self._keys.count() <= most:
            self._efforts = 0
            return
        self._efforts += 1
        left = _EFFORT * self._efforts
        while left and self._keys.count() > most:
            left -= 1
            self._invalidate(self._keys.any_key(), by_caller=False)

    # Changes

    def asks_for_events(self) -> bool:
        """What the change was does not matter."""
        return False

    def heard(self, change: Change) -> None:
        """Tell those who have read the key; those with prefixes follow at the end of the turn."""
        event = change.event
        if event.touches:
            self._tell(change.key, None if event is EXPIRED or self.of_script else self.caller)

    def touched(self, db: int, key: bytes) -> None:
        """As ``heard``."""
        self._tell(key, self.caller)

    def _tell(self, key: bytes, by: Session | None) -> None:
        """Tell of a key that has changed.

        Args:
            by: who is known to have changed it, for those with prefixes.
        """
        if self._invalidate(key, by_caller=True):
            self._settle()
        if self.prefixes.count() and self.prefixes.note(key, by) and not self.is_told_at_end:
            self.is_told_at_end = True
            self._changes.turn.flush_soon()

    def database_replaced(self, db: Keyspace, replaced_by: Keyspace | None, now_ms: int) -> None:
        """Nobody is told of that: see ``flushed``."""

    def flushed(self) -> None:
        """Tell all who track that no key is what they have read."""
        everything = Invalidation(None)
        for session in list(self._trackers.values()):
            if session is self.caller:
                _hold(session, None)
            else:
                everything.tell(session, self._sessions)
        if self._keys.count():
            self._unused.append(self._keys)
            self._keys = ReadKeys()
        self._settle()

    def _invalidate(self, key: bytes, by_caller: bool) -> bool:
        """Tell those who have read a key, and forget who they were; whether there were any.

        Args:
            by_caller: the request at hand has changed it, if there is one.
        """
        readers = self._keys.take(key)
        if not readers:
            return False
        message = Invalidation([key])
        for reader in readers:
            session = self._trackers.get(reader)
            if session is None or session.tracking is None or session.tracking.broadcast:
                continue
            if session is not self.caller:
                message.tell(session, self._sessions)
            elif not (by_caller and session.tracking.no_loop):
                _hold(session, key)
        return True

    # The end of a request, and of a turn

    def end_request(self) -> None:
        """Tell the caller what its own request has changed; the reply goes first."""
        caller = self.caller
        if caller is not None:
            self.caller = None
            self.tell_held(caller)

    def tell_held(self, session: Session) -> None:
        """Tell a client what its own request has changed, which is answered."""
        tracking = session.tracking
        if tracking is not None and tracking.held:
            held = tracking.held
            tracking.held = []
            for key in held:
                Invalidation(None if key is None else [key]).tell(session, self._sessions)

    def end_turn(self) -> None:
        """Tell those who have asked for prefixes."""
        if self.is_told_at_end:
            self.is_told_at_end = False
            self.prefixes.tell(self._sessions)


def _counts(session: Session, tracking: Tracking) -> bool:
    """Whether what a client reads now is to be remembered."""
    if tracking.broadcast:
        return False
    if tracking.opt_in or tracking.opt_out:
        return bool(session.special & CACHING) != tracking.opt_out
    return True


def _hold(session: Session, key: bytes | None) -> None:
    tracking = session.tracking
    assert tracking is not None
    tracking.held.append(key)
