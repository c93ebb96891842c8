"""The keys of one database with what belongs to each, and how a key is found by its name.

Keys stand in slots, numbered from 0 without a gap. A page holds 1,024 of them: their stamps, and
in groups of 32 their keys and values. Deadlines take room only in pages where a key has one, and so
do the marks of a freezing.

**Folding.** In a table of many keys, those that were not used for a while are folded: the keys of a
group with those of its values that are small become one ``bytes`` (``storage.folded``). What is
changed later, or may be written into, stands beside it as an object, and is folded again. ``read``
and ``hold`` return the value in the table, which stays that until the next ``fold_some``. So that
is called where no command is at work.

**Deadlines.** Each page knows a moment before which none of its keys expires, and the table knows
the least of these. A search for due keys looks only at pages that may have one, in a microsecond or
two each. No object stands for a deadline.

**Stamps.** A stamp says how a key is used: when it was last asked for, or what a ``Usage`` makes of
that. **Sizes** of keys, each as it was found last, and their sum are kept while they are wanted.
A caller that changes a value notes its key, and ``settle`` looks at it again.

**The index.** A cell of 64 bits has the hash of a key and its slot::

    bit    63   31..62   0..30
           0    hash     slot + 1, or 0 for an empty cell

Cells stand in segments of up to 2,048. The upper bits of a hash name the segment, by way of the
directory; the lower bits are the place where the search in it begins. It goes from cell to cell, up
to an empty one. A segment that is three quarters full is split by the next bit of the hashes, which
stand in the cells: no key is looked at. So an index grows by one segment at a time, and there is
no moment at which all is moved::

    directory   00 ──┐
                01 ──┴─ segment of depth 1: hashes that begin with 0
                10 ──── segment of depth 2: hashes that begin with 10
                11 ──── segment of depth 2: hashes that begin with 11

Uncompiled, a dict does all this faster.
"""

from __future__ import annotations

from types import FunctionType
from typing import Final

from librt.vecs import append, pop, vec
from mypy_extensions import i64, mypyc_attr, u8

from headrace.storage.faces import cost_of
from headrace.storage.folded import GROUP, is_key, touch_object
from headrace.storage.folded import touch as touch_folded
from headrace.storage.folded import value_at as folded_value
from headrace.storage.key_page import (
    ALL_FOLDED,
    GROUP_BITS,
    GROUPS,
    HAS_DEADLINE,
    NEVER_MS,
    PAGE,
    PAGE_BITS,
    WITHIN_GROUP,
    WITHIN_PAGE,
    Page,
    Usage,
)
from headrace.storage.packed.table import hash_of, new_seed
from headrace.storage.value import Freeable, Value

NO_EXPIRY: Final[i64] = -1
NO_SLOT: Final[i64] = -1
MOST_AHEAD: Final = 32  # keys that ``look_ahead`` takes at once, at most

_PAGES_AT_ONCE: Final[i64] = 64  # that are looked at for deadlines
_SLOT_BITS: Final[i64] = 31
_SLOT_MASK: Final[i64] = 0x7FFFFFFF
_SCATTERED: Final[i64] = 4096  # keys: with their values they outgrow the caches of a core
_FIRST_CELLS: Final[i64] = 16
_MOST_CELLS: Final[i64] = 2048  # of a segment, unless its hashes begin with too many equal bits
_MOST_DEPTH: Final[i64] = 21
_HASH_BITS: Final[i64] = 32  # as ``hash_of`` gives them
_LATEST: Final[i64] = 0x1FFFFFFFFFFFFFFF  # ms of an access, or the greatest usage
_HOT_MS: Final[i64] = 1000  # a string that is read twice within that becomes an object
_QUIET_MS: Final[i64] = 10_000
_LOOKS_FOR_A_KEY: Final[i64] = 16  # folding a key takes as long as so many looks at a group
_NO_KEY: Final = bytes(bytearray(b"no key"))  # an object that no request has


