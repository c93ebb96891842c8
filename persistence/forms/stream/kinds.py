"""The records that a stream consists of; docs/snapshot-format.md goes through them byte by byte.

A ``STREAM`` is followed by its blocks, its groups, each with its consumers and its pending entries,
and its producers. A long list goes on in another record of the same kind.
"""

from __future__ import annotations

from typing import Final

STREAM: Final = 7
BLOCKS: Final = 8
OPEN_BLOCK: Final = 9
GROUP: Final = 10
CONSUMERS: Final = 11
PENDING: Final = 12
PRODUCER: Final = 13

NAMES: Final = {
    STREAM: "stream",
    BLOCKS: "blocks",
    OPEN_BLOCK: "open block",
    GROUP: "group",
    CONSUMERS: "consumers",
    PENDING: "pending entries",
    PRODUCER: "producer",
}

BLOCK_ROW: Final = 10  # numbers in the table for each block
PENDING_ROW: Final = 5
CONSUMER_ROW: Final = 3
PRODUCER_HEAD: Final = 2  # numbers in the table before those of the iids
IID_ROW: Final = 4
