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
array, map, struct     JSON; binary that is no text is ``{"base64": ...}``
=====================  ====================================================================
"""

from __future__ import annotations

import base64
import json
import math
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
    if pa.types.is_large_binary(kind):
        return column.cast(pa.binary())
    if pa.types.is_timestamp(kind):
        unit = pa.timestamp("us", tz="UTC" if kind.tz else None)
        text = column.cast(unit).cast(pa.string())
        column = pc.replace_substring(text, " ", "T", max_replacements=1)
    elif pa.types.is_nested(kind):
        lines = [None if value is None else _json(value, kind) for value in column.to_pylist()]
        column = pa.array(lines, pa.string())
    elif pa.types.is_decimal(kind):
        column = _digits(column)
    elif not pa.types.is_string(kind):
        column = column.cast(pa.string())
    return column.cast(pa.binary())


def _digits(column: pa.Array) -> pa.Array:
    """Decimals without exponents, which Arrow gives to small ones."""
    text = column.cast(pa.string())
    if not pc.any(pc.match_substring(text, "E")).as_py():
        return text
    values = [None if value is None else f"{value:f}" for value in column.to_pylist()]
    return pa.array(values, pa.string())


def _json(value: Any, kind: pa.DataType) -> str:
    return json.dumps(_plain(value, kind), ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any, kind: pa.DataType) -> object:
    """A value as JSON can say it; what it has no form for has that of a column, as a string."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {
            _name(key, kind.key_type): _plain(item, kind.item_type)
            for key, item in dict(value).items()
        }
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return value
    if pa.types.is_floating(kind) and math.isfinite(value):
        return value
    data: bytes = as_bytes(pa.array([value], kind))[0].as_py()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _name(key: Any, kind: pa.DataType) -> str:
    """The key of a map as a name."""
    found = _plain(key, kind)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
