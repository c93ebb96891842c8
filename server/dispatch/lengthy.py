"""A request of very many words, in parts that are run one after another while others go on.

A command that declares itself with ``@lengthy`` makes one of these for such a request. It has the
same effects, reply and record as the request in one piece. ``server.dispatch.slicing`` runs it and
sees that no other request meets a part of it.
"""

from __future__ import annotations

from typing import Final

from headrace.protocol.client import LongRequest
from headrace.server.dispatch.call import Call

LENGTHY_WORDS: Final = 8192  # of a request, at least
PARTS: Final = 32  # a power of two: a table that grows does so in one piece


class KeySet:
    """A set of very many keys."""

    def __init__(self) -> None:
        self.parts: list[set[bytes]] = [set[bytes]() for _ in range(PARTS)]

    def add(self, key: bytes) -> None:
        """Add a key."""
        self.parts[hash(key) & (PARTS - 1)].add(key)

    def holds(self, key: bytes) -> bool:
        """Return whether a key is in the set."""
        return key in self.parts[hash(key) & (PARTS - 1)]


class Lengthy:
    """The work for one request, for its words from ``first`` on.

    First each word is checked (``prepare``), which changes nothing and may refuse the request, and
    then each does its part (``change``), where nothing may be refused.

    Attributes:
        argv: the request's words; those from ``first`` on belong together by ``step``.
        keys: all that it may change; others keep away from these.
    """

    def __init__(self, argv: list[bytes], first: int, step: int) -> None:
        self.argv: Final = argv
        self.first: Final = first
        self.step: Final = step
        self.keys: Final = KeySet()
        self._record = LongRequest()

    def prepare(self, call: Call, low: int, high: int) -> None:
        """Check ``argv[low:high]``, and note the keys; raises CommandError for a wrong request."""
        raise NotImplementedError

    def begin(self, call: Call) -> None:
        """Find what to change, which nothing else may change from now on; raises CommandError."""

    def change(self, call: Call, low: int, high: int) -> None:
        """Do what ``argv[low:high]`` ask for, and report it, except the record."""
        raise NotImplementedError

    def finish(self, call: Call) -> object:
        """Report what is reported once, and record all of it (``record``); return the reply."""
        raise NotImplementedError

    def note(self, call: Call, words: list[bytes]) -> None:
        """Add words to the record."""
        if call.recorded:
            self._record.add(words)

    def record(self, call: Call, name: bytes) -> None:
        """Record what was noted, as one command."""
        call.record_wire(self._record.pieces(name))
        self._record = LongRequest()
