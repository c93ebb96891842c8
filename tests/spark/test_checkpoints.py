"""Checkpoints of other versions go on, or are refused with what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from pyspark_headrace.ids import format_id
from pyspark_headrace.offsets import Mark, Position, from_offset
from support.client import RawClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.once

Where = dict[str, str]
TIMEOUT_S = 120
OURS = re.compile(r'^\{"k".*$', re.MULTILINE)


def add(client: RawClient, first: int, count: int) -> None:
    for number in range(first, first + count):
        client.call("XADD", "s", f"{number}-1", "n", str(number))


def copy(spark: SparkSession, where: Where, checkpoint: str) -> None:
    """Bring the stream of copies up to date, in batches of four."""
    query = (
        spark.readStream.format("headrace")
        .options(**where, subscribe="s", startingOffsets="earliest", maxOffsetsPerTrigger="4")
        .load()
        .writeStream.format("headrace")
        .options(**where, stream="copy")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(TIMEOUT_S)


def copies(client: RawClient) -> list[int]:
    entries = client.call_parsed("XRANGE", "copy", "-", "+")
    assert isinstance(entries, list)
    return sorted(int(fields[1]) for _, fields in entries)


def in_first_version(position: Position) -> dict[str, Any]:
    """A position as 0.1.0 wrote it."""
    found: dict[str, Any] = {"id": format_id(position.id)}
    facts = {"n": position.n, "rows": position.rows, "lost": position.lost or -1}
    found |= {name: value for name, value in facts.items() if value >= 0}
    if position.cuts:
        found["cut"] = " ".join(f"{format_id(cut.id)}/{cut.rows}" for cut in position.cuts)
    if position.seen is not None:
        seen = position.seen
        found["seen"] = {
            "added": seen.added,
            "removed": seen.removed,
            "last": format_id(seen.last),
            "deleted": format_id(seen.deleted),
        }
        marks: dict[str, Mark | None] = {"first": seen.first, "end": seen.end}
        found["seen"] |= {name: str(mark) for name, mark in marks.items() if mark is not None}
    return found


def rewrite(checkpoint: str, make: Any) -> None:
    """Make other offsets of those in a checkpoint."""
    files = [each for each in Path(checkpoint, "offsets").iterdir() if each.name.isdecimal()]
    assert files
    for each in files:
        text = each.read_text()
        assert OURS.search(text)
        each.write_text(OURS.sub(lambda found: json.dumps(make(json.loads(found[0]))), text))
        each.with_name(f".{each.name}.crc").unlink(missing_ok=True)


def open_last_batch(checkpoint: str) -> None:
    """As after a crash: the last batch was written, and Spark does not know."""
    commits = Path(checkpoint, "commits")
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdecimal())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("open_batch", [False, True], ids=["between batches", "in a batch"])
def test_the_first_version_goes_on(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str, open_batch: bool
) -> None:
    add(client, 1, 10)
    copy(spark, where, checkpoint)

    def older(offset: dict[str, Any]) -> dict[str, Any]:
        positions = from_offset(offset)
        return {"k": {key: in_first_version(each) for key, each in positions.items()}, "v": 1}

    rewrite(checkpoint, older)
    if open_batch:
        open_last_batch(checkpoint)
    add(client, 11, 10)
    copy(spark, where, checkpoint)
    assert copies(client) == list(range(1, 21)), "each entry once"


def test_a_newer_version_is_refused(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    add(client, 1, 5)
    copy(spark, where, checkpoint)
    rewrite(checkpoint, lambda offset: {**offset, "v": 3})
    add(client, 6, 5)
    with pytest.raises(StreamingQueryException) as raised:
        copy(spark, where, checkpoint)
    text = str(raised.value)
    assert "this checkpoint is of a newer pyspark-headrace" in text
    assert "begin a new one with startingOffsets" in text
    assert copies(client) == [1, 2, 3, 4, 5]
