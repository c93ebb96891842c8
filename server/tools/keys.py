"""The keys of a tool's input: their types and sizes, and the servers that can read them.

A tool passes them as often as it needs. A snapshot is read anew each time, one value after another,
so that no more of it is held in memory. Where commands belong to the data, it has to be in memory:
see ``Workspace``.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import Final

from tqdm import tqdm

from headrace.compat.errors import CommandError
from headrace.persistence.check import KeyFile
from headrace.persistence.errors import PersistenceError, os_refusal
from headrace.persistence.forms.table import form_of, forms
from headrace.persistence.rdb.kinds import FUNCTIONS_SINCE, VALKEY_VERSION_MIN, VERSION_MIN
from headrace.persistence.rdb.reader import Left
from headrace.persistence.snapshot.file import is_rdb_file, is_snapshot
from headrace.persistence.source import Source
from headrace.persistence.taker import KeyTaker
from headrace.protocol.client import request
from headrace.server.config.config import Config, defaults
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.durability.durability import Durability
from headrace.server.scripting.engine import ScriptEngine
from headrace.server.state import Server
from headrace.server.tools import READERS, VALKEY
from headrace.server.wing import active_active


class Progress:
    """A bar on standard error, over so many bytes or ``unit``."""

    def __init__(self, what: str, total: int, unit: str = "B") -> None:
        self._bar: Final = tqdm(
            desc=what, total=total, unit=unit, unit_scale=True, leave=False, disable=None
        )

    def reach(self, done: int) -> None:
        """Show that so much is done by now."""
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()


def read_all(file: KeyFile, what: str) -> None:
    """Go through a file and close it; ``what`` names the work."""
    with closing(file), closing(Progress(what, file.size_bytes)) as progress:
        while file.step():
            progress.reach(file.loaded_bytes())
        progress.reach(file.end)


NOT_LOADED: Final = "library of functions that cannot be loaded"


class LibraryTrial:
    """Loads libraries one after another, as a server does that has nothing else."""

    def __init__(self) -> None:
        self._engine: ScriptEngine | None = None

    def refusal_of(self, code: bytes) -> bytes:
        """Return why a library cannot be loaded beside those before; empty where it can.

        Requests beside libraries, see ``loading.loader.take_back``, always can.
        """
        if code.startswith(b"*"):
            return b""
        if self._engine is None:
            server = Server(Config())
            self._engine = ScriptEngine(Dispatcher(server, Durability(server)))
        try:
            self._engine.load_library(code, False, False)
        except CommandError as error:
            return error.line
        return b""


class LibrarySieve(KeyTaker):
    """Passes keys on, and libraries that can be loaded; ``left`` notes the others."""

    def __init__(self, taker: KeyTaker, left: dict[str, Left]) -> None:
        super().__init__(taker.databases)
        self._taker: Final = taker
        self._left: Final = left
        self._trial: Final = LibraryTrial()

    def take_library(self, code: bytes) -> None:
        refusal = self._trial.refusal_of(code)
        if refusal:
            note_left(self._left, refusal)
        else:
            self._taker.take_library(code)

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        return self._taker.take(db, key, value, expire_ms)


def note_left(left: dict[str, Left], refusal: bytes) -> None:
    """Note a library that is left out, and the reason."""
    note = left.setdefault(NOT_LOADED, Left())
    note.count += 1
    note.keys.append(refusal.removeprefix(b"ERR "))


DATABASES: Final = 1024  # more than any server has; a server says itself how many it takes


class Keys:
    """Keys that can be passed on.

    Attributes:
        databases: how many databases they may be of.
        left: values that could not be converted, by type or by command.
        losses: other losses, of a snapshot of Redis. Both are known when keys have been passed on.
    """

    def __init__(self) -> None:
        self.databases: Final = DATABASES
        self.left: dict[str, Left] = {}
        self.losses: list[str] = []

    def pass_to(self, taker: KeyTaker, what: str) -> None:
        """Pass all on; ``what`` names the work. Raises PersistenceError if a file is untrusted."""
        raise NotImplementedError


class CommandsFollow(Exception):
    """A snapshot of Redis has commands behind it in the same file."""


class FileKeys(Keys):
    """Those of a snapshot; ``is_dump``: no commands follow in the same file.

    ``folder`` is where a temporary file may lie; None for the system's own place.
    """

    def __init__(self, path: bytes, folder: bytes | None, is_dump: bool) -> None:
        super().__init__()
        self._is_dump: Final = is_dump
        self._path: Final = path
        self._folder: Final = folder
        self._defaults: Final = defaults(Config())

    def pass_to(self, taker: KeyTaker, what: str) -> None:
        """Pass all on. Raises, too, CommandsFollow: the snapshot is not the whole file."""
        now_ms = time.time_ns() // 1_000_000
        libraries: dict[str, Left] = {}
        sieve = LibrarySieve(taker, libraries)
        file = KeyFile(self._path, sieve, self._defaults, now_ms, self._folder)
        read_all(file, what)
        self.left = {**file.left, **libraries}
        self.losses = file.losses
        if file.end < file.size_bytes:
            if not self._is_dump:
                raise CommandsFollow
            rest = file.size_bytes - file.end
            self.losses.append(f"{rest} bytes behind its end are no part of it")


def file_keys(source: Source, folder: bytes | None) -> FileKeys | None:
    """Return the keys of data that is one snapshot of a single server, or None for any other.

    Raises PersistenceError: a file is missing, or not what its name says.
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


