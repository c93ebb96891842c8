"""Loading: snapshots are read, and recorded commands run again.

The append-only folder consists of a base, which is a snapshot or commands, and of files of
commands. Without it there is the snapshot that SAVE writes. A snapshot is put into the databases as
it is; commands are run. The first bytes of a file say what it is, and its name has to agree.

Loading comes in slices, so that clients meanwhile get ``-LOADING``, and answers to PING and INFO.
Keys do not expire meanwhile, because the files themselves say when a key was removed. A transaction
is kept back until its EXEC has been read. So one that the end of the file cuts off is not run.

A command of the files that fails is refused with file and offset, like any other damage, because
the data would silently differ from what it was.

Records that several regions have are numbered in a region's files. They are not run as commands but
applied as when they come from another region; see ``region_files``.
"""

from __future__ import annotations

import logging
import os
import time
from abc import abstractmethod
from typing import Final, NoReturn

from mypy_extensions import mypyc_attr

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.server_errors import UNKNOWN_COMMAND
from headrace.persistence.aof.directory import AofDirectory, is_end_of_data
from headrace.persistence.aof.reader import AofReader
from headrace.persistence.errors import CorruptAOF, PersistenceError, os_refusal, shown
from headrace.persistence.files import sync_file
from headrace.persistence.forms.table import forms
from headrace.persistence.log import StreamPlace, noted_place
from headrace.persistence.rdb.reader import Left, RdbReader
from headrace.persistence.snapshot.decode import KEEP_ALL, Decoder, SnapshotLoader
from headrace.persistence.snapshot.file import is_rdb_file, is_snapshot
from headrace.persistence.taker import IntoDatabases, LiveKeys
from headrace.protocol.replies import ErrorReply
from headrace.server.clients.session import REPLAY, Peer, Session
from headrace.server.clock import MS
from headrace.server.config.config import Config, defaults
from headrace.server.dispatch.admission import changes_nothing, find_recorded_row, runs_again
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.invoke import invoke
from headrace.server.dispatch.rows import WRITE, Command
from headrace.server.durability.durability import Durability
from headrace.server.state import Server
from headrace.storage.keyspace import Keyspaces
from headrace.storage.sharing import AA, FILE, Member

log: Final = logging.getLogger("headrace")

_LOGGED: Final = 10  # scripts that fail


