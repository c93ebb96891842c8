"""``headrace export`` and ``headrace import``: from one form of the data to another.

A snapshot is read and written key by key. Export reads it twice: to find out who can read it, and
to write. Where commands belong to the data, all of it is loaded first.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing, suppress
from shutil import rmtree
from typing import Final

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.compat.errors import INTERNAL, CommandError
from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.aof.reader import AofReader
from headrace.persistence.aof.rewrite import RewriteEncoder
from headrace.persistence.check import SoundDecoder
from headrace.persistence.errors import PersistenceError, os_refusal, shown
from headrace.persistence.files import NewFile, sync_folder, write_pieces
from headrace.persistence.forms.table import forms
from headrace.persistence.rdb.reader import Left, RdbReader
from headrace.persistence.snapshot.decode import Decoder
from headrace.persistence.snapshot.encoder import SnapshotEncoder
from headrace.persistence.snapshot.file import SUFFIX, is_rdb_file
from headrace.persistence.snapshot.rdb import RdbEncoder
from headrace.persistence.source import FOLDER_NAME, Source
from headrace.persistence.taker import Encoder, IntoDatabases, KeyTaker
from headrace.server.build import REDIS_VERSION, VERSION
from headrace.server.config.config import Config, defaults
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.durability.durability import Durability
from headrace.server.loading.loader import Loader, RegionFiles
from headrace.server.scripting.engine import ScriptEngine
from headrace.server.state import Server
from headrace.server.tools import VALKEY
from headrace.server.tools.keys import (
    DATABASES,
    CommandsFollow,
    Keys,
    Progress,
    Survey,
    file_keys,
    note_left,
    oldest_reader,
)
from headrace.server.wing import active_active
from headrace.storage.faces import frozen
from headrace.storage.freezing import FrozenKey
from headrace.storage.keyspace import Keyspaces

SLICE_NS: Final = 100_000_000
EXAMPLES: Final = 3
_FUNCTION: Final = b"function"  # makes no key, so no other command misses what it would have made
_UNKNOWN: Final = (b"ERR unknown command", b"ERR unknown subcommand")


class Workspace(Keys):
    """A server's data alone; that of a region as a single server has it.

    ``server`` holds the databases. Raises PersistenceError: a file cannot be read.
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        config = Config()
        config.databases = DATABASES
        owner = active_active().owner_of(source.files)
        if owner is not None:
            config.aa_region_id, config.aa_database = owner
            config.aa_other_keys = b"local"
            folder = os.path.abspath(os.path.dirname(source.manifest_path))
            config.dir, config.appenddirname = os.path.split(folder)
        self._source: Final = source
        self.server: Final = Server(config)
        self._durability: Final = Durability(self.server)
        self._engine: Final = ScriptEngine(Dispatcher(self.server, self._durability))
        self.server.scripting = self._engine
        self.keys = 0

    def load(self) -> None:
        """Load all data, Redis's files included. Raises PersistenceError: one is unreadable."""
        server = self.server
        of_region: RegionFiles | None = None
        if server.data.region is not None:
            of_region = active_active().files_alone(server)
        files = list(self._source.files)
        start = 0
        size_bytes = self._source.size_bytes()
        server.data.enable_expiry(False)
        with closing(Progress("loading", size_bytes)) as progress:
            if files and is_rdb_file(files[0]):
                start = self._load_rdb(files[0], progress)
                if start == os.path.getsize(files[0]):
                    size_bytes -= start
                    files = files[1:]
                    start = 0
            loader = _TolerantLoader(
                server, self._durability, files, size_bytes, self.left, of_region
            )
            loader.mends = False
            loader.start = start
            while loader.load_slice(SLICE_NS):
                progress.reach(self._durability.files.status.loaded_bytes)
        if of_region is not None:
            active_active().leave(server, of_region)
        for db in server.data.dbs:
            self.keys += len(db)

    def _load_rdb(self, path: bytes, progress: Progress) -> int:
        now_ms = time.time_ns() // 1_000_000
        known = defaults(self.server.config)
        taker = IntoDatabases(self.server.data.dbs)
        with closing(RdbReader(path, taker, forms(), known, now_ms)) as reader:
            while reader.step():
                progress.reach(reader.loaded_bytes)
            progress.reach(reader.end)
        self.left.update(reader.left)
        self.losses = reader.losses()
        for code in taker.libraries:
            try:
                if code.startswith(b"*"):
                    self.server.ready_policies().take_back(code)
                else:
                    self._engine.load_library(code, False, False)
            except CommandError as error:
                note_left(self.left, error.line)
        return reader.end

    def pass_to(self, taker: KeyTaker, what: str) -> None:
        done = 0
        for code in self.server.libraries():
            taker.take_library(code)
        with closing(Progress(what, self.keys, " keys")) as progress:
            for db in self.server.data.dbs:
                for entry in db.every():
                    taker.take(db.index, entry.key, entry.value, int(entry.expire_ms))
                    done += 1
                    progress.reach(done)


