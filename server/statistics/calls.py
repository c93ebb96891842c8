"""How often a command was called, and how long that took."""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

_NO_CALLS: Final = [0] * 64


class CallCounters:
    """The counters of one command; they are the row of the command, as far as clients know it.

    Attributes:
        name: lower case; ``container|subcommand`` for a subcommand.
        of_connection: it concerns the connection, and no data.
        calls: how often it was run; nsec: how long that took.
        rejected_calls: refused before it was run; failed_calls: run, and answered by an error.
        quick_calls: calls that took less than two microseconds.
        histogram: the others, by the bit length of their microseconds; empty while there are none.
    """

    def __init__(self, name: bytes, of_connection: bool) -> None:
        self.name: Final = name
        self.of_connection: Final = of_connection
        self.calls = 0
        self.nsec = 0
        self.rejected_calls = 0
        self.failed_calls = 0
        self.quick_calls = 0
        self.histogram = vec[i64]()

    def reset_counters(self) -> None:
        """Count its calls anew."""
        self.calls = 0
        self.nsec = 0
        self.rejected_calls = 0
        self.failed_calls = 0
        self.quick_calls = 0
        self.histogram = vec[i64]()

    def begin_histogram(self) -> None:
        """Make room to count calls that are not quick."""
        self.histogram = vec[i64](_NO_CALLS)
