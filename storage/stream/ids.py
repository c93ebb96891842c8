"""Order of stream IDs."""

from __future__ import annotations


def is_below(ms: int, seq: int, other_ms: int, other_seq: int) -> bool:
    """Whether (ms, seq) comes before the other ID; compiled, far cheaper than with tuples."""
    return ms < other_ms or (ms == other_ms and seq < other_seq)
