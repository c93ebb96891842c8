"""WATCH, and keyspace notifications where these are configured: both listen to changes."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import (
    NOTIFY_KEYEVENT,
    NOTIFY_KEYSPACE,
    NOTIFY_SUBKEYEVENT,
    NOTIFY_SUBKEYSPACE,
    NOTIFY_SUBKEYSPACE_EVENT,
    NOTIFY_SUBKEYSPACE_ITEM,
)
from headrace.server.changes.changes import Change, Changes, Listener
from headrace.server.clients.clients import PubSub
from headrace.server.clients.session import Session
from headrace.storage.keyspace import Keyspace, Keyspaces

_OF_PARTS: Final = (
    NOTIFY_SUBKEYSPACE | NOTIFY_SUBKEYEVENT | NOTIFY_SUBKEYSPACE_ITEM | NOTIFY_SUBKEYSPACE_EVENT
)


class KeyEvents(Listener):
    """Publishes the events of keys that ``flags`` asks for: bits of ``notify-keyspace-events``."""

    def __init__(self, changes: Changes, pubsub: PubSub) -> None:
        self.flags = 0
        self._changes: Final = changes
        self._pubsub: Final = pubsub

    def ask_for(self, flags: int) -> None:
        """Publish what these bits say from now on."""
        self.flags = flags
        self._changes.listen(self, flags != 0)

    def heard(self, change: Change) -> None:
        event = change.event
        if not self.flags & event.kind or not event.name:
            return
        if self.flags & NOTIFY_KEYSPACE:
            channel = b"__keyspace@%d__:%b" % (change.db, change.key)
            self._pubsub.publish(channel, event.name)
        if self.flags & NOTIFY_KEYEVENT:
            channel = b"__keyevent@%d__:%b" % (change.db, event.name)
            self._pubsub.publish(channel, change.key)
        if change.parts and self.flags & _OF_PARTS:
            self._publish_parts(change)

    def _publish_parts(self, change: Change) -> None:
        flags = self.flags
        name = change.event.name
        publish = self._pubsub.publish
        parts = b",".join([b"%d:%b" % (len(part), part) for part in change.parts])
        if flags & NOTIFY_SUBKEYSPACE:
            publish(b"__subkeyspace@%d__:%b" % (change.db, change.key), b"%b|%b" % (name, parts))
        if flags & NOTIFY_SUBKEYEVENT:
            message = b"%d:%b|%b" % (len(change.key), change.key, parts)
            publish(b"__subkeyevent@%d__:%b" % (change.db, name), message)
        if flags & NOTIFY_SUBKEYSPACE_ITEM:
            for part in change.parts:
                publish(b"__subkeyspaceitem@%d__:%b\n%b" % (change.db, change.key, part), name)
        if flags & NOTIFY_SUBKEYSPACE_EVENT:
            publish(b"__subkeyspaceevent@%d__:%b|%b" % (change.db, name, change.key), parts)

    def database_replaced(self, db: Keyspace, replaced_by: Keyspace | None, now_ms: int) -> None:
        pass


class Watches(Listener):
    """The keys that sessions watch; they listen while there are any."""

    def __init__(self, changes: Changes, databases: Keyspaces) -> None:
        self._changes: Final = changes
        self._databases: Final = databases
        self._watchers: Final[dict[tuple[int, bytes], dict[Session, None]]] = {}

    @property
    def key_count(self) -> int:
        """Return how many keys are watched."""
        return len(self._watchers)

    def watch(self, session: Session, db: Keyspace, key: bytes, now_ms: int) -> None:
        """Make ``session`` fail its EXEC when ``key`` changes."""
        place = (db.index, key)
        if place in session.watched:
            return
        found = db.peek(key)
        session.watched[place] = found is not None and 0 <= found.expire_ms < now_ms
        self._watchers.setdefault(place, {})[session] = None
        self._changes.listen(self, True)

    def unwatch(self, session: Session) -> None:
        """End all of a session's watches."""
        session.watch_broken = False
        if not session.watched:
            return
        for place in session.watched:
            others = self._watchers[place]
            del others[session]
            if not others:
                del self._watchers[place]
        session.watched.clear()
        self._changes.listen(self, bool(self._watchers))

    def has_expired(self, session: Session, now_ms: int) -> bool:
        """Return whether a key has expired since ``session`` began to watch it."""
        for (index, key), was_expired in session.watched.items():
            found = self._databases[index].peek(key)
            if found is not None and not was_expired and 0 <= found.expire_ms < now_ms:
                return True
        return False

    def asks_for_events(self) -> bool:
        return False

    def touched(self, db: int, key: bytes) -> None:
        place = (db, key)
        for session in self._watchers.get(place, ()):
            if session.watched[place] and key not in self._databases[db]:
                session.watched[place] = False  # it had expired before: nothing changed
            else:
                session.watch_broken = True

    def database_replaced(self, db: Keyspace, replaced_by: Keyspace | None, now_ms: int) -> None:
        for place, sessions in self._watchers.items():
            if place[0] != db.index:
                continue
            key = place[1]
            found = replaced_by.peek(key) if replaced_by is not None else None
            stale = found is not None and 0 <= found.expire_ms < now_ms
            if found is None and key not in db:
                continue
            for session in sessions:
                # A key that had expired, or comes expired, does not exist for its watcher.
                if session.watched[place] and (found is None or stale):
                    session.watched[place] = stale
                elif stale and key not in db:
                    session.watched[place] = True
                else:
                    session.watch_broken = True
