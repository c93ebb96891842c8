"""Access to keys by the type of their values, and changes that several families share.

A function ``..._at`` is for a command that reads, and counts a hit or a miss; ``..._to_change`` is
for one that writes. Both return None without a key, and raise WRONGTYPE for another type.
"""

from __future__ import annotations

from math import isnan
from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from headrace.compat.errors import STRING_TOO_LONG, WRONGTYPE, CommandError
from headrace.compat.event_classes import EVENT_ZSET
from headrace.compat.type_errors import SCORE_IS_NAN
from headrace.protocol.packing import Packer
from headrace.server.changes.events import Event
from headrace.server.clients.session import REPLAY
from headrace.server.commands.together import Values
from headrace.server.dispatch.call import Call
from headrace.storage.array import Array
from headrace.storage.entry import Entry
from headrace.storage.hash.hash import Hash
from headrace.storage.list.list import List
from headrace.storage.set.set import Set
from headrace.storage.sorted_set.sorted_set import NEW, SAME, SortedSet
from headrace.storage.stream.stream import Stream
from headrace.storage.string.string import string_bytes


def array_at(call: Call, key: bytes) -> Array | None:
    """Return the array of a key, for a command that reads."""
    value = call.lookup(key)
    if value is None or isinstance(value, Array):
        return value
    raise CommandError(WRONGTYPE)


def array_to_change(call: Call, key: bytes) -> Array | None:
    """Return the array of a key, for a command that writes."""
    value = call.db.get(key, call.now_ms)
    if value is None or isinstance(value, Array):
        return value
    raise CommandError(WRONGTYPE)


def hash_at(call: Call, key: bytes) -> Hash | None:
    """Return the hash of a key, for a command that reads."""
    value = call.lookup(key)
    if value is None or isinstance(value, Hash):
        return value
    raise CommandError(WRONGTYPE)


def hash_to_change(call: Call, key: bytes) -> Hash | None:
    """Return the hash of a key, for a command that writes."""
    value = call.db.get(key, call.now_ms)
    if value is None or isinstance(value, Hash):
        return value
    raise CommandError(WRONGTYPE)


def list_at(call: Call, key: bytes) -> List | None:
    """Return the list of a key, for a command that reads."""
    value = call.lookup(key)
    if value is None or isinstance(value, List):
        return value
    raise CommandError(WRONGTYPE)


def list_to_change(call: Call, key: bytes) -> List | None:
    """Return the list of a key, for a command that writes."""
    value = call.db.get(key, call.now_ms)
    if value is None or isinstance(value, List):
        return value
    raise CommandError(WRONGTYPE)


def set_at(call: Call, key: bytes) -> Set | None:
    """Return the set of a key, for a command that reads."""
    value = call.lookup(key)
    if value is None or isinstance(value, Set):
        return value
    raise CommandError(WRONGTYPE)


def set_to_change(call: Call, key: bytes) -> Set | None:
    """Return the set of a key, for a command that writes."""
    value = call.db.get(key, call.now_ms)
    if value is None or isinstance(value, Set):
        return value
    raise CommandError(WRONGTYPE)


def sorted_set_at(call: Call, key: bytes) -> SortedSet | None:
    """Return the sorted set of a key, for a command that reads."""
    value = call.lookup(key)
    if value is None or isinstance(value, SortedSet):
        return value
    raise CommandError(WRONGTYPE)


def sorted_set_to_change(call: Call, key: bytes) -> SortedSet | None:
    """Return the sorted set of a key, for a command that writes."""
    value = call.db.get(key, call.now_ms)
    if value is None or isinstance(value, SortedSet):
        return value
    raise CommandError(WRONGTYPE)


def stream_at(call: Call, key: bytes) -> Stream | None:
    """Return the stream of a key, for a command that reads."""
    value = call.lookup(key)
    if value is None or isinstance(value, Stream):
        return value
    raise CommandError(WRONGTYPE)


def stream_to_change(call: Call, key: bytes) -> Stream | None:
    """Return the stream of a key, for a command that writes."""
    value = call.db.get(key, call.now_ms)
    if value is None or isinstance(value, Stream):
        return value
    raise CommandError(WRONGTYPE)


def string_at(call: Call, key: bytes) -> bytes | None:
    """Return the bytes of a string or None, for a command that reads; raises WRONGTYPE."""
    value = call.lookup(key)
    if value is None or isinstance(value, bytes):
        return value
    text = string_bytes(value)
    if text is None:
        raise CommandError(WRONGTYPE)
    return text


def buffer_at(call: Call, key: bytes) -> bytes | bytearray | None:
    """Return the string of ``string_at``, only to be read, without copying a writable one."""
    value = call.lookup(key)
    if value is None or isinstance(value, (bytes, bytearray)):
        return value
    text = string_bytes(value)
    if text is None:
        raise CommandError(WRONGTYPE)
    return text


def writable(call: Call, key: bytes) -> Entry | None:
    """Return the entry of a string that is about to change, or None; raises WRONGTYPE."""
    found = call.db.entry(key, call.now_ms)
    if found is None or isinstance(found.value, (bytes, int, bytearray)):
        return found
    raise CommandError(WRONGTYPE)


ADDED: Final = Event(b"zadd", EVENT_ZSET, touches=True)

