"""The entries of a stream: an append-only log ordered by ID, packed in blocks.

Entries go to ``tail``, the open block; when Redis would start a new node the tail is sealed and
moves into ``index``. So the blocks are Redis's nodes, entry for entry, and ``trim`` and
``node_count`` give Redis's numbers.

Finding an ID is a binary search over blocks, then inside of one: O(log n). Walking meets no empty
blocks, however much was deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.storage.stream.appending import (
    NodeLimits,
    append,
    append_alike,
    open_block,
    size_of,
    span_of,
)
from headrace.storage.stream.block import BLOCK_BYTES, Block, BlockKeeper
from headrace.storage.stream.index import BlockIndex
from headrace.storage.stream.part import Part, Stretch, part_of, part_with
from headrace.storage.stream.run import ID_MAX, is_below
from headrace.storage.value import Removed, StorageError, Value

if TYPE_CHECKING:
    from librt.vecs import vec
    from mypy_extensions import i64

ADDED_MAX: Final = 2**63 - 1  # the greatest number that XSETID takes, and so a file that is read
ENTRY_BYTES_MAX: Final = 1 << 30
CUT_BLOCKS: Final = 64  # nodes that are taken off at once, and not one by one
SCATTERED_BLOCKS: Final = 2048  # from which they are in no cache, mostly
_FEW: Final = 8  # entries of a node, or less: to add several to it at once is no gain


class IDNotGreater(StorageError):
    """The ID asked for is not above the last one the stream generated."""


class IDsExhausted(StorageError):
    """The stream's last ID is the greatest there is."""


class ElementsTooLarge(StorageError):
    """The fields and values of an entry together are over a gibibyte."""


