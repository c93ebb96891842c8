"""Single bits, and ranges of them: SETBIT, GETBIT, BITCOUNT, BITPOS."""

from __future__ import annotations

from headrace.compat.bitmap_errors import BIT_ARGUMENT, NOT_A_BIT
from headrace.compat.errors import NOT_AN_INTEGER, SYNTAX, CommandError
from headrace.compat.numbers import parse_integer
from headrace.server.commands.bitmaps.events import BITS_SET
from headrace.server.commands.bitmaps.values import Target, bit_offset
from headrace.server.commands.string_keys import buffer_at
from headrace.server.dispatch.call import Call
from headrace.storage.string.bits import count_bit_range, count_bits, find_bit, get_bit, set_bit


def setbit(call: Call) -> object:
    """Reply: the bit as it was."""
    argv = call.argv
    offset = bit_offset(call, argv[2])
    bit = parse_integer(argv[3])
    if bit != 0 and bit != 1:
        raise CommandError(NOT_A_BIT)
    target = Target(call, offset)
    old = set_bit(target.bits, offset, bit)
    if target.grown or old != bit:
        call.changed(argv[1], BITS_SET, argv)
    return old


def getbit(call: Call) -> object:
    """Reply: the bit; 0 behind the end and without a key."""
    offset = bit_offset(call, call.argv[2])
    data = buffer_at(call, call.argv[1])
    return 0 if data is None else get_bit(data, offset)


class _Range:
    """From where to where a command looks, both included.

    Args:
        start, end: as given; negative ones count from the end.
        in_bits: they are offsets of bits, not of bytes.
    """

    def __init__(self, start: int = 0, end: int = -1, in_bits: bool = False) -> None:
        self.start = start
        self.end = end
        self.in_bits = in_bits

    def fit(self, size: int) -> bool:
        """Make both offsets in a string of ``size`` bytes; False where nothing lies between."""
        total = size << 3 if self.in_bits else size
        if self.start < 0:
            self.start = max(0, total + self.start)
        if self.end < 0:
            self.end = max(0, total + self.end)
        self.end = min(self.end, total - 1)
        return self.start <= self.end


def _integer(word: bytes) -> int:
    value = parse_integer(word)
    if value is None:
        raise CommandError(NOT_AN_INTEGER)
    return value


def _in_bits(unit: bytes) -> bool:
    unit = unit.upper()
    if unit not in (b"BIT", b"BYTE"):
        raise CommandError(SYNTAX)
    return unit == b"BIT"


def bitcount(call: Call) -> object:
    """Reply: how many bits are set, in all or from ``start`` to ``end``."""
    argv = call.argv
    if len(argv) > 5 or len(argv) == 3:
        raise CommandError(SYNTAX)
    wanted = _Range()
    if len(argv) > 2:
        wanted = _Range(_integer(argv[2]), _integer(argv[3]))
        if len(argv) == 5:
            wanted.in_bits = _in_bits(argv[4])
    data = buffer_at(call, argv[1])
    if data is None or (wanted.end < wanted.start < 0) or not wanted.fit(len(data)):
        return 0
    if wanted.in_bits:
        return count_bit_range(data, wanted.start, wanted.end)
    return count_bits(data, wanted.start, wanted.end + 1)


def bitpos(call: Call) -> object:
    """Where no end is given, a string goes on with clear bits.

    Reply: the first bit that is as asked for, or -1.
    """
    argv = call.argv
    bit = _integer(argv[2])
    if bit not in (0, 1):
        raise CommandError(BIT_ARGUMENT)
    if len(argv) > 6:
        raise CommandError(SYNTAX)
    wanted = _Range()
    if len(argv) > 3:
        wanted.start = _integer(argv[3])
        wanted.in_bits = len(argv) == 6 and _in_bits(argv[5])
        if len(argv) > 4:
            wanted.end = _integer(argv[4])
    data = buffer_at(call, argv[1])
    if data is None:
        return -1 if bit else 0
    if not wanted.fit(len(data)):
        return -1
    if wanted.in_bits:
        return find_bit(data, bit, wanted.start, wanted.end)
    found = find_bit(data, bit, wanted.start << 3, (wanted.end << 3) + 7)
    if found < 0 and not bit and len(argv) < 5:
        return len(data) << 3
    return found
