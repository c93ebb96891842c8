"""What a stream has that RDB has no place for, as notes behind it, which other servers pass over.

``headrace-max-pending`` holds groups: the name of each, and its limit. ``headrace-iid-times`` holds
iids that were added at another time than the ID of their entry says: the name of a producer, then
its iids from the first of that kind on, oldest first, each with the ID of its entry and the time.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.stream.frozen import FrozenGroup
from headrace.storage.stream.producer import Producer, iid_of
from headrace.storage.stream.stream import Stream

MAX_PENDING: Final = b"headrace-max-pending"
IID_TIMES: Final = b"headrace-iid-times"
_NOTE_BYTES: Final = 1 << 16
_INT64_MAX: Final = 2**63 - 1


def note_group(output: RdbOutput, group: FrozenGroup) -> None:
    """Note the limit of a group, if it has one."""
    if group.max_pending:
        text = RdbOutput(output.version)
        text.string(group.name)
        text.length(group.max_pending)
        output.notes += [MAX_PENDING, b"".join(text.take())]


def note_times(output: RdbOutput, producer: Producer) -> None:
    """Note when iids of a producer were added, if their IDs do not say it."""
    text = RdbOutput(output.version)
    odd = False
    for iid, ms, seq, added_ms in producer.records():
        odd = odd or added_ms != ms
        if not odd:
            continue
        if not text.size_bytes:
            text.string(producer.pid)
        text.string(iid)
        text.length(ms)
        text.length(seq)
        text.length(added_ms)
        if text.size_bytes > _NOTE_BYTES:
            output.notes += [IID_TIMES, b"".join(text.take())]
    if text.size_bytes:
        output.notes += [IID_TIMES, b"".join(text.take())]


def take_max_pending(stream: Stream, source: RdbSource) -> None:
    """Learn the limits of groups.

    Raises:
        CorruptRDB: they are none of this stream.
    """
    while source.left:
        group = stream.groups.get(source.string())
        limit = source.length()
        if group is None or not 0 < limit <= _INT64_MAX:
            raise source.damage("limits of groups that are there")
        group.max_pending = limit


def take_iid_times(stream: Stream, source: RdbSource) -> None:
    """Learn when iids were added.

    Raises:
        CorruptRDB: they are none of this stream.
    """
    idmp = stream.idmp
    pid = source.string()
    while source.left:
        iid = source.string()
        ms = source.length()
        seq = source.length()
        added_ms = min(source.length(), source.now_ms)
        if idmp is None or not iid or idmp.find(pid, iid_of(iid), 0) != (ms, seq):
            raise source.damage("iids that are there")
        stream.record_iid(pid, iid, ms, seq, added_ms)
