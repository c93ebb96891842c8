"""Lists in Redis's RDB: read in all types, written as strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.parts import list_parts
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.list.limits import NodeLimits
from headrace.storage.list.list import List, list_of
from headrace.storage.packed.strings import unpack

_AT_ONCE: Final = 1024
_TOGETHER_ELEMENTS: Final = 1 << 15  # more than any node has, so that they show what it becomes
_TOGETHER_BYTES: Final = 1 << 17


def read_list(source: RdbSource, kind: int, defaults: dict[str, int]) -> Iterator[object]:
    """Read the list of this type that comes next; see ``RdbValues.read_rdb``.

    Raises:
        CorruptRDB: there is none.
    """
    limits = NodeLimits(defaults.get("list-max-listpack-size", -2))
    first: list[bytes] = []
    size = 0
    made: List | None = None
    for strings in list_parts(source, kind):
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


class ListRdb(Walk):
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
