"""The commands on arrays, which are strings by index; ARGREP and AROP read their elements."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat import errors, glob, long_double, type_errors
from headrace.compat.errors import CommandError
from headrace.compat.event_classes import EVENT_ARRAY
from headrace.compat.long_double import LongDouble
from headrace.compat.numbers import INT64_MAX, INT64_MIN, parse_unsigned
from headrace.protocol.packing import Packer
from headrace.protocol.replies import BigNumber, Map
from headrace.server.changes.events import Event
from headrace.server.commands.shared import drop_empty
from headrace.server.commands.typed_keys import array_at, array_to_change
from headrace.server.dispatch.args import Args, integer
from headrace.server.dispatch.call import Call
from headrace.storage.array import EXHAUSTED, GREATEST, SLOTS, Array, Walk, element

SET: Final = Event(b"arset", EVENT_ARRAY, touches=True)
SEVERAL_SET: Final = Event(b"armset", EVENT_ARRAY, touches=True)
INSERTED: Final = Event(b"arinsert", EVENT_ARRAY, touches=True)
PUT_IN_RING: Final = Event(b"arring", EVENT_ARRAY, touches=True)
CURSOR_SET: Final = Event(b"arseek", EVENT_ARRAY, touches=True)
REMOVED: Final = Event(b"ardel", EVENT_ARRAY, touches=True)
RANGE_REMOVED: Final = Event(b"ardelrange", EVENT_ARRAY, touches=True)


def created(call: Call, key: bytes) -> Array:
    """Return a new array for a key, without elements yet."""
    array = Array()
    call.put(key, array)
    return array


def index_of(word: bytes, greatest: int = GREATEST) -> int:
    """Return the index that a word spells; raises CommandError for anything else."""
    index = parse_unsigned(word)
    if index is None or index > greatest:
        raise CommandError(type_errors.BAD_INDEX)
    return index


def number(value: int) -> object:
    """Return the reply for an unsigned number of up to 64 bits."""
    return value if value <= INT64_MAX else BigNumber(value)


def add_number(packer: Packer, value: int) -> None:
    """Add an unsigned number of up to 64 bits to a reply."""
    if value <= INT64_MAX:
        packer.number(value)
    else:
        packer.big_number(value)


def arset(call: Call) -> object:
    """Set elements next to each other. Reply: how many there were not before."""
    argv = call.argv
    key = argv[1]
    index = index_of(argv[2])
    if index + len(argv) - 4 > GREATEST:
        raise CommandError(type_errors.INDEX_OVERFLOW)
    array = array_to_change(call, key)
    if array is None:
        array = created(call, key)
    fresh = 0
    for string in argv[3:]:
        fresh += array.put(index, string)
        index += 1
    call.changed(key, SET, argv, count=len(argv) - 3)
    return fresh


def armset(call: Call) -> object:
    """Set elements anywhere. Reply: how many there were not before."""
    argv = call.argv
    key = argv[1]
    if len(argv) % 2:
        raise CommandError(errors.wrong_arity(call.name()))
    indexes = [index_of(word) for word in argv[2::2]]
    array = array_to_change(call, key)
    if array is None:
        array = created(call, key)
    fresh = 0
    for place, index in enumerate(indexes):
        fresh += array.put(index, argv[3 + 2 * place])
    call.changed(key, SEVERAL_SET, argv, count=len(indexes))
    return fresh


def arget(call: Call) -> object:
    """Reply: the element, or nil."""
    array = array_at(call, call.argv[1])
    index = index_of(call.argv[2])
    return None if array is None else array.get(index)


def armget(call: Call) -> object:
    """Reply: the elements in the order asked for, nil for each that is not there."""
    array = array_at(call, call.argv[1])
    indexes = [index_of(word) for word in call.argv[2:]]
    found: list[object] = [None if array is None else array.get(index) for index in indexes]
    return found


def ardel(call: Call) -> object:
    """Reply: how many were there."""
    argv = call.argv
    key = argv[1]
    indexes = [index_of(word) for word in argv[2:]]
    array = array_to_change(call, key)
    if array is None:
        return 0
    removed = 0
    for index in indexes:
        removed += array.remove(index)
    if removed:
        call.changed(key, REMOVED, argv, count=removed)
        drop_empty(call, key, array)
    return removed


def ardelrange(call: Call) -> object:
    """Both ends are included, and either may stand first. Reply: how many were there."""
    argv = call.argv
    key = argv[1]
    if len(argv) % 2:
        raise CommandError(errors.wrong_arity(call.name()))
    bounds = [index_of(word) for word in argv[2:]]
    array = array_to_change(call, key)
    if array is None:
        return 0
    removed = 0
    for place in range(0, len(bounds), 2):
        start, end = bounds[place], bounds[place + 1]
        removed += array.remove_range(min(start, end), max(start, end))
    if removed:
        call.changed(key, RANGE_REMOVED, argv, count=removed)
        drop_empty(call, key, array)
    return removed


_MOST: Final = 1_000_000  # indexes that ARGETRANGE goes through


def argetrange(call: Call) -> object:
    """Reply: what each index holds, nil for nothing; backwards where the end stands first."""
    argv = call.argv
    start = index_of(argv[2])
    end = index_of(argv[3])
    array = array_at(call, argv[1])
    low, high = min(start, end), max(start, end)
    if high - low >= _MOST:
        raise CommandError(type_errors.RANGE_TOO_LONG)
    packer = Packer(call.session.resp3)
    packer.array(high - low + 1)
    reverse = start > end
    written = 0
    if array is not None:
        walk = Walk(array, low, high, reverse)
        while walk.step():
            for slot in slots_of(walk.mask, reverse):
                gap = (high - walk.base - slot if reverse else walk.base + slot - low) - written
                _add_nulls(packer, gap)
                packer.text(element(walk.piece, slot) or b"")
                written += gap + 1
    _add_nulls(packer, high - low + 1 - written)
    return packer.packed()


def _add_nulls(packer: Packer, count: int) -> None:
    for _ in range(count):
        packer.null()


def slots_of(mask: int, reverse: bool) -> list[int]:
    """Return the bits of a mask that are set, from the lowest on, or from the highest."""
    found = [slot for slot in range(SLOTS) if (mask >> slot) & 1]
    if reverse:
        found.reverse()
    return found


def limit_of(word: bytes) -> int:
    """Return how many elements LIMIT allows."""
    limit = integer(word)
    if limit <= 0:
        raise CommandError(type_errors.LIMIT_NOT_POSITIVE)
    return limit


def arscan(call: Call) -> object:
    """Reply: pairs of an index and its element, of those that are there."""
    argv = call.argv
    start = index_of(argv[2])
    end = index_of(argv[3])
    if len(argv) not in (4, 6):
        raise CommandError(errors.wrong_arity(call.name()))
    left = -1
    if len(argv) == 6:
        if argv[4].upper() != b"LIMIT":
            raise CommandError(errors.SYNTAX)
        left = limit_of(argv[5])
    array = array_at(call, argv[1])
    if array is None:
        return []
    pairs = Packer(call.session.resp3)
    count = 0
    reverse = start > end
    walk = Walk(array, min(start, end), max(start, end), reverse)
    while count != left and walk.step():
        for slot in slots_of(walk.mask, reverse):
            if count == left:
                break
            pairs.array(2)
            add_number(pairs, walk.base + slot)
            pairs.text(element(walk.piece, slot) or b"")
            count += 1
    packer = Packer(call.session.resp3)
    packer.array(count)
    packer.add(pairs)
    return packer.packed()


def arinsert(call: Call) -> object:
    """Reply: the index of the last one."""
    argv = call.argv
    key = argv[1]
    array = array_to_change(call, key)
    count = len(argv) - 2
    if array is not None and array.cursor + count - 1 > GREATEST:
        raise CommandError(type_errors.INSERT_OVERFLOW)
    if array is None:
        array = created(call, key)
    for string in argv[2:]:
        array.put(array.cursor, string)
        array.cursor += 1
    call.changed(key, INSERTED, argv, count=count)
    return number(array.cursor - 1)


def arring(call: Call) -> object:
    """Put elements round the first ``size`` indexes; the last ones before the cursor stay.

    Reply: the index of the last one.
    """
    argv = call.argv
    key = argv[1]
    size = integer(argv[2], type_errors.BAD_SIZE)
    if size <= 0:
        raise CommandError(type_errors.SIZE_NOT_POSITIVE)
    array = array_to_change(call, key)
    if array is None:
        array = created(call, key)
    else:
        _fit_ring(array, size)
    index = 0
    for string in argv[3:]:
        index = array.cursor % size
        array.put(index, string)
        array.cursor = index + 1
    call.changed(key, PUT_IN_RING, argv, count=len(argv) - 3)
    return index


def _fit_ring(array: Array, size: int) -> None:
    """Put the elements before the cursor to the front, in order, if the ring changes its size.

    A ring that grows needs that only if it has gone round: its cursor is within. What lies behind a
    gap, as seen from the cursor, is no part of the ring.
    """
    length = array.length()
    if size == length or (size > length and not 0 < array.cursor < length):
        return
    kept: list[bytes] = []
    index = (array.cursor - 1) % length
    for _ in range(min(size, array.size())):
        string = array.get(index)
        if string is None:
            break
        kept.append(string)
        index = (index - 1) % length
    array.remove_range(0, GREATEST)
    for string in kept:
        index = len(kept) - 1 - array.size()
        array.put(index, string)
    array.cursor = len(kept)


def _before_cursor(array: Array, most: int) -> list[int]:
    """Return the indexes of the last insertions, the latest first, at most one for each element.

    Before index 0 comes the last one, because the cursor of a ring has gone round.
    """
    count = min(most, array.size())
    index = array.cursor
    found: list[int] = []
    for _ in range(count):
        index = (index if index > 0 else array.length()) - 1
        found.append(index)
    return found


def arseek(call: Call) -> object:
    """Set the cursor. Reply: 1, or 0 without a key."""
    argv = call.argv
    index = index_of(argv[2], EXHAUSTED)
    array = array_to_change(call, argv[1])
    if array is None:
        return 0
    array.cursor = index
    call.changed(argv[1], CURSOR_SET, argv)
    return 1


def arnext(call: Call) -> object:
    """Reply: the cursor; nil where it is behind the greatest index."""
    array = array_at(call, call.argv[1])
    if array is None:
        return 0
    return None if array.cursor == EXHAUSTED else number(array.cursor)


def arlastitems(call: Call) -> object:
    """Reply: the last elements before the cursor, the oldest first, nil for each gap."""
    argv = call.argv
    count = integer(argv[2], type_errors.BAD_COUNT)
    if count <= 0:
        return []
    if len(argv) > 4:
        raise CommandError(errors.wrong_arity(call.name()))
    if len(argv) == 4 and argv[3].upper() != b"REV":
        raise CommandError(errors.SYNTAX)
    array = array_at(call, argv[1])
    if array is None:
        return []
    found: list[object] = [array.get(index) for index in _before_cursor(array, count)]
    if len(argv) == 3:
        found.reverse()
    return found


_SLICE: Final = 4096
_SLICE_BITS: Final = 12
_SPARSE: Final = 10  # elements up to which a slice of Redis is sparse
_LEAST_SPARSE: Final = 4  # elements that a sparse one has room for; the room doubles
_LEAST_DENSE: Final = 16  # slots of a dense one
_DIRECTORY: Final = 2048  # slices beyond which Redis has a directory of directories


def arlen(call: Call) -> object:
    """Reply: the greatest index and one; 0 without a key."""
    array = array_at(call, call.argv[1])
    return 0 if array is None else number(array.length())


def arcount(call: Call) -> object:
    """Reply: how many elements are there."""
    array = array_at(call, call.argv[1])
    return 0 if array is None else array.size()


def arinfo(call: Call) -> object:
    """Reply: a map, with what Redis would have allocated for the elements that are there."""
    argv = call.argv
    full = len(argv) == 3 and argv[2].upper() == b"FULL"
    if len(argv) > 2 and not full:
        raise CommandError(errors.SYNTAX)
    array = array_at(call, argv[1])
    if array is None:
        raise CommandError(errors.NO_SUCH_KEY)
    slices = array.redis_slices()
    beyond = slices[-1] >= _DIRECTORY if slices else False
    blocks = len({place // _DIRECTORY for place in slices})
    size = 1 << slices[-1].bit_length() if slices and not beyond else max(4, blocks)
    pairs: list[tuple[object, object]] = [
        (b"count", array.size()),
        (b"len", number(array.length())),
        (b"next-insert-index", 0 if array.cursor == EXHAUSTED else number(array.cursor)),
        (b"slices", len(slices)),
        (b"directory-size", size),
        (b"super-dir-entries", blocks if beyond else 0),
        (b"slice-size", _SLICE),
    ]
    if full:
        pairs += _Slices(array).shown()
    return Map(pairs)


class _Slices:
    """The slices that Redis has for an array whose elements have come from the lowest up."""

    def __init__(self, array: Array) -> None:
        self._dense = 0
        self._dense_slots = 0
        self._dense_elements = 0
        self._sparse = 0
        self._sparse_room = 0
        walk = Walk(array, 0, GREATEST, False)
        at = -1
        count = 0
        first = 0
        last = 0
        while walk.step():
            if walk.base >> _SLICE_BITS != at:
                self._add(count, last - first + 1)
                at = walk.base >> _SLICE_BITS
                count = 0
                first = walk.base + (walk.mask & -walk.mask).bit_length() - 1
            count += walk.mask.bit_count()
            last = walk.base + walk.mask.bit_length() - 1
        self._add(count, last - first + 1)

    def _add(self, count: int, span: int) -> None:
        if count > _SPARSE:
            self._dense += 1
            self._dense_elements += count
            self._dense_slots += max(_LEAST_DENSE, _power_of_two(span))
        elif count:
            self._sparse += 1
            self._sparse_room += min(_SPARSE, max(_LEAST_SPARSE, _power_of_two(count)))

    def shown(self) -> list[tuple[object, object]]:
        return [
            (b"dense-slices", self._dense),
            (b"sparse-slices", self._sparse),
            (b"avg-dense-size", self._dense_slots / self._dense if self._dense else 0.0),
            (b"avg-dense-fill", self._dense_elements / self._dense_slots if self._dense else 0.0),
            (b"avg-sparse-size", self._sparse_room / self._sparse if self._sparse else 0.0),
        ]


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


@mypyc_attr(allow_interpreted_subclasses=False)
class Predicate:
    """A condition for elements."""

    @abstractmethod
    def holds(self, string: bytes) -> bool:
        """Return whether an element meets it."""


class Text(Predicate):
    """An element equals a text, or contains it."""

    def __init__(self, text: bytes, whole: bool, ignore_case: bool) -> None:
        self._text: Final = text.lower() if ignore_case else text
        self._whole: Final = whole
        self._ignore_case: Final = ignore_case

    def holds(self, string: bytes) -> bool:
        if self._ignore_case:
            string = string.lower()
        return string == self._text if self._whole else self._text in string


class Glob(Predicate):
    """A pattern with wildcards fits an element."""

    def __init__(self, pattern: bytes, ignore_case: bool) -> None:
        self._glob: Final[glob.Glob] = glob.compiled(pattern, ignore_case)

    def holds(self, string: bytes) -> bool:
        return self._glob.matches(string)


class Expression(Predicate):
    """A regular expression fits somewhere in an element; raises CommandError for an invalid one."""

    def __init__(self, pattern: bytes, ignore_case: bool) -> None:
        from headrace.compat import regex  # late, because few ask for them

        try:
            self._regex: Final = regex.Regex(pattern, ignore_case)
        except regex.BadRegex as error:
            raise CommandError(type_errors.bad_regex(error.text)) from None

    def holds(self, string: bytes) -> bool:
        return self._regex.fits(string)


_LAST: Final = -1  # the last index of the array
_MOST_PREDICATES: Final = 250
_MOST_PATTERN_BYTES: Final = 2048  # of a regular expression
_PREDICATES: Final = (b"EXACT", b"MATCH", b"GLOB", b"RE")


class _Options:
    """Predicates, and ``[AND|OR] [LIMIT n] [WITHVALUES] [NOCASE]``, in any order."""

    def __init__(self, args: Args) -> None:
        self.all = False
        self.limit = -1
        self.with_values = False
        self._ignore_case = False
        self._asked: list[tuple[bytes, bytes]] = []
        while args.left:
            option = args.option()
            if option in _PREDICATES:
                self._ask(option, args.word())
            elif option == b"LIMIT":
                self.limit = limit_of(args.word())
            elif option == b"WITHVALUES":
                self.with_values = True
            elif option == b"NOCASE":
                self._ignore_case = True
            elif option in (b"AND", b"OR"):
                self.all = option == b"AND"
            else:
                raise CommandError(errors.SYNTAX)
        if not self._asked:
            raise CommandError(errors.SYNTAX)
        self.predicates: Final = [self._predicate(name, word) for name, word in self._asked]

    def _ask(self, name: bytes, word: bytes) -> None:
        if len(self._asked) == _MOST_PREDICATES:
            raise CommandError(type_errors.TOO_MANY_PREDICATES)
        if name == b"RE" and len(word) > _MOST_PATTERN_BYTES:
            raise CommandError(type_errors.REGEX_TOO_LONG)
        self._asked.append((name, word))

    def _predicate(self, name: bytes, word: bytes) -> Predicate:
        if name == b"GLOB":
            return Glob(word, self._ignore_case)
        if name == b"RE":
            return Expression(word, self._ignore_case)
        return Text(word, name == b"EXACT", self._ignore_case)

    def hold(self, string: bytes) -> bool:
        """Return whether one of the predicates holds, or all."""
        for predicate in self.predicates:
            if predicate.holds(string) != self.all:
                return not self.all
        return self.all


def argrep(call: Call) -> object:
    """Reply: the indexes of the elements, or pairs of these and the elements."""
    argv = call.argv
    start = _bound(argv[2])
    end = _bound(argv[3])
    options = _Options(Args(argv, 4))
    array = array_at(call, argv[1])
    if array is None:
        return []
    start = array.length() - 1 if start == _LAST else start
    end = array.length() - 1 if end == _LAST else end
    found = Packer(call.session.resp3)
    count = 0
    reverse = start > end
    walk = Walk(array, min(start, end), max(start, end), reverse)
    while count != options.limit and walk.step():
        for slot in slots_of(walk.mask, reverse):
            string = element(walk.piece, slot) or b""
            if count == options.limit or not options.hold(string):
                continue
            if options.with_values:
                found.array(2)
            add_number(found, walk.base + slot)
            if options.with_values:
                found.text(string)
            count += 1
    packer = Packer(call.session.resp3)
    packer.array(count)
    packer.add(found)
    return packer.packed()


def _bound(word: bytes) -> int:
    """Return an end of the range: an index, ``-`` for the first one or ``+`` for the last."""
    if word == b"-":
        return 0
    return _LAST if word == b"+" else index_of(word)


@mypyc_attr(allow_interpreted_subclasses=False)
class _Sum:
    """Base of AROP's operations, which take elements one after another."""

    @abstractmethod
    def take(self, string: bytes) -> None:
        raise NotImplementedError

    @abstractmethod
    def result(self) -> object:
        raise NotImplementedError


