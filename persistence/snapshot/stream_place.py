"""Where in the stream of replication a snapshot stands: from there a replica can go on."""

from __future__ import annotations

from typing import Final


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
