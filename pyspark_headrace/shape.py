"""What a DataFrame of entries looks like, and how pages of entries become Arrow batches.

Without a schema of the user's the columns are ``key, id, id_ms, id_seq, timestamp`` and ``fields``
(a map of strings), or ``pairs`` (field names and values as they are, repeated ones and binary ones
too), or ``json`` (one string).

With a schema of the user's, a column is the field of its name, cast in Arrow. Names that start with
an underscore speak of the entry instead, see ``META``; ``_rest`` holds the fields that no column
has, and ``_corrupt`` the whole entry where something of it does not fit (null elsewhere).

Fields whose names begin with ``h:`` are headers where a frame has a column for these, and then are
in no column of other fields.
"""

from __future__ import annotations

import difflib
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
from pyspark_headrace.errors import OptionError
from pyspark_headrace.filling import Bad, Column, Filling, Manner
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
    "_corrupt": PAIRS,
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
            *([StructField("corrupt", PAIRS, True)] if frame.include_corrupt else ()),
        ]
    )


class Shape:
    """A schema, ready to be filled.

    Args:
        schema: the user's, or ``default_schema``.
        frame: what ``default_schema`` would be made of.
        mode: what becomes of an entry of which something does not fit: ``permissive`` makes it
            null, ``dropmalformed`` leaves the entry out, ``failfast`` is an error.
        encoding: of field names and values that become strings.

    Raises:
        OptionError: the schema cannot be filled.
    """

    def __init__(self, schema: StructType, frame: Frame, mode: str, encoding: str) -> None:
        self.arrow_schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._drops = mode == "dropmalformed"
        ours = schema.names == default_schema(frame).names
        self.columns = [
            Column(
                field.name,
                _meta_of(field, ours),
                self.arrow_schema.field(number).type,
            )
            for number, field in enumerate(schema.fields)
        ]
        self._manner = Manner(
            encoding,
            mode == "failfast",
            frozenset([column.field for column in self.columns if not column.meta]),
            any(column.meta == "_headers" for column in self.columns),
        )

    def meta_names(self) -> dict[str, str]:
        """For each column that speaks of the entry: its name in ``META``."""
        return {column.name: column.meta for column in self.columns if column.meta}

    def batch(self, key: str, page: Page, bad: Bad) -> pa.RecordBatch:
        """The entries of a page of the stream ``key``.

        Args:
            bad: counts the entries of which something does not fit.

        Raises:
            ValueTrouble: something does not fit, and that is to be an error.
        """
        filling = Filling(self._manner, key, page)
        # What is wrong with an entry is known when all else is filled.
        last = [column for column in self.columns if column.meta == "_corrupt"]
        arrays = {c.name: filling.array(c) for c in self.columns if c not in last}
        arrays |= {column.name: filling.array(column) for column in last}
        found = pa.RecordBatch.from_arrays(
            [arrays[column.name] for column in self.columns], schema=self.arrow_schema
        )
        if not filling.bad:
            return found
        bad.first = bad.first or filling.bad[min(filling.bad)]
        bad.rows += len(filling.bad)
        if not self._drops:
            return found
        return found.filter(pa.array([number not in filling.bad for number in range(len(page))]))


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
