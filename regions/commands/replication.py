"""Streams keep the same state in all regions: see ``Replication``."""

from __future__ import annotations

from typing import Final, cast

from headrace.compat.stream_ids import format_id
from headrace.regions.commands.group_handover import move_group, note_groups_elsewhere
from headrace.regions.commands.state import empty, known_state, remembered_state, settle
from headrace.regions.commands.stream_effects import (
    RegionalExpiries,
    limits_record,
    publish_waiting,
)
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
from headrace.regions.lanes.conversion import adopted, alone
from headrace.regions.lanes.fingerprint import fingerprint, shared_state
from headrace.regions.lanes.handover import has_read
from headrace.regions.lanes.join import Join, keep_local
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.tombstones import collect, lanes_to_end, lasts, sweeper
from headrace.server.changes.changes import Expiries
from headrace.server.changes.events import DELETED
from headrace.server.commands.streams.args import XADDED
from headrace.server.state import Server
from headrace.storage.sharing import AA, Replicated
from headrace.storage.stream.groups import HERE
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Value
from headrace.storage.vectors import Numbers, encode_lanes, encode_numbers, lane_name

_PAGE: Final = 1000


class StreamJoin:
    """One stream on its way to be joined."""

    def __init__(
        self,
        server: Server,
        key: bytes,
        stream: RegionalStream,
        copy: RegionalStream,
        mine: Numbers,
        theirs: Numbers,
    ) -> None:
        self._server: Final = server
        self._key: Final = key
        self._stream: Final = stream
        self._theirs: Final = theirs
        self._join: Final = Join(stream, copy, mine, theirs, server.data.node_limits)

    def step(self) -> bool:
        """Join the next slice. Return whether more is left. See ``KeyJoin``."""
        server = self._server
        key = self._key
        stream = self._stream
        known_state(server, key)  # a snapshot may have begun since the last piece
        if self._join.step():
            return True
        if stream.has_garbage():
            region_of(server).note_garbage_of_copy(key, self._theirs)
        settle(server, key, stream)
        note_groups_elsewhere(server, key, stream)
        server.changes.report(0, key, XADDED, None, 1, True)
        return False


class StreamReplication(Replication):
    """The replication of streams."""

    def rebuild(self, server: Server, key: bytes, value: object) -> None:
        stream = cast("Stream", value)
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

    def set_deadline(self, server: Server, key: bytes, moment_ms: int) -> None:
        stream = cast("RegionalStream", server.data.dbs[0][key].value)
        version = stream.ttl.next_version()
        emit(server, [AA, b"TTL", key, b"%d" % moment_ms, b"%d" % version])

    def expiries(self, server: Server) -> Expiries:
        return RegionalExpiries(server)

    def collect(self, server: Server, key: bytes, stable: Numbers) -> bool:
        found = server.data.tombstones.peek(key)
        if found is not None and isinstance(found.value, bytes) and lasts(found.value, stable):
            return True
        stream = known_state(server, key)
        if stream is None:
            return False
        collect(stream, stable)
        settle(server, key, stream)
        region = region_of(server)
        region.note_left(stream.left_over())
        is_sweeper = sweeper(stream, stable, region.members()) == region.id
        lanes = lanes_to_end(stream, stable, region)
        if not may_write(server):
            region.looks_again |= is_sweeper or bool(lanes)
            return stream.has_garbage()
        if is_sweeper:
            emit(server, removal(b"EXPIRE", key, stream, region))
            lanes = lanes_to_end(stream, stable, region)
        if lanes:
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
        for db in (server.data.dbs[0], server.data.tombstones):
            for entry in db.every():
                stream = entry.value
                if not isinstance(stream, RegionalStream):
                    continue
                if db is not server.data.tombstones and stream.has_garbage():
                    region.garbage[entry.key] = None
                for name, group in stream.groups.items():
                    places = places_of(group)
                    is_elsewhere = places.elsewhere(stream) > HERE and has_read(group)
                    if is_elsewhere or places.prefix(stream, group):
                        region.unpublished[entry.key, name] = None

    def remembered(self, server: Server, key: bytes) -> Replicated | None:
        return remembered_state(server, key)

    def join(
        self, server: Server, key: bytes, copy: object | None, mine: Numbers, theirs: Numbers
    ) -> KeyJoin | None:
        # A value that is no stream is not the other region's to give.
        if copy is not None and not isinstance(copy, RegionalStream):
            return None
        stream = known_state(server, key)
        if stream is None:
            if copy is None:
                return None
            stream = empty(server)
        return StreamJoin(server, key, stream, copy or empty(server), mine, theirs).step

    def replace(self, server: Server, key: bytes, copy: object | None, theirs: Numbers) -> None:
        data = server.data
        mine = known_state(server, key)
        fresh = empty(server)
        if isinstance(copy, RegionalStream):
            joining = Join(fresh, copy, {}, theirs, data.node_limits)
            while joining.step():
                pass
        elif mine is None:
            return
        if mine is not None:
            keep_local(fresh, mine)
            for keyspace in (data.dbs[0], data.tombstones):
                data.free_later(keyspace.remove(key))
            server.changes.report(0, key, DELETED, None, 1, False)
        if fresh.has_garbage():
            region_of(server).note_garbage_of_copy(key, theirs)
        if settle(server, key, fresh):
            note_groups_elsewhere(server, key, fresh)
            server.changes.report(0, key, XADDED, None, 1, True)

    def move_group(self, server: Server, key: bytes, name: bytes, to: int, force: bool) -> None:
        move_group(server, key, name, to, force)

    def publish(self, server: Server) -> None:
        publish_waiting(server)

    def shared_state(self, value: object) -> list[bytes]:
        return shared_state(cast("RegionalStream", value))

    def fingerprint(self, value: object, newest: int) -> bytes:
        return fingerprint(cast("RegionalStream", value), newest=newest)


def _rebuild_empty(server: Server, key: bytes, stream: Stream) -> None:
    """Make a stream that has no entry any more: its last one is added, and deleted."""
    region = region_of(server)
    number = region.new_lane()
    last = format_id(stream.last_ms, stream.last_seq)
    emit(server, [b"XADD", key, b"NEWLANE", b"%d" % number, b"MANUAL", last, b"", b""])
    emit(server, [AA, b"XDEL", key, lane_name(region.origin, number), last])


replicates(StreamReplication())
