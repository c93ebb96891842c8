"""A server that does nothing for a while."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

from support.process import Process, state_of
from support.waiting import wait_until


@contextlib.contextmanager
def stopped(process: Process) -> Iterator[None]:
    """It answers nothing in here; then it finds all at once that was sent, in its order."""
    process.signal(signal.SIGSTOP)
    try:
        wait_until(lambda: state_of(process.pid) == "T")
        yield
    finally:
        process.signal(signal.SIGCONT)
