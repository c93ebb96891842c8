"""A table of elements by linear hashing: its buckets are packed strings.

An element is a string, the key, and what its kind says stands behind it: nothing in a set, another
string in a hash, the eight bytes of a score in a sorted set. A bucket holds its elements one behind
the other, in no order. There is no object for an element, and none for its place.

The number of a bucket is the lower bits of its keys' hashes. There is no moment at which all is
moved to a larger table: when the elements outgrow their buckets, one bucket is split, the next in
order, and when they are few, the last bucket is merged into the one that it came from::

    buckets   keys of bucket 1 end in
    2         1
    3         1           bucket 2 was split off bucket 0: theirs end in 00 and 10
    4         01          bucket 3 was split off it: theirs end in 11
    5         01          bucket 4 was split off bucket 0: theirs end in 000 and 100

Buckets are small, because each write makes one anew, and because a search goes through half of one.
Those of members alone are larger where these are large, or as short as numbers are, because members
are never written to, and many share the price of a bucket, some sixty bytes.

**Hashes** are the same number in every process and on every machine. Python's own change with each
process, so that a table which was written to a file could not be read back as it is. Ours depend on
a seed that the table keeps, and that its file holds.

The state has 32 bits. Each word of four bytes is mixed into it by one multiplication, whose upper
half is folded into the lower one. The factor is a part of the seed: without it, strings that all
have the same hash cannot be made. No number on the way is 2**62 or more, because mypyc is slow with
constants beyond that, and so the interpreted build needs no masks of its own.

**Copies.** Buckets never change, they are replaced. They stand in directories of 256, and a copy of
a table shares the directories with it. A flag for each says whether the table may write to it;
where it may not, it first puts a copy of the directory in its place. So a copy costs a pointer for
each directory, and keeps what it holds whatever happens to the other one.

**Scans.** A cursor is the lower bits of hashes, and a scan counts with these bits reversed. In this
order a bucket that is split becomes two neighbours, and one that came from a merge may be met
again. So a scan meets every element that is there from its start to its end.
"""

from __future__ import annotations

from math import isnan
from typing import Final

from librt.strings import read_f64_le, read_i32_le, read_i64_le, write_f64_le
from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

from headrace.storage.packed.strings import (
    END_BYTES,
    NOWHERE,
    empty_buffer,
    header,
    header_bytes,
    length_at,
    next_at,
    other_buffer,
    packed_bytes,
    sound_end,
    with_score,
    with_string,
    write_string,
)

SEED_BITS: Final = 61  # 32 of the first state, 29 of the factor
HASH_BITS: Final = 32
_STATE: Final[i64] = 0xFFFFFFFF
_LEAST_FACTOR: Final[i64] = 0x20000001  # it is odd, and has 30 bits
_LAST_FACTOR: Final[i64] = 0x2F0B4A27
_FOLD: Final[i64] = 30
_WORD: Final[i64] = 4


def hash_of(data: bytes, start: i64, size: i64, seed: i64) -> i64:
    """Return the hash of ``size`` bytes from ``start`` on; it is below 2**HASH_BITS."""
    factor: i64 = (seed >> HASH_BITS) | _LEAST_FACTOR
    state: i64 = seed & _STATE
    word: i64 = 0
    left = size
    if size >= _WORD:
        last = start + size - _WORD
        while start < last:
            word = i64(read_i32_le(data, start)) & _STATE
            word = (state ^ word) * factor
            state = (word ^ (word >> _FOLD)) & _STATE
            start += _WORD
        word = i64(read_i32_le(data, last)) & _STATE
    else:
        while left > 0:
            word = word << 8 | i64(data[start])
            start += 1
            left -= 1
    word = (state ^ word) * factor
    state = (word ^ (word >> _FOLD)) & _STATE
    # The last word may overlap the one before, so the size has to tell such strings apart.
    word = (state ^ size) * _LAST_FACTOR
    return (word ^ (word >> _FOLD)) & _STATE


