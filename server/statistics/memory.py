"""The memory of the process and the machine: interpreter, code, data and what is free."""

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
    """Return the resident set of this process, in bytes."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        # Elsewhere the peak is all there is: bytes on macOS, KiB on the BSDs.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def system_bytes() -> int:
    """Return the memory of this machine, in bytes; 0 when it is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def anonymous_huge_bytes() -> int:
    """Return the bytes of this process in transparent huge pages; 0 when that is not known."""
    try:
        with open("/proc/self/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"AnonHugePages:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class _Heap:
    def __init__(self, used_bytes: int, free_bytes: int, free_chunks: int) -> None:
        self.used_bytes: Final = used_bytes
        self.free_bytes: Final = free_bytes
        self.free_chunks: Final = free_chunks


class _Allocator:
    """The functions of glibc's allocator; another one may have none of them."""

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
        """Return to the system the free memory that is held."""
        if self._trim is not None:
            self._trim(0)

    def heap(self) -> _Heap:
        """Return the used and the free bytes of the heap; 0 where they are not known."""
        if self._info is None:
            return _Heap(0, 0, 0)
        info = self._info()
        return _Heap(info.uordblks + info.hblkhd, info.fordblks, info.ordblks)


def give_back() -> None:
    """Let the allocator return free memory to the system, where it can."""
    _Allocator().give_back()


class SpareMemory:
    """The free memory that the allocator holds after much was freed, and its return to the system.

    glibc returns by itself only the end of its heap. To return the rest holds up all threads that
    allocate, and there is no way to return a part of it. So it is done while it is little, and a
    return that would take long waits until no client asks for anything. Memory that is needed again
    between two looks is left alone.

    Returned memory still counts as free in the heap. How much of the heap is resident is estimated:
    the resident set beyond the used memory, less the same difference just after a full return.
    """

    def __init__(self) -> None:
        self._allocator: _Allocator | None = None
        self._looked_s = 0.0  # when that was
        self._took_s = 0.0  # of processor time
        self._others_bytes = 0  # resident, and not the allocator's
        self._before_bytes = 0  # what was spare at the last look
        self._before_calls = 0  # how many requests had been served then

    def look(self, count_calls: Callable[[], int], freeing: bool) -> None:
        """Return spare memory if that is due, unless it was looked at just now.

        ``count_calls`` returns how many requests have been served; ``freeing``: much is being freed
        now.
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
    """Return a size for people, as INFO writes it: ``1.00M``."""
    if size < 1024:
        return b"%dB" % size
    amount = float(size)
    for unit in (b"K", b"M", b"G", b"T", b"P"):
        amount /= 1024
        if amount < 1024:
            return b"%.2f%b" % (amount, unit)
    return b"%dB" % size
