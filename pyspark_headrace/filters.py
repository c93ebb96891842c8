"""Filters of a batch query that become ranges of IDs."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from pyspark_headrace.ids import GREATEST, ID_MAX, LEAST, MOST_MS, StreamID, before, parse_id

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_NEVER_NULL: Final = frozenset(("_key", "_id", "_id_ms", "_id_seq"))


class Bounds:
    """What filters leave to be read.

    Attributes:
        after, upto: entries behind the one ID, up to and with the other.
        keys: the streams; None is all of them.
    """

    def __init__(self) -> None:
        self.after: StreamID = LEAST
        self.upto: StreamID = GREATEST
        self.keys: frozenset[str] | None = None

    def allows(self, key: str) -> bool:
        """Return whether anything of a stream is to be read."""
        return self.keys is None or key in self.keys

    def take(self, filters: Iterable[Filter], columns: Mapping[str, str]) -> list[Filter]:
        """Narrow the bounds; the filters that remain to be applied.

        Args:
            columns: for each column that speaks of the entry, what it says, see ``shape.META``.
        """
        return [each for each in filters if not self._takes(each, columns)]

    def _takes(self, one: Filter, columns: Mapping[str, str]) -> bool:
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        if len(attribute) != 1 or attribute[0] not in columns:
            return False
        meta = columns[attribute[0]]
        if isinstance(one, IsNotNull):
            return meta in _NEVER_NULL
        if meta == "_key":
            return self._take_key(one)
        if meta == "_id" and isinstance(one, EqualTo):
            return self._take_id(one.value)
        if meta == "_id_ms":
            return self._take_ms(one, 1)
        if meta == "_timestamp":
            return self._take_time(one)
        return False

    def _take_key(self, one: Filter) -> bool:
        if isinstance(one, EqualTo):
            names = frozenset((str(one.value),))
        elif isinstance(one, In):
            names = frozenset(str(value) for value in one.value)
        else:
            return False
        self.keys = names if self.keys is None else self.keys & names
        return True

    def _take_id(self, value: Any) -> bool:
        try:
            wanted = parse_id(str(value))
        except ValueError:
            self.upto = LEAST  # no entry has such an ID
            return True
        if wanted == LEAST or str(value) != f"{wanted[0]}-{wanted[1]}":
            self.upto = LEAST
            return True
        self._narrow(before(wanted), wanted)
        return True

    def _take_time(self, one: Filter) -> bool:
        moment = getattr(one, "value", None)
        if not isinstance(moment, datetime.datetime):
            return False
        if moment.tzinfo is None:
            return False  # of an unknown time zone
        micros = (moment - _EPOCH) // datetime.timedelta(microseconds=1)
        kind: type[Any] = type(one)
        if not self._take_ms(kind(("ms",), micros), 1000):
            return False
        self._narrow(LEAST, (MOST_MS, ID_MAX))  # an ID beyond has no timestamp
        return True

    def _take_ms(self, one: Filter, scale: int) -> bool:
        """Narrow to the milliseconds that, times ``scale``, fulfil a comparison."""
        value = getattr(one, "value", None)
        if isinstance(value, bool) or not isinstance(value, int):
            return False
        if isinstance(one, EqualTo):
            first, last = -(-value // scale), value // scale
        elif isinstance(one, GreaterThan):
            first, last = value // scale + 1, ID_MAX
        elif isinstance(one, GreaterThanOrEqual):
            first, last = -(-value // scale), ID_MAX
        elif isinstance(one, LessThan):
            first, last = 0, -(-value // scale) - 1
        elif isinstance(one, LessThanOrEqual):
            first, last = 0, value // scale
        else:
            return False
        if last < 0 or first > ID_MAX or first > last:
            self.upto = LEAST
            return True
        self._narrow(before((max(first, 0), 0)), (min(last, ID_MAX), ID_MAX))
        return True

    def _narrow(self, after: StreamID, upto: StreamID) -> None:
        self.after = max(self.after, after)
        self.upto = min(self.upto, upto)
