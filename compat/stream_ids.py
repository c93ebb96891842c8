"""Stream IDs as text, as Redis writes them and, lenient in odd ways, reads them.

``<ms>-<seq>``, both unsigned 64-bit. A half is read as a canonical integer, and failing that as
C's strtoull reads it: leading white space, a sign and leading zeros are then allowed, so ``+9-1``
is 9-1, while ``1--5`` is refused because -5 is canonical and negative. A NUL ends the text.
Source: t_stream.c, streamGenericParseIDOrReply, and util.c, string2ull.
"""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64

from headrace.protocol.sequences import ALL_BELOW, SequenceTexts

ID_MAX: Final = 2**64 - 1
MOST_BYTES: Final = 127
PLAIN_DIGITS: Final = 18  # surely no overflow of 64 bits
_DASH: Final = 0x2D
_ZERO: Final = 0x30
_STRTOULL: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?)([0-9]+)")
_sequences: Final = SequenceTexts(b"")
_SEQUENCES: Final = _sequences.low


class _Writer:
    """Writes IDs; the text of the last millisecond is kept, because the next ID may share it."""

    def __init__(self) -> None:
        self._ms = 0
        self._text = b"0"

    def write(self, ms: int, seq: int) -> bytes:
        if ms != self._ms:
            self._text = b"%d" % ms
            self._ms = ms
        return self._text + (_SEQUENCES[seq] if seq < ALL_BELOW else _sequences.far(seq))


_writer: Final = _Writer()


def format_id(ms: int, seq: int) -> bytes:
    """Return ``<ms>-<seq>``."""
    return _writer.write(ms, seq)


def parse_id(text: bytes, missing_seq: int = 0) -> tuple[int, int] | None:
    """Return the (ms, seq) that ``text`` writes, or None; the strict form, without ``-`` and ``+``.

    ``missing_seq`` is the sequence of an ID that gives only its milliseconds.
    """
    ms, seq = plain_id(text)
    if ms >= 0:
        return int(ms), int(seq) if seq >= 0 else missing_seq
    if len(text) > MOST_BYTES:
        return None
    if 0 in text:
        text = text[: text.index(b"\0")]
    first, dash, second = text.partition(b"-")
    first_half = _unsigned(first)
    if first_half < 0:
        return None
    if not dash:
        return first_half, missing_seq
    second_half = _unsigned(second)
    return None if second_half < 0 else (first_half, second_half)


def plain_id(text: bytes) -> tuple[i64, i64]:
    """Return the ID written in the usual way: digits, a dash and digits; else (-1, -1).

    Zeros may stand in front of both, as where IDs are written with a fixed number of digits. The
    sequence is -1, too, where there are digits and no dash. Compiled, this takes a tenth of the
    time of the general way.
    """
    size: i64 = len(text)
    if size > MOST_BYTES:
        return -1, -1
    at: i64 = 0
    while at < size and text[at] == _ZERO:
        at += 1
    end = at + PLAIN_DIGITS  # of what may follow the zeros in front
    ms: i64 = 0
    while at < size:
        char: i64 = text[at]
        if char < 0x30 or char > 0x39 or at >= end:
            break
        ms = ms * 10 + char - 0x30
        at += 1
    if at == size:
        return (ms, -1) if size else (-1, -1)
    if at == 0 or text[at] != _DASH:
        return -1, -1
    at += 1
    if at == size:
        return -1, -1
    while at < size and text[at] == _ZERO:
        at += 1
    if size - at > PLAIN_DIGITS:
        return -1, -1
    seq: i64 = 0
    while at < size:
        last: i64 = text[at]
        if last < 0x30 or last > 0x39:
            return -1, -1
        seq = seq * 10 + last - 0x30
        at += 1
    return ms, seq


def _unsigned(text: bytes) -> int:
    if text.isdigit() and len(text) < 20:
        return int(text)
    canonical = text[:1] == b"-" and text[1:].isdigit() and text[1] != 0x30
    if canonical and int(text) >= -(2**63):
        return -1
    found = _STRTOULL.fullmatch(text)
    if found is None:
        return -1
    number = int(found[2])
    if number > ID_MAX:
        return -1
    return (ID_MAX + 1 - number) % (ID_MAX + 1) if found[1] == b"-" else number
