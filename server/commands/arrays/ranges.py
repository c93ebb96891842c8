"""Elements of a range: ARGETRANGE and ARSCAN."""

from __future__ import annotations

from typing import Final

from headrace.compat.array_errors import LIMIT_NOT_POSITIVE, RANGE_TOO_LONG
from headrace.compat.errors import NOT_AN_INTEGER, SYNTAX, CommandError, wrong_arity
from headrace.compat.numbers import parse_integer
from headrace.protocol.packing import Packer
from headrace.server.commands.arrays.values import add_number, array_at, index_of
from headrace.server.dispatch.call import Call
from headrace.storage.array.array import Walk
from headrace.storage.array.piece import SLOTS, element

_MOST: Final = 1_000_000  # indexes that ARGETRANGE goes through


def argetrange(call: Call) -> object:
    """Reply: what each index holds, nil for nothing; backwards where the end stands first."""
    argv = call.argv
    start = index_of(argv[2])
    end = index_of(argv[3])
    array = array_at(call, argv[1])
    low, high = min(start, end), max(start, end)
    if high - low >= _MOST:
        raise CommandError(RANGE_TOO_LONG)
    packer = Packer(call.session.resp3)
    packer.array(high - low + 1)
    reverse = start > end
    written = 0
    if array is not None:
        walk = Walk(array, low, high, reverse)
        while walk.step():
            for slot in slots_of(walk.mask, reverse):
                gap = (high - walk.base - slot if reverse else walk.base + slot - low) - written
                _add_nulls(packer, gap)
                packer.text(element(walk.piece, slot) or b"")
                written += gap + 1
    _add_nulls(packer, high - low + 1 - written)
    return packer.packed()


def _add_nulls(packer: Packer, count: int) -> None:
    for _ in range(count):
        packer.null()


def slots_of(mask: int, reverse: bool) -> list[int]:
    """The bits of a mask that are set, from the lowest on, or from the highest."""
    found = [slot for slot in range(SLOTS) if (mask >> slot) & 1]
    if reverse:
        found.reverse()
    return found


def limit_of(word: bytes) -> int:
    """How many elements LIMIT allows."""
    limit = parse_integer(word)
    if limit is None:
        raise CommandError(NOT_AN_INTEGER)
    if limit <= 0:
        raise CommandError(LIMIT_NOT_POSITIVE)
    return limit


def arscan(call: Call) -> object:
    """Reply: pairs of an index and its element, of those that are there."""
    argv = call.argv
    start = index_of(argv[2])
    end = index_of(argv[3])
    if len(argv) not in (4, 6):
        raise CommandError(wrong_arity(call.name()))
    left = -1
    if len(argv) == 6:
        if argv[4].upper() != b"LIMIT":
            raise CommandError(SYNTAX)
        left = limit_of(argv[5])
    array = array_at(call, argv[1])
    if array is None:
        return []
    pairs = Packer(call.session.resp3)
    count = 0
    reverse = start > end
    walk = Walk(array, min(start, end), max(start, end), reverse)
    while count != left and walk.step():
        for slot in slots_of(walk.mask, reverse):
            if count == left:
                break
            pairs.array(2)
            add_number(pairs, walk.base + slot)
            pairs.text(element(walk.piece, slot) or b"")
            count += 1
    packer = Packer(call.session.resp3)
    packer.array(count)
    packer.add(pairs)
    return packer.packed()
