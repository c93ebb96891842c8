"""Up to which size a collection is kept in its small form."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64


class SmallLimits:
    """The limits of the small form of one type, as the configuration says.

    Args:
        elements: how many elements it may have at most.
        element_bytes: how long each string of it may be.
    """

    def __init__(self, elements: i64, element_bytes: i64) -> None:
        self.elements: Final[i64] = elements
        self.element_bytes: Final[i64] = element_bytes
