"""The subcommands of ``headrace``, run to their end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support import build


def tool(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run one of them, in a folder if it names files without theirs."""
    return subprocess.run(
        [sys.executable, "-P", "-W", "error", "-m", "headrace", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
        cwd=folder,
        env=build.environment(),
    )
