"""Removes consumers that hold nothing and were not seen for ``stream-consumer-reclaim-ms``.

Workers that take a new name at every start leave their old names behind in the group. With the
parameter set, such a name goes away as if by XGROUP DELCONSUMER, and is recorded as that. It goes
when its group's consumers are listed, or when the cron comes by. A consumer whose client waits in a
blocking read is kept, however long it has been waiting.

The cron goes round all keys. Each tick does a slice, which starts where the last one ended. Nothing
is kept up to date in between, so no command pays for this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.server.commands.streams.events import CONSUMER_DELETED
from headrace.server.commands.streams.group_waiting import group_readers
from headrace.server.dispatch.call import Call
from headrace.server.gate import (
    LENGTHY_AT_WORK,
    LOADING_DATA,
    NO_REPLICAS,
    PAUSED_ALL,
    PAUSED_WRITES,
    SAVE_FAILED,
    WRITES_REFUSED,
)
from headrace.server.state import Server
from headrace.storage.entry import Entry
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.groups import Group
from headrace.storage.stream.stream import Stream

SLICE: Final = 1000  # consumers looked at in one tick; ten keys without groups cost as much as one
PAGE: Final = 200  # keys, or consumers of a group, looked at in one step
ROUND_MS: Final = 1000  # between the starts of two rounds, or what the parameter says if less
_NO_WRITES: Final = (
    LOADING_DATA
    | PAUSED_ALL
    | PAUSED_WRITES
    | SAVE_FAILED
    | WRITES_REFUSED
    | NO_REPLICAS
    | LENGTHY_AT_WORK
)


def reclaim_listed(call: Call, key: bytes, group: Group) -> None:
    """Remove the idle consumers of a group that is about to be listed."""
    server = call.server
    if server.config.stream_consumer_reclaim_ms and not server.gate.reasons & _NO_WRITES:
        _reclaim(server, call.db, key, group, list(group.consumers), call.now_ms)


def _reclaim(
    server: Server, db: Keyspace, key: bytes, group: Group, names: list[bytes], now_ms: int
) -> None:
    """Remove those of the named consumers that are idle."""
    latest_ms = now_ms - server.config.stream_consumer_reclaim_ms
    idle: list[bytes] = []
    for name in names:
        consumer = group.consumers.get(name)
        if consumer is not None and not consumer.pel.size and consumer.seen_ms <= latest_ms:
            idle.append(name)
    if not idle:
        return
    readers = group_readers(server.blocking, db.index, key, group)
    waiting = set[bytes]() if readers is None else readers.consumers()
    db.before_change(key)
    for name in idle:
        if name not in waiting:
            group.delete_consumer(name)
            record = [b"XGROUP", b"DELCONSUMER", key, group.name, name]
            server.changes.report(db.index, key, CONSUMER_DELETED, record, count=1, wakes=False)


class Sweep:
    """The round over all consumers, and where it stands."""

    def __init__(self, server: Server) -> None:
        self._server: Final = server
        self._round: Iterator[int] | None = None
        self._next_round_ms = 0

    def run(self, now_ms: int) -> None:
        """One slice; what it removes is reported and not made known yet."""
        server = self._server
        reclaim_ms = server.config.stream_consumer_reclaim_ms
        if not reclaim_ms or server.gate.reasons & _NO_WRITES:
            return
        steps = self._round
        if steps is None:
            if 0 <= self._next_round_ms - now_ms <= ROUND_MS:  # more where the clock was set back
                return
            self._next_round_ms = now_ms + min(reclaim_ms, ROUND_MS)
            steps = self._round = go_round(server)
        left = SLICE
        while left > 0:
            cost = next(steps, 0)
            if not cost:
                self._round = None
                return
            left -= cost


def go_round(server: Server) -> Iterator[int]:
    """Look at all consumers once; after each step, what it cost.

    Anything may change between two steps, so each of them finds its group anew.
    """
    for db in server.data.dbs:
        cursor = 0
        while True:
            cursor, entries = db.scan(cursor, PAGE)
            for key in keys_of_streams(entries):
                for group_name in names_of_groups(db, key):
                    yield 1
                    group = find_group(db, key, group_name)
                    names = [] if group is None else list(group.consumers)
                    for start in range(0, len(names), PAGE):
                        group = find_group(db, key, group_name)
                        if group is None:
                            break
                        now_ms = server.clock.now_ns // 1_000_000
                        _reclaim(server, db, key, group, names[start : start + PAGE], now_ms)
                        yield PAGE
            yield PAGE // 10
            if not cursor:
                break


def keys_of_streams(entries: list[Entry]) -> list[bytes]:
    """Those keys that hold streams."""
    return [entry.key for entry in entries if isinstance(entry.value, Stream)]


def names_of_groups(db: Keyspace, key: bytes) -> list[bytes]:
    """The groups of a stream; none where the key is not one."""
    entry = db.peek(key)
    if entry is None or not isinstance(entry.value, Stream):
        return []
    return list(entry.value.groups)


def find_group(db: Keyspace, key: bytes, name: bytes) -> Group | None:
    """A group of a stream, if both are there."""
    entry = db.peek(key)
    if entry is None or not isinstance(entry.value, Stream):
        return None
    return entry.value.groups.get(name)
