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
For example the entries 5-0 a=x b=10 and 5-1 a=yy b=20 are ``[5, 0, 0, 1]`` and
``[["a", "b"], ["x", 10, "yy", 20], [1]]``; with more entries and a field c=north, c=south it would
be ``[["a", "b", "c"], [0, 0, 5], "northsouth..", ["x", 10, "yy", 20, ..], [1]]``.
"""

from __future__ import annotations

from typing import Final, cast

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_i16_be,
    write_i64_be,
)
from msgspec import MsgspecError, json
from msgspec.msgpack import Decoder, Encoder
from mypy_extensions import i64

from storage.stream.run import NO_NAMES, Run, has_names

_pack: Final = Encoder().encode
_unpack: Final = Decoder().decode
# JSON has one way to write an integer, the canonical one, and msgspec turns a hundred of them from
# text to numbers and back in C.
_to_json: Final = json.Encoder().encode
_from_json: Final = json.Decoder(list[int]).decode
_DIGITS_MAX: Final = 20  # of a 64-bit integer, its sign included
UNKNOWN: Final = -2
_NUMBER_MAX: Final = 2**61  # what is above may be no i64 in sums
_BYTE: Final = 0xFF
_TWO_BYTES: Final = 0xFFFF
_BYTE_BITS: Final = 8
_SMALL_MAX: Final = 0x7F  # of a number that is one byte
_NO_PAIR: Final = 0x8080  # of two bytes one, or both, are no small number
_NEXT: Final = b"\x00\x01"  # of the same millisecond, one further
# How a msgpack value begins.
_FIX_ARRAY: Final = 0x90
_APART: Final = _FIX_ARRAY | 5  # of values of which some are equally long
_FIX_ARRAY_MAX: Final = 15
_NIL: Final = 0xC0
_BIN_8: Final = 0xC4
_BIN_8_HEAD: Final = (_BIN_8 << 8) - 2**16  # of none, as two bytes with a sign
_BIN_16: Final = 0xC5
_UINT_8: Final = 0xCC
_UINT_16: Final = 0xCD
_UINT_32: Final = 0xCE
_UINT_32_MAX: Final = 0xFFFF_FFFF
_UINT_64: Final = 0xCF
_INT_64: Final = 0xD3
_ARRAY_16: Final = 0xDC
_ARRAY_32: Final = b"\xdd"
_INTEGERS: Final = -1  # no length: the values of the field are integers
_ENTRIES_APART: Final = 4  # with fewer, equally long values are no shorter for standing apart
_KEPT_BYTES: Final = 64 * 1024  # of the writer's buffer, beyond which it is not used again


class _Scratch:
    """What payloads are written in: a buffer that has grown need not grow again."""

    def __init__(self) -> None:
        self.out = BytesWriter()


_scratch: Final = _Scratch()


def pack(run: Run) -> tuple[bytes, int]:
    """The payload of a run's entries, and how many bytes of it are the IDs."""
    out = _scratch.out
    out.truncate(0)
    _write_ids(out, run)
    ids_bytes = len(out)
    _write_values(out, run)
    payload = out.getvalue()
    if len(payload) > _KEPT_BYTES:
        _scratch.out = BytesWriter()
    return payload, ids_bytes


def unpack(payload: bytes, ids_bytes: int) -> Run:
    """The entries of a payload."""
    body = cast("list[object]", _unpack(memoryview(payload)[ids_bytes:]))
    if body[0] is None:
        run = Run(None)
        run.rows = cast("list[list[bytes]]", body[1])
    else:
        names = cast("list[bytes]", body[0])
        run = Run(names)
        if len(body) == 5:
            run.flat = cast("list[bytes]", _joined(body, count_ids(payload)))
        else:
            run.flat = cast("list[bytes]", body[1])
        if len(body) > 2:
            _spell(run.flat, len(names), cast("list[int]", body[-1]))
    unpack_ids(payload, ids_bytes, run)
    return run