class _Count(_Sum):
    """USED and MATCH: how many there are, or are equal to something."""

    def __init__(self, wanted: bytes | None) -> None:
        self._wanted: Final = wanted
        self._count = 0

    def take(self, string: bytes) -> None:
        if self._wanted is None or string == self._wanted:
            self._count += 1

    def result(self) -> object:
        return self._count


class _Bits(_Sum):
    """AND, OR and XOR of integers; fractions are cut off, and what is no number is left out."""

    def __init__(self, name: bytes) -> None:
        self._name: Final = name
        self._bits = 0
        self._any = False

    def take(self, string: bytes) -> None:
        value = long_double.parse(string)
        if value is None or value.infinite:
            return
        number = long_double.truncated(value)
        if not INT64_MIN <= number <= INT64_MAX:
            return
        if not self._any:
            self._any = True
            self._bits = number
        elif self._name == b"AND":
            self._bits &= number
        elif self._name == b"OR":
            self._bits |= number
        else:
            self._bits ^= number

    def result(self) -> object:
        return self._bits if self._any else None


class _Numbers(_Sum):
    """SUM, MIN and MAX of what is a number."""

    def __init__(self, name: bytes) -> None:
        self._name: Final = name
        self._value: LongDouble | None = None
        self._minus_zero = False  # so far it is 0 with a sign, which a reply shows
        self._nan = False  # infinities of both signs were added

    def take(self, string: bytes) -> None:
        value = long_double.parse(string)
        if value is None:
            return
        before = self._value
        minus_zero = value.mantissa == 0 and string.startswith(b"-")
        if before is None:
            self._value = value
            self._minus_zero = minus_zero
        elif self._name == b"SUM":
            if before.infinite and value.infinite and before.mantissa != value.mantissa:
                self._nan = True
            self._value = long_double.add(before, value)
            self._minus_zero = self._minus_zero and minus_zero
        elif self._is_better(value, before):
            self._value = value
            self._minus_zero = minus_zero

    def _is_better(self, value: LongDouble, before: LongDouble) -> bool:
        if self._name == b"MIN":
            return long_double.exceeds(before, value)
        return long_double.exceeds(value, before)

    def result(self) -> object:
        if self._nan:
            return b"nan"
        if self._minus_zero:
            return b"-0"
        return None if self._value is None else long_double.short_text(self._value)


