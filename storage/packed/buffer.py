"""A buffer in which pieces are put together: one for all, because it is made into bytes at once."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_f64_le
from mypy_extensions import i64

_SCORE_BYTES: Final[i64] = 8
KEPT_BYTES: Final = 1 << 16  # of the buffer, at most, once it has been used


class _Kept:
    """A buffer that is used again and again, unless it has become large."""

    def __init__(self) -> None:
        self._out = BytesWriter()

    def empty(self) -> BytesWriter:
        """The buffer, with nothing in it."""
        out = self._out
        if len(out) > KEPT_BYTES:
            out = BytesWriter()
            self._out = out
        out.truncate(0)
        return out


_first: Final = _Kept()
_second: Final = _Kept()


def empty_buffer() -> BytesWriter:
    """The buffer, with nothing in it."""
    return _first.empty()


def other_buffer() -> BytesWriter:
    """Another one, for what is put together at the same time."""
    return _second.empty()


def with_score(piece: bytes, place: i64, score: float) -> bytes:
    """A piece with another double at a place, where it has one."""
    out = empty_buffer()
    out.write(piece)
    write_f64_le(out, score)
    end: i64 = len(piece)
    at: i64 = 0
    while at < _SCORE_BYTES:
        out[place + at] = out[end + at]
        at += 1
    out.truncate(end)
    return out.getvalue()
