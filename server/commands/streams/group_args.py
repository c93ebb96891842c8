"""What the commands on consumer groups share: finding a group, and recording what happened to it.

A delivery or a claim is recorded as the XCLAIM that repeats it, with its time and count; a group's
position as XGROUP SETID. Neither depends on a clock or on what is idle for how long.
"""

from __future__ import annotations

from headrace.compat import errors
from headrace.compat.errors import CommandError, no_key_or_group
from headrace.compat.stream_ids import format_id
from headrace.server.commands.streams.args import stream_to_read
from headrace.server.commands.streams.events import CONSUMER_CREATED, PENDING_CHANGED
from headrace.server.commands.streams.group_waiting import group_readers
from headrace.server.dispatch.call import Call
from headrace.storage.stream.groups import HERE, NEVER, ON_ITS_WAY, Consumer, Group
from headrace.storage.stream.nack import Nack
from headrace.storage.stream.stream import Stream


def group_to_use(call: Call, key: bytes, name: bytes) -> tuple[Stream, Group]:
    """The stream at ``key`` and its group; raises WRONGTYPE or NOGROUP."""
    return group_of(stream_to_read(call, key), key, name)


def group_of(stream: Stream | None, key: bytes, name: bytes) -> tuple[Stream, Group]:
    """``stream``, which was looked for at ``key``, and its group; raises NOGROUP."""
    group = None if stream is None else stream.groups.get(name)
    if stream is None or group is None:
        raise CommandError(no_key_or_group(key, name))
    return stream, group


def consumer_seen(call: Call, key: bytes, group: Group, name: bytes) -> Consumer:
    """The consumer that is at work, made where it is missing; it is seen now.

    A consumer that is made here is reported but not recorded: the record of what it gets makes it.
    If it turns out to get nothing, ``record_consumer`` records it.
    """
    consumer = group.consumers.get(name)
    if consumer is None:
        consumer = group.create_consumer(name, call.now_ms)
        call.changed(key, CONSUMER_CREATED, None)
    consumer.seen_ms = call.now_ms
    return consumer


def record_consumer(
    call: Call, key: bytes, group: Group, consumer: Consumer, always: bool = False
) -> None:
    """Record a consumer that this call has made, if it was given nothing, or ``always``."""
    if always or consumer.active_ms == NEVER:
        record = [b"XGROUP", b"CREATECONSUMER", key, group.name, consumer.name]
        call.changed(key, PENDING_CHANGED, record, count=0)


def note_claim(
    call: Call, key: bytes, group: Group, nack: Nack, last_ms: int, last_seq: int
) -> None:
    """Report that ``nack``, as it is now, went to its consumer.

    Args:
        last_ms, last_seq: the group's last ID that the record carries.
    """
    record: list[bytes] | None = None
    if call.recorded:
        record = claim_record(key, group, nack, last_ms, last_seq)
    call.changed(key, PENDING_CHANGED, record, wakes=claims_are_awaited(call, key, group))


def claims_are_awaited(call: Call, key: bytes, group: Group) -> bool:
    """Whether somebody waits for what is pending in the group to be old enough to be claimed."""
    blocking = call.server.blocking
    if not blocking.needed_key_count:
        return False
    readers = group_readers(blocking, call.db.index, key, group)
    return readers is not None and readers.ripens()


def note_purge(call: Call, key: bytes, group: Group, nack: Nack) -> None:
    """Report that ``nack``, which is still there, goes because its entry was deleted.

    The record claims the entry for its owner, and running it finds the entry missing, too.
    """
    record: list[bytes] | None = None
    if call.recorded:
        if nack.consumer is None:
            record = [b"XACK", key, group.name, format_id(nack.ms, nack.seq)]
        else:
            record = claim_record(key, group, nack, group.last_ms, group.last_seq)
    call.changed(key, PENDING_CHANGED, record, wakes=group.max_pending != 0)


def note_position(call: Call, key: bytes, group: Group) -> None:
    """Report the group's last ID and how many entries it has read."""
    record: list[bytes] | None = None
    if call.recorded:
        record = [
            b"XGROUP",
            b"SETID",
            key,
            group.name,
            format_id(group.last_ms, group.last_seq),
            b"ENTRIESREAD",
            b"%d" % group.entries_read,
        ]
    call.changed(key, PENDING_CHANGED, record)


def claim_record(key: bytes, group: Group, nack: Nack, last_ms: int, last_seq: int) -> list[bytes]:
    """The XCLAIM that makes ``nack``, which has a consumer, what it is.

    In a region it does not say how far the group has come: one ID does not say that.
    """
    assert nack.consumer is not None
    record = [
        b"XCLAIM",
        key,
        group.name,
        nack.consumer.name,
        b"0",
        format_id(nack.ms, nack.seq),
        b"TIME",
        b"%d" % nack.delivery_ms,
        b"RETRYCOUNT",
        b"%d" % nack.count,
        b"FORCE",
        b"JUSTID",
    ]
    if group.places is None:
        record.append(b"LASTID")
        record.append(format_id(last_ms, last_seq))
    return record


def refuse_elsewhere(call: Call, stream: Stream | None, group: Group) -> None:
    """Refuse what concerns the reading of a group that is read in another region.

    Raises:
        CommandError: it is.
    """
    places = group.places
    if places is None or stream is None or call.replaying:
        return
    region = places.elsewhere(stream)
    if region == ON_ITS_WAY:
        raise CommandError(errors.GROUP_ON_ITS_WAY)
    if region != HERE:
        raise CommandError(errors.group_moved(region))
