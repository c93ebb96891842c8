"""IDs of entries as bulk strings: ``<ms>-<seq>``, alike in RESP2 and RESP3."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from headrace.protocol.sequences import ALL_BELOW, SequenceTexts
from headrace.protocol.wire import DECIMALS, THOUSANDTHS, WORD_MAX, bulk_header

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
    """One ID, whole."""
    return _writer.line(ms, seq)


def id_lines(ms: int, seq: int, count: int, step: int) -> bytes:
    """``count`` IDs in a row, the first (ms, seq) and the others ``step`` apart."""
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
