"""Sorted sets in Redis's RDB: read in all types, small ones written packed, others with doubles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.rdb.kinds import SORTED_SET, SORTED_SET_LISTPACK, VERSION_PACKED
from headrace.persistence.rdb.listpack import Listpack
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.parts import PACKED_SORTED_SETS, sorted_set_parts
from headrace.persistence.rdb.source import RdbSource
from headrace.protocol.doubles import double
from headrace.storage.collection import SmallLimits
from headrace.storage.sorted_set.sorted_set import SortedSet, pairs_of, sorted_set_of

_AT_ONCE: Final = 512
_ANY_LENGTH: Final = 1 << 60


def read_sorted_set(source: RdbSource, kind: int, defaults: dict[str, int]) -> Iterator[object]:
    """Read the sorted set of this type that comes next; see ``RdbValues.read_rdb``.

    As in Redis, the length of members says nothing where they come in one listpack.

    Raises:
        CorruptRDB: there is none.
    """
    limits = SmallLimits(
        defaults.get("zset-max-listpack-entries", 128),
        defaults.get("zset-max-listpack-value", 64),
    )
    if kind in PACKED_SORTED_SETS:
        members, scores = next(sorted_set_parts(source, kind))
        pairs = sorted(zip(scores, members, strict=True))
        if len(set(members)) < len(members):
            raise source.damage("each member once")
        yield sorted_set_of(pairs, SmallLimits(limits.elements, _ANY_LENGTH))
        return
    made = SortedSet()
    large = False
    first: list[tuple[bytes, float]] = []  # before it is known whether there is more than fits
    for members, scores in sorted_set_parts(source, kind):
        for member, score in zip(members, scores, strict=True):
            if not large:
                first.append((member, score))
                if len(first) <= limits.elements and len(member) <= limits.element_bytes:
                    continue
                large = True
                made.make_large()  # at once: a small one forgets the sign of zero
                _add(source, made, first, limits)
                first = []
            else:
                _add(source, made, [(member, score)], limits)
        yield None
    _add(source, made, first, limits)
    yield made


def _add(
    source: RdbSource, made: SortedSet, pairs: list[tuple[bytes, float]], limits: SmallLimits
) -> None:
    for member, score in pairs:
        if not math.isnan(made.score(member)):
            raise source.damage("each member once")
        made.add(member, score, limits)


def sorted_set_type(value: SortedSet, version: int) -> int:
    """In which type a file of this version holds it: a small one comes back as it is."""
    is_packed = version >= VERSION_PACKED and not value.is_large()
    return SORTED_SET_LISTPACK if is_packed else SORTED_SET


def write_sorted_set(output: RdbOutput, value: SortedSet) -> Walk | None:
    """Write a sorted set in that type; what is left where that is much."""
    if sorted_set_type(value, output.version) == SORTED_SET:
        return _Members(output, value)
    made = Listpack()
    for run in value.runs(0, value.size()):
        for member, score in pairs_of(run):
            made.text(member)
            made.text(double(score))
    output.string(made.packed())
    return None


class _Members(Walk):
    """Writes members and scores from the highest, as Redis does, some at a time."""

    def __init__(self, output: RdbOutput, value: SortedSet) -> None:
        self._output: Final = output
        self._value: Final = value
        self._left = value.size()
        output.length(self._left)

    def step(self) -> bool:
        """See ``Walk``."""
        output = self._output
        end = self._left
        self._left = max(0, end - _AT_ONCE)
        runs = self._value.runs(self._left, end)
        runs.reverse()
        for run in runs:
            pairs = pairs_of(run)
            pairs.reverse()
            for member, score in pairs:
                output.string(member)
                output.double(score)
        return self._left > 0
