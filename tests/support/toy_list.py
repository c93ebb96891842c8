"""Our server with a toy list, to show what a type needs so that clients can wait for its elements.

A string is the list and its letters are the elements: RPUSH, LLEN and BLPOP do to it what Redis's
do to a list. ``BLPOPS`` tells how often the function of BLPOP was run.
"""

from __future__ import annotations

import sys

from headrace.compat.event_classes import EVENT_LIST
from headrace.protocol.replies import NULL_ARRAY
from headrace.server.changes.events import Event
from headrace.server.cli import main
from headrace.server.commands.string_keys import string_at
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import BLOCKING, READONLY, WRITE, KeySpec, command
from headrace.server.dispatch.timeouts import deadline_of
from headrace.server.waiting.elements import ElementOf
from headrace.server.waiting.waiters import Parked

PUSHED = Event(b"rpush", EVENT_LIST, touches=True, wakes=True)
POPPED = Event(b"lpop", EVENT_LIST, touches=True)
ELEMENT = ElementOf(b"list", bytes)
runs = 0


@command("RPUSH", arity=-3, flags=WRITE, keys=(KeySpec("RW INSERT"),))
def rpush(call: Call) -> object:
    """``RPUSH key letter [letter ...]``. Reply: how many elements there are."""
    key = call.argv[1]
    elements = (string_at(call, key) or b"") + b"".join(call.argv[2:])
    call.put(key, elements)
    call.changed(key, PUSHED, None)
    return len(elements)


@command("LLEN", arity=2, flags=READONLY, keys=(KeySpec("RO"),))
def llen(call: Call) -> object:
    """``LLEN key``. Reply: how many elements there are."""
    return len(string_at(call, call.argv[1]) or b"")


@command("BLPOP", arity=-3, flags=WRITE | BLOCKING, keys=(KeySpec("RW DELETE", last=-2),))
def blpop(call: Call) -> object:
    """``BLPOP key [key ...] seconds``. Reply: list of the key and an element; nil in the end."""
    global runs
    runs += 1
    keys = call.argv[1:-1]
    deadline_ms = deadline_of(b"%d" % (float(call.argv[-1]) * 1000), call.now_ms)
    for key in keys:
        elements = string_at(call, key)
        if elements:
            if len(elements) > 1:
                call.put(key, elements[1:])
                call.changed(key, POPPED, None)
            else:
                call.delete(key)
            return [key, elements[:1]]
    if not call.may_block:
        return NULL_ARRAY
    return Parked(keys, deadline_ms, call.argv, NULL_ARRAY, ELEMENT)


@command("BLPOPS", arity=1)
def blpops(call: Call) -> object:
    """``BLPOPS``. Reply: how often BLPOP was run."""
    return runs


if __name__ == "__main__":
    sys.exit(main())
