"""What a DataFrame of entries looks like, and how pages of entries become Arrow batches.

Without a schema of the user's the columns are ``key, id, id_ms, id_seq, timestamp`` and ``fields``
(a map of strings), or ``pairs`` (field names and values as they are, repeated ones and binary ones
too), or ``json`` (one string).

With a schema of the user's, a column is the field of its name, cast in Arrow. Names that start with
an underscore speak of the entry instead, see ``META``; ``_rest`` holds the fields that no column
has. Fields whose names begin with ``h:`` are headers where a frame has a column for these, and then
are in no column of other fields.
"""

from __future__ import annotations

import base64
import difflib
import json
from collections.abc import Callable
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_headrace.columnar import Page
from pyspark_headrace.errors import OptionError, ValueTrouble
from pyspark_headrace.ids import MOST_MS
from pyspark_headrace.options import Frame

STRING_MAP: Final = MapType(StringType(), StringType(), True)
PAIRS: Final = ArrayType(
    StructType(
        [StructField("name", BinaryType(), False), StructField("value", BinaryType(), False)]
    ),
    False,
)
HEADERS: Final = ArrayType(
    StructType(
        [StructField("key", StringType(), False), StructField("value", BinaryType(), False)]
    ),
    False,
)
HEADER_PREFIX: Final = b"h:"
META: Final[dict[str, DataType]] = {
    "_key": StringType(),
    "_id": StringType(),
    "_id_ms": LongType(),
    "_id_seq": LongType(),
    "_timestamp": TimestampType(),
    "_fields": STRING_MAP,
    "_rest": STRING_MAP,
    "_pairs": PAIRS,
    "_json": StringType(),
    "_headers": HEADERS,
}
_CASTABLE: Final = (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
_PAIRS_ARROW: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("name", pa.binary(), False), pa.field("value", pa.binary(), False)]),
        False,
    )
)
_HEADERS_ARROW: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("key", pa.string(), False), pa.field("value", pa.binary(), False)]),
        False,
    )
)
_MAP_ARROW: Final = pa.map_(
    pa.field("key", pa.string(), False), pa.field("value", pa.string(), True)
)
_MICROS: Final = pa.timestamp("us", tz="UTC")


def default_schema(frame: Frame) -> StructType:
    """The schema where the user gives none."""
    last = {
        "map": StructField("fields", STRING_MAP, False),
        "pairs": StructField("pairs", PAIRS, False),
        "json": StructField("json", StringType(), False),
    }[frame.fields_format]
    ids = [
        StructField("id", StringType(), False),
        StructField("id_ms", LongType(), False),
        StructField("id_seq", LongType(), False),
    ]
    return StructType(
        [
            StructField("key", StringType(), False),
            *(ids if frame.include_id else ()),
            StructField("timestamp", TimestampType(), True),
            last,
            *([StructField("headers", HEADERS, False)] if frame.include_headers else ()),
        ]
    )


class Column:
    """One column: where its values come from.

    Attributes:
        name: as the schema has it.
        meta: the name in ``META``; empty for a field of the entry.
        type: of Arrow.
    """

    def __init__(self, name: str, meta: str, kind: pa.DataType) -> None:
        self.name: Final = name
        self.meta: Final = meta
        self.type: Final = kind
        self.field: Final = name.encode()


class Shape:
    """A schema, ready to be filled.

    Args:
        schema: the user's, or ``default_schema``.
        frame: what ``default_schema`` would be made of.
        bad_value: ``null`` or ``fail``: what a value becomes that does not fit its column.
        encoding: of field names and values that become strings.

    Raises:
        OptionError: the schema cannot be filled.
    """

    def __init__(self, schema: StructType, frame: Frame, bad_value: str, encoding: str) -> None:
        self.arrow_schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._lenient = bad_value == "null"
        self._encoding = encoding
        ours = schema.names == default_schema(frame).names
        self.columns = [
            Column(
                field.name,
                _meta_of(field, ours),
                self.arrow_schema.field(number).type,
            )
            for number, field in enumerate(schema.fields)
        ]
        self._named = {column.field for column in self.columns if not column.meta}
        self._has_headers = any(column.meta == "_headers" for column in self.columns)

    def meta_names(self) -> dict[str, str]:
        """For each column that speaks of the entry: its name in ``META``."""
        return {column.name: column.meta for column in self.columns if column.meta}

    def batch(self, key: str, page: Page) -> pa.RecordBatch:
        """The entries of a page of the stream ``key``.

        Raises:
            ValueTrouble: a value does not fit its column, and ``bad_value`` is ``fail``.
        """
        filling = _Filling(self, key, page)
        arrays = [filling.array(column) for column in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)


