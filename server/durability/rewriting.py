"""Writing the append-only folder anew, and turning it on and off while the server runs.

A rewrite goes on in a new incr file first, so that whatever fails afterwards, the manifest names
files that together hold everything. It runs between two turns of the event loop, never within a
command: a transaction under way has changed the keyspace and not yet been recorded, and a base
taken then would hold its changes twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from typing import TYPE_CHECKING, Final

from persistence.directory import AofDirectory
from persistence.dump import dump_commands, wire
from persistence.errors import PersistenceError
from persistence.files import write_all

if TYPE_CHECKING:
    from server.state import Server

log: Final = logging.getLogger("headrace")

BATCH_BYTES: Final = 1 << 18


class Rewriting:
    """What changes the append-only folder of one server at run time."""

    def __init__(self, server: Server) -> None:
        self._server: Final = server
        server.rewriting = self

    # CONFIG SET

    def appendonly_changed(self) -> str | None:
        """Turn the append-only file on, with all that is in memory, or off."""
        server = self._server
        if server.config.appendonly == (server.aof is not None):
            return None
        if not server.config.appendonly:
            self._stop()
            return None
        if server.call.effects:
            server.aof_status.rewrite_scheduled = True
            asyncio.get_running_loop().call_soon(self._start_late)
            return None
        return self._start()

    def timestamps_changed(self) -> str | None:
        """Annotate what is written from now on, or no longer."""
        aof = self._server.aof
        if aof is not None:
            aof.annotate = self._server.config.aof_timestamp_enabled
        return None

    def _stop(self) -> None:
        server = self._server
        committer = server.committer
        aof = server.aof
        if committer is None or aof is None:
            return
        if not committer.settle():
            log.warning("The append-only file is turned off, but its end may be missing")
        committer.let_go()
        log.info("The append-only file is turned off; its files stay")

    def _start_late(self) -> None:
        server = self._server
        server.aof_status.rewrite_scheduled = False
        if not server.config.appendonly or server.aof is not None:
            return
        reason = self._start()
        if reason is not None:
            server.config.appendonly = False

    def _start(self) -> str | None:
        """Open the folder and write all that is in memory; a text says why it cannot be."""
        server = self._server
        config = server.config
        directory = AofDirectory(config.dir, config.appenddirname, config.appendfilename)
        try:
            directory.open()
            directory.add_incr()
            self._write_base(directory, 1)
            server.aof = directory.open_last()
        except (OSError, PersistenceError) as error:
            directory.close()
            log.warning("The append-only file cannot be turned on: %s", error)
            return str(error)
        server.aof_directory = directory
        self.timestamps_changed()
        log.info("The append-only file is turned on, in %s", os.fsdecode(directory.path))
        return None

    # BGREWRITEAOF

    def rewrite_soon(self) -> bool:
        """Rewrite once the present turn is done; False when that is under way already."""
        status = self._server.aof_status
        if status.rewrite_scheduled or status.rewriting:
            return False
        status.rewrite_scheduled = True
        asyncio.get_running_loop().call_soon(self._rewrite_scheduled)
        return True

    def _rewrite_scheduled(self) -> None:
        self._server.aof_status.rewrite_scheduled = False
        self.rewrite()

    def rewrite(self) -> bool:
        """Replace the files by a base of what is in memory and an empty incr file.

        With the append-only file off, only a base is written, as Redis does.

        Returns:
            False when it failed; the files hold what they held.
        """
        server = self._server
        directory = server.aof_directory
        if directory is not None:
            return self._rewrite_in(directory)
        config = server.config
        directory = AofDirectory(config.dir, config.appenddirname, config.appendfilename)
        try:
            directory.open()
        except PersistenceError as error:
            log.warning("Rewriting the append-only file failed: %s", error)
            server.aof_status.last_rewrite_ok = False
            return False
        try:
            return self._rewrite_in(directory)
        finally:
            directory.close()

    def _rewrite_in(self, directory: AofDirectory) -> bool:
        server = self._server
        aof = server.aof
        try:
            if aof is None:
                self._write_base(directory, 0)
                return True
            committer = server.committer
            if committer is None or not committer.settle():
                raise PersistenceError("the present file cannot be written")
            path = directory.add_incr()
            aof.switch(path, directory.size_of(directory.manifest.to_load()))
            self._write_base(directory, 1)
            base = directory.manifest.base
            assert base is not None
            aof.older_bytes = directory.size_of([base])
            aof.base_bytes = aof.total_bytes
        except (OSError, PersistenceError) as error:
            log.warning("Rewriting the append-only file failed: %s", error)
            return False
        return True

    def _write_base(self, directory: AofDirectory, incrs_kept: int) -> None:
        status = self._server.aof_status
        status.rewrites += 1
        status.rewriting = True
        status.rewrite_started_s = int(time.time())
        started_ns = time.perf_counter_ns()
        status.last_rewrite_ok = False
        status.failures_in_a_row += 1
        temporary = directory.temporary_base()
        try:
            self._write_commands(temporary)
            directory.adopt_base(temporary, incrs_kept)
        except (OSError, PersistenceError):
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            status.rewriting = False
            status.last_rewrite_s = (time.perf_counter_ns() - started_ns) // 1_000_000_000
        status.last_rewrite_ok = True
        status.failures_in_a_row = 0
        log.info("Append-only base file written: %d bytes", os.path.getsize(_base_path(directory)))

    def _write_commands(self, path: bytes) -> None:
        """Write all that is in memory to a new file, and see it on the disk."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            batch: list[bytes] = []
            size = 0
            for command in dump_commands(self._server.dbs):
                piece = wire(command)
                batch.append(piece)
                size += len(piece)
                if size >= BATCH_BYTES:
                    write_all(fd, b"".join(batch))
                    batch.clear()
                    size = 0
            if batch:
                write_all(fd, b"".join(batch))
            os.fsync(fd)
        finally:
            os.close(fd)


def _base_path(directory: AofDirectory) -> bytes:
    base = directory.manifest.base
    assert base is not None
    return directory.file_path(base)
