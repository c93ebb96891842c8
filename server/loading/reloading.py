"""What is on the disk takes the place of what is in memory (DEBUG RELOAD and LOADAOF)."""

from __future__ import annotations

import os
from typing import Final

from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.errors import PersistenceError
from headrace.persistence.forms.table import rdb_values
from headrace.persistence.rdb.reader import RdbReader
from headrace.persistence.snapshot.decode import Decoder
from headrace.persistence.snapshot.file import is_rdb_file
from headrace.persistence.snapshot.loader import SnapshotLoader
from headrace.persistence.taker import LiveKeys
from headrace.server.config.new_values import defaults
from headrace.server.durability.durability import Durability
from headrace.server.durability.rewriting import RewriteJob
from headrace.server.loading.loader import SLICE_NS, refuse_what_is_left, take_back
from headrace.server.loading.starting import directory_loader
from headrace.server.state import Server

ONLY_AT_START: Final = "a region loads its files when it starts, and only then"


def reload_aof(server: Server, durability: Durability) -> None:
    """Empty the keyspace and load the append-only folder again, at once (DEBUG LOADAOF).

    With the append-only file off, what a rewrite has left in the folder is loaded.

    Raises:
        PersistenceError: the files cannot be written or trusted; the keyspace may be half loaded.
    """
    files = durability.files
    aof = files.aof
    directory = files.directory
    if files.log is not None:
        raise PersistenceError(ONLY_AT_START)
    if durability.rewriting.recovery.recover_if_needed():
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
    server.data.enable_expiry(False)
    files.record_to(None)
    try:
        while loader.load_slice(SLICE_NS):
            pass
        loader.finish()
    finally:
        files.record_to(aof)
        server.data.enable_expiry(True)
    server.changes.dirty = 0


def reload_snapshot(server: Server, path: bytes, flush: bool, merge: bool) -> None:
    """Load a snapshot at once (DEBUG RELOAD).

    Args:
        flush: empty the keyspace before.
        merge: let keys of the snapshot replace those that are there; otherwise that is an error.

    Raises:
        PersistenceError: it cannot be read or trusted; the keyspace may be half loaded.
    """
    if server.data.region is not None:
        raise PersistenceError(ONLY_AT_START)
    now_ms = server.clock.refresh()
    taker = LiveKeys(server.data.dbs, now_ms, merge)
    decoder = Decoder(server.data.dbs, now_ms, now_ms)
    decoder.replaces = merge
    loader: SnapshotLoader | RdbReader
    if is_rdb_file(path):
        loader = RdbReader(path, taker, rdb_values(), defaults(server.config), now_ms)
        taker.notes = loader.notes
    else:
        loader = SnapshotLoader(path, decoder)
    try:
        if flush:
            empty(server)
        server.data.enable_expiry(False)
        while loader.step():
            pass
    finally:
        loader.close()
        server.data.enable_expiry(True)
    if isinstance(loader, RdbReader):
        refuse_what_is_left(path, loader.left)
    take_back(server, path, [*decoder.libraries, *taker.libraries], merge)


def empty(server: Server) -> None:
    """Drop all keys and functions without a record."""
    if server.scripting is not None:
        server.scripting.forget_functions()
    now_ms = server.clock.now_ns // 1_000_000
    server.changes.flushed()
    for db in server.data.dbs:
        server.changes.replace_database(db, None, now_ms)
        db.clear()
