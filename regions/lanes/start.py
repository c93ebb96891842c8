"""Where a group begins to read."""

from __future__ import annotations

from typing import Final

from headrace.storage.vectors import (
    ID,
    NO_ID,
    LaneVector,
    decode_id,
    decode_lanes,
    encode_lanes,
)

FROM_ALL: Final = 0  # with the first entry there ever was
AFTER_ID: Final = 1  # with what has a higher ID
AFTER_SEEN: Final = 2  # with what its maker had not seen
_ZERO: Final = b"0"


class Start:
    """Where a group begins to read.

    What comes late is news to a group that begins with what its maker had not seen, even if it has
    a low ID. To a group that begins after an ID it is not.

    Attributes:
        kind: ``FROM_ALL``, ``AFTER_ID`` or ``AFTER_SEEN``.
        entry_id: the ID after which it begins.
        seen: what its maker had seen of each lane.
    """

    def __init__(self, kind: int, entry_id: ID, seen: LaneVector) -> None:
        self.kind: Final = kind
        self.entry_id: Final = entry_id
        self.seen: Final = seen

    def floor(self, lane: bytes) -> ID:
        """The ID of a lane above which entries are for the group."""
        if self.kind == AFTER_SEEN:
            return self.seen.get(lane, NO_ID)
        return self.entry_id

    def highest(self) -> ID:
        """The highest ID that may not be for the group."""
        return max(self.seen.values(), default=NO_ID) if self.seen else self.entry_id

    def encode(self) -> bytes:
        """It as text: ``0``, an ID, or a lane vector."""
        if self.kind == AFTER_SEEN:
            return encode_lanes(self.seen)
        if self.kind == FROM_ALL:
            return _ZERO
        return b"%d-%d" % self.entry_id


def start_after(entry_id: ID) -> Start:
    """A start after an ID; after (0, 0) it is with all there is."""
    return Start(FROM_ALL if entry_id == NO_ID else AFTER_ID, entry_id, {})


def start_after_seen(seen: LaneVector) -> Start:
    """A start with what is not in ``seen``."""
    return Start(AFTER_SEEN, NO_ID, seen)


def decode_start(text: bytes) -> Start:
    """The start that a text stands for.

    Raises:
        BadVector: it is none.
    """
    if text == _ZERO:
        return start_after(NO_ID)
    if b"=" in text or text == b"-":
        return start_after_seen(decode_lanes(text))
    return start_after(decode_id(text))
