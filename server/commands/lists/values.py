"""What the commands on lists share: finding a list to read or to change, ends, keys of pops."""

from __future__ import annotations

from mypy_extensions import i64

from headrace.compat.errors import (
    COUNT_BELOW_ONE,
    NUMKEYS_BELOW_ONE,
    SYNTAX,
    WRONGTYPE,
    CommandError,
)
from headrace.compat.numbers import parse_integer
from headrace.server.commands.collections import drop_empty
from headrace.server.commands.lists.events import popped
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.list.limits import NodeLimits
from headrace.storage.list.list import List


def list_at(call: Call, key: bytes) -> List | None:
    """The list of a key or None, for a command that reads; raises WRONGTYPE."""
    value = call.lookup(key)
    if value is None or isinstance(value, List):
        return value
    raise CommandError(WRONGTYPE)


def list_to_change(call: Call, key: bytes) -> List | None:
    """The list of a key or None, for a command that writes; raises WRONGTYPE."""
    value = call.db.get(key, call.now_ms)
    if value is None or isinstance(value, List):
        return value
    raise CommandError(WRONGTYPE)


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
    """How large a node of Redis's may become."""
    return call.server.data.list_limits


def is_right(word: bytes) -> bool:
    """Whether LEFT or RIGHT is RIGHT; raises a syntax error for anything else."""
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
    """How many elements a request is about; at least one."""
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
