"""What the commands that walk the elements of a collection share: SSCAN, HSCAN, ZSCAN."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import INVALID_CURSOR, NOVALUES_NOT_HERE, SYNTAX, CommandError
from headrace.compat.glob import matches
from headrace.compat.numbers import parse_unsigned
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call

_DEFAULT_COUNT: Final = 10
_COUNT_MOST: Final = 1 << 40  # no collection has as many elements
_CURSOR_BITS: Final = (1 << 32) - 1  # of a table; the others are ignored, as in Redis
EMPTY_SCAN: Final[list[object]] = [b"0", []]  # the reply where there is no key


def scan_cursor(call: Call) -> int:
    """The cursor of the request as tables have it; it is looked at before the key."""
    cursor = parse_unsigned(call.argv[2])
    if cursor is None:
        raise CommandError(INVALID_CURSOR)
    return cursor & _CURSOR_BITS


class ElementScan:
    """The options of the request; they are looked at behind the key.

    Args:
        hash_: NOVALUES is one of them.

    Attributes:
        count: about how many elements are asked for.
        values: the values of fields, too.

    Raises:
        CommandError: they are not well formed.
    """

    def __init__(self, call: Call, hash_: bool) -> None:
        self.count = _DEFAULT_COUNT
        self.values = True
        self._pattern = b"*"
        args = Args(call.argv, 3)
        while args.left:
            option = args.option()
            if option == b"COUNT" and args.left:
                self.count = args.integer()
                if self.count < 1:
                    raise CommandError(SYNTAX)
                self.count = min(self.count, _COUNT_MOST)
            elif option == b"MATCH" and args.left:
                self._pattern = args.word()
            elif option == b"NOVALUES":
                if not hash_:
                    raise CommandError(NOVALUES_NOT_HERE)
                self.values = False
            else:
                raise CommandError(SYNTAX)
        self.all: Final = self._pattern == b"*"

    def takes(self, element: bytes) -> bool:
        """Whether an element, or a field, fits the pattern."""
        return self.all or matches(self._pattern, element)