_POLICY_SET: Final = request([b"XPOLICY", b"SET"])[4:]  # without how many words there are


class Survey(KeyTaker):
    """Counts keys and keeps none; ``keys``: how many there are."""

    def __init__(self, databases: int) -> None:
        super().__init__(databases)
        self.keys = 0
        self._parts: Final[dict[str, int]] = {}  # of values, the first kind of each type
        self._lacking: Final[dict[str, list[int]]] = {}
        self._needed = VERSION_MIN
        self._why = ""
        self._policies = 0
        self._not_in_redis = ""
        self._not_in_valkey = ""
        for form in forms():
            if form.part_names:
                self._parts[form.plural] = 0

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        self.keys += 1
        form = form_of(value)
        version = form.rdb_version(value)
        if version > self._needed:
            self._needed = version
            self._why = f", because of {form.plural} that it holds"
        elif not version:
            self._not_in_redis = form.plural
        if not form.fits_valkey(value):
            self._not_in_valkey = form.plural
        counts = form.part_counts(value)
        if counts:
            self._parts[form.plural] += counts[0]
        lacking = form.lacking_counts(value)
        if lacking:
            total = self._lacking.get(form.plural)
            if total is not None:
                lacking = [one + other for one, other in zip(lacking, total, strict=True)]
            self._lacking[form.plural] = lacking
        return True

    def take_library(self, code: bytes) -> None:
        if code.startswith(b"*"):
            self._policies += code.count(_POLICY_SET)
            return
        super().take_library(code)
        if self._needed < FUNCTIONS_SINCE:
            self._needed = FUNCTIONS_SINCE
            self._why = ", because of functions that it holds"

    def totals(self) -> str:
        """Return the totals as text."""
        totals = [f"{self.keys} keys"]
        if self.libraries:
            totals.append(f"{len(self.libraries)} libraries of functions")
        for form in forms():
            names = form.part_names
            if names:
                totals.append(f"{self._parts[form.plural]} {names[0]} of {form.plural}")
        return ", ".join(totals)

    def lacking_elsewhere(self) -> list[str]:
        """Return the features that only some servers can read, each in a sentence."""
        found: list[str] = []
        for form in forms():
            counts = self._lacking.get(form.plural)
            if counts is not None:
                found += form.lacking_elsewhere(counts)
        if self._policies:
            found.append(f"{self._policies} streams or groups have policies: Redis knows none.")
        return found

    def rdb_version(self, for_server: str) -> int:
        """Return the version of RDB for a server, one of ``READERS`` or ``VALKEY``.

        It is that of the oldest Redis that can read the keys if ``for_server`` is empty. Raises
        PersistenceError: the server cannot hold all there is, or none can.
        """
        if self._not_in_redis:
            raise PersistenceError(f"Redis has no {self._not_in_redis}. Nothing has been written.")
        if for_server == VALKEY:
            if self._not_in_valkey:
                raise PersistenceError(
                    f"Valkey cannot hold all of it, because of {self._not_in_valkey} that it holds."
                    " Nothing has been written."
                )
            return VALKEY_VERSION_MIN
        chosen = READERS[for_server] if for_server else self._needed
        if chosen < self._needed:
            raise PersistenceError(
                f"Redis {for_server} cannot hold all of it: Redis {oldest_reader(self._needed)} is "
                f"the oldest that can{self._why}. Nothing has been written."
            )
        return chosen


def oldest_reader(version: int) -> str:
    """Return the oldest Redis that reads a version of RDB."""
    return next(name for name, known in READERS.items() if known >= version)
