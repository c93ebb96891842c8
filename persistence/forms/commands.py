"""The keyspace as commands: a base file in RESP form.

A database is a SELECT and then its keys. A key is made by the commands that Redis's own rewrite
uses, so that Redis can read them: SET; XADD for each entry and XSETID for the counters, where a
stream without entries is made by adding one and trimming it at once. Its groups follow, each with
its consumers, their pending entries, and those that were released in the order of their release.
Then come the limits of its IDMP map, where they are not the default, and each of its iids as
XIDMPRECORD; one for an entry that was deleted Redis will not take. A deadline follows as PEXPIREAT.

An iid has a comment in front, with the time when it was added, where the ID of its entry does not
tell that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.persistence.aof.file import annotation
from headrace.persistence.encoder import Encoder
from headrace.protocol.replies import array_header, bulk, request
from headrace.protocol.requests import RequestParser
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.stream.frozen import NO_OWNER, FrozenGroup, FrozenStream, Pending

if TYPE_CHECKING:
    from headrace.storage.freezing import FrozenKey
    from headrace.storage.stream.block import Block
    from headrace.storage.stream.producer import Producer
    from headrace.storage.stream.stream import Stream

BLOCKS_AT_ONCE: Final = 2
RELEASED_PAGE: Final = 64  # released entries in one command
BULK_MAX_BYTES: Final = 1 << 40
_XADD: Final = bulk(b"XADD")


class CommandEncoder(Encoder):
    """Makes commands of keys.

    Args:
        stamps: tell when an iid was added, in a comment; there is no place for it outside a file.
        begun_s: the second to begin with, in a comment; 0 for none.
    """

    def __init__(self, stamps: bool = True, begun_s: int = 0) -> None:
        super().__init__()
        self._stamps: Final = stamps
        self._begun_s: Final = begun_s
        self._made: list[bytes] = []
        self._db = -1
        self._key = b""
        self._expire_ms = NO_EXPIRY
        self._stream: FrozenStream | None = None
        self._entries_left = False
        self._next_group = 0
        self._limits_done = False
        self._group: FrozenGroup | None = None
        self._released: list[bytes] = []  # IDs, all with the count that follows
        self._released_count = 0

    def begin(self) -> None:
        """Write the time, where that is asked for."""
        if self._begun_s:
            stamp = annotation(self._begun_s)
            self._made.append(stamp)
            self.size_bytes += len(stamp)

    def add(self, key: FrozenKey) -> bool:
        """Take a key; see ``Encoder``."""
        if key.db != self._db:
            self._db = key.db
            self._command([b"SELECT", b"%d" % key.db])
        value = key.value
        self._key = key.key
        self._expire_ms = key.expire_ms
        if isinstance(value, FrozenStream):
            self._stream = value
            self._entries_left = True
            self._next_group = 0
            self._limits_done = False
            if not value.length:
                self._command([b"XADD", key.key, b"MAXLEN", b"0", b"0-1", b"x", b"y"])
            return True
        if isinstance(value, bytes):
            self._command([b"SET", key.key, value])
        else:
            assert isinstance(value, int)
            self._command([b"SET", key.key, b"%d" % value])
        self._expire()
        return False

    def more(self) -> bool:
        """Go on with a stream; see ``Encoder``."""
        stream = self._stream
        assert stream is not None
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
                self._command(limits_command(self._key, stream))
        else:
            producer = stream.next_producer()
            if producer is not None:
                self._record_iids(producer)
            else:
                self._stream = None
                self._expire()
        return self._stream is not None

    def take(self) -> list[bytes]:
        """What has been made since the last call, in the order of the file."""
        made = self._made
        self._made = []
        self.size_bytes = 0
        return made

    def _command(self, words: list[bytes]) -> None:
        wire = request(words)
        self._made.append(wire)
        self.size_bytes += len(wire)

    def _expire(self) -> None:
        if self._expire_ms != NO_EXPIRY:
            self._command([b"PEXPIREAT", self._key, b"%d" % self._expire_ms])

    # Streams

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
        self._made.append(wire)
        self.size_bytes += len(wire)

    def _set_id(self, stream: FrozenStream) -> None:
        self._command(
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
        self._command(
            [
                *(b"XGROUP", b"CREATE", key, group.name, last_id),
                *(b"ENTRIESREAD", b"%d" % group.entries_read),
            ]
        )
        if group.max_pending:
            self._command(
                [
                    *(b"XGROUP", b"SETMODE", key, group.name),
                    *(b"MAX-PENDING", b"%d" % group.max_pending),
                ]
            )
        for consumer in group.consumers:
            if not consumer.pending:
                self._command([b"XGROUP", b"CREATECONSUMER", key, group.name, consumer.name])
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
        self._command(
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
            self._command(
                [
                    *(b"XNACK", self._key, group.name, b"FAIL", b"IDS", b"%d" % len(ids), *ids),
                    *(b"RETRYCOUNT", b"%d" % self._released_count, b"FORCE"),
                ]
            )
            self._released = []

    def _record_iids(self, producer: Producer) -> None:
        pieces: list[bytes] = []
        for iid, ms, seq, added_ms in producer.records():
            if added_ms != ms and self._stamps:
                pieces.append(annotation(added_ms // 1000))
            entry_id = b"%d-%d" % (ms, seq)
            pieces.append(request([b"XIDMPRECORD", self._key, producer.pid, iid, entry_id]))
        wire = b"".join(pieces)
        self._made.append(wire)
        self.size_bytes += len(wire)


def limits_command(key: bytes, stream: Stream | FrozenStream) -> list[bytes]:
    """The command that gives another stream the limits of this one's IDMP map."""
    return [
        *(b"XCFGSET", key, b"IDMP-DURATION", b"%d" % stream.idmp_duration_s),
        *(b"IDMP-MAXSIZE", b"%d" % stream.idmp_maxsize),
    ]


def key_commands(key: FrozenKey) -> list[list[bytes]]:
    """The commands that make one key in the database that is selected."""
    encoder = CommandEncoder(stamps=False)
    more = encoder.add(key)
    while more:
        more = encoder.more()
    parser = RequestParser(BULK_MAX_BYTES)
    parser.feed(b"".join(encoder.take()))
    commands: list[list[bytes]] = []
    while True:
        some = parser.take()
        if not some:
            return commands[1:]  # without SELECT
        commands += some
