"""A real file system of a few megabytes, where this machine lets us mount one."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted file system in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, leave_bytes: int) -> None:
        """Take all room but so much."""
        free = shutil.disk_usage(self.path).free
        with self._ballast.open("ab") as file:
            file.write(bytes(max(0, free - leave_bytes)))

    def make_room(self) -> None:
        """Give it back."""
        self._ballast.unlink()

    def remount(self, options: str) -> None:
        """Such as ``ro``."""
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.path)], check=True)


@contextlib.contextmanager
def small_disk(path: Path, size: str = "4m") -> Iterator[SmallDisk]:
    """Mount one at ``path`` for a while; without the right to, the test is skipped."""
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "headrace-test", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
