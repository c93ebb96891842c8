"""Loading: snapshots read, recorded commands run again, and what starts and stops that.

The append-only folder consists of a base, which is a snapshot or commands, and of files of
commands. Without it there is the snapshot that SAVE writes. A snapshot is put into the databases as
it is; commands are run. What a file is, its first bytes say, and its name has to agree.

The loader is a session of its own that nothing is refused and nothing asked. It runs in slices,
so that clients meanwhile hear ``-LOADING`` and get an answer to PING and INFO. Expiry rests: the
files themselves say when a key was removed. A transaction is kept back until its EXEC has been
read, so that one which the end of the file cuts off has not been run at all.

A command of the files that fails is no small matter: the data would silently differ from what it
was. So it is refused, with file and offset, like any other damage.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import time
from typing import Final, NoReturn

from headrace.compat.errors import CommandError
from headrace.persistence.aof.directory import AofDirectory, is_end_of_data
from headrace.persistence.aof.reader import AofReader
from headrace.persistence.errors import CorruptAOF, PersistenceError, os_refusal, shown
from headrace.persistence.files import read_head, sync_file
from headrace.persistence.rdb.head import HEAD_BYTES, is_rdb
from headrace.persistence.snapshot.decode import KEEP_ALL, Decoder
from headrace.persistence.snapshot.file import is_snapshot, rdb_refusal
from headrace.persistence.snapshot.layout import MAGIC
from headrace.persistence.snapshot.loader import SnapshotLoader
from headrace.protocol.replies import ErrorReply
from headrace.server.clients.session import REPLAY, Peer, Session
from headrace.server.dispatch.admission import find_recorded_row
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.invoke import invoke
from headrace.server.dispatch.rows import WRITE, Command
from headrace.server.durability.durability import Durability
from headrace.server.durability.rewriting import RewriteJob
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

SLICE_NS: Final = 10_000_000  # how long clients may wait for the loop while data is loaded
SLICE_COMMANDS: Final = 256  # commands between two looks at the clock
REPORT_NS: Final = 1_000_000_000
REDIS_DUMP: Final = b"dump.rdb"  # what Redis calls its snapshot, unless configured otherwise
_MULTI: Final = b"multi"
_EXEC: Final = b"exec"
_CONTROLS: Final = (b"select", b"exec", b"discard")  # the latter two have no business here
_SELECT: Final = b"select"  # a time that stands before it is that of the command behind


class Replayer:
    """Runs recorded commands."""

    def __init__(self, server: Server, durability: Durability) -> None:
        session = Session(0, server.data.dbs[0], server.clock.now_ns // 1_000_000, Peer())
        session.special = REPLAY
        self._server: Final = server
        self._session: Final = session
        self._call: Final = Call(server, durability, session)
        self._call.may_block = False
        self._call.replaying = True
        self._rows: Final[dict[bytes, Command]] = {}  # by name as it stands in the files

    def select_first(self) -> None:
        """Forget the database that was selected."""
        self._session.db = self._server.data.dbs[0]

    def run(self, argv: list[bytes], stamp_s: int = 0) -> bytes:
        """Run one command; the line of the error it failed with, else empty.

        Args:
            stamp_s: the second in which it ran first; 0 where the file does not say.
        """
        server = self._server
        call = self._call
        call.stamp_s = stamp_s
        row = self._rows.get(argv[0])
        if row is None or row.run is None or not row.arity_fits(len(argv)):
            try:
                row = find_recorded_row(self._rows, argv)
            except CommandError as error:
                return error.line
        if not row.flags & WRITE and row.name not in _CONTROLS:
            return b""  # such as SAVE: it has no part in what the data is
        call.db = self._session.db
        call.now_ms = server.clock.now_ns // 1_000_000
        reply = invoke(call, row, argv)
        server.changes.end_command()
        return reply.text if isinstance(reply, ErrorReply) else b""


class Loader:
    """Loads files one after another.

    Args:
        paths: the files; all but the first hold commands.
        size_bytes: how long they are together.
        drop_expired: leave out the keys of a snapshot whose deadline has come. Commands that
            follow a snapshot say themselves what expired.

    Attributes:
        mends: a torn end is cut off the last file; otherwise it is passed over, and stays.
        start: where to begin in the first file, when it holds commands.
    """

    def __init__(
        self,
        server: Server,
        durability: Durability,
        paths: list[bytes],
        size_bytes: int,
        drop_expired: bool,
    ) -> None:
        self._server: Final = server
        self._status: Final = durability.files.status
        self._files: Final = paths
        self._drop_expired: Final = drop_expired
        self._replayer: Final = Replayer(server, durability)
        self._file = 0  # index of the file at hand
        self._reader: AofReader | None = None
        self._snapshot: SnapshotLoader | None = None
        self._entries = 0  # of streams, in snapshots
        self.mends = True
        self.start = 0
        self._transaction: list[list[bytes]] | None = None
        self._transaction_offset = 0
        self._damaged = False  # the file being read has a damaged end, which is left out
        self._stamp_s = 0  # of the next command, or of the transaction under way
        self._done_bytes = 0  # in the files before the one at hand
        self._started_ns = time.perf_counter_ns()
        self._reported_ns = self._started_ns
        self.commands = 0
        status = self._status
        status.loading_started_s = int(time.time())
        status.total_bytes = size_bytes
        status.loaded_bytes = 0

    def load_slice(self, budget_ns: int) -> bool:
        """Load for about ``budget_ns``; False when everything is loaded.

        Raises:
            PersistenceError: a file cannot be read or trusted.
        """
        self._server.clock.refresh()
        stop_ns = time.perf_counter_ns() + budget_ns
        while self._file < len(self._files):
            self._load_part()
            if time.perf_counter_ns() >= stop_ns:
                break
        self._report()
        return self._file < len(self._files)

    def _load_part(self) -> None:
        """Load a part of the file at hand."""
        status = self._status
        if self._reader is None and self._snapshot is None:
            self._open(self._files[self._file])
        reader = self._reader
        if reader is not None:
            if not self._load_some(reader):
                self._close(reader)
            status.loaded_bytes = self._done_bytes + reader.offset
            return
        snapshot = self._snapshot
        assert snapshot is not None
        going_on = snapshot.step()
        self._entries = snapshot.decoder.entries_met()
        status.loaded_bytes = self._done_bytes + snapshot.loaded_bytes
        if not going_on:
            status.keys_loaded = snapshot.decoder.keys - snapshot.decoder.expired
            status.keys_expired = snapshot.decoder.expired
            self._done_bytes += snapshot.size_bytes
            snapshot.close()
            self._snapshot = None
            self._file += 1

    def _open(self, path: bytes) -> None:
        """Find out what a file holds, and begin to load it."""
        if not self.start and is_snapshot(path):
            if self._file:
                raise PersistenceError(
                    f"{os.fsdecode(path)} is a snapshot, but the manifest names it as a file of "
                    "commands. Put the manifest back that belongs to these files."
                )
            now_ms = self._server.clock.now_ns // 1_000_000
            drop_before_ms = now_ms if self._drop_expired else KEEP_ALL
            self._snapshot = SnapshotLoader(path, self._decoder(now_ms, drop_before_ms))
            return
        try:
            self._reader = AofReader(path, path, 0 if self._file else self.start)
        except OSError as error:
            raise os_refusal(path, "read", error) from error
        self._replayer.select_first()

    def _decoder(self, now_ms: int, drop_before_ms: int) -> Decoder:
        """What puts the keys of a snapshot into the databases."""
        return Decoder(self._server.data.dbs, now_ms, drop_before_ms)

    def _load_some(self, reader: AofReader) -> bool:
        """Run the next commands of a file; False at its end."""
        count = 0
        while count < SLICE_COMMANDS:
            offset = reader.offset
            argv = self._next(reader)
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

    def _next(self, reader: AofReader) -> list[bytes] | None:
        """The next command; None at the end of the file, or of what is to be loaded of it.

        Raises:
            CorruptAOF: the file is damaged, and more than aof-load-corrupt-tail-max-size allows.
        """
        try:
            return reader.next()
        except CorruptAOF as damage:
            damaged_bytes = reader.size_bytes - reader.offset
            most_bytes = self._server.config.aof_load_corrupt_tail_max_size
            if damaged_bytes >= most_bytes or not is_end_of_data(self._files, self._file):
                raise
            log.warning(
                "%s is damaged at offset %d: expected %s. As aof-load-corrupt-tail-max-size allows "
                "it, the end is left out",
                os.fsdecode(reader.name),
                damage.offset,
                damage.expected,
            )
            self._damaged = True
            return None

    def _good_bytes(self, reader: AofReader) -> int:
        """How much of a file is whole: what comes behind is half done, or damaged."""
        return reader.offset if self._transaction is None else self._transaction_offset

    def _run(self, reader: AofReader, argv: list[bytes], offset: int) -> None:
        line = self._replayer.run(argv, self._stamp_s)
        if line:
            self._refuse(reader, argv, offset, line)

    def _refuse(self, reader: AofReader, argv: list[bytes], offset: int, line: bytes) -> NoReturn:
        """A command failed: the data would not be what it was."""
        if self._server.config.hide_user_data_from_log:  # it may quote arguments
            line = line.partition(b" ")[0]
        text = line.decode("utf-8", "backslashreplace")
        raise CorruptAOF(
            reader.name, offset, f"a command that succeeds, but {shown(argv[0])} answered: {text}"
        )

    def _close(self, reader: AofReader) -> None:
        good_bytes = self._good_bytes(reader)
        if self._damaged:
            self._cut(reader, good_bytes)
        elif reader.torn or self._transaction is not None:
            self._mend(reader, good_bytes)
        self._transaction = None
        self._damaged = False
        reader.close()
        self._reader = None
        self._done_bytes += reader.size_bytes
        self._file += 1

    def _mend(self, reader: AofReader, good_bytes: int) -> None:
        """Cut off what the last write left half done, where that is allowed."""
        name = os.fsdecode(reader.name)
        what = "a transaction" if self._transaction is not None else "a command"
        lost = reader.size_bytes - good_bytes
        if not is_end_of_data(self._files, self._file):
            raise CorruptAOF(
                reader.name, good_bytes, f"the rest of {what}, for this is not the last file"
            )
        if not self._server.config.aof_load_truncated:
            raise PersistenceError(
                f"{name} ends in the middle of {what}: {lost} bytes after offset {good_bytes}. "
                "Start with aof-load-truncated yes to go on without them, or make a copy of the "
                "folder and repair it with headrace check-aof --fix."
            )
        log.warning("%s ends in the middle of %s, as after a power failure", name, what)
        self._cut(reader, good_bytes)

    def _cut(self, reader: AofReader, good_bytes: int) -> None:
        """Go on without the end of a file."""
        name = os.fsdecode(reader.name)
        lost = reader.size_bytes - good_bytes
        if not self.mends:
            log.warning("%s: %d bytes from offset %d on are left out", name, lost, good_bytes)
            return
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
        status = self._status
        spent_s = (now_ns - self._started_ns) / 1e9
        left_s = spent_s * (status.total_bytes - status.loaded_bytes) / (status.loaded_bytes + 1)
        snapshot = self._snapshot
        if snapshot is None:
            what = "append-only file"
            speed = f"{int(self.commands / spent_s)} commands/s"
        else:
            what = "snapshot"
            keys = snapshot.decoder.keys
            speed = f"{int(keys / spent_s)} keys/s, {int(self._entries / spent_s)} entries/s"
        log.info(
            "Loading the %s: %.1f %%, %s, %.0f s to go", what, status.loaded_share(), speed, left_s
        )

    def finish(self) -> None:
        """Say what was loaded."""
        keys = sum([len(db) for db in self._server.data.dbs])
        spent_s = (time.perf_counter_ns() - self._started_ns) / 1e9
        log.info(
            "Loaded %d keys from %d commands and %d entries of snapshots in %d files of %s: "
            "%.3f seconds",
            keys,
            self.commands,
            self._entries,
            len(self._files),
            os.fsdecode(os.path.dirname(self._files[0])) if self._files else "no folder",
            spent_s,
        )


async def start_persistence(server: Server, durability: Durability) -> None:
    """Load what is on the disk and open the append-only file, as configured.

    Raises:
        PersistenceError: the server must not start.
    """
    durability.begin()
    files = durability.files
    config = server.config
    if not config.appendonly:
        await load_dump(server, durability)
        return
    directory = AofDirectory(config.dir, config.appenddirname, config.appendfilename)
    directory.open()
    files.directory = directory
    adopt_dump(server, directory)
    if await load(server, directory_loader(server, durability, directory)):
        try:
            directory.sync()
            files.record_to(directory.open_last())
            durability.rewriting.timestamps_changed()
            directory.delete_history()
        except OSError as error:
            raise os_refusal(directory.path, "written", error) from error


def adopt_dump(server: Server, directory: AofDirectory) -> None:
    """Begin an append-only folder with what SAVE wrote: turning it on must not lose that.

    Raises:
        PersistenceError: the snapshot cannot be read.
    """
    dump = dump_path(server)
    if not directory.holds_no_data():
        return
    if not os.path.exists(dump):
        warn_of_rdb(server)
    elif is_snapshot(dump):
        directory.adopt_snapshot(dump)
        log.info("%s is the base of the new append-only file", os.fsdecode(dump))


async def load_dump(server: Server, durability: Durability) -> None:
    """Load the snapshot that SAVE writes, if there is one.

    Raises:
        PersistenceError: it cannot be read or trusted.
    """
    path = dump_path(server)
    size_bytes = file_size(path)
    if size_bytes < 0:
        warn_of_rdb(server)
        return
    if not is_snapshot(path):
        raise PersistenceError(
            f"{os.fsdecode(path)}, which `dbfilename` names, is no snapshot: it does not start "
            f"with {MAGIC.decode()}. Move it away, or give the snapshot another name."
        )
    await load(server, Loader(server, durability, [path], size_bytes, True))


def warn_of_rdb(server: Server) -> None:
    """Say so where Redis's own snapshot lies in a folder that a server begins empty in."""
    path = os.path.join(os.path.abspath(server.config.dir), REDIS_DUMP)
    with contextlib.suppress(OSError, PersistenceError):
        head = read_head(path, HEAD_BYTES)
        if is_rdb(head):
            log.warning("Starting empty: %s", rdb_refusal(path, head))


