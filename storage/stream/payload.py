"""The sealed form of a block: its entries in one ``bytes``, the payload.

It is two msgpack values, one after the other:

1. IDs: a flat array ``[dms, dseq, dms, dseq, ...]``. ``dms`` is the difference to the entry
   before (to 0 for the first); ``dseq`` is the difference in sequence where ``dms`` is 0, else
   the sequence itself. A run of entries of one millisecond takes two bytes each.
2. Values: ``[names, values]``, the field names that all entries share and the values in a row;
   ``[names, values, columns]`` where the values of some columns are integers;
   ``[names, lengths, texts, values, columns]`` where those of some columns are equally long;
   or ``[nil, rows]`` with each entry's fields and values in a row of its own.

Values are bytes, and field order and repeated names are kept. Where every value of a field spells a
64-bit integer, the column holds integers: that takes about half the space. Where all are equally
long, they stand in ``texts``, row by row, without heads, so that those of any entry are found
without looking at the ones before; ``lengths`` is 0 for the fields whose values are in ``values``.
What they all begin with stands once, in front of ``texts``. Its length, below 0, comes before the
length of the rest, which is 0 where the values are the same altogether. At most ``SHARED_MOST``
bytes of the values may stand once, so that no payload is much smaller than what it becomes.

For example the entries 5-0 a=x b=10 and 5-1 a=yy b=20 are ``[5, 0, 0, 1]`` and
``[["a", "b"], ["x", 10, "yy", 20], [1]]``; with more entries and the fields c=north, c=south and
d=up it would be ``[["a", "b", "c", "d"], [0, 0, 5, -2, 0], "upnorthsouth..", ["x", 10, "yy", 20,
..], [1]]``.
"""

from __future__ import annotations

from typing import Final, cast

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from msgspec import json
from msgspec.msgpack import Decoder
from mypy_extensions import i64

from headrace.storage.stream.run import NO_NAMES, Run

FIX_ARRAY: Final = 0x90  # and its size
APART: Final = FIX_ARRAY | 5  # of values of which some have a length
NIL: Final = 0xC0
BIN_8: Final = 0xC4
BIN_16: Final = 0xC5
UINT_8: Final = 0xCC
UINT_16: Final = 0xCD
UINT_32: Final = 0xCE
UINT_64: Final = 0xCF
INT_8: Final = 0xD0
INT_16: Final = 0xD1
INT_64: Final = 0xD3
ARRAY_16: Final = 0xDC
NEGATIVE: Final = 0xE0  # and above: a number below 0 that is one byte

BYTE_BITS: Final = 8
BYTE: Final = 0xFF
TWO_BYTES: Final = 0xFFFF
UINT_32_MAX: Final = 0xFFFF_FFFF
NUMBER_MAX: Final = 2**61  # what is above may be no i64 in sums

SHARED_MOST: Final = 64 * 1024  # bytes of all values of a block that stand once for several


_unpack: Final = Decoder().decode
_to_json: Final = json.Encoder().encode
UNKNOWN: Final = -2
_NO_PAIR: Final = 0x8080  # of two bytes one, or both, are no small number
_ARRAY_OF: Final = b"\xdd"  # with a size of four bytes


def unpack(payload: bytes, ids_bytes: int) -> Run:
    """Return the entries of a payload.

    Raises: ValueError, TypeError, IndexError, RecursionError, MsgspecError: it is none.
    """
    body = cast("list[object]", _unpack(memoryview(payload)[ids_bytes:]))
    names = None if body[0] is None else cast("list[bytes]", body[0])
    run = Run(names)
    unpack_ids(payload, ids_bytes, run)
    if names is None:
        run.rows = cast("list[list[bytes]]", body[1])
        return run
    if len(body) == 5:
        run.flat = cast("list[bytes]", _joined(body, len(names), len(run.ms)))
    else:
        run.flat = cast("list[bytes]", body[1])
    if len(body) > 2:
        _spell(run.flat, len(names), cast("list[int]", body[-1]))
    return run


def _joined(body: list[object], width: int, count: int) -> list[object]:
    """Return the values in a row of ``count`` entries, of which some stand in ``texts``.

    Raises: ValueError: not as many or as long as ``lengths`` says, or once for too many.
    """
    texts = cast("bytes", body[2])
    values = cast("list[object]", body[3])
    lengths: list[int] = []
    others = 0
    once = 0
    size = 0
    same = 0
    for length in cast("list[int]", body[1]):
        if length < 0 and not same:
            same = -length
            continue
        if length < 0:
            raise ValueError("a length below 0")
        lengths.append(same)
        lengths.append(length)
        if not same and not length:
            others += 1
        once += same
        size += same + count * length
        same = 0
    if same or len(lengths) != 2 * width or len(texts) != size or len(values) != count * others:
        raise ValueError("other values than their lengths say")
    if once * count > SHARED_MOST:
        raise ValueError("too many values that stand once")
    return _join(texts, 0, lengths, 0, count, values)


