"""The subcommands of ``headrace``, run to their end."""

from __future__ import annotations

import subprocess
import sys

from support import build


def tool(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-P", "-W", "error", "-m", "headrace", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
        env=build.environment(),
    )
