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
from headrace.persistence.snapshot.encoder import SnapshotEncoder
from headrace.persistence.snapshot.layout import SUFFIX
from headrace.persistence.source import Source
from headrace.server.build import VERSION
from headrace.server.tools.workspace import Workspace, make_empty
from headrace.storage.freezing import frozen_key

TO_REDIS_AOF: Final = "redis-aof"
AS_APPENDONLY: Final = "appendonly"
_STANDARD_OUTPUT: Final = b"-"


def export(form: str, source_path: bytes, out: bytes) -> int:
    """Write what a folder or snapshot holds in a form that Redis reads; 0.

    Args:
        form: ``resp``: one file of commands, ``-`` is standard output. ``redis-aof``: a folder for
            ``redis-server --dir``.

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
        for entry in db.slots:
            more = encoder.add(frozen_key(db.index, entry))
            while more:
                more = encoder.more()
                write_pieces(sys.stdout.fileno(), encoder.take())
    write_pieces(sys.stdout.fileno(), encoder.take())


def _print_totals(workspace: Workspace, out: bytes) -> None:
    totals = [f"{workspace.keys} keys"]
    for form in forms():
        names = form.part_names()
        if names:
            values = workspace.values_of(form)
            count = sum([form.part_counts(value)[0] for value in values])
            totals.append(f"{count} {names[0]} of {form.plural()}")
    print(f"{', '.join(totals)}: {os.fsdecode(out)}", file=sys.stderr)


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
