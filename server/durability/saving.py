"""The snapshot beside the append-only file: SAVE, BGSAVE, save points, and the end of the server.

The file is ``dbfilename`` in ``dir``; one that ends with .rdb is written in Redis's own form. It is
written under a temporary name and takes the place of the one before when it is on the disk, whole.
A snapshot in Redis's form is not overwritten by one in ours, because it may be the only way back.

A region has more to keep than Redis's form can hold: where its ``dbfilename`` ends with .rdb, its
snapshot is in our form and ends with .hrs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from typing import Final

from headrace.persistence.errors import PersistenceError
from headrace.persistence.files import (
    TEMPORARY_PREFIX,
    NewFile,
    read_head,
    replace_head,
    sync_folder,
)
from headrace.persistence.log import WRITER, StreamPlace
from headrace.persistence.rdb.kinds import HEAD_BYTES, is_rdb, writer_of
from headrace.persistence.snapshot.encoder import SnapshotEncoder
from headrace.persistence.snapshot.rdb import RisingRdbEncoder
from headrace.persistence.taker import Encoder
from headrace.server.build import REDIS_VERSION, VERSION
from headrace.server.durability.files import Files
from headrace.server.durability.snapshot_job import BATCH_BYTES, SnapshotJob
from headrace.server.durability.worker import failure_text
from headrace.server.gate import HALF_JOINED, SAVE_FAILED
from headrace.server.process.signals import heed_signals
from headrace.server.state import Server
from headrace.storage.freezing import frozen_key

log: Final = logging.getLogger("headrace")

RDB_SUFFIX: Final = b".rdb"
OWN_SUFFIX: Final = b".hrs"
RETRY_S: Final = 5  # after a failure, before save points are looked at again


class SaveStatus:
    """The status of snapshots, for INFO.

    Attributes:
        saves: how many were begun; scheduled: one is to begin when it can.
        last_ok: how the last one went; failures_in_a_row: of those in the background.
        last_duration_s: its duration; -1 before the first.
        last_copied_bytes: the size of data kept for it that changed meanwhile, about.
    """

    def __init__(self) -> None:
        self.saves = 0
        self.scheduled = False
        self.last_ok = True
        self.failures_in_a_row = 0
        self.last_duration_s = -1
        self.last_copied_bytes = 0


class Saving:
    """Writes the snapshot of one server."""

    def __init__(self, server: Server, files: Files) -> None:
        self._server: Final = server
        self._files: Final = files
        self.status: Final = SaveStatus()
        self._saved_s = server.clock.monotonic_ms() // 1000  # when save points began to count
        self._tried_s = 0  # when the last snapshot in the background began

    @property
    def path(self) -> bytes:
        """Return the path of the snapshot."""
        config = self._server.config
        path = os.path.join(os.path.abspath(config.dir), config.dbfilename)
        return path if self._server.data.region is None else in_own_form(path)

    @property
    def temporary_path(self) -> bytes:
        """Return the path of a snapshot before it has its name."""
        folder = os.path.abspath(self._server.config.dir)
        return os.path.join(folder, TEMPORARY_PREFIX + b"%d.hrs" % os.getpid())

    def is_running(self) -> bool:
        """Return whether a snapshot is being written in the background."""
        return isinstance(self._files.job, DumpJob)

    # At once

    def save_now(self) -> bool:
        """Write the snapshot while all clients wait; False when it failed."""
        server = self._server
        if self._is_half_joined():
            return False
        started_ns = time.perf_counter_ns()
        self.status.saves += 1
        path = self.path
        file = NewFile(self.temporary_path, True)
        try:
            encoder = dump_encoder(server, path)
            write_all_keys(server, encoder, file)
            put_in_place(file.path, path, encoder)
        except Exception as error:
            file.discard()
            log.warning("Saving failed: %s", failure_text(error))
            return False
        server.changes.dirty = 0
        self._saved(path, file.size_bytes, time.perf_counter_ns() - started_ns)
        return True

    def flushed(self) -> bool:
        """Handle that FLUSHALL has removed all keys; return whether a snapshot says so already.

        One that is being written would bring them back, and so would the last one, where there are
        save points.
        """
        self.cancel()
        return bool(self._server.config.save) and self.save_now()

    def _is_half_joined(self) -> bool:
        """Return whether another region's copy is loaded only in part, and log that."""
        if not self._server.gate.reasons & HALF_JOINED:
            return False
        log.warning("No snapshot is written while a copy of another region is being joined")
        return True

    # In the background

    def begin(self) -> bool:
        """Start to write the snapshot in the background; no job runs yet. False if it fails."""
        status = self.status
        if self._is_half_joined():
            return False
        status.saves += 1
        status.scheduled = False
        self._tried_s = self._server.clock.monotonic_ms() // 1000
        job = DumpJob(self._server, self._files, self)
        self._files.job = job
        log.info("Background saving started")
        return job.begin()

    def job_ended(self, job: DumpJob, failure: str) -> None:
        """Note the end of a snapshot: it is in its place, or, with a failure, is not."""
        server = self._server
        status = self.status
        status.last_duration_s = max(0, int(time.time()) - job.started_s)
        status.last_copied_bytes = job.copied_bytes
        if failure:
            log.warning("Background saving failed: %s", failure)
            status.last_ok = False
            status.failures_in_a_row += 1
            self.settings_changed()
            return
        server.changes.dirty -= job.dirty_before
        self._saved(job.target, job.size_bytes, time.perf_counter_ns() - job.started_ns)

    def cancel(self) -> None:
        """Stop writing in the background; the file on the disk does not change."""
        job = self._files.job
        if isinstance(job, DumpJob):
            log.warning("Background saving is given up")
            job.cancel()

    def is_due(self, now_s: int) -> bool:
        """Return whether a save point has come, or a snapshot has been asked for; there is no job.

        ``now_s`` is of the clock that is never set, as all moments that are counted from here.
        """
        server = self._server
        status = self.status
        if not status.last_ok and now_s - self._tried_s <= RETRY_S:
            return False
        if status.scheduled:
            return True
        for seconds, changes in server.config.save:
            if server.changes.dirty >= changes and now_s - self._saved_s > seconds:
                log.info("%d changes in %d seconds. Saving...", changes, seconds)
                return True
        return False

    def _saved(self, path: bytes, size: int, spent_ns: int) -> None:
        self._files.last_save_s = self._server.clock.now_ns // 1_000_000_000
        self._saved_s = self._server.clock.monotonic_ms() // 1000
        self.status.last_ok = True
        self.status.failures_in_a_row = 0
        self.settings_changed()
        log.info("Saved %s: %d bytes, %.3f seconds", os.fsdecode(path), size, spent_ns / 1e9)

    def settings_changed(self) -> str | None:
        """Refuse writes after a failure where that is configured, or take them again."""
        config = self._server.config
        refuse = config.stop_writes_on_bgsave_error and bool(config.save)
        self._server.gate.set(SAVE_FAILED, refuse and not self.status.last_ok)
        return None


