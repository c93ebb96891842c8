"""Requests of a pipeline for sets, whatever keys they name: all at once."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, PackedReplies
from headrace.server.commands.randomness import random_bits
from headrace.server.commands.sets import chance, members  # noqa: F401  (the rows)
from headrace.server.commands.sets.values import set_limits
from headrace.server.commands.together import Reader, Values, read_alike
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike
from headrace.storage.set.set import Set, new_set


@alike("SADD", of_any_key=True)
def sadd_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Members that join sets that are there, or are made."""
    if not call.needs_no_events():
        return NONE_ALIKE, NO_REPLIES
    makes = call.needs_no_events_of_any()
    noted = call.notes_changes
    limits = set_limits(call.server.config)
    width: i64 = len(requests[first])
    count = width - 2
    values = Values(call, requests, end, writes=True, element_at=2)
    out = Packer(call.session.resp3)
    records: list[list[bytes]] = []
    total: i64 = 0
    at: i64 = first
    until: i64 = end
    while at < until:
        words = requests[at]
        value = values.of(at)
        if value is None:
            if not makes or call.server.changes.expired:
                break
            value = new_set(words[2], count, limits)
            call.db.put(words[1], value, call.now_ms)
            values.made(value)
        elif not isinstance(value, Set):
            break
        elif count > 1:
            value.expect(count, limits)
        added: i64 = 1 if value.add(words[2], limits) else 0
        for place in range(3, width):
            if value.add(words[place], limits):
                added += 1
        out.number(added)
        if added:
            total += added
            if noted:
                records.append(words)
        at += 1
    call.changed_alike(records, 0, len(records), total)
    return int(at) - first, out.replies()


@alike("SREM", of_any_key=True)
def srem_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Members that leave sets, up to the request that may leave nothing of one."""
    if not call.needs_no_events():
        return NONE_ALIKE, NO_REPLIES
    noted = call.notes_changes
    width: i64 = len(requests[first])
    values = Values(call, requests, end, writes=True, element_at=2)
    out = Packer(call.session.resp3)
    records: list[list[bytes]] = []
    total: i64 = 0
    at: i64 = first
    until: i64 = end
    while at < until:
        words = requests[at]
        value = values.of(at)
        if not isinstance(value, Set) or value.size() <= width - 2:
            break
        removed: i64 = 1 if value.remove(words[2]) else 0
        for place in range(3, width):
            if value.remove(words[place]):
                removed += 1
        out.number(removed)
        if removed:
            total += removed
            if noted:
                records.append(words)
        at += 1
    call.changed_alike(records, 0, len(records), total)
    return int(at) - first, out.replies()


class _IsMember(Reader):
    """Whether a member is there."""

    def absent(self, out: Packer) -> None:
        out.number(0)

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        if not isinstance(value, Set):
            return False
        out.number(1 if value.has(words[2]) else 0)
        return True


class _SmallMembers(Reader):
    """All members of a small set."""

    def absent(self, out: Packer) -> None:
        out.set(0)

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        if not isinstance(value, Set):
            return False
        piece = value.small_piece()
        if piece is None:
            return False
        out.set(value.size())
        out.strings(piece)
        return True


_is_member: Final = _IsMember()
_small_members: Final = _SmallMembers()


@alike("SISMEMBER", of_any_key=True)
def sismember_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Members that are looked for in sets."""
    return read_alike(call, requests, first, end, _is_member, 2)


@alike("SMEMBERS", of_any_key=True)
def smembers_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """All members of small sets."""
    return read_alike(call, requests, first, end, _small_members)


@alike("SRANDMEMBER", of_any_key=True)
def srandmember_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """One member by chance for each request."""
    if len(requests[first]) > 2:
        return NONE_ALIKE, NO_REPLIES
    values = Values(call, requests, end)
    out = Packer(call.session.resp3)
    at: i64 = first
    until: i64 = end
    while at < until:
        value = values.of(at)
        if not isinstance(value, Set):
            break
        out.strings(value.random_packed(random_bits()))
        at += 1
        if out.wire_bytes() >= ALIKE_BYTES:
            break
    call.count_reads(at - first, 0)
    return int(at) - first, out.replies()
