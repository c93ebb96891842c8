"""What the parts of the server ask of the process around them."""

from __future__ import annotations

from headrace.server.changes.changes import Turn


class Host(Turn):
    """Timers, the turns of the event loop, and the end of the process."""

    def wake_at(self, deadline_ms: int) -> None:
        """See that waits are looked at at this moment of ``monotonic_ms`` at the latest."""

    def flush_soon(self) -> None:
        """See that the sessions in ``flushing`` are flushed at the end of this turn."""

    def flush_now(self) -> None:
        """Flush the sessions in ``flushing``, or see that they are when more of them have come."""

    def answered(self) -> None:
        """A client has its answer that is alone, and waits for each before it asks again."""

    def stop(self, exit_code: int) -> None:
        """End the process in order, after this turn of the event loop."""

    def ask_to_end(self, number: int) -> None:
        """A signal asks for the end of the process."""

    def notify_supervisor(self, status: str) -> None:
        """Report what the process is doing to its supervisor."""

    def supervisor(self) -> bytes:
        """Who that is, as INFO shows it."""
        return b"no"

    def loop_name(self) -> bytes:
        """Which event loop runs, as INFO shows it."""
        return b"none"
