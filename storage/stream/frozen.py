"""A stream as it is at one moment, to be written out while the stream itself goes on changing.

Freezing copies references only, and as few as it can:

- The list of sealed blocks is shared, with a note how long it is; blocks that come later stand
  behind that. Before the stream changes a sealed block it calls ``keep``, which puts a copy aside,
  once. A block that is taken off the end of the list, to be appended to, joins ``_taken``.
- The open tail, about a hundred entries, is copied.
- Of a group's pending entries, the outer list of chunks is copied. While a chunk is shared, the
  group replaces it by a copy before it changes anything in it (``NacksByTime.shared``). Before an
  entry goes to another consumer, or is delivered again, ``FrozenGroup.keep`` notes what it was.
- Of an IDMP map, the list of producers is copied, and a producer's iids before they change.

A frozen stream is read once, from the front, and drops what has been read. So what the stream
itself has dropped meanwhile is freed piece by piece, and not in one go at the end. Then ``thaw``
ends it.

What is read is to be used before the stream can change again: blocks are the stream's own objects.
"""

from __future__ import annotations

from typing import Final

from headrace.storage.stream.block import BLOCK_BYTES, Block, BlockKeeper
from headrace.storage.stream.contents import Contents
from headrace.storage.stream.groups import Consumer, Group
from headrace.storage.stream.idmp import IdmpMap, Producer, ProducerKeeper
from headrace.storage.stream.pel import Holder, Nack, NackKeeper
from headrace.storage.value import Freeable, Frozen

STREAM: Final = b"stream"
NO_OWNER: Final = -1
_KEPT_NACK_BYTES: Final = 180


class FrozenConsumer:
    """A consumer's name and times."""

    def __init__(self, consumer: Consumer) -> None:
        self.name: Final = consumer.name
        self.seen_ms: Final = consumer.seen_ms
        self.active_ms: Final = consumer.active_ms  # ``groups.NEVER`` before the first delivery
        self.pending: Final = consumer.pel.size


class Pending:
    """Some pending entries, in the order in which they may be claimed; lists side by side.

    Attributes:
        owners: indexes into ``FrozenGroup.consumers``; ``NO_OWNER`` for those that were released.
        delivery_ms: when they were delivered last; 0 for those that were released.
    """

    def __init__(self) -> None:
        self.ms: list[int] = []
        self.seq: list[int] = []
        self.owners: list[int] = []
        self.delivery_ms: list[int] = []
        self.counts: list[int] = []


class FrozenGroup(NackKeeper):
    """A consumer group as it was, as in ``groups.Group``, with consumers in order of creation.

    ``pending`` is how many entries ``next_pending`` will return in all.
    """

    def __init__(self, group: Group) -> None:
        self.name: Final = group.name
        self.last_ms: Final = group.last_ms
        self.last_seq: Final = group.last_seq
        self.entries_read: Final = group.entries_read
        self.max_pending: Final = group.max_pending
        self.zone: Final = group.zone
        self.consumers: Final[list[FrozenConsumer]] = []
        self.pending: Final = group.pel.size
        self.live: Final = group
        self._numbers: Final[dict[int, int]] = {}  # by id() of the consumer, held by _owners
        self._owners: Final = list(group.consumers.values())
        for number, consumer in enumerate(self._owners):
            self.consumers.append(FrozenConsumer(consumer))
            self._numbers[id(consumer)] = number
        self._chunks: Final = group.by_time.chunks[::-1]  # the next one to be read is the last
        self._kept: Final[dict[int, tuple[Holder | None, int, int]]] = {}

    def register(self) -> None:
        """Ask the group to keep what it changes from now on."""
        self.live.frozen = self
        self.live.by_time.shared = {id(chunk) for chunk in self._chunks}

    def thaw(self) -> None:
        """Let the group change things in place again."""
        if self.live.frozen is self:
            self.live.frozen = None
            self.live.by_time.shared = None

    def keep(self, nack: Nack) -> None:
        """Keep what a pending entry is, because it is about to change."""
        place = id(nack)
        if place not in self._kept:
            self._kept[place] = (nack.consumer, nack.delivery_ms, nack.count)

    def next_pending(self) -> Pending | None:
        """Return the next few hundred pending entries; None after the last.

        They come in the order in which they may be claimed: first the released, in the order of
        their release, then the others by time of delivery.
        """
        if not self._chunks:
            return None
        chunk = self._chunks.pop()
        found = Pending()
        kept = self._kept
        numbers = self._numbers
        for nack in chunk.live():
            consumer = nack.consumer
            delivery_ms = nack.delivery_ms
            count = nack.count
            if kept:
                before = kept.get(id(nack))
                if before is not None:
                    consumer, delivery_ms, count = before
            found.ms.append(nack.ms)
            found.seq.append(nack.seq)
            found.owners.append(NO_OWNER if consumer is None else numbers[id(consumer)])
            found.delivery_ms.append(delivery_ms)
            found.counts.append(count)
        return found

    def is_unread(self) -> bool:
        """Return whether ``next_pending`` has more."""
        return bool(self._chunks)

    def copied_bytes(self) -> int:
        """Return about how many bytes were kept because of changes so far."""
        return _KEPT_NACK_BYTES * len(self._kept)

    def free_some(self, most: int) -> bool:
        """Free up to ``most`` chunks that were not read; True at the end."""
        del self._chunks[-most:]
        return not self._chunks


