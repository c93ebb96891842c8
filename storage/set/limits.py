"""Up to which size a set is kept in one of its small forms."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.storage.limits import SmallLimits


class SetLimits(SmallLimits):
    """As for other types, and how many ``integers`` there may be where all members are some."""

    def __init__(self, integers: i64, elements: i64, element_bytes: i64) -> None:
        super().__init__(elements, element_bytes)
        self.integers: Final[i64] = integers
