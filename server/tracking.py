"""CLIENT TRACKING: clients that keep copies of what they read are notified when it changes.

There are two ways. By default the server remembers in one table which keys each client has read,
and reports each of them once. A client that asks for broadcasts gets all keys that begin with its
prefixes, and nothing is remembered for it.

A client's own changes are reported to it behind the reply to its request, and those of a
transaction or script behind the reply to the whole.

**Broadcasts.** They leave at the end of each turn of the event loop, as one message for each
prefix, with all keys that have changed in this turn. Keys that the client's user may not read then
are left out, whichever client gets its messages.

**The table.** Keys are known by their names alone, whatever database they are in. A key that has
changed is forgotten, so a client is notified of it once, until it reads the key again. Clients that
leave stay in the table: that they have left is found out when they are to be notified.

Beyond the limit of the table, ``tracking-table-max-keys``, random keys are taken out, and their
readers are notified as if these had changed.
"""

from __future__ import annotations

from typing import Final

from librt.random import randrange
from mypy_extensions import i64

from headrace.protocol.replies import Push, encode
from headrace.server.acl.users import User
from headrace.server.changes.changes import Change, Changes, Listener
from headrace.server.changes.events import EXPIRED
from headrace.server.clients.clients import Clients
from headrace.server.clients.session import CACHING, CLOSING, SUBSCRIBED, TRACKED, Session, Tracking
from headrace.server.config.config import Config
from headrace.storage.key_table import KeyTable
from headrace.storage.keyspace import Keyspace
from headrace.storage.value import Freeable

_CHANNEL: Final = b"__redis__:invalidate"


class Invalidation:
    """A message that keys have changed; it is encoded once for each version of the protocol.

    ``keys`` is None for all that there are. An empty list sends nothing.
    """

    def __init__(self, keys: list[bytes] | None) -> None:
        self._keys: Final = keys
        self._wire2 = b""
        self._wire3 = b""

    def tell(self, session: Session, sessions: dict[int, Session]) -> None:
        """Notify a client that tracks, or the client that it redirects messages to.

        A client that speaks RESP2 can only be notified as a subscriber, to which another redirects.
        """
        tracking = session.tracking
        if tracking is None or (self._keys is not None and not self._keys):
            return
        target = session
        if tracking.redirect:
            found = sessions.get(tracking.redirect)
            if found is None or found.special & CLOSING:
                tracking.broken = True
                if session.resp3:
                    session.deliver(Push([b"tracking-redir-broken", tracking.redirect]))
                return
            target = found
        if target.resp3:
            self._wire3 = self._wire3 or encode(Push([b"invalidate", self._keys]), True)
            target.deliver_wire(self._wire3)
        elif tracking.redirect and target.special & SUBSCRIBED:
            self._wire2 = self._wire2 or encode(Push([b"message", _CHANNEL, self._keys]), False)
            target.deliver_wire(self._wire2)


class _Prefix:
    def __init__(self) -> None:
        self.clients: Final[dict[Session, None]] = {}
        self.changed: dict[bytes, Session | None] = {}


class Prefixes:
    """All prefixes that any client has asked for."""

    def __init__(self) -> None:
        self._prefixes: Final[dict[bytes, _Prefix]] = {}

    def count(self) -> int:
        """Return how many there are."""
        return len(self._prefixes)

    def add(self, prefix: bytes, session: Session) -> None:
        """Notify a client of keys that begin with a prefix, from now on."""
        found = self._prefixes.get(prefix)
        if found is None:
            found = self._prefixes[prefix] = _Prefix()
        found.clients[session] = None

    def remove(self, prefix: bytes, session: Session) -> None:
        """Notify a client of such keys no more."""
        found = self._prefixes[prefix]
        del found.clients[session]
        if not found.clients:
            del self._prefixes[prefix]

    def note(self, key: bytes, by: Session | None) -> bool:
        """Note that a key was changed by a client, or has expired (None).

        Returns whether a client is to be notified. Complexity: O(prefixes).
        """
        noted = False
        for text, prefix in self._prefixes.items():
            if key.startswith(text):
                prefix.changed[key] = by
                noted = True
        return noted

    def tell(self, sessions: dict[int, Session]) -> None:
        """Send the changes since the last call; ``sessions`` are all there are, by ID."""
        for _, prefix in sorted(self._prefixes.items()):
            changed = prefix.changed
            if changed:
                prefix.changed = {}
                keys = sorted(changed)
                messages: dict[User, Invalidation] = {}
                for session in list(prefix.clients):
                    user = session.user
                    if session.tracking is not None and session.tracking.no_loop:
                        of_others = [key for key in keys if changed[key] is not session]
                        Invalidation(user.readable(of_others)).tell(session, sessions)
                        continue
                    message = messages.get(user)
                    if message is None:
                        message = messages[user] = Invalidation(user.readable(keys))
                    message.tell(session, sessions)


_CROWD: Final = 64  # readers of a key among which those that have left are looked for

Readers = set[int] | int  # by ID; most keys have one


