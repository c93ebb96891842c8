"""Members by chance: SPOP, SRANDMEMBER."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import NOT_POSITIVE, SYNTAX, CommandError, not_between
from headrace.compat.numbers import INT64_MAX, parse_integer
from headrace.protocol.packing import Packer
from headrace.server.changes.events import DELETED
from headrace.server.commands.collections import drop_empty
from headrace.server.commands.deadlines import deletion
from headrace.server.commands.randomness import LOOK_EVERY, generator, random_bits
from headrace.server.commands.sets.events import TAKEN
from headrace.server.commands.sets.values import (
    all_members,
    changeable,
    members_reply,
    set_at,
    set_limits,
)
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.set.set import HASHTABLE, Set

_REMOVED_AT_ONCE: Final = 1024  # members in one record
_KEPT_APART_BELOW: Final = 5  # times the members that stay: these are taken out, the others go
_CHOSEN_BELOW: Final = 3  # times the members asked for: all are looked at


def spop(call: Call) -> object:
    """Recorded as the removal of the members that were taken.

    Reply: a member or nil; with a count a set of as many members as there are.
    """
    argv = call.argv
    key = argv[1]
    if len(argv) > 2:
        return _spop_some(call)
    value = changeable(call, key)
    if value is None:
        return None
    member = value.take_random(random_bits())
    call.changed(key, TAKEN, [b"SREM", key, member])
    drop_empty(call, key, value)
    return member


def _spop_some(call: Call) -> object:
    if len(call.argv) > 3:
        raise CommandError(SYNTAX)
    key = call.argv[1]
    count = parse_integer(call.argv[2])
    if count is None or count < 0:
        raise CommandError(NOT_POSITIVE)
    value = changeable(call, key)
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
    for at in range(0, count, _REMOVED_AT_ONCE):
        call.record([b"SREM", key, *taken[at : at + _REMOVED_AT_ONCE]])
    return members_reply(call, taken)


def _take(call: Call, value: Set, count: int) -> list[bytes]:
    """Take fewer members out of a set than it has.

    Where few of a large set stay, it becomes as small as a new one would be.
    """
    kept = value.size() - count
    if value.encoding(b"") != HASHTABLE or _KEPT_APART_BELOW * kept > count:
        return [value.take_random(random_bits()) for _ in range(count)]
    rest = [value.take_random(random_bits()) for _ in range(kept)]
    taken = value.members()
    call.server.data.free_later(value.replaced_by(rest, set_limits(call.server.config)))
    return taken


def srandmember(call: Call) -> object:
    """With a count below 0 the same member may come again.

    Reply: a member or nil; with a count an array of members.
    """
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
        raise CommandError(not_between(-INT64_MAX, INT64_MAX))
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
    """So many members, fewer than all, each of them once."""
    if _CHOSEN_BELOW * count >= value.size():
        return generator().sample(value.members(), count)
    chosen: dict[bytes, None] = {}
    while len(chosen) < count:
        chosen[value.random(random_bits())] = None
    return list(chosen)
