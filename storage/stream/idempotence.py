"""The IDMP map of a stream: which idempotent ids its producers have used, and for which entries.

Each producer has a record of its own: at most ``maxsize`` iids in the order in which they were
added, each with the ID of its entry and the time it was added at. An iid leaves when it is the
oldest of too many, or when it is older than the duration; a producer leaves with its last iid.

Expiry looks at a producer only when its oldest iid is due (``storage.value``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, cast

from mypy_extensions import i64

from headrace.storage.stream.producer import NOT_DUE, Iid, Producer, ProducerKeeper
from headrace.storage.value import Expiring, Freeable, Owner

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
            self._watch(producer, int(added_ms + self.duration_ms))
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
                self._watch(producer, self._due_ms(producer))

    def _watch(self, producer: Producer, due_ms: int) -> None:
        if self._expiring is not None:
            producer.due_s = self._expiring.watch(producer, self, due_ms)

    def _due_ms(self, producer: Producer) -> int:
        """Return when the oldest iid of a producer expires."""
        return int(producer.added_ms(producer.oldest()) + self.duration_ms)

    def expire_part(self, part: object, now_ms: int, most: int) -> int:
        """Take out the iids of a producer that are due; see ``Owner``."""
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
        """Free up to about ``most`` iids of a map that nobody uses; True at the end."""
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
        """About how much memory it takes; some producers stand for all."""
        some = list(islice(self.producers.values(), _SAMPLES))
        total = sum([producer.used_bytes() for producer in some])
        return total * len(self.producers) // len(some) if some else 0

    def copy(self) -> IdmpMap:
        """An equal map of its own, attached to nothing."""
        twin = IdmpMap(int(self.duration_ms), int(self.maxsize))
        twin.producers = {pid: producer.copy() for pid, producer in self.producers.items()}
        twin.count = self.count
        return twin