def _meta_of(field: StructField, ours: bool) -> str:
    """The name in ``META`` that a column of the schema stands for; empty for a field."""
    name = field.name
    if ours:
        name = "_" + name
    elif not name.startswith("_"):
        if not isinstance(field.dataType, _CASTABLE):
            near = f" (the entry's fields are called _{name})" if "_" + name in META else ""
            raise OptionError(
                f"column {name}: a field of an entry cannot be read as "
                f"{field.dataType.simpleString()}{near}; read it as string and convert it"
            )
        return ""
    if name not in META:
        near_names = difflib.get_close_matches(name, META, 1, 0.5)
        hint = f"; did you mean {near_names[0]}?" if near_names else ""
        raise OptionError(
            f"column {name}: a name with an underscore speaks of the entry, and is one of "
            f"{', '.join(META)}{hint}"
        )
    wanted = META[name]
    if field.dataType.simpleString() != wanted.simpleString():  # what may be null does not matter
        raise OptionError(
            f"column {field.name} has the type {wanted.simpleString()}, "
            f"not {field.dataType.simpleString()}"
        )
    return name


class _Filling:
    """One page on its way into columns."""

    def __init__(self, shape: Shape, key: str, page: Page) -> None:
        self._shape = shape
        self._key = key
        self._page = page
        self._rest = page  # what columns of many fields are made of
        self._headers = page
        if shape._has_headers:
            self._rest, self._headers = _parted(page, HEADER_PREFIX)
        self._halves: list[bytes] = []
        self._dicts: list[dict[bytes, bytes]] = []

    def array(self, column: Column) -> pa.Array:
        if column.meta:
            made = _MAKERS[column.meta](self)
            return made if made.type == column.type else made.cast(column.type)
        page = self._page
        if page.names is None:
            if not self._dicts:
                self._dicts = _dicts_of(page)
            values: list[bytes | None] = [row.get(column.field) for row in self._dicts]
            return self._cast(pa.array(values, pa.binary()), column)
        # Of a field that an entry has twice, the last one counts, as in the map.
        for number in range(len(page.names) - 1, -1, -1):
            if page.names[number] == column.field:
                return self._cast(pa.array(page.columns[number], pa.binary()), column)
        return pa.nulls(len(page), column.type)

    # Of the entry

    def _keys(self) -> pa.Array:
        return pa.repeat(pa.scalar(self._key, pa.string()), len(self._page))

    def _ids(self) -> pa.Array:
        return pa.array(self._page.ids, pa.string())

    def _id_halves(self) -> list[bytes]:
        if not self._halves and self._page.ids:
            self._halves = b"-".join(self._page.ids).split(b"-")
        return self._halves

    def _number(self, name: str, half: int) -> pa.Array:
        try:
            return pa.array(self._id_halves()[half::2], pa.string()).cast(pa.int64())
        except pa.ArrowInvalid:
            wrong = max(map(int, self._id_halves()[half::2]))
            raise ValueTrouble(
                f"stream {self._key}: {wrong} is beyond the 63 bits of column {name}; give a "
                "schema without that column, and use _id"
            ) from None

    def _timestamps(self) -> pa.Array:
        """The time in an ID; null where it is beyond what a timestamp can hold."""
        all_ms = [int(half) for half in self._id_halves()[0::2]]
        micros = [ms * 1000 if ms <= MOST_MS else None for ms in all_ms]
        return pa.array(micros, pa.int64()).cast(_MICROS)

    # Of its fields

    def _map(self, without: frozenset[bytes]) -> pa.Array:
        page = self._rest
        names = page.names
        if names is not None and len(set(names)) == len(names):
            kept = [number for number, name in enumerate(names) if name not in without]
            width = len(kept)
            count = len(page)
            keys = [names[number] for number in kept] * count
            items: list[bytes] = [b""] * (width * count)
            for place, number in enumerate(kept):
                items[place::width] = page.columns[number]
            offsets = pa.array(range(0, width * count + 1, width) if width else [0] * (count + 1))
            return self._map_of(offsets, keys, items)
        flat_keys: list[bytes] = []
        flat_items: list[bytes] = []
        ends = [0]
        for row in _dicts_of(page):
            for name, value in row.items():
                if name not in without:
                    flat_keys.append(name)
                    flat_items.append(value)
            ends.append(len(flat_keys))
        return self._map_of(pa.array(ends), flat_keys, flat_items)

    def _map_of(self, offsets: pa.Array, keys: list[bytes], items: list[bytes]) -> pa.Array:
        names = self._text(pa.array(keys, pa.binary()), "a field name", False)
        values = self._text(pa.array(items, pa.binary()), "a value", self._shape._lenient)
        return pa.MapArray.from_arrays(offsets.cast(pa.int32()), names, values, type=_MAP_ARROW)

    def _pairs(self) -> pa.Array:
        ends, names, values = _flattened(self._rest)
        return _list_of(ends, pa.array(names, pa.binary()), values, _PAIRS_ARROW)

    def _header_list(self) -> pa.Array:
        ends, names, values = _flattened(self._headers)
        texts = self._text(pa.array(names, pa.binary()), "a header's name", False)
        return _list_of(ends, texts, values, _HEADERS_ARROW)

    def _json(self) -> pa.Array:
        """One JSON object; a value that is no text becomes ``{"base64": ...}``."""
        page = self._rest
        lines: list[str] = []
        for number in range(len(page)):
            row = page.row(number)
            members = {
                self._decoded_name(name): self._json_value(value)
                for name, value in zip(row[0::2], row[1::2], strict=True)
            }
            lines.append(json.dumps(members, ensure_ascii=False, separators=(",", ":")))
        return pa.array(lines, pa.string())

    def _decoded_name(self, name: bytes) -> str:
        try:
            return name.decode(self._shape._encoding)
        except UnicodeDecodeError:
            raise self._no_text("a field name", name) from None

    def _json_value(self, value: bytes) -> object:
        try:
            return value.decode(self._shape._encoding)
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}

    # Casting

    def _text(self, values: pa.Array, what: str, lenient: bool) -> pa.Array:
        """Bytes as strings."""
        if self._shape._encoding == "latin-1":
            decoded = [
                None if each is None else each.decode("latin-1") for each in values.to_pylist()
            ]
            return pa.array(decoded, pa.string())
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid:
            if lenient:
                return _decoded_by_halves(values)
            wrong = next(each for each in values.drop_null().to_pylist() if not _is_text(each))
            raise self._no_text(what, wrong) from None

    def _no_text(self, what: str, value: bytes) -> ValueTrouble:
        return ValueTrouble(
            f"stream {self._key}: {what}, {value[:40]!r}, is not UTF-8; read with "
            "fieldsFormat=pairs, a binary column, or encoding=latin-1"
        )

    def _cast(self, values: pa.Array, column: Column) -> pa.Array:
        """The values of a field in the type of its column."""
        if pa.types.is_binary(column.type):
            return values
        text = self._text(values, f"field {column.name}", self._shape._lenient)
        if pa.types.is_string(column.type):
            return text
        try:
            return _convert(text, column.type)
        except pa.ArrowInvalid:
            return self._cast_by_halves(text, column, 0)

    def _cast_by_halves(self, text: pa.Array, column: Column, first: int) -> pa.Array:
        """A cast that finds the values that do not fit, by halving; ``first`` is the entry's."""
        if len(text) == 1:
            try:
                return _convert(text, column.type)
            except pa.ArrowInvalid:
                if self._shape._lenient:
                    return pa.nulls(1, column.type)
            raise ValueTrouble(
                f"stream {self._key}, entry {self._page.ids[first].decode()}: field {column.name} "
                f"is {text[0].as_py()[:40]!r}, which is no {column.type}"
            )
        middle = len(text) // 2
        return pa.concat_arrays(
            [
                self._cast_by_halves(text[:middle], column, first),
                self._cast_by_halves(text[middle:], column, first + middle),
            ]
        )


