"""``headrace check-aof`` and ``headrace check-snapshot``."""

from __future__ import annotations

import os
import time
from contextlib import closing

from headrace.persistence.aof.directory import is_end_of_data
from headrace.persistence.check import CommandCheck, KeyFile, SnapshotCheck, cut, snapshot_loader
from headrace.persistence.errors import PersistenceError, shown
from headrace.persistence.rdb.reader import Left
from headrace.persistence.snapshot.file import is_rdb_file, is_snapshot
from headrace.persistence.source import Source
from headrace.persistence.taker import Dropping
from headrace.server.loading.loader import broken_library
from headrace.server.tools.keys import DATABASES, LibrarySieve, LibraryTrial, Progress, read_all
from headrace.server.wing import active_active


def check_snapshot(path: bytes) -> int:
    """Check a snapshot and print its totals; return 0. Raises PersistenceError if it is damaged."""
    found, size_bytes = _go_through(path)
    print(f"{os.fsdecode(path)}: valid, {size_bytes} bytes")
    created = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(found.created_ms / 1000))
    version = shown(found.version)
    print(f"  written by Headrace {version}, state of {created} UTC")
    region = found.region
    if region is not None:
        origin = region.origin.decode()
        print(f"  of region {region.id} of {shown(region.database)}, which is {origin}")
        print(f"  it knows {region.known_text().decode()}")
    print("  base of an append-only folder" if found.is_base else "  whole by itself")
    print(f"  {found.keys} keys: {_listed(found.counts)}")
    print(f"  {found.mortal} keys with a deadline")
    print(f"  {_listed(found.parts)}")
    return 0


def _listed(counts: dict[str, int]) -> str:
    return ", ".join([f"{count} {name}" for name, count in counts.items()])


def _go_through(path: bytes) -> tuple[SnapshotCheck, int]:
    active_active()  # it may be that of a region
    loader, found = snapshot_loader(path)
    with closing(loader), closing(Progress(_name(path), loader.size_bytes)) as progress:
        while loader.step():
            progress.reach(loader.loaded_bytes)
    trial = LibraryTrial()
    for code in found.libraries:
        refusal = trial.refusal_of(code)
        if refusal:
            raise broken_library(path, refusal)
    return found, loader.size_bytes


def _name(path: bytes) -> str:
    return os.fsdecode(os.path.basename(path))


def check_aof(path: bytes, fix: bool) -> int:
    """Check an append-only folder, or one file of commands; return 0 when it is, or becomes, valid.

    ``fix``: cut off a damaged end of the last file. Raises PersistenceError: it cannot be read, or
    is damaged where no cut helps.
    """
    with closing(Source(path)) as source:
        return _check_files(source, fix)


def _check_files(source: Source, fix: bool) -> int:
    if source.manifest_path:
        print(f"{os.fsdecode(source.manifest_path)}: valid, {len(source.files)} files")
    for number, file in enumerate(source.files):
        start = 0
        if is_rdb_file(file):
            start = _check_rdb(file)
            rest = os.path.getsize(file) - start
            if not rest:
                continue
            if source.is_dump:
                print(f"  {rest} bytes behind its end are no part of it")
                continue
        elif is_snapshot(file):
            found, size_bytes = _go_through(file)
            shown = f"{found.keys} keys, {found.entries} entries"
            print(f"{os.fsdecode(file)}: valid snapshot, {size_bytes} bytes, {shown}")
            continue
        check = _check_commands(file, start)
        if not check.problem:
            print(f"{os.fsdecode(file)}: valid, {check.size_bytes} bytes, {check.found()}")
            continue
        if not _mend(check, fix, is_end_of_data(source.files, number)):
            return 1
    return 0


def _check_commands(path: bytes, start: int) -> CommandCheck:
    check = CommandCheck(path, start, active_active().count())
    with closing(Progress(_name(path), check.size_bytes)) as progress:
        while check.step():
            progress.reach(check.loaded_bytes())
    return check


def _check_rdb(path: bytes) -> int:
    """Go through a snapshot of Redis or Valkey; return the offset of its end."""
    now_ms = time.time_ns() // 1_000_000
    left: dict[str, Left] = {}
    file = KeyFile(path, LibrarySieve(Dropping(DATABASES), left), {}, now_ms, None)
    read_all(file, _name(path))
    for note in left.values():
        raise broken_library(path, note.keys[0])
    print(f"{os.fsdecode(path)}: valid snapshot of {file.writer}, {file.end} bytes")
    for loss in file.losses:
        print(f"  loading {loss}")
    return file.end


def _mend(check: CommandCheck, fix: bool, is_last: bool) -> bool:
    """Print a file's fault, and cut it off if ``fix`` is set; return whether it was."""
    lost = check.size_bytes - check.good_bytes
    name = os.fsdecode(check.path)
    print(f"{name}: damaged at offset {check.good_bytes}: {check.problem}")
    print(f"  {check.commands} commands before that are good; {lost} bytes are not")
    if not is_last:
        raise PersistenceError(
            f"{name} is not the last file: to cut it off would lose what the later ones say, too. "
            "Nothing has been changed. Use a copy of the folder from before."
        )
    if not fix:
        print("  --fix cuts those bytes off and keeps them in a file beside it")
        return False
    kept = cut(check.path, check.good_bytes)
    print(f"  cut: {check.good_bytes} bytes stay; the rest is in {os.fsdecode(kept)}")
    return True
