"""What FUNCTION DUMP answers and FUNCTION RESTORE takes: libraries of functions, packed for it.

For each library a mark and its code, then the footer that every payload has.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.errors import CorruptRDB
from headrace.persistence.forms.dumped import body_of, sealed
from headrace.persistence.rdb.kinds import FUNCTIONS, VERSION
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.source import RdbSource

_NAME: Final = b"payload"


def dump_libraries(codes: list[bytes]) -> bytes:
    """The payload of libraries."""
    output = RdbOutput(VERSION)
    for code in codes:
        output.byte(FUNCTIONS)
        output.string(code)
    return sealed(output)


def libraries_of(data: bytes) -> list[bytes] | None:
    """The code of each library in a payload; None where it is damaged.

    Raises:
        CorruptRDB: there is something else in it.
    """
    body = body_of(data)
    if body is None:
        return None
    source = RdbSource(_NAME, body, len(body), 0)
    codes: list[bytes] = []
    while source.left:
        if source.byte() != FUNCTIONS:
            raise CorruptRDB(_NAME, source.offset, "a library")
        codes.append(source.string())
    return codes
