"""Comparing before changing: DIGEST, DELEX and the conditions that SET shares with it.

A digest is the XXH3 hash of a string, 64 bits in 16 hexadecimal digits, so that a client can make
sure of a long value without sending it. Source: redis.io/commands/delex (8.4) and digest (8.4).
"""

from __future__ import annotations

from typing import Final

from xxhash import xxh3_64_hexdigest

from headrace.compat.errors import (
    CONDITION_NEEDS_STRING,
    DIGEST_LENGTH,
    INVALID_CONDITION,
    CommandError,
    wrong_arity,
)
from headrace.server.commands.string_keys import string_at
from headrace.server.commands.strings.values import (
    COMPARING,
    IF_DIGEST,
    IF_EQUAL,
    IF_NOT_DIGEST,
    IF_NOT_EQUAL,
)
from headrace.server.dispatch.call import Call
from headrace.storage.entry import Entry
from headrace.storage.string.string import string_bytes

_DIGITS: Final = 16


def digest_of(value: bytes) -> bytes:
    """The digest of a string."""
    return xxh3_64_hexdigest(value).encode()


def holds(found: Entry | None, condition: int, expected: bytes, wrong_type: bytes) -> bool:
    """Whether the string of an entry meets IFEQ, IFNE, IFDEQ or IFDNE.

    Without an entry the negative ones do.

    Args:
        wrong_type: the error for an entry that holds no string.
    """
    if found is None:
        return condition in (IF_NOT_EQUAL, IF_NOT_DIGEST)
    value = string_bytes(found.value)
    if value is None:
        raise CommandError(wrong_type)
    if condition == IF_EQUAL:
        return value == expected
    if condition == IF_NOT_EQUAL:
        return value != expected
    if len(expected) != _DIGITS:
        raise CommandError(DIGEST_LENGTH)
    return (digest_of(value) == expected.lower()) == (condition == IF_DIGEST)


def digest(call: Call) -> object:
    """Reply: the digest of the string, or nil."""
    value = string_at(call, call.argv[1])
    return None if value is None else digest_of(value)


def delex(call: Call) -> object:
    """Without a condition a key of any type goes.

    Reply: 1 when the key was deleted, 0 when it was not there or the condition did not hold.
    """
    argv = call.argv
    if len(argv) not in (2, 4):
        raise CommandError(wrong_arity(call.name()))
    if len(argv) == 2:
        return 1 if call.delete(argv[1]) else 0
    found = call.counted_entry(argv[1])
    if found is None:
        return 0
    if string_bytes(found.value) is None:
        raise CommandError(CONDITION_NEEDS_STRING)
    condition = COMPARING.get(argv[2].upper())
    if condition is None:
        raise CommandError(INVALID_CONDITION)
    if not holds(found, condition, argv[3], CONDITION_NEEDS_STRING):
        return 0
    return 1 if call.delete(argv[1]) else 0
