"""SETBIT, GETBIT and BITCOUNT in a pipeline, whatever keys they name: all at once."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.compat.numbers import parse_integer
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, PackedReplies
from headrace.server.commands.bitmaps import bits  # noqa: F401  (the rows)
from headrace.server.commands.together import Reader, Values, read_alike
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import NONE_ALIKE, alike
from headrace.storage.string.bits import count_bits, get_bit, set_bit

_COUNT_WORDS: Final = 2  # of all of a string


@alike("SETBIT", of_any_key=True)
def setbit_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Bits of strings that were written into before, and are long enough."""
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
        old = set_bit(value, place, bit)
        if old != bit:
            changes += 1
            if noted:
                records.append(words)
        out.number(old)
        at += 1
    call.changed_alike(records, 0, len(records), changes)
    return at - first, out.replies()


@alike("GETBIT", of_any_key=True)
def getbit_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Bits of strings that do not spell a number; there are zeros behind the end."""
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
            out.number(get_bit(value, offset))
            hits += 1
        at += 1
    call.count_reads(hits, at - first - hits)
    return at - first, out.replies()


class _Count(Reader):
    """How many bits are set."""

    def absent(self, out: Packer) -> None:
        out.number(0)

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        if not isinstance(value, (bytes, bytearray)):
            return False
        out.number(count_bits(value, 0, len(value)))
        return True


_count: Final = _Count()


@alike("BITCOUNT", of_any_key=True)
def bitcount_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """All bits of strings that do not spell a number."""
    if len(requests[first]) != _COUNT_WORDS:
        return NONE_ALIKE, NO_REPLIES
    return read_alike(call, requests, first, end, _count)
