"""What one sees while the demo runs: a table in a terminal; else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from two_regions.clients import STREAM, Worker, Writer
from two_regions.links import Links
from two_regions.servers import PASSING, Region, client
from two_regions.verdict import lag_ms

LINE_EVERY_S = 5.0
EVENTS_SHOWN = 8


class View:
    """Shows the regions, the links between them, and what is done to them.

    Attributes:
        prompt: what may be typed, where something may.
    """

    def __init__(
        self,
        console: Console,
        regions: Sequence[Region],
        links: Links,
        writers: Sequence[Writer],
        readers: Sequence[Worker],
        billing: Worker,
    ) -> None:
        self.console = console
        self.prompt = ""
        self._regions = regions
        self._links = links
        self._writers = writers
        self._readers = readers
        self._billing = billing
        self._events: list[str] = []
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
            for event in self._events:
                self.console.print(event, highlight=False)

    def tell(self, text: str) -> None:
        """Something is done to them."""
        event = f"{time.monotonic() - self._began_s:4.0f} s  {text}"
        self._events.append(event)
        if self._live is None:
            self.console.print(event, highlight=False, soft_wrap=True)
        self.show()

    def show(self, typed: str = "") -> None:
        """Show how they are, and what has been typed."""
        if self._live is not None:
            lines = [Text(event) for event in self._events[-EVENTS_SHOWN:]]
            if self.prompt:
                lines += [Text(self.prompt, style="dim"), Text(f"> {typed}_")]
            self._live.update(Group(self._table(), *lines), refresh=True)
        elif time.monotonic() >= self._line_at_s:
            self._line_at_s = time.monotonic() + LINE_EVERY_S
            line = "; ".join(
                f"region {row[0]} {row[1]}" + (f", {row[4]} entries" if row[4] else "")
                for row in self._rows()
            )
            self.console.print(f"        {line}", highlight=False, soft_wrap=True)

    def _table(self) -> Table:
        shown = Table(title=f"{time.monotonic() - self._began_s:.0f} s")
        for title in ("region", "state", "hears", "acknowledged", "entries", "behind"):
            shown.add_column(title, justify="left" if title in ("state", "hears") else "right")
        shown.add_column("its group has read", justify="right")
        shown.add_column("billing has read", justify="right")
        for row in self._rows():
            shown.add_row(*row)
        return shown

    def _rows(self) -> list[list[str]]:
        return [
            self._row(region, writer, reader)
            for region, writer, reader in zip(
                self._regions, self._writers, self._readers, strict=True
            )
        ]

    def _row(self, region: Region, writer: Writer, reader: Worker) -> list[str]:
        heard = [
            str(asked)
            for (asking, asked), link in self._links.all.items()
            if asking == region.number and not link.is_cut
        ]
        entries, behind = _looked_at(region)
        is_home = self._billing.where() is region
        return [
            str(region.number),
            region.state,
            " ".join(heard) or "nobody",
            f"{len(writer.acknowledged):,}",
            entries,
            behind,
            f"{len(reader.done):,}",
            f"{len(self._billing.done):,}" if is_home else "",
        ]


def _looked_at(region: Region) -> tuple[str, str]:
    """Return how many entries a region shows, and how far it is behind."""
    if region.state == "killed":
        return "", ""
    try:
        with client(region.port) as asking:
            return f"{asking.xlen(STREAM):,}", f"{lag_ms(asking) / 1000:.1f} s"
    except PASSING:
        return "", ""
