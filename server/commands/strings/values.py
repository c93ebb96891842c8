"""What the commands on strings share: options, conditions, deadlines."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import (
    NOT_AN_INTEGER,
    SYNTAX,
    CommandError,
    invalid_expire,
)
from headrace.compat.numbers import INT64_MAX, parse_integer
from headrace.server.changes.events import DEADLINE_SET
from headrace.server.commands.deadlines import has_passed
from headrace.server.commands.storing import store
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call

# Conditions of SET, MSETEX and DELEX.
ALWAYS: Final = 0
IF_MISSING: Final = 1  # NX
IF_THERE: Final = 2  # XX
IF_EQUAL: Final = 3  # IFEQ
IF_NOT_EQUAL: Final = 4  # IFNE
IF_DIGEST: Final = 5  # IFDEQ
IF_NOT_DIGEST: Final = 6  # IFDNE

COMPARING: Final[dict[bytes, int]] = {
    b"IFEQ": IF_EQUAL,
    b"IFNE": IF_NOT_EQUAL,
    b"IFDEQ": IF_DIGEST,
    b"IFDNE": IF_NOT_DIGEST,
}
_EXISTENCE: Final[dict[bytes, int]] = {b"NX": IF_MISSING, b"XX": IF_THERE}
_EXPIRY: Final = (b"EX", b"PX", b"EXAT", b"PXAT")


class StringOptions:
    """The options of SET, GETEX, MSETEX and INCREX.

    Attributes:
        condition: one of the constants above.
        expected: what the condition compares with.
        get: GET was given.
        ttl: ``EX``, ``PX``, ``EXAT``, ``PXAT``, ``KEEPTTL``, ``PERSIST`` or empty.
        time: the number after ``EX`` and its kin, not looked at yet.
    """

    def __init__(self) -> None:
        self.condition = ALWAYS
        self.expected = b""
        self.get = False
        self.ttl = b""
        self.time = b""

    @property
    def compares(self) -> bool:
        """Whether the condition looks at the value, and not only whether there is one."""
        return self.condition > IF_THERE

    def take_ttl(self, args: Args, option: bytes, alone: bytes) -> bool:
        """Take ``option`` if it is about expiry; each may be repeated, but no two may meet.

        Args:
            alone: the option without a number that the command knows.
        """
        if option == alone:
            if self.ttl and self.ttl != option:
                raise CommandError(SYNTAX)
        elif option in _EXPIRY:
            if self.ttl and self.ttl != option:
                raise CommandError(SYNTAX)
            self.time = args.word()
        else:
            return False
        self.ttl = option
        return True

    def take_existence(self, option: bytes) -> bool:
        """Take NX or XX; each may be repeated, but nothing else may be asked for with it."""
        condition = _EXISTENCE.get(option, ALWAYS)
        if condition == ALWAYS:
            return False
        if self.condition != ALWAYS and self.condition != condition:
            raise CommandError(SYNTAX)
        self.condition = condition
        return True

    def take_comparison(self, args: Args, option: bytes) -> bool:
        """Take IFEQ, IFNE, IFDEQ or IFDNE with what follows it."""
        condition = COMPARING.get(option, ALWAYS)
        if condition == ALWAYS:
            return False
        if self.condition != ALWAYS and self.condition != condition:
            raise CommandError(SYNTAX)
        self.condition = condition
        self.expected = args.word()
        return True

    def deadline_ms(self, call: Call) -> int:
        """The moment that ``EX`` and its kin mean, or -1 where none was given.

        Raises: CommandError for what is no integer, not positive or too far away.
        """
        return deadline_ms(call, self.ttl, self.time) if self.ttl in _EXPIRY else -1

    def has_passed(self, call: Call, moment_ms: int) -> bool:
        """Whether the moment was given as an absolute one and is over."""
        return self.ttl in (b"EXAT", b"PXAT") and has_passed(call, moment_ms)


def deadline_ms(call: Call, unit: bytes, time: bytes) -> int:
    """The moment ``time`` in the sense of ``EX``, ``PX``, ``EXAT`` or ``PXAT``, as ``unit`` says.

    Raises: CommandError for what is no integer, not positive or too far away.
    """
    value = parse_integer(time)
    if value is None:
        raise CommandError(NOT_AN_INTEGER)
    moment_ms = value * 1000 if unit in (b"EX", b"EXAT") else value
    if unit in (b"EX", b"PX"):
        moment_ms += call.now_ms
    if value <= 0 or moment_ms > INT64_MAX:
        raise CommandError(invalid_expire(call.name()))
    return moment_ms


def store_until(call: Call, key: bytes, value: object, moment_ms: int) -> None:
    """As ``store``, with a deadline."""
    store(call, key, value, True)
    call.db.expire_at(key, moment_ms)


def report_deadline(call: Call, key: bytes) -> None:
    """Report that ``key`` got a deadline, where another report holds the record."""
    call.changed(key, DEADLINE_SET, None, count=0)
