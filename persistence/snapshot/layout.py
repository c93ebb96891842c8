"""How a snapshot is laid out; docs/snapshot-format.md goes through it byte by byte.

A file is a preamble and then frames, numbered from 0, each with a checksum of its own. The frames
together hold records::

    preamble   "HEADRACE", version u32, zero u32, XXH3-64 of these 16 bytes
    frame      payload length u64, number u32, payload, XXH3-64 of all that
    record     kind u8, table length u32, table, data

A record lies whole in one frame. Its table is one msgpack array of integers, and it says how long
the pieces of ``data`` are: keys, values, blocks as they stand in memory. Fixed numbers are
little-endian, msgpack's own are big-endian by definition, so a file means the same everywhere.

The records come in this order: ``HEADER``; for each database that holds keys ``DATABASE`` and then
its keys, which are rows of ``STRINGS``, ``INTEGERS`` and their ``MORTAL_`` kin, or a ``STREAM``
followed by its blocks, its groups and its producers; at last ``END``, with totals.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

MAGIC: Final = b"HEADRACE"
VERSION: Final = 3
OLDEST_VERSION: Final = 1  # that can be read: later ones have more ways to lay values out
SUFFIX: Final = b"hrs"  # of the names of snapshots

HEADER: Final = 1
DATABASE: Final = 2
STRINGS: Final = 3
INTEGERS: Final = 4
MORTAL_STRINGS: Final = 5  # as the two above, each with a deadline
MORTAL_INTEGERS: Final = 6
STREAM: Final = 7
BLOCKS: Final = 8
OPEN_BLOCK: Final = 9
GROUP: Final = 10
CONSUMERS: Final = 11
PENDING: Final = 12
PRODUCER: Final = 13
END: Final = 14

NAMES: Final = {
    HEADER: "header",
    DATABASE: "database",
    STRINGS: "strings",
    INTEGERS: "integers",
    MORTAL_STRINGS: "mortal strings",
    MORTAL_INTEGERS: "mortal integers",
    STREAM: "stream",
    BLOCKS: "blocks",
    OPEN_BLOCK: "open block",
    GROUP: "group",
    CONSUMERS: "consumers",
    PENDING: "pending entries",
    PRODUCER: "producer",
    END: "end",
}

PREAMBLE: Final = Struct("<8sIIQ")
PREAMBLE_CHECKED: Final = 16  # bytes of it that its checksum covers
FRAME_HEAD: Final = Struct("<QI")
CHECKSUM: Final = Struct("<Q")
RECORD_HEAD: Final = Struct("<BI")

BLOCK_ROW: Final = 10  # numbers in the table for each block
PENDING_ROW: Final = 5
CONSUMER_ROW: Final = 3
PRODUCER_HEAD: Final = 2  # numbers in the table before those of the iids
IID_ROW: Final = 4
WRAP: Final = 2**64  # differences that would be negative are written modulo this
NO_DEADLINE: Final = -1
