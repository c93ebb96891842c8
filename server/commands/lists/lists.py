"""The commands on one list: pushes, pops, reads, and changes in the middle."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.compat.errors import (
    COUNT_BELOW_ONE,
    NO_SUCH_KEY,
    NOT_AN_INTEGER,
    NOT_POSITIVE,
    NUMKEYS_BELOW_ONE,
    SYNTAX,
    CommandError,
    not_between,
    wrong_arity,
)
from headrace.compat.event_classes import EVENT_LIST
from headrace.compat.numbers import INT64_MAX, INT64_MIN, parse_integer
from headrace.compat.type_errors import (
    COUNT_BELOW_ZERO,
    MAXLEN_BELOW_ZERO,
    NO_SUCH_INDEX,
    RANK_ZERO,
)
from headrace.protocol.packing import ArraysOfStrings, Packer, packed_strings
from headrace.protocol.replies import NO_REPLIES, NULL_ARRAY, OK, PackedReplies
from headrace.server.changes.events import Event
from headrace.server.commands.shared import drop_empty
from headrace.server.commands.together import Reader, Values, read_alike
from headrace.server.commands.typed_keys import list_at, list_to_change
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike
from headrace.storage.list.list import List
from headrace.storage.list.piece import NodeLimits

# Whoever waits for a number of elements may have enough of them.
PUSHED_LEFT: Final = Event(b"lpush", EVENT_LIST, touches=True, wakes=True)
PUSHED_RIGHT: Final = Event(b"rpush", EVENT_LIST, touches=True, wakes=True)
INSERTED: Final = Event(b"linsert", EVENT_LIST, touches=True, wakes=True)
POPPED_LEFT: Final = Event(b"lpop", EVENT_LIST, touches=True)
POPPED_RIGHT: Final = Event(b"rpop", EVENT_LIST, touches=True)
SET: Final = Event(b"lset", EVENT_LIST, touches=True)
REMOVED: Final = Event(b"lrem", EVENT_LIST, touches=True)
TRIMMED: Final = Event(b"ltrim", EVENT_LIST, touches=True)


def pushed(right: bool) -> Event:
    """Elements were added at an end."""
    return PUSHED_RIGHT if right else PUSHED_LEFT


def popped(right: bool) -> Event:
    """Elements were taken away at an end."""
    return POPPED_RIGHT if right else POPPED_LEFT


def range_of(first: i64, last: i64, size: i64) -> tuple[i64, i64]:
    """Where the elements from ``first`` to ``last`` begin, and how many of ``size`` they are.

    Both are included; negative ones are counted from the end.
    """
    if first < 0:
        first = max(0, first + size)
    if last < 0:
        last += size
    last = min(last, size - 1)
    return first, last - first + 1 if first <= last else 0


def limits(call: Call) -> NodeLimits:
    """Return how large a node of Redis's may become."""
    return call.server.data.list_limits


def is_right(word: bytes) -> bool:
    """Return whether LEFT or RIGHT is RIGHT; raises a syntax error for anything else."""
    end = word.upper()
    if end == b"RIGHT":
        return True
    if end != b"LEFT":
        raise CommandError(SYNTAX)
    return False


def report_pop(
    call: Call, key: bytes, value: List, right: bool, record: list[bytes] | None, count: int
) -> None:
    """Report that so many elements of an end have gone, and the key with the last of them."""
    call.changed(key, popped(right), record, count)
    if value.is_empty():
        drop_empty(call, key, value)


def positive(word: bytes) -> int:
    """Return how many elements a request is about; at least one."""
    count = parse_integer(word)
    if count is None or count < 1:
        raise CommandError(COUNT_BELOW_ONE)
    return count


class Pop:
    """``numkeys key [key ...] LEFT|RIGHT [COUNT count]``: what LMPOP and BLMPOP are to do.

    Args:
        at: where ``numkeys`` stands.

    Raises: CommandError.
    """

    def __init__(self, argv: list[bytes], at: int) -> None:
        args = Args(argv, at)
        number = args.integer(NUMKEYS_BELOW_ONE)
        if number < 1:
            raise CommandError(NUMKEYS_BELOW_ONE)
        if number >= args.left:
            raise CommandError(SYNTAX)
        self.keys = argv[args.at : args.at + number]
        args.at += number
        self.right = is_right(args.word())
        self.count = 1
        if args.flag(b"COUNT"):
            self.count = positive(args.word())
        args.end()

    def run(self, call: Call) -> object:
        """Pop from the first list there is.

        Reply: [key, [element, ...]], or None where there is no list.
        """
        for key in self.keys:
            value = list_to_change(call, key)
            if value is None:
                continue
            count = min(self.count, value.size())
            strings = value.pop_some(count, self.right, limits(call))
            name = b"RPOP" if self.right else b"LPOP"
            report_pop(call, key, value, self.right, [name, key, b"%d" % count], count)
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
        raise CommandError(wrong_arity(call.name()))
    count = parse_integer(argv[2])
    if count is None or count < 0:
        raise CommandError(NOT_POSITIVE)
    value = list_to_change(call, argv[1])
    if value is None:
        return NULL_ARRAY
    count = min(count, value.size())
    if not count:
        return []
    strings = value.pop_some(count, right, limits(call))
    report_pop(call, argv[1], value, right, argv, count)
    return strings