def unpack_ids(payload: bytes, ids_bytes: int, run: Run) -> None:
    """Set the IDs of ``run`` to those of a payload."""
    ms = 0
    seq = 0
    deltas = cast("list[int]", _unpack(memoryview(payload)[:ids_bytes]))
    all_ms = run.ms
    all_seq = run.seq
    for number in range(0, len(deltas), 2):
        delta = deltas[number]
        if delta:
            ms += delta
            seq = deltas[number + 1]
        else:
            seq += deltas[number + 1]
        all_ms.append(ms)
        all_seq.append(seq)


def count_ids(payload: bytes) -> int:
    """Return how many entries a payload holds."""
    return int(_array(payload, 0)[0]) // 2


def unpack_some(
    payload: bytes,
    ids_bytes: i64,
    start: tuple[int, int],
    end: tuple[int, int],
    most: i64,
    reverse: bool,
    dead: bytearray | None = None,
) -> Run | None:
    """Return the ``most`` entries from ``start`` to ``end``, or the last of those if ``reverse``.

    The others are passed over, which costs a fraction of making them. Those that ``dead`` marks, in
    a byte for each entry of the payload, are there and do not count.
    Returns: None where entries have other names than their neighbours, or very great IDs.
    """
    names_at = ids_bytes + 1
    if payload[names_at] == NIL:
        return None
    width, at = _array(payload, names_at)
    values_at = _pass_over(payload, at, width)
    run = Run(cast("list[bytes]", _unpack(payload[names_at:values_at])))
    first = _take_ids(payload, run, start, end, most, reverse, dead)
    if first < 0:
        return None
    run.first = first
    size = len(run.ms)
    if not size:
        return run
    if payload[ids_bytes] == APART:
        values = _some_apart(payload, values_at, first, size)
    else:
        values = _some_values(payload, values_at, first * width, size * width)
    columns = [column for column in range(int(width)) if isinstance(values[column], int)]
    run.flat = cast("list[bytes]", values)
    _spell(run.flat, int(width), columns)
    return run


def _some_values(payload: bytes, at: i64, first: i64, size: i64) -> list[object]:
    at = _pass_over(payload, _array(payload, at)[1], first)
    packed = payload[at : _pass_over(payload, at, size)]
    return cast("list[object]", _unpack(_ARRAY_OF + int(size).to_bytes(4, "big") + packed))


def _some_apart(payload: bytes, at: i64, first: i64, count: i64) -> list[object]:
    """Return the values of ``count`` entries from ``first`` on; lengths stand at ``at``."""
    lengths: list[int] = []
    others: i64 = 0
    left, at = _array(payload, at)
    while left:
        same: i64 = 0
        length, at = _length(payload, at)
        left -= 1
        if length < 0:
            same = -length
            length, at = _length(payload, at)
            left -= 1
        elif not length:
            others += 1
        lengths.append(int(same))
        lengths.append(int(length))
    values: list[object] = []
    if others:
        values = _some_values(payload, _pass_over(payload, at, 1), first * others, count * others)
    head: i64 = payload[at]
    at += 1 + (1 << (head - BIN_8))
    return _join(payload, at, lengths, first, count, values)


def _join(
    payload: bytes, at: i64, lengths: list[int], first: i64, count: i64, values: list[object]
) -> list[object]:
    """Return the values in a row of ``count`` entries from number ``first`` on.

    Args:
        at: where ``texts`` stand.
        lengths: for each field how many bytes its values share, and how many more each has.
        values: those of the fields that have neither.
    """
    width: i64 = len(lengths) >> 1
    size = count * width
    own_at = at
    stride: i64 = 0
    others = 0
    for column in range(width):
        same = lengths[2 * column]
        length = lengths[2 * column + 1]
        own_at += same
        stride += length
        if not same and not length:
            others += 1
    own_at += first * stride
    joined: list[object] = [None] * int(size)
    other = 0
    for column in range(width):
        same = lengths[2 * column]
        length = lengths[2 * column + 1]
        number: i64 = column
        place = own_at
        own_at += length
        if same:
            head = payload[at : at + same]
            at += same
            while number < size:
                joined[number] = head + payload[place : place + length] if length else head
                place += stride
                number += width
        elif length:
            while number < size:
                joined[number] = payload[place : place + length]
                place += stride
                number += width
        else:
            joined[int(column) :: int(width)] = values[other::others]
            other += 1
    return joined


def number_of(payload: bytes, ms: int, seq: int) -> i64:
    """Return which of a payload's entries has this ID; -1: none, ``UNKNOWN``: very great IDs."""
    run = Run(NO_NAMES)
    number = _take_ids(payload, run, (ms, seq), (ms, seq), 1, False, None)
    if number < 0:
        return UNKNOWN
    return number if run.ms else -1


