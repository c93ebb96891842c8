"""Pages of entries on their way into Arrow arrays, and what becomes of values that do not fit."""

from __future__ import annotations

import base64
import json
import logging
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import pyarrow as pa

from pyspark_headrace.columnar import Page
from pyspark_headrace.errors import ValueTrouble
from pyspark_headrace.ids import MOST_MS

log = logging.getLogger("pyspark_headrace")

HEADER_PREFIX: Final = b"h:"
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


@dataclass(frozen=True)
class Manner:
    """How entries are read.

    Attributes:
        encoding: of field names and values that become strings.
        fails: whether something that does not fit is an error.
        named: the fields that have a column of their own.
        has_headers: whether fields whose names begin with ``HEADER_PREFIX`` have a column.
    """

    encoding: str
    fails: bool
    named: frozenset[bytes]
    has_headers: bool


class Bad:
    """The entries of a piece of which something did not fit.

    Attributes:
        rows: how many.
        first: what was wrong with the first one.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.first = ""

    def report(self, key: str, mode: str) -> None:
        """Say how many there were; a null is never the only sign of them."""
        if self.rows:
            became = "left out" if mode == "dropmalformed" else "null where they do not fit"
            log.warning(
                "stream %s: %d entries are malformed, and %s; %s",
                key,
                self.rows,
                became,
                self.first,
            )


class Filling:
    """One page on its way into columns.

    Attributes:
        bad: the numbers of entries of which something does not fit, and what.
    """

    def __init__(self, manner: Manner, key: str, page: Page) -> None:
        self.bad: dict[int, str] = {}
        self._manner = manner
        self._key = key
        self._page = page
        self._rest = page  # what columns of many fields are made of
        self._headers = page
        if manner.has_headers:
            self._rest, self._headers = _parted(page, HEADER_PREFIX)
        self._halves: list[bytes] = []
        self._dicts: list[dict[bytes, bytes]] = []

    def array(self, column: Column) -> pa.Array:
        """The values of a column; ``_corrupt`` comes last."""
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
        ends = _Ends(offsets)
        names = self._text(pa.array(keys, pa.binary()), "a field name", ends)
        values = self._text(pa.array(items, pa.binary()), "a value", ends)
        if names.null_count:  # a map has no null as a key: such a field is in none
            kept = names.is_valid()
            offsets = ends.after(kept.to_pylist())
            names, values = names.filter(kept), values.filter(kept)
        return pa.MapArray.from_arrays(offsets.cast(pa.int32()), names, values, type=_MAP_ARROW)

    def _pairs(self) -> pa.Array:
        ends, names, values = _flattened(self._rest)
        return _list_of(pa.array(ends), pa.array(names, pa.binary()), values, _PAIRS_ARROW)

    def _header_list(self) -> pa.Array:
        flat, names, values = _flattened(self._headers)
        ends = _Ends(flat)
        offsets = pa.array(flat)
        texts = self._text(pa.array(names, pa.binary()), "a header's name", ends)
        if texts.null_count:
            kept = texts.is_valid().to_pylist()
            offsets = ends.after(kept)
            values = [value for value, keep in zip(values, kept, strict=True) if keep]
            texts = texts.drop_null()
        return _list_of(offsets, texts, values, _HEADERS_ARROW)

    def _corrupt(self) -> pa.Array:
        """For each entry of which something does not fit all that it has, as it is."""
        rows = (
            [None] * len(self._page)
            if not self.bad
            else [
                _pairs_of(self._page.row(number)) if number in self.bad else None
                for number in range(len(self._page))
            ]
        )
        return pa.array(rows, _PAIRS_ARROW)

    def _json(self) -> pa.Array:
        """One JSON object; a value that is no text becomes ``{"base64": ...}``."""
        page = self._rest
        lines: list[str] = []
        for number in range(len(page)):
            row = page.row(number)
            members: dict[str, object] = {}
            for name, value in zip(row[0::2], row[1::2], strict=True):
                decoded = self._decoded_name(name, number)
                if decoded is not None:
                    members[decoded] = self._json_value(value)
            lines.append(json.dumps(members, ensure_ascii=False, separators=(",", ":")))
        return pa.array(lines, pa.string())

    def _decoded_name(self, name: bytes, number: int) -> str | None:
        try:
            return name.decode(self._manner.encoding)
        except UnicodeDecodeError:
            self._misfit(number, self._no_text("a field name", name))
            return None

    def _json_value(self, value: bytes) -> object:
        try:
            return value.decode(self._manner.encoding)
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}

    # Casting

    def _misfit(self, number: int, what: str) -> None:
        """Something of an entry does not fit.

        Raises:
            ValueTrouble: that is to be an error.
        """
        text = f"entry {self._page.ids[number].decode()}: {what}"
        if self._manner.fails:
            raise ValueTrouble(f"stream {self._key}, {text}")
        self.bad.setdefault(number, text)

    def _text(self, values: pa.Array, what: str, ends: _Ends | None = None) -> pa.Array:
        """Bytes as strings; null is what is none.

        Args:
            ends: where each entry's values end among these; None where each has one.
        """
        if self._manner.encoding == "latin-1":
            decoded = [
                None if each is None else each.decode("latin-1") for each in values.to_pylist()
            ]
            return pa.array(decoded, pa.string())

        def misfit(at: int) -> None:
            number = at if ends is None else ends.entry_of(at)
            self._misfit(number, self._no_text(what, values[at].as_py()))

        return _by_halves(values, lambda some: some.cast(pa.string()), pa.string(), misfit)

    def _no_text(self, what: str, value: bytes) -> str:
        return (
            f"{what}, {value[:40]!r}, is not UTF-8; read with fieldsFormat=pairs, a binary column, "
            "or encoding=latin-1"
        )

    def _cast(self, values: pa.Array, column: Column) -> pa.Array:
        """The values of a field in the type of its column."""
        if pa.types.is_binary(column.type):
            return values
        text = self._text(values, f"field {column.name}")
        if pa.types.is_string(column.type):
            return text

        def misfit(at: int) -> None:
            value = text[at].as_py()[:40]
            self._misfit(at, f"field {column.name} is {value!r}, which is no {column.type}")

        return _by_halves(text, lambda some: _convert(some, column.type), column.type, misfit)


class _Ends:
    """Where the fields of each entry end, among those of all entries."""

    def __init__(self, offsets: pa.Array | list[int]) -> None:
        self._offsets: list[int] = offsets if isinstance(offsets, list) else offsets.to_pylist()

    def entry_of(self, at: int) -> int:
        """The number of the entry that a field is of."""
        return bisect_right(self._offsets, at) - 1

    def after(self, kept: list[bool]) -> pa.Array:
        """The ends once only some fields are kept."""
        before = list(accumulate(kept, initial=0))
        return pa.array([before[offset] for offset in self._offsets])


def _by_halves(
    values: pa.Array,
    cast: Callable[[pa.Array], pa.Array],
    kind: pa.DataType,
    misfit: Callable[[int], None],
    first: int = 0,
) -> pa.Array:
    """Values as something else; those that do not fit are found by halving, and become null.

    Args:
        misfit: called with the number of each of them.
        first: the number of the first value.
    """
    try:
        return cast(values)
    except pa.ArrowInvalid:
        if len(values) == 1:
            misfit(first)
            return pa.nulls(1, kind)
    middle = len(values) // 2
    return pa.concat_arrays(
        [
            _by_halves(values[:middle], cast, kind, misfit, first),
            _by_halves(values[middle:], cast, kind, misfit, first + middle),
        ]
    )


# Not in each filling: a filling that holds methods of its own is not freed until much later.
_MAKERS: Final[dict[str, Callable[[Filling], pa.Array]]] = {
    "_key": Filling._keys,
    "_id": Filling._ids,
    "_id_ms": lambda filling: filling._number("_id_ms", 0),
    "_id_seq": lambda filling: filling._number("_id_seq", 1),
    "_timestamp": Filling._timestamps,
    "_fields": lambda filling: filling._map(frozenset()),
    "_rest": lambda filling: filling._map(filling._manner.named),
    "_pairs": Filling._pairs,
    "_json": Filling._json,
    "_headers": Filling._header_list,
    "_corrupt": Filling._corrupt,
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


def _pairs_of(row: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(row[0::2], row[1::2], strict=True))


def _list_of(
    offsets: pa.Array, names: pa.Array, values: list[bytes], kind: pa.DataType
) -> pa.Array:
    pairs = pa.StructArray.from_arrays(
        [names, pa.array(values, pa.binary())], fields=list(kind.value_type)
    )
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), pairs, type=kind)


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


def _convert(text: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # A time without a zone is one of UTC, as stream IDs are.
        try:
            return text.cast(kind)
        except pa.ArrowInvalid:
            return text.cast(pa.timestamp("us")).cast(kind)
    return text.cast(kind)