class FrozenProducers(ProducerKeeper):
    """The producers of an IDMP map as they were."""

    def __init__(self, idmp: IdmpMap) -> None:
        self._live: Final = idmp
        self._unread: Final = list(idmp.producers.values())
        self._unread.reverse()  # the next one to be read is the last
        self._kept: Final[dict[int, Producer]] = {}
        self.count: Final = len(self._unread)

    def register(self) -> None:
        """Ask the map to keep what it changes from now on."""
        self._live.frozen = self
        for producer in self._unread:
            producer.shared = True

    def thaw(self) -> None:
        """Let the map change things in place again."""
        if self._live.frozen is self:
            self._live.frozen = None
            for producer in self._unread:
                producer.shared = False

    def keep(self, producer: Producer) -> None:
        """Keep what a producer has, because it is about to change."""
        if producer.shared:
            producer.shared = False
            self._kept[id(producer)] = producer.copy()

    def next_producer(self) -> Producer | None:
        """Return the next producer; None after the last."""
        if not self._unread:
            return None
        producer = self._unread.pop()
        if self._live.frozen is self:
            producer.shared = False
        return self._kept.pop(id(producer), producer)

    def is_unread(self) -> bool:
        """Return whether ``next_producer`` has more."""
        return bool(self._unread)

    def copied_bytes(self) -> int:
        """Return about how many bytes were kept because of changes so far."""
        return sum([producer.used_bytes() for producer in self._kept.values()])

    def free_some(self, most: int) -> bool:
        """Free up to ``most`` producers that were not read; True at the end."""
        for _ in range(min(most, len(self._kept))):
            self._kept.popitem()
        del self._unread[-most:]
        return not self._unread and not self._kept


