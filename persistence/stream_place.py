"""Where in the stream of replication a snapshot stands: from there a replica can go on."""

from __future__ import annotations

from typing import Final

# In an RDB file it stands in notes, as Redis writes them.
WRITER: Final = b"headrace-ver"
REPLICATION_ID: Final = b"repl-id"
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
        """The names and texts, in turn, of what an RDB file says of it."""
        return [
            *(_STREAM_DB, b"%d" % self.db),
            *(REPLICATION_ID, self.data_id),
            *(_OFFSET, b"%d" % self.offset),
        ]


def noted_place(notes: dict[bytes, bytes]) -> StreamPlace | None:
    """The place that notes on an RDB file say, which one of our servers has written."""
    data_id = notes.get(REPLICATION_ID)
    offset = notes.get(_OFFSET, b"")
    db = notes.get(_STREAM_DB, b"")
    if WRITER not in notes or data_id is None or not (offset.isdigit() and db.isdigit()):
        return None
    return StreamPlace(data_id, int(offset), int(db))
