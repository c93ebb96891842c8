"""Idle consumers go.

Workers that take a new name at every start leave their old names in the group. With
``consumer-inactive-threshold``, or ``stream-consumer-reclaim-ms`` for all groups, a consumer that
holds nothing and was not seen for so long is removed, and recorded as by XGROUP DELCONSUMER. It
goes when its group's consumers are listed, or when the cron comes by: it goes round all keys, a
slice with each tick, so no command pays for this. A consumer whose client waits in a blocking read
is kept, however long it waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.policies.book import Book, Idler
from headrace.server.clock import MS
from headrace.server.commands.streams.args import CONSUMER_DELETED
from headrace.server.commands.streams.groups import (
    NO_WRITES,
    find_group,
    group_readers,
    keys_of_streams,
    names_of_groups,
)
from headrace.server.state import Server
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.groups import Group
from headrace.storage.stream.stream import Stream

SLICE: Final = 1000  # consumers looked at in one tick; ten keys without groups cost as much as one
PAGE: Final = 200  # keys, or consumers of a group, looked at in one step
ROUND_MS: Final = 1000  # between the starts of two rounds, or what the parameter says if less


def threshold_ms(server: Server, book: Book, db: int, key: bytes, group: bytes) -> int:
    """Return for how long a consumer of a group may be idle; 0: for ever."""
    policy = book.policy_of(db, key, group)
    own_ms = 0 if policy is None else policy.consumer_inactive_ms
    return own_ms or server.config.stream_consumer_reclaim_ms


def reclaim(
    server: Server,
    book: Book,
    db: Keyspace,
    key: bytes,
    group: Group,
    names: list[bytes],
    now_ms: int,
) -> None:
    """Remove those of some consumers of a group that are idle for too long."""
    most_ms = threshold_ms(server, book, db.index, key, group.name)
    if not most_ms or server.gate.reasons & NO_WRITES:
        return
    idle: list[bytes] = []
    for name in names:
        consumer = group.consumers.get(name)
        if consumer is not None and not consumer.pel.size and consumer.seen_ms <= now_ms - most_ms:
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


def idlers_until(server: Server, book: Book, until_ms: int) -> list[Idler]:
    """Return those that will go up to a moment, the first one last. O(keys and consumers)."""
    found: list[Idler] = []
    if not _asked_for(server, book):
        return found
    for db in server.data.dbs:
        for entry in db.every():
            if isinstance(entry.value, Stream):
                for group in entry.value.groups.values():
                    most_ms = threshold_ms(server, book, db.index, entry.key, group.name)
                    for each in group.consumers.values():
                        due_ms = each.seen_ms + most_ms
                        if most_ms and not each.pel.size and due_ms <= until_ms:
                            found.append(Idler(due_ms, db.index, entry.key, group.name, each.name))
    found.sort(reverse=True)
    return found


def reclaim_due(server: Server, book: Book, idlers: list[Idler]) -> None:
    """Remove those whose time has come, unless they were used meanwhile."""
    now_ms = server.clock.now_ns // MS
    while idlers and idlers[-1].due_ms <= now_ms:
        each = idlers.pop()
        db = server.data.dbs[each.db]
        group = find_group(db, each.key, each.group)
        if group is not None:
            reclaim(server, book, db, each.key, group, [each.name], now_ms)


def _asked_for(server: Server, book: Book) -> bool:
    return server.config.stream_consumer_reclaim_ms > 0 or book.knows(
        b"consumer-inactive-threshold"
    )


def sweep(server: Server, book: Book) -> None:
    """Go on with a round over all consumers; it reports what it removes, but ends no command."""
    now_ms = server.clock.now_ns // MS
    if not _asked_for(server, book):
        return
    steps = book.sweep
    if steps is None:
        if 0 <= book.next_sweep_ms - now_ms <= ROUND_MS:  # more where the clock was set back
            return
        most_ms = server.config.stream_consumer_reclaim_ms or ROUND_MS
        book.next_sweep_ms = now_ms + min(most_ms, ROUND_MS)
        steps = book.sweep = _go_round(server, book)
    left = SLICE
    while left > 0:
        cost = next(steps, 0)
        if not cost:
            book.sweep = None
            return
        left -= cost


def _go_round(server: Server, book: Book) -> Iterator[int]:
    """Look at all consumers once; yield the cost of each step.

    Anything may change between two steps, so each of them finds its group anew.
    """
    for db in server.data.dbs:
        cursor = 0
        while True:
            cursor, entries = db.scan(cursor, PAGE)
            for key in keys_of_streams(entries):
                for group_name in names_of_groups(db, key):
                    yield 1
                    yield from _look_at(server, book, db, key, group_name)
            yield PAGE // 10
            if not cursor:
                break


def _look_at(
    server: Server, book: Book, db: Keyspace, key: bytes, group_name: bytes
) -> Iterator[int]:
    group = find_group(db, key, group_name)
    names = [] if group is None else list(group.consumers)
    for start in range(0, len(names), PAGE):
        group = find_group(db, key, group_name)
        if group is None:
            break
        now_ms = server.clock.now_ns // MS
        reclaim(server, book, db, key, group, names[start : start + PAGE], now_ms)
        yield PAGE
