"""Writing the append-only folder anew, and turning it on and off, while the server runs.

A rewrite goes on in a new incr file first, so that whatever fails afterwards, the manifest names
files that together hold everything:

1. In the worker thread a new incr file is created and named in the manifest.
2. Between two turns of the event loop what is pending is written, records go to the new file from
   there on, and the state of that moment is what the base will hold. It is never within a command:
   a transaction under way has changed the keyspace and not yet been recorded. A thread syncs the
   old file, and the new one stays empty until that is done; see ``Committer.hand_over``.
3. The base is written in slices (``server.durability.snapshot_job``).
4. In the worker thread it gets its name, the manifest names it, and older files are deleted.

Turning the file on, or filling a folder that has vanished (``server.durability.recovery``), goes
the same way, except that the records go to an incr file with a temporary name, because the files in
the folder belong to another time; step 4 renames both. Until then nothing is promised, and where it
fails it is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Final

from headrace.persistence.aof.directory import COMMANDS_SUFFIX, SNAPSHOT_SUFFIX, AofDirectory
from headrace.persistence.aof.rewrite import RewriteEncoder
from headrace.persistence.errors import PersistenceError
from headrace.persistence.taker import Encoder
from headrace.server.durability.commit import Committer
from headrace.server.durability.files import Files, Rewriter
from headrace.server.durability.recovery import Recovery
from headrace.server.durability.saving import snapshot_encoder
from headrace.server.durability.snapshot_job import JobTask, SnapshotJob
from headrace.server.durability.worker import failure_text
from headrace.server.gate import HALF_JOINED, LENGTHY_AT_WORK, LOADING_DATA
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

RETRY_S: Final = 0.002  # between two looks whether something lengthy is still under way
MANY_FAILURES: Final = 3  # in a row; from then on the next attempt waits
MOST_DELAY_S: Final = 3600
_OF_NO_MOMENT: Final = LENGTHY_AT_WORK | HALF_JOINED  # the memory holds no whole state


class Rewriting(Rewriter):
    """Changes the append-only folder at run time; ``recovery`` fills one anew that has vanished."""

    def __init__(self, server: Server, files: Files, committer: Committer) -> None:
        super().__init__()
        self.recovery: Final = Recovery(server, files, committer, self)
        self._server: Final = server
        self._files: Final = files
        self._committer: Final = committer
        committer.rewriter = self
        self._delay_s = 0  # before the next attempt, after many failures
        self._not_before_s = 0

    @property
    def is_on(self) -> bool:
        """Return whether the append-only file is on, or is being turned on, or recovered."""
        recovers = self.recovery.directory is not None
        return self._files.aof is not None or self.first_folder is not None or recovers

    # CONFIG SET

    def appendonly_changed(self) -> str | None:
        """Turn the append-only file on, with all that is in memory, or off.

        While data is being loaded, not all is in memory. Then that is done at the end of loading.
        """
        server = self._server
        if server.config.appendonly == self.is_on or server.gate.reasons & LOADING_DATA:
            return None
        if server.config.appendonly:
            return self.turn_on()
        self.turn_off()
        return None

    def timestamps_changed(self) -> str | None:
        """Annotate records with the time from now on, or no longer."""
        aof = self._files.aof
        if aof is not None:
            aof.annotate = self._server.config.aof_timestamp_enabled
        return None

    def turn_on(self) -> str | None:
        """Begin to write all that is in memory, and to record; return why it cannot be, or None."""
        server = self._server
        job = self._files.job
        if isinstance(job, RewriteJob):  # it keeps no record of what is written meanwhile
            job.cancel()
        config = server.config
        directory = AofDirectory(config.dir, config.appenddirname, config.appendfilename)
        directory.log = self._files.log
        try:
            directory.open()
        except Exception as error:
            reason = failure_text(error)
            log.warning("The append-only file cannot be turned on: %s", reason)
            return reason
        self.first_folder = directory
        self.rewrite_soon()
        return None

    def turn_off(self) -> None:
        """Record no more; the files stay. Where the file is off, do nothing."""
        if not self.is_on:
            return
        committer = self._committer
        job = self._files.job
        if isinstance(job, RewriteJob):
            job.cancel()
        self._files.status.rewrite_scheduled = False
        if self.first_folder is not None:
            self.drop_first()
        elif not committer.settle():
            log.warning("The append-only file is turned off, but its end may be missing")
        committer.close_files()
        self.recovery.done()
        log.info("The append-only file is turned off; its files stay")

    def drop_first(self) -> None:
        """Drop the records that were to follow the first base."""
        directory = self.first_folder
        committer = self._committer
        assert directory is not None
        committer.settle()
        committer.close_files()
        try:
            directory.delete_temporaries()
        except OSError as error:
            log.warning("A temporary file stays: %s", failure_text(error))
        directory.close()
        self.first_folder = None

    # BGREWRITEAOF

    def is_running(self) -> bool:
        return isinstance(self._files.job, RewriteJob)

    def rewrite_soon(self) -> bool:
        status = self._files.status
        if self._files.job is not None:
            status.rewrite_scheduled = True
            return False
        self.begin()
        return True

    def begin(self) -> bool:
        """Replace the files by a base and an empty incr file; False when that has not begun.

        With the append-only file off, only a base is written, as Redis does.
        """
        if self.first_folder is None and self.recovery.recover_if_needed():
            return self.is_running()
        server = self._server
        status = self._files.status
        status.rewrite_scheduled = False
        directory = self.first_folder
        if directory is None:
            directory = self._files.directory
        if directory is None:
            config = server.config
            directory = AofDirectory(config.dir, config.appenddirname, config.appendfilename)
        status.rewrites += 1
        status.rewriting = True
        status.rewrite_started_s = int(time.time())
        job: RewriteJob
        if self.first_folder is not None:
            job = FirstBaseJob(self._server, self._files, self._committer, self, directory)
        elif self._files.aof is not None:
            job = RewriteJob(self._server, self._files, self._committer, self, directory)
        else:
            job = LoneBaseJob(self._server, self._files, self._committer, self, directory)
        self._files.job = job
        try:
            self._files.worker.give(_Prepare(job))
        except Exception as error:
            job.break_off(error)
            return False
        return True

    def job_ended(self, job: RewriteJob, failure: str) -> None:
        """Note the end of a base: it is in its place, or, with a failure, is not."""
        status = self._files.status
        status.rewriting = False
        status.last_rewrite_s = max(0, int(time.time()) - job.started_s)
        status.last_rewrite_ok = not failure
        status.last_copied_bytes = job.copied_bytes
        if failure:
            status.failures_in_a_row += 1
            log.warning("Rewriting the append-only file failed: %s", failure)
            return
        status.failures_in_a_row = 0
        log.info(
            "Append-only base file written: %d bytes, %.3f seconds",
            job.size_bytes,
            (time.perf_counter_ns() - job.started_ns) / 1e9,
        )

    def tick(self, now_s: int) -> bool:
        """Begin a rewrite that is scheduled or due, where there is no job; True if it has begun."""
        scheduled = self._files.status.rewrite_scheduled
        if not (scheduled or self._has_grown()) or self._is_limited(now_s):
            return False
        if not scheduled:
            log.info("Starting automatic rewriting of the append-only file, it has grown enough")
        self.begin()
        return True

    def _has_grown(self) -> bool:
        """Return whether the files are long enough, by themselves and beside the base."""
        config = self._server.config
        aof = self._files.aof
        percentage = config.auto_aof_rewrite_percentage
        if aof is None or self.first_folder is not None or not percentage:
            return False
        if aof.total_bytes <= config.auto_aof_rewrite_min_size:
            return False
        return aof.total_bytes * 100 // (aof.base_bytes or 1) - 100 >= percentage

    def _is_limited(self, now_s: int) -> bool:
        """Return whether, after many failures, an attempt has to wait 1, 2, 4 ... 60 minutes."""
        if self._files.status.failures_in_a_row < MANY_FAILURES:
            self._delay_s = 0
            self._not_before_s = 0
            return False
        if self._not_before_s:
            if now_s < self._not_before_s:
                return True
            self._not_before_s = 0
            return False
        self._delay_s = min(2 * self._delay_s or 60, MOST_DELAY_S)
        self._not_before_s = now_s + self._delay_s
        log.warning(
            "Rewriting the append-only file failed repeatedly; the next attempt is in %d minutes",
            self._delay_s // 60,
        )
        return True


class RewriteJob(SnapshotJob):
    """A base on its way to the disk, to follow the files that there are."""

    def __init__(
        self,
        server: Server,
        files: Files,
        committer: Committer,
        rewriting: Rewriting,
        directory: AofDirectory,
    ) -> None:
        super().__init__(
            server, files, directory.temporary_base(), "Rewriting the append-only file"
        )
        self.directory: Final = directory
        self.rewriting: Final = rewriting
        self.committer: Final = committer
        self.suffix = COMMANDS_SUFFIX
        self._incr_path = b""
        self._retry: asyncio.TimerHandle | None = None
        self._synced_ahead = False

    def prepare(self) -> None:
        """Prepare the files; in the thread, as ``Task.run``."""
        self._incr_path = self.directory.add_incr()

    def prepared(self, failure: str) -> None:
        """Take this moment's state, if all is ready for it."""
        self._retry = None
        if self.cancelled:
            return
        if failure:
            self.fail(failure)
            return
        try:
            if self.server.gate.reasons & _OF_NO_MOMENT:
                self._retry = asyncio.get_running_loop().call_later(RETRY_S, self.prepared, "")
                return
            if self._has_to_wait():
                self.committer.when_free(self._go_on)
                return
            self.switch()
        except Exception as error:
            self.break_off(error)
            return
        log.info("Background append only file rewriting started")
        self.begin()

    def _has_to_wait(self) -> bool:
        """Return whether the thread has the file, so that a sync here would hold up all clients.

        Data that has not been synced for long is synced there first; then little is left to do.
        """
        committer = self.committer
        if not self._synced_ahead and committer.sync_soon():
            self._synced_ahead = True
        return committer.busy

    def _go_on(self) -> None:
        self.prepared("")

    def switch(self) -> None:
        """Send records to the file behind the base. Raises OSError, PersistenceError: no change."""
        if not self.committer.hand_over(self._incr_path):
            raise PersistenceError("the present file cannot be written")

    def encoder(self) -> Encoder:
        """Return an encoder of a snapshot or of commands, as is configured now."""
        config = self.server.config
        if config.aof_use_rdb_preamble:
            self.suffix = SNAPSHOT_SUFFIX
            return snapshot_encoder(self.server, True)
        return RewriteEncoder(begun_s=int(time.time()) if config.aof_timestamp_enabled else 0)

    def install(self) -> None:
        self.directory.adopt_base(self.file.path, self.suffix, 1)

    def ended(self, failure: str) -> None:
        aof = self.files.aof
        if not failure and aof is not None:
            aof.older_bytes = self.size_bytes
            aof.base_bytes = aof.total_bytes
            aof.trust()
        self.rewriting.job_ended(self, failure)

    def cancel(self) -> None:
        super().cancel()
        if self._retry is not None:
            self._retry.cancel()
        self.committer.when_free(None)
        if self.cancelled:
            self.files.status.rewriting = False
            log.warning("Rewriting the append-only file is given up")


