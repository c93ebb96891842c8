"""Every plug is yours: lines that are typed, or that come from a pipe, say what happens."""

from __future__ import annotations

import time
from collections.abc import Callable

from two_regions.servers import Region
from two_regions.stage import LOOK_EVERY_S, Stage
from two_regions.typed import Typed

COMMANDS = (
    "cut 1 2 (the links between two)",
    "cut 3 (all of one)",
    "deaf 1 (hears nobody, is heard)",
    "heal",
    "kill 2 (kill -9)",
    "lose 2 (kill -9, its disk is gone)",
    "start 2",
    "move 3 (billing is read there)",
    "wait 5 (seconds)",
    "end",
)


class _Misread(Exception):
    """A line makes no sense; the text says why."""


class ByHand:
    """One run by hand."""

    def __init__(self, stage: Stage, typed: Typed) -> None:
        self._stage = stage
        self._typed = typed
        self._until_s = 0.0
        self._actions: dict[str, Callable[[list[int]], str]] = {
            "cut": self._cut,
            "deaf": self._deaf,
            "heal": self._heal,
            "kill": self._kill,
            "lose": self._lose,
            "start": self._start,
            "move": self._move,
            "wait": self._wait,
        }

    def run(self) -> None:
        """Do what is asked for until that is to end; then start and heal everything."""
        view = self._stage.view
        view.prompt = "; ".join(COMMANDS)
        while True:
            view.show(self._typed.begun)
            self._look()
            if time.monotonic() < self._until_s:
                time.sleep(LOOK_EVERY_S)
                continue
            line = self._typed.line(LOOK_EVERY_S)
            if line is None:
                continue
            if line in ("end", "quit", "exit"):
                break
            if line:
                view.tell(self._do(line))
        view.prompt = ""
        self._end()

    def _do(self, line: str) -> str:
        name, *words = line.split()
        action = self._actions.get(name)
        if action is None:
            return f"? {line}"
        try:
            return action([int(word) for word in words])
        except (ValueError, _Misread) as error:
            return f"? {line}: {error}"

    def _end(self) -> None:
        """The verdict needs all of them."""
        self._stage.links.heal()
        for region in self._stage.regions:
            if region.state == "killed":
                region.start()
            region.wait_until_it_writes()
        self._look()

    def _look(self) -> None:
        """Notice who takes writes by now."""
        for region, writer in zip(self._stage.regions, self._stage.writers, strict=True):
            if region.state == "starts" and region.takes_writes():
                self._stage.view.tell(f"region {region.number} takes writes")
            if region.state == "up" and writer.paused:
                writer.go_on()

    # What is done

    def _cut(self, numbers: list[int]) -> str:
        if len(numbers) == 2 and numbers[0] != numbers[1]:
            one, other = self._region(numbers[0]).number, self._region(numbers[1]).number
            self._stage.links.cut((one, other), (other, one))
            return f"the links between {one} and {other} are cut, both ways"
        number = self._one(numbers).number
        self._stage.links.cut(*self._stage.links.around(number))
        return f"region {number} is cut off"

    def _deaf(self, numbers: list[int]) -> str:
        number = self._one(numbers).number
        around = self._stage.links.around(number)
        self._stage.links.cut(*[pair for pair in around if pair[0] == number])
        return f"{number} hears nobody, but is heard"

    def _heal(self, numbers: list[int]) -> str:
        if numbers:
            raise _Misread("all links are healed")
        self._stage.links.heal()
        return "healed: each gets what it has missed"

    def _kill(self, numbers: list[int]) -> str:
        region = self._running(numbers)
        region.kill()
        return f"kill -9 of region {region.number}, in the middle of its writes"

    def _lose(self, numbers: list[int]) -> str:
        region = self._running(numbers)
        if not any(each.state == "up" for each in self._stage.regions if each is not region):
            raise _Misread("no other region is up, and all would be gone")
        self._stage.let_others_fetch(region)
        gone = self._stage.lose_disk(region)
        what = f"region {region.number} is killed, and its disk is gone"
        return f"{what}, with {gone} entries that nobody could fetch" if gone else what

    def _start(self, numbers: list[int]) -> str:
        region = self._one(numbers)
        if region.state != "killed":
            raise _Misread("it is running")
        region.start()
        return f"region {region.number} starts"

    def _move(self, numbers: list[int]) -> str:
        target = self._one(numbers)
        if not self._stage.move_billing(target):
            raise _Misread(f"region {self._stage.home.number}, where it is read, does not take it")
        return f"billing is read in region {target.number}; AA MOVE carries what it has read"

    def _wait(self, numbers: list[int]) -> str:
        if len(numbers) != 1:
            raise _Misread("it wants seconds")
        self._until_s = time.monotonic() + numbers[0]
        return f"{numbers[0]} s go by"

    def _one(self, numbers: list[int]) -> Region:
        if len(numbers) != 1:
            raise _Misread("it wants the number of a region")
        return self._region(numbers[0])

    def _running(self, numbers: list[int]) -> Region:
        region = self._one(numbers)
        if region.state == "killed":
            raise _Misread("it is not running")
        return region

    def _region(self, number: int) -> Region:
        for region in self._stage.regions:
            if region.number == number:
                return region
        raise _Misread(f"there is no region {number}")
