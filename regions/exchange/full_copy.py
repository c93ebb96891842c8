"""A full copy of a peer's data, where its log begins later than the records missing here.

There is one at a time. It comes piece by piece, each of which is checked. It is written beside the
files, loaded and joined (see ``copy_join``), and deleted when the files have been written anew.

The peer may be forgotten meanwhile, or begin another life. A region that knows of that takes
nothing more from the life that is over, because others count on it
(``headrace.regions.knowledge.stability``). So such a copy is given up, as long as no key of it has
been joined. While keys are joined, nothing is taken that could say so.
"""

from __future__ import annotations

import contextlib
import logging
import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from mypy_extensions import mypyc_attr
from xxhash import xxh3_64_hexdigest

from headrace.compat.errors import AASTART, AASYNCING
from headrace.persistence.errors import PersistenceError
from headrace.persistence.files import NewFile
from headrace.regions.exchange.copy_join import (
    COPY_PREFIX,
    COPY_SUFFIX,
    CopyJoin,
    LogReplay,
    is_copy,
)
from headrace.regions.exchange.effects import refuse_writes, region_of
from headrace.regions.exchange.epochs import refusal_of, replaced_nonce
from headrace.regions.exchange.peer_connection import AA, PeerClient, PeerConnection
from headrace.regions.exchange.peers import Peer
from headrace.regions.exchange.retention import log_of
from headrace.regions.knowledge.region import Region
from headrace.server.durability.durability import Durability
from headrace.server.durability.worker import ThreadCall, Worker
from headrace.server.gate import HALF_JOINED
from headrace.server.state import Server

PIECE_MAX_BYTES: Final = 4 << 20
PIECE_BYTES: Final = 1 << 20  # about what is sent at once
OUTSTANDING: Final = 4
NAME_MAX_BYTES: Final = 255
log: Final = logging.getLogger("headrace")
REST_NS: Final = 1_000_000_000
RETRY_MS: Final = 1000  # before another attempt
MOST_RETRY_MS: Final = 10_000  # where one after another has failed
# Why there is no copy yet, though there will be: no attempt has failed.
_PASSING: Final = ("LOADING ", "AANOBASE ")
_OUTLIVED: Final = "the region has begun another life, or takes part no more"


@mypyc_attr(allow_interpreted_subclasses=True)
class CopyTarget:
    """Takes the bytes of a copy."""

    @abstractmethod
    def begin(self, name: bytes, size_bytes: int) -> None:
        """Prepare for a copy of this length. The name is for people; it is no path."""

    @abstractmethod
    def add(self, data: bytes) -> None:
        """Take the next bytes; ``CopyClient.written`` is called when they are written."""

    @abstractmethod
    def end(self) -> None:
        """Note that all bytes have been added."""


