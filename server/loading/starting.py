"""Loading from the disk, when the server starts or in the place of the data in memory."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
from typing import Final

from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.errors import PersistenceError, os_refusal
from headrace.persistence.files import read_head
from headrace.persistence.forms.table import forms
from headrace.persistence.log import WRITER
from headrace.persistence.rdb.kinds import HEAD_BYTES, is_rdb
from headrace.persistence.rdb.reader import RdbReader
from headrace.persistence.snapshot.decode import Decoder, SnapshotLoader
from headrace.persistence.snapshot.file import MAGIC, is_rdb_file, is_snapshot, rdb_refusal
from headrace.persistence.taker import LiveKeys
from headrace.server.acl.rules import (
    RuleError,
    UsersError,
    change_user,
    has_spaces,
    merged,
    parse_users,
)
from headrace.server.acl.users import DEFAULT_USER, User, Users
from headrace.server.config.config import Config, defaults
from headrace.server.durability.durability import Durability
from headrace.server.durability.rewriting import RewriteJob
from headrace.server.durability.saving import RDB_SUFFIX, in_own_form
from headrace.server.loading.loader import (
    SLICE_NS,
    Loader,
    RegionFiles,
    refuse_what_is_left,
    take_back,
)
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

_BOTH: Final = (
    "users are declared in the configuration, and aclfile names a file of users: use one of the two"
)


def load_users(server: Server) -> None:
    """Load the users, before the first client comes. Raises: UsersError."""
    config = server.config
    if config.aclfile:
        if config.users:
            raise UsersError(_BOTH)
        server.users.replace(users_of_file(config))
        return
    for words in config.users:
        _declare(server.users, words, gives_all_channels(config))


def gives_all_channels(config: Config) -> bool:
    """Return whether a new user may use all channels."""
    return config.acl_pubsub_default == b"allchannels"


def users_of_file(config: Config) -> dict[bytes, User]:
    """Return the users in the file that ``aclfile`` names, by name. Raises: UsersError."""
    path = config.aclfile.decode("utf-8", "surrogateescape")
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError as error:
        reason = f"Error loading ACLs, opening file '{path}': {error.strerror}"
        raise UsersError(reason) from None
    return parse_users(text, path, gives_all_channels(config))


def _declare(users: Users, words: list[bytes], all_channels: bool) -> None:
    """Add a user of the configuration, or change the default user."""
    name = words[0]
    shown = name.decode("utf-8", "backslashreplace")
    if has_spaces(name):
        raise UsersError("Spaces not allowed in ACL usernames")
    user = User(name, all_channels)
    for rule in merged(words[1:]):
        try:
            change_user(user, rule, all_channels)
        except RuleError as error:
            text = error.rule.decode("utf-8", "backslashreplace")
            reason = f"Error loading ACL rule '{text}' for the user named '{shown}': {error}"
            raise UsersError(reason) from None
    if not user.enabled:
        log.info("The user '%s' is disabled, because no rule says 'on'", shown)
    if name == DEFAULT_USER:
        users.default.become(user)
    else:
        users.add(user)


def user_lines(server: Server) -> list[bytes]:
    """Return the users that the configuration file has to list; none where ``aclfile`` is set.

    The default user is left out as long as ``requirepass`` says everything about it.
    """
    config = server.config
    if config.aclfile:
        return []
    usual = Users(config.requirepass).default.shown()
    lines = [user.shown() for user in server.users.all()]
    return [line for line in lines if line != usual]


LOOK_S: Final = 0.005  # between two looks whether a base has been written
REDIS_DUMP: Final = b"dump.rdb"  # what Redis calls its snapshot, unless configured otherwise


async def start_persistence(
    server: Server, durability: Durability, of_region: RegionFiles | None = None
) -> None:
    """Load the data from the disk and open the append-only file, as configured.

    A client may configure ``appendonly`` meanwhile. That decides whether the file is on at the end.
    ``of_region``: those files, as those of a region. Raises PersistenceError: the server must not
    start.
    """
    durability.begin()
    if server.config.appendonly:
        await load_folder(server, durability, of_region)
    elif await load_dump(server, durability):
        turn_on_if_asked(server.config, durability)


def turn_on_if_asked(config: Config, durability: Durability) -> None:
    """Turn the append-only file on if that was configured while the snapshot was loaded."""
    if config.appendonly and durability.rewriting.turn_on():
        config.appendonly = False  # the log has the reason


async def load_folder(
    server: Server, durability: Durability, of_region: RegionFiles | None = None
) -> None:
    """Load the append-only folder, and go on in its last file; a region goes on in a new one.

    Raises PersistenceError: it cannot be read or trusted, or not be written.
    """
    files = durability.files
    config = server.config
    directory = AofDirectory(config.dir, config.appenddirname, config.appendfilename)
    directory.open()
    files.directory = directory
    adopt_dump(config, durability.saving.path, directory)
    if of_region is not None:
        of_region.begin_folder(config, durability, directory)
    loader = directory_loader(server, durability, directory, of_region)
    if not await load(server, loader):
        return
    if not config.appendonly:
        durability.committer.close_files()
        log.info("The append-only file was turned off while it was loaded; its files stay")
        return
    try:
        directory.sync()
        if of_region is not None:
            await of_region.end_folder(durability)
            if server.stopping:
                return
        files.record_to(directory.open_last())
        durability.rewriting.timestamps_changed()
        directory.delete_history()
        if of_region is not None and of_region.wants_base:
            await write_base(server, durability)
    except OSError as error:
        raise os_refusal(directory.path, "written", error) from error


async def write_base(server: Server, durability: Durability) -> None:
    """Write the files anew, and wait for that. Raises: PersistenceError; it has failed."""
    durability.rewriting.rewrite_soon()
    while True:
        if durability.files.job is None or server.stopping:
            break
        await asyncio.sleep(LOOK_S)
    if not durability.files.status.last_rewrite_ok:
        raise PersistenceError("The data cannot be written as a region's, see above")


def adopt_dump(config: Config, dump: bytes, directory: AofDirectory) -> None:
    """Begin an append-only folder with the file of SAVE, if there is one, so that its data is kept.

    Raises PersistenceError: the snapshot cannot be read.
    """
    if not directory.holds_no_data():
        return
    dump = dump_to_load(config, dump)
    if not os.path.exists(dump):
        return
    is_rdb = dump.endswith(RDB_SUFFIX) and is_rdb_file(dump)
    if is_rdb and WRITER not in read_head(dump, HEAD_BYTES):
        warn_of_rdb(config)
    elif is_rdb or is_snapshot(dump):
        directory.adopt_snapshot(dump, is_rdb)
        log.info("%s is the base of the new append-only file", os.fsdecode(dump))


async def load_dump(server: Server, durability: Durability) -> bool:
    """Load the snapshot that SAVE writes, if there is one; False when the server is to stop.

    Raises PersistenceError: it cannot be read or trusted.
    """
    own = durability.saving.path
    path = dump_to_load(server.config, own)
    size_bytes = file_size(path)
    if size_bytes < 0:
        return True
    if path != own:
        log.info("Loading %s; SAVE will write %s", os.fsdecode(path), os.fsdecode(own))
    if not (path.endswith(RDB_SUFFIX) and is_rdb_file(path)) and not is_snapshot(path):
        raise PersistenceError(
            f"{os.fsdecode(path)}, which `dbfilename` names, is no snapshot: it does not start "
            f"with {MAGIC.decode()}. Move it away, or give the snapshot another name."
        )
    loader = Loader(server, durability, [path], size_bytes, True)
    if not await load(server, loader):
        return False
    place = loader.stream_place
    if place is not None and server.data.region is None:
        server.role.ready_replicas().resume(place, bool(server.config.replicaof))
        server.role.resumed_db = place.db
    return True


def dump_to_load(config: Config, own: bytes) -> bytes:
    """Return the snapshot to load: SAVE's, ``own``, or the other form's if that has the data."""
    is_rdb_wanted = own.endswith(RDB_SUFFIX)
    other = in_own_form(own) if is_rdb_wanted else redis_dump(config)
    if file_size(own) < 0:
        return other
    if not is_newer(other, own):
        return own
    # A server that writes .rdb files now may have written .hrs files before.
    path, left = (other, own) if is_rdb_wanted else (own, other)
    log.warning("%s is loaded, and %s is not: move one away", os.fsdecode(path), os.fsdecode(left))
    return path


def redis_dump(config: Config) -> bytes:
    """Return where Redis would have left its snapshot."""
    name = config.dbfilename if config.dbfilename.endswith(RDB_SUFFIX) else REDIS_DUMP
    return os.path.join(os.path.abspath(config.dir), name)


def is_newer(path: bytes, other: bytes) -> bool:
    """Return whether a file is there and was written after another one."""
    with contextlib.suppress(OSError):
        return os.stat(path).st_mtime_ns > os.stat(other).st_mtime_ns
    return False


def warn_of_rdb(config: Config) -> None:
    """Warn if Redis's own snapshot lies beside an append-only folder that is empty."""
    path = redis_dump(config)
    with contextlib.suppress(OSError, PersistenceError):
        head = read_head(path, HEAD_BYTES)
        if is_rdb(head):
            log.warning("Starting empty: %s", rdb_refusal(path, head))


