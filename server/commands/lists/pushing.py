"""Adding elements at an end: LPUSH, RPUSH, LPUSHX, RPUSHX."""

from __future__ import annotations

from headrace.server.changes.events import Event
from headrace.server.commands.lists.events import PUSHED_LEFT, PUSHED_RIGHT
from headrace.server.commands.lists.values import list_to_change
from headrace.server.dispatch.call import Call
from headrace.storage.list.list import List


def lpush(call: Call) -> object:
    """Reply: how many elements there are."""
    return _push(call, False, PUSHED_LEFT, True)


def rpush(call: Call) -> object:
    """Reply: how many elements there are."""
    return _push(call, True, PUSHED_RIGHT, True)


def lpushx(call: Call) -> object:
    """Reply: how many elements there are; 0 without a key."""
    return _push(call, False, PUSHED_LEFT, False)


def rpushx(call: Call) -> object:
    """Reply: how many elements there are; 0 without a key."""
    return _push(call, True, PUSHED_RIGHT, False)


def _push(call: Call, right: bool, event: Event, may_create: bool) -> int:
    argv = call.argv
    key = argv[1]
    value = list_to_change(call, key)
    if value is None:
        if not may_create:
            return 0
        value = List()
        call.put(key, value)
    value.push(argv, 2, right, call.server.data.list_limits)
    call.changed(key, event, argv, len(argv) - 2)
    return value.size()
