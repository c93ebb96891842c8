"""A stream is joined with a copy, in pieces between clients' requests, or gives way to it."""

from __future__ import annotations

from typing import Final

from headrace.regions.commands.moving import note_groups_elsewhere
from headrace.regions.commands.state import known_state, settle
from headrace.regions.exchange.effects import KeyJoin, region_of
from headrace.regions.lanes.join import Join, join, keep_local
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.changes.events import DELETED
from headrace.server.commands.streams.args import XADDED
from headrace.server.state import Server
from headrace.storage.stream.contents import IDMP_DURATION_S, IDMP_MAXSIZE
from headrace.storage.vectors import Numbers


class StreamJoin(KeyJoin):
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


def begin_to_join(
    server: Server, key: bytes, copy: object | None, mine: Numbers, theirs: Numbers
) -> StreamJoin | None:
    """Begin to join a key; None where there is nothing to be joined.

    A value that is no stream is not the other region's to give.
    """
    if copy is not None and not isinstance(copy, RegionalStream):
        return None
    stream = known_state(server, key)
    if stream is None:
        if copy is None:
            return None
        stream = _empty(server)
    return StreamJoin(server, key, stream, copy or _empty(server), mine, theirs)


def replace(server: Server, key: bytes, copy: object | None, theirs: Numbers) -> None:
    """Let what is here of a key give way to a copy; what is local stays."""
    data = server.data
    mine = known_state(server, key)
    fresh = _empty(server)
    if isinstance(copy, RegionalStream):
        join(fresh, copy, {}, theirs, data.node_limits)
    elif mine is None:
        return
    if mine is not None:
        keep_local(fresh, mine)
        for keyspace in (data.dbs[0], data.graves):
            data.free_later(keyspace.remove(key))
        server.changes.report(0, key, DELETED, None, 1, False)
    if fresh.has_garbage():
        region_of(server).note_garbage_of_copy(key, theirs)
    if settle(server, key, fresh):
        note_groups_elsewhere(server, key, fresh)
        server.changes.report(0, key, XADDED, None, 1, True)


def _empty(server: Server) -> RegionalStream:
    return RegionalStream(region_of(server), IDMP_DURATION_S, IDMP_MAXSIZE)
