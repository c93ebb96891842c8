"""The reaction of the server to each signal: the same as Redis's.

SIGTERM and SIGINT ask for the end, with all that is to be saved. A SIGINT that follows, while that
is being done, ends the process at once. SIGHUP, SIGPIPE and SIGUSR2 do nothing, SIGALRM logs where
each thread is, and so does a crash, unless ``crash-log-enabled`` says no. All others are left to
the system.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from headrace.server.config.config import Config
from headrace.server.log import log

if TYPE_CHECKING:
    from types import FrameType

ENDING: Final = (signal.SIGTERM, signal.SIGINT)
STANDARD_OUTPUT: Final = 1
IGNORED: Final = (signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR2)


class Signals:
    """The signal handlers of one process.

    ``asked`` is called in the event loop with the number of a signal that asks for the end.
    ``leave`` cleans up before the process ends at once.
    """

    def __init__(
        self, config: Config, asked: Callable[[int], None], leave: Callable[[], None]
    ) -> None:
        self._config: Final = config
        self._asked: Final = asked
        self._leave: Final = leave
        self._crash_log = -1  # a file's descriptor

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Install all handlers, whatever the process has inherited."""
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        for number in ENDING:
            loop.add_signal_handler(number, self._asked, number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        self._watch_crashes()
        self._config.on_change["crash-log-enabled"] = self._crash_log_changed

    def let_insist(self) -> Callable[[], None]:
        """Let the next SIGINT end the process at once; return a call that undoes that."""
        before = signal.signal(signal.SIGINT, self._insist)

        def undo() -> None:
            signal.signal(signal.SIGINT, before)

        return undo

    def ignore(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ignore further signals: all is saved, and the process is about to end by itself."""
        for number in ENDING:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)

    def _insist(self, number: int, frame: FrameType | None) -> None:
        log.warning("You insist... exiting now.")
        self._leave()
        os._exit(1)

    # Crashes

    def _watch_crashes(self) -> None:
        path = self._config.logfile
        self._crash_log = os.open(path, os.O_WRONLY | os.O_APPEND) if path else STANDARD_OUTPUT
        faulthandler.register(signal.SIGALRM, self._crash_log)
        self._crash_log_changed()

    def _crash_log_changed(self) -> str | None:
        if self._config.crash_log_enabled:
            faulthandler.enable(self._crash_log)
        else:
            faulthandler.disable()
        return None


def heed_signals() -> None:
    """Run the handlers of signals that have come, which a long piece of work keeps waiting."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ())
