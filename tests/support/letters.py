"""Our server with a toy collection, to show what a type needs so that clients can wait for it.

A string is the collection and its letters are the elements: ``LPUT key letters`` puts some behind
those that are there, ``LTAKE key [key ...] timeout-ms`` takes the first one of the first key that
has any, and waits where none has. ``LTAKES`` tells how often the function of LTAKE was run.
"""

from __future__ import annotations

import sys

from headrace.compat.event_classes import EVENT_STRING
from headrace.protocol.replies import NULL_ARRAY
from headrace.server.changes.events import Event
from headrace.server.cli import main
from headrace.server.commands.strings.values import string_at
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import BLOCKING, WRITE, KeySpec, command
from headrace.server.dispatch.timeouts import deadline_of
from headrace.server.waiting.elements import ElementOf
from headrace.server.waiting.waiters import Parked

PUT = Event(b"lput", EVENT_STRING, touches=True, wakes=True)
TAKEN = Event(b"ltake", EVENT_STRING, touches=True)
LETTER = ElementOf(b"letters", bytes)
runs = 0


@command("LPUT", arity=3, flags=WRITE, keys=(KeySpec("RW INSERT"),))
def lput(call: Call) -> object:
    """Reply: how many letters there are."""
    key = call.argv[1]
    letters = (string_at(call, key) or b"") + call.argv[2]
    call.put(key, letters)
    call.changed(key, PUT, None)
    return len(letters)


@command("LTAKE", arity=-3, flags=WRITE | BLOCKING, keys=(KeySpec("RW DELETE", last=-2),))
def ltake(call: Call) -> object:
    """Reply: list of the key and a letter; nil at the end of the timeout."""
    global runs
    runs += 1
    keys = call.argv[1:-1]
    deadline_ms = deadline_of(call.argv[-1], call.now_ms)
    for key in keys:
        letters = string_at(call, key)
        if letters:
            if len(letters) > 1:
                call.put(key, letters[1:])
                call.changed(key, TAKEN, None)
            else:
                call.delete(key)
            return [key, letters[:1]]
    if not call.may_block:
        return NULL_ARRAY
    return Parked(keys, deadline_ms, call.argv, NULL_ARRAY, LETTER)


@command("LTAKES", arity=1)
def ltakes(call: Call) -> object:
    """Reply: how often LTAKE was run."""
    return runs


if __name__ == "__main__":
    sys.exit(main())
