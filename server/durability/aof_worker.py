"""A thread that does one thing to the append-only file at a time, and reports to the event loop.

Whatever goes wrong in it is reported as an error of the file, because its work was not done.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from headrace.persistence.aof.file import AppendOnlyFile

log: Final = logging.getLogger("headrace")


class AofWorker:
    """One kind of work on the file, at most once at a time, beside the event loop.

    Args:
        name: of the thread.
        work: what is done in the thread; it touches nothing but the file.
        done: called in the event loop when that has ended, with the error that it ended with, or
            None, and how long it took.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[AppendOnlyFile], None],
        done: Callable[[OSError | None, int], None],
    ) -> None:
        self.started_s = 0.0  # when it was started last
        self._name: Final = name
        self._work: Final = work
        self._done: Final = done
        self._pool: ThreadPoolExecutor | None = None
        self._running: Future[OSError | None] | None = None
        self._ticket = 0  # differs between the work under way and work that was waited for

    @property
    def busy(self) -> bool:
        """Whether the work is under way, as far as the event loop knows."""
        return self._running is not None

    def start(self, aof: AppendOnlyFile) -> None:
        """Begin the work; it must not be under way."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, self._name)
        self._ticket += 1
        self.started_s = time.monotonic()
        loop = asyncio.get_running_loop()
        try:
            self._running = self._pool.submit(self._run, aof, loop, self._ticket)
        except RuntimeError:  # the system has no room for a thread: everybody waits instead
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
            running: Future[OSError | None] = Future()
            self._running = running
            running.set_result(self._run(aof, loop, self._ticket))

    def _run(
        self, aof: AppendOnlyFile, loop: asyncio.AbstractEventLoop, ticket: int
    ) -> OSError | None:
        failure: OSError | None = None
        started_ns = time.perf_counter_ns()
        try:
            self._work(aof)
        except BaseException as error:  # in a thread there is nobody else to hear of it
            failure = as_os_error(error)
        spent_ns = time.perf_counter_ns() - started_ns
        loop.call_soon_threadsafe(self._ended, ticket, failure, spent_ns)
        return failure

    def _ended(self, ticket: int, failure: OSError | None, spent_ns: int) -> None:
        if self._running is not None and ticket == self._ticket:
            self._running = None
            self._done(failure, spent_ns)

    def wait(self) -> OSError | None:
        """Wait for the end of the work, if it is under way; the error that it ended with.

        ``done`` is not called then.
        """
        running = self._running
        self._running = None
        return None if running is None else running.result()

    def close(self) -> None:
        """End the thread; no work may be under way."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def as_os_error(error: BaseException) -> OSError:
    """What went wrong, as an error of the file; the traceback of anything else is logged."""
    if isinstance(error, OSError):
        return error
    log.error("Internal error while the append-only file is written", exc_info=error)
    return OSError(errno.EIO, f"internal error ({type(error).__name__})")
