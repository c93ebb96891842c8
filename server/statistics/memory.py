"""How much memory the process and the machine have: interpreter, code, data and what is free."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from time import monotonic, thread_time
from typing import Any, Final

# Between two looks at what is spare, or so many times as long as a look takes, if that is longer.
_LOOK_S: Final = 1.0
_REST: Final = 500
_LOOK_WHILE_FREEING_S: Final = 0.02
_REST_WHILE_FREEING: Final = 10
_SMALL_BYTES: Final = 64 << 20  # a process that takes no more is not looked at
_WORTH_BYTES: Final = 16 << 20  # from which it pays to give back
_MOST_PAUSE_S: Final = 0.05  # while there are requests
_CHUNK_S: Final = 3e-7  # that it takes for each free chunk of the heap, about
_BYTE_S: Final = 1e-10  # and for each byte that is returned
_INFO_NUMBERS: Final = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)
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
    """Return how much of this process is in transparent huge pages; 0 when it is not known."""
    try:
        with open("/proc/self/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"AnonHugePages:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class _Heap:
    """What of the heap is in use, and what is not, whether it was returned or not."""

    def __init__(self, used_bytes: int, free_bytes: int, free_chunks: int) -> None:
        self.used_bytes: Final = used_bytes
        self.free_bytes: Final = free_bytes
        self.free_chunks: Final = free_chunks


class _Allocator:
    """What glibc's allocator offers; another one may have nothing of it."""

    def __init__(self) -> None:
        self._trim: Callable[[int], int] | None = None
        self._info: Callable[[], Any] | None = None
        try:
            from ctypes import CDLL, Structure, c_size_t  # late: a small server starts without it

            library: Any = CDLL(None)
        except OSError:  # as where no file can be opened any more
            return
        self._trim = getattr(library, "malloc_trim", None)
        info: Any = getattr(library, "mallinfo2", None)
        if info is not None:
            fields = [(name, c_size_t) for name in _INFO_NUMBERS]
            info.restype = type("mallinfo2", (Structure,), {"_fields_": fields})
            self._info = info

    def give_back(self) -> None:
        """Return to the system what is held without need."""
        if self._trim is not None:
            self._trim(0)

    def heap(self) -> _Heap:
        """Return how much of the heap is in use; nothing where it is not known."""
        if self._info is None:
            return _Heap(0, 0, 0)
        info = self._info()
        return _Heap(info.uordblks + info.hblkhd, info.fordblks, info.ordblks)


def give_back() -> None:
    """Let the allocator return to the system what it holds without need, where it can."""
    _Allocator().give_back()


class SpareMemory:
    """What the allocator holds without need, and gives back by itself after much was freed.

    glibc returns by itself only what lies at the end of its heap. To return the rest holds off all
    who allocate, and there is no way to return a part of it. So it is done while it is little, and
    what would take long waits until nobody asks for anything. Memory that is needed again between
    two looks is left alone.

    What was returned still counts as free in the heap. How much of that is resident shows in what
    the process has beyond what is in use, less what it had when all had been returned.
    """

    def __init__(self) -> None:
        self._allocator: _Allocator | None = None
        self._looked_s = 0.0  # when that was
        self._took_s = 0.0  # of processor time
        self._others_bytes = 0  # resident, and not the allocator's
        self._before_bytes = 0  # what was spare at the last look
        self._before_calls = 0  # how many requests had been served then

    def look(self, count_calls: Callable[[], int], freeing: bool) -> None:
        """Look whether there is something to give back, unless that was done just now.

        Args:
            count_calls: how many requests have been served so far.
            freeing: much is being freed just now.
        """
        now_s = monotonic()
        if freeing:
            rest_s = max(_LOOK_WHILE_FREEING_S, _REST_WHILE_FREEING * self._took_s)
        else:
            rest_s = max(_LOOK_S, _REST * self._took_s)
        if now_s < self._looked_s + rest_s:
            return
        self._looked_s = now_s
        if resident_bytes() <= _SMALL_BYTES:
            return
        allocator = self._allocator
        if allocator is None:
            self._allocator = allocator = _Allocator()
        started_s = thread_time()
        heap = allocator.heap()
        self._took_s = thread_time() - started_s
        beyond_bytes = resident_bytes() - heap.used_bytes
        self._others_bytes = min(self._others_bytes, beyond_bytes)
        spare_bytes = min(heap.free_bytes, beyond_bytes - self._others_bytes)
        stays_bytes = spare_bytes if freeing else min(spare_bytes, self._before_bytes)
        calls = count_calls()
        is_idle = calls == self._before_calls
        self._before_bytes = spare_bytes
        self._before_calls = calls
        if stays_bytes < max(_WORTH_BYTES, heap.free_chunks * _PAGE_BYTES):
            return
        pause_s = _CHUNK_S * heap.free_chunks + _BYTE_S * stays_bytes
        if pause_s <= _MOST_PAUSE_S or is_idle:
            allocator.give_back()
            self._others_bytes = resident_bytes() - allocator.heap().used_bytes


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