def mixed(number: i64, seed: i64) -> i64:
    """Return a number below 2**HASH_BITS that looks random and follows from another one."""
    word = ((seed ^ number) & _STATE) * ((seed >> HASH_BITS) | _LEAST_FACTOR)
    word = ((word ^ (word >> _FOLD)) & _STATE) * _LAST_FACTOR
    return (word ^ (word >> _FOLD)) & _STATE


class _Process:
    """What is chosen once for a process."""

    def __init__(self) -> None:
        self.seed: i64 = 0x0123456789ABCDEF  # until it is chosen


_process: Final = _Process()


def set_seed(seed: i64) -> None:
    """Choose the seed of the tables that are made from now on."""
    _process.seed = seed


def new_seed() -> i64:
    """Return the seed of a table that is made now."""
    return _process.seed


MEMBERS: Final[i64] = 1  # elements are keys alone
PAIRS: Final[i64] = 2  # a value stands behind each key
SCORES: Final[i64] = 3  # a score stands behind each key
SCORE_BYTES: Final[i64] = 8
NO_SCORE: Final = float("nan")

DIRECTORY: Final[i64] = 256  # buckets in a directory
_SHIFT: Final[i64] = 8
_WITHIN: Final[i64] = DIRECTORY - 1
_FEW_ELEMENTS: Final[i64] = 8  # in the mean: above, a bucket is split
_FEW_BYTES: Final[i64] = 256
_MANY_ELEMENTS: Final[i64] = 16  # where members are large or short
_MANY_BYTES: Final[i64] = 1200
_LARGE_MEMBER: Final[i64] = 44  # bytes that it takes in its bucket, at least
_SHORT_MEMBER: Final[i64] = 20  # at most, a number of 13 digits
_MERGED_BELOW: Final[i64] = 3  # so many times less, and one is merged
_MERGED_AT_ONCE: Final[i64] = 8  # so that none are left when large elements go one by one
_SCANNED_PER_ELEMENT: Final[i64] = 10  # buckets that a scan looks at, if they are empty
_SHORT: Final[i64] = 100  # bytes: of a string that is shorter four bytes show the length
_LONG: Final[i64] = 0x40000000
# ``$0 CRLF`` and the first four bytes of ``$00 CRLF``, with the lowest byte first.
_DIGIT_LINE: Final[i64] = 0x0A0D3024
_DIGITS_LINE: Final[i64] = 0x0D303024
_NO_HEADER: Final[i64] = 0  # no string begins so
_NO_KEY: Final = bytes(bytearray(b"no key"))  # an object that is never asked for
_HALF: Final[i64] = 0xFFFFFFFF
_SECOND_LINE: Final[i64] = 64
_THIRD_LINE: Final[i64] = 128
_DIRECTORY_BYTES: Final = 80 + 8 * 256
_BUCKET_BYTES: Final = 33 + 8  # head and allocation of a ``bytes``
_TABLE_BYTES: Final = 200
_FREED_WITH_A_PIECE: Final = 16  # buckets


