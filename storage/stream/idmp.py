"""The IDMP map of a stream: which idempotent ids its producers have used, and for which entries.

Each producer has a record of its own: at most ``maxsize`` iids in the order in which they were
added, each with the ID of its entry and the time it was added at. An iid leaves when it is the
oldest of too many, or when it is older than the duration; a producer leaves with its last iid.
Expiry looks at a producer only when its oldest iid is due (``storage.value``).

An iid is two words instead of an object. Most iids are short: a number, a UUID, the 16 bytes of
IDMPAUTO. Their first eight bytes and their last eight hold them whole, and overlap where there are
fewer than 16::

    iid               first         last          size  text
    b"0123456789"     b"01234567"   b"23456789"   10    b""
    b"42"             b"42"         0             2     b""
    b"0123 ... 012"   b"01234567"   b"56789012"   23    b"0123 ... 012"

A word is its bytes with the lowest first; below eight bytes there is one, filled up with zeros.
Beside them stands the hash, which says where in a table to look, and for what.

A producer's iids stand in a ring of slots, oldest first, beside a table that finds the slot of an
iid. Both are packed vectors, and small, because XADD meets them with cold caches: all of an iid of
up to 16 bytes is in 40 bytes. A slot is four words::

    slot              0        1      2        3
    first, last       c        -      a        b       the oldest is in slot 2; slot 1 is free
    added             20       -      10       13      when it was added, milliseconds since 1970
    rest              1 h3 1   0      0 h1 1   1 h2 1  its entry's sequence, its hash, its bytes:
                                                       how many; 0 when the slot is free

    _odd              {slot: ID} where the entry's milliseconds are not those of ``added``, or the
                      sequence does not fit in: that is ODD in the slot
    _texts            of iids of more than 16 bytes; empty as long as there was none

    _table            tag << 15 | slot + 1, at the place that the lower half of the hash says or the
                      next free one; the tag is the upper half

An iid that leaves frees its slot, and nothing else. What the table says of it is wrong from then
on, as the slot shows. When the table is three quarters full, it is filled anew from the ring. So
the place of the oldest iid, which is far from all that a command touches, need not be found.

An iid taken out of the middle of the ring leaves a hole, which the oldest end passes over and the
next growth closes. The place of an iid depends on a secret of the process; what can be seen from
outside does not.

IDMPAUTO makes an iid of the entry, 16 bytes, as Redis does: what one server has recorded the other
one finds. Each pair of field and value is hashed by itself, XXH3 of 128 bits with seed 0, over ::

    field | length of the field, 8 bytes, little end first | value

The low halves of all pairs are added up, the high halves too, and both are also XORed. So the order
of the pairs does not matter, while it matters how often each occurs. The iid is the two numbers ::

    low  = sum of lows  ^ (xor of highs turned left by one bit)
    high = sum of highs ^ (xor of lows  turned left by one bit)

each as 8 bytes, little end first. All numbers are taken modulo 2^64, in 64 bits with a sign here.
The iid stays two numbers, because its bytes are not read before a file is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, cast

from librt.strings import read_i32_le, read_i64_be, read_i64_le
from librt.vecs import vec
from mypy_extensions import i32, i64, mypyc_attr, trait
from xxhash import xxh3_128_digest

from headrace.storage.value import Expiring, Freeable, Owner

WORD_BYTES: Final = 8
SHORT_BYTES: Final = 16  # an iid that two words hold whole; of a longer one the text is kept, too
HASH_BITS: Final = 32
HASH_MASK: Final = 0xFFFFFFFF
_HALF: Final = 0xFFFFFFFF  # of a word
_MIXED_BITS: Final = 62
_MIXED_MASK: Final = 0x3FFFFFFFFFFFFFFF
_FACTOR: Final = 0x1E3779B97F4A7C15  # odd, with its bits in no order
_SECRET: Final[i64] = hash(b"iids") & 0x7FFFFFFF

Iid = tuple[i64, i64, i64, bytes, i64]  # first, last, size, text, hash


def iid_of(text: bytes) -> Iid:
    """Return the iid that is written ``text``, which is not empty."""
    size: i64 = len(text)
    if size >= WORD_BYTES:
        last = read_i64_le(text, size - WORD_BYTES)
        return iid_made_of(read_i64_le(text, 0), last, size, text)
    first: i64 = 0
    if size >= 4:
        end = i64(read_i32_le(text, size - 4)) & _HALF
        first = (i64(read_i32_le(text, 0)) & _HALF) | end << (8 * (size - 4))
    else:
        at: i64 = 0
        while at < size:
            first |= i64(text[at]) << (8 * at)
            at += 1
    return iid_made_of(first, 0, size, text)


def iid_made_of(first: i64, last: i64, size: i64, text: bytes) -> Iid:
    """Return the iid of two words and ``size`` bytes; ``text`` only if they do not hold it.

    The hash has ``HASH_BITS``. It depends on a secret of the process, so that it cannot be known
    outside which iids go to one place.
    """
    if size > SHORT_BYTES:
        number: i64 = hash(text)
        return first, last, size, text, number & HASH_MASK
    mixed = _mix(_mix((_SECRET + size) ^ first) ^ last) >> (_MIXED_BITS - HASH_BITS)
    return first, last, size, b"", mixed


def text_of(iid: Iid) -> bytes:
    """Return how ``iid`` is written."""
    size = int(iid[2])
    if size > SHORT_BYTES:
        return iid[3]
    first = int(iid[0]).to_bytes(WORD_BYTES, "little", signed=True)
    if size <= WORD_BYTES:
        return first[:size]
    last = int(iid[1]).to_bytes(WORD_BYTES, "little", signed=True)
    return first + last[SHORT_BYTES - size :]


def _mix(word: i64) -> i64:
    """Spread the bits of a word over 62 bits, the upper ones the best."""
    return ((word ^ (word >> 32)) & _MIXED_MASK) * _FACTOR & _MIXED_MASK


NOT_DUE: Final = -1
_WORDS: Final = 4  # of a slot
_LAST: Final = 1
_ADDED: Final = 2
_REST: Final = 3
_SIZE_BITS: Final = 8  # of the rest: seq << 40 | hash << 8 | size
_SIZE_MASK: Final = 0xFF
_SEQ_SHIFT: Final = 40
_LONG: Final = 17  # the size of every iid of which the text is kept
_ODD: Final = -1
_ODD_REST: Final = -(2**40)  # in the sequence's place; compiled, -1 << 40 is one of C's short ints
_SEQ_MAX: Final = 2**22 - 1
_MS_MAX: Final = 2**62 - 1  # what is above may be no i64, and is boxed
_TAG_SHIFT: Final = 16
_SLOT_BITS: Final = 15  # half as much again as Redis's limit of 10,000 iids fits in
_SLOT_MASK: Final = 0x7FFF
_FIRST_SLOTS: Final = 4
_SMALL: Final = 64  # slots from which it may pay to have fewer
_WORD_BYTES: Final = 8
_PLACE_BYTES: Final = 4
_TEXT_BYTES: Final = 41  # what a text takes beside its bytes
_PRODUCER_BYTES: Final = 400  # what a producer takes beside its iids


@mypyc_attr(acyclic=True)
class Producer:
    """The iids of one producer.

    Attributes:
        sought: the place in the table at which ``find`` ended last.
        due_s: the second in which ``Expiring`` looks at it, ``NOT_DUE`` when it does not.
        shared: a frozen map reads it too, and has to keep it before it changes.
    """

    def __init__(self, pid: bytes) -> None:
        self.pid: Final = pid
        self.count: i64 = 0
        self.sought: i64 = 0
        self.due_s = NOT_DUE
        self.shared = False
        self._latest_ms: i64 = 0  # the greatest of the times in the ring
        self._start: i64 = 0  # the slot of the oldest
        self._span: i64 = 0  # slots from the oldest to the newest, holes included
        self._capacity: i64 = 0
        self._mask: i64 = 0
        self._filled: i64 = 0  # places of the table that say something, be it right or wrong
        self._table = vec[i32]()
        self._slots = vec[i64]()
        self._texts: list[bytes] = []
        self._odd: dict[int, tuple[int, int]] = {}
        self._resize(_FIRST_SLOTS)

    # Looking up

    def find(self, iid: Iid) -> i64:
        """Return the slot of ``iid``; -1 when it is not there. Complexity: O(1)."""
        self.sought = self._place(iid)
        return (i64(self._table[self.sought]) & _SLOT_MASK) - 1

    def _place(self, iid: Iid) -> i64:
        table = self._table
        mask = self._mask
        tag = iid[4] >> _TAG_SHIFT
        place = iid[4] & mask
        while True:
            found = i64(table[place])
            if found == 0:
                return place
            if found >> _SLOT_BITS == tag and self._holds((found & _SLOT_MASK) - 1, iid):
                return place
            place = (place + 1) & mask

    def _holds(self, slot: i64, iid: Iid) -> bool:
        at = slot * _WORDS
        if self._slots[at] != iid[0] or self._slots[at + _LAST] != iid[1]:
            return False
        size = self._slots[at + _REST] & _SIZE_MASK
        return self._texts[slot] == iid[3] if size == _LONG else size == iid[2]

    def _iid(self, slot: i64) -> Iid:
        slots = self._slots
        at = slot * _WORDS
        size = slots[at + _REST] & _SIZE_MASK
        text = b""
        if size == _LONG:
            text = self._texts[slot]
            size = len(text)
        return iid_made_of(slots[at], slots[at + _LAST], size, text)

    def _is_free(self, slot: i64) -> bool:
        return self._slots[slot * _WORDS + _REST] == 0

    def added_ms(self, slot: i64) -> i64:
        """Return when the iid in ``slot`` was added, in milliseconds since 1970."""
        return self._slots[slot * _WORDS + _ADDED]

    def entry_id(self, slot: i64) -> tuple[int, int]:
        """Return the ID of the entry of the iid in ``slot``."""
        seq = self._slots[slot * _WORDS + _REST] >> _SEQ_SHIFT
        return self._odd[int(slot)] if seq == _ODD else (int(self.added_ms(slot)), int(seq))

    def oldest(self) -> i64:
        """Return the slot of the oldest iid, of which there must be one."""
        return self._start

    def newest(self) -> i64:
        """Return the slot of the newest iid, of which there must be one."""
        return self._slot(self._span - 1)

    def records(self) -> Iterator[tuple[bytes, int, int, int]]:
        """Yield (iid, ms, seq, added_ms), oldest first; nothing may change meanwhile."""
        for position in range(int(self._span)):
            slot = self._slot(position)
            if not self._is_free(slot):
                ms, seq = self.entry_id(slot)
                yield text_of(self._iid(slot)), ms, seq, int(self.added_ms(slot))

    def used_bytes(self) -> int:
        """Return about how many bytes it takes; a few long iids stand for all."""
        sampled = [len(text) for text in self._texts[:8] if text]
        each = sum(sampled) // len(sampled) + _TEXT_BYTES if sampled else 0
        fixed = _WORDS * _WORD_BYTES * int(self._capacity) + _PLACE_BYTES * int(self._mask)
        return _PRODUCER_BYTES + len(self.pid) + fixed + each * int(self.count)

    # Changing

    def add(self, iid: Iid, ms: int, seq: int, added_ms: i64, most: i64) -> i64:
        """Make ``iid`` the newest, whether it is there already or not.

        ``most`` is the limit on iids, which never changes; for one above it the oldest leaves.
        Returns: how many more there are: 1, or 0 where another one left.
        Complexity: O(1), amortised: what the table says is swept now and then.
        """
        return self.add_at(self._place(iid), iid, ms, seq, added_ms, most)

    def add_at(self, place: i64, iid: Iid, ms: int, seq: int, added_ms: i64, most: i64) -> i64:
        """Add as ``add`` does, where ``find`` ended at ``place`` and nothing has changed since."""
        before = self.count
        known = i64(self._table[place]) & _SLOT_MASK
        if known:
            self.remove(known - 1)
        if self._span == self._capacity:
            self._make_room(most)
            place = self._place(iid)
        elif self._filled * 4 >= self._mask * 3:
            self._fill_table()
            place = self._place(iid)
        slot = self._slot(self._span)
        if not self._table[place]:
            self._filled += 1
        self._table[place] = i32(iid[4] >> _TAG_SHIFT << _SLOT_BITS | (slot + 1))
        size = iid[2]
        if size > SHORT_BYTES:
            size = _LONG
            self._keep_text(slot, iid[3])
        slots = self._slots
        at = slot * _WORDS
        slots[at] = iid[0]
        slots[at + _LAST] = iid[1]
        slots[at + _ADDED] = added_ms
        if ms <= _MS_MAX and ms == added_ms and seq <= _SEQ_MAX:
            slots[at + _REST] = i64(seq) << _SEQ_SHIFT | iid[4] << _SIZE_BITS | size
        else:
            slots[at + _REST] = _ODD_REST | iid[4] << _SIZE_BITS | size
            self._odd[int(slot)] = (ms, seq)
        if added_ms > self._latest_ms:
            self._latest_ms = added_ms
        self._span += 1
        self.count += 1
        if self.count > most:
            self.remove(self._start)
        return self.count - before

    def _keep_text(self, slot: i64, text: bytes) -> None:
        if not self._texts:
            self._texts = [b""] * int(self._capacity)
        self._texts[slot] = text

    def remove(self, slot: i64) -> None:
        """Take out the iid in ``slot``. Complexity: O(1), amortised over the holes."""
        if self._odd:
            self._odd.pop(int(slot), None)
        if self._texts:
            self._texts[slot] = b""
        self._slots[slot * _WORDS + _REST] = 0
        self.count -= 1
        if slot == self._start:
            self._start = self._slot(1)
            self._span -= 1
        if self._span != self.count:
            self._trim_ends()

    def _trim_ends(self) -> None:
        while self._span and self._is_free(self._start):
            self._start = self._slot(1)
            self._span -= 1
        while self._span and self._is_free(self._slot(self._span - 1)):
            self._span -= 1

    def expire(self, latest_ms: i64, most: i64) -> i64:
        """Take out up to ``most`` of the oldest iids, added at ``latest_ms`` or before.

        Returns: how many; all of them, however many, when the newest is as old.
        """
        expired: i64 = self.count
        if self._latest_ms <= latest_ms:
            self.clear()
            return expired
        expired = 0
        while self.count and expired < most and self.added_ms(self._start) <= latest_ms:
            self.remove(self._start)
            expired += 1
        if self._capacity > _SMALL and self.count < self._capacity // 4:
            self._resize(2 * self.count)
        return expired

    def clear(self) -> None:
        """Take out all iids."""
        self.count = 0
        self._resize(_FIRST_SLOTS)

    def copy(self) -> Producer:
        """Return an equal record of its own."""
        twin = Producer(self.pid)
        twin.count = self.count
        twin._latest_ms = self._latest_ms
        twin._start = self._start
        twin._span = self._span
        twin._capacity = self._capacity
        twin._mask = self._mask
        twin._filled = self._filled
        twin._table = self._table[:]
        twin._slots = self._slots[:]
        twin._texts = self._texts.copy()
        twin._odd = self._odd.copy()
        return twin

    # Slots and places

    def _slot(self, position: i64) -> i64:
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
        """Move all iids to a ring of ``capacity`` slots or a few more, without holes."""
        capacity = max(capacity, _FIRST_SLOTS)
        size: i64 = 8
        while size < 2 * capacity:
            size *= 2
        places: list[i32] = [0] * int(size)
        words: list[i64] = [0] * int(capacity * _WORDS)
        slots = vec[i64](words)
        texts: list[bytes] = [b""] * int(capacity) if self._texts and self.count else []
        odd: dict[int, tuple[int, int]] = {}
        filled: i64 = 0
        if self.count:
            for position in range(int(self._span)):
                slot = self._slot(position)
                if self._is_free(slot):
                    continue
                word: i64 = 0
                while word < _WORDS:
                    slots[filled * _WORDS + word] = self._slots[slot * _WORDS + word]
                    word += 1
                if texts:
                    texts[filled] = self._texts[slot]
                if int(slot) in self._odd:
                    odd[int(filled)] = self._odd[int(slot)]
                filled += 1
        else:
            self._latest_ms = 0
        self._start = 0
        self._span = filled
        self._capacity = capacity
        self._mask = size - 1
        self._table = vec[i32](places)
        self._slots = slots
        self._texts = texts
        self._odd = odd
        self._fill_table()

    def _fill_table(self) -> None:
        table = self._table
        slots = self._slots
        mask = self._mask
        place: i64 = 0
        while place <= mask:
            table[place] = i32(0)
            place += 1
        position: i64 = 0
        while position < self._span:
            slot = self._slot(position)
            rest = slots[slot * _WORDS + _REST]
            if rest:
                mixed = (rest >> _SIZE_BITS) & HASH_MASK
                place = mixed & mask
                while table[place]:
                    place = (place + 1) & mask
                table[place] = i32(mixed >> _TAG_SHIFT << _SLOT_BITS | (slot + 1))
            position += 1
        self._filled = self.count


@trait
class ProducerKeeper:
    """Gets reports from an IDMP map of changes of its producers."""

    def keep(self, producer: Producer) -> None:
        """Keep a producer as it is, because it is about to change."""
        raise NotImplementedError


Record = tuple[bytes, bytes, int, int, int]
_SAMPLES: Final = 8  # producers by which the memory of all is judged


class IdmpMap(Freeable, Owner):
    """The producers of one stream.

    Attributes:
        producers: by their ids, in the order in which they came; none is empty.
        count: the iids of all of them together.
        duration_ms, maxsize: the limits; they never change, another map takes over.
        frozen: what keeps a producer as it is before it changes, or None.
    """

    def __init__(self, duration_ms: int, maxsize: int) -> None:
        self.producers: dict[bytes, Producer] = {}
        self.count: i64 = 0
        self.duration_ms: i64 = duration_ms
        self.maxsize: i64 = maxsize
        self.frozen: ProducerKeeper | None = None
        self._last: Producer | None = None  # the one that was looked for last
        self._asked = b""  # under which pid
        self._expiring: Expiring | None = None

    def find(self, pid: bytes, iid: Iid, now_ms: i64) -> tuple[int, int] | None:
        """Return the ID of the entry that ``iid`` was used for; None when it is not known."""
        producer = self._producer(pid)
        if producer is None:
            return None
        slot = producer.find(iid)
        if slot < 0 or producer.added_ms(slot) + self.duration_ms <= now_ms:
            return None
        return producer.entry_id(slot)

    def record(self, pid: bytes, iid: Iid, ms: int, seq: int, added_ms: i64) -> None:
        """Make ``iid`` the newest of its producer, whether it is known already or not."""
        producer = self._producer(pid)
        if producer is None:
            producer = Producer(pid)
            self.producers[pid] = producer
            self._last = producer
            self._watch(producer, int(added_ms + self.duration_ms))
        elif self.frozen is not None:
            self.frozen.keep(producer)
        self.count += producer.add(iid, ms, seq, added_ms, self.maxsize)

    def record_sought(self, pid: bytes, iid: Iid, ms: int, seq: int, added_ms: i64) -> None:
        """Record as ``record`` what ``find`` has just looked for; nothing has changed since."""
        producer = self._last
        if producer is None:
            self.record(pid, iid, ms, seq, added_ms)
            return
        if self.frozen is not None:
            self.frozen.keep(producer)
        sought = producer.sought
        self.count += producer.add_at(sought, iid, ms, seq, added_ms, self.maxsize)

    def _producer(self, pid: bytes) -> Producer | None:
        last = self._last
        if self._asked is pid and last is not None:  # in a pipeline
            return last
        if last is None or last.pid != pid:
            last = self.producers.get(pid)
            self._last = last
        self._asked = pid
        return last

    def records(self) -> Iterator[Record]:
        """Yield all iids as ``Contents.idmp_records`` does; nothing may change meanwhile."""
        for pid, producer in self.producers.items():
            for iid, ms, seq, added_ms in producer.records():
                yield pid, iid, ms, seq, added_ms

    def attach(self, expiring: Expiring) -> None:
        """Let ``expiring`` see to it that the iids expire."""
        if self._expiring is not expiring:
            self._expiring = expiring
            for producer in self.producers.values():
                self._watch(producer, self._due_ms(producer))

    def _watch(self, producer: Producer, due_ms: int) -> None:
        if self._expiring is not None:
            producer.due_s = self._expiring.watch(producer, self, due_ms)

    def _due_ms(self, producer: Producer) -> int:
        return int(producer.added_ms(producer.oldest()) + self.duration_ms)

    def expire_part(self, part: object, now_ms: int, most: int) -> int:
        producer = cast("Producer", part)
        producer.due_s = NOT_DUE
        if self.frozen is not None:
            self.frozen.keep(producer)
        expired = int(producer.expire(now_ms - self.duration_ms, most))
        self.count -= expired
        if producer.count:
            due_ms = self._due_ms(producer)
            # There may be more to do at once: then in a second that has come.
            self._watch(producer, due_ms if due_ms > now_ms else now_ms // 1000 * 1000)
        elif self.producers.get(producer.pid) is producer:
            del self.producers[producer.pid]
            self._last = None
        return expired

    def free_some(self, most: int) -> bool:
        producers = self.producers
        self._last = None
        freed = 0
        while producers and freed < most:
            producer = producers.popitem()[1]
            freed += int(producer.count)
            if self._expiring is not None:
                self._expiring.forget(producer, producer.due_s)
                producer.due_s = NOT_DUE
        return not producers

    def used_bytes(self) -> int:
        """Return about how many bytes it takes; some producers stand for all."""
        some = list(islice(self.producers.values(), _SAMPLES))
        total = sum([producer.used_bytes() for producer in some])
        return total * len(self.producers) // len(some) if some else 0

    def copy(self) -> IdmpMap:
        """Return an equal map of its own, attached to nothing."""
        twin = IdmpMap(int(self.duration_ms), int(self.maxsize))
        twin.producers = {pid: producer.copy() for pid, producer in self.producers.items()}
        twin.count = self.count
        return twin


_digest: Final = xxh3_128_digest
_LOWER: Final = 0xFFFFFFFF
_SIGN_OF_32: Final = 0x80000000
_BELOW_62: Final = 0x3FFFFFFFFFFFFFFF


def content_iid(words: list[bytes], at: int) -> tuple[i64, i64]:
    """Return the iid, low and high, of the fields and values ``words[at:]``. O(bytes)."""
    if len(words) - at == 2:
        digest = _hasher.pair_digest(words[at], words[at + 1])
        high = read_i64_be(digest, 0)
        low = read_i64_be(digest, 8)
        return low ^ _turned(high), high ^ _turned(low)
    # Sums are kept in halves of 32 bits: they fit into 64 bits, compiled or not.
    low_upper: i64 = 0
    low_lower: i64 = 0
    high_upper: i64 = 0
    high_lower: i64 = 0
    low_xor: i64 = 0
    high_xor: i64 = 0
    for number in range(at, len(words), 2):
        digest = _hasher.pair_digest(words[number], words[number + 1])
        high = read_i64_be(digest, 0)
        low = read_i64_be(digest, 8)
        low_upper += low >> 32
        low_lower += low & _LOWER
        high_upper += high >> 32
        high_lower += high & _LOWER
        low_xor ^= low
        high_xor ^= high
    low_sum = _sum(low_upper, low_lower)
    high_sum = _sum(high_upper, high_lower)
    return low_sum ^ _turned(high_xor), high_sum ^ _turned(low_xor)


class _Hasher:
    """Hashes pairs; keeps the name of the last field for the next pair."""

    def __init__(self) -> None:
        self._field = b""
        self._head = b"\0" * 8  # the field and its length

    def pair_digest(self, field: bytes, value: bytes) -> bytes:
        """Return the digest of a pair."""
        if field is not self._field and field != self._field:
            self._field = field
            self._head = field + len(field).to_bytes(8, "little")
        return _digest(self._head + value)


_hasher: Final = _Hasher()


def _sum(upper: i64, lower: i64) -> i64:
    upper = (upper + (lower >> 32)) & _LOWER
    if upper & _SIGN_OF_32:
        upper -= _LOWER + 1
    return (upper << 32) | (lower & _LOWER)


def _turned(number: i64) -> i64:
    turned: i64 = (number & _BELOW_62) << 1
    if (number >> 62) & 1:
        # The highest bit, taken as a sum: a constant with that bit alone is no i64 to the compiler.
        turned = turned - _BELOW_62 - 1 - _BELOW_62 - 1
    return turned | 1 if number < 0 else turned