# Not in each filling: a filling that holds methods of its own is not freed until much later.
_MAKERS: Final[dict[str, Callable[[_Filling], pa.Array]]] = {
    "_key": _Filling._keys,
    "_id": _Filling._ids,
    "_id_ms": lambda filling: filling._number("_id_ms", 0),
    "_id_seq": lambda filling: filling._number("_id_seq", 1),
    "_timestamp": _Filling._timestamps,
    "_fields": lambda filling: filling._map(frozenset()),
    "_rest": lambda filling: filling._map(frozenset(filling._shape._named)),
    "_pairs": _Filling._pairs,
    "_json": _Filling._json,
    "_headers": _Filling._header_list,
}


def _dicts_of(page: Page) -> list[dict[bytes, bytes]]:
    """For each entry its fields; of one that it has twice, the last."""
    if page.names is None:
        return [dict(zip(row[0::2], row[1::2], strict=True)) for row in page.rows]
    if not page.columns:
        return [{} for _ in page.ids]
    names = page.names
    return [dict(zip(names, values, strict=True)) for values in zip(*page.columns, strict=True)]


def _flattened(page: Page) -> tuple[list[int], list[bytes], list[bytes]]:
    """The ends of each entry's fields among those of all, and these, in order."""
    names: list[bytes] = []
    values: list[bytes] = []
    ends = [0]
    for number in range(len(page)):
        row = page.row(number)
        names += row[0::2]
        values += row[1::2]
        ends.append(len(names))
    return ends, names, values


