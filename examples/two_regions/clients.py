"""Who uses the stream: writers, and workers of consumer groups, each a thread of the demo."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from two_regions.servers import PASSING, Client, Region, client

STREAM = "orders"
Name = tuple[str, str]  # which entry: its writer, and the number that this has given it


class Loop(threading.Thread):
    """Does something over and over, over a connection that is made anew when it has failed."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.paused = False
        self.at_rest = threading.Event()
        self.failures: Counter[str] = Counter()
        self._ending = False
        self._last_port = 0

    def where(self) -> Region:
        """The region to use now."""
        raise NotImplementedError

    def begin(self, connection: Client) -> None:
        """A connection is new."""

    def work(self, connection: Client) -> None:
        """Do it once."""
        raise NotImplementedError

    def run(self) -> None:
        """Work until ``end`` is called."""
        connection: Client = None
        while not self._ending:
            if self.paused:
                self.at_rest.set()
                time.sleep(0.01)
                continue
            self.at_rest.clear()
            try:
                port = self.where().port
                if connection is None or port != self._last_port:
                    connection = client(port)
                    self._last_port = port
                    self.begin(connection)
                self.work(connection)
            except PASSING as failure:
                self.failures[str(failure).split(" ")[0]] += 1
                if connection is not None:
                    connection.close()
                connection = None
                time.sleep(0.1)
        if connection is not None:
            connection.close()

    def rest(self) -> None:
        """Do nothing more, from now on, and wait until that is so."""
        self.paused = True
        self.at_rest.wait(30)

    def go_on(self) -> None:
        """Work again."""
        self.at_rest.clear()
        self.paused = False

    def end(self) -> None:
        """Work no more, and wait until that is so."""
        self._ending = True
        self.join(30)


class Writer(Loop):
    """Appends numbered entries in one region, each of them until it is acknowledged.

    After a failure nobody knows whether the entry is there. It is sent again with the same producer
    and message number (IDMP), so it is there once.

    Attributes:
        acknowledged: the ID of each entry, by its name.
    """

    def __init__(self, region: Region, name: str, rate: float) -> None:
        super().__init__(name)
        self.region = region
        self.acknowledged: dict[Name, str] = {}
        self._pause_s = 1 / rate
        self._number = 1

    def where(self) -> Region:
        return self.region

    def work(self, connection: Client) -> None:
        """Append one entry."""
        number = str(self._number)
        entry_id: str = connection.execute_command(
            *("XADD", STREAM, "IDMP", self.name, number, "*"),
            *("writer", self.name, "number", number),
        )
        self.acknowledged[self.name, number] = entry_id
        self._number += 1
        time.sleep(self._pause_s)


class Worker(Loop):
    """Works for a group, in the region that it is told to.

    Attributes:
        done: how often it was given each entry.
    """

    def __init__(self, group: str, where: Callable[[], Region]) -> None:
        super().__init__(f"worker-of-{group}")
        self.group = group
        self.done: Counter[Name] = Counter()
        self._where = where

    def where(self) -> Region:
        return self._where()

    def begin(self, connection: Client) -> None:
        """What this worker holds from before is finished first."""
        while self._take(connection, "0", 0):
            pass

    def work(self, connection: Client) -> None:
        """Handle what is new."""
        self._take(connection, ">", 200)

    def _take(self, connection: Client, after: str, block_ms: int) -> int:
        waits = {"block": block_ms} if block_ms else {}
        reply = connection.xreadgroup(self.group, "worker", {STREAM: after}, count=100, **waits)
        entries = [entry for found in reply.values() for batch in found for entry in batch]
        for _, fields in entries:
            if fields:
                self.done[fields["writer"], fields["number"]] += 1
        if entries:
            connection.xack(STREAM, self.group, *[entry_id for entry_id, _ in entries])
        return len(entries)

    @property
    def again(self) -> int:
        """Return how many entries it was given more than once."""
        return sum(times - 1 for times in self.done.values())