class ReadKeys(Freeable):
    """Keys with the clients that have read them: ``items`` pairs of a key and one of its readers.

    ``table`` holds the keys, each with ``Readers``.
    """

    def __init__(self) -> None:
        self.items = 0
        self.table: Final = KeyTable()

    def count(self) -> int:
        """Return how many keys there are."""
        return int(self.table.count)

    def add(self, key: bytes, reader: int, present: dict[int, Session]) -> i64:
        """Note that a client has read a key; return its slot. ``present``: clients that track."""
        table = self.table
        slot = table.find(key)
        if slot < 0:
            self.items += 1
            return table.add(key, reader, 0)
        readers = table.value_at(slot)
        if isinstance(readers, int):
            if readers == reader:
                return slot
            table.replace(slot, {readers, reader}, 0)
        else:
            assert isinstance(readers, set)
            if reader in readers:
                return slot
            if len(readers) >= _CROWD and len(readers) > 2 * len(present):
                self.items -= len(readers)
                readers.intersection_update(present)
                self.items += len(readers)
            readers.add(reader)
        self.items += 1
        return slot

    def add_found(
        self,
        keys: KeyTable,
        key: bytes,
        readers: object | None,
        reader: int,
        present: dict[int, Session],
    ) -> None:
        """As ``add``, for a key that was just found in a database.

        ``keys`` are those of the database, which remember where in ``table`` they are. ``readers``
        is what they knew to be there; one reader alone is another one.
        """
        if not isinstance(readers, set) or reader not in readers:
            slot = self.add(key, reader, present)
            keys.lead(keys.find(key), self.table, slot)

    def add_alike(
        self,
        requests: list[list[bytes]],
        first: int,
        end: int,
        reader: int,
        present: dict[int, Session],
    ) -> None:
        """As ``add``, for the second words of ``requests[first:end]``; many repeat."""
        table = self.table
        last = b""
        for number in range(first, end):
            key = requests[number][1]
            if key is not last:
                last = key
                slot = table.find(key)
                readers = table.value_at(slot) if slot >= 0 else None
                if not isinstance(readers, int) or readers != reader:
                    self.add(key, reader, present)

    def take(self, key: bytes) -> list[int]:
        """Forget a key; return the IDs of the clients that have read it."""
        slot = self.table.find(key)
        if slot < 0:
            return []
        readers = self.table.remove(slot)
        if isinstance(readers, set):
            self.items -= len(readers)
            return list(readers)
        assert isinstance(readers, int)
        self.items -= 1
        return [readers]

    def any_key(self) -> bytes:
        """Return a random key; there is at least one."""
        return self.table.key_at(randrange(self.table.count))

    def effort(self) -> int:
        """Return how many keys there are to free."""
        return int(self.table.count)

    def free_some(self, most: int) -> bool:
        return self.table.free_some(most, [])


_EFFORT: Final = 100  # keys taken out at once; more each time while they are too many


class ClientTracking(Listener):
    """The clients that track; ``unused`` takes what is to be freed in slices.

    Attributes:
        caller: the client whose request is being run, where it may be one of them.
        of_script: it runs a script, and does not know what that changes.
        is_told_at_end: a change is to be reported at the end of the turn.
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

    # Clients that track

    @property
    def client_count(self) -> int:
        """Return how many clients track."""
        return len(self._trackers)

    @property
    def key_count(self) -> int:
        """Return how many keys have been read by a client since they changed."""
        return self._keys.count()

    @property
    def item_count(self) -> int:
        """Return the number of pairs of such a key and one of its readers."""
        return self._keys.items

    def turn_on(self, session: Session, asked: Tracking) -> None:
        """Let a client track as it has asked; it keeps the prefixes that it had."""
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
        """Let a client track no more; calling it again does nothing."""
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
        """Listen while a client tracks, or may track again with what it has read before."""
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
        """Return the ID under which a client's reads are remembered now; 0 where they are not."""
        tracking = session.tracking
        return tracking.client_id if tracking is not None and _counts(session, tracking) else 0

    def readers(self) -> KeyTable:
        """Return the keys that were read, each with the ID of its only reader or the set of all."""
        return self._keys.table

    def remember_found(
        self, reader: int, keys: KeyTable, key: bytes, readers: object | None
    ) -> None:
        """As ``remember``, of a key that ``reader_of`` has just found among those of a database.

        ``readers`` are the key's readers so far: not this one alone.
        """
        self._keys.add_found(keys, key, readers, reader, self._trackers)

    def bound(self) -> None:
        """Take random keys out of the table while there are too many."""
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
        return False

    def heard(self, change: Change) -> None:
        """Notify the key's readers; clients with prefixes follow at the end of the turn."""
        event = change.event
        if event.touches:
            self._tell(change.key, None if event is EXPIRED or self.of_script else self.caller)

    def touched(self, db: int, key: bytes) -> None:
        self._tell(key, self.caller)

    def _tell(self, key: bytes, by: Session | None) -> None:
        if self._invalidate(key, by_caller=True):
            self._settle()
        if self.prefixes.count() and self.prefixes.note(key, by) and not self.is_told_at_end:
            self.is_told_at_end = True
            self._changes.turn.flush_soon()

    def database_replaced(self, db: Keyspace, replaced_by: Keyspace | None, now_ms: int) -> None:
        """Do nothing: ``flushed`` reports that."""

    def flushed(self) -> None:
        """Notify all clients that track that every key may have changed."""
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
        """Notify a key's readers and forget them; return whether there were any."""
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
        """Report to the caller the keys that its own request has changed; the reply goes first."""
        caller = self.caller
        if caller is not None:
            self.caller = None
            self.tell_held(caller)

    def tell_held(self, session: Session) -> None:
        """Report to a client, whose request is answered, the keys that this has changed."""
        tracking = session.tracking
        if tracking is not None and tracking.held:
            held = tracking.held
            tracking.held = []
            for key in held:
                Invalidation(None if key is None else [key]).tell(session, self._sessions)

    def end_turn(self) -> None:
        """Notify clients that have asked for prefixes."""
        if self.is_told_at_end:
            self.is_told_at_end = False
            self.prefixes.tell(self._sessions)


def _counts(session: Session, tracking: Tracking) -> bool:
    if tracking.broadcast:
        return False
    if tracking.opt_in or tracking.opt_out:
        return bool(session.special & CACHING) != tracking.opt_out
    return True


def _hold(session: Session, key: bytes | None) -> None:
    tracking = session.tracking
    assert tracking is not None
    tracking.held.append(key)