def _joined(body: list[object], count: int) -> list[object]:
    """The values in a row of ``count`` entries, of which some stand in ``texts``.

    Raises:
        ValueError: not as long as ``lengths`` says.
    """
    lengths = cast("list[int]", body[1])
    texts = cast("bytes", body[2])
    if min(lengths) < 0 or len(texts) != count * sum(lengths):
        raise ValueError("texts that are not as long as they should be")
    return _join(texts, 0, lengths, count, cast("list[object]", body[3]))


def unpack_ids(payload: bytes, ids_bytes: int, run: Run) -> None:
    """Give ``run`` the IDs of a payload."""
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
    """How many entries a payload holds."""
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
    """The ``most`` entries from ``start`` to ``end``, or the last of those if ``reverse``.

    The others are passed over, which costs a fraction of making them. Those that ``dead`` tells of,
    a byte for each entry of the payload, are there and do not count.

    Returns: None where entries have other names than their neighbours, or very great IDs.
    """
    names_at = ids_bytes + 1
    if payload[names_at] == _NIL:
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
    if payload[ids_bytes] == _APART:
        values = _some_apart(payload, values_at, first, size)
    else:
        values = _some_values(payload, values_at, first * width, size * width)
    columns = [column for column in range(int(width)) if isinstance(values[column], int)]
    run.flat = cast("list[bytes]", values)
    _spell(run.flat, int(width), columns)
    return run


def _some_values(payload: bytes, at: i64, first: i64, size: i64) -> list[object]:
    """``size`` values from number ``first`` on of the array at ``at``."""
    at = _pass_over(payload, _array(payload, at)[1], first)
    packed = payload[at : _pass_over(payload, at, size)]
    return cast("list[object]", _unpack(_ARRAY_32 + int(size).to_bytes(4, "big") + packed))


def _some_apart(payload: bytes, at: i64, first: i64, count: i64) -> list[object]:
    """The values of ``count`` entries from number ``first`` on; ``at`` is where lengths stand."""
    lengths: list[int] = []
    left, at = _array(payload, at)
    others: i64 = left
    stride: i64 = 0
    while left:
        length, at = _number(payload, at)
        lengths.append(int(length))
        if length:
            others -= 1
            stride += length
        left -= 1
    values: list[object] = []
    if others:
        values = _some_values(payload, _pass_over(payload, at, 1), first * others, count * others)
    head: i64 = payload[at]
    at += 1 + (1 << (head - _BIN_8))
    return _join(payload, at + first * stride, lengths, count, values)


def _join(
    texts: bytes, at: i64, lengths: list[int], count: i64, values: list[object]
) -> list[object]:
    """The values of ``count`` entries in a row: those with a length out of ``texts[at:]``."""
    joined: list[object] = []
    other: i64 = 0
    while count:
        for length in lengths:
            if length:
                end = at + length
                joined.append(texts[at:end])
                at = end
            else:
                joined.append(values[other])
                other += 1
        count -= 1
    return joined


def number_of(payload: bytes, ms: int, seq: int) -> i64:
    """Which of a payload's entries has this ID; -1 for none, ``UNKNOWN`` with very great IDs."""
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
    """Give ``run`` the IDs that ``unpack_some`` is asked for; the number of the first of them.

    Returns: -1 where an ID is too great to be told.
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
        without ``run`` is the last one up to ``end``; (-1, -1) where an ID is too great to be told.
    """
    low_ms: i64 = min(start[0], _NUMBER_MAX)
    low_seq: i64 = min(start[1], _NUMBER_MAX)
    high_ms: i64 = min(end[0], _NUMBER_MAX)
    high_seq: i64 = min(end[1], _NUMBER_MAX)
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
            delta = pair >> _BYTE_BITS
            step = pair & _BYTE
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
        if ms >= _NUMBER_MAX or seq >= _NUMBER_MAX:
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
    """How many values the array at ``at`` has, and where the first one stands."""
    head: i64 = payload[at]
    if head < _NIL:
        return head - _FIX_ARRAY, at + 1
    if head == _ARRAY_16:
        return i64(read_i16_be(payload, at + 1)) & 0xFFFF, at + 3
    return i64(read_i32_be(payload, at + 1)) & 0xFFFFFFFF, at + 5


