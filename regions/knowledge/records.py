"""The records that are effects: they are numbered, and other regions get them.

Each kind says since which version of the exchange it exists. A kind that changes gets another name.
So regions are upgraded one by one: one of a later kind is made once all of them know it.
"""

from __future__ import annotations

from typing import Final

from headrace.storage.sharing import AA, CLOSED, FILE, FROM

XADD: Final = b"XADD"
JOINED: Final = b"JOINED"
OF_FILES: Final = frozenset((FROM, FILE, CLOSED, JOINED))  # records about the file
LOWEST_VERSION: Final = 1  # of the exchange that is still spoken: all know its kinds
EFFECTS: Final[dict[bytes, int]] = {
    b"XDEL": 1,
    b"TRIM": 1,
    b"DEL": 1,
    b"EXPIRE": 1,
    b"GROUP": 1,
    b"UNGROUP": 1,
    b"ACK": 1,
    b"TOP": 1,
    b"TTL": 1,
    b"LIMITS": 1,
    b"MODE": 1,
    b"MOVE": 1,
    b"HAND": 1,
    b"BEAT": 1,
    b"JOIN": 1,
    b"FORGET": 1,
}


def newest_version() -> int:
    """Return the version of the exchange that this server speaks."""
    return max(EFFECTS.values())


def is_numbered(words: list[bytes]) -> bool:
    """Return whether a record is an effect. Names of effects are written in capitals."""
    name = words[0]
    return name == XADD or (name == AA and len(words) > 1 and words[1] in EFFECTS)
