"""Order of stream IDs."""

from __future__ import annotations

from typing import Final

ID_MAX: Final = 2**64 - 1  # of either half


def is_below(ms: int, seq: int, other_ms: int, other_seq: int) -> bool:
    """Whether (ms, seq) comes before the other ID; compiled, far cheaper than with tuples."""
    return ms < other_ms or (ms == other_ms and seq < other_seq)


def following(ms: int, seq: int) -> tuple[int, int]:
    """The ID that comes next; the greatest there is has none."""
    return (ms, seq + 1) if seq != ID_MAX else (ms + 1, 0)