@mypyc_attr(acyclic=True)
class _Segment:
    """Cells of all keys whose hashes begin with the same ``depth`` bits; ``count`` are in use."""

    def __init__(self, size: i64, depth: i64) -> None:
        self.cells = vec[i64]([0] * size)
        self.count: i64 = 0
        self.depth: i64 = depth

    def place(self, cell: i64) -> None:
        """Put in a cell, for which there is room."""
        cells = self.cells
        mask: i64 = len(cells) - 1
        at = (cell >> _SLOT_BITS) & mask
        while cells[at] != 0:
            at = (at + 1) & mask
        cells[at] = cell
        self.count += 1

    def take_out(self, cell: i64) -> None:
        """Empty a cell that is there; those behind it move up, so that a search finds them."""
        cells = self.cells
        mask: i64 = len(cells) - 1
        hole = self._place_of(cell)
        at = hole
        while True:
            at = (at + 1) & mask
            other = cells[at]
            if other == 0:
                break
            home = (other >> _SLOT_BITS) & mask
            if (at - home) & mask >= (at - hole) & mask:
                cells[hole] = other
                hole = at
        cells[hole] = 0
        self.count -= 1

    def exchange(self, cell: i64, by: i64) -> None:
        """Put another cell of the same hash in the place of one."""
        self.cells[self._place_of(cell)] = by

    def _place_of(self, cell: i64) -> i64:
        cells = self.cells
        mask: i64 = len(cells) - 1
        at = (cell >> _SLOT_BITS) & mask
        while cells[at] != cell:
            assert cells[at] != 0, "the index has lost a key"
            at = (at + 1) & mask
        return at

    def resize(self, size: i64) -> None:
        """Have so many cells, enough for those in use."""
        old = self.cells
        self.cells = vec[i64]([0] * size)
        self.count = 0
        at: i64 = 0
        end: i64 = len(old)
        while at < end:
            if old[at] != 0:
                self.place(old[at])
            at += 1


