"""Where the programs of a framework run, and tell the test what they do."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from frameworks.conftest import FOLDER

PATIENCE_S = 60.0


class Workplace:
    """Runs the programs of one framework.

    Args:
        command: the program.
        told: the file to which its programs write.
        environment: more variables.
    """

    def __init__(
        self, command: list[Path | str], port: int, told: Path, **environment: str
    ) -> None:
        self._command = command
        self._told = told
        self._environment = {
            **os.environ,
            "HEADRACE_PORT": str(port),
            "HEADRACE_TOLD": str(told),
            "PYTHONPATH": str(FOLDER / "programs"),  # and nothing of ours
            **environment,
        }
        told.touch()

    def produce(self, *numbers: int) -> None:
        """Run the program that makes the jobs, to its end."""
        done = subprocess.run(
            [*self._command, "produce", *map(str, numbers)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr

    @contextlib.contextmanager
    def worker(
        self, *numbers: int, holds: bool = False, fails: str = ""
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A worker that runs until the end of the block; one that holds never ends a job.

        Args:
            fails: what job 0 does to it, ``raises`` or ``kills``, where the program asks.
        """
        log = self._told.with_suffix(f".{holds}.log")
        with log.open("ab") as out:
            process = subprocess.Popen(
                [*self._command, "work", *map(str, numbers)],
                env={
                    **self._environment,
                    "HEADRACE_HOLDS": str(int(holds)),
                    "HEADRACE_FAILS": fails,
                },
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def events(self) -> list[tuple[str, int]]:
        """What was told of which job, in its order."""
        lines = [line.split() for line in self._told.read_text().splitlines()]
        return [(kind, int(number)) for _, kind, number in lines]

    def numbers(self, what: str) -> list[int]:
        """The jobs of which this was told, in its order."""
        return [number for kind, number in self.events() if kind == what]

    def wait_for(self, what: str, count: int) -> None:
        self._wait(what, lambda numbers: len(numbers) >= count)

    def wait_for_all(self, what: str, expected: set[int]) -> None:
        self._wait(what, lambda numbers: set(numbers) >= expected)

    def _wait(self, what: str, is_enough: Callable[[list[int]], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_enough(self.numbers(what)):
            logs = "\n".join(log.read_text() for log in self._told.parent.glob("*.log"))
            assert time.monotonic() < deadline, f"{what}: {self.numbers(what)}\n{logs[-4000:]}"
            time.sleep(0.05)
