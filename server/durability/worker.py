"""Threads for slow operations on files.

Tasks run one after another in the order in which they were given. In the thread a task touches
files only: the keyspace and the server belong to the event loop, where ``done`` is called. Any
exception in a task ends it, and its caller gets the reason.

**The thread of the append-only file.** It does one thing at a time, and reports to the event loop.
Any exception in it is reported as an error of the file, because its work was not done.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from headrace.persistence.aof.file import AppendOnlyFile
from headrace.persistence.errors import PersistenceError

log: Final = logging.getLogger("headrace")

INTERNAL_ERROR: Final = "internal error"


class Task:
    """Something to do with files; ``failure`` says why ``run`` failed, else it is empty."""

    def __init__(self) -> None:
        self.failure = ""
        self.ended = False

    def run(self) -> None:
        """Do it, in the thread; any exception makes it a failure."""
        raise NotImplementedError

    def done(self) -> None:
        """Note that it has ended, well or not; called in the event loop."""


class ThreadCall(Task):
    """A function for the thread; ``done`` gets its result, and its failure, mostly empty."""

    def __init__(
        self, function: Callable[[], object], done: Callable[[object, str], None] | None = None
    ) -> None:
        super().__init__()
        self._function: Final = function
        self._done: Final = done
        self._result: object = None

    def run(self) -> None:
        self._result = self._function()

    def done(self) -> None:
        if self._done is not None:
            self._done(self._result, self.failure)


class Worker:
    """Runs tasks in one thread, which starts with the first of them."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._given: Final[deque[tuple[Task, Future[None]]]] = deque()

    def give(self, task: Task) -> None:
        """Run a task after all that were given before.

        Raises RuntimeError: the system has no room for a thread; the task is not run.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "headrace-files")
        loop = asyncio.get_running_loop()
        try:
            future = self._pool.submit(self._run, task, loop)
        except RuntimeError:
            self._pool.shutdown(wait=False, cancel_futures=True)  # else it would run later
            self._pool = None
            raise
        self._given.append((task, future))

    def drain(self) -> None:
        """Wait until all tasks have run, and call their ``done``."""
        while self._given:
            self._given[0][1].result()
            self._report()

    def close(self) -> None:
        """As ``drain``, and end the thread."""
        self.drain()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _run(self, task: Task, loop: asyncio.AbstractEventLoop) -> None:
        try:
            task.run()
        except BaseException as error:  # in a thread, no caller would see it
            task.failure = INTERNAL_ERROR
            task.failure = failure_text(error)
        finally:
            task.ended = True
            loop.call_soon_threadsafe(self._report)

    def _report(self) -> None:
        while self._given and self._given[0][0].ended:
            self._given.popleft()[0].done()


def failure_text(error: BaseException) -> str:
    """Return what failed, with which file; an unexpected error is logged with its traceback."""
    if isinstance(error, PersistenceError):
        return str(error)
    if not isinstance(error, OSError):
        log.error("Internal error while files are written", exc_info=error)
        return f"{INTERNAL_ERROR} ({type(error).__name__})"
    reason = error.strerror or str(error)
    if error.filename is None:
        return reason
    name = error.filename
    return f"{os.fsdecode(name) if isinstance(name, bytes) else name}: {reason}"


class AofWorker:
    """One kind of work on the file, at most once at a time, beside the event loop.

    ``work`` runs in the thread, and touches nothing but the file. ``done`` is called in the event
    loop at the end, with an error or None, and the duration.
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
        """Return whether the work is under way, as far as the event loop knows."""
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
        except RuntimeError:  # the system has no room for a thread: all clients wait instead
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
        except BaseException as error:  # in a thread, no caller would see it
            failure = as_os_error(error)
        spent_ns = time.perf_counter_ns() - started_ns
        loop.call_soon_threadsafe(self._ended, ticket, failure, spent_ns)
        return failure

    def _ended(self, ticket: int, failure: OSError | None, spent_ns: int) -> None:
        if self._running is not None and ticket == self._ticket:
            self._running = None
            self._done(failure, spent_ns)

    def wait(self) -> OSError | None:
        """Wait for the end of the work, if any, without a call of ``done``; return its error."""
        running = self._running
        self._running = None
        return None if running is None else running.result()

    def close(self) -> None:
        """End the thread; no work may be under way."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def as_os_error(error: BaseException) -> OSError:
    """Return an error as one of the file; the traceback of any other kind is logged."""
    if isinstance(error, OSError):
        return error
    log.error("Internal error while the append-only file is written", exc_info=error)
    return OSError(errno.EIO, f"internal error ({type(error).__name__})")
