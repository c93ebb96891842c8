"""Libraries of functions in files: only loading them shows whether they can be loaded here."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import CommandError
from headrace.persistence.rdb.reader import Left
from headrace.persistence.taker import KeyTaker
from headrace.server.config.config import Config
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.durability.durability import Durability
from headrace.server.scripting.engine import ScriptEngine
from headrace.server.state import Server

NOT_LOADED: Final = "library of functions that cannot be loaded"


class LibraryTrial:
    """Loads libraries one after another, as a server does that has nothing else."""

    def __init__(self) -> None:
        self._engine: ScriptEngine | None = None

    def refusal_of(self, code: bytes) -> bytes:
        """Why a library cannot be loaded beside those before; empty where it can."""
        if self._engine is None:
            server = Server(Config())
            self._engine = ScriptEngine(Dispatcher(server, Durability(server)))
        try:
            self._engine.load_library(code, False, False)
        except CommandError as error:
            return error.line
        return b""


class LibrarySieve(KeyTaker):
    """Passes keys on, and libraries that can be loaded.

    Args:
        taker: where they go.
        left: takes a note of the others.
    """

    def __init__(self, taker: KeyTaker, left: dict[str, Left]) -> None:
        super().__init__(taker.databases)
        self._taker: Final = taker
        self._left: Final = left
        self._trial: Final = LibraryTrial()

    def take_library(self, code: bytes) -> None:
        """See ``KeyTaker``."""
        refusal = self._trial.refusal_of(code)
        if refusal:
            note_left(self._left, refusal)
        else:
            self._taker.take_library(code)

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        """See ``KeyTaker``."""
        return self._taker.take(db, key, value, expire_ms)


def note_left(left: dict[str, Left], refusal: bytes) -> None:
    """Take a note of a library that is left out for this reason."""
    note = left.setdefault(NOT_LOADED, Left())
    note.count += 1
    note.keys.append(refusal.removeprefix(b"ERR "))
