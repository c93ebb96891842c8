"""What is taken out of the server's way to be the same in every run: how fast this machine is.

Work that is cut into slices by the time it takes would be cut at other places in another run, so a
slice lasts as long as there is work. Where a copy is joined, and where records are applied again
behind it, it is one step, and clients come between two of them. And what a thread does is done at
once.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import Iterator
from typing import Final

from headrace.regions.exchange.regions import SLICE_NS
from simulator.process import InlinePool

TIMED: Final = "headrace.regions.exchange.intake"
STEPPED: Final = "headrace.regions.exchange.copy_join"
THREADS: Final = "headrace.server.durability.worker"


def _no_time() -> int:
    return 0


class _Steps:
    """A clock by which a slice is over after one step."""

    def __init__(self) -> None:
        self._now_ns = 0

    def __call__(self) -> int:
        self._now_ns += SLICE_NS // 2 + 1
        return self._now_ns


def prepare() -> None:
    """Prepare this process, until it ends."""
    importlib.import_module(TIMED).perf_counter_ns = _no_time  # type: ignore[attr-defined]
    importlib.import_module(STEPPED).perf_counter_ns = _Steps()  # type: ignore[attr-defined]
    importlib.import_module(THREADS).ThreadPoolExecutor = InlinePool  # type: ignore[attr-defined]
    if gc.isenabled():
        gc.disable()  # a run makes little garbage in cycles; it is collected between runs
        gc.collect()
        gc.freeze()  # what is there by now stays


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Prepare this process, until the block ends: other tests are run by it."""
    places = [(name, "perf_counter_ns") for name in (TIMED, STEPPED)]
    places.append((THREADS, "ThreadPoolExecutor"))
    found = [(importlib.import_module(module), name) for module, name in places]
    before = [getattr(module, name) for module, name in found]
    collects = gc.isenabled()
    prepare()
    try:
        yield
    finally:
        for (module, name), value in zip(found, before, strict=True):
            setattr(module, name, value)
        if collects:
            gc.enable()
            gc.unfreeze()
