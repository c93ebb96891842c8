"""What can go wrong, in words that Spark shows at the end of its own error."""

from __future__ import annotations


class HeadraceError(Exception):
    """The root of all errors of this package."""


class OptionError(HeadraceError, ValueError):
    """An option is unknown, missing, or does not fit."""


class ServerError(HeadraceError):
    """The server refused a command.

    Attributes:
        code: the first word of its reply, such as ``WRONGTYPE``.
    """

    def __init__(self, reply: str) -> None:
        super().__init__(reply)
        self.code = reply.partition(" ")[0]


class UnreachableError(HeadraceError, ConnectionError):
    """The server did not answer, however often it was tried."""


class NotAStreamError(HeadraceError):
    """A key holds something else than a stream."""


class OversizeError(HeadraceError):
    """A reply is larger than a reader is to hold."""


class DataLossError(HeadraceError):
    """Entries were removed from a stream before they were read."""


class ValueTrouble(HeadraceError, ValueError):
    """A value of an entry or a row cannot be turned into what is asked for."""


class UnsafeWriteError(HeadraceError):
    """A write that could lose or repeat rows without anybody noticing."""
