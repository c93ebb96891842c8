"""The commands on sets."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.compat.errors import NOT_BETWEEN, NOT_POSITIVE, SYNTAX, CommandError
from headrace.compat.event_classes import EVENT_SET
from headrace.compat.numbers import INT64_MAX
from headrace.compat.type_errors import LIMIT_NEGATIVE, NUMKEYS_NOT_POSITIVE, TOO_MANY_KEYS
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, Packed
from headrace.server.changes.events import DELETED, Event
from headrace.server.commands.shared import (
    EMPTY_SCAN,
    LOOK_EVERY,
    ScanOptions,
    deletion,
    drop_empty,
    random_bits,
    random_places,
    scan_cursor,
    store_result,
)
from headrace.server.commands.together import Ran, Reader, Requests, Values, read_alike
from headrace.server.commands.typed_keys import set_at, set_to_change
from headrace.server.dispatch.args import Args, at_least
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike
from headrace.storage.packed.strings import pack, unpack
from headrace.storage.set.set import (
    HASHTABLE,
    Set,
    difference,
    intersection,
    new_set,
    present,
    set_of,
    stored_difference,
    union,
)
from headrace.storage.string.hyperloglog import Union

ADDED: Final = Event(b"sadd", EVENT_SET, touches=True)
REMOVED: Final = Event(b"srem", EVENT_SET, touches=True)
TAKEN: Final = Event(b"spop", EVENT_SET, touches=True)
INTERSECTION_STORED: Final = Event(b"sinterstore", EVENT_SET, touches=True)
UNION_STORED: Final = Event(b"sunionstore", EVENT_SET, touches=True)
DIFFERENCE_STORED: Final = Event(b"sdiffstore", EVENT_SET, touches=True)


def all_members(call: Call, value: Set | None) -> Packed:
    """Return a reply of all members of a set."""
    out = Packer(call.session.resp3)
    if value is None:
        out.set(0)
    else:
        out.set(value.size())
        for piece in value.pieces():
            out.strings(piece)
    return out.packed()


def members_reply(call: Call, members: list[bytes]) -> Packed:
    """Return a reply of these members, as a set."""
    out = Packer(call.session.resp3)
    out.set(len(members))
    out.strings(pack(members))
    return out.packed()


def sadd(call: Call) -> object:
    """Reply: how many members are new."""
    argv = call.argv
    key = argv[1]
    limits = call.server.data.set_limits
    value = set_to_change(call, key)
    if value is None:
        value = new_set(argv[2], len(argv) - 2, limits)
        call.put(key, value)
    else:
        value.expect(len(argv) - 2, limits)
    added = 0
    for at in range(2, len(argv)):
        if value.add(argv[at], limits):
            added += 1
    if added:
        call.changed(key, ADDED, argv, count=added)
    return added


def srem(call: Call) -> object:
    """Reply: how many members are gone."""
    argv = call.argv
    key = argv[1]
    value = set_to_change(call, key)
    if value is None:
        return 0
    removed = 0
    for at in range(2, len(argv)):
        if value.remove(argv[at]):
            removed += 1
    if removed:
        call.changed(key, REMOVED, argv, count=removed)
        drop_empty(call, key, value)
    return removed


def smove(call: Call) -> object:
    """Without a source the destination is not looked at. Source: t_set.c, smoveCommand.

    Reply: 1, or 0 where the source does not have the member.
    """
    _, key, target_key, member = call.argv
    source = set_to_change(call, key)
    if source is None:
        return 0
    target = set_to_change(call, target_key)
    if source is target:
        return 1 if source.has(member) else 0
    if target is None and call.server.data.region is not None:
        call.refuse_other_keys()
    if not source.remove(member):
        return 0
    call.changed(key, REMOVED, call.argv)
    drop_empty(call, key, source)
    limits = call.server.data.set_limits
    if target is None:
        target = new_set(member, 1, limits)
        call.put(target_key, target)
    if target.add(member, limits):
        call.changed(target_key, ADDED, None)
    return 1


def sismember(call: Call) -> object:
    """Reply: 1 or 0."""
    value = set_at(call, call.argv[1])
    return 1 if value is not None and value.has(call.argv[2]) else 0


def smismember(call: Call) -> object:
    """Reply: 1 or 0 for each member."""
    argv = call.argv
    value = set_at(call, argv[1])
    out = Packer(call.session.resp3)
    out.array(len(argv) - 2)
    for at in range(2, len(argv)):
        out.number(1 if value is not None and value.has(argv[at]) else 0)
    return out.packed()


def scard(call: Call) -> object:
    """Reply: the number of members; 0 without a key."""
    value = set_at(call, call.argv[1])
    return 0 if value is None else value.size()


def smembers(call: Call) -> object:
    """Reply: all members; integers in their order, those of a small set as they were added."""
    return all_members(call, set_at(call, call.argv[1]))


def sscan(call: Call) -> object:
    """A small set is answered whole. Reply: the next cursor, 0 at the end, and members."""
    cursor = scan_cursor(call)
    value = set_at(call, call.argv[1])
    if value is None:
        return EMPTY_SCAN
    scan = ScanOptions(call, 3)
    pieces: list[bytes] = []
    cursor = value.scan(cursor, scan.count, pieces)
    found: list[object] = []
    for piece in pieces:
        for member in unpack(piece):
            if scan.takes(member):
                found.append(member)
    return [b"%d" % cursor, found]


_ALL: Final = INT64_MAX


def _sets(call: Call, keys: list[bytes]) -> list[Set | None]:
    return [set_at(call, key) for key in keys]


def sinter(call: Call) -> object:
    """Reply: the members that all sets have."""
    sets = _sets(call, call.argv[1:])
    if len(sets) == 1:
        return all_members(call, sets[0])
    return members_reply(call, intersection(sets, _ALL))


def sunion(call: Call) -> object:
    """Reply: the members that any of the sets has."""
    sets = _sets(call, call.argv[1:])
    there = present(sets)
    if len(there) < 2:
        return all_members(call, there[0] if there else None)
    return members_reply(call, union(sets, _ALL))


def sdiff(call: Call) -> object:
    """Reply: the members of the first set that no other one has."""
    return members_reply(call, difference(_sets(call, call.argv[1:])))


def sinterstore(call: Call) -> object:
    """Reply: how many members the result has; without any the destination is deleted."""
    members = intersection(_sets(call, call.argv[2:]), _ALL)
    return _store(call, set_of(members, call.server.data.set_limits), INTERSECTION_STORED)


def sunionstore(call: Call) -> object:
    """Reply: how many members the result has; without any the destination is deleted."""
    made = Set()
    limits = call.server.data.set_limits
    for each in present(_sets(call, call.argv[2:])):
        for member in each.members():
            made.add(member, limits)
    return _store(call, made, UNION_STORED)


def sdiffstore(call: Call) -> object:
    """Reply: how many members the result has; without any the destination is deleted."""
    sets = _sets(call, call.argv[2:])
    made = stored_difference(sets, call.server.data.set_limits)
    return _store(call, made, DIFFERENCE_STORED)


def _store(call: Call, made: Set, event: Event) -> int:
    store_result(call, call.argv[1], made, event, call.argv)
    return made.size()


def sintercard(call: Call) -> object:
    """Reply: how many members all sets have, up to the limit."""
    request = _CountRequest(call, False)
    sets = _sets(call, request.keys)
    if len(sets) == 1:
        return 0 if sets[0] is None else min(sets[0].size(), request.limit)
    return len(intersection(sets, request.limit))


def sunioncard(call: Call) -> object:
    """APPROX estimates as PFCOUNT. Reply: how many members any of the sets has, up to the limit."""
    request = _CountRequest(call, True)
    sets = _sets(call, request.keys)
    there = present(sets)
    if request.approx:
        count = _estimate(there)
    elif len(there) == 1:
        count = there[0].size()
    else:
        count = len(union(sets, request.limit))
    return min(count, request.limit)


def _estimate(sets: list[Set]) -> int:
    """Return about how many members the sets have, in constant memory."""
    seen = Union()
    for each in sets:
        for piece in each.pieces():
            seen.see(unpack(piece))
    return seen.estimate()


def sdiffcard(call: Call) -> object:
    """Reply: how many members of the first set no other one has, up to the limit."""
    request = _CountRequest(call, False)
    return min(len(difference(_sets(call, request.keys))), request.limit)


class _CountRequest:
    """The request ``numkeys key [key ...] [APPROX] [LIMIT limit]``; ``approx`` allows APPROX."""

    def __init__(self, call: Call, approx: bool) -> None:
        args = Args(call.argv)
        count = at_least(args.word(), 1, NUMKEYS_NOT_POSITIVE)
        if count > args.left:
            raise CommandError(TOO_MANY_KEYS)
        self.keys: Final = call.argv[2 : 2 + count]
        self.approx = False
        self.limit = _ALL
        args.at += count
        while args.left:
            option = args.option()
            if option == b"LIMIT" and args.left:
                self.limit = args.integer(LIMIT_NEGATIVE)
                if self.limit < 0:
                    raise CommandError(LIMIT_NEGATIVE)
                self.limit = self.limit or _ALL
            elif option == b"APPROX" and approx:
                self.approx = True
            else:
                raise CommandError(SYNTAX)


_REMOVED_AT_ONCE: Final = 1024  # members in one record
_KEPT_APART_BELOW: Final = 5  # times the members that stay: these are taken out, the others go
_CHOSEN_BELOW: Final = 3  # times the members asked for: all are looked at


def spop(call: Call) -> object:
    """Recorded as SREM. Reply: a member or nil; with a count a set of at most so many members."""
    argv = call.argv
    key = argv[1]
    if len(argv) > 2:
        return _spop_some(call)
    value = set_to_change(call, key)
    if value is None:
        return None
    member = value.take_random(random_bits())
    call.changed(key, TAKEN, [b"SREM", key, member] if call.recorded else None)
    drop_empty(call, key, value)
    return member


def _spop_some(call: Call) -> object:
    if len(call.argv) > 3:
        raise CommandError(SYNTAX)
    key = call.argv[1]
    count = at_least(call.argv[2], 0, NOT_POSITIVE)
    value = set_to_change(call, key)
    if value is None or not count:
        return members_reply(call, [])
    size = value.size()
    if count >= size:
        reply = all_members(call, value)
        call.server.data.free_later(call.db.remove(key))
        call.changed(key, TAKEN, None, count=size)
        unlinks = call.server.config.lazyfree_lazy_server_del
        call.changed(key, DELETED, deletion(key, unlinks), count=0)
        return reply
    taken = _take(call, value, count)
    call.changed(key, TAKEN, None, count=count)
    if call.recorded:
        for at in range(0, count, _REMOVED_AT_ONCE):
            call.record([b"SREM", key, *taken[at : at + _REMOVED_AT_ONCE]])
    return members_reply(call, taken)


def _take(call: Call, value: Set, count: int) -> list[bytes]:
    """Take fewer members than the set has; where few of a large set stay, it becomes small."""
    kept = value.size() - count
    if value.encoding(b"") != HASHTABLE or _KEPT_APART_BELOW * kept > count:
        return [value.take_random(random_bits()) for _ in range(count)]
    rest = [value.take_random(random_bits()) for _ in range(kept)]
    taken = value.members()
    call.server.data.free_later(value.replaced_by(rest, call.server.data.set_limits))
    return taken


def srandmember(call: Call) -> object:
    """A count below 0 may repeat members. Reply: a member or nil; with a count an array."""
    argv = call.argv
    if len(argv) > 2:
        return _srandmember_some(call)
    value = set_at(call, argv[1])
    return None if value is None else value.random(random_bits())


def _srandmember_some(call: Call) -> object:
    args = Args(call.argv)
    key = args.word()
    if args.left > 1:
        raise CommandError(SYNTAX)
    count = args.integer()
    if count < -INT64_MAX:
        raise CommandError(NOT_BETWEEN % (-INT64_MAX, INT64_MAX))
    value = set_at(call, key)
    out = Packer(call.session.resp3)
    if value is None or not count:
        out.array(0)
    elif count < 0:
        out.array(-count)
        for number in range(-count):
            out.text(value.random(random_bits()))
            if number % LOOK_EVERY == 0 and call.reply_is_too_long(out.wire_bytes()):
                break
    elif count >= value.size():
        out.array(value.size())
        for piece in value.pieces():
            out.strings(piece)
    else:
        out.array(count)
        for member in _different(value, count):
            out.text(member)
    return out.packed()


def _different(value: Set, count: int) -> list[bytes]:
    """Return ``count`` different members, fewer than all."""
    if _CHOSEN_BELOW * count >= value.size():
        members = value.members()
        return [members[place] for place in random_places(len(members), count)]
    chosen: dict[bytes, None] = {}
    while len(chosen) < count:
        chosen[value.random(random_bits())] = None
    return list(chosen)


@alike("SADD", of_any_key=True)
def sadd_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Add members to sets, which are made where they are missing."""
    if not call.needs_no_events():
        return NONE_ALIKE, NO_REPLIES
    makes = call.needs_no_events_of_any()
    noted = call.notes_changes
    limits = call.server.data.set_limits
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
def srem_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Remove members from sets, up to the request that may leave nothing of one."""
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
    def absent(self, out: Packer) -> None:
        out.number(0)

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        if not isinstance(value, Set):
            return False
        out.number(1 if value.has(words[2]) else 0)
        return True


class _SmallMembers(Reader):
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


read_alike("SISMEMBER", _IsMember(element_at=2))
read_alike("SMEMBERS", _SmallMembers())


@alike("SRANDMEMBER", of_any_key=True)
def srandmember_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Return a random member for each request."""
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
