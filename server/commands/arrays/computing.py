"""AROP: one number from the elements of a range."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat import long_double
from headrace.compat.array_errors import MATCH_NEEDS_VALUE, UNKNOWN_OPERATION
from headrace.compat.errors import CommandError, wrong_arity
from headrace.compat.long_double import LongDouble
from headrace.compat.numbers import INT64_MAX, INT64_MIN
from headrace.server.commands.arrays.ranges import slots_of
from headrace.server.commands.arrays.values import array_at, index_of
from headrace.server.dispatch.call import Call
from headrace.storage.array.array import Walk
from headrace.storage.array.piece import element


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
        """See ``_Sum``."""
        if self._wanted is None or string == self._wanted:
            self._count += 1

    def result(self) -> object:
        """See ``_Sum``."""
        return self._count


class _Bits(_Sum):
    """AND, OR and XOR of integers; fractions are cut off, and what is no number is left out."""

    def __init__(self, name: bytes) -> None:
        self._name: Final = name
        self._bits = 0
        self._any = False

    def take(self, string: bytes) -> None:
        """See ``_Sum``."""
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
        """See ``_Sum``."""
        return self._bits if self._any else None


class _Numbers(_Sum):
    """SUM, MIN and MAX of what is a number."""

    def __init__(self, name: bytes) -> None:
        self._name: Final = name
        self._value: LongDouble | None = None
        self._minus_zero = False  # so far it is 0 with a sign, which a reply shows
        self._nan = False  # infinities of both signs were added

    def take(self, string: bytes) -> None:
        """See ``_Sum``."""
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
        """See ``_Sum``."""
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
