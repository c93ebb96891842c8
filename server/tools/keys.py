"""The keys of what a person points a tool at, to be gone through as often as it takes.

A snapshot is read anew each time, one value after another, so that no more of it is held in memory.
Where commands belong to the data, it has to be in memory: see ``workspace``.
"""

from __future__ import annotations

import os
import time
from typing import Final

from headrace.persistence.errors import os_refusal
from headrace.persistence.key_file import KeyFile
from headrace.persistence.rdb.reader import Left
from headrace.persistence.snapshot.file import is_rdb_file, is_snapshot
from headrace.persistence.source import Source
from headrace.persistence.taker import KeyTaker
from headrace.server.config.config import Config
from headrace.server.config.new_values import defaults
from headrace.server.tools.libraries import LibrarySieve
from headrace.server.tools.progress import Progress
from headrace.server.wing import active_active

DATABASES: Final = 1024  # more than anybody has; a server says itself how many it takes


class Keys:
    """Keys that can be passed on.

    Attributes:
        databases: how many databases they may be of.
        left: what could not be taken over, by type or by command.
        losses: what else a person has to know, of a snapshot of Redis. Both are known when keys
            have been passed on.
    """

    def __init__(self) -> None:
        self.databases: Final = DATABASES
        self.left: dict[str, Left] = {}
        self.losses: list[str] = []

    def pass_to(self, taker: KeyTaker, what: str) -> None:
        """Pass all of them on; ``what`` says for people what is being done.

        Raises:
            PersistenceError: a file cannot be read or trusted.
        """
        raise NotImplementedError


class CommandsFollow(Exception):
    """A snapshot of Redis has commands behind it in the same file."""


class FileKeys(Keys):
    """Those of a snapshot.

    Args:
        path: of the snapshot.
        folder: where a temporary file may lie; None for the system's own place.
        is_dump: no commands follow in the same file.
    """

    def __init__(self, path: bytes, folder: bytes | None, is_dump: bool) -> None:
        super().__init__()
        self._is_dump: Final = is_dump
        self._path: Final = path
        self._folder: Final = folder
        self._defaults: Final = defaults(Config())

    def pass_to(self, taker: KeyTaker, what: str) -> None:
        """See ``Keys``.

        Raises:
            CommandsFollow: it is not the whole file.
        """
        now_ms = time.time_ns() // 1_000_000
        libraries: dict[str, Left] = {}
        sieve = LibrarySieve(taker, libraries)
        file = KeyFile(self._path, sieve, self._defaults, now_ms, self._folder)
        progress = Progress(what, file.size_bytes)
        try:
            while file.step():
                progress.reach(file.loaded_bytes())
            progress.reach(file.end)
        finally:
            progress.close()
            file.close()
        self.left = {**file.left, **libraries}
        self.losses = file.losses
        if file.end < file.size_bytes:
            if not self._is_dump:
                raise CommandsFollow
            rest = file.size_bytes - file.end
            self.losses.append(f"{rest} bytes behind its end are no part of it")


def file_keys(source: Source, folder: bytes | None) -> FileKeys | None:
    """The keys of data that is one snapshot of a single server; None where it is more than that.

    Raises:
        PersistenceError: a file is missing, or not what its name says.
    """
    files = source.files
    if not files:
        return None
    try:
        if any(os.path.getsize(path) for path in files[1:]):
            return None
    except OSError as error:
        raise os_refusal(files[0], "read", error) from error
    if not is_rdb_file(files[0]) and (
        not is_snapshot(files[0]) or active_active().owner_of(files) is not None
    ):
        return None
    return FileKeys(files[0], folder, source.is_dump)
