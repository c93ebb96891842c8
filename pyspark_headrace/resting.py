"""Which of many streams need a look, because they may not be what they were when they were read.

Most of ten thousand streams rest: they have been read to their end, and nothing has changed since.
To ask for all that is known of each would take a second, so first there is a cheaper question.

- Headrace answers XLOOK with a string for each of many streams, which changes when they do.
- Elsewhere XLEN, and where the length is the same XREAD from the last ID on, tell what was added or
  removed. They do not tell a stream that was replaced by one that has the same length, and no
  entry behind that ID. So streams take turns, and each is looked at within ``TURN_S`` whatever was
  answered. As one is looked at before any of its entries is read, a stream made anew is
  noticed all the same; only a moment later.

Of ``FEW`` streams every one is looked at each time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark_headrace.client import encode
from pyspark_headrace.errors import ServerError
from pyspark_headrace.ids import format_id
from pyspark_headrace.offsets import Position, Positions
from pyspark_headrace.resp import Link
from pyspark_headrace.server import has_commands

FEW: Final = 100
TURN_S: Final = 10.0
KEYS_AT_ONCE: Final = 1000  # in one XLOOK


@dataclass(frozen=True)
class Rest:
    """A stream that was read to its end.

    Attributes:
        at: up to where.
        tag: what the cheap question is answered with as long as nothing changes.
        length, news: the questions how long it is, and whether there is an entry behind; empty
            where XLOOK says so.
    """

    at: Position
    tag: object
    length: bytes = b""
    news: bytes = b""


class Resting:
    """The streams that were read to their end, and what tells whether they still are."""

    def __init__(self, link: Link) -> None:
        self._link: Final = link
        self._looks: bool | None = None  # whether there is XLOOK
        self._tags: dict[str, object] = {}
        self._rests: dict[str, Rest] = {}
        self._keys: Sequence[str] = ()
        self._questions: list[bytes] = []
        self._at_once = KEYS_AT_ONCE
        self._turn = 0.0  # where in the list of keys it is now
        self._asked_at_s = time.monotonic()

    def awake(self, keys: Sequence[str], start: Positions) -> list[str]:
        """Those of the streams that have to be looked at.

        Args:
            start: the positions they were read to; the very objects that ``rest`` was given.
        """
        if self._looks is None:
            self._looks = has_commands(self._link, "XLOOK")
        if keys is not self._keys:
            self._begin_with(keys)
        if self._looks:
            self._tags = self._words(keys)
            return [key for key in keys if self._is_awake(key, start, self._tags.get(key))]
        if len(keys) <= FEW:
            return list(keys)
        return self._without_words(keys, start)

    def _begin_with(self, keys: Sequence[str]) -> None:
        """Forget the streams that are not asked about any more."""
        self._keys = keys
        self._at_once = 1 if self._link.is_cluster() else KEYS_AT_ONCE
        self._rests = {key: self._rests[key] for key in keys if key in self._rests}
        self._questions = [
            encode(("XLOOK", *keys[first : first + self._at_once]))
            for first in range(0, len(keys), self._at_once)
        ]

    def rest(self, key: str, at: Position, length: int) -> None:
        """A stream was read to its end, and had so many entries at that moment."""
        if not self._looks:
            news = encode(("XREAD", "COUNT", 1, "STREAMS", key, format_id(at.id)))
            self._rests[key] = Rest(at, length, encode(("XLEN", key)), news)
        elif key in self._tags:
            self._rests[key] = Rest(at, self._tags[key])

    def _is_awake(self, key: str, start: Positions, tag: object) -> bool:
        """Return whether a stream is not what it was; then it is forgotten."""
        rest = self._rests.get(key)
        if rest is not None and rest.tag == tag and start.get(key) is rest.at:
            return False
        self._rests.pop(key, None)
        return True

    def _words(self, keys: Sequence[str]) -> dict[str, object]:
        """Return what XLOOK answers; nothing where the user may not ask."""
        found: dict[str, object] = {}
        for number, reply in enumerate(self._link.ask(self._questions, lambda: keys)):
            if isinstance(reply, ServerError):
                if reply.code != "NOPERM":
                    raise reply
                continue
            assert isinstance(reply, list)
            first = number * self._at_once
            found.update(zip(keys[first : first + self._at_once], reply, strict=True))
        return {key: word for key, word in found.items() if word is not None}

    def _without_words(self, keys: Sequence[str], start: Positions) -> list[str]:
        turn = self._turn_of(keys)
        asked = [key for key in keys if key in self._rests and key not in turn]
        lengths = self._link.ask([self._rests[key].length for key in asked], lambda: asked)
        same = [
            key
            for key, length in zip(asked, lengths, strict=True)
            if self._rests[key].tag == length and start.get(key) is self._rests[key].at
        ]
        news = self._link.ask([self._rests[key].news for key in same], lambda: same)
        asleep = {key for key, reply in zip(same, news, strict=True) if reply is None}
        return [key for key in keys if key not in asleep]

    def _turn_of(self, keys: Sequence[str]) -> set[str]:
        """The streams whose turn it is: in ``TURN_S`` all of them."""
        now_s = time.monotonic()
        share = (now_s - self._asked_at_s) / TURN_S
        self._asked_at_s = now_s
        if share >= 1:
            return set(keys)
        first = int(self._turn * len(keys))
        self._turn += share
        if self._turn < 1:
            return set(keys[first : int(self._turn * len(keys))])
        self._turn -= 1
        return {*keys[first:], *keys[: int(self._turn * len(keys))]}
