"""Requests of a pipeline for single members of one set: SADD, SREM, SISMEMBER, SRANDMEMBER."""

from __future__ import annotations

from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, PackedReplies
from headrace.server.commands.randomness import generator
from headrace.server.commands.sets import chance, members  # noqa: F401  (the rows)
from headrace.server.commands.sets.values import set_limits
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import NONE_ALIKE, alike
from headrace.storage.packed.hashing import SEED_BITS
from headrace.storage.set.set import Set


@alike("SADD")
def sadd_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Members that join a set that is there."""
    if not call.nobody_listens():
        return NONE_ALIKE, NO_REPLIES
    value = call.db.get(requests[first][1], call.now_ms)
    if not isinstance(value, Set):
        return 0 if value is None else NONE_ALIKE, NO_REPLIES
    limits = set_limits(call.server.config)
    count = len(requests[first])
    value.expect(count - 2, limits)
    _look_ahead(value, requests, first, end)
    out = Packer(call.session.resp3)
    records: list[list[bytes]] = []
    total = 0
    for at in range(first, end):
        words = requests[at]
        added = 0
        for place in range(2, count):
            if value.add(words[place], limits):
                added += 1
        out.number(added)
        if added:
            total += added
            records.append(words)
    call.changed_alike(records, 0, len(records), total)
    return end - first, out.replies()


@alike("SREM")
def srem_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Members that leave a set, up to the request that may leave nothing of it."""
    if not call.nobody_listens():
        return NONE_ALIKE, NO_REPLIES
    value = call.db.get(requests[first][1], call.now_ms)
    if not isinstance(value, Set):
        return 0 if value is None else NONE_ALIKE, NO_REPLIES
    _look_ahead(value, requests, first, end)
    out = Packer(call.session.resp3)
    records: list[list[bytes]] = []
    count = len(requests[first])
    total = 0
    at = first
    while at < end and value.size() > count - 2:
        words = requests[at]
        removed = 0
        for place in range(2, count):
            if value.remove(words[place]):
                removed += 1
        out.number(removed)
        if removed:
            total += removed
            records.append(words)
        at += 1
    call.changed_alike(records, 0, len(records), total)
    return at - first, out.replies()


@alike("SISMEMBER")
def sismember_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Members that are looked for in a set that is there."""
    key = requests[first][1]
    value = call.db.value_of(key, call.now_ms)
    if not isinstance(value, Set):
        return NONE_ALIKE, NO_REPLIES
    _look_ahead(value, requests, first, end)
    out = Packer(call.session.resp3)
    for at in range(first, end):
        out.number(1 if value.has(requests[at][2]) else 0)
    call.note_hits(key, end - first)
    return end - first, out.replies()


@alike("SRANDMEMBER")
def srandmember_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """One member by chance for each request."""
    key = requests[first][1]
    value = call.db.value_of(key, call.now_ms)
    if len(requests[first]) > 2 or not isinstance(value, Set):
        return NONE_ALIKE, NO_REPLIES
    out = Packer(call.session.resp3)
    numbers = generator()
    for _ in range(first, end):
        out.text(value.random(numbers.getrandbits(SEED_BITS)))
    call.note_hits(key, end - first)
    return end - first, out.replies()


def _look_ahead(value: Set, requests: list[list[bytes]], first: int, end: int) -> None:
    """Have what a large set holds of the members of some requests brought into the caches."""
    if value.is_scattered():
        value.look_ahead([words[2] for words in requests[first:end]])
