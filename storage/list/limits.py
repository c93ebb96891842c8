"""When Redis starts a new node of a list, by ``list-max-listpack-size``."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.storage.packed.listpack import EMPTY_BYTES

_BYTES_BY_FILL: Final = [4096, 8192, 16384, 32768, 65536]  # for -1, -2 and so on
_SAFE_BYTES: Final = 8192  # where the parameter counts elements, a node has no more bytes either
_NO_LIMIT: Final = 1 << 60
_ESTIMATED_BYTES: Final = 8  # that an element takes beside its own; Redis estimates high


class PlainThreshold:
    """From which length on a string stands alone, where a test has set that; else 0.

    There is one for the process, as in Redis: DEBUG QUICKLIST-PACKED-THRESHOLD sets it.
    """

    def __init__(self) -> None:
        self.string_bytes: i64 = 0


PLAIN_THRESHOLD: Final = PlainThreshold()


class NodeLimits:
    """How large a node may become.

    Args:
        fill: ``list-max-listpack-size``: how many elements, or below 0 which of five sizes.
    """

    def __init__(self, fill: int) -> None:
        self.fill: Final = fill
        most_bytes = _SAFE_BYTES if fill >= 0 else _BYTES_BY_FILL[min(-fill, 5) - 1]
        self.most_bytes: Final[i64] = most_bytes
        self.most_elements: Final[i64] = max(fill, 1) if fill >= 0 else _NO_LIMIT

    def are_exceeded(self, size: i64, count: i64) -> bool:
        """Whether a node of ``size`` bytes and ``count`` elements would be too large."""
        return size > self.most_bytes or count > self.most_elements

    def is_alone(self, string: bytes) -> bool:
        """Whether a string is so large that it gets a node of its own, which is no listpack."""
        threshold = PLAIN_THRESHOLD.string_bytes
        size: i64 = len(string)
        return size >= threshold if threshold else size > self.most_bytes

    def have_room(self, size: i64, count: i64, string: bytes) -> bool:
        """Whether a string may be added to a node of ``size`` bytes and ``count`` elements."""
        if self.is_alone(string):
            return False
        return not self.are_exceeded(size + len(string) + _ESTIMATED_BYTES, count + 1)

    def let_merge(self, size: i64, other_size: i64, count: i64) -> bool:
        """Whether two nodes may become one with ``count`` elements."""
        return not self.are_exceeded(size + other_size - EMPTY_BYTES, count)

    def make_listpack(self, size: i64, count: i64, shrinking: bool) -> bool:
        """Whether the only node of a list is so small that the list is that alone.

        Args:
            shrinking: the list has become shorter: it has to be half as large.
        """
        share: i64 = 2 if shrinking else 1
        if self.fill >= 0:
            return count <= self.most_elements // share
        return size <= self.most_bytes // share