class FrozenStream(Frozen, BlockKeeper):
    """A stream as it is now; it stays so from ``register`` until it is thawed, one at a time.

    Complexity: O(groups + consumers), and one reference for 500 pending entries.

    Attributes (others as in ``contents.Contents``):
        blocks: how many blocks ``next_blocks`` will return in all.
        tail: the open block or None; a copy, which may hold no entry that is not dead.
        producers: how many producers ``next_producer`` will return in all.
    """

    def __init__(self, stream: Contents) -> None:
        index = stream.index
        self.length: Final = stream.length
        self.last_ms: Final = stream.last_ms
        self.last_seq: Final = stream.last_seq
        self.max_deleted_ms: Final = stream.max_deleted_ms
        self.max_deleted_seq: Final = stream.max_deleted_seq
        self.entries_added: Final = stream.entries_added
        self.idmp_duration_s: Final = stream.idmp_duration_s
        self.idmp_maxsize: Final = stream.idmp_maxsize
        self.has_default_limits: Final = stream.has_default_limits()
        self.iids_added: Final = stream.iids_added
        self.iids_duplicates: Final = stream.iids_duplicates
        self.blocks: Final = index.live_blocks
        self.tail: Final = None if stream.tail is None else stream.tail.copy()
        self.groups: Final = [FrozenGroup(group) for group in stream.groups.values()]
        self._producers: Final = None if stream.idmp is None else FrozenProducers(stream.idmp)
        self.producers: Final = 0 if self._producers is None else self._producers.count
        self.live: Final = stream
        self._abandoned = False
        self._places: list[Block] = index.blocks
        self._count = len(index.blocks)  # of the places, how many are this stream's
        self._taken: Final[list[Block]] = []  # those behind them, the last one first
        self._next = 0
        self._read_ms = 0  # the last ID of the last block that was read
        self._read_seq = -1
        self._end_ms = 0  # the last ID of the last block there is
        self._end_seq = -1
        if index.blocks:
            self._end_ms = index.blocks[-1].last_ms
            self._end_seq = index.blocks[-1].last_seq
        self._kept: Final[dict[int, Block]] = {}
        self._kept_bytes = 0 if self.tail is None else self.tail.node_bytes

    def type_name(self) -> bytes:
        return STREAM

    def register(self) -> None:
        """Ask the stream and its groups to keep what they change from now on."""
        self.live.frozen = self
        for group in self.groups:
            group.register()
        if self._producers is not None:
            self._producers.register()

    def thaw(self) -> list[Freeable]:
        if self.live.frozen is self:
            self.live.frozen = None
        for group in self.groups:
            group.thaw()
        if self._producers is not None:
            self._producers.thaw()
        rest: list[Freeable] = []
        if self._holds_much():
            rest.append(self)
        if self._abandoned:
            rest.append(self.live)
        return rest

    # What the stream reports

    def keep(self, block: Block) -> None:
        """Put a copy of a sealed block aside, because it is about to change."""
        place = id(block)
        if (
            place not in self._kept
            and not block.is_below(self._read_ms, self._read_seq + 1)
            and block.is_below(self._end_ms, self._end_seq + 1)
        ):
            self._kept[place] = block.copy()
            self._kept_bytes += BLOCK_BYTES + len(block.payload)

    def keep_last(self, blocks: list[Block]) -> None:
        for place in range(len(blocks) - 1, -1, -1):
            block = blocks[place]
            if blocks is self._places and place < self._count:
                self._count = place
                self._taken.append(block)
            if block.live:
                self.keep(block)
                return

    def abandon(self) -> None:
        self._abandoned = True

    # Reading

    def next_blocks(self, most: int) -> list[Block]:
        """Return up to ``most`` of the next sealed blocks, oldest first; empty after the last.

        Every one of them has entries that are not dead, and maybe some that are. They belong to
        the stream: nothing else may run before they have been used.
        """
        found: list[Block] = []
        kept = self._kept
        end = self._count + len(self._taken)
        while self._next < end and len(found) < most:
            if self._next < self._count:
                block = self._places[self._next]
            else:
                block = self._taken[end - 1 - self._next]
            self._next += 1
            if kept:
                block = kept.pop(id(block), block)
            if block.live:
                found.append(block)
        if found:
            last = found[-1]
            self._read_ms = last.last_ms
            self._read_seq = last.last_seq
        return found

    def next_producer(self) -> Producer | None:
        """Return the next producer of the IDMP map, to be used as a block is; None at the end."""
        return None if self._producers is None else self._producers.next_producer()

    def copied_bytes(self) -> int:
        """Return about how many bytes were kept or copied because of changes so far."""
        total = self._kept_bytes
        for group in self.groups:
            total += group.copied_bytes()
        if self._producers is not None:
            total += self._producers.copied_bytes()
        return total

    def _holds_much(self) -> bool:
        """Return whether there may be much to free that only this one holds."""
        if self._kept or self._places is not self.live.index.blocks:
            return True
        for group in self.groups:
            if group.is_unread():
                return True
        return self._producers is not None and self._producers.is_unread()

    def free_some(self, most: int) -> bool:
        """Free some of what only this one holds, up to ``most`` blocks; True at the end."""
        for group in self.groups:
            if not group.free_some(most):
                return False
        if self._producers is not None and not self._producers.free_some(most):
            return False
        kept = self._kept
        for _ in range(min(most, len(kept))):
            kept.popitem()
        if self._places is self.live.index.blocks:
            self._places = []
        del self._places[-most:]
        return not kept and not self._places
