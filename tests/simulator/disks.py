"""Where simulated disks lie."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")


def folder() -> str | None:
    """A folder in memory, where that can be; else that of temporary files."""
    return str(MEMORY) if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