@mypyc_attr(acyclic=True)
class Table:
    """A table of elements.

    Args:
        kind: ``MEMBERS``, ``PAIRS`` or ``SCORES``.
        seed: of the hash function, below 2**SEED_BITS.

    Attributes:
        directories: all buckets in order, 256 in each list but the last; others only read them.
        content_bytes: the length of all buckets, of which there is at least one.
        fullest: no bucket holds more elements, nor did since the table was made.
    """

    def __init__(self, kind: i64, seed: i64) -> None:
        self.kind: Final[i64] = kind
        self.seed: Final[i64] = seed
        self.directories: list[list[bytes]] = [[b""]]
        self.buckets: i64 = 1
        self.count: i64 = 0
        self.content_bytes: i64 = 0
        self.fullest: i64 = 0
        self._shortest: i64 = _LONG  # no key has fewer bytes, nor had since the table was made
        self._mask: i64 = 0  # of the lower bits that a bucket's number has at most
        self._last_key = _NO_KEY  # whose hash is known
        self._last_hash: i64 = 0
        self._ahead = vec[i64]()  # hashes that ``look_ahead`` has made
        self._seen: i64 = 0  # by ``look_ahead``; never read
        self._mine = vec[i64]()  # of each directory: 1 where it may be written to; later ones: 0

    def has(self, key: bytes) -> bool:
        """Return whether there is an element with this key."""
        number = self._number(self._hash(key))
        return find_element(self._bucket(number), key, self.kind) >= 0

    def look_ahead(self, requests: list[list[bytes]], first: i64, end: i64, place: i64) -> None:
        """Have the buckets of some keys brought into the caches, which waits for all at once.

        The keys are at ``place`` of the requests from ``first`` to ``end``; ``take_ahead`` then
        says of each that it is next.
        """
        count = end - first
        while i64(len(self._ahead)) < count:
            self._ahead = append(self._ahead, 0)
        hashes = self._ahead
        at: i64 = 0
        while at < count:
            key = requests[first + at][place]
            hashes[at] = hash_of(key, 0, len(key), self.seed)
            at += 1
        # The shorter this loop is, the more buckets the processor waits for at once. What a bucket
        # holds lies behind its length, in lines of 64 bytes.
        seen: i64 = 0
        at = 0
        while at < count:
            bucket = self._bucket(self._number(hashes[at]))
            size: i64 = len(bucket)
            if size > _SECOND_LINE:
                seen += i64(bucket[_SECOND_LINE])
                if size > _THIRD_LINE:
                    seen += i64(bucket[_THIRD_LINE])
            at += 1
        self._seen = seen

    def take_ahead(self, key: bytes, at: i64) -> None:
        """Ask next for the key that ``look_ahead`` was shown at this place, counted from 0."""
        self._last_key = key
        self._last_hash = self._ahead[at]

    def add(self, key: bytes) -> bool:
        """Add a key to a table of ``MEMBERS``; False if it is there already."""
        number = self._number(self._hash(key))
        bucket = self._bucket(number)
        place = find_element(bucket, key, MEMBERS)
        if place >= 0:
            return False
        self._replace(number, bucket, b"%b%b%b\r\n" % (bucket, header(len(key)), key))
        self._added(key, ~place + 1)
        return True

    def put(self, key: bytes, value: bytes) -> bool:
        """Set the value of a key in a table of ``PAIRS``; False if the key was there already."""
        number = self._number(self._hash(key))
        bucket = self._bucket(number)
        place = find_element(bucket, key, PAIRS)
        if place < 0:
            new = b"%b%b%b\r\n%b%b\r\n" % (bucket, header(len(key)), key, header(len(value)), value)
            self._replace(number, bucket, new)
            self._added(key, ~place + 1)
            return True
        start = place + packed_bytes(len(key))
        self._replace(number, bucket, with_string(bucket, start, value))
        self._grow()
        return False

    def put_score(self, key: bytes, score: float) -> bool:
        """Set the score of a key in a table of ``SCORES``; False if the key was there already."""
        return isnan(self.swap_score(key, score))

    def swap_score(self, key: bytes, score: float) -> float:
        """Set a score as ``put_score``; return the one before, not a number for a new key.

        Equal scores are not exchanged, so that a 0 keeps its sign.
        """
        number = self._number(self._hash(key))
        bucket = self._bucket(number)
        place = find_element(bucket, key, SCORES)
        if place < 0:
            out = empty_buffer()
            out.write(bucket)
            write_string(out, key)
            write_f64_le(out, score)
            self._replace(number, bucket, out.getvalue())
            self._added(key, ~place + 1)
            return NO_SCORE
        place += packed_bytes(len(key))
        old = read_f64_le(bucket, place)
        if old != score:
            self._own(number >> _SHIFT)[number & _WITHIN] = with_score(bucket, place, score)
        return old

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key in a table of ``PAIRS``; None without it."""
        bucket = self._bucket(self._number(self._hash(key)))
        place = find_element(bucket, key, PAIRS)
        if place < 0:
            return None
        place += packed_bytes(len(key))
        size = length_at(bucket, place)
        place += header_bytes(size)
        return bucket[place : place + size]

    def get_packed(self, key: bytes) -> bytes | None:
        """Return the value as ``get`` does, as it stands in its bucket: a packed string."""
        bucket = self._bucket(self._number(self._hash(key)))
        place = find_element(bucket, key, PAIRS)
        if place < 0:
            return None
        place += packed_bytes(len(key))
        return bucket[place : next_at(bucket, place)]

    def score(self, key: bytes) -> float:
        """Return the score of a key in a table of ``SCORES``; not a number without it."""
        bucket = self._bucket(self._number(self._hash(key)))
        place = find_element(bucket, key, SCORES)
        return NO_SCORE if place < 0 else read_f64_le(bucket, next_at(bucket, place))

    def remove(self, key: bytes) -> bool:
        """Take the element with this key out; False if there is none."""
        number = self._number(self._hash(key))
        bucket = self._bucket(number)
        place = find_element(bucket, key, self.kind)
        if place < 0:
            return False
        end = _end_of_rest(bucket, place + packed_bytes(len(key)), self.kind)
        self._cut(number, bucket, place, end)
        return True

    def random(self, bits: i64) -> bytes:
        """Return a random element, as it stands in its bucket, of a table that has some.

        ``bits`` are SEED_BITS that cannot be foreseen; each element is found by as many of them.
        """
        number, place = self._choose(bits)
        bucket = self._bucket(number)
        return bucket[place : element_end(bucket, place, self.kind)]

    def take_random(self, bits: i64) -> bytes:
        """Take out a random element and return it, as ``random``."""
        number, place = self._choose(bits)
        bucket = self._bucket(number)
        end = element_end(bucket, place, self.kind)
        piece = bucket[place:end]
        self._cut(number, bucket, place, end)
        return piece

    def _choose(self, bits: i64) -> tuple[i64, i64]:
        """Choose a bucket and a place in it.

        Every place of every bucket, up to that of the fullest, has the same chance, until one is
        that has an element. Most of those that have none need no walk to show it.
        """
        least = packed_bytes(self._shortest)  # that an element takes
        if self.kind != MEMBERS:
            least += SCORE_BYTES if self.kind == SCORES else packed_bytes(0)
        turn: i64 = 0
        while True:
            number = (mixed(turn, bits) * self.buckets) >> 32
            rank = (mixed(turn + 1, bits) * self.fullest) >> 32
            turn += 2
            bucket = self._bucket(number)
            end: i64 = len(bucket)
            if rank * least >= end:  # so many elements do not fit in
                continue
            place: i64 = 0
            while place < end and rank > 0:
                place = element_end(bucket, place, self.kind)
                rank -= 1
            if place < end:
                return number, place

    def scan(self, cursor: i64, least: i64, found: list[bytes]) -> i64:
        """Add buckets of ``least`` elements to ``found``; return the next cursor; 0: start, end."""
        looks = _SCANNED_PER_ELEMENT * least
        while True:
            number = self._number(cursor & _HALF)
            bucket = self._bucket(number)
            found.append(bucket)
            least -= elements(bucket, self.kind)
            looks -= 1
            half = self._mask >> 1
            bits = self._mask if number > half or number + half + 1 < self.buckets else half
            cursor = _next_cursor(number, bits)
            if cursor == 0 or least <= 0 or looks <= 0:
                return cursor

    def copy(self) -> Table:
        """Return a table of its own with the same elements. Complexity: O(directories)."""
        twin = Table(self.kind, self.seed)
        twin.directories = self.directories[:]
        twin.buckets = self.buckets
        twin.count = self.count
        twin.content_bytes = self.content_bytes
        twin.fullest = self.fullest
        twin._shortest = self._shortest
        twin._mask = self._mask
        self._mine = vec[i64]()
        return twin

    def used_bytes(self) -> int:
        """Return about how much memory it takes, in bytes."""
        whole = _TABLE_BYTES + _DIRECTORY_BYTES * len(self.directories)
        return whole + _BUCKET_BYTES * int(self.buckets) + int(self.content_bytes)

    def effort(self) -> int:
        """Return about how many pieces ``free_some`` has to free."""
        return int(self.buckets) // _FREED_WITH_A_PIECE + 1

    def free_some(self, most: int) -> bool:
        """Free about ``most`` pieces of a table that is no longer used; True at the end."""
        count = max(1, most * _FREED_WITH_A_PIECE // int(DIRECTORY))
        del self.directories[-count:]
        return not self.directories

    def _hash(self, key: bytes) -> i64:
        if key is not self._last_key:
            self._last_key = key
            self._last_hash = hash_of(key, 0, len(key), self.seed)
        return self._last_hash

    def _number(self, hashed: i64) -> i64:
        number = hashed & self._mask
        return number if number < self.buckets else number & (self._mask >> 1)

    def _bucket(self, number: i64) -> bytes:
        return self.directories[number >> _SHIFT][number & _WITHIN]

    def _own(self, at: i64) -> list[bytes]:
        """Return a directory that is about to be written to, copied first if it is shared."""
        directory = self.directories[at]
        if at >= len(self._mine) or not self._mine[at]:
            directory = directory[:]
            self.directories[at] = directory
            self._note_mine(at)
        return directory

    def _note_mine(self, at: i64) -> None:
        while at >= len(self._mine):
            self._mine = append(self._mine, 0)
        self._mine[at] = 1

    def _replace(self, number: i64, old: bytes, new: bytes) -> None:
        self._own(number >> _SHIFT)[number & _WITHIN] = new
        self.content_bytes += i64(len(new)) - i64(len(old))

    def _added(self, key: bytes, elements: i64) -> None:
        self.count += 1
        size: i64 = len(key)
        if size < self._shortest:
            self._shortest = size
        if elements > self.fullest:
            self.fullest = elements
        self._grow()

    def _cut(self, number: i64, bucket: bytes, place: i64, end: i64) -> None:
        self._replace(number, bucket, bucket[:place] + bucket[end:])
        self.count -= 1
        self._shrink()

    def _grow(self) -> None:
        """Split a bucket if there are too many elements, or bytes, for so few of them."""
        if self._would_be_full(1):
            self._split()

    def _shrink(self) -> None:
        """Merge buckets of a table that could grow to three times its size without a split."""
        most = _MERGED_AT_ONCE
        while most > 0 and self.buckets > 1 and not self._would_be_full(_MERGED_BELOW):
            self._merge()
            most -= 1

    def _would_be_full(self, times: i64) -> bool:
        """Return whether ``times`` the elements were too many, or too many bytes, for the buckets.

        Bytes alone never make more buckets than there are elements.
        """
        count = times * self.count
        content_bytes = times * self.content_bytes
        buckets = self.buckets
        if self.kind == MEMBERS and not (
            _SHORT_MEMBER * count < content_bytes <= _LARGE_MEMBER * count
        ):
            full_by_count = count > _MANY_ELEMENTS * buckets
            return full_by_count or (content_bytes > _MANY_BYTES * buckets and count > buckets)
        full_by_count = count > _FEW_ELEMENTS * buckets
        return full_by_count or (content_bytes > _FEW_BYTES * buckets and count > buckets)

    def _split(self) -> None:
        new = self.buckets
        if new > self._mask:
            self._mask = 2 * self._mask + 1
        mask = self._mask
        old = new & (mask >> 1)
        bucket = self._bucket(old)
        stay = empty_buffer()
        move = other_buffer()
        end: i64 = len(bucket)
        first: i64 = 0  # of the elements since then that go together
        side: i64 = 0
        at: i64 = 0
        known = _NO_HEADER  # the one before began so; as long as they are alike
        size: i64 = 0
        before: i64 = 0
        while at < end:
            head = i64(read_i32_le(bucket, at))
            if head != known:
                size = length_at(bucket, at)
                before = header_bytes(size)
                known = head if size < _SHORT else _NO_HEADER
            start = at + before
            hashed = hash_of(bucket, start, size, self.seed)
            other: i64 = 1 if hashed & mask == new else 0
            if other != side:
                if at > first:
                    (move if side else stay).write(bucket[first:at])
                first = at
                side = other
            at = _end_of_rest(bucket, start + size + END_BYTES, self.kind)
        if at > first:
            (move if side else stay).write(bucket[first:at])
        self._own(old >> _SHIFT)[old & _WITHIN] = stay.getvalue()
        self._append(move.getvalue())
        self.buckets += 1

    def _append(self, bucket: bytes) -> None:
        last = self.buckets >> _SHIFT
        if last < len(self.directories):
            self._own(last).append(bucket)
        else:
            self.directories.append([bucket])
            self._note_mine(last)

    def _merge(self) -> None:
        """Remove the last bucket by adding its elements to the bucket that it came from."""
        self.buckets -= 1
        last = self.buckets
        at = last >> _SHIFT
        bucket = self._own(at).pop()
        if not self.directories[at]:
            self.directories.pop()  # its flag says what is true of the next one, too
        other = last & (self._mask >> 1)
        if last - 1 <= self._mask >> 1:
            self._mask >>= 1
        if bucket:
            joined = self._bucket(other) + bucket
            self._own(other >> _SHIFT)[other & _WITHIN] = joined
            self.fullest = max(self.fullest, elements(joined, self.kind))

    def flaw(self) -> str:
        """Return the flaw of a table of untrusted buckets; empty if none. O(elements)."""
        total: i64 = 0
        number: i64 = 0
        for directory in self.directories:
            for bucket in directory:
                if not is_sound_bucket(bucket, self.kind):
                    return f"bucket {number} that cannot be read"
                keys = keys_of(bucket, self.kind)
                if len(set(keys)) < len(keys):
                    return f"bucket {number} with an element that is there twice"
                if len(keys) > self.fullest:
                    return f"bucket {number} with more elements than any has"
                for key in keys:
                    if self._number(self._hash(key)) != number:
                        return f"bucket {number} with an element that belongs to another one"
                total += len(keys)
                number += 1
        return "" if total == self.count else f"{total} elements where {self.count} are counted"


def table_of(
    kind: i64, seed: i64, count: i64, fullest: i64, directories: list[list[bytes]]
) -> Table | None:
    """Return a table of what another one held, which owns its directories now; None: it cannot be.

    Nothing is hashed, and no bucket is looked at: see ``Table.flaw``.
    """
    table = Table(kind, seed)
    buckets: i64 = 0
    content_bytes: i64 = 0
    for directory in directories:
        if buckets & _WITHIN or not directory or len(directory) > DIRECTORY:
            return None
        buckets += len(directory)
        for bucket in directory:
            content_bytes += len(bucket)
    if not buckets or fullest < 0 or count < 0:
        return None
    while table._mask < buckets - 1:
        table._mask = 2 * table._mask + 1
    table.directories = directories
    table.buckets = buckets
    table.count = count
    table.content_bytes = content_bytes
    table.fullest = fullest
    table._shortest = 0
    return table


def element_end(bucket: bytes, at: i64, kind: i64) -> i64:
    """Return where the element at a place ends: there the next one begins."""
    return _end_of_rest(bucket, next_at(bucket, at), kind)


def _end_of_rest(bucket: bytes, at: i64, kind: i64) -> i64:
    if kind == PAIRS:
        return next_at(bucket, at)
    return at + SCORE_BYTES if kind == SCORES else at


def elements(bucket: bytes, kind: i64) -> i64:
    """Return how many elements a bucket has. Complexity: O(elements)."""
    found: i64 = 0
    at: i64 = 0
    end: i64 = len(bucket)
    while at < end:
        at = element_end(bucket, at, kind)
        found += 1
    return found


def keys_of(bucket: bytes, kind: i64) -> list[bytes]:
    """Return the keys of a bucket."""
    found: list[bytes] = []
    at: i64 = 0
    end: i64 = len(bucket)
    while at < end:
        size = length_at(bucket, at)
        start = at + header_bytes(size)
        found.append(bucket[start : start + size])
        at = element_end(bucket, at, kind)
    return found


def is_sound_bucket(bucket: bytes, kind: i64) -> bool:
    """Return whether an untrusted bucket consists of elements of this kind and nothing else."""
    at: i64 = 0
    end: i64 = len(bucket)
    while at < end:
        at = sound_end(bucket, at)
        if at != NOWHERE and kind == PAIRS:
            at = sound_end(bucket, at)
        if at != NOWHERE and kind == SCORES:
            at += SCORE_BYTES
            if at > end or isnan(read_f64_le(bucket, at - SCORE_BYTES)):
                return False
        if at == NOWHERE:
            return False
    return True


def _next_cursor(number: i64, bits: i64) -> i64:
    """Return what follows a bucket when one counts with bits reversed; 0 after the last one.

    ``bits`` is a mask of the bits of hashes that all keys of the bucket have in common.
    """
    bit = (bits + 1) >> 1
    while bit and number & bit:
        number ^= bit
        bit >>= 1
    return number | bit


def find_element(bucket: bytes, key: bytes, kind: i64, at: i64 = 0) -> i64:
    """Return where the element with a key begins; ``~`` of the number of elements if there is none.

    The search begins at ``at``, where an element begins. It is one function, because it is most of
    what a table does: an element that is another one costs two reads, of the first four bytes of
    its header and of the last four of its key. Headers that are alike make for equal steps, so no
    step has to wait for what is read.
    """
    size: i64 = len(key)
    before = header_bytes(size)
    wanted: i64 = 0
    if size < 10:
        wanted = _DIGIT_LINE + (size << 8)
    elif size < _SHORT:
        tens = size * 205 >> 11  # a tenth, without a division
        wanted = _DIGITS_LINE + (tens << 8) + ((size - 10 * tens) << 16)
    else:
        wanted = i64(read_i32_le(header(int(size)), 0))
    tail_at = before + size - 4
    tail = i64(
        read_i32_le(key, size - 4) if size >= 4 else read_i32_le(header(int(size)) + key, size)
    )
    key_step = before + size + END_BYTES
    known = _NO_HEADER  # of a value: the one before began so
    step: i64 = 0
    end: i64 = len(bucket)
    met: i64 = 0
    while at < end:
        if i64(read_i32_le(bucket, at)) == wanted and (
            size < _SHORT or length_at(bucket, at) == size
        ):
            if i64(read_i32_le(bucket, at + tail_at)) == tail and (
                size <= 4 or _same_before_tail(bucket, at + before, key)
            ):
                return at
            at += key_step
        else:
            at = next_at(bucket, at)
        if kind == PAIRS:
            head = i64(read_i32_le(bucket, at))
            if head != known:
                step = next_at(bucket, at) - at
                known = head if step < _SHORT else _NO_HEADER
            at += step
        elif kind == SCORES:
            at += SCORE_BYTES
        met += 1
    return ~met


def _same_before_tail(bucket: bytes, start: i64, key: bytes) -> bool:
    left = i64(len(key)) - 4
    at: i64 = 0
    while left >= 8:
        if read_i64_le(bucket, start + at) != read_i64_le(key, at):
            return False
        at += 8
        left -= 8
    # The rest is less than a word; what is compared with it has been compared, or will be again.
    while left > 0:
        if read_i32_le(bucket, start + at) != read_i32_le(key, at):
            return False
        at += 4
        left -= 4
    return True
