"""Error texts that only commands on bitmaps have; see ``compat.errors``."""

from __future__ import annotations

from typing import Final

BIT_OFFSET: Final = b"ERR bit offset is not an integer or out of range"
NOT_A_BIT: Final = b"ERR bit is not an integer or out of range"
BIT_ARGUMENT: Final = b"ERR The bit argument must be 1 or 0."
NOT_ONE_SOURCE: Final = b"ERR BITOP NOT must be called with a single source key."
BAD_FIELD_TYPE: Final = (
    b"ERR Invalid bitfield type. Use something like i16 u8. "
    b"Note that u64 is not supported but i64 is."
)
BAD_OVERFLOW: Final = b"ERR Invalid OVERFLOW type specified"
FIELDS_ONLY_READ: Final = b"ERR BITFIELD_RO only supports the GET subcommand"


def too_few_sources(operation: bytes) -> bytes:
    """For an operation of BITOP that tells the first source from the others."""
    return b"ERR BITOP %b must be called with at least two source keys." % operation