def _take_ids(
    payload: bytes,
    run: Run,
    start: tuple[int, int],
    end: tuple[int, int],
    most: i64,
    reverse: bool,
    dead: bytearray | None,
) -> i64:
    """Set the IDs of ``run`` to those that ``unpack_some`` is asked for.

    Returns: the number of the first of them; -1 where an ID is too great to be read here.
    """
    if not reverse:
        return _take_from(payload, run, 0, start, end, most, dead)[0]
    low, high = _take_from(payload, None, 0, start, end, most, dead)
    if low < 0:
        return -1
    first = high
    while first > low and most:
        first -= 1
        if dead is None or not dead[first]:
            most -= 1
    _take_from(payload, run, first, start, end, high - first, None)
    return first


def _take_from(
    payload: bytes,
    run: Run | None,
    number: i64,
    start: tuple[int, int],
    end: tuple[int, int],
    most: i64,
    dead: bytearray | None,
) -> tuple[i64, i64]:
    """Give ``run`` IDs from ``start`` to ``end`` and from a number on, ``most`` of the living.

    Returns: the number of the first from ``start`` on, and that behind the last one taken, which
    without ``run`` is the last one up to ``end``; (-1, -1) where an ID is too great to be read.
    """
    low_ms: i64 = min(start[0], NUMBER_MAX)
    low_seq: i64 = min(start[1], NUMBER_MAX)
    high_ms: i64 = min(end[0], NUMBER_MAX)
    high_seq: i64 = min(end[1], NUMBER_MAX)
    all_ms = [] if run is None else run.ms
    all_seq = [] if run is None else run.seq
    size, at = _array(payload, 0)
    ms: i64 = 0
    seq: i64 = 0
    met: i64 = 0
    first: i64 = 0
    live: i64 = 0
    while 2 * met < size:
        pair = i64(read_i16_be(payload, at))
        if pair & _NO_PAIR == 0:
            delta = pair >> BYTE_BITS
            step = pair & BYTE
            at += 2
        else:
            delta, at = _number(payload, at)
            step, at = _number(payload, at)
            if delta < 0 or step < 0:
                return -1, -1
        if delta:
            ms += delta
            seq = step
        else:
            seq += step
        if ms >= NUMBER_MAX or seq >= NUMBER_MAX:
            return -1, -1
        if ms > high_ms or (ms == high_ms and seq > high_seq):
            break
        met += 1
        if ms < low_ms or (ms == low_ms and seq < low_seq):
            first = met
        elif run is not None and met > number:
            all_ms.append(int(ms))
            all_seq.append(int(seq))
            if dead is None or not dead[met - 1]:
                live += 1
                if live == most:
                    break
    return first, met


def _array(payload: bytes, at: i64) -> tuple[i64, i64]:
    """Return how many values the array at ``at`` has, and where the first one stands."""
    head: i64 = payload[at]
    if head < NIL:
        return head - FIX_ARRAY, at + 1
    if head == ARRAY_16:
        return i64(read_i16_be(payload, at + 1)) & TWO_BYTES, at + 3
    return i64(read_i32_be(payload, at + 1)) & UINT_32_MAX, at + 5


def _number(payload: bytes, at: i64) -> tuple[i64, i64]:
    """Return the number at ``at``, from 0 up, and where the next stands; -1: a very great one."""
    head: i64 = payload[at]
    if head < NIL:
        return head, at + 1
    if head == UINT_8:
        return payload[at + 1], at + 2
    if head == UINT_16:
        return i64(read_i16_be(payload, at + 1)) & TWO_BYTES, at + 3
    if head == UINT_32:
        return i64(read_i32_be(payload, at + 1)) & UINT_32_MAX, at + 5
    number = read_i64_be(payload, at + 1)
    return number if 0 <= number < NUMBER_MAX else -1, at + 9


def _length(payload: bytes, at: i64) -> tuple[i64, i64]:
    """Return the length at ``at``, which may be below 0, and where the next one stands."""
    head: i64 = payload[at]
    if head < INT_8:
        return _number(payload, at)
    if head >= NEGATIVE:
        return head - 0x100, at + 1
    if head == INT_8:
        return i64(payload[at + 1]) - 0x100, at + 2
    if head == INT_16:
        return i64(read_i16_be(payload, at + 1)), at + 3
    return i64(read_i32_be(payload, at + 1)), at + 5


def _pass_over(payload: bytes, at: i64, count: i64) -> i64:
    """Return where the value stands that is ``count`` texts and integers behind one."""
    while count:
        head: i64 = payload[at]
        if head == BIN_8:
            at += 2 + i64(payload[at + 1])
        elif head < NIL or head > INT_64:
            at += 1
        elif head >= UINT_8:
            at += 1 + (1 << (head & 3))
        elif head == BIN_16:
            at += 3 + (i64(read_i16_be(payload, at + 1)) & TWO_BYTES)
        else:
            at += 5 + (i64(read_i32_be(payload, at + 1)) & UINT_32_MAX)
        count -= 1
    return at


def _spell(flat: list[bytes], width: int, columns: list[int]) -> None:
    for column in columns:
        flat[column::width] = _to_json(flat[column::width])[1:-1].split(b",")
