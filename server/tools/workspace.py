"""Data loaded into memory without a server around it: where export and import work."""

from __future__ import annotations

import os
import time
from typing import Final

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.compat.errors import INTERNAL, CommandError
from headrace.persistence.aof.reader import AofReader
from headrace.persistence.check import SoundDecoder
from headrace.persistence.errors import shown
from headrace.persistence.forms.table import rdb_values
from headrace.persistence.rdb.reader import Left, RdbReader
from headrace.persistence.snapshot.decode import Decoder
from headrace.persistence.snapshot.file import is_rdb_file
from headrace.persistence.source import Source
from headrace.persistence.taker import IntoDatabases, KeyTaker
from headrace.server.config.config import Config, defaults
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.durability.durability import Durability
from headrace.server.loading.loader import Loader, RegionFiles
from headrace.server.scripting.engine import ScriptEngine
from headrace.server.state import Server
from headrace.server.tools.keys import DATABASES, Keys, Progress, note_left
from headrace.server.wing import active_active

SLICE_NS: Final = 100_000_000
EXAMPLES: Final = 3
_FUNCTION: Final = b"function"  # makes no key, so no other command misses what it would have made
_UNKNOWN: Final = (b"ERR unknown command", b"ERR unknown subcommand")


class Workspace(Keys):
    """A server's data and nothing else of it; that of a region as a single server has it.

    Args:
        source: what is to be loaded.

    Attributes:
        server: holds the databases.

    Raises:
        PersistenceError: a file cannot be read.
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
        """Load all there is, Redis's files included.

        Raises:
            PersistenceError: a file cannot be read or trusted.
        """
        server = self.server
        of_region: RegionFiles | None = None
        if server.data.region is not None:
            of_region = active_active().files_alone(server)
        files = list(self._source.files)
        start = 0
        size_bytes = self._source.size_bytes()
        progress = Progress("loading", size_bytes)
        server.data.enable_expiry(False)
        try:
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
        finally:
            progress.close()
        if of_region is not None:
            active_active().leave(server, of_region)
        for db in server.data.dbs:
            self.keys += len(db)

    def _load_rdb(self, path: bytes, progress: Progress) -> int:
        now_ms = time.time_ns() // 1_000_000
        known = defaults(self.server.config)
        taker = IntoDatabases(self.server.data.dbs)
        reader = RdbReader(path, taker, rdb_values(), known, now_ms)
        try:
            while reader.step():
                progress.reach(reader.loaded_bytes)
            progress.reach(reader.end)
        finally:
            reader.close()
        self.left.update(reader.left)
        self.losses = reader.losses()
        for code in taker.libraries:
            try:
                self._engine.load_library(code, False, False)
            except CommandError as error:
                note_left(self.left, error.line)
        return reader.end

    def pass_to(self, taker: KeyTaker, what: str) -> None:
        progress = Progress(what, self.keys, " keys")
        done = 0
        for code in self.server.libraries():
            taker.take_library(code)
        try:
            for db in self.server.data.dbs:
                for entry in db.every():
                    taker.take(db.index, entry.key, entry.value, int(entry.expire_ms))
                    done += 1
                    progress.reach(done)
        finally:
            progress.close()


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

    def _decoder(self, now_ms: int, drop_before_ms: int) -> Decoder:
        data = self._server.data
        if self._of_region is None:
            return SoundDecoder(data.dbs, now_ms, drop_before_ms)
        decoder = SoundDecoder([*data.dbs, data.tombstones], now_ms, drop_before_ms)
        decoder.accept_region(self._of_region.member)
        return decoder

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
