"""A stream as commands, those that Redis's own rewrite uses, so that Redis can read them.

XADD for each entry and XSETID for the counters; a stream without entries is made by adding one and
trimming it at once. Its groups follow, each with its consumers, their pending entries, and those
that were released in the order of their release. Then come the limits of its IDMP map, where they
are not the default, and each of its iids as XIDMPRECORD. Redis refuses one for an entry that was
deleted.

An iid has a comment in front, with the time when it was added, where the ID of its entry does not
say that time.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.forms.form import Commands, Walk, annotation
from headrace.protocol.client import request
from headrace.protocol.wire import array_header, bulk
from headrace.storage.stream.block import Block
from headrace.storage.stream.frozen import NO_OWNER, FrozenGroup, FrozenStream, Pending
from headrace.storage.stream.producer import Producer

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
        self._released: list[bytes] = []  # IDs, all with the count that follows
        self._released_count = 0
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
        if group.max_pending:
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
        """Released entries with the same count go into one command."""
        count = pending.counts[number]
        if count != self._released_count or len(self._released) == RELEASED_PAGE:
            self._release(group)
        self._released_count = count
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
    """The command that gives a stream these limits of its IDMP map."""
    return [
        *(b"XCFGSET", key, b"IDMP-DURATION", b"%d" % duration_s),
        *(b"IDMP-MAXSIZE", b"%d" % maxsize),
    ]
