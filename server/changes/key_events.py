"""Keyspace notifications: changes as messages on channels, where that is configured."""

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
from headrace.server.clients.pubsub import PubSub
from headrace.storage.keyspace import Keyspace

_OF_PARTS: Final = (
    NOTIFY_SUBKEYSPACE | NOTIFY_SUBKEYEVENT | NOTIFY_SUBKEYSPACE_ITEM | NOTIFY_SUBKEYSPACE_EVENT
)


class KeyEvents(Listener):
    """Publishes the events of keys; it listens while any are asked for.

    Attributes:
        flags: which classes, and on which channels: the bits of ``notify-keyspace-events``.
    """

    def __init__(self, changes: Changes, pubsub: PubSub) -> None:
        self.flags = 0
        self._changes: Final = changes
        self._pubsub: Final = pubsub

    def ask_for(self, flags: int) -> None:
        """Publish what these bits say from now on."""
        self.flags = flags
        self._changes.listen(self, flags != 0)

    def heard(self, change: Change) -> None:
        """Publish an event, where its class is asked for."""
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
        """Publish which fields of a hash an event concerns."""
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
        """No event says that a database was emptied or swapped."""
