"""What is remembered of deletions, so that nothing that they removed comes back."""

from __future__ import annotations

from typing import Final

from headrace.storage.vectors import ID, Dot, Numbers, covers

DEL: Final = 0
EXPIRE: Final = 1


class Removal:
    """The key was deleted, or it has expired.

    A deletion takes away all groups that its maker had not seen to be made after it. An expiry
    takes away the groups that its maker had seen.

    Attributes:
        kind: ``DEL`` or ``EXPIRE``.
        dot: the record that says so.
        numbers: what its maker knew.
    """

    def __init__(self, kind: int, dot: Dot, numbers: Numbers) -> None:
        self.kind: Final = kind
        self.dot: Final = dot
        self.numbers: Final = numbers

    def has_seen(self, dot: Dot) -> bool:
        """Return whether its maker knew a record."""
        return covers(self.numbers, dot)


class Top:
    """New entries get IDs above this one: XSETID.

    Attributes:
        dot: the record that says so.
        entry_id: the ID.
    """

    def __init__(self, dot: Dot, entry_id: ID) -> None:
        self.dot: Final = dot
        self.entry_id: Final = entry_id


class Tombstone:
    """A group was destroyed.

    Attributes:
        dot: the record that says so.
        numbers: what its maker knew.
    """

    def __init__(self, dot: Dot, numbers: Numbers) -> None:
        self.dot: Final = dot
        self.numbers: Final = numbers


class Awaited:
    """An entry is to be removed once another one, which says the same, has come.

    Attributes:
        winner_lane, winner_id: the entry that is to come.
        lane, entry_id: the entry that is to be removed then.
    """

    def __init__(self, winner_lane: bytes, winner_id: ID, lane: bytes, entry_id: ID) -> None:
        self.winner_lane: Final = winner_lane
        self.winner_id: Final = winner_id
        self.lane: Final = lane
        self.entry_id: Final = entry_id
