"""The commands on lists: pushes, pops, reads, changes in the middle, moves, and waiting.

Those that wait for elements are recorded as what they did, by the command that does not wait.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.compat import errors, type_errors
from headrace.compat.errors import CommandError
from headrace.compat.event_classes import EVENT_LIST
from headrace.compat.numbers import INT64_MAX, INT64_MIN, parse_integer
from headrace.protocol.packing import ArraysOfStrings, Packer, packed_strings
from headrace.protocol.replies import NO_REPLIES, NULL_ARRAY, OK
from headrace.server.changes.events import Event
from headrace.server.commands.shared import Pop, drop_empty, positive, wait
from headrace.server.commands.together import Ran, Reader, Requests, Values, read_alike
from headrace.server.commands.typed_keys import list_at, list_to_change
from headrace.server.dispatch.args import Args, at_least, deadline_of_seconds, integer, upper
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike
from headrace.server.waiting import ElementOf
from headrace.storage.list.list import LIST, List

# A client that waits for a number of elements may have enough of them.
PUSHED_LEFT: Final = Event(b"lpush", EVENT_LIST, touches=True, wakes=True)
PUSHED_RIGHT: Final = Event(b"rpush", EVENT_LIST, touches=True, wakes=True)
INSERTED: Final = Event(b"linsert", EVENT_LIST, touches=True, wakes=True)
POPPED_LEFT: Final = Event(b"lpop", EVENT_LIST, touches=True)
POPPED_RIGHT: Final = Event(b"rpop", EVENT_LIST, touches=True)
SET: Final = Event(b"lset", EVENT_LIST, touches=True)
REMOVED: Final = Event(b"lrem", EVENT_LIST, touches=True)
TRIMMED: Final = Event(b"ltrim", EVENT_LIST, touches=True)


def pushed(right: bool) -> Event:
    """Return the event of elements that were added at an end."""
    return PUSHED_RIGHT if right else PUSHED_LEFT


def popped(right: bool) -> Event:
    """Return the event of elements that were removed at an end."""
    return POPPED_RIGHT if right else POPPED_LEFT


def range_of(first: i64, last: i64, size: i64) -> tuple[i64, i64]:
    """Return the start and number of the elements from ``first`` to ``last``, of ``size``.

    Both are included; negative ones are counted from the end.
    """
    if first < 0:
        first = max(0, first + size)
    if last < 0:
        last += size
    last = min(last, size - 1)
    return first, last - first + 1 if first <= last else 0


def is_right(word: bytes) -> bool:
    """Return whether LEFT or RIGHT is RIGHT; raises a syntax error for anything else."""
    end = upper(word)
    if end == b"RIGHT":
        return True
    if end != b"LEFT":
        raise CommandError(errors.SYNTAX)
    return False


def report_pop(
    call: Call, key: bytes, value: List, right: bool, record: list[bytes] | None, count: int
) -> None:
    """Report that ``count`` elements of an end have gone, and the key with the last of them."""
    call.changed(key, popped(right), record, count)
    drop_empty(call, key, value)


_ENDS: Final = (b"LEFT", b"RIGHT")


def _pop_first(call: Call, pop: Pop) -> object:
    for key in pop.keys:
        value = list_to_change(call, key)
        if value is not None:
            count = min(pop.count, value.size())
            strings = value.pop_some(count, pop.last, call.server.data.list_limits)
            record = [b"RPOP" if pop.last else b"LPOP", key, b"%d" % count]
            report_pop(call, key, value, pop.last, record, count)
            return [key, strings]
    return None


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


def lpop(call: Call) -> object:
    """Reply: the element, or with a count a list; nil without a key."""
    return _pop(call, False)


def rpop(call: Call) -> object:
    """Reply: the element, or with a count a list, the last one first; nil without a key."""
    return _pop(call, True)


def _pop(call: Call, right: bool) -> object:
    argv = call.argv
    key = argv[1]
    if len(argv) > 2:
        return _pop_some(call, right)
    value = list_to_change(call, key)
    if value is None:
        return None
    string = value.pop(right, call.server.data.list_limits)
    report_pop(call, key, value, right, argv, 1)
    return string


def _pop_some(call: Call, right: bool) -> object:
    """Source: t_list.c, popGenericCommand: the count is read before the key is looked at."""
    argv = call.argv
    if len(argv) > 3:
        raise CommandError(errors.wrong_arity(call.name()))
    count = at_least(argv[2], 0, errors.NOT_POSITIVE)
    value = list_to_change(call, argv[1])
    if value is None:
        return NULL_ARRAY
    count = min(count, value.size())
    if not count:
        return []
    strings = value.pop_some(count, right, call.server.data.list_limits)
    report_pop(call, argv[1], value, right, argv, count)
    return strings


def lmpop(call: Call) -> object:
    """Recorded as LPOP or RPOP. Reply: [key, [element, ...]] of the first list there is, or nil."""
    popped = _pop_first(call, Pop(call.argv, 1, _ENDS))
    return NULL_ARRAY if popped is None else popped


def llen(call: Call) -> object:
    """Reply: how many elements there are; 0 without a key."""
    value = list_at(call, call.argv[1])
    return 0 if value is None else value.size()


def lindex(call: Call) -> object:
    """Reply: the element, or nil. Source: t_list.c: the index is read behind the key."""
    value = list_at(call, call.argv[1])
    if value is None:
        return None
    index = integer(call.argv[2])
    size = value.size()
    if index < 0:
        index += size
    return value.get(index) if 0 <= index < size else None


def lrange(call: Call) -> object:
    """Both ends are included, negative ones count from the end. Reply: list of the elements."""
    first = integer(call.argv[2])
    last = integer(call.argv[3])
    value = list_at(call, call.argv[1])
    if value is None:
        return []
    start, count = range_of(first, last, value.length())
    return packed_strings(int(count), value.packed(start, count)) if count else []


def lpos(call: Call) -> object:
    """Reply: the index of an equal element or nil; with COUNT a list of indexes."""
    argv = call.argv
    rank = 1
    count = -1
    limit = 0
    args = Args(argv, 3)
    while args.left:
        option = args.option()
        if not args.left:
            raise CommandError(errors.SYNTAX)
        if option == b"RANK":
            rank = args.integer()
            if rank == INT64_MIN:
                raise CommandError(errors.NOT_BETWEEN % (-INT64_MAX, INT64_MAX))
            if not rank:
                raise CommandError(type_errors.RANK_ZERO)
        elif option == b"COUNT":
            count = _not_negative(args, type_errors.COUNT_BELOW_ZERO)
        elif option == b"MAXLEN":
            limit = _not_negative(args, type_errors.MAXLEN_BELOW_ZERO)
        else:
            raise CommandError(errors.SYNTAX)
    value = list_at(call, argv[1])
    if value is None:
        return None if count < 0 else []
    size = value.size()
    limit = min(limit, size) if limit else size
    most = 1 if count < 0 else min(count, size)
    found = value.positions(argv[2], limit, rank > 0, min(abs(rank), size + 1), most)
    return found if count >= 0 else next(iter(found), None)


def _not_negative(args: Args, error: bytes) -> int:
    number = args.integer(error)
    if number < 0:
        raise CommandError(error)
    return number


def lset(call: Call) -> object:
    """Reply: OK. Source: t_list.c: the index is read behind the key."""
    argv = call.argv
    value = list_to_change(call, argv[1])
    if value is None:
        raise CommandError(errors.NO_SUCH_KEY)
    index = integer(argv[2])
    value.expect(argv[3], call.server.data.list_limits)
    size = value.size()
    if index < 0:
        index += size
    if not 0 <= index < size:
        raise CommandError(type_errors.NO_SUCH_INDEX)
    value.set(index, argv[3], call.server.data.list_limits)
    call.changed(argv[1], SET, argv)
    return OK


def linsert(call: Call) -> object:
    """Reply: how many elements there are; -1 without the pivot, 0 without a key."""
    argv = call.argv
    where = upper(argv[2])
    if where not in (b"BEFORE", b"AFTER"):
        raise CommandError(errors.SYNTAX)
    value = list_to_change(call, argv[1])
    if value is None:
        return 0
    value.expect(argv[4], call.server.data.list_limits)
    found = value.positions(argv[3], value.size(), True, 1, 1)
    if not found:
        return -1
    value.insert(found[0], argv[4], where == b"AFTER", call.server.data.list_limits)
    call.changed(argv[1], INSERTED, argv)
    return value.size()


def lrem(call: Call) -> object:
    """Reply: how many were removed."""
    argv = call.argv
    count = integer(argv[2])
    if count == INT64_MIN:
        raise CommandError(errors.NOT_BETWEEN % (-INT64_MAX, INT64_MAX))
    value = list_to_change(call, argv[1])
    if value is None:
        return 0
    most = min(abs(count), value.size())
    removed = value.remove(argv[3], most, count >= 0, call.server.data.list_limits)
    if removed:
        call.changed(argv[1], REMOVED, argv, removed)
        drop_empty(call, argv[1], value)
    return removed


def ltrim(call: Call) -> object:
    """Recorded if anything was removed, reported in any case. Reply: OK."""
    argv = call.argv
    first = integer(argv[2])
    last = integer(argv[3])
    value = list_to_change(call, argv[1])
    if value is None:
        return OK
    size = value.size()
    start, count = range_of(first, last, size)
    kept = int(count)
    if not kept:
        value.cut(size, 0, call.server.data.list_limits)
    elif kept < size:
        value.cut(int(start), size - int(start) - kept, call.server.data.list_limits)
    call.changed(argv[1], TRIMMED, argv if kept < size else None, size - kept)
    drop_empty(call, argv[1], value)
    return OK


def lmove(call: Call) -> object:
    """Reply: the element, or nil without a source."""
    argv = call.argv
    return _move(call, is_right(argv[3]), is_right(argv[4]), argv)


def rpoplpush(call: Call) -> object:
    """Reply: the element, or nil without a source."""
    return _move(call, True, False, call.argv)


def _move(call: Call, from_right: bool, to_right: bool, record: list[bytes]) -> object:
    """Move an element, also within one list; the push is reported before the pop, as in Redis."""
    key, target_key = call.argv[1], call.argv[2]
    source = list_to_change(call, key)
    if source is None:
        return None
    target = _target(call, target_key)
    bounds = call.server.data.list_limits
    string = source.take(from_right)
    target.push([string], 0, to_right, bounds)
    source.shrink(bounds)
    call.changed(target_key, pushed(to_right), record)
    report_pop(call, key, source, from_right, None, 0)
    return string


def _target(call: Call, key: bytes) -> List:
    """Return the list that elements are moved to, which may be a new one."""
    target = list_to_change(call, key)
    if target is None:
        target = List()
        call.put(key, target)
    return target


class Batch:
    """The number and order of elements to move: ``[COUNT|EXACTLY count OBO|BULK]`` from ``at`` on.

    Raises: CommandError. With ``one_by_one`` each is pushed before the next, which reverses them at
    the left.
    """

    def __init__(self, argv: list[bytes], at: int) -> None:
        self.count = 1
        self.exactly = False
        self.one_by_one = False
        given = len(argv) - at
        if not given:
            return
        if given != 3:
            raise CommandError(errors.SYNTAX)
        option = argv[at].upper()
        if option not in (b"COUNT", b"EXACTLY"):
            raise CommandError(errors.SYNTAX)
        self.count = positive(argv[at + 1])
        self.exactly = option == b"EXACTLY"
        order = argv[at + 2].upper()
        if order not in (b"OBO", b"BULK"):
            raise CommandError(errors.SYNTAX)
        self.one_by_one = order == b"OBO"

    def words(self, count: int) -> list[bytes]:
        """Return the option that asks for ``count`` elements in the same order."""
        return [b"EXACTLY", b"%d" % count, b"OBO" if self.one_by_one else b"BULK"]


def lmovem(call: Call) -> object:
    """Reply: list of the elements in the order of the destination; nil if there are too few."""
    argv = call.argv
    from_right, to_right = is_right(argv[3]), is_right(argv[4])
    moved = _move_some(call, from_right, to_right, Batch(argv, 5), False)
    return NULL_ARRAY if moved is None else moved


def _move_some(call: Call, from_right: bool, to_right: bool, batch: Batch, waited: bool) -> object:
    """Move elements from the first key of a request to the second; None if there are too few.

    The push is reported before the pop, unless both are the same key. If ``waited``, the request
    has a timeout, and is recorded as LMOVEM of as many as there were.
    """
    argv = call.argv
    key, target_key = argv[1], argv[2]
    source = list_to_change(call, key)
    if source is None or (batch.exactly and source.size() < batch.count):
        return None
    count = min(source.size(), batch.count)
    target = _target(call, target_key)
    bounds = call.server.data.list_limits
    strings = source.take_some(count, from_right)
    if not batch.one_by_one and from_right == to_right:
        strings.reverse()  # they keep their order
    target.push(strings, 0, to_right, bounds)
    source.shrink(bounds)
    if not to_right:
        strings.reverse()
    record = [b"LMOVEM", *argv[1:5], *batch.words(count)] if waited else argv
    if target is source:
        call.changed(key, popped(from_right), record, count)
        call.changed(key, pushed(to_right), None, 0)
    else:
        call.changed(target_key, pushed(to_right), record, count)
        report_pop(call, key, source, from_right, None, 0)
    return strings


class ElementsOfList(ElementOf):
    """At least a number of elements of a list."""

    def __init__(self, least: int) -> None:
        super().__init__(LIST, List, least)

    def how_many(self, value: object) -> int:
        """Return how long the list is."""
        return value.size() if isinstance(value, List) else 0


ELEMENT: Final = ElementsOfList(1)


def blpop(call: Call) -> object:
    """Reply: the key and the element; nil at the timeout."""
    return _pop_or_wait(call, False)


def brpop(call: Call) -> object:
    """Reply: the key and the element; nil at the timeout."""
    return _pop_or_wait(call, True)


def _pop_or_wait(call: Call, right: bool) -> object:
    argv = call.argv
    deadline_ms = deadline_of_seconds(argv[-1], call.now_ms)
    keys = argv[1:-1]
    for key in keys:
        value = list_to_change(call, key)
        if value is not None:
            string = value.pop(right, call.server.data.list_limits)
            report_pop(call, key, value, right, [b"RPOP" if right else b"LPOP", key], 1)
            return [key, string]
    return wait(call, keys, deadline_ms, ELEMENT)


def blmpop(call: Call) -> object:
    """Reply: [key, [element, ...]] of the first list there is; nil at the timeout."""
    pop = Pop(call.argv, 2, _ENDS)
    deadline_ms = deadline_of_seconds(call.argv[1], call.now_ms)
    popped = _pop_first(call, pop)
    return wait(call, pop.keys, deadline_ms, ELEMENT) if popped is None else popped


def blmove(call: Call) -> object:
    """Reply: the element; nil at the timeout."""
    argv = call.argv
    from_right, to_right = is_right(argv[3]), is_right(argv[4])
    deadline_ms = deadline_of_seconds(argv[5], call.now_ms)
    return _move_or_wait(call, from_right, to_right, deadline_ms, [b"LMOVE", *argv[1:5]])


def brpoplpush(call: Call) -> object:
    """Reply: the element; nil at the timeout."""
    argv = call.argv
    deadline_ms = deadline_of_seconds(argv[3], call.now_ms)
    return _move_or_wait(call, True, False, deadline_ms, [b"RPOPLPUSH", argv[1], argv[2]])


def _move_or_wait(
    call: Call, from_right: bool, to_right: bool, deadline_ms: int, record: list[bytes]
) -> object:
    moved = _move(call, from_right, to_right, record)
    return wait(call, [call.argv[1]], deadline_ms, ELEMENT, None) if moved is None else moved


def blmovem(call: Call) -> object:
    """Reply: list of the elements in the order of the destination; nil at the timeout."""
    argv = call.argv
    from_right, to_right = is_right(argv[3]), is_right(argv[4])
    deadline_ms = deadline_of_seconds(argv[5], call.now_ms)
    batch = Batch(argv, 6)
    moved = _move_some(call, from_right, to_right, batch, True)
    if moved is not None:
        return moved
    interest = ElementsOfList(batch.count) if batch.exactly else ELEMENT
    return wait(call, [argv[1]], deadline_ms, interest)


_POP_WORDS: Final = 2  # without a count


@alike("LPUSH", of_any_key=True)
def lpush_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Push elements in front of lists, which are made where they are missing."""
    return _push_alike(call, requests, first, end, False)


