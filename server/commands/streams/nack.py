"""XNACK: hand pending entries back to the group.

A released entry has no consumer. It is the first to be claimed, before all that is idle.
Source: t_stream.c, xnackCommand.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import (
    XNACK_IDS_EXPECTED,
    XNACK_MODE,
    XNACK_NUMIDS,
    XNACK_NUMIDS_MISMATCH,
    XNACK_RETRYCOUNT,
    CommandError,
    unrecognized_xnack_option,
)
from headrace.compat.numbers import parse_integer
from headrace.server.commands.streams.args import integer, stream_at, strict_ids
from headrace.server.commands.streams.events import PENDING_RELEASED
from headrace.server.commands.streams.group_args import group_of, refuse_elsewhere
from headrace.server.dispatch.call import Call
from headrace.storage.stream.groups import Group
from headrace.storage.stream.nack import COUNT_MAX, Nack
from headrace.storage.stream.stream import Stream

_MODES: Final = (b"silent", b"fail", b"fatal")
AS_THE_MODE: Final = -1
_NUMIDS_MAX: Final = 2**31 - 1


class _Options:
    """What XNACK asks for; ``count`` is the delivery count to set, or ``AS_THE_MODE``."""

    def __init__(self, mode: bytes) -> None:
        self.mode: Final = mode
        self.ids: list[bytes] = []
        self.count = AS_THE_MODE
        self.force = False


def xnack(call: Call) -> object:
    """Give entries back to their group.

    SILENT takes the delivery back, FAIL counts it, FATAL sets the count to the greatest there is.
    FORCE also takes entries that are not pending.

    Reply: how many were released. Raises: NOGROUP.
    """
    argv = call.argv
    stream, group = group_of(stream_at(call, argv[1]), argv[1], argv[2])
    refuse_elsewhere(call, stream, group)
    options = _read(argv)
    released = 0
    for ms, seq in strict_ids(options.ids):
        nack = _nack(stream, group, ms, seq, options.force)
        if nack is None:
            continue
        group.release(nack)
        nack.count = _count(nack.count, options)
        released += 1
    if released:
        call.changed(argv[1], PENDING_RELEASED, argv, count=released)
    return released


def _read(argv: list[bytes]) -> _Options:
    options = _Options(argv[3].lower())
    if options.mode not in _MODES:
        raise CommandError(XNACK_MODE)
    at = 4
    while at < len(argv):
        word = argv[at].lower()
        more = len(argv) - 1 - at
        if word == b"ids" and more:  # of several the last one counts
            count = parse_integer(argv[at + 1])
            if count is None or not 0 < count <= _NUMIDS_MAX:
                raise CommandError(XNACK_NUMIDS)
            if count > more - 1:
                raise CommandError(XNACK_NUMIDS_MISMATCH)
            options.ids = argv[at + 2 : at + 2 + count]
            at += 2 + count
        elif word == b"retrycount" and more:
            options.count = integer(argv[at + 1])
            if options.count < 0:
                raise CommandError(XNACK_RETRYCOUNT)
            at += 2
        elif word == b"force":
            options.force = True
            at += 1
        else:
            raise CommandError(unrecognized_xnack_option(argv[at]))
    if not options.ids:
        raise CommandError(XNACK_IDS_EXPECTED)
    return options


def _nack(stream: Stream, group: Group, ms: int, seq: int, force: bool) -> Nack | None:
    """The pending entry; ``force`` makes one that was never delivered, if the entry exists."""
    nack = group.pel.get(ms, seq)
    if nack is None and force and stream.contains(ms, seq):
        nack = group.add_pending(ms, seq, None, 0)
        nack.count = 0
    return nack


def _count(count: int, options: _Options) -> int:
    if options.count != AS_THE_MODE:
        return options.count
    if options.mode == b"silent":
        return max(0, count - 1)
    return COUNT_MAX if options.mode == b"fatal" else count
