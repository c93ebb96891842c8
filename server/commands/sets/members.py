"""Single members, or all of a set: SADD, SREM, SMOVE, SISMEMBER, SMEMBERS and their kin."""

from __future__ import annotations

from headrace.protocol.packing import Packer
from headrace.server.commands.collections import drop_empty
from headrace.server.commands.element_scan import EMPTY_SCAN, ElementScan, scan_cursor
from headrace.server.commands.sets.events import ADDED, REMOVED
from headrace.server.commands.sets.values import all_members, changeable, set_at, set_limits
from headrace.server.dispatch.call import Call
from headrace.storage.packed.strings import unpack
from headrace.storage.set.set import new_set


def sadd(call: Call) -> object:
    """Reply: how many members are new."""
    argv = call.argv
    key = argv[1]
    limits = set_limits(call.server.config)
    value = changeable(call, key)
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
    value = changeable(call, key)
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
    """Without a source the destination is not looked at.

    Reply: 1, or 0 where the source does not have the member.
    Source: t_set.c, smoveCommand.
    """
    _, key, target_key, member = call.argv
    source = changeable(call, key)
    if source is None:
        return 0
    target = changeable(call, target_key)
    if source is target:
        return 1 if source.has(member) else 0
    if target is None and call.server.data.region is not None:
        call.refuse_other_keys()
    if not source.remove(member):
        return 0
    call.changed(key, REMOVED, call.argv)
    drop_empty(call, key, source)
    limits = set_limits(call.server.config)
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
    """A small set is answered whole.

    Reply: the next cursor, 0 at the end, and members.
    """
    cursor = scan_cursor(call)
    value = set_at(call, call.argv[1])
    if value is None:
        return EMPTY_SCAN
    scan = ElementScan(call, False)
    pieces: list[bytes] = []
    cursor = value.scan(cursor, scan.count, pieces)
    found: list[object] = []
    for piece in pieces:
        for member in unpack(piece):
            if scan.takes(member):
                found.append(member)
    return [b"%d" % cursor, found]
