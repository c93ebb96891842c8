"""The error texts that only commands on hashes have; see ``errors``."""

from __future__ import annotations

from typing import Final

FIELD_NOT_INTEGER: Final = b"ERR hash value is not an integer"
FIELD_NOT_FLOAT: Final = b"ERR hash value is not a float"
INCREMENT_NOT_FINITE: Final = b"ERR value is NaN or Infinity"

# Fields that are counted: FIELDS n field ...
FIELDS_MISSING: Final = b"ERR Mandatory argument FIELDS is missing or not at the right position"
FIELD_COUNT_NOT_POSITIVE: Final = b"ERR Number of fields must be a positive integer"
FIELD_COUNT_MISMATCH: Final = b"ERR The `numfields` parameter must match the number of arguments"
NUM_FIELDS_NOT_POSITIVE: Final = b"ERR Parameter `numFields` should be greater than 0"
INVALID_FIELD_COUNT: Final = b"ERR invalid number of fields"
FIELDS_MISSING_AFTER_TIME: Final = b"ERR missing FIELDS argument"
FIELDS_WITHOUT_COUNT: Final = b"ERR FIELDS requires at least numfields and one field argument"
FIELDS_TWICE: Final = b"ERR FIELDS keyword specified multiple times"
WRONG_WORD_COUNT: Final = b"ERR wrong number of arguments"

# Deadlines of fields
TWO_CONDITIONS: Final = b"ERR Multiple condition flags specified"
NEGATIVE_EXPIRE_TIME: Final = b"ERR invalid expire time, must be >= 0"
EXPIRE_TIME_MISSING: Final = b"ERR missing expire time"
ONE_EXPIRY_OR_PERSIST: Final = (
    b"ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified"
)
ONE_EXPIRY_OR_KEEPTTL: Final = (
    b"ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"
)
ONE_EXISTENCE: Final = b"ERR Only one of FXX or FNX arguments can be specified"

# HIMPORT
DOUBLE_FIELD: Final = b"ERR duplicate field name in fieldset"
NO_SUCH_FIELDSET: Final = b"ERR no such fieldset"
VALUE_COUNT_MISMATCH: Final = b"ERR value count does not match fieldset field count"


def unknown_argument(word: bytes) -> bytes:
    """For a word that is none of the options of a command."""
    return b"ERR unknown argument: %b" % word
