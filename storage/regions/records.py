"""Which records are effects: those that are numbered, and that other regions get."""

from __future__ import annotations

from typing import Final

XADD: Final = b"XADD"
AA: Final = b"AA"
FROM: Final = b"FROM"
FILE: Final = b"FILE"
CLOSED: Final = b"CLOSED"
JOINED: Final = b"JOINED"
EFFECTS: Final = frozenset(
    (
        b"XDEL",
        b"TRIM",
        b"DEL",
        b"EXPIRE",
        b"GROUP",
        b"UNGROUP",
        b"ACK",
        b"TOP",
        b"TTL",
        b"LIMITS",
        b"MODE",
        b"MOVE",
        b"HAND",
        b"BEAT",
        b"JOIN",
        b"FORGET",
    )
)


def is_numbered(words: list[bytes]) -> bool:
    """Whether a record is an effect. Names of effects are written in capitals."""
    name = words[0]
    return name == XADD or (name == AA and len(words) > 1 and words[1] in EFFECTS)
