"""The IDMP map of a stream: which idempotent ids its producers have used, and for which entries.

Each producer has a record of its own: at most ``maxsize`` iids in the order in which they were
added, each with the ID of its entry and the time it was added at. An iid leaves when it is the
oldest of too many, or when it is older than the duration; a producer leaves with its last iid.

Expiry looks at a producer only when its oldest iid is due. ``Expiring`` holds the producers of all
databases by the second in which that is, whatever keys and databases their streams are moved to.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from mypy_extensions import i64

from headrace.storage.freeable import Large
from headrace.storage.stream.iids import Iid
from headrace.storage.stream.producer import NOT_DUE, Producer

if TYPE_CHECKING:
    from headrace.storage.stream.frozen import FrozenProducers

Record = tuple[bytes, bytes, int, int, int]


class IdmpMap(Large):
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

    def find(self, pid: bytes, iid: Iid, now_ms: i64) -> tuple[int, int] | None:
        """The ID of the entry that ``iid`` was used for, or None when it is not known by now."""
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
            if self._expiring is not None:
                self._expiring.watch(producer, self, int(added_ms + self.duration_ms))
        elif self.frozen is not None:
            self.frozen.keep(producer)
        self.count += producer.add(iid, ms, seq, added_ms, self.maxsize)

    def record_sought(self, pid: bytes, iid: Iid, ms: int, seq: int, added_ms: i64) -> None:
        """As ``record``, of what ``find`` has just looked for; nothing has changed since."""
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
