"""The greatest, the least and the oddest numbers in each numeric place of each command.

Calls come from the trees of arguments, as in the other sessions. In each call that has a number, or
what stands for one, that word is replaced by one extreme after the other.
"""

from __future__ import annotations

import re
from random import Random
from typing import Final

from support.clock import START_MS
from support.fuzz import known
from support.fuzz.calls import Calls
from support.fuzz.steps import ID_OF, Step, call
from support.fuzz.words import EXTREMES, MAX, ODD

_EDGES: Final = tuple(
    b"%d" % number
    for number in (
        0, 1, -1, -2, MAX - 1, 2**62, 2**62 - 1, -(2**62), 2**63 + 5, -(2**31) - 1, 2**32 - 1,
        # Around what a time may be that is added to now.
        MAX - START_MS, MAX - START_MS + 1, (MAX - START_MS) // 1000, (MAX - START_MS) // 1000 + 1,
        512 * 2**20, 512 * 2**20 + 1,
    )
)  # fmt: skip
_SHAPES: Final = (
    b"007", b"0.5", b"1e400", b"-1e400", b"-nan", b"-inf", b"+inf", b"0b1", b"1_000", b"1,5",
    b"1\x00", b"\xd9\xa1", b"1" * 400, b"0." + b"1" * 300, b"9" * 19, b"-" + b"9" * 19,
    b"1-18446744073709551615", b"18446744073709551616-1", b"1-18446744073709551616", b"1--1",
    b"01-01", b"(18446744073709551615-18446744073709551615", b"(0-0", b"(1",
)  # fmt: skip
ALL: Final = tuple(dict.fromkeys((*_EDGES, *EXTREMES, *_SHAPES, *ODD)))
_NUMBER: Final = re.compile(rb"\(?[-+]?\d[\d.eE+-]*|[-+*$>]|nan|inf")

_OPENING: Final = (
    b"DEL k n m s t",
    b"SET k 10",
    b"SET n 5 PX 100000",
    b"SET m abc",
    b"XADD s 1-1 f v",
    b"XADD s 2-1 f v",
    b"XADD s 3-1 f v",
    b"XGROUP CREATE s g 0",
    b"XGROUP CREATE s h $",
    b"XREADGROUP GROUP g c COUNT 2 STREAMS s >",
    b"XADD t 5-0 a b",
    b"XGROUP CREATE t g 0",
)
_CALLS_BEFORE_OPENING: Final = 6  # what earlier calls have left is of use, too
_PAUSE: Final = "client|pause"


class Extremes:
    """Makes sessions, each of one command.

    Args:
        seed: the same number makes the same sessions.
        names: the commands that both servers know.
    """

    def __init__(self, seed: int, names: set[str]) -> None:
        self._seed: Final = seed
        self.names: Final = sorted((names - set(known.SPARED)) | (names & {_PAUSE}))
        self._all: Final = names

    def session(self, name: str, calls: int, extremes: int) -> list[Step]:
        """Some calls of a command with some extremes each; none where it has no numbers."""
        chance = Random(f"{self._seed} {name}")
        maker = Calls(chance, self._all, 0)
        steps: list[Step] = []
        made = 0
        for _ in range(calls):
            words = maker.right(name)
            first = len(name.split("|"))
            places = [at for at in range(first, len(words)) if _NUMBER.fullmatch(words[at])]
            if not places:
                continue
            place = chance.choice(places)
            for extreme in chance.sample(ALL, min(extremes, len(ALL))):
                if made % _CALLS_BEFORE_OPENING == 0:
                    steps += [call(0, *line.split()) for line in _OPENING]
                made += 1
                steps += _steps([*words[:place], extreme, *words[place + 1 :]])
        return steps


def _steps(words: list[bytes]) -> list[Step]:
    """A call after which nobody waits, and nobody is held back."""
    if known.avoided(tuple(words)) is not None:
        return []
    if [word.upper() for word in words[:2]] == [b"CLIENT", b"PAUSE"]:
        held = [[b"MULTI"], words, [b"CLIENT", b"UNPAUSE"], [b"EXEC"]]
        return [call(0, *each) for each in held]
    if known.waits(words):
        end = call(0, b"CLIENT", b"UNBLOCK", ID_OF % 2)
        return [call(2, *known.calmed(words)), end]
    return [call(1, *words)]
