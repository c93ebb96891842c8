"""A streaming query without Spark: it plans, reads, and remembers what it has read."""

from __future__ import annotations

import json
from collections.abc import Callable

from pyspark_headrace.given import STREAM
from pyspark_headrace.ids import StreamID, parse_id
from pyspark_headrace.offsets import Offset, Positions, from_offset, pieces_between, to_offset
from pyspark_headrace.options import Frame, read_options
from pyspark_headrace.planner import Planner
from pyspark_headrace.reader import read_pieces
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Server
from pyspark_headrace.shape import Shape, default_schema
from support.client import RawClient
from support.process import Process

SHAPE = Shape(default_schema(Frame()), Frame(), "permissive", "utf-8")


class Query:
    """Batches, one by one; every offset goes through its text, as in a checkpoint.

    Args:
        options: those of the source; None takes one away.
        checkpoint: the offset to go on from, instead of where a new query starts.

    Attributes:
        read: the IDs that were read, by stream, in order.
        values: likewise the values of their field ``f``.
        expected_rows: for each piece the rows that were planned and those that were read.
        before_reading: called between planning and reading.
    """

    def __init__(
        self, process: Process, checkpoint: str | None = None, /, **options: object
    ) -> None:
        given: dict[str, object] = {
            "port": process.port,
            "pollTimeoutMs": 0,
            "subscribe": "s",
            **options,
        }
        self.options = read_options(
            {name: str(value) for name, value in given.items() if value is not None}, STREAM
        )
        self.server = Server(Link(self.options.connection))
        self.planner = Planner(self.options, self.server)
        if checkpoint is None:
            checkpoint = json.dumps(to_offset(self.planner.initial()))
        self.checkpoint = checkpoint
        self.read: dict[str, list[StreamID]] = {}
        self.values: dict[str, list[str]] = {}
        self.expected_rows: list[tuple[int, int]] = []
        self.before_reading: Callable[[], object] = bool

    @property
    def at(self) -> Positions:
        return from_offset(json.loads(self.checkpoint))

    def step(self, most: int = 0) -> bool:
        """One batch; False when there is none."""
        start = from_offset(json.loads(self.checkpoint))
        found = self.planner.latest(start, most)
        if found is None:
            return False
        offset: Offset = json.loads(json.dumps(to_offset(found)))
        self.before_reading()
        for piece in pieces_between(start, from_offset(offset)):
            rows = 0
            for batch in read_pieces(self.options, SHAPE, [piece]):
                rows += batch.num_rows
                ids = [parse_id(each) for each in batch["id"].to_pylist()]
                self.read.setdefault(piece.key, []).extend(ids)
                values = [dict(each)["f"] for each in batch["fields"].to_pylist()]
                self.values.setdefault(piece.key, []).extend(values)
            self.expected_rows.append((piece.rows, rows))
        self.checkpoint = json.dumps(offset)
        return True

    def run(self, most: int = 0) -> None:
        """Batches until there is none."""
        while self.step(most):
            pass

    def close(self) -> None:
        self.server.link.close()


def add(client: RawClient, key: str, *ids: str, value: str = "v") -> None:
    """Entries of one field; ``value`` stands before their IDs if it is given."""
    client.pipeline(
        *[("XADD", key, each, "f", value if value == "v" else f"{value}:{each}") for each in ids]
    )


def numbers(ids: list[StreamID]) -> list[int]:
    """The milliseconds of IDs."""
    return [ms for ms, _ in ids]
