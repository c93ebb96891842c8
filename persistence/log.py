"""Logs take the records of changes: the append-only file is one.

A record is the deterministic command that repeats a change. The records of one command, however
many, are one unit: all of them are repeated, or none.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from mypy_extensions import i64, mypyc_attr

# In an RDB file it stands in notes, as Redis writes them.
WRITER: Final = b"headrace-ver"
REPLICATION_ID: Final = b"repl-id"
RECORD: Final = b"headrace-record:"  # in a stream, before the wire of a record that Redis has not
_OFFSET: Final = b"repl-offset"
_STREAM_DB: Final = b"repl-stream-db"


class StreamPlace:
    """A place in a stream.

    Attributes:
        data_id: of the data, whose changes the stream is.
        offset: how much of the stream is in the snapshot.
        db: the number of the database that the stream is in there.
    """

    def __init__(self, data_id: bytes, offset: int, db: int) -> None:
        self.data_id: Final = data_id
        self.offset: Final = offset
        self.db: Final = db

    def notes(self) -> list[bytes]:
        """Return the names and texts, in turn, of its notes in an RDB file."""
        return [
            *(_STREAM_DB, b"%d" % self.db),
            *(REPLICATION_ID, self.data_id),
            *(_OFFSET, b"%d" % self.offset),
        ]


def noted_place(notes: dict[bytes, bytes]) -> StreamPlace | None:
    """Return the place by the notes on an RDB file, which one of our servers has written."""
    data_id = notes.get(REPLICATION_ID)
    offset = notes.get(_OFFSET, b"")
    db = notes.get(_STREAM_DB, b"")
    if WRITER not in notes or data_id is None or not (offset.isdigit() and db.isdigit()):
        return None
    return StreamPlace(data_id, int(offset), int(db))


class Written:
    """The ends of one client's records, so that it need not wait for those of others.

    ``file_end`` is in the append-only file, see ``AppendOnlyFile.end``; ``stream_end`` is in the
    stream for replicas.
    """

    def __init__(self) -> None:
        self.file_end: i64 = 0
        self.stream_end: i64 = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Log:
    """Takes records in the order in which the changes happened."""

    def is_of_replicas(self) -> bool:
        """Return whether it is for replicas, and no file."""
        return False

    @abstractmethod
    def append(self, db: int, record: list[bytes]) -> bool:
        """Add a command that changes database ``db`` to the records of the command under way.

        Returns: whether it is the first since all was written, so that a write is to be arranged.
        """

    def append_alike(self, db: int, records: list[list[bytes]]) -> bool:
        """As ``append`` and ``end_command`` for each of several commands of one kind."""
        is_first = False
        for record in records:
            is_first = self.append(db, record) or is_first
            self.end_command()
        return is_first

    def append_received(self, origin: bytes, first: int, count: int, payload: bytes) -> bool:
        """Add records of another region, as they came: whole units, which follow each other.

        Records added before ``end_command`` belong to them: a loader takes all or none. Returns as
        ``append``. There are none without regions.
        """
        return False

    @abstractmethod
    def append_wire(self, db: int, parts: list[bytes]) -> bool:
        """As ``append``, of a long command by itself that is encoded already, in parts."""

    @abstractmethod
    def end_command(self) -> bool:
        """End the command under way. Return whether it has left records."""

    def note_end(self, written: Written) -> None:
        """Note for a client whose records came last how far they reach."""

    @abstractmethod
    def stamp_next(self, second: int) -> None:
        """Keep the time with the next record: it says something that the record does not."""