class CopyClient(PeerClient):
    """Asks one peer for a copy, over one connection.

    Attributes:
        size_bytes: how long the copy is; taken_bytes: how much of it has come.
        is_whole: all of it has come.
    """

    def __init__(self, region: Region, peer_region: int, secret: bytes, target: CopyTarget) -> None:
        super().__init__(region, peer_region, secret)
        self.size_bytes = 0
        self.taken_bytes = 0
        self.is_whole = False
        self._target: Final = target
        self._number = 0  # of the copy, as the peer counts; 0: it has not begun
        self._asked: Final[deque[int]] = deque()  # the places of the pieces on their way
        self._next = 0  # the place to ask for next
        self._unwritten_bytes = 0

    def begin(self) -> None:
        self.out.append([AA, b"COPY", b"BEGIN"])

    def answered(self, reply: object) -> None:
        if not isinstance(reply, list):
            self.damaged("an answer to COPY is no list")
        elif not self._number:
            self._begun(reply)
        else:
            self._take(reply)

    def written(self, count: int) -> None:
        """Note that so many bytes have been written."""
        self._unwritten_bytes -= count
        self._ask()

    def _begun(self, reply: list[object]) -> None:
        number, name, size = reply if len(reply) == 3 else (None, None, None)
        if not (isinstance(number, int) and isinstance(name, bytes) and isinstance(size, int)):
            self.damaged("the beginning of a copy is none")
            return
        if number < 1 or size < 1 or not name or len(name) > NAME_MAX_BYTES:
            self.damaged("a copy has no number, no name, or nothing in it")
            return
        self._number = number
        self.size_bytes = size
        self._target.begin(name, size)
        self._ask()

    def _ask(self) -> None:
        while (
            not self.failure
            and len(self._asked) < OUTSTANDING
            and self._unwritten_bytes < OUTSTANDING * PIECE_MAX_BYTES
            and self._next < self.size_bytes
        ):
            self._asked.append(self._next)
            self.out.append([AA, b"COPY", b"%d" % self._number, b"%d" % self._next])
            self._next += PIECE_BYTES

    def _take(self, reply: list[object]) -> None:
        data, checksum = reply if len(reply) == 2 else (None, None)
        if not self._asked or not isinstance(data, bytes) or not isinstance(checksum, bytes):
            self.damaged("a piece of a copy is none")
            return
        place = self._asked.popleft()
        expected = min(PIECE_BYTES, self.size_bytes - place)
        if len(data) != expected or place != self.taken_bytes:
            self.damaged("a piece of a copy has another length, or belongs elsewhere")
            return
        if xxh3_64_hexdigest(data).encode() != checksum:
            self.damaged("the checksum of a piece of a copy is another one")
            return
        self.taken_bytes += len(data)
        self._unwritten_bytes += len(data)
        self._target.add(data)
        if self.taken_bytes == self.size_bytes:
            self.is_whole = True
            self._target.end()
        self._ask()


class CopyFile(CopyTarget):
    """A file that a copy is written to.

    Attributes:
        file: the thread's alone.
        connection: with the peer that sends it.
        is_done: all of it is on the disk; failure: why it never will be.
    """

    def __init__(self, path: bytes, worker: Worker, moved: Callable[[], None]) -> None:
        self.file: Final = NewFile(path, True)
        self.connection: PeerConnection | None = None
        self.is_done = False
        self.failure = ""
        self._worker: Final = worker
        self._moved: Final = moved

    def is_outlived(self) -> bool:
        """Return whether it is of a life of a region that is known to be over."""
        return self.connection is not None and self.connection.client.is_outlived()

    def begin(self, name: bytes, size_bytes: int) -> None:
        log.info("A copy of %d bytes is on its way", size_bytes)

    def add(self, data: bytes) -> None:
        written = partial(self._written, len(data))
        self._worker.give(ThreadCall(partial(self.file.write, [data]), written))

    def end(self) -> None:
        self._worker.give(ThreadCall(self.file.finish, partial(self._written, 0)))

    def _written(self, count: int, _: object, failure: str) -> None:
        """Note that a piece has been written, or that all of it is on the disk."""
        if failure:
            self.failure = failure
        elif not count:
            self.is_done = True
        connection = self.connection
        if connection is not None and isinstance(connection.client, CopyClient):
            if failure:
                connection.end(f"the copy cannot be written: {failure}")
            else:
                connection.client.written(count)
                connection.go_on()
        self._moved()


