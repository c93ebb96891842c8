"""PFADD and PFCOUNT in a pipeline, whatever keys they name: all at once."""

from __future__ import annotations

from typing import Final

from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, PackedReplies
from headrace.server.clients.session import NO_TOUCH
from headrace.server.commands.hyperloglog import counting  # noqa: F401  (the rows)
from headrace.server.commands.together import Reader, Values, read_alike
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import NONE_ALIKE, alike
from headrace.storage.string.hyperloglog.sketch import (
    add,
    add_to_dense,
    is_dense,
    is_sketch,
    known_estimate,
)
from headrace.storage.string.hyperloglog.sparse import Corrupted

_COUNT_WORDS: Final = 2  # of one key


@alike("PFADD", of_any_key=True)
def pfadd_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Elements of HyperLogLogs that are there, and were written into before."""
    if not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    values = Values(call, requests, end, writes=True)
    most = call.server.config.hll_sparse_max_bytes
    noted = call.notes_changes
    records: list[list[bytes]] = []
    last: object = None  # it has been looked at
    dense = False  # which it stays
    changes = 0
    out = Packer(call.session.resp3)
    at = first
    while at < end:
        words = requests[at]
        value = values.of(at)
        if not isinstance(value, bytearray):
            break
        if value is not last:
            if not is_sketch(value):
                break
            last = value
            dense = is_dense(value)
        try:
            raised = add_to_dense(value, words, 2) if dense else add(value, words, 2, most)
        except Corrupted:
            break
        if raised:
            changes += raised
            if noted:
                records.append(words)
        out.number(1 if raised else 0)
        at += 1
    call.changed_alike(records, 0, len(records), changes)
    return at - first, out.replies()


class _Estimate(Reader):
    """Estimates that are known; a sketch that is asked for again is not looked at again."""

    def __init__(self) -> None:
        self._last: object = None
        self._number: int | None = None

    def absent(self, out: Packer) -> None:
        out.number(0)

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        if not isinstance(value, bytearray):
            return False
        if value is not self._last:
            self._number = known_estimate(value) if is_sketch(value) else None
            self._last = value
        number = self._number
        if number is None:
            return False
        out.number(number)
        return True


@alike("PFCOUNT", of_any_key=True)
def pfcount_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Estimates that single HyperLogLogs hold."""
    if len(requests[first]) != _COUNT_WORDS or call.session.special & NO_TOUCH:
        return NONE_ALIKE, NO_REPLIES
    return read_alike(call, requests, first, end, _Estimate())
