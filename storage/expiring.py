"""Parts of values that expire by themselves, whatever keys and databases their values move to.

A part is looked at when its second has come and not before. ``Expiring`` knows neither what a part
is nor what expires of it: its owner does.
"""

from __future__ import annotations

from heapq import heappop, heappush

from mypy_extensions import trait


@trait
class Owner:
    """Whose parts expire."""

    def expire_part(self, part: object, now_ms: int, most: int) -> int:
        """Take out of a part what is due, about ``most`` pieces at once; how many that were.

        The part is not watched any more. The owner watches it anew if something is left of it.
        """
        raise NotImplementedError


class Expiring:
    """Parts of the values of all databases, by the second in which they are due.

    Invariants: a part that has something to expire, whose value is in a database, stands in the
    bucket of the second that ``watch`` returned and nowhere else; ``_seconds`` is a heap of the
    keys of ``_buckets``.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, dict[object, Owner]] = {}
        self._seconds: list[int] = []

    def __len__(self) -> int:
        return sum([len(bucket) for bucket in self._buckets.values()])

    def watch(self, part: object, owner: Owner, due_ms: int) -> int:
        """Look at ``part``, which is watched for no other time, once ``due_ms`` has come.

        Returns: the second in which that is, to be given to ``forget``.
        """
        second = (due_ms + 999) // 1000
        bucket = self._buckets.get(second)
        if bucket is None:
            bucket = self._buckets[second] = {}
            heappush(self._seconds, second)
        bucket[part] = owner
        return second

    def forget(self, part: object, second: int) -> None:
        """Look at ``part`` no more."""
        bucket = self._buckets.get(second)
        if bucket is not None:
            bucket.pop(part, None)

    def expire(self, now_ms: int, most: int) -> int:
        """Take out what is due, about ``most`` pieces at once.

        Returns: the work done; ``most`` or more means that there may be more to do.
        Complexity: O(pieces taken out, and parts that had one due).
        """
        done = 0
        while done < most and self._seconds and self._seconds[0] * 1000 <= now_ms:
            second = self._seconds[0]
            bucket = self._buckets[second]
            while bucket and done < most:
                part, owner = bucket.popitem()
                done += 1 + owner.expire_part(part, now_ms, most - done)
            # Where the clock stepped back, one that waits on may have brought an earlier second.
            if not bucket and self._seconds[0] == second:
                del self._buckets[heappop(self._seconds)]
        return done
