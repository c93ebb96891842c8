"""Error texts that only commands on arrays have; see ``compat.errors``."""

from __future__ import annotations

from typing import Final

BAD_INDEX: Final = b"ERR invalid array index"
INDEX_OVERFLOW: Final = b"ERR array index overflow"
INSERT_OVERFLOW: Final = b"ERR insert index overflow"
RANGE_TOO_LONG: Final = b"ERR range exceeds maximum of 1000000 items"
BAD_SIZE: Final = b"ERR invalid size"
SIZE_NOT_POSITIVE: Final = b"ERR size must be positive"
BAD_COUNT: Final = b"ERR invalid COUNT"
LIMIT_NOT_POSITIVE: Final = b"ERR LIMIT must be positive"
UNKNOWN_OPERATION: Final = b"ERR unknown operation"
TOO_MANY_PREDICATES: Final = b"ERR too many predicates, maximum is 250"
REGEX_TOO_LONG: Final = b"ERR regular expression is too long, maximum is 2048 bytes"
MATCH_NEEDS_VALUE: Final = b"ERR MATCH requires a value argument"


def bad_regex(text: bytes) -> bytes:
    """For a regular expression that is none."""
    return b"ERR " + text
