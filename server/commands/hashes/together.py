"""HGET, HGETALL, HSET and HINCRBY in a pipeline, whatever keys they name: all at once."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.compat.numbers import INT64_MAX, INT64_MIN, parse_integer
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, PackedReplies
from headrace.server.commands.hashes import counting, fields, whole  # noqa: F401  (the rows)
from headrace.server.commands.together import Reader, Values, read_alike
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import NONE_ALIKE, alike
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.small import HEAD, count_of

_SET_WORDS: Final = 4  # one field
_SURELY_INT64: Final = 2**61


class _Field(Reader):
    """The value of a field."""

    def absent(self, out: Packer) -> None:
        out.null()

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        if not isinstance(value, Hash) or value.is_timed():
            return False
        packed = value.get_packed(words[2])
        if packed is None:
            out.null()
        else:
            out.strings(packed)
        return True


class _SmallHash(Reader):
    """All fields of a small hash."""

    def absent(self, out: Packer) -> None:
        out.map(0)

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        rep = value.rep if isinstance(value, Hash) else None
        if not isinstance(rep, bytes):
            return False
        out.map(count_of(rep))
        out.strings(rep[HEAD:])
        return True


_field: Final = _Field()
_small_hash: Final = _SmallHash()


@alike("HGET", of_any_key=True)
def hget_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Single fields of hashes of which no field expires."""
    return read_alike(call, requests, first, end, _field, 2)


@alike("HGETALL", of_any_key=True)
def hgetall_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Small hashes of which no field expires."""
    return read_alike(call, requests, first, end, _small_hash)


@alike("HSET", of_any_key=True)
def hset_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Fields of hashes of which no field expires, or that are made."""
    server = call.server
    width: i64 = len(requests[first])
    if width % 2 or not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    limits = server.data.hash_limits
    fits = width == _SET_WORDS and limits.elements > 0  # else ``fit`` has to look at all words
    values = Values(call, requests, end, writes=True, element_at=2)
    out = Packer(call.session.resp3)
    at: i64 = first
    until: i64 = end
    while at < until:
        words = requests[at]
        value = values.of(at)
        if value is None:
            if server.changes.expired:
                break
            value = Hash()
            call.db.put(words[1], value, call.now_ms)
            values.made(value)
        elif not isinstance(value, Hash) or value.is_timed():
            break
        if not fits:
            value.fit(words, 2, limits)
        added: i64 = 1 if value.put(words[2], words[3], limits) else 0
        for place in range(_SET_WORDS, width, 2):
            if value.put(words[place], words[place + 1], limits):
                added += 1
        out.number(added)
        at += 1
    call.changed_alike(requests, first, at, (width // 2 - 1) * (at - first))
    return int(at) - first, out.replies()


@alike("HINCRBY", of_any_key=True)
def hincrby_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Numbers in hashes that are there, of which no field expires."""
    if not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    limits = call.server.data.hash_limits
    values = Values(call, requests, end, writes=True, element_at=2)
    out = Packer(call.session.resp3)
    at: i64 = first
    until: i64 = end
    while at < until:
        words = requests[at]
        value = values.of(at)
        if not isinstance(value, Hash) or value.is_timed():
            break
        total = parse_integer(words[3])
        old = value.get(words[2])
        number = 0 if old is None else parse_integer(old)
        if total is None or number is None:
            break
        total += number
        # The outer bounds are no machine words, so that to compare with them takes longer.
        if not -_SURELY_INT64 < total < _SURELY_INT64 and not INT64_MIN <= total <= INT64_MAX:
            break
        value.put(words[2], b"%d" % total, limits)
        out.number(total)
        at += 1
    call.changed_alike(requests, first, at, at - first)
    return int(at) - first, out.replies()
