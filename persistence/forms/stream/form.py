"""The form of streams: their records, RDB types and commands, and when they are sound.

As commands a stream is what Redis's own rewrite makes, so that Redis can read them: XADD for each
entry and XSETID for the counters; a stream without entries is made by adding one and trimming it at
once. Its groups follow, each with its consumers, their pending entries, and the released ones in
the order of their release. Then come the limits of its IDMP map, where they are not the default,
and each of its iids as XIDMPRECORD. Redis refuses one for an entry that was deleted. An iid has a
comment in front, with the time when it was added, where the ID of its entry does not say that time.

A stream that comes from outside is sound where each of its entries is one that we could have made.
A checksum says that bytes are as they were written, and not who wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, cast

from headrace.persistence.forms.form import Commands, Form, Unsound, Walk, Writer, annotation
from headrace.persistence.forms.records import UNDECODABLE, Intake, Reader, Records
from headrace.persistence.forms.stream.rdb import (
    IID_TIMES,
    KINDS,
    MAX_PENDING,
    MOMENTS,
    VERSION_7_0,
    VERSION_8_6,
    VERSION_8_8,
    StreamRdb,
    read_stream,
    stream_type,
    take_iid_times,
    take_max_pending,
    take_moments,
)
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from headrace.protocol.client import request
from headrace.protocol.wire import array_header, bulk
from headrace.storage.stream.block import Block
from headrace.storage.stream.contents import IDMP_DURATION_S, IDMP_MAXSIZE, Contents
from headrace.storage.stream.frozen import NO_OWNER, STREAM, FrozenGroup, FrozenStream, Pending
from headrace.storage.stream.groups import Group
from headrace.storage.stream.idmp import Producer
from headrace.storage.stream.packing import pack
from headrace.storage.stream.pel import HELD
from headrace.storage.stream.stream import Stream

ID_END: Final = 2**64


def check_stream(stream: Stream) -> None:
    """Check all of a stream that was decoded from records.

    Its sealed blocks have to be packed as we pack them. msgpack has more than one way to spell the
    same, and the code that reads a few entries of a block knows only ours.

    Raises Unsound if appending, deleting and reading could not have made it.

    Complexity: O(entries + pending entries).
    """
    check_entries(stream)
    check_beside_entries(stream)


def check_beside_entries(stream: Stream) -> None:
    """Check the groups and the idempotent ids of a stream; see ``check_stream``."""
    for group in stream.groups.values():
        _check_group(group)
    _check_idmp(stream)


def check_entries(stream: Stream) -> None:
    """Check the entries of a stream, or of one of its lanes; see ``check_stream``."""
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
    """Check an ID; see ``check_stream``."""
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


def _check_idmp(stream: Stream) -> None:
    if stream.iids_added < 0 or stream.iids_duplicates < 0:
        raise Unsound("counters of idempotent ids out of range")
    for pid, iid, ms, seq, _ in stream.idmp_records():
        if not pid or not iid:
            raise Unsound("an idempotent id without a name")
        check_id(ms, seq)


BLOCKS_AT_ONCE: Final = 2
RELEASED_PAGE: Final = 64  # released entries in one command
_XADD: Final = bulk(b"XADD")


class StreamRewrite(Walk):
    """Makes the commands of one frozen stream, part by part."""

    def __init__(self, commands: Commands, key: bytes, stream: FrozenStream) -> None:
        self._commands: Final = commands
        self._key: Final = key
        self._stream: Final = stream
        self._entries_left = True
        self._next_group = 0
        self._limits_done = False
        self._group: FrozenGroup | None = None
        self._released: list[bytes] = []  # IDs, all with the count and the moment that follow
        self._released_count = 0
        self._released_until_ms = 0
        if not stream.length:
            commands.add([b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"])

    def step(self) -> bool:
        stream = self._stream
        if self._entries_left:
            blocks = stream.next_blocks(BLOCKS_AT_ONCE)
            for block in blocks:
                self._add_entries(block)
            if not blocks:
                self._entries_left = False
                if stream.tail is not None:
                    self._add_entries(stream.tail)
                self._set_id(stream)
        elif self._group is not None:
            self._go_on_with_group(self._group)
        elif self._next_group < len(stream.groups):
            self._begin_group(stream.groups[self._next_group])
            self._next_group += 1
        elif not self._limits_done:
            self._limits_done = True
            if not stream.has_default_limits:
                self._commands.add(
                    limits_command(self._key, stream.idmp_duration_s, stream.idmp_maxsize)
                )
        else:
            producer = stream.next_producer()
            if producer is None:
                return False
            self._record_iids(producer)
        return True

    def _add_entries(self, block: Block) -> None:
        run = block.run
        if run is None:
            run = block.decode()
        dead = block.dead
        names = run.names
        key = bulk(self._key)
        pieces: list[bytes] = []
        if names is None:
            for number, row in enumerate(run.rows):
                if dead is None or not dead[number]:
                    pieces.append(array_header(3 + len(row)) + _XADD + key)
                    pieces.append(bulk(b"%d-%d" % (run.ms[number], run.seq[number])))
                    for word in row:
                        pieces.append(bulk(word))
        else:
            head = array_header(3 + 2 * len(names)) + _XADD + key
            wires = [bulk(name) for name in names]
            width = len(names)
            flat = run.flat
            for number, ms in enumerate(run.ms):
                if dead is None or not dead[number]:
                    pieces.append(head)
                    pieces.append(bulk(b"%d-%d" % (ms, run.seq[number])))
                    start = number * width
                    for offset in range(width):
                        pieces.append(wires[offset])
                        pieces.append(bulk(flat[start + offset]))
        wire = b"".join(pieces)
        self._commands.add_wire(wire)

    def _set_id(self, stream: FrozenStream) -> None:
        self._commands.add(
            [
                b"XSETID",
                self._key,
                b"%d-%d" % (stream.last_ms, stream.last_seq),
                b"ENTRIESADDED",
                b"%d" % stream.entries_added,
                b"MAXDELETEDID",
                b"%d-%d" % (stream.max_deleted_ms, stream.max_deleted_seq),
            ]
        )

    def _begin_group(self, group: FrozenGroup) -> None:
        key = self._key
        last_id = b"%d-%d" % (group.last_ms, group.last_seq)
        self._commands.add(
            [
                *(b"XGROUP", b"CREATE", key, group.name, last_id),
                *(b"ENTRIESREAD", b"%d" % group.entries_read),
            ]
        )
        if group.max_pending and not self._commands.portable:
            self._commands.add(
                [
                    *(b"XGROUP", b"SETMODE", key, group.name),
                    *(b"MAX-PENDING", b"%d" % group.max_pending),
                ]
            )
        for consumer in group.consumers:
            if not consumer.pending:
                self._commands.add([b"XGROUP", b"CREATECONSUMER", key, group.name, consumer.name])
        self._group = group

    def _go_on_with_group(self, group: FrozenGroup) -> None:
        pending = group.next_pending()
        if pending is None:
            self._release(group)
            self._group = None
            return
        for number in range(len(pending.ms)):
            if pending.owners[number] == NO_OWNER:
                self._add_released(group, pending, number)
            else:
                self._claim(group, pending, number)

    def _claim(self, group: FrozenGroup, pending: Pending, number: int) -> None:
        owner = group.consumers[pending.owners[number]]
        entry_id = b"%d-%d" % (pending.ms[number], pending.seq[number])
        self._commands.add(
            [
                *(b"XCLAIM", self._key, group.name, owner.name, b"0", entry_id),
                *(b"TIME", b"%d" % pending.delivery_ms[number]),
                *(b"RETRYCOUNT", b"%d" % pending.counts[number]),
                *(b"JUSTID", b"FORCE"),
            ]
        )

    def _add_released(self, group: FrozenGroup, pending: Pending, number: int) -> None:
        """Collect released entries with the same count and moment for one command."""
        count = pending.counts[number]
        until_ms = pending.delivery_ms[number] % HELD  # those are found again
        is_like = count == self._released_count and until_ms == self._released_until_ms
        if not is_like or len(self._released) == RELEASED_PAGE:
            self._release(group)
        self._released_count = count
        self._released_until_ms = until_ms
        self._released.append(b"%d-%d" % (pending.ms[number], pending.seq[number]))

    def _release(self, group: FrozenGroup) -> None:
        ids = self._released
        if ids:
            self._commands.add(
                [
                    *(b"XNACK", self._key, group.name, b"FAIL", b"IDS", b"%d" % len(ids), *ids),
                    *(b"RETRYCOUNT", b"%d" % self._released_count, b"FORCE"),
                ]
            )
            if self._released_until_ms and not self._commands.portable:
                words = [b"XNACKIN", self._key, group.name, b"AT"]
                moment = b"%d" % self._released_until_ms
                self._commands.add([*words, moment, b"IDS", b"%d" % len(ids), *ids])
            self._released = []

    def _record_iids(self, producer: Producer) -> None:
        pieces: list[bytes] = []
        for iid, ms, seq, added_ms in producer.records():
            if added_ms != ms and self._commands.stamped:
                pieces.append(annotation(added_ms // 1000))
            entry_id = b"%d-%d" % (ms, seq)
            pieces.append(request([b"XIDMPRECORD", self._key, producer.pid, iid, entry_id]))
        wire = b"".join(pieces)
        self._commands.add_wire(wire)


def limits_command(key: bytes, duration_s: int, maxsize: int) -> list[bytes]:
    """Return the command that gives a stream these limits of its IDMP map."""
    return [
        *(b"XCFGSET", key, b"IDMP-DURATION", b"%d" % duration_s),
        *(b"IDMP-MAXSIZE", b"%d" % maxsize),
    ]


class StreamForm(Form):
    """Streams."""

    def __init__(
        self,
        record_kinds: dict[int, str],
        writer: Callable[[Records], Writer],
        reader: Callable[[Intake], Reader],
    ) -> None:
        parts = ["entries", "groups", "pending entries"]
        super().__init__(STREAM, "streams", record_kinds, KINDS, parts, writer, reader)

    def check(self, value: object) -> None:
        check_stream(cast("Stream", value))

    def rewrite(self, commands: Commands, key: bytes, value: object) -> StreamRewrite:
        return StreamRewrite(commands, key, cast("FrozenStream", value))

    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        duration_s = defaults.get("stream-idmp-duration", IDMP_DURATION_S)
        maxsize = defaults.get("stream-idmp-maxsize", IDMP_MAXSIZE)
        return read_stream(source, number, duration_s, maxsize)

    def take_note(self, value: object, name: bytes, source: RdbSource) -> None:
        stream = cast("Stream", value)
        if name == MAX_PENDING:
            take_max_pending(stream, source)
        elif name == MOMENTS:
            take_moments(stream, source)
        elif name == IID_TIMES:
            take_iid_times(stream, source)

    def rdb_version(self, value: object) -> int:
        stream = cast("Contents", value)
        for group in stream.groups.values():
            if group.zone:
                return VERSION_8_8
        has_iids = stream.idmp is not None or stream.iids_added > 0
        return VERSION_8_6 if has_iids or not stream.has_default_limits() else VERSION_7_0

    def frozen_rdb_version(self, value: object) -> int:
        stream = cast("FrozenStream", value)
        for group in stream.groups:
            if group.zone:
                return VERSION_8_8
        has_iids = stream.producers > 0 or stream.iids_added > 0
        return VERSION_8_6 if has_iids or not stream.has_default_limits else VERSION_7_0

    def rdb_type(self, value: object, version: int) -> int:
        return stream_type(version)

    def write_rdb(self, output: RdbOutput, value: object) -> StreamRdb:
        return StreamRdb(output, cast("FrozenStream", value))

    def part_counts(self, value: object) -> list[int]:
        stream = cast("Stream", value)
        pending = sum([group.pel.size for group in stream.groups.values()])
        return [stream.length, len(stream.groups), pending]

    def lacking_counts(self, value: object) -> list[int]:
        released = 0
        limited = 0
        for group in cast("Stream", value).groups.values():
            released += group.zone > 0
            limited += group.max_pending > 0
        return [released, limited]

    def lacking_elsewhere(self, counts: list[int]) -> list[str]:
        released, limited = counts
        found: list[str] = []
        if released:
            found.append(f"{released} groups hold released entries: XNACK needs Redis 8.8.")
        if limited:
            found.append(f"{limited} groups have a MAX-PENDING, which Redis does not know.")
        return found
