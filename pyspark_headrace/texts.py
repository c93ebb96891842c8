"""Values of a DataFrame as the bytes of a field: one text form for each type.

=====================  ====================================================================
string, binary         as they are
whole numbers          ``-17``
float, double          the shortest decimal that reads back as the same number: ``0.1``, ``3``
decimal                with its scale: ``1.50``
boolean                ``true``, ``false``
date                   ``2026-01-31``
timestamp              ``2026-01-31T12:00:00.000005Z``, always in UTC
timestamp_ntz          the same without the ``Z``
array, map, struct     JSON
=====================  ====================================================================
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def slices(column: pa.Array) -> list[bytes]:
    """The values of a binary column; a null is empty.

    Cut from the column's own buffer: asking Arrow for Python objects takes three times as long.
    """
    if not len(column):
        return []
    _, ends, data = column.buffers()
    if data is None:
        return [b""] * len(column)
    raw = data.to_pybytes()
    places = memoryview(ends).cast("i")[column.offset : column.offset + len(column) + 1].tolist()
    return [raw[a:b] for a, b in pairwise(places)]


def as_bytes(column: pa.Array) -> pa.Array:
    """Any column as a binary one, in the form that this module's table gives."""
    kind = column.type
    if pa.types.is_binary(kind):
        return column
    if pa.types.is_timestamp(kind):
        unit = pa.timestamp("us", tz="UTC" if kind.tz else None)
        text = column.cast(unit).cast(pa.string())
        column = pc.replace_substring(text, " ", "T", max_replacements=1)
    elif pa.types.is_nested(kind):
        column = pa.array([_json(value) for value in column.to_pylist()], pa.string())
    elif not pa.types.is_string(kind):
        column = column.cast(pa.string())
    return column.cast(pa.binary())


def _json(value: Any) -> str | None:
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> object:
    """What JSON has no form for, inside of a nested value."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)
