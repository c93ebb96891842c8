"""CLUSTER SLOT-STATS: how many keys each slot has. What they cost is not measured by slot."""

from __future__ import annotations

from typing import Final

from headrace.compat import cluster_errors as errors
from headrace.compat.errors import SYNTAX, CommandError
from headrace.compat.numbers import parse_integer
from headrace.compat.slots import SLOTS, slot_of
from headrace.protocol.replies import Map
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call

_KEY_COUNT: Final = b"key-count"


def slot_statistics(call: Call) -> object:
    """``SLOTSRANGE first last`` or ``ORDERBY metric [LIMIT n] [ASC | DESC]``.

    Reply: list of (slot, map of its metrics).
    Complexity: O(N) for N keys in the database.
    """
    argv = call.argv
    kind = argv[2].lower()
    if kind == b"slotsrange" and len(argv) == 5:
        slots = _range(argv[3], argv[4])
        counts = _counts(call)
    elif kind == b"orderby":
        descending, limit = _order(argv)
        counts = _counts(call)
        slots = sorted(range(SLOTS), key=lambda slot: -counts[slot] if descending else counts[slot])
        slots = slots[:limit]
    else:
        raise CommandError(errors.WRONG_WORDS % b"SLOT-STATS")
    return [[slot, Map([(_KEY_COUNT, counts[slot])])] for slot in slots]


def _range(first_word: bytes, last_word: bytes) -> list[int]:
    first, last = parse_integer(first_word), parse_integer(last_word)
    if first is None or last is None or not (0 <= first < SLOTS and 0 <= last < SLOTS):
        raise CommandError(errors.NO_SUCH_SLOT)
    if first > last:
        raise CommandError(errors.WRONG_STATISTICS_RANGE % (first, last))
    return list(range(first, last + 1))


def _order(argv: list[bytes]) -> tuple[bool, int]:
    """Whether the largest come first, and how many of them are asked for."""
    if argv[3].lower() != _KEY_COUNT:
        raise CommandError(errors.NO_METRIC)
    args = Args(argv, 4)
    order = b""
    limit = 0
    while args.left:
        option = args.option()
        if option in (b"ASC", b"DESC"):
            if order:
                raise CommandError(errors.FILTER_TWICE)
            order = option
        elif option == b"LIMIT" and args.left:
            if limit:
                raise CommandError(errors.FILTER_TWICE)
            number = parse_integer(args.word())
            if number is None or not 1 <= number <= SLOTS:
                raise CommandError(errors.BAD_LIMIT)
            limit = number
        else:
            raise CommandError(SYNTAX)
    return order != b"ASC", limit or SLOTS


def _counts(call: Call) -> list[int]:
    counts = [0] * SLOTS
    for key in call.db.names():
        counts[slot_of(key)] += 1
    return counts
