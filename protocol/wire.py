"""The bytes of single items: strings, integers, IDs of entries, the lines that open an aggregate.

Only ``protocol`` writes with these, and ``persistence`` into its files. All others name values.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_le, write_i32_le
from mypy_extensions import i16, i32, i64

from headrace.protocol.sequences import ALL_BELOW, SequenceTexts

# ``$0\r\n`` with the lowest byte first; a digit is added to the second byte.
_DOLLAR_LINE: Final[i64] = 0x0A0D3024
_END_OF_LINE: Final[i16] = 0x0A0D
_COLON: Final = 0x3A
_COLON_LINE: Final[i64] = 0x0A0D303A  # ``:0\r\n``, likewise
_BULK_HEADERS: Final = [b"$%d\r\n" % n for n in range(1024)]
_ARRAY_HEADERS: Final = [b"*%d\r\n" % n for n in range(256)]
DECIMALS: Final = [b"%d" % n for n in range(1000)]
THOUSANDTHS: Final = [b"%03d" % n for n in range(1000)]
WORD_MAX: Final = 2**62 - 1  # what is above may be no machine word
_line: Final = BytesWriter()  # of one integer
_INTEGERS: Final = [b":%d\r\n" % n for n in range(1024)]


def bulk(data: bytes) -> bytes:
    """Return one bulk string, whole."""
    size = len(data)
    if size < 1024:
        return b"%b%b\r\n" % (_BULK_HEADERS[size], data)
    return b"$%d\r\n%b\r\n" % (size, data)


def write_bulk(out: BytesWriter, data: bytes) -> None:
    """Append ``bulk(data)`` to ``out``."""
    size: i64 = len(data)
    if size < 10:
        write_i32_le(out, i32(_DOLLAR_LINE + (size << 8)))
    else:
        out.write(bulk_header(int(size)))
    out.write(data)
    write_i16_le(out, _END_OF_LINE)


def write_integer(out: BytesWriter, number: int) -> None:
    """Append an integer to ``out``."""
    if 0 <= number < 10:
        write_i32_le(out, i32(_COLON_LINE + (i64(number) << 8)))
    elif 0 <= number < 1024:
        out.write(_INTEGERS[number])
    else:
        out.append(_COLON)
        if 0 <= number <= WORD_MAX:
            write_digits(out, number)
        else:
            out.write(b"%d" % number)
        write_i16_le(out, _END_OF_LINE)


def write_digits(out: BytesWriter, number: i64) -> None:
    """Append a number that is not negative to ``out``, and nothing else."""
    if number < 1000:
        out.write(DECIMALS[number])
    elif number < 10_000:
        write_i32_le(out, four_digits(number))
    else:
        write_digits(out, number // 10_000)
        write_i32_le(out, four_digits(number % 10_000))


def four_digits(number: i64) -> i32:
    """Return the digits of a number below 10,000, one a byte, the first one lowest."""
    hundreds = number * 5243 >> 19  # a hundredth, without a division
    pairs = hundreds | (number - 100 * hundreds) << 16
    tens = pairs * 103 >> 10 & 0x000F000F  # a tenth of both at once
    return i32(tens | (pairs - 10 * tens) << 8 | 0x30303030)


def integer(number: int) -> bytes:
    """Return one integer, whole."""
    if 0 <= number < 1024:
        return _INTEGERS[number]
    _line.truncate(0)
    write_integer(_line, number)
    return _line.getvalue()


def null(resp3: bool) -> bytes:
    """Return the line that stands for no value."""
    return b"_\r\n" if resp3 else b"$-1\r\n"


def null_array(resp3: bool) -> bytes:
    """Return the line that stands for no array."""
    return b"_\r\n" if resp3 else b"*-1\r\n"


def map_header(size: int, resp3: bool) -> bytes:
    """Return the line that opens a map of ``size`` pairs, which follow flat."""
    return b"%%%d\r\n" % size if resp3 else array_header(2 * size)


def set_header(size: int, resp3: bool) -> bytes:
    """Return the line that opens a set of ``size`` items."""
    return b"~%d\r\n" % size if resp3 else array_header(size)


def bulk_header(size: int) -> bytes:
    """Return the line that opens a bulk string of ``size`` bytes."""
    return _BULK_HEADERS[size] if size < 1024 else b"$%d\r\n" % size


def array_header(size: int) -> bytes:
    """Return the line that opens an array of ``size`` items."""
    return _ARRAY_HEADERS[size] if size < 256 else b"*%d\r\n" % size


_LINE_END: Final = b"\r\n"
_sequences: Final = SequenceTexts(_LINE_END)
_SEQUENCE_LINES: Final = _sequences.low


class _Writer:
    """Writes IDs; keeps the texts of the last second and millisecond, which the next may share."""

    def __init__(self) -> None:
        self._head = b""  # a bulk string's header, the milliseconds of ``_head_ms``
        self._head_ms = -1
        self._head_tail = 0  # for what follows, of this length
        self._second: i64 = 0
        self._second_text = b""

    def line(self, ms: int, seq: int) -> bytes:
        tail = _SEQUENCE_LINES[seq] if seq < ALL_BELOW else _sequences.far(seq)
        if ms != self._head_ms or len(tail) != self._head_tail:
            text = b"%d" % ms
            self._head = bulk_header(len(text) + len(tail) - len(_LINE_END)) + text
            self._head_ms = ms
            self._head_tail = len(tail)
        return self._head + tail

    def write_to(self, out: BytesWriter, ms: int, seq: int) -> None:
        tail = _SEQUENCE_LINES[seq] if seq < ALL_BELOW else _sequences.far(seq)
        if not 1000 <= ms <= WORD_MAX:
            text = DECIMALS[ms] if ms < 1000 else b"%d" % ms
            out.write(bulk_header(len(text) + len(tail) - len(_LINE_END)))
            out.write(text)
            out.write(tail)
            return
        second = i64(ms) // 1000
        if second != self._second:
            self._second_text = b"%d" % int(second)
            self._second = second
        head = self._second_text
        out.write(bulk_header(len(head) + 3 + len(tail) - len(_LINE_END)))
        out.write(head)
        out.write(THOUSANDTHS[i64(ms) - 1000 * second])
        out.write(tail)


_writer: Final = _Writer()


def id_line(ms: int, seq: int) -> bytes:
    """Return one ID, whole."""
    return _writer.line(ms, seq)


def id_lines(ms: int, seq: int, count: int, step: int) -> bytes:
    """Return ``count`` IDs in a row, the first (ms, seq) and the others ``step`` apart."""
    text = b"%d" % ms
    stretches: list[bytes] = []
    end = seq + count * step
    power = 10
    while seq < end:
        while power <= seq:
            power *= 10
        stop = min(end, power)  # up to there all are of one length
        tails = _sequences.some(seq, stop, step)
        head = bulk_header(len(text) + len(tails[0]) - 2) + text
        stretches.append(head + head.join(tails))
        seq += len(tails) * step
    return b"".join(stretches)


def write_id(out: BytesWriter, ms: int, seq: int) -> None:
    """Append an ID to ``out``."""
    _writer.write_to(out, ms, seq)
