"""Looks into every entry of a stream that comes from outside: is it one that we could have made?

A checksum says that bytes are as they were written. It does not say who wrote them.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.forms.form import Unsound
from headrace.persistence.forms.records import UNDECODABLE
from headrace.storage.stream.block import Block
from headrace.storage.stream.groups import Group
from headrace.storage.stream.packing import pack
from headrace.storage.stream.stream import Stream

ID_END: Final = 2**64


def check_stream(stream: Stream) -> None:
    """Look at all of a stream that was decoded from records.

    Its sealed blocks have to be packed as we pack them. msgpack has more than one way to spell the
    same, and the code that reads a few entries of a block knows only ours.

    Raises:
        Unsound: it is none that appending, deleting and reading could have made.
    Complexity: O(entries + pending entries).
    """
    check_entries(stream)
    check_beside_entries(stream)


def check_beside_entries(stream: Stream) -> None:
    """Look at the groups and the idempotent ids of a stream; see ``check_stream``."""
    for group in stream.groups.values():
        _check_group(group)
    _check_idmp(stream)


def check_entries(stream: Stream) -> None:
    """Look at the entries of a stream, or of one of its lanes; see ``check_stream``."""
    last = (0, 0)
    checked = list(stream.index.blocks)
    if stream.tail is not None:
        checked.append(stream.tail)
    for number, block in enumerate(checked):
        try:
            _check_block(block, last if number else (-1, 0))
        except UNDECODABLE as error:
            raise Unsound(f"block {number} cannot be decoded: {error}") from error
        last = (block.last_ms, block.last_seq)
    # With nothing but deleted entries left, XSETID may have put the last ID anywhere.
    if stream.length and last > (stream.last_ms, stream.last_seq):
        raise Unsound("an entry above the last ID")
    for ms, seq in (
        (stream.last_ms, stream.last_seq),
        (stream.max_deleted_ms, stream.max_deleted_seq),
    ):
        check_id(ms, seq)
    last_id = (stream.last_ms, stream.last_seq)
    if (stream.max_deleted_ms, stream.max_deleted_seq) > last_id:
        raise Unsound("a deleted entry above the last ID")
    if stream.entries_added < stream.length:
        raise Unsound("more entries than were added")


def check_id(ms: int, seq: int) -> None:
    """Look at an ID; see ``check_stream``."""
    if not (0 <= ms < ID_END and 0 <= seq < ID_END):
        raise Unsound("an ID out of range")


def _check_block(block: Block, above: tuple[int, int]) -> None:
    run = block.run
    if run is None:
        run = block.decode()
    count = len(run.ms)
    stored = block.live if block.dead is None else len(block.dead)
    if not count or count != stored or block.node_bytes <= 0 or block.total < count:
        raise Unsound("a block with other entries than it says")
    if above >= (block.first_ms, block.first_seq):
        raise Unsound("blocks out of order")
    last = (-1, 0)
    for number in range(count):
        place = (run.ms[number], run.seq[number])
        check_id(place[0], place[1])
        if place <= last:
            raise Unsound("entries out of order")
        last = place
    if (block.first_ms, block.first_seq) > (run.ms[0], run.seq[0]) or last > (
        block.last_ms,
        block.last_seq,
    ):
        raise Unsound("a block with entries beyond its first or last ID")
    check_id(block.last_ms, block.last_seq)
    if run.names is None:
        if len(run.rows) != count:
            raise Unsound("a block with more or fewer rows than IDs")
        for row in run.rows:
            _check_row(row)
            if len(row) % 2:
                raise Unsound("a field without a value")
    else:
        if len(run.flat) != count * len(run.names):
            raise Unsound("a block with more or fewer values than it needs")
        _check_row(run.names)
        for value in run.flat:
            _check_text(value)
    if not block.is_open():
        block.payload, block.ids_bytes = pack(run)


def _check_row(row: object) -> None:
    if not isinstance(row, list) or not row:
        raise Unsound("an entry without fields")
    for text in row:
        _check_text(text)


def _check_text(text: object) -> None:
    if not isinstance(text, bytes):
        raise Unsound("a field or value that is no bytes")


def _check_group(group: Group) -> None:
    if group.entries_read < -1 or group.max_pending < 0:
        raise Unsound("a group's counters out of range")
    check_id(group.last_ms, group.last_seq)
    last = (-1, 0)
    for chunk in group.pel.chunks:
        for nack in chunk.live():
            check_id(nack.ms, nack.seq)
            if (nack.ms, nack.seq) <= last:
                raise Unsound("an entry that is pending twice")
            last = (nack.ms, nack.seq)
            if nack.delivery_ms < 0 or not 0 <= nack.count < 2**63:
                raise Unsound("a pending entry's time or count out of range")
            if nack.consumer is None and nack.delivery_ms:
                raise Unsound("a released entry with a time")


def _check_idmp(stream: Stream) -> None:
    if stream.iids_added < 0 or stream.iids_duplicates < 0:
        raise Unsound("counters of idempotent ids out of range")
    for pid, iid, ms, seq, _ in stream.idmp_records():
        if not pid or not iid:
            raise Unsound("an idempotent id without a name")
        check_id(ms, seq)
