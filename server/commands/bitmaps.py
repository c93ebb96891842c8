"""The commands on bits of strings: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP, BITFIELD."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.compat import type_errors
from headrace.compat.errors import NOT_AN_INTEGER, SYNTAX, CommandError
from headrace.compat.event_classes import EVENT_STRING
from headrace.compat.numbers import INT64_MAX, UINT64_MAX, parse_integer
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES
from headrace.server.changes.events import Event
from headrace.server.clients.session import REPLAY
from headrace.server.commands.shared import store
from headrace.server.commands.together import Ran, Reader, Requests, Values, read_alike
from headrace.server.commands.typed_keys import buffer_at, in_place, lengthen, writable
from headrace.server.dispatch.args import integer, upper
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import NONE_ALIKE, alike
from headrace.storage.string import bits

BITS_SET: Final = Event(b"setbit", EVENT_STRING, touches=True)
COMBINED: Final = Event(b"set", EVENT_STRING, touches=True)


def bit_offset(call: Call, word: bytes, width: int = 0) -> int:
    """Return the offset of a bit; ``#`` counts fields of ``width`` bits, 0 where there are none.

    Raises: CommandError for what is no number, or too large for a string.
    """
    counted = width > 0 and word.startswith(b"#")
    offset = integer(word[1:] if counted else word, type_errors.BIT_OFFSET)
    if counted:
        # As in 64 bits with overflow, because Redis does so.
        offset = ((offset * width + INT64_MAX + 1) & 0xFFFFFFFFFFFFFFFF) - INT64_MAX - 1
    if offset < 0:
        raise CommandError(type_errors.BIT_OFFSET)
    if offset >> 3 >= call.server.config.proto_max_bulk_len and not call.session.special & REPLAY:
        raise CommandError(type_errors.BIT_OFFSET)
    return offset


class Target:
    """The string of a key to write bits into, lengthened to hold bit ``last``.

    ``grown``: it was created, or has become longer.
    """

    def __init__(self, call: Call, last: int) -> None:
        key = call.argv[1]
        size = (last >> 3) + 1
        found = writable(call, key)
        if found is None:
            self.bits = bytearray(size)
            self.grown = True
            call.put(key, self.bits)
            return
        self.bits = in_place(call, found)
        self.grown = size > len(self.bits)
        lengthen(self.bits, size)


def setbit(call: Call) -> object:
    """Reply: the bit as it was."""
    argv = call.argv
    offset = bit_offset(call, argv[2])
    bit = parse_integer(argv[3])
    if bit != 0 and bit != 1:
        raise CommandError(type_errors.NOT_A_BIT)
    target = Target(call, offset)
    old = bits.set_bit(target.bits, offset, bit)
    if target.grown or old != bit:
        call.changed(argv[1], BITS_SET, argv)
    return old


def getbit(call: Call) -> object:
    """Reply: the bit; 0 behind the end and without a key."""
    offset = bit_offset(call, call.argv[2])
    data = buffer_at(call, call.argv[1])
    return 0 if data is None else bits.get_bit(data, offset)


class _Range:
    """The range that a command reads, ends included; negative ones count from the end."""

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


def _in_bits(unit: bytes) -> bool:
    unit = upper(unit)
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
        wanted = _Range(integer(argv[2]), integer(argv[3]))
        if len(argv) == 5:
            wanted.in_bits = _in_bits(argv[4])
    data = buffer_at(call, argv[1])
    if data is None or (wanted.end < wanted.start < 0) or not wanted.fit(len(data)):
        return 0
    if wanted.in_bits:
        return bits.count_bit_range(data, wanted.start, wanted.end)
    return bits.count_bits(data, wanted.start, wanted.end + 1)


def bitpos(call: Call) -> object:
    """Without an end, clear bits follow the string. Reply: the first bit as asked for, or -1."""
    argv = call.argv
    bit = integer(argv[2])
    if bit not in (0, 1):
        raise CommandError(type_errors.BIT_ARGUMENT)
    if len(argv) > 6:
        raise CommandError(SYNTAX)
    wanted = _Range()
    if len(argv) > 3:
        wanted.start = integer(argv[3])
        wanted.in_bits = len(argv) == 6 and _in_bits(argv[5])
        if len(argv) > 4:
            wanted.end = integer(argv[4])
    data = buffer_at(call, argv[1])
    if data is None:
        return -1 if bit else 0
    if not wanted.fit(len(data)):
        return -1
    if wanted.in_bits:
        return bits.find_bit(data, bit, wanted.start, wanted.end)
    found = bits.find_bit(data, bit, wanted.start << 3, (wanted.end << 3) + 7)
    if found < 0 and not bit and len(argv) < 5:
        return len(data) << 3
    return found


def bitop(call: Call) -> object:
    """A missing source is an empty string, and zeros stand behind the end of each.

    Reply: the length of the result; where that is 0, the target is gone.
    """
    argv = call.argv
    name = upper(argv[1])
    if name not in _FOLDED and name not in _OF_TWO and name not in _OTHERS:
        raise CommandError(SYNTAX)
    if name == b"NOT" and len(argv) != 4:
        raise CommandError(type_errors.NOT_ONE_SOURCE)
    if name in _OF_TWO and len(argv) < 5:
        raise CommandError(type_errors.TOO_FEW_SOURCES % name)
    sources = [buffer_at(call, key) or b"" for key in argv[3:]]
    size = max([len(source) for source in sources])
    target = argv[2]
    if not size:
        call.delete(target, argv, expired_too=True)
        return 0
    # Written into on purpose: as in Redis, the result is ``raw`` whatever it spells.
    result = bytearray()
    for at in range(0, size, _PIECE_BYTES):
        result += _combined(name, [bits.piece(source, at, at + _PIECE_BYTES) for source in sources])
    store(call, target, result)
    call.changed(target, COMBINED, argv)
    return size


def _combined(name: bytes, sources: list[bytes]) -> bytes:
    """Return a piece of the result, made of the same piece of each source."""
    first = sources[0]
    if name == b"NOT":
        return bits.complement(first)
    if name == b"ONE":
        return _one(sources)
    if name in _FOLDED:
        return _folded(_FOLDED[name], sources)
    others = _folded(bits.OR, sources[1:])
    if name == b"DIFF":  # what the first has and none of the others
        return bits.combine(bits.AND_NOT, first, others)
    if name == b"DIFF1":  # what one of the others has and not the first
        return bits.combine(bits.AND_NOT, others, first)
    return bits.combine(bits.AND, first, others)  # ANDOR: what the first has and one of the others


def _folded(operation: int, sources: list[bytes]) -> bytes:
    result = sources[0]
    for source in sources[1:]:
        result = bits.combine(operation, result, source)
    return result


def _one(sources: list[bytes]) -> bytes:
    """Return the bits that are set in exactly one source."""
    any_has = sources[0]
    several_have = b""
    for source in sources[1:]:
        several_have = bits.combine(bits.OR, several_have, bits.combine(bits.AND, any_has, source))
        any_has = bits.combine(bits.OR, any_has, source)
    return bits.combine(bits.AND_NOT, any_has, several_have)


_FOLDED: Final = {b"AND": bits.AND, b"OR": bits.OR, b"XOR": bits.XOR}
_PIECE_BYTES: Final = 1 << 15  # of each source: few enough to stay in the processor's caches
_OF_TWO: Final = (b"DIFF", b"DIFF1", b"ANDOR")
_OTHERS: Final = (b"NOT", b"ONE")


_GET: Final = b"GET"
_SET: Final = b"SET"
_INCRBY: Final = b"INCRBY"
_WORDS: Final = {_GET: 3, _SET: 4, _INCRBY: 4}
_WRAP: Final = b"WRAP"
_SAT: Final = b"SAT"
_FAIL: Final = b"FAIL"


class _Operation:
    """One field to read or write, of ``width`` bits from ``offset`` on."""

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
        value = bits.read_field(data, self.offset, self.width)
        return value - (1 << self.width) if self.signed and value >> (self.width - 1) else value

    def fitting(self, number: int) -> int | None:
        """Return the number to write instead of one that does not fit; None for nothing."""
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
    """Return whether a type such as ``i16`` has a sign, and its bits."""
    signed = word.startswith(b"i")
    width = parse_integer(word[1:] if 0 not in word else word[1:].partition(b"\0")[0])
    if not (signed or word.startswith(b"u")) or width is None:
        raise CommandError(type_errors.BAD_FIELD_TYPE)
    if not 1 <= width <= (64 if signed else 63):
        raise CommandError(type_errors.BAD_FIELD_TYPE)
    return signed, width


def _operations(call: Call) -> list[_Operation]:
    argv = call.argv
    operations: list[_Operation] = []
    overflow = _WRAP
    at = 2
    while at < len(argv):
        name = upper(argv[at])
        if name == b"OVERFLOW" and at + 1 < len(argv):
            overflow = upper(argv[at + 1])
            if overflow not in (_WRAP, _SAT, _FAIL):
                raise CommandError(type_errors.BAD_OVERFLOW)
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
        bits.write_field(target.bits, operation.offset, operation.width, new)
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
            raise CommandError(type_errors.FIELDS_ONLY_READ)
    return _read(call, operations)


def _read(call: Call, operations: list[_Operation]) -> object:
    data = buffer_at(call, call.argv[1]) or b""
    replies: list[object] = [operation.read(data) for operation in operations]
    return replies


_COUNT_WORDS: Final = 2  # of all of a string


@alike("SETBIT", of_any_key=True)
def setbit_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Set bits of strings that were written into before, and are long enough."""
    if not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    values = Values(call, requests, end, writes=True)
    noted = call.notes_changes
    records: list[list[bytes]] = []
    changes = 0
    out = Packer(call.session.resp3)
    at = first
    while at < end:
        words = requests[at]
        offset = parse_integer(words[2])
        bit = 1 if words[3] == b"1" else 0
        if offset is None or offset < 0 or not (bit or words[3] == b"0"):
            break
        value = values.of(at)
        place: i64 = offset
        if not isinstance(value, bytearray) or place >> 3 >= len(value):
            break
        old = bits.set_bit(value, place, bit)
        if old != bit:
            changes += 1
            if noted:
                records.append(words)
        out.number(old)
        at += 1
    call.changed_alike(records, 0, len(records), changes)
    return at - first, out.replies()


@alike("GETBIT", of_any_key=True)
def getbit_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Get bits of strings that do not spell a number; there are zeros behind the end."""
    values = Values(call, requests, end)
    most_bytes = call.server.config.proto_max_bulk_len
    out = Packer(call.session.resp3)
    hits = 0
    at = first
    while at < end:
        offset = parse_integer(requests[at][2])
        if offset is None or offset < 0 or offset >> 3 >= most_bytes:
            break
        value = values.of(at)
        if value is None:
            if call.reports_misses():
                break
            out.number(0)
        else:
            if not isinstance(value, (bytes, bytearray)):
                break
            out.number(bits.get_bit(value, offset))
            hits += 1
        at += 1
    call.count_reads(hits, at - first - hits)
    return at - first, out.replies()


class _Count(Reader):
    def absent(self, out: Packer) -> None:
        out.number(0)

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        if not isinstance(value, (bytes, bytearray)):
            return False
        out.number(bits.count_bits(value, 0, len(value)))
        return True


read_alike("BITCOUNT", _Count(_COUNT_WORDS))
