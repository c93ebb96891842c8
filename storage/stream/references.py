"""Removing entries with heed to the groups that refer to them.

Three modes. ``KEEPREF`` leaves pending entries as they are, ``DELREF`` drops them from every group
with the entry, and ``ACKED`` removes only what no group still needs (``is_referenced``).
"""

from __future__ import annotations

from typing import Final

from headrace.storage.stream.block import Block
from headrace.storage.stream.groups import Group
from headrace.storage.stream.run import ID_MAX, is_below
from headrace.storage.stream.stream import Stream

KEEPREF: Final = 0
DELREF: Final = 1
ACKED: Final = 2
MISSING: Final = -1
DELETED: Final = 1
REFERENCED: Final = 2


def is_referenced(stream: Stream, ms: int, seq: int) -> bool:
    """Return whether a group still needs the entry: not offered yet, or pending."""
    for group in stream.groups.values():
        if is_to_come(stream, group, ms, seq) or group.pel.get(ms, seq) is not None:
            return True
    return False


def is_to_come(stream: Stream, group: Group, ms: int, seq: int) -> bool:
    """Return whether a group has still to be given an entry, by its position."""
    if group.places is not None:
        return group.places.is_to_come(stream, ms, seq)
    return (ms, seq) > (group.last_ms, group.last_seq)


def drop_references(stream: Stream, ms: int, seq: int, only_aside: bool = False) -> bool:
    """Take the entry out of every group's pending entries; return whether it was in any.

    ``only_aside``: where a policy holds it back, and no entry has its ID any more.
    """
    dropped = False
    for group in stream.groups.values():
        if only_aside:
            nack = group.pel.get(ms, seq) if group.zone else None
            if nack is None or not nack.is_aside() or stream.contains(ms, seq):
                continue
        if group.ack(ms, seq):
            dropped = True
    return dropped


def drop_left_behind(stream: Stream) -> bool:
    """Take what is pending before the first entry out of the groups that limit it; True if any was.

    Its entries were deleted before those that are trimmed now. In Redis they stay pending, and so
    do they in other groups. In these groups they would hold back new entries.
    """
    dropped = False
    first_ms, first_seq = stream.first_id() if stream.length else (ID_MAX, ID_MAX)
    for group in stream.groups.values():
        if not group.max_pending:
            continue
        nack = group.pel.first()
        while nack is not None and is_below(nack.ms, nack.seq, first_ms, first_seq):
            group.drop(nack)
            dropped = True
            nack = group.pel.first()
    return dropped


def pending_count(stream: Stream) -> int:
    """Return how many entries are pending in all groups together."""
    count = 0
    for group in stream.groups.values():
        count += group.pel.size
    return count


def is_held_back(stream: Stream) -> bool:
    """Return whether a group waits for pending entries to go before it is given more."""
    for group in stream.groups.values():
        if group.is_limited():
            return True
    return False


def delete(stream: Stream, ms: int, seq: int, mode: int) -> int:
    """Delete one entry: ``DELETED``, ``MISSING``, or ``REFERENCED`` when it had to stay.

    In mode ``ACKED`` an ID that some group has not come to is ``REFERENCED``, be it there or not.
    """
    if mode == DELREF:
        drop_references(stream, ms, seq)
    elif mode == ACKED and is_referenced(stream, ms, seq):
        return REFERENCED
    return DELETED if stream.delete(ms, seq) else MISSING


class Trim:
    """A goal of trimming: to a length, ``most``, or, where that is -1, below an ID.

    Attributes:
        limit: remove no more than this many, whole nodes counted; 0 is no limit.
        to_the_end: look at every entry as long as the stream is too long; otherwise at no node
            after the first that need not go whole, as Redis does.
    """

    def __init__(self, most: int, below: tuple[int, int], limit: int, to_the_end: bool) -> None:
        self.most: Final = most
        self.below: Final = below
        self.limit: Final = limit
        self.to_the_end: Final = to_the_end

    def is_done(self, stream: Stream, ms: int, seq: int) -> bool:
        """Return whether the entry (ms, seq) and those after it stay."""
        return stream.length <= self.most if self.most >= 0 else (ms, seq) >= self.below

    def goes_whole(self, stream: Stream, block: Block) -> bool:
        """Return whether nothing of ``block`` needs to stay."""
        if self.most >= 0:
            return self.to_the_end or stream.length - block.live >= self.most
        return block.is_below(self.below[0], self.below[1])


def trim(stream: Stream, how: Trim, mode: int) -> int:
    """Remove the oldest entries in mode ``DELREF`` or ``ACKED``; return the number removed.

    Complexity: O(entries looked at, times groups, times log n).
    """
    removed = 0
    block = stream.block_from(0, 0)
    while block is not None and not how.is_done(stream, block.first_ms, block.first_seq):
        if 0 < how.limit < removed + block.live:
            break
        whole = how.goes_whole(stream, block)
        last_ms = block.last_ms
        last_seq = block.last_seq
        for ms, seq in block.live_ids():
            if how.is_done(stream, ms, seq):
                break
            if mode == ACKED:
                if is_referenced(stream, ms, seq):
                    continue
            else:
                drop_references(stream, ms, seq)
            stream.discard(ms, seq)
            removed += 1
        if not whole:
            break
        block = stream.block_from(last_ms, last_seq + 1)
    if mode == DELREF:
        drop_left_behind(stream)
    return removed
