"""The data source: from options to readers and writers.

Spark hands the options of a table (``CREATE TABLE ... USING headrace OPTIONS (...)``) to a source
in Python once, when it asks for the table's columns, and never again. So they go into the metadata
of the first column, which comes back with each SELECT and INSERT.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructField, StructType

from pyspark_headrace.errors import OptionError
from pyspark_headrace.given import READ, STREAM, WRITE, Given, uses_of
from pyspark_headrace.options import frame_options, read_options, write_options

if TYPE_CHECKING:
    from pyspark_headrace.reader import StreamReader
    from pyspark_headrace.writer import BatchSink, StreamSink


_KEPT: Final = "headrace"
_OPTION: Final = "option."


def _of_table(options: Mapping[str, str]) -> dict[str, str] | None:
    """The options of a table that is created; None where it is none.

    Among the table's properties each option stands twice, as ``port`` and as ``option.port``.

    Raises:
        OptionError: one is unknown, or the table lies in a folder.
    """
    if "provider" not in options:
        return None
    if "path" in options:
        raise OptionError(
            "the option path of a table is a folder to Spark, as LOCATION is: name streams with "
            "subscribe, and with stream where INSERT is to append"
        )
    found = {
        name.removeprefix(_OPTION): value
        for name, value in options.items()
        if name.startswith(_OPTION)
    }
    Given(found, READ, STREAM, WRITE)
    return found


def _options(options: Mapping[str, str], schema: StructType, use: str) -> dict[str, str]:
    """The options of a statement, and those of its table that it does not give itself."""
    kept: dict[str, str] = next(
        (each.metadata[_KEPT] for each in schema if _KEPT in each.metadata), {}
    )
    found = {name.lower(): value for name, value in kept.items() if use in uses_of(name)}
    return found | {name.lower(): value for name, value in options.items()}


class HeadraceSource(DataSource):
    """``format("headrace")``; the imports wait until a process needs what they bring."""

    @classmethod
    def name(cls) -> str:
        """The name in ``format(...)`` and ``USING``."""
        return "headrace"

    def schema(self) -> StructType:
        """The schema where the user gives none."""
        from pyspark_headrace.resources import SCHEMAS
        from pyspark_headrace.shape import default_schema

        table = _of_table(self.options)
        given = self.options
        if table is not None:
            given = {name: table[name] for name in table if {READ, STREAM} & set(uses_of(name))}
        frame = frame_options(given)
        found = default_schema(frame) if frame.resource == "entries" else SCHEMAS[frame.resource]
        if table is None:
            return found
        first, *others = found
        kept = StructField(first.name, first.dataType, first.nullable, {_KEPT: table})
        return StructType([kept, *others])

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        from pyspark_headrace.reader import batch_reader
        from pyspark_headrace.resources import ResourceReader

        options = read_options(_options(self.options, schema, READ), READ)
        if options.frame.resource != "entries":
            return ResourceReader(options, schema)
        return batch_reader(options, schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802
        """For ``spark.readStream``."""
        from pyspark_headrace.reader import StreamReader

        return StreamReader(read_options(_options(self.options, schema, STREAM), STREAM), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        """For ``df.write``."""
        from pyspark_headrace.writer import BatchSink

        if overwrite:
            raise OptionError('a stream is only appended to: mode("append") is wanted')
        return BatchSink(write_options(_options(self.options, schema, WRITE)), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:  # noqa: N802
        """For ``df.writeStream``."""
        from pyspark_headrace.writer import StreamSink

        if overwrite:
            raise OptionError(
                'a stream is only appended to: outputMode("append") is wanted; running '
                "aggregates go through foreachBatch"
            )
        return StreamSink(write_options(_options(self.options, schema, WRITE)), schema)
