"""Idle consumers and groups go, and connections hold the names of consumers.

Workers that take a new name at every start leave their old names in the group. With
``consumer-inactive-threshold``, or ``stream-consumer-reclaim-ms`` for all groups, a consumer that
holds nothing and was not seen for so long is removed, and recorded as by XGROUP DELCONSUMER. It
goes when its group's consumers are listed, or when the cron comes by: it goes round all keys, a
slice with each tick, so no command pays for this. A consumer whose client waits in a blocking read
is kept, however long it waits.

With ``inactive-threshold`` a group goes with all it has when no consumer was seen for so long. With
``keep-alive`` a consumer is there as long as a connection is open that has read under its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.policies.book import Book, Idler, Scope, run_own
from headrace.policies.rules import GroupRules, rules_of
from headrace.server.clock import MS
from headrace.server.commands.streams.args import CONSUMER_DELETED
from headrace.server.commands.streams.groups import (
    NO_WRITES,
    find_group,
    group_readers,
    keys_of_streams,
    names_of_groups,
)
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ORIGINALS
from headrace.server.state import Server
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.groups import Group
from headrace.storage.stream.stream import Stream

SLICE: Final = 1000  # consumers looked at in one tick; ten keys without groups cost as much as one
PAGE: Final = 200  # keys, or consumers of a group, looked at in one step
ROUND_MS: Final = 1000  # between the starts of two rounds, or what the parameter says if less
HOLDERS: Final = 1000  # looked at in one tick
COMING_BACK_MS: Final = 60_000  # for which no group goes after a start


def look_at_holders(server: Server, book: Book) -> None:
    """Find the consumers whose connections are all closed by now, some with each call."""
    now_ms = server.clock.now_ns // MS
    if book.history != server.role.id:  # clients come back to a server that was a replica
        book.history = server.role.id
        book.began_ms = now_ms
        for scope in book.attended:
            rules = _rules_at(server, scope)
            if rules is not None:
                rules.known_ms = now_ms
    some = book.holders[:HOLDERS]
    if not some:
        return
    stay: list[tuple[Scope, bytes]] = []
    for scope, name in some:
        rules = _rules_at(server, scope)
        holder = None if rules is None else rules.holders.get(name)
        if rules is None or holder is None:
            continue
        if not holder.left_ms and holder.is_left():
            holder.left_ms = now_ms
            book.wake_at(scope, now_ms + rules.policy.grace_ms)
            server.blocking.key_ready(scope[0], scope[1])
        is_over = holder.left_ms and now_ms > holder.left_ms + rules.policy.grace_ms
        if is_over and name not in rules.kept:
            del rules.holders[name]
        else:
            stay.append((scope, name))
    del book.holders[:HOLDERS]
    book.holders.extend(stay)


def _rules_at(server: Server, scope: Scope) -> GroupRules | None:
    group = find_group(server.data.dbs[scope[0]], scope[1], scope[2] or b"")
    return None if group is None else rules_of(group)


def all_groups(server: Server) -> Iterator[tuple[Keyspace, bytes, Stream, Group]]:
    """Go through the groups of all streams: database, key, stream and group."""
    for db in server.data.dbs:
        for entry in db.every():
            if isinstance(entry.value, Stream):
                for group in entry.value.groups.values():
                    yield db, entry.key, entry.value, group


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
    rules = rules_of(group)
    db.before_change(key)
    for name in idle:
        is_held = rules is not None and rules.is_there(name, now_ms, now_ms)
        if name not in waiting and not is_held:
            group.delete_consumer(name)
            record = [b"XGROUP", b"DELCONSUMER", key, group.name, name]
            server.changes.report(db.index, key, CONSUMER_DELETED, record, count=1, wakes=False)


def _used_ms(rules: GroupRules, group: Group, now_ms: int) -> int:
    """Return when a group was last used, as far as is known: its consumers may go before it."""
    if group.consumers:
        rules.used_ms = max([consumer.seen_ms for consumer in group.consumers.values()])
    elif not rules.used_ms:
        rules.used_ms = now_ms
    return rules.used_ms


def _destroy_idle(call: Call, book: Book, key: bytes, group: Group, now_ms: int) -> bool:
    """Destroy a group that was not used for too long; return whether it was."""
    rules = rules_of(group)
    if rules is None or call.server.gate.reasons & NO_WRITES or call.server.data.region is not None:
        return False
    most_ms = rules.policy.inactive_ms
    begun_ms = book.began_ms + min(most_ms, COMING_BACK_MS)
    if not most_ms or now_ms < max(begun_ms, _used_ms(rules, group, now_ms) + most_ms):
        return False
    held = any(rules.is_there(name, now_ms, now_ms) for name in group.consumers)
    if held or group_readers(call.server.blocking, call.db.index, key, group) is not None:
        return False
    call.now_ms = now_ms
    destroy = ORIGINALS[b"xgroup"].subcommands[b"destroy"]
    run_own(call, destroy, [b"XGROUP", b"DESTROY", key, group.name])
    return True


def idlers_until(server: Server, book: Book, until_ms: int) -> list[Idler]:
    """Return those that will go up to a moment, the first one last. O(keys and consumers)."""
    found: list[Idler] = []
    if not _asked_for(server, book):
        return found
    now_ms = server.clock.now_ns // MS
    for db, key, _, group in all_groups(server):
        rules = rules_of(group)
        if rules is not None and rules.policy.inactive_ms:
            due_ms = _used_ms(rules, group, now_ms) + rules.policy.inactive_ms
            found.append(Idler(due_ms, db.index, key, group.name, None))
        most_ms = threshold_ms(server, book, db.index, key, group.name)
        for each in group.consumers.values():
            due_ms = each.seen_ms + most_ms
            if most_ms and not each.pel.size and due_ms <= until_ms:
                found.append(Idler(due_ms, db.index, key, group.name, each.name))
    found.sort(key=_due_ms, reverse=True)
    return found


def _due_ms(idler: Idler) -> int:
    return idler.due_ms


def reclaim_due(call: Call, book: Book, idlers: list[Idler]) -> None:
    """Remove those whose time has come, unless they were used meanwhile."""
    server = call.server
    now_ms = server.clock.now_ns // MS
    while idlers and idlers[-1].due_ms <= now_ms:
        each = idlers.pop()
        db = server.data.dbs[each.db]
        group = find_group(db, each.key, each.group)
        if group is None:
            continue
        if each.name is not None:
            reclaim(server, book, db, each.key, group, [each.name], now_ms)
        else:
            call.db = db
            _destroy_idle(call, book, each.key, group, now_ms)


def _asked_for(server: Server, book: Book) -> bool:
    names = (b"consumer-inactive-threshold", b"inactive-threshold")
    return server.config.stream_consumer_reclaim_ms > 0 or any(map(book.knows, names))


def sweep(call: Call, book: Book) -> None:
    """Go on with a round over all consumers; it reports what it removes, but ends no command."""
    server = call.server
    now_ms = server.clock.now_ns // MS
    if not _asked_for(server, book):
        return
    steps = book.sweep
    if steps is None:
        if 0 <= book.next_sweep_ms - now_ms <= ROUND_MS:  # more where the clock was set back
            return
        most_ms = server.config.stream_consumer_reclaim_ms or ROUND_MS
        book.next_sweep_ms = now_ms + min(most_ms, ROUND_MS)
        steps = book.sweep = _go_round(call, book)
    left = SLICE
    while left > 0:
        cost = next(steps, 0)
        if not cost:
            book.sweep = None
            return
        left -= cost


def _go_round(call: Call, book: Book) -> Iterator[int]:
    """Look at all consumers once; yield the cost of each step.

    Anything may change between two steps, so each of them finds its group anew.
    """
    for db in call.server.data.dbs:
        cursor = 0
        while True:
            cursor, entries = db.scan(cursor, PAGE)
            for key in keys_of_streams(entries):
                for group_name in names_of_groups(db, key):
                    yield 1
                    yield from _look_at(call, book, db, key, group_name)
            yield PAGE // 10
            if not cursor:
                break


def _look_at(call: Call, book: Book, db: Keyspace, key: bytes, group_name: bytes) -> Iterator[int]:
    server = call.server
    group = find_group(db, key, group_name)
    call.db = db
    if group is not None and _destroy_idle(call, book, key, group, server.clock.now_ns // MS):
        return
    names = [] if group is None else list(group.consumers)
    for start in range(0, len(names), PAGE):
        group = find_group(db, key, group_name)
        if group is None:
            break
        now_ms = server.clock.now_ns // MS
        reclaim(server, book, db, key, group, names[start : start + PAGE], now_ms)
        yield PAGE
