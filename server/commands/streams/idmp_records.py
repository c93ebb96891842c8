"""What commands do about the IDMP map of a stream, and how that is recorded.

An XADD with IDMP is recorded with the ID that was chosen. Running the record adds that entry and
makes its iid known, even if it is known: it was not when the entry was added. A repeat is recorded
as it was typed, with ``*``. Running that record finds what the iid was used for, and only counts.

The ID of an entry says when its iid was added. Where that is not true, the record is stamped with
the time, in a comment before it.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.content_iid import content_iid
from headrace.compat.stream_ids import format_id
from headrace.persistence.forms.stream.rewriting import limits_command
from headrace.server.commands.streams.events import PRODUCERS_CHANGED
from headrace.server.dispatch.call import Call
from headrace.storage.stream.iids import SHORT_BYTES, Iid, iid_made_of, iid_of
from headrace.storage.stream.stream import Stream

EVER: Final = 0  # a time at which nothing that is recorded has expired yet


def record_iid(call: Call, stream: Stream, pid: bytes, iid: Iid, entry_id: tuple[int, int]) -> None:
    """Remember that a producer used ``iid`` for an entry, and count it."""
    ms, seq = entry_id
    added_ms = call.now_ms
    if call.replaying:
        added_ms = _added_ms(ms, call)
    elif ms != added_ms:
        call.server.changes.stamp_next()
    stream.make_idmp().record(pid, iid, ms, seq, added_ms)
    stream.iids_added += 1


def _added_ms(id_ms: int, call: Call) -> int:
    """When an iid was added, as far as a record says.

    The ID of its entry says it to the millisecond, unless the stream's last ID was ahead of the
    clock, or the entry was an older one: then the record was stamped with its second.
    """
    recorded_ms = id_ms
    if call.stamp_s and id_ms // 1000 != call.stamp_s:
        recorded_ms = 1000 * call.stamp_s + 999
    return min(recorded_ms, call.now_ms)


def repeated(call: Call, stream: Stream, known: tuple[int, int]) -> bytes:
    """Count a repeat; the reply is the ID of the entry that was added before.

    A region does not record it, because what begins with XADD there is an entry for all regions.
    """
    stream.iids_duplicates += 1
    record = call.argv if call.server.data.region is None else None
    call.changed(call.argv[1], PRODUCERS_CHANGED, record)
    return format_id(known[0], known[1])


def record_limits(call: Call, key: bytes, stream: Stream) -> None:
    """Record the limits of a stream that was just made, where its record does not imply them.

    The configuration may be another one when the record is run again.
    """
    if not call.recorded or stream.has_default_limits():
        return
    call.record(limits_command(key, stream.idmp_duration_s, stream.idmp_maxsize))
    for pid, iid, ms, seq, _ in stream.idmp_records():
        call.record([b"XIDMPRECORD", key, pid, iid, format_id(ms, seq)])


def without_producer(record: list[bytes], idmp_at: int) -> None:
    """Take IDMP or IDMPAUTO, which stands at ``idmp_at``, out of the record of an XADD."""
    words = 2 if record[idmp_at].lower() == b"idmpauto" else 3
    del record[idmp_at : idmp_at + words]


def iid_named(text: bytes, argv: list[bytes], at: int) -> Iid:
    """The iid that IDMP names; without one, as under IDMPAUTO, the iid of the content."""
    if len(text):
        return iid_of(text)
    low, high = content_iid(argv, at + 1)
    return iid_made_of(low, high, SHORT_BYTES, b"")
