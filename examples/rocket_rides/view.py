"""What one sees while the demo runs: a table in a terminal, else a line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from rocket_rides.reconcile import Situation, show
from rocket_rides.supervisor import Victim

LINE_EVERY_S = 5.0


class View:
    """Shows the processes, how far they are and what they have made.

    Args:
        whose: which consumer or group a process works for, by its name.
    """

    def __init__(self, console: Console, victims: Sequence[Victim], whose: dict[str, str]) -> None:
        self.console = console
        self.victims = victims
        self.whose = whose
        self.phase = ""
        self._began_s = time.monotonic()
        self._line_at_s = 0.0
        self._live = (
            Live(console=console, auto_refresh=False, transient=True)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, situation: Situation | None) -> None:
        """Show the latest; None while the database or the log is away."""
        if self._live is not None:
            self._live.update(self._table(situation), refresh=True)
        elif time.monotonic() >= self._line_at_s:
            self._line_at_s = time.monotonic() + LINE_EVERY_S
            self.console.print(self._line(situation), highlight=False, soft_wrap=True)

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._began_s:4.0f} s  {self.phase}"

    def _line(self, situation: Situation | None) -> str:
        kills = sum(victim.kills for victim in self.victims)
        if situation is None:
            return f"{self._elapsed()}: {kills} killed; database or log is starting again"
        lags = ", ".join(f"{name} {situation.lag(name)}" for name in sorted(situation.states))
        # Of those who skip copies; a group also skips what it was given again.
        skipped = max(
            (
                state.skipped_count
                for name, state in situation.states.items()
                if name not in situation.groups
            ),
            default=0,
        )
        return (
            f"{self._elapsed()}: {kills} killed; {situation.rides.ride_count} rides, "
            f"{situation.staged} staged, {situation.stream.length} in the stream, "
            f"{skipped} copies skipped; behind: {lags}"
        )

    def _table(self, situation: Situation | None) -> Table:
        table = Table(title=self._elapsed(), caption=self._caption(situation))
        table.add_column("process")
        table.add_column("pid", justify="right", min_width=7)
        table.add_column("started", justify="right")
        table.add_column("killed", justify="right")
        table.add_column("behind", justify="right", min_width=6)
        table.add_column("skipped", justify="right")
        table.add_column("rides", justify="right", min_width=7)
        table.add_column("total", justify="right", min_width=20)
        for victim in self.victims:
            name = self.whose.get(victim.name, "")
            known = situation is not None and name in situation.states
            behind = str(situation.lag(name)) if situation is not None and known else ""
            state = situation.states[name] if situation is not None and known else None
            table.add_row(
                victim.name,
                "[red]gone[/]" if victim.pid is None else str(victim.pid),
                str(victim.starts),
                str(victim.kills),
                behind,
                "" if state is None else str(state.skipped_count),
                "" if state is None else str(state.ride_count),
                "" if state is None else show(state.total),
            )
        return table

    def _caption(self, situation: Situation | None) -> str:
        if situation is None:
            return "database or log is starting again"
        return (
            f"database {situation.rides.ride_count} rides, {show(situation.rides.total)} m; "
            f"staged {situation.staged}; stream {situation.stream.length} entries of "
            f"{situation.stream.entries_added} ever added"
        )
