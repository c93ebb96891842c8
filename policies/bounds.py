"""Streams are kept within bounds: ``max-len``, ``max-bytes``, ``max-age``, ``retention acked``.

XADD looks at the bounds of its stream, and so does time. Always the oldest entries go, and what is
recorded are XTRIM and XDELEX. Where a stream rejects (``overflow reject``) only what all its groups
have acknowledged goes, and XADD gets an error while it is full.

What a group has acknowledged is noted by its rules. All that stands below everything a group has
still to do goes with one XTRIM; what was acknowledged out of its order goes one by one.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import CommandError
from headrace.compat.stream_ids import format_id
from headrace.policies.book import Book, Scope, run_own
from headrace.policies.policy import Bounds
from headrace.policies.rules import ID, Acked
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ORIGINALS
from headrace.storage.sharing import Replicated
from headrace.storage.stream.groups import Group
from headrace.storage.stream.part import Part
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.stream.stream import Stream

SLICE: Final = 10_000  # entries that are removed at once
NODES: Final = 100  # likewise
LANES_NODE: Final = 100  # entries that go together where several regions write a stream
ONE_BY_ONE: Final = 5000  # likewise, by their IDs
DELETED_MOST: Final = 100  # pending entries of a group that were deleted, and are looked past
PAUSE_MS: Final = 1000  # between two looks at a stream whose old entries have to stay


def make_room(call: Call, book: Book, key: bytes, stream: Stream, bounds: Bounds) -> None:
    """Remove what need not stay, if a stream that rejects is full. Raises CommandError if it stays.

    That is the error by which Redis refuses writes when memory is full: producers know it.
    """
    if not bounds.rejects or not _excess(stream, bounds, 1):
        return
    _shorten(call, book, key, stream, bounds, stream.count_before(*done_below(stream)))
    if _excess(stream, bounds, 1):
        book.counters.rejected += 1
        raise CommandError(b"OOM the stream is full: overflow reject")


def take_off(call: Call, book: Book, key: bytes, stream: Stream, bounds: Bounds) -> None:
    """Remove what is too much, or have it looked at in time, after an entry was added."""
    if not bounds.rejects and _excess(stream, bounds, 0):
        _shorten(call, book, key, stream, bounds, stream.length)
        if _excess(stream, bounds, 0):
            book.wake_at((call.db.index, key, None), call.now_ms + 1)
    if bounds.age_ms:
        book.wake_at((call.db.index, key, None), stream.first_id()[0] + bounds.age_ms)


def bound_due(call: Call, book: Book, scope: Scope, now_ms: int) -> None:
    """Keep a stream within its bounds when its moment has come."""
    db = call.db = call.server.data.dbs[scope[0]]
    key = scope[1]
    call.now_ms = now_ms
    bounds = book.bounds_of(db.index, key)
    stream = db.value_of(key, now_ms)
    acked = book.acked.get(scope)
    if acked is not None:
        acked.is_dirty = False
    if bounds is None or not isinstance(stream, Stream):
        book.acked.pop(scope, None)
        return
    again_ms = 0
    if bounds.drops_acked:
        again_ms = _drop_acked(call, book, key, stream, acked)
    if bounds.age_ms and stream.length:
        old = stream.count_before(max(0, now_ms - bounds.age_ms + 1), 0)
        if bounds.rejects:
            old = min(old, stream.count_before(*done_below(stream)))
        _trim(call, book, key, stream, min(old, SLICE), not bounds.rejects)
        pause_ms = PAUSE_MS if bounds.rejects else 1
        next_ms = max(stream.first_id()[0] + bounds.age_ms, now_ms + pause_ms)
        again_ms = min(again_ms, next_ms) if again_ms else next_ms
    if not bounds.rejects and _excess(stream, bounds, 0):
        _shorten(call, book, key, stream, bounds, stream.length)
        if _excess(stream, bounds, 0):
            again_ms = now_ms + 1
    if again_ms:
        book.wake_at(scope, again_ms)


def done_below(stream: Stream) -> ID:
    """Return the ID below which all groups have read and acknowledged everything; 0-0: nothing."""
    if not stream.groups:
        return 0, 0
    bound = (ID_MAX, ID_MAX)
    for group in stream.groups.values():
        last = following(group.last_ms, group.last_seq)
        if group.places is not None:
            coming = group.places.parts(stream, 1)
            last = _first_of(coming[0]) if coming else bound
        bound = min(bound, last, _first_pending(stream, group))
    return bound


def _first_pending(stream: Stream, group: Group) -> ID:
    """Return the first entry that is pending and was not deleted, or an ID below it."""
    place = (ID_MAX, ID_MAX)
    nacks = group.pel.from_id(0, 0, DELETED_MOST)
    for nack in nacks:
        place = (nack.ms, nack.seq)
        if stream.contains(nack.ms, nack.seq):
            return place
    return place if len(nacks) == DELETED_MOST else (ID_MAX, ID_MAX)


def _first_of(part: Part) -> ID:
    return part.run.ms[part.low], part.run.seq[part.low]


def _excess(stream: Stream, bounds: Bounds, more: int) -> bool:
    """Return whether a stream is too long, or too large, with so many entries ``more``."""
    if 0 < bounds.most < stream.length + more:
        return True
    if not bounds.most_bytes or stream.blocks_bytes() < bounds.most_bytes:
        return False
    return more > 0 or _node(stream, stream.length) < stream.length  # the last node stays


def _node(stream: Stream, most: int) -> int:
    """Return how many entries its first node has.

    Where several regions write, a tenth of all go together: up to 100, and ``most``.
    """
    if isinstance(stream, Replicated):
        return min(most, LANES_NODE, stream.length // 10 + 1)
    return stream.head_live()


def _shorten(
    call: Call, book: Book, key: bytes, stream: Stream, bounds: Bounds, removable: int
) -> None:
    """Remove the oldest entries that are too much, of so many that may be."""
    more = 1 if bounds.rejects else 0
    left = min(removable, SLICE)
    if bounds.most:
        left -= _trim(
            call, book, key, stream, min(left, stream.length + more - bounds.most), not more
        )
    for _ in range(NODES):
        count = _node(stream, left)
        is_large = bounds.most_bytes > 0 and stream.blocks_bytes() >= bounds.most_bytes
        if not is_large or not 0 < count <= left or count >= stream.length:
            break
        left -= _trim(call, book, key, stream, count, not more)


def _trim(call: Call, book: Book, key: bytes, stream: Stream, count: int, drops: bool) -> int:
    """Remove the oldest entries; ``drops``: they are pending no more. Return how many."""
    if count <= 0:
        return 0
    words = [b"XTRIM", key, b"MAXLEN", b"=", b"%d" % (stream.length - count)]
    run_own(call, ORIGINALS[b"xtrim"], [*words, b"DELREF"] if drops else words)
    book.counters.removed += count
    return count


def _drop_acked(call: Call, book: Book, key: bytes, stream: Stream, acked: Acked | None) -> int:
    """Remove what all groups have acknowledged; return when more of it is to be removed, or 0."""
    bound = done_below(stream)
    count = stream.count_before(*bound)
    _trim(call, book, key, stream, min(count, SLICE), False)
    if acked is None:
        return call.now_ms + 1 if count > SLICE else 0
    places = [place for place in acked.places if place >= bound]
    acked.places = places[ONE_BY_ONE:]
    ids = [format_id(*place) for place in places[:ONE_BY_ONE]]
    if ids:
        before = stream.length
        run_own(
            call, ORIGINALS[b"xdelex"], [b"XDELEX", key, b"ACKED", b"IDS", b"%d" % len(ids), *ids]
        )
        book.counters.removed += before - stream.length
    return call.now_ms + 1 if count > SLICE or acked.places else 0
