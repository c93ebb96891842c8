"""What commands do about the IDMP map of a stream, and how that is recorded.

An XADD with IDMP is recorded with the ID that was chosen; running it again adds that entry and
makes its iid known, whether the iid was known or not: it was not when the entry was added. A repeat
is recorded as it was typed, with ``*``; running it again finds what the iid was used for and only
counts. Records have no other use for a clock: an iid was added when its entry's ID says, unless
the clock stood before that or the record is stamped with another time.
"""

from __future__ import annotations

from typing import Final

from compat.stream_ids import format_id
from server.call import Call
from server.effects import EVENT_STREAM
from storage.stream.stream import Stream

EVER: Final = 0  # a time at which nothing that is recorded has expired yet


def record_iid(
    call: Call, stream: Stream, pid: bytes, iid: bytes, entry_id: tuple[int, int]
) -> None:
    """Remember that a producer used ``iid`` for an entry, and count it."""
    now_ms = call.now_ms
    if call.replaying:
        now_ms = min(entry_id[0], now_ms)
    stream.record_iid(pid, iid, entry_id[0], entry_id[1], now_ms)
    stream.iids_added += 1


def repeated(call: Call, stream: Stream, known: tuple[int, int]) -> bytes:
    """Count an entry that was added before; the reply, which is its ID."""
    stream.iids_duplicates += 1
    call.changed(call.argv[1], b"", EVENT_STREAM, call.argv, 1, False)
    return format_id(known[0], known[1])


def limits_record(key: bytes, stream: Stream) -> list[bytes]:
    """The command that gives another stream the limits of this one."""
    return [
        *(b"XCFGSET", key, b"IDMP-DURATION", b"%d" % stream.idmp_duration_s),
        *(b"IDMP-MAXSIZE", b"%d" % stream.idmp_maxsize),
    ]


def record_limits(call: Call, key: bytes, stream: Stream) -> None:
    """Record the limits of a stream that was just made, where its record does not imply them.

    The configuration may be another one when the record is run again.
    """
    if call.server.aof is None or stream.has_default_limits():
        return
    call.changed(key, b"", EVENT_STREAM, limits_record(key, stream), 0, False)
    for pid, iid, ms, seq, _ in stream.idmp_records():
        record = [b"XIDMPRECORD", key, pid, iid, format_id(ms, seq)]
        call.changed(key, b"", EVENT_STREAM, record, 0, False)


def without_producer(record: list[bytes], idmp_at: int) -> None:
    """Take IDMP or IDMPAUTO, which stands at ``idmp_at``, out of the record of an XADD."""
    words = 2 if record[idmp_at].lower() == b"idmpauto" else 3
    del record[idmp_at : idmp_at + words]