def file_size(path: bytes) -> int:
    """Return a file's length; -1 when there is none. Raises PersistenceError: it is unreadable."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise os_refusal(path, "read", error) from error


def directory_loader(
    server: Server,
    durability: Durability,
    directory: AofDirectory,
    of_region: RegionFiles | None = None,
) -> Loader:
    """Return a loader of an append-only folder."""
    files = directory.manifest.to_load()
    paths = [directory.file_path(file) for file in files]
    return Loader(server, durability, paths, directory.size_of(files), False, of_region)


async def load(server: Server, loader: Loader) -> bool:
    """Load in slices between which clients are answered; False when the server is to stop."""
    server.data.enable_expiry(False)
    gc.disable()  # what is loaded stays, and makes no cycles: walking it again and again is in vain
    try:
        while loader.load_slice(SLICE_NS):
            await asyncio.sleep(0)
            if server.stopping:
                return False
    finally:
        gc.enable()
    server.data.enable_expiry(True)
    server.changes.dirty = 0
    loader.finish()
    return True


ONLY_AT_START: Final = "a region loads its files when it starts, and only then"


def reload_aof(server: Server, durability: Durability) -> None:
    """Empty the keyspace and load the append-only folder again, at once (DEBUG LOADAOF).

    With the append-only file off, the last rewrite's files are loaded. Raises PersistenceError: the
    files cannot be written or trusted; the keyspace may be half loaded.
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
    """Load a snapshot at once (DEBUG RELOAD), after a flush if ``flush`` is set.

    Keys that are there are replaced if ``merge`` is set; otherwise they are an error. Raises
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
        loader = RdbReader(path, taker, forms(), defaults(server.config), now_ms)
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
    """Drop all keys, functions and policies without a record."""
    if server.scripting is not None:
        server.scripting.forget_functions()
    if server.policies is not None:
        server.policies.forget()
    now_ms = server.clock.now_ns // 1_000_000
    server.changes.flushed()
    for db in server.data.dbs:
        server.changes.replace_database(db, None, now_ms)
        db.clear()
