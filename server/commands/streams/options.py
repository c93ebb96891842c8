"""The options of XADD and XTRIM, and those of XREAD and XREADGROUP.

Clients send the same options again and again, so those that were read last are kept.
Source: t_stream.c, streamParseAddOrTrimArgsOrReply and xreadCommand.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat import errors
from headrace.compat.errors import CommandError, wrong_arity
from headrace.compat.numbers import parse_integer
from headrace.server.commands.streams.args import TrimOptions, integer, option_name, stand_at
from headrace.server.dispatch.args import deadline_of

MOST_WORDS: Final = 8  # of options that are kept


class AddOptions(TrimOptions):
    """What stands between the key and the ID of XADD.

    Attributes:
        make_stream: create a key that is missing.
        pid: the producer, of IDMP or IDMPAUTO; empty without them.
        iid: the idempotent id of IDMP; empty where it is made of the content.
        idmp_at: where IDMP or IDMPAUTO stands in the request; 0 without them.
        words: all of them as they were given.
    """

    def __init__(self) -> None:
        super().__init__()
        self.make_stream = True
        self.pid = b""
        self.iid = b""
        self.idmp_at = 0
        self.words: list[bytes] = []

    def read(self, argv: list[bytes]) -> int:
        """Read the options, in any order; the position of the ID.

        What is no option, or lacks its value, is taken for the ID.
        """
        at = 2
        while at < len(argv) and argv[at] != b"*":
            word = option_name(argv[at])
            if word == b"nomkstream":
                self.make_stream = False
                after = at + 1
            elif word == b"idmp" or word == b"idmpauto":
                after = self._take_producer(argv, at, word)
            else:
                after = self.take(argv, at, word)
            if after == at:
                break
            at = after
        if at >= len(argv):
            if self.limit_given:
                self.check_limit(False)
            raise CommandError(wrong_arity(b"xadd"))
        self.words = argv[2:at]
        return at

    def _take_producer(self, argv: list[bytes], at: int, word: bytes) -> int:
        values = 2 if word == b"idmp" else 1
        if len(argv) - 1 - at < values:
            return at
        if self.idmp_at:
            raise CommandError(errors.IDMP_TWICE)
        self.idmp_at = at
        self.pid = argv[at + 1]
        if not self.pid:
            raise CommandError(errors.IDMP_NO_PID if values == 2 else errors.IDMPAUTO_NO_PID)
        if values == 2:
            self.iid = argv[at + 2]
            if not self.iid:
                raise CommandError(errors.IDMP_NO_IID)
        return at + 1 + values


class _LastRead:
    """The options that were read last: a producer says the same ones again and again."""

    def __init__(self) -> None:
        self.options = AddOptions()

    def read(self, argv: list[bytes]) -> AddOptions:
        options = self.options
        at = 2 + len(options.words)
        if at < len(argv) and argv[at] == b"*" and stand_at(argv, 2, options.words):
            return options
        options = AddOptions()
        options.read(argv)
        if not options.pid and len(options.words) <= MOST_WORDS:
            self.options = options
        return options


_last_read: Final = _LastRead()


def add_options_of(argv: list[bytes]) -> AddOptions:
    """What stands between the key and the ID of ``XADD argv``; only ``settle`` may change it.

    Raises:
        CommandError: as ``AddOptions.read``.
    """
    return _last_read.read(argv)


NO_CLAIM: Final = -1
MOST_READ_WORDS: Final = 10  # of options that are kept


@mypyc_attr(acyclic=True)
class ReadOptions:
    """What stands between the name of the command and its keys.

    Args:
        for_group: they are those of XREADGROUP.
        in_region: STABLE is one of them.

    Attributes:
        count: the most entries of each stream; 0 is all.
        max_count: the most entries of all streams together; 0 is all.
        max_size: about how long the reply may be, in bytes; 0 is any length.
        block_at: where the time to wait stands in the request; 0 is not to wait.
        deadline_ms: until when to wait; 0 is for ever.
        streams_at: where the keys start.
        group, consumer: who reads.
        consumer_at: where the consumer stands in the request; 0 is that none was given.
        noack: new entries are not kept pending.
        claim_ms: take over entries that have been idle so long; ``NO_CLAIM`` without it.
        stable: only up to where nothing can come any more.
        words: all of them as they were given, STREAMS included.
    """

    def __init__(self, for_group: bool, in_region: bool = False) -> None:
        self.for_group: Final = for_group
        self.in_region: Final = in_region
        self.group = b""
        self.consumer = b""
        self.consumer_at = 0
        self.noack = False
        self.claim_ms = NO_CLAIM
        self.stable = False
        self.count = 0
        self.max_count = 0
        self.max_size = 0
        self.block_at = 0
        self.deadline_ms = 0
        self.streams_at = 0
        self.words: list[bytes] = []

    def read(self, argv: list[bytes], now_ms: int) -> None:
        """Read the options, in any order.

        Raises:
            CommandError: what Redis answers to those that are wrong.
        """
        at = 1
        while at < len(argv):
            word = option_name(argv[at])
            more = len(argv) - 1 - at
            if word == b"streams" and more:
                self.streams_at = at + 1
                break
            if word == b"block" and more:
                self.block_at = at + 1
                self.settle(argv, now_ms)
            elif word == b"count" and more:
                self.count = max(0, integer(argv[at + 1]))
            elif word == b"maxcount" and more:
                self.max_count = _positive(argv[at + 1], errors.MAXCOUNT_NOT_POSITIVE)
            elif word == b"maxsize" and more:
                self.max_size = _positive(argv[at + 1], errors.MAXSIZE_NOT_POSITIVE)
            elif word == b"noack" or (word == b"claim" and more) or (word == b"group" and more > 1):
                if not self.for_group:
                    raise CommandError(errors.only_for_groups(word.upper()))
                at = self._read_group_option(argv, at, word)
                continue
            elif word == b"stable" and self.in_region:
                self.stable = True
                at += 1
                continue
            else:
                raise CommandError(errors.SYNTAX)
            at += 2
        if not self.streams_at:
            raise CommandError(errors.SYNTAX)
        if (len(argv) - self.streams_at) % 2:
            unbalanced = errors.XREADGROUP_UNBALANCED if self.for_group else errors.XREAD_UNBALANCED
            raise CommandError(unbalanced)
        if self.for_group and not self.consumer_at:
            raise CommandError(errors.GROUP_MISSING)
        if 0 < self.max_count < self.count:
            raise CommandError(errors.MAXCOUNT_BELOW_COUNT)
        self.words = argv[1 : self.streams_at]

    def settle(self, argv: list[bytes], now_ms: int) -> None:
        """Set the deadline, which counts from now."""
        if self.block_at:
            self.deadline_ms = deadline_of(argv[self.block_at], now_ms)

    def name_reader(self, argv: list[bytes]) -> None:
        """Take group and consumer from a request that is like the one that was read."""
        at = self.consumer_at
        if at and (argv[at] is not self.consumer or argv[at - 1] is not self.group):
            self.group = argv[at - 1]
            self.consumer = argv[at]
            self.words[at - 2] = self.group
            self.words[at - 1] = self.consumer

    def _read_group_option(self, argv: list[bytes], at: int, word: bytes) -> int:
        """Read an option that only XREADGROUP has; the position after it."""
        if word == b"group":
            self.group = argv[at + 1]
            self.consumer = argv[at + 2]
            self.consumer_at = at + 2
            return at + 3
        if word == b"noack":
            self.noack = True
            return at + 1
        min_idle_ms = parse_integer(argv[at + 1])
        if min_idle_ms is None:
            raise CommandError(errors.CLAIM_NOT_INTEGER)
        if min_idle_ms < 0:
            raise CommandError(errors.CLAIM_NEGATIVE)
        self.claim_ms = min_idle_ms
        return at + 2


class _LastReading:
    """The options that were read last: a reader sends the same ones again and again.

    Other readers send them too, except for their group and their name in it.
    """

    def __init__(self, for_group: bool, in_region: bool = False) -> None:
        self.options = ReadOptions(for_group, in_region)

    def read(self, argv: list[bytes], now_ms: int) -> ReadOptions:
        options = self.options
        at = options.streams_at
        paired = 0 < at < len(argv) and not (len(argv) - at) % 2
        if paired:
            options.name_reader(argv)
            if stand_at(argv, 1, options.words):
                options.settle(argv, now_ms)
                return options
        options = ReadOptions(options.for_group, options.in_region)
        options.read(argv, now_ms)
        if len(options.words) <= MOST_READ_WORDS:
            self.options = options
        return options


_last_reading: Final = _LastReading(False)
_last_read_for_group: Final = _LastReading(True)
_last_read_in_region: Final = _LastReading(False, True)


def read_options_of(argv: list[bytes], now_ms: int, for_group: bool) -> ReadOptions:
    """The options of XREAD, or of XREADGROUP, up to where the keys start.

    Nobody may change or keep them: the next request may get the same object, with its own reader.

    Raises:
        CommandError: as ``ReadOptions.read``.
    """
    return (_last_read_for_group if for_group else _last_reading).read(argv, now_ms)


def read_options_in_region(argv: list[bytes], now_ms: int) -> ReadOptions:
    """As ``read_options_of``, those of XREAD in a region."""
    return _last_read_in_region.read(argv, now_ms)


def _positive(text: bytes, refusal: bytes) -> int:
    number = integer(text)
    if number <= 0:
        raise CommandError(refusal)
    return number
