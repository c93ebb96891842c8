"""Records, of which snapshots and payloads of DUMP consist, written and taken in.

::

    record     kind u8, table length u32, table, data

The table is one msgpack array of integers, and it says how long the pieces of ``data`` are: keys,
values, blocks as they stand in memory. Fixed numbers are little-endian, msgpack's own are
big-endian by definition, so a record means the same everywhere.

References are collected: a large piece goes into a list as it is. Only short pieces are copied,
many at once.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from struct import Struct
from typing import Final

from msgspec import MsgspecError
from msgspec.msgpack import Encoder as Packer
from mypy_extensions import mypyc_attr

from headrace.storage.keyspace import Keyspace
from headrace.storage.sharing import Member

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
        data: pieces, whose lengths are in the table; size: of all of them together.
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
        """Return whether it is large enough, where rows can go on in another one."""
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

    def put_row(self, record: Record, key: bytes, piece: bytes, expire_ms: int) -> None:
        """Add a key to a record of such rows, which is put when it is full."""
        record.add(key)
        record.add(piece)
        record.table.append(expire_ms)
        if record.is_full():
            self.put(record)

    def flush(self) -> None:
        """Make a payload of the records so far."""
        if self._pieces:
            self.payloads.append(self._pieces)
            self._pieces = []
            self._size = 0


INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

# Errors that may be raised on the way through bytes that no encoder made.
UNDECODABLE: Final = (
    MsgspecError,
    struct.error,
    IndexError,
    ValueError,
    OverflowError,
    TypeError,
    RecursionError,
)


class Malformed(Exception):
    """A record, at ``position`` in the decoded bytes, does not hold what its kind asks for."""

    def __init__(self, position: int, text: str) -> None:
        super().__init__(text)
        self.position: Final = position


class Intake:
    """The record being decoded, and where its keys go.

    Attributes:
        frame: the bytes being read; at: how far, behind the record's table; end: where it ends.
        now_ms: the present. What a record dates later counts as having happened now, because the
            clock may have been set back.
        keys, entries: how many keys, and entries of streams, were met.
        region: whose snapshot it is; None where it is that of one server, or a value of DUMP.
    """

    def __init__(self, now_ms: int) -> None:
        self.frame = b""
        self.at = 0
        self.end = 0
        self.now_ms: Final = now_ms
        self.keys = 0
        self.entries = 0
        self.region: Member | None = None
        self._start = 0  # of the record

    def malformed(self, expected: str) -> Malformed:
        """Return the error to raise for the record being decoded."""
        return Malformed(self._start, expected)

    def cut(self, size: int) -> bytes:
        """Return the next ``size`` bytes of the record's data."""
        start = self.at
        if size < 0 or start + size > self.end:
            raise self.malformed("data that ends with its frame")
        self.at = start + size
        return self.frame[start : start + size]

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        """Take a complete key; ``expire_ms`` is ``NO_DEADLINE`` or a deadline."""
        raise NotImplementedError

    def database(self) -> Keyspace | None:
        """Return where keys without a deadline may go without ``place``; None where they may not.

        A caller that puts one there counts it in ``keys``, and raises the result of ``doubled``
        where there is one of that name.
        """
        return None

    def doubled(self, key: bytes) -> Malformed:
        """Return the error to raise for a key that is there already."""
        return self.malformed(f"each key once, but {key[:64]!r} is there already")


@mypyc_attr(allow_interpreted_subclasses=True)
class Reader:
    """Reads the records of one form, in the order of the file; one file has one."""

    def __init__(self, intake: Intake) -> None:
        self.intake: Final = intake

    @abstractmethod
    def read(self, kind: int, table: list[int]) -> None:
        """Read the next record, whose data is to be cut from the intake.

        Raises Malformed or one of ``UNDECODABLE`` if it holds what no encoder writes.
        """

    def goes_on(self, kind: int) -> bool:
        """Return whether a record of this kind belongs to the value of the record before."""
        return False

    def finish(self) -> None:
        """End the last value: no records of it follow. Raises Malformed if some are missing."""

    def entries_met(self) -> int:
        """Return the entries so far of a stream that is not complete yet."""
        return 0
