"""The keys of a request: which words they are, what the command does with each, and their slot.

A row's key specs describe where the keys stand; where they cannot, the row has a function of its
own (``finds_keys``), such as ``xread_keys`` below. Either way, a request has no keys if they cannot
be found because its syntax is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.compat.numbers import leading_integer, parse_integer
from headrace.server.clients.session import Session
from headrace.server.cluster import slot_of
from headrace.server.dispatch.rows import Command, KeySpec, finds_keys

_NOT_KEY: Final = "NOT_KEY"
_INCOMPLETE: Final = "INCOMPLETE"
_VARIABLE_FLAGS: Final = "VARIABLE_FLAGS"
_CONDITIONS: Final = (b"IFEQ", b"IFNE", b"IFDEQ", b"IFDNE")
_WORDS_OF_READER: Final = {b"GET": 2, b"OVERFLOW": 1}
_VALUES_OF_OPTION: Final = {
    b"BLOCK": 1,
    b"CLAIM": 1,
    b"COUNT": 1,
    b"GROUP": 2,
    b"MAXCOUNT": 1,
    b"MAXSIZE": 1,
    b"NOACK": 0,
    b"STABLE": 0,  # of regions alone
}


class KeyUse:
    """A key of a request: where it stands, and in a key spec's words what is done with it."""

    def __init__(self, position: int, flags: list[str]) -> None:
        self.position: Final = position
        self.flags: Final = flags


def has_keys(row: Command) -> bool:
    """Return whether a command takes keys at all."""
    return row.find_keys is not None or any(_NOT_KEY not in spec.flags for spec in row.keys)


def key_positions(row: Command, argv: list[bytes], with_channels: bool = False) -> list[int]:
    """Return the indexes in ``argv`` of the keys; ``with_channels``, of shard channels, too."""
    if row.find_keys is not None:
        return row.find_keys(argv)
    positions: list[int] = []
    for spec in row.keys:
        if _NOT_KEY in spec.flags and not with_channels:
            continue
        found = _positions_of(spec, argv)
        if found is None:
            return []
        positions.extend(found)
    return positions


def key_uses(row: Command, argv: list[bytes]) -> list[KeyUse]:
    """Return the keys of a request, each with the flags of its key spec."""
    if row.find_keys is not None:
        positions = row.find_keys(argv)
        first = _found_flags(row, 0)
        others = _found_flags(row, -1)  # SORT and GEORADIUS read the first, and write another
        uses = [KeyUse(position, first) for position in positions[:1]]
        return uses + [KeyUse(position, others) for position in positions[1:]]
    uses = []
    for spec in row.keys:
        if _NOT_KEY in spec.flags:
            continue
        found = _positions_of(spec, argv)
        if found is None:
            return []
        flags = spec.flags
        if _VARIABLE_FLAGS in flags and row.name in _VARIABLE:
            flags = _VARIABLE[row.name](argv)
        uses.extend([KeyUse(position, flags) for position in found])
        if spec.counted and _is_odd(argv[_begin(spec, argv)]):
            return _uses_of_odd_count(uses, spec.step)
    return uses


def _is_odd(count: bytes) -> bool:
    """Return whether a number of keys is not spelled as numbers are, such as 01."""
    return parse_integer(count) is None


def _uses_of_odd_count(uses: list[KeyUse], step: int) -> list[KeyUse]:
    """Return the keys as Redis finds them without specs: no flags, and the written one last.

    For pairs it has no such way.
    """
    if step > 1:
        return []
    stored = uses[:1] if uses and "OW" in uses[0].flags else []
    return [KeyUse(use.position, []) for use in uses[len(stored) :] + stored]


def _found_flags(row: Command, at: int) -> list[str]:
    return [flag for flag in row.keys[at].flags if flag != _INCOMPLETE] if row.keys else []


