"""LCS: what two strings have in common."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import (
    LCS_LENGTH_AND_INDEXES,
    LCS_NEEDS_STRINGS,
    LCS_TOO_LARGE,
    NOT_AN_INTEGER,
    SYNTAX,
    CommandError,
)
from headrace.protocol.replies import Map
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.string.string import string_bytes
from headrace.storage.string.subsequence import Match, common_length, common_matches, text_of

_CELL_BYTES: Final = 4  # that Redis takes for each pair of a byte of both, and one more of each


class _Options:
    """``[LEN] [IDX] [MINMATCHLEN n] [WITHMATCHLEN]``."""

    def __init__(self, args: Args) -> None:
        self.length = False
        self.indexes = False
        self.least = 0
        self.with_lengths = False
        while args.left:
            option = args.option()
            if option == b"IDX":
                self.indexes = True
            elif option == b"LEN":
                self.length = True
            elif option == b"WITHMATCHLEN":
                self.with_lengths = True
            elif option == b"MINMATCHLEN":
                self.least = args.integer(NOT_AN_INTEGER)
            else:
                raise CommandError(SYNTAX)


def lcs(call: Call) -> object:
    """It takes a 32nd of the memory that Redis takes for it, but refuses the same requests.

    Reply: the bytes in common, their number, or where they stand in both strings.
    """
    argv = call.argv
    values = [call.lookup(key) for key in argv[1:3]]
    texts = [b"" if value is None else string_bytes(value) for value in values]
    first, second = texts
    if first is None or second is None:
        raise CommandError(LCS_NEEDS_STRINGS)
    options = _Options(Args(argv, 3))
    if options.length and options.indexes:
        raise CommandError(LCS_LENGTH_AND_INDEXES)
    cells = (len(first) + 1) * (len(second) + 1)
    if cells * _CELL_BYTES > call.server.config.proto_max_bulk_len:
        raise CommandError(LCS_TOO_LARGE)
    if options.length:
        return common_length(first, second)
    matches = common_matches(first, second)
    if not options.indexes:
        return text_of(first, matches)
    shown: list[object] = [
        _shown(match, options.with_lengths) for match in matches if match.length() >= options.least
    ]
    return Map([(b"matches", shown), (b"len", sum([match.length() for match in matches]))])


def _shown(match: Match, with_length: bool) -> object:
    ranges: list[object] = [
        [match.first_start, match.first_end],
        [match.second_start, match.second_end],
    ]
    if with_length:
        ranges.append(match.length())
    return ranges
