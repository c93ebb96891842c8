"""HOTKEYS: which keys take most of the processor's time, and most of the network.

A request counts where it is run and names keys. Each of its keys is given an equal share of its
cost. Requests that a script makes count as the script's, whose keys are those it was called with.
Where only a sample is looked at, it is chosen request by request.

Space-Saving (Metwally, Agrawal and El Abbadi, 2005), with many keys dropped at once. The table has
a weight for each of some keys. When it is full, the lighter half is dropped, and the heaviest
weight among these becomes the ``floor``: no key that is not in the table can weigh more than that.
So a key that comes, or comes again, begins at the floor, and never weighs less here than in truth.
What it was given unseen is remembered and subtracted from the shown weight, which never is more
than the truth.

With room for N keys, each key that has more than an N-th of all weight is in the table. While there
were never more keys than have room, all is exact.
"""

from __future__ import annotations

import resource
import time
from typing import Final

from librt.random import randrange
from mypy_extensions import i64

from headrace.server.cluster import slot_of


class HeavyKeys:
    """The keys that weigh most; ``total`` is all weight that was added.

    ``room`` is how many keys stay when it is full, which it is with twice as many.
    """

    def __init__(self, room: int) -> None:
        self._room: Final = room
        self._weights: Final[dict[bytes, int]] = {}
        self._unseen: Final[dict[bytes, int]] = {}  # of the weights, where it is not 0
        self._floor = 0
        self.total = 0

    def add(self, key: bytes, weight: int) -> None:
        """Add to the weight of a key. Complexity: O(log N) amortised, for room of N."""
        if not weight:
            return
        self.total += weight
        known = self._weights.get(key)
        if known is None:
            if len(self._weights) >= 2 * self._room:
                self._drop_half()
            known = self._floor
            if known:
                self._unseen[key] = known
        self._weights[key] = known + weight

    def _drop_half(self) -> None:
        weights = self._weights
        lightest_first = sorted(weights, key=lambda key: weights[key])
        for key in lightest_first[: len(weights) - self._room]:
            self._floor = weights.pop(key)
            self._unseen.pop(key, None)

    def heaviest(self, count: int) -> list[tuple[bytes, int]]:
        """Return at most so many keys, and their least possible weights; the heaviest first."""
        found = [(key, self._weights[key] - self._unseen.get(key, 0)) for key in self._weights]
        found.sort(key=lambda pair: -pair[1])
        return found[:count]


_ROOM: Final = 10  # keys that are kept for each that is shown: what is shown is the better for it


class Totals:
    """The sums over all requests: nanoseconds of the processor, and bytes in and out."""

    def __init__(self) -> None:
        self.ns = 0
        self.wire_bytes = 0

    def add(self, ns: int, wire_bytes: int) -> None:
        """Count one request more."""
        self.ns += ns
        self.wire_bytes += wire_bytes


class Search:
    """The parameters of one search.

    Attributes:
        by_time, by_bytes: the costs by which keys are looked for.
        count: how many keys are shown.
        duration_s: for how long it goes on; 0 is until it is stopped.
        ratio: one of so many requests is looked at, by chance.
        slots: whose keys are looked at, as they were named; empty for all.
    """

    def __init__(self) -> None:
        self.by_time = False
        self.by_bytes = False
        self.count = 10
        self.duration_s = 0
        self.ratio = 1
        self.slots: list[int] = []


class HotKeys:
    """The findings since the search began.

    Args:
        now_ms: the time of day; monotonic_ms: the same moment on a clock that is never set.

    Attributes:
        by_time, by_bytes: the keys, by nanoseconds and by bytes; None where that is not asked for.
        all: the costs of all requests with keys.
        selected: those of them whose slot is looked at; sampled: those that were chosen of these.
        note_ns: the time that the search itself took.
        user_s, system_s: of the process, when the search began.
    """

    def __init__(self, search: Search, now_ms: int, monotonic_ms: int) -> None:
        self.search: Final = search
        self.by_time: Final = HeavyKeys(search.count * _ROOM) if search.by_time else None
        self.by_bytes: Final = HeavyKeys(search.count * _ROOM) if search.by_bytes else None
        self.all: Final = Totals()
        self.selected: Final = Totals()
        self.sampled: Final = Totals()
        self.note_ns = 0
        self.began_ms: Final = now_ms
        used = resource.getrusage(resource.RUSAGE_SELF)
        self.user_s: Final = used.ru_utime
        self.system_s: Final = used.ru_stime
        self._slots: Final = frozenset(search.slots)
        self._began_at_ms: Final = monotonic_ms
        self._took_ms = -1  # while it goes on

    @property
    def is_active(self) -> bool:
        """Return whether it goes on."""
        return self._took_ms < 0

    def stop(self, monotonic_ms: int) -> None:
        """Look at no further request; what was found stays."""
        self._took_ms = monotonic_ms - self._began_at_ms

    def is_over(self, monotonic_ms: int) -> bool:
        """Return whether it has gone on for its whole duration."""
        duration_ms = self.search.duration_s * 1000
        return 0 < duration_ms <= monotonic_ms - self._began_at_ms

    def took_ms(self, monotonic_ms: int) -> int:
        """Return for how many milliseconds it has gone on."""
        return monotonic_ms - self._began_at_ms if self._took_ms < 0 else self._took_ms

    def note(self, keys: list[bytes], ns: int, wire_bytes: int) -> None:
        """Count a request; ``keys``: at least one, all of one slot if slots are named."""
        self.all.add(ns, wire_bytes)
        if self._slots and slot_of(keys[0]) not in self._slots:
            return
        self.selected.add(ns, wire_bytes)
        ratio: i64 = self.search.ratio
        if ratio > 1 and randrange(ratio):
            return
        self.sampled.add(ns, wire_bytes)
        started_ns = time.perf_counter_ns()
        _share(self.by_time, keys, ns)
        _share(self.by_bytes, keys, wire_bytes)
        self.note_ns += time.perf_counter_ns() - started_ns


def _share(table: HeavyKeys | None, keys: list[bytes], weight: int) -> None:
    if table is not None:
        each = weight // len(keys)
        for key in keys:
            table.add(key, each)