def file_size(path: bytes) -> int:
    """The length of a file; -1 when there is none.

    Raises:
        PersistenceError: it cannot be looked at.
    """
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise os_refusal(path, "read", error) from error


def dump_path(server: Server) -> bytes:
    """Where SAVE leaves its snapshot."""
    return os.path.join(os.path.abspath(server.config.dir), server.config.dbfilename)


def directory_loader(server: Server, durability: Durability, directory: AofDirectory) -> Loader:
    """What loads an append-only folder."""
    files = directory.manifest.to_load()
    paths = [directory.file_path(file) for file in files]
    return Loader(server, durability, paths, directory.size_of(files), False)


async def load(server: Server, loader: Loader) -> bool:
    """Load in slices between which clients are answered; False when told to stop meanwhile."""
    set_expiry(server, False)
    gc.disable()  # what is loaded stays, and makes no cycles: walking it again and again is in vain
    try:
        while loader.load_slice(SLICE_NS):
            await asyncio.sleep(0)
            if server.stopping:
                return False
    finally:
        gc.enable()
    set_expiry(server, True)
    server.changes.dirty = 0
    loader.finish()
    return True


def reload_aof(server: Server, durability: Durability) -> None:
    """Empty the keyspace and load the append-only folder again, at once (DEBUG LOADAOF).

    With the append-only file off, what a rewrite has left in the folder is loaded.

    Raises:
        PersistenceError: the files cannot be written or trusted; the keyspace may be half loaded.
    """
    files = durability.files
    aof = files.aof
    directory = files.directory
    if durability.rewriting.recovery.look():
        raise PersistenceError("the append-only folder has vanished, and is written anew")
    if server.config.appendonly and (aof is None or not aof.named):
        raise PersistenceError("the append-only file is still being turned on")
    if isinstance(files.job, RewriteJob):
        files.job.cancel()  # it changes the folder
    if directory is not None:
        if not durability.committer.settle():
            raise PersistenceError("the append-only file cannot be written")
        _load_anew(server, durability, directory)
        return
    config = server.config
    directory = AofDirectory(config.dir, config.appenddirname, config.appendfilename)
    directory.open()
    try:
        if not directory.manifest.to_load():
            raise PersistenceError(f"{os.fsdecode(directory.path)} holds nothing to load")
        _load_anew(server, durability, directory)
    finally:
        directory.close()


