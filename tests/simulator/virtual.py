"""Time that the simulator lets go by, and an event loop without sockets and threads."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import math
from collections.abc import Callable
from typing import Any, Final, TypeVarTuple, Unpack

from headrace.server.clock import Clock

Arguments = TypeVarTuple("Arguments")


class Time:
    """The true time, in milliseconds; no region knows it."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms


class RegionClock(Clock):
    """The time as a region sees it: wrong by some hours, perhaps.

    Attributes:
        skew_ms: by how much its time of day is ahead.
    """

    def __init__(self, time: Time, skew_ms: int) -> None:
        self.time = time
        self.skew_ms = skew_ms
        super().__init__()

    def read_ns(self) -> int:
        return (self.time.now_ms + self.skew_ms) * 1_000_000

    def monotonic_ms(self) -> int:
        return self.time.now_ms


class _Timer(asyncio.TimerHandle):
    pass


class Loop(asyncio.AbstractEventLoop):
    """What parts of a server that ask for a running loop find: timers of the simulated time."""

    def __init__(self, time: Time) -> None:
        self._time: Final = time
        self._timers: list[tuple[int, int, asyncio.Handle]] = []  # when, in milliseconds
        self._soon: Final[list[Callable[[], None]]] = []
        self._count = 0
        self.failure: BaseException | None = None

    def time(self) -> float:
        return self._time.now_ms / 1000

    def call_soon(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        return self.call_at(self.time(), callback, *args, context=context)

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = _Timer(when, callback, args, self, context)
        self._count += 1
        due_ms = math.ceil(when * 1000 - 0.001)  # not the fraction that counting in seconds adds
        heapq.heappush(self._timers, (due_ms, self._count, handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A callback has raised: so does the simulator."""
        self.failure = context.get("exception") or RuntimeError(context["message"])

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def soon(self, what: Callable[[], None]) -> None:
        """Call something after what is due by now."""
        self._soon.append(what)

    def run_due(self) -> None:
        """Run what is due, in the order of its time, until nothing is."""
        timers = self._timers
        while True:
            while timers and timers[0][0] <= self._time.now_ms:
                _, _, handle = heapq.heappop(timers)
                if not handle.cancelled():
                    handle._run()
                    if self.failure is not None:
                        failure, self.failure = self.failure, None
                        raise failure
            if not self._soon:
                return
            self._soon.pop(0)()

    def run_all(self, done: Callable[[], bool]) -> None:
        """Run what is to come, whenever that is, until something is done."""
        while not done() and self._timers:
            _, _, handle = heapq.heappop(self._timers)
            if not handle.cancelled():
                handle._run()

    def next_ms(self, otherwise_ms: int) -> int:
        """Return when something is due, or another moment if that is sooner."""
        return min(otherwise_ms, self._timers[0][0]) if self._timers else otherwise_ms

    def clear(self) -> None:
        """Forget all timers: what set them is no more."""
        self._timers.clear()
        self._soon.clear()
