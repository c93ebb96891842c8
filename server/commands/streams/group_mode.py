"""XGROUP SETMODE: how a group delivers. Redis has no such command."""

from __future__ import annotations

from headrace.compat import errors
from headrace.compat.errors import (
    MAX_PENDING_NEGATIVE,
    XGROUP_NEEDS_KEY,
    CommandError,
    no_such_group,
)
from headrace.protocol.replies import OK
from headrace.server.commands.streams.args import integer, stream_at
from headrace.server.commands.streams.events import GROUP_MODE_SET
from headrace.server.commands.streams.shared import shared_streams
from headrace.server.dispatch.call import Call


def xgroup_setmode(call: Call) -> object:
    """Set the most pending entries; 0 is no limit.

    XREADGROUP gives no more new entries than make ``n`` pending ones in the whole group. With 1 the
    entries of the stream are processed one after the other, in order, by whoever is free.

    Reply: OK.
    """
    argv = call.argv
    key = argv[2]
    if argv[4].lower() != b"max-pending":
        raise CommandError(errors.SYNTAX)
    most = integer(argv[5])
    if most < 0:
        raise CommandError(MAX_PENDING_NEGATIVE)
    stream = stream_at(call, key)
    if stream is None:
        raise CommandError(XGROUP_NEEDS_KEY)
    group = stream.groups.get(argv[3])
    if group is None:
        raise CommandError(no_such_group(argv[3], key))
    if call.server.data.region is not None and not call.replaying:
        shared_streams().set_mode(call, stream, argv[3], most)
        return OK
    group.max_pending = most
    call.changed(key, GROUP_MODE_SET, argv)
    return OK
