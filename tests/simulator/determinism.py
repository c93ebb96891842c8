"""What is taken out of the server's way to be the same in every run: how fast this machine is.

Work that is cut into slices by the time it takes would be cut at other places in another run, so a
slice lasts as long as there is work. And what a thread does is done at once.
"""

from __future__ import annotations

import gc
import importlib
from typing import Final

from simulator.process import InlinePool

TIMED: Final = [f"headrace.server.regions.{name}" for name in ("intake", "joining", "replaying")]
THREADS: Final = "headrace.server.durability.worker"


def _no_time() -> int:
    return 0


def prepare() -> None:
    """Prepare this process."""
    for name in TIMED:
        importlib.import_module(name).perf_counter_ns = _no_time  # type: ignore[attr-defined]
    importlib.import_module(THREADS).ThreadPoolExecutor = InlinePool  # type: ignore[attr-defined]
    if gc.isenabled():
        gc.disable()  # a run makes little garbage in cycles; it is collected between runs
        gc.collect()
        gc.freeze()  # what is there by now stays
