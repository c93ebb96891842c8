"""What all values that consist of elements have in common.

They hold what never changes: ``bytes``, in directories that are copied before they are written to
if anybody else may hold them. So a copy costs little, however many elements there are, and a frozen
value is simply a copy that nobody changes.
"""

from __future__ import annotations

from abc import abstractmethod

from mypy_extensions import i64, mypyc_attr

from headrace.storage.expiring import Expiring
from headrace.storage.value import Value


@mypyc_attr(acyclic=True, allow_interpreted_subclasses=True)
class Collection(Value):
    """A value that consists of elements, and is nothing when it has none."""

    def is_empty(self) -> bool:
        """See ``Value``."""
        return self.size() == 0

    @abstractmethod
    def copy(self) -> Collection:
        """See ``Value``. Complexity: O(directories), some hundreds of a million elements."""
        raise NotImplementedError

    def freeze(self) -> object:
        """A copy, to be freed in slices by whoever has read it."""
        return self.copy()

    def is_scattered(self) -> bool:
        """Whether it is so large that what is looked for in it by a name may be in no cache."""
        return False

    def look_ahead(self, requests: list[list[bytes]], first: i64, end: i64, place: i64) -> None:
        """Have what it holds of some elements, if it is scattered, brought into the caches.

        Args:
            requests: from ``first`` to ``end`` those of which each names such an element.
            place: where in a request it stands.
        """

    def take_ahead(self, element: bytes, at: i64) -> None:
        """What ``look_ahead`` was shown at this place, counted from 0, is asked for next."""

    def attach(self, expiring: Expiring) -> None:
        """Nothing of it expires by itself, unless a type says otherwise."""
