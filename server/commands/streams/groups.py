"""The subcommands of XGROUP: consumer groups come, move and go.

Source: t_stream.c, xgroupCommand; what differs from the public pages is decided by the code.
"""

from __future__ import annotations

from headrace.compat.errors import (
    BUSY_GROUP,
    ENTRIES_READ_NEGATIVE,
    XGROUP_NEEDS_KEY,
    CommandError,
    bad_subcommand,
    no_such_group,
)
from headrace.protocol.replies import OK
from headrace.server.commands.streams.args import bound_id, integer, stream_at, strict_id
from headrace.server.commands.streams.events import (
    CONSUMER_CREATED,
    CONSUMER_DELETED,
    GROUP_CREATED,
    GROUP_CREATED_WITH_STREAM,
    GROUP_DESTROYED,
    GROUP_ID_SET,
)
from headrace.server.commands.streams.group_args import refuse_elsewhere
from headrace.server.commands.streams.idmp_records import record_limits
from headrace.server.commands.streams.shared import shared_streams
from headrace.server.commands.streams.writing import new_stream
from headrace.server.dispatch.call import Call
from headrace.storage.stream.groups import UNKNOWN, Group
from headrace.storage.stream.stream import Stream


class PositionOptions:
    """The options of XGROUP CREATE and SETID.

    Attributes:
        make_stream: create a stream that is missing.
        entries_read: how many entries the position stands for, or ``UNKNOWN``.
    """

    def __init__(self) -> None:
        self.make_stream = False
        self.entries_read = UNKNOWN

    def read(self, argv: list[bytes], may_make_stream: bool) -> None:
        """Read ``argv[5:]``."""
        at = 5
        while at < len(argv):
            word = argv[at].lower()
            if word == b"mkstream" and may_make_stream:
                self.make_stream = True
                at += 1
            elif word == b"entriesread" and at + 1 < len(argv):
                self.entries_read = integer(argv[at + 1])
                if self.entries_read < 0 and self.entries_read != UNKNOWN:
                    raise CommandError(ENTRIES_READ_NEGATIVE)
                at += 2
            else:
                raise CommandError(bad_subcommand(b"xgroup", argv[1]))


def _stream_of(call: Call, key: bytes) -> Stream:
    stream = stream_at(call, key)
    if stream is None:
        raise CommandError(XGROUP_NEEDS_KEY)
    return stream


def _group_of(stream: Stream, key: bytes, name: bytes) -> Group:
    group = stream.groups.get(name)
    if group is None:
        raise CommandError(no_such_group(name, key))
    return group


def xgroup_create(call: Call) -> object:
    """Reply: OK.
    Raises: BUSYGROUP when the group is there.
    """
    argv = call.argv
    options = PositionOptions()
    options.read(argv, True)
    key = argv[2]
    name = argv[3]
    stream = stream_at(call, key)
    if stream is None and not options.make_stream:
        raise CommandError(XGROUP_NEEDS_KEY)
    if len(argv) > 8:
        raise CommandError(bad_subcommand(b"xgroup", argv[1]))
    created = stream is None
    if stream is None:
        stream = new_stream(call, key)
    position = (stream.last_ms, stream.last_seq)
    if argv[4] != b"$":
        position = strict_id(argv[4])
    if name in stream.groups:
        raise CommandError(BUSY_GROUP)
    if call.server.data.region is not None:
        return shared_streams().create_group(call, stream, position, created)
    if created:
        call.put(key, stream)
    entries_read = min(options.entries_read, stream.entries_added)
    stream.groups[name] = Group(name, position[0], position[1], entries_read)
    call.changed(key, GROUP_CREATED_WITH_STREAM if created else GROUP_CREATED, argv)
    if created:
        record_limits(call, key, stream)
    return OK


def xgroup_setid(call: Call) -> object:
    """Without ENTRIESREAD it is not known any more how many entries the group has read.

    Reply: OK.
    """
    argv = call.argv
    options = PositionOptions()
    options.read(argv, False)
    key = argv[2]
    stream = _stream_of(call, key)
    group = _group_of(stream, key, argv[3])
    if len(argv) not in (5, 7):
        raise CommandError(bad_subcommand(b"xgroup", argv[1]))
    position = (stream.last_ms, stream.last_seq)
    if argv[4] != b"$":
        position = bound_id(argv[4])
    if group.places is not None:
        refuse_elsewhere(call, stream, group)
        shared_streams().set_place(stream, group, None if argv[4] == b"$" else position)
        call.changed(key, GROUP_ID_SET, argv)
        return OK
    group.last_ms, group.last_seq = position
    group.entries_read = min(options.entries_read, stream.entries_added)
    call.changed(key, GROUP_ID_SET, argv)
    return OK


def xgroup_destroy(call: Call) -> object:
    """Reply: 1, or 0 when there was no such group. What it held is freed later."""
    argv = call.argv
    stream = _stream_of(call, argv[2])
    if call.server.data.region is not None:
        return shared_streams().destroy_group(call, stream)
    group = stream.groups.pop(argv[3], None)
    if group is None:
        return 0
    call.server.data.free_later(group)
    # Its readers wait for the key, and have an error to get.
    call.changed(argv[2], GROUP_DESTROYED, argv)
    return 1


def xgroup_createconsumer(call: Call) -> object:
    """Reply: 1, or 0 when it is there."""
    argv = call.argv
    group = _group_of(_stream_of(call, argv[2]), argv[2], argv[3])
    if argv[4] in group.consumers:
        return 0
    group.create_consumer(argv[4], call.now_ms)
    call.changed(argv[2], CONSUMER_CREATED, argv)
    return 1


def xgroup_delconsumer(call: Call) -> object:
    """Reply: how many entries the consumer held; they are pending no more, and freed later."""
    argv = call.argv
    stream = _stream_of(call, argv[2])
    group = _group_of(stream, argv[2], argv[3])
    consumer = group.consumers.get(argv[4])
    if consumer is None:
        return 0
    if group.places is not None and consumer.pel.size:
        shared_streams().release_held(call, argv[2], stream, group, argv[4])
    removed = group.delete_consumer(argv[4])
    room = removed.count > 0 and group.max_pending != 0
    call.changed(argv[2], CONSUMER_DELETED, argv, wakes=room)
    if removed.count:
        if group.places is not None:
            shared_streams().note_acknowledged(call, argv[2], stream, group)
        call.server.data.free_later(removed)
    return removed.count
