"""Our server on a disk that a test can slow down, break and mend."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from support.process import ServerProcess

SCRIPT = Path(__file__).with_name("faulty_disk.py")
FOREVER = 1 << 40
HELD_S: float = 1 << 20  # until the test mends the disk


@dataclass
class Rule:
    """What shall happen to a file operation of the server.

    Args:
        call: the function of ``os``.
        path: a part of the file's path; empty for any file.
        during: only while such a function is under way, in another thread.
        skip: how many calls are left alone first.
        times: to how many calls it happens then.
        delay_s: how long the call takes longer, unless the test mends the disk before.
        part: of a write: how many bytes are written, before it fails or the process ends, or at
            all: the call says so then.
        error: the error number that the call fails with, instead of doing anything.
        kill: the process ends before the call does anything.
    """

    call: str
    path: str = ""
    during: str = ""
    skip: int = 0
    times: int = FOREVER
    delay_s: float = 0.0
    part: int = 0
    error: int = 0
    kill: bool = False


class FaultyDisk:
    """The disk of a server that is started by ``command``.

    Args:
        directory: the server's folder.
    """

    def __init__(self, directory: Path) -> None:
        self._files = directory / "appendonlydir"
        self._rules = directory / "rules.json"
        self._journal = directory / "synced.txt"

    def command(self) -> list[str]:
        return [sys.executable, "-P", str(SCRIPT), str(self._rules), str(self._journal)]

    def play(self, *rules: Rule) -> None:
        """Behave like that from now on; without rules as good as any."""
        new = self._rules.with_suffix(".new")
        new.write_text(json.dumps([asdict(rule) for rule in rules]))
        new.rename(self._rules)

    def cut_power(self, chance: Random | None = None) -> int:
        """Take from each file what no sync had put on the disk; the server must have ended.

        What the system had written by itself is taken, too: nobody could rely on it.

        Args:
            chance: leaves a part of it there, of whatever length.

        Returns: how many bytes were taken.
        """
        synced: dict[str, int] = {}
        for line in self._journal.read_text().splitlines():
            length, _, name = line.partition(" ")
            synced[name] = int(length)
        taken = 0
        for path in self._files.glob("*.incr.aof"):
            size = path.stat().st_size
            least = min(size, synced.get(str(path), 0))
            kept = chance.randint(least, size) if chance else least
            os.truncate(path, kept)
            taken += size - kept
        return taken

    def sync_all(self) -> None:
        """Take all that is in the folder as synced: it was put there by the test."""
        with self._journal.open("a") as journal:
            for path in self._files.glob("*.incr.aof"):
                journal.write(f"{path.stat().st_size} {path}\n")

    def forget(self) -> None:
        """The files are gone."""
        self._journal.write_text("")

    def syncs(self) -> int:
        """Return how many syncs of incr files have succeeded."""
        return self._journal.read_text().count(".incr.aof\n")

    def is_held(self) -> bool:
        """Return whether an operation that is made to take longer is under way."""
        return self._journal.read_text().endswith("held\n")


class FaultyServer(ServerProcess):
    """Our server on a faulty disk."""

    def __init__(
        self,
        *options: str,
        check_log: bool = True,
        environment: dict[str, str] | None = None,
    ) -> None:
        super().__init__(*options, debug=False, check_log=check_log, environment=environment)
        self._disk = FaultyDisk(self.directory)

    def command(self) -> list[str]:
        return self._disk.command()

    def disk(self, *rules: Rule) -> None:
        """Let the disk behave like that from now on; without rules it is as good as any."""
        self._disk.play(*rules)

    def cut_power(self) -> None:
        """End the process, and take from each file what no sync had put on the disk."""
        self.kill()
        self._disk.cut_power()

    def syncs(self) -> int:
        """Return how many syncs of incr files have succeeded."""
        return self._disk.syncs()

    def is_held(self) -> bool:
        """Return whether an operation that is made to take longer is under way."""
        return self._disk.is_held()


@contextlib.contextmanager
def faulty_server(
    policy: str, *rules: Rule, options: tuple[str, ...] = (), check_log: bool = True
) -> Iterator[FaultyServer]:
    """A server with an append-only file, on a disk that follows the rules from the start."""
    server = FaultyServer(
        "--appendonly", "yes", "--appendfsync", policy, *options, check_log=check_log
    )
    server.disk(*rules)
    try:
        yield server.start()
        if check_log:
            server.kill()
            server.check_log()
    finally:
        server.discard()
