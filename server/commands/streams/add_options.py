"""The options of XADD: those it shares with XTRIM, NOMKSTREAM, and who is the producer."""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError, wrong_arity
from headrace.server.commands.streams.args import TrimOptions, option_name, stand_at

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