class KeyTable:
    """The keys of a database; ``usage`` is what is remembered of accesses, None: their time.

    Invariants: ``find`` of the key in each slot is that slot; what stands behind the last slot in
    its page is None; ``_pages`` has no more pages than that takes.

    Attributes:
        sized: their sizes are kept; ``bytes`` is the sum, ``unsized`` how many are missing in it.
        lasting: how many of those in the sum are among the last to be evicted.
        due_ms: no deadline is before that, but of keys that ``take_due`` has returned.
        folds: keys may be folded, where there are ``fold_from`` and more.
        quiet_ms: for so long a key must not have been used.
    """

    def __init__(self, usage: Usage | None = None, folds: bool = False) -> None:
        self.count: i64 = 0
        self.usage = usage
        self.sized = False
        self.bytes: i64 = 0
        self.unsized: i64 = 0
        self.lasting: i64 = 0
        self.due_ms: i64 = NEVER_MS
        self._due_page: i64 = 0  # pages before it were looked at in this round
        self.folds = folds
        self.fold_from: i64 = _SCATTERED
        self.quiet_ms: i64 = _QUIET_MS
        self._full: i64 = 0  # groups before it have been full, and were folded then
        self._fold_at: i64 = 0  # groups before it were looked at in this round
        self._round_ms: i64 = 0  # when it began
        self._noted: dict[bytes, None] = {}  # keys to be looked at again
        self._sizing_at: i64 = 0  # keys from here on have been looked at in this round
        self._again_at: i64 = 0  # likewise, once more
        self._pages = vec[Page]()
        self._seed: Final[i64] = new_seed()
        self._depth: i64 = 0  # bits of a hash that name a place in the directory
        self._directory = append(vec[_Segment](), _Segment(_FIRST_CELLS, 0))
        self._by_name: dict[bytes, int] = {}  # uncompiled, in place of the index
        self._found_key = _NO_KEY  # the key that was found last, and where
        self._found_slot: i64 = NO_SLOT
        self._marks_ahead = vec[i64]([0] * MOST_AHEAD)  # hashes of keys
        self._slots_ahead = vec[i64]([0] * MOST_AHEAD)

    # Looking

    def find(self, key: bytes) -> i64:
        """Return the slot of a key; ``NO_SLOT`` if it is not there."""
        if key is self._found_key:
            return self._found_slot
        if not COMPILED:
            return self._by_name.get(key, NO_SLOT)
        return self._search(key, hash_of(key, 0, len(key), self._seed))

    def _search(self, key: bytes, mark: i64) -> i64:
        cells = self._directory[mark >> (_HASH_BITS - self._depth)].cells
        mask: i64 = len(cells) - 1
        at = mark & mask
        while True:
            cell = cells[at]
            if cell >> _SLOT_BITS == mark:
                slot = (cell & _SLOT_MASK) - 1
                if slot < 0:  # an empty cell, and a hash of 0
                    return NO_SLOT
                page = self._pages[slot >> PAGE_BITS]
                group = (slot & WITHIN_PAGE) >> GROUP_BITS
                name = page.items[group][(slot & WITHIN_GROUP) << 1]
                if isinstance(name, bytes):
                    is_found = name == key
                else:
                    is_found = is_key(page.pieces[group], slot & WITHIN_GROUP, key)
                if is_found:
                    self._found_key = key
                    self._found_slot = slot
                    return slot
            elif cell == 0:
                return NO_SLOT
            at = (at + 1) & mask

    def read(self, key: bytes, now_ms: i64, touch: bool) -> object | None:
        """Return the value of a key that has not expired, or None; ``touch`` notes an access."""
        slot = self.find(key)
        if slot < 0:
            return None
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        stamp = page.stamps[place]
        if stamp & HAS_DEADLINE and page.deadlines[place] < now_ms:
            return None
        if touch:
            if self.usage is None:
                page.stamps[place] = _stamped(stamp, now_ms)
            else:
                self.touch(slot, now_ms)
        value = page.items[place >> GROUP_BITS][((slot & WITHIN_GROUP) << 1) + 1]
        if value is None:
            is_hot = touch and self.usage is None and now_ms - (stamp >> 1) < _HOT_MS
            return self._held(page, place, is_hot)
        return value

    def is_scattered(self) -> bool:
        """Return whether so many keys are in no cache, and ``look_ahead`` pays."""
        return COMPILED and self.count > _SCATTERED

    def look_ahead(self, requests: list[list[bytes]], at: i64, end: i64, word: i64 = 1) -> None:
        """Have the processor fetch what up to ``MOST_AHEAD`` keys and their values need, at once.

        The keys are the same ``word`` of the requests; ``find_ahead`` finds them one by one. Each
        loop is so short that the processor waits for what several rounds need at once.
        """
        marks = self._marks_ahead
        slots = self._slots_ahead
        count: i64 = end - at
        shift = _HASH_BITS - self._depth
        number: i64 = 0
        while number < count:
            key = requests[at + number][word]
            marks[number] = hash_of(key, 0, len(key), self._seed)
            number += 1
        number = 0
        while number < count:
            mark = marks[number]
            cells = self._directory[mark >> shift].cells
            cell = cells[mark & (i64(len(cells)) - 1)]
            slots[number] = (cell & _SLOT_MASK) - 1 if cell >> _SLOT_BITS == mark else NO_SLOT
            number += 1
        number = 0
        while number < count:
            slot = slots[number]
            if slot >= 0:
                page = self._pages[slot >> PAGE_BITS]
                group = (slot & WITHIN_PAGE) >> GROUP_BITS
                name = page.items[group][(slot & WITHIN_GROUP) << 1]
                value = page.items[group][((slot & WITHIN_GROUP) << 1) + 1]
                seen = page.stamps[slot & WITHIN_PAGE]
                if isinstance(name, bytes):
                    seen += i64(len(name))
                else:
                    seen += touch_folded(page.pieces[group], slot & WITHIN_GROUP)
                if value is not None:
                    seen += i64(len(value)) if isinstance(value, bytes) else touch_object(value)
                slots[number] = seen
            number += 1

    def find_ahead(self, key: bytes, number: i64) -> None:
        """Find a key that ``look_ahead`` was shown, as the one of this number; ``find`` is next."""
        if key is not self._found_key:
            self._search(key, self._marks_ahead[number])

    def key_at(self, slot: i64) -> bytes:
        """Return the key in a slot."""
        return self._pages[slot >> PAGE_BITS].key(slot & WITHIN_PAGE)

    def value_at(self, slot: i64) -> object:
        """Return the value in a slot, to be looked at; see ``hold``."""
        return self._pages[slot >> PAGE_BITS].value(slot & WITHIN_PAGE)

    def hold(self, slot: i64) -> object:
        """Return the value in a slot, which may be written into."""
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        value = page.items[place >> GROUP_BITS][((slot & WITHIN_GROUP) << 1) + 1]
        return self._held(page, place, False) if value is None else value

    def _held(self, page: Page, place: i64, is_hot: bool) -> object:
        """Return a folded value; one that is hot, or may be written into, is taken out."""
        value = folded_value(page.pieces[place >> GROUP_BITS], place & WITHIN_GROUP)
        if is_hot or not isinstance(value, (bytes, int)):
            page.take_out(place, value)
        return value

    def usage_of(self, slot: i64) -> i64:
        """Return when a key was last asked for, in ms since 1970, or what ``usage`` made of it."""
        return self._pages[slot >> PAGE_BITS].stamps[slot & WITHIN_PAGE] >> 1

    def deadline_ms(self, slot: i64) -> i64:
        """Return the deadline of a key, or ``NO_EXPIRY``."""
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        return page.deadlines[place] if page.stamps[place] & HAS_DEADLINE else NO_EXPIRY

    # Changing

    def add(self, key: bytes, value: object, now_ms: i64) -> i64:
        """Give a key that is not there the last slot; return that."""
        slot = self.count
        place = slot & WITHIN_PAGE
        if place == 0:
            self._pages = append(self._pages, Page())
        page = self._pages[slot >> PAGE_BITS]
        at = (slot & WITHIN_GROUP) << 1
        if at == 0:
            page.begin(place)
        items = page.open(place)
        items[at] = key
        items[at + 1] = value
        usage = self.usage
        page.stamps[place] = _stamped(0, now_ms if usage is None else usage.of_new(now_ms))
        self.count = slot + 1
        if self.sized:
            self._add_unsized(page, place)
        if COMPILED:
            self._index(hash_of(key, 0, len(key), self._seed), slot)
        else:
            self._by_name[key] = slot
        return slot

    def remove(self, slot: i64) -> object:
        """Take out a key and return its value. The key in the last slot gets its slot."""
        self._found_key = _NO_KEY
        last = self.count - 1
        key = self.key_at(slot)
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        value = self.value_at(slot)
        self._leave_index(key, slot)
        if self.sized:
            self._forget_size(slot, last)
        source = self._pages[last >> PAGE_BITS]
        source_place = last & WITHIN_PAGE
        if slot != last:
            moved = self.key_at(last)
            self._move_in_index(moved, last, slot)
            items = page.open(place)
            items[(slot & WITHIN_GROUP) << 1] = moved
            items[((slot & WITHIN_GROUP) << 1) + 1] = source.value(source_place)
            page.stamps[place] = source.stamps[source_place]
            if source.stamps[source_place] & HAS_DEADLINE:
                page.put_deadline(place, source.deadlines[source_place])
            if source.marked_by >= page.marked_by and self.is_marked(last, source.marked_by):
                self.mark(slot, source.marked_by)
            elif len(page.marks):
                page.marks[place] = 0
        self._drop(last)
        if len(source.marks):
            source.marks[source_place] = 0
        self.count = last
        if source_place == 0:
            self._pages, _ = pop(self._pages)
        return value

    def replace(self, slot: i64, value: object, now_ms: i64) -> None:
        """Give a key another value, and note an access."""
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        old = self.value_at(slot) if self.sized else None
        items = page.items[place >> GROUP_BITS]
        at = ((place & WITHIN_GROUP) << 1) + 1
        if items[at] is None:
            page.take_out(place, value)
        else:
            items[at] = value
        if old is not None:
            self._resize(page, place, slot, old, value)
        stamp = page.stamps[place]
        usage = self.usage
        if usage is not None:
            now_ms = usage.of_replaced(stamp >> 1, now_ms)
        page.stamps[place] = _stamped(stamp, now_ms)

    def touch(self, slot: i64, now_ms: i64) -> None:
        """Note an access."""
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        stamp = page.stamps[place]
        usage = self.usage
        if usage is not None:
            now_ms = usage.of_asked(stamp >> 1, now_ms)
        page.stamps[place] = _stamped(stamp, now_ms)

    def use(self, slot: i64, usage: i64) -> None:
        """Set the stamp that says how a key is used."""
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        page.stamps[place] = _stamped(page.stamps[place], usage)

    def expire_at(self, slot: i64, deadline_ms: i64) -> None:
        """Give a key a deadline, or with ``NO_EXPIRY`` none."""
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        if deadline_ms == NO_EXPIRY:
            page.stamps[place] &= ~HAS_DEADLINE
        else:
            page.stamps[place] |= HAS_DEADLINE
            page.put_deadline(place, deadline_ms)
            self.due_ms = min(self.due_ms, deadline_ms)

    def take_due(self, now_ms: i64, most: int) -> list[bytes]:
        """Return keys whose deadlines are over, which the caller takes out: ``most`` or some more.

        One that stays is not returned again, unless it gets another slot or deadline. While
        ``due_ms`` is before ``now_ms``, there may be more.
        """
        found: list[bytes] = []
        looks = _PAGES_AT_ONCE
        pages: i64 = len(self._pages)
        at = self._due_page
        while at < pages and looks > 0 and len(found) < most:
            page = self._pages[at]
            if page.due_ms < now_ms:
                looks -= 1
                page.take_due(self._end_of(at), now_ms, found)
            at += 1
        self._due_page = at
        if at >= pages:
            self._due_page = 0
            self.due_ms = NEVER_MS
            for page in self._pages:
                self.due_ms = min(self.due_ms, page.due_ms)
        return found

    def first_due(self) -> i64:
        """Return the slot of the key with the first deadline; ``NO_SLOT`` where none has one."""
        while True:
            best: i64 = NO_SLOT
            best_ms = NEVER_MS
            number: i64 = 0
            while number < i64(len(self._pages)):
                if self._pages[number].due_ms < best_ms:
                    best = number
                    best_ms = self._pages[number].due_ms
                number += 1
            if best < 0:
                return NO_SLOT
            page = self._pages[best]
            place = page.first_due(self._end_of(best))
            if place >= 0 and page.due_ms <= best_ms:
                return (best << PAGE_BITS) + place

    def _end_of(self, number: i64) -> i64:
        return min(self.count - (number << PAGE_BITS), PAGE)

    def next_with_deadline(self, slot: i64) -> i64:
        """Return the next slot with a deadline, from one on and round again, or ``NO_SLOT``."""
        left: i64 = len(self._pages)
        while left >= 0:
            page = self._pages[slot >> PAGE_BITS]
            end = min(self.count, (slot | WITHIN_PAGE) + 1)
            while slot < end and len(page.deadlines):
                if page.stamps[slot & WITHIN_PAGE] & HAS_DEADLINE:
                    return slot
                slot += 1
            slot = end if end < self.count else 0
            left -= 1
        return NO_SLOT

    # Another table that has some of the keys

    def lead(self, slot: i64, other: KeyTable, there: i64) -> None:
        """Record which slot the same key has in another table; both share the key's object then."""
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        if not len(page.leads):
            page.leads = vec[i64]([0] * PAGE)
        page.leads[place] = there
        key = page.key(place)
        page.open(place)[(slot & WITHIN_GROUP) << 1] = key
        items = other._pages[there >> PAGE_BITS].open(there & WITHIN_PAGE)
        items[(there & WITHIN_GROUP) << 1] = key

    def value_in(self, other: KeyTable, key: bytes) -> object | None:
        """Return what another table holds for a key, without a search there; None: not known.

        What ``lead`` recorded may be outdated: it is true where that slot has the key's object.
        """
        slot = self._found_slot if key is self._found_key else self.find(key)
        if slot < 0:
            return None
        page = self._pages[slot >> PAGE_BITS]
        if not len(page.leads):
            return None
        place = slot & WITHIN_PAGE
        there = page.leads[place]
        if there >= other.count:
            return None
        name = page.items[place >> GROUP_BITS][(slot & WITHIN_GROUP) << 1]
        items = other._pages[there >> PAGE_BITS].items[(there & WITHIN_PAGE) >> GROUP_BITS]
        at = (there & WITHIN_GROUP) << 1
        return items[at + 1] if name is not None and items[at] is name else None

    # Sizes

    def keep_sizes(self, kept: bool) -> None:
        """Keep sizes from now on, or no more. Complexity: O(pages)."""
        self.sized = kept
        self.bytes = 0
        self.lasting = 0
        self.unsized = self.count if kept else 0
        self._noted = {}
        self._sizing_at = 0
        for page in self._pages:
            page.sizes = vec[i64]([0] * PAGE) if kept else vec[i64]()

    def note(self, key: bytes) -> None:
        """Note a key because the current command may change what it takes."""
        self._noted[key] = None

    def settle(self) -> None:
        """Look again at the keys that were noted."""
        noted = self._noted
        if noted:
            self._noted = {}
            for key in noted:
                slot = self.find(key)
                if slot >= 0:
                    self._size(slot)

    def size_some(self, most: i64) -> bool:
        """Find the size of keys not yet looked at, from last to first; True where more are left."""
        at = min(self._sizing_at, self.count)
        while self.unsized > 0 and most > 0:
            if at == 0:
                at = self.count
            at -= 1
            most -= 1
            if self._pages[at >> PAGE_BITS].sizes[at & WITHIN_PAGE] == 0:
                self._size(at)
        self._sizing_at = at
        return self.unsized > 0

    def size_again(self, most: i64) -> None:
        """Look at some keys again, because parts of values may have expired without a note."""
        at = min(self._again_at, self.count)
        most = min(most, self.count)
        while most > 0:
            if at == 0:
                at = self.count
            at -= 1
            most -= 1
            self._size(at)
        self._again_at = at

    def all_bytes(self, most: i64) -> i64:
        """Return what all keys take in bytes, found now; ``most`` of them stand for the rest."""
        looked_at = min(self.count, most)
        total: i64 = 0
        number: i64 = 0
        while number < looked_at:
            total += self.bytes_at(number * self.count // looked_at)
            number += 1
        return total if looked_at == self.count else total // looked_at * self.count

    def bytes_at(self, slot: i64) -> i64:
        """Return what a key takes in bytes, found now."""
        return self._cost(slot, self.value_at(slot))

    def _cost(self, slot: i64, value: object) -> i64:
        return cost_of(self.key_at(slot), value, self.deadline_ms(slot) != NO_EXPIRY)

    def _size(self, slot: i64) -> None:
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        value = self.value_at(slot)
        size = self._cost(slot, value)
        lasting: i64 = 0
        if isinstance(value, Value) and value.is_lasting():
            lasting = 1
        before = page.sizes[place]
        if before == 0:
            self.unsized -= 1
        self.bytes += size - (before >> 1)
        self.lasting += lasting - (before & 1)
        page.sizes[place] = size << 1 | lasting

    def _resize(self, page: Page, place: i64, slot: i64, old: object, value: object) -> None:
        """Correct the size of a key that has another value: of strings by the length alone."""
        if isinstance(old, bytes) and isinstance(value, bytes) and page.sizes[place] != 0:
            more = i64(len(value)) - i64(len(old))
            self.bytes += more
            page.sizes[place] += more << 1
        else:
            self._size(slot)

    def _add_unsized(self, page: Page, place: i64) -> None:
        if not len(page.sizes):
            page.sizes = vec[i64]([0] * PAGE)
        page.sizes[place] = 0
        self.unsized += 1

    def _forget_size(self, slot: i64, last: i64) -> None:
        """Forget the size in a slot, which the key in the last slot is about to get."""
        page = self._pages[slot >> PAGE_BITS]
        place = slot & WITHIN_PAGE
        size = page.sizes[place]
        if size == 0:
            self.unsized -= 1
        self.bytes -= size >> 1
        self.lasting -= size & 1
        page.sizes[place] = self._pages[last >> PAGE_BITS].sizes[last & WITHIN_PAGE]

    # Freezing

    def is_marked(self, slot: i64, epoch: i64) -> bool:
        """Return whether this freezing has taken the key, or the key was made since its start."""
        page = self._pages[slot >> PAGE_BITS]
        if page.marked_by != epoch or not len(page.marks):
            return False
        return page.marks[slot & WITHIN_PAGE] != 0

    def mark(self, slot: i64, epoch: i64) -> None:
        """Have ``is_marked`` return True for a slot."""
        page = self._pages[slot >> PAGE_BITS]
        if page.marked_by != epoch or not len(page.marks):
            page.marks = vec[u8]([0] * PAGE)
            page.marked_by = epoch
        page.marks[slot & WITHIN_PAGE] = 1

    # Freeing

    def free_some(self, most: int, unused: list[Freeable]) -> bool:
        """Free up to ``most`` keys of a table that is no longer used; True at the end.

        ``unused`` takes values that are to be freed in slices themselves.
        """
        self._found_key = _NO_KEY
        self._by_name = {}
        left: i64 = most
        while left > 0 and self.count > 0:
            left -= 1
            slot = self.count - 1
            page = self._pages[slot >> PAGE_BITS]
            items = page.items[(slot & WITHIN_PAGE) >> GROUP_BITS]
            value = items[((slot & WITHIN_GROUP) << 1) + 1]
            if isinstance(value, Value) and value.effort():
                unused.append(value)
            self._drop(slot)
            self.count = slot
            if slot & WITHIN_PAGE == 0:
                self._pages, _ = pop(self._pages)
                if len(self._directory) > 1:
                    self._directory, _ = pop(self._directory)
        return self.count == 0

    def _drop(self, slot: i64) -> None:
        page = self._pages[slot >> PAGE_BITS]
        items = page.items[(slot & WITHIN_PAGE) >> GROUP_BITS]
        at = (slot & WITHIN_GROUP) << 1
        if at == 0:
            page.begin(slot & WITHIN_PAGE)
        elif items is not ALL_FOLDED:
            items[at] = None
            items[at + 1] = None

    # Folding

    def fold_some(self, now_ms: i64, most: i64) -> bool:
        """Fold some of the groups that have become full, or were not used for a while.

        Those that have become full are folded at once, so that the objects of new keys make room
        for each other. All are looked at again in a round that begins every ``quiet_ms``.
        About ``most`` keys are folded. Returns: False where there is more to do now.
        """
        groups = self.count >> GROUP_BITS  # the last one, if not full, is in use
        if not self.folds or self.count < self.fold_from:
            return True
        looks = _LOOKS_FOR_A_KEY * most
        full = min(self._full, groups)
        while full < groups and looks > 0:
            page = self._pages[full // GROUPS]
            looks -= 1 + self._fold(page, full % GROUPS)
            full += 1
        self._full = full
        if looks <= 0:
            return False
        at = min(self._fold_at, groups)
        if at == 0:
            if 0 <= now_ms - self._round_ms < self.quiet_ms:
                return True
            self._round_ms = now_ms
        while at < groups and looks > 0:
            page = self._pages[at // GROUPS]
            group = at % GROUPS
            looks -= 1
            if page.items[group] is not ALL_FOLDED:
                looks -= GROUP
                if self.usage is not None or page.is_quiet(group, now_ms - self.quiet_ms):
                    looks -= self._fold(page, group)
            at += 1
        self._fold_at = 0 if at == groups else at
        return at == groups

    def fold_last_page(self, slot: i64) -> None:
        """Fold the page before the one that begins with this slot; its keys are not in use."""
        if self.folds and slot >= self.fold_from and not slot & WITHIN_PAGE:
            group: i64 = 0
            while group < GROUPS:
                self._fold(self._pages[(slot >> PAGE_BITS) - 1], group)
                group += 1

    def _fold(self, page: Page, group: i64) -> i64:
        """Fold what can be folded of a group; return the effort, in looks at a group."""
        if not page.can_fold(group):
            return 0
        page.fold(group)
        return _LOOKS_FOR_A_KEY * GROUP

    # The index

    def index_bytes(self) -> int:
        """Return how much memory the index takes, besides some bytes for each segment."""
        size: i64 = 8 * i64(len(self._directory))
        at: i64 = 0
        end: i64 = len(self._directory)
        while at < end:
            segment = self._directory[at]
            size += 8 * i64(len(segment.cells))
            at += self._span(segment.depth)
        return int(size)

    def _index(self, mark: i64, slot: i64) -> None:
        segment = self._directory[mark >> (_HASH_BITS - self._depth)]
        while 4 * segment.count + 4 > 3 * i64(len(segment.cells)):
            self._grow(segment, mark)
            segment = self._directory[mark >> (_HASH_BITS - self._depth)]
        segment.place(mark << _SLOT_BITS | slot + 1)

    def _leave_index(self, key: bytes, slot: i64) -> None:
        if not COMPILED:
            del self._by_name[key]
            return
        mark = hash_of(key, 0, len(key), self._seed)
        segment = self._directory[mark >> (_HASH_BITS - self._depth)]
        segment.take_out(mark << _SLOT_BITS | slot + 1)
        if 8 * segment.count < i64(len(segment.cells)) and len(segment.cells) > _FIRST_CELLS:
            self._shrink(segment, mark)

    def _move_in_index(self, key: bytes, slot: i64, target: i64) -> None:
        if not COMPILED:
            self._by_name[key] = int(target)
            return
        mark = hash_of(key, 0, len(key), self._seed)
        segment = self._directory[mark >> (_HASH_BITS - self._depth)]
        segment.exchange(mark << _SLOT_BITS | slot + 1, mark << _SLOT_BITS | target + 1)

    def _grow(self, segment: _Segment, mark: i64) -> None:
        if len(segment.cells) < _MOST_CELLS or segment.depth >= _MOST_DEPTH:
            segment.resize(2 * i64(len(segment.cells)))
            return
        if segment.depth == self._depth:
            directory = vec[_Segment]()
            for each in self._directory:
                directory = append(directory, each)
                directory = append(directory, each)
            self._directory = directory
            self._depth += 1
        depth = segment.depth + 1
        low = _Segment(_MOST_CELLS, depth)
        high = _Segment(_MOST_CELLS, depth)
        shift = _SLOT_BITS + _HASH_BITS - depth
        for cell in segment.cells:
            if (cell >> shift) & 1:
                high.place(cell)
            elif cell != 0:
                low.place(cell)
        self._assign(mark >> (_HASH_BITS - depth + 1) << 1, depth, low)
        self._assign(mark >> (_HASH_BITS - depth + 1) << 1 | 1, depth, high)

    def _shrink(self, segment: _Segment, mark: i64) -> None:
        """Join the segment of a hash, which is nearly empty, with its other half if that fits."""
        depth = segment.depth
        if depth == 0 or len(segment.cells) > _MOST_CELLS:
            segment.resize(i64(len(segment.cells)) >> 1)
            return
        shift = _HASH_BITS - depth
        place = ((mark >> shift) ^ 1) << (self._depth - depth)
        other = self._directory[place]
        if other.depth != depth or 2 * (segment.count + other.count) > i64(len(other.cells)):
            return
        for cell in segment.cells:
            if cell != 0:
                other.place(cell)
        other.depth = depth - 1
        self._assign(mark >> (shift + 1), depth - 1, other)

    def _span(self, depth: i64) -> i64:
        span: i64 = 1
        while depth < self._depth:
            span += span
            depth += 1
        return span

    def _assign(self, prefix: i64, depth: i64, segment: _Segment) -> None:
        """Have a segment found by all hashes that begin with the ``depth`` bits of ``prefix``."""
        at = prefix << (self._depth - depth)
        end = (prefix + 1) << (self._depth - depth)
        while at < end:
            self._directory[at] = segment
            at += 1


def _stamped(stamp: i64, usage: i64) -> i64:
    return min(usage, _LATEST) << 1 | stamp & HAS_DEADLINE


COMPILED: Final = not isinstance(KeyTable.find, FunctionType)