def _positions_of(spec: KeySpec, argv: list[bytes]) -> list[int] | None:
    """Return where one spec finds keys; None if the request is too short or ill formed."""
    count = len(argv)
    first = _begin(spec, argv)
    if first == 0:
        return []
    if spec.counted:
        if first >= count:
            return None
        number = leading_integer(argv[first])
        if number < 0:
            return None
        first += 1
        last = first + (number - 1) * spec.step
    else:
        if spec.last >= 0:
            last = first + spec.last
        elif spec.limit:
            last = first + (count - first) // spec.limit + spec.last
        else:
            last = count + spec.last
        if last < first <= count:
            return []  # a list of keys that may be empty
    if first >= count or last >= count or last < first:
        return None
    return list(range(first, last + 1, spec.step))


def _begin(spec: KeySpec, argv: list[bytes]) -> int:
    """Return the index of a spec's first key; 0 where its keyword does not occur."""
    begin = spec.begin
    if isinstance(begin, int):
        return begin
    keyword = begin.encode()
    count = len(argv)
    if spec.begin_from > 0:
        order = range(spec.begin_from, count - 1)
    else:
        order = range(count + spec.begin_from, 1, -1)
    for index in order:
        if 1 <= index < count and argv[index].upper() == keyword:
            return index + 1
    return 0


@finds_keys("XREAD", "XREADGROUP")
def xread_keys(argv: list[bytes]) -> list[int]:
    """Return the keys of XREAD and XREADGROUP.

    Options are stepped over one by one: a group, a consumer or a key may be called STREAMS.
    """
    count = len(argv)
    position = 1
    while position < count:
        word = argv[position].upper()
        if word == b"STREAMS":
            rest = count - position - 1
            if rest % 2:
                return []
            return list(range(position + 1, position + 1 + rest // 2))
        values = _VALUES_OF_OPTION.get(word)
        if values is None:
            return []
        position += 1 + values
    return []


def _set_flags(argv: list[bytes]) -> list[str]:
    """Return SET's use of its key: GET returns the old value, a condition looks at it."""
    if any(word.upper() == b"GET" for word in argv[3:]):
        return ["RW", "ACCESS", "UPDATE"]
    return ["RW", "UPDATE"] if _has_condition(argv[3:]) else ["OW", "UPDATE"]


def _delex_flags(argv: list[bytes]) -> list[str]:
    """Return DELEX's use of its key: without a condition it looks at nothing."""
    return ["RW", "DELETE"] if _has_condition(argv[2:]) else ["RM", "DELETE"]


def _has_condition(options: list[bytes]) -> bool:
    return any(word.upper() in _CONDITIONS for word in options)


def _bitfield_flags(argv: list[bytes]) -> list[str]:
    """Return BITFIELD's use of its key: GET alone changes nothing."""
    at = 2
    while at < len(argv):
        words = _WORDS_OF_READER.get(argv[at].upper(), len(argv))
        if at + words >= len(argv):
            return ["RW", "ACCESS", "UPDATE"]
        at += 1 + words
    return ["RO", "ACCESS"]


_VARIABLE: Final[dict[bytes, Callable[[list[bytes]], list[str]]]] = {
    b"bitfield": _bitfield_flags,
    b"set": _set_flags,
    b"delex": _delex_flags,
}


NO_SLOT: Final = -1
SEVERAL_SLOTS: Final = -2


def slot_of_request(row: Command, argv: list[bytes]) -> int:
    """Return the slot of all keys of a request; ``NO_SLOT`` without keys, or ``SEVERAL_SLOTS``."""
    slot = NO_SLOT
    for position in key_positions(row, argv, True):
        other = slot_of(argv[position])
        if slot not in (NO_SLOT, other):
            return SEVERAL_SLOTS
        slot = other
    return slot


def crosses_slots(session: Session, row: Command, argv: list[bytes]) -> bool:
    """Return whether a request has keys of several slots; EXEC has those of all that was queued."""
    transaction = session.transaction
    if row.name != b"exec" or transaction is None:
        return slot_of_request(row, argv) == SEVERAL_SLOTS
    slot = NO_SLOT
    for queued, words in zip(transaction.rows, transaction.requests, strict=True):
        assert isinstance(queued, Command)
        other = slot_of_request(queued, words)
        if other != NO_SLOT:
            if slot not in (NO_SLOT, other):
                return True
            slot = other
    return False
