"""How much of each stream a batch takes, and into how many pieces that is cut."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from pyspark_headrace.ids import ID_MAX, StreamID
from pyspark_headrace.offsets import Cut
from pyspark_headrace.options import MOST_CUTS, ReadOptions


def fair_shares(backlogs: Mapping[str, int], most: int) -> dict[str, int]:
    """Return the share of each stream in a batch of ``most`` entries: by backlog, some of each."""
    waiting = {key: rows for key, rows in backlogs.items() if rows > 0}
    total = sum(waiting.values())
    if total <= most:
        return waiting
    largest_first = sorted(waiting, key=lambda key: (-waiting[key], key))
    shares = dict.fromkeys(largest_first[:most], 1)
    left = most - len(shares)
    rest = total - len(shares)
    for key in shares:
        shares[key] += (waiting[key] - 1) * left // rest if rest else 0
    spare = most - sum(shares.values())
    for key in shares:  # what rounding has left, one for each
        if spare and shares[key] < waiting[key]:
            shares[key] += 1
            spare -= 1
    return shares


def shares_within(
    shares: Mapping[str, int], weights: Mapping[str, int], most_bytes: int
) -> dict[str, int]:
    """So much of these shares as has about ``most_bytes``, and one entry at least.

    Args:
        weights: about how many bytes an entry of each stream has.
    """
    sizes = {key: rows * weights[key] for key, rows in shares.items()}
    total = sum(sizes.values())
    if total <= most_bytes:
        return dict(shares)
    found: dict[str, int] = {}
    left = most_bytes
    for key in sorted(sizes, key=lambda key: (-sizes[key], key)):
        fitting = min(shares[key] * most_bytes // total, left // weights[key])
        if found and left < weights[key]:
            break
        found[key] = max(1, fitting)
        left -= found[key] * weights[key]
    return found


def parts_of(rows: int, total: int, options: ReadOptions, weight: int = 0) -> int:
    """Into how many pieces to cut the ``rows`` of one stream, in a batch of ``total``.

    Args:
        weight: about how many bytes each of them has.
    """
    if rows <= 1:
        return 1
    wanted = min(total // options.min_rows_per_partition, 2 * (os.cpu_count() or 1))
    wanted = max(wanted, options.min_partitions)
    parts = max(-(-wanted * rows // total), -(-weight * rows // options.target_bytes))
    if options.max_rows_per_partition:
        parts = max(parts, -(-rows // options.max_rows_per_partition))
    return max(1, min(parts, rows, MOST_CUTS))


def cuts_by_time(low: StreamID, high: StreamID, parts: int) -> tuple[Cut, ...]:
    """Cuts that are even in time; whatever the entries, every ID lies in one piece."""
    first_ms = low[0]
    span_ms = high[0] - first_ms
    found: list[Cut] = []
    for number in range(1, parts):
        ms = first_ms + span_ms * number // parts
        if first_ms < ms < high[0] and (not found or found[-1].id[0] < ms):
            found.append(Cut((ms, ID_MAX)))
    return tuple(found)


def cuts_of(ids: Sequence[StreamID], parts: int) -> tuple[Cut, ...]:
    """Cuts of as many entries each; ``ids`` are those of all entries."""
    found: list[Cut] = []
    at = 0
    for number in range(1, parts):
        next_at = len(ids) * number // parts
        if next_at > at:
            found.append(Cut(ids[next_at - 1], next_at - at))
            at = next_at
    return tuple(found)
