"""Which task reads which pieces of a batch.

A task costs Spark about 20 ms and a piece a round trip, however little they hold. So a task takes
many small pieces, up to ``targetPartitionBytes``, and there are no more tasks than there is work
for. How many pieces each task has stands in the offset, as the pieces do: a repeated batch has the
same tasks, whatever the options and the cores.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from pyspark_headrace.offsets import Piece
from pyspark_headrace.options import ReadOptions

PIECE_COST: Final = 200  # what a piece costs, in entries


def deal(pieces: Sequence[Piece], options: ReadOptions) -> list[int]:
    """Return how many pieces each task has, in their order.

    Two pieces of one stream are never in one task: it was cut for them to be read side by side.
    """
    unknown = options.min_rows_per_partition
    costs = [PIECE_COST + (piece.rows if piece.rows >= 0 else unknown) for piece in pieces]
    total = sum(costs)
    wanted = min(total // options.min_rows_per_partition, 2 * (os.cpu_count() or 1))
    most = -(-total // max(wanted, options.min_partitions, 1))
    most_rows = options.max_rows_per_partition
    found: list[int] = []
    cost = rows = size = 0
    last = ""
    for piece, its_cost in zip(pieces, costs, strict=True):
        its_rows = max(0, piece.rows)
        its_size = its_rows * piece.weight
        crowded = (
            cost + its_cost > most
            or size + its_size > options.target_bytes
            or (most_rows and rows + its_rows > most_rows)
        )
        if not found or crowded or piece.key == last:
            found.append(0)
            cost = rows = size = 0
        found[-1] += 1
        cost += its_cost
        rows += its_rows
        size += its_size
        last = piece.key
    return found


def dealt(pieces: Sequence[Piece], counts: Sequence[int]) -> list[tuple[Piece, ...]]:
    """The pieces of each task; one piece each where nothing, or something else, was written down.

    Args:
        counts: what ``deal`` gave when the batch was planned; empty in earlier versions.
    """
    if sum(counts) != len(pieces):
        return [(piece,) for piece in pieces]
    found: list[tuple[Piece, ...]] = []
    at = 0
    for count in counts:
        found.append(tuple(pieces[at : at + count]))
        at += count
    return found