@alike("RPUSH", of_any_key=True)
def rpush_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Push elements behind lists, which are made where they are missing."""
    return _push_alike(call, requests, first, end, True)


def _push_alike(call: Call, requests: Requests, first: int, end: int, right: bool) -> Ran:
    server = call.server
    if not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    values = Values(call, requests, end, writes=True)
    limits = server.data.list_limits
    out = Packer(call.session.resp3)
    at = first
    while at < end:
        words = requests[at]
        value = values.of(at)
        if value is None:
            if server.changes.expired:
                break
            value = List()
            call.db.put(words[1], value, call.now_ms)
            values.made(value)
        elif not isinstance(value, List):
            break
        value.push(words, 2, right, limits)
        out.number(int(value.length()))
        at += 1
    call.changed_alike(requests, first, at, (len(requests[first]) - 2) * (at - first))
    return at - first, out.replies()


@alike("LPOP", of_any_key=True)
def lpop_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Pop first elements of lists, which go with their last one."""
    return _pop_alike(call, requests, first, end, False)


@alike("RPOP", of_any_key=True)
def rpop_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Pop last elements of lists, which go with their last one."""
    return _pop_alike(call, requests, first, end, True)


def _pop_alike(call: Call, requests: Requests, first: int, end: int, right: bool) -> Ran:
    """Pop elements; a request for a missing key is answered, too, but leaves no record."""
    server = call.server
    if len(requests[first]) != _POP_WORDS or not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    values = Values(call, requests, end, writes=True)
    limits = server.data.list_limits
    noted = call.notes_changes
    records: list[list[bytes]] = []
    popped = 0
    out = Packer(call.session.resp3)
    at = first
    while at < end:
        value = values.of(at)
        if value is None:
            if server.changes.expired:
                break
            out.null()
        elif isinstance(value, List):
            out.text(value.pop(right, limits))
            if value.is_empty():
                call.db.remove(requests[at][1])
                values.made(None)
            popped += 1
            if noted:
                records.append(requests[at])
        else:
            break
        at += 1
        if out.wire_bytes() >= ALIKE_BYTES:
            break
    call.changed_alike(records, 0, len(records), popped)
    return at - first, out.replies()


class _Element(Reader):
    def absent(self, out: Packer) -> None:
        out.null()

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        number = parse_integer(words[2])
        if number is None or not isinstance(value, List):
            return False
        index: i64 = number
        size = value.length()
        if index < 0:
            index += size
        if 0 <= index < size:
            out.text(value.get(index))
        else:
            out.null()
        return True


read_alike("LINDEX", _Element())


@alike("LRANGE", of_any_key=True)
def lrange_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Write the elements of lists together."""
    values = Values(call, requests, end)
    out = ArraysOfStrings()
    hits = 0
    at = first
    while at < end:
        words = requests[at]
        low = parse_integer(words[2])
        high = parse_integer(words[3])
        if low is None or high is None:
            break
        value = values.of(at)
        if value is None:
            if call.reports_misses():
                break
            out.array(0)
        else:
            if not isinstance(value, List):
                break
            start, count = range_of(low, high, value.length())
            out.array(int(count))
            if count:
                value.add_packed(out.pieces, start, count)
            hits += 1
        at += 1
        if out.wire_bytes() >= ALIKE_BYTES:
            break
    call.count_reads(hits, at - first - hits)
    return at - first, out.replies()
