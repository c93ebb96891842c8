"""The IDMP map of a stream: which idempotent ids its producers have used, and for which entries.

Each producer has a record of its own: at most ``maxsize`` iids in the order in which they were
added, each with the ID of its entry and the time it was added at. An iid leaves when it is the
oldest of too many, or when it is older than the duration; a producer leaves with its last iid.

A record is a ring of slots, oldest first, beside a table that finds the slot of an iid. Both are
packed vectors, so that an iid of 16 bytes takes about 100 bytes, 64 of them for itself::

    slot              0      1      2      3
    _iids             b"c"   b""    b"a"   b"b"     the oldest is in slot 2; slot 1 is free
    _tags             hash of each iid, cut to 31 bits
    _added            when each one was added, milliseconds since 1970
    _seqs             its entry's sequence, where the entry's milliseconds are the time above
    _odd              {slot: ID} of those few where they are not: their ``_seqs`` is ODD

    _table            slot + 1 at the place that the tag says, or the next free one; 0 is free

The table is at most two thirds full, and what is taken out of it leaves no mark: what stands behind
moves up. An iid taken out of the middle of the ring leaves a hole, which the oldest end passes over
and the next growth closes. Which slot an iid has depends on Python's hash; what can be seen from
outside does not.

Expiry looks at a producer only when its oldest iid is due. ``Expiring`` holds the producers of all
databases by the second in which that is, whatever keys and databases their streams are moved to.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from librt.strings import read_i64_le
from librt.vecs import vec
from mypy_extensions import i32, i64

if TYPE_CHECKING:
    from storage.stream.frozen import FrozenProducers

NOT_DUE: Final = -1
_TAG_MASK: Final = 0x7FFFFFFF
_MIXED_BYTES_MAX: Final = 64
_WORD_MASK: Final = 0x3FFFFFFFFFFFFFFF
_FACTOR: Final = 0x1E3779B97F4A7C15  # odd, with its bits in no order
_SECRET: Final[i64] = hash(b"iids") & _TAG_MASK
_ODD: Final = -1
_SEQ_MAX: Final = 0x7FFFFFFE
_MS_MAX: Final = 2**62 - 1  # what is above may be no i64, and is boxed
_FIRST_SLOTS: Final = 4
_SMALL: Final = 64  # slots from which it may pay to have fewer
_SLOT_BYTES: Final = 20  # what a slot takes in the vectors and the list
_PLACE_BYTES: Final = 4  # what a place takes in the table
_BYTES_HEADER: Final = 33  # what a bytes object takes beside its bytes
_PRODUCER_BYTES: Final = 600  # what a producer takes beside its iids

Record = tuple[bytes, bytes, int, int, int]


def _tag(iid: bytes) -> i64:
    """Where in a table to look for ``iid``: a number below 2^31.

    Most iids are short, and ``hash`` is the slower way for those. Both depend on a secret of the
    process, so that which iids go to one place cannot be told from outside.
    """
    size: i64 = len(iid)
    if size < 8 or size > _MIXED_BYTES_MAX:
        number: i64 = hash(iid)
        return number & _TAG_MASK
    mixed: i64 = _SECRET + size
    at: i64 = 0
    while at < size - 8:
        mixed = _mix(mixed ^ read_i64_le(iid, at))
        at += 8
    mixed = _mix(mixed ^ read_i64_le(iid, size - 8))
    return mixed >> 31


def _mix(word: i64) -> i64:
    """Spread the bits of a word over 62 bits, the upper 31 the best."""
    return ((word ^ (word >> 32)) & _WORD_MASK) * _FACTOR & _WORD_MASK


class Producer:
    """The iids of one producer.

    Attributes:
        count: how many there are.
        due_s: the second in which ``Expiring`` looks at it, ``NOT_DUE`` when it does not.
        shared: a frozen map reads it, too: it is to be told before this changes.
    """

    def __init__(self, pid: bytes) -> None:
        self.pid: Final = pid
        self.count: i64 = 0
        self.due_s = NOT_DUE
        self.shared = False
        self._latest_ms: i64 = 0  # the greatest of the times in the ring
        self._start: i64 = 0  # the slot of the oldest
        self._span: i64 = 0  # slots from the oldest to the newest, holes included
        self._capacity: i64 = 0
        self._mask: i64 = 0
        self._table = vec[i32]()
        self._tags = vec[i32]()
        self._added = vec[i64]()
        self._seqs = vec[i32]()
        self._iids: list[bytes] = []
        self._odd: dict[int, tuple[int, int]] = {}
        self._missed = b""  # the iid that was looked for last and is not there
        self._missed_tag: i64 = 0
        self._missed_place: i64 = 0  # the free place where it would stand
        self._resize(_FIRST_SLOTS)

    # Looking up

    def find(self, iid: bytes) -> i64:
        """The slot of ``iid``; -1 when it is not there. Complexity: O(length of the iid)."""
        tag = _tag(iid)
        table = self._table
        mask = self._mask
        place = tag & mask
        while True:
            slot = i64(table[place]) - 1
            if slot < 0:
                self._missed = iid
                self._missed_tag = tag
                self._missed_place = place
                return -1
            if i64(self._tags[slot]) == tag and self._iids[slot] == iid:
                return slot
            place = (place + 1) & mask

    def added_ms(self, slot: i64) -> i64:
        """When the iid in ``slot`` was added."""
        return self._added[slot]

    def entry_id(self, slot: i64) -> tuple[int, int]:
        """The ID of the entry of the iid in ``slot``."""
        seq = i64(self._seqs[slot])
        return self._odd[int(slot)] if seq == _ODD else (int(self._added[slot]), int(seq))

    def oldest(self) -> i64:
        """The slot of the oldest iid, of which there must be one."""
        return self._start

    def newest(self) -> i64:
        """The slot of the newest iid, of which there must be one."""
        return self._slot(self._span - 1)

    def records(self) -> Iterator[tuple[bytes, int, int, int]]:
        """The (iid, ms, seq, added_ms) of all iids, oldest first; nothing may change meanwhile."""
        for position in range(int(self._span)):
            slot = self._slot(position)
            iid = self._iids[slot]
            if iid:
                ms, seq = self.entry_id(slot)
                yield iid, ms, seq, int(self._added[slot])

    def used_bytes(self) -> int:
        """About how much memory it takes; a few iids stand for all."""
        sampled = [len(iid) for iid in self._iids[:8] if iid]
        each = sum(sampled) // len(sampled) + _BYTES_HEADER if sampled else 0
        fixed = _SLOT_BYTES * int(self._capacity) + _PLACE_BYTES * int(self._mask)
        return _PRODUCER_BYTES + len(self.pid) + fixed + each * int(self.count)

    # Changing

    def add(self, iid: bytes, ms: int, seq: int, added_ms: i64, most: i64) -> i64:
        """Make ``iid`` the newest, whether it is there already or not.

        Args:
            most: the limit on iids; for one above it the oldest leaves. It never changes.

        Returns: how many more there are: 1, or 0 where another one left.
        """
        before = self.count
        if self._missed is not iid:
            slot = self.find(iid)
            if slot >= 0:
                self.remove(slot)
                self.find(iid)
        if self._span == self._capacity:
            self._make_room(most)
            self.find(iid)
        slot = self._start + self._span
        if slot >= self._capacity:
            slot -= self._capacity
        self._table[self._missed_place] = i32(slot + 1)
        self._tags[slot] = i32(self._missed_tag)
        self._iids[slot] = iid
        self._added[slot] = added_ms
        if ms <= _MS_MAX and ms == added_ms and seq <= _SEQ_MAX:
            self._seqs[slot] = i32(seq)
        else:
            self._seqs[slot] = i32(_ODD)
            self._odd[int(slot)] = (ms, seq)
        if added_ms > self._latest_ms:
            self._latest_ms = added_ms
        self._missed = b""
        self._span += 1
        self.count += 1
        if self.count > most:
            self.remove(self._start)
        return self.count - before

    def remove(self, slot: i64) -> None:
        """Take out the iid in ``slot``. Complexity: O(1), amortised."""
        self._missed = b""
        table = self._table
        tags = self._tags
        mask = self._mask
        hole = i64(tags[slot]) & mask
        while i64(table[hole]) != slot + 1:
            hole = (hole + 1) & mask
        place = (hole + 1) & mask
        behind = i64(table[place])
        while behind:  # what stands behind moves up, unless it is where it wants to be
            wanted = i64(tags[behind - 1]) & mask
            if ((place - wanted) & mask) >= ((place - hole) & mask):
                table[hole] = i32(behind)
                hole = place
            place = (place + 1) & mask
            behind = i64(table[place])
        table[hole] = i32(0)
        if i64(self._seqs[slot]) == _ODD:
            del self._odd[int(slot)]
        self._iids[slot] = b""
        self.count -= 1
        if slot == self._start:
            self._start = 0 if slot + 1 == self._capacity else slot + 1
            self._span -= 1
        if self._span != self.count:
            self._trim_ends()

    def _trim_ends(self) -> None:
        """Leave no hole at either end of the ring."""
        while self._span and not self._iids[self._start]:
            self._start = 0 if self._start + 1 == self._capacity else self._start + 1
            self._span -= 1
        while self._span and not self._iids[self._slot(self._span - 1)]:
            self._span -= 1

    def expire(self, latest_ms: i64, most: i64) -> i64:
        """Take out the oldest iids that were added at ``latest_ms`` or before, up to ``most``.

        Returns: how many; all of them, however many, when the newest is as old.
        """
        expired: i64 = self.count
        if self._latest_ms <= latest_ms:
            self.clear()
            return expired
        expired = 0
        while self.count and expired < most and self._added[self._start] <= latest_ms:
            self.remove(self._start)
            expired += 1
        if self._capacity > _SMALL and self.count < self._capacity // 4:
            self._resize(2 * self.count)
        return expired

    def clear(self) -> None:
        """Take out everything."""
        self.count = 0
        self._resize(_FIRST_SLOTS)

    def copy(self) -> Producer:
        """An equal record of its own."""
        twin = Producer(self.pid)
        twin.count = self.count
        twin._latest_ms = self._latest_ms
        twin._start = self._start
        twin._span = self._span
        twin._capacity = self._capacity
        twin._mask = self._mask
        twin._table = self._table[:]
        twin._tags = self._tags[:]
        twin._added = self._added[:]
        twin._seqs = self._seqs[:]
        twin._iids = self._iids.copy()
        twin._odd = self._odd.copy()
        return twin

    # Slots and places

    def _slot(self, position: i64) -> i64:
        """The slot so many behind the oldest."""
        slot = self._start + position
        return slot if slot < self._capacity else slot - self._capacity

    def _make_room(self, most: i64) -> None:
        """Close the holes where they are many, else take more slots; ``most`` and one if enough."""
        capacity = self._capacity
        if self.count * 4 <= capacity * 3:
            self._resize(capacity)
        elif capacity <= most:
            self._resize(min(2 * capacity, most + 1))
        else:
            self._resize(capacity + capacity // 2)

    def _resize(self, capacity: i64) -> None:
        """Move what there is to a ring of ``capacity`` slots or a few more, without holes."""
        capacity = max(capacity, _FIRST_SLOTS)
        size: i64 = 8
        while 2 * size < 3 * capacity:
            size *= 2
        zeros: list[i32] = [0] * int(capacity)
        places: list[i32] = [0] * int(size)
        times: list[i64] = [0] * int(capacity)
        table = vec[i32](places)
        tags = vec[i32](zeros)
        added = vec[i64](times)
        seqs = vec[i32](zeros)
        iids: list[bytes] = [b""] * int(capacity)
        odd: dict[int, tuple[int, int]] = {}
        mask = size - 1
        filled: i64 = 0
        if self.count:
            for position in range(int(self._span)):
                slot = self._slot(position)
                iid = self._iids[slot]
                if not iid:
                    continue
                tag = i64(self._tags[slot])
                place = tag & mask
                while table[place] != 0:
                    place = (place + 1) & mask
                table[place] = i32(filled + 1)
                tags[filled] = i32(tag)
                added[filled] = self._added[slot]
                seqs[filled] = self._seqs[slot]
                if i64(self._seqs[slot]) == _ODD:
                    odd[int(filled)] = self._odd[int(slot)]
                iids[filled] = iid
                filled += 1
        else:
            self._latest_ms = 0
        self._missed = b""
        self._start = 0
        self._span = filled
        self._capacity = capacity
        self._mask = mask
        self._table = table
        self._tags = tags
        self._added = added
        self._seqs = seqs
        self._iids = iids
        self._odd = odd


class IdmpMap:
    """The producers of one stream.

    Attributes:
        producers: by their ids, in the order in which they came; none is empty.
        count: the iids of all of them together.
        duration_ms, maxsize: the limits; they never change, another map takes over.
        frozen: who wants to keep what a producer has before it changes.
    """

    def __init__(self, duration_ms: int, maxsize: int) -> None:
        self.producers: dict[bytes, Producer] = {}
        self.count: i64 = 0
        self.duration_ms: i64 = duration_ms
        self.maxsize: i64 = maxsize
        self.frozen: FrozenProducers | None = None
        self._last: Producer | None = None  # the one that was looked for last
        self._asked = b""  # under which pid
        self._expiring: Expiring | None = None

    def find(self, pid: bytes, iid: bytes, now_ms: i64) -> tuple[int, int] | None:
        """The ID of the entry that ``iid`` was used for, or None when it is not known by now."""
        producer = self._producer(pid)
        if producer is None:
            return None
        slot = producer.find(iid)
        if slot < 0 or producer.added_ms(slot) + self.duration_ms <= now_ms:
            return None
        return producer.entry_id(slot)

    def record(self, pid: bytes, iid: bytes, ms: int, seq: int, added_ms: i64) -> None:
        """Make ``iid`` the newest of its producer, whether it is known already or not."""
        producer = self._last
        if producer is None or self._asked is not pid:  # as a rule it is what was just looked for
            producer = self._producer(pid)
        if producer is None:
            producer = Producer(pid)
            self.producers[pid] = producer
            self._last = producer
            if self._expiring is not None:
                self._expiring.watch(producer, self, int(added_ms + self.duration_ms))
        elif self.frozen is not None:
            self.frozen.keep(producer)
        self.count += producer.add(iid, ms, seq, added_ms, self.maxsize)

    def _producer(self, pid: bytes) -> Producer | None:
        last = self._last
        if last is None or last.pid != pid:
            last = self.producers.get(pid)
            self._last = last
        self._asked = pid
        return last

    def records(self) -> Iterator[Record]:
        """The (pid, iid, ms, seq, added_ms) of all iids, oldest first within each producer.

        Recording the same in this order makes an equal map. Nothing may change meanwhile.
        """
        for pid, producer in self.producers.items():
            for iid, ms, seq, added_ms in producer.records():
                yield pid, iid, ms, seq, added_ms

    def attach(self, expiring: Expiring) -> None:
        """Let ``expiring`` see to it that its iids expire."""
        if self._expiring is not expiring:
            self._expiring = expiring
            for producer in self.producers.values():
                expiring.watch(producer, self, self.due_ms(producer))

    def due_ms(self, producer: Producer) -> int:
        """When the oldest iid of a producer expires."""
        return int(producer.added_ms(producer.oldest()) + self.duration_ms)

    def drop_empty(self, producer: Producer) -> None:
        """Forget a producer without iids."""
        if self.producers.get(producer.pid) is producer:
            del self.producers[producer.pid]
            self._last = None

    def free_some(self, most: int) -> bool:
        """Let go of up to about ``most`` iids of a map that nobody uses; True at the end."""
        producers = self.producers
        self._last = None
        freed = 0
        while producers and freed < most:
            producer = producers.popitem()[1]
            freed += int(producer.count)
            if self._expiring is not None:
                self._expiring.forget(producer)
        return not producers

    def used_bytes(self) -> int:
        """About how much memory it takes."""
        total = 0
        for producer in self.producers.values():
            total += producer.used_bytes()
        return total

    def copy(self) -> IdmpMap:
        """An equal map of its own, attached to nothing."""
        twin = IdmpMap(int(self.duration_ms), int(self.maxsize))
        twin.producers = {pid: producer.copy() for pid, producer in self.producers.items()}
        twin.count = self.count
        return twin


class Expiring:
    """The producers of all databases, by the second in which their oldest iid is due.

    A producer is looked at when its second has come and not before; one whose oldest has left
    meanwhile waits on.

    Invariants: a producer with iids, whose stream is in a database, stands in the bucket of its
    ``due_s`` and nowhere else; ``_seconds`` is a heap of the keys of ``_buckets``.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, dict[Producer, IdmpMap]] = {}
        self._seconds: list[int] = []

    def __len__(self) -> int:
        return sum([len(bucket) for bucket in self._buckets.values()])

    def watch(self, producer: Producer, owner: IdmpMap, due_ms: int) -> None:
        """Look at ``producer``, which is watched for no other time, once ``due_ms`` has come."""
        second = (due_ms + 999) // 1000
        producer.due_s = second
        bucket = self._buckets.get(second)
        if bucket is None:
            bucket = self._buckets[second] = {}
            heappush(self._seconds, second)
        bucket[producer] = owner

    def forget(self, producer: Producer) -> None:
        """Look at ``producer`` no more."""
        bucket = self._buckets.get(producer.due_s)
        if bucket is not None:
            bucket.pop(producer, None)
        producer.due_s = NOT_DUE

    def expire(self, now_ms: int, most: int) -> int:
        """Take out iids that are due, about ``most`` at once.

        Returns: the work done; ``most`` or more means that there may be more to do.
        Complexity: O(iids taken out, and producers that had one due).
        """
        done = 0
        while done < most and self._seconds and self._seconds[0] * 1000 <= now_ms:
            second = self._seconds[0]
            bucket = self._buckets[second]
            while bucket and done < most:
                producer, owner = bucket.popitem()
                producer.due_s = NOT_DUE
                done += 1 + self._expire(producer, owner, now_ms, most - done)
            # Where the clock stepped back, one that waits on may have brought an earlier second.
            if not bucket and self._seconds[0] == second:
                del self._buckets[heappop(self._seconds)]
        return done

    def _expire(self, producer: Producer, owner: IdmpMap, now_ms: int, most: int) -> int:
        if owner.frozen is not None:
            owner.frozen.keep(producer)
        expired = int(producer.expire(now_ms - owner.duration_ms, most))
        owner.count -= expired
        if producer.count:
            due_ms = owner.due_ms(producer)
            # There may be more to do at once: then in a second that has come.
            self.watch(producer, owner, due_ms if due_ms > now_ms else now_ms // 1000 * 1000)
        else:
            owner.drop_empty(producer)
        return expired
