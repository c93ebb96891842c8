"""A naive model of a stream with consumer groups, and both side by side: dicts and lists, looked
through from end to end."""

from __future__ import annotations

from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.delivery import claimable, claimable_since, hand_out, has_new
from headrace.storage.stream.groups import NEVER, UNKNOWN, UNLIMITED, Consumer, Group, lag
from headrace.storage.stream.pel import CHUNK, Nack, NacksById, NacksByTime
from headrace.storage.stream.references import (
    ACKED,
    DELETED,
    DELREF,
    MISSING,
    REFERENCED,
    delete,
    drop_references,
    is_referenced,
)
from headrace.storage.stream.run import ID_MAX
from headrace.storage.stream.stream import Stream

GREATEST = (ID_MAX, ID_MAX)
NODE_ENTRIES = 3
ID = tuple[int, int]


class Held:
    """A pending entry as the model has it."""

    def __init__(self, owner: bytes | None, time_ms: int, count: int) -> None:
        self.owner = owner
        self.time_ms = time_ms
        self.count = count


class ModelGroup:
    """What a group ought to be.

    Attributes:
        order: the pending IDs as they are to be claimed: released ones as they were released, then
            the others by time, among equals as they came.
    """

    def __init__(self, last: ID) -> None:
        self.last = last
        self.pending: dict[ID, Held] = {}
        self.order: list[ID] = []
        self.consumers: set[bytes] = set()
        self.max_pending = 0

    def put(self, entry_id: ID, held: Held) -> None:
        """Make pending, or pending in another way."""
        self.forget(entry_id)
        place = 0
        while place < len(self.order):
            other = self.pending[self.order[place]]
            if other.owner is not None and (held.owner is None or other.time_ms > held.time_ms):
                break
            place += 1
        self.order.insert(place, entry_id)
        self.pending[entry_id] = held

    def is_old(self, entry_id: ID, latest_ms: int) -> bool:
        held = self.pending[entry_id]
        return held.owner is None or held.time_ms <= latest_ms

    def forget(self, entry_id: ID) -> bool:
        if entry_id not in self.pending:
            return False
        del self.pending[entry_id]
        self.order.remove(entry_id)
        return True


