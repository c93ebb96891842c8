"""What the parts of the server ask of the process around them."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from headrace.server.changes.changes import Turn


@mypyc_attr(allow_interpreted_subclasses=True)
class Host(Turn):
    """Timers, the turns of the event loop, and the end of the process."""

    def wake_at(self, deadline_ms: int) -> None:
        """Have waits looked at when ``monotonic_ms`` has come to this, or sooner."""

    def flush_soon(self) -> None:
        """Have the sessions in ``flushing`` flushed at the end of this turn."""

    def flush_now(self) -> None:
        """Flush the sessions in ``flushing``, now or when more of them have come."""

    def publish_soon(self) -> None:
        """Have other regions get to know what was acknowledged, after ``aa-ack-interval-ms``."""

    def answered(self) -> None:
        """A lone client, which waits for each answer before it asks again, has its answer."""

    def lend_files(self) -> None:
        """Let descriptors go that are kept for files which are about to be opened."""

    def stop(self, exit_code: int) -> None:
        """End the process in order, after this turn of the event loop."""

    def leave(self) -> None:
        """End the process at once, with nothing saved."""

    def ask_to_end(self, number: int) -> None:
        """A signal asks for the end of the process."""

    def notify_supervisor(self, status: str) -> None:
        """Report what the process is doing to its supervisor."""

    def supervisor(self) -> bytes:
        """The supervisor, as INFO shows it."""
        return b"no"

    def loop_name(self) -> bytes:
        """Which event loop runs, as INFO shows it."""
        return b"none"
