"""A thread for file operations that may take their time.

Tasks run one after another in the order in which they were given. What a task does in the thread
touches files only: the keyspace and the server belong to the event loop, where ``done`` is called.
Whatever a task raises, it has ended then, and whoever waits for it hears why.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from headrace.persistence.errors import PersistenceError

log: Final = logging.getLogger("headrace")

INTERNAL_ERROR: Final = "internal error"


class Task:
    """Something to do with files.

    Attributes:
        failure: why ``run`` failed; empty when it did not.
        ended: ``run`` is over.
    """

    def __init__(self) -> None:
        self.failure = ""
        self.ended = False

    def run(self) -> None:
        """Do it, in the thread; whatever is raised makes it a failure."""
        raise NotImplementedError

    def done(self) -> None:
        """It has ended, well or not; called in the event loop."""


class Worker:
    """Runs tasks in one thread, which starts with the first of them."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._given: Final[deque[tuple[Task, Future[None]]]] = deque()

    def give(self, task: Task) -> None:
        """Run a task after all that were given before.

        Raises:
            RuntimeError: the system has no room for a thread; the task is not run.
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
        """Wait until all tasks have run, and see them done."""
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
        except BaseException as error:  # in a thread there is nobody else to hear of it
            task.failure = INTERNAL_ERROR
            task.failure = failure_text(error)
        finally:
            task.ended = True
            loop.call_soon_threadsafe(self._report)

    def _report(self) -> None:
        while self._given and self._given[0][0].ended:
            self._given.popleft()[0].done()


def failure_text(error: BaseException) -> str:
    """What went wrong, with which file; what nobody expected goes to the log with its traceback."""
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
