"""Elements that look as asked for, and one number from all of them: ARGREP and AROP."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat import glob, long_double
from headrace.compat.errors import SYNTAX, CommandError, wrong_arity
from headrace.compat.long_double import LongDouble
from headrace.compat.numbers import INT64_MAX, INT64_MIN
from headrace.compat.type_errors import (
    MATCH_NEEDS_VALUE,
    REGEX_TOO_LONG,
    TOO_MANY_PREDICATES,
    UNKNOWN_OPERATION,
)
from headrace.protocol.packing import Packer
from headrace.server.commands.arrays.arrays import add_number, index_of, limit_of, slots_of
from headrace.server.commands.typed_keys import array_at
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.array import Walk, element


@mypyc_attr(allow_interpreted_subclasses=False)
class Predicate:
    """Says what an element has to be like."""

    @abstractmethod
    def holds(self, string: bytes) -> bool:
        """Return whether it is."""
        raise NotImplementedError


class Text(Predicate):
    """An element is a text, or has it within."""

    def __init__(self, text: bytes, whole: bool, ignore_case: bool) -> None:
        self._text: Final = text.lower() if ignore_case else text
        self._whole: Final = whole
        self._ignore_case: Final = ignore_case

    def holds(self, string: bytes) -> bool:
        """The text is the element, or within it."""
        if self._ignore_case:
            string = string.lower()
        return string == self._text if self._whole else self._text in string


class Glob(Predicate):
    """A pattern with wildcards takes an element."""

    def __init__(self, pattern: bytes, ignore_case: bool) -> None:
        self._glob: Final[glob.Glob] = glob.compiled(pattern, ignore_case)

    def holds(self, string: bytes) -> bool:
        """The pattern takes the element."""
        return self._glob.matches(string)


_LAST: Final = -1  # the last index of the array
_MOST_PREDICATES: Final = 250
_MOST_PATTERN_BYTES: Final = 2048  # of a regular expression
_EXPRESSIONS: Final = "headrace.server.commands.arrays.expressions"
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
                raise CommandError(SYNTAX)
        if not self._asked:
            raise CommandError(SYNTAX)
        self.predicates: Final = [self._predicate(name, word) for name, word in self._asked]

    def _ask(self, name: bytes, word: bytes) -> None:
        if len(self._asked) == _MOST_PREDICATES:
            raise CommandError(TOO_MANY_PREDICATES)
        if name == b"RE" and len(word) > _MOST_PATTERN_BYTES:
            raise CommandError(REGEX_TOO_LONG)
        self._asked.append((name, word))

    def _predicate(self, name: bytes, word: bytes) -> Predicate:
        if name == b"GLOB":
            return Glob(word, self._ignore_case)
        if name == b"RE":
            expressions = importlib.import_module(_EXPRESSIONS)  # late, because few ask for them
            found: Predicate = expressions.Expression(word, self._ignore_case)
            return found
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
    """An end of the range: an index, ``-`` for the first one or ``+`` for the last."""
    if word == b"-":
        return 0
    return _LAST if word == b"+" else index_of(word)


@mypyc_attr(allow_interpreted_subclasses=False)
class _Sum:
    """What is made of elements, one after another."""

    @abstractmethod
    def take(self, string: bytes) -> None:
        """One more."""
        raise NotImplementedError

    @abstractmethod
    def result(self) -> object:
        """The reply."""
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
            raise CommandError(MATCH_NEEDS_VALUE)
        return _Count(argv[5])
    made: _Sum | None = None
    if operation == b"USED":
        made = _Count(None)
    elif operation in (b"AND", b"OR", b"XOR"):
        made = _Bits(operation)
    elif operation in (b"SUM", b"MIN", b"MAX"):
        made = _Numbers(operation)
    if made is None:
        raise CommandError(UNKNOWN_OPERATION)
    if len(argv) != 5:
        raise CommandError(wrong_arity(name))
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
