"""BITFIELD: integers of any width, anywhere in a string."""

from __future__ import annotations

from typing import Final

from headrace.compat.bitmap_errors import BAD_FIELD_TYPE, BAD_OVERFLOW, FIELDS_ONLY_READ
from headrace.compat.errors import NOT_AN_INTEGER, SYNTAX, CommandError
from headrace.compat.numbers import INT64_MAX, UINT64_MAX, parse_integer
from headrace.server.commands.bitmaps.events import BITS_SET
from headrace.server.commands.bitmaps.values import Target, bit_offset
from headrace.server.commands.string_keys import buffer_at
from headrace.server.dispatch.call import Call
from headrace.storage.string.bits import read_field, write_field

_GET: Final = b"GET"
_SET: Final = b"SET"
_INCRBY: Final = b"INCRBY"
_WORDS: Final = {_GET: 3, _SET: 4, _INCRBY: 4}
_WRAP: Final = b"WRAP"
_SAT: Final = b"SAT"
_FAIL: Final = b"FAIL"


class _Operation:
    """One field that is read or written.

    Args:
        signed, width: what the field is.
        offset: of its first bit.
        number: to set or to add.
        overflow: what becomes of a number that does not fit.
    """

    def __init__(
        self, name: bytes, signed: bool, width: int, offset: int, number: int, overflow: bytes
    ) -> None:
        self.name: Final = name
        self.signed: Final = signed
        self.width: Final = width
        self.offset: Final = offset
        self.number: Final = number
        self.overflow: Final = overflow
        self.last: Final = offset + width - 1

    def read(self, data: bytes | bytearray) -> int:
        """The number that stands there."""
        value = read_field(data, self.offset, self.width)
        return value - (1 << self.width) if self.signed and value >> (self.width - 1) else value

    def fitting(self, number: int) -> int | None:
        """The number to write instead of one that does not fit; None for nothing."""
        low = -(1 << (self.width - 1)) if self.signed else 0
        high = low + (1 << self.width) - 1
        if low <= number <= high:
            return number
        if self.overflow == _FAIL:
            return None
        if self.overflow == _SAT:
            # Redis takes a number that is lower by more than 63 bits hold for one that is greater.
            far_below = self.name == _SET and number < high - INT64_MAX
            return low if number < low and not far_below else high
        return ((number - low) & ((1 << self.width) - 1)) + low


def _field_type(word: bytes) -> tuple[bool, int]:
    """Whether a type such as ``i16`` has a sign, and how many bits."""
    signed = word.startswith(b"i")
    width = parse_integer(word[1:].partition(b"\0")[0])
    if not (signed or word.startswith(b"u")) or width is None:
        raise CommandError(BAD_FIELD_TYPE)
    if not 1 <= width <= (64 if signed else 63):
        raise CommandError(BAD_FIELD_TYPE)
    return signed, width


def _operations(call: Call) -> list[_Operation]:
    argv = call.argv
    operations: list[_Operation] = []
    overflow = _WRAP
    at = 2
    while at < len(argv):
        name = argv[at].upper()
        if name == b"OVERFLOW" and at + 1 < len(argv):
            overflow = argv[at + 1].upper()
            if overflow not in (_WRAP, _SAT, _FAIL):
                raise CommandError(BAD_OVERFLOW)
            at += 2
            continue
        words = _WORDS.get(name)
        if words is None or at + words > len(argv):
            raise CommandError(SYNTAX)
        signed, width = _field_type(argv[at + 1])
        offset = bit_offset(call, argv[at + 2], width)
        number = None if name == _GET else parse_integer(argv[at + 3])
        if number is None and name != _GET:
            raise CommandError(NOT_AN_INTEGER)
        if name == _SET and number is not None and not signed:
            number &= UINT64_MAX  # so that SAT makes the greatest of a negative one, as in Redis
        operations.append(_Operation(name, signed, width, offset, number or 0, overflow))
        at += words
    return operations


def bitfield(call: Call) -> object:
    """Reply: for each field what it holds, or held before SET; nil where nothing was written."""
    operations = _operations(call)
    last = -1
    for operation in operations:
        if operation.name != _GET:
            last = max(last, operation.last)
    if last < 0:
        return _read(call, operations)
    target = Target(call, last)
    replies: list[object] = []
    changes = 0
    for operation in operations:
        old = operation.read(target.bits)
        if operation.name == _GET:
            replies.append(old)
            continue
        adds = operation.name == _INCRBY
        new = operation.fitting(old + operation.number if adds else operation.number)
        if new is None:
            replies.append(None)
            continue
        replies.append(new if adds else old)
        write_field(target.bits, operation.offset, operation.width, new)
        if target.grown or new != old:
            changes += 1
    key = call.argv[1]
    if changes:
        call.changed(key, BITS_SET, call.argv, count=changes)
    elif target.grown:
        # Redis reports nothing: no number was written. But the string has become longer.
        call.record(call.argv)
    return replies


def bitfield_ro(call: Call) -> object:
    """Reply: what each field holds."""
    operations = _operations(call)
    for operation in operations:
        if operation.name != _GET:
            raise CommandError(FIELDS_ONLY_READ)
    return _read(call, operations)


def _read(call: Call, operations: list[_Operation]) -> object:
    data = buffer_at(call, call.argv[1]) or b""
    replies: list[object] = [operation.read(data) for operation in operations]
    return replies
