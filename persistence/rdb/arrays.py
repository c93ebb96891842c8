"""Arrays in RDB (Redis 8.8), read in parts.

How many elements there are, and where the last one was inserted, if ARINSERT or ARRING did. Then
each: its place, and its value as a text, an integer or a double.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from headrace.persistence.rdb.parts import AT_ONCE
from headrace.persistence.rdb.source import RdbSource

NEVER_INSERTED: Final = -1
_DOUBLE: Final = Struct("<d")
_TEXT: Final = 0
_INTEGER: Final = 1
_FLOAT: Final = 2
_SHORT_TEXT: Final = 3


class ArrayHead:
    """What stands in front of the elements.

    Attributes:
        count: how many elements follow; not 0.
        inserted_at: where the last one was inserted, or ``NEVER_INSERTED``.
    """

    def __init__(self, source: RdbSource) -> None:
        self.count: Final = source.many(3)
        if not self.count:
            raise source.damage("an array that holds something")
        inserted = source.length()
        self.inserted_at: Final = source.length() if inserted else NEVER_INSERTED


class ArrayPart:
    """Some elements.

    Attributes:
        places: from the lowest.
        values: what they are; floats are as they stand there.
    """

    def __init__(self) -> None:
        self.places: Final[list[int]] = []
        self.values: Final[list[bytes | int | float]] = []


def array_parts(source: RdbSource, count: int) -> Iterator[ArrayPart]:
    """The ``count`` elements that come next.

    Raises:
        CorruptRDB: there are none.
    """
    above = -1
    while count > 0:
        most = min(count, AT_ONCE)
        count -= most
        part = ArrayPart()
        for _ in range(most):
            place = source.length()
            if place <= above:
                raise source.damage("elements in order")
            above = place
            part.places.append(place)
            part.values.append(_value(source))
        yield part


def _value(source: RdbSource) -> bytes | int | float:
    tag = source.byte()
    if tag in (_TEXT, _SHORT_TEXT):
        return source.string()
    if tag == _INTEGER:
        return source.signed(8)
    if tag == _FLOAT:
        number: float = _DOUBLE.unpack(source.raw(8))[0]
        return number
    raise source.damage("an element of an array")
