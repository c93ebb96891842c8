"""ARGREP: elements that look as asked for."""

from __future__ import annotations

import importlib
from typing import Final

from headrace.compat.array_errors import REGEX_TOO_LONG, TOO_MANY_PREDICATES
from headrace.compat.errors import SYNTAX, CommandError
from headrace.protocol.packing import Packer
from headrace.server.commands.arrays.predicates import Glob, Predicate, Text
from headrace.server.commands.arrays.ranges import limit_of, slots_of
from headrace.server.commands.arrays.values import add_number, array_at, index_of
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.array.array import Walk
from headrace.storage.array.piece import element

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
        """Whether one of the predicates holds, or all."""
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
