"""A script that runs for long: others are answered BUSY meanwhile, and may end it."""

from __future__ import annotations

import logging
from abc import abstractmethod
from time import monotonic_ns
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat import server_errors as errors
from headrace.compat.errors import CommandError
from headrace.server.clock import MS
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.gate import SCRIPT_AT_WORK

log: Final = logging.getLogger("headrace")

LOADING_NS: Final = 500_000_000  # what a library may take to be loaded
SERVE_EVERY_NS: Final = 5_000_000  # how often others are served while a script goes on
LONG_NS: Final = 4 * SERVE_EVERY_NS  # more than that between two of these is too long


class Run:
    """The script that runs.

    Attributes:
        name: the SHA-1 of a script, or the name of a function.
        wrote: it has called a command that writes.
        is_to_end: its end has been asked for.
        deadline_ns: when it has to have ended; None for no limit.
        is_told: a master, or a file, says that it has run: it runs to its end.
    """

    def __init__(
        self,
        name: bytes,
        is_function: bool,
        argv: list[bytes],
        began_ns: int,
        deadline_ns: int | None = None,
        is_told: bool = False,
    ) -> None:
        self.name: Final = name
        self.is_function: Final = is_function
        self.argv: Final = argv
        self.began_ns: Final = began_ns
        self.deadline_ns: Final = deadline_ns
        self.is_told: Final = is_told
        self.wrote = False
        self.is_to_end = False


@mypyc_attr(allow_interpreted_subclasses=True)
class Serving:
    """Serves clients while the event loop waits for a script."""

    @abstractmethod
    def serve(self) -> None:
        """Take the requests of clients, and answer."""

    @abstractmethod
    def end(self) -> None:
        """Leave clients to the event loop again."""


class Busy:
    """The handling of a long script, which the interpreter calls from time to time.

    ``was_long``: the script had already run for long when this was last called.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher: Final = dispatcher
        self._server: Final = dispatcher.server
        self.run: Run | None = None
        self.serving: Serving | None = None
        self._next_ns = 0  # when others are served again
        self.was_long = False
        self._looked_ns = 0  # when it was interrupted last

    def begin(self, name: bytes, is_function: bool, call: Call) -> Run:
        """Begin a script."""
        now_ns = monotonic_ns()
        run = Run(name, is_function, call.argv, now_ns, None, call.replaying)
        self.run = run
        self._looked_ns = now_ns
        self._next_ns = now_ns + self._server.config.busy_reply_threshold * MS
        return run

    def begin_loading(self, is_limited: bool) -> None:
        """Begin to load a library, which may not take long if ``is_limited``."""
        now_ns = monotonic_ns()
        deadline_ns = now_ns + LOADING_NS if is_limited else None
        self.run = Run(b"", True, [], now_ns, deadline_ns)
        self._looked_ns = now_ns
        self._next_ns = now_ns

    def end(self) -> None:
        """End the script."""
        self.run = None
        if self._server.gate.reasons & SCRIPT_AT_WORK:
            self._server.gate.set(SCRIPT_AT_WORK, False)
            if self.serving is not None:
                self.serving.end()

    def is_to_end(self, *_: object) -> bool:
        """Return whether the script is to end now; others are served in here."""
        run = self.run
        if run is None:
            return False
        now_ns = monotonic_ns()
        self.was_long = now_ns - self._looked_ns > LONG_NS
        if not run.is_to_end and now_ns >= self._next_ns:
            if run.deadline_ns is None:
                if run.argv:
                    self._serve_others(run)
            elif now_ns >= run.deadline_ns:
                run.is_to_end = True
            now_ns = monotonic_ns()
            self._next_ns = now_ns + SERVE_EVERY_NS
        self._looked_ns = now_ns
        return run.is_to_end

    def refusal(self) -> bytes:
        """Return the error that ends the script."""
        run = self.run
        limited = run is not None and run.deadline_ns is not None
        return errors.LOAD_TIMEOUT if limited else errors.KILLED

    def _serve_others(self, run: Run) -> None:
        server = self._server
        if not server.gate.reasons & SCRIPT_AT_WORK:
            spent_ms = (monotonic_ns() - run.began_ns) // MS
            log.warning(
                "Slow script detected: still in execution after %d milliseconds. You can try "
                "killing the script using the %s KILL command. Script name is: %s.",
                spent_ms,
                "FUNCTION" if run.is_function else "SCRIPT",
                run.name.decode("utf-8", "backslashreplace"),
            )
            server.gate.busy = errors.BUSY_FUNCTION if run.is_function else errors.BUSY_SCRIPT
            server.gate.set(SCRIPT_AT_WORK, True)
        serving = self.serving
        if serving is None:
            return
        kept = _Kept(self._dispatcher.call)
        unfinished = server.changes.unfinished
        server.changes.unfinished = False  # what the script did stays one unit
        try:
            serving.serve()
        finally:
            server.changes.unfinished = unfinished
            kept.restore(self._dispatcher.call)

    # Requests of others

    def kill(self, functions: bool) -> None:
        """End the running script or function; raises CommandError for none, or one that wrote."""
        run = self.run
        if run is None or not run.argv or not self._server.gate.reasons & SCRIPT_AT_WORK:
            raise CommandError(errors.NOT_BUSY)
        if run.is_told:
            raise CommandError(errors.UNKILLABLE_OF_MASTER)
        if run.is_function != functions:
            raise CommandError(self._server.gate.busy)
        if run.wrote:
            raise CommandError(errors.UNKILLABLE)
        run.is_to_end = True


class _Kept:
    """The fields of a call, kept while another script uses it."""

    def __init__(self, call: Call) -> None:
        self._session = call.session
        self._row = call.row
        self._db = call.db
        self._argv = call.argv
        self._now_ms = call.now_ms
        self._may_block = call.may_block

    def restore(self, call: Call) -> None:
        call.session = self._session
        call.row = self._row
        call.db = self._db
        call.argv = self._argv
        call.now_ms = self._now_ms
        call.may_block = self._may_block