class _TolerantLoader(Loader):
    """Notes commands that are not known here, and goes on."""

    def __init__(
        self,
        server: Server,
        durability: Durability,
        paths: list[bytes],
        size_bytes: int,
        left: dict[str, Left],
        of_region: RegionFiles | None,
    ) -> None:
        super().__init__(server, durability, paths, size_bytes, False, of_region)
        self._left: Final = left

    def _decoder_into(self, databases: Keyspaces, now_ms: int, drop_before_ms: int) -> Decoder:
        return SoundDecoder(databases, now_ms, drop_before_ms)

    def _run(self, reader: AofReader, argv: list[bytes], offset: int) -> None:
        if self._take_numbered(reader, argv, offset):
            return
        line = self._replayer.run(argv, self._stamp_s)
        if not line:
            return
        if line != INTERNAL and argv[0].lower() == _FUNCTION:
            note_left(self._left, line)
            return
        if line == INTERNAL or (not self._left and not line.startswith(_UNKNOWN)):
            self._refuse(reader, argv, offset, line)
        # After the first command that was left out, others may miss what it would have made.
        left = self._left.setdefault(shown(argv[0]).upper(), Left())
        left.count += 1
        if len(left.keys) < EXAMPLES and len(argv) > 1 and argv[1] not in left.keys:
            left.keys.append(argv[1])


BATCH_BYTES: Final = 1 << 20
_PREFIX: Final = b"appendonly.aof"


class KeyWriter(KeyTaker):
    """Encodes keys, and writes them to ``file``, or if that is None, to an open ``descriptor``."""

    def __init__(
        self, databases: int, encoder: Encoder, file: NewFile | None, descriptor: int = -1
    ) -> None:
        super().__init__(databases)
        self._encoder: Final = encoder
        self._file: Final = file
        self._descriptor: Final = descriptor
        encoder.begin()

    def take_library(self, code: bytes) -> None:
        self._encoder.add_library(code)

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        encoder = self._encoder
        more = encoder.add(FrozenKey(db, key, frozen(value), expire_ms))
        while more:
            if encoder.size_bytes > BATCH_BYTES:
                self._write()
            more = encoder.more()
        if encoder.size_bytes > BATCH_BYTES:
            self._write()
        return True

    def finish(self) -> None:
        """Complete the file. Raises: OSError; the contents of the disk are unknown then."""
        self._encoder.finish()
        self._write()
        if self._file is not None:
            self._file.finish()

    def _write(self) -> None:
        pieces = self._encoder.take()
        if self._file is not None:
            self._file.write(pieces)
        else:
            write_pieces(self._descriptor, pieces)


def write_file(path: bytes, keys: Keys, encoder: Encoder) -> None:
    """Write keys into a new file, which is there whole or not at all.

    Raises PersistenceError: it is there already, or cannot be written, or the keys cannot be read.
    """
    if os.path.lexists(path):
        raise PersistenceError(f"{os.fsdecode(path)} is there already. Name a new file.")
    file = NewFile(path + b".part", True)
    try:
        _fill(keys, encoder, file)
        os.rename(file.path, path)
        sync_folder(os.path.dirname(os.path.abspath(path)))
    except OSError as error:
        file.discard()
        raise os_refusal(path, "written", error) from error
    except BaseException:
        file.discard()
        raise