class Replayer:
    """Runs recorded commands; ``passed`` counts those left out, which act on no data."""

    def __init__(self, server: Server, durability: Durability) -> None:
        session = Session(0, server.data.dbs[0], server.clock.now_ns // MS, Peer())
        session.special = REPLAY
        self._server: Final = server
        self._session: Final = session
        self._call: Final = Call(server, durability, session)
        self._call.may_block = False
        self._call.replaying = True
        self._rows: Final[dict[bytes, Command]] = {}  # by name as it stands in the files
        self.passed: dict[bytes, int] = {}
        self._failed = 0  # scripts

    def select_first(self) -> None:
        """Forget the database that was selected."""
        self._session.db = self._server.data.dbs[0]

    def run(self, argv: list[bytes], stamp_s: int = 0) -> bytes:
        """Run one command; return the line of the error it failed with, else empty.

        ``stamp_s`` is the second in which it ran first; 0 where the file does not say.
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
        if not row.flags & WRITE and not runs_again(row):
            if not changes_nothing(row):
                self.passed[row.name] = self.passed.get(row.name, 0) + 1
            return b""
        call.db = self._session.db
        call.now_ms = server.clock.now_ns // MS
        runs = self._runs()
        reply = invoke(call, row, argv)
        server.changes.end_command()
        if not isinstance(reply, ErrorReply):
            return b""
        line = reply.text
        if self._runs() == runs or UNKNOWN_COMMAND in line:
            return line
        self._note_failure(line)
        return b""

    def _runs(self) -> int:
        scripting = self._server.scripting
        return 0 if scripting is None else scripting.runs

    def _note_failure(self, line: bytes) -> None:
        self._failed += 1
        if self._failed <= _LOGGED:
            if self._server.config.hide_user_data_from_log:
                line = line.partition(b" ")[0]
            text = line.decode("utf-8", "backslashreplace")
            log.warning("A recorded script ended with an error, after what it had done: %s", text)


@mypyc_attr(allow_interpreted_subclasses=True)
class RegionFiles:
    """The files of the region ``member``.

    ``wants_base``: they are a single server's, and a base is to be written before anything else.
    """

    def __init__(self, member: Member) -> None:
        self.member: Final = member
        self.wants_base = False

    @abstractmethod
    def begin_folder(self, config: Config, durability: Durability, directory: AofDirectory) -> None:
        """Prepare to load and write a folder. Raises PersistenceError if it is unreadable."""

    @abstractmethod
    def begin_file(self, path: bytes) -> None:
        """Note that a file of commands follows."""

    @abstractmethod
    def take(self, name: bytes, words: list[bytes], offset: int) -> bool:
        """Take a command of file ``name`` if it is a region's; False where it is to be run.

        ``offset`` is that of the command, or of its transaction. Raises PersistenceError: it is
        another region's, or does not fit to what came before.
        """

    @abstractmethod
    def end_file(self, size_bytes: int) -> None:
        """End the file that is being read; so many bytes of it stay."""

    @abstractmethod
    async def end_folder(self, durability: Durability) -> None:
        """Decide which region this is from now on: all is loaded, and nothing is written yet.

        Raises PersistenceError: the region must not start with these files.
        """


def foreign(name: bytes, words: list[bytes], reason: str) -> PersistenceError:
    """Return the error for a file that belongs to a region, and not to this server."""
    whose = "a region"
    if words[1:2] == [FILE] and len(words) > 4:
        whose = f"region {shown(words[4])} of {shown(words[3])}"
    return PersistenceError(f"{os.fsdecode(name)} belongs to {whose}: {reason}.")


SLICE_NS: Final = 10_000_000  # how long clients may wait for the loop while data is loaded
SLICE_COMMANDS: Final = 256  # commands between two looks at the clock
REPORT_NS: Final = 1_000_000_000
_MULTI: Final = b"multi"
_EXEC: Final = b"exec"
_SELECT: Final = b"select"  # a time that stands before it is that of the command behind


class Loader:
    """Loads files one after another.

    Args:
        paths: the files, of ``size_bytes`` together; all except the first hold commands.
        is_dump: the file is a snapshot alone. No commands follow that would say themselves what
            expired, so keys whose deadline has come are left out.
        of_region: the same files, as those of a region; None without regions.

    Attributes:
        mends: a torn end is cut off the last file; otherwise it is passed over, and stays.
        start: where to begin in the first file, when it holds commands.
        stream_place: the snapshot's place in the stream of replication; None where it has none.
    """

    def __init__(
        self,
        server: Server,
        durability: Durability,
        paths: list[bytes],
        size_bytes: int,
        is_dump: bool,
        of_region: RegionFiles | None = None,
    ) -> None:
        self._of_region: Final = of_region
        self._server: Final = server
        self._status: Final = durability.files.status
        self._files: Final = paths
        self._is_dump: Final = is_dump
        self._replayer: Final = Replayer(server, durability)
        self._file = 0  # index of the current file
        self._reader: AofReader | None = None
        self._snapshot: SnapshotLoader | None = None
        self._rdb: RdbReader | None = None
        self._taker: IntoDatabases | None = None  # of its keys
        self._entries = 0  # of streams, in snapshots
        self.mends = True
        self.start = 0
        self.stream_place: StreamPlace | None = None
        self._transaction: list[list[bytes]] | None = None
        self._transaction_offset = 0
        self._damaged = False  # the file being read has a damaged end, which is left out
        self._stamp_s = 0  # of the next command, or of the transaction under way
        self._done_bytes = 0  # in the files before the present one
        self._started_ns = time.perf_counter_ns()
        self._reported_ns = self._started_ns
        self.commands = 0
        status = self._status
        status.loading_started_s = int(time.time())
        status.total_bytes = size_bytes
        status.loaded_bytes = 0

    def load_slice(self, budget_ns: int) -> bool:
        """Load for about ``budget_ns``; False at the end. Raises PersistenceError: unreadable."""
        self._server.clock.refresh()
        stop_ns = time.perf_counter_ns() + budget_ns
        while self._file < len(self._files):
            self._load_part()
            if time.perf_counter_ns() >= stop_ns:
                break
        self._report()
        return self._file < len(self._files)

    def _load_part(self) -> None:
        status = self._status
        if self._reader is None and self._snapshot is None and self._rdb is None:
            self._open(self._files[self._file])
        if self._rdb is not None:
            self._load_keys(self._rdb)
            return
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
            take_back(self._server, self._files[self._file], snapshot.decoder.libraries)
            self.stream_place = snapshot.decoder.stream_place
            self._done_bytes += snapshot.size_bytes
            snapshot.close()
            self._snapshot = None
            self._file += 1

    def _load_keys(self, rdb: RdbReader) -> None:
        status = self._status
        going_on = rdb.steps()
        status.loaded_bytes = rdb.loaded_bytes
        taker = self._taker
        assert taker is not None
        expired = taker.expired if isinstance(taker, LiveKeys) else 0
        status.keys_loaded = rdb.keys - expired
        status.keys_expired = expired
        if going_on:
            return
        self._rdb = None
        rdb.close()
        path = self._files[0]
        refuse_what_is_left(path, rdb.left)
        take_back(self._server, path, taker.libraries)
        self.stream_place = noted_place(rdb.notes)
        for loss in rdb.losses():
            log.warning("%s: %s", os.fsdecode(path), loss)
        if rdb.end < rdb.size_bytes:
            if not self._is_dump:  # commands follow
                self.start = rdb.end
                return
            rest = rdb.size_bytes - rdb.end
            log.warning("%s: %d bytes behind its end are no part of it", os.fsdecode(path), rest)
        self._done_bytes += rdb.size_bytes
        self._file += 1

    def _open(self, path: bytes) -> None:
        if not self._file and not self.start and self._of_region is None and is_rdb_file(path):
            config = self._server.config
            now_ms = self._server.clock.now_ns // MS
            dbs = self._server.data.dbs
            taker = LiveKeys(dbs, now_ms) if self._is_dump else IntoDatabases(dbs)
            self._rdb = RdbReader(path, taker, forms(), defaults(config), now_ms)
            if isinstance(taker, LiveKeys):
                taker.notes = self._rdb.notes
            self._taker = taker
            log.info("%s is a snapshot of %s", os.fsdecode(path), self._rdb.writer)
            return
        if not self.start and is_snapshot(path):
            if self._file:
                raise PersistenceError(
                    f"{os.fsdecode(path)} is a snapshot, but the manifest names it as a file of "
                    "commands. Put the manifest back that belongs to these files."
                )
            now_ms = self._server.clock.now_ns // MS
            drop_before_ms = now_ms if self._is_dump else KEEP_ALL
            self._snapshot = SnapshotLoader(path, self._decoder(now_ms, drop_before_ms))
            return
        try:
            self._reader = AofReader(path, path, 0 if self._file else self.start)
        except OSError as error:
            raise os_refusal(path, "read", error) from error
        self._replayer.select_first()
        if self._of_region is not None:
            self._of_region.begin_file(path)

    def _decoder(self, now_ms: int, drop_before_ms: int) -> Decoder:
        data = self._server.data
        if self._of_region is None:
            return self._decoder_into(data.dbs, now_ms, drop_before_ms)
        decoder = self._decoder_into([*data.dbs, data.tombstones], now_ms, drop_before_ms)
        decoder.accept_region(self._of_region.member)
        return decoder

    def _decoder_into(self, databases: Keyspaces, now_ms: int, drop_before_ms: int) -> Decoder:
        return Decoder(databases, now_ms, drop_before_ms)

    def _load_some(self, reader: AofReader) -> bool:
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
        """Return the next command; None at the end of the file, or of the part to be loaded.

        Raises CorruptAOF: more of it is damaged than aof-load-corrupt-tail-max-size allows.
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
        return reader.offset if self._transaction is None else self._transaction_offset

    def _run(self, reader: AofReader, argv: list[bytes], offset: int) -> None:
        if self._take_numbered(reader, argv, offset):
            return
        line = self._replayer.run(argv, self._stamp_s)
        if line:
            self._refuse(reader, argv, offset, line)

    def _take_numbered(self, reader: AofReader, argv: list[bytes], offset: int) -> bool:
        """Take a command if it is a region's. Raises PersistenceError: this is not that region."""
        if self._of_region is not None:
            return self._of_region.take(reader.name, argv, offset)
        if argv[0] == AA:
            raise foreign(reader.name, argv, "set aa-region-id to load it")
        return False

    def _refuse(self, reader: AofReader, argv: list[bytes], offset: int, line: bytes) -> NoReturn:
        if argv[0].lower() == _SELECT and line == errors.DB_OUT_OF_RANGE:
            raise self._other_database(reader, argv[1], offset)
        if self._server.config.hide_user_data_from_log:  # it may quote arguments
            line = line.partition(b" ")[0]
        text = line.decode("utf-8", "backslashreplace")
        raise CorruptAOF(
            reader.name, offset, f"a command that succeeds, but {shown(argv[0])} answered: {text}"
        )

    def _other_database(self, reader: AofReader, index: bytes, offset: int) -> PersistenceError:
        count = len(self._server.data.dbs)
        why = f"there are only {count}: raise `databases`"
        if self._of_region is not None:
            why = (
                "a region has database 0 alone. Start the server without aa-region-id, move those "
                "keys there or take them out, and have the file written anew (BGREWRITEAOF)"
            )
        return PersistenceError(
            f"{os.fsdecode(reader.name)} cannot be loaded: from offset {offset} on it is about "
            f"database {shown(index)}, and {why}."
        )

    def _close(self, reader: AofReader) -> None:
        good_bytes = reader.size_bytes
        if self._damaged:
            good_bytes = self._good_bytes(reader)
            self._cut(reader, good_bytes)
        elif reader.torn or self._transaction is not None:
            good_bytes = self._good_bytes(reader)
            self._mend(reader, good_bytes)
        if self._of_region is not None:
            self._of_region.end_file(good_bytes)
        self._transaction = None
        self._damaged = False
        self._note_passed(reader)
        reader.close()
        self._reader = None
        self._done_bytes += reader.size_bytes
        self._file += 1

    def _note_passed(self, reader: AofReader) -> None:
        passed = self._replayer.passed
        if passed:
            counts = [f"{count} x {shown(name).upper()}" for name, count in sorted(passed.items())]
            log.warning(
                "%s: not run, because they act on the server and not on its data: %s",
                os.fsdecode(reader.name),
                ", ".join(counts),
            )
            self._replayer.passed = {}

    def _mend(self, reader: AofReader, good_bytes: int) -> None:
        """Cut off what the last write left unfinished, where that is allowed."""
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
        name = os.fsdecode(reader.name)
        lost = reader.size_bytes - good_bytes
        if not self.mends:
            log.warning("%s: %d bytes from offset %d on are left out", name, lost, good_bytes)
            return
        try:
            fd = os.open(reader.name, os.O_WRONLY)
            try:
                os.ftruncate(fd, good_bytes)
                sync_file(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise os_refusal(reader.name, "truncated", error) from error
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
        if self._rdb is not None:
            what = "snapshot of Redis"
            speed = f"{int(self._rdb.keys / spent_s)} keys/s"
        elif snapshot is None:
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
        """Log what was loaded."""
        if not self._files:
            log.info("Found no files to load: the keyspace is empty")
            return
        keys = sum([len(db) for db in self._server.data.dbs])
        spent_s = (time.perf_counter_ns() - self._started_ns) / 1e9
        log.info(
            "Loaded %d keys from %d commands and %d entries of snapshots in %d files of %s: "
            "%.3f seconds",
            keys,
            self.commands,
            self._entries,
            len(self._files),
            os.fsdecode(os.path.dirname(self._files[0])),
            spent_s,
        )


def refuse_what_is_left(path: bytes, left: dict[str, Left]) -> None:
    """Raise PersistenceError if a snapshot of Redis holds keys that are not all known here."""
    if left:
        counts = [f"{found.count} x {name}" for name, found in sorted(left.items())]
        raise PersistenceError(
            f"{os.fsdecode(path)} holds what is not known here: {', '.join(counts)}. To leave that "
            f"out: headrace import {os.fsdecode(path)} --skip-unsupported --dir NEW-FOLDER"
        )


def take_back(server: Server, path: bytes, codes: list[bytes], replaces: bool = True) -> None:
    """Load the libraries of a snapshot, in the place of the present ones if ``replaces`` is set.

    Requests beside them (see ``Server.libraries``) are those that set policies.

    Raises PersistenceError: one cannot be loaded, or is there already and ``replaces`` is not set.
    """
    libraries = [code for code in codes if not code.startswith(b"*")]
    try:
        if libraries:
            server.ready_scripting().take_back(libraries, replaces)
        for code in codes:
            if code.startswith(b"*"):
                server.ready_policies().take_back(code)
    except CommandError as error:
        raise broken_library(path, error.line) from error


def broken_library(path: bytes, refusal: bytes) -> PersistenceError:
    """Return the error for a snapshot with an invalid library; ``refusal`` is an error line."""
    reason = refusal.removeprefix(b"ERR ").decode("utf-8", "backslashreplace")
    return PersistenceError(
        f"{os.fsdecode(path)} holds a library of functions that cannot be loaded: {reason}. To "
        f"leave it out: headrace import {os.fsdecode(path)} --skip-unsupported --dir NEW-FOLDER"
    )
