"""Sets in Redis's RDB: read in all types, written as strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.rdb.kinds import SET_LISTPACK
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.parts import set_parts
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.packed.strings import unpack
from headrace.storage.set.limits import SetLimits
from headrace.storage.set.set import Set
from headrace.storage.set.small import NO_MEMBERS

_PIECES_AT_ONCE: Final = 32


def read_set(source: RdbSource, kind: int, defaults: dict[str, int]) -> Iterator[object]:
    """Read the set of this type that comes next; see ``RdbValues.read_rdb``.

    Raises:
        CorruptRDB: there is none.
    """
    limits = SetLimits(
        defaults.get("set-max-intset-entries", 512),
        defaults.get("set-max-listpack-entries", 128),
        defaults.get("set-max-listpack-value", 64),
    )
    made = Set(NO_MEMBERS) if kind == SET_LISTPACK else Set()
    for members in set_parts(source, kind):
        for member in members:
            if not made.add(member, limits):
                raise source.damage("each member once")
        yield None
    yield made


class SetRdb(Walk):
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
