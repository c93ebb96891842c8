"""The commands that read a stream: XLEN, XRANGE, XREVRANGE, XREAD, XLOOK, XCOUNT, XSPLIT.

**Waiting.** Readers that want an entry after the same ID stand together, and mostly all do. Where
there are many IDs, they are kept in order. So a stream that has grown yields only the readers whose
ID has been passed. A key without a stream leaves its readers asleep.

**What Redis does not have.** XLOOK says which of many streams have changed since a client looked at
them last, by one string for each stream, to compare whole. XCOUNT and XSPLIT say how much a range
of a stream holds, and where to cut it, because a client that reads in portions, or with several
readers, has to know where a portion ends.

Source: t_stream.c; what differs from the public pages is decided by the code.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from librt.vecs import append, vec
from mypy_extensions import i64

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.stream_ids import ID_MAX, format_id
from headrace.protocol.packing import Packer, SizeLimit, StreamsReply
from headrace.protocol.replies import NO_REPLIES, NULL_ARRAY
from headrace.server.build import build_kind
from headrace.server.commands.streams.args import (
    ReadOptions,
    add_entries,
    add_entries_array,
    count_entries,
    option_name,
    packed_entries,
    positive_of,
    range_end,
    range_start,
    read_options_in_region,
    read_options_of,
    strict_id,
    within,
)
from headrace.server.commands.streams.shared import shared_streams
from headrace.server.commands.together import Ran, Requests
from headrace.server.commands.typed_keys import stream_at
from headrace.server.dispatch.args import integer
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike
from headrace.server.waiting import Interest, Line, Parked, Queue, SharedLine, Waiter
from headrace.storage.stream.part import Part
from headrace.storage.stream.ranks import Share, count_between, share_by_rows, share_evenly
from headrace.storage.stream.reach import REACH_MAX
from headrace.storage.stream.run import following, is_below
from headrace.storage.stream.stream import Stream

if TYPE_CHECKING:
    from sortedcontainers import SortedList

MANY_IDS: Final = 16  # that are kept in order: fewer are looked at one by one
_NAME: Final = b"entries"


class EntryAfter(Interest):
    """An entry after an ID, which stands as (ms, seq) in ``after`` beside each key."""

    def __init__(self, after: list[tuple[int, int]], name: bytes = _NAME) -> None:
        super().__init__(name, False)
        self.after: Final = after

    def new_line(self, queue: Queue) -> Line:
        return Readers(queue, self)


class Readers(SharedLine):
    """The waiters for an entry at one key, by ID and ticket in ``by_id``."""

    def __init__(self, queue: Queue, interest: EntryAfter) -> None:
        super().__init__(queue, interest)
        self.by_id: dict[tuple[int, int], dict[int, Waiter]] = {}
        self._order: SortedList[tuple[int, int]] | None = None  # of the IDs, once they are many

    def add(self, waiter: Waiter, number: int) -> None:
        """Add a waiter for an entry after the ID that it names beside the key."""
        after = _after(waiter, number)
        same = self.by_id.get(after)
        if same is None:
            same = self.by_id[after] = {}
            if self._order is not None:
                self._order.add(after)
            elif len(self.by_id) >= MANY_IDS:
                from sortedcontainers import SortedList  # late: so many IDs are seldom

                self._order = SortedList(self.by_id)
        same[waiter.ticket] = waiter

    def remove(self, waiter: Waiter, number: int) -> None:
        """Remove a waiter, if it is there."""
        after = _after(waiter, number)
        same = self.by_id.get(after)
        if same is None or waiter.ticket not in same:
            return
        del same[waiter.ticket]
        if not same:
            del self.by_id[after]
            if self._order is not None:
                self._order.remove(after)
                if not self.by_id:
                    self._order = None

    def is_empty(self) -> bool:
        return not self.by_id

    def waiters(self) -> list[Waiter]:
        return [waiter for same in self.by_id.values() for waiter in same.values()]

    def candidates(self, value: object | None) -> list[Waiter]:
        """Return the waiters that may be served now, first come first. Complexity: O(found)."""
        if not isinstance(value, Stream):
            return []
        found: list[Waiter] = []
        last_ms = value.last_ms
        last_seq = value.last_seq
        order = self._order
        if order is None:
            for after, same in self.by_id.items():
                if is_below(after[0], after[1], last_ms, last_seq):
                    found.extend(same.values())
        else:
            for after in order.irange(maximum=(last_ms, last_seq), inclusive=(True, False)):
                found.extend(self.by_id[after].values())
        if len(found) > 1:
            found.sort(key=attrgetter("ticket"))
        return found


def _after(waiter: Waiter, number: int) -> tuple[int, int]:
    interest = waiter.parked.interest
    assert isinstance(interest, EntryAfter)
    return interest.after[number]


LEAST: Final = (0, 0)
GREATEST: Final = (ID_MAX, ID_MAX)
AHEAD: Final = 16  # ranges whose entries are looked for together
_LOOKS_AHEAD: Final = build_kind() == "compiled"  # as Python it takes longer than memory does


def xlen(call: Call) -> object:
    """Reply: the number of entries."""
    stream = stream_at(call, call.argv[1])
    return 0 if stream is None else stream.length


def xrange(call: Call) -> object:
    """Reply: entries, oldest first. Source: xrangeGenericCommand."""
    return _range(call, False)


def xrevrange(call: Call) -> object:
    """Reply: entries, newest first."""
    return _range(call, True)


def _range(call: Call, reverse: bool) -> object:
    start, end, count = _asked_for(call.argv, reverse)
    stream = stream_at(call, call.argv[1])
    if stream is None:
        return []
    if count == 0:
        return NULL_ARRAY
    parts = stream.parts(start, end, count, reverse)
    return packed_entries(parts, reverse, call.session.resp3)


def _asked_for(argv: list[bytes], reverse: bool) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Return the first and last ID of a range, and the most entries, -1 for all.

    With ``reverse`` the first one is checked first, though it stands second.
    """
    start = range_start(argv[3 if reverse else 2])
    end = range_end(argv[2 if reverse else 3])
    count = -1
    at = 4
    while at < len(argv):
        if option_name(argv[at]) != b"count" or at + 1 >= len(argv):
            raise CommandError(errors.SYNTAX)
        count = max(0, integer(argv[at + 1]))
        at += 2
    return start, end, count


