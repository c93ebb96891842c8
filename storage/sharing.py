"""The regions as a lone server knows them: that it may be one, and that a value may be theirs.

All else of regions that share a database is in ``regions``, which is imported where a server is one
of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from mypy_extensions import trait

from headrace.storage.value import Value

AA: Final = b"AA"  # what records of regions begin with, except those of entries
# Behind it, what is said of a file: how its records count, its writer, that it came to its end.
FROM: Final = b"FROM"
FILE: Final = b"FILE"
CLOSED: Final = b"CLOSED"
REGION_MAX: Final = 15  # as many as the lower four bits of a sequence can distinguish
NAME_MAX_BYTES: Final = 256  # of a database
STRICT: Final = 0
SEMI_STRICT: Final = 1
LIBERAL: Final = 2
MODES: Final = {b"strict": STRICT, b"semi-strict": SEMI_STRICT, b"liberal": LIBERAL}


class Member:
    """A server as one of the regions that share a database.

    Attributes:
        id: its number, 1 to 15.
        origin: its name now, among all lives of all regions.
        mode: which IDs callers may give: ``STRICT``, ``SEMI_STRICT`` or ``LIBERAL``.
        refusal: why it takes no writes now, as an error line; mostly empty.
    """

    def __init__(self, number: int, origin: bytes) -> None:
        self.id: Final = number
        self.origin = origin
        self.database = b""
        self.mode = STRICT
        self.peers: set[int] = set()
        self.refusal = b""

    @abstractmethod
    def known_text(self) -> bytes:
        """Return how many records of each origin are known here, as text."""


@trait
class Replicated:
    """A value that several regions change: every one of them has a copy."""

    def seen(self) -> dict[bytes, tuple[int, int]]:
        """Return how far each of its lanes reaches here, but those that a removal has covered."""
        raise NotImplementedError

    def exists(self) -> bool:
        """Return whether there is a value: it may be remembered all the same."""
        raise NotImplementedError

    def plain(self) -> Value:
        """Return an equal value for one server alone, without what only regions need."""
        raise NotImplementedError


MemberMaker = Callable[[int], Member]


_makers: Final[list[MemberMaker]] = []  # one at the most


def makes_members(make: MemberMaker) -> None:
    """Declare what makes the region of a number."""
    _makers.append(make)


def new_member(number: int) -> Member:
    """Return the region of this number, which knows nothing yet."""
    return _makers[0](number)