class FirstBaseJob(RewriteJob):
    """The base with which the append-only file is turned on."""

    def prepare(self) -> None:
        self.directory.prepare_first()

    def switch(self) -> None:
        aof = self.directory.open_temporary()
        aof.named = False
        self.files.record_to(aof)
        self.files.directory = self.directory
        self.rewriting.timestamps_changed()

    def install(self) -> None:
        self.directory.adopt_first(self.file.path, self.suffix)

    def ended(self, failure: str) -> None:
        server = self.server
        rewriting = self.rewriting
        super().ended(failure)
        if not failure:
            rewriting.first_folder = None
            if self.files.aof is not None:
                incr = self.directory.manifest.incrs[-1]
                self.files.aof.renamed(self.directory.file_path(incr))
            rewriting.recovery.done()
            self.committer.serve_sync_waits()
            path = os.fsdecode(self.directory.path)
            log.info("The append-only file is turned on, in %s", path)
            return
        self.files.status.rewrite_scheduled = True
        rewriting.drop_first()
        if rewriting.recovery.directory is not None:  # which tries again
            self.files.status.rewrite_scheduled = False
            return
        try:
            self.directory.open()
        except Exception as error:
            log.warning("The append-only file cannot be turned on: %s", failure_text(error))
            server.config.appendonly = False
            self.files.status.rewrite_scheduled = False
            return
        rewriting.first_folder = self.directory


class LoneBaseJob(RewriteJob):
    """A base that nothing follows, because the append-only file is off."""

    def prepare(self) -> None:
        self.directory.open()

    def switch(self) -> None:
        pass

    def install(self) -> None:
        self.directory.adopt_base(self.file.path, self.suffix, 0)

    def ended(self, failure: str) -> None:
        self.directory.close()
        super().ended(failure)

    def cancel(self) -> None:
        super().cancel()
        self.directory.close()


class _Prepare(JobTask):
    def __init__(self, job: RewriteJob) -> None:
        super().__init__(job)
        self._rewrite: Final = job

    def run(self) -> None:
        self._rewrite.prepare()

    def report(self) -> None:
        self._rewrite.prepared(self.failure)