class DumpJob(SnapshotJob):
    """A snapshot on its way to the disk."""

    def __init__(self, server: Server, files: Files, saving: Saving) -> None:
        super().__init__(server, files, saving.temporary_path, "Background saving")
        self.target: Final = saving.path
        self.dirty_before: Final = server.changes.dirty
        self._saving: Final = saving
        self._made_by: Encoder | None = None

    def encoder(self) -> Encoder:
        self._made_by = encoder = dump_encoder(self.server, self.target)
        return encoder

    def install(self) -> None:
        """Let it take the place of the one before."""
        assert self._made_by is not None
        put_in_place(self.file.path, self.target, self._made_by)

    def ended(self, failure: str) -> None:
        self._saving.job_ended(self, failure)


def in_own_form(path: bytes) -> bytes:
    """Return the name of a snapshot in our form in the place of one in Redis's."""
    if path.endswith(RDB_SUFFIX):
        return path.removesuffix(RDB_SUFFIX) + OWN_SUFFIX
    return path


def dump_encoder(server: Server, path: bytes) -> Encoder:
    """Return an encoder of a snapshot of the present state, in the form that its name asks for."""
    if not path.endswith(RDB_SUFFIX):
        return snapshot_encoder(server, False)
    server.clock.refresh()
    return RisingRdbEncoder(
        0, rdb_notes([b"redis-ver", REDIS_VERSION.encode()], server.role.place())
    )


def rdb_notes(first: list[bytes], place: StreamPlace | None) -> list[bytes]:
    """Return the notes on an RDB file: the writer, the time, and the place in the stream.

    ``first`` is the note on the version that the writer follows.
    """
    return [
        *(*first, WRITER, VERSION.encode(), b"redis-bits", b"64"),
        *(b"ctime", b"%d" % int(time.time()), b"aof-base", b"0"),
        *([] if place is None else place.notes()),
    ]


def snapshot_encoder(server: Server, is_base: bool) -> SnapshotEncoder:
    """Return an encoder of a snapshot of the present state."""
    now_ms = server.clock.refresh()
    data = server.data
    place = None if is_base else server.role.place()
    return SnapshotEncoder(VERSION.encode(), now_ms, is_base, len(data.dbs), data.region, place)


def write_all_keys(server: Server, encoder: Encoder, file: NewFile) -> None:
    """Write the present state of all databases at once. Raises: OSError; the file is of no use."""
    encoder.begin()
    for code in server.libraries():
        encoder.add_library(code)
    delay_us = server.config.rdb_key_save_delay
    for db in server.data.keyspaces():
        for entry in db.every():
            more = encoder.add(frozen_key(db.index, entry))
            while more:
                more = encoder.more()
                if encoder.size_bytes >= BATCH_BYTES:
                    heed_signals()
                    file.write(encoder.take())
            if encoder.size_bytes >= BATCH_BYTES:
                heed_signals()
                file.write(encoder.take())
            if delay_us > 0:
                time.sleep(delay_us / 1e6)
    encoder.finish()
    file.write(encoder.take())
    file.finish()


def put_in_place(temporary: bytes, path: bytes, encoder: Encoder) -> None:
    """Let a synced file, made by an encoder, be the snapshot.

    Raises PersistenceError: the path holds a snapshot of Redis or Valkey, and this is none, or it
    is no file; OSError: it could not be renamed, or not surely.
    """
    with contextlib.suppress(FileNotFoundError):
        head = read_head(path, HEAD_BYTES)
        if is_rdb(head) and not isinstance(encoder, RisingRdbEncoder):
            raise PersistenceError(
                f"{os.fsdecode(path)} is a snapshot of {writer_of(head)} (RDB) and is not "
                "overwritten. Move it away, or give ours another name with `dbfilename`."
            )
    if isinstance(encoder, RisingRdbEncoder):
        replace_head(temporary, encoder.head())
    os.rename(temporary, path)
    sync_folder(os.path.dirname(path))
