"""The first spellings of the consumer group commands, put into today's words.

Consumer groups were specified before they were built, and some commands were renamed on the way.
Programs written after the specification still run: each function here takes a request in the old
spelling to the request that does the same today, or today's reply to the shape that the old one
had. Nothing is decided here, and what is recorded or propagated is in today's words.

=============================================== ================================================
then                                            today
=============================================== ================================================
XREAD-GROUP GROUP g NAME c ... STREAMS k id     XREADGROUP GROUP g c ... STREAMS k id
XACK k g c id ...                               XACK k g id ...
XGROUP PENDING k g                              XPENDING k g
XGROUP GET-PENDING k g min max count            XPENDING k g min max count
XGROUP CLAIM k g c min-idle id ...              XCLAIM k g c min-idle id ... JUSTID
XGROUP CONSUMERS k g                            XINFO CONSUMERS k g
XGROUP DEL k g                                  XGROUP DESTROY k g
XGROUP DEL-CONSUMER k g c                       XGROUP DELCONSUMER k g c
XGROUP PEL k g id c idle deliveries             XCLAIM k g c 0 id IDLE idle RETRYCOUNT deliveries
                                                FORCE JUSTID
=============================================== ================================================

``$`` as an ID of XREAD-GROUP asks for what is new to the group: it is today's ``>``.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.compat.errors import READ_GROUP_INCOMPLETE, CommandError
from headrace.compat.stream_ids import parse_id
from headrace.protocol.packing import unpacked

READ_GROUP: Final = b"XREADGROUP"
_WITHOUT_VALUE: Final = b"noack"
_SPECIAL_IDS: Final = (b">", b"$", b"-", b"+", b"*")
_WITH_VALUE: Final = (b"count", b"block", b"claim", b"maxcount", b"maxsize")


def is_translated(argv: list[bytes]) -> bool:
    """Return whether a request of XREAD-GROUP is in today's words: one that has waited is."""
    return argv[0] == READ_GROUP


def read_group(argv: list[bytes]) -> list[bytes]:
    """Return XREAD-GROUP as XREADGROUP. Raises: CommandError: a bad option, no GROUP or NAME."""
    group: bytes | None = None
    name: bytes | None = None
    options: list[bytes] = []
    at = 1
    while at < len(argv):
        word = argv[at].lower()
        if word == b"streams":
            break
        if word == _WITHOUT_VALUE:
            options.append(argv[at])
            at += 1
            continue
        if at + 1 >= len(argv):
            raise CommandError(errors.SYNTAX)
        if word == b"group":
            group = argv[at + 1]
        elif word == b"name":
            name = argv[at + 1]
        elif word in _WITH_VALUE:
            options += argv[at : at + 2]
        else:
            raise CommandError(errors.SYNTAX)
        at += 2
    if group is None or name is None:
        raise CommandError(READ_GROUP_INCOMPLETE)
    words = argv[at:]
    for index in range(1 + len(words) // 2, len(words)):
        if words[index] == b"$":
            words[index] = b">"
    return [READ_GROUP, b"GROUP", group, name, *options, *words]


def read_group_keys(argv: list[bytes]) -> list[int]:
    """Return the indexes of the keys of XREAD-GROUP; none where it is not well formed."""
    at = 1
    while at < len(argv):
        word = argv[at].lower()
        if word == b"streams":
            rest = len(argv) - at - 1
            return list(range(at + 1, at + 1 + rest // 2)) if rest % 2 == 0 else []
        if word == _WITHOUT_VALUE:
            at += 1
        elif word in _WITH_VALUE or word == b"group" or word == b"name":
            at += 2
        else:
            return []
    return []


def ack(argv: list[bytes]) -> list[bytes]:
    """Return XACK without the consumer before its IDs, unless the third word can be an ID.

    A word that stands for an ID elsewhere is no consumer either: it is refused as an ID.
    """
    if len(argv) > 4 and argv[3] not in _SPECIAL_IDS and parse_id(argv[3]) is None:
        return [*argv[:3], *argv[4:]]
    return argv


def get_pending(argv: list[bytes]) -> list[bytes]:
    """Return XGROUP GET-PENDING as XPENDING with a range."""
    return [b"XPENDING", *argv[2:]]


def pending_row(entry_id: bytes, consumer: bytes, idle_ms: int, deliveries: int) -> list[object]:
    """Return a pending entry as XGROUP GET-PENDING shows it: seconds idle, not milliseconds."""
    return [entry_id, consumer, idle_ms // 1000, deliveries]


def claim(argv: list[bytes]) -> list[bytes]:
    """Return XGROUP CLAIM as XCLAIM that answers with IDs."""
    return [b"XCLAIM", *argv[2:], b"JUSTID"]


def consumers(argv: list[bytes]) -> list[bytes]:
    """Return XGROUP CONSUMERS as XINFO CONSUMERS."""
    return [b"XINFO", b"CONSUMERS", *argv[2:]]


def destroy(argv: list[bytes]) -> list[bytes]:
    """Return XGROUP DEL as XGROUP DESTROY."""
    return [b"XGROUP", b"DESTROY", *argv[2:]]


def delete_consumer(argv: list[bytes]) -> list[bytes]:
    """Return XGROUP DEL-CONSUMER as XGROUP DELCONSUMER."""
    return [b"XGROUP", b"DELCONSUMER", *argv[2:]]


def was_set(reply: object) -> bool:
    """Return whether the XCLAIM of XGROUP PEL found an entry to set."""
    return unpacked(reply) != []


def set_pending(argv: list[bytes]) -> list[bytes]:
    """Return XGROUP PEL as XCLAIM that makes the entry pending. Raises: CommandError: no ID."""
    key, group, entry_id, consumer, idle_ms, deliveries = argv[2:8]
    if parse_id(entry_id) is None:
        raise CommandError(errors.INVALID_STREAM_ID)
    return [
        *(b"XCLAIM", key, group, consumer, b"0", entry_id),
        *(b"IDLE", idle_ms, b"RETRYCOUNT", deliveries, b"FORCE", b"JUSTID"),
    ]
