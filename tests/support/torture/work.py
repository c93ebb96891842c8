"""What a campaign has a server do: pipelines of every command that writes, each at its time."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from support.client import encode
from support.fuzz.calls import Calls
from support.fuzz.known import huge, waits
from support.process import Process

MOVES_MS: Final = (0, 0, 0, 1, 1, 2, 5, 10, 100, 1001)
# They end all keys, so they come seldom; what is left is more worth losing.
_RARELY: Final = {b"FLUSHALL", b"FLUSHDB", b"SWAPDB"}
# They give fields deadlines.
ENDING_FIELDS: Final = {"hexpire", "hexpireat", "hgetex", "hpexpire", "hpexpireat", "hsetex"}
# They tell the connection apart and change nothing.
_BESIDES: Final = ("multi", "exec", "discard", "watch", "unwatch", "select")


@dataclass(frozen=True)
class Pipeline:
    """Commands that were sent in one piece.

    Args:
        at_ms: what the clock showed.
        commands: the words of each.
    """

    at_ms: int
    commands: list[list[bytes]]

    def encoded(self) -> bytes:
        """The bytes to send."""
        return b"".join(encode(*words) for words in self.commands)


class Work:
    """Makes pipelines by chance.

    Args:
        chance: where all choices come from.
        names: the commands to call.
    """

    def __init__(self, chance: Random, names: set[str]) -> None:
        self._chance: Final = chance
        self._calls: Final = Calls(chance, names, spoilt=0.05)

    def next(self, now_ms: int) -> Pipeline:
        """Return what to send at a time."""
        chance = self._chance
        self._calls.words.now_ms = now_ms
        size = chance.choice((1, 1, 2, 3, 5, 8, 13, 50))
        return Pipeline(now_ms, [self._command() for _ in range(size)])

    def _command(self) -> list[bytes]:
        while True:
            words = without_chance(without_block(without_history(self._calls.next())))
            if waits(words) or huge(words):
                continue
            if words[0].upper() not in _RARELY or self._chance.random() < 0.03:
                return words


def without_history(words: list[bytes]) -> list[bytes]:
    """The words of a call that reads no history: that is not recorded, by design."""
    if words[0].upper() in (b"XREADGROUP", b"XREAD-GROUP"):
        spelled = [word.upper() for word in words]
        if b"STREAMS" in spelled:
            first = spelled.index(b"STREAMS") + 1
            streams = (len(words) - first) // 2
            return words[: first + streams] + [b">"] * streams
    return words


def without_block(words: list[bytes]) -> list[bytes]:
    """The words of a call that does not wait."""
    while (spelled := [word.upper() for word in words]).count(b"BLOCK"):
        place = spelled.index(b"BLOCK")
        words = words[:place] + words[place + 2 :]
    return words


def without_chance(words: list[bytes]) -> list[bytes]:
    """The words of a call that does not depend on chance, nor on what the cron has done already.

    SPOP takes all where it would take some. HRANDFIELD takes fields that end in this millisecond if
    it meets one that has ended, which the cron may have met before; the count is asked for instead.
    """
    name = words[0].upper()
    if name == b"HRANDFIELD":
        return [b"HLEN", *words[1:2]]
    return [*words[:2], b"1000000"] if name == b"SPOP" else words


def command_names(server: Process) -> tuple[set[str], set[str]]:
    """All commands of the server that write, and those that read or make transactions besides."""
    rows = server.call("COMMAND")
    assert isinstance(rows, list)
    writing: set[str] = set()
    reading: set[str] = set(_BESIDES)
    while rows:
        name, _, flags, *_, subcommands = rows.pop()
        rows += subcommands
        if b"write" in flags:
            writing.add(name.decode())
        elif b"readonly" in flags:
            reading.add(name.decode())
    return writing, reading
