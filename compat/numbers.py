"""Numbers as Redis reads them from the words of a request."""

from __future__ import annotations

import re
from typing import Final

LONG_MAX: Final = (1 << 63) - 1
LONG_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 31) - 1
INT_MIN: Final = -(1 << 31)

_INTEGER: Final = re.compile(rb"(?:0|-?[1-9][0-9]{0,18})\Z")


def integer(word: bytes) -> int | None:
    """The signed 64-bit integer that ``word`` spells in its one canonical form, or None.

    No sign ``+``, no leading zeros or spaces, no ``-0``. Source: util.c, string2ll.
    """
    if _INTEGER.match(word) is None:
        return None
    value = int(word)
    return value if LONG_MIN <= value <= LONG_MAX else None
