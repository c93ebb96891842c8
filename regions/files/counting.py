"""How the file of a region counts its records: ``AA FROM origin number``."""

from __future__ import annotations

from headrace.persistence.aof.peer_log import RecordCount
from headrace.regions.knowledge.records import JOINED, is_numbered
from headrace.storage.sharing import AA, FROM
from headrace.storage.vectors import (
    NUMBER_MAX,
    BadVector,
    Dot,
    Numbers,
    check_origin,
    encode_numbers,
)


def counting_of(words: list[bytes]) -> Dot:
    """Whose the numbered records that follow are, and the number of the first one.

    Raises:
        BadVector: the line says nothing of the kind.
    """
    if len(words) != 4:
        raise BadVector(b" ".join(words[2:])[:64])
    number = words[3]
    if not number.isdigit() or len(number) > 20 or not 0 < int(number) <= NUMBER_MAX:
        raise BadVector(number[:64])
    return check_origin(words[2]), int(number)


class OriginCount(RecordCount):
    """Counts the records of each origin."""

    def __init__(self) -> None:
        self._numbers: Numbers = {}  # the latest record of each origin
        self._origin = b""  # whose the next numbered record is
        self._counted: set[bytes] = set()  # origins whose next number is known

    def count(self, argv: list[bytes]) -> str:
        if argv[0] != AA and not self._origin:
            return ""
        if argv[0] == AA and argv[1:2] == [FROM]:
            try:
                origin, number = counting_of(argv)
            except BadVector:
                return "expected an origin and a number behind AA FROM"
            self._origin = origin
            if origin not in self._counted:
                self._counted.add(origin)
                self._numbers[origin] = number - 1
            elif number != self._numbers[origin] + 1:
                known = self._numbers[origin]
                return f"expected AA FROM {origin.decode()} {known + 1}, not {number}"
        elif argv[:2] == [AA, JOINED]:  # much was learned at once of other origins
            self._counted = {self._origin}
        elif is_numbered(argv):
            if not self._origin:
                return "expected AA FROM before the first numbered record"
            self._numbers[self._origin] += 1
        return ""

    def found(self) -> str:
        if not self._numbers:
            return ""
        return f"records of regions up to {encode_numbers(self._numbers).decode()}"
