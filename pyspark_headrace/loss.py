"""What a stream has lost since it was looked at, and whether it still is the same stream.

A stream only grows at its end, and shrinks where it may. So of two looks at the same stream

1. ``added``, ``removed``, ``last`` and ``deleted`` never become less, nor does the first ID;
2. once no entry of the first look can be left, ``removed`` is at least what ``added`` was;
3. between the newest entry of the first look and its last ID no entry appears, and that entry has
   the fields that it had, as the oldest one has;
4. the newest one is still there, or something was removed since;
5. up to an ID of rank ``n`` there are at most ``n`` entries, behind it at most ``added - n``.

Whatever contradicts one of these was deleted and made anew, renamed over, restored from a copy, or
lost with its server. XSETID, too, can make the numbers of (1), (2) and (5) less, and let entries
appear at IDs that had been skipped; but then the newest entry that was seen is there as it was.

What no look can show: what came and went between two looks; and another stream that is, in all of
this, what the first one might have become.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pyspark_headrace.ids import LEAST, StreamID, format_id
from pyspark_headrace.offsets import Position, Sight
from pyspark_headrace.server import Figures, Look, Server

GO_ON: Final = "failOnDataLoss=false reads on and counts"


class Turn(Enum):
    """What has become of a stream."""

    SAME = "it is the same stream"
    SET = "its counters were set by XSETID"
    OLDER = "it was set back to an earlier state"
    ANEW = "it was deleted and made anew"
    GONE = "it is gone"


@dataclass(frozen=True)
class Loss:
    """Entries that went before they were read.

    Attributes:
        rows: how many, at the most; of a stream that was replaced, how many were known of.
        text: what happened, for people.
    """

    rows: int
    text: str


def turn_of(position: Position, look: Look) -> Turn:
    """Return what became of a stream since it was remembered; ``OLDER`` is reported ``ANEW``.

    Args:
        position: how far it was read, with what was seen of it.
    """
    seen, figures = position.seen, look.figures
    if not figures.exists:
        return Turn.GONE if seen is not None or position.n > 0 else Turn.SAME
    if figures.added < 0:
        return Turn.SAME
    if seen is None:
        return Turn.ANEW if _ranks_contradict(position, look, since_when=None) else Turn.SAME
    if look.upto > position.n >= 0:  # 5: XSETID does not move entries
        return Turn.ANEW
    if entries_contradict(seen, look):
        return Turn.ANEW
    if numbers_contradict(seen, look) or _ranks_contradict(position, look, seen):
        return Turn.SET if seen.end is not None and seen.end in look.there else Turn.ANEW
    return Turn.SAME


def entries_contradict(seen: Sight, look: Look) -> bool:
    """Return whether no command could have put some entries into the stream that was seen."""
    figures = look.figures
    oldest = figures.oldest
    if oldest is not None and seen.first is not None:
        if oldest.id < seen.first.id:
            return True  # 1
        if oldest.id == seen.first.id and oldest != seen.first:
            return True  # 3
    if seen.end is None:
        return False
    return any(mark.id == seen.end.id and mark != seen.end for mark in look.there)  # 3


def numbers_contradict(seen: Sight, look: Look) -> bool:
    """Return whether the stream that was seen cannot have these numbers, except by XSETID."""
    figures = look.figures
    less = (  # 1
        figures.added < seen.added
        or figures.removed < seen.removed
        or figures.last < seen.last
        or figures.max_deleted < seen.deleted
    )
    if less or (figures.begins_behind(seen.last) and figures.removed < seen.added):  # 2
        return True
    if any(mark != seen.end for mark in look.there):  # 3
        return True
    if seen.end is None or seen.end in look.there:
        return False
    return figures.removed == seen.removed  # 4


def _ranks_contradict(position: Position, look: Look, since_when: Sight | None) -> bool:
    figures, n = look.figures, position.n
    if n < 0:
        return False
    if since_when is None and (figures.last < position.id or look.upto > n):
        return True
    if figures.added < n or look.behind > figures.added - n:  # 5
        return True
    # Up to here all is gone: at least n entries.
    return figures.begins_behind(position.id) and figures.removed < n


def is_older(server: Server, key: str, position: Position, look: Look, most: int) -> bool:
    """Return whether a stream that is not what it was is what it had been before.

    Then what was its first entry is there, and has its old rank. That is known for sure only where
    nothing behind it was deleted by name; else it is not above what it may be.

    Args:
        most: how far to walk, where the server does not count.
    """
    seen = position.seen
    if seen is None or seen.first is None or look.upto > position.n >= 0:
        return False
    place = server.place_of(key, seen.first, most)
    rank, was = look.figures.removed + place, seen.removed + 1
    return place > 0 and (rank == was or (rank < was and seen.deleted > LEAST))


def unread(position: Position) -> int:
    """Return how many entries behind a position were seen; 0 when nobody knows."""
    seen = position.seen
    if seen is None or position.n < 0:
        return 0
    return max(0, min(seen.added - position.n, seen.added - seen.removed))


def known_unread(position: Position) -> bool:
    """Return whether a stream was seen to hold more than had been read of it."""
    seen = position.seen
    if seen is None:
        return position.n > 0
    return unread(position) > 0 or (position.n < 0 and position.id < seen.last)


def replaced(key: str, position: Position, turn: Turn, look: Look) -> Loss:
    """Return what is lost with a stream that is not what it was."""
    place = format_id(position.id)
    rows = unread(position)
    known = f"; {rows} of them had been seen" if rows else ""
    if turn is Turn.GONE:
        return Loss(rows, f"stream {key}: it is gone, with what came after {place}{known}")
    if turn is Turn.ANEW:
        return Loss(
            rows,
            f"stream {key}: it was deleted and made anew: entries after {place} of the old one may "
            f"be lost{known}",
        )
    figures, seen = look.figures, position.seen
    assert seen is not None
    if position.n >= 0:
        rows = max(0, seen.added - max(position.n, figures.added))
    return Loss(
        rows,
        f"stream {key}: it was set back to an earlier state, as from an older copy: its last ID is "
        f"{format_id(figures.last)} and was {format_id(seen.last)}; entries after {place} may be "
        "lost",
    )


def removed_unread(key: str, position: Position, figures: Figures) -> Loss | None:
    """Return what the same stream has lost of what lies after a position.

    Let ``n`` be the position's rank, and *removed* the entries that were ever trimmed or deleted.
    When the first entry lies behind the position, every entry up to it is gone, so ``removed - n``
    entries after it are gone too. That is exact, unless some of these were deleted by name, on
    purpose perhaps; then it is the most.

    Without an exact rank, entries are missed when the one that was to come next is gone, or when
    more are gone than there were when the stream had not yet come to the position.
    """
    if not figures.exists or figures.added < 0 or not figures.begins_behind(position.id):
        return None
    sure = figures.max_deleted <= position.id
    seen = position.seen
    if not sure and seen is not None and seen.first is not None and figures.oldest == seen.first:
        return None  # trimming takes the oldest first; what is missing was deleted by name
    if position.next is not None:
        sure = False
        least = position.n if position.n >= 0 or seen is None else seen.removed
        gone = figures.removed - least if figures.begins_behind(position.next) else 0
    elif position.n >= 0:
        gone = figures.removed - position.n
    elif seen is not None and seen.last <= position.id:
        sure = False
        gone = figures.removed - seen.added
    else:
        return None
    if gone <= 0:
        return None
    return Loss(gone, _removed_text(key, position.id, gone, figures, sure))


def removed_amid(key: str, position: Position, gone: int, figures: Figures) -> Loss | None:
    """Return what was trimmed behind an entry that lives, as ``XTRIM ... ACKED`` does.

    Args:
        gone: how many of the entries that were ever added after the position are missing.
    """
    if gone <= 0 or position.n < 0 or figures.max_deleted > position.id:
        return None  # deleted by name: on purpose
    return Loss(gone, _removed_text(key, position.id, gone, figures, sure=True))


def _removed_text(key: str, place: StreamID, gone: int, figures: Figures, sure: bool) -> str:
    deleted = " (some may have been deleted on purpose)" if figures.max_deleted > place else ""
    left = f"the first one left is {format_id(figures.first)}" if figures.length else "none is left"
    return (
        f"stream {key}: {'' if sure else 'up to '}{gone} entries after {format_id(place)} were "
        f"removed before they were read{deleted}; {left}"
    )
