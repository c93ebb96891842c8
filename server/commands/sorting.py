"""SORT and SORT_RO."""

from __future__ import annotations

from math import isnan
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.event_classes import EVENT_LIST
from headrace.compat.numbers import parse_double
from headrace.compat.server_errors import BY_DENIED, GET_DENIED
from headrace.protocol.packing import Packer
from headrace.server.changes.events import Event
from headrace.server.clients.session import IN_SCRIPT
from headrace.server.cluster import pattern_slot, slot_of
from headrace.server.commands.shared import store_result
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.permission import may_read_all_keys
from headrace.server.dispatch.rows import Command, finds_keys
from headrace.server.gate import STRICT_SLOTS
from headrace.storage.faces import face
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.timed import has_passed
from headrace.storage.list.list import List, list_of
from headrace.storage.packed.strings import unpack
from headrace.storage.set.set import Set
from headrace.storage.sorted_set.sorted_set import SortedSet, pairs_of
from headrace.storage.string.string import string_bytes

_ARROW: Final = b"->"
_ITSELF: Final = b"#"


class Pattern:
    """A pattern ``#``, a key with ``*`` in the place of the element, or ``key*->field`` of a hash.

    A pattern without ``*`` (``varies``) leads nowhere.
    """

    def __init__(self, text: bytes) -> None:
        self.text: Final = text
        self.is_element: Final = text == _ITSELF
        before, star, rest = text.partition(b"*")
        self.varies: Final = bool(star)
        self._before: Final = before
        after, _, field = rest.partition(_ARROW)
        self._after: Final = after if field else rest
        self._field: Final = field

    def of(self, call: Call, element: bytes) -> bytes | None:
        """Return the value that an element leads to, or None. A key that is not there is a miss."""
        if self.is_element:
            return element
        if not self.varies:
            return None
        value = call.lookup(self._before + element + self._after)
        if value is None:
            return None
        if not self._field:
            return string_bytes(value)
        if not isinstance(value, Hash):
            return None
        if call.db.expire_enabled and has_passed(value.deadline_ms(self._field), call.now_ms):
            return None
        return value.get(self._field)


SORTED: Final = Event(b"sortstore", EVENT_LIST, touches=True, wakes=True)
_VALUES_OF_OPTION: Final = {b"LIMIT": 2, b"GET": 1, b"BY": 1}


@finds_keys("SORT")
def sort_keys(argv: list[bytes]) -> list[int]:
    """Return the key, and that of the last STORE; the keys of BY and GET depend on the elements."""
    found = [1]
    at = 2
    while at < len(argv):
        option = argv[at].upper()
        if option == b"STORE" and at + 1 < len(argv):
            found = [1, at + 1]
        at += 1 + _VALUES_OF_OPTION.get(option, 0)
    return found


@finds_keys("SORT_RO")
def _key_alone(argv: list[bytes]) -> list[int]:
    """Return the one key, because SORT_RO stores nothing."""
    return [1]


def _may_look_up(call: Call) -> bool:
    """Return whether the client may read any key, because BY and GET can lead to any."""
    row = call.row
    assert isinstance(row, Command)
    return may_read_all_keys(call.session.user, row, call.argv)


def _leaves_slot(call: Call, pattern: Pattern) -> bool:
    """Return whether a pattern may lead to keys of other slots, where that is refused."""
    if not call.server.gate.reasons & STRICT_SLOTS or pattern.is_element:
        return False
    return pattern_slot(pattern.text) != slot_of(call.argv[1])


