"""Blocks: up to a hundred or so entries, open as Python lists or sealed into one ``bytes``.

The sealed form never changes. Deleted entries are marked in ``dead``, one byte for each entry of
the payload, and the payload is made anew without them when half of them are gone.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i32, i64, mypyc_attr

from storage.stream.ids import is_below
from storage.stream.listpack import (
    EMPTY_BYTES,
    are_as_long,
    delta_bytes,
    integer_bytes,
    text_bytes,
)
from storage.stream.payload import count_ids, has_names, pack, unpack, unpack_ids, unpack_some
from storage.stream.run import NO_NAMES, Run

NODE_BYTES_MAX: Final = 1 << 30
RECENT_BLOCKS: Final = 8
_OFTEN: Final = 2  # times that a block was read in part lately, after which it is decoded whole


@mypyc_attr(acyclic=True)
class Block:
    """One node of a stream.

    It is small, and what readers ask for stands first: in a large stream it is in no cache.

    Attributes:
        payload: the sealed form; empty while the block is open.
        dead: None, or a byte for each entry of the run: 1 is deleted.
        run: the decoded form: always there while open; when sealed, if it was read a moment ago.
        live: entries that are still there.
        total: entries it ever held; live and deleted.
        first_ms, first_seq: ID of the first entry it ever held.
        last_ms, last_seq: ID of the last entry it ever held.
        ids_bytes: length of the payload's first part.
        met: how often it was read lately, up to ``_OFTEN``.
        node_bytes: what Redis's node would take.
    """

    def __init__(self, ms: int, seq: int) -> None:
        self.payload = b""
        self.dead: bytearray | None = None
        self.run: Run | None = None
        self.live = 0
        self.total = 0
        self.first_ms = ms
        self.first_seq = seq
        self.last_ms = ms
        self.last_seq = seq
        self.ids_bytes: i32 = 0
        self.met: i32 = 0
        self.node_bytes = 0

    def is_open(self) -> bool:
        """Whether entries can be appended."""
        return not self.payload

    def is_below(self, ms: int, seq: int) -> bool:
        """Whether every ID the block ever held is below (ms, seq)."""
        return is_below(self.last_ms, self.last_seq, ms, seq)

    def entries(self) -> Run:
        """The decoded entries, the dead ones included."""
        run = self.run
        if run is None:
            run = self.decode()
            self.run = run
            if not self.met:
                _recent.add(self)
            self.met = _OFTEN
        return run

    def decode(self) -> Run:
        """The entries of a sealed block, the dead ones included, without keeping them at hand."""
        return unpack(self.payload, self.ids_bytes)

    def some(self, start: tuple[int, int], end: tuple[int, int], most: int, reverse: bool) -> Run:
        """The ``most`` entries from ``start`` to ``end``, or the last of those if ``reverse``.

        Others may be there, too. A block is decoded whole only when it is read again and again:
        those who pass by pay for what they see.
        """
        run = self.run
        if run is not None:
            self.met = _OFTEN  # of an open block, so that it stays decoded when it is sealed
            return run
        if self.dead is None and self.met < _OFTEN:
            run = unpack_some(self.payload, i64(self.ids_bytes), start, end, most, reverse)
            if run is not None:
                if not self.met:
                    _recent.add(self)
                self.met += 1
                return run
        return self.entries()

    def ids(self) -> Run:
        """The IDs, of the dead entries too, in a run whose values are not to be looked at.

        Cheaper than ``entries``, and no block that readers come back to is forgotten for it.
        """
        run = self.run
        if run is None:
            run = Run(NO_NAMES)
            unpack_ids(self.payload, self.ids_bytes, run)
        return run

    def seal(self) -> None:
        """Pack the live entries into the payload.

        The decoded form stays at hand where it was read from: who reads at the end of a stream may
        not have seen all of it.
        """
        run = self.entries()
        if self.dead is not None:
            run = _living(run, self.dead)
            self.dead = None
        self.payload, self.ids_bytes = pack(run)
        if self.met:
            self.run = run
            _recent.add(self)
        else:
            self.run = None

    def packed(self) -> tuple[bytes, int]:
        """The payload with all entries, the dead ones included, and the length of its IDs."""
        return pack(self.entries()) if self.is_open() else (self.payload, self.ids_bytes)

    def reopen(self) -> None:
        """Back to Python objects, to be appended to."""
        run = self.decode()
        run.names_of_node = run.row(0)[0::2]
        self.run = run
        self.payload = b""

    def next_live(self, number: int) -> int:
        """The first entry from ``number`` on that is not deleted; -1 when there is none."""
        return number if self.dead is None else self.dead.find(0, number)

    def bury(self, number: int) -> None:
        """Mark one live entry as deleted."""
        if self.dead is None:
            self.dead = bytearray(self._size())
        self.dead[number] = 1
        self.live -= 1

    def drop_head(self, count: int) -> None:
        """Mark the ``count`` oldest live entries as deleted; at least one more is live."""
        if self.dead is None:
            self.dead = bytearray(self._size())
        dead = self.dead
        number = 0
        for _ in range(count):
            number = dead.find(0, number)
            dead[number] = 1
        self.live -= count

    def _size(self) -> int:
        """How many entries the run or the payload holds."""
        if self.run is not None:
            return len(self.run.ms)
        return count_ids(self.payload)

    def is_sparse(self) -> bool:
        """Whether at least half of the sealed entries are dead, so that packing anew pays."""
        return self.dead is not None and not self.is_open() and 2 * self.live <= len(self.dead)

    def copy(self) -> Block:
        """An equal block; the sealed payload is shared, for it never changes."""
        twin = Block(self.first_ms, self.first_seq)
        twin.last_ms = self.last_ms
        twin.last_seq = self.last_seq
        twin.total = self.total
        twin.live = self.live
        twin.dead = None if self.dead is None else bytearray(self.dead)
        twin.node_bytes = self.node_bytes
        twin.payload = self.payload
        twin.ids_bytes = self.ids_bytes
        if self.run is not None and self.is_open():
            twin.run = self.run.copy()
        return twin


class _Recent:
    """The sealed blocks read last, of all streams; the newest takes the place of the oldest.

    Readers follow each other closely and stretches cross from block to block, so a few are enough;
    more would cost memory and make short streams faster than long ones.
    """

    def __init__(self) -> None:
        self._blocks: list[Block | None] = [None] * RECENT_BLOCKS
        self._next = 0

    def add(self, block: Block) -> None:
        oldest = self._blocks[self._next]
        if oldest is not None:
            oldest.met = 0
            if not oldest.is_open():
                oldest.run = None
        self._blocks[self._next] = block
        self._next = (self._next + 1) % RECENT_BLOCKS


_recent: Final = _Recent()


def open_block(ms: int, seq: int, words: list[bytes], at: int) -> Block:
    """A block that is open and empty, whose first entry will be (ms, seq) ``words[at:]``."""
    block = Block(ms, seq)
    names: list[bytes] = []
    run = Run(names)
    run.names_of_node = names
    block.run = run
    # Counts of live and deleted entries, number of names, the names, a closing 0.
    size: i64 = EMPTY_BYTES + 2 + 2 + integer_bytes((len(words) - at) // 2) + 2
    place: i64 = at
    end: i64 = len(words)
    while place < end:
        names.append(words[place])
        size += text_bytes(words[place])
        place += 2
    block.node_bytes = int(size)
    return block


def bytes_limit(node_bytes_max: int) -> int:
    """What ``stream-node-max-bytes`` comes to; 0 is no limit, but for the greatest there is."""
    return node_bytes_max if 0 < node_bytes_max < NODE_BYTES_MAX else NODE_BYTES_MAX


def size_of(words: list[bytes], at: i64) -> int:
    """How many bytes the fields and values ``words[at:]`` have."""
    size: i64 = 0
    end: i64 = len(words)
    while at < end:
        size += len(words[at])
        at += 1
    return int(size)


def append_alike(
    block: Block,
    ms: int,
    seq: int,
    requests: list[list[bytes]],
    first: int,
    end: int,
    at: int,
    node_bytes_max: int,
    node_entries_max: int,
) -> int:
    """Add the entries ``requests[first:end]``, of each ``[at:]``, to an open block, while they fit.

    All have as many words. They fit while they have the names that all entries before have, and
    Redis would not start a new node. One by one, ``append`` comes to the same sizes.

    Args:
        ms, seq: the ID of the first of them, above all that the block has; the next ones follow.

    Returns: how many were added.
    """
    run = block.run
    assert run is not None
    names = run.names
    if names is None or len(requests[first]) != at + 2 * len(names):
        return 0
    if node_entries_max > 0:
        end = min(end, first + max(0, node_entries_max - block.total))
    most_bytes: i64 = bytes_limit(node_bytes_max)
    width = len(names)
    flat = run.flat
    size: i64 = block.node_bytes
    # Flags, the ID's two halves, the values, how many elements that were.
    head: i64 = 2 + delta_bytes(ms - block.first_ms) + integer_bytes(width + 3)
    delta = seq - block.first_seq
    delta_size: i64 = delta_bytes(delta)
    steady = are_as_long(delta, delta + end - first)
    names_bytes: i64 = 0
    for name in names:
        names_bytes += len(name)
    next_seq = seq
    for words in requests[first:end]:
        if not steady:
            delta_size = delta_bytes(next_seq - block.first_seq)
        filled = size + head + delta_size
        compared = size + names_bytes
        place: i64 = at
        for name in names:
            if words[place] != name:
                break
            value = words[place + 1]
            compared += len(value)
            filled += text_bytes(value)
            flat.append(value)
            place += 2
        else:
            if compared < most_bytes:
                size = filled
                next_seq += 1
                continue
        break
    added = next_seq - seq
    del flat[(len(run.ms) + added) * width :]  # of an entry that does not fit
    if added:
        run.ms.extend([ms] * added)
        run.seq.extend(range(seq, next_seq))
        block.node_bytes = int(size)
        block.last_ms = ms
        block.last_seq = next_seq - 1
        block.total += added
        block.live += added
        if block.dead is not None:
            block.dead.extend(bytes(added))
    return added


def append(block: Block, ms: int, seq: int, words: list[bytes], at: int) -> None:
    """Add the entry ``words[at:]`` to an open block; the ID is above all of its IDs."""
    run = block.run
    assert run is not None
    # Flags, the ID's two halves, the values or all there is, how many elements that were.
    size: i64 = 2 + delta_bytes(ms - block.first_ms) + delta_bytes(seq - block.first_seq)
    names = run.names_of_node
    end: i64 = len(words)
    if has_names(words, at, names):
        size += integer_bytes(len(names) + 3)
        flat = run.flat
        mixed = run.names is None
        number: i64 = at + 1
        while number < end:
            value = words[number]
            size += text_bytes(value)
            if not mixed:
                flat.append(value)
            number += 2
        if mixed:
            run.rows.append(words[at:])
    else:
        if run.names is not None:
            run.mix()
        row = words[at:]
        size += integer_bytes(len(row) // 2) + integer_bytes(len(row) + 4)
        for element in row:
            size += text_bytes(element)
        run.rows.append(row)
    block.node_bytes += int(size)
    run.ms.append(ms)
    run.seq.append(seq)
    if block.dead is not None:
        block.dead.append(0)
    block.last_ms = ms
    block.last_seq = seq
    block.total += 1
    block.live += 1


def _living(run: Run, dead: bytearray) -> Run:
    living = Run(None)
    number = dead.find(0)
    while number >= 0:
        living.ms.append(run.ms[number])
        living.seq.append(run.seq[number])
        living.rows.append(run.row(number))
        number = dead.find(0, number + 1)
    return living
