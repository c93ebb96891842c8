"""XLOOK, which Redis does not have: have streams changed since a client looked at them last?

Whoever reads many streams, most of which rest, has to find those that do not. One string for each
stream, which need not even be taken apart, says that nothing of it has changed.
"""

from __future__ import annotations

from headrace.compat.stream_ids import format_id
from headrace.server.dispatch.call import Call
from headrace.storage.stream.stream import Stream

_RUN_DIGITS = 12


def xlook(call: Call) -> object:
    """Reply: for each key a string, or nil where there is no stream.

    The string has four words: the identity of the stream, which no other one ever has, and which is
    another one after a restart, in a copy and on a replica; its length; how many entries were ever
    added; the last ID. In a region it is nil for every key, because there entries come in between.
    """
    if call.server.data.region is not None:
        return [None] * (len(call.argv) - 1)
    run = call.server.run_id[:_RUN_DIGITS]
    found: list[object] = []
    for key in call.argv[1:]:
        stream = call.lookup(key)
        if isinstance(stream, Stream):
            last = format_id(stream.last_ms, stream.last_seq)
            figures = (run, stream.serial, stream.length, stream.entries_added, last)
            found.append(b"%b.%d %d %d %b" % figures)
        else:
            found.append(None)
    return found
