"""The data source: from options to readers and writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from pyspark_headrace.errors import OptionError
from pyspark_headrace.given import READ, STREAM
from pyspark_headrace.options import frame_options, read_options, write_options

if TYPE_CHECKING:
    from pyspark_headrace.reader import StreamReader
    from pyspark_headrace.writer import BatchSink, StreamSink


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

        frame = frame_options(self.options)
        return default_schema(frame) if frame.resource == "entries" else SCHEMAS[frame.resource]

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        from pyspark_headrace.reader import batch_reader
        from pyspark_headrace.resources import ResourceReader

        options = read_options(self.options, READ)
        if options.frame.resource != "entries":
            return ResourceReader(options, schema)
        return batch_reader(options, schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802
        """For ``spark.readStream``."""
        from pyspark_headrace.reader import StreamReader

        return StreamReader(read_options(self.options, STREAM), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        """For ``df.write``."""
        from pyspark_headrace.writer import BatchSink

        if overwrite:
            raise OptionError('a stream is only appended to: mode("append") is wanted')
        return BatchSink(write_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:  # noqa: N802
        """For ``df.writeStream``."""
        from pyspark_headrace.writer import StreamSink

        if overwrite:
            raise OptionError(
                'a stream is only appended to: outputMode("append") is wanted; running '
                "aggregates go through foreachBatch"
            )
        return StreamSink(write_options(self.options), schema)
