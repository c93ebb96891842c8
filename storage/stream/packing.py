"""Sealing of blocks: the entries become one ``bytes``, as ``storage.stream.payload`` has it."""

from __future__ import annotations

from typing import Final, cast

from librt.strings import BytesWriter, write_i16_be, write_i64_be
from msgspec import MsgspecError, json
from msgspec.msgpack import Encoder
from mypy_extensions import i64

from headrace.storage.stream.payload import (
    APART,
    ARRAY_16,
    BIN_8,
    BIN_16,
    BYTE,
    BYTE_BITS,
    FIX_ARRAY,
    NUMBER_MAX,
    SHARED_MOST,
    TWO_BYTES,
    UINT_8,
    UINT_32_MAX,
    UINT_64,
)
from headrace.storage.stream.run import Run, has_names

_pack: Final = Encoder().encode
# JSON has one way to write an integer, the canonical one, and msgspec turns a hundred of them from
# text to numbers and back in C.
_to_json: Final = json.Encoder().encode
_from_json: Final = json.Decoder(list[int]).decode
_DIGITS_MAX: Final = 20  # of a 64-bit integer, its sign included
_SMALL_MAX: Final = 0x7F  # of a number that is one byte
_NEGATIVE_MIN: Final = -32  # likewise
_NEXT: Final = b"\x00\x01"  # of the same millisecond, one further
_FIX_ARRAY_MAX: Final = 15
_BIN_8_HEAD: Final = (BIN_8 << 8) - 2**16  # of none, as two bytes with a sign
_ENTRIES_APART: Final = 4  # with fewer, standing apart makes equally long values no shorter
_SHARED_MIN: Final = 8  # bytes at the beginning of all values of a field that stand once
_SHARED_PART: Final = 4  # and no less than this part of a value: putting it together takes time
_KEPT_BYTES: Final = 64 * 1024  # of the writer's buffer, beyond which it is not used again


class _Scratch:
    """The buffer in which payloads are written; one that has grown need not grow again."""

    def __init__(self) -> None:
        self.out = BytesWriter()


_scratch: Final = _Scratch()


def pack(run: Run) -> tuple[bytes, int]:
    """Return the payload of a run's entries, and how many bytes of it are the IDs."""
    out = _scratch.out
    out.truncate(0)
    _write_ids(out, run)
    ids_bytes = len(out)
    _write_values(out, run)
    payload = out.getvalue()
    if len(payload) > _KEPT_BYTES:
        _scratch.out = BytesWriter()
    return payload, ids_bytes


def _write_ids(out: BytesWriter, run: Run) -> None:
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
            write_i16_be(out, (delta << BYTE_BITS) | step)
        else:
            _write_number(out, delta)
            _write_number(out, step)
        if delta and ms == all_ms[-1]:
            left = size - 1 - number
            if all_seq[-1] - seq == left:  # as many IDs as entries: they are all there
                out.write(_NEXT * left)
                return


def _write_array_head(out: BytesWriter, size: int) -> None:
    if size <= _FIX_ARRAY_MAX:
        out.append(FIX_ARRAY | size)
    else:
        _write_long_head(out, ARRAY_16, size)


def _write_long_head(out: BytesWriter, kind: int, size: int) -> None:
    """Write a head whose size takes two bytes (``kind``) or four (the kind after it)."""
    if size <= TWO_BYTES:
        out.append(kind)
        out.append(size >> BYTE_BITS)
        out.append(size & BYTE)
    else:
        out.append(kind + 1)
        out.write(size.to_bytes(4, "big"))


def _write_number(out: BytesWriter, number: int) -> None:
    if number <= _SMALL_MAX:
        out.append(number)
    elif number <= BYTE:
        out.append(UINT_8)
        out.append(number)
    elif UINT_32_MAX < number < NUMBER_MAX:
        out.append(UINT_64)
        write_i64_be(out, number)
    else:
        out.write(_pack(number))


def _write_negative(out: BytesWriter, number: int) -> None:
    if number >= _NEGATIVE_MIN:
        out.append(0x100 + number)
    else:
        out.write(_pack(number))


def _write_texts(out: BytesWriter, texts: list[bytes]) -> None:
    _write_array_head(out, len(texts))
    for text in texts:
        _write_text_head(out, len(text))
        out.write(text)


def _write_text_head(out: BytesWriter, size: int) -> None:
    if size <= BYTE:
        write_i16_be(out, _BIN_8_HEAD + size)
    else:
        _write_long_head(out, BIN_16, size)


def _write_values(out: BytesWriter, run: Run) -> None:
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
    shared, own = _lengths(flat, len(names))
    values = _with_integers(flat, len(names), shared, own, columns)
    if not _is_any(shared) and not _is_any(own):
        own = []
    if columns:
        try:
            out.write(_pack(_with_columns(names, values, columns, shared, own)))
            return
        except OverflowError:  # an integer of more than 64 bits
            pass
    if own:
        _write_apart(out, names, flat, shared, own)
    else:
        out.append(FIX_ARRAY | 2)
        _write_texts(out, names)
        _write_texts(out, flat)


