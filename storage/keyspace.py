"""One database: keys, their values and their expiry times.

Every key stands in a slot of the ``KeyTable``, which finds it by name, so that

- a random key is one slot away;
- SCAN needs no state. Its cursor is a slot number and it walks from the last slot to the first. A
  removed key's slot is filled with the last key, which moves towards slot 0: a key that SCAN has
  not met yet stays in front of it, so whatever is there from the start of a scan to its end is
  returned at least once. A key may be returned twice, a new one may be missed: Redis's promise.

The table knows, too, which keys are due.

The keyspace has no clock: every method that can meet an expired key takes ``now_ms``. A key
has expired when its deadline lies before that, and lives on while it is that. Keys found expired
are removed at once and noted in ``expired``, a list that all databases share and that the caller
drains to report them. Their values go to ``unused``, to be freed without haste.

A value may ask for patience, because its deadline may have been put off elsewhere. Its key is
hidden for so long, and goes before if another value is to have its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from mypy_extensions import i64

from headrace.storage.entry import Barrier, Emptied, Entry, PartDeadlines
from headrace.storage.key_page import Usage
from headrace.storage.key_table import COMPILED, NO_EXPIRY, NO_SLOT, KeyTable
from headrace.storage.value import NO_PART, Expiring, Freeable, Value


class Keyspace:
    """The keys of one database.

    Args:
        index: its number.
        expired: where (index, key) of keys found expired goes, for all databases.
        unused: where their values go, strings left out.
        expiring: what makes parts of values expire, for all databases.

    Attributes:
        keeps_expired: values of keys found expired go to ``expired_values`` instead of ``unused``,
            and they are asked for patience.
        hides: there may be keys that are hidden.
        parts: the keys with parts that expire, where that is to be reported.
        late: (moment, key) of hidden keys that are to be removed then, as a heap.
        own: (moment, key) of keys of a replica that were given deadlines here, as a heap.
        guarded: changes of keys are reported before they happen, to one of the two below.
        freezing: what takes keys as they were before they change, or None.
        sized: what each key takes is kept.
        usage: what is remembered of accesses; see ``KeyTable``.
        frozen_as: the number by which ``freezing`` knows what is in here.
        epoch: the number of the latest freezing.

    Invariants: ``volatile`` counts the keys that have a deadline.
    """

    def __init__(
        self,
        index: int,
        expired: list[tuple[int, bytes]],
        unused: list[Freeable],
        expiring: Expiring,
    ) -> None:
        self.index: Final = index
        self.table = KeyTable(None, COMPILED)
        self.volatile = 0
        self.parts = PartDeadlines()
        self.expired = expired
        self.unused = unused
        self.expiring: Final = expiring
        self.expire_enabled = True  # off while loading: the file itself says what expired
        self.expire_held = False  # during a pause: expired keys are not found, but stay
        self.keeps_expired = False
        self.hides = False
        self.late: list[tuple[int, bytes]] = []
        self.notes_own = False
        self.own: list[tuple[int, bytes]] = []
        self.expired_values: dict[bytes, object] = {}
        self.guarded = False
        self.freezing: Barrier | None = None
        self.sized = False
        self.usage: Usage | None = None
        self.frozen_as = index
        self.epoch: i64 = 0

    def follow(self, other: Keyspace) -> None:
        """Do with keys, of which there are none so far, what another database does."""
        self.expire_enabled = other.expire_enabled
        self.expire_held = other.expire_held
        self.keeps_expired = other.keeps_expired
        self.hides = other.hides
        self.notes_own = other.notes_own
        self.epoch = other.epoch
        if other.freezing is not None:
            other.freezing.include(self)
        if other.sized:
            self.keep_sizes(True)
        self.remember(other.usage)

    def freeze(self, freezing: Barrier | None) -> None:
        """Let ``freezing`` take keys before they change; None: nothing takes them any more."""
        self.freezing = freezing
        self.guarded = self.sized or freezing is not None

    def keep_sizes(self, kept: bool) -> None:
        """Keep what each key takes from now on, or no more."""
        self.sized = kept
        self.guarded = kept or self.freezing is not None
        self.table.keep_sizes(kept)

    def remember(self, usage: Usage | None) -> None:
        """Remember this of accesses from now on; what is there stays as it is."""
        self.usage = usage
        self.table.usage = usage

    def _guard(self, slot: i64) -> None:
        if self.freezing is not None:
            self.freezing.keep(self.table, int(slot), self.frozen_as)
        if self.sized:
            self.table.note(self.table.key_at(slot))

    def __len__(self) -> int:
        return int(self.table.count)

    def __contains__(self, key: bytes) -> bool:
        return self.table.find(key) != NO_SLOT

    def entry(self, key: bytes, now_ms: i64) -> Entry | None:
        """Return the live entry of ``key``, or None; an expired one is removed on the way."""
        value = self.value_of(key, now_ms)
        return None if value is None else Entry(self.table, key, value)

    def value_of(self, key: bytes, now_ms: i64) -> object | None:
        """Return the value of ``key``, or None; counts as no access, and removes an expired key."""
        value = self.table.read(key, now_ms, False)
        if value is None and self.volatile:
            return self._expired_value(key, now_ms)
        return value

    def get(self, key: bytes, now_ms: i64) -> object | None:
        """Return the value of ``key``, or None; counts as an access."""
        value = self.table.read(key, now_ms, True)
        if value is None and self.volatile:
            value = self._expired_value(key, now_ms)
            if value is not None:
                self.table.touch(self.table.find(key), now_ms)
        return value

    def _expired_value(self, key: bytes, now_ms: i64) -> object | None:
        """Return the value of an expired key if expiry is off; else remove it, unless hidden."""
        slot = self.table.find(key)
        if slot == NO_SLOT:
            return None
        if not self.expire_enabled:
            return self.table.hold(slot)
        if not self.hides or not self._is_hidden(slot, now_ms):
            self._expire(key, slot)
        return None

    def lives(self, key: bytes, now_ms: i64) -> bool:
        """Return whether a key is there; an expired one is removed on the way."""
        slot = self.table.find(key)
        if slot == NO_SLOT:
            return False
        deadline_ms = self.table.deadline_ms(slot)
        if deadline_ms == NO_EXPIRY or deadline_ms >= now_ms:
            return True
        return self._expired_value(key, now_ms) is not None

    def peek(self, key: bytes) -> Entry | None:
        """Return the entry of ``key``, expired or not, or None."""
        slot = self.table.find(key)
        return None if slot == NO_SLOT else Entry(self.table, key, self.table.hold(slot))

    def __getitem__(self, key: bytes) -> Entry:
        found = self.peek(key)
        if found is None:
            raise KeyError(key)
        return found

    def names(self) -> list[bytes]:
        """Return all keys, by slot, expired or not."""
        slot: i64 = 0
        found: list[bytes] = []
        while slot < self.table.count:
            found.append(self.table.key_at(slot))
            slot += 1
        return found

    def at(self, slot: i64) -> Entry:
        """Return the entry in a slot below ``len``, to be looked at: its value may be a copy."""
        return Entry(self.table, self.table.key_at(slot), self.table.value_at(slot))

    def every(self) -> Iterator[Entry]:
        """Yield all entries, by slot, expired or not, to be looked at; nothing may change then."""
        slot: i64 = 0
        while slot < self.table.count:
            yield self.at(slot)
            slot += 1

    def hold_expiry(self, held: bool) -> None:
        """Hide keys whose time has come instead of removing them, or remove them again."""
        self.expire_held = held
        self.hides = held or self.keeps_expired

    def keep_expired(self) -> None:
        """Keep the values of keys that are found expired, and ask them for patience."""
        self.keeps_expired = True
        self.hides = True

    def end_held(self, key: bytes, now_ms: i64) -> None:
        """Remove an expired key that is only hidden, because another value is to have its name."""
        if self.value_of(key, now_ms) is None:
            slot = self.table.find(key)
            if slot != NO_SLOT:
                self._expire(key, slot)

    def put(self, key: bytes, value: object, now_ms: i64) -> None:
        """Set the value of ``key``, new or not; a deadline it has stays, unless it has passed."""
        if isinstance(value, Value):
            value.attach(self.expiring)
            self.note_parts(key, value)
        elif self.parts.count():
            self.parts.watch(key, NO_PART)
        if self.hides:
            self.end_held(key, now_ms)
        slot = self.table.find(key)
        if slot == NO_SLOT:
            self._add(key, value, now_ms)
        else:
            if self.guarded:
                self._guard(slot)
            self.table.replace(slot, value, now_ms)

    def _add(self, key: bytes, value: object, now_ms: i64) -> i64:
        slot = self.table.add(key, value, now_ms)
        if self.guarded:
            self._guard_new(slot)
        return slot

    def _guard_new(self, slot: i64) -> None:
        if self.freezing is not None:
            self.table.mark(slot, self.epoch)
        if self.sized:
            self.table.note(self.table.key_at(slot))

    def replace(self, key: bytes, value: object, now_ms: i64) -> None:
        """Set the value of ``key``, which must be there, after ``before_change``."""
        self.table.replace(self.table.find(key), value, now_ms)

    def touch(self, key: bytes, now_ms: i64) -> None:
        """Note an access to ``key``, which must be there."""
        self.table.touch(self.table.find(key), now_ms)

    def use(self, key: bytes, usage: i64) -> None:
        """Set how ``key``, which must be there, is used."""
        self.table.use(self.table.find(key), usage)

    def note_parts(self, key: bytes, value: object) -> None:
        """Note when parts of what ``key`` holds expire."""
        due_ms = value.first_part_ms() if isinstance(value, Value) else NO_PART
        if due_ms != NO_PART or self.parts.count():
            self.parts.watch(key, due_ms)

    def load(self, key: bytes, value: object, expire_ms: i64, now_ms: i64) -> bool:
        """Add a key that a file holds, with its deadline; False when it is there already."""
        if self.table.find(key) != NO_SLOT:
            return False
        slot = self._add(key, value, now_ms)
        self.table.fold_last_page(slot)
        if isinstance(value, Value):
            value.attach(self.expiring)
            self.note_parts(key, value)
        if expire_ms != NO_EXPIRY:
            self.table.expire_at(slot, expire_ms)
            self.volatile += 1
        return True

    def before_change(self, key: bytes) -> None:
        """Report that the value of ``key``, if there is one, is about to be changed in place."""
        if self.guarded:
            slot = self.table.find(key)
            if slot != NO_SLOT:
                self._guard(slot)

    def remove(self, key: bytes) -> object | None:
        """Drop ``key`` with its deadline and return its value, or None when there was none."""
        slot = self.table.find(key)
        return None if slot == NO_SLOT else self._remove(slot)

    def _remove(self, slot: i64) -> object:
        if self.guarded:
            self._guard(slot)
        if self.parts.count():
            self.parts.watch(self.table.key_at(slot), NO_PART)
        if self.volatile and self.table.deadline_ms(slot) != NO_EXPIRY:
            self.volatile -= 1
        return self.table.remove(slot)

    def expire_at(self, key: bytes, deadline_ms: i64) -> None:
        """Give ``key``, which must be there, a deadline in milliseconds since 1970. O(1)."""
        slot = self.table.find(key)
        if self.guarded:
            self._guard(slot)
        before_ms = self.table.deadline_ms(slot)
        if before_ms == NO_EXPIRY:
            self.volatile += 1
        elif before_ms == deadline_ms:
            return
        self.table.expire_at(slot, deadline_ms)
        if self.notes_own and self.expire_enabled:
            heappush(self.own, (int(deadline_ms), key))

    def deadline_ms(self, key: bytes) -> int:
        """Return the deadline of ``key``, or -1 when it has none or is not there."""
        slot = self.table.find(key)
        return -1 if slot == NO_SLOT else int(self.table.deadline_ms(slot))

    def persist(self, key: bytes) -> bool:
        """Take the deadline of ``key`` away; False when it had none."""
        slot = self.table.find(key)
        if slot == NO_SLOT or self.table.deadline_ms(slot) == NO_EXPIRY:
            return False
        if self.guarded:
            self._guard(slot)
        self.table.expire_at(slot, NO_EXPIRY)
        self.volatile -= 1
        return True

    def expire_due(self, now_ms: i64, most: int) -> int:
        """Remove ``most`` keys whose deadline is over, or some more; they join ``expired``.

        Returns: how many were looked at; ``most`` or more means that more may be due.
        """
        count = 0
        table = self.table
        if table.due_ms < now_ms:
            for key in table.take_due(now_ms, most):
                slot = table.find(key)
                if self.keeps_expired and self._is_hidden(slot, now_ms):
                    heappush(self.late, (self._patience_of(slot), key))
                else:
                    self._expire(key, slot)
                count += 1
            if table.due_ms < now_ms:
                return max(most, count)
        return count + self._remove_late(now_ms, most - count)

    def expire_own(self, now_ms: int, most: int) -> int:
        """Expire as ``expire_due`` the keys in ``own``, although others are only hidden."""
        count = 0
        while self.own and count < most and self.own[0][0] < now_ms:
            _, key = heappop(self.own)
            slot = self.table.find(key)
            if slot != NO_SLOT and NO_EXPIRY != self.table.deadline_ms(slot) < now_ms:
                self._expire(key, slot)
            count += 1
        return count

    def note_own(self, noted: bool) -> None:
        """Note from now on in ``own`` which keys are given deadlines, or forget them."""
        self.notes_own = noted
        self.own = []

    def _remove_late(self, now_ms: int, most: int) -> int:
        """Remove keys that were hidden for long enough; return how many were looked at."""
        count = 0
        while self.late and count < most and self.late[0][0] < now_ms:
            _, key = heappop(self.late)
            slot = self.table.find(key)
            if slot != NO_SLOT and self.table.deadline_ms(slot) != NO_EXPIRY:
                after_ms = self._patience_of(slot)
                if after_ms < now_ms:
                    self._expire(key, slot)
                elif (
                    self.table.deadline_ms(slot) < now_ms
                ):  # it was put off a little, or set elsewhere
                    heappush(self.late, (after_ms, key))
            count += 1
        return count

    def _is_hidden(self, slot: i64, now_ms: i64) -> bool:
        return self.expire_held or (self.keeps_expired and self._patience_of(slot) >= now_ms)

    def _patience_of(self, slot: i64) -> int:
        """Return the moment up to which a key is not removed although it has expired."""
        deadline_ms = int(self.table.deadline_ms(slot))
        value = self.table.value_at(slot)
        return value.removed_after_ms(deadline_ms) if isinstance(value, Value) else deadline_ms

    def mean_ttl_ms(self, now_ms: i64) -> int:
        """Return the mean time to live, in ms, of up to 64 keys that have a deadline."""
        table = self.table
        total = 0
        count = min(64, self.volatile)
        for number in range(count):
            slot = table.next_with_deadline(number * table.count // count)
            total += max(0, int(table.deadline_ms(slot) - now_ms))
        return total // count if count else 0

    def scan(self, cursor: int, count: int) -> tuple[int, list[Entry]]:
        """Return up to ``count`` entries from ``cursor`` on, and the next cursor; 0: start, end."""
        stop, position = self.window(cursor, count)
        return stop, [self.at(slot) for slot in range(position - 1, stop - 1, -1)]

    def window(self, cursor: int, count: int) -> tuple[int, int]:
        """Return the next cursor, which is the last slot of a step, and what follows the first."""
        position = min(cursor, len(self)) if cursor > 0 else len(self)
        return max(0, position - count), position

    def clear(self) -> None:
        """Drop all keys: they go to ``unused`` as they are, nothing is walked here."""
        if self.table.count:
            emptied = Emptied(self.table, self.parts, self.unused)
            if self.freezing is not None:
                self.freezing.put_aside(emptied)
            else:
                self.unused.append(emptied)
        folds = self.table.folds
        self.table = KeyTable(self.usage, folds)
        self.table.sized = self.sized
        self.late = []
        self.own = []
        self.volatile = 0
        self.parts = PartDeadlines()

    def swap(self, other: Keyspace) -> None:
        """Exchange all keys with another database."""
        self.table, other.table = other.table, self.table
        self.volatile, other.volatile = other.volatile, self.volatile
        self.own, other.own = other.own, self.own
        self.parts, other.parts = other.parts, self.parts
        self.frozen_as, other.frozen_as = other.frozen_as, self.frozen_as

    def _expire(self, key: bytes, slot: i64) -> None:
        value = self._remove(slot)
        self.expired.append((self.index, key))
        if self.keeps_expired:
            self.expired_values[key] = value
        elif isinstance(value, Value) and value.effort():
            self.unused.append(value)


class Databases:
    """The databases of a server, each of which is made when it is first used.

    It has the length of all, and is iterated over those that were made, in their order. The first
    one always is.
    """

    def __init__(
        self,
        count: int,
        expired: list[tuple[int, bytes]],
        unused: list[Freeable],
        expiring: Expiring,
    ) -> None:
        self._count: Final = count
        self._expired: Final = expired
        self._unused: Final = unused
        self._expiring: Final = expiring
        self._by_index: Final[dict[int, Keyspace]] = {}
        self._made: list[Keyspace] = []  # replaced and never changed, because it is iterated over
        self._make(0)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Keyspace]:
        return iter(self._made)

    def __getitem__(self, index: int) -> Keyspace:
        db = self._by_index.get(index)
        return self._make(index) if db is None else db

    def _make(self, index: int) -> Keyspace:
        if not 0 <= index < self._count:
            raise IndexError(index)
        db = Keyspace(index, self._expired, self._unused, self._expiring)
        if self._made:
            db.follow(self._made[0])
        self._by_index[index] = db
        self._made = [self._by_index[number] for number in sorted(self._by_index)]
        return db


Keyspaces = Databases | list[Keyspace]