def _operation(argv: list[bytes], name: bytes) -> _Sum:
    operation = argv[4].upper()
    if operation == b"MATCH":
        if len(argv) != 6:
            raise CommandError(type_errors.MATCH_NEEDS_VALUE)
        return _Count(argv[5])
    made: _Sum | None = None
    if operation == b"USED":
        made = _Count(None)
    elif operation in (b"AND", b"OR", b"XOR"):
        made = _Bits(operation)
    elif operation in (b"SUM", b"MIN", b"MAX"):
        made = _Numbers(operation)
    if made is None:
        raise CommandError(type_errors.UNKNOWN_OPERATION)
    if len(argv) != 5:
        raise CommandError(errors.wrong_arity(name))
    return made


def arop(call: Call) -> object:
    """Reply: a number; nil where no element has to do with it."""
    argv = call.argv
    start = index_of(argv[2])
    end = index_of(argv[3])
    operation = _operation(argv, call.name())
    array = array_at(call, argv[1])
    if array is not None:
        backwards = start > end  # it shows in the sign of zero, and where a sum is rounded
        walk = Walk(array, min(start, end), max(start, end), backwards)
        while walk.step():
            for slot in slots_of(walk.mask, backwards):
                operation.take(element(walk.piece, slot) or b"")
    return operation.result()