def _write_apart(
    out: BytesWriter, names: list[bytes], flat: list[bytes], shared: list[int], own: list[int]
) -> None:
    """Write the payload's second part, of values some equally long and none integers."""
    texts, others = _split(cast("list[object]", flat), shared, own)
    out.append(APART)
    _write_texts(out, names)
    lengths = _in_turn(shared, own)
    _write_array_head(out, len(lengths))
    for length in lengths:
        if length >= 0:
            _write_number(out, length)
        else:
            _write_negative(out, length)
    count = len(flat) // len(own)
    size = 0
    for column, length in enumerate(own):
        size += shared[column] + count * length
    _write_text_head(out, size)
    for text in texts:
        out.write(text)
    _write_texts(out, cast("list[bytes]", others))
    out.append(FIX_ARRAY)


def _with_columns(
    names: list[bytes], values: list[object], columns: list[int], shared: list[int], own: list[int]
) -> list[object]:
    if not own:
        return [names, values, columns]
    texts, others = _split(values, shared, own)
    return [names, _in_turn(shared, own), b"".join(texts), others, columns]


def _is_any(lengths: list[int]) -> bool:
    for length in lengths:
        if length:
            return True
    return False


def _in_turn(shared: list[int], own: list[int]) -> list[int]:
    lengths: list[int] = []
    for column, length in enumerate(own):
        if shared[column]:
            lengths.append(-shared[column])
        lengths.append(length)
    return lengths


def _split(
    values: list[object], shared: list[int], own: list[int]
) -> tuple[list[bytes], list[object]]:
    """Return what ``texts`` hold of the values in a row, and the values that are not in there."""
    texts: list[bytes] = []
    others: list[object] = []
    for column, same in enumerate(shared):
        if same:
            texts.append(cast("bytes", values[column])[:same])
    if not texts and 0 not in own:
        return cast("list[bytes]", values), others
    if len(texts) == len(own) and not _is_any(own):
        return texts, others
    column = 0
    for value in values:
        same = shared[column]
        if own[column]:
            text = cast("bytes", value)
            texts.append(text[same:] if same else text)
        elif not same:
            others.append(value)
        column += 1
        if column == len(own):
            column = 0
    return texts, others


def _lengths(flat: list[bytes], width: int) -> tuple[list[int], list[int]]:
    """Return how many bytes the values of each field share, and how many more each has.

    Both are 0 where the values are not equally long; both lists are empty with few entries.
    """
    size = len(flat)
    if size < _ENTRIES_APART * width:
        return [], []
    shared = [0] * width
    own = [0] * width
    once: i64 = 0
    for column in range(width):
        first = flat[column]
        length = len(first)
        number: i64 = column + width
        while number < size and flat[number] == first:
            number += width
        if number >= size:
            shared[column] = length
            once += length
            continue
        while number < size and len(flat[number]) == length:
            number += width
        if number >= size:
            same = _shared(flat, column, width) if length >= _SHARED_MIN else 0
            shared[column] = same
            own[column] = length - same
            once += same
    if once * (size // width) > SHARED_MOST:
        for column in range(width):
            own[column] += shared[column]
            shared[column] = 0
    return shared, own


def _shared(flat: list[bytes], column: int, width: int) -> int:
    """Return how many bytes a field's values share in front; 0 where that is little of them."""
    head = flat[column]
    least = max(_SHARED_MIN, len(head) // _SHARED_PART)
    for number in range(column + width, len(flat), width):
        value = flat[number]
        if not value.startswith(head):
            same: i64 = 0
            while value[same] == head[same]:
                same += 1
            if same < least:
                return 0
            head = head[:same]
    return len(head)


def _with_integers(
    flat: list[bytes], width: int, shared: list[int], own: list[int], columns: list[int]
) -> list[object]:
    """Return the values in a row, whole columns as integers; ``columns`` takes their numbers.

    These have no length: it is made 0. What is the same in all entries stays text.
    """
    values: list[object] = []
    for column in range(width):
        first = flat[column]
        if not first or first[0] > 0x39 or (first[0] < 0x30 and first[0] != 0x2D):
            continue
        if shared and shared[column] and not own[column]:
            continue
        numbers = _integers(flat[column::width])
        if numbers:
            if not columns:
                values.extend(flat)
            columns.append(column)
            values[column::width] = numbers
            if shared:
                shared[column] = 0
                own[column] = 0
    return values


def _integers(texts: list[bytes]) -> list[int]:
    """Return the integers that these texts spell canonically; none when one of them does not."""
    joined = b"[%b]" % b",".join(texts)
    if len(joined) > (_DIGITS_MAX + 1) * len(texts) + 1:
        return []
    try:
        numbers = _from_json(joined)
    except MsgspecError:
        return []
    return numbers if len(numbers) == len(texts) and _to_json(numbers) == joined else []
