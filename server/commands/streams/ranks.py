"""XCOUNT and XSPLIT: how much a range of a stream holds, and where to cut it. Redis has neither.

Whoever reads a stream in portions, or by several readers side by side, has to know where a portion
ends. Other servers only let such a reader walk all entries to find out.
"""

from __future__ import annotations

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.stream_ids import format_id
from headrace.server.commands.streams.args import integer, range_end, range_start, stream_to_read
from headrace.server.dispatch.call import Call
from headrace.storage.stream.ranks import Share, count_between, share_by_rows, share_evenly


def xcount(call: Call) -> object:
    """The bounds are those of XRANGE. Reply: the number of entries from one ID to the other."""
    argv = call.argv
    start = range_start(argv[2])
    end = range_end(argv[3])
    stream = stream_to_read(call, argv[1])
    return 0 if stream is None else count_between(stream, start, end)


def xsplit(call: Call) -> object:
    """Cut a range into shares.

    With ROWS each share has ``n`` entries, the last one what is left; COUNT asks for the first
    shares only. With PARTS there are ``n`` shares, fewer where there are fewer entries, that differ
    by one entry at most.

    Reply: for each share, oldest first, the IDs of its first and last entry and how many it has.
    """
    argv = call.argv
    start = range_start(argv[2])
    end = range_end(argv[3])
    words = argv[4::2]
    by_rows = words[0].lower() == b"rows"
    if by_rows:
        fits = len(argv) == 6 or (len(argv) == 8 and words[1].lower() == b"count")
    else:
        fits = len(argv) == 6 and words[0].lower() == b"parts"
    if not fits:
        raise CommandError(errors.SYNTAX)
    size = _positive(argv[5])
    most = _positive(argv[7]) if len(argv) == 8 else 0
    stream = stream_to_read(call, argv[1])
    if stream is None:
        return []
    if by_rows:
        return _reply(share_by_rows(stream, start, end, size, most))
    return _reply(share_evenly(stream, start, end, size))


def _positive(text: bytes) -> int:
    number = integer(text)
    if number <= 0:
        raise CommandError(errors.NOT_POSITIVE)
    return number


def _reply(shares: list[Share]) -> object:
    found: list[object] = []
    for share in shares:
        first = format_id(share.first[0], share.first[1])
        found.append([first, format_id(share.last[0], share.last[1]), share.count])
    return found
