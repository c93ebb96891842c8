"""The base of all values that consist of elements, and up to which size they are small.

They hold what never changes: ``bytes``, in directories that are copied before they are written to
if they may be shared. So a copy costs little, however many elements there are, and a frozen value
is simply a copy that is not changed.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.storage.packed.table import Table
from headrace.storage.value import Expiring, Value


class SmallLimits:
    """The limits of the small form of one type: its elements, and the bytes of each string."""

    def __init__(self, elements: i64, element_bytes: i64) -> None:
        self.elements: Final[i64] = elements
        self.element_bytes: Final[i64] = element_bytes


@mypyc_attr(acyclic=True, allow_interpreted_subclasses=True)
class Collection(Value):
    """A value that consists of elements, and is nothing when it has none."""

    def is_empty(self) -> bool:
        return self.size() == 0

    @abstractmethod
    def copy(self) -> Collection:
        """Copy as ``Value``. Complexity: O(directories), some hundreds of a million elements."""

    def freeze(self) -> object:
        """Return a copy, to be freed in slices after it was read."""
        return self.copy()

    def scattered_table(self) -> Table | None:
        """Return the table of its elements, if so large that it may be in no cache."""
        return None

    def attach(self, expiring: Expiring) -> None:
        """Do nothing: no part of it expires by itself, unless a type says otherwise."""