def _list_of(ends: list[int], names: pa.Array, values: list[bytes], kind: pa.DataType) -> pa.Array:
    pairs = pa.StructArray.from_arrays(
        [names, pa.array(values, pa.binary())], fields=list(kind.value_type)
    )
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pairs, type=kind)


def _parted(page: Page, prefix: bytes) -> tuple[Page, Page]:
    """The fields without a prefix in their names, and those with it, which is cut off."""
    start = len(prefix)
    if page.names is not None:
        ours = [number for number, name in enumerate(page.names) if name.startswith(prefix)]
        others = [number for number in range(len(page.names)) if number not in ours]
        return (
            Page(
                page.ids,
                [page.names[number] for number in others],
                [page.columns[number] for number in others],
                [],
            ),
            Page(
                page.ids,
                [page.names[number][start:] for number in ours],
                [page.columns[number] for number in ours],
                [],
            ),
        )
    without: list[list[bytes]] = []
    within: list[list[bytes]] = []
    for row in page.rows:
        without.append([])
        within.append([])
        for name, value in zip(row[0::2], row[1::2], strict=True):
            if name.startswith(prefix):
                within[-1] += (name[start:], value)
            else:
                without[-1] += (name, value)
    return Page(page.ids, None, [], without), Page(page.ids, None, [], within)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _convert(text: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # A time without a zone is one of UTC, as stream IDs are.
        try:
            return text.cast(kind)
        except pa.ArrowInvalid:
            return text.cast(pa.timestamp("us")).cast(kind)
    return text.cast(kind)


def _decoded_by_halves(values: pa.Array) -> pa.Array:
    """Bytes as strings, and null what is not UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, pa.string())
    middle = len(values) // 2
    return pa.concat_arrays(
        [_decoded_by_halves(values[:middle]), _decoded_by_halves(values[middle:])]
    )
