"""The face of every value: all that the server asks of one without knowing its type.

Parts of values may expire by themselves, whatever keys and databases their values move to. A part
is looked at when its second has come and not before. ``Expiring`` knows neither what a part is nor
what expires of it: its owner does.

A type is a class that answers every question here; mypy refuses to make an object of one that
leaves a question open. Strings are the exception: they stand in the keyspace as plain ``bytes``,
``int`` or ``bytearray``, and ``storage.faces`` finds their face.

A value that changes while it is written out is frozen first. ``freeze`` gives what it is now. That
may be a copy, where copies cost little. Else it is a ``Frozen``: from ``register`` on the value
keeps for that whatever it changes, until ``thaw``.
"""

from __future__ import annotations

from abc import abstractmethod
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar

from mypy_extensions import mypyc_attr, trait

from headrace.storage.digest import Digest


@trait
class Owner:
    """Owns parts that expire."""

    def expire_part(self, part: object, now_ms: int, most: int) -> int:
        """Take out of a part what is due, about ``most`` pieces at once; return how many.

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
        """Look at ``part`` once ``due_ms`` has come; return that second, for ``forget``."""
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


class StorageError(Exception):
    """The data refuses what was asked of it."""


Piece = TypeVar("Piece")


@mypyc_attr(acyclic=True, allow_interpreted_subclasses=True)
class Freeable:
    """An object that consists of pieces: keys, blocks, iids, or chunks of pending entries."""

    def effort(self) -> int:
        """Return about how many pieces there are to free; 0 where it may simply be dropped."""
        return 1  # a class that is no value has asked for slices

    @abstractmethod
    def free_some(self, most: int) -> bool:
        """Free up to about ``most`` pieces of what is no longer used; True at the end."""


class Removed(Freeable, Generic[Piece]):
    """Pieces, some maybe held twice, taken out of a value that stays; the last goes first.

    ``count`` says how many entries they held, of a stream or pending ones.
    """

    def __init__(self, count: int, pieces: list[Piece]) -> None:
        self.count: Final = count
        self.pieces: Final = pieces

    def free_some(self, most: int) -> bool:
        """Free up to ``most`` of the pieces; True at the end."""
        del self.pieces[-most:]
        return not self.pieces


NO_PART: Final = 0  # instead of a deadline: no part expires


@mypyc_attr(acyclic=True, allow_interpreted_subclasses=True)
class Value(Freeable):
    """The value of a key."""

    @abstractmethod
    def type_name(self) -> bytes:
        """Return the name of the type, as TYPE answers it."""

    @abstractmethod
    def encoding(self, key: bytes) -> bytes:
        """Return the name of the representation beside ``key``, as OBJECT ENCODING answers it."""

    @abstractmethod
    def size(self) -> int:
        """Return how many elements it has."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether its key is to go: an empty list's is, an empty string's is not."""

    @abstractmethod
    def used_bytes(self, samples: int) -> int:
        """Return about how many bytes it takes, judged by ``samples`` of its parts; 0: by all."""

    @abstractmethod
    def copy(self) -> object:
        """Return an equal value for another key: what changes in one does not change the other."""

    @abstractmethod
    def freeze(self) -> object:
        """Return the value as it is now: a ``Frozen``, an unshared value, or for strings bytes.

        The second is for values whose copies cost little, the third never changes.
        """

    @abstractmethod
    def effort(self) -> int:
        """Return about how many pieces there are to free; 0 where it may simply be dropped."""

    @abstractmethod
    def add_to(self, digest: Digest) -> None:
        """Add the type and all that can be read of it to a digest, as Redis does."""

    def is_lasting(self) -> bool:
        """Return whether its key is evicted only when there are no others, as it is no cache."""
        return False

    def removed_after_ms(self, deadline_ms: int) -> int:
        """Return the moment up to which an expired key that holds it is only hidden."""
        return deadline_ms

    def first_part_ms(self) -> int:
        """Return when the first part expires that the server has to report, or ``NO_PART``."""
        return NO_PART

    @abstractmethod
    def attach(self, expiring: Expiring) -> None:
        """Let ``expiring``, of the keyspace that holds it now, expire its parts."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Frozen(Freeable):
    """A value as it was at one moment; it is read once, and then thawed."""

    @abstractmethod
    def type_name(self) -> bytes:
        """Return the name of the type, as ``Value.type_name``."""

    @abstractmethod
    def register(self) -> None:
        """Ask the value to keep what it changes from now on; one asks at a time."""

    @abstractmethod
    def copied_bytes(self) -> int:
        """Return about how many bytes were kept or copied because of changes so far."""

    @abstractmethod
    def thaw(self) -> list[Freeable]:
        """Let the value change in place again; nothing can be read here any more.

        Returns: what is held only here and is to be freed: the rest of this one, where there is
        one, and the value itself, if its key went while this one still read it.
        """
