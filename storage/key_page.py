"""A page: 1,024 slots of a key table, with all that belongs to each of their keys.

Slots stand in groups of 32. Of each group, key and value of each slot are objects in a list, or
they are folded: then they stand in one ``bytes`` (``storage.folded``), and None in the list. A
place is the number of a slot in its page.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from librt.vecs import vec
from mypy_extensions import i64, mypyc_attr, u8

from headrace.storage.folded import GROUP, can_fold, fold
from headrace.storage.folded import key_at as folded_key
from headrace.storage.folded import value_at as folded_value

PAGE: Final = 1024
PAGE_BITS: Final[i64] = 10
WITHIN_PAGE: Final[i64] = 1023
GROUPS: Final = PAGE // GROUP  # of a page
GROUP_BITS: Final[i64] = 5
WITHIN_GROUP: Final[i64] = 31
ALL_FOLDED: Final[list[object]] = [None] * (2 * GROUP)  # never written to
HAS_DEADLINE: Final[i64] = 1  # of a stamp: the key has one; the other bits say how it is used
NEVER_MS: Final[i64] = 0x7FFFFFFFFFFFFFFF
_NO_PLACE: Final[i64] = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class Usage:
    """A measure of how a key is used other than the time of the last access: 0 to 2**61 - 1."""

    @abstractmethod
    def of_new(self, now_ms: i64) -> i64:
        """Return the usage of a key which has just come."""

    @abstractmethod
    def of_asked(self, usage: i64, now_ms: i64) -> i64:
        """Return the usage of a key which is asked for."""

    @abstractmethod
    def of_replaced(self, usage: i64, now_ms: i64) -> i64:
        """Return the usage of a key which gets another value."""


@mypyc_attr(acyclic=True)
class Page:
    """The keys of 1,024 slots.

    Attributes:
        items: of each group, key and value of each slot; None: it stands in the group's piece.
        pieces: of each group what was folded; empty if nothing was.
        stamps: of each, twice its usage, and 1 more if it has a deadline.
        deadlines: where a stamp says so; empty until one of the keys gets one.
        due_ms: none of the deadlines is before that, but those that ``take_due`` has returned.
        taken_ms: those before it are such.
        marks: 1 for keys that were taken by a freezing, or made after its start; may be empty.
        marked_by: the number of that freezing; to others the marks mean nothing.
        sizes: twice what each key takes, and 1 more if it is among the last to be evicted; 0: not
            looked at yet. Empty while sizes are not kept.
        leads: the slot that each key had in another table, or any number; empty until one has one.
    """

    def __init__(self) -> None:
        self.items: Final[list[list[object]]] = [ALL_FOLDED] * GROUPS
        self.pieces: Final[list[bytes]] = [b""] * GROUPS
        self.stamps = vec[i64]([0] * PAGE)
        self.deadlines = vec[i64]()
        self.due_ms: i64 = NEVER_MS
        self.taken_ms: i64 = 0
        self.marks = vec[u8]()
        self.marked_by: i64 = 0
        self.sizes = vec[i64]()
        self.leads = vec[i64]()

    def open(self, place: i64) -> list[object]:
        """Return the items of the group of a slot, which may be written to."""
        items = self.items[place >> GROUP_BITS]
        if items is ALL_FOLDED:
            items = [None] * (2 * GROUP)
            self.items[place >> GROUP_BITS] = items
        return items

    def begin(self, place: i64) -> None:
        """Forget what the group that begins with a slot had."""
        self.items[place >> GROUP_BITS] = ALL_FOLDED
        self.pieces[place >> GROUP_BITS] = b""

    def key(self, place: i64) -> bytes:
        """Return the key in a slot."""
        name = self.items[place >> GROUP_BITS][(place & WITHIN_GROUP) << 1]
        if isinstance(name, bytes):
            return name
        return folded_key(self.pieces[place >> GROUP_BITS], place & WITHIN_GROUP)

    def value(self, place: i64) -> object:
        """Return its value; a folded one is a new object, which must not be written into."""
        value = self.items[place >> GROUP_BITS][((place & WITHIN_GROUP) << 1) + 1]
        if value is not None:
            return value
        return folded_value(self.pieces[place >> GROUP_BITS], place & WITHIN_GROUP)

    # Folding

    def take_out(self, place: i64, value: object) -> None:
        """Unfold key and value of a slot; ``value`` takes the place of a folded one."""
        items = self.open(place)
        at = (place & WITHIN_GROUP) << 1
        if items[at] is None:
            items[at] = self.key(place)
        items[at + 1] = value

    def is_quiet(self, group: i64, before_ms: i64) -> bool:
        """Return whether all keys of a group were used before a moment, where stamps are times."""
        place = group << GROUP_BITS
        end = place + GROUP
        while place < end:
            if self.stamps[place] >> 1 > before_ms:
                return False
            place += 1
        return True

    def can_fold(self, group: i64) -> bool:
        """Return whether ``fold`` would take anything of a group."""
        items = self.items[group]
        return items is not ALL_FOLDED and can_fold(items)

    def fold(self, group: i64) -> None:
        """Fold what can be folded of a group that is full."""
        items = self.items[group]
        self.pieces[group] = fold(items, self.pieces[group])
        if items.count(None) == 2 * GROUP:
            self.items[group] = ALL_FOLDED

    # Deadlines

    def put_deadline(self, place: i64, deadline_ms: i64) -> None:
        """Note a deadline, which the stamp is to have, too."""
        if not len(self.deadlines):
            self.deadlines = vec[i64]([0] * PAGE)
        self.deadlines[place] = deadline_ms
        self.due_ms = min(self.due_ms, deadline_ms)
        self.taken_ms = min(self.taken_ms, deadline_ms)

    def take_due(self, end: i64, now_ms: i64, found: list[bytes]) -> None:
        """Add the keys of the places before ``end`` whose deadlines are over, each of them once."""
        due_ms = NEVER_MS
        place: i64 = 0
        while place < end:
            if self.stamps[place] & HAS_DEADLINE:
                deadline_ms = self.deadlines[place]
                if deadline_ms >= now_ms:
                    due_ms = min(due_ms, deadline_ms)
                elif deadline_ms >= self.taken_ms:
                    found.append(self.key(place))
            place += 1
        self.due_ms = due_ms
        self.taken_ms = now_ms

    def first_due(self, end: i64) -> i64:
        """Return the place of the first noted deadline before ``end``; less than 0: none."""
        self.due_ms = NEVER_MS
        found = _NO_PLACE
        place: i64 = 0
        while place < end:
            if self.stamps[place] & HAS_DEADLINE and self.deadlines[place] < self.due_ms:
                self.due_ms = self.deadlines[place]
                found = place
            place += 1
        return found
