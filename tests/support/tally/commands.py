"""The commands on tallies."""

from __future__ import annotations

from headrace.compat.errors import NOT_AN_INTEGER, WRONGTYPE, CommandError
from headrace.compat.event_classes import EVENT_GENERIC
from headrace.compat.numbers import parse_integer
from headrace.server.changes.events import Event
from headrace.server.dispatch.call import Call
from support.tally.value import Tally

MARKED = Event(b"tally.add", EVENT_GENERIC, touches=True)


def as_tally(value: object | None) -> Tally | None:
    if value is None or isinstance(value, Tally):
        return value
    raise CommandError(WRONGTYPE)


def tally_add(call: Call) -> object:
    """``TALLY.ADD key mark``. Reply: the sum of all marks."""
    _, key, word = call.argv
    mark = parse_integer(word)
    if mark is None:
        raise CommandError(NOT_AN_INTEGER)
    tally = as_tally(call.db.get(key, call.now_ms))
    if tally is None:
        if not mark:
            return 0
        tally = Tally([])
        call.put(key, tally)
    tally.marks.append(mark)
    call.changed(key, MARKED, call.argv)
    total = tally.total()
    if tally.is_empty():
        call.delete(key)
    return total


def tally_get(call: Call) -> object:
    """``TALLY.GET key``. Reply: the sum of all marks; 0 without a key."""
    tally = as_tally(call.lookup(call.argv[1]))
    return 0 if tally is None else tally.total()
