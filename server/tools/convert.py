"""``headrace export`` and ``headrace import``: from one form of the data to another."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from headrace.persistence.aof.rewrite import RewriteEncoder
from headrace.persistence.encoder import Encoder
from headrace.persistence.errors import PersistenceError, shown
from headrace.persistence.files import write_pieces
from headrace.persistence.forms.table import forms
from headrace.persistence.rdb.kinds import VERSION_MIN
from headrace.persistence.snapshot.encoder import SnapshotEncoder
from headrace.persistence.snapshot.layout import SUFFIX
from headrace.persistence.snapshot.rdb import RdbEncoder
from headrace.persistence.source import Source
from headrace.server.build import REDIS_VERSION, VERSION
from headrace.server.tools import READERS
from headrace.server.tools.workspace import Workspace, make_empty
from headrace.storage.freezing import frozen_key

TO_REDIS_AOF: Final = "redis-aof"
TO_RDB: Final = "rdb"
AS_APPENDONLY: Final = "appendonly"
_STANDARD_OUTPUT: Final = b"-"


def export(form: str, source_path: bytes, out: bytes, for_redis: str = "") -> int:
    """Write what a folder or snapshot holds in a form that Redis reads; 0.

    Args:
        form: ``resp``: one file of commands, ``-`` is standard output. ``redis-aof``: a folder for
            ``redis-server --dir``. ``rdb``: a file, a ``dump.rdb``.
        for_redis: of an RDB file: the version of Redis that is to read it, one of ``READERS``;
            empty for the oldest one that can hold all.

    Raises:
        PersistenceError: something cannot be read or written; nothing was changed.
    """
    workspace = _loaded(source_path)
    if workspace.left:
        _print_left(workspace)
        raise PersistenceError("Nothing has been written: the data is not all known here.")
    _print_what_redis_lacks(workspace)
    if form == TO_REDIS_AOF:
        workspace.write_folder(out, RewriteEncoder(), b"aof")
        os.unlink(os.path.join(out, b"appendonlydir", b"appendonly.aof.lock"))
    elif form == TO_RDB:
        workspace.write_file(out, RdbEncoder(_rdb_version(workspace, for_redis), _notes()))
    elif out == _STANDARD_OUTPUT:
        _write_out(workspace, RewriteEncoder())
    else:
        workspace.write_file(out, RewriteEncoder())
    _print_totals(workspace, out)
    return 0


def import_(source_path: bytes, out: bytes, form: str, skip: bool) -> int:
    """Write what Redis left on the disk as a new folder for a server of ours; 0, or 1.

    Args:
        form: ``appendonly``, to be started with ``appendonly yes``, or ``snapshot``.
        skip: leave out values of types that are not known here; otherwise they are refused.

    Raises:
        PersistenceError: something cannot be read or written.
    """
    workspace = _loaded(source_path)
    if workspace.left:
        _print_left(workspace)
        if not skip:
            print("Nothing has been written; --skip-unsupported leaves them out.", file=sys.stderr)
            return 1
    version = VERSION.encode()
    now_ms = time.time_ns() // 1_000_000
    is_base = form == AS_APPENDONLY
    encoder = SnapshotEncoder(version, now_ms, is_base, workspace.databases())
    if is_base:
        workspace.write_folder(out, encoder, SUFFIX)
    else:
        make_empty(out)
        workspace.write_file(os.path.join(out, b"dump." + SUFFIX), encoder)
    _print_totals(workspace, out)
    return 0


def _loaded(path: bytes) -> Workspace:
    source = Source(path)
    try:
        workspace = Workspace(source)
        workspace.load()
    finally:
        source.close()
    return workspace


def _write_out(workspace: Workspace, encoder: Encoder) -> None:
    sys.stdout.flush()
    for db in workspace.server.data.dbs:
        for entry in db.every():
            more = encoder.add(frozen_key(db.index, entry))
            while more:
                more = encoder.more()
                write_pieces(sys.stdout.fileno(), encoder.take())
    write_pieces(sys.stdout.fileno(), encoder.take())


def _rdb_version(workspace: Workspace, for_redis: str) -> int:
    """In which version of RDB to write, after telling who can read it.

    Raises:
        PersistenceError: that is too old for what there is, or nothing can hold it.
    """
    needed = VERSION_MIN
    why = ""
    for form in forms():
        for value in workspace.values_of(form):
            version = form.rdb_version(value)
            if not version:
                raise PersistenceError(f"Redis has no {form.plural()}. Nothing has been written.")
            if version > needed:
                needed = version
                why = f", because of {form.plural()} that it holds"
    chosen = READERS[for_redis] if for_redis else needed
    if chosen < needed:
        raise PersistenceError(
            f"Redis {for_redis} cannot hold all of it: Redis {_reader(needed)} is the oldest that "
            f"can{why}. Nothing has been written."
        )
    print(f"Redis {_reader(chosen)} and later can read it (RDB version {chosen}).", file=sys.stderr)
    return chosen


def _reader(version: int) -> str:
    """The oldest Redis that reads a version of RDB."""
    return next(name for name, known in READERS.items() if known >= version)


def _notes() -> list[bytes]:
    """Who writes an RDB file, for people and for servers that look."""
    return [
        *(b"redis-ver", REDIS_VERSION.encode(), b"headrace-ver", VERSION.encode()),
        *(b"redis-bits", b"64", b"ctime", b"%d" % int(time.time()), b"aof-base", b"0"),
    ]


def _print_totals(workspace: Workspace, out: bytes) -> None:
    totals = [f"{workspace.keys} keys"]
    for form in forms():
        names = form.part_names()
        if names:
            values = workspace.values_of(form)
            count = sum([form.part_counts(value)[0] for value in values])
            totals.append(f"{count} {names[0]} of {form.plural()}")
    print(f"{', '.join(totals)}: {os.fsdecode(out)}", file=sys.stderr)
    if workspace.empty:
        print(f"Skipped {workspace.empty} keys that hold nothing.", file=sys.stderr)


def _print_left(workspace: Workspace) -> None:
    """Name what is not taken over."""
    print("Not supported by Headrace:", file=sys.stderr)
    for name in sorted(workspace.left):
        left = workspace.left[name]
        keys = ", ".join([shown(key) for key in left.keys if key])
        more = ", ..." if left.count > len(left.keys) else ""
        print(f"  {left.count} x {name}: {keys}{more}", file=sys.stderr)


def _print_what_redis_lacks(workspace: Workspace) -> None:
    """Warn of what only some servers can read."""
    for form in forms():
        for line in form.lacking_elsewhere(workspace.values_of(form)):
            print(line, file=sys.stderr)
