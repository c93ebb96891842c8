"""Keyspace notifications: changes as messages on channels, where that is configured."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import NOTIFY_KEYEVENT, NOTIFY_KEYSPACE
from headrace.server.changes.changes import Change, Changes, Listener
from headrace.server.clients.pubsub import PubSub
from headrace.storage.keyspace import Keyspace


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

    def database_replaced(self, db: Keyspace, replaced_by: Keyspace | None, now_ms: int) -> None:
        """No event says that a database was emptied or swapped."""
