"""Lanes: the entries that one origin has added to a stream.

The IDs of a lane rise, whatever is removed of it. So one ID says how far something reaches in it:
what was seen, removed, delivered or acknowledged.
"""

from __future__ import annotations

from typing import Final

from headrace.storage.stream.contents import IDMP_DURATION_S, IDMP_MAXSIZE
from headrace.storage.stream.run import following
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Freeable
from headrace.storage.vectors import ID, NO_ID, lane_key, lane_origin

LANE_BYTES: Final = 680  # of a lane beside its entries, as tracemalloc counts it
_NO_IDS: Final[set[ID]] = set()  # of most lanes, so nothing is ever put into it


class LaneError(Exception):
    """An entry cannot be the next one of its lane."""


def new_log() -> Stream:
    """Return a log for the entries of a lane; the groups and producers are the whole stream's."""
    return Stream(IDMP_DURATION_S, IDMP_MAXSIZE)


class Lane:
    """One lane of a stream.

    Attributes:
        key: lanes are ordered by it.
        log: its entries; its last ID is that of the last entry that ever came, be it that this one
            had been removed before it came.
        deleted: the key was deleted up to this ID of the lane.
        trimmed: it was trimmed up to this ID.
        early: entries that were deleted and have not come; see ``remember``.
        manual: callers gave it IDs that this region could not vouch for.
        filled: it has entries, as its stream has noted.
        is_current: it is the one that its origin writes.
    """

    def __init__(self, name: bytes) -> None:
        self.name: Final = name
        self.origin: Final = lane_origin(name)
        self.key: Final = lane_key(name)
        self.log = new_log()
        self.deleted = NO_ID
        self.trimmed = NO_ID
        self.early = _NO_IDS
        self.manual = False
        self.filled = False
        self.is_current = False

    def last(self) -> ID:
        """Return the ID of the last entry that ever came; (0, 0) when none did."""
        return self.log.last_ms, self.log.last_seq

    def is_covered(self) -> bool:
        """Return whether deletions of the key reach over all that ever came of it."""
        return self.last() <= self.deleted

    def is_dead(self) -> bool:
        """Return whether it may be forgotten once no region can name it any more.

        A lane known by an early removal is not, because its entries are still to come.
        """
        last = self.last()
        return last == self.deleted and self.trimmed <= last and not self.early

    def remember(self, entry_id: ID) -> None:
        """Note that an entry was deleted that has not come."""
        if self.early:
            self.early.add(entry_id)
        else:
            self.early = {entry_id}

    def remember_only(self, early: set[ID]) -> None:
        """Make these the only entries that were deleted and have not come."""
        self.early = early or _NO_IDS

    def takes(self, entry_id: ID) -> bool:
        """Return whether an entry that comes now lives; forget one that was removed early."""
        if entry_id <= self.deleted or entry_id <= self.trimmed:
            return False
        if entry_id in self.early:
            self.early.remove(entry_id)
            self.remember_only(self.early)
            return False
        return True

    def pass_over(self, ms: int, seq: int) -> None:
        """Count an entry that is dead on arrival."""
        log = self.log
        log.last_ms = ms
        log.last_seq = seq
        log.entries_added += 1

    def trim(self, entry_id: ID) -> int:
        """Remove all up to an ID, also entries still to come. Return the number removed."""
        self.trimmed = max(self.trimmed, entry_id)
        return self._drop(entry_id)

    def cover(self, entry_id: ID) -> Freeable | None:
        """As ``trim``, because the key was deleted. Return a log to free, if all was removed."""
        self.deleted = max(self.deleted, entry_id)
        if not self.is_covered():
            self._drop(entry_id)
            return None
        self._forget_early(entry_id)
        if not self.log.length:
            return None
        return self.clear()

    def clear(self) -> Stream:
        """Take all entries out. The last ID of the lane stays known."""
        old = self.log
        self.log = new_log()
        self.log.last_ms = old.last_ms
        self.log.last_seq = old.last_seq
        self.log.entries_added = old.entries_added
        return old

    def _drop(self, entry_id: ID) -> int:
        self._forget_early(entry_id)
        log = self.log
        if not log.length or entry_id < log.first_id():
            return 0
        ms, seq = following(entry_id[0], entry_id[1])
        cut = log.cut_below(ms, seq)
        removed = 0 if cut is None else cut.count
        return removed + log.trim_below(ms, seq, False, 0, False)

    def _forget_early(self, entry_id: ID) -> None:
        if self.early:
            self.remember_only({early for early in self.early if early > entry_id})