def write_folder(path: bytes, keys: Keys, encoder: Encoder, suffix: bytes) -> None:
    """Write keys into the base of an append-only folder in a new ``dir``.

    Raises PersistenceError: the folder holds something, or cannot be written, or the keys cannot be
    read; nothing has been made then.
    """
    folder = NewFolder(path)
    directory = AofDirectory(path, FOLDER_NAME, _PREFIX)
    try:
        directory.open()
        directory.add_incr()
        file = NewFile(directory.temporary_base(), True)
        _fill(keys, encoder, file)
        directory.adopt_base(file.path, suffix, 1)
    except OSError as error:
        folder.discard()
        raise os_refusal(path, "written", error) from error
    except BaseException:
        folder.discard()
        raise
    finally:
        directory.close()


def _fill(keys: Keys, encoder: Encoder, file: NewFile) -> None:
    writer = KeyWriter(keys.databases, encoder, file)
    keys.pass_to(writer, "writing")
    writer.finish()


class NewFolder:
    """A new folder, or an empty one.

    Raises PersistenceError: it holds something, or cannot be made.
    """

    def __init__(self, path: bytes) -> None:
        self._path: Final = path
        self._was_there: Final = os.path.lexists(path)
        try:
            os.makedirs(path, exist_ok=True)
            if os.listdir(path):
                raise PersistenceError(f"{os.fsdecode(path)} is not empty. Name a new folder.")
        except OSError as error:
            raise os_refusal(path, "written", error) from error

    def discard(self) -> None:
        """Remove what was put there since, and the folder, if it was made; never fails."""
        with suppress(OSError):
            for name in os.listdir(self._path):
                inner = os.path.join(self._path, name)
                if os.path.isdir(inner):
                    rmtree(inner, ignore_errors=True)
                else:
                    os.unlink(inner)
            if not self._was_there:
                os.rmdir(self._path)


TO_REDIS_AOF: Final = "redis-aof"
TO_RDB: Final = "rdb"
AS_APPENDONLY: Final = "appendonly"
_STANDARD_OUTPUT: Final = b"-"
_DATABASES: Final = 16  # that a server has by default


def export(form: str, source_path: bytes, out: bytes, for_server: str = "") -> int:
    """Write what a folder or snapshot holds in a form that Redis reads; return 0.

    Args:
        form: ``resp``: one file of commands, ``-`` is standard output. ``redis-aof``: a folder for
            ``redis-server --dir``. ``rdb``: a file, a ``dump.rdb``.
        for_server: of an RDB file: who is to read it; see ``Survey.rdb_version``.

    Raises:
        PersistenceError: something cannot be read or written; nothing was changed.
    """
    with closing(Source(source_path)) as source:
        keys = _keys(source, None if out == _STANDARD_OUTPUT else out)
        try:
            _export(keys, form, out, for_server)
        except CommandsFollow:
            _export(_loaded(source), form, out, for_server)
    return 0


def _export(keys: Keys, form: str, out: bytes, for_server: str) -> None:
    survey = Survey(keys.databases)
    keys.pass_to(survey, "reading")
    if keys.left:
        _print_left(keys)
        raise PersistenceError("Nothing has been written: the data is not all known here.")
    for line in survey.lacking_elsewhere():
        print(line, file=sys.stderr)
    if form == TO_REDIS_AOF:
        write_folder(out, keys, RewriteEncoder(portable=True), b"aof")
        os.unlink(os.path.join(out, b"appendonlydir", b"appendonly.aof.lock"))
    elif form == TO_RDB:
        version = survey.rdb_version(for_server)
        reader = "Valkey 9.0" if for_server == VALKEY else f"Redis {oldest_reader(version)}"
        print(f"{reader} and later can read it (RDB version {version}).", file=sys.stderr)
        write_file(out, keys, RdbEncoder(version, _notes(for_server)))
    elif out == _STANDARD_OUTPUT:
        sys.stdout.flush()
        writer = KeyWriter(keys.databases, RewriteEncoder(portable=True), None, sys.stdout.fileno())
        keys.pass_to(writer, "writing")
        writer.finish()
    else:
        write_file(out, keys, RewriteEncoder(portable=True))
    _print_totals(survey, keys, out)


