"""Error texts that only commands on sets have; see ``compat.errors``."""

from __future__ import annotations

from typing import Final

NUMKEYS_NOT_POSITIVE: Final = b"ERR numkeys should be greater than 0"
TOO_MANY_KEYS: Final = b"ERR Number of keys can't be greater than number of args"
LIMIT_NEGATIVE: Final = b"ERR LIMIT can't be negative"
