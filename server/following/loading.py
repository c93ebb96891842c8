"""A master's snapshot is received into a file, and replaces all data, in slices.

It comes with its length before it, or, if the master does not know that, ends with 40 bytes that it
has named before.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from collections.abc import Callable
from typing import Final

from headrace.persistence.errors import PersistenceError
from headrace.persistence.files import TEMPORARY_PREFIX, create_file, remove_file, write_all
from headrace.persistence.forms.table import forms
from headrace.persistence.rdb.reader import RdbReader
from headrace.persistence.snapshot.decode import KEEP_ALL, Decoder, SnapshotLoader
from headrace.persistence.taker import IntoDatabases
from headrace.server.config.config import defaults
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.durability.worker import failure_text
from headrace.server.gate import LOADING_DATA
from headrace.server.loading.loader import SLICE_NS, refuse_what_is_left, take_back
from headrace.server.loading.starting import empty

log: Final = logging.getLogger("headrace")

STREAM_DB: Final = b"repl-stream-db"
_MARK_BYTES: Final = 40
_UNKNOWN: Final = -1


class Payload:
    """A snapshot that is coming in.

    Args:
        head: the line in front of it, such as ``$1234`` or ``$EOF:`` and the mark.
        folder: where its file, ``path``, may lie.

    Raises:
        PersistenceError: that is no such line.
        OSError: from any method, when the file cannot be written.
    """

    def __init__(self, head: bytes, folder: bytes) -> None:
        self._left = _UNKNOWN
        self._mark = b""
        self._tail = b""  # what came last: it may be the mark
        self.total_bytes = 0
        if head.startswith(b"$EOF:") and len(head) == 5 + _MARK_BYTES:
            self._mark = head[5:]
        elif head.startswith(b"$") and head[1:].isdigit() and len(head) < 20:
            self._left = int(head[1:])
            self.total_bytes = self._left
        else:
            raise PersistenceError(f"a snapshot was expected, and not {head[:60]!r}")
        self.received_bytes = 0
        self.path: Final = os.path.join(folder, TEMPORARY_PREFIX + b"%d.sync" % os.getpid())
        remove_file(self.path)
        self._fd = create_file(self.path)

    def take(self, data: bytes) -> bytes | None:
        """Take received bytes; return those behind the snapshot when it is complete, else None."""
        if self._mark:
            write_all(self._fd, data)
            self.received_bytes += len(data)
            self._tail = (self._tail + data)[-_MARK_BYTES:]
            if self._tail != self._mark:
                return None
            os.ftruncate(self._fd, self.received_bytes - _MARK_BYTES)
            return b""
        mine = data[: self._left]
        write_all(self._fd, mine)
        self._left -= len(mine)
        self.received_bytes += len(mine)
        return None if self._left else data[len(mine) :]

    def close(self) -> None:
        """Receive no more; the file stays."""
        fd = self._fd
        self._fd = -1
        if fd >= 0:
            os.close(fd)

    def discard(self) -> None:
        """Remove the file."""
        self.close()
        remove_file(self.path)


class SyncLoading:
    """Loads one snapshot, of ``loaded_bytes`` so far; its stream goes on in database ``db``.

    The append-only file is off meanwhile, and then begins anew with the loaded data. A crash before
    that leaves the former data on the disk. ``done`` is called at the end, with the reason where it
    failed; then there is no data.
    """

    def __init__(self, dispatcher: Dispatcher, path: bytes, done: Callable[[str], None]) -> None:
        self.db = 0
        self.loaded_bytes = 0
        self._server: Final = dispatcher.server
        self._durability: Final = dispatcher.durability
        self._path: Final = path
        self._done: Final = done
        self._taker: Final = IntoDatabases(self._server.data.dbs)
        self._reader: RdbReader | SnapshotLoader | None = None
        self._handle: asyncio.Handle | None = None
        self._started_s = time.monotonic()

    def begin(self) -> None:
        """Empty the databases, and load."""
        server = self._server
        try:
            reader = self._open()
        except PersistenceError as error:
            self._done(str(error))
            return
        self._reader = reader
        files = self._durability.files
        if files.job is not None:
            files.job.cancel()
        self._durability.rewriting.turn_off()
        self._empty()
        server.gate.set(LOADING_DATA, True)
        server.data.enable_expiry(False)
        gc.disable()  # what is loaded stays, and makes no cycles
        status = files.status
        status.loading_started_s = int(time.time())
        status.total_bytes = reader.size_bytes
        status.loaded_bytes = 0
        self._soon()

    def _open(self) -> RdbReader | SnapshotLoader:
        server = self._server
        data = server.data
        now_ms = server.clock.refresh()
        if data.region is None:
            return RdbReader(self._path, self._taker, forms(), defaults(server.config), now_ms)
        decoder = Decoder(data.keyspaces(), now_ms, KEEP_ALL)
        decoder.accept_region(data.region)
        return SnapshotLoader(self._path, decoder)

    def _empty(self) -> None:
        empty(self._server)
        if self._server.neighbours is not None:
            self._server.neighbours.emptied()

    def _soon(self) -> None:
        self._handle = asyncio.get_running_loop().call_soon(self._slice)

    def _slice(self) -> None:
        self._handle = None
        try:
            going_on = self._load_some()
            if not going_on:
                self._take_back()
        except Exception as error:
            self._drop()
            self._done(failure_text(error))
            return
        if going_on:
            self._soon()
        else:
            self._finish()

    def _load_some(self) -> bool:
        reader = self._reader
        assert reader is not None
        stop_ns = time.perf_counter_ns() + SLICE_NS
        going_on = True
        while going_on and time.perf_counter_ns() < stop_ns:
            going_on = reader.steps() if isinstance(reader, RdbReader) else reader.step()
        self.loaded_bytes = reader.loaded_bytes
        self._durability.files.status.loaded_bytes = reader.loaded_bytes
        return going_on

    def _take_back(self) -> None:
        """Load the libraries of the snapshot; refuse one that holds what cannot be kept here."""
        reader = self._reader
        libraries = self._taker.libraries
        if isinstance(reader, RdbReader):
            refuse_what_is_left(self._path, reader.left)
        elif reader is not None:
            libraries = reader.decoder.libraries
        take_back(self._server, self._path, libraries)

    def _finish(self) -> None:
        reader = self._reader
        writer = "a region"
        if isinstance(reader, RdbReader):
            word = reader.notes.get(STREAM_DB, b"0")
            if word.isdigit() and int(word) < len(self._server.data.dbs):
                self.db = int(word)
            for loss in reader.losses():
                log.warning("The snapshot of the master: %s", loss)
            writer = reader.writer
        log.info(
            "Loaded %d keys of the master, which is %s: %.3f seconds",
            sum([len(db) for db in self._server.data.dbs]),
            writer,
            time.monotonic() - self._started_s,
        )
        if self._server.neighbours is not None:
            self._server.neighbours.loaded()
        self._end()
        gc.freeze()
        self._durability.rewriting.appendonly_changed()
        self._done("")

    def cancel(self) -> None:
        """Stop loading, because the snapshot is no longer wanted: there is no data."""
        if self._handle is not None:
            self._handle.cancel()
            self._drop()

    def _drop(self) -> None:
        self._empty()
        self._end()
        self._durability.rewriting.appendonly_changed()

    def _end(self) -> None:
        server = self._server
        self._handle = None
        gc.enable()
        server.data.enable_expiry(True)
        server.gate.set(LOADING_DATA, False)
        server.changes.dirty = 0
        if self._reader is not None:
            self._reader.close()
            self._reader = None
