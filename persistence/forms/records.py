"""Records: what snapshots and the payloads of DUMP consist of.

::

    record     kind u8, table length u32, table, data

The table is one msgpack array of integers, and it says how long the pieces of ``data`` are: keys,
values, blocks as they stand in memory. Fixed numbers are little-endian, msgpack's own are
big-endian by definition, so a record means the same everywhere.

References are collected: a large piece goes into a list as it is. Only short pieces are copied,
many at once.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from msgspec.msgpack import Encoder as Packer

VERSION: Final = 3  # of the way in which values are laid out in records
REGIONAL_VERSION: Final = 4  # of the snapshot of a region, which has more kinds of records
OLDEST_VERSION: Final = 1  # that can be read: later ones have more ways to lay values out
CHECKSUM: Final = Struct("<Q")  # XXH3-64
RECORD_HEAD: Final = Struct("<BI")
NO_DEADLINE: Final = -1
HEADER: Final = 1  # the kinds of records that belong to the file and not to a value
DATABASE: Final = 2
END: Final = 14
REGION: Final = 15
REGION_TEXTS_AT: Final = 6  # in its table, where the lengths of the texts stand
LIBRARY: Final = 38
STREAM_PLACE: Final = 39
WRAP: Final = 2**64  # differences that would be negative are written modulo this

PAYLOAD_BYTES: Final = 1 << 20  # from which on it is large enough
# Pieces shorter than this on average are joined: to go through each costs more than its copy.
JOINED_BELOW_BYTES: Final = 512
TABLE_NUMBERS: Final = 1 << 13  # in the table of one record, about

_pack: Final = Packer().encode


class Record:
    """A record that is being put together.

    Attributes:
        kind: its number, which belongs to one form alone.
        table: integers, at least one.
        data: pieces, of which the table says how long they are; size: of all of them together.
    """

    def __init__(self, kind: int) -> None:
        self.kind: Final = kind
        self.table: list[int] = []
        self.data: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Add a piece of data, and its length to the table."""
        self.table.append(len(piece))
        self.data.append(piece)
        self.size += len(piece)

    def is_full(self) -> bool:
        """Whether it is large enough, where rows can go on in another one."""
        return self.size > PAYLOAD_BYTES or len(self.table) > TABLE_NUMBERS


class Records:
    """Collects records into payloads of about a megabyte.

    Attributes:
        payloads: those that are large enough, oldest first, each a list of pieces.
        keys, entries: how many keys, and entries of streams, were encoded so far.
    """

    def __init__(self) -> None:
        self.payloads: list[list[bytes]] = []
        self.keys = 0
        self.entries = 0
        self._pieces: list[bytes] = []
        self._size = 0

    def put(self, record: Record) -> None:
        """Put a record that is not empty into the current payload, and empty it."""
        if not record.table:
            return
        table = _pack(record.table)
        pieces = self._pieces
        pieces.append(RECORD_HEAD.pack(record.kind, len(table)))
        pieces.append(table)
        data = record.data
        if record.size < JOINED_BELOW_BYTES * len(data):
            pieces.append(b"".join(data))
        else:
            pieces.extend(data)
        self._size += RECORD_HEAD.size + len(table) + record.size
        record.table = []
        record.data = []
        record.size = 0
        if self._size >= PAYLOAD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Make a payload of what there is."""
        if self._pieces:
            self.payloads.append(self._pieces)
            self._pieces = []
            self._size = 0
