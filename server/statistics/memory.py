"""How much memory the process and the machine have: interpreter, code, data and what is free."""

from __future__ import annotations

import os
import resource
import sys
from typing import Final

_PAGE_BYTES: Final = resource.getpagesize()


def resident_bytes() -> int:
    """The resident set of this process."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        # Elsewhere the peak is all there is: bytes on macOS, KiB on the BSDs.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def system_bytes() -> int:
    """The memory of this machine; 0 when it is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def anonymous_huge_bytes() -> int:
    """How much of this process is in transparent huge pages; 0 when it is not known."""
    try:
        with open("/proc/self/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"AnonHugePages:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def give_back() -> None:
    """Let the allocator return to the system what it holds without need, where it can."""
    try:
        from ctypes import CDLL  # late: a server that has freed nothing starts without it

        malloc_trim = getattr(CDLL(None), "malloc_trim", None)  # glibc alone has it
    except OSError:  # as where no file can be opened any more
        return
    if malloc_trim is not None:
        malloc_trim(0)


def human(size: int) -> bytes:
    """A size for people, as INFO writes it: ``1.00M``."""
    if size < 1024:
        return b"%dB" % size
    amount = float(size)
    for unit in (b"K", b"M", b"G", b"T", b"P"):
        amount /= 1024
        if amount < 1024:
            return b"%.2f%b" % (amount, unit)
    return b"%dB" % size