@alike("XRANGE")
def xrange_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Write several ranges of one stream into one buffer."""
    return _ranges_alike(call, requests[first:end], False)


@alike("XREVRANGE")
def xrevrange_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Write several ranges of one stream, newest first, into one buffer."""
    return _ranges_alike(call, requests[first:end], True)


def _ranges_alike(call: Call, requests: Requests, reverse: bool) -> Ran:
    stream = call.db.value_of(requests[0][1], call.now_ms)
    if not isinstance(stream, Stream):
        return NONE_ALIKE, NO_REPLIES
    out = Packer(call.session.resp3)
    done = 0
    for argv in requests:
        if out.wire_bytes() >= ALIKE_BYTES:
            break
        if _LOOKS_AHEAD and done % AHEAD == 0 and stream.is_scattered():
            _look_ahead(stream, requests[done : done + AHEAD], reverse)
        try:
            start, end, count = _asked_for(argv, reverse)
        except CommandError:
            break
        if count == 0:
            break
        add_entries_array(out, stream.parts(start, end, count, reverse), reverse)
        done += 1
    if done:
        call.note_hits(requests[0][1], done)
    return done, out.replies()


def _look_ahead(stream: Stream, requests: list[list[bytes]], reverse: bool) -> None:
    """Load the beginnings of these ranges into the processor's caches."""
    all_ms = vec[i64]()
    try:
        for argv in requests:
            ms = range_end(argv[2])[0] if reverse else range_start(argv[2])[0]
            all_ms = append(all_ms, min(ms, REACH_MAX))
    except CommandError:  # it gets its error when it is run itself
        pass
    stream.look_ahead(all_ms)