class FullCopy:
    """Takes copies.

    Args:
        converse: begins a connection with a peer, with a client.
        moved: is called when there is something to do, or something was done.
        replaced: is called when a copy is about to replace the data here, and when it has.

    Attributes:
        peer: whose copy is being taken; None while none is.
        join: the copy that is being joined, or has replaced the data here.
    """

    def __init__(
        self,
        server: Server,
        durability: Durability,
        worker: Worker,
        converse: Callable[[Peer, CopyFile], PeerConnection],
        moved: Callable[[], None],
        replaced: Callable[[], None],
    ) -> None:
        self.peer: Peer | None = None
        self.join: CopyJoin | None = None
        self._server: Final = server
        self._durability: Final = durability
        self._worker: Final = worker
        self._converse: Final = converse
        self._moved: Final = moved
        self._replaced: Final = replaced
        self._replay: LogReplay | None = None
        self._is_written = True
        self._file: CopyFile | None = None
        self._refused_before = b""
        self._old_base = -1  # the number of the base that is to be replaced; -1: no copy is left
        self._next_ms = 0
        self._retry_ms = RETRY_MS
        self._logged = ""  # why there was no copy, as logged last

    def begin(self, peer: Peer, now_ms: int) -> None:
        """Take a copy from a peer, unless one is being taken."""
        directory = self._durability.files.directory
        if self.peer is not None or directory is None or now_ms < self._next_ms:
            return
        name = b"%b%d-%d%b" % (
            COPY_PREFIX,
            peer.region,
            self._server.clock.now_ns // 1_000_000,
            COPY_SUFFIX,
        )
        self.peer = peer
        peer.is_copied = True
        file = CopyFile(os.path.join(directory.path, name), self._worker, self.look)
        self._file = file
        if not self._logged:
            log.warning(
                "Region %d: its log begins later than what is needed: a full copy is taken",
                peer.region,
            )
        file.connection = self._converse(peer, file)

    def tick(self, now_ms: int) -> None:
        """Check whether a peer has fallen silent; delete copies of no use."""
        file = self._file
        if file is not None and file.connection is not None:
            file.connection.look(now_ms)
        self.look()
        self._clean()

    def look(self) -> None:
        """Check how far the copy has come."""
        file = self._file
        if file is None or file.connection is None or self.join is not None:
            return
        if file.is_outlived():
            file.connection.end(_OUTLIVED)
            self._give_up(_OUTLIVED)
        elif file.is_done:
            file.connection.end("the copy is there")
            self._begin_to_join(file)
        elif file.connection.over or file.failure:
            self._give_up(file.failure or file.connection.reason)

    def step(self, budget_ns: int) -> None:
        """Go on with the join."""
        join = self.join
        file = self._file
        peer = self.peer
        if join is None or file is None or peer is None or not self._is_written:
            return
        if self._replay is not None:
            if not self._replay.step(budget_ns):
                self._write_replaced()
            return
        if file.is_outlived() and not self._server.gate.reasons & HALF_JOINED:
            self._stop_joining(join)
            self._give_up(_OUTLIVED)
            return
        try:
            if join.step(budget_ns):
                return
        except PersistenceError as error:
            self._stop_joining(join)
            self._give_up(str(error))
            return
        kept = log_of(self._durability.files)
        assert kept is not None
        if join.replaces:
            self._replay = LogReplay(self._server, kept, join.lost())
            return
        self._stop_joining(join)
        self._server.changes.record(0, join.record())
        for origin, number in join.raised.items():
            kept.backlog.begin(origin, number + 1)
        self._end(peer)
        log.warning("Region %d: its copy has been joined", peer.region)
        self.write_anew()
        self._moved()

    def _end(self, peer: Peer) -> None:
        replicas = self._server.role.replicas
        if replicas is not None:
            replicas.begin_anew()  # a standby has no such copy
        peer.copies += 1
        peer.is_copied = False
        peer.behind = False
        peer.try_now()
        self.peer = None
        self._file = None
        self._retry_ms = RETRY_MS
        self._logged = ""

    def _write_replaced(self) -> None:
        """Write the files after a copy has replaced the data here, before anything else happens."""
        region = region_of(self._server)
        kept = log_of(self._durability.files)
        assert kept is not None
        self._server.gate.set(HALF_JOINED, False)
        region.caught = replaced_nonce(region)
        backlog = kept.backlog
        for origin in [*region.known(), *backlog.origins()]:  # some may be lost altogether
            backlog.begin(origin, region.number_of(origin) + 1)
        self._replay = None
        self._is_written = False
        self.write_anew()

    def _look_at_files(self, base_seq: int) -> None:
        """Go on once the files have been written anew; try again where that has failed."""
        peer = self.peer
        join = self.join
        if self._is_written or peer is None or join is None:
            return
        if base_seq > self._old_base:
            self._is_written = True
            self._refused_before = AASYNCING
            self._stop_joining(join)
            self._end(peer)
            log.warning("Region %d: its copy has replaced what was here", peer.region)
            self._replaced()
        elif self._durability.files.job is None:
            self._durability.rewriting.rewrite_soon()

    @property
    def has_work(self) -> bool:
        """Return whether ``step`` is to be called."""
        return self.join is not None and self._is_written

    def write_anew(self) -> None:
        """Have the files written anew, so that no copy is needed to load them."""
        directory = self._durability.files.directory
        if directory is None:
            return
        base = directory.manifest.base
        self._old_base = 0 if base is None else base.seq
        if self._durability.rewriting.is_running():  # it writes an earlier state
            self._old_base += 1
        self._durability.rewriting.rewrite_soon()

    def is_in_base(self) -> bool:
        """Return whether the base holds what copies have brought, so that others can take it."""
        directory = self._durability.files.directory
        base = None if directory is None else directory.manifest.base
        return self._old_base < (0 if base is None else base.seq)

    def _clean(self) -> None:
        """Delete copies that are of no use, because the files have been written anew since."""
        directory = self._durability.files.directory
        if self._old_base < 0 or directory is None:
            return
        base = directory.manifest.base
        self._look_at_files(0 if base is None else base.seq)
        if not self.is_in_base():
            if not self._durability.rewriting.is_running():  # writing them has failed
                self._durability.files.status.rewrite_scheduled = True
            return
        if self.peer is not None:
            return
        self._old_base = -1
        for name in os.listdir(directory.path):
            if is_copy(name):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(directory.path, name))

    def find_old(self) -> None:
        """Write the files anew where they still need copies that were joined before the start."""
        directory = self._durability.files.directory
        if directory is not None and any(is_copy(name) for name in os.listdir(directory.path)):
            self.write_anew()

    def close(self) -> None:
        """Give up the copy."""
        if self._file is not None and self._file.connection is not None:
            self._file.connection.end("it is over")
        if self.join is not None:
            self._stop_joining(self.join)

    def stop(self) -> None:
        """Give up the copy, or join the rest of it: this server is about to follow another one."""
        while self._server.gate.reasons & HALF_JOINED and self.has_work:
            self.step(REST_NS)
        self.close()
        if self._file is not None:
            self._give_up("this server is a standby from now on")

    def _begin_to_join(self, file: CopyFile) -> None:
        region = region_of(self._server)
        replaces = refusal_of(region) == AASTART
        self._server.gate.finish_work()
        try:
            self.join = CopyJoin(self._server, file.file.path, replaces)
        except PersistenceError as error:
            self._give_up(str(error))
            return
        if replaces:
            self._replaced()
        self._refused_before = region.refusal
        refuse_writes(self._server, AASYNCING)
        self._moved()

    def _stop_joining(self, join: CopyJoin) -> None:
        self.join = None
        join.close()
        refuse_writes(self._server, self._refused_before)

    def _give_up(self, reason: str) -> None:
        file = self._file
        peer = self.peer
        self._file = None
        self.peer = None
        self._next_ms = self._server.clock.monotonic_ms() + self._retry_ms
        if not reason.startswith(_PASSING):
            self._retry_ms = min(2 * self._retry_ms, MOST_RETRY_MS)
        if peer is not None:
            peer.is_copied = False
            if reason != self._logged:
                log.warning("Region %d: no copy of it could be taken: %s", peer.region, reason)
        self._logged = reason
        if file is not None:
            self._worker.give(ThreadCall(file.file.discard))
