"""Sets in Redis's RDB: read in all types, small ones written packed, others as strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.rdb import intset
from headrace.persistence.rdb.kinds import SET, SET_INTSET, SET_LISTPACK, VERSION_PACKED
from headrace.persistence.rdb.listpack import Listpack
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.parts import set_count, set_parts, strings
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.packed.strings import unpack
from headrace.storage.set.set import INTSET, Set, packed_set
from headrace.storage.set.small import SetLimits

_PIECES_AT_ONCE: Final = 32


def read_set(source: RdbSource, kind: int, defaults: dict[str, int]) -> Iterator[object]:
    """Read the set of this type that comes next; see ``RdbValues.read_rdb``.

    As in Redis, the length of members says nothing where they come in one listpack, and a set that
    is written as strings begins large if that many integers would be.

    Raises:
        CorruptRDB: there is none.
    """
    limits = SetLimits(
        defaults.get("set-max-intset-entries", 512),
        defaults.get("set-max-listpack-entries", 128),
        defaults.get("set-max-listpack-value", 64),
    )
    if kind == SET_LISTPACK:
        members = next(set_parts(source, kind))
        packed = packed_set(members, limits.elements)
        if packed is None:
            raise source.damage("each member once")
        yield packed
        return
    made = Set()
    if kind == SET:
        count = set_count(source)
        made.expect(count, limits)
        parts = strings(source, count)
    else:
        parts = set_parts(source, kind)
    for some in parts:
        for member in some:
            if not made.add(member, limits):
                raise source.damage("each member once")
        yield None
    yield made


def set_type(value: Set, version: int) -> int:
    """In which type a file of this version holds it: a small one comes back as it is."""
    if version < VERSION_PACKED or value.small_piece() is None:
        return SET
    return SET_INTSET if value.encoding(b"") == INTSET else SET_LISTPACK


def write_set(output: RdbOutput, value: Set) -> Walk | None:
    """Write a set in that type; what is left where that is much."""
    kind = set_type(value, output.version)
    if kind == SET_INTSET:
        output.string(intset.packed([int(member) for member in value.members()]))
        return None
    if kind == SET_LISTPACK:
        made = Listpack()
        for member in value.members():
            made.text(member)
        output.string(made.packed())
        return None
    return _Members(output, value)


class _Members(Walk):
    """Writes the members of a set, some at a time."""

    def __init__(self, output: RdbOutput, value: Set) -> None:
        self._output: Final = output
        self._left: Final = value.pieces()[::-1]
        output.length(value.size())

    def step(self) -> bool:
        """See ``Walk``."""
        left = self._left
        for _ in range(min(_PIECES_AT_ONCE, len(left))):
            for member in unpack(left.pop()):
                self._output.string(member)
        return bool(left)
