"""A stream that several regions write becomes that of a single server."""

from __future__ import annotations

from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.stream.groups import UNKNOWN, Group
from headrace.storage.stream.stream import Stream


def alone(stream: RegionalStream) -> Stream:
    """A stream with the same entries, each ID once, and with the groups and iids of this region.

    ``stream`` itself is of no use afterwards.

    A single server knows one place of a group. It is below the first entry that the group has not
    been given, so that nothing is skipped; what lies above and was given is given again.
    Complexity: O(entries + pending entries).
    """
    plain = stream.plain()
    plain.last_ms, plain.last_seq = stream.top()
    plain.entries_added = max(stream.entries_added, plain.length)
    deleted = (stream.max_deleted_ms, stream.max_deleted_seq)
    plain.max_deleted_ms, plain.max_deleted_seq = min(deleted, stream.top())
    plain.idmp = stream.idmp
    plain.iids_added = stream.iids_added
    plain.iids_duplicates = stream.iids_duplicates
    for name, group in stream.groups.items():
        _leave(stream, plain, group)
        plain.groups[name] = group
    return plain


def _leave(stream: RegionalStream, plain: Stream, group: Group) -> None:
    """Give a group its one place."""
    last = stream.top()
    for part in places_of(group).parts(stream, 1):
        last = plain.last_before((part.run.ms[part.low], part.run.seq[part.low]))
    group.places = None
    group.entries_read = UNKNOWN
    group.last_ms, group.last_seq = last