def import_(source_path: bytes, out: bytes, form: str, skip: bool) -> int:
    """Write data that Redis left on the disk as a new folder for a server of ours; return 0, or 1.

    Args:
        form: ``appendonly``, to be started with ``appendonly yes``, or ``snapshot``.
        skip: leave out values of types that are not known here; otherwise they are refused.

    Raises:
        PersistenceError: something cannot be read or written; nothing was made.
    """
    try:
        with closing(Source(source_path)) as source:
            keys = _keys(source, out)
            try:
                _import(keys, out, form, skip)
            except CommandsFollow:
                _import(_loaded(source), out, form, skip)
    except _LeftOut:
        print("Nothing has been written; --skip-unsupported leaves them out.", file=sys.stderr)
        return 1
    return 0


def _import(keys: Keys, out: bytes, form: str, skip: bool) -> None:
    is_base = form == AS_APPENDONLY
    now_ms = time.time_ns() // 1_000_000
    encoder = SnapshotEncoder(VERSION.encode(), now_ms, is_base, _DATABASES)
    whole = _Whole(keys, skip)
    if is_base:
        write_folder(out, whole, encoder, SUFFIX)
    else:
        folder = NewFolder(out)
        try:
            write_file(os.path.join(out, b"dump." + SUFFIX), whole, encoder)
        except BaseException:
            folder.discard()
            raise
    _print_totals(whole.survey, keys, out)


class _LeftOut(Exception):
    """There are values that cannot be converted; they have been named."""


class _Whole(Keys):
    """Keys of which none may be left out, unless that is wanted; surveyed as they pass."""

    def __init__(self, keys: Keys, skip: bool) -> None:
        super().__init__()
        self.survey: Final = Survey(keys.databases)
        self._keys: Final = keys
        self._skip: Final = skip

    def pass_to(self, taker: KeyTaker, what: str) -> None:
        self._keys.pass_to(_Both(self.survey, taker), what)
        if self._keys.left:
            _print_left(self._keys)
            if not self._skip:
                raise _LeftOut


class _Both(KeyTaker):
    def __init__(self, first: KeyTaker, second: KeyTaker) -> None:
        super().__init__(first.databases)
        self._first: Final = first
        self._second: Final = second

    def take_library(self, code: bytes) -> None:
        self._first.take_library(code)
        self._second.take_library(code)

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        self._first.take(db, key, value, expire_ms)
        return self._second.take(db, key, value, expire_ms)


def _keys(source: Source, out: bytes | None) -> Keys:
    folder = None if out is None else os.path.dirname(os.path.abspath(out))
    found = file_keys(source, folder)
    return _loaded(source) if found is None else found


def _loaded(source: Source) -> Workspace:
    workspace = Workspace(source)
    workspace.load()
    return workspace


def _notes(for_server: str) -> list[bytes]:
    """Return the notes that name the writer of an RDB file, for people and for servers."""
    first = [b"redis-ver", REDIS_VERSION.encode()]
    if for_server == VALKEY:
        first = [b"valkey-ver", b"9.0.0"]
    return [
        *(*first, b"headrace-ver", VERSION.encode()),
        *(b"redis-bits", b"64", b"ctime", b"%d" % int(time.time()), b"aof-base", b"0"),
    ]


def _print_totals(survey: Survey, keys: Keys, out: bytes) -> None:
    print(f"{survey.totals()}: {os.fsdecode(out)}", file=sys.stderr)
    for loss in keys.losses:
        print(f"{loss[0].upper()}{loss[1:]}.", file=sys.stderr)


def _print_left(keys: Keys) -> None:
    print("Not supported by Headrace:", file=sys.stderr)
    for name in sorted(keys.left):
        left = keys.left[name]
        some = ", ".join([shown(key) for key in left.keys if key])
        more = ", ..." if left.count > len(left.keys) else ""
        print(f"  {left.count} x {name}: {some}{more}", file=sys.stderr)
