"""Where records are taken in: what their readers know of the bytes that are being decoded."""

from __future__ import annotations

import struct
from abc import abstractmethod
from typing import Final

from msgspec import MsgspecError
from mypy_extensions import mypyc_attr

from headrace.storage.keyspace import Keyspace
from headrace.storage.sharing import Member

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

# What may be raised on the way through bytes that no encoder made.
UNDECODABLE: Final = (
    MsgspecError,
    struct.error,
    IndexError,
    ValueError,
    OverflowError,
    TypeError,
    RecursionError,
)


class Malformed(Exception):
    """A record does not hold what its kind asks for.

    Attributes:
        position: where it starts in what was being decoded.
    """

    def __init__(self, position: int, text: str) -> None:
        super().__init__(text)
        self.position: Final = position


class Intake:
    """The record being decoded, and where its keys go.

    Attributes:
        frame: what is being read; at: how far, behind the record's table; end: where it ends.
        now_ms: the present. What a record dates later counts as having happened now, because the
            clock may have been set back.
        keys, entries: how many keys, and entries of streams, were met.
        region: whose snapshot it is; None where it is that of one server, or a value of DUMP.
    """

    def __init__(self, now_ms: int) -> None:
        self.frame = b""
        self.at = 0
        self.end = 0
        self.now_ms: Final = now_ms
        self.keys = 0
        self.entries = 0
        self.region: Member | None = None
        self._start = 0  # of the record

    def malformed(self, expected: str) -> Malformed:
        """What to raise for the record being decoded."""
        return Malformed(self._start, expected)

    def cut(self, size: int) -> bytes:
        """The next ``size`` bytes of the record's data."""
        start = self.at
        if size < 0 or start + size > self.end:
            raise self.malformed("data that ends with its frame")
        self.at = start + size
        return self.frame[start : start + size]

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        """A key is complete; ``expire_ms`` is ``NO_DEADLINE`` or a deadline."""
        raise NotImplementedError

    def database(self) -> Keyspace | None:
        """Where keys without a deadline may go without ``place``; None where they may not.

        Whoever puts one there counts it in ``keys``, and raises what ``doubled`` returns where
        there is one of that name.
        """
        return None

    def doubled(self, key: bytes) -> Malformed:
        """What to raise for a key that is there already."""
        return self.malformed(f"each key once, but {key[:64]!r} is there already")


@mypyc_attr(allow_interpreted_subclasses=True)
class Reader:
    """Reads the records of one form, in the order of the file; one file has one.

    Args:
        intake: the record being decoded, and where keys go.
    """

    def __init__(self, intake: Intake) -> None:
        self.intake: Final = intake

    @abstractmethod
    def read(self, kind: int, table: list[int]) -> None:
        """Read the next record, whose data is to be cut from the intake.

        Raises:
            Malformed, or one of ``UNDECODABLE``: it holds what no encoder writes.
        """
        raise NotImplementedError

    def goes_on(self, kind: int) -> bool:
        """Whether a record of this kind belongs to the value of the record before."""
        return False

    def finish(self) -> None:
        """No more records of the last value follow.

        Raises:
            Malformed: something of it is missing.
        """

    def entries_met(self) -> int:
        """The entries so far of a stream that is not complete yet."""
        return 0
