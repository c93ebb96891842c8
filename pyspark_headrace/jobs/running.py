"""Running a query to its end with a line that says how it goes."""

from __future__ import annotations

import re
import signal
from types import FrameType
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.status import Status

from pyspark_headrace.listener import Lag, LagListener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S: Final = 1
_OURS: Final = re.compile(r"pyspark_headrace\.\w+(?:\.\w+)*: (.+)")
_JAVA: Final = re.compile(r"^: (?:[\w$]+\.)*(.+)", re.MULTILINE)  # an exception without its package


class Progress:
    """One line: rewritten on a terminal, else a new one for each batch."""

    def __init__(self, console: Console, what: str) -> None:
        self._console: Final = console
        self._what: Final = what
        self._status: Status | None = None
        self.rows = 0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status(self._what)
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, text: str) -> None:
        """Show how it stands."""
        if self._status is not None:
            self._status.update(f"{self._what}: {text}")
        else:
            self._console.print(f"{self._what}: {text}")

    def batch_done(self, lags: list[Lag]) -> None:
        """Report a batch."""
        one = lags[0]
        self.rows += one.rows
        behind = [lag.entries for lag in lags]
        left = "?" if None in behind else f"{sum(each or 0 for each in behind):,}"
        lost = sum(lag.lost for lag in lags)
        self.say(
            f"batch {one.batch}, {self.rows:,} entries, {one.rows_per_s:,.0f}/s, {left} to go"
            + (f", {lost:,} were lost before they could be read" if lost else "")
        )


def run(spark: SparkSession, console: Console, what: str, query: StreamingQuery) -> int:
    """Wait for the end of a query; Ctrl-C and SIGTERM end it, and nothing is lost by that.

    Returns:
        How many entries it has read.
    """
    asked_to_stop: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        asked_to_stop.append(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with Progress(console, what) as progress:
            listener = LagListener(on_lag=progress.batch_done)
            spark.streams.addListener(listener)
            try:
                while not query.awaitTermination(POLL_S):
                    if asked_to_stop:
                        query.stop()  # in the middle of a batch, perhaps: it is done again
            finally:
                spark.streams.removeListener(listener)
            return sum(each.numInputRows for each in query.recentProgress)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def message_of(error: BaseException) -> str:
    """Return what to say of an error: our own words inside of Spark's, where there are some."""
    text = str(error)
    found = _OURS.findall(text)
    if found:
        return str(found[-1])
    java = _JAVA.search(text)
    if java is not None and text.startswith("An error occurred while calling"):
        return java[1]
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
