"""Rows of Arrow batches as the words of XADD.

Two kinds of frames are told apart by their columns. A frame with a column ``fields`` (a map) or
``pairs`` (names and values) writes just that: what the source gave comes out again. In any other
frame each column is a field, except those whose names start with an underscore, and ``key`` where
it names the stream. A null is a field that is left out.

A row that cannot be written (it has no field, or lacks its stream or its mark) is an error, or with
``errorStream`` goes there instead: what it has as fields, behind ``_error`` and ``_stream``.

A column of headers (``headers`` beside ``fields`` or ``pairs``, ``_headers`` elsewhere) becomes
fields whose names begin with ``h:``, behind the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from pyspark_headrace.errors import OptionError, ValueTrouble
from pyspark_headrace.filling import HEADER_PREFIX
from pyspark_headrace.identity import bulk, digest
from pyspark_headrace.options import WriteOptions
from pyspark_headrace.shape import HEADERS
from pyspark_headrace.texts import as_bytes, slices

IID_COLUMN: Final = "_iid"
_WRITTEN: Final = (
    BinaryType,
    BooleanType,
    CharType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    NullType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)


@dataclass(frozen=True)
class Layout:
    """Which columns of a frame mean what.

    Attributes:
        key: names the stream of each row; empty when all go to one.
        whole: holds all fields; empty when ``fields`` are columns of their own.
        headers: holds headers; empty where there are none.
        identity: ``column``, ``source``, ``content``, ``ordinal``, ``marker`` or
            ``none``.
        marks: the columns that ``column`` and ``source`` go by.
    """

    key: str
    whole: str
    headers: str
    fields: tuple[str, ...]
    identity: str
    marks: tuple[str, ...]


def layout_of(schema: StructType, options: WriteOptions) -> Layout:
    """Return what the columns of a frame mean to a sink.

    Raises:
        OptionError: there is nothing to write, or a column that an option names is missing.
    """
    names = schema.names
    whole = _whole_column(schema)
    prefix = "" if whole else "_"
    key = ""
    if not options.stream:
        key = next((name for name in ("_key", "key") if name in names), "")
        if not key:
            raise OptionError(
                "which stream? Give the option stream, or a column key; "
                "in SQL: INSERT INTO a_table WITH (stream 'name')"
            )
        if not isinstance(schema[key].dataType, StringType):
            raise OptionError(f"column {key} names the stream of each row, and must be a string")
    fields: tuple[str, ...] = ()
    if not whole:
        fields = tuple(name for name in names if name[:1] != "_" and name != key)
        if not fields:
            raise OptionError(
                "nothing to write: no column fields or pairs, and none whose name has no underscore"
            )
    headers = _headers_column(schema, prefix)
    for name in (whole, *fields):
        if name:
            _check_type(name, schema[name].dataType)
    identity, marks = _identity(names, prefix, options)
    if options.id_scope == "query" and identity in ("content", "ordinal", "marker"):
        raise OptionError(
            f"idScope=query and identity={identity}: equal rows of two batches would count as one"
        )
    return Layout(key, whole, headers, fields, identity, marks)


def _whole_column(schema: StructType) -> str:
    for name in ("fields", "pairs"):
        if name not in schema.names:
            continue
        kind = schema[name].dataType
        if isinstance(kind, MapType):
            return name
        inner = kind.elementType if isinstance(kind, ArrayType) else None
        if isinstance(inner, StructType) and len(inner) == 2:
            return name
    return ""


def _headers_column(schema: StructType, prefix: str) -> str:
    name = f"{prefix}headers"
    if name not in schema.names:
        return ""
    if schema[name].dataType.simpleString() != HEADERS.simpleString():
        raise OptionError(
            f"column {name} holds headers, and must be {HEADERS.simpleString()}, "
            f"not {schema[name].dataType.simpleString()}"
        )
    return name


def _check_type(name: str, kind: DataType) -> None:
    """Refuse what has no form as text, however deep it lies."""
    inner: list[DataType] = []
    if isinstance(kind, ArrayType):
        inner = [kind.elementType]
    elif isinstance(kind, MapType):
        inner = [kind.keyType, kind.valueType]
    elif isinstance(kind, StructType):
        inner = [field.dataType for field in kind.fields]
    elif not isinstance(kind, _WRITTEN):
        raise OptionError(
            f"column {name}: {kind.simpleString()} has no form as a field; cast it to string, or "
            "use to_json"
        )
    for each in inner:
        _check_type(name, each)


def _identity(names: list[str], prefix: str, options: WriteOptions) -> tuple[str, tuple[str, ...]]:
    wanted = options.identity
    column = options.id_column or IID_COLUMN
    if options.id_column and column not in names:
        raise OptionError(f"option idColumn: there is no column {column}")
    if wanted == "column" and column not in names:
        raise OptionError(f"identity=column: there is no column {column}; name one with idColumn")
    if wanted in ("auto", "column") and column in names:
        return "column", (column,)
    if wanted != "auto":
        return wanted, ()
    source = tuple(prefix + name for name in ("key", "id"))
    if source[1] in names:
        return "source", tuple(name for name in source if name in names)
    return "content", ()


@dataclass
class Rows:
    """Some rows, ready to be labelled and sent.

    Attributes:
        targets: for each row the name of its stream.
        bodies: for each row its fields and values as words of a request.
        counts: for each row the number of its fields.
        marks: for each row what tells it apart, see ``identity``; empty where nothing does.
    """

    targets: list[bytes]
    bodies: list[bytes]
    counts: list[int]
    marks: list[bytes]


class Encoder:
    """Turns batches into rows.

    Attributes:
        turned_away: rows that could not be written, and went to the stream of errors.
        first_error: what was wrong with the first of them.
    """

    def __init__(self, layout: Layout, options: WriteOptions) -> None:
        self._layout: Final = layout
        self._stream: Final = options.stream.encode()
        self._error_stream: Final = options.error_stream.encode()
        self._rows_before = 0
        self.turned_away = 0
        self.first_error = ""

    def encode(self, batch: pa.RecordBatch) -> Rows:
        """The rows of a batch.

        Raises:
            ValueTrouble: a row cannot be written, and there is no stream of errors.
        """
        layout = self._layout
        wrong: dict[int, str] = {}
        if layout.whole:
            bodies, counts = self._many_fields(batch, layout.whole, b"", wrong)
        else:
            bodies, counts = _encode_columns(batch, layout.fields)
        if layout.headers:
            more, more_counts = self._many_fields(batch, layout.headers, HEADER_PREFIX, wrong)
            bodies = list(map(b"".join, zip(bodies, more, strict=True)))
            counts = [one + other for one, other in zip(counts, more_counts, strict=True)]
        if 0 in counts:
            for number, count in enumerate(counts):
                if not count:
                    wrong.setdefault(number, "has no field with a value; an entry needs one")
        targets = [self._stream] * len(bodies)
        if layout.key:
            targets = _without_nulls(batch, layout.key, wrong)
        marks: list[bytes] = []
        if layout.marks:
            columns = [_without_nulls(batch, name, wrong) for name in layout.marks]
            marks = (
                columns[0]
                if len(columns) == 1
                else list(map(b"/".join, zip(*columns, strict=True)))
            )
        rows = Rows(targets, bodies, counts, marks)
        for number in sorted(wrong):
            self.turn_away(rows, number, f"{self._name(number)} {wrong[number]}")
        self._rows_before += len(bodies)
        return rows

    def turn_away(self, rows: Rows, number: int, what: str) -> None:
        """Send a row to the stream of errors instead.

        Raises:
            ValueTrouble: there is none.
        """
        if not self._error_stream:
            raise ValueTrouble(what)
        self.first_error = self.first_error or what
        self.turned_away += 1
        facts = ((b"_error", what.encode()), (b"_stream", rows.targets[number]))
        words = b"".join([bulk(name) + bulk(value) for name, value in facts])
        rows.targets[number] = self._error_stream
        rows.bodies[number] = words + rows.bodies[number]
        rows.counts[number] += len(facts)
        if rows.marks:
            rows.marks[number] = digest(rows.marks[number] + rows.bodies[number], 15)

    def _name(self, number: int) -> str:
        return f"row {self._rows_before + number} of this partition"

    def _many_fields(
        self, batch: pa.RecordBatch, name: str, prefix: bytes, wrong: dict[int, str]
    ) -> tuple[list[bytes], list[int]]:
        bodies, counts = _encode_whole(batch.column(name), prefix)
        for number, count in enumerate(counts):
            if count < 0:
                wrong.setdefault(number, f"has a null for a name in column {name}")
                bodies[number], counts[number] = b"", 0
        return bodies, counts


def _without_nulls(batch: pa.RecordBatch, name: str, wrong: dict[int, str]) -> list[bytes]:
    column = batch.column(name)
    if column.null_count:
        for number, there in enumerate(column.is_valid().to_pylist()):
            if not there:
                wrong.setdefault(number, f"has null in column {name}")
    return slices(as_bytes(column))


def _encode_columns(batch: pa.RecordBatch, names: tuple[str, ...]) -> tuple[list[bytes], list[int]]:
    columns: list[list[bytes]] = []
    counts = [len(names)] * batch.num_rows
    for name in names:
        column = as_bytes(batch.column(name))
        form = bulk(name.encode()).replace(b"%", b"%%") + b"$%d\r\n%b\r\n"
        words = [form % (len(value), value) for value in slices(column)]
        if column.null_count:
            for number, there in enumerate(column.is_valid().to_pylist()):
                if not there:
                    words[number] = b""
                    counts[number] -= 1
        columns.append(words)
    return list(map(b"".join, zip(*columns, strict=True))), counts


def _encode_whole(column: pa.Array, prefix: bytes) -> tuple[list[bytes], list[int]]:
    """Fields from a column that holds many of each row: a map, or a list of names and values.

    Returns:
        For each row its fields as words of a request, and how many; -1 where a name is null.
    """
    if pa.types.is_map(column.type):
        names, values = column.keys, column.items
    else:
        entries = column.values
        names, values = entries.field(0), entries.field(1)
    values = as_bytes(values)
    words = [
        b"$%d\r\n%b%b\r\n$%d\r\n%b\r\n" % (len(prefix) + len(name), prefix, name, len(value), value)
        for name, value in zip(slices(as_bytes(names)), slices(values), strict=True)
    ]
    if values.null_count:
        for number, there in enumerate(values.is_valid().to_pylist()):
            if not there:
                words[number] = b""
    nameless = names.is_null().to_pylist() if names.null_count else []
    ends = column.offsets.to_pylist()
    bodies: list[bytes] = []
    counts: list[int] = []
    for low, high in pairwise(ends):
        mine = words[low:high]
        bodies.append(b"".join(mine))
        counts.append(-1 if any(nameless[low:high]) else len(mine) - mine.count(b""))
    return bodies, counts