class _Request:
    """``[BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA] [STORE key]``.

    ``by`` is None for the elements themselves. A BY without ``*`` leaves them in their order.
    """

    def __init__(self, call: Call, stores: bool) -> None:
        self.by: Pattern | None = None
        self.ordered = True
        self.offset = 0
        self.count = -1
        self.get: list[Pattern] = []
        self.descending = False
        self.alpha = False
        self.target: bytes | None = None
        args = Args(call.argv, 2)
        while args.left:
            self._take(call, args, args.option(), stores)

    def _take(self, call: Call, args: Args, option: bytes, stores: bool) -> None:
        if option in (b"ASC", b"DESC"):
            self.descending = option == b"DESC"
        elif option == b"ALPHA":
            self.alpha = True
        elif option == b"LIMIT" and args.left >= 2:
            self.offset = args.integer()
            self.count = args.integer()
        elif option == b"STORE" and stores:
            self.target = args.word()
        elif option == b"BY":
            self.by = Pattern(args.word())
            if not self.by.varies:
                self.ordered = False
            elif _leaves_slot(call, self.by):
                raise CommandError(errors.SORT_BY_IN_CLUSTER)
            elif not _may_look_up(call):
                raise CommandError(BY_DENIED)
        elif option == b"GET":
            pattern = Pattern(args.word())
            if _leaves_slot(call, pattern):
                raise CommandError(errors.SORT_GET_IN_CLUSTER)
            if not _may_look_up(call):
                raise CommandError(GET_DENIED)
            self.get.append(pattern)
        else:
            raise CommandError(errors.SYNTAX)

    def elements(self, call: Call) -> list[bytes]:
        """Return the elements in order, before GET leads elsewhere; raises CommandError."""
        value = call.lookup(call.argv[1])
        lasts = self.target is not None or call.session.special & IN_SCRIPT
        if isinstance(value, Set) and not self.ordered and lasts:
            self.ordered = True  # it is not to depend on the order of a table
            self.alpha = True
            self.by = None
        size = 0 if value is None else face(value).size()
        first = min(max(self.offset, 0), size)
        end = size if self.count < 0 else min(first + self.count, size)
        if self.ordered:
            return self._sorted(call, _elements(value, 0, size))[first:end]
        if not self.descending or isinstance(value, Set):
            return _elements(value, first, end)
        elements = _elements(value, size - end, size - first)
        elements.reverse()
        return elements

    def _sorted(self, call: Call, elements: list[bytes]) -> list[bytes]:
        if self.alpha and self.by is None:
            return sorted(elements, reverse=self.descending)
        if self.alpha:
            return self._by_text(call, elements)
        return self._by_number(call, elements)

    def _by_text(self, call: Call, elements: list[bytes]) -> list[bytes]:
        """Sort; those that lead nowhere come first, and equal ones stay in their order."""
        assert self.by is not None
        keys: list[tuple[bool, bytes, int]] = []
        for number, element in enumerate(elements):
            text = self.by.of(call, element)
            place = -number if self.descending else number
            keys.append((text is not None, text or b"", place))
        keys.sort(reverse=self.descending)
        return [elements[abs(place)] for _, _, place in keys]

    def _by_number(self, call: Call, elements: list[bytes]) -> list[bytes]:
        """Sort; those that lead nowhere count 0, and equal ones are in the order of their bytes."""
        scores: list[float] = []
        flawed = False
        for element in elements:
            text = element if self.by is None else self.by.of(call, element)
            score = 0.0 if text is None else parse_double(text)
            flawed = flawed or isnan(score)
            scores.append(score)
        if flawed:
            raise CommandError(errors.NOT_SORTABLE)
        return in_order_of(elements, scores, self.descending)


def in_order_of(elements: list[bytes], scores: list[float], descending: bool) -> list[bytes]:
    """Return elements by their scores; those with equal ones by their bytes.

    Numbers alone are sorted several times as fast as pairs of a number and bytes.
    """
    order = sorted(range(len(elements)), key=scores.__getitem__, reverse=descending)
    found = [elements[place] for place in order]
    start = 0
    for end in range(1, len(found) + 1):
        if end < len(found) and scores[order[end]] == scores[order[start]]:
            continue
        if end - start > 1:
            found[start:end] = sorted(found[start:end], reverse=descending)
        start = end
    return found


def _elements(value: object | None, first: int, end: int) -> list[bytes]:
    """Return the elements from number ``first`` up to and without ``end``, in their own order."""
    if value is None:
        return []
    if isinstance(value, List):
        return unpack(b"".join(value.packed(first, end - first)))
    if isinstance(value, Set):
        return value.members()[first:end]
    if isinstance(value, SortedSet):
        value.make_large()  # Redis does so, and OBJECT ENCODING shows it
        return [pair[0] for run in value.runs(first, end) for pair in pairs_of(run)]
    raise CommandError(errors.WRONGTYPE)


def sort(call: Call) -> object:
    """Recorded as it is where it stores: what it reads is the same on replay.

    Reply: list of the elements, or of what GET finds; with STORE how many there are.
    """
    request = _Request(call, True)
    elements = request.elements(call)
    if request.target is None:
        return _reply(call, request, elements)
    if request.get:
        found = [pattern.of(call, each) or b"" for each in elements for pattern in request.get]
    else:
        found = elements
    value = list_of(found, call.server.data.list_limits)
    store_result(call, request.target, value, SORTED, call.argv)
    return len(found)


def sort_ro(call: Call) -> object:
    """Reply: as of SORT without STORE."""
    request = _Request(call, False)
    return _reply(call, request, request.elements(call))


def _reply(call: Call, request: _Request, elements: list[bytes]) -> object:
    out = Packer(call.session.resp3)
    out.array(len(elements) * max(len(request.get), 1))
    for element in elements:
        if not request.get:
            out.text(element)
        for pattern in request.get:
            found = pattern.of(call, element)
            if found is None:
                out.null()
            else:
                out.text(found)
    return out.packed()
