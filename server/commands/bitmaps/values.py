"""What the commands on bitmaps share: offsets of bits, and strings that are long enough."""

from __future__ import annotations

from headrace.compat.bitmap_errors import BIT_OFFSET
from headrace.compat.errors import CommandError
from headrace.compat.numbers import INT64_MAX, parse_integer
from headrace.server.clients.session import REPLAY
from headrace.server.commands.string_keys import in_place, lengthen, writable
from headrace.server.dispatch.call import Call


def bit_offset(call: Call, word: bytes, width: int = 0) -> int:
    """The offset of a bit that a word spells.

    Args:
        width: of the fields that ``#`` in front of a number counts; 0 where there are none.

    Raises: CommandError for what is no number, or too large for a string.
    """
    counted = width > 0 and word.startswith(b"#")
    offset = parse_integer(word[1:] if counted else word)
    if offset is None:
        raise CommandError(BIT_OFFSET)
    if counted:
        # As in 64 bits, whatever that leads to: so it is in Redis.
        offset = ((offset * width + INT64_MAX + 1) & 0xFFFFFFFFFFFFFFFF) - INT64_MAX - 1
    if offset < 0:
        raise CommandError(BIT_OFFSET)
    if offset >> 3 >= call.server.config.proto_max_bulk_len and not call.session.special & REPLAY:
        raise CommandError(BIT_OFFSET)
    return offset


class Target:
    """The string of the key that a command is about to write bits into.

    It is created where it is missing, and filled up with zeros to be long enough.

    Args:
        last: the last bit that is written.

    Attributes:
        bits: the string.
        grown: it was created, or has become longer.
    """

    def __init__(self, call: Call, last: int) -> None:
        key = call.argv[1]
        size = (last >> 3) + 1
        found = writable(call, key)
        if found is None:
            self.bits = bytearray(size)
            self.grown = True
            call.put(key, self.bits)
            return
        self.bits = in_place(call, found)
        self.grown = size > len(self.bits)
        lengthen(self.bits, size)
