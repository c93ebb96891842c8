"""Error texts that only commands on values of one type have; see ``compat.errors``."""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.storage.stream.entry_log import ElementsTooLarge, IDNotGreater, IDsExhausted
from headrace.storage.value import StorageError

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
    """Return the error for a regular expression that is none."""
    return b"ERR " + text


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
TOO_FEW_SOURCES: Final = b"ERR BITOP %b must be called with at least two source keys."
NO_SUCH_MEMBER: Final = b"ERR could not decode requested zset member"
BAD_UNIT: Final = b"ERR unsupported unit provided. please use M, KM, FT, MI"
BAD_RADIUS: Final = b"ERR need numeric radius"
RADIUS_NEGATIVE: Final = b"ERR radius cannot be negative"
BAD_WIDTH: Final = b"ERR need numeric width"
BAD_HEIGHT: Final = b"ERR need numeric height"
BOX_NEGATIVE: Final = b"ERR height or width cannot be negative"
ANY_WITHOUT_COUNT: Final = b"ERR the ANY argument requires COUNT argument"
BAD_PLACE: Final = b"ERR invalid longitude,latitude pair %f,%f"


def stored_with_more(search: bool) -> bytes:
    """Return the error for a stored result, of which more is asked for than members."""
    what = b"GEOSEARCHSTORE" if search else b"STORE option in GEORADIUS"
    return b"ERR %b is not compatible with WITHDIST, WITHHASH and WITHCOORD options" % what


NO_CENTRE: Final = b"ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for %b"
NO_SHAPE: Final = b"ERR exactly one of BYRADIUS and BYBOX can be specified for %b"
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
UNKNOWN_ARGUMENT: Final = b"ERR unknown argument: %b"
NOT_A_SKETCH: Final = b"WRONGTYPE Key is not a valid HyperLogLog string value."
CORRUPTED: Final = b"INVALIDOBJ Corrupted HLL object detected"
NO_KEY_TO_DEBUG: Final = b"ERR The specified key does not exist"
NOT_SPARSE: Final = b"ERR HLL encoding is not sparse"
SWITCH: Final = b"ERR Argument must be ON or OFF"


def unknown_debug(subcommand: bytes) -> bytes:
    """Return the error for an unknown subcommand of PFDEBUG."""
    return b"ERR Unknown PFDEBUG subcommand '%b'" % subcommand.partition(b"\0")[0]


TEST_FAILED: Final = b"ERR TESTFAILED %b"
RANK_ZERO: Final = (
    b"ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use "
    b"negative to start from the end of the list"
)
COUNT_BELOW_ZERO: Final = b"ERR COUNT can't be negative"
MAXLEN_BELOW_ZERO: Final = b"ERR MAXLEN can't be negative"
NO_SUCH_INDEX: Final = b"ERR index out of range"


NUMKEYS_NOT_POSITIVE: Final = b"ERR numkeys should be greater than 0"
TOO_MANY_KEYS: Final = b"ERR Number of keys can't be greater than number of args"
LIMIT_NEGATIVE: Final = b"ERR LIMIT can't be negative"


NX_AND_XX: Final = b"ERR XX and NX options at the same time are not compatible"
GT_LT_AND_NX: Final = b"ERR GT, LT, and/or NX options at the same time are not compatible"
INCR_ONE_PAIR: Final = b"ERR INCR option supports a single increment-element pair"
SCORE_IS_NAN: Final = b"ERR resulting score is not a number (NaN)"
BOUND_NOT_A_FLOAT: Final = b"ERR min or max is not a float"
BOUND_NOT_A_NAME: Final = b"ERR min or max not valid string range item"
LIMIT_OF_RANKS: Final = (
    b"ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
)
SCORES_OF_NAMES: Final = b"ERR syntax error, WITHSCORES not supported in combination with BYLEX"
WEIGHT_NOT_A_FLOAT: Final = b"ERR weight value is not a float"


LINES: Final[dict[type[StorageError], bytes]] = {
    IDNotGreater: errors.XADD_SMALL_ID,
    IDsExhausted: errors.STREAM_EXHAUSTED,
    ElementsTooLarge: errors.ELEMENTS_TOO_LARGE,
}


def storage_error_line(error: StorageError) -> bytes:
    """Return the wire text of a refusal, without the leading dash."""
    return LINES[type(error)]
