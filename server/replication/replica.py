"""One replica: the data that it has been sent, and how much it has acknowledged."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from headrace.protocol.client import bulk_head, marked_head
from headrace.server.clients.session import ReplicaFacts, Session
from headrace.server.clock import Clock
from headrace.server.statistics.statistics import Counters

WAITS: Final = 0  # for a snapshot to begin
WRITING: Final = 1  # that snapshot is being written
SENDING: Final = 2  # and is being sent
ONLINE: Final = 3  # it gets the stream
STREAMING: Final = 4  # a snapshot is sent while it is being made
COPIED: Final = 5  # that is over, and the replica says when it wants the stream
STATES: Final = (
    *(b"wait_bgsave", b"wait_bgsave", b"send_bulk", b"online"),
    *(b"wait_bgsave", b"online"),
)
CHUNK_BYTES: Final = 1 << 18
SILENT: Final = -1


class SyncFile:
    """A snapshot of ``size_bytes`` that is read while it is sent to so many ``readers``."""

    def __init__(self, descriptor: int, size_bytes: int, clock: Clock) -> None:
        self.descriptor = descriptor
        self.size_bytes: Final = size_bytes
        self.readers = 0
        self.clock: Final = clock

    def close_if_unread(self) -> None:
        """Close it when no replica is being sent it any more."""
        if not self.readers and self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Replica:
    """A client that copies the data.

    Args:
        facts: its own reports; counters: of the output; on_online: is called when it gets the
            stream.
        acknowledges: it reports how far it is; one that came with SYNC need not.
        now_ms: of ``monotonic_ms``, as all moments here.

    Attributes:
        state: see above; since_ms: when it came.
        is_behind: it has not read most of what it was sent of a snapshot that is being made.
        acked: how much of the stream it has; acked_ms: when it said so last; on_disk: how much of
            the stream is on its disk, where it says so.
    """

    def __init__(
        self,
        session: Session,
        facts: ReplicaFacts,
        counters: Counters,
        acknowledges: bool,
        on_online: Callable[[], object],
        now_ms: int,
    ) -> None:
        self.session: Final = session
        self.facts: Final = facts
        self._counters: Final = counters
        self.acknowledges: Final = acknowledges
        self.state = WAITS
        self._on_online: Final = on_online
        self.since_ms: Final = now_ms
        self.is_behind = False
        self.acked = 0
        self.acked_ms = now_ms
        self.on_disk = 0
        self.waiting: list[bytes] = []  # of the stream, behind what is being sent
        self._file: SyncFile | None = None
        self._sent_bytes = 0
        self._read_ms = now_ms
        self._reads = 0

    def _deliver(self, wire: bytes) -> None:
        self._counters.note_replicated(0, len(wire))
        self.session.deliver_wire(wire)

    # The stream

    def feed(self, piece: bytes) -> None:
        """Send the next piece of the stream, or keep it for later."""
        session = self.session
        if self.state == ONLINE and not self.waiting:
            self._deliver(piece)
        elif self.state != WAITS:
            self.waiting.append(piece)
            session.waiting_bytes += len(piece)
            session.peer.bound_output()

    def go_online(self, pieces: list[bytes], now_ms: int) -> None:
        """Send the stream from now on, behind these pieces of it."""
        self.state = ONLINE
        self.acked_ms = now_ms
        self.waiting = pieces
        self.session.waiting_bytes = sum([len(piece) for piece in pieces])
        self._send_waiting()
        self._on_online()

    def _send_waiting(self) -> None:
        session = self.session
        if session.closed:
            return
        sent_bytes = 0
        count = 0
        while count < len(self.waiting) and sent_bytes < CHUNK_BYTES:
            piece = self.waiting[count]
            count += 1
            sent_bytes += len(piece)
            self._deliver(piece)
        session.waiting_bytes -= sent_bytes
        del self.waiting[:count]
        if self.waiting:
            session.peer.when_drained(self._send_waiting)

    # The snapshot

    def begin(self, greeting: bytes) -> None:
        """Note that a snapshot of this moment is being written; what follows it is kept."""
        self.state = WRITING
        if greeting:
            self._deliver(greeting)

    def join(self, other: Replica, greeting: bytes) -> None:
        """Share the snapshot that is being written for another one."""
        self.begin(greeting)
        self.waiting = other.waiting.copy()
        self.session.waiting_bytes = other.session.waiting_bytes

    def send(self, file: SyncFile) -> None:
        """Send the snapshot, and then what has come since."""
        self.state = SENDING
        self._file = file
        file.readers += 1
        self._deliver(bulk_head(file.size_bytes))
        self._send_more()

    def _send_more(self) -> None:
        session = self.session
        file = self._file
        if file is None or session.closed:
            return
        if self._sent_bytes < file.size_bytes:
            piece = os.pread(file.descriptor, CHUNK_BYTES, self._sent_bytes)
            if not piece:  # the file has been cut
                session.peer.abort()
                return
            self._sent_bytes += len(piece)
            self._read_ms = file.clock.monotonic_ms()
            self._deliver(piece)
            session.peer.when_drained(self._send_more)
            return
        self.close_copy()
        if self.facts.rdb_only:
            session.peer.close()
            return
        self.go_on(file.clock.monotonic_ms())

    # The snapshot, while it is being made

    def begin_stream(self, greeting: bytes, mark: bytes) -> None:
        """As ``begin``: the snapshot comes at once, and then the mark."""
        self.state = STREAMING
        self._deliver(greeting + marked_head(mark))

    def take(self, piece: bytes, on_read: Callable[[Replica], None]) -> None:
        """Send the next piece of the snapshot; ``on_read`` is called when most of that is read."""
        self.is_behind = True
        self._deliver(piece)
        self.session.peer.when_drained(lambda: on_read(self))

    def has_read(self, now_ms: int) -> None:
        """Note that it has read most of what it was sent, which is a sign of life."""
        self.is_behind = False
        self._read_ms = now_ms

    def end_stream(self, mark: bytes, now_ms: int) -> None:
        """Note that the snapshot is complete."""
        self.state = COPIED
        self._read_ms = now_ms
        self._deliver(mark)
        if self.facts.rdb_only:
            self.session.peer.close()

    def go_on(self, now_ms: int) -> None:
        """Send what has come since the moment of the snapshot."""
        self.go_online(self.waiting, now_ms)

    def close_copy(self) -> None:
        """Read no more of the snapshot."""
        file = self._file
        self._file = None
        if file is not None:
            file.readers -= 1
            file.close_if_unread()

    # Its reports

    def acknowledge(self, offset: int, on_disk: int, now_ms: int) -> None:
        """Note how far it is; ``on_disk`` is below 0 where it does not report that."""
        self.acked = max(self.acked, offset)
        self.on_disk = max(self.on_disk, on_disk)
        self.acked_ms = now_ms

    def address(self) -> bytes:
        """Return its address, as far as it is known."""
        return self.facts.address or self.session.address.rpartition(b":")[0].strip(b"[]")

    def name(self) -> str:
        """Return its address and port, for the log."""
        return f"{self.address().decode('utf-8', 'backslashreplace')}:{self.facts.port}"

    def heard_ms(self) -> int:
        """Return when it gave a sign of life: what it reads of a snapshot is one, too."""
        return max(self.acked_ms, self._read_ms)

    def note_life(self, now_ms: int) -> None:
        """Note a sign of life, if it has sent anything of late, even a line without words."""
        reads = int(self.session.reads)
        if reads != self._reads:
            self._reads = reads
            self._read_ms = now_ms

    def lag_s(self, now_ms: int) -> int:
        """Return for how many seconds it has reported nothing."""
        return max(0, now_ms - self.acked_ms) // 1000
