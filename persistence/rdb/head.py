"""How an RDB file begins: whose it is, and in which version of the format.

Redis writes ``REDIS`` and four digits, and so did Valkey up to its version 8. From 9 on Valkey
writes ``VALKEY`` and three digits, and counts its versions from 80. The first note behind them,
where there is one, says the version of the server::

    VALKEY080  FA  0A valkey-ver  05 9.1.2
"""

from __future__ import annotations

from typing import Final

REDIS: Final = b"REDIS"
VALKEY: Final = b"VALKEY"
MAGICS: Final = (REDIS, VALKEY)
VERSION_END: Final = 9  # the magic and the digits are as long as that together
HEAD_BYTES: Final = 64  # with the first note
NOTE: Final = 0xFA
_LONGEST_VERSION: Final = 32
_NOTES: Final = {b"redis-ver": "Redis", b"valkey-ver": "Valkey"}


def is_rdb(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is an RDB file."""
    return head.startswith(MAGICS)


def writer_of(head: bytes) -> str:
    """Which server wrote a file that begins with ``head``, and its version if it is given."""
    name = "Valkey" if head.startswith(VALKEY) else "Redis"
    if len(head) <= VERSION_END + 1 or head[VERSION_END] != NOTE:
        return name
    key_end = VERSION_END + 2 + head[VERSION_END + 1]
    known = _NOTES.get(head[VERSION_END + 2 : key_end])
    if known is None or key_end >= len(head) or head[key_end] > _LONGEST_VERSION:
        return name
    version = head[key_end + 1 : key_end + 1 + head[key_end]].decode("ascii", "replace")
    return f"{known} {version}" if version.isprintable() and version.isascii() else known