def xread(call: Call) -> object:
    """Reply: map of key to entries, where there are some; nil without. Source: xreadCommand."""
    argv = call.argv
    if call.server.data.region is None:
        options = read_options_of(argv, call.now_ms, False)
    else:
        options = read_options_in_region(argv, call.now_ms)
    width = (len(argv) - options.streams_at) // 2
    keys = argv[options.streams_at : options.streams_at + width]
    streams: list[Stream | None] = []
    after: list[tuple[int, int]] = []
    bounds: list[tuple[int, int]] = []  # where only what is stable is wanted
    for number, key in enumerate(keys):
        stream = stream_at(call, key)
        streams.append(stream)
        text = argv[options.streams_at + width + number]
        if options.stable:
            bounds.append(shared_streams().bound_of(call, stream))
            after.append(shared_streams().first_after(text, stream, bounds[number]))
        else:
            after.append(_resolve(text, stream))
    reply = StreamsReply(call.session.resp3)
    entries_left = options.max_count
    size = SizeLimit(options.max_size, call.session.resp3) if options.max_size else None
    for number, stream in enumerate(streams):
        if stream is None:
            call.missed(keys[number])  # Redis looks a second time
            continue
        least = _least(options.count, entries_left)
        most_bytes = 0 if size is None else size.left()
        if options.stable:
            first, bound = after[number], bounds[number]
            parts = shared_streams().parts_up_to(stream, first, bound, least, most_bytes)
        else:
            parts = parts_after(stream, after[number], least, most_bytes)
        if not parts:
            continue
        if size is not None:
            size.begin(keys[number])
            parts = within(parts, size)
        count = count_entries(parts)
        reply.begin(keys[number], count)
        add_entries(reply, parts, False)
        if options.max_count:
            entries_left -= count
            if entries_left <= 0:
                break
        if size is not None:
            size.end(count)
            if size.is_reached():
                break
    if reply.streams:
        return reply.whole()
    if not options.block_at or not call.may_block:
        return NULL_ARRAY
    if options.stable:
        return shared_streams().wait_for_stable(call, options, keys, after, bounds)
    return _park(call, options, keys, after)


def _resolve(text: bytes, stream: Stream | None) -> tuple[int, int]:
    """Return the ID to read after: an ID, ``$`` (the last) or ``+`` (before the last)."""
    if text == b"$":
        return LEAST if stream is None else (stream.last_ms, stream.last_seq)
    if text == b"+":
        if stream is None or not stream.length:
            return LEAST
        ms, seq = stream.last_entry_id()
        return (ms, seq - 1) if seq else (ms - 1, ID_MAX)
    if text == b">":
        raise CommandError(errors.XREAD_NEW_ID)
    return strict_id(text)


def parts_after(stream: Stream, after: tuple[int, int], count: int, most_bytes: int) -> list[Part]:
    """Return the parts after an ID; 0 is no limit. See ``EntryLog.parts``."""
    ms, seq = after
    last_ms = stream.last_ms
    last_seq = stream.last_seq
    if not stream.length or not is_below(ms, seq, last_ms, last_seq):
        return []
    return stream.parts(following(ms, seq), (last_ms, last_seq), count, False, most_bytes)


def _least(count: int, other: int) -> int:
    """Return the smaller of two limits; 0 is no limit."""
    return min(count, other) if count and other else count or other


def _park(
    call: Call, options: ReadOptions, keys: list[bytes], after: list[tuple[int, int]]
) -> Parked:
    """Wait for an entry; ``$`` is from now on the ID that it stands for, ``+`` stays as it is."""
    argv = call.argv.copy()
    first_id = options.streams_at + len(keys)
    for number, (ms, seq) in enumerate(after):
        if argv[first_id + number] == b"$":
            argv[first_id + number] = format_id(ms, seq)
    return Parked(keys, options.deadline_ms, argv, NULL_ARRAY, EntryAfter(after))


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


def xcount(call: Call) -> object:
    """The bounds are those of XRANGE. Reply: the number of entries from one ID to the other."""
    argv = call.argv
    start = range_start(argv[2])
    end = range_end(argv[3])
    stream = stream_at(call, argv[1])
    return 0 if stream is None else count_between(stream, start, end)


def xsplit(call: Call) -> object:
    """Cut a range into shares.

    With ROWS each share has ``n`` entries, the last one what is left; COUNT asks for the first
    shares only. With PARTS there are at most ``n`` shares that differ by one entry at most.

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
    size = positive_of(argv[5], errors.NOT_POSITIVE)
    most = positive_of(argv[7], errors.NOT_POSITIVE) if len(argv) == 8 else 0
    stream = stream_at(call, argv[1])
    if stream is None:
        return []
    if by_rows:
        return _reply(share_by_rows(stream, start, end, size, most))
    return _reply(share_evenly(stream, start, end, size))


def _reply(shares: list[Share]) -> object:
    found: list[object] = []
    for share in shares:
        first = format_id(share.first[0], share.first[1])
        found.append([first, format_id(share.last[0], share.last[1]), share.count])
    return found
