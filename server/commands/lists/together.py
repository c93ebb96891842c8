"""Pushes, pops and reads of lists in a pipeline, whatever keys they name: all at once."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.compat.numbers import parse_integer
from headrace.protocol.packing import ArraysOfStrings, Packer
from headrace.protocol.replies import NO_REPLIES, PackedReplies
from headrace.server.commands.lists import popping, pushing, reading  # noqa: F401  (the rows)
from headrace.server.commands.lists.values import range_of
from headrace.server.commands.together import Reader, Values, read_alike
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike
from headrace.storage.list.list import List

_POP_WORDS: Final = 2  # without a count


@alike("LPUSH", of_any_key=True)
def lpush_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Elements in front of lists that are there, or are made."""
    return _push_alike(call, requests, first, end, False)


@alike("RPUSH", of_any_key=True)
def rpush_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Elements behind lists that are there, or are made."""
    return _push_alike(call, requests, first, end, True)


def _push_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int, right: bool
) -> tuple[int, PackedReplies]:
    server = call.server
    if not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    values = Values(call, requests, end, writes=True)
    limits = server.data.list_limits
    out = Packer(call.session.resp3)
    at = first
    while at < end:
        words = requests[at]
        value = values.of(at)
        if value is None:
            if server.changes.expired:
                break
            value = List()
            call.db.put(words[1], value, call.now_ms)
            values.made(value)
        elif not isinstance(value, List):
            break
        value.push(words, 2, right, limits)
        out.number(int(value.length()))
        at += 1
    call.changed_alike(requests, first, at, (len(requests[first]) - 2) * (at - first))
    return at - first, out.replies()


@alike("LPOP", of_any_key=True)
def lpop_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """First elements of lists, which go with their last one."""
    return _pop_alike(call, requests, first, end, False)


@alike("RPOP", of_any_key=True)
def rpop_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Last elements of lists, which go with their last one."""
    return _pop_alike(call, requests, first, end, True)


def _pop_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int, right: bool
) -> tuple[int, PackedReplies]:
    """A request for a key that is not there is answered as well, but leaves no record."""
    server = call.server
    if len(requests[first]) != _POP_WORDS or not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    values = Values(call, requests, end, writes=True)
    limits = server.data.list_limits
    noted = call.notes_changes
    records: list[list[bytes]] = []
    popped = 0
    out = Packer(call.session.resp3)
    at = first
    while at < end:
        value = values.of(at)
        if value is None:
            if server.changes.expired:
                break
            out.null()
        elif isinstance(value, List):
            out.text(value.pop(right, limits))
            if value.is_empty():
                call.db.remove(requests[at][1])
                values.made(None)
            popped += 1
            if noted:
                records.append(requests[at])
        else:
            break
        at += 1
        if out.wire_bytes() >= ALIKE_BYTES:
            break
    call.changed_alike(records, 0, len(records), popped)
    return at - first, out.replies()


class _Element(Reader):
    """The element at an index."""

    def absent(self, out: Packer) -> None:
        out.null()

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        number = parse_integer(words[2])
        if number is None or not isinstance(value, List):
            return False
        index: i64 = number
        size = value.length()
        if index < 0:
            index += size
        if 0 <= index < size:
            out.text(value.get(index))
        else:
            out.null()
        return True


_element: Final = _Element()


@alike("LINDEX", of_any_key=True)
def lindex_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Single elements of lists."""
    return read_alike(call, requests, first, end, _element)


@alike("LRANGE", of_any_key=True)
def lrange_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Elements of lists, put together in one go."""
    values = Values(call, requests, end)
    out = ArraysOfStrings()
    hits = 0
    at = first
    while at < end:
        words = requests[at]
        low = parse_integer(words[2])
        high = parse_integer(words[3])
        if low is None or high is None:
            break
        value = values.of(at)
        if value is None:
            if call.reports_misses():
                break
            out.array(0)
        else:
            if not isinstance(value, List):
                break
            start, count = range_of(low, high, value.length())
            out.array(int(count))
            if count:
                value.add_packed(out.pieces, start, count)
            hits += 1
        at += 1
        if out.wire_bytes() >= ALIKE_BYTES:
            break
    call.count_reads(hits, at - first - hits)
    return at - first, out.replies()