def _number(payload: bytes, at: i64) -> tuple[i64, i64]:
    """The number at ``at``, not below 0, and where the next one stands; -1 for a very great one."""
    head: i64 = payload[at]
    if head < _NIL:
        return head, at + 1
    if head == _UINT_8:
        return payload[at + 1], at + 2
    if head == _UINT_16:
        return i64(read_i16_be(payload, at + 1)) & 0xFFFF, at + 3
    if head == _UINT_32:
        return i64(read_i32_be(payload, at + 1)) & 0xFFFFFFFF, at + 5
    number = read_i64_be(payload, at + 1)
    return number if 0 <= number < _NUMBER_MAX else -1, at + 9


def _pass_over(payload: bytes, at: i64, count: i64) -> i64:
    """Where the value stands that is ``count`` texts and integers behind the one at ``at``."""
    while count:
        head: i64 = payload[at]
        if head == _BIN_8:
            at += 2 + i64(payload[at + 1])
        elif head < _NIL or head > _INT_64:
            at += 1
        elif head >= _UINT_8:
            at += 1 + (1 << (head & 3))
        elif head == _BIN_16:
            at += 3 + (i64(read_i16_be(payload, at + 1)) & 0xFFFF)
        else:
            at += 5 + (i64(read_i32_be(payload, at + 1)) & 0xFFFFFFFF)
        count -= 1
    return at


def _write_ids(out: BytesWriter, run: Run) -> None:
    """The payload's first part, of IDs that ascend."""
    all_ms = run.ms
    all_seq = run.seq
    size = len(all_ms)
    _write_array_head(out, 2 * size)
    last_ms = 0
    last_seq = 0
    for number, ms in enumerate(all_ms):
        seq = all_seq[number]
        delta = ms - last_ms
        step = seq if delta else seq - last_seq
        last_ms = ms
        last_seq = seq
        if delta <= _SMALL_MAX and step <= _SMALL_MAX:
            write_i16_be(out, (delta << _BYTE_BITS) | step)
        else:
            _write_number(out, delta)
            _write_number(out, step)
        if delta and ms == all_ms[-1]:
            left = size - 1 - number
            if all_seq[-1] - seq == left:  # as many IDs as entries: they are all there
                out.write(_NEXT * left)
                return


def _write_array_head(out: BytesWriter, size: int) -> None:
    """The head of an array of ``size`` values."""
    if size <= _FIX_ARRAY_MAX:
        out.append(_FIX_ARRAY | size)
    else:
        _write_long_head(out, _ARRAY_16, size)


def _write_long_head(out: BytesWriter, kind: int, size: int) -> None:
    """A head whose size takes two bytes, which ``kind`` says, or four, which the next one says."""
    if size <= _TWO_BYTES:
        out.append(kind)
        out.append(size >> _BYTE_BITS)
        out.append(size & _BYTE)
    else:
        out.append(kind + 1)
        out.write(size.to_bytes(4, "big"))


def _write_number(out: BytesWriter, number: int) -> None:
    """A number, not below 0."""
    if number <= _SMALL_MAX:
        out.append(number)
    elif number <= _BYTE:
        out.append(_UINT_8)
        out.append(number)
    elif _UINT_32_MAX < number < _NUMBER_MAX:
        out.append(_UINT_64)
        write_i64_be(out, number)
    else:
        out.write(_pack(number))


def _write_texts(out: BytesWriter, texts: list[bytes]) -> None:
    """An array of texts."""
    _write_array_head(out, len(texts))
    for text in texts:
        _write_text_head(out, len(text))
        out.write(text)


def _write_text_head(out: BytesWriter, size: int) -> None:
    """The head of a text of ``size`` bytes."""
    if size <= _BYTE:
        write_i16_be(out, _BIN_8_HEAD + size)
    else:
        _write_long_head(out, _BIN_16, size)