def _load_anew(server: Server, durability: Durability, directory: AofDirectory) -> None:
    """Let the keyspace be what a folder says, and keep no record of how that came."""
    files = durability.files
    aof = files.aof
    loader = directory_loader(server, durability, directory)
    empty(server)
    set_expiry(server, False)
    files.record_to(None)
    try:
        while loader.load_slice(SLICE_NS):
            pass
        loader.finish()
    finally:
        files.record_to(aof)
        set_expiry(server, True)
    server.changes.dirty = 0


def reload_snapshot(server: Server, path: bytes, flush: bool, merge: bool) -> None:
    """Load a snapshot at once (DEBUG RELOAD).

    Args:
        flush: empty the keyspace before.
        merge: let keys of the snapshot replace those that are there; otherwise that is an error.

    Raises:
        PersistenceError: it cannot be read or trusted; the keyspace may be half loaded.
    """
    now_ms = server.clock.refresh()
    decoder = Decoder(server.data.dbs, now_ms, now_ms)
    decoder.replaces = merge
    loader = SnapshotLoader(path, decoder)
    try:
        if flush:
            empty(server)
        set_expiry(server, False)
        while loader.step():
            pass
    finally:
        loader.close()
        set_expiry(server, True)


def empty(server: Server) -> None:
    """Drop all keys without a record."""
    now_ms = server.clock.now_ns // 1_000_000
    for db in server.data.dbs:
        server.changes.replace_database(db, None, now_ms)
        db.clear()


def set_expiry(server: Server, enabled: bool) -> None:
    """Let keys expire, or keep them while files are read that say themselves what expired."""
    for db in server.data.dbs:
        db.expire_enabled = enabled
