"""Who writes an incr file of a region, and whether a file is the one that it wrote.

The first line of such a file is ``AA FILE version database region epoch generation nonce boot
file``. ``boot`` names the time since the system was started, ``file`` the place of the file on its
device. A file that was copied or restored lies elsewhere than it says.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

from headrace.storage.regions.records import AA, FILE
from headrace.storage.regions.region import Region

VERSION: Final = 1
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


def boot_id() -> bytes:
    """What names the time since the system was started; it never comes again."""
    with contextlib.suppress(OSError), open(_BOOT_ID, "rb") as file:
        return file.read(64).strip()
    return os.urandom(16).hex().encode()  # no system that says it: each start is one of its own


def place_of(found: os.stat_result) -> bytes:
    """Where a file lies, as ``AA FILE`` says it."""
    return b"%d:%d" % (found.st_dev, found.st_ino)


def file_words(region: Region, found: os.stat_result) -> list[bytes]:
    """The first line of a file that a region writes."""
    return [
        AA,
        FILE,
        b"%d" % VERSION,
        region.database,
        b"%d" % region.id,
        b"%d" % region.epoch,
        b"%d" % region.generation,
        region.nonce,
        boot_id(),
        place_of(found),
    ]
