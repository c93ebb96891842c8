"""Lists in Redis's RDB: read in all types, written as nodes, or as strings for an old Redis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.rdb.kinds import LIST, LIST_QUICKLIST_2, VERSION_PACKED
from headrace.persistence.rdb.listpack import Listpack
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.parts import PACKED_NODE, PLAIN_NODE, ListPart, list_parts
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.list.list import List, list_of, list_of_nodes
from headrace.storage.list.piece import NodeLimits, listpack_bytes
from headrace.storage.list.row import ALONE, Row
from headrace.storage.packed.strings import pack, unpack

_AT_ONCE: Final = 1024
_NODES_AT_ONCE: Final = 16
_TOGETHER_ELEMENTS: Final = 1 << 15  # more than any node has, so that they show what it becomes
_TOGETHER_BYTES: Final = 1 << 17


def read_list(source: RdbSource, kind: int, defaults: dict[str, int]) -> Iterator[object]:
    """Read the list of this type that comes next; see ``RdbValues.read_rdb``.

    Raises:
        CorruptRDB: there is none.
    """
    limits = NodeLimits(defaults.get("list-max-listpack-size", -2))
    parts = list_parts(source, kind)
    return _read_strings(parts, limits) if kind == LIST else _read_nodes(parts, limits)


def _read_nodes(parts: Iterator[ListPart], limits: NodeLimits) -> Iterator[object]:
    """A list with the nodes that it has in the file, whatever the limits are now."""
    pieces: list[bytes] = []
    counts: list[int] = []
    sizes: list[int] = []
    for part in parts:
        pieces.append(pack(part.strings))
        counts.append(len(part.strings))
        sizes.append(ALONE if part.is_plain else int(listpack_bytes(part.strings)))
        yield None
    yield list_of_nodes(pieces, counts, sizes, limits)


def _read_strings(parts: Iterator[ListPart], limits: NodeLimits) -> Iterator[object]:
    first: list[bytes] = []
    size = 0
    made: List | None = None
    for part in parts:
        strings = part.strings
        if made is not None:
            made.push(strings, 0, True, limits)
            yield None
            continue
        first += strings
        size += sum([len(string) for string in strings])
        if len(first) > _TOGETHER_ELEMENTS or size > _TOGETHER_BYTES:
            made = list_of(first, limits)
            first = []
        yield None
    yield list_of(first, limits) if made is None else made


def list_type(version: int) -> int:
    """In which type a file of this version holds it."""
    return LIST if version < VERSION_PACKED else LIST_QUICKLIST_2


def write_list(output: RdbOutput, value: List) -> Walk | None:
    """Write a list in that type; what is left where that is much."""
    rep = value.rep
    if list_type(output.version) == LIST:
        return _Elements(output, value)
    if isinstance(rep, Row):
        return _Nodes(output, rep)
    output.length(1)
    _write_node(output, value.strings())
    return None


def _write_node(output: RdbOutput, strings: list[bytes]) -> None:
    made = Listpack()
    for string in strings:
        made.text(string)
    output.length(PACKED_NODE)
    output.string(made.packed())


class _Nodes(Walk):
    """Writes the nodes of a list, some at a time."""

    def __init__(self, output: RdbOutput, row: Row) -> None:
        row.seal()
        self._output: Final = output
        self._row: Final = row
        self._place = int(row.low)
        output.length(row.nodes())

    def step(self) -> bool:
        """See ``Walk``."""
        output = self._output
        row = self._row
        end = min(self._place + _NODES_AT_ONCE, len(row.pieces))
        for place in range(self._place, end):
            strings = unpack(row.pieces[place])
            if row.sizes[place] == ALONE:
                output.length(PLAIN_NODE)
                output.string(strings[0])
            else:
                _write_node(output, strings)
        self._place = end
        return end < len(row.pieces)


class _Elements(Walk):
    """Writes the elements of a list, some at a time."""

    def __init__(self, output: RdbOutput, value: List) -> None:
        self._output: Final = output
        self._value: Final = value
        self._next = 0
        self._count: Final = value.size()
        output.length(self._count)

    def step(self) -> bool:
        """See ``Walk``."""
        count = min(_AT_ONCE, self._count - self._next)
        for piece in self._value.packed(self._next, count):
            for string in unpack(piece):
                self._output.string(string)
        self._next += count
        return self._next < self._count