def lmpop(call: Call) -> object:
    """Recorded as LPOP or RPOP of the key.

    Reply: [key, [element, ...]] of the first list there is, or nil.
    """
    popped = Pop(call.argv, 1).run(call)
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
    index = parse_integer(call.argv[2])
    if index is None:
        raise CommandError(NOT_AN_INTEGER)
    size = value.size()
    if index < 0:
        index += size
    return value.get(index) if 0 <= index < size else None


def lrange(call: Call) -> object:
    """Both ends are included, negative ones are counted from the end of the list.

    Reply: list of the elements.
    """
    first = parse_integer(call.argv[2])
    last = parse_integer(call.argv[3])
    if first is None or last is None:
        raise CommandError(NOT_AN_INTEGER)
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
            raise CommandError(SYNTAX)
        if option == b"RANK":
            rank = args.integer()
            if rank == INT64_MIN:
                raise CommandError(not_between(-INT64_MAX, INT64_MAX))
            if not rank:
                raise CommandError(RANK_ZERO)
        elif option == b"COUNT":
            count = _not_negative(args, COUNT_BELOW_ZERO)
        elif option == b"MAXLEN":
            limit = _not_negative(args, MAXLEN_BELOW_ZERO)
        else:
            raise CommandError(SYNTAX)
    value = list_at(call, argv[1])
    if value is None:
        return None if count < 0 else []
    size = value.size()
    limit = min(limit, size) if limit else size
    most = 1 if count < 0 else min(count, size)
    found = value.positions(argv[2], limit, rank > 0, min(abs(rank), size + 1), most)
    if count >= 0:
        return found
    return found[0] if found else None


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
        raise CommandError(NO_SUCH_KEY)
    index = parse_integer(argv[2])
    if index is None:
        raise CommandError(NOT_AN_INTEGER)
    value.expect(argv[3], limits(call))
    size = value.size()
    if index < 0:
        index += size
    if not 0 <= index < size:
        raise CommandError(NO_SUCH_INDEX)
    value.set(index, argv[3], limits(call))
    call.changed(argv[1], SET, argv)
    return OK


def linsert(call: Call) -> object:
    """Reply: how many elements there are; -1 without the pivot, 0 without a key."""
    argv = call.argv
    where = argv[2].upper()
    if where not in (b"BEFORE", b"AFTER"):
        raise CommandError(SYNTAX)
    value = list_to_change(call, argv[1])
    if value is None:
        return 0
    value.expect(argv[4], limits(call))
    found = value.positions(argv[3], value.size(), True, 1, 1)
    if not found:
        return -1
    value.insert(found[0], argv[4], where == b"AFTER", limits(call))
    call.changed(argv[1], INSERTED, argv)
    return value.size()


def lrem(call: Call) -> object:
    """Reply: how many were removed."""
    argv = call.argv
    count = parse_integer(argv[2])
    if count is None:
        raise CommandError(NOT_AN_INTEGER)
    if count == INT64_MIN:
        raise CommandError(not_between(-INT64_MAX, INT64_MAX))
    value = list_to_change(call, argv[1])
    if value is None:
        return 0
    most = min(abs(count), value.size())
    removed = value.remove(argv[3], most, count >= 0, limits(call))
    if removed:
        call.changed(argv[1], REMOVED, argv, removed)
        if value.is_empty():
            drop_empty(call, argv[1], value)
    return removed


def ltrim(call: Call) -> object:
    """Recorded if anything was removed, reported in any case.

    Reply: OK.
    """
    argv = call.argv
    first = parse_integer(argv[2])
    last = parse_integer(argv[3])
    if first is None or last is None:
        raise CommandError(NOT_AN_INTEGER)
    value = list_to_change(call, argv[1])
    if value is None:
        return OK
    size = value.size()
    if first < 0:
        first = max(0, first + size)
    if last < 0:
        last += size
    last = min(last, size - 1)
    kept = max(0, last - first + 1)
    if not kept:
        value.cut(size, 0, limits(call))
    elif kept < size:
        value.cut(first, size - 1 - last, limits(call))
    call.changed(argv[1], TRIMMED, argv if kept < size else None, size - kept)
    if not kept:
        drop_empty(call, argv[1], value)
    return OK


_POP_WORDS: Final = 2  # without a count


@alike("LPUSH", of_any_key=True)
def lpush_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Elements in front of lists that are there, or are made."""
    return _push_alike(call, requests, first, end, False)


@alike("RPUSH", of_any_key=True)
def rpush_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Elements behind lists that are there, or are made."""
    return _push_alike(call, requests, first, end, True)


def _push_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int, right: bool
) -> tuple[int, PackedReplies]:
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
def lpop_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """First elements of lists, which go with their last one."""
    return _pop_alike(call, requests, first, end, False)


@alike("RPOP", of_any_key=True)
def rpop_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Last elements of lists, which go with their last one."""
    return _pop_alike(call, requests, first, end, True)


def _pop_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int, right: bool
) -> tuple[int, PackedReplies]:
    """A request for a key that is not there is answered as well, but leaves no record."""
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
    """The element at an index."""

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


_element: Final = _Element()


@alike("LINDEX", of_any_key=True)
def lindex_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Single elements of lists."""
    return read_alike(call, requests, first, end, _element)


@alike("LRANGE", of_any_key=True)
def lrange_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Elements of lists, put together in one go."""
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
