"""Error texts that only commands on lists give."""

from __future__ import annotations

from typing import Final

RANK_ZERO: Final = (
    b"ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use "
    b"negative to start from the end of the list"
)
COUNT_BELOW_ZERO: Final = b"ERR COUNT can't be negative"
MAXLEN_BELOW_ZERO: Final = b"ERR MAXLEN can't be negative"
NO_SUCH_INDEX: Final = b"ERR index out of range"
