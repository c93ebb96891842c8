"""The entries that a group hands out: new ones in order, and pending ones that may be claimed.

Whether new entries may go out at all is decided by ``Group.room``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.storage.stream.block import Block
from headrace.storage.stream.entry_log import EntryLog
from headrace.storage.stream.groups import (
    NEVER,
    UNKNOWN,
    Consumer,
    Group,
    Position,
    estimate_position,
    has_tombstone_after,
    has_unread,
)
from headrace.storage.stream.part import Part, part_with
from headrace.storage.stream.pel import HELD, Nack
from headrace.storage.stream.run import Run, is_below
from headrace.storage.stream.stream import Stream


class Lookup:
    """Finds the entries of ``nacks``, in the order of their IDs; ``log`` must not grow then."""

    def __init__(self, log: EntryLog, nacks: list[Nack]) -> None:
        self._log: Final = log
        self._last: Final = (nacks[-1].ms, nacks[-1].seq) if nacks else (0, 0)
        self._block: Block | None = None
        self._run = Run(None)

    def part_of(self, nack: Nack) -> Part | None:
        """Return where its entry is to be found; None when that was deleted."""
        ms = nack.ms
        seq = nack.seq
        block = self._block
        if block is None or is_below(block.last_ms, block.last_seq, ms, seq):
            block = self._log.block_for(ms, seq)
            self._block = block
            if block is None:
                return self._log.one(ms, seq)
            self._run = block.some((ms, seq), self._last, block.total, False)
        return part_with(block, self._run, ms, seq)


@mypyc_attr(acyclic=True)
class PendingEntry:
    """A pending entry, and where its fields are.

    Attributes:
        part: where; None of an entry that was deleted.
        namesakes: where those are that several regions have given its ID, this one included; None
            where ``part`` is all.
    """

    def __init__(self, stream: Stream, group: Group, nack: Nack, part: Part | None) -> None:
        self.nack: Final = nack
        self.part: Final = part
        self.namesakes: list[Part] | None = None
        if group.places is not None and part is not None:
            self.namesakes = group.places.with_namesakes(stream, part)

    def parts(self) -> list[Part]:
        """Return where the entries with its ID are."""
        if self.namesakes is not None:
            return self.namesakes
        return [] if self.part is None else [self.part]

    def shown(self) -> int:
        """Return how many entries a reply shows for it; a deleted one is shown without fields."""
        return 1 if self.namesakes is None else len(self.namesakes)


def has_new(stream: Stream, group: Group) -> bool:
    """Return whether the group can be given an entry that it has not been given."""
    if group.rules is not None and group.rules.new:
        return True
    return has_unread(stream, group) and group.room() != 0


def hand_out(
    stream: Stream, group: Group, parts: list[Part], consumer: Consumer | None, now_ms: int
) -> None:
    """Give the group the entries of ``parts``, the next after its last ID. O(entries).

    ``consumer`` has them pending then; None leaves them acknowledged.
    """
    if group.places is not None:
        _hand_out_of_lanes(group, group.places, parts, consumer, now_ms)
        return
    if group.rules is not None and parts is group.rules.new:
        group.rules.new = []
        for part in parts:
            for number in range(part.low, part.high):
                if consumer is not None and (part.dead is None or not part.dead[number]):
                    group.deliver(part.run.ms[number], part.run.seq[number], consumer, now_ms)
        return
    counting = False  # once true it stays true: the next entry is the next position
    for part in parts:
        dead = part.dead
        all_ms = part.run.ms
        all_seq = part.run.seq
        for number in range(part.low, part.high):
            if dead is not None and dead[number]:
                continue
            ms = all_ms[number]
            seq = all_seq[number]
            if not counting:
                counting = _counts_on(stream, group)
            if counting:
                if group.entries_read < stream.entries_added:  # one that was set may be ahead
                    group.entries_read += 1
            elif stream.entries_added:
                group.entries_read = estimate_position(stream, ms, seq)
            group.last_ms = ms
            group.last_seq = seq
            if consumer is not None:
                group.deliver(ms, seq, consumer, now_ms)


def _hand_out_of_lanes(
    group: Group, places: Position, parts: list[Part], consumer: Consumer | None, now_ms: int
) -> None:
    """Hand out as ``hand_out``; the last ID is the highest, and reads are not counted."""
    group.entries_read = UNKNOWN
    for part in parts:
        for number in range(part.low, part.high):
            if part.dead is not None and part.dead[number]:
                continue
            ms = part.run.ms[number]
            seq = part.run.seq[number]
            if is_below(group.last_ms, group.last_seq, ms, seq):
                group.last_ms = ms
                group.last_seq = seq
            if consumer is not None:
                group.deliver(ms, seq, consumer, now_ms)
    places.deliver(parts)


def _counts_on(stream: Stream, group: Group) -> bool:
    if group.entries_read == UNKNOWN:
        return False
    first_ms, first_seq = stream.first_id()
    if is_below(group.last_ms, group.last_seq, first_ms, first_seq):
        return False
    return not has_tombstone_after(stream, group.last_ms, group.last_seq)


def pending_entries(
    stream: Stream, group: Group, nacks: list[Nack], most_bytes: int = 0
) -> list[PendingEntry]:
    """Return pending entries, in the order of IDs, with where their fields are."""
    lookup = Lookup(stream, nacks)
    found: list[PendingEntry] = []
    for nack in nacks:
        part = lookup.part_of(nack)
        found.append(PendingEntry(stream, group, nack, part))
        if most_bytes and part is not None:
            most_bytes -= part.least_bytes()
            if most_bytes <= 0:
                break
    return found


def claimable(
    stream: Stream, group: Group, latest_ms: int, most: int, most_bytes: int = 0
) -> list[PendingEntry]:
    """Return pending entries delivered at ``latest_ms`` or before, in the order of claiming.

    Those whose entry was deleted are passed over, and are not met again. ``most`` is how many at
    most, negative is all; ``most_bytes`` is as in ``EntryLog.parts``.
    """
    found: list[PendingEntry] = []
    gone: list[Nack] = []
    for chunk in group.by_time.chunks:
        if chunk.first().order_ms > latest_ms or len(found) == most:
            break
        for nack in chunk.live():
            if nack.order_ms > latest_ms or len(found) == most:
                break
            part = stream.one(nack.ms, nack.seq)
            if part is not None:
                found.append(PendingEntry(stream, group, nack, part))
                if most_bytes:
                    most_bytes -= part.least_bytes()
                    if most_bytes <= 0:
                        most = len(found)
            else:
                gone.append(nack)
    if gone:
        group.by_time.move_to_end(gone)
    return found


def claimable_since(stream: Stream, group: Group) -> int:
    """Return when the first entry to be claimed was delivered; 0: released, ``NEVER``: none."""
    found = claimable(stream, group, HELD - 1, 1)
    return found[0].nack.delivery_ms if found else NEVER