def _write_values(out: BytesWriter, run: Run) -> None:
    """The payload's second part."""
    names = run.names
    flat = run.flat
    if names is None:
        rows = run.rows
        names = rows[0][0::2]
        for row in rows:
            if not has_names(row, 0, names):
                out.write(_pack([None, rows]))
                return
        flat = []
        for row in rows:
            for number in range(1, len(row), 2):
                flat.append(row[number])
    columns: list[int] = []
    values = _with_integers(flat, len(names), columns)
    lengths = _lengths(flat, len(names), columns)
    if columns:
        try:
            out.write(_pack(_with_columns(names, values, columns, lengths)))
            return
        except OverflowError:  # an integer of more than 64 bits
            pass
    if lengths:
        _write_apart(out, names, flat, lengths)
    else:
        out.append(_FIX_ARRAY | 2)
        _write_texts(out, names)
        _write_texts(out, flat)


def _write_apart(
    out: BytesWriter, names: list[bytes], flat: list[bytes], lengths: list[int]
) -> None:
    """The payload's second part, of values of which some are equally long and none integers."""
    texts, others = _split(cast("list[object]", flat), lengths)
    out.append(_APART)
    _write_texts(out, names)
    _write_array_head(out, len(lengths))
    stride: i64 = 0
    for length in lengths:
        _write_number(out, length)
        stride += length
    _write_text_head(out, int(len(flat) // len(lengths) * stride))
    for text in texts:
        out.write(text)
    _write_texts(out, cast("list[bytes]", others))
    out.append(_FIX_ARRAY)


def _with_columns(
    names: list[bytes], values: list[object], columns: list[int], lengths: list[int]
) -> list[object]:
    """The payload's second part, of values of which some are integers."""
    if not lengths:
        return [names, values, columns]
    texts, others = _split(values, lengths)
    return [names, lengths, b"".join(texts), others, columns]


def _split(values: list[object], lengths: list[int]) -> tuple[list[bytes], list[object]]:
    """The values of the fields that have a length, and those of the others."""
    if 0 not in lengths:
        return cast("list[bytes]", values), []
    width = len(lengths)
    texts: list[object] = []
    others: list[object] = []
    for number, value in enumerate(values):
        (texts if lengths[number % width] else others).append(value)
    return cast("list[bytes]", texts), others


def _lengths(flat: list[bytes], width: int, columns: list[int]) -> list[int]:
    """The length that all values of a field have; 0 for none, and where they are integers.

    Returns: one for each field; empty where none has one, or with few entries.
    """
    size = len(flat)
    if size < _ENTRIES_APART * width:
        return []
    lengths = [0] * width
    for column in columns:
        lengths[column] = _INTEGERS
    some = False
    for column in range(width):
        if lengths[column] == _INTEGERS:
            lengths[column] = 0
            continue
        length = len(flat[column])
        number: i64 = column
        while number < size and len(flat[number]) == length:
            number += width
        if length and number >= size:
            lengths[column] = length
            some = True
    return lengths if some else []


def _with_integers(flat: list[bytes], width: int, columns: list[int]) -> list[object]:
    """The values in a row, those of whole columns as integers; ``columns`` takes their numbers."""
    values: list[object] = []
    for column in range(width):
        first = flat[column]
        if not first or first[0] > 0x39 or (first[0] < 0x30 and first[0] != 0x2D):
            continue
        numbers = _integers(flat[column::width])
        if numbers:
            if not columns:
                values.extend(flat)
            columns.append(column)
            values[column::width] = numbers
    return values


def _integers(texts: list[bytes]) -> list[int]:
    """The integers that these texts spell canonically; none when one of them does not."""
    joined = b"[%b]" % b",".join(texts)
    if len(joined) > (_DIGITS_MAX + 1) * len(texts) + 1:
        return []
    try:
        numbers = _from_json(joined)
    except MsgspecError:
        return []
    return numbers if len(numbers) == len(texts) and _to_json(numbers) == joined else []


def _spell(flat: list[bytes], width: int, columns: list[int]) -> None:
    """Turn the integers in these columns back into texts."""
    for column in columns:
        flat[column::width] = _to_json(flat[column::width])[1:-1].split(b",")
