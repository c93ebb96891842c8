"""The state of streams, groups, consumers and pending entries as DataFrames: ``resource=...``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from pyspark_headrace.errors import HeadraceError, OptionError, ServerError
from pyspark_headrace.ids import parse_id
from pyspark_headrace.options import ReadOptions
from pyspark_headrace.planner import Planner
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Server, key_text, pairs_of

Row = dict[str, object]

PENDING_PAGE: Final = 1000
_TEXT: Final = StringType()
_LONG: Final = LongType()


def _schema(*columns: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns])


SCHEMAS: Final[dict[str, StructType]] = {
    "info": _schema(
        ("key", _TEXT),
        ("length", _LONG),
        ("entries_added", _LONG),
        ("groups", _LONG),
        ("first_id", _TEXT),
        ("last_generated_id", _TEXT),
        ("max_deleted_entry_id", _TEXT),
        ("iids_tracked", _LONG),
        ("iids_duplicates", _LONG),
    ),
    "groups": _schema(
        ("key", _TEXT),
        ("group", _TEXT),
        ("consumers", _LONG),
        ("pending", _LONG),
        ("last_delivered_id", _TEXT),
        ("entries_read", _LONG),
        ("lag", _LONG),
        ("lag_ms", _LONG),
    ),
    "consumers": _schema(
        ("key", _TEXT),
        ("group", _TEXT),
        ("consumer", _TEXT),
        ("pending", _LONG),
        ("idle_ms", _LONG),
        ("inactive_ms", _LONG),
    ),
    "pending": _schema(
        ("key", _TEXT),
        ("group", _TEXT),
        ("id", _TEXT),
        ("consumer", _TEXT),
        ("idle_ms", _LONG),
        ("deliveries", _LONG),
    ),
}


class ResourceReader(DataSourceReader):
    """Reads one kind of state of all streams that are subscribed to, in one task."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._names = schema.names
        whole = SCHEMAS[options.frame.resource]
        for field in schema.fields:
            if field.name not in whole.names or whole[field.name].dataType != field.dataType:
                raise OptionError(
                    f"resource={options.frame.resource} has no column {field.name} "
                    f"{field.dataType.simpleString()}; it has {whole.simpleString()}"
                )

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The rows of all streams."""
        link = Link(self._options.connection)
        try:
            planner = Planner(self._options, Server(link))
            for key in planner.streams():
                for row in rows_of(link, self._options.frame.resource, key):
                    yield tuple(row[name] for name in self._names)
        finally:
            link.close()


def rows_of(link: Link, resource: str, key: str) -> Iterator[Row]:
    """The rows of one stream.

    Raises:
        HeadraceError: there is no such stream.
    """
    makers: dict[str, Callable[[Link, str], Iterator[Row]]] = {
        "info": _info,
        "groups": _groups,
        "consumers": _consumers,
        "pending": _pending,
    }
    return makers[resource](link, key)


def _ask(link: Link, *words: str | int) -> object:
    try:
        return link.call(*words)
    except ServerError as error:
        if "no such key" in str(error):
            raise HeadraceError(f"there is no stream {words[2]}") from None
        if error.code == "WRONGTYPE":
            raise HeadraceError(f"{words[2]} is not a stream") from None
        raise


def _text(value: object) -> str | None:
    return None if value is None else cast("bytes", value).decode("utf-8", "replace")


def _info(link: Link, key: str) -> Iterator[Row]:
    found = pairs_of(_ask(link, "XINFO", "STREAM", key))
    first = found.get("first-entry")
    yield {
        "key": key,
        "length": found["length"],
        "entries_added": found.get("entries-added"),
        "groups": found["groups"],
        "first_id": None if first is None else _text(cast("list[object]", first)[0]),
        "last_generated_id": _text(found["last-generated-id"]),
        "max_deleted_entry_id": _text(found.get("max-deleted-entry-id")),
        "iids_tracked": found.get("iids-tracked"),
        "iids_duplicates": found.get("iids-duplicates"),
    }


def _group_figures(link: Link, key: str) -> list[dict[str, object]]:
    reply = cast("list[object]", _ask(link, "XINFO", "GROUPS", key))
    return [pairs_of(group) for group in reply]


def _groups(link: Link, key: str) -> Iterator[Row]:
    stream = pairs_of(_ask(link, "XINFO", "STREAM", key))
    last_ms = parse_id(cast("bytes", stream["last-generated-id"]))[0]
    oldest = cast("list[bytes] | None", stream.get("first-entry"))
    first_ms = parse_id(oldest[0])[0] if oldest else last_ms
    for found in _group_figures(link, key):
        delivered = cast("bytes", found["last-delivered-id"])
        yield {
            "key": key,
            "group": _text(found["name"]),
            "consumers": found["consumers"],
            "pending": found["pending"],
            "last_delivered_id": _text(delivered),
            "entries_read": found.get("entries-read"),
            "lag": found.get("lag"),
            "lag_ms": max(0, last_ms - max(first_ms, parse_id(delivered)[0])),
        }


def _consumers(link: Link, key: str) -> Iterator[Row]:
    for group in _group_figures(link, key):
        name = cast("bytes", group["name"])
        for each in cast("list[object]", link.call("XINFO", "CONSUMERS", key, name)):
            found = pairs_of(each)
            yield {
                "key": key,
                "group": _text(name),
                "consumer": _text(found["name"]),
                "pending": found["pending"],
                "idle_ms": found["idle"],
                "inactive_ms": found.get("inactive"),
            }


def _pending(link: Link, key: str) -> Iterator[Row]:
    for group in _group_figures(link, key):
        name = cast("bytes", group["name"])
        start = "-"
        while True:
            page = cast(
                "list[list[object]]",
                link.call("XPENDING", key, name, start, "+", PENDING_PAGE),
            )
            for entry_id, consumer, idle_ms, deliveries in page:
                yield {
                    "key": key,
                    "group": key_text(name),
                    "id": _text(entry_id),
                    "consumer": _text(consumer),
                    "idle_ms": idle_ms,
                    "deliveries": deliveries,
                }
            if len(page) < PENDING_PAGE:
                break
            start = f"({_text(page[-1][0])}"
