"""Stream IDs: ``<ms>-<seq>``, both unsigned 64-bit, ordered as pairs and never as text."""

from __future__ import annotations

import datetime
from typing import Final

from pyspark_headrace.errors import OptionError

StreamID = tuple[int, int]

ID_MAX: Final = 2**64 - 1
LEAST: Final[StreamID] = (0, 0)
GREATEST: Final[StreamID] = (ID_MAX, ID_MAX)
SIGNED_MAX: Final = 2**63 - 1
MOST_MS: Final = SIGNED_MAX // 1000  # what a timestamp of Spark's can hold


def parse_id(text: str | bytes, missing_seq: int = 0) -> StreamID:
    """The ID that ``text`` writes.

    Args:
        missing_seq: the sequence of an ID that has only milliseconds.

    Raises:
        ValueError: it is none.
    """
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    first, dash, second = text.partition("-")
    if not (first.isdecimal() and first.isascii()):
        raise ValueError(f"{text!r} is no stream ID: <milliseconds>-<sequence> is wanted")
    if dash and not (second.isdecimal() and second.isascii()):
        raise ValueError(f"{text!r} is no stream ID: <milliseconds>-<sequence> is wanted")
    ms = int(first)
    seq = int(second) if dash else missing_seq
    if ms > ID_MAX or seq > ID_MAX:
        raise ValueError(f"{text!r} is no stream ID: its halves have 64 bits")
    return ms, seq


def format_id(stream_id: StreamID) -> str:
    """``<ms>-<seq>``."""
    return f"{stream_id[0]}-{stream_id[1]}"


def after(stream_id: StreamID) -> str:
    """A range's start behind an ID."""
    return "-" if stream_id == LEAST else f"({format_id(stream_id)}"


def upto(stream_id: StreamID) -> str:
    """A range's end at an ID."""
    return "+" if stream_id == GREATEST else format_id(stream_id)


def before(stream_id: StreamID) -> StreamID:
    """The greatest ID below; 0-0 stays what it is, for no entry can have it."""
    ms, seq = stream_id
    if seq:
        return ms, seq - 1
    return (ms - 1, ID_MAX) if ms else LEAST


def parse_moment(text: str, option: str) -> int:
    """Milliseconds since 1970: a number of them, or a time as ISO 8601 writes it (UTC by default).

    Raises:
        OptionError: it is neither.
    """
    if text.isdecimal() and text.isascii():
        return int(text)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(
            f"option {option}: {text!r} is neither milliseconds since 1970 nor a time such as "
            "2026-01-31T12:00:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return milliseconds(moment)


def milliseconds(moment: datetime.datetime) -> int:
    """A moment with a time zone in whole milliseconds since 1970, rounded down."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (moment - epoch) // datetime.timedelta(milliseconds=1)
