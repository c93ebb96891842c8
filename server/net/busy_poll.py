"""Looking for a client's next request without going to sleep, where it comes at once.

A client that waits for each answer before it asks again leaves the server with nothing to do for
some ten microseconds at a time. Going to sleep for that long and being woken takes longer than the
command. So after the answer to a lone client the event loop goes on looking for ``busy-poll-us``,
each time giving way to whoever shares the processor.

That is worth something only while requests do come that soon. So after a look in vain, some answers
pass before the next look, and more of them each time. A client that asks now and then costs nothing
worth mentioning.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import Final

from headrace.server.config.config import Config

MOST_PASSED: Final = 1024  # answers after which nobody looks, when it was in vain so often


class BusyPoll:
    """Keeps the event loop of one server from sleeping after the answer to a lone client.

    Attributes:
        polling: whether it is looking now.
    """

    def __init__(self, config: Config) -> None:
        self.polling = False
        self._config: Final = config
        self._until_ns = 0
        self._passing = 0  # answers that still pass before the next look
        self._passed = 1  # after the next look in vain so many of them will have

    def answered(self) -> None:
        """A lone client has been given its answer."""
        if self.polling:  # it asked in time
            self._passed = 1
        elif self._passing:
            self._passing -= 1
            return
        window_us = self._config.busy_poll_us
        if not window_us:
            return
        self._until_ns = time.perf_counter_ns() + window_us * 1000
        if not self.polling:
            self.polling = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Come again in the loop's next turn, which does not sleep then."""
        if time.perf_counter_ns() < self._until_ns:
            os.sched_yield()
            asyncio.get_running_loop().call_soon(self._look)
            return
        self.polling = False
        self._passing = self._passed
        self._passed = min(self._passed * 2, MOST_PASSED)