# Options of ZADD.
NX: Final[i64] = 1
XX: Final[i64] = 2
GT: Final[i64] = 4
LT: Final[i64] = 8
CH: Final[i64] = 16
INCR: Final[i64] = 32


def new_sorted_set(call: Call, members: int, first_bytes: int) -> SortedSet:
    """Return an empty set for at most ``members`` members, the first of ``first_bytes`` bytes."""
    made = SortedSet()
    bounds = call.server.data.sorted_set_limits
    if members > bounds.elements or first_bytes > bounds.element_bytes:
        made.make_large()
    return made


def put_one(call: Call, key: bytes, score: float, member: bytes) -> i64:
    """Put a member into a set, which may be new; return ``NEW``, ``SAME`` or neither."""
    value = sorted_set_to_change(call, key)
    if value is None:
        value = new_sorted_set(call, 1, len(member))
        call.put(key, value)
    return value.put(member, score, call.server.data.sorted_set_limits)


def put_together(
    call: Call,
    requests: list[list[bytes]],
    first: int,
    place: i64,
    scores: vec[float],
    out: Packer,
    changed: list[int],
) -> int:
    """Put members into sets, which may be new, for requests that are run at once.

    Args:
        first: the request that has the first of the scores.
        place: where in each request its member stands.
        out, changed: get whether each member is new, and which requests have changed their sets.

    Returns: the first request that was not run.
    """
    values = Values(call, requests, first + len(scores), writes=True)
    bounds = call.server.data.sorted_set_limits
    end = first + len(scores)
    at = first
    while at < end:
        words = requests[at]
        key = words[1]
        value = values.of(at)
        if value is None:
            if call.server.changes.expired:
                break
            made = new_sorted_set(call, 1, len(words[place]))
            call.db.put(key, made, call.now_ms)
            values.made(made)
            value = made
        elif not isinstance(value, SortedSet):
            break
        until = at + 1
        if value.is_spread():
            while until < end and requests[until][1] is key:
                until += 1
        if until > at + 1:
            wanted = scores[at - first : until - first]
            olds = value.put_all(requests, at, place, wanted)
            for each in range(until - at):
                _note_put(olds[each], wanted[each], at + each, out, changed)
        else:
            score = scores[at - first]
            became = value.put(words[place], score, bounds)
            if became != SAME:
                changed.append(at)
            out.number(1 if became == NEW else 0)
        at = until
    return at


def _note_put(old: float, score: float, at: int, out: Packer, changed: list[int]) -> None:
    is_new = isnan(old)
    if is_new or old != score:
        changed.append(at)
    out.number(1 if is_new else 0)


class Adding:
    """Pairs that are put into the sorted set of a key, by the rules of ZADD.

    ``added`` and ``updated`` count members that are new or have another score. ``score`` is that of
    the last member; not a number if a condition refused it.
    """

    def __init__(self, key: bytes, options: i64) -> None:
        self.key: Final = key
        self.options: Final[i64] = options
        self.scores: Final[list[float]] = []
        self.members: Final[list[bytes]] = []
        self.added = 0
        self.updated = 0
        self.score = 0.0

    def add_pair(self, score: float, member: bytes) -> None:
        """Add a pair to put there."""
        self.scores.append(score)
        self.members.append(member)

    def run(self, call: Call) -> None:
        """Put the pairs there; raises CommandError for another type, or a sum that is no number."""
        value = sorted_set_to_change(call, self.key)
        options = self.options
        members = self.members
        self.score = float("nan")
        if value is None:
            if options & XX:
                return
            value = new_sorted_set(call, len(members), len(members[0]))
            call.put(self.key, value)
        bounds = call.server.data.sorted_set_limits
        if len(members) > bounds.elements:
            value.make_large()
        for at, member in enumerate(members):
            score = self.scores[at]
            old = value.score(member)
            if isnan(old):
                if options & XX:
                    score = old
                else:
                    value.add(member, score, bounds)
                    self.added += 1
            elif options & NX:
                score = float("nan")
            else:
                if options & INCR:
                    score += old
                    if isnan(score):
                        raise CommandError(SCORE_IS_NAN)
                if (options & GT and score <= old) or (options & LT and score >= old):
                    score = float("nan")
                elif score != old:
                    value.change(member, old, score)
                    self.updated += 1
            self.score = score


_ZEROS: Final = bytes(1 << 16)


def in_place(call: Call, found: Entry) -> bytearray:
    """Return the string of an entry in writable form; counts as an access."""
    value = found.value
    if isinstance(value, bytearray):
        call.db.touch(found.key, call.now_ms)
    else:
        value = bytearray(string_bytes(value) or b"")
        call.db.replace(found.key, value, call.now_ms)
    return value


def lengthen(target: bytearray, size: int) -> None:
    """Fill a string up with zeros to at least ``size`` bytes.

    One short piece of zeros is added again and again, because a long one would have to be made.
    """
    lacking = size - len(target)
    while lacking > 0:
        target += _ZEROS[:lacking]
        lacking -= len(_ZEROS)


def check_length(call: Call, size: int) -> None:
    """Raise for a string that would be longer than the configuration allows."""
    if size > call.server.config.proto_max_bulk_len and not call.session.special & REPLAY:
        raise CommandError(STRING_TOO_LONG)
