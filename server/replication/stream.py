"""The stream of changes that replicas get, and its latest part, the backlog.

It consists of the records of commands, as the append-only file does. The changes of one command are
one unit: several records stand between MULTI and EXEC. Those that Redis does not have (XGROUP
SETMODE, XPOLICY, XNACKIN) are wrapped into a REPLCONF CAPA, which no client can send through a
master, and in which a replica passes over what it does not know. SELECT stands where the database
changes. Bytes are collected, and leave in one
piece when the event loop has its next turn, which is after the replies of the present one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from headrace.persistence.aof.file import EXEC_WIRE, MULTI_WIRE
from headrace.persistence.log import RECORD, Log, Written
from headrace.protocol.client import request


class Backlog:
    """Pieces of the stream that follow each other; the first byte of a stream has offset 1.

    ``first`` is the offset of the first byte that is kept, ``end`` that of the next byte to come.
    """

    def __init__(self, offset: int) -> None:
        self.first = offset
        self.end = offset
        self._pieces: Final[deque[bytes]] = deque()

    @property
    def size(self) -> int:
        """Return how many bytes are kept."""
        return self.end - self.first

    def add(self, piece: bytes, most_bytes: int) -> None:
        """Add the next piece, and drop old pieces without which there is still enough."""
        self._pieces.append(piece)
        self.end += len(piece)
        self.trim(most_bytes)

    def trim(self, most_bytes: int) -> None:
        """Drop old pieces without which ``most_bytes`` are kept."""
        pieces = self._pieces
        while pieces and self.size - len(pieces[0]) >= most_bytes:
            self.first += len(pieces.popleft())

    def holds(self, offset: int) -> bool:
        """Return whether all is kept from an offset on, which may be that of the next byte."""
        return self.first <= offset <= self.end

    def since(self, offset: int) -> list[bytes]:
        """Return the bytes from an offset on that is kept."""
        found: list[bytes] = []
        at = self.end
        for piece in reversed(self._pieces):
            if at <= offset:
                break
            at -= len(piece)
            found.append(piece if at >= offset else piece[offset - at :])
        found.reverse()
        return found


_NO_DATABASE: Final = -1


class CommandStream(Log):
    """Makes the stream of records; ``offset``: its length when ``on_piece`` got the last piece."""

    def __init__(self, on_piece: Callable[[bytes], None]) -> None:
        self.offset = 0
        self._on_piece: Final = on_piece
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._first: list[bytes] | None = None  # the only record of the current command so far
        self._first_db = 0
        self._in_transaction = False
        self._db = _NO_DATABASE
        self._is_scheduled = False

    @property
    def end(self) -> int:
        """Return the length of the stream, with the bytes that have not left yet."""
        return self.offset + self._out_bytes

    def select_again(self) -> None:
        """Write SELECT before the next record, because a replica begins to read there."""
        self._db = _NO_DATABASE

    def is_of_replicas(self) -> bool:
        return True

    def append(self, db: int, record: list[bytes]) -> bool:
        if _is_ours(record):
            record = [b"REPLCONF", b"CAPA", RECORD + request(record)]
        first = self._first
        if first is not None:
            self._first = None
            self._in_transaction = True
            self._add(MULTI_WIRE)
            self._write(self._first_db, first)
        elif not self._in_transaction:
            self._first = record
            self._first_db = db
            return False
        self._write(db, record)
        return False

    def append_wire(self, db: int, parts: list[bytes]) -> bool:
        self.end_command()
        self._select(db)
        for part in parts:
            self._add(part)
        self._leave_soon()
        return False

    def end_command(self) -> bool:
        first = self._first
        if first is not None:
            self._first = None
            self._write(self._first_db, first)
        elif self._in_transaction:
            self._in_transaction = False
            self._add(EXEC_WIRE)
        else:
            return False
        return True

    def note_end(self, written: Written) -> None:
        written.stream_end = self.offset + self._out_bytes

    def stamp_next(self, second: int) -> None:
        pass

    def say(self, words: list[bytes]) -> None:
        """Add words that concern no database, between two commands."""
        self._add(request(words))
        self._leave_soon()

    def _write(self, db: int, record: list[bytes]) -> None:
        self._select(db)
        self._add(request(record))
        self._leave_soon()

    def _select(self, db: int) -> None:
        if db != self._db:
            self._db = db
            self._add(request([b"SELECT", b"%d" % db]))

    def _add(self, wire: bytes) -> None:
        self._out.append(wire)
        self._out_bytes += len(wire)

    def _leave_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._leave)

    def _leave(self) -> None:
        self._is_scheduled = False
        self.flush()

    def flush(self) -> None:
        """Send all that is there."""
        out = self._out
        if out:
            self._out = []
            self._out_bytes = 0
            self.add(b"".join(out))

    def add(self, piece: bytes) -> None:
        """Add bytes of the stream as they are."""
        self.offset += len(piece)
        self._on_piece(piece)


_OURS: Final = (b"xpolicy", b"xnackin")


def _is_ours(record: list[bytes]) -> bool:
    name = record[0].lower()
    return name in _OURS or (name == b"xgroup" and record[1].lower() == b"setmode")
