"""The differential fuzz: sessions by chance on both servers, differences made small and told."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.server.commands.documentation import documentation
from support.client import parse
from support.clock import Clock
from support.fuzz.extremes import ALL, Extremes
from support.fuzz.older import Older
from support.fuzz.play import Difference, Player
from support.fuzz.shrink import shortest
from support.fuzz.steps import Sessions, Step
from support.judges import present
from support.process import RedisProcess, ServerProcess

SESSION_STEPS: Final = 240
_DRILL_STEPS: Final = 900
_LIKE: Final = 4  # differences that look alike are made small so often: their causes may differ
_SCRIPT: Final = '''\
"""Headrace and {name} differ.

From the checkout: PYTHONPATH=tests .venv/bin/python -P THIS
"""

from support.fuzz.duel import replay
from support.fuzz.steps import alone, call, drop, hold, tick

replay(
    [
{steps}    ],
    judge="{judge}",
)
'''

DOCS = documentation()


class Duel:
    """Both servers under one clock.

    Args:
        judge: the program of the real server.
    """

    def __init__(self, judge: str) -> None:
        self._clock: Final = Clock()
        environment = self._clock.environment
        settings = ("--databases", "4", "--proto-max-bulk-len", "1048576")
        self._ours: Final = ServerProcess(
            "--enable-debug-command", "yes", *settings, environment=environment, debug=False
        )
        self._real: Final = RedisProcess(*settings, program=judge, environment=environment)
        self.judge: Final = Path(judge).resolve()

    def __enter__(self) -> Self:
        try:
            self.player = Player(self._ours.start(), self._real.start(), self._clock)
            self.older = Older(self.player.real)
            self.player.changed = self.older.known
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for side in self.player.sides:
            side.close()
        self._end()

    def _end(self) -> None:
        self._ours.discard()
        self._real.discard()
        self._clock.__exit__(None, None, None)

    def check_log(self) -> None:
        """Fail when our log shows trouble."""
        self._ours.check_log()

    def names(self) -> set[str]:
        """The commands that both servers know, and that can be compared."""
        listed = parse(self.player.real.call("COMMAND", "LIST"))
        assert isinstance(listed, list)
        return {name.decode() for name in listed} & set(DOCS) - set(self.older.uncalled)

    def fails(self, steps: list[Step]) -> Difference | None:
        """The difference that these steps show, if any."""
        try:
            self.player.play(steps)
        except Difference as found:
            return found
        return None

    def shrunk(self, steps: list[Step], found: Difference) -> tuple[list[Step], Difference] | None:
        """The fewest of these steps that show the same difference; None if it is gone."""

        def fails(fewer: list[Step]) -> bool:
            again = self.fails(fewer)
            return again is not None and again.kind == found.kind

        steps = steps[: found.place + 1]
        if not fails(steps):
            return None
        steps = shortest(steps, fails)
        return steps, self.fails(steps) or found


def script(judge: Path, steps: list[Step]) -> str:
    """A program that plays these steps and prints what is said."""
    lines = "".join(f"        {step},\n" for step in steps)
    return _SCRIPT.format(name=judge.name, judge=judge, steps=lines)


class Fuzz:
    """Looks for differences until there is no time left, or enough was found.

    Args:
        duel: the servers.
        seed: makes the same sessions again.
        most: how many differences of different kinds are enough.
        only: the chapters of the manual whose commands are called, besides those on any key; none:
            all.
    """

    def __init__(self, duel: Duel, seed: int, most: int = 1, only: Collection[str] = ()) -> None:
        self._duel: Final = duel
        self._seed: Final = seed
        self._most: Final = most
        names = duel.names()
        if only:
            names = {name for name in names if DOCS[name].group in (*only, "generic")}
        self._sessions: Final = Sessions(seed, names, duel.older.lacks)
        self._met: Final[Counter[tuple[str, ...]]] = Counter()
        self._told: Final[set[tuple[str, ...]]] = set()
        self.scripts: list[str] = []

    def run(self, commands: int, minutes: float = 0, first: int = 0, drills: bool = False) -> int:
        """Play sessions, from the one with number ``first`` on; how many were played.

        Args:
            commands: after how many to stop.
            minutes: go on for so long instead.
            drills: many calls at once, and nobody looks on: much faster, and sees less.
        """
        player = self._duel.player
        deadline = time.monotonic() + minutes * 60
        started, goal = time.monotonic(), player.calls + commands
        number = first
        while time.monotonic() < deadline if minutes else player.calls < goal:
            if drills:
                steps = self._sessions.drill(number, _DRILL_STEPS)
            else:
                steps = self._sessions.session(number, SESSION_STEPS)
            found = self._duel.fails(steps)
            if found is not None and self._met[found.kind] < _LIKE:
                self._met[found.kind] += 1
                self._tell(number, steps, found)
                if len(self.scripts) >= self._most:
                    break
            number += 1
            if number % 50 == 0:
                rate = player.calls / (time.monotonic() - started)
                print(f"session {number}: {player.calls} calls, {rate:.0f}/s", flush=True)
        return number - first

    def run_extremes(self, commands: int) -> int:
        """Play sessions of extreme numbers until so many calls are made; how many were played."""
        goal = self._duel.player.calls + commands
        number = 0
        while self._duel.player.calls < goal:
            extremes = Extremes(self._seed + number, self._duel.names())
            for name in extremes.names:
                steps = extremes.session(name, 2, len(ALL))
                found = self._duel.fails(steps)
                if found is not None:
                    self._tell(number, steps, found)
                    if len(self.scripts) >= self._most:
                        return number + 1
            number += 1
        return number

    def _tell(self, number: int, steps: list[Step], found: Difference) -> None:
        """Make the session small, and print the script that shows the difference."""
        small = self._duel.shrunk(steps, found)
        where = f"seed {self._seed}, session {number}"
        if small is None:
            print(f"--- {where}: did not show again\n{found}", flush=True)
            return
        steps, found = small
        commands = [step.words[0].upper().decode("latin-1") for step in steps if step.words]
        if (alike := (*found.kind, *commands[-1:])) in self._told:
            return
        self._told.add(alike)
        self.scripts.append(script(self._duel.judge, steps))
        print(f"--- {where}: {found}\n{self.scripts[-1]}", flush=True)

    def tolerated(self) -> str:
        """Return how often each difference that is known was met."""
        counts = sorted(self._duel.player.tolerated.items())
        return "".join(f"  {count:>7} {reason}\n" for reason, count in counts)


def replay(steps: list[Step], judge: str = "") -> None:
    """Play steps, and print what both servers say to each."""
    program = judge or find_judge()
    assert program is not None, "no redis-server found to compare with"
    with Duel(program) as duel:
        try:
            duel.player.play(steps, trace=True)
        except Difference as found:
            print(found)
        else:
            print("no difference")


def find_judge() -> str | None:
    """The server to compare with: ``HEADRACE_JUDGE``, or the newest of those that are there."""
    chosen = os.environ.get("HEADRACE_JUDGE")
    return chosen or next((judge.program() for judge in present()), None)
