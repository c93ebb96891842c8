"""Blocks: up to a hundred or so entries, open as Python lists or sealed into one ``bytes``.

The sealed form never changes. Deleted entries are marked in ``dead``, one byte for each entry of
the payload, and the payload is made anew without them when half of them are gone.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i32, i64, mypyc_attr, trait

from headrace.storage.stream.packing import pack
from headrace.storage.stream.payload import (
    UNKNOWN,
    count_ids,
    number_of,
    unpack,
    unpack_ids,
    unpack_some,
)
from headrace.storage.stream.reach import REACH_MAX, evenly
from headrace.storage.stream.run import NO_NAMES, Run, is_below, names_of

BLOCK_BYTES: Final = 200  # a block's own objects beside its payload
RECENT_BLOCKS: Final = 8
_LINE_BYTES: Final = 64  # that come into a cache together
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
        ids_bytes: length of the payload's first part.
        met: how often it was read lately, up to ``_OFTEN``.
        total: entries it ever held; live and deleted.
        first_ms, first_seq, last_ms, last_seq: IDs of the first and last entry it ever held.
        node_bytes: what Redis's node would take.
    """

    def __init__(self, ms: int, seq: int) -> None:
        self.payload = b""
        self.dead: bytearray | None = None
        self.run: Run | None = None
        self.live = 0
        self.ids_bytes: i32 = 0
        self.met: i32 = 0
        self.total = 0
        self.first_ms = ms
        self.first_seq = seq
        self.last_ms = ms
        self.last_seq = seq
        self.node_bytes = 0

    def is_open(self) -> bool:
        """Return whether entries can be appended."""
        return not self.payload

    def is_below(self, ms: int, seq: int) -> bool:
        """Return whether every ID the block ever held is below (ms, seq)."""
        return is_below(self.last_ms, self.last_seq, ms, seq)

    def entries(self) -> Run:
        """Return the decoded entries, the dead ones included."""
        run = self.run
        if run is None:
            run = self.decode()
            self.run = run
            if not self.met:
                _recent.add(self)
            self.met = _OFTEN
        return run

    def decode(self) -> Run:
        """Return the entries of a sealed block, the dead ones included, without keeping them."""
        return unpack(self.payload, self.ids_bytes)

    def some(self, start: tuple[int, int], end: tuple[int, int], most: int, reverse: bool) -> Run:
        """Return the ``most`` entries from ``start`` to ``end``, the last if ``reverse``.

        Others may be there, too. A block is decoded whole only when it is read again and again; a
        reader that passes by pays for what it sees.
        """
        run = self.run
        if run is not None:
            self.met = _OFTEN  # of an open block, so that it stays decoded when it is sealed
            return run
        if self.met < _OFTEN:
            size = i64(self.ids_bytes)
            run = unpack_some(self.payload, size, start, end, most, reverse, self.dead)
            if run is not None:
                self._meet()
                return run
        return self.entries()

    def look_at_entries(self, ms: i64) -> i64:
        """Look at IDs, and at values from a millisecond on; the sum that is returned is useless.

        Values are looked at where they are if all take as much and come evenly in time.
        """
        payload = self.payload
        last: i64 = len(payload) - 1
        if last < 0:
            return 0
        ids = i64(self.ids_bytes)
        first_ms = min(self.first_ms, REACH_MAX)
        last_ms = min(self.last_ms, REACH_MAX)
        at = evenly(ids, last, first_ms, last_ms, ms)
        seen = i64(payload[ids >> 1]) + i64(payload[ids]) + i64(payload[at])
        for lines in range(1, 3):
            seen += i64(payload[min(at + lines * _LINE_BYTES, last)])
        return seen

    def _meet(self) -> None:
        if not self.met:
            _recent.add(self)
        self.met += 1

    def dead_of(self, run: Run) -> bytearray | None:
        """Return which entries of ``run``, the block's or a part of it, are deleted."""
        dead = self.dead
        size = len(run.ms)
        return dead if dead is None or len(dead) == size else dead[run.first : run.first + size]

    def number_in(self, run: Run, ms: int, seq: int) -> int:
        """Return the number in a run of this block of the live entry with this ID, or -1."""
        number = run.position(ms, seq)
        if number >= len(run.ms) or run.ms[number] != ms or run.seq[number] != seq:
            return -1
        return -1 if self.dead is not None and self.dead[run.first + number] else number

    def number_of(self, ms: int, seq: int) -> int:
        """Return the number of the live entry with this ID; -1 when there is none."""
        if self.run is None and self.met < _OFTEN:
            number = int(number_of(self.payload, ms, seq))
            if number != UNKNOWN:
                self._meet()
                return -1 if number >= 0 and self.dead is not None and self.dead[number] else number
        return self.number_in(self.entries(), ms, seq)

    def count_before(self, ms: int, seq: int) -> int:
        """Return how many of its live entries have an ID below (ms, seq)."""
        high = self.entries().position(ms, seq)
        return high if self.dead is None else self.dead.count(0, 0, high)

    def ids(self) -> Run:
        """Return the IDs, of the dead entries too, in a run whose values are not to be looked at.

        Cheaper than ``entries``, and no block that readers come back to is forgotten for it.
        """
        run = self.run
        if run is None:
            run = Run(NO_NAMES)
            unpack_ids(self.payload, self.ids_bytes, run)
        return run

    def live_ids(self) -> list[tuple[int, int]]:
        """Return the IDs of its entries that live, in order."""
        run = self.entries()
        dead = self.dead
        return [
            (run.ms[number], run.seq[number])
            for number in range(len(run.ms))
            if dead is None or not dead[number]
        ]

    def seal(self) -> None:
        """Pack the live entries into the payload.

        The decoded form is kept if it was read lately, because a reader at the end of the stream
        may not have seen all of it.
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
        """Return the payload with all entries, dead ones included, and the length of its IDs."""
        return pack(self.entries()) if self.is_open() else (self.payload, self.ids_bytes)

    def reopen(self) -> None:
        """Decode it to Python objects, to be appended to."""
        run = self.decode()
        run.names_of_node = names_of(run.row(0), 0)
        self.run = run
        self.payload = b""

    def next_live(self, number: int) -> int:
        """Return the first entry from ``number`` on that is not deleted; -1 when there is none."""
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
        return count_ids(self.payload) if self.run is None else len(self.run.ms)

    def is_sparse(self) -> bool:
        """Return whether at least half of the sealed entries are dead: packing anew pays then."""
        return self.dead is not None and not self.is_open() and 2 * self.live <= len(self.dead)

    def copy(self) -> Block:
        """Return an equal block; the sealed payload is shared, because it never changes."""
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


def _living(run: Run, dead: bytearray) -> Run:
    living = Run(None)
    number = dead.find(0)
    while number >= 0:
        living.ms.append(run.ms[number])
        living.seq.append(run.seq[number])
        living.rows.append(run.row(number))
        number = dead.find(0, number + 1)
    return living


@trait
class BlockKeeper:
    """Gets reports from a stream of changes of its blocks, and of its end: a frozen stream."""

    def keep(self, block: Block) -> None:
        """Keep a sealed block as it is, because it is about to change."""
        raise NotImplementedError

    def keep_last(self, blocks: list[Block]) -> None:
        """Keep the last block with entries, about to be taken off ``blocks`` and appended to."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Have the stream freed by the next to thaw it, because it has no other user."""
        raise NotImplementedError
