"""When parts of values expire: of each key that has some, the first deadline.

Whoever changes a value tells the keyspace, which has one of these. It goes where the keys go, when
databases are swapped or emptied.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.storage.due import NOTHING, DueOrder

NO_PART: Final = 0  # instead of a deadline: no part expires


@mypyc_attr(acyclic=True)
class PartDeadlines(DueOrder):
    """The keys of one database with parts that expire.

    Attributes:
        first: the first deadline of each key, in milliseconds since 1970; nobody else changes it.
    """

    def __init__(self) -> None:
        super().__init__([])
        self.first: Final[dict[bytes, int]] = {}

    def moment_of(self, name: bytes) -> i64:
        """See ``DueOrder``."""
        return self.first.get(name, int(NOTHING))

    def watch(self, key: bytes, deadline_ms: int) -> None:
        """Take it that the first part of ``key`` expires then, or none with ``NO_PART``."""
        first = self.first
        if deadline_ms == NO_PART:
            first.pop(key, None)
        elif first.get(key) != deadline_ms:
            first[key] = deadline_ms
            self.add(key, deadline_ms, len(first))

    def is_due(self, now_ms: i64) -> bool:
        """Whether the time of a key may be over."""
        first_ms = self.first_ms()
        return first_ms != NOTHING and first_ms < now_ms

    def next_due(self, now_ms: i64) -> bytes | None:
        """The key whose parts are to expire next, if the time of one is over.

        Whoever asks takes out what is due, and says what comes then.

        Returns: None without one, and where it takes another question to find it: ``is_due`` tells.
        """
        first = self.fresh_first()
        return first if first is not None and self.is_due(now_ms) else None
