"""What commands on deadlines of fields are asked: fields that are counted, and expiry."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import NOT_AN_INTEGER, CommandError, invalid_expire, wrong_arity
from headrace.compat.hash_errors import (
    EXPIRE_TIME_MISSING,
    FIELD_COUNT_MISMATCH,
    FIELD_COUNT_NOT_POSITIVE,
    FIELDS_MISSING,
    FIELDS_TWICE,
    INVALID_FIELD_COUNT,
    NEGATIVE_EXPIRE_TIME,
    WRONG_WORD_COUNT,
    unknown_argument,
)
from headrace.compat.numbers import INT32_MAX, parse_integer
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call

LAST_DEADLINE_MS: Final = (1 << 46) - 1
_EXPIRY: Final[dict[bytes, tuple[int, bool]]] = {  # milliseconds of the unit; from now on
    b"EX": (1000, True),
    b"PX": (1, True),
    b"EXAT": (1000, False),
    b"PXAT": (1, False),
}


def counted_fields(call: Call, at: int) -> list[bytes]:
    """``FIELDS n field ...`` at the end of a request, as HTTL and HGETDEL have it."""
    argv = call.argv
    if argv[at].upper() != b"FIELDS":
        raise CommandError(FIELDS_MISSING)
    count = parse_integer(argv[at + 1])
    if count is None or count < 1:
        raise CommandError(FIELD_COUNT_NOT_POSITIVE)
    fields = argv[at + 2 :]
    if len(fields) != count:
        raise CommandError(FIELD_COUNT_MISMATCH)
    return fields


def deadline_of(call: Call, word: bytes, unit_ms: int, from_now: bool) -> int:
    """The moment that a time means.

    Args:
        unit_ms: how many milliseconds it counts; from_now: rather than from 1970.
    """
    time = parse_integer(word)
    if time is None:
        raise CommandError(NOT_AN_INTEGER)
    if time < 0:
        raise CommandError(NEGATIVE_EXPIRE_TIME)
    moment_ms = time * unit_ms + (call.now_ms if from_now else 0)
    if moment_ms > LAST_DEADLINE_MS:
        raise CommandError(invalid_expire(call.name()))
    return moment_ms


class FieldOptions:
    """The options of HGETEX and HSETEX, which may stand before the fields and behind them.

    Args:
        width: how many words there are for each field.
        alone: the option that excludes an expiry, and has no time.
        only_one: the error of two of them.

    Attributes:
        words: the fields, each with its value where there are values.
        moment_ms: the deadline; -1 where none was given.
        has_alone: the option ``alone`` was given.
    """

    def __init__(self, width: int, alone: bytes, only_one: bytes) -> None:
        self.words: list[bytes] = []
        self.moment_ms = -1
        self.has_alone = False
        self._width: Final = width
        self._alone: Final = alone
        self._only_one: Final = only_one

    def take(self, call: Call, args: Args, option: bytes, word: bytes) -> None:
        """Take an option; ``word`` is how it was written."""
        if option == b"FIELDS":
            self._take_fields(call, args)
        elif option == self._alone:
            self._check_alone()
            self.has_alone = True
        elif option in _EXPIRY:
            self._check_alone()
            if not args.left:
                raise CommandError(EXPIRE_TIME_MISSING)
            unit_ms, from_now = _EXPIRY[option]
            self.moment_ms = deadline_of(call, args.word(), unit_ms, from_now)
        else:
            raise CommandError(unknown_argument(word))

    def _check_alone(self) -> None:
        if self.has_alone or self.moment_ms >= 0:
            raise CommandError(self._only_one)

    def _take_fields(self, call: Call, args: Args) -> None:
        if self.words:
            raise CommandError(FIELDS_TWICE)
        if not args.left:
            raise CommandError(wrong_arity(call.name()))
        count = parse_integer(args.word())
        if count is None or not 1 <= count <= INT32_MAX:
            raise CommandError(INVALID_FIELD_COUNT)
        if args.left < count * self._width:
            raise CommandError(WRONG_WORD_COUNT)
        self.words = [args.word() for _ in range(count * self._width)]
