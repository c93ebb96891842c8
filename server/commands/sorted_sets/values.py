"""What the commands on sorted sets share: the set of a key, its limits, ends of its life."""

from __future__ import annotations

from headrace.compat.errors import WRONGTYPE, CommandError
from headrace.server.commands.collections import drop_empty
from headrace.server.dispatch.call import Call
from headrace.storage.limits import SmallLimits
from headrace.storage.sorted_set.sorted_set import SortedSet


def sorted_set_at(call: Call, key: bytes) -> SortedSet | None:
    """The sorted set of a key or None, for a command that reads; raises WRONGTYPE."""
    value = call.lookup(key)
    if value is None or isinstance(value, SortedSet):
        return value
    raise CommandError(WRONGTYPE)


def sorted_set_to_change(call: Call, key: bytes) -> SortedSet | None:
    """The sorted set of a key or None, for a command that writes; raises WRONGTYPE."""
    value = call.db.get(key, call.now_ms)
    if value is None or isinstance(value, SortedSet):
        return value
    raise CommandError(WRONGTYPE)


def limits(call: Call) -> SmallLimits:
    """Up to which size sorted sets are small."""
    return call.server.data.sorted_set_limits


def new_sorted_set(call: Call, members: int, first_bytes: int) -> SortedSet:
    """An empty set that is to have so many members at most, the first one of this length."""
    made = SortedSet()
    bounds = limits(call)
    if members > bounds.elements or first_bytes > bounds.element_bytes:
        made.make_large()
    return made


def drop_if_empty(call: Call, key: bytes, value: SortedSet) -> None:
    """Remove a key that has lost its last member; see ``drop_empty``."""
    if value.is_empty():
        drop_empty(call, key, value)