class World:
    """A stream with groups, and the model of both; each change is made to both and compared."""

    def __init__(self) -> None:
        self.stream = Stream(100, 100)
        self.live: list[ID] = []
        self.newest: ID = (0, 0)
        self.models: dict[bytes, ModelGroup] = {}
        self.now_ms = 1000
        self.removed = False

    def group(self, name: bytes) -> tuple[Group, ModelGroup]:
        return self.stream.groups[name], self.models[name]

    # The log

    def add(self, count: int) -> None:
        for _ in range(count):
            self.newest = (self.newest[0] + 1, 0)
            self.stream.append(*self.newest, [b"f", b"v"], 0, NodeLimits(4096, NODE_ENTRIES))
            self.live.append(self.newest)

    def delete(self, entry_id: ID, mode: int) -> None:
        models = self.models.values()
        expected = DELETED if entry_id in self.live else MISSING
        needed = any(entry_id > m.last or entry_id in m.pending for m in models)
        assert is_referenced(self.stream, *entry_id) == needed
        if mode == ACKED and needed:
            expected = REFERENCED
        assert delete(self.stream, *entry_id, mode) == expected
        if mode == DELREF:
            for model in models:
                model.forget(entry_id)
        if expected == DELETED:
            self.live.remove(entry_id)
            self.removed = True

    def trim(self, keep: int) -> None:
        removed = self.stream.trim_to_length(keep, False, 0, True)
        assert removed == max(0, len(self.live) - keep)
        del self.live[:removed]
        self.removed |= removed > 0

    # Groups

    def create(self, name: bytes, last: ID) -> None:
        self.stream.groups[name] = Group(name, *last, UNKNOWN)
        self.models[name] = ModelGroup(last)

    def consumer(self, name: bytes, who: bytes) -> Consumer:
        group, model = self.group(name)
        model.consumers.add(who)
        found = group.consumers.get(who)
        return group.create_consumer(who, self.now_ms) if found is None else found

    def delete_consumer(self, name: bytes, who: bytes) -> None:
        group, model = self.group(name)
        if who not in model.consumers:
            return
        model.consumers.remove(who)
        held = [entry_id for entry_id, held in model.pending.items() if held.owner == who]
        for entry_id in held:
            model.forget(entry_id)
        consumer = group.consumers[who]
        removed = group.delete_consumer(who)
        assert removed.count == len(held)
        while not removed.free_some(1):
            pass
        assert not consumer.pel.chunks, "what it held is kept alive"

    def read(self, name: bytes, who: bytes, count: int, noack: bool) -> None:
        group, model = self.group(name)
        consumer = self.consumer(name, who)
        to_come = [entry_id for entry_id in self.live if entry_id > model.last]
        room = group.room()
        assert has_new(self.stream, group) == (bool(to_come) and room != 0)
        if room != UNLIMITED:
            count = min(count, room) if count else room
            if not count:
                return
        start = (model.last[0], model.last[1] + 1)
        parts = self.stream.parts(start, GREATEST, count, False)
        hand_out(self.stream, group, parts, None if noack else consumer, self.now_ms)
        for entry_id in to_come[:count] if count else to_come:
            model.last = entry_id
            if not noack:
                model.put(entry_id, Held(who, self.now_ms, 1))

    def assign(self, name: bytes, who: bytes, entry_id: ID, time_ms: int) -> None:
        group, model = self.group(name)
        consumer = self.consumer(name, who)
        nack = group.pel.get(*entry_id)
        assert (nack is not None) == (entry_id in model.pending)
        if nack is None:
            if entry_id not in self.live:
                return  # what is not there cannot be made pending
            group.add_pending(*entry_id, consumer, time_ms)
            model.put(entry_id, Held(who, time_ms, 1))
            return
        group.assign(nack, consumer, time_ms)
        nack.count += 1
        model.put(entry_id, Held(who, time_ms, model.pending[entry_id].count + 1))

    def release(self, name: bytes, entry_id: ID) -> None:
        group, model = self.group(name)
        nack = group.pel.get(*entry_id)
        if nack is None:
            if entry_id not in self.live:
                return
            nack = group.add_pending(*entry_id, None, self.now_ms)
            model.put(entry_id, Held(None, 0, 1))
        group.release(nack)
        model.put(entry_id, Held(None, 0, model.pending[entry_id].count))

    def acknowledge(self, name: bytes, entry_id: ID) -> None:
        group, model = self.group(name)
        assert group.ack(*entry_id) == model.forget(entry_id)

    def drop_everywhere(self, entry_id: ID) -> None:
        dropped = [model.forget(entry_id) for model in self.models.values()]
        assert drop_references(self.stream, *entry_id) == any(dropped)

    def claim(self, name: bytes, idle_ms: int, most: int) -> None:
        group, model = self.group(name)
        latest_ms = self.now_ms - idle_ms
        live = set(self.live)
        waiting = [i for i in model.order if i in live]
        expected = [i for i in waiting if model.is_old(i, latest_ms)]
        if most >= 0:
            expected = expected[:most]
        found = claimable(self.stream, group, latest_ms, most)
        assert [(claim.nack.ms, claim.nack.seq) for claim in found] == expected
        for claim in found:
            (part,) = claim.parts()
            assert part.run.ms[part.low] == claim.nack.ms
        since_ms = model.pending[waiting[0]].time_ms if waiting else NEVER
        assert claimable_since(self.stream, group) == since_ms

    def copy(self) -> None:
        original = self.stream
        self.stream = original.copy()
        for group in original.groups.values():
            group.max_pending += 1
            for consumer in list(group.consumers):
                group.delete_consumer(consumer)
            for nack in group.pel.from_id(0, 0, 0):
                group.drop(nack)

    # Agreement

    def agree(self) -> None:
        live = set(self.live)
        for name, model in self.models.items():
            group = self.stream.groups[name]
            assert (group.last_ms, group.last_seq) == model.last
            to_come = sum(entry_id > model.last for entry_id in self.live)
            assert lag(self.stream, group) == to_come
            if not self.removed and group.entries_read != UNKNOWN:
                assert group.entries_read == len(self.live) - to_come
            room = max(0, group.max_pending - len(model.pending))
            assert group.room() == (room if group.max_pending else UNLIMITED)
            self.pending_agree(group, model)
            by_time = self.time_order(group)
            assert [i for i in by_time if i in live] == [i for i in model.order if i in live]

    def pending_agree(self, group: Group, model: ModelGroup) -> None:
        nacks = listed(group.pel)
        assert group.pel.size == len(nacks)
        assert [(n.ms, n.seq) for n in nacks] == sorted(model.pending)
        for nack in nacks:
            held = model.pending[nack.ms, nack.seq]
            owner = None if nack.consumer is None else nack.consumer.name
            assert (owner, nack.delivery_ms, nack.count) == (held.owner, held.time_ms, held.count)
        assert group.zone == sum(held.owner is None for held in model.pending.values())
        assert set(group.consumers) == model.consumers
        for consumer in group.consumers.values():
            own = listed(consumer.pel)
            assert consumer.pel.size == len(own)
            assert same(own, [nack for nack in nacks if nack.consumer is consumer])

    def time_order(self, group: Group) -> list[ID]:
        nacks = listed(group.by_time)
        places = [(nack.order_ms, nack.ticket) for nack in nacks]
        assert places == sorted(set(places))
        assert group.by_time.size == len(nacks)
        ids = [(nack.ms, nack.seq) for nack in nacks]
        assert same(sorted(nacks, key=lambda n: (n.ms, n.seq)), listed(group.pel))
        return ids

    def listing_agrees(self, name: bytes, start: ID, end: ID, most: int, latest_ms: int) -> None:
        group, model = self.group(name)
        inside = [entry_id for entry_id in sorted(model.pending) if start <= entry_id]
        found = group.pel.from_id(*start, most)
        assert [(n.ms, n.seq) for n in found] == (inside[:most] if most else inside)
        inside = [i for i in inside if i <= end and model.is_old(i, latest_ms)]
        found = group.pel.between(start, end, most, latest_ms)
        assert [(n.ms, n.seq) for n in found] == inside[:most]
        idle = group.by_time.delivered_by(latest_ms, len(model.pending))
        assert idle is not None
        old = [entry_id for entry_id in sorted(model.pending) if model.is_old(entry_id, latest_ms)]
        assert sorted((nack.ms, nack.seq) for nack in idle) == old
        if len(old) > 1:
            assert group.by_time.delivered_by(latest_ms, 1) is None


def listed(nacks: NacksById | NacksByTime) -> list[Nack]:
    chunks = nacks.chunks
    for chunk in chunks:
        assert chunk.size == len(chunk.live()) > 0
        slots = list(chunk.slots)
        assert len(slots) <= 2 * CHUNK
        assert slots[: chunk.start] == [None] * chunk.start
        assert slots[chunk.start] is not None
        assert slots[-1] is not None
        assert len(slots) - chunk.start <= 8 * chunk.size
    assert len(nacks._reach) == max(0, len(chunks) - 1)
    for reach, chunk, behind in zip(nacks._reach, chunks, chunks[1:], strict=False):
        assert nacks._key(chunk.last())[0] <= reach <= nacks._key(behind.first())[0]
    return [nack for chunk in chunks for nack in chunk.live()]


def same(ours: list[Nack], theirs: list[Nack]) -> bool:
    return [id(nack) for nack in ours] == [id(nack) for nack in theirs]