class EntryLog(Value):
    """Entries, what was deleted and added, and the last ID.

    Attributes:
        length: live entries.
        last_ms, last_seq: the last ID generated; it never goes back when entries are deleted.
        max_deleted_ms, max_deleted_seq: the greatest ID deleted; trimming does not count.
        entries_added: entries ever added, up to ``ADDED_MAX``.
        frozen: what keeps a sealed block before it changes, or None.
    """

    def __init__(self) -> None:
        self.index = BlockIndex()
        self.tail: Block | None = None
        self.length = 0
        self.last_ms = 0
        self.last_seq = 0
        self.max_deleted_ms = 0
        self.max_deleted_seq = 0
        self.entries_added = 0
        self.frozen: BlockKeeper | None = None
        self._first_ms = 0  # of the first live entry, while ``_first_known``
        self._first_seq = 0
        self._first_known = False

    # Appending

    def next_seq(self, ms: int) -> int:
        """Return the sequence that ``ms-*`` stands for. Raises: IDsExhausted, IDNotGreater."""
        if ms != self.last_ms:
            return 0
        if self.last_seq != ID_MAX:
            return self.last_seq + 1
        raise IDsExhausted if ms == ID_MAX else IDNotGreater

    def append_next(self, now_ms: int, words: list[bytes], at: int, limits: NodeLimits) -> None:
        """Append an entry with the ID that ``*`` stands for; it is the last ID afterwards."""
        ms, seq = self._next_id(now_ms)
        self._append(ms, seq, words, at, limits)

    def append_alike(
        self,
        now_ms: int,
        requests: list[list[bytes]],
        first: int,
        end: int,
        at: int,
        limits: NodeLimits,
    ) -> int:
        """Append as ``append_next`` the entries ``requests[first:end]``, of each ``[at:]``.

        All have as many words. The IDs are in sequence, and the last of them is the last ID
        afterwards. Returns: how many were added; where that is not all, the next one is for
        ``append_next``.
        """
        if self.last_ms == ID_MAX:
            return 0
        ms, seq = self._next_id(now_ms)
        return self.append_in_steps(ms, seq, 1, requests, first, end, at, limits)

    def append_in_steps(
        self,
        ms: int,
        seq: int,
        step: i64,
        requests: list[list[bytes]],
        first: int,
        end: int,
        at: int,
        limits: NodeLimits,
    ) -> int:
        """Append as ``append_alike``, from an ID above all there are on, ``step`` apart."""
        count = end - first
        if seq > ID_MAX - span_of(step, count) or self.entries_added > ADDED_MAX - count:
            return 0
        one_by_one = _FEW * size_of(requests[first], at) >= limits.too_many_bytes
        one = int(step)
        place = first
        while place < end:
            added = 0
            tail = self.tail
            if tail is not None and not one_by_one:
                added = append_alike(tail, ms, seq, step, requests, place, end, at, limits)
            if added:
                self.length += added
                self.entries_added += added
                self.last_ms = ms
                self.last_seq = seq + span_of(step, added - 1)
                seq += span_of(step, added)
            else:
                try:
                    self._append(ms, seq, requests[place], at, limits)
                except ElementsTooLarge:
                    break
                added = 1
                seq += one
            place += added
        return place - first

    def _next_id(self, now_ms: int) -> tuple[int, int]:
        """Return the ID that ``*`` stands for. Raises: IDsExhausted; none is above the last one."""
        if now_ms > self.last_ms:
            return now_ms, 0
        if self.last_seq != ID_MAX:
            return self.last_ms, self.last_seq + 1
        if self.last_ms != ID_MAX:
            return self.last_ms + 1, 0
        raise IDsExhausted

    def append(self, ms: int, seq: int, words: list[bytes], at: int, limits: NodeLimits) -> None:
        """Add an entry, whose fields and values in turn are ``words[at:]``; ``limits`` of its node.

        Raises: IDsExhausted, IDNotGreater, ElementsTooLarge: and then nothing has changed.
        Complexity: O(fields), amortised.
        """
        last_ms = self.last_ms
        if ms < last_ms or (ms == last_ms and seq <= self.last_seq):
            if last_ms == ID_MAX and self.last_seq == ID_MAX:
                raise IDsExhausted
            raise IDNotGreater
        self._append(ms, seq, words, at, limits)

    def _append(self, ms: int, seq: int, words: list[bytes], at: int, limits: NodeLimits) -> None:
        size = size_of(words, at)
        if size > ENTRY_BYTES_MAX:
            raise ElementsTooLarge
        tail = self.tail
        if tail is None:
            tail = self._reopened()
        if tail is not None and limits.is_full(tail, size):
            self._seal_tail()
            tail = None
        if tail is None:
            tail = open_block(ms, seq, words, at)
            self.tail = tail
        append(tail, ms, seq, words, at)
        self.length += 1
        if self.entries_added != ADDED_MAX:
            self.entries_added += 1
        self.last_ms = ms
        self.last_seq = seq

    def _reopened(self) -> Block | None:
        """Return the last sealed block as the open one; Redis always appends to its last node."""
        index = self.index
        if not index.entries:
            return None
        if self.frozen is not None:
            self.frozen.keep_last(index.blocks)
        block = index.pop()
        block.reopen()
        self.tail = block
        return block

    def _seal_tail(self) -> None:
        tail = self.tail
        assert tail is not None
        if tail.live:
            tail.seal()
            self.index.add(tail)
        self.tail = None

    def take_block(self, block: Block) -> None:
        """Append a block as it is, of another log, which has no use for it any more.

        All its entries have to be above the last ID; ``entries_added`` is left alone.
        """
        if self.tail is not None:
            self._seal_tail()
        if block.is_open():
            self.tail = block
        else:
            self.index.add(block)
        self.length += block.live
        self.last_ms = block.last_ms
        self.last_seq = block.last_seq

    # Reading

    def first_id(self) -> tuple[int, int]:
        """Return the ID of the first live entry; (0, 0) when there is none."""
        if not self.length:
            return 0, 0
        if not self._first_known:
            for part in self.parts((0, 0), (ID_MAX, ID_MAX), 1, False):
                self._first_ms = part.run.ms[part.low]
                self._first_seq = part.run.seq[part.low]
                self._first_known = True
        return self._first_ms, self._first_seq

    def last_entry_id(self) -> tuple[int, int]:
        """Return the ID of the last live entry; (0, 0) when there is none."""
        tail = self.tail
        if tail is not None and tail.live and (tail.dead is None or not tail.dead[-1]):
            return tail.last_ms, tail.last_seq
        for part in self.parts((0, 0), (ID_MAX, ID_MAX), 1, True):
            number = part.high - 1
            return part.run.ms[number], part.run.seq[number]
        return 0, 0

    def last_before(self, bound: tuple[int, int]) -> tuple[int, int]:
        """Return the ID of the last live entry below ``bound``; (0, 0) when there is none."""
        ms, seq = bound
        if not ms and not seq:
            return 0, 0
        end = (ms, seq - 1) if seq else (ms - 1, ID_MAX)
        for part in self.parts((0, 0), end, 1, True):
            number = part.high - 1
            return part.run.ms[number], part.run.seq[number]
        return 0, 0

    def contains(self, ms: int, seq: int) -> bool:
        """Return whether a live entry has this ID. Complexity: O(log n), whatever it holds."""
        block = self.block_for(ms, seq)
        return block is not None and block.number_of(ms, seq) >= 0

    def has_after(self, ms: int, seq: int) -> bool:
        """Return whether a live entry has an ID above (ms, seq)."""
        if not self.length or not is_below(ms, seq, self.last_ms, self.last_seq):
            return False
        last_ms, last_seq = self.last_entry_id()
        return is_below(ms, seq, last_ms, last_seq)

    def block_for(self, ms: int, seq: int) -> Block | None:
        """Return the block that has the live entry with this ID; without one, any block or None."""
        if not self.length:
            return None
        first_ms, first_seq = self.first_id()
        if is_below(ms, seq, first_ms, first_seq):
            return None
        block = self._block_at(self.index.find(ms, seq))
        return block if block is not None and block.live else None

    def one(self, ms: int, seq: int) -> Part | None:
        """Return where the live entry with this ID is to be found; None when there is none."""
        block = self.block_for(ms, seq)
        if block is None:
            return None
        run = block.some((ms, seq), (ms, seq), 1, False)
        return part_with(block, run, ms, seq)

    def count_before(self, ms: int, seq: int) -> int:
        """Return how many live entries have an ID below (ms, seq). Complexity: O(log n)."""
        place = self.index.find(ms, seq)
        count = self.index.count_before(place)
        block = self._block_at(place)
        return count if block is None or not block.live else count + block.count_before(ms, seq)

    def around_rank(self, rank: int) -> Stretch:
        """Return some IDs in a row, one with ``rank`` live entries before it. O(log n)."""
        index = self.index
        before = index.entries
        block = self.tail
        if rank < before:
            place = index.place_of_rank(rank)
            block = index.blocks[place]
            before = index.count_before(place)
        assert block is not None
        return Stretch(block.ids(), block.dead, before, block.live)

    def parts(
        self,
        start: tuple[int, int],
        end: tuple[int, int],
        count: int,
        reverse: bool,
        most_bytes: int = 0,
    ) -> list[Part]:
        """Return where the live entries from ``start`` to ``end``, both included, are to be found.

        Args:
            count: the most entries; 0 or less is all of them.
            reverse: from ``end`` back to ``start``; parts and their entries are then to be read
                backwards.
            most_bytes: end behind the part with which a reply certainly has so many; 0 is all of
                them. Not to be given with ``reverse``.

        Returns: parts in reading order. The first and last entry of each part is live; ``dead``
        says which of those between them are. Complexity: O(log n + blocks met).
        """
        if not self.length:
            return []
        bounded = is_below(end[0], end[1], self.last_ms, self.last_seq)
        if not bounded:  # the greatest ID there is would take long to compare with
            end = (self.last_ms, self.last_seq)
        if is_below(end[0], end[1], start[0], start[1]):
            return []
        if reverse:
            return self._parts_back(start, end, count)
        index = self.index
        found: list[Part] = []
        place = index.next_live(index.find(start[0], start[1]))
        wanted = count
        while True:
            block = self._block_at(place)
            if block is None:
                return found
            if bounded and is_below(end[0], end[1], block.first_ms, block.first_seq):
                return found
            part = part_of(block, start, end, wanted, False)
            if part is not None:
                found.append(part)
                if count > 0:
                    wanted -= part.live()
                    if wanted <= 0:
                        return found
                if most_bytes:
                    most_bytes -= part.least_bytes()
                    if most_bytes <= 0:
                        return found
            if place >= len(index.blocks):
                return found
            place = index.next_live(place + 1)

    def is_scattered(self) -> bool:
        """Return whether most of the entries are in no cache, so that it pays to ``look_ahead``."""
        return len(self.index.blocks) >= SCATTERED_BLOCKS

    def look_ahead(self, all_ms: vec[i64]) -> None:
        """Have the entries from each of these milliseconds on brought into the caches, together.

        The stream is scattered, and its ``parts`` from there on are about to be read.
        """
        self.index.look_ahead(all_ms)

    def _parts_back(self, start: tuple[int, int], end: tuple[int, int], count: int) -> list[Part]:
        index = self.index
        found: list[Part] = []
        wanted = count
        tail = self.tail
        place = len(index.blocks)
        if tail is None or is_below(end[0], end[1], tail.first_ms, tail.first_seq):
            place = index.find(end[0], end[1])
            place = index.previous_live(min(place, len(index.blocks) - 1))
        while place >= 0:
            block = self._block_at(place)
            if block is None or block.is_below(start[0], start[1]):
                return found
            part = part_of(block, start, end, wanted, True)
            if part is not None:
                found.append(part)
                if count > 0:
                    wanted -= part.live()
                    if wanted <= 0:
                        return found
            place = index.previous_live(place - 1)
        return found

    # Removing

    def delete(self, ms: int, seq: int) -> bool:
        """Delete the entry with this ID; False when there is none. Complexity: O(log n)."""
        if not self.discard(ms, seq):
            return False
        if (ms, seq) > (self.max_deleted_ms, self.max_deleted_seq):
            self.max_deleted_ms = ms
            self.max_deleted_seq = seq
        return True

    def discard(self, ms: int, seq: int) -> bool:
        """Delete as ``delete``, without a trace in ``max_deleted``: trimming does so."""
        place = self.index.find(ms, seq)
        block = self._block_at(place)
        if block is None or not block.live:
            return False
        number = block.number_of(ms, seq)
        if number < 0:
            return False
        self._keep(block)
        block.bury(number)
        stays = self._first_known and (ms, seq) != (self._first_ms, self._first_seq)
        self._shrunk(block, place, 1)
        self._first_known = stays
        return True

    def _keep(self, block: Block) -> None:
        """Let ``frozen`` keep a block as it is, because the block is about to change."""
        if self.frozen is not None and block is not self.tail:
            self.frozen.keep(block)

    def _shrunk(self, block: Block, place: int, count: int) -> None:
        self.length -= count
        self._first_known = False
        if block is self.tail:
            if not block.live:
                self.tail = None
            return
        if block.live and block.is_sparse() and place != self.index.first():
            self.index.payload_bytes -= len(block.payload)
            block.seal()
            self.index.payload_bytes += len(block.payload)
        self.index.shrink(place, count)

    def cut_to_length(self, most: int) -> Removed[Block] | None:
        """Take off the nodes that a trim to ``most`` entries takes whole, if they are many.

        Complexity: a few nanoseconds for each node there is.
        """
        excess = self.length - most
        return None if excess < CUT_BLOCKS else self._cut(self.index.place_of_rank(excess))

    def cut_below(self, ms: int, seq: int) -> Removed[Block] | None:
        """Take off nodes as ``cut_to_length``, for the entries whose ID is below (ms, seq)."""
        return self._cut(self.index.find(ms, seq))

    def _cut(self, place: int) -> Removed[Block] | None:
        index = self.index
        if self.frozen is not None or place - index.first() < CUT_BLOCKS:
            return None
        cut = index.cut(place)
        self.length -= cut.count
        self._first_known = False
        return cut

    def trim_to_length(self, most: int, approximate: bool, limit: int, whole_nodes: bool) -> int:
        """Remove the oldest entries until ``most`` are left; return the number removed.

        Args:
            approximate: stop at the first node that cannot go whole.
            limit: with ``approximate``: stop before more than this many are removed; 0: no limit.
            whole_nodes: with ``approximate``: leave a node that cannot go whole untouched.
        """
        removed = 0
        while self.length > most:
            block, place = self._head()
            if block is None or (0 < limit < removed + block.live):
                break
            excess = self.length - most
            goes_whole = block.live <= excess
            if approximate and whole_nodes and not goes_whole:
                break
            removed += self._drop(block, place, block.live if goes_whole else excess)
            if approximate and not goes_whole:
                break
        return removed

    def trim_below(
        self, ms: int, seq: int, approximate: bool, limit: int, whole_nodes: bool
    ) -> int:
        """Remove the entries whose ID is below (ms, seq); arguments as ``trim_to_length``."""
        removed = 0
        while self.length:
            block, place = self._head()
            if block is None or (0 < limit < removed + block.live):
                break
            goes_whole = block.is_below(ms, seq)
            if approximate and whole_nodes and not goes_whole:
                break
            count = block.live if goes_whole else block.count_before(ms, seq)
            if count == block.live and block is self.tail and not goes_whole:
                # Redis trims entry by entry here and leaves a node whose last entries had been
                # deleted before, with nothing alive in it, to be appended to.
                block.drop_head(count)
                self.length -= count
                self._first_known = False
                return removed + count
            if count:
                removed += self._drop(block, place, count)
            if not goes_whole:
                break
        return removed

    def _head(self) -> tuple[Block | None, int]:
        """Return the first block that lives, and its place in the index."""
        place = self.index.first()
        return self._block_at(place), place

    def head_live(self) -> int:
        """Return how many entries the first node has."""
        block, _ = self._head()
        return 0 if block is None else block.live

    def _drop(self, block: Block, place: int, count: int) -> int:
        self._keep(block)
        if count == block.live:
            block.live = 0
        else:
            block.drop_head(count)
        self._shrunk(block, place, count)
        return count

    # Blocks

    def node_count(self) -> int:
        """Return how many nodes Redis would have."""
        return self.index.live_blocks + (1 if self.tail is not None else 0)

    def block_from(self, ms: int, seq: int) -> Block | None:
        """Return the first block that lives and reaches up to (ms, seq) or beyond."""
        index = self.index
        block = self._block_at(index.next_live(index.find(ms, seq)))
        return None if block is None or block.is_below(ms, seq) or not block.live else block

    def _block_at(self, place: int) -> Block | None:
        """Return the block at a place of the index, or the tail, which stands behind them all."""
        blocks = self.index.blocks
        return blocks[place] if place < len(blocks) else self.tail

    def blocks_bytes(self) -> int:
        """Return about how many bytes the entries take."""
        index = self.index
        total = int(index.payload_bytes) + BLOCK_BYTES * index.live_blocks
        if self.tail is not None:
            total += 2 * self.tail.node_bytes + 64 * self.tail.total
        return total

    def is_lasting(self) -> bool:
        """Return True: a stream is a log that others rely on, and its entries were acknowledged."""
        return True

    def copy_entries(self, other: EntryLog) -> None:
        """Become equal to ``other``, in what this class has; sealed payloads are shared."""
        self.index = other.index.copy()
        self.tail = None if other.tail is None else other.tail.copy()
        self.length = other.length
        self.last_ms = other.last_ms
        self.last_seq = other.last_seq
        self.max_deleted_ms = other.max_deleted_ms
        self.max_deleted_seq = other.max_deleted_seq
        self.entries_added = other.entries_added
