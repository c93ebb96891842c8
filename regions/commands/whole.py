"""Whole streams as effects: what RENAME, COPY and RESTORE put under a key."""

from __future__ import annotations

from typing import Final, cast

from headrace.compat.stream_ids import format_id
from headrace.regions.commands.grouping import publish_waiting
from headrace.regions.commands.joining import begin_to_join, replace
from headrace.regions.commands.moving import move_group
from headrace.regions.commands.removing import RegionalExpiries
from headrace.regions.commands.settings import limits_record, set_deadline
from headrace.regions.commands.state import in_grave, known_state, settle
from headrace.regions.exchange.effects import (
    KeyJoin,
    Replication,
    emit,
    may_write,
    region_of,
    removal,
    replicates,
)
from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.adopting import adopted, alone
from headrace.regions.lanes.fingerprint import fingerprint, shared_state
from headrace.regions.lanes.garbage import collect, lanes_to_end, sweeper
from headrace.regions.lanes.grave import outlasts
from headrace.regions.lanes.handing import has_read
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.changes.changes import Expiries
from headrace.server.state import Server
from headrace.storage.sharing import AA, Replicated
from headrace.storage.stream.groups import HERE
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Value
from headrace.storage.vectors import Numbers, encode_lanes, encode_numbers, lane_name

_PAGE: Final = 1000


class StreamReplication(Replication):
    """What streams do."""

    def rebuild(self, server: Server, key: bytes, value: object) -> None:
        _rebuild(server, key, cast("Stream", value))

    def set_deadline(self, server: Server, key: bytes, moment_ms: int) -> None:
        found = server.data.dbs[0][key]
        set_deadline(server, key, cast("RegionalStream", found.value), moment_ms)

    def expiries(self, server: Server) -> Expiries:
        return RegionalExpiries(server)

    def collect(self, server: Server, key: bytes, stable: Numbers) -> bool:
        found = server.data.graves.peek(key)
        if found is not None and isinstance(found.value, bytes) and outlasts(found.value, stable):
            return True
        stream = known_state(server, key)
        if stream is None:
            return False
        collect(stream, stable)
        settle(server, key, stream)
        region = region_of(server)
        region.note_left(stream.left_over())
        if sweeper(stream, stable, region.members()) == region.id and may_write(server):
            emit(server, removal(b"EXPIRE", key, stream, region))
        lanes = lanes_to_end(stream, stable, region)
        if lanes and may_write(server):
            emit(server, [AA, b"EXPIRE", key, encode_lanes(lanes), encode_numbers({})])
        return stream.has_garbage()

    def adopted(self, region: Region, value: object, deadline_ms: int) -> Value | None:
        if not isinstance(value, Stream):
            return None
        return adopted(region, value, deadline_ms)

    def alone(self, value: Value) -> Value:
        return alone(cast("RegionalStream", value))

    def loaded(self, server: Server) -> None:
        region = region_of(server)
        for db in (server.data.dbs[0], server.data.graves):
            for entry in db.every():
                stream = entry.value
                if not isinstance(stream, RegionalStream):
                    continue
                if db is not server.data.graves and stream.has_garbage():
                    region.garbage[entry.key] = None
                for name, group in stream.groups.items():
                    places = places_of(group)
                    is_elsewhere = places.elsewhere(stream) > HERE and has_read(group)
                    if is_elsewhere or places.prefix(stream, group):
                        region.unpublished[entry.key, name] = None

    def remembered(self, server: Server, key: bytes) -> Replicated | None:
        return in_grave(server, key)

    def join(
        self, server: Server, key: bytes, copy: object | None, mine: Numbers, theirs: Numbers
    ) -> KeyJoin | None:
        return begin_to_join(server, key, copy, mine, theirs)

    def replace(self, server: Server, key: bytes, copy: object | None, theirs: Numbers) -> None:
        replace(server, key, copy, theirs)

    def move_group(self, server: Server, key: bytes, name: bytes, to: int, force: bool) -> None:
        move_group(server, key, name, to, force)

    def publish(self, server: Server) -> None:
        publish_waiting(server)

    def shared_state(self, value: object) -> list[bytes]:
        return shared_state(cast("RegionalStream", value))

    def fingerprint(self, value: object, newest: int) -> bytes:
        return fingerprint(cast("RegionalStream", value), newest=newest)


replicates(StreamReplication())


def _rebuild_empty(server: Server, key: bytes, stream: Stream) -> None:
    """Let a stream be there that has no entry any more: its last one is added, and deleted."""
    region = region_of(server)
    number = region.new_lane()
    last = format_id(stream.last_ms, stream.last_seq)
    emit(server, [b"XADD", key, b"NEWLANE", b"%d" % number, b"MANUAL", last, b"", b""])
    emit(server, [AA, b"XDEL", key, lane_name(region.origin, number), last])


def _rebuild(server: Server, key: bytes, stream: Stream) -> None:
    """Add all entries of a stream to a key that is free, with their IDs, in a lane of their own."""
    if not stream.length and (stream.last_ms or stream.last_seq):
        _rebuild_empty(server, key, stream)
        return
    begun = False
    start = (0, 0)
    left = stream.length
    while left > 0:
        for part in stream.parts(start, (ID_MAX, ID_MAX), _PAGE, False):
            run = part.run
            for number in range(part.low, part.high):
                if part.dead is not None and part.dead[number]:
                    continue
                record = [b"XADD", key]
                if not begun:
                    record += [b"NEWLANE", b"%d" % region_of(server).new_lane()]
                    begun = True
                entry_id = format_id(run.ms[number], run.seq[number])
                emit(server, [*record, b"MANUAL", entry_id, *run.row(number)])
                start = following(run.ms[number], run.seq[number])
                left -= 1
    if begun and not stream.has_default_limits():
        limits = limits_record(key, stream.idmp_duration_s, stream.idmp_maxsize, 0)
        emit(server, limits)
