"""The place of a key's state: with its key, or in the tombstones while there is none.

A stream exists if one of its lanes has ever had an entry that no removal of the key covers, or if a
group lives. That follows from what all regions share, so it is the same in all of them. A stream
that does not exist may have to be remembered, because entries that a removal of it covers may not
have arrived yet.
"""

from __future__ import annotations

import logging
from typing import Final

from headrace.persistence.errors import shown
from headrace.regions.exchange.effects import Effect, region_of
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.remembered import NO_DEADLINE
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.tombstones import pack_tombstone, unpack_tombstone
from headrace.server.changes.events import CREATED, DELETED, OVERWRITTEN, TYPE_CHANGED, Event
from headrace.server.gate import LOADING_DATA
from headrace.server.state import Server
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.contents import IDMP_DURATION_S, IDMP_MAXSIZE

log: Final = logging.getLogger("headrace")


def state_of(server: Server, key: bytes) -> RegionalStream:
    """Return the state of a stream, about to be changed; an empty one where nothing is known.

    Nothing expires here: expired keys are removed by an effect of their own, which goes before.
    """
    found = known_state(server, key)
    return empty(server) if found is None else found


def known_state(server: Server, key: bytes) -> RegionalStream | None:
    """Return the state of a stream, be it there or not, about to be changed; None for none."""
    return _about_to_change(server.data.dbs[0], key) or _unpacked(server, key)


def remembered(server: Server, key: bytes) -> RegionalStream:
    """Return a stream from the tombstones, about to be changed; an empty one for none."""
    return _unpacked(server, key) or empty(server)


def _about_to_change(keyspace: Keyspace, key: bytes) -> RegionalStream | None:
    found = keyspace.peek(key)
    if found is None or not isinstance(found.value, RegionalStream):
        return None
    keyspace.before_change(key)
    return found.value


def _unpacked(server: Server, key: bytes) -> RegionalStream | None:
    """Return a stream from the tombstones, which can be changed there from now on.

    A group of an expired stream may live that the expiry had not seen: then it is there again.
    """
    if server.changes.expired:  # until that is reported, it lies nowhere
        server.changes.report_expired()
        there = _about_to_change(server.data.dbs[0], key)
        if there is not None:
            return there
    tombstones = server.data.tombstones
    found = tombstones.peek(key)
    if found is not None and isinstance(found.value, bytes):
        tombstones.put(key, unpack_tombstone(found.value, region_of(server)), found.usage)
    return _about_to_change(tombstones, key)


def remembered_state(server: Server, key: bytes) -> RegionalStream | None:
    """Return a stream from the tombstones, not to be changed."""
    found = server.data.tombstones.peek(key)
    if found is None:
        return None
    value = found.value
    if isinstance(value, bytes):
        return unpack_tombstone(value, region_of(server))
    return value if isinstance(value, RegionalStream) else None


def empty(server: Server) -> RegionalStream:
    """Return a stream of which nothing is known."""
    return RegionalStream(region_of(server), IDMP_DURATION_S, IDMP_MAXSIZE)


def settle(server: Server, key: bytes, stream: RegionalStream) -> bool:
    """Put a stream that has changed where it belongs. Return whether its key is there now.

    It replaces a key of another type.
    """
    data = server.data
    db = data.dbs[0]
    now_ms = server.clock.now_ns // 1_000_000
    found = db.peek(key)
    is_there = found is not None and found.value is stream
    if stream.exists():
        if found is None or not is_there:
            _place(server, key, stream, now_ms)
        elif found.expire_ms != NO_EXPIRY or stream.ttl.settings:
            take_deadline(server, key, stream)
        return True
    if is_there:
        db.remove(key)
        server.changes.report(0, key, DELETED, None, 1, False)
    keep_tombstone(server, key, stream)
    return False


def settle_and_report(
    found: Effect, stream: RegionalStream, event: Event, count: int = 1, wakes: bool = True
) -> None:
    """As ``settle``, of the key of ``AA effect key ...``; report the change if the key is there."""
    key = found.words[2]
    if settle(found.server, key, stream) and count:
        found.server.changes.report(0, key, event, None, count, wakes)


def note_outlived(server: Server, key: bytes, stream: RegionalStream) -> None:
    """Check whether lanes may end (``tombstones``): entries have gone, or a lane has begun."""
    if len(stream.lanes) > 1 and stream.outlived():
        region = region_of(server)
        region.garbage[key] = None
        region.garbage_known = region.known()


def keep_tombstone(server: Server, key: bytes, stream: RegionalStream) -> None:
    """Remember a stream that is not there, as long as something of it matters."""
    tombstones = server.data.tombstones
    if not stream.is_idle():
        now_ms = server.clock.now_ns // 1_000_000
        tombstones.put(key, pack_tombstone(stream) or stream, now_ms)
    elif key in tombstones:
        tombstones.remove(key)
    region_of(server).garbage.pop(key, None)  # whatever lies in the tombstones is looked at


def drop_tombstone(server: Server, key: bytes, stream: RegionalStream) -> None:
    """Remove the tombstone of a key whose stream is there again."""
    if server.data.tombstones.remove(key) is not None and stream.has_garbage():
        region_of(server).garbage[key] = None


def _place(server: Server, key: bytes, stream: RegionalStream, now_ms: int) -> None:
    data = server.data
    db = data.dbs[0]
    changes = server.changes
    drop_tombstone(server, key, stream)
    found = db.peek(key)
    if found is None:
        if changes.has_listeners or server.blocking.key_count:
            changes.report(0, key, CREATED, None, 0, False)
    else:
        lived = found.expire_ms == NO_EXPIRY or found.expire_ms >= now_ms
        if lived and not server.gate.reasons & LOADING_DATA:  # else it has been said
            region_of(server).others_lost += 1
            log.warning(
                "Another region has made a stream %s, and a key of another type that was kept here "
                "alone has given way to it (aa-other-keys local): it is lost. Give such keys names "
                "that no stream gets",
                shown(key),
            )
        data.free_later(db.remove(key))
        changes.report(0, key, OVERWRITTEN, None, 0, False)
        changes.report(0, key, TYPE_CHANGED, None, 0, False)
    db.put(key, stream, now_ms)
    take_deadline(server, key, stream)


def take_deadline(server: Server, key: bytes, stream: RegionalStream) -> None:
    """Give a key that is there the deadline that its register holds."""
    db = server.data.dbs[0]
    moment_ms = stream.deadline_ms()
    if moment_ms != NO_DEADLINE:
        db.expire_at(key, moment_ms)
    elif db[key].expire_ms != NO_EXPIRY:
        db.persist(key)


def note_gaps_closed(found: Effect, stream: RegionalStream) -> None:
    """Have other regions updated, because acknowledged prefixes may not be held back any more."""
    if found.replaying:
        return
    unpublished = region_of(found.server).unpublished
    for group in stream.groups.values():
        if places_of(group).place:
            unpublished[(found.words[2], group.name)] = None
