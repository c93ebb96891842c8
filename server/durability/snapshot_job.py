"""Writing the state of one moment to a file while the server goes on: no fork and no pause.

A job takes the databases as they are (``storage.freezing``), and then works in slices between the
turns of the event loop: keys become bytes, which a thread writes (``server.durability.worker``).
Where the disk is slower than that, the slices rest. While clients have requests, there is a rest
after each slice, so that a client waits for one slice at most.

There is one job at a time, for a snapshot or for the base of the append-only file. Any failure in
any part of it ends it: the databases are thawed, the next job may begin, and ``ended`` gets the
reason.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from headrace.persistence.files import NewFile
from headrace.persistence.taker import Encoder
from headrace.server.durability.files import Files, Job
from headrace.server.durability.worker import Task, Worker, failure_text
from headrace.server.state import Server
from headrace.storage.freezing import Freezing, FrozenKey
from headrace.storage.keyspace import Keyspace

log: Final = logging.getLogger("headrace")

SLICE_NS: Final = 1_500_000  # for how long a client may have to wait
IDLE_SLICE_NS: Final = 5_000_000  # while no client has anything to do
REST_S: Final = 0.004  # between two slices while clients have requests
KEYS_AT_ONCE: Final = 64
BATCH_BYTES: Final = 1 << 18  # given to the thread at once
QUEUED_MAX_BYTES: Final = 8 << 20  # waiting for the disk; then the slices rest
DELAY_STEP_S: Final = 0.05  # between two looks whether the delay still holds
REPORT_NS: Final = 1_000_000_000


class SnapshotJob(Job):
    """One file on its way to the disk. Subclasses prepare it, make it and put it in its place.

    Args:
        path: the name under which it is written; name: what it is, for the log.

    Attributes:
        file: the file; the thread's alone.
        keys_total, keys_done: how many keys there are, and how many of them have been encoded.
        size_bytes: its length so far; queued_bytes: how much of that waits to be written.
        copied_bytes: the size of data kept for it that has changed or gone since, about.
        started_s: the start, in seconds since 1970; started_ns: on the clock that only measures.
        cancelled: the file is no longer wanted; placed: it has been put in its place.
    """

    def __init__(self, server: Server, files: Files, path: bytes, name: str) -> None:
        self.keys_total = 0
        self.keys_done = 0
        self.size_bytes = 0
        self.started_s = int(time.time())
        self.cancelled = False
        self.placed = False
        self.server: Final = server
        self.files: Final = files
        self._worker: Final[Worker] = files.worker
        self._name: Final = name
        self.file: Final = NewFile(path, True)
        self._encoder: Encoder | None = None
        self._freezing: Freezing | None = None
        self._keys: list[FrozenKey] = []
        self._next = 0  # of the keys
        self._more = False  # to be done for the key before that
        self.queued_bytes = 0
        self._failure = ""
        self._timer: asyncio.TimerHandle | None = None
        self._handle: asyncio.Handle | None = None
        self._waiting = False  # for the disk
        self._seen_bytes = 0  # of input, when the last slice ended
        self._rests_until_ns = 0  # where rdb-key-save-delay asks for it
        self.started_ns = time.perf_counter_ns()
        self._reported_ns = self.started_ns

    # For subclasses

    def encoder(self) -> Encoder:
        """Return the encoder of the file; called at the moment whose state is written."""
        raise NotImplementedError

    def keyspaces(self) -> list[Keyspace]:
        """Return the tables of keys to write."""
        return self.server.data.keyspaces()

    def libraries(self) -> list[bytes]:
        """Return the present libraries of functions."""
        return self.server.libraries()

    def hand_over(self, encoder: Encoder) -> None:
        """Pass finished bytes to the thread, which writes them."""
        size = encoder.size_bytes
        self.made(size)
        self._worker.give(_Write(self, encoder.take(), size))

    def complete(self) -> None:
        """Note that all has been handed over."""
        self._worker.give(_Install(self))

    def discard(self) -> None:
        """Remove the file, when the thread is done with it."""
        try:
            self._worker.give(_Discard(self))
        except Exception:
            log.exception("There is no thread that could remove a file")
            self._worker.drain()
            self.file.discard()

    def install(self) -> None:
        """Put the synced file in its place; called in the thread, as ``Task.run``."""
        raise NotImplementedError

    def ended(self, failure: str) -> None:
        """Note that the file is in its place or, with a reason, not; not called if cancelled."""

    # Life

    def begin(self) -> bool:
        """Take the state of this moment and start to write it; False when the job has failed."""
        try:
            self._freeze()
        except Exception as error:
            self.break_off(error)
        return not self._failure

    def _freeze(self) -> None:
        server = self.server
        server.data.epoch += 1
        freezing = Freezing(self.keyspaces(), server.data.epoch)
        server.data.freeze(freezing)
        self._freezing = freezing
        self.keys_total = freezing.total
        encoder = self.encoder()
        encoder.begin()
        for code in self.libraries():
            encoder.add_library(code)
        self._encoder = encoder
        self._soon()

    def cancel(self) -> None:
        """Give up; when this returns nothing of the job runs any more and its file is gone.

        A file that has just been put in its place stays: the job has ended, not cancelled.
        """
        self.cancelled = True
        self._worker.drain()
        if self.files.job is not self:
            self.cancelled = False
            return
        self._stop()
        self.discard()
        self._worker.drain()

    def break_off(self, error: Exception) -> None:
        """End with an error; one that was not expected is logged with its traceback."""
        self.fail(failure_text(error))

    def fail(self, reason: str) -> None:
        """End here, and leave nothing behind."""
        if not self.failed:
            self._failure = reason
            self._stop()
            self.discard()
            self._report_end(reason)

    def _report_end(self, failure: str) -> None:
        try:
            self.ended(failure)
        except Exception:
            log.exception("%s ended with an internal error", self._name)

    @property
    def copied_bytes(self) -> int:
        """Return the size of data kept that has changed or gone since, about."""
        freezing = self._freezing
        return 0 if freezing is None else freezing.copied_bytes()

    def _soon(self) -> None:
        self._handle = asyncio.get_running_loop().call_soon(self._slice)

    def _later(self, delay_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._slice)

    def _stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.files.job is self:
            self.files.job = None
        self._thaw()

    def _thaw(self) -> None:
        freezing = self._freezing
        if freezing is not None:
            self.server.data.freeze(None)
            self._keys = []
            try:
                freezing.end(self.server.data.unused)
            except Exception:
                log.exception("%s: a value could not be freed", self._name)

    # Slices

    def _slice(self) -> None:
        self._handle = None
        self._timer = None
        try:
            self._make_slice()
        except Exception as error:
            self.break_off(error)

    def _make_slice(self) -> None:
        server = self.server
        busy = server.statistics.counters.net_input_bytes != self._seen_bytes
        now_ns = time.perf_counter_ns()
        delay_us = server.config.rdb_key_save_delay
        if delay_us > 0 and now_ns < self._rests_until_ns:
            self._later(min(DELAY_STEP_S, (self._rests_until_ns - now_ns) / 1e9))
            return
        server.clock.refresh()
        started_ns = server.clock.now_ns
        stop_ns = now_ns + (SLICE_NS if busy else IDLE_SLICE_NS)
        while self.queued_bytes < QUEUED_MAX_BYTES:
            done = self.keys_done
            if not self._advance():
                self._finish()
                return
            now_ns = time.perf_counter_ns()
            if now_ns >= stop_ns or (delay_us > 0 and self.keys_done > done):
                break
        self._report(now_ns)
        server.clock.refresh()
        server.statistics.note_latency(b"snapshot-slice", server.clock.now_ns - started_ns)
        self._seen_bytes = server.statistics.counters.net_input_bytes
        if self.queued_bytes >= QUEUED_MAX_BYTES:
            self._waiting = True
        elif delay_us > 0:
            self._rests_until_ns = now_ns + delay_us * 1000
            self._soon()
        elif busy:
            self._later(REST_S)
        else:
            self._soon()

    def _advance(self) -> bool:
        encoder = self._encoder
        freezing = self._freezing
        assert encoder is not None
        assert freezing is not None
        if freezing.failure is not None:
            raise freezing.failure
        if self._more:
            self._more = encoder.more()
        elif self._next < len(self._keys):
            self._more = encoder.add(self._keys[self._next])
            self._next += 1
            self.keys_done += 1
        elif freezing.is_done():
            return False
        else:
            self._keys = freezing.next_keys(KEYS_AT_ONCE)
            self._next = 0
            return True
        if not self._more:
            freezing.release(self._keys[self._next - 1], self.server.data.unused)
        if encoder.size_bytes >= BATCH_BYTES:
            self.hand_over(encoder)
        return True

    def made(self, size: int) -> None:
        """Note that so many bytes have been made, and wait to be written; see ``written``."""
        self.queued_bytes += size
        self.size_bytes += size

    def _finish(self) -> None:
        encoder = self._encoder
        assert encoder is not None
        encoder.finish()
        self.hand_over(encoder)
        self._thaw()
        self.complete()

    def _report(self, now_ns: int) -> None:
        if now_ns - self._reported_ns < REPORT_NS:
            return
        self._reported_ns = now_ns
        spent_s = (now_ns - self.started_ns) / 1e9
        log.info(
            "%s: %.1f %%, %d of %d keys, %d MB in %.0f s",
            self._name,
            self.share(),
            self.keys_done,
            self.keys_total,
            self.size_bytes >> 20,
            spent_s,
        )

    def share(self) -> float:
        """Return how many of the keys have been encoded, in per cent."""
        return 100.0 * self.keys_done / self.keys_total if self.keys_total else 0.0

    # Reports of the thread, or of the receiver of the bytes

    def written(self, size: int, failure: str) -> None:
        """Note that a batch has been written."""
        self.queued_bytes -= size
        if self.cancelled or self._failure:
            return
        if failure:
            self.fail(failure)
        elif self._waiting and self.queued_bytes < QUEUED_MAX_BYTES // 2:
            self._waiting = False
            self._soon()

    def installed(self, failure: str) -> None:
        """Note that the file is in its place, or could not be put there."""
        if self._failure or (self.cancelled and not self.placed):
            return
        self._stop()
        if failure:
            self._failure = failure
            self.discard()
        self._report_end(failure)

    @property
    def failed(self) -> bool:
        """Return whether the rest of the work for the file can be left out."""
        return self.cancelled or bool(self._failure)


class JobTask(Task):
    """A task of a job, which ends when the task fails."""

    def __init__(self, job: SnapshotJob) -> None:
        super().__init__()
        self.job: Final = job

    def done(self) -> None:
        try:
            self.report()
        except Exception as error:
            self.job.break_off(error)

    def report(self) -> None:
        """Report to the job what was done."""


class _Write(JobTask):
    def __init__(self, job: SnapshotJob, pieces: list[bytes], size: int) -> None:
        super().__init__(job)
        self._pieces = pieces
        self._size: Final = size

    def run(self) -> None:
        pieces = self._pieces
        self._pieces = []
        if not self.job.failed:
            self.job.file.write(pieces)

    def report(self) -> None:
        self.job.written(self._size, self.failure)


class _Install(JobTask):
    def run(self) -> None:
        if not self.job.failed:
            self.job.file.finish()
        if not self.job.failed:
            self.job.install()
            self.job.placed = True

    def report(self) -> None:
        self.job.installed(self.failure)


class _Discard(JobTask):
    def run(self) -> None:
        self.job.file.discard()
