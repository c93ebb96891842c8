"""Loading: the append-only folder's commands run again, and what starts and stops that.

The loader is a session of its own that nothing is refused and nothing asked. It runs in slices,
so that clients meanwhile hear ``-LOADING`` and get an answer to PING and INFO. Expiry rests: the
files themselves say when a key was removed. A transaction is kept back until its EXEC has been
read, so that one which the end of the file cuts off has not been run at all.

A command of the files that fails is no small matter: the data would silently differ from what it
was. So it is refused, with file and offset, like any other damage.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from typing import Final

from compat.errors import CommandError
from persistence.directory import AofDirectory
from persistence.dump import dump_commands, stamp_of
from persistence.errors import CorruptAOF, PersistenceError
from persistence.files import sync_file
from persistence.manifest import AofFile
from persistence.reader import AofReader
from protocol.replies import ErrorReply
from server.call import Call
from server.durability.rewriting import Rewriting
from server.execute import find_row, invoke
from server.session import REPLAY, Peer, Session
from server.state import Server

log: Final = logging.getLogger("headrace")

SLICE_NS: Final = 10_000_000  # how long clients may wait for the loop while data is loaded
SLICE_COMMANDS: Final = 256  # commands between two looks at the clock
REPORT_NS: Final = 1_000_000_000
_MULTI: Final = b"multi"
_EXEC: Final = b"exec"
_SELECT: Final = b"select"  # a time that stands before it is that of the command behind


class Replayer:
    """Runs recorded commands."""

    def __init__(self, server: Server) -> None:
        session = Session(0, server.dbs[0], server.clock_ns // 1_000_000, Peer())
        session.special = REPLAY
        self._server: Final = server
        self._session: Final = session
        self._call: Final = Call(server, session)
        self._call.may_block = False
        self._call.replaying = True

    def select_first(self) -> None:
        """Forget the database that was selected."""
        self._session.db = self._server.dbs[0]

    def run(self, argv: list[bytes], stamp_s: int = 0) -> bytes:
        """Run one command; the line of the error it failed with, else empty.

        Args:
            stamp_s: the second in which it ran first; 0 where the file does not say.
        """
        server = self._server
        call = self._call
        call.stamp_s = stamp_s
        row = server.rows.get(argv[0])
        if row is None or row.run is None or not row.arity_fits(len(argv)):
            try:
                row = find_row(server, argv)
            except CommandError as error:
                return error.line
        call.db = self._session.db
        call.now_ms = server.clock_ns // 1_000_000
        reply = invoke(call, row, argv)
        effects = call.effects
        if effects:
            if server.watchers or server.notify_flags or server.blocking.key_count:
                server.tell(effects)
            effects.clear()
        return reply.text if isinstance(reply, ErrorReply) else b""


class Loader:
    """Loads all files of a folder."""

    def __init__(self, server: Server, directory: AofDirectory) -> None:
        self._server: Final = server
        self._directory: Final = directory
        self._files: Final[list[AofFile]] = directory.manifest.to_load()
        self._replayer: Final = Replayer(server)
        self._file = 0  # index of the file at hand
        self._reader: AofReader | None = None
        self._transaction: list[list[bytes]] | None = None
        self._transaction_offset = 0
        self._stamp_s = 0  # of the next command, or of the transaction under way
        self._done_bytes = 0  # in the files before the one at hand
        self._started_ns = time.perf_counter_ns()
        self._reported_ns = self._started_ns
        self.commands = 0
        status = server.aof_status
        status.loading_started_s = int(time.time())
        status.total_bytes = directory.size_of(self._files)
        status.loaded_bytes = 0

    def load_slice(self, budget_ns: int) -> bool:
        """Load for about ``budget_ns``; False when everything is loaded.

        Raises:
            PersistenceError: a file cannot be read or trusted.
        """
        self._server.refresh_clock()
        stop_ns = time.perf_counter_ns() + budget_ns
        while self._file < len(self._files):
            reader = self._reader
            if reader is None:
                reader = self._open()
            if not self._load_some(reader):
                self._close(reader)
            self._server.aof_status.loaded_bytes = self._done_bytes + reader.offset
            if time.perf_counter_ns() >= stop_ns:
                break
        self._report()
        return self._file < len(self._files)

    def _open(self) -> AofReader:
        file = self._files[self._file]
        path = self._directory.file_path(file)
        try:
            reader = AofReader(path, path)
        except OSError as error:
            raise PersistenceError(
                f"{os.fsdecode(path)} cannot be read: {error.strerror}."
            ) from error
        if reader.starts_with(b"REDIS") or file.name.endswith((b".rdb", b".hrs")):
            reader.close()
            raise PersistenceError(
                f"{os.fsdecode(path)} is a snapshot; only files of commands can be loaded. Where "
                "Redis wrote it: set aof-use-rdb-preamble to no there, run BGREWRITEAOF, and copy "
                "the folder again."
            )
        self._reader = reader
        self._replayer.select_first()
        return reader

    def _load_some(self, reader: AofReader) -> bool:
        """Run the next commands of a file; False at its end."""
        count = 0
        while count < SLICE_COMMANDS:
            offset = reader.offset
            argv = reader.next()
            if argv is None:
                return False
            count += 1
            self.commands += 1
            if reader.stamp_s:
                self._stamp_s = reader.stamp_s
            queue = self._transaction
            name = argv[0].lower() if len(argv) == 1 else b""
            if queue is None:
                if name == _MULTI:
                    self._transaction = []
                    self._transaction_offset = offset
                else:
                    self._run(reader, argv, offset)
            elif name == _EXEC:
                self._transaction = None
                for queued in queue:
                    self._run(reader, queued, self._transaction_offset)
            elif name == _MULTI:
                raise CorruptAOF(reader.name, offset, "EXEC before another MULTI")
            else:
                queue.append(argv)
            if self._stamp_s and self._transaction is None and argv[0].lower() != _SELECT:
                self._stamp_s = 0
        return True

    def _run(self, reader: AofReader, argv: list[bytes], offset: int) -> None:
        line = self._replayer.run(argv, self._stamp_s)
        if line:
            shown = argv[0][:64].decode("ascii", "backslashreplace")
            text = line.decode("utf-8", "backslashreplace")
            raise CorruptAOF(
                reader.name, offset, f"a command that succeeds, but {shown} answered: {text}"
            )

    def _close(self, reader: AofReader) -> None:
        good_bytes = reader.offset
        if self._transaction is not None:
            good_bytes = self._transaction_offset
        if reader.torn or self._transaction is not None:
            self._mend(reader, good_bytes)
        self._transaction = None
        reader.close()
        self._reader = None
        self._done_bytes += reader.size_bytes
        self._file += 1

    def _mend(self, reader: AofReader, good_bytes: int) -> None:
        """Cut off what the last write left half done, where that is allowed."""
        name = os.fsdecode(reader.name)
        what = "a transaction" if self._transaction is not None else "a command"
        lost = reader.size_bytes - good_bytes
        if self._file < len(self._files) - 1:
            raise CorruptAOF(
                reader.name, good_bytes, f"the rest of {what}, for this is not the last file"
            )
        if not self._server.config.aof_load_truncated:
            raise PersistenceError(
                f"{name} ends in the middle of {what}: {lost} bytes after offset {good_bytes}. "
                "Start with aof-load-truncated yes to go on without them, or make a copy of the "
                "folder and repair it with redis-check-aof --fix."
            )
        log.warning("%s ends in the middle of %s, as after a power failure", name, what)
        fd = os.open(reader.name, os.O_WRONLY)
        try:
            os.ftruncate(fd, good_bytes)
            sync_file(fd)
        finally:
            os.close(fd)
        log.warning("%s truncated at offset %d: %d bytes dropped", name, good_bytes, lost)

    def _report(self) -> None:
        now_ns = time.perf_counter_ns()
        if now_ns - self._reported_ns < REPORT_NS:
            return
        self._reported_ns = now_ns
        status = self._server.aof_status
        spent_s = (now_ns - self._started_ns) / 1e9
        left_s = spent_s * (status.total_bytes - status.loaded_bytes) / (status.loaded_bytes + 1)
        log.info(
            "Loading the append-only file: %.1f %%, %d commands/s, %.0f s to go",
            status.loaded_share(),
            self.commands / spent_s,
            left_s,
        )

    def finish(self) -> None:
        """Say what was loaded."""
        keys = sum([len(db) for db in self._server.dbs])
        spent_s = (time.perf_counter_ns() - self._started_ns) / 1e9
        log.info(
            "Loaded %d keys from %d commands in %d files of %s: %.3f seconds",
            keys,
            self.commands,
            len(self._files),
            os.fsdecode(self._directory.path),
            spent_s,
        )


async def start_persistence(server: Server) -> None:
    """Load what is on the disk and open the append-only file, as configured.

    Raises:
        PersistenceError, OSError: the server must not start.
    """
    rewriting = Rewriting(server)
    config = server.config
    config.on_change["appendonly"] = rewriting.appendonly_changed
    config.on_change["aof-timestamp-enabled"] = rewriting.timestamps_changed
    if not config.appendonly:
        return
    directory = AofDirectory(config.dir, config.appenddirname, config.appendfilename)
    directory.open()
    server.aof_directory = directory
    loader = Loader(server, directory)
    set_expiry(server, False)
    gc.disable()  # what is loaded stays, and makes no cycles: walking it again and again is in vain
    try:
        while loader.load_slice(SLICE_NS):
            await asyncio.sleep(0)
            if server.stopping:
                return
    finally:
        gc.enable()
    set_expiry(server, True)
    server.dirty = 0
    loader.finish()
    server.aof = directory.open_last()
    rewriting.timestamps_changed()
    directory.delete_history()


def reload_aof(server: Server) -> None:
    """Empty the keyspace and load the append-only folder again, at once (DEBUG LOADAOF).

    Raises:
        PersistenceError: the files cannot be written or trusted; the keyspace may be half loaded.
    """
    directory = server.aof_directory
    aof = server.aof
    committer = server.committer
    if directory is None or aof is None or committer is None:
        raise PersistenceError("the append-only file is off")
    if not committer.settle():
        raise PersistenceError("the append-only file cannot be written")
    empty(server)
    set_expiry(server, False)
    server.aof = None
    try:
        loader = Loader(server, directory)
        while loader.load_slice(SLICE_NS):
            pass
        loader.finish()
    finally:
        server.aof = aof
        set_expiry(server, True)
    server.dirty = 0


def reload_from_memory(server: Server) -> None:
    """Write the keyspace as commands, empty it and run them (DEBUG RELOAD).

    Raises:
        PersistenceError: a command failed; the keyspace is then incomplete.
    """
    commands = list(dump_commands(server.dbs))
    empty(server)
    set_expiry(server, False)
    aof = server.aof
    server.aof = None
    try:
        replayer = Replayer(server)
        stamp_s = 0
        for argv in commands:
            before_s = stamp_s
            stamp_s = stamp_of(argv)
            line = b"" if stamp_s else replayer.run(argv, before_s)
            if line:
                raise PersistenceError(line.decode("utf-8", "backslashreplace"))
    finally:
        server.aof = aof
        set_expiry(server, True)


def empty(server: Server) -> None:
    """Drop all keys without a record."""
    for db in server.dbs:
        server.touch_database(db, None)
        db.clear()


def set_expiry(server: Server, enabled: bool) -> None:
    """Let keys expire, or keep them while files are read that say themselves what expired."""
    for db in server.dbs:
        db.expire_enabled = enabled
