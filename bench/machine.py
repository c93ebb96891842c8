"""What a report has to say of the machine, lest its numbers be compared with another's."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from bench.peers import TICKS_PER_S

SYNCS: Final = 50
SYNC_BYTES: Final = 200  # about what one command appends
STEAL_COLUMN: Final = 8  # behind the word "cpu"


def facts(folder: Path | None) -> dict[str, str]:
    """The date, the machine, and the disk on which the servers keep their files."""
    place = folder or Path(tempfile.gettempdir())
    known = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "processor": f"{processor()}, {len(os.sched_getaffinity(0))} cores",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / (1 << 30):.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, {system_name()}",
        "disk": f"{filesystem(place)}, fdatasync {sync_us(place):,.0f} us",
        "Python of the load": platform.python_version(),
    }
    commit = checked_out()
    if commit:
        known["commit"] = commit
    return known


def processor() -> str:
    """The model, as /proc/cpuinfo names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def system_name() -> str:
    """The distribution."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return "unknown distribution"


def filesystem(place: Path) -> str:
    """The kind of file system that a folder lies on."""
    best, kind = "", "unknown"
    resolved = place.resolve()
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, this_kind, *_ = line.split()
        if resolved.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, this_kind
    return kind


def sync_us(place: Path) -> float:
    """Return how long fdatasync takes after a small append: what `always` pays, at least."""
    taken = []
    with tempfile.NamedTemporaryFile(dir=place) as file:
        for _ in range(SYNCS):
            os.write(file.fileno(), b"x" * SYNC_BYTES)
            started_s = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - started_s)
    return median(taken) * 1e6


def available_bytes() -> int:
    """Memory that programs can have now."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, size = line.partition(":")
        if name == "MemAvailable":
            return int(size.split()[0]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def stolen_s() -> float:
    """CPU time that the host gave to other machines while this one had work, of a core on average.

    On a virtual machine that is why the same work takes longer now than a minute ago; 0 elsewhere.
    Source: ``steal`` in /proc/stat.
    """
    with open("/proc/stat", "rb") as file:
        ticks = int(file.readline().split()[STEAL_COLUMN])
    return ticks / TICKS_PER_S / (os.cpu_count() or 1)


def checked_out() -> str:
    """The commit of the checkout that this file is in, and whether it was changed since."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
