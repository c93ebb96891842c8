"""Error texts that only commands on sorted sets have."""

from __future__ import annotations

from typing import Final

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
