"""The operating system's limit of open files, which bounds how many clients can be connected."""

from __future__ import annotations

import resource
from typing import Final

RESERVED_FILES: Final = 32  # for listeners, the log and the data files


def clients_possible(wanted: int) -> int:
    """Raise the limit as far as ``wanted`` clients need it; how many of them can be served."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted + RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= files:
        return wanted
    if _raise_limit(files, hard if hard == resource.RLIM_INFINITY else max(hard, files)):
        return wanted
    # Only a privileged process may go beyond the hard limit.
    if hard > soft and _raise_limit(min(hard, files), hard):
        soft = min(hard, files)
    return max(0, min(wanted, soft - RESERVED_FILES))


def _raise_limit(soft: int, hard: int) -> bool:
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    except (OSError, ValueError):
        return False
    return True
