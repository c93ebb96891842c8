"""The beginning of an RDB file, its opcodes, and the numbers of its types.

Redis writes ``REDIS`` and four digits, and so did Valkey up to its version 8. From 9 on Valkey
writes ``VALKEY`` and three digits, and counts its versions from 80. The first note behind them,
where there is one, says the version of the server::

    VALKEY080  FA  0A valkey-ver  05 9.1.2

Redis and Valkey have counted types alike up to 21. Later types in a file of Valkey have a number of
their own here.
"""

from __future__ import annotations

from typing import Final


class Broken(Exception):
    """The bytes are not what they are to be."""


REDIS: Final = b"REDIS"
VALKEY: Final = b"VALKEY"
MAGICS: Final = (REDIS, VALKEY)
VERSION_END: Final = 9  # the magic and the digits are as long as that together
HEAD_BYTES: Final = 64  # with the first note
NOTE: Final = 0xFA
_LONGEST_VERSION: Final = 32
_NOTES: Final = {b"redis-ver": "Redis", b"valkey-ver": "Valkey"}


def is_rdb(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is an RDB file."""
    return head.startswith(MAGICS)


def writer_of(head: bytes) -> str:
    """Return the server that wrote a file that begins with ``head``, and its version if given."""
    name = "Valkey" if head.startswith(VALKEY) else "Redis"
    if len(head) <= VERSION_END + 1 or head[VERSION_END] != NOTE:
        return name
    key_end = VERSION_END + 2 + head[VERSION_END + 1]
    known = _NOTES.get(head[VERSION_END + 2 : key_end])
    if known is None or key_end >= len(head) or head[key_end] > _LONGEST_VERSION:
        return name
    version = head[key_end + 1 : key_end + 1 + head[key_end]].decode("ascii", "replace")
    return f"{known} {version}" if version.isprintable() and version.isascii() else known


VERSION: Final = 15  # of the form that Redis 8.10 writes
FUNCTIONS_SINCE: Final = 10  # Redis 7 and later have functions
VERSION_MIN: Final = 9  # the lowest one that is written here; Redis 5 and later read it
VERSION_SHARED: Final = 11  # the last one that Redis and Valkey have in common
VERSION_PACKED: Final = 11  # from here on small values are written packed, as Redis 7.2 does
VALKEY_VERSION_MIN: Final = 80
VALKEY_VERSION_MAX: Final = 80

STRING: Final = 0
LIST: Final = 1
SET: Final = 2
SORTED_SET_TEXT: Final = 3  # scores as text
HASH: Final = 4
SORTED_SET: Final = 5
MODULE: Final = 7
HASH_ZIPMAP: Final = 9
LIST_ZIPLIST: Final = 10
SET_INTSET: Final = 11
SORTED_SET_ZIPLIST: Final = 12
HASH_ZIPLIST: Final = 13
LIST_QUICKLIST: Final = 14
STREAM_5: Final = 15
HASH_LISTPACK: Final = 16
SORTED_SET_LISTPACK: Final = 17
LIST_QUICKLIST_2: Final = 18
STREAM_7_0: Final = 19
SET_LISTPACK: Final = 20
STREAM_7_2: Final = 21
MORTAL_HASH_EARLY: Final = 22  # of release candidates of Redis 7.4
MORTAL_HASH_PACKED_EARLY: Final = 23
MORTAL_HASH: Final = 24
MORTAL_HASH_PACKED: Final = 25
STREAM_8_6: Final = 26
STREAM_8_8: Final = 27
ARRAY: Final = 28
SHAPED_HASH_PACKED_ALONE: Final = 29  # in a payload: with its field names
SHAPED_HASH_PACKED: Final = 30
SHAPED_HASH_ALONE: Final = 31
SHAPED_HASH: Final = 32
VALKEY_HASH: Final = 1022  # in the file 22: fields with deadlines

_OF_REDIS_ALONE: Final = 22  # and above
_VALKEY_BASE: Final = 1000


def known_number(number: int, valkey: bool) -> int:
    """Return the number here of a type that has ``number`` in a file."""
    return number + _VALKEY_BASE if valkey and number >= _OF_REDIS_ALONE else number


def file_number(number: int) -> int:
    """Return the number in a file of a type that has ``number`` here."""
    return number - _VALKEY_BASE if number >= _VALKEY_BASE else number


def is_valkey_version(version: int) -> bool:
    """Return whether the form of that version is Valkey's."""
    return VALKEY_VERSION_MIN <= version <= VALKEY_VERSION_MAX


END: Final = 0xFF
SELECT: Final = 0xFE
EXPIRE_S: Final = 0xFD
EXPIRE_MS: Final = 0xFC
SIZES: Final = 0xFB
FREQUENCY: Final = 0xF9
IDLE: Final = 0xF8
MODULE_NOTE: Final = 0xF7
FUNCTIONS: Final = 0xF5
REQUESTS: Final = b"headrace-requests"  # a note: what stands beside keys and libraries, as commands
SLOT: Final = 0xF4
KEY_NOTES: Final = 0xF3  # of Redis
SLOT_IMPORT: Final = 0xF3  # of Valkey
SHAPE: Final = 0xF2
HIGHEST_TYPE: Final = 0x7F  # higher ones stand for themselves, and have no key
