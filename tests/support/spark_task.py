"""A Spark task without Spark: what a sink asks of its ``TaskContext`` is set by hand.

The class is Spark's own, as a worker fills it; that Spark really does fill it so is what the tests
with a session show.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import TaskContext

QUERY = "0f1e2d3c-0000-4000-8000-000000000000"


@contextmanager
def task(
    partition: int = 0, batch: int | None = 0, query: str | None = QUERY, attempt: int = 0
) -> Iterator[None]:
    """Be an attempt of a task: of a micro-batch, or (both None) of a batch job."""
    context = TaskContext._getOrCreate()
    context._partitionId = partition
    context._attemptNumber = attempt
    properties: dict[str, str] = {}
    if batch is not None:
        properties["streaming.sql.batchId"] = str(batch)
    if query is not None:
        properties["sql.streaming.queryId"] = query
    context._localProperties = properties
    try:
        yield
    finally:
        TaskContext._setTaskContext(None)
